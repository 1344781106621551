//! The serving half of publishers and relays: streams, answers, fan-out, snapshots within a budget, heartbeats.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::message::{
    Delta, Down, Head, ProxyPolicy, Snapshot, Up, Watch, WatchPolicy, Wire, snapshot_bytes,
};
use super::{Answer, Bucket, CellStore, Cursor, Retention, SnapshotCause, answer};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Cell, Metric, Out, Peer, Revision, Span, Time};

/// What a server is told at the start; budgets and times are dials and can be changed later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerConfig {
    /// Proof that this is the control plane, for the readers (R125). Opaque here.
    pub proof: u64,
    /// Time between two heartbeats on a stream (dial 19).
    pub heartbeat: Span,
    /// How long deltas are kept (dial 13).
    pub retention: Retention,
    /// New streams a second (dial 15, this server's part of the region's).
    pub connects_per_s: u64,
    /// New streams at once.
    pub connects_burst: u64,
    /// Bytes of snapshots a second (dial 14, this server's part of the region's).
    pub snapshot_bytes_per_s: u64,
    /// Bytes of snapshots at once.
    pub snapshot_bytes_burst: u64,
    /// Safeguards taken out; none outside tests.
    pub mutants: Mutants,
}

impl Default for ServerConfig {
    /// The default dials of a region, divided by its 16 relays where they are per region.
    fn default() -> Self {
        Self {
            proof: 0,
            heartbeat: Span::from_s(10),
            retention: Retention::default(),
            connects_per_s: 13,
            connects_burst: 13,
            snapshot_bytes_per_s: 12_500_000,
            snapshot_bytes_burst: 1_250_000,
            mutants: Mutants::default(),
        }
    }
}

/// Timers of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ServerTimer {
    /// A stream's heartbeat is due.
    Heartbeat {
        /// Whose.
        peer: Peer,
        /// Of which stream.
        session: u32,
    },
    /// The snapshot budget may have room again.
    Snapshots,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stream {
    session: u32,
    cells: Vec<Cell>,
}

/// How far a stream has been served with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Watcher {
    peer: Peer,
    sent: Option<Cursor>,
    /// Waits for a snapshot; gets nothing else until then.
    queued: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Served {
    store: Option<CellStore>,
    as_of: Time,
    watchers: Vec<Watcher>,
}

impl Served {
    fn watcher(&mut self, peer: Peer) -> Option<&mut Watcher> {
        let at = self.watchers.binary_search_by_key(&peer, |watcher| watcher.peer).ok()?;
        Some(&mut self.watchers[at])
    }
}

/// Streams to readers over a set of cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    config: ServerConfig,
    cells: BTreeMap<Cell, Served>,
    streams: BTreeMap<Peer, Stream>,
    admission: Bucket,
    budget: Bucket,
    queue: VecDeque<(Peer, Cell)>,
    wake_at: Time,
    as_of: Time,
    trimmed: Time,
    policy: Option<ProxyPolicy>,
}

impl Server {
    /// A server without cells and streams.
    pub fn new(now: Time, config: ServerConfig) -> Self {
        let config = sound(config);
        Self {
            admission: Bucket::empty(now, config.connects_per_s, config.connects_burst),
            budget: Bucket::empty(now, config.snapshot_bytes_per_s, config.snapshot_bytes_burst),
            config,
            cells: BTreeMap::new(),
            streams: BTreeMap::new(),
            queue: VecDeque::new(),
            wake_at: Time::NEVER,
            as_of: Time::ZERO,
            trimmed: now,
            policy: None,
        }
    }

    /// Settings in force.
    pub const fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// Changes the settings from now on.
    pub fn configure(&mut self, now: Time, config: ServerConfig) {
        let config = sound(config);
        self.admission.set(now, config.connects_per_s, config.connects_burst);
        self.budget.set(now, config.snapshot_bytes_per_s, config.snapshot_bytes_burst);
        self.config = config;
    }

    /// What is known of a cell.
    pub fn store(&self, cell: Cell) -> Option<&CellStore> {
        self.cells.get(&cell)?.store.as_ref()
    }

    /// What is known of a cell, to advance it; call [`Server::fan_out`] afterwards.
    pub fn store_mut(&mut self, cell: Cell) -> Option<&mut CellStore> {
        self.cells.get_mut(&cell)?.store.as_mut()
    }

