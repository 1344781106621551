//! The serving half of publishers and relays: streams, answers, fan-out, snapshots within a budget, heartbeats.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

use super::message::{Down, ProxyPolicy, Up, Watch, WatchPolicy, Wire};
use super::{Bucket, CellStore, Cursor, Retention};
use crate::mutants::Mutants;
use crate::types::{Cell, Metric, Out, Peer, Span, Time};

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
pub(super) struct Stream {
    pub(super) session: u32,
    pub(super) cells: Vec<Cell>,
}

/// How far a stream has been served with a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Watcher {
    pub(super) peer: Peer,
    pub(super) sent: Option<Cursor>,
    /// Waits for a snapshot; gets nothing else until then.
    pub(super) queued: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Served {
    pub(super) store: Option<CellStore>,
    pub(super) as_of: Time,
    pub(super) watchers: Vec<Watcher>,
}

impl Served {
    pub(super) fn watcher(&mut self, peer: Peer) -> Option<&mut Watcher> {
        let at = self.watchers.binary_search_by_key(&peer, |watcher| watcher.peer).ok()?;
        Some(&mut self.watchers[at])
    }
}

/// Streams to readers over a set of cells.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Server {
    pub(super) config: ServerConfig,
    pub(super) cells: BTreeMap<Cell, Served>,
    pub(super) streams: BTreeMap<Peer, Stream>,
    admission: Bucket,
    pub(super) budget: Bucket,
    pub(super) queue: VecDeque<(Peer, Cell)>,
    pub(super) wake_at: Time,
    pub(super) as_of: Time,
    pub(super) trimmed: Time,
    pub(super) policy: Option<ProxyPolicy>,
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
}

/// A heartbeat of no time at all would never let time pass.
fn sound(config: ServerConfig) -> ServerConfig {
    ServerConfig { heartbeat: config.heartbeat.max(Span::from_ms(1)), ..config }
}
