//! The data plane message by message, every request sampled: what the full-scale world is held against.
//!
//! The control plane does not depend on the data plane (while a course is recorded nobody listens to
//! complaints), so one run of a [`World`] gives the course that both follow: what reached the publishers and
//! when, which processes fail, what the catalog holds READY. Calls go where the world sends them at its end:
//! failover and capacity have to be off. Here real publishers, relays and proxies carry it, with real
//! endpoint sets, real ejection, real budgets, and one request after the other.

use crate::ledger::Counts;
use crate::noise::{Draw, Noise, pair};
use crate::queue::{Micros, Queue, S};
use crate::topology::REGIONS;
use crate::topology::cell_of;
use crate::world::{
    HOP_PROXY, HOP_RELAY, Hop, REGION_US, RELAY_DELIVERIES_PER_S, Trace, World, cell_name,
};
use oncall_core::math;
use oncall_discovery::dials::Dials;
use oncall_discovery::distrib::{
    CellStore, Down, OpenToAll, ProxyPolicy, Publisher, PublisherInput, PublisherTimer, Relay,
    RelayConfig, RelayInput, RelayTimer, Retention, ServerConfig, ServiceLane, Windows, Wire,
};
use oncall_discovery::mutants::Mutants;
use oncall_discovery::proxy::{
    AgeAction, AgeRule, AttemptResult, Outcome, Plan, Proxy, ProxyConfig, ProxyDials, ProxyInput,
    ProxyTimer, Request, Step,
};
use oncall_discovery::types::{
    Incarnation, Out, Peer, Place, ProxyId, RegionId, RelayId, ServiceId, ShardId, Span, Time,
    ZoneId,
};
use std::collections::BTreeMap;

/// What a run of the message-level world showed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sampled {
    /// Requests, counted.
    pub counts: Counts,
    /// Seconds from the start of each clock to the last request, summed up.
    pub last_s: f64,
    /// Clocks.
    pub clocks: u64,
    /// Requests to an instance that was never READY.
    pub to_starting: u64,
}

#[derive(Debug, Clone)]
enum Event {
    /// The next entry of the course.
    Trace(usize),
    Message {
        from: Peer,
        to: Peer,
        wire: Box<Wire>,
    },
    Publisher(usize, PublisherTimer),
    Relay(usize, RelayTimer),
    Proxy(usize),
    Call(usize),
    Confirm,
}

/// A subscription with traffic.
#[derive(Debug, Clone, Copy)]
struct Caller {
    proxy: usize,
    service: ServiceId,
    region: RegionId,
    lambda: f64,
    calls: u64,
}

/// Publishers, relays, proxies, and the requests between.
pub struct Messages {
    queue: Queue<Event>,
    noise: Noise,
    shards: Vec<u8>,
    shard_count: usize,
    publishers: Vec<Publisher>,
    relays: Vec<Relay>,
    per_region: usize,
    lanes: Vec<ServiceLane>,
    proxies: Vec<Proxy>,
    places: Vec<Place>,
    callers: Vec<Caller>,
    fifo: BTreeMap<(Peer, Peer), Micros>,
    failing: Vec<bool>,
    /// Share of the attempts that a dependency fails, by cell.
    soft: Vec<f64>,
    stale: Vec<bool>,
    ever_ready: Vec<bool>,
    clocks: Vec<Option<(Micros, Option<Micros>)>>,
    sampled: Sampled,
    sent: u64,
}

const PROOF: u64 = 1;

impl Messages {
    /// All components as they start, with the sets of a world at time zero.
    pub fn new(world: &World, bases: Vec<CellStore>, noise: Noise) -> Self {
        let (topology, dials) = (world.topology(), *world.dials());
        let shard_count = usize::from(topology.shape.shards);
        let shards = world.shards().to_vec();
        let per_region =
            ((dials.relays_per_region * topology.shape.relay_share).round() as usize).max(2);
        let instances = world.instances().len();
        let mut ever_ready = vec![false; instances];
        ever_ready[..topology.instances.len()].fill(true);
        let mut messages = Self {
            queue: Queue::new(),
            noise,
            shard_count,
            publishers: publishers(bases, &shards, shard_count, &dials),
            relays: Vec::new(),
            per_region,
            lanes: vec![ServiceLane::new(true); REGIONS * per_region],
            proxies: Vec::new(),
            places: Vec::new(),
            callers: Vec::new(),
            fifo: BTreeMap::new(),
            failing: vec![false; instances],
            soft: vec![0.0; topology.cells()],
            stale: vec![false; instances],
            ever_ready,
            clocks: vec![None; instances],
            sampled: Sampled::default(),
            sent: 0,
            shards,
        };
        for _ in 0..REGIONS * per_region {
            let config = RelayConfig {
                proof: PROOF,
                upstream_proof: PROOF,
                shards: messages.shards.iter().map(|&shard| ShardId(shard)).collect(),
                parent: None,
                back_off: ProxyDials::from(&dials).back_off,
                server: server(&dials),
            };
            messages.relays.push(Relay::new(Time::ZERO, config));
        }
        messages.add_proxies(world, &dials);
        messages
    }

