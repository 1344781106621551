//! One publisher, some relays, some proxies, and the streams between them, on virtual time.

use std::collections::{BTreeMap, BTreeSet};

use super::source::Source;
use crate::distrib::{
    Down, OpenToAll, ProxyPolicy, Publisher, PublisherInput, PublisherTimer, Relay, RelayConfig,
    RelayInput, RelayTimer, ServerConfig, Up, Windows, Wire, snapshot_bytes,
};
use crate::mutants::{Mutant, Mutants};
use crate::proxy::{
    AgeAction, AgeRule, AttemptResult, BackOff, Outcome, PassiveReport, Plan, Proxy, ProxyConfig,
    ProxyDials, ProxyInput, ProxyTimer, Request, Step,
};
use crate::types::{
    Cell, CellUpdate, Endpoint, Generation, InstanceId, Metric, Out, Peer, Place, ProxyId,
    RegionId, RelayId, Sample, ShardId, Span, Time, ZoneId,
};

pub(crate) const CATALOG: Peer = Peer::Catalog(RegionId(0), ShardId(0));
pub(crate) const PROOF: u64 = 7;
const DELAY: Span = Span::from_ms(20);

pub(crate) const fn relay(at: u16) -> Peer {
    Peer::Relay(RegionId(0), RelayId(at))
}

pub(crate) const fn proxy(at: u16) -> Peer {
    Peer::Proxy(ProxyId(at))
}

/// What is wrong with the network and the relays.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Messages lost, repeated, and overtaken, in percent; between relays and proxies.
    pub(crate) loss_pct: u64,
    pub(crate) repeat_pct: u64,
    pub(crate) reorder: bool,
    /// A relay that sends no deltas, though all else.
    pub(crate) no_deltas: Option<u16>,
    /// A relay that sends nothing.
    pub(crate) mute: Option<u16>,
    /// A relay whose content of a cell is broken.
    pub(crate) corrupt: Option<(u16, Cell)>,
    /// Pairs that cannot reach each other, and do not notice.
    pub(crate) apart: BTreeSet<(Peer, Peer)>,
}

#[derive(Clone, Debug)]
enum Event {
    Deliver { from: Peer, to: Peer, epoch: u32, body: Box<Wire> },
    Broken { at: Peer, with: Peer },
    Publisher(PublisherTimer, u32),
    Relay(u16, RelayTimer, u32),
    Proxy(u16),
    Confirm,
}

#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) now: Time,
    pub(crate) source: Source,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) relays: Vec<Option<Relay>>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) faults: Faults,
    /// The catalog's replica hears from a leader with a quorum.
    pub(crate) quorum: bool,
    pub(crate) windows: Windows,
    pub(crate) server: ServerConfig,
    pub(crate) reports: Vec<PassiveReport>,
    /// What the global layer wants of proxies.
    pub(super) policy: ProxyPolicy,
    /// Relay 0 stands above the others, and proxies use the others only.
    chain: bool,
    /// Totals of the samples: of relays and publisher, and of proxies.
    pub(crate) tier: BTreeMap<Metric, u64>,
    pub(crate) edge: BTreeMap<Metric, u64>,
    /// Watch lags of proxies, one by one.
    pub(crate) lags: Vec<u64>,
    /// Snapshots sent to proxies: when, by which relay, bytes.
    pub(crate) snapshots: Vec<(Time, Peer, u64)>,
    pub(crate) welcomes: Vec<(Time, Peer)>,
    pub(super) mutants: Mutants,
    queue: BTreeMap<(Time, u64), Event>,
    sequence: u64,
    epochs: BTreeMap<(Peer, Peer), u32>,
    lives: BTreeMap<Peer, u32>,
    arrivals: BTreeMap<(Peer, Peer), Time>,
    pub(super) places: BTreeMap<(u16, Cell), crate::distrib::Cursor>,
    pub(super) seen: BTreeMap<(u16, Cell, InstanceId), Generation>,
    pub(super) cells: Vec<Cell>,
}

