//! The decider against a naive model that keeps every piece of evidence and looks through all of it each time.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use super::tests::{Bench, cell};
use super::*;
use crate::catalog::Command;
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::types::{InstanceId, NodeId, ProberId, Reason, Source, State, Time};

/// Instances; the first half has agents.
const FLEET: u32 = 8;
const PROBERS: u8 = 2;
const QUARANTINE_MIN: u32 = 8;

#[derive(Clone, Copy, Debug)]
enum Op {
    Wait(u64),
    Probe {
        prober: u8,
        n: u32,
        ok: bool,
    },
    /// One prober, the whole fleet.
    Round {
        prober: u8,
        failing: u8,
    },
    Report {
        n: u32,
        started: bool,
        ready: bool,
    },
    Complain {
        n: u32,
        proxy: u16,
        zone: u8,
    },
    Withdraw(u32),
    /// Somebody turns the dials.
    Turn(Settings),
    Lead,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    failures: u8,
    successes: u8,
    confirming: u8,
    share_pct: f64,
}

impl Settings {
    fn dials(self) -> Dials {
        Dials {
            failure_threshold: self.failures.into(),
            recovery_threshold: self.successes.into(),
            confirming_probers: self.confirming.into(),
            guard_share_pct: self.share_pct,
            ..Dials::default()
        }
    }

    fn rules(self) -> HealthRules {
        let rules = HealthRules::new(&self.dials(), PROBERS);
        let quarantine = QuarantineRule { probes_min: QUARANTINE_MIN, ..rules.quarantine };
        HealthRules { quarantine, ..rules }
    }
}

#[derive(Clone, Debug)]
struct Patient {
    state: State,
    /// Results of believed probes in this state, oldest first: who, how, and after how many turns of the dials.
    probes: Vec<(u8, bool, usize)>,
    report: Option<(bool, bool)>,
    complaints: Vec<(u64, u16, u8)>,
    /// The last believed probe since somebody complained.
    checked: Option<(u64, bool)>,
}

#[derive(Clone, Debug)]
struct Naive {
    settings: Settings,
    /// All settings ever, with the present one.
    turns: Vec<Settings>,
    now_s: u64,
    patients: Vec<Patient>,
    waiting: Vec<bool>,
    /// All probes ever: when, by whom, how.
    seen: Vec<(u64, u8, bool)>,
    quarantined_until_s: [u64; PROBERS as usize],
    /// Removals: when, and whom.
    removed: Vec<(u64, u32)>,
    reasons: Vec<Reason>,
}

fn zone(n: u32) -> u8 {
    n as u8 % 2
}

impl Naive {
    fn new(settings: Settings) -> Self {
        let patient = Patient {
            state: State::Starting,
            probes: Vec::new(),
            report: None,
            complaints: Vec::new(),
            checked: None,
        };
        Self {
            settings,
            turns: vec![settings],
            now_s: 1_000,
            patients: vec![patient; FLEET as usize],
            waiting: vec![false; FLEET as usize],
            seen: Vec::new(),
            quarantined_until_s: [0; PROBERS as usize],
            removed: Vec::new(),
            reasons: Vec::new(),
        }
    }

    fn believed(&self, prober: u8) -> bool {
        self.now_s >= self.quarantined_until_s[usize::from(prober)]
    }

    /// The last time that enough probes in a row agreed, unless more of them were asked for since. What is more
    /// than enough is not counted.
    fn opinion(&self, n: u32, prober: u8) -> Option<bool> {
        let mine = self.patients[n as usize].probes.iter().filter(|&&(who, ..)| who == prober);
        let (mut run, mut opinion) = (0_i32, None);
        let mut turn = mine.clone().next()?.2;
        let last = self.turns.len() - 1;
        for (ok, at) in mine.map(|&(_, ok, at)| (Some(ok), at)).chain([(None, last)]) {
            for pair in self.turns[turn..=at].windows(2) {
                let more = |asked: fn(&Settings) -> u8| asked(&pair[1]) > asked(&pair[0]);
                if opinion.is_some_and(|up| more(if up { |s| s.successes } else { |s| s.failures }))
                {
                    opinion = None;
                }
            }
            turn = at;
            let Settings { failures, successes, .. } = self.turns[at];
            let (down, up) = (i32::from(failures), i32::from(successes));
            match ok {
                Some(true) => run = (run.max(0) + 1).min(up),
                Some(false) => run = (run.min(0) - 1).max(-down),
                None => {}
            }
            if ok == Some(true) && run == up {
                opinion = Some(true);
            }
            if ok == Some(false) && run == -down {
                opinion = Some(false);
            }
        }
        opinion
    }

