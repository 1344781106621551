//! Reads that are as new as every accepted write (dissertation 6.4).

use serde::{Deserialize, Serialize};

use crate::replica::Replica;
use crate::types::{Index, Refusal, Term, Time};

/// A read that waits until a quorum has confirmed that its leader still led when it began.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ReadTicket {
    /// Term of the leader.
    pub term: Term,
    /// The state machine must have applied this much before it answers.
    pub index: Index,
    /// Leader's clock when the read began.
    pub began_at: Time,
}

/// What has become of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ReadState {
    /// No quorum has answered yet.
    Pending,
    /// Answer from a state that has applied at least this index.
    Ready(Index),
    /// The leader has changed: ask again there.
    Lost,
}

impl<C: Clone, S: Clone> Replica<C, S> {
    /// The index that a read at this moment must have applied, from the leader's lease: without any
    /// message, but trusting that clocks run at about the same rate (`lease_margin`).
    pub fn lease_read(&mut self, now: Time) -> Result<Index, Refusal> {
        self.now = self.now.max(now);
        self.check_reader()?;
        let lease = self.config.election_timeout_min - self.config.lease_margin;
        match self.acked_at() {
            Some(acked_at) if self.now < acked_at.saturating_add(lease) => Ok(self.commit),
            _ => Err(Refusal::NoQuorum { confirmed_at: self.confirmed_at() }),
        }
    }

    /// Begins a read that trusts no clock: it is ready once a quorum has answered a message that was
    /// sent later, at the latest the heartbeat after next.
    pub fn begin_read(&mut self, now: Time) -> Result<ReadTicket, Refusal> {
        self.now = self.now.max(now);
        self.check_reader()?;
        Ok(ReadTicket { term: self.durable.term, index: self.commit, began_at: self.now })
    }

    /// Asks about a read.
    pub fn read_state(&self, ticket: ReadTicket) -> ReadState {
        if !self.is_leader() || ticket.term != self.durable.term {
            return ReadState::Lost;
        }
        match self.acked_at() {
            Some(acked_at) if acked_at > ticket.began_at => ReadState::Ready(ticket.index),
            _ => ReadState::Pending,
        }
    }

    fn check_reader(&self) -> Result<(), Refusal> {
        let term = self.durable.term;
        if !self.is_leader() {
            return Err(Refusal::NotLeader { term, leader: self.leader });
        }
        match self.barrier_committed() {
            Some(_) => Ok(()),
            None => Err(Refusal::BarrierPending { term }),
        }
    }
}
