//! Small vocabulary: terms, indices, entries, what becomes of a proposal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Number of a replica within its group: `0..replicas`.
pub type NodeId = u8;

/// Election number; grows, and has at most one leader. 0 is before the first election.
pub type Term = u64;

/// Position in the log; the first entry has index 1, and 0 is the empty log.
pub type Index = u64;

/// The caller's clock in ticks of the caller's choice (the discovery world uses milliseconds).
///
/// Each replica has its own; they need not agree, only advance at about the same rate.
pub type Time = u64;

/// The largest group that is supported.
pub const REPLICAS_MAX: usize = 5;

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Payload<C> {
    /// The first entry of every term, put there by its leader: once it is committed, the leader knows
    /// every entry that was committed before its term. Changes nothing in the state machine.
    Barrier,
    /// A command of the caller.
    Command(C),
}

/// One place of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Entry<C> {
    /// Term of the leader that made the entry.
    pub term: Term,
    /// Position in the log.
    pub index: Index,
    /// What it holds.
    pub payload: Payload<C>,
}

impl<C> Entry<C> {
    /// The command, or `None` for a barrier.
    pub fn command(&self) -> Option<&C> {
        match &self.payload {
            Payload::Command(command) => Some(command),
            Payload::Barrier => None,
        }
    }
}

/// Receipt of a proposal that was taken into the leader's log. It is **not** an acceptance: ask
/// [`Replica::outcome`](crate::Replica::outcome), or wait until this index is committed with this term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Proposal {
    /// Term of the leader that took it.
    pub term: Term,
    /// Place in the log.
    pub index: Index,
}

/// What is known about a proposal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// Still being replicated by the leader that took it.
    Pending,
    /// Committed: it will never be undone.
    Accepted,
    /// Another entry was committed in its place: it will never take effect.
    Superseded,
    /// Its leader has changed (or this replica has compacted the place away): it may or may not take
    /// effect. Commands are idempotent, so the caller may propose it again.
    Unknown,
}

/// Why a proposal was refused. A refused proposal is in no log and never takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error, Serialize, Deserialize)]
pub enum Refusal {
    /// This replica does not lead.
    #[error("not the leader of term {term}; known leader: {leader:?}")]
    NotLeader {
        /// Term of this replica.
        term: Term,
        /// Whom it follows, if anyone.
        leader: Option<NodeId>,
    },
    /// It leads, but has not heard from a quorum within the shortest election timeout.
    #[error("the leader has not heard from a quorum since {confirmed_at}")]
    NoQuorum {
        /// When the newest message that a quorum has answered was sent (leader's clock).
        confirmed_at: Time,
    },
    /// The proposal was tied to another term than the current one.
    #[error("proposed for term {wanted}, but the term is {term}")]
    OtherTerm {
        /// Term that the proposal was tied to.
        wanted: Term,
        /// Term of this replica.
        term: Term,
    },
    /// The proposal was fenced, and the barrier of the term is not committed yet.
    #[error("the barrier of term {term} is not committed yet")]
    BarrierPending {
        /// Term of this replica.
        term: Term,
    },
    /// Too many entries wait for their commit.
    #[error("{uncommitted} entries wait for their commit, the limit is {limit}")]
    Backlog {
        /// Entries that wait.
        uncommitted: u64,
        /// The limit of the configuration.
        limit: u64,
    },
}

/// What a proposal is tied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Fence {
    /// Nothing: whatever term the leader is in.
    None,
    /// Only this term; refused once the term has changed.
    Term(Term),
    /// Only this term, and only after its barrier is committed, so that the decision was taken with
    /// every earlier commit in sight. Lease expiries use this.
    Barrier(Term),
}

/// What a replica is at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Role {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks whether an election could be won, without starting one.
    PreCandidate,
    /// Asks for votes.
    Candidate,
    /// Leads.
    Leader,
}