    fn guard_allows(&self, n: u32) -> bool {
        let scope = |same: &dyn Fn(u32) -> bool| {
            let lately =
                |&&(at_s, who): &&(u64, u32)| at_s / 10 + 6 >= self.now_s / 10 && same(who);
            let removed = self.removed.iter().filter(lately).count();
            let ready = (0..FLEET)
                .filter(|&other| same(other))
                .filter(|&other| self.patients[other as usize].state == State::Ready)
                .count();
            let share = self.settings.share_pct * (ready + removed) as f64 / 100.0;
            removed < (share.floor() as usize).max(1)
        };
        scope(&|_| true) && scope(&|other| zone(other) == zone(n))
    }

    fn wanted(&self, n: u32) -> Option<(State, Reason)> {
        let patient = &self.patients[n as usize];
        let believed: Vec<u8> = (0..PROBERS).filter(|&prober| self.believed(prober)).collect();
        let opinions: Vec<bool> =
            believed.iter().filter_map(|&prober| self.opinion(n, prober)).collect();
        let down = opinions.iter().filter(|&&up| !up).count();
        let agent = match patient.report {
            Some((started, ready)) => started && ready,
            None => n >= FLEET / 2,
        };
        let up = down == 0 && !opinions.is_empty() && agent;
        match patient.state {
            State::Starting if up => Some((State::Ready, Reason::Started)),
            State::Unhealthy if up => Some((State::Ready, Reason::Recovered)),
            State::Ready if patient.report.is_some_and(|(_, ready)| !ready) => {
                Some((State::Unhealthy, Reason::ReadinessReported))
            }
            State::Ready
                if down > 0
                    && down >= usize::from(self.settings.confirming).min(believed.len()) =>
            {
                Some((State::Unhealthy, Reason::ProbesFailed))
            }
            State::Ready => {
                let fresh: Vec<_> = patient
                    .complaints
                    .iter()
                    .filter(|(at_s, _, _)| self.now_s - at_s < 30)
                    .collect();
                let zones = fresh.iter().map(|(_, _, zone)| *zone);
                let two = zones.clone().min() != zones.max();
                let failed =
                    patient.checked.is_some_and(|(at_s, ok)| !ok && self.now_s - at_s < 30);
                (fresh.len() >= 3 && two && failed)
                    .then_some((State::Unhealthy, Reason::PassiveConfirmed))
            }
            _ => None,
        }
    }

    fn decide(&mut self, n: u32) {
        self.waiting[n as usize] = false;
        let Some((to, reason)) = self.wanted(n) else { return };
        if to == State::Unhealthy {
            if !self.guard_allows(n) {
                self.waiting[n as usize] = true;
                return;
            }
            self.removed.push((self.now_s, n));
        }
        self.reasons.push(reason);
        let keeps = self.patients[n as usize].state == State::Starting;
        self.enter(n, to, keeps);
    }

    fn enter(&mut self, n: u32, to: State, keeps: bool) {
        let patient = &mut self.patients[n as usize];
        patient.state = to;
        if !keeps {
            patient.probes.clear();
            patient.complaints.clear();
            patient.checked = None;
        }
        self.waiting[n as usize] = false;
    }

    fn probe(&mut self, prober: u8, n: u32, ok: bool) {
        self.seen.push((self.now_s, prober, ok));
        let window = |at_s: u64| at_s / 5;
        let bad = |since: u64| {
            let mine =
                self.seen.iter().filter(|&&(at_s, who, _)| who == prober && window(at_s) >= since);
            let (all, failed) = (mine.clone().count(), mine.filter(|&&(_, _, ok)| !ok).count());
            all >= QUARANTINE_MIN as usize && failed * 2 > all
        };
        let current = window(self.now_s);
        if bad(current) || bad(current - 1) {
            if self.believed(prober) {
                for patient in &mut self.patients {
                    patient.probes.retain(|&(who, ..)| who != prober);
                }
            }
            self.quarantined_until_s[usize::from(prober)] = self.now_s + 30;
        }
        if !self.believed(prober) {
            return;
        }
        let before = self.opinion(n, prober);
        self.patients[n as usize].probes.push((prober, ok, self.turns.len() - 1));
        let complained = !self.patients[n as usize].complaints.is_empty();
        if complained {
            self.patients[n as usize].checked = Some((self.now_s, ok));
        }
        let opinion = self.opinion(n, prober);
        let ready = self.patients[n as usize].state == State::Ready;
        // The prober holds it for what it is not, and says so again.
        let again = opinion == Some(ok) && ok != ready && !self.waiting[n as usize];
        if opinion != before || (!ok && complained) || again {
            self.decide(n);
        }
    }

