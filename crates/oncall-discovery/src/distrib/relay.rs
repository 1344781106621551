//! A relay: a reader of publishers and a server of proxies (R85).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::{Delta, Down, Head, ProxyPolicy, Snapshot, Up, Watch, WatchPolicy, Wire};
use super::set::EndpointSet;
use super::{CellStore, Cursor, DeltaVerdict, Server, ServerConfig, ServerTimer, SnapshotVerdict};
use crate::proxy::{BackOff, CellSub, Link, LinkState, PassiveReport, SubEvent, Tend};
use crate::types::{Cell, Metric, Out, Peer, ShardId, Span, Time};

/// Timers of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum RelayTimer {
    /// Look after the stream to a publisher: connect again, notice silence, repeat repairs.
    Upstream(Peer),
    /// Of its server.
    Server(ServerTimer),
}

impl From<ServerTimer> for RelayTimer {
    fn from(timer: ServerTimer) -> Self {
        Self::Server(timer)
    }
}

/// What happens to a relay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RelayInput {
    /// A message from a publisher.
    Upstream(Peer, Down),
    /// The stream to a publisher has broken.
    UpstreamLost(Peer),
    /// A reader's message.
    Message(Peer, Up),
    /// A reader's stream has ended.
    Closed(Peer),
    /// What a proxy has noticed; handed on to the catalog of the cell.
    Report(PassiveReport),
    /// A timer.
    Timer(RelayTimer),
}

/// What a relay is told at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayConfig {
    /// Proof of who it is, for publishers. Opaque here.
    pub proof: u64,
    /// Proof of who publishers are; a stream with another one is refused.
    pub upstream_proof: u64,
    /// Consistency group of each service, as the directory has them.
    pub shards: Vec<ShardId>,
    /// A relay above this one, instead of the publishers: a further level of the hierarchy.
    pub parent: Option<Peer>,
    /// Times between attempts to connect.
    pub back_off: BackOff,
    /// Serving half.
    pub server: ServerConfig,
}

/// Keeps the cells that its proxies follow, and serves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    config: RelayConfig,
    upstreams: BTreeMap<Peer, Link>,
    subs: BTreeMap<Cell, CellSub>,
    policy: u32,
    server: Server,
}

impl Relay {
    /// A relay that knows nothing yet; it asks for what its readers ask for.
    pub fn new(now: Time, config: RelayConfig) -> Self {
        let server = Server::new(now, config.server);
        Self { config, upstreams: BTreeMap::new(), subs: BTreeMap::new(), policy: 0, server }
    }

    /// The serving half.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Where it stands with a cell.
    pub fn sub(&self, cell: Cell) -> Option<&CellSub> {
        self.subs.get(&cell)
    }

    /// Changes dials from now on.
    pub fn configure(&mut self, now: Time, server: ServerConfig) {
        self.config.server = server;
        self.server.configure(now, server);
    }

    /// Loses all streams but keeps what it knows: a restart that kept its delta log. Then [`Relay::start`].
    pub fn restart_warm(&mut self) {
        self.server.close_all();
        self.upstreams.clear();
    }

    /// Opens the streams that it needs; after a restart, or at the start if it has cells already.
    pub fn start(&mut self, now: Time, out: &mut Out<Wire, RelayTimer>) {
        let mut sources: Vec<Peer> =
            self.subs.keys().filter_map(|cell| self.source(*cell)).collect();
        sources.sort_unstable();
        sources.dedup();
        for source in sources {
            self.connect(now, source, out);
        }
    }

    /// Whose cell this is: the publisher of its region and consistency group, or the relay above.
    fn source(&self, cell: Cell) -> Option<Peer> {
        if self.config.parent.is_some() {
            return self.config.parent;
        }
        let shard = self.config.shards.get(cell.service.index())?;
        Some(Peer::Catalog(cell.region, *shard))
    }

    /// Handles an input. `uniform` is a fresh uniform 32-bit number, for the jitter.
    pub fn on_event(
        &mut self,
        now: Time,
        input: RelayInput,
        uniform: u32,
        rules: &impl WatchPolicy,
        out: &mut Out<Wire, RelayTimer>,
    ) {
        match input {
            RelayInput::Message(peer, message) => {
                let cells = cells_of(&message);
                self.server.on_message(now, peer, message, rules, out);
                for cell in cells {
                    if rules.may_watch(peer, cell) {
                        self.follow(now, cell, out);
                    }
                }
            }
            RelayInput::Closed(peer) => self.server.close(peer),
            RelayInput::Upstream(peer, message) => {
                self.on_upstream(now, peer, message, uniform, out);
            }
            RelayInput::UpstreamLost(peer) => self.lost(now, peer, Span::ZERO, uniform, out),
            RelayInput::Report(report) => {
                if let Some(source) = self.source(report.cell) {
                    out.send(source, Wire::Report(report));
                }
            }
            RelayInput::Timer(RelayTimer::Server(timer)) => self.server.on_timer(now, timer, out),
            RelayInput::Timer(RelayTimer::Upstream(peer)) => self.tend(now, peer, uniform, out),
        }
    }

