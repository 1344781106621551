//! A leader replicates, counts copies and commits (dissertation 3.5, 3.6.2, 6.2).

use crate::message::Body;
use crate::mutation::Mutation;
use crate::output::{Output, StepDown};
use crate::peer::{Flow, Peer};
use crate::replica::Replica;
use crate::types::{
    Entry, Fence, Index, NodeId, Payload, Proposal, REPLICAS_MAX, Refusal, Role, Term, Time,
};

impl<C: Clone, S: Clone> Replica<C, S> {
    pub(crate) fn become_leader(&mut self, out: &mut Output<C, S>) {
        let next = self.durable.log.last_index() + 1;
        self.role = Role::Leader;
        self.peers = [Peer::unknown(next); REPLICAS_MAX];
        self.barrier_index = next;
        self.set_leader(Some(self.config.id), out);
        out.elected = Some(self.durable.term);
        self.push(Payload::Barrier, out);
        self.heartbeat(out);
    }

    fn push(&mut self, payload: Payload<C>, out: &mut Output<C, S>) {
        let index = self.durable.log.last_index() + 1;
        out.dirty.log(index);
        self.durable.log.push(Entry { term: self.durable.term, index, payload });
    }

    /// Takes a command into the log and sends it to the followers, or refuses it and changes nothing.
    ///
    /// Taken is not accepted: see [`Replica::outcome`].
    pub fn propose(
        &mut self,
        now: Time,
        command: C,
        fence: Fence,
        out: &mut Output<C, S>,
    ) -> Result<Proposal, Refusal> {
        self.propose_all(now, std::iter::once(command), fence, out)
    }

    /// Like [`propose`](Self::propose) for several commands, which share their messages: all or none.
    /// Returns the receipt of the last one; the others have the indices just before, in order. Without
    /// any command it is the receipt of the log's last place.
    pub fn propose_all<I>(
        &mut self,
        now: Time,
        commands: I,
        fence: Fence,
        out: &mut Output<C, S>,
    ) -> Result<Proposal, Refusal>
    where
        I: IntoIterator<Item = C, IntoIter: ExactSizeIterator>,
    {
        out.clear();
        self.now = self.now.max(now);
        let commands = commands.into_iter();
        self.check_proposal(commands.len() as u64, fence)?;
        for command in commands {
            self.push(Payload::Command(command), out);
        }
        for peer in self.config.peers() {
            self.pump(peer, out);
        }
        if self.config.mutated(Mutation::AcceptWithoutQuorum) {
            self.count_copies(out);
        }
        Ok(Proposal { term: self.durable.term, index: self.durable.log.last_index() })
    }

    fn check_proposal(&self, count: u64, fence: Fence) -> Result<(), Refusal> {
        let term = self.durable.term;
        if !self.is_leader() {
            return Err(Refusal::NotLeader { term, leader: self.leader });
        }
        let (wanted, fenced) = match fence {
            Fence::None => (term, false),
            Fence::Term(wanted) => (wanted, false),
            Fence::Barrier(wanted) => (wanted, !self.config.mutated(Mutation::FenceIgnored)),
        };
        if wanted != term {
            return Err(Refusal::OtherTerm { wanted, term });
        }
        if !self.has_quorum() {
            return Err(Refusal::NoQuorum { confirmed_at: self.confirmed_at() });
        }
        if fenced && self.barrier_committed().is_none() {
            return Err(Refusal::BarrierPending { term });
        }
        let uncommitted = self.durable.log.last_index() - self.commit;
        let limit = u64::from(self.config.uncommitted_entries_max);
        if uncommitted + count > limit {
            return Err(Refusal::Backlog { uncommitted, limit });
        }
        Ok(())
    }

    /// The newest time such that a quorum (with this leader) has answered a message of this term that
    /// was sent then or later.
    pub(crate) fn acked_at(&self) -> Option<Time> {
        let mut times = [None; REPLICAS_MAX];
        for peer in self.config.peers() {
            times[usize::from(peer)] = self.peers[usize::from(peer)].acked_at;
        }
        self.quorum_of(times, Some(self.now))
    }