/// How the world is made.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) cells: Vec<Cell>,
    pub(crate) relays: u16,
    pub(crate) proxies: u16,
    pub(crate) server: ServerConfig,
    pub(crate) windows: Windows,
    pub(crate) dials: ProxyDials,
    pub(crate) mutant: Option<Mutant>,
    pub(crate) chain: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cells: vec![super::source::cell(0), super::source::cell(1)],
            relays: 2,
            proxies: 3,
            server: ServerConfig {
                proof: PROOF,
                heartbeat: Span::from_s(2),
                connects_per_s: 20,
                connects_burst: 20,
                ..ServerConfig::default()
            },
            windows: Windows::default(),
            dials: ProxyDials {
                heartbeat: Span::from_s(2),
                back_off: BackOff {
                    base: Span::from_ms(500),
                    cap: Span::from_s(8),
                    jitter_pct: 50,
                },
                ..ProxyDials::default()
            },
            mutant: None,
            chain: false,
        }
    }
}

impl Setup {
    /// A world in which everything has been started and has had time to settle.
    pub(crate) fn start(self) -> World {
        let mut world = World::new(self);
        world.run(Span::from_s(3));
        world
    }
}

impl World {
    pub(crate) fn new(setup: Setup) -> Self {
        let mutants = setup.mutant.map(Mutants::only).unwrap_or_default();
        let server = ServerConfig { mutants, ..setup.server };
        let source = Source::new(&setup.cells);
        let relays: Vec<Peer> = (u16::from(setup.chain)..setup.relays).map(relay).collect();
        let policy = ProxyPolicy { version: 1, dials: setup.dials };
        let make = |at: u16| {
            let config = ProxyConfig {
                id: ProxyId(at),
                place: Place { region: RegionId(0), zone: ZoneId((at % 3) as u8) },
                relays: relays.clone(),
                home: at % relays.len() as u16,
                proof: u64::from(at),
                control_plane: PROOF,
                mutants,
            };
            Proxy::new(config, &setup.cells, policy)
        };
        let mut world = Self {
            now: Time::ZERO,
            publisher: None,
            relays: vec![None; usize::from(setup.relays)],
            proxies: (0..setup.proxies).map(make).collect(),
            source,
            faults: Faults::default(),
            quorum: true,
            windows: setup.windows,
            server,
            reports: Vec::new(),
            policy,
            chain: setup.chain,
            tier: BTreeMap::new(),
            edge: BTreeMap::new(),
            lags: Vec::new(),
            snapshots: Vec::new(),
            welcomes: Vec::new(),
            mutants,
            queue: BTreeMap::new(),
            sequence: 0,
            epochs: BTreeMap::new(),
            lives: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            places: BTreeMap::new(),
            seen: BTreeMap::new(),
            cells: setup.cells,
        };
        world.publisher_up();
        for at in 0..setup.relays {
            world.relay_up(at);
        }
        for at in 0..setup.proxies {
            world.proxy_event(at, ProxyInput::Start);
        }
        world.push(Span::ZERO, Event::Confirm);
        world
    }

    /// A number that nothing else depends on.
    fn uniform(&mut self) -> u32 {
        self.sequence += 1;
        oncall_core::streams::scramble(self.sequence ^ self.now.0) as u32
    }

    fn push(&mut self, after: Span, event: Event) {
        self.push_at(self.now.after(after), event);
    }

    fn push_at(&mut self, at: Time, event: Event) {
        self.sequence += 1;
        self.queue.insert((at.max(self.now), self.sequence), event);
    }

    pub(crate) fn run(&mut self, span: Span) {
        let end = self.now.after(span);
        while let Some((&(at, sequence), _)) = self.queue.first_key_value() {
            if at > end {
                break;
            }
            let event = self.queue.remove(&(at, sequence)).unwrap();
            self.now = at;
            self.handle(event);
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Deliver { from, to, epoch, body } => {
                if self.epoch(from, to) == epoch {
                    self.deliver(from, to, *body);
                }
            }
            Event::Broken { at, with } => self.broken(at, with),
            Event::Publisher(timer, life) if life == self.life(CATALOG) => {
                self.publisher_event(PublisherInput::Timer(timer));
            }
            Event::Relay(at, timer, life) if life == self.life(relay(at)) => {
                self.relay_event(at, RelayInput::Timer(timer));
            }
            Event::Publisher(..) | Event::Relay(..) => {}
            Event::Proxy(at) => self.proxy_event(at, ProxyInput::Timer(ProxyTimer)),
            Event::Confirm => {
                if self.quorum && self.publisher.is_some() {
                    self.publisher_event(PublisherInput::Confirmed(self.now));
                }
                self.push(Span::from_ms(500), Event::Confirm);
            }
        }
    }