    fn add_proxies(&mut self, world: &World, dials: &Dials) {
        let topology = world.topology();
        let mut cells = vec![Vec::new(); topology.nodes.len()];
        for cell in 0..topology.cells() {
            let name = cell_name(cell as u32);
            for sub in world.plane().subscriptions(cell) {
                cells[usize::from(sub.proxy)].push(name);
                if sub.lambda > 0 {
                    self.callers.push(Caller {
                        proxy: usize::from(sub.proxy),
                        service: name.service,
                        region: name.region,
                        lambda: f64::from(sub.lambda) / 1e6,
                        calls: 0,
                    });
                }
            }
        }
        for (id, node) in topology.nodes.iter().enumerate() {
            let region = RegionId(node.region);
            let relays = (0..self.per_region as u16).map(|r| Peer::Relay(region, RelayId(r)));
            let place = Place { region, zone: ZoneId(node.zone) };
            let config = ProxyConfig {
                id: ProxyId(id as u16),
                place,
                relays: relays.collect(),
                home: (id / REGIONS % self.per_region) as u16,
                proof: PROOF,
                control_plane: PROOF,
                mutants: Mutants::default(),
            };
            let policy = ProxyPolicy { version: 1, dials: ProxyDials::from(dials) };
            self.proxies.push(Proxy::new(config, &cells[id], policy));
            self.places.push(place);
        }
    }

    /// Follows the course until `end`; requests begin at `from`, when all streams stand.
    pub fn run(mut self, course: &[(Micros, Trace)], from: Micros, end: Micros) -> Sampled {
        for id in 0..self.proxies.len() {
            let mut out = Out::new();
            let uniform = self.uniform();
            self.proxies[id].on_event(Time::ZERO, ProxyInput::Start, uniform, &mut out);
            self.send_of_proxy(id, out);
        }
        if let Some((at, _)) = course.first() {
            self.queue.push(*at, Event::Trace(0));
        }
        self.queue.push(0, Event::Confirm);
        for caller in 0..self.callers.len() {
            self.plan_call(caller, from);
        }
        while let Some((_, event)) = self.queue.pop_until(end) {
            self.play(event, course);
        }
        for id in 0..self.clocks.len() {
            self.stop_clock(id);
        }
        self.sampled
    }

    /// The instance is back, or the run is over: what came last counts.
    fn stop_clock(&mut self, id: usize) {
        if let Some((start, last)) = self.clocks[id].take() {
            let last = last.unwrap_or(start).max(start);
            self.sampled.last_s += (last - start) as f64 / S as f64;
            self.sampled.clocks += 1;
        }
    }

    fn uniform(&mut self) -> u32 {
        self.sent += 1;
        (self.noise.word(Draw::Backoff, 0, self.sent) >> 32) as u32
    }

    fn play(&mut self, event: Event, course: &[(Micros, Trace)]) {
        let now = Time(self.queue.now());
        match event {
            Event::Trace(at) => {
                if let Some((next, _)) = course.get(at + 1) {
                    self.queue.push(*next, Event::Trace(at + 1));
                }
                self.follow(now, &course[at].1);
            }
            Event::Confirm => {
                for at in 0..self.publishers.len() {
                    self.give_publisher(at, PublisherInput::Confirmed(now));
                }
                self.queue.push(now.0 + S, Event::Confirm);
            }
            Event::Publisher(at, timer) => self.give_publisher(at, PublisherInput::Timer(timer)),
            Event::Relay(at, timer) => self.give_relay(at, RelayInput::Timer(timer)),
            Event::Proxy(at) => self.give_proxy(at, ProxyInput::Timer(ProxyTimer)),
            Event::Call(caller) => {
                self.call(caller);
                self.plan_call(caller, now.0);
            }
            Event::Message { from, to, wire } => self.deliver(from, to, *wire),
        }
    }

    fn follow(&mut self, now: Time, step: &Trace) {
        match *step {
            Trace::Update(update) => {
                let shard = usize::from(self.shards[update.cell.service.index()]);
                let at = usize::from(update.cell.region.0) * self.shard_count + shard;
                self.give_publisher(at, PublisherInput::Update(update));
            }
            Trace::Failing(id, failing) => self.failing[id as usize] = failing,
            Trace::Soft(cell, share) => self.soft[cell as usize] = share,
            Trace::Ready(id) => {
                self.stale[id as usize] = false;
                self.ever_ready[id as usize] = true;
                self.stop_clock(id as usize);
            }
            Trace::NotReady(id, start) => {
                self.stale[id as usize] = true;
                let last = self.clocks[id as usize].and_then(|(_, last)| last);
                self.clocks[id as usize] = Some((start, last));
            }
            Trace::Died(id) => self.clocks[id as usize] = Some((now.0, None)),
        }
    }

