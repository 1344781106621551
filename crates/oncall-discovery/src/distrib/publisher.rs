//! The top of the distribution tier: one for each consistency group of a region, beside a catalog replica.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::message::{Delta, ProxyPolicy, Up, WatchPolicy, Wire};
use super::set::net;
use super::{CellStore, Coalescer, Cursor, DeltaVerdict, Flush, Server, ServerConfig, ServerTimer};
use super::{Step, Windows};
use crate::types::{Cell, CellUpdate, Change, Incarnation, Out, Peer, Revision, Time};

/// Timers of a publisher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PublisherTimer {
    /// A cell's pending changes are due.
    Flush(Cell),
    /// Of its server.
    Server(ServerTimer),
}

impl From<ServerTimer> for PublisherTimer {
    fn from(timer: ServerTimer) -> Self {
        Self::Server(timer)
    }
}

/// What happens to a publisher.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublisherInput {
    /// The replica has applied an update of a cell.
    Update(CellUpdate),
    /// The replica was known to be up to date at a time: it heard from a leader with a quorum.
    Confirmed(Time),
    /// A reader's message.
    Message(Peer, Up),
    /// A reader's stream has ended.
    Closed(Peer),
    /// A timer.
    Timer(PublisherTimer),
    /// New rules for proxies.
    Policy(ProxyPolicy),
}

/// A change of the publisher's cell that is accepted and not yet published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    coalescer: Coalescer,
    updates: Vec<CellUpdate>,
}

/// Coalesces accepted changes into chained deltas and serves them to relays.
///
/// Only published revisions are ever shown to readers; the delta log has an entry for each accepted update, so a
/// reader may resume from any of them, also after a restart that coalesces differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publisher {
    windows: Windows,
    incarnation: Incarnation,
    pending: BTreeMap<Cell, Pending>,
    server: Server,
}

/// An update that does not continue what the publisher has: it has missed some and must read the log again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("update: cell {cell:?} goes from revision {from:?}; expected {expected:?}")]
pub struct Missed {
    /// Which cell.
    pub cell: Cell,
    /// Where the update starts.
    pub from: Revision,
    /// Where the publisher stands.
    pub expected: Cursor,
}

impl Publisher {
    /// A publisher of cells that have no history yet.
    pub fn new(
        now: Time,
        cells: &[Cell],
        incarnation: Incarnation,
        windows: Windows,
        config: ServerConfig,
    ) -> Self {
        let start = Cursor::new(incarnation, Revision(0));
        let server = Server::new(now, config);
        let mut publisher = Self { windows, incarnation, pending: BTreeMap::new(), server };
        for &cell in cells {
            publisher.install(CellStore::new(cell, start));
        }
        publisher
    }

    /// A publisher after a restart: its cells' history out of the replicated log, oldest first, on top of `bases`
    /// (the sets at the log's beginning; [`CellStore::new`] if that is revision 0). Readers that come back resume
    /// from it, and ask for no snapshots (R89). Keeps what `config.retention` keeps.
    pub fn rebuild(
        now: Time,
        bases: Vec<CellStore>,
        incarnation: Incarnation,
        windows: Windows,
        config: ServerConfig,
        history: impl IntoIterator<Item = CellUpdate>,
    ) -> Result<Self, Missed> {
        let mut publisher = Self::new(now, &[], incarnation, windows, config);
        for store in bases {
            publisher.install(store);
        }
        for update in history {
            publisher.accept(update.accepted, update)?;
        }
        let cells: Vec<Cell> = publisher.pending.keys().copied().collect();
        for cell in cells {
            if let Some(pending) = publisher.pending.get_mut(&cell)
                && let Some(flush) = pending.coalescer.flush_now()
            {
                publisher.store_flush(cell, flush);
            }
            if let Some(store) = publisher.server.store_mut(cell) {
                store.trim(now, config.retention, config.mutants);
            }
        }
        Ok(publisher)
    }

