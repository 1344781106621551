//! The run: time goes on tick by tick, things happen, everything is checked.

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::goals::{Goal, Goals};
use super::network::Network;
use super::oracle::{Oracle, Violation, ViolationKind, applied};
use super::plan::{Action, Plan, Who};
use super::trail::{Key, Trail};
use super::workload::Workload;
use crate::config::Config;
use crate::durable::Durable;
use crate::message::{Body, Message, MessageKind};
use crate::mutation::Mutation;
use crate::output::{Output, StepDown};
use crate::replica::Replica;
use crate::types::{Index, NodeId, Term, Time};

/// Commands are numbers that are used once.
pub type Command = u32;

/// Snapshot of the state machine: a hash over everything applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Chain {
    /// Last applied index.
    pub index: Index,
    /// Hash over the commands up to it.
    pub hash: u64,
}

pub(crate) type State = Durable<Command, Chain>;
pub(crate) type Letter = Message<Command, Chain>;

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The first property that broke.
    pub violation: Option<Violation>,
    /// What happened how often.
    pub goals: Goals,
    /// Digest of everything, at regular times and at the end.
    pub trail: Vec<u64>,
    /// Entries committed.
    pub committed: usize,
    /// Inputs that replicas handled, without idle ticks.
    pub inputs: u64,
}

/// One process with its disk.
#[derive(Debug)]
pub(crate) struct Node {
    /// `None` while it is down.
    pub(crate) replica: Option<Replica<Command, Chain>>,
    pub(crate) disk: Disk,
    pub(crate) machine: Chain,
    pub(crate) up_at: Time,
    pub(crate) paused_until: Time,
    /// When an answer of each peer to a message of the current term was last handled, in true time.
    pub(crate) answered_at: [Time; 5],
    /// When it was elected or came out of a pause, in true time.
    pub(crate) leading_since: Time,
}

pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    #[cfg(any(test, feature = "mutation"))]
    mutation: Option<Mutation>,
    pub(crate) now: Time,
    pub(crate) nodes: Vec<Node>,
    pub(crate) network: Network,
    pub(crate) oracle: Oracle,
    pub(crate) workload: Workload,
    pub(crate) goals: Goals,
    pub(crate) violation: Option<Violation>,
    trail: Trail,
    out: Output<Command, Chain>,
    inputs: u64,
    last_leader: Option<NodeId>,
}

/// Plays a plan.
pub fn run(plan: &Plan) -> Report {
    World::new(plan).play()
}

/// Plays a plan with a fault put in on purpose.
#[cfg(any(test, feature = "mutation"))]
pub fn run_with(plan: &Plan, mutation: Mutation) -> Report {
    World { mutation: Some(mutation), ..World::new(plan) }.play()
}

/// Who leads, before and after an input.
#[derive(Clone, Copy)]
struct Before {
    term: Term,
    commit: Index,
    last_index: Index,
    leads: bool,
}

impl<'a> World<'a> {
    fn new(plan: &'a Plan) -> Self {
        let node = |_| Node {
            replica: None,
            disk: Disk::default(),
            machine: Chain::default(),
            up_at: 0,
            paused_until: 0,
            answered_at: [0; 5],
            leading_since: 0,
        };
        Self {
            plan,
            #[cfg(any(test, feature = "mutation"))]
            mutation: None,
            now: 0,
            nodes: (0..plan.config.replicas).map(node).collect(),
            network: Network::new(plan),
            oracle: Oracle::default(),
            workload: Workload::default(),
            goals: Goals::default(),
            violation: None,
            trail: Trail::default(),
            out: Output::new(),
            inputs: 0,
            last_leader: None,
        }
    }

    fn play(mut self) -> Report {
        let mut next = 0;
        while self.now < self.plan.faults_until && self.violation.is_none() {
            while let Some(event) = self.plan.events.get(next).filter(|event| event.at <= self.now)
            {
                next += 1;
                self.happen(event.action);
            }
            self.step();
        }
        if self.violation.is_none() {
            self.settle();
        }
        self.trail.mark();
        Report {
            violation: self.violation,
            goals: self.goals,
            trail: self.trail.marks,
            committed: self.oracle.committed.len(),
            inputs: self.inputs,
        }
    }