    /// A reader wants a cell: from now on this relay wants it too.
    fn follow(&mut self, now: Time, cell: Cell, out: &mut Out<Wire, RelayTimer>) {
        let Some(source) = self.source(cell) else { return };
        if self.subs.contains_key(&cell) {
            return;
        }
        self.subs.insert(cell, CellSub::default());
        match self.upstreams.get(&source) {
            None => self.connect(now, source, out),
            Some(upstream) if upstream.state() == LinkState::Up => {
                let watch = Watch { cell, cursor: None, full: false };
                out.send(source, Up::Watch(watch).into());
            }
            // The hello to come names it.
            Some(_) => {}
        }
    }

    fn cells_from(&self, source: Peer) -> Vec<Cell> {
        self.subs.keys().copied().filter(|cell| self.source(*cell) == Some(source)).collect()
    }

    fn connect(&mut self, now: Time, source: Peer, out: &mut Out<Wire, RelayTimer>) {
        let mut watches = Vec::new();
        for cell in self.cells_from(source) {
            if let Some(sub) = self.subs.get_mut(&cell) {
                sub.reconnected();
                watches.push(sub.watch(cell));
            }
        }
        let upstream = self.upstreams.entry(source).or_default();
        let session = upstream.connect(now, self.config.server.heartbeat);
        out.timer(upstream.due(), RelayTimer::Upstream(source));
        let (proof, policy) = (self.config.proof, self.policy);
        out.send(source, Up::Hello { session, proof, watches, policy }.into());
    }

    fn lost(
        &mut self,
        now: Time,
        source: Peer,
        not_before: Span,
        uniform: u32,
        out: &mut Out<Wire, RelayTimer>,
    ) {
        let Some(upstream) = self.upstreams.get_mut(&source) else { return };
        if upstream.state() == LinkState::Down {
            return;
        }
        upstream.lost(now, self.config.back_off, not_before, 1, uniform);
        out.timer(upstream.due(), RelayTimer::Upstream(source));
    }

    /// Looks after a stream: connects if it is down, gives up on a silent one, repeats open repairs.
    fn tend(&mut self, now: Time, source: Peer, uniform: u32, out: &mut Out<Wire, RelayTimer>) {
        let Some(upstream) = self.upstreams.get_mut(&source).filter(|up| now >= up.due()) else {
            return;
        };
        match upstream.tend(now, self.config.server.heartbeat) {
            Tend::Connect => self.connect(now, source, out),
            Tend::NoAnswer => self.lost(now, source, Span::ZERO, uniform, out),
            Tend::Silent => {
                out.count(Metric::SilentStreams);
                out.send(source, Up::Bye.into());
                self.lost(now, source, Span::ZERO, uniform, out);
            }
            Tend::Nothing => out.timer(upstream.due(), RelayTimer::Upstream(source)),
        }
    }

    /// Repeats the repairs of a publisher's cells that are still open, once in a heartbeat.
    fn repeat_repairs(&mut self, source: Peer, out: &mut Out<Wire, RelayTimer>) {
        for cell in self.cells_from(source) {
            if self.subs[&cell].needs_repair() {
                out.send(source, Up::Watch(self.subs[&cell].watch(cell)).into());
            }
        }
    }

    fn on_upstream(
        &mut self,
        now: Time,
        peer: Peer,
        message: Down,
        uniform: u32,
        out: &mut Out<Wire, RelayTimer>,
    ) {
        let Some(upstream) = self.upstreams.get_mut(&peer) else { return };
        match message {
            Down::Welcome { session, proof } => {
                if proof != self.config.upstream_proof {
                    out.count(Metric::AuthRefused);
                    self.lost(now, peer, Span::ZERO, uniform, out);
                } else if upstream.welcomed(now, session, self.config.server.heartbeat) {
                    out.timer(upstream.due(), RelayTimer::Upstream(peer));
                    // Cells that proxies asked for after the hello.
                    self.repeat_repairs(peer, out);
                }
                return;
            }
            Down::Busy { session, retry_after } if session == upstream.session() => {
                return self.lost(now, peer, retry_after, uniform, out);
            }
            Down::Denied { session } if session == upstream.session() => {
                out.count(Metric::AuthRefused);
                return self.lost(now, peer, Span::ZERO, uniform, out);
            }
            _ if upstream.state() != LinkState::Up => return,
            _ => {
                upstream.heard(now);
                upstream.proved();
            }
        }
        match message {
            Down::Delta(delta) => self.on_delta(now, peer, &delta, out),
            Down::Snapshot(snapshot) => self.on_snapshot(now, peer, snapshot, out),
            Down::Resumed(head) | Down::ServerBehind(head) => self.on_head(now, peer, head, out),
            Down::Heartbeat { heads, policy } => {
                if policy > self.policy {
                    out.send(peer, Up::PolicyMissed { have: self.policy }.into());
                }
                for head in heads {
                    self.on_head(now, peer, head, out);
                }
                self.repeat_repairs(peer, out);
            }
            Down::Policy(policy) => self.on_policy(policy, out),
            Down::Welcome { .. }
            | Down::Busy { .. }
            | Down::Denied { .. }
            | Down::WatchDenied { .. }
            | Down::NotReady { .. } => {}
        }
    }