    fn deliver(&mut self, from: Peer, to: Peer, wire: Wire) {
        match (to, wire) {
            (Peer::Catalog(region, shard), Wire::Up(up)) => {
                let at = usize::from(region.0) * self.shard_count + usize::from(shard.0);
                self.give_publisher(at, PublisherInput::Message(from, up));
            }
            (Peer::Relay(region, relay), wire) => {
                let at = usize::from(region.0) * self.per_region + usize::from(relay.0);
                match wire {
                    Wire::Up(up) => self.give_relay(at, RelayInput::Message(from, up)),
                    Wire::Down(down) => self.give_relay(at, RelayInput::Upstream(from, down)),
                    // Reports are evidence for health, which is off here.
                    Wire::Report(_) => {}
                }
            }
            (Peer::Proxy(id), Wire::Down(down)) => {
                self.give_proxy(usize::from(id.0), ProxyInput::Message(from, down));
            }
            _ => {}
        }
    }

    fn give_publisher(&mut self, at: usize, input: PublisherInput) {
        let now = Time(self.queue.now());
        let mut out = Out::new();
        let told = self.publishers[at].on_event(now, input, &OpenToAll, &mut out);
        debug_assert!(told.is_ok(), "the course leaves no update out");
        let (region, shard) = (at / self.shard_count, at % self.shard_count);
        let peer = Peer::Catalog(RegionId(region as u8), ShardId(shard as u8));
        for timer in out.timers {
            self.queue.push(timer.at.0, Event::Publisher(at, timer.key));
        }
        for message in out.sends {
            let far = matches!(message.to, Peer::Relay(there, _) if usize::from(there.0) != region);
            let extra = if far { REGION_US as Micros } else { 0 };
            self.send(peer, message.to, message.body, (HOP_RELAY, extra), now.0);
        }
    }

    fn give_relay(&mut self, at: usize, input: RelayInput) {
        let now = Time(self.queue.now());
        let mut out = Out::new();
        let uniform = self.uniform();
        self.relays[at].on_event(now, input, uniform, &OpenToAll, &mut out);
        let (region, relay) = (at / self.per_region, at % self.per_region);
        let peer = Peer::Relay(RegionId(region as u8), RelayId(relay as u16));
        for timer in out.timers {
            self.queue.push(timer.at.0, Event::Relay(at, timer.key));
        }
        for message in out.sends {
            let mut left = now.0;
            if let Wire::Down(Down::Delta(delta)) = &message.body {
                let changes = delta.changes.len() as f64;
                let work = 1e6 / RELAY_DELIVERIES_PER_S * (1.0 + 0.05 * (changes - 1.0).max(0.0));
                left = self.lanes[at].enter(now, Span(work as u64), delta.urgent).0;
            }
            let up = matches!(message.to, Peer::Catalog(..));
            let hop = if up { HOP_RELAY } else { HOP_PROXY };
            self.send(peer, message.to, message.body, (hop, 0), left);
        }
    }

    fn give_proxy(&mut self, id: usize, input: ProxyInput) {
        let now = Time(self.queue.now());
        let mut out = Out::new();
        let uniform = self.uniform();
        self.proxies[id].on_event(now, input, uniform, &mut out);
        self.send_of_proxy(id, out);
    }

    fn send_of_proxy(&mut self, id: usize, out: Out<Wire, ProxyTimer>) {
        let now = self.queue.now();
        for timer in out.timers {
            self.queue.push(timer.at.0, Event::Proxy(id));
        }
        for message in out.sends {
            let peer = Peer::Proxy(ProxyId(id as u16));
            self.send(peer, message.to, message.body, (HOP_PROXY, 0), now);
        }
    }

    /// Streams keep their order: nothing overtakes.
    fn send(
        &mut self,
        from: Peer,
        to: Peer,
        wire: Wire,
        (hop, extra): (Hop, Micros),
        left: Micros,
    ) {
        self.sent += 1;
        let tail = -math::ln(1.0 - self.noise.uniform(Draw::HopProxy, 1, self.sent));
        let delay = (hop.base + hop.tail * tail) as Micros + extra;
        let last = self.fifo.entry((from, to)).or_default();
        *last = (left + delay).max(*last);
        self.queue.push(*last, Event::Message { from, to, wire: Box::new(wire) });
    }