    fn play(&mut self, op: Op) {
        match op {
            Op::Wait(s) => {
                self.now_s += s;
                for patient in &mut self.patients {
                    // Memory of complaints ends with the last one.
                    if patient
                        .complaints
                        .last()
                        .is_some_and(|&(at_s, _, _)| self.now_s - at_s >= 30)
                    {
                        patient.complaints.clear();
                        patient.checked = None;
                    }
                }
                for n in 0..FLEET {
                    if self.waiting[n as usize] {
                        self.decide(n);
                    }
                }
            }
            Op::Probe { prober, n, ok } => self.probe(prober, n, ok),
            Op::Round { prober, failing } => {
                for n in 0..FLEET {
                    self.probe(prober, n, failing >> n & 1 == 0);
                }
            }
            Op::Report { n, started, ready } => {
                self.patients[n as usize].report = Some((started, ready));
                self.decide(n);
            }
            Op::Complain { n, proxy, zone } => {
                let now_s = self.now_s;
                let patient = &mut self.patients[n as usize];
                if patient.state != State::Ready {
                    return;
                }
                patient.complaints.retain(|&(at_s, who, _)| who != proxy && now_s - at_s < 30);
                patient.complaints.push((now_s, proxy, zone));
                self.decide(n);
            }
            Op::Withdraw(n) => {
                let live = [State::Starting, State::Ready, State::Unhealthy];
                if live.contains(&self.patients[n as usize].state) {
                    self.enter(n, State::Draining, false);
                }
            }
            Op::Turn(settings) => {
                self.settings = settings;
                self.turns.push(settings);
            }
            Op::Lead => {
                for patient in &mut self.patients {
                    patient.probes.clear();
                    patient.complaints.clear();
                    patient.checked = None;
                    patient.report = None;
                }
                self.waiting.fill(false);
            }
        }
    }
}

fn settings() -> impl Strategy<Value = Settings> {
    let share_pct = prop_oneof![Just(5.0), Just(30.0), Just(100.0)];
    (1..=4_u8, 1..=3_u8, 1..=2_u8, share_pct).prop_map(
        |(failures, successes, confirming, share_pct)| Settings {
            failures,
            successes,
            confirming,
            share_pct,
        },
    )
}

struct Reference;

impl ReferenceStateMachine for Reference {
    type State = Naive;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Naive> {
        settings().prop_map(Naive::new).boxed()
    }

    fn transitions(_: &Naive) -> BoxedStrategy<Op> {
        let (n, prober) = (0..FLEET, 0..PROBERS);
        prop_oneof![
            6 => (0..12_u64).prop_map(Op::Wait),
            1 => (30..90_u64).prop_map(Op::Wait),
            12 => (prober.clone(), n.clone(), any::<bool>())
                .prop_map(|(prober, n, ok)| Op::Probe { prober, n, ok }),
            6 => (prober.clone(), Just(0)).prop_map(|(prober, failing)| Op::Round { prober, failing }),
            4 => (prober, any::<u8>()).prop_map(|(prober, failing)| Op::Round { prober, failing }),
            6 => (n.clone(), prop::bool::weighted(0.9), prop::bool::weighted(0.8))
                .prop_map(|(n, started, ready)| Op::Report { n, started, ready }),
            6 => (0..3_u32, 0..4_u16, 0..2_u8)
                .prop_map(|(n, proxy, zone)| Op::Complain { n, proxy, zone }),
            1 => n.prop_map(Op::Withdraw),
            1 => settings().prop_map(Op::Turn),
            1 => Just(Op::Lead),
        ]
        .boxed()
    }

    fn apply(mut state: Naive, op: &Op) -> Naive {
        state.play(*op);
        state
    }
}

struct Machine<const MUTANT: u8> {
    bench: Bench,
    now: Time,
}

const NONE: u8 = u8::MAX;

impl<const MUTANT: u8> StateMachineTest for Machine<MUTANT> {
    type SystemUnderTest = Self;
    type Reference = Reference;

    fn init_test(model: &Naive) -> Self {
        let all = [Mutant::GuardRounding, Mutant::NoProberQuarantine, Mutant::PassiveAlone];
        let mutant = all.get(usize::from(MUTANT)).copied();
        let mutants = mutant.map_or(Mutants::default(), Mutants::only);
        let mut bench = Bench::new(&model.settings.dials(), PROBERS, mutants);
        bench.decider.set_rules(model.settings.rules());
        for n in 0..FLEET {
            let source = if n < FLEET / 2 {
                Source::Agent(NodeId(n as u16))
            } else {
                Source::Workload(InstanceId(n))
            };
            bench.register(Time::from_s(1_000), 0, n, zone(n), source);
        }
        Self { bench, now: Time::from_s(1_000) }
    }

