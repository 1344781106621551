//! Controller, agents, prober, catalog, leases and decider together, under schedules of faults: silent deaths,
//! restarts, failing readiness, withdrawals, leader changes, a log that takes nothing, messages held back and messages
//! repeated long after. While it lasts nothing old may come back; once the faults stop, the READY set must become
//! exactly what is true (I19).

use std::cell::Cell as Count;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};

use crate::catalog::{CatalogOut, CatalogShard, Command, Entry, Registration};
use crate::dials::Dials;
use crate::health::{Decider, HealthMessage, HealthRules, HealthTimer, ProbeSeen};
use crate::lease::{LeaseKeeper, LeaseMessage, LeaseTimer, RenewalRefusal};
use crate::mutants::{Mutant, Mutants};
use crate::registration::{Controller, Desired, Outcome, Wish};
use crate::types::{
    Address, Cell, Directory, Generation, InstanceId, Labels, NodeId, Out, Place, ProberId,
    RegionId, ServiceId, ServiceKey, ShardId, Span, State, Term, Time, ZoneId,
};

const FLEET: u32 = 6;
const TTL: Span = Span::from_s(30);

#[derive(Clone, Copy, Debug)]
enum Op {
    Seconds(u8),
    Kill(u32),
    Restart(u32),
    Ready(u32, bool),
    Withdraw(u32),
    Elect,
    LogUp(bool),
    Hold(bool),
    Replay(u16),
}

#[derive(Clone, Debug)]
enum Message {
    Command(InstanceId, Command),
    Renew(NodeId, Vec<(InstanceId, Generation)>),
    Probe(ProbeSeen),
    Report((InstanceId, Generation), (bool, bool)),
}

#[derive(Clone, Copy, Debug)]
struct Process {
    start: u32,
    alive: bool,
    ready: bool,
    /// When it exits after a withdrawal.
    leaves_s: Option<u64>,
}

struct Plane {
    now_s: u64,
    term: u64,
    log_up: bool,
    hold: bool,
    shard: CatalogShard,
    keeper: LeaseKeeper,
    decider: Decider,
    controller: Controller,
    processes: Vec<Process>,
    held: Vec<Message>,
    history: Vec<Message>,
    /// The largest generation that was ever on record, by instance.
    newest: Vec<Generation>,
    expiries: u32,
}

impl Plane {
    fn new(share_pct: f64, mutants: Mutants) -> Self {
        let key = ServiceKey { namespace: "n".into(), service: "s".into(), port: "p".into() };
        let directory = Directory::new(vec![key], 1).unwrap();
        let dials = Dials { guard_share_pct: share_pct, ..Dials::default() };
        let shard = CatalogShard::new(&directory, RegionId(0), ShardId(0), 16);
        let dead = Process { start: 0, alive: false, ready: false, leaves_s: None };
        let mut plane = Self {
            now_s: 1,
            term: 0,
            log_up: true,
            hold: false,
            shard: shard.with_mutants(mutants),
            keeper: LeaseKeeper::new(TTL).with_mutants(mutants),
            decider: Decider::new(HealthRules::new(&dials, 1)).with_mutants(mutants),
            controller: Controller::new(Time::ZERO, RegionId(0), 100),
            processes: vec![dead; FLEET as usize],
            held: Vec::new(),
            history: Vec::new(),
            newest: vec![Generation::default(); FLEET as usize],
            expiries: 0,
        };
        plane.elect();
        for n in 0..FLEET {
            plane.restart(n);
        }
        plane
    }

    fn now(&self) -> Time {
        Time::from_s(self.now_s)
    }

    fn registration(&self, n: u32) -> Registration {
        let place = Place { region: RegionId(0), zone: ZoneId(n as u8 % 3) };
        Registration {
            cell: Cell { service: ServiceId(0), region: RegionId(0) },
            instance: InstanceId(n),
            generation: Generation::first(self.processes[n as usize].start),
            address: Address { ip: n, port: 80 },
            place,
            node: NodeId(n as u16 / 2),
            version: 1,
            weight: 1,
            labels: Labels::NONE,
            ready: false,
        }
    }

    fn want(&mut self, n: u32, wish: Wish) {
        let registration = self.registration(n);
        self.controller.want(Desired { registration, wish });
    }

    fn restart(&mut self, n: u32) {
        let start = self.now_s as u32;
        let process = Process { start, alive: true, ready: true, leaves_s: None };
        // Two starts within a second would be one process.
        if self.processes[n as usize].start < start {
            self.processes[n as usize] = process;
            self.want(n, Wish::Running { started: false });
        }
    }

    fn elect(&mut self) {
        self.term += 1;
        self.apply(Command::Barrier);
        let (now, term) = (self.now(), Term(self.term));
        self.keeper.lead(now, term, &mut Out::new());
        let mut out = Out::new();
        self.decider.lead(&self.shard, &mut out);
        self.carry_health(out);
    }