    fn plan_call(&mut self, at: usize, now: Micros) {
        let caller = &mut self.callers[at];
        caller.calls += 1;
        let gap = self.noise.exponential(Draw::Request, at as u64, caller.calls) / caller.lambda;
        self.queue.push(now + (gap * S as f64) as Micros, Event::Call(at));
    }

    /// Whether a dependency fails one attempt.
    fn misses(&self, caller: &Caller, (at, attempt): (usize, u32)) -> bool {
        let share = self.soft[cell_of(caller.service.0, caller.region.0) as usize];
        let key = pair(at as u32, attempt) | 1 << 63;
        share > 0.0 && self.noise.uniform(Draw::Pick, key, caller.calls) < share
    }

    /// One request, from its first attempt to its end.
    fn call(&mut self, at: usize) {
        let (now, caller) = (Time(self.queue.now()), self.callers[at]);
        let key = |attempt: u32| pair(at as u32, attempt);
        let draw = |noise: Noise, attempt: u32| {
            (noise.word(Draw::Pick, key(attempt), caller.calls) >> 32) as u32
        };
        let regions = [caller.region];
        let age = AgeRule { max: Span::from_s(3_600), action: AgeAction::default() };
        let plan = Plan { regions: &regions, age };
        let mut request = Request::new(caller.service, true);
        let mut out = Out::new();
        let proxy = &mut self.proxies[caller.proxy];
        let first = draw(self.noise, 0);
        let mut step = proxy.begin(now, &mut request, &plan, first, &mut out);
        self.sampled.counts.requests += 1.0;
        let mut attempts = 0;
        let outcome = loop {
            match step {
                Step::Done(outcome) => break outcome,
                Step::Try(attempt) => {
                    let id = attempt.endpoint.instance.index();
                    attempts += 1;
                    self.sampled.counts.retries += if attempts > 1 { 1.0 } else { 0.0 };
                    self.sampled.counts.stale += if self.stale[id] { 1.0 } else { 0.0 };
                    self.sampled.to_starting += u64::from(!self.ever_ready[id]);
                    if let Some((_, last)) = &mut self.clocks[id] {
                        *last = Some(now.0);
                    }
                    let result = if self.failing[id] {
                        self.sampled.counts.failures += 1.0;
                        AttemptResult::ConnectRefused
                    } else if self.misses(&caller, (at, attempts)) {
                        self.sampled.counts.soft += 1.0;
                        AttemptResult::FailedAfterSend
                    } else {
                        AttemptResult::Served
                    };
                    let next = draw(self.noise, attempts);
                    let proxy = &mut self.proxies[caller.proxy];
                    step = proxy.finish(now, &mut request, result, &plan, next, &mut out);
                }
            }
        };
        match outcome {
            Outcome::Failed { .. } => self.sampled.counts.failed += 1.0,
            Outcome::NoBackend { .. } => self.sampled.counts.no_backend += 1.0,
            _ => {}
        }
        self.send_of_proxy(caller.proxy, out);
    }
}

/// Budgets are wide open: the start of the world is not what is compared.
fn server(dials: &Dials) -> ServerConfig {
    ServerConfig {
        proof: PROOF,
        heartbeat: Dials::span_s(dials.head_heartbeat_s),
        retention: Retention {
            age: Dials::span_s(dials.delta_retention_s),
            ..Retention::default()
        },
        connects_per_s: 10_000,
        connects_burst: 10_000,
        snapshot_bytes_per_s: 1_000_000_000,
        snapshot_bytes_burst: 1_000_000_000,
        mutants: Mutants::default(),
    }
}

fn publishers(
    bases: Vec<CellStore>,
    shards: &[u8],
    shard_count: usize,
    dials: &Dials,
) -> Vec<Publisher> {
    let mut by_group: Vec<Vec<CellStore>> = vec![Vec::new(); REGIONS * shard_count];
    for store in bases {
        let cell = store.cell();
        let shard = usize::from(shards[cell.service.index()]);
        by_group[usize::from(cell.region.0) * shard_count + shard].push(store);
    }
    let windows = Windows {
        removals: Dials::span_ms(dials.coalesce_removals_ms),
        additions: Dials::span_ms(dials.coalesce_additions_ms),
    };
    let build = |stores: Vec<CellStore>| {
        let (now, life) = (Time::ZERO, Incarnation(1));
        Publisher::rebuild(now, stores, life, windows, server(dials), [])
            .unwrap_or_else(|_| Publisher::new(now, &[], life, windows, server(dials)))
    };
    by_group.into_iter().map(build).collect()
}

/// The same figures of a full-scale world.
pub fn expected(world: &World) -> Sampled {
    let lines = &world.clocks().timelines;
    Sampled {
        counts: world.totals().traffic,
        last_s: lines.iter().filter_map(crate::world::Timeline::seconds).sum(),
        clocks: lines.len() as u64,
        to_starting: world.totals().starting_in_view,
    }
}
