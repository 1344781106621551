//! One member of a group: its state, its construction, and what can be asked of it.

use serde::{Deserialize, Serialize};

use crate::config::{Config, ConfigError};
use crate::durable::{Durable, Snapshot};
use crate::error::{CompactError, MessageError, RestartError};
use crate::message::{Body, Message};
use crate::mutation::Mutation;
use crate::output::{Leadership, Output, StepDown};
use crate::peer::Peer;
use crate::types::{Entry, Index, NodeId, REPLICAS_MAX, Role, Term, Time};

/// One member of a group, generic over the command `C` and the snapshot `S` of the state machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Replica<C, S> {
    pub(crate) config: Config,
    pub(crate) durable: Durable<C, S>,
    /// Newest time that an input has brought.
    pub(crate) now: Time,
    pub(crate) role: Role,
    pub(crate) leader: Option<NodeId>,
    pub(crate) commit: Index,
    /// Until `election_timeout_min` after this, no other leader is helped.
    pub(crate) heard_at: Option<Time>,
    /// When `tick` has something to do.
    pub(crate) deadline: Time,
    /// Elections tried since the start: varies the timeouts within a term.
    pub(crate) attempt: u64,
    /// Who has said yes, one bit each.
    pub(crate) ballot: u8,
    /// When the (pre-)votes were asked for.
    pub(crate) campaign_at: Time,
    /// Place of the barrier of the term that this replica leads; 0 otherwise.
    pub(crate) barrier_index: Index,
    pub(crate) peers: [Peer; REPLICAS_MAX],
}

impl<C: Clone, S: Clone> Replica<C, S> {
    /// A replica with an empty log.
    pub fn new(config: Config, now: Time) -> Result<Self, ConfigError> {
        match Self::restart(config, Durable::default(), now) {
            Ok(replica) => Ok(replica),
            Err(RestartError::Config(error)) => Err(error),
            Err(RestartError::Durable(error)) => unreachable!("an empty state is sound: {error}"),
        }
    }

    /// A replica that comes back with what it had made durable. Everything up to the snapshot counts
    /// as committed; later entries are reported once a leader confirms them.
    pub fn restart(
        config: Config,
        mut durable: Durable<C, S>,
        now: Time,
    ) -> Result<Self, RestartError> {
        config.check()?;
        if config.mutated(Mutation::VoteNotPersisted) {
            durable.voted_for = None;
        }
        if config.mutated(Mutation::TermNotPersisted) {
            durable.term = durable.log.last_term();
            durable.voted_for = None;
        }
        durable.check()?;
        // It may have promised a leader to wait, and cannot remember.
        let promised = durable.term > 0 && !config.mutated(Mutation::RestartForgetsLease);
        Ok(Self {
            now,
            role: Role::Follower,
            leader: None,
            commit: durable.snapshot_index(),
            heard_at: promised.then_some(now),
            deadline: now.saturating_add(config.election_timeout(durable.term, 0)),
            attempt: 0,
            ballot: 0,
            campaign_at: now,
            barrier_index: 0,
            peers: [Peer::unknown(1); REPLICAS_MAX],
            config,
            durable,
        })
    }

    /// The passing of time. Costs one comparison before [`deadline`](Self::deadline).
    #[inline]
    pub fn tick(&mut self, now: Time, out: &mut Output<C, S>) {
        out.clear();
        self.now = self.now.max(now);
        if self.now >= self.deadline {
            self.timeout(out);
        }
    }

    fn timeout(&mut self, out: &mut Output<C, S>) {
        match self.role {
            Role::Leader => self.heartbeat(out),
            Role::Follower | Role::PreCandidate | Role::Candidate => self.pre_campaign(out),
        }
    }