    fn apply(&mut self, command: Command) -> Option<crate::types::Verdict> {
        if !self.log_up && !matches!(command, Command::Barrier) {
            return None;
        }
        let mut said = CatalogOut::default();
        let entry = Entry { proposed: self.now(), command };
        let verdict = self.shard.apply(&entry, Term(self.term), self.now(), &mut said);
        for transition in &said.transitions {
            let n = transition.instance.0 as usize;
            assert!(transition.generation >= self.newest[n], "an old life is back: {transition:?}");
            self.newest[n] = transition.generation;
            self.keeper.observe(&self.shard, transition, &mut Out::new());
            self.decider.observe(&self.shard, transition, &mut Out::new());
            self.controller.look_at(transition.instance);
        }
        Some(verdict)
    }

    fn send(&mut self, message: Message) {
        self.history.push(message.clone());
        if self.hold {
            self.held.push(message);
        } else {
            self.deliver(message);
        }
    }

    fn deliver(&mut self, message: Message) {
        let now = self.now();
        let mut health = Out::new();
        match message {
            Message::Command(instance, command) => {
                let verdict = self.apply(command);
                let outcome = verdict.map_or(Outcome::NotTaken, Outcome::Applied);
                self.controller.ended(instance, outcome);
            }
            Message::Renew(node, listed) => {
                let mut out = Out::new();
                self.keeper.renew(now, &self.shard, node, &listed, &mut out);
                for send in out.sends {
                    let LeaseMessage::NotRenewed(refused) = send.body else { panic!("{send:?}") };
                    for (instance, generation, why) in refused {
                        let lives = self.present(instance.0) == Some(generation);
                        if lives && why == RenewalRefusal::Over {
                            self.controller.lives_on(instance, generation);
                        }
                    }
                }
            }
            Message::Probe(seen) => self.decider.on_probe(now, seen, &self.shard, &mut health),
            Message::Report(who, found) => {
                self.decider.on_report(now, who, found, &self.shard, &mut health);
            }
        }
        self.carry_health(health);
    }

    /// Carries the decider's messages: proposals to the log, and questions to agents.
    fn carry_health(&mut self, out: Out<HealthMessage, HealthTimer>) {
        for send in out.sends {
            match send.body {
                HealthMessage::Propose(command) => {
                    let Command::Move { instance, .. } = command else { panic!("{command:?}") };
                    let verdict = self.apply(command);
                    let mut more = Out::new();
                    let now = self.now();
                    self.decider.ended(now, instance, verdict, &self.shard, &mut more);
                    assert!(more.sends.is_empty(), "what failed waits for the timer");
                }
                HealthMessage::ReportNow(instance, _) => self.report(instance.0),
                HealthMessage::ProbeNow(..) => panic!("nobody complained"),
            }
        }
    }

    /// The generation under which the process that runs now is on record.
    fn present(&self, n: u32) -> Option<Generation> {
        let process = self.processes[n as usize];
        let record = self.shard.find(InstanceId(n)).filter(|_| process.alive)?;
        (record.generation.start == process.start).then_some(record.generation)
    }

    fn report(&mut self, n: u32) {
        if let Some(generation) = self.present(n) {
            let ready = self.processes[n as usize].ready;
            self.send(Message::Report((InstanceId(n), generation), (true, ready)));
        }
    }

    fn second(&mut self) {
        self.now_s += 1;
        for n in 0..FLEET {
            if self.processes[n as usize].leaves_s.is_some_and(|at_s| at_s <= self.now_s) {
                self.processes[n as usize].alive = false;
                self.processes[n as usize].leaves_s = None;
                self.want(n, Wish::Gone);
            }
        }
        if self.now_s.is_multiple_of(10) {
            for node in 0..FLEET / 2 {
                let own = [node * 2, node * 2 + 1];
                let listed: Vec<_> =
                    own.iter().filter_map(|&n| Some((InstanceId(n), self.present(n)?))).collect();
                self.send(Message::Renew(NodeId(node as u16), listed));
                for n in own {
                    self.report(n);
                }
            }
        }
        let now_s = self.now_s;
        for n in (0..FLEET).filter(|n| (now_s + u64::from(*n)).is_multiple_of(5)) {
            let Some(record) = self.shard.find(InstanceId(n)) else { continue };
            let process = self.processes[n as usize];
            // Somebody else's answer at the same address is no answer.
            let ok = process.alive && process.ready && process.start == record.generation.start;
            let (prober, instance, generation) = (ProberId(0), InstanceId(n), record.generation);
            self.send(Message::Probe(ProbeSeen { prober, instance, generation, ok }));
        }
        self.timers();
    }