    fn apply(mut machine: Self, _: &Naive, op: Op) -> Self {
        let (bench, now) = (&mut machine.bench, machine.now);
        match op {
            Op::Wait(s) => {
                machine.now = Time::from_s(now.0 / 1_000_000 + s);
                bench.timer(machine.now);
            }
            Op::Probe { prober, n, ok } => bench.probe(now, prober, n, ok),
            Op::Round { prober, failing } => {
                for n in 0..FLEET {
                    bench.probe(now, prober, n, failing >> n & 1 == 0);
                }
            }
            Op::Report { n, started, ready } => bench.report(now, n, started, ready),
            Op::Complain { n, proxy, zone } => bench.complain(now, n, proxy, zone),
            Op::Withdraw(n) => {
                let record = bench.shard.find(InstanceId(n)).unwrap();
                let (instance, generation) = (record.instance, record.generation);
                let (to, reason) = (State::Draining, Reason::Withdrawn);
                let source = Source::Controller;
                let withdraw =
                    Command::Move { instance, generation, to, reason, source, expected: None };
                bench.apply(now, withdraw);
            }
            Op::Turn(settings) => bench.decider.set_rules(settings.rules()),
            Op::Lead => {
                bench.decider.lead(&bench.shard, &mut bench.out);
                bench.out.sends.clear();
            }
        }
        machine
    }

    fn check_invariants(machine: &Self, model: &Naive) {
        let states: Vec<State> = (0..FLEET).map(|n| machine.bench.state(n)).collect();
        let expected: Vec<State> = model.patients.iter().map(|patient| patient.state).collect();
        assert_eq!(states, expected);
        let reason = |command: &Command| match command {
            Command::Move { reason, .. } => *reason,
            other => panic!("{other:?}"),
        };
        let reasons: Vec<Reason> = machine.bench.proposed.iter().map(reason).collect();
        assert_eq!(reasons, model.reasons);
        if let Some(reason) = reasons.last() {
            tally(format!("{reason:?}"));
        }
        let held = model.waiting.iter().filter(|&&waiting| waiting).count();
        assert_eq!(machine.bench.decider.held(), held);
        if held > 0 {
            tally("held".into());
        }
        for prober in 0..PROBERS {
            let out = machine.bench.decider.quarantined(machine.now, ProberId(prober));
            assert_eq!(out, !model.believed(prober));
            if out {
                tally("quarantined".into());
            }
        }
        let ready = model.patients.iter().filter(|patient| patient.state == State::Ready).count();
        let view = machine.bench.shard.view(cell(0)).unwrap();
        assert_eq!(view.count(State::Ready) as usize, ready);
    }
}

thread_local! {
    /// What happened in a run, so that it cannot pass for want of events.
    static SEEN: RefCell<BTreeMap<String, u32>> = const { RefCell::new(BTreeMap::new()) };
}

fn tally(what: String) {
    SEEN.with_borrow_mut(|seen| *seen.entry(what).or_default() += 1);
}

fn run<const MUTANT: u8>(cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    SEEN.with_borrow_mut(BTreeMap::clear);
    let result = runner.run(&Reference::sequential_strategy(1..80), |(model, ops, seen)| {
        Machine::<MUTANT>::test_sequential(config.clone(), model, ops, seen);
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

/// Whether taking a safeguard out is noticed in some of the cases.
fn missed<const MUTANT: u8>(cases: u32) -> bool {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let strategy = Reference::sequential_strategy(1..80);
    (0..cases).any(|_| {
        let (model, ops, seen) = strategy.new_tree(&mut runner).unwrap().current();
        let case = || Machine::<MUTANT>::test_sequential(config.clone(), model, ops, seen);
        std::panic::catch_unwind(AssertUnwindSafe(case)).is_err()
    })
}

#[test]
fn the_decider_does_what_the_naive_model_does() {
    run::<NONE>(1_500);
    SEEN.with_borrow(|seen| {
        let reasons = [
            Reason::Started,
            Reason::Recovered,
            Reason::ProbesFailed,
            Reason::PassiveConfirmed,
            Reason::ReadinessReported,
        ];
        let names = reasons.map(|reason| format!("{reason:?}"));
        for name in names.into_iter().chain(["held".into(), "quarantined".into()]) {
            let count = seen.get(&name).copied().unwrap_or_default();
            assert!(count >= 20, "{name}: {seen:?}");
        }
    });
}

#[test]
fn each_safeguard_of_the_decider_is_missed_when_it_is_out() {
    assert!(missed::<0>(600), "a guard that rounds up");
    assert!(missed::<1>(600), "no quarantine");
    assert!(missed::<2>(600), "complaints alone");
}
