//! Phase two: the faults have stopped, and now the group must work again.

use super::goals::Goal;
use super::oracle::ViolationKind;
use super::trail::Key;
use super::world::World;
use crate::replica::Replica;
use crate::types::{NodeId, Time};

/// Everything must be well again after so many of the longest election timeouts.
const TIMEOUTS_TO_SETTLE: Time = 15;

impl World<'_> {
    pub(crate) fn settle(&mut self) {
        self.heal();
        self.work_with_a_dead_link();
        self.heal();
        let timeout = self.plan.config.election_timeout_max;
        let patience =
            self.plan.straggler_delay_max + TIMEOUTS_TO_SETTLE * timeout + self.catching_up();
        if self.wait_for_agreement(patience).is_none() {
            return;
        }
        // Its quorum may be older than the peace: it either hears from one now or steps down.
        self.pass(timeout);
        let Some(leader) = self.wait_for_agreement(patience) else { return };
        if self.propose(leader).is_none() && self.violation.is_none() {
            let text = format!("{leader} leads in peace and refuses a proposal");
            self.broke(ViolationKind::Liveness, text);
        }
        // Leftovers of the first phase may still be on their way.
        self.pass(self.plan.straggler_delay_max);
        let Some(leader) = self.wait_for_agreement(2 * timeout) else { return };
        self.return_quietly(leader);
        if self.violation.is_none() {
            self.check_machines();
            self.check_outcomes();
        }
    }

    /// How long the longest backlog takes if it goes one message and answer at a time, in ticks.
    fn catching_up(&self) -> Time {
        let ends = self.nodes.iter().map(|node| node.disk.state.log.last_index());
        let lag = ends.clone().max().unwrap_or(0) - ends.min().unwrap_or(0)
            + u64::from(self.plan.config.uncommitted_entries_max);
        let round = 2 * (self.plan.delay_max + self.plan.sync_delay_max);
        lag.div_ceil(u64::from(self.plan.config.append_entries_max)) * round
    }

    /// One link of the group stays dead, one way or both: there must be progress all the same.
    fn work_with_a_dead_link(&mut self) {
        let key = Key(self.plan.seed).of(0x6c69_6e6b);
        let replicas = u64::from(self.plan.config.replicas);
        let one = key.of(1).below(replicas);
        let other = (one + key.of(2).between(1, replicas - 1)) % replicas;
        let timeout = self.plan.config.election_timeout_max;
        let patience = TIMEOUTS_TO_SETTLE * timeout + self.catching_up();
        let until = self.now + patience;
        self.network.cut(one as NodeId, other as NodeId, until);
        if key.of(3).chance(500) {
            self.network.cut(other as NodeId, one as NodeId, until);
        }
        let before = self.oracle.committed.len();
        while self.violation.is_none() {
            let new = self.oracle.committed.iter().skip(before);
            if new.filter(|entry| entry.command().is_some()).count() > 3 {
                self.goals.hit(Goal::DeadLinks);
                return;
            }
            if self.now >= until {
                let text = format!("no progress in {patience} ticks, link {one}-{other} is dead");
                self.broke(ViolationKind::Liveness, text);
            }
            if let Some(leader) = self.leader().filter(|_| self.now.is_multiple_of(16)) {
                self.propose(leader);
            }
            self.step();
        }
    }

    fn pass(&mut self, ticks: Time) {
        let until = self.now + ticks;
        while self.now < until && self.violation.is_none() {
            self.step();
        }
    }

    /// Runs until all agree on a leader and have its whole log committed; breaks if it takes too long.
    fn wait_for_agreement(&mut self, patience: Time) -> Option<NodeId> {
        let until = self.now + patience;
        while self.violation.is_none() {
            if let Some(leader) = self.agreed() {
                return Some(leader);
            }
            if self.now >= until {
                let seen: Vec<_> = self
                    .ids()
                    .filter_map(|id| self.awake(id))
                    .map(|it| {
                        (it.role(), it.term(), it.leader(), it.commit_index(), it.last_index())
                    })
                    .collect();
                let text = format!("no agreement after {patience} ticks of peace: {seen:?}");
                self.broke(ViolationKind::Liveness, text);
            }
            self.step();
        }
        None
    }

    fn agreed(&self) -> Option<NodeId> {
        let leader = self.leader()?;
        let it = self.awake(leader)?;
        it.barrier_committed()?;
        let agrees = |id| {
            self.awake(id).is_some_and(|replica: &Replica<_, _>| {
                replica.leader() == Some(leader)
                    && replica.term() == it.term()
                    && replica.commit_index() == it.last_index()
            })
        };
        self.ids().all(agrees).then_some(leader)
    }

    /// A follower is cut off for many election timeouts and comes back: nobody else may notice.
    fn return_quietly(&mut self, leader: NodeId) {
        let timeout = self.plan.config.election_timeout_max;
        let term = self.awake(leader).map(Replica::term);
        let away = (leader + 1) % self.plan.config.replicas;
        self.split(1 << away, self.now + 5 * timeout);
        self.pass(5 * timeout);
        self.propose(leader);
        self.pass(2 * timeout);
        let Some(found) = self.wait_for_agreement(2 * timeout) else { return };
        if found != leader || self.awake(found).map(Replica::term) != term {
            let text = format!("{away} came back, and {leader} of term {term:?} was deposed");
            self.broke(ViolationKind::Disruption, text);
            return;
        }
        self.goals.hit(Goal::QuietReturns);
    }

    fn check_machines(&mut self) {
        let right = self.oracle.state_at(self.oracle.committed.len() as u64);
        for id in self.ids() {
            let machine = self.node(id).machine;
            if machine != right {
                let text = format!("{id} ends with {machine:?}, right is {right:?}");
                self.broke(ViolationKind::StateMachineSafety, text);
            }
        }
    }
}
