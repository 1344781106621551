//! Looks at everything that comes of an input.

use super::goals::Goal;
use super::oracle::{ViolationKind, applied};
use super::trail::Key;
use super::world::{Chain, Command, Letter, World};
use crate::mutation::Mutation;
use crate::output::{Output, StepDown};
use crate::types::{Index, NodeId, Term};

/// A replica before an input.
#[derive(Clone, Copy)]
pub(crate) struct Before {
    pub(crate) term: Term,
    pub(crate) commit: Index,
    pub(crate) last_index: Index,
    pub(crate) leads: bool,
}

impl World<'_> {
    pub(crate) fn absorb(&mut self, id: NodeId, before: Before, out: &mut Output<Command, Chain>) {
        let idle = out.messages.is_empty() && out.dirty.is_empty() && out.committed.is_none();
        if idle && out.leadership.is_none() && out.stepped_down.is_none() {
            return;
        }
        self.inputs += 1;
        self.trail.add(&(self.now, id, out.dirty, out.committed, out.installed, out.leadership));
        self.trail.add(&out.messages);
        self.count(out);
        self.check_log(id, before, out);
        self.apply(id, out);
        if out.elected.is_some() {
            self.note_election(id);
        }
        let key = Key(self.plan.seed).of(0x7379_6e63).of(u64::from(id));
        let letters: Vec<Letter> = out.messages.drain(..).collect();
        let (now, delay_max) = (self.now, self.plan.sync_delay_max);
        let early = self.config(id).mutated(Mutation::AckBeforePersist);
        let node = &mut self.nodes[usize::from(id)];
        let Some(replica) = &node.replica else { return };
        let (held, early) = if early { (Vec::new(), letters) } else { (letters, Vec::new()) };
        node.disk.write(now, (key, delay_max), replica.durable(), out.dirty, held);
        self.post(early);
        self.sync(id);
        if out.committed.is_some() {
            self.check_durability();
        }
    }

    fn count(&mut self, out: &Output<Command, Chain>) {
        let claims = self.nodes.iter().filter_map(|node| node.replica.as_ref());
        if claims.filter(|replica| replica.is_leader()).count() > 1 {
            self.goals.hit(Goal::TwoClaimToLead);
        }
        match out.stepped_down {
            Some(StepDown::NewerTerm) => self.goals.hit(Goal::StoodDownForTerm),
            Some(StepDown::NoQuorum) => self.goals.hit(Goal::StoodDownForQuorum),
            None => {}
        }
        self.goals.add(Goal::Truncations, out.truncated.is_some().into());
        self.goals.add(Goal::Installs, out.installed.is_some().into());
    }

    fn check_log(&mut self, id: NodeId, before: Before, out: &Output<Command, Chain>) {
        let Some(replica) = &self.nodes[usize::from(id)].replica else { return };
        if out.installed.is_some() && before.last_index > before.commit {
            self.goals.hit(Goal::InstallsOverEntries);
        }
        let led_on = before.leads && replica.is_leader() && replica.term() == before.term;
        let mut result = Ok(());
        if let Some(from) = out.dirty.log_from {
            if from <= before.commit {
                let text = format!("{id} wrote from {from}, committed was {}", before.commit);
                result = Err((ViolationKind::CommittedImmutable, text));
            } else if led_on && from <= before.last_index {
                let text = format!("{id} leads and wrote from {from}, had {}", before.last_index);
                result = Err((ViolationKind::LeaderAppendOnly, text));
            } else {
                result = self.oracle.wrote(id, replica.durable(), from);
            }
        }
        if replica.commit_index() < before.commit || replica.term() < before.term {
            let text = format!("{id}: the commit index or the term fell");
            result = Err((ViolationKind::CommittedImmutable, text));
        }
        self.check(result);
    }

    fn apply(&mut self, id: NodeId, out: &Output<Command, Chain>) {
        let node = &mut self.nodes[usize::from(id)];
        let Some(replica) = &node.replica else { return };
        if let Some(index) = out.installed {
            let state = replica.snapshot().map_or(Chain::default(), |found| found.state);
            let (known, right) = (self.oracle.committed.len(), self.oracle.state_at(index));
            node.machine = state;
            if index as usize > known || state != right {
                let text =
                    format!("{id} installs {state:?}, {known} committed, right is {right:?}");
                self.broke(ViolationKind::StateMachineSafety, text);
                return;
            }
        }
        let Some((first, last)) = out.committed else { return };
        let node = &mut self.nodes[usize::from(id)];
        let Some(replica) = &node.replica else { return };
        let mut result = Ok(());
        for entry in replica.entries(first, last) {
            if entry.index != node.machine.index + 1 {
                let text = format!("{id} reports {entry:?} after {}", node.machine.index);
                result = Err((ViolationKind::StateMachineSafety, text));
                break;
            }
            if let Err(text) = self.oracle.commits(id, replica.term(), entry) {
                result = Err((ViolationKind::StateMachineSafety, text));
                break;
            }
            node.machine = applied(node.machine, entry);
        }
        if result.is_ok() && node.machine.index != last {
            let text = format!("{id} reports up to {last}, has {}", node.machine.index);
            result = Err((ViolationKind::StateMachineSafety, text));
        }
        self.check(result);
    }

    fn note_election(&mut self, id: NodeId) {
        self.goals.hit(Goal::Elections);
        let count = self.goals.counts[Goal::Elections as usize];
        match self.plan.strike(id, count, self.now).filter(|_| !self.network.calm) {
            Some(event) if event.at == self.now => self.happen(event.action),
            later => self.strikes.extend(later),
        }
        if self.last_leader.is_some_and(|last| last != id) {
            self.goals.hit(Goal::LeaderChanges);
        }
        self.last_leader = Some(id);
        let now = self.now;
        let node = self.node_mut(id);
        node.leading_since = now;
        let Some(replica) = &self.nodes[usize::from(id)].replica else { return };
        let result = self.oracle.elected(id, replica.durable());
        self.check(result);
    }

    pub(crate) fn check_durability(&mut self) {
        let disks = self.nodes.iter().map(|node| &node.disk.state);
        let result = self.oracle.durable(self.plan.config.quorum(), disks);
        self.check(result);
    }
}