    /// A message from another member. Old, doubled and overtaken messages are fine; one that cannot
    /// have come from a member is an error and changes nothing.
    pub fn receive(
        &mut self,
        now: Time,
        message: Message<C, S>,
        out: &mut Output<C, S>,
    ) -> Result<(), MessageError> {
        out.clear();
        self.check_message(&message)?;
        self.now = self.now.max(now);
        let Message { from, term, body, .. } = message;
        // A question about an election must not disturb a group that has a leader (dissertation 4.2.3).
        if let Body::PreVote { attempt, last_index, last_term } = body {
            self.answer_pre_vote(from, (term, attempt), last_index, last_term, out);
            return Ok(());
        }
        if matches!(body, Body::Vote { .. }) && self.is_loyal() {
            return Ok(());
        }
        if term > self.durable.term {
            self.adopt_term(term, out);
        }
        // A pre-vote is granted by replicas that are behind, too: their answers carry an older term.
        let old = term < self.durable.term && !matches!(body, Body::PreVoteReply { .. });
        if old && !self.takes_stale(&body) {
            self.answer_stale(from, &body, out);
            return Ok(());
        }
        match body {
            Body::PreVote { .. } => {}
            Body::PreVoteReply { asked_in, attempt, granted } => {
                let asked = (asked_in, attempt) == (self.durable.term, self.attempt);
                self.count_pre_vote(from, asked && granted, out);
            }
            Body::Vote { last_index, last_term } => {
                self.answer_vote(from, last_index, last_term, out);
            }
            Body::VoteReply { granted } => self.count_vote(from, granted, out),
            Body::Append { prev_index, prev_term, entries, commit, sent_at } => {
                self.heard_leader(from, out);
                self.follow_append(from, (prev_index, prev_term), entries, commit, sent_at, out);
            }
            Body::Install { snapshot, sent_at } => {
                self.heard_leader(from, out);
                self.follow_install(from, snapshot, sent_at, out);
            }
            Body::Commit { index, entry_term } => {
                self.heard_leader(from, out);
                if self.durable.log.term_at(index) == Some(entry_term) {
                    self.advance_commit(index, out);
                }
            }
            Body::Appended { matched, sent_at } => self.lead_appended(from, matched, sent_at, out),
            Body::Mismatch { prev_index, hint_index, hint_term, sent_at } => {
                self.lead_mismatch(from, prev_index, (hint_index, hint_term), sent_at, out);
            }
        }
        Ok(())
    }

    /// Nothing of an earlier term counts, except by a fault put in on purpose.
    fn takes_stale(&self, body: &Body<C, S>) -> bool {
        let fault = match body {
            Body::Append { .. } | Body::Commit { .. } if self.role == Role::Follower => {
                Mutation::StaleLeaderAccepted
            }
            Body::VoteReply { .. } => Mutation::StaleVoteCounted,
            _ => return false,
        };
        self.config.mutated(fault)
    }

    fn check_message(&self, message: &Message<C, S>) -> Result<(), MessageError> {
        let Config { id, replicas, .. } = self.config;
        let &Message { from, to, term, ref body } = message;
        if to != id {
            return Err(MessageError::To { to, id });
        }
        if from >= replicas || from == id {
            return Err(MessageError::From { from, replicas });
        }
        let binding = matches!(
            body,
            Body::Append { .. } | Body::Install { .. } | Body::Commit { .. } | Body::Vote { .. }
        );
        if binding && term == 0 {
            return Err(MessageError::Term);
        }
        match body {
            &Body::Append { prev_index, prev_term, ref entries, .. } => {
                self.check_entries((prev_index, prev_term), entries, term)?;
            }
            Body::Install { snapshot, .. } if snapshot.index == 0 || snapshot.term > term => {
                let (index, entry_term) = (snapshot.index, snapshot.term);
                return Err(MessageError::Snapshot { index, entry_term, term });
            }
            _ => {}
        }
        Ok(())
    }