    /// Begins to serve a cell; its watchers get their answers with the next [`Server::fan_out`].
    pub fn install(&mut self, cell: Cell, store: CellStore) {
        self.cells.entry(cell).or_default().store = Some(store);
    }

    /// Cells that somebody follows or that are served, in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.cells.keys().copied()
    }

    /// Open streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Snapshots that wait for the budget.
    pub fn snapshots_waiting(&self) -> usize {
        self.queue.len()
    }

    /// How far back the least covered cell reaches; `None` if no cell keeps an entry.
    pub fn coverage(&self, now: Time) -> Option<Span> {
        let stores = self.cells.values().filter_map(|served| served.store.as_ref());
        stores.filter(|store| store.logged() > 0).map(|store| store.coverage(now)).min()
    }

    /// The source was right about all heads at a time.
    pub fn confirm_all(&mut self, as_of: Time) {
        self.as_of = self.as_of.max(as_of);
    }

    /// The source was right about a cell's head at a time.
    pub fn confirm(&mut self, cell: Cell, as_of: Time) {
        let served = self.cells.entry(cell).or_default();
        served.as_of = served.as_of.max(as_of);
    }

    /// Hands a policy to every stream, and to those that come later.
    pub fn set_policy<T>(&mut self, policy: ProxyPolicy, out: &mut Out<Wire, T>) {
        if self.policy.is_some_and(|known| known.version >= policy.version) {
            return;
        }
        self.policy = Some(policy);
        for &peer in self.streams.keys() {
            out.send(peer, Down::Policy(policy).into());
        }
    }

    /// The policy in force, if any.
    pub const fn policy(&self) -> Option<ProxyPolicy> {
        self.policy
    }

    /// Handles a reader's message.
    pub fn on_message<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        peer: Peer,
        message: Up,
        rules: &impl WatchPolicy,
        out: &mut Out<Wire, T>,
    ) {
        match message {
            Up::Hello { session, proof, watches, policy } => {
                if !self.open(now, peer, session, rules.may_connect(peer, proof), out) {
                    return;
                }
                self.send_policy(peer, policy, out);
                for watch in watches {
                    self.watch(now, peer, watch, rules, out);
                }
            }
            Up::Watch(watch) if self.streams.contains_key(&peer) => {
                self.watch(now, peer, watch, rules, out);
            }
            Up::PolicyMissed { have } => self.send_policy(peer, have, out),
            // A message of a stream that is closed here: the reader will find out and come back.
            Up::Watch(_) => {}
            Up::Bye => self.close(peer),
        }
    }

    fn send_policy<T>(&self, peer: Peer, have: u32, out: &mut Out<Wire, T>) {
        if let Some(known) = self.policy.filter(|known| known.version > have) {
            out.send(peer, Down::Policy(known).into());
        }
    }

    /// Admission: whether a new stream is open now.
    fn open<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        peer: Peer,
        session: u32,
        allowed: bool,
        out: &mut Out<Wire, T>,
    ) -> bool {
        if self.streams.get(&peer).is_some_and(|stream| stream.session >= session) {
            return false;
        }
        if !allowed {
            out.count(Metric::AuthRefused);
            out.send(peer, Down::Denied { session }.into());
            return false;
        }
        if let Err(at) = self.admission.take(now, 1) {
            out.count(Metric::ConnectsRefused);
            let retry_after = at.since(now);
            out.send(peer, Down::Busy { session, retry_after }.into());
            return false;
        }
        self.close(peer);
        self.streams.insert(peer, Stream { session, cells: Vec::new() });
        out.send(peer, Down::Welcome { session, proof: self.config.proof }.into());
        let timer = ServerTimer::Heartbeat { peer, session };
        out.timer(now.after(self.config.heartbeat), timer.into());
        true
    }

    /// A stream has ended.
    pub fn close(&mut self, peer: Peer) {
        let Some(stream) = self.streams.remove(&peer) else { return };
        for cell in stream.cells {
            if let Some(served) = self.cells.get_mut(&cell) {
                served.watchers.retain(|watcher| watcher.peer != peer);
            }
        }
        self.queue.retain(|(waiting, _)| *waiting != peer);
    }

    /// All streams have ended: a restart of the process, or its network is gone.
    pub fn close_all(&mut self) {
        self.streams.clear();
        self.queue.clear();
        for served in self.cells.values_mut() {
            served.watchers.clear();
        }
    }

    fn watch<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        peer: Peer,
        watch: Watch,
        rules: &impl WatchPolicy,
        out: &mut Out<Wire, T>,
    ) {
        if !rules.may_watch(peer, watch.cell) {
            out.count(Metric::WatchesDenied);
            out.send(peer, Down::WatchDenied { cell: watch.cell }.into());
            return;
        }
        let Some(stream) = self.streams.get_mut(&peer) else { return };
        if let Err(at) = stream.cells.binary_search(&watch.cell) {
            stream.cells.insert(at, watch.cell);
        }
        let served = self.cells.entry(watch.cell).or_default();
        let fresh = Watcher { peer, sent: watch.cursor, queued: false };
        match served.watchers.binary_search_by_key(&peer, |watcher| watcher.peer) {
            // One that waits for a snapshot anyway keeps its place.
            Ok(at) if served.watchers[at].queued => return,
            Ok(at) => served.watchers[at] = fresh,
            Err(at) => served.watchers.insert(at, fresh),
        }
        if served.store.is_none() {
            out.send(peer, Down::NotReady { cell: watch.cell }.into());
            return;
        }
        self.answer_one(peer, watch, out);
        self.drain(now, out);
    }

    /// Answers a reader of a cell that is served.
    fn answer_one<T>(&mut self, peer: Peer, watch: Watch, out: &mut Out<Wire, T>) {
        let base = self.as_of;
        let mutants = self.config.mutants;
        let Some(served) = self.cells.get_mut(&watch.cell) else { return };
        let as_of = base.max(served.as_of);
        let Some(store) = &served.store else { return };
        let head = store.head();
        match answer(head, watch, |rev| store.bridges(rev)) {
            Answer::Resumed => out.send(peer, Down::Resumed(store.told(as_of)).into()),
            Answer::ServerBehind => out.send(peer, Down::ServerBehind(store.told(as_of)).into()),
            Answer::Bridge { from } => {
                let delta = store.bridge(from, as_of, mutants);
                let Some(watcher) = served.watcher(peer) else { return };
                watcher.sent = Some(head);
                if let Some(delta) = delta {
                    send_delta(peer, delta, out);
                }
            }
            Answer::Snapshot(cause) => {
                let Some(watcher) = served.watcher(peer) else { return };
                watcher.queued = true;
                self.queue.push_back((peer, watch.cell));
                count_cause(cause, out);
            }
        }
    }

    /// A cell's head has moved: every watcher gets what it lacks.
    pub fn fan_out<T: From<ServerTimer>>(&mut self, now: Time, cell: Cell, out: &mut Out<Wire, T>) {
        let (base, mutants, retention) = (self.as_of, self.config.mutants, self.config.retention);
        let Some(served) = self.cells.get_mut(&cell) else { return };
        let as_of = base.max(served.as_of);
        let Some(store) = &mut served.store else { return };
        store.trim(now, retention, mutants);
        let head = store.head();
        // Nearly all stand at the same place: the delta is made once for each place in a row.
        let mut made: Option<(Revision, Delta)> = None;
        for watcher in served.watchers.iter_mut().filter(|watcher| !watcher.queued) {
            let watch = Watch { cell, cursor: watcher.sent, full: false };
            match answer(head, watch, |rev| store.bridges(rev)) {
                Answer::Resumed | Answer::ServerBehind => {}
                Answer::Bridge { from } => {
                    if made.as_ref().is_none_or(|(place, _)| *place != from) {
                        made = store.bridge(from, as_of, mutants).map(|delta| (from, delta));
                    }
                    watcher.sent = Some(head);
                    if let Some((_, delta)) = &made {
                        send_delta(watcher.peer, delta.clone(), out);
                    }
                }
                Answer::Snapshot(cause) => {
                    watcher.queued = true;
                    self.queue.push_back((watcher.peer, cell));
                    count_cause(cause, out);
                }
            }
        }
        self.drain(now, out);
    }

    /// Sends the snapshots that the byte budget has room for, first come first served.
    fn drain<T: From<ServerTimer>>(&mut self, now: Time, out: &mut Out<Wire, T>) {
        while let Some(&(peer, cell)) = self.queue.front() {
            let Some(served) = self.cells.get_mut(&cell) else {
                self.queue.pop_front();
                continue;
            };
            let as_of = self.as_of.max(served.as_of);
            let snapshot = served.store.as_ref().map(|store| store.snapshot(as_of));
            let (Some(snapshot), Some(watcher)) = (snapshot, served.watcher(peer)) else {
                self.queue.pop_front();
                continue;
            };
            let bytes = snapshot_bytes(snapshot.head.count);
            if let Err(at) = self.budget.take(now, bytes)
                && !self.config.mutants.has(Mutant::NoSnapshotBudget)
            {
                self.wake(now, at, out);
                return;
            }
            watcher.sent = Some(snapshot.head.cursor);
            watcher.queued = false;
            self.queue.pop_front();
            send_snapshot(peer, snapshot, bytes, out);
        }
    }

    fn wake<T: From<ServerTimer>>(&mut self, now: Time, at: Time, out: &mut Out<Wire, T>) {
        if self.wake_at > now && self.wake_at <= at {
            return;
        }
        out.count(Metric::SnapshotsDeferred);
        self.wake_at = at;
        if at < Time::NEVER {
            out.timer(at, ServerTimer::Snapshots.into());
        }
    }

    /// Handles a timer of this server.
    pub fn on_timer<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        timer: ServerTimer,
        out: &mut Out<Wire, T>,
    ) {
        match timer {
            ServerTimer::Snapshots => {
                self.wake_at = Time::NEVER;
                self.drain(now, out);
            }
            ServerTimer::Heartbeat { peer, session } => self.heartbeat(now, peer, session, out),
        }
    }

    /// Drops from all logs what is no longer kept, also where nothing is published; once in a heartbeat.
    fn trim(&mut self, now: Time) {
        if now.since(self.trimmed) < self.config.heartbeat {
            return;
        }
        self.trimmed = now;
        for store in self.cells.values_mut().filter_map(|served| served.store.as_mut()) {
            store.trim(now, self.config.retention, self.config.mutants);
        }
    }

    fn heartbeat<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        peer: Peer,
        session: u32,
        out: &mut Out<Wire, T>,
    ) {
        self.trim(now);
        let Some(stream) = self.streams.get(&peer).filter(|stream| stream.session == session)
        else {
            return;
        };
        let timer = ServerTimer::Heartbeat { peer, session };
        out.timer(now.after(self.config.heartbeat), timer.into());
        if self.config.mutants.has(Mutant::NoHeartbeat) {
            return;
        }
        let heads: Vec<Head> =
            stream.cells.iter().filter_map(|cell| self.head_for(*cell, peer)).collect();
        out.add(Metric::HeadsSent, heads.len() as u64);
        let policy = self.policy.map_or(0, |known| known.version);
        out.send(peer, Down::Heartbeat { heads, policy }.into());
    }

    /// A cell's head for a reader; nothing while it waits for a snapshot, which it would only ask for again.
    fn head_for(&self, cell: Cell, peer: Peer) -> Option<Head> {
        let served = self.cells.get(&cell)?;
        let at = served.watchers.binary_search_by_key(&peer, |watcher| watcher.peer).ok()?;
        let store = served.store.as_ref().filter(|_| !served.watchers[at].queued)?;
        Some(store.told(self.as_of.max(served.as_of)))
    }
}

fn count_cause<T>(cause: SnapshotCause, out: &mut Out<Wire, T>) {
    if cause == SnapshotCause::RetentionOver {
        out.count(Metric::RetentionOver);
    }
}

/// A heartbeat of no time at all would never let time pass.
fn sound(config: ServerConfig) -> ServerConfig {
    ServerConfig { heartbeat: config.heartbeat.max(Span::from_ms(1)), ..config }
}

fn send_delta<T>(peer: Peer, delta: Delta, out: &mut Out<Wire, T>) {
    let message = Down::Delta(delta);
    out.count(Metric::DeltasSent);
    out.add(Metric::DeltaBytes, message.bytes());
    out.send(peer, message.into());
}

fn send_snapshot<T>(peer: Peer, snapshot: Snapshot, bytes: u64, out: &mut Out<Wire, T>) {
    out.add(Metric::SnapshotBytes, bytes);
    out.send(peer, Down::Snapshot(snapshot).into());
}
