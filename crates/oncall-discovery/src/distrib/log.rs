//! The delta log of a cell: what lets a reader that was away catch up without a snapshot (R89).

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::Cursor;
use crate::mutants::{Mutant, Mutants};
use crate::types::{Incarnation, Revision, Span, Time};

/// How long deltas are kept. An entry goes when it is old *and* more than `min_entries` newer ones exist, so
/// that an outage, in which nothing is published, does not empty the log (D18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retention {
    /// Age up to which all are kept (dial 13).
    pub age: Span,
    /// Newest entries that are kept at any age.
    pub min_entries: u32,
    /// Entries that memory has room for, at any age.
    pub max_entries: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { age: Span::from_s(120), min_entries: 16, max_entries: 4_096 }
    }
}

/// One entry: what led to `to` from the entry before, or from the floor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry<C> {
    to: Revision,
    /// Publication, in whole milliseconds.
    at_ms: u32,
    change: C,
}

/// Chained entries from the floor to the head. `C` is what an entry carries: the changes themselves, or a
/// number that stands for them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeltaLog<C> {
    incarnation: Incarnation,
    floor: Revision,
    entries: VecDeque<Entry<C>>,
}

impl<C> DeltaLog<C> {
    /// An empty log that starts at a place.
    pub const fn new(start: Cursor) -> Self {
        Self { incarnation: start.incarnation, floor: start.rev, entries: VecDeque::new() }
    }

    /// Where the log ends.
    pub fn head(&self) -> Cursor {
        let rev = self.entries.back().map_or(self.floor, |entry| entry.to);
        Cursor::new(self.incarnation, rev)
    }

    /// The oldest revision from which the log leads to its head.
    pub const fn floor(&self) -> Revision {
        self.floor
    }

    /// Entries kept.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Adds an entry that leads from the head to `to`. Returns false, and changes nothing, if `to` is not ahead.
    pub fn push(&mut self, now: Time, to: Revision, change: C) -> bool {
        if to <= self.head().rev {
            return false;
        }
        self.entries.push_back(Entry { to, at_ms: now.ms(), change });
        true
    }

    /// Drops what the rule no longer keeps; returns how many entries went.
    pub fn trim(&mut self, now: Time, rule: Retention, mutants: Mutants) -> usize {
        let keep_always =
            if mutants.has(Mutant::RetentionByTimeOnly) { 0 } else { rule.min_entries as usize };
        let oldest_ms = now.before(rule.age).ms();
        let before = self.entries.len();
        while let Some(entry) = self.entries.front() {
            let too_many = self.entries.len() > rule.max_entries as usize;
            let too_old = self.entries.len() > keep_always && entry.at_ms < oldest_ms;
            if !too_many && !too_old {
                break;
            }
            self.floor = entry.to;
            self.entries.pop_front();
        }
        before - self.entries.len()
    }

    /// Whether the log leads from `rev` to its head: `rev` is its floor or one of its steps.
    pub fn bridges(&self, rev: Revision) -> bool {
        rev == self.floor || self.entries.binary_search_by_key(&rev, |entry| entry.to).is_ok()
    }

    /// What leads from `rev` to the head, oldest first; `None` if the log does not.
    pub fn since(&self, rev: Revision) -> Option<impl Iterator<Item = &C>> {
        let skip = match self.entries.binary_search_by_key(&rev, |entry| entry.to) {
            Ok(at) => at + 1,
            Err(_) if rev == self.floor => 0,
            Err(_) => return None,
        };
        Some(self.entries.iter().skip(skip).map(|entry| &entry.change))
    }

    /// Age of the oldest entry: how far back a reader may be; zero without entries.
    pub fn coverage(&self, now: Time) -> Span {
        let oldest_ms = self.entries.front().map_or(now.ms(), |entry| entry.at_ms);
        Span::from_ms(u64::from(now.ms().saturating_sub(oldest_ms)))
    }
}
