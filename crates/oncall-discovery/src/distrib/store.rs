//! What a server knows of one cell: its head, its set, and the way there.

use serde::{Deserialize, Serialize};

use super::message::{Delta, Head, Snapshot};
use super::set::{EndpointSet, instance_of, net};
use super::{Cursor, DeltaLog, DeltaVerdict, Retention, SnapshotHead, SnapshotVerdict, Step};
use super::{judge_delta, judge_snapshot};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Cell, Change, Endpoint, Revision, Time};

/// Head, set and delta log of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellStore {
    cell: Cell,
    set: EndpointSet,
    log: DeltaLog<Logged>,
}

/// Changes of one step and when they were accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Logged {
    changes: Vec<Change>,
    accepted: Time,
}

impl CellStore {
    /// A cell at a place of its history, with an empty set: what revision 0 of an incarnation is.
    pub fn new(cell: Cell, start: Cursor) -> Self {
        Self { cell, set: EndpointSet::default(), log: DeltaLog::new(start) }
    }

    /// A cell at a place of its history with a set, in the order of instance ids, and nothing before it.
    pub fn at(cell: Cell, start: Cursor, endpoints: Vec<Endpoint>) -> Self {
        let mut store = Self::new(cell, start);
        store.set.replace(endpoints, Mutants::default());
        store
    }

    /// Which cell.
    pub const fn cell(&self) -> Cell {
        self.cell
    }

    /// The head.
    pub fn head(&self) -> Cursor {
        self.log.head()
    }

    /// The set at the head.
    pub const fn set(&self) -> &EndpointSet {
        &self.set
    }

    /// Entries of the delta log.
    pub fn logged(&self) -> usize {
        self.log.len()
    }

    /// How far back a reader may be and still get a delta.
    pub fn coverage(&self, now: Time) -> crate::types::Span {
        self.log.coverage(now)
    }

    /// Whether the log leads from a revision of the head's incarnation to the head.
    pub fn bridges(&self, rev: Revision) -> bool {
        self.log.bridges(rev)
    }

    /// Drops what the rule no longer keeps; returns how many entries went.
    pub fn trim(&mut self, now: Time, rule: Retention, mutants: Mutants) -> usize {
        self.log.trim(now, rule, mutants)
    }

    /// Applies a delta that starts at the head; anything else changes nothing.
    pub fn apply(&mut self, now: Time, delta: &Delta) -> DeltaVerdict {
        let contiguous = judge_delta(self.head(), delta.step, true, Mutants::default());
        if contiguous != DeltaVerdict::Apply {
            return contiguous;
        }
        if !self.set.apply(&delta.changes, delta.count, delta.checksum) {
            return DeltaVerdict::Corrupt;
        }
        let logged = Logged { changes: delta.changes.clone(), accepted: delta.accepted };
        self.log.push(now, delta.step.to, logged);
        DeltaVerdict::Apply
    }

    /// Takes a snapshot. Within an incarnation the difference becomes an entry of the log, so that readers who
    /// stand where this store stood get a delta and not a snapshot each.
    pub fn replace(&mut self, now: Time, snapshot: Snapshot) -> SnapshotVerdict {
        let intact =
            EndpointSet::intact(&snapshot.endpoints, snapshot.head.count, snapshot.checksum);
        let verdict = judge_snapshot(Some(self.head()), snapshot.head, intact, Mutants::default());
        if verdict != SnapshotVerdict::Replace {
            return verdict;
        }
        if snapshot.head.cursor.incarnation == self.head().incarnation {
            let changes = self.set.diff(&snapshot.endpoints);
            let logged = Logged { changes, accepted: snapshot.as_of };
            self.log.push(now, snapshot.head.cursor.rev, logged);
        } else {
            self.log = DeltaLog::new(snapshot.head.cursor);
        }
        self.set.replace(snapshot.endpoints, Mutants::default());
        verdict
    }

    /// The delta from a revision of the head's incarnation to the head, if the log leads there.
    pub fn bridge(&self, from: Revision, as_of: Time, mutants: Mutants) -> Option<Delta> {
        let entries: Vec<&Logged> = self.log.since(from)?.collect();
        let accepted = entries.iter().map(|entry| entry.accepted).min().unwrap_or(as_of);
        let mut changes = net(entries.iter().flat_map(|entry| &entry.changes));
        let mut count = self.set.count();
        let mut checksum = self.set.checksum();
        let urgent = changes.iter().any(|change| matches!(change, Change::Removed(_)));
        if mutants.has(Mutant::ResumeIgnoresRemovals) {
            changes.retain(|change| {
                let Change::Removed(endpoint) = change else { return true };
                count += 1;
                checksum = checksum.wrapping_add(endpoint.fingerprint());
                false
            });
        }
        debug_assert!(changes.windows(2).all(|two| instance_of(&two[0]) < instance_of(&two[1])));
        let head = self.head();
        let step = Step { incarnation: head.incarnation, from, to: head.rev };
        Some(Delta { cell: self.cell, step, changes, count, checksum, accepted, as_of, urgent })
    }

    /// The whole set.
    pub fn snapshot(&self, as_of: Time) -> Snapshot {
        Snapshot {
            cell: self.cell,
            head: SnapshotHead { cursor: self.head(), count: self.set.count() },
            checksum: self.set.checksum(),
            endpoints: self.set.endpoints().to_vec(),
            as_of,
        }
    }

    /// The head as a heartbeat tells it.
    pub fn told(&self, as_of: Time) -> Head {
        Head { cell: self.cell, cursor: self.head(), as_of }
    }

    /// The endpoints at the head.
    pub fn endpoints(&self) -> &[Endpoint] {
        self.set.endpoints()
    }
}