    /// The largest value that a quorum reaches, this replica's own value included.
    fn quorum_of<T: Ord + Copy>(&self, mut values: [T; REPLICAS_MAX], own: T) -> T {
        values[usize::from(self.config.id)] = own;
        let group = &mut values[..usize::from(self.config.replicas)];
        group.sort_unstable();
        group[usize::from(self.config.replicas) - self.config.quorum()]
    }

    /// When a quorum has last confirmed this leader, counted from the question: by answers to its
    /// messages, or by the votes that elected it.
    pub(crate) fn confirmed_at(&self) -> Time {
        self.acked_at().unwrap_or(0).max(self.campaign_at)
    }

    /// Whether a quorum has confirmed this leader within the shortest election timeout.
    pub(crate) fn has_quorum(&self) -> bool {
        self.config.mutated(Mutation::NoCheckQuorum)
            || self.now <= self.confirmed_at().saturating_add(self.config.election_timeout_min)
    }

    /// The leader's tick: steps down without a quorum, else sends to everyone.
    pub(crate) fn heartbeat(&mut self, out: &mut Output<C, S>) {
        let patience = self.confirmed_at().saturating_add(self.config.election_timeout_max);
        if self.now > patience && !self.config.mutated(Mutation::NoCheckQuorum) {
            self.become_follower(None, StepDown::NoQuorum, out);
            return;
        }
        self.deadline = self.now.saturating_add(self.config.heartbeat_interval);
        for peer in self.config.peers() {
            self.send_next(peer, true, out);
        }
    }

    /// Sends what may be sent to a follower.
    fn pump(&mut self, to: NodeId, out: &mut Output<C, S>) {
        while self.send_next(to, false, out) {}
    }

    /// Sends one message: the next entries, a snapshot, or (only if `must`) a heartbeat. Whether there
    /// may be more to send.
    fn send_next(&mut self, to: NodeId, must: bool, out: &mut Output<C, S>) -> bool {
        let peer = self.peers[usize::from(to)];
        if peer.next <= self.durable.log.base_index() {
            self.send_snapshot(to, must, out);
            return false;
        }
        let last_index = self.durable.log.last_index();
        let inflight = peer.next - 1 - peer.matched.min(peer.next - 1);
        let room = match peer.flow {
            Flow::Probe { sent } if sent && !must => return false,
            Flow::Probe { .. } | Flow::Snapshot { .. } => u64::MAX,
            Flow::Stream => u64::from(self.config.inflight_entries_max).saturating_sub(inflight),
        };
        let count = (last_index + 1)
            .saturating_sub(peer.next)
            .min(u64::from(self.config.append_entries_max))
            .min(room);
        if count == 0 && !must {
            return false;
        }
        let next = peer.next + count;
        self.send_entries(to, peer.next, count, out);
        let peer = &mut self.peers[usize::from(to)];
        if peer.flow == Flow::Stream {
            peer.next = next;
        } else {
            peer.flow = Flow::Probe { sent: true };
        }
        next <= last_index
    }

    fn send_entries(&mut self, to: NodeId, first: Index, count: u64, out: &mut Output<C, S>) {
        let log = &self.durable.log;
        let prev_index = first - 1;
        let prev_term = log.term_at(prev_index).unwrap_or(0);
        let entries = if count == 0 {
            Vec::new()
        } else {
            log.range(first, prev_index + count).cloned().collect()
        };
        let sent_at = self.now;
        let body = Body::Append { prev_index, prev_term, entries, commit: self.commit, sent_at };
        self.send(to, body, out);
    }

    fn send_snapshot(&mut self, to: NodeId, must: bool, out: &mut Output<C, S>) {
        let retry = self.config.snapshot_retry;
        if let Flow::Snapshot { sent_at } = self.peers[usize::from(to)].flow
            && self.now < sent_at.saturating_add(retry)
        {
            if must {
                // The place 0 agrees with every log: a pure sign of life.
                self.send_heartbeat_from_zero(to, out);
            }
            return;
        }
        let Some(snapshot) = self.durable.snapshot.clone() else {
            unreachable!("a log with a base has a snapshot");
        };
        self.peers[usize::from(to)].flow = Flow::Snapshot { sent_at: self.now };
        self.send(to, Body::Install { snapshot, sent_at: self.now }, out);
    }

