//! Where a reader stands with one cell, and what each message means for it: gaps, repairs, refusals.

use serde::{Deserialize, Serialize};

use crate::distrib::{Cursor, DeltaVerdict, SnapshotHead, SnapshotVerdict, Step, Watch};
use crate::distrib::{judge_delta, judge_snapshot};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Cell, Incarnation, Metric, Out, Revision, Span, Time};

/// A reader's place in a cell. 16 bytes, because there are 200,000 of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellSub {
    rev: Revision,
    incarnation: Incarnation,
    /// When the set was last known to be the newest, in milliseconds.
    confirmed_ms: u32,
    /// How far ahead the newest head is that this stream has told of; [`FAR`] if it cannot be counted.
    ahead: u16,
    /// Failed checks in a row.
    tries: u8,
    flags: u8,
}

const FAR: u16 = u16::MAX;
/// There is a set.
const HAS: u8 = 1;
/// A check failed: the next repair asks for a snapshot.
const FULL: u8 = 2;

/// How a set was brought forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// By a delta.
    Delta,
    /// By a snapshot.
    Snapshot,
}

/// Why a repair is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RepairFor {
    /// A delta that starts further on.
    Gap,
    /// A head further on, although nothing else is on its way: a silent loss.
    HeadAhead,
    /// A newer life of the history.
    NewIncarnation,
}

/// Why a message was left aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusedFor {
    /// From an older life of the history.
    OldIncarnation,
    /// The server stands behind this reader.
    ServerBehind,
    /// An empty set from behind this reader.
    EmptyNotNewer,
}

/// What a message meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubEvent {
    /// Nothing: repeated, late, or already being repaired.
    Nothing,
    /// The set is now at the message's place: the caller applies the content.
    Applied {
        /// By what.
        by: By,
        /// It closed a gap that was being repaired (D21).
        repaired: bool,
        /// There was no set before.
        first: bool,
    },
    /// The set was confirmed to be the newest.
    Confirmed,
    /// A repair has to be asked for now; see [`CellSub::watch`].
    Repair(RepairFor),
    /// The content failed a check; a snapshot has to be asked for after a back-off.
    Rejected {
        /// Failed checks in a row, with this one.
        tries: u8,
    },
    /// Left aside.
    Refused(RefusedFor),
}

impl SubEvent {
    /// Counts it (R142, R143).
    pub fn count<M, T>(self, out: &mut Out<M, T>) {
        match self {
            Self::Applied { by: By::Delta, repaired: true, .. } => {
                out.count(Metric::DeltaRepairs);
            }
            Self::Applied { by: By::Snapshot, first: false, .. } => {
                out.count(Metric::SnapshotFallbacks);
            }
            Self::Repair(RepairFor::HeadAhead) => {
                out.count(Metric::RevisionGaps);
                out.count(Metric::HeadsAhead);
            }
            Self::Repair(_) => out.count(Metric::RevisionGaps),
            Self::Rejected { .. } => out.count(Metric::ChecksumRejects),
            Self::Refused(RefusedFor::EmptyNotNewer) => out.count(Metric::EmptySnapshotsRefused),
            Self::Refused(RefusedFor::OldIncarnation) => out.count(Metric::ForksRefused),
            Self::Nothing
            | Self::Applied { .. }
            | Self::Confirmed
            | Self::Refused(RefusedFor::ServerBehind) => {}
        }
    }
}

/// Whether a reader leaves its relay after so many failed checks in a row: at every second one, if there is
/// another relay. The count goes on at the next relay, and with it the back-off.
pub fn leaves_relay(tries: u8, relays: u16, mutants: Mutants) -> bool {
    tries > 0 && tries.is_multiple_of(2) && relays > 1 && !mutants.has(Mutant::NoRelaySwitch)
}

impl CellSub {
    /// A reader that has the set at a place, confirmed at a time.
    pub fn at(cursor: Cursor, confirmed: Time) -> Self {
        Self {
            rev: cursor.rev,
            incarnation: cursor.incarnation,
            confirmed_ms: confirmed.ms(),
            ahead: 0,
            tries: 0,
            flags: HAS,
        }
    }

    /// Where it stands; `None` without a set.
    pub fn cursor(&self) -> Option<Cursor> {
        self.has_set().then_some(self.place())
    }

    const fn place(&self) -> Cursor {
        Cursor::new(self.incarnation, self.rev)
    }

    /// Whether there is a set.
    pub const fn has_set(&self) -> bool {
        self.flags & HAS != 0
    }

    /// Whether a message has told of something that the set lacks, or there is no set, or a check failed.
    pub const fn needs_repair(&self) -> bool {
        !self.has_set() || self.ahead > 0 || self.flags & FULL != 0
    }

    /// The newest revision that this stream has told of (I20); `None` if it is of another incarnation.
    pub fn told(&self) -> Option<Revision> {
        (self.ahead != FAR).then(|| Revision(self.rev.0 + u32::from(self.ahead)))
    }

    /// Failed checks in a row.
    pub const fn tries(&self) -> u8 {
        self.tries
    }

    /// When the set was last known to be the newest.
    pub fn confirmed(&self) -> Time {
        Time::from_ms(u64::from(self.confirmed_ms))
    }