    fn config(&self, id: NodeId) -> Config {
        let config = Config { id, ..self.plan.config };
        #[cfg(any(test, feature = "mutation"))]
        let config = Config { mutation: self.mutation, ..config };
        config
    }

    pub(crate) fn ids(&self) -> std::ops::Range<NodeId> {
        0..self.plan.config.replicas
    }

    pub(crate) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[usize::from(id)]
    }

    fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[usize::from(id)]
    }

    /// A replica that runs and is not paused.
    pub(crate) fn awake(&self, id: NodeId) -> Option<&Replica<Command, Chain>> {
        let node = self.node(id);
        node.replica.as_ref().filter(|_| node.paused_until <= self.now)
    }

    /// The local clock of a replica.
    fn clock(&self, id: NodeId) -> Time {
        let at = usize::from(id);
        7_000 * (at as Time + 1) + self.now * self.plan.clock_permille[at] / 1_000
    }

    /// The leader of the newest term that has one.
    pub(crate) fn leader(&self) -> Option<NodeId> {
        let leads = |id: &NodeId| self.awake(*id).is_some_and(Replica::is_leader);
        self.ids().filter(leads).max_by_key(|&id| self.awake(id).map(Replica::term))
    }

    fn find(&self, who: Who) -> Option<NodeId> {
        match who {
            Who::Id(id) => Some(id),
            Who::Leader => self.leader(),
            Who::AfterLeader(n) => self.leader().map(|id| (id + n) % self.plan.config.replicas),
        }
    }

    pub(crate) fn broke(&mut self, kind: ViolationKind, text: String) {
        let at = self.now;
        self.violation.get_or_insert(Violation { at, kind, text });
    }

    pub(crate) fn check(&mut self, result: Result<(), (ViolationKind, String)>) {
        if let Err((kind, text)) = result {
            self.broke(kind, text);
        }
    }

    fn happen(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::CutOneWay { from, to, ticks } => {
                if let (Some(from), Some(to)) = (self.find(from), self.find(to)) {
                    self.network.cut(from, to, now + ticks);
                }
            }
            Action::Cut { a, b, ticks } => {
                if let (Some(a), Some(b)) = (self.find(a), self.find(b)) {
                    self.network.cut(a, b, now + ticks);
                    self.network.cut(b, a, now + ticks);
                }
            }
            Action::Isolate { who, ticks } => {
                if let Some(id) = self.find(who) {
                    self.split(1 << id, now + ticks);
                }
            }
            Action::Split { side, ticks } => self.split(side, now + ticks),
            Action::Crash { who, ticks } => {
                if let Some(id) = self.find(who) {
                    self.crash(id, now + ticks);
                }
            }
            Action::CrashAll { ticks } => {
                for id in self.ids() {
                    self.crash(id, now + ticks);
                }
            }
            Action::Pause { who, ticks } => {
                if let Some(id) = self.find(who) {
                    let node = self.node_mut(id);
                    node.paused_until = node.paused_until.max(now + ticks);
                }
            }
            Action::Burst { count } => self.burst(count),
            Action::Campaign { who } => {
                if let Some(id) = self.find(who).filter(|&id| self.awake(id).is_some()) {
                    self.input(id, Replica::campaign);
                }
            }
        }
    }

    /// Cuts all links between the replicas of a side and the others.
    pub(crate) fn split(&mut self, side: u8, until: Time) {
        for from in self.ids() {
            for to in self.ids() {
                if (side >> from & 1) != (side >> to & 1) {
                    self.network.cut(from, to, until);
                }
            }
        }
    }

    fn crash(&mut self, id: NodeId, until: Time) {
        let key = Key(self.plan.seed).of(0x6469_736b).of(u64::from(id));
        let node = self.node_mut(id);
        if node.replica.take().is_some() {
            let lost = node.disk.crash(key);
            self.goals.add(Goal::WritesLost, lost as u64);
        }
        let node = self.node_mut(id);
        node.up_at = node.up_at.max(until);
        node.paused_until = 0;
        self.check_durability();
    }

    fn start(&mut self, id: NodeId) {
        let state = self.node(id).disk.state.clone();
        self.trail.add(&(self.now, id, &state));
        match Replica::restart(self.config(id), state, self.clock(id)) {
            Ok(replica) => {
                if self.now > 0 {
                    self.goals.hit(Goal::Restarts);
                }
                let machine = replica.snapshot().map_or(Chain::default(), |found| found.state);
                let node = self.node_mut(id);
                node.machine = machine;
                node.replica = Some(replica);
            }
            Err(error) => self.broke(ViolationKind::Malformed, format!("{id} restarts: {error}")),
        }
    }

    /// Everything comes up, nothing is paused or cut any more.
    pub(crate) fn heal(&mut self) {
        self.network.heal();
        for node in &mut self.nodes {
            node.up_at = node.up_at.min(self.now);
            node.paused_until = node.paused_until.min(self.now);
        }
    }

    /// One true tick.
    pub(crate) fn step(&mut self) {
        for id in self.ids() {
            if self.node(id).replica.is_none() && self.node(id).up_at <= self.now {
                self.start(id);
            }
        }
        while let Some(letter) = self.network.arrived(self.now) {
            self.deliver(letter);
        }
        for id in self.ids() {
            self.sync(id);
            let turn = (self.now + Time::from(id)).is_multiple_of(self.plan.tick_every);
            if turn && self.awake(id).is_some() {
                self.input(id, Replica::tick);
            }
        }
        self.work();
        self.now += 1;
        if self.now.is_multiple_of(256) {
            self.trail.mark();
        }
    }

    fn deliver(&mut self, letter: Letter) {
        let id = letter.to;
        if self.node(id).replica.is_none() || self.violation.is_some() {
            return;
        }
        let paused_until = self.node(id).paused_until;
        if paused_until > self.now {
            self.network.post_at(paused_until, letter);
            return;
        }
        let yes = matches!(letter.body, Body::VoteReply { granted: true });
        let term = self.awake(id).map_or(0, Replica::term);
        if letter.term == term && (letter.kind() == MessageKind::Reply || yes) {
            self.nodes[usize::from(id)].answered_at[usize::from(letter.from)] = self.now;
        }
        let result = self.input(id, |replica, now, out| replica.receive(now, letter, out));
        if let Some(Err(error)) = result {
            self.broke(ViolationKind::Malformed, format!("{id} refuses: {error}"));
        }
    }

    /// Messages leave whose writes are durable by now.
    fn sync(&mut self, id: NodeId) {
        let now = self.now;
        while let Some(letters) = self.node_mut(id).disk.done(now) {
            self.post(letters);
        }
    }

    fn post(&mut self, letters: Vec<Letter>) {
        for letter in letters {
            let said = self.oracle.said(&letter);
            self.check(said);
            let fate = self.network.send(self.plan, self.now, letter);
            self.goals.add(Goal::Lost, fate.lost.into());
            self.goals.add(Goal::Doubled, fate.doubled.into());
            self.goals.add(Goal::Late, fate.late.into());
        }
    }

    /// Gives a replica an input, and looks at everything that comes of it.
    pub(crate) fn input<T>(
        &mut self,
        id: NodeId,
        give: impl FnOnce(&mut Replica<Command, Chain>, Time, &mut Output<Command, Chain>) -> T,
    ) -> Option<T> {
        let clock = self.clock(id);
        let mut out = std::mem::take(&mut self.out);
        let node = self.node_mut(id);
        let replica = node.replica.as_mut()?;
        let before = Before {
            term: replica.term(),
            commit: replica.commit_index(),
            last_index: replica.last_index(),
            leads: replica.is_leader(),
        };
        let result = give(replica, clock, &mut out);
        self.absorb(id, before, &mut out);
        self.out = out;
        Some(result)
    }

    fn absorb(&mut self, id: NodeId, before: Before, out: &mut Output<Command, Chain>) {
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

    fn check_durability(&mut self) {
        let disks = self.nodes.iter().map(|node| &node.disk.state);
        let result = self.oracle.durable(self.plan.config.quorum(), disks);
        self.check(result);
    }
}
