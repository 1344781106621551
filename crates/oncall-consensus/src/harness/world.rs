//! The run: time goes on tick by tick, things happen, everything is checked.

use serde::{Deserialize, Serialize};

use super::disk::Disk;
use super::goals::{Goal, Goals};
use super::network::Network;
use super::oracle::{Oracle, Violation, ViolationKind};
use super::plan::{Event, Plan};
use super::trail::Trail;
use super::watch::Before;
use super::workload::Workload;
use crate::config::Config;
use crate::durable::Durable;
use crate::message::{Body, Message, MessageKind};
use crate::mutation::Mutation;
use crate::output::Output;
use crate::replica::Replica;
use crate::types::{Index, NodeId, Time};

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
    pub(crate) trail: Trail,
    out: Output<Command, Chain>,
    pub(crate) inputs: u64,
    pub(crate) last_leader: Option<NodeId>,
    pub(crate) strikes: Vec<Event>,
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
            strikes: Vec::new(),
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
            self.strike();
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

    pub(crate) fn config(&self, id: NodeId) -> Config {
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

    pub(crate) fn node_mut(&mut self, id: NodeId) -> &mut Node {
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

    pub(crate) fn broke(&mut self, kind: ViolationKind, text: String) {
        let at = self.now;
        self.violation.get_or_insert(Violation { at, kind, text });
    }

    pub(crate) fn check(&mut self, result: Result<(), (ViolationKind, String)>) {
        if let Err((kind, text)) = result {
            self.broke(kind, text);
        }
    }

    fn start(&mut self, id: NodeId) {
        let state = self.node(id).disk.state.clone();
        self.trail.add(&(self.now, id, &state));
        match Replica::restart(self.config(id), state, self.clock(id)) {
            Ok(replica) => {
                if self.now > 0 {
                    self.goals.hit(Goal::Restarts);
                }
                let unchanged = self.node(id).disk.state == *replica.durable();
                let mutated = [Mutation::VoteNotPersisted, Mutation::TermNotPersisted]
                    .into_iter()
                    .any(|mutation| replica.config().mutated(mutation));
                if !unchanged && !mutated {
                    let text = format!("{id} restarts with another state than its disk has");
                    self.broke(ViolationKind::Durability, text);
                }
                let machine = replica.snapshot().map_or(Chain::default(), |found| found.state);
                let node = self.node_mut(id);
                node.machine = machine;
                node.disk.state = replica.durable().clone();
                node.replica = Some(replica);
            }
            Err(error) => self.broke(ViolationKind::Malformed, format!("{id} restarts: {error}")),
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
    pub(crate) fn sync(&mut self, id: NodeId) {
        let now = self.now;
        while let Some(letters) = self.node_mut(id).disk.done(now) {
            match letters {
                Ok(letters) => self.post(letters),
                Err(text) => return self.broke(ViolationKind::Durability, format!("{id}: {text}")),
            }
        }
    }

    pub(crate) fn post(&mut self, letters: Vec<Letter>) {
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
}