    fn epoch(&self, a: Peer, b: Peer) -> u32 {
        self.epochs.get(&(a.min(b), a.max(b))).copied().unwrap_or(0)
    }

    fn life(&self, peer: Peer) -> u32 {
        self.lives.get(&peer).copied().unwrap_or(0)
    }

    fn deliver(&mut self, from: Peer, to: Peer, body: Wire) {
        match (to, body) {
            (Peer::Catalog(..), Wire::Up(up)) => {
                if self.publisher.is_some() {
                    self.publisher_event(PublisherInput::Message(from, up));
                } else if matches!(up, Up::Hello { .. }) {
                    self.push(DELAY, Event::Broken { at: from, with: to });
                }
            }
            (Peer::Catalog(..), Wire::Report(report)) => self.reports.push(report),
            (Peer::Relay(_, at), body) if self.relays[at.index()].is_some() => {
                let input = match body {
                    Wire::Up(up) => RelayInput::Message(from, up),
                    Wire::Down(down) => RelayInput::Upstream(from, down),
                    Wire::Report(report) => RelayInput::Report(report),
                };
                self.relay_event(at.0, input);
            }
            (Peer::Relay(..), Wire::Up(Up::Hello { .. })) => {
                self.push(DELAY, Event::Broken { at: from, with: to });
            }
            (Peer::Proxy(at), Wire::Down(down)) => {
                self.proxy_event(at.0, ProxyInput::Message(from, down));
            }
            _ => {}
        }
    }

    fn broken(&mut self, at: Peer, with: Peer) {
        match at {
            Peer::Catalog(..) if self.publisher.is_some() => {
                self.publisher_event(PublisherInput::Closed(with));
            }
            Peer::Relay(_, id) if self.relays[id.index()].is_some() => {
                let above = with == self.upstream(id.0);
                let closed = RelayInput::Closed(with);
                let input = if above { RelayInput::UpstreamLost(with) } else { closed };
                self.relay_event(id.0, input);
            }
            Peer::Proxy(id) => self.proxy_event(id.0, ProxyInput::Lost(with)),
            _ => {}
        }
    }

    fn publisher_event(&mut self, input: PublisherInput) {
        let mut out = Out::new();
        let now = self.now;
        let publisher = self.publisher.as_mut().unwrap();
        publisher.on_event(now, input, &OpenToAll, &mut out).unwrap();
        let life = self.life(CATALOG);
        for timer in std::mem::take(&mut out.timers) {
            self.push_at(timer.at, Event::Publisher(timer.key, life));
        }
        self.emit(CATALOG, out.sends, &out.samples);
    }

    fn relay_event(&mut self, at: u16, input: RelayInput) {
        let mut out: Out<Wire, RelayTimer> = Out::new();
        let (now, uniform) = (self.now, self.uniform());
        let Some(node) = self.relays[usize::from(at)].as_mut() else { return };
        node.on_event(now, input, uniform, &OpenToAll, &mut out);
        self.relay_out(at, out);
    }

    fn relay_out(&mut self, at: u16, mut out: Out<Wire, RelayTimer>) {
        let life = self.life(relay(at));
        for timer in std::mem::take(&mut out.timers) {
            self.push_at(timer.at, Event::Relay(at, timer.key, life));
        }
        self.emit(relay(at), out.sends, &out.samples);
    }

    pub(crate) fn proxy_event(&mut self, at: u16, input: ProxyInput) {
        let mut out = Out::new();
        let (now, uniform) = (self.now, self.uniform());
        self.proxies[usize::from(at)].on_event(now, input, uniform, &mut out);
        self.proxy_out(at, out);
        self.check(at);
    }

