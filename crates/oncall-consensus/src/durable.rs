//! What must survive a crash, and how a caller that models a disk keeps its copy.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::log::Log;
use crate::types::{Index, NodeId, REPLICAS_MAX, Term};

/// The caller's state machine up to an index.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Snapshot<S> {
    /// The last entry that is part of it.
    pub index: Index,
    /// Term of that entry.
    pub term: Term,
    /// The state; opaque here. Make it cheap to clone (`Arc`, or a handle).
    pub state: S,
}

/// Everything that a replica must find again after a crash.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Durable<C, S> {
    /// The newest term it knows.
    pub term: Term,
    /// Whom it voted for in that term.
    pub voted_for: Option<NodeId>,
    /// The newest snapshot.
    pub snapshot: Option<Snapshot<S>>,
    /// Entries; may begin before the snapshot's index, never after it.
    pub log: Log<C>,
}

impl<C, S> Default for Durable<C, S> {
    fn default() -> Self {
        Self { term: 0, voted_for: None, snapshot: None, log: Log::default() }
    }
}

/// What of the durable state an input has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Dirty {
    /// `term` or `voted_for`.
    pub vote: bool,
    /// `snapshot`, and the base of the log.
    pub snapshot: bool,
    /// The log from this index on.
    pub log_from: Option<Index>,
}

impl Dirty {
    /// Nothing has changed: messages may leave at once.
    #[inline]
    pub fn is_empty(self) -> bool {
        self == Self::default()
    }

    /// Both changes, one after the other.
    #[must_use]
    pub fn and(self, later: Self) -> Self {
        let log_from = match (self.log_from, later.log_from) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self { vote: self.vote || later.vote, snapshot: self.snapshot || later.snapshot, log_from }
    }

    #[inline]
    pub(crate) fn log(&mut self, index: Index) {
        self.log_from = Some(self.log_from.map_or(index, |from| from.min(index)));
    }
}

/// A durable state that no replica can have written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DurableError {
    /// A gap, or terms that fall.
    #[error("the log after index {base_index} has a gap or terms that fall")]
    Log {
        /// Base of the log.
        base_index: Index,
    },
    /// The log holds entries of a term that is newer than the newest known one.
    #[error("the last entry has term {entry_term}, above the durable term {term}")]
    Term {
        /// Term of the last entry.
        entry_term: Term,
        /// The durable term.
        term: Term,
    },
    /// The log begins after the end of the snapshot.
    #[error("the log begins after {base_index}, the snapshot ends at {snapshot_index}")]
    Hole {
        /// Base of the log.
        base_index: Index,
        /// Index of the snapshot; 0 without one.
        snapshot_index: Index,
    },
    /// A vote for a replica that cannot exist.
    #[error("voted_for is {voted_for}, expected a number below {REPLICAS_MAX}")]
    Vote {
        /// The vote.
        voted_for: NodeId,
    },
}

impl<C, S> Durable<C, S> {
    /// Index of the snapshot; 0 without one.
    #[inline]
    pub fn snapshot_index(&self) -> Index {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.index)
    }

    /// Checks that the parts fit together.
    pub fn check(&self) -> Result<(), DurableError> {
        let base_index = self.log.base_index();
        if !self.log.is_sound() {
            return Err(DurableError::Log { base_index });
        }
        let entry_term = self.log.last_term();
        if entry_term > self.term {
            return Err(DurableError::Term { entry_term, term: self.term });
        }
        let snapshot_index = self.snapshot_index();
        if base_index > snapshot_index || snapshot_index > self.log.last_index() {
            return Err(DurableError::Hole { base_index, snapshot_index });
        }
        match self.voted_for {
            Some(voted_for) if usize::from(voted_for) >= REPLICAS_MAX => {
                Err(DurableError::Vote { voted_for })
            }
            _ => Ok(()),
        }
    }
}

impl<C: Clone, S: Clone> Durable<C, S> {
    /// Brings a copy (the disk) up to date with what `dirty` says has changed in `now`.
    pub fn write(&mut self, now: &Self, dirty: Dirty) {
        if dirty.vote {
            self.term = now.term;
            self.voted_for = now.voted_for;
        }
        if let Some(from) = dirty.log_from {
            self.log.truncate_from(from);
        }
        if dirty.snapshot {
            self.snapshot.clone_from(&now.snapshot);
            let base = now.log.base_index();
            if let Some(term) = now.log.term_at(base) {
                self.log.compact(base, term);
            }
        }
        if dirty.log_from.is_some() {
            let next = self.log.last_index() + 1;
            for entry in now.log.range(next, now.log.last_index()) {
                self.log.push(entry.clone());
            }
        }
    }
}
