//! Coalescing: changes of one cell within a short time become one delta (R84, R86, D12).

use serde::{Deserialize, Serialize};

use super::{Cursor, Step};
use crate::mutants::{Mutant, Mutants};
use crate::types::{CellUpdate, Change, Span, Time};

/// How long a change may wait for company (dials 11 and 12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Windows {
    /// Of a removal: taken out of the 3-second budget.
    pub removals: Span,
    /// Of an addition or a change of weight.
    pub additions: Span,
}

impl Default for Windows {
    fn default() -> Self {
        Self { removals: Span::from_ms(100), additions: Span::from_ms(500) }
    }
}

/// What waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// An endpoint leaves.
    Removal,
    /// An endpoint comes or changes its weight.
    Addition,
}

impl From<&Change> for Kind {
    fn from(change: &Change) -> Self {
        match change {
            Change::Removed(_) => Self::Removal,
            Change::Added(_) | Change::Changed(..) => Self::Addition,
        }
    }
}

/// What a flush publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flush {
    /// From the head before to the head after.
    pub step: Step,
    /// Removals accepted in it, before opposite changes cancel out.
    pub removed: u32,
    /// Additions and changes accepted in it, before opposite changes cancel out.
    pub added: u32,
    /// Size of the set after.
    pub count: u32,
    /// Checksum of the set after.
    pub checksum: u64,
    /// When the oldest change in it was accepted.
    pub accepted: Time,
}

/// Pending changes of one cell.
///
/// There is one queue, and its deadline is the earliest that any change in it asks for. So a removal takes the
/// additions pending before it along, the chain stays contiguous, and a removal never waits for an addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coalescer {
    published: Cursor,
    accepted: Cursor,
    due: Time,
    oldest: Time,
    removed: u32,
    added: u32,
    count: u32,
    checksum: u64,
}

impl Coalescer {
    /// Nothing pending, everything up to `head` published.
    pub const fn new(head: Cursor, count: u32, checksum: u64) -> Self {
        Self {
            published: head,
            accepted: head,
            due: Time::NEVER,
            oldest: Time::NEVER,
            removed: 0,
            added: 0,
            count,
            checksum,
        }
    }

    /// The published head.
    pub const fn published(&self) -> Cursor {
        self.published
    }

    /// The accepted head.
    pub const fn accepted(&self) -> Cursor {
        self.accepted
    }

    /// When the pending changes are to be published; [`Time::NEVER`] without any.
    pub const fn due(&self) -> Time {
        self.due
    }

    /// Takes an accepted change. Returns the new deadline if it moved (forward to now at the earliest), so that
    /// the caller sets a timer. An update that does not continue the accepted head changes nothing: the caller
    /// reads the log again from there.
    pub fn note(
        &mut self,
        now: Time,
        update: &CellUpdate,
        windows: Windows,
        mutants: Mutants,
    ) -> Result<Option<Time>, Cursor> {
        if update.incarnation != self.accepted.incarnation || update.from != self.accepted.rev {
            return Err(self.accepted);
        }
        self.accepted.rev = update.to;
        self.count = update.count;
        self.checksum = update.checksum;
        self.oldest = self.oldest.min(update.accepted);
        let kind = Kind::from(&update.change);
        let window = match kind {
            Kind::Removal if !mutants.has(Mutant::RemovalWaitsForAdditions) => windows.removals,
            Kind::Removal | Kind::Addition => windows.additions,
        };
        match kind {
            Kind::Removal => self.removed += 1,
            Kind::Addition => self.added += 1,
        }
        let due = now.after(window);
        if due < self.due {
            self.due = due;
            return Ok(Some(due));
        }
        Ok(None)
    }

    /// Publishes what is pending, if its time has come.
    pub fn flush(&mut self, now: Time) -> Option<Flush> {
        if now < self.due { None } else { self.flush_now() }
    }

    /// Publishes what is pending.
    pub fn flush_now(&mut self) -> Option<Flush> {
        if self.accepted == self.published {
            return None;
        }
        let step = Step {
            incarnation: self.accepted.incarnation,
            from: self.published.rev,
            to: self.accepted.rev,
        };
        let flush = Flush {
            step,
            removed: self.removed,
            added: self.added,
            count: self.count,
            checksum: self.checksum,
            accepted: self.oldest,
        };
        *self = Self::new(self.accepted, self.count, self.checksum);
        Some(flush)
    }
}