    /// Begins to publish a cell from a set, or replaces what is known of it. Readers are told with the next
    /// change.
    pub fn install(&mut self, store: CellStore) {
        let (cell, head, set) = (store.cell(), store.head(), store.set());
        let coalescer = Coalescer::new(head, set.count(), set.checksum());
        self.pending.insert(cell, Pending { coalescer, updates: Vec::new() });
        self.server.install(cell, store);
    }

    /// The serving half.
    pub const fn server(&self) -> &Server {
        &self.server
    }

    /// Life of the history that it publishes.
    pub const fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    /// Accepted and published head of a cell.
    pub fn heads(&self, cell: Cell) -> Option<(Cursor, Cursor)> {
        let coalescer = &self.pending.get(&cell)?.coalescer;
        Some((coalescer.accepted(), coalescer.published()))
    }

    /// Accepted changes that are not yet published.
    pub fn pending(&self) -> usize {
        self.pending.values().map(|pending| pending.updates.len()).sum()
    }

    /// Changes dials from now on.
    pub fn configure(&mut self, now: Time, windows: Windows, config: ServerConfig) {
        self.windows = windows;
        self.server.configure(now, config);
    }

    /// Handles an input.
    pub fn on_event(
        &mut self,
        now: Time,
        input: PublisherInput,
        rules: &impl WatchPolicy,
        out: &mut Out<Wire, PublisherTimer>,
    ) -> Result<(), Missed> {
        match input {
            PublisherInput::Update(update) => {
                if let Some(due) = self.accept(now, update)? {
                    out.timer(due, PublisherTimer::Flush(update.cell));
                }
            }
            PublisherInput::Confirmed(as_of) => self.server.confirm_all(as_of),
            PublisherInput::Message(peer, message) => {
                self.server.on_message(now, peer, message, rules, out);
            }
            PublisherInput::Closed(peer) => self.server.close(peer),
            PublisherInput::Timer(PublisherTimer::Flush(cell)) => self.flush(now, cell, out),
            PublisherInput::Timer(PublisherTimer::Server(timer)) => {
                self.server.on_timer(now, timer, out);
            }
            PublisherInput::Policy(policy) => self.server.set_policy(policy, out),
        }
        Ok(())
    }

    fn accept(&mut self, now: Time, update: CellUpdate) -> Result<Option<Time>, Missed> {
        let cell = update.cell;
        let mutants = self.server.config().mutants;
        let missed = |expected| Missed { cell, from: update.from, expected };
        let Some(pending) = self.pending.get_mut(&cell) else {
            return Err(missed(Cursor::default()));
        };
        let due = pending.coalescer.note(now, &update, self.windows, mutants).map_err(missed)?;
        pending.updates.push(update);
        Ok(due)
    }

    fn flush(&mut self, now: Time, cell: Cell, out: &mut Out<Wire, PublisherTimer>) {
        let Some(pending) = self.pending.get_mut(&cell) else { return };
        let Some(flush) = pending.coalescer.flush(now) else { return };
        self.store_flush(cell, flush);
        self.server.fan_out(now, cell, out);
    }

    /// Moves a cell's pending updates into its store, one entry of the log for each.
    fn store_flush(&mut self, cell: Cell, flush: Flush) {
        let Some(pending) = self.pending.get_mut(&cell) else { return };
        let updates = std::mem::take(&mut pending.updates);
        let Some(store) = self.server.store_mut(cell) else { return };
        for update in updates {
            let verdict = store.apply(update.accepted, &delta_of(&update));
            debug_assert_eq!(
                verdict,
                DeltaVerdict::Apply,
                "the coalescer let only the next one in"
            );
        }
        debug_assert_eq!(store.head(), flush.step.end());
    }
}

/// A catalog update as a delta of one step.
pub fn delta_of(update: &CellUpdate) -> Delta {
    let step = Step { incarnation: update.incarnation, from: update.from, to: update.to };
    Delta {
        cell: update.cell,
        step,
        changes: net([&update.change]),
        count: update.count,
        checksum: update.checksum,
        accepted: update.accepted,
        as_of: update.accepted,
        urgent: matches!(update.change, Change::Removed(_)),
    }
}