    /// Age of the set: since it was last known to be the newest (R93). Without a set, since the beginning.
    pub fn age(&self, now: Time) -> Span {
        now.since(self.confirmed())
    }

    /// What to ask a server for.
    pub fn watch(&self, cell: Cell) -> Watch {
        Watch { cell, cursor: self.cursor(), full: self.flags & FULL != 0 }
    }

    /// A new stream: what another server told of is not expected of this one.
    pub fn reconnected(&mut self) {
        self.ahead = 0;
    }

    /// A delta came. `intact`: the set after it has the published checksum; only looked at if the delta starts
    /// where this reader stands. `as_of`: when the source was last right about its head.
    pub fn on_delta(
        &mut self,
        step: Step,
        intact: bool,
        as_of: Time,
        mutants: Mutants,
    ) -> SubEvent {
        if !self.has_set() {
            return SubEvent::Nothing;
        }
        match judge_delta(self.place(), step, intact, mutants) {
            DeltaVerdict::Apply => {
                let repaired = self.ahead > 0;
                self.arrive(step.end(), as_of);
                SubEvent::Applied {
                    by: By::Delta,
                    repaired: repaired && self.ahead == 0,
                    first: false,
                }
            }
            DeltaVerdict::Have => SubEvent::Nothing,
            DeltaVerdict::Gap => self.told_of(step.end(), RepairFor::Gap),
            DeltaVerdict::Corrupt => self.reject(),
            DeltaVerdict::OldIncarnation => SubEvent::Refused(RefusedFor::OldIncarnation),
            DeltaVerdict::NewIncarnation => self.told_of(step.end(), RepairFor::NewIncarnation),
        }
    }

    /// A snapshot came. `intact`: its content has its checksum and its count, and is this reader's own if it shows
    /// the same place.
    pub fn on_snapshot(
        &mut self,
        head: SnapshotHead,
        intact: bool,
        as_of: Time,
        mutants: Mutants,
    ) -> SubEvent {
        match judge_snapshot(self.cursor(), head, intact, mutants) {
            SnapshotVerdict::Replace => {
                let (repaired, first) = (self.ahead > 0, !self.has_set());
                self.arrive(head.cursor, as_of);
                SubEvent::Applied { by: By::Snapshot, repaired: repaired && self.ahead == 0, first }
            }
            SnapshotVerdict::Have => {
                // The same place, and the content checked: the set is good after all.
                if head.cursor == self.place() {
                    self.flags &= !FULL;
                }
                self.on_head(head.cursor, as_of)
            }
            SnapshotVerdict::Corrupt => self.reject(),
            SnapshotVerdict::OldIncarnation => SubEvent::Refused(RefusedFor::OldIncarnation),
            SnapshotVerdict::EmptyNotNewer => SubEvent::Refused(RefusedFor::EmptyNotNewer),
        }
    }

    /// A head came, in a heartbeat or as the answer that nothing is missing.
    pub fn on_head(&mut self, head: Cursor, as_of: Time) -> SubEvent {
        if !self.has_set() {
            return SubEvent::Nothing;
        }
        let here = self.place();
        if head == here {
            if self.needs_repair() {
                return SubEvent::Nothing;
            }
            self.confirmed_ms = self.confirmed_ms.max(as_of.ms());
            SubEvent::Confirmed
        } else if head.incarnation > here.incarnation {
            self.told_of(head, RepairFor::NewIncarnation)
        } else if head > here {
            self.told_of(head, RepairFor::HeadAhead)
        } else if head.incarnation < here.incarnation {
            SubEvent::Refused(RefusedFor::OldIncarnation)
        } else {
            SubEvent::Refused(RefusedFor::ServerBehind)
        }
    }

    /// Something further on exists. Asks for a repair once; repeating it is for a timer.
    fn told_of(&mut self, head: Cursor, why: RepairFor) -> SubEvent {
        let open = self.needs_repair();
        self.ahead = if head.incarnation == self.incarnation {
            let ahead = u16::try_from(head.rev.0 - self.rev.0).unwrap_or(FAR - 1).min(FAR - 1);
            if self.ahead == FAR { FAR } else { self.ahead.max(ahead) }
        } else {
            FAR
        };
        if open { SubEvent::Nothing } else { SubEvent::Repair(why) }
    }

    fn arrive(&mut self, at: Cursor, as_of: Time) {
        self.ahead = match self.ahead {
            // Told of a newer incarnation: only the snapshot that leads there settles it.
            FAR if at.incarnation == self.incarnation => FAR,
            _ if at.incarnation != self.incarnation => 0,
            ahead => ahead
                .saturating_sub(u16::try_from(at.rev.0.saturating_sub(self.rev.0)).unwrap_or(FAR)),
        };
        self.rev = at.rev;
        self.incarnation = at.incarnation;
        self.tries = 0;
        self.flags = HAS;
        if self.ahead == 0 {
            self.confirmed_ms = self.confirmed_ms.max(as_of.ms());
        }
    }

    fn reject(&mut self) -> SubEvent {
        self.flags |= FULL;
        self.tries = self.tries.saturating_add(1);
        SubEvent::Rejected { tries: self.tries }
    }
}
