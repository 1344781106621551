//! What can be wrong with what a caller hands in.

use thiserror::Error;

use crate::config::ConfigError;
use crate::durable::DurableError;
use crate::types::{Index, NodeId, Term};

/// A message that cannot have come from a member of the group. The replica has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Wrong receiver.
    #[error("to is {to}, expected {id}")]
    To {
        /// Receiver that the message names.
        to: NodeId,
        /// This replica.
        id: NodeId,
    },
    /// Not another member of the group.
    #[error("from is {from}, expected another replica below {replicas}")]
    From {
        /// Sender that the message names.
        from: NodeId,
        /// Size of the group.
        replicas: u8,
    },
    /// Term 0 has no leader and no candidate.
    #[error("term is 0 in a message of a leader or candidate, expected at least 1")]
    Term,
    /// A leader that contradicts what was committed.
    #[error("the entry at index {index} has term {entry_term}, committed is one of term {term}")]
    Committed {
        /// The commit index of this replica.
        index: Index,
        /// Term of the leader's entry.
        entry_term: Term,
        /// Term of this replica's entry.
        term: Term,
    },
    /// Entries with gaps, or with terms that fall or exceed the sender's.
    #[error("the entries after index {prev_index} have a gap, or terms out of order")]
    Entries {
        /// Place before the entries.
        prev_index: Index,
    },
    /// A snapshot of nothing, or of a term that its sender cannot know.
    #[error(
        "the snapshot ends at index {index} in term {entry_term}, the sender is in term {term}"
    )]
    Snapshot {
        /// Index of the snapshot.
        index: Index,
        /// Term of the snapshot's last entry.
        entry_term: Term,
        /// Term of the sender.
        term: Term,
    },
}

/// A start that cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum RestartError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The durable state.
    #[error(transparent)]
    Durable(#[from] DurableError),
}

/// A compaction that would lose entries. The replica has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum CompactError {
    /// Only committed entries may go into a snapshot.
    #[error("index is {index}, expected at most the commit index {commit}")]
    NotCommitted {
        /// Index asked for.
        index: Index,
        /// Commit index.
        commit: Index,
    },
    /// There is a newer snapshot already, or the index is 0.
    #[error("index is {index}, expected above the index {snapshot_index} of the last snapshot")]
    NotNewer {
        /// Index asked for.
        index: Index,
        /// Index of the snapshot at hand.
        snapshot_index: Index,
    },
}
