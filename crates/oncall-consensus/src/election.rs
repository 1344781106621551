//! Elections: pre-vote, vote, and who may disturb whom (dissertation 3.4, 4.2.3, 9.6).

use crate::message::Body;
use crate::mutation::Mutation;
use crate::output::{Output, StepDown};
use crate::replica::Replica;
use crate::types::{Index, NodeId, Role, Term, Time};

impl<C: Clone, S: Clone> Replica<C, S> {
    /// Tries an election now instead of at the deadline, unless this replica leads or has promised a
    /// leader to wait: its own vote would break the promise, and with it the leader's lease. It still
    /// asks first (pre-vote), so it does nothing to a group whose leader is well.
    pub fn campaign(&mut self, now: Time, out: &mut Output<C, S>) {
        out.clear();
        self.now = self.now.max(now);
        let promised = self.is_loyal() && !self.config.mutated(Mutation::CampaignDespitePromise);
        if !self.is_leader() && !promised {
            self.pre_campaign(out);
        }
    }

    /// Asks whether an election could be won; changes nothing durable.
    pub(crate) fn pre_campaign(&mut self, out: &mut Output<C, S>) {
        if self.config.mutated(Mutation::NoPreVote) {
            self.run_for_leader(out);
            return;
        }
        self.role = Role::PreCandidate;
        self.begin_ballot(out);
        let (last_index, last_term) = self.last();
        for peer in self.config.peers() {
            self.send(peer, Body::PreVote { attempt: self.attempt, last_index, last_term }, out);
        }
    }

    /// The election itself: a new term, and its own vote.
    pub(crate) fn run_for_leader(&mut self, out: &mut Output<C, S>) {
        self.durable.term += 1;
        self.durable.voted_for = Some(self.config.id);
        out.dirty.vote = true;
        self.role = Role::Candidate;
        self.begin_ballot(out);
        let (last_index, last_term) = self.last();
        for peer in self.config.peers() {
            self.send(peer, Body::Vote { last_index, last_term }, out);
        }
    }

    fn begin_ballot(&mut self, out: &mut Output<C, S>) {
        self.set_leader(None, out);
        self.attempt += 1;
        self.ballot = 1 << self.config.id;
        self.campaign_at = self.now;
        self.rest(out);
    }

    fn last(&self) -> (Index, Term) {
        (self.durable.log.last_index(), self.durable.log.last_term())
    }

    /// Whether it has a leader that it may not desert: it heard from it less than the shortest
    /// election timeout ago, or leads and has a quorum itself.
    pub(crate) fn is_loyal(&self) -> bool {
        if self.config.mutated(Mutation::VoteDespiteLeader) {
            return false;
        }
        match self.role {
            Role::Leader => self.has_quorum(),
            _ => self.heard_at.is_some_and(|heard_at| {
                self.now < heard_at.saturating_add(self.config.election_timeout_min)
            }),
        }
    }

    fn would_follow(&self, last_index: Index, last_term: Term) -> bool {
        self.durable.log.is_covered_by(last_index, last_term)
            || self.config.mutated(Mutation::VoteWithoutLogCheck)
    }

    pub(crate) fn answer_pre_vote(
        &mut self,
        from: NodeId,
        (asked_in, attempt): (Term, u64),
        last_index: Index,
        last_term: Term,
        out: &mut Output<C, S>,
    ) {
        let granted = !self.is_loyal()
            && asked_in >= self.durable.term
            && self.would_follow(last_index, last_term);
        self.send(from, Body::PreVoteReply { asked_in, attempt, granted }, out);
    }

    pub(crate) fn count_pre_vote(&mut self, from: NodeId, granted: bool, out: &mut Output<C, S>) {
        if self.role == Role::PreCandidate && granted && self.fills_ballot(from) {
            self.run_for_leader(out);
        }
    }

    pub(crate) fn answer_vote(
        &mut self,
        from: NodeId,
        last_index: Index,
        last_term: Term,
        out: &mut Output<C, S>,
    ) {
        let free = self.durable.voted_for.is_none_or(|voted_for| voted_for == from);
        let granted = free && self.would_follow(last_index, last_term);
        if granted {
            self.role = Role::Follower;
            self.durable.voted_for = Some(from);
            out.dirty.vote = true;
            self.rest(out);
        }
        self.send(from, Body::VoteReply { granted }, out);
    }

    pub(crate) fn count_vote(&mut self, from: NodeId, granted: bool, out: &mut Output<C, S>) {
        if self.role == Role::Candidate && granted && self.fills_ballot(from) {
            self.become_leader(out);
        }
    }

    /// Adds a yes; whether that makes a majority.
    fn fills_ballot(&mut self, from: NodeId) -> bool {
        self.ballot |= 1 << from;
        self.ballot.count_ones() as usize >= self.config.quorum()
    }

    /// A message of the current term's leader has arrived.
    pub(crate) fn heard_leader(&mut self, from: NodeId, out: &mut Output<C, S>) {
        if self.role != Role::Follower {
            self.become_follower(Some(from), StepDown::NewerTerm, out);
        }
        self.set_leader(Some(from), out);
        self.heard_at = Some(self.now);
        self.rest(out);
    }

    /// An answer to a message of an earlier term, where its sender must learn of the newer one.
    pub(crate) fn answer_stale(&mut self, from: NodeId, body: &Body<C, S>, out: &mut Output<C, S>) {
        let answer = match *body {
            Body::Append { sent_at, .. } | Body::Install { sent_at, .. } => {
                Body::Appended { matched: 0, sent_at }
            }
            Body::Vote { .. } => Body::VoteReply { granted: false },
            _ => return,
        };
        self.send(from, answer, out);
    }
}