    fn send_heartbeat_from_zero(&mut self, to: NodeId, out: &mut Output<C, S>) {
        let sent_at = self.now;
        let trusting = self.config.mutated(Mutation::CommitBeyondMatch);
        let commit = if trusting { self.commit } else { 0 };
        let body =
            Body::Append { prev_index: 0, prev_term: 0, entries: Vec::new(), commit, sent_at };
        self.send(to, body, out);
    }

    /// A follower has answered; whether this replica leads and may use the answer.
    fn note_answer(&mut self, from: NodeId, sent_at: Time) -> bool {
        if !self.is_leader() {
            return false;
        }
        let at = if self.config.mutated(Mutation::LeaseFromArrival) { self.now } else { sent_at };
        let peer = &mut self.peers[usize::from(from)];
        peer.acked_at = peer.acked_at.max(Some(at));
        true
    }

    pub(crate) fn lead_appended(
        &mut self,
        from: NodeId,
        matched: Index,
        sent_at: Time,
        out: &mut Output<C, S>,
    ) {
        if !self.note_answer(from, sent_at) {
            return;
        }
        let base_index = self.durable.log.base_index();
        let peer = &mut self.peers[usize::from(from)];
        if matched < peer.matched {
            return;
        }
        let advanced = matched > peer.matched;
        peer.matched = matched;
        peer.next = peer.next.max(matched + 1);
        match peer.flow {
            Flow::Snapshot { .. } if peer.next > base_index => peer.flow = Flow::Stream,
            // A newer snapshot is needed already.
            Flow::Snapshot { .. } if advanced => peer.flow = Flow::Probe { sent: false },
            Flow::Probe { .. } if matched + 1 >= peer.next => peer.flow = Flow::Stream,
            _ => {}
        }
        if advanced {
            self.count_copies(out);
            self.tell_commit(from, out);
        }
        self.pump(from, out);
    }

    /// Commits what a quorum has, but only from the own term on: entries before it follow (3.6.2).
    fn count_copies(&mut self, out: &mut Output<C, S>) {
        let mut places = [0; REPLICAS_MAX];
        for peer in self.config.peers() {
            places[usize::from(peer)] = self.peers[usize::from(peer)].matched;
        }
        let own = self.durable.log.last_index();
        let place = if self.config.mutated(Mutation::AcceptWithoutQuorum) {
            own
        } else {
            self.quorum_of(places, own)
        };
        let own_term = place >= self.barrier_index;
        if place > self.commit && (own_term || self.config.mutated(Mutation::CommitEarlierTerm)) {
            self.advance_commit(place, out);
            for peer in self.config.peers() {
                self.tell_commit(peer, out);
            }
        }
    }

    /// Tells a follower at once what is committed, as far as its log agrees.
    fn tell_commit(&mut self, to: NodeId, out: &mut Output<C, S>) {
        let peer = &mut self.peers[usize::from(to)];
        let index = self.commit.min(peer.matched);
        if !self.config.eager_commit || index <= peer.told {
            return;
        }
        peer.told = index;
        if let Some(entry_term) = self.durable.log.term_at(index) {
            self.send(to, Body::Commit { index, entry_term }, out);
        }
    }

    pub(crate) fn lead_mismatch(
        &mut self,
        from: NodeId,
        prev_index: Index,
        (hint_index, hint_term): (Index, Term),
        sent_at: Time,
        out: &mut Output<C, S>,
    ) {
        if !self.note_answer(from, sent_at) {
            return;
        }
        let peer = self.peers[usize::from(from)];
        let stale = match peer.flow {
            Flow::Probe { .. } => prev_index + 1 != peer.next,
            Flow::Stream => prev_index >= peer.next,
            Flow::Snapshot { .. } => true,
        };
        if stale || prev_index <= peer.matched {
            return;
        }
        let log = &self.durable.log;
        let agreed = log.last_with_term_up_to(hint_term, hint_index).min(prev_index - 1);
        let peer = &mut self.peers[usize::from(from)];
        peer.next = agreed.max(peer.matched) + 1;
        peer.flow = Flow::Probe { sent: false };
        self.pump(from, out);
    }
}