    fn check_entries(
        &self,
        (prev_index, prev_term): (Index, Term),
        entries: &[Entry<C>],
        term: Term,
    ) -> Result<(), MessageError> {
        let mut last = (prev_index, prev_term);
        let fit = entries.iter().all(|entry| {
            let fits = entry.index == last.0 + 1 && entry.term >= last.1.max(1);
            last = (entry.index, entry.term);
            fits
        });
        if !fit || last.1 > term {
            return Err(MessageError::Entries { prev_index });
        }
        // A leader whose term is over may know less than this replica; its entries are not taken anyway.
        if term < self.durable.term {
            return Ok(());
        }
        let at = self.commit.checked_sub(prev_index + 1).and_then(|n| entries.get(n as usize));
        match (at.map(|entry| entry.term), self.durable.log.term_at(self.commit)) {
            (Some(entry_term), Some(term)) if entry_term != term => {
                Err(MessageError::Committed { index: self.commit, entry_term, term })
            }
            _ => Ok(()),
        }
    }

    /// Replaces the entries up to `index` by a snapshot of the state machine at that index, and keeps
    /// the last `keep` of them in the log for followers that are only a little behind.
    pub fn compact(
        &mut self,
        index: Index,
        state: S,
        keep: u64,
        out: &mut Output<C, S>,
    ) -> Result<(), CompactError> {
        out.clear();
        let snapshot_index = self.durable.snapshot_index();
        if index > self.commit {
            return Err(CompactError::NotCommitted { index, commit: self.commit });
        }
        if index <= snapshot_index {
            return Err(CompactError::NotNewer { index, snapshot_index });
        }
        let log = &mut self.durable.log;
        let (Some(term), base) = (log.term_at(index), index.saturating_sub(keep)) else {
            unreachable!("places after the snapshot are in the log");
        };
        if let Some(base_term) = log.term_at(base) {
            log.compact(base, base_term);
        }
        if self.config.mutated(Mutation::CompactionLosesTail) && self.role != Role::Leader {
            log.truncate_from(index + 1);
            out.dirty.log(index + 1);
        }
        self.durable.snapshot = Some(Snapshot { index, term, state });
        out.dirty.snapshot = true;
        Ok(())
    }

    /// Moves the commit index forward and reports the places.
    pub(crate) fn advance_commit(&mut self, to: Index, out: &mut Output<C, S>) {
        let to = to.min(self.durable.log.last_index());
        if to <= self.commit {
            return;
        }
        let first = out.committed.map_or(self.commit + 1, |(first, _)| first);
        if self.commit < self.barrier_index && self.barrier_index <= to && self.is_leader() {
            out.barrier = Some(self.durable.term);
        }
        self.commit = to;
        out.committed = Some((first, to));
    }

    /// Goes to a newer term as a follower of nobody.
    pub(crate) fn adopt_term(&mut self, term: Term, out: &mut Output<C, S>) {
        self.durable.term = term;
        self.durable.voted_for = None;
        out.dirty.vote = true;
        self.become_follower(None, StepDown::NewerTerm, out);
        self.report_leadership(out);
    }

    /// Becomes a follower in the current term.
    pub(crate) fn become_follower(
        &mut self,
        leader: Option<NodeId>,
        why: StepDown,
        out: &mut Output<C, S>,
    ) {
        if self.role == Role::Leader {
            out.stepped_down = Some(why);
            self.barrier_index = 0;
            self.rest(out);
        }
        self.role = Role::Follower;
        self.set_leader(leader, out);
    }

    /// Waits a full election timeout from now.
    pub(crate) fn rest(&mut self, _: &mut Output<C, S>) {
        let wait = self.config.election_timeout(self.durable.term, self.attempt);
        self.deadline = self.now.saturating_add(wait);
    }

    pub(crate) fn set_leader(&mut self, leader: Option<NodeId>, out: &mut Output<C, S>) {
        if self.leader != leader {
            self.leader = leader;
            self.report_leadership(out);
        }
    }

    fn report_leadership(&self, out: &mut Output<C, S>) {
        out.leadership = Some(Leadership { term: self.durable.term, leader: self.leader });
    }

    pub(crate) fn send(&self, to: NodeId, body: Body<C, S>, out: &mut Output<C, S>) {
        out.messages.push(Message { from: self.config.id, to, term: self.durable.term, body });
    }
}