    fn proxy_out(&mut self, at: u16, mut out: Out<Wire, ProxyTimer>) {
        for timer in std::mem::take(&mut out.timers) {
            self.push_at(timer.at, Event::Proxy(at));
        }
        self.emit(proxy(at), out.sends, &out.samples);
    }

    fn emit(&mut self, from: Peer, sends: Vec<crate::types::Message<Wire>>, samples: &[Sample]) {
        let totals = if matches!(from, Peer::Proxy(_)) { &mut self.edge } else { &mut self.tier };
        let lags = samples.iter().filter(|sample| sample.metric == Metric::WatchLagMs);
        self.lags.extend(lags.map(|sample| sample.value));
        for sample in samples {
            *totals.entry(sample.metric).or_default() += sample.value;
        }
        for message in sends {
            self.send(from, message.to, message.body);
        }
    }

    fn send(&mut self, from: Peer, to: Peer, mut body: Wire) {
        let edge = matches!(from, Peer::Proxy(_)) || matches!(to, Peer::Proxy(_));
        if let (Peer::Relay(_, id), true) = (from, edge) {
            match &mut body {
                Wire::Down(Down::Snapshot(snapshot)) => {
                    self.snapshots.push((self.now, from, snapshot_bytes(snapshot.head.count)));
                    if self.faults.corrupt == Some((id.0, snapshot.cell)) {
                        snapshot.checksum ^= 1;
                    }
                }
                Wire::Down(Down::Delta(delta)) => {
                    if self.faults.no_deltas == Some(id.0) {
                        return;
                    }
                    if self.faults.corrupt == Some((id.0, delta.cell)) {
                        delta.checksum ^= 1;
                    }
                }
                Wire::Down(Down::Welcome { .. }) => self.welcomes.push((self.now, from)),
                _ => {}
            }
            if self.faults.mute == Some(id.0) {
                return;
            }
        }
        if self.faults.apart.contains(&(from.min(to), from.max(to))) {
            return;
        }
        let dice = u64::from(self.uniform()) % 100;
        if edge && dice < self.faults.loss_pct {
            return;
        }
        if edge && dice >= 100 - self.faults.repeat_pct {
            self.transmit(from, to, body.clone());
        }
        self.transmit(from, to, body);
    }

    fn transmit(&mut self, from: Peer, to: Peer, body: Wire) {
        let jitter = Span::from_ms(u64::from(self.uniform()) % 60);
        let mut at = self.now.after(DELAY).after(jitter);
        if !self.faults.reorder {
            at = at.max(self.arrivals.get(&(from, to)).copied().unwrap_or(Time::ZERO));
            self.arrivals.insert((from, to), at);
        }
        let epoch = self.epoch(from, to);
        self.push_at(at, Event::Deliver { from, to, epoch, body: Box::new(body) });
    }

    /// Where a relay reads from.
    pub(crate) fn upstream(&self, at: u16) -> Peer {
        if self.chain && at > 0 { relay(0) } else { CATALOG }
    }

    /// Ends the stream between two; both hear of it, or neither does.
    pub(crate) fn cut(&mut self, a: Peer, b: Peer, noticed: bool) {
        *self.epochs.entry((a.min(b), a.max(b))).or_default() += 1;
        if noticed {
            self.push(Span::from_ms(1), Event::Broken { at: a, with: b });
            self.push(Span::from_ms(1), Event::Broken { at: b, with: a });
        }
    }

    pub(crate) fn publisher_down(&mut self) {
        self.publisher = None;
        *self.lives.entry(CATALOG).or_default() += 1;
        for at in 0..self.relays.len() as u16 {
            self.cut(CATALOG, relay(at), true);
        }
    }

    /// Starts the publisher out of the log.
    pub(crate) fn publisher_up(&mut self) {
        *self.lives.entry(CATALOG).or_default() += 1;
        let (bases, history) = self.source.log();
        let incarnation = self.source.incarnation;
        let (now, windows, server) = (self.now, self.windows, self.server);
        let publisher =
            Publisher::rebuild(now, bases, incarnation, windows, server, history).unwrap();
        self.publisher = Some(publisher);
        self.publisher_event(PublisherInput::Policy(self.policy));
    }