    fn on_policy(&mut self, policy: ProxyPolicy, out: &mut Out<Wire, RelayTimer>) {
        if policy.version > self.policy {
            self.policy = policy.version;
            self.server.set_policy(policy, out);
        }
    }

    fn on_delta(&mut self, now: Time, peer: Peer, delta: &Delta, out: &mut Out<Wire, RelayTimer>) {
        let (cell, mutants) = (delta.cell, self.config.server.mutants);
        let Some(sub) = self.subs.get_mut(&cell) else { return };
        let store = self.server.store_mut(cell);
        let verdict = store.map_or(DeltaVerdict::Gap, |store| store.apply(now, delta));
        let intact = verdict != DeltaVerdict::Corrupt;
        let event = sub.on_delta(delta.step, intact, delta.as_of, mutants);
        self.settle(now, peer, cell, event, out);
    }

    fn on_snapshot(
        &mut self,
        now: Time,
        peer: Peer,
        snapshot: Snapshot,
        out: &mut Out<Wire, RelayTimer>,
    ) {
        let (cell, head, as_of) = (snapshot.cell, snapshot.head, snapshot.as_of);
        let mutants = self.config.server.mutants;
        let own = self.server.store(cell).filter(|store| store.head() == head.cursor);
        let intact = EndpointSet::intact(&snapshot.endpoints, head.count, snapshot.checksum)
            && own.is_none_or(|store| store.set().checksum() == snapshot.checksum);
        let Some(sub) = self.subs.get_mut(&cell) else { return };
        let event = sub.on_snapshot(head, intact, as_of, mutants);
        if matches!(event, SubEvent::Applied { .. }) {
            if let Some(store) = self.server.store_mut(cell) {
                let verdict = store.replace(now, snapshot);
                debug_assert_ne!(verdict, SnapshotVerdict::Corrupt);
            } else {
                let store = CellStore::at(cell, head.cursor, snapshot.endpoints);
                self.server.install(cell, store);
            }
        }
        self.settle(now, peer, cell, event, out);
    }

    fn on_head(&mut self, now: Time, peer: Peer, head: Head, out: &mut Out<Wire, RelayTimer>) {
        let Some(sub) = self.subs.get_mut(&head.cell) else { return };
        let event = sub.on_head(head.cursor, head.as_of);
        self.settle(now, peer, head.cell, event, out);
    }

    /// Acts on what a message meant for a cell: passes on, or asks for a repair.
    fn settle(
        &mut self,
        now: Time,
        peer: Peer,
        cell: Cell,
        event: SubEvent,
        out: &mut Out<Wire, RelayTimer>,
    ) {
        event.count(out);
        let Some(sub) = self.subs.get(&cell) else { return };
        match event {
            SubEvent::Applied { .. } => {
                self.server.confirm(cell, sub.confirmed());
                self.server.fan_out(now, cell, out);
            }
            SubEvent::Confirmed => self.server.confirm(cell, sub.confirmed()),
            // A failed check is repeated by the timer only: a reject loop would cost the publisher dearly.
            SubEvent::Repair(_) => out.send(peer, Up::Watch(sub.watch(cell)).into()),
            SubEvent::Rejected { .. } | SubEvent::Refused(_) | SubEvent::Nothing => {}
        }
    }

    /// Its region-independent view of a cell's place, for whoever checks invariants.
    pub fn cursor(&self, cell: Cell) -> Option<Cursor> {
        self.server.store(cell).map(CellStore::head)
    }
}

fn cells_of(message: &Up) -> Vec<Cell> {
    match message {
        Up::Hello { watches, .. } => watches.iter().map(|watch| watch.cell).collect(),
        Up::Watch(watch) => vec![watch.cell],
        Up::PolicyMissed { .. } | Up::Bye => Vec::new(),
    }
}
