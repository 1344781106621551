//! What can be asked of a replica.

use crate::config::Config;
use crate::durable::{Durable, Snapshot};
use crate::replica::Replica;
use crate::types::{Entry, Index, NodeId, Outcome, Proposal, Role, Term, Time};

impl<C, S> Replica<C, S> {
    /// The settings.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What must survive a crash; see [`Output::dirty`](crate::Output::dirty).
    pub fn durable(&self) -> &Durable<C, S> {
        &self.durable
    }

    /// Takes the durable state out, as a crash does when the disk has everything.
    pub fn into_durable(self) -> Durable<C, S> {
        self.durable
    }

    /// When [`tick`](Self::tick) has something to do next.
    #[inline]
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// This replica's number.
    pub fn id(&self) -> NodeId {
        self.config.id
    }

    /// What it is at the moment.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Whether it leads its term (and perhaps no longer knows better: see [`NoQuorum`](crate::Refusal::NoQuorum)).
    #[inline]
    pub fn is_leader(&self) -> bool {
        self.role == Role::Leader
    }

    /// The newest term it knows.
    #[inline]
    pub fn term(&self) -> Term {
        self.durable.term
    }

    /// The leader of that term, if known.
    pub fn leader(&self) -> Option<NodeId> {
        self.leader
    }

    /// The last committed place that it knows.
    #[inline]
    pub fn commit_index(&self) -> Index {
        self.commit
    }

    /// The last place of its log.
    pub fn last_index(&self) -> Index {
        self.durable.log.last_index()
    }

    /// The newest snapshot.
    pub fn snapshot(&self) -> Option<&Snapshot<S>> {
        self.durable.snapshot.as_ref()
    }

    /// The entries from `first` to `last`, both included, as far as the log has them.
    pub fn entries(&self, first: Index, last: Index) -> impl Iterator<Item = &Entry<C>> {
        self.durable.log.range(first, last)
    }

    /// The term whose barrier this leader has committed: fenced proposals of this term are taken.
    #[inline]
    pub fn barrier_committed(&self) -> Option<Term> {
        let passed = self.is_leader() && self.commit >= self.barrier_index;
        passed.then_some(self.durable.term)
    }

    /// A leader's view of a follower: the last place known to agree with its log, durably. `None` on
    /// a replica that does not lead, or for a number that is not another member's.
    pub fn matched_index(&self, peer: NodeId) -> Option<Index> {
        let known = self.is_leader() && peer < self.config.replicas && peer != self.config.id;
        known.then(|| self.peers[usize::from(peer)].matched)
    }

    /// What is known here about a proposal; any replica may be asked.
    pub fn outcome(&self, proposal: Proposal) -> Outcome {
        let log = &self.durable.log;
        if proposal.index <= self.commit {
            return match log.term_at(proposal.index) {
                Some(term) if term == proposal.term => Outcome::Accepted,
                Some(_) => Outcome::Superseded,
                None => Outcome::Unknown,
            };
        }
        if self.is_leader() && proposal.term == self.durable.term {
            return Outcome::Pending;
        }
        // Terms never fall along the log: after a commit of a later term its place cannot be taken.
        match log.term_at(self.commit) {
            Some(term) if term > proposal.term => Outcome::Superseded,
            _ => Outcome::Unknown,
        }
    }
}