    pub(crate) fn relay_down(&mut self, at: u16) -> Option<Relay> {
        *self.lives.entry(relay(at)).or_default() += 1;
        self.cut(CATALOG, relay(at), true);
        for other in (0..self.relays.len() as u16).filter(|other| *other != at) {
            self.cut(relay(other), relay(at), true);
        }
        for id in 0..self.proxies.len() as u16 {
            self.cut(relay(at), proxy(id), true);
        }
        self.relays[usize::from(at)].take()
    }

    /// Starts a relay that knows nothing.
    pub(crate) fn relay_up(&mut self, at: u16) {
        let config = RelayConfig {
            proof: 0,
            upstream_proof: PROOF,
            shards: vec![ShardId(0); 8],
            parent: Some(self.upstream(at)).filter(|above| *above != CATALOG),
            back_off: BackOff { base: Span::from_ms(200), cap: Span::from_s(5), jitter_pct: 50 },
            server: self.server,
        };
        self.relays[usize::from(at)] = Some(Relay::new(self.now, config));
    }

    /// Starts a relay that kept what it knew.
    pub(crate) fn relay_up_warm(&mut self, at: u16, mut known: Relay) {
        known.restart_warm();
        let mut out = Out::new();
        known.start(self.now, &mut out);
        self.relays[usize::from(at)] = Some(known);
        self.relay_out(at, out);
    }

    /// Hands an accepted change to the publisher, if it is there.
    fn accept(&mut self, update: Option<CellUpdate>) {
        if let Some(update) = update
            && self.publisher.is_some()
        {
            self.publisher_event(PublisherInput::Update(update));
        }
    }

    pub(crate) fn put(&mut self, cell: Cell, endpoint: Endpoint) {
        let update = self.source.put(self.now, cell, endpoint);
        self.accept(update);
    }

    pub(crate) fn remove(&mut self, cell: Cell, instance: u32) {
        let update = self.source.remove(self.now, cell, instance);
        self.accept(update);
    }

    pub(crate) fn policy(&mut self, policy: ProxyPolicy) {
        if policy.version > self.policy.version {
            self.policy = policy;
        }
        if self.publisher.is_some() {
            self.publisher_event(PublisherInput::Policy(policy));
        }
    }

    /// The same rules under a new version.
    pub(crate) fn next_policy(&mut self) {
        let version = self.policy.version + 1;
        self.policy(ProxyPolicy { version, ..self.policy });
    }

    /// Plays one request of a proxy to its end; `answer` says how an attempt at an endpoint goes.
    pub(crate) fn request(
        &mut self,
        at: u16,
        cell: Cell,
        answer: impl Fn(&Endpoint) -> AttemptResult,
    ) -> Outcome {
        self.request_by(
            at,
            cell,
            true,
            AgeRule { max: Span::from_s(1_800), action: AgeAction::Degrade },
            answer,
        )
    }

    pub(crate) fn request_by(
        &mut self,
        at: u16,
        cell: Cell,
        idempotent: bool,
        age: AgeRule,
        answer: impl Fn(&Endpoint) -> AttemptResult,
    ) -> Outcome {
        let mut out = Out::new();
        let (now, mut uniform) = (self.now, self.uniform());
        let plan = Plan { regions: &[cell.region], age };
        let node = &mut self.proxies[usize::from(at)];
        let mut request = Request::new(cell.service, idempotent);
        let mut step = node.begin(now, &mut request, &plan, uniform, &mut out);
        let outcome = loop {
            match step {
                Step::Done(outcome) => break outcome,
                Step::Try(attempt) => {
                    let known = node.view(cell).unwrap().set().get(attempt.endpoint.instance);
                    assert_eq!(known, Some(&attempt.endpoint), "only what the set has");
                    let seen = self.seen[&(at, cell, attempt.endpoint.instance)];
                    assert_eq!(seen, attempt.endpoint.generation, "I7: an older generation");
                    uniform = oncall_core::streams::scramble(u64::from(uniform)) as u32;
                    let result = answer(&attempt.endpoint);
                    step = node.finish(now, &mut request, result, &plan, uniform, &mut out);
                }
            }
        };
        assert!(request.attempts() <= 1 + node.dials().retries_max, "I12");
        self.proxy_out(at, out);
        self.check(at);
        outcome
    }
}
