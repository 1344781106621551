//! What a server answers to a reader that says where it stands.

use serde::{Deserialize, Serialize};

use super::{Cursor, Watch};
use crate::types::Revision;

/// Why a snapshot and not a delta (R81).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SnapshotCause {
    /// The reader has nothing yet.
    First,
    /// The reader asked for one: a check failed.
    Asked,
    /// The log no longer, or never, reached back to where the reader stands.
    RetentionOver,
    /// Another life of the history: revisions do not compare.
    NewIncarnation,
}

/// The answer. "Up to date", "here is what is missing" and "here is everything" are three different things, so
/// that nothing missing can be read as nothing there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Answer {
    /// The reader stands at the head.
    Resumed,
    /// The log leads from there to the head.
    Bridge {
        /// Where the reader stands.
        from: Revision,
    },
    /// The whole set is needed.
    Snapshot(SnapshotCause),
    /// The reader is ahead: this server lags, and must not pull anyone back. The reader keeps what it has.
    ServerBehind,
}

/// Decides the answer. `bridges` says whether the log leads from a revision to the head.
pub fn answer(head: Cursor, watch: Watch, bridges: impl FnOnce(Revision) -> bool) -> Answer {
    let Some(at) = watch.cursor else {
        return Answer::Snapshot(SnapshotCause::First);
    };
    if at > head {
        Answer::ServerBehind
    } else if watch.full {
        Answer::Snapshot(SnapshotCause::Asked)
    } else if at.incarnation < head.incarnation {
        Answer::Snapshot(SnapshotCause::NewIncarnation)
    } else if at == head {
        Answer::Resumed
    } else if bridges(at.rev) {
        Answer::Bridge { from: at.rev }
    } else {
        Answer::Snapshot(SnapshotCause::RetentionOver)
    }
}
