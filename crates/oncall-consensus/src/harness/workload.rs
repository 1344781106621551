//! Clients: proposals, reads and snapshots, and what they were told.

use super::goals::Goal;
use super::oracle::ViolationKind;
use super::plan::SKEW_PERMILLE;
use super::world::{Command, World};
use crate::read::{ReadState, ReadTicket};
use crate::replica::Replica;
use crate::types::{Fence, NodeId, Outcome, Proposal, Refusal, Time};

/// What clients remember.
#[derive(Debug, Default)]
pub(crate) struct Workload {
    next_command: Command,
    /// Taken, and nothing heard since.
    open: Vec<(Command, Proposal)>,
    accepted: Vec<(Command, Proposal)>,
    superseded: Vec<Command>,
    refused: Vec<Command>,
    /// Reads under way, with the number of entries that were committed when they began.
    tickets: Vec<(NodeId, ReadTicket, usize)>,
}

impl World<'_> {
    /// What clients do in one true tick.
    pub(crate) fn work(&mut self) {
        let plan = self.plan;
        if !self.network.calm
            && plan.propose_every > 0
            && self.now.is_multiple_of(plan.propose_every)
        {
            self.burst(1);
        }
        for id in self.ids() {
            self.take_snapshot(id);
            self.read(id);
            self.check_leader(id);
        }
        if self.now.is_multiple_of(32) {
            self.ask_outcomes();
        }
    }

    /// Proposals at everyone who claims to lead, and now and then at someone who may not.
    pub(crate) fn burst(&mut self, count: u32) {
        for n in 0..count {
            let other = (n == 0).then_some((self.workload.next_command % 7) as NodeId);
            for id in self.ids() {
                let leads = self.awake(id).map(Replica::is_leader);
                if leads == Some(true) || (leads.is_some() && other == Some(id)) {
                    self.propose(id);
                }
            }
        }
    }

    /// One proposal; fences of all kinds take turns.
    pub(crate) fn propose(&mut self, id: NodeId) -> Option<Proposal> {
        let command = self.workload.next_command;
        self.workload.next_command += 1;
        let term = self.awake(id)?.term();
        let fence = match command % 5 {
            0 | 1 => Fence::None,
            2 => Fence::Term(term),
            3 => Fence::Barrier(term),
            _ if self.network.calm => Fence::None,
            _ => Fence::Term(term.saturating_sub(1)),
        };
        let result =
            self.input(id, |replica, now, out| replica.propose(now, command, fence, out))?;
        match result {
            Ok(proposal) => {
                self.taken(id, command, proposal, fence);
                Some(proposal)
            }
            Err(refusal) => {
                self.goals.hit(match refusal {
                    Refusal::NotLeader { .. } => Goal::RefusedNotLeader,
                    Refusal::NoQuorum { .. } => Goal::RefusedNoQuorum,
                    Refusal::OtherTerm { .. } => Goal::RefusedOtherTerm,
                    Refusal::BarrierPending { .. } => Goal::RefusedBarrier,
                    Refusal::Backlog { .. } => Goal::RefusedBacklog,
                });
                self.workload.refused.push(command);
                None
            }
        }
    }

    fn taken(&mut self, id: NodeId, command: Command, proposal: Proposal, fence: Fence) {
        self.workload.open.push((command, proposal));
        let (fenced, wanted) = match fence {
            Fence::None => (false, proposal.term),
            Fence::Term(term) => (false, term),
            Fence::Barrier(term) => (true, term),
        };
        if fenced {
            self.goals.hit(Goal::FencedTaken);
        }
        if wanted != proposal.term || (fenced && !self.oracle.barrier_is_committed(wanted)) {
            self.broke(ViolationKind::Fence, format!("{id} took {proposal:?} with {fence:?}"));
        }
        let silence = self.silence(id);
        if silence > true_ticks(self.plan.config.election_timeout_min) {
            let text = format!("{id} took {proposal:?}, no quorum answered for {silence} ticks");
            self.broke(ViolationKind::Quorum, text);
        }
    }

    /// For how long no quorum has answered a leader, in true ticks.
    fn silence(&self, id: NodeId) -> Time {
        let node = self.node(id);
        let mut times: Vec<Time> = self
            .ids()
            .filter(|&peer| peer != id)
            .map(|peer| node.answered_at[usize::from(peer)])
            .collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        self.now - times[self.plan.config.quorum() - 2].max(node.leading_since)
    }

    /// A leader that no quorum answers has stepped down in time.
    fn check_leader(&mut self, id: NodeId) {
        if !self.awake(id).is_some_and(Replica::is_leader) {
            return;
        }
        let config = &self.plan.config;
        let patience = true_ticks(config.election_timeout_max + config.heartbeat_interval)
            + 2 * self.plan.tick_every;
        let awake_for = self.now - self.node(id).paused_until.min(self.now);
        let silence = self.silence(id).min(awake_for + self.plan.config.election_timeout_max);
        if silence > patience {
            let text = format!("{id} still leads, no quorum answered for {silence} ticks");
            self.broke(ViolationKind::Quorum, text);
        }
    }

    fn take_snapshot(&mut self, id: NodeId) {
        let Some(replica) = self.awake(id) else { return };
        let machine = self.node(id).machine;
        let snapshot_index = replica.snapshot().map_or(0, |snapshot| snapshot.index);
        let every = self.plan.compact_every;
        if every == 0 || machine.index < snapshot_index + every {
            return;
        }
        let keep = self.plan.compact_keep;
        let result =
            self.input(id, |replica, _, out| replica.compact(machine.index, machine, keep, out));
        match result {
            Some(Err(error)) => {
                self.broke(ViolationKind::Malformed, format!("{id} compacts: {error}"));
            }
            _ => self.goals.hit(Goal::Compactions),
        }
    }

    /// Both kinds of read, at whoever claims to lead.
    fn read(&mut self, id: NodeId) {
        let known = self.oracle.committed.len();
        if self.awake(id).is_some_and(Replica::is_leader) {
            let begin = self.now.is_multiple_of(16);
            let reads = self.input(id, |replica, now, out| {
                out.clear();
                let ticket = if begin { replica.begin_read(now).ok() } else { None };
                (replica.lease_read(now), ticket)
            });
            let Some((lease, ticket)) = reads else { return };
            match lease {
                Ok(index) if (index as usize) < known => {
                    let text = format!("lease read at {id} saw {index} of {known} entries");
                    self.broke(ViolationKind::StaleRead, text);
                }
                Ok(_) => self.goals.hit(Goal::LeaseReads),
                Err(_) => self.goals.hit(Goal::LeaseRefused),
            }
            self.workload.tickets.extend(ticket.map(|ticket| (id, ticket, known)));
        }
        self.poll_tickets(id);
    }

    fn poll_tickets(&mut self, id: NodeId) {
        let mut tickets = std::mem::take(&mut self.workload.tickets);
        tickets.retain(|&(at, ticket, known)| {
            if at != id {
                return true;
            }
            // A crash takes the waiting reads with it.
            let state = self.node(id).replica.as_ref().map(|replica| replica.read_state(ticket));
            match state {
                Some(ReadState::Pending) => true,
                Some(ReadState::Ready(index)) => {
                    self.goals.hit(Goal::TicketsReady);
                    if (index as usize) < known {
                        let text = format!("read at {id} saw {index} of {known} entries");
                        self.broke(ViolationKind::StaleRead, text);
                    }
                    false
                }
                Some(ReadState::Lost) | None => {
                    self.goals.hit(Goal::TicketsLost);
                    false
                }
            }
        });
        self.workload.tickets = tickets;
    }

    /// Asks every replica about every open proposal; whoever knows must be right.
    pub(crate) fn ask_outcomes(&mut self) {
        let open = std::mem::take(&mut self.workload.open);
        for (command, proposal) in open {
            let told: Vec<Outcome> = self
                .ids()
                .filter_map(|id| self.awake(id))
                .map(|replica| replica.outcome(proposal))
                .collect();
            if told.contains(&Outcome::Accepted) {
                self.workload.accepted.push((command, proposal));
            }
            if told.contains(&Outcome::Superseded) {
                self.workload.superseded.push(command);
            }
            if !told.contains(&Outcome::Accepted) && !told.contains(&Outcome::Superseded) {
                self.workload.open.push((command, proposal));
            }
        }
    }

    /// At the end: what was told is what happened.
    pub(crate) fn check_outcomes(&mut self) {
        self.ask_outcomes();
        let Workload { open, accepted, superseded, refused, .. } =
            std::mem::take(&mut self.workload);
        self.goals.add(Goal::Accepted, accepted.len() as u64);
        self.goals.add(Goal::Superseded, superseded.len() as u64);
        self.goals.add(Goal::Unknown, open.len() as u64);
        for (command, proposal) in accepted {
            let entry = self.oracle.committed.get(proposal.index as usize - 1);
            let right = entry.is_some_and(|entry| {
                entry.command() == Some(&command) && entry.term == proposal.term
            });
            if !right {
                let text = format!("{command} was accepted as {proposal:?}, there is {entry:?}");
                self.broke(ViolationKind::Outcome, text);
            }
        }
        let effective: Vec<Command> =
            self.oracle.committed.iter().filter_map(|entry| entry.command().copied()).collect();
        if let Some(command) = effective.iter().find(|&command| superseded.contains(command)) {
            self.broke(ViolationKind::Outcome, format!("{command} was superseded and took effect"));
        }
        let logged = self.oracle.logged();
        if let Some(command) = refused.iter().find(|command| logged.contains(command)) {
            self.broke(ViolationKind::Outcome, format!("{command} was refused and is in a log"));
        }
    }
}

/// The longest that a local duration can take in true ticks.
fn true_ticks(local: Time) -> Time {
    local * 1_000 / (1_000 - SKEW_PERMILLE) + 2
}
