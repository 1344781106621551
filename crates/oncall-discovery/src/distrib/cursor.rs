//! Where a reader stands in a cell's history, and what it may apply next (R80 to R82).

use serde::{Deserialize, Serialize};

use crate::mutants::{Mutant, Mutants};
use crate::types::{Incarnation, Revision};

/// A place in a cell's history. Ordered by incarnation, then revision; a proxy's never goes down (I2). 8 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Cursor {
    /// Which life of the shard's history.
    pub incarnation: Incarnation,
    /// Head of the cell.
    pub rev: Revision,
}

impl Cursor {
    /// A place in a history.
    pub const fn new(incarnation: Incarnation, rev: Revision) -> Self {
        Self { incarnation, rev }
    }
}

/// The range of a delta: it turns the set at `from` into the set at `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Step {
    /// Which life of the shard's history.
    pub incarnation: Incarnation,
    /// Head before.
    pub from: Revision,
    /// Head after.
    pub to: Revision,
}

impl Step {
    /// Where a reader stands after it.
    pub const fn end(self) -> Cursor {
        Cursor::new(self.incarnation, self.to)
    }
}

/// What a snapshot says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SnapshotHead {
    /// The place that it shows.
    pub cursor: Cursor,
    /// Endpoints in it.
    pub count: u32,
}

/// What to do with a delta.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaVerdict {
    /// It starts where the reader stands, and its checksum matches.
    Apply,
    /// It ends at or before where the reader stands: a repeated or late message.
    Have,
    /// Something before it is missing.
    Gap,
    /// It starts right, but the set after it would not be the published one.
    Corrupt,
    /// From an older life of the history: refused.
    OldIncarnation,
    /// From a newer life of the history: only a snapshot leads there.
    NewIncarnation,
}

/// Judges a delta for a reader. `intact` says whether the set after it has the published checksum; it is only
/// looked at if the delta starts where the reader stands.
pub fn judge_delta(local: Cursor, delta: Step, intact: bool, mutants: Mutants) -> DeltaVerdict {
    if delta.incarnation < local.incarnation && !mutants.has(Mutant::LowerIncarnationAccepted) {
        return DeltaVerdict::OldIncarnation;
    }
    if delta.incarnation > local.incarnation {
        return DeltaVerdict::NewIncarnation;
    }
    if delta.from >= delta.to {
        return DeltaVerdict::Corrupt;
    }
    if delta.to <= local.rev {
        return DeltaVerdict::Have;
    }
    if mutants.has(Mutant::NonContiguousDelta) {
        return DeltaVerdict::Apply;
    }
    match (delta.from == local.rev, intact) {
        (true, true) => DeltaVerdict::Apply,
        (true, false) => DeltaVerdict::Corrupt,
        (false, _) => DeltaVerdict::Gap,
    }
}

/// What to do with a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SnapshotVerdict {
    /// It replaces the whole set.
    Replace,
    /// It shows nothing newer.
    Have,
    /// Its set is not the one that its checksum or its count says.
    Corrupt,
    /// From an older life of the history: refused.
    OldIncarnation,
    /// Empty and older: refused aloud, because a cold server that says so to everybody would wipe every cache.
    EmptyNotNewer,
}

/// Judges a snapshot for a reader that stands at `local`, or has nothing yet. `intact`: its content has its
/// checksum and its count, and is the reader's own if it shows the same place.
pub fn judge_snapshot(
    local: Option<Cursor>,
    head: SnapshotHead,
    intact: bool,
    mutants: Mutants,
) -> SnapshotVerdict {
    if !intact {
        return SnapshotVerdict::Corrupt;
    }
    let Some(local) = local else {
        return SnapshotVerdict::Replace;
    };
    if mutants.has(Mutant::LowerIncarnationAccepted)
        || (mutants.has(Mutant::EmptySnapshotAccepted) && head.count == 0)
    {
        return SnapshotVerdict::Replace;
    }
    if head.cursor > local {
        SnapshotVerdict::Replace
    } else if head.cursor.incarnation < local.incarnation {
        SnapshotVerdict::OldIncarnation
    } else if head.count == 0 && head.cursor < local {
        SnapshotVerdict::EmptyNotNewer
    } else {
        SnapshotVerdict::Have
    }
}
