//! What a leader knows about one follower.

use serde::{Deserialize, Serialize};

use crate::types::{Index, Time};

/// How entries flow to a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Flow {
    /// Looking for the place where the logs agree: one message at a time.
    Probe {
        /// One is on its way.
        sent: bool,
    },
    /// The logs agree: entries are sent without waiting for answers.
    Stream,
    /// The next entry is gone; a snapshot is on its way.
    Snapshot {
        /// When it was sent.
        sent_at: Time,
    },
}

/// A follower in the eyes of its leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its log agrees up to here, durably.
    pub(crate) matched: Index,
    /// The next entry to send.
    pub(crate) next: Index,
    /// Highest commit that it was told in a notice.
    pub(crate) told: Index,
    /// When the newest message was sent that it has answered in this term.
    pub(crate) acked_at: Option<Time>,
    /// How entries flow to it.
    pub(crate) flow: Flow,
}

impl Peer {
    /// A follower of which nothing is known yet.
    pub(crate) fn unknown(next: Index) -> Self {
        Self { matched: 0, next, told: 0, acked_at: None, flow: Flow::Probe { sent: false } }
    }
}
