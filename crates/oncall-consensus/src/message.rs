//! What replicas say to each other.

use serde::{Deserialize, Serialize};

use crate::durable::Snapshot;
use crate::types::{Entry, Index, NodeId, Term, Time};

/// A message between two replicas of one group. May be lost, doubled, delayed and overtaken.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Message<C, S> {
    /// Sender.
    pub from: NodeId,
    /// Receiver.
    pub to: NodeId,
    /// Term of the sender when it was sent.
    pub term: Term,
    /// What it says.
    pub body: Body<C, S>,
}

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Body<C, S> {
    /// Would you vote for me in the term after mine?
    PreVote {
        /// Number of the attempt, to be sent back.
        attempt: u64,
        /// Last index of the asker's log.
        last_index: Index,
        /// Term of that entry.
        last_term: Term,
    },
    /// Answer to [`Body::PreVote`].
    PreVoteReply {
        /// Term of the asker when it asked.
        asked_in: Term,
        /// From the message that is answered.
        attempt: u64,
        /// Yes or no.
        granted: bool,
    },
    /// Vote for me in my term.
    Vote {
        /// Last index of the candidate's log.
        last_index: Index,
        /// Term of that entry.
        last_term: Term,
    },
    /// Answer to [`Body::Vote`].
    VoteReply {
        /// Yes or no.
        granted: bool,
    },
    /// Entries after a known place; without entries it is a heartbeat.
    Append {
        /// Place before the first entry.
        prev_index: Index,
        /// Term of the entry at that place.
        prev_term: Term,
        /// Entries, contiguous.
        entries: Vec<Entry<C>>,
        /// How far the leader has committed.
        commit: Index,
        /// Leader's clock, to be sent back.
        sent_at: Time,
    },
    /// The receiver's log agrees with the leader's up to `matched`, durably.
    Appended {
        /// The last place that is known to agree.
        matched: Index,
        /// From the message that is answered.
        sent_at: Time,
    },
    /// The receiver's log does not have the place before the entries.
    Mismatch {
        /// `prev_index` of the message that is answered.
        prev_index: Index,
        /// A place where the logs may agree.
        hint_index: Index,
        /// Term of the receiver's entry there.
        hint_term: Term,
        /// From the message that is answered.
        sent_at: Time,
    },
    /// The state up to an index, for a follower whose next entry is gone from the leader's log.
    /// Answered by [`Body::Appended`].
    Install {
        /// The snapshot.
        snapshot: Snapshot<S>,
        /// Leader's clock, to be sent back.
        sent_at: Time,
    },
    /// Entries up to here are committed; not answered.
    Commit {
        /// Last committed place.
        index: Index,
        /// Term of the entry there.
        entry_term: Term,
    },
}

/// Of what kind a message is; for statistics and for faults that hit one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum MessageKind {
    /// Pre-votes, votes and their answers.
    Election,
    /// Entries and heartbeats.
    Append,
    /// Answers to entries, heartbeats and snapshots.
    Reply,
    /// Snapshots.
    Install,
    /// Commit notices.
    Commit,
}

impl<C, S> Message<C, S> {
    /// Of what kind this message is.
    pub fn kind(&self) -> MessageKind {
        match self.body {
            Body::PreVote { .. }
            | Body::PreVoteReply { .. }
            | Body::Vote { .. }
            | Body::VoteReply { .. } => MessageKind::Election,
            Body::Append { .. } => MessageKind::Append,
            Body::Appended { .. } | Body::Mismatch { .. } => MessageKind::Reply,
            Body::Install { .. } => MessageKind::Install,
            Body::Commit { .. } => MessageKind::Commit,
        }
    }

    /// Number of entries that it carries.
    pub fn entry_count(&self) -> usize {
        match &self.body {
            Body::Append { entries, .. } => entries.len(),
            _ => 0,
        }
    }
}