    fn timers(&mut self) {
        let now = self.now();
        let mut health = Out::new();
        self.decider.on_timer(now, &self.shard, &mut health);
        self.carry_health(health);
        let mut leases = Out::<LeaseMessage, LeaseTimer>::new();
        self.keeper.on_timer(now, &self.shard, &mut leases);
        for send in leases.sends {
            let LeaseMessage::Propose(command) = send.body else { panic!("{send:?}") };
            let Command::Expire { instance, .. } = command else { panic!("{command:?}") };
            let row = self.shard.row_of(instance).unwrap();
            if self.apply(command).is_none() {
                let again = Span::from_s(1);
                self.keeper.not_proposed(now, row, again, &mut Out::new());
            } else {
                self.expiries += 1;
            }
        }
        let mut commands = Out::new();
        self.controller.pump(now, |_| &self.shard, &mut commands);
        for send in commands.sends {
            let (Command::Move { instance, .. }
            | Command::Register(Registration { instance, .. }, _)) = send.body
            else {
                panic!("{send:?}")
            };
            self.send(Message::Command(instance, send.body));
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Seconds(count) => (0..count).for_each(|_| self.second()),
            Op::Kill(n) => self.processes[n as usize].alive = false,
            Op::Restart(n) => self.restart(n),
            Op::Ready(n, ready) => {
                self.processes[n as usize].ready = ready;
                self.report(n);
            }
            Op::Withdraw(n) => {
                let process = &mut self.processes[n as usize];
                if process.alive && process.leaves_s.is_none() {
                    process.leaves_s = Some(self.now_s + 5);
                    self.want(n, Wish::Draining);
                }
            }
            Op::Elect if self.log_up => self.elect(),
            Op::Elect => {}
            Op::LogUp(up) => self.log_up = up,
            Op::Hold(hold) => {
                self.hold = hold;
                if !hold {
                    for message in std::mem::take(&mut self.held) {
                        self.deliver(message);
                    }
                }
            }
            Op::Replay(which) => {
                if let Some(len) = self.history.len().checked_sub(1) {
                    let message = self.history[usize::from(which) % (len + 1)].clone();
                    self.deliver(message);
                }
            }
        }
    }

    /// The faults stop. A crashed process stays away, for nobody restarts it.
    fn heal(&mut self) {
        self.play(Op::LogUp(true));
        self.play(Op::Hold(false));
        (0..600).for_each(|_| self.second());
        for n in 0..FLEET {
            let process = self.processes[n as usize];
            let record = self.shard.find(InstanceId(n));
            let serves = record.filter(|record| record.state == State::Ready);
            let true_ = process.alive && process.ready;
            assert_eq!(serves.is_some(), true_, "{n}: {process:?}, {record:?}");
            assert!(serves.is_none_or(|record| record.generation.start == process.start));
        }
        assert_eq!(self.controller.backlog(), 0);
        assert_eq!(self.decider.held(), 0);
    }
}

fn ops() -> impl Strategy<Value = Op> {
    let n = 0..FLEET;
    prop_oneof![
        10 => (1..20_u8).prop_map(Op::Seconds),
        2 => (30..90_u8).prop_map(Op::Seconds),
        3 => n.clone().prop_map(Op::Kill),
        4 => n.clone().prop_map(Op::Restart),
        4 => (n.clone(), any::<bool>()).prop_map(|(n, ready)| Op::Ready(n, ready)),
        2 => n.prop_map(Op::Withdraw),
        2 => Just(Op::Elect),
        3 => prop::bool::weighted(0.6).prop_map(Op::LogUp),
        3 => prop::bool::weighted(0.4).prop_map(Op::Hold),
        6 => any::<u16>().prop_map(Op::Replay),
    ]
}

fn schedules() -> impl Strategy<Value = (f64, Vec<Op>)> {
    (prop_oneof![Just(30.0), Just(100.0)], prop::collection::vec(ops(), 1..60))
}

fn run(share_pct: f64, schedule: &[Op], mutants: Mutants) -> u32 {
    let mut plane = Plane::new(share_pct, mutants);
    for op in schedule {
        plane.play(*op);
    }
    plane.heal();
    plane.expiries
}

fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    TestRunner::new_with_rng(config, rng)
}

#[test]
fn once_the_faults_stop_the_catalog_becomes_true() {
    schedules_find_nothing(300);
}

#[test]
#[ignore = "some seconds; the short one runs always"]
fn twenty_thousand_schedules() {
    schedules_find_nothing(20_000);
}

fn schedules_find_nothing(cases: u32) {
    let expiries = Count::new(0_u32);
    let result = runner(cases).run(&schedules(), |(share_pct, schedule)| {
        expiries.set(expiries.get() + run(share_pct, &schedule, Mutants::default()));
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
    assert!(expiries.get() > 100, "{} leases ran out", expiries.get());
}

#[test]
fn a_plane_that_forgets_generations_is_caught() {
    let mut runner = runner(300);
    let caught = (0..300).any(|_| {
        let (share_pct, schedule) = schedules().new_tree(&mut runner).unwrap().current();
        let mutants = Mutants::only(Mutant::ZombieResurrection);
        std::panic::catch_unwind(|| run(share_pct, &schedule, mutants)).is_err()
    });
    assert!(caught);
}
