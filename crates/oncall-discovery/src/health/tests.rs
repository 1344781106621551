//! Hand-made cases of the decider, with a catalog behind it.

use super::*;
use crate::catalog::{CatalogOut, CatalogShard, Command, Entry, Registration};
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Cell, Directory, Generation, InstanceId, Labels, Metric, NodeId, Out, Peer, Place,
    ProberId, ProxyId, Reason, RegionId, ServiceId, ServiceKey, ShardId, Source, State, Term, Time,
    Verdict, ZoneId,
};

const REGION: RegionId = RegionId(0);

pub(super) fn cell(service: u16) -> Cell {
    Cell { service: ServiceId(service), region: REGION }
}

fn place(zone: u8) -> Place {
    Place { region: REGION, zone: ZoneId(zone) }
}

/// A decider and its catalog. Proposals are applied at once unless `hold` is set.
pub(super) struct Bench {
    pub(super) shard: CatalogShard,
    pub(super) decider: Decider,
    pub(super) out: Out<HealthMessage, HealthTimer>,
    pub(super) proposed: Vec<Command>,
    hold: bool,
}

impl Bench {
    pub(super) fn new(dials: &Dials, probers: u8, mutants: Mutants) -> Self {
        let key = |n: u8| ServiceKey {
            namespace: "prod".into(),
            service: format!("s{n}"),
            port: "grpc".into(),
        };
        let directory = Directory::new((0..3).map(key).collect(), 1).unwrap();
        let shard = CatalogShard::new(&directory, REGION, ShardId(0), 16).with_mutants(mutants);
        let decider = Decider::new(HealthRules::new(dials, probers)).with_mutants(mutants);
        let (out, proposed) = (Out::new(), Vec::new());
        let mut bench = Self { shard, decider, out, proposed, hold: false };
        bench.decider.lead(&bench.shard, &mut bench.out);
        bench
    }

    pub(super) fn apply(&mut self, now: Time, command: Command) -> Verdict {
        let mut said = CatalogOut::default();
        let entry = Entry { proposed: now, command };
        let verdict = self.shard.apply(&entry, Term(1), now, &mut said);
        for transition in &said.transitions {
            self.decider.observe(&self.shard, transition, &mut self.out);
        }
        verdict
    }

    /// Carries the decider's proposals to the log and back.
    pub(super) fn settle(&mut self, now: Time) {
        while !self.hold {
            let sends = std::mem::take(&mut self.out.sends);
            if sends.is_empty() {
                return;
            }
            for send in sends {
                let HealthMessage::Propose(command) = send.body else { continue };
                let Command::Move { instance, .. } = command else { panic!("{command:?}") };
                self.proposed.push(command);
                let verdict = self.apply(now, command);
                self.decider.ended(now, instance, Some(verdict), &self.shard, &mut self.out);
            }
        }
    }

    pub(super) fn register(&mut self, now: Time, service: u16, n: u32, zone: u8, source: Source) {
        let registration = Registration {
            cell: cell(service),
            instance: InstanceId(n),
            generation: Generation::first(1),
            address: Address { ip: n, port: 80 },
            place: place(zone),
            node: NodeId(n as u16),
            version: 1,
            weight: 1,
            labels: Labels::NONE,
            ready: false,
        };
        assert_eq!(self.apply(now, Command::Register(registration, source)), Verdict::Accepted);
    }

    pub(super) fn probe(&mut self, now: Time, prober: u8, n: u32, ok: bool) {
        let generation = self.shard.find(InstanceId(n)).unwrap().generation;
        let (prober, instance) = (ProberId(prober), InstanceId(n));
        let seen = ProbeSeen { prober, instance, generation, ok };
        self.decider.on_probe(now, seen, &self.shard, &mut self.out);
        self.settle(now);
    }

    pub(super) fn report(&mut self, now: Time, n: u32, started: bool, ready: bool) {
        let generation = self.shard.find(InstanceId(n)).unwrap().generation;
        let who = (InstanceId(n), generation);
        self.decider.on_report(now, who, (started, ready), &self.shard, &mut self.out);
        self.settle(now);
    }

    pub(super) fn complain(&mut self, now: Time, n: u32, proxy: u16, zone: u8) {
        let generation = self.shard.find(InstanceId(n)).unwrap().generation;
        let from = (ProxyId(proxy), place(zone));
        let who = (InstanceId(n), generation);
        self.decider.on_complaint(now, who, from, &self.shard, &mut self.out);
        self.settle(now);
    }

    pub(super) fn timer(&mut self, now: Time) {
        self.decider.on_timer(now, &self.shard, &mut self.out);
        self.settle(now);
    }

    pub(super) fn state(&self, n: u32) -> State {
        self.shard.find(InstanceId(n)).unwrap().state
    }

    /// READY instances `from..to` of service 0, spread over three zones, without an agent.
    pub(super) fn fleet(&mut self, from: u32, to: u32) {
        for n in from..to {
            self.register(Time::ZERO, 0, n, n as u8 % 3, Source::Workload(InstanceId(n)));
            for _ in 0..2 {
                self.probe(Time::ZERO, 0, n, true);
            }
            assert_eq!(self.state(n), State::Ready);
        }
    }

    fn reason(&self) -> Reason {
        let Some(Command::Move { reason, .. }) = self.proposed.last() else { panic!() };
        *reason
    }
}

fn s(seconds: u64) -> Time {
    Time::from_s(seconds)
}

fn dials() -> Dials {
    Dials { guard_share_pct: 100.0, ..Dials::default() }
}

#[test]
fn ready_takes_startup_and_readiness_and_a_probe() {
    let mut bench = Bench::new(&dials(), 1, Mutants::default());
    bench.register(s(0), 0, 1, 0, Source::Agent(NodeId(1)));
    for second in 0..5 {
        bench.probe(s(second), 0, 1, true);
    }
    assert_eq!(bench.state(1), State::Starting, "the agent has not said that it is up");
    bench.report(s(5), 1, true, false);
    assert_eq!(bench.state(1), State::Starting, "up, not ready");
    bench.report(s(6), 1, true, true);
    assert_eq!((bench.state(1), bench.reason()), (State::Ready, Reason::Started));

    // The other order, and without an agent.
    bench.register(s(7), 0, 2, 0, Source::Controller);
    bench.report(s(7), 2, true, true);
    assert_eq!(bench.state(2), State::Starting, "no prober has reached it");
    bench.probe(s(8), 0, 2, true);
    bench.probe(s(9), 0, 2, true);
    assert_eq!(bench.state(2), State::Ready);
    bench.register(s(7), 0, 3, 0, Source::Workload(InstanceId(3)));
    bench.probe(s(8), 0, 3, true);
    bench.probe(s(9), 0, 3, true);
    assert_eq!(bench.state(3), State::Ready);
}

#[test]
fn a_run_of_failures_removes_and_a_run_of_successes_brings_back() {
    let mut bench = Bench::new(&dials(), 1, Mutants::default());
    bench.fleet(0, 30);
    for (second, ok) in [(5, false), (10, false), (15, true), (20, false), (25, false)] {
        bench.probe(s(second), 0, 1, ok);
        assert_eq!(bench.state(1), State::Ready);
    }
    bench.probe(s(30), 0, 1, false);
    assert_eq!((bench.state(1), bench.reason()), (State::Unhealthy, Reason::ProbesFailed));
    bench.probe(s(35), 0, 1, true);
    bench.probe(s(40), 0, 1, false);
    bench.probe(s(45), 0, 1, true);
    assert_eq!(bench.state(1), State::Unhealthy);
    bench.probe(s(50), 0, 1, true);
    assert_eq!((bench.state(1), bench.reason()), (State::Ready, Reason::Recovered));
    assert_eq!(bench.out.total(Metric::HealthFlaps), 2);
}

#[test]
fn a_report_of_not_ready_is_believed_at_once() {
    let mut bench = Bench::new(&dials(), 1, Mutants::default());
    bench.register(s(0), 0, 1, 0, Source::Agent(NodeId(1)));
    bench.report(s(0), 1, true, true);
    bench.probe(s(0), 0, 1, true);
    bench.probe(s(0), 0, 1, true);
    bench.report(s(1), 1, true, false);
    assert_eq!((bench.state(1), bench.reason()), (State::Unhealthy, Reason::ReadinessReported));
    for second in 2..9 {
        bench.probe(s(second), 0, 1, true);
    }
    assert_eq!(bench.state(1), State::Unhealthy, "probes do not overrule the agent");
    bench.report(s(9), 1, true, true);
    assert_eq!(bench.state(1), State::Ready);
}

#[test]
fn so_many_probers_must_agree() {
    let dials = Dials { confirming_probers: 2.0, ..dials() };
    let mut bench = Bench::new(&dials, 3, Mutants::default());
    bench.fleet(0, 30);
    bench.probe(s(1), 1, 1, true);
    bench.probe(s(1), 1, 1, true);
    for second in [5, 10, 15, 20] {
        bench.probe(s(second), 0, 1, false);
    }
    assert_eq!(bench.state(1), State::Ready);
    assert!(bench.out.total(Metric::ProbersDisagreed) > 0);
    for second in [5, 10, 15] {
        bench.probe(s(second), 2, 1, false);
    }
    assert_eq!(bench.state(1), State::Unhealthy);
}

fn a_blind_prober_removes_nobody(mutants: Mutants) {
    let mut bench = Bench::new(&dials(), 1, mutants);
    bench.fleet(0, 60);
    for round in 1..=20 {
        for n in 0..60 {
            bench.probe(s(round * 5), 0, n, false);
        }
    }
    let ready = (0..60).filter(|&n| bench.state(n) == State::Ready).count();
    assert_eq!(ready, 60, "the prober's link broke, not sixty instances");
    assert!(bench.decider.quarantined(s(100), ProberId(0)));
    assert!(bench.out.total(Metric::ProbesQuarantined) > 1_000);
    // It sees again; what failed in between is not held against anybody.
    for round in 0..10 {
        for n in 0..60 {
            bench.probe(s(131 + round * 5), 0, n, n != 7);
        }
    }
    let down: Vec<u32> = (0..60).filter(|&n| bench.state(n) != State::Ready).collect();
    assert_eq!(down, [7]);
}

#[test]
fn a_prober_that_sees_everything_fail_is_quarantined() {
    a_blind_prober_removes_nobody(Mutants::default());
}

#[test]
fn a_missing_quarantine_is_caught() {
    let mutants = Mutants::only(Mutant::NoProberQuarantine);
    assert!(std::panic::catch_unwind(|| a_blind_prober_removes_nobody(mutants)).is_err());
}

/// A dependency breaks and every instance of a service fails its probes, one round after the other.
fn a_service_loses_a_share_and_no_more(mutants: Mutants) {
    let dials = Dials { guard_share_pct: 30.0, failure_threshold: 1.0, ..Dials::default() };
    let mut bench = Bench::new(&dials, 1, mutants);
    bench.fleet(0, 14);
    // Another, healthy service keeps the prober believable and the zones full.
    for n in 100..200 {
        bench.register(s(0), 1, n, n as u8 % 3, Source::Workload(InstanceId(n)));
        bench.probe(s(0), 0, n, true);
        bench.probe(s(0), 0, n, true);
    }
    let ready = |bench: &Bench| (0..14).filter(|&n| bench.state(n) == State::Ready).count();
    for second in 100..=160 {
        for n in 0..14 {
            if bench.state(n) == State::Ready && second % 5 == 0 {
                bench.probe(s(second), 0, n, false);
            }
        }
        bench.decider.settled_probes(s(second), ProberId(0), 100);
        bench.timer(s(second));
        assert!(ready(&bench) >= 10, "{second} s: 30 % of 14 are 4");
    }
    assert_eq!((ready(&bench), bench.decider.held()), (10, 10));
    assert_eq!(bench.out.total(Metric::GuardHeld), 10);
    // After a minute the next share goes, without another probe.
    bench.timer(s(171));
    assert_eq!(ready(&bench), 7, "30 % of 10");
    // Those who recover meanwhile are let off.
    for n in 0..14 {
        if bench.state(n) == State::Ready {
            bench.probe(s(172), 0, n, true);
            bench.probe(s(177), 0, n, true);
        }
    }
    bench.timer(s(300));
    assert_eq!((ready(&bench), bench.decider.held()), (7, 0));
}

#[test]
fn the_guard_keeps_a_service_alive() {
    a_service_loses_a_share_and_no_more(Mutants::default());
}

#[test]
fn a_guard_that_rounds_up_is_caught() {
    let mutants = Mutants::only(Mutant::GuardRounding);
    assert!(std::panic::catch_unwind(|| a_service_loses_a_share_and_no_more(mutants)).is_err());
}

#[test]
fn a_single_instance_may_always_go() {
    let dials = Dials { guard_share_pct: 5.0, ..Dials::default() };
    let mut bench = Bench::new(&dials, 1, Mutants::default());
    bench.fleet(0, 1);
    for second in [5, 10, 15] {
        bench.probe(s(second), 0, 0, false);
    }
    assert_eq!(bench.state(0), State::Unhealthy);
}

#[test]
fn proposals_under_way_count_in_the_guard() {
    let dials = Dials { guard_share_pct: 30.0, failure_threshold: 1.0, ..Dials::default() };
    let mut bench = Bench::new(&dials, 1, Mutants::default());
    bench.fleet(0, 10);
    bench.decider.settled_probes(s(100), ProberId(0), 100);
    bench.hold = true;
    for n in 0..10 {
        bench.probe(s(100), 0, n, false);
        bench.probe(s(100), 0, n, false);
    }
    let proposals: Vec<_> = bench.out.sends.drain(..).collect();
    assert_eq!(proposals.len(), 3);
    // The log took none of them: they may be proposed again, and not more.
    for n in 0..3 {
        let instance = InstanceId(n);
        bench.decider.ended(s(101), instance, None, &bench.shard, &mut bench.out);
    }
    bench.timer(s(102));
    assert_eq!(bench.out.sends.len(), 3);
}

fn complaints_need_a_failed_probe(mutants: Mutants) {
    let mut bench = Bench::new(&dials(), 1, mutants);
    bench.fleet(0, 30);
    for proxy in 0..40 {
        bench.complain(s(10), 1, proxy, proxy as u8 % 3);
    }
    assert_eq!(bench.state(1), State::Ready, "complaints alone change nothing");
    bench.probe(s(11), 0, 1, true);
    assert_eq!(bench.state(1), State::Ready);
    bench.probe(s(12), 0, 1, false);
    assert_eq!((bench.state(1), bench.reason()), (State::Unhealthy, Reason::PassiveConfirmed));
    // One zone only, or too few proxies: a failed probe is then one of three.
    for proxy in 0..40 {
        bench.complain(s(20), 2, proxy, 1);
    }
    bench.complain(s(20), 3, 1, 1);
    bench.complain(s(20), 3, 2, 2);
    bench.probe(s(21), 0, 2, false);
    bench.probe(s(21), 0, 3, false);
    assert_eq!([bench.state(2), bench.state(3)], [State::Ready; 2]);
}

#[test]
fn passive_signals_need_a_quorum_and_a_probe() {
    complaints_need_a_failed_probe(Mutants::default());
}

#[test]
fn passive_alone_is_caught() {
    let mutants = Mutants::only(Mutant::PassiveAlone);
    assert!(std::panic::catch_unwind(|| complaints_need_a_failed_probe(mutants)).is_err());
}

#[test]
fn a_quorum_of_complaints_asks_for_a_probe_once() {
    let mut bench = Bench::new(&dials(), 2, Mutants::default());
    bench.fleet(0, 30);
    bench.hold = true;
    for (proxy, zone) in [(1, 0), (2, 1), (3, 1), (4, 2)] {
        bench.complain(s(10), 1, proxy, zone);
    }
    let asked: Vec<_> = bench.out.sends.iter().map(|send| (send.to, send.body)).collect();
    let probe = HealthMessage::ProbeNow(InstanceId(1), Generation::first(1));
    let expected = [0, 1].map(|n| (Peer::Prober(REGION, ProberId(n)), probe));
    assert_eq!(asked, expected);
}

#[test]
fn evidence_about_another_life_counts_for_nothing() {
    let mut bench = Bench::new(&dials(), 1, Mutants::default());
    bench.fleet(0, 30);
    let old = Generation { start: 0, sequence: 0 };
    let seen =
        ProbeSeen { prober: ProberId(0), instance: InstanceId(1), generation: old, ok: false };
    for second in 1..9 {
        bench.decider.on_probe(s(second), seen, &bench.shard, &mut bench.out);
        let who = (InstanceId(1), old);
        bench.decider.on_report(s(second), who, (true, false), &bench.shard, &mut bench.out);
    }
    bench.settle(s(9));
    assert_eq!(bench.state(1), State::Ready);
    assert_eq!(bench.decider.opinion(1, ProberId(0)), Opinion::Up);
}

#[test]
fn a_new_leader_starts_without_opinions_and_keeps_the_guards_count() {
    let dials = Dials { guard_share_pct: 30.0, ..Dials::default() };
    let mut bench = Bench::new(&dials, 1, Mutants::default());
    bench.fleet(0, 20);
    bench.register(s(0), 0, 50, 0, Source::Agent(NodeId(50)));
    bench.report(s(0), 50, true, true);
    for second in [80, 85, 90] {
        bench.decider.settled_probes(s(second), ProberId(0), 100);
        for n in 0..6 {
            bench.probe(s(second), 0, n, false);
        }
    }
    let unhealthy = |bench: &Bench| (0..20).filter(|&n| bench.state(n) == State::Unhealthy).count();
    assert_eq!(unhealthy(&bench), 5, "30 % of the zones' 7, 7 and 6");
    for n in 10..20 {
        bench.probe(s(90), 0, n, false);
        bench.probe(s(90), 0, n, false);
    }
    bench.hold = true;
    bench.decider.lead(&bench.shard, &mut bench.out);
    let asked: Vec<_> = bench.out.sends.drain(..).collect();
    assert_eq!(asked.len(), 1, "of the one with an agent");
    assert_eq!(asked[0].to, Peer::Agent(NodeId(50)));
    bench.hold = false;
    bench.decider.settled_probes(s(95), ProberId(0), 200);
    for n in 10..20 {
        bench.probe(s(95), 0, n, false);
    }
    assert!((10..20).all(|n| bench.state(n) == State::Ready), "one failure under this leader");
    // What was removed under the old leader still counts within the minute.
    for n in 10..20 {
        bench.probe(s(95), 0, n, false);
        bench.probe(s(95), 0, n, false);
    }
    assert!(!bench.decider.quarantined(s(95), ProberId(0)));
    assert_eq!(unhealthy(&bench), 5, "no more within a minute, under both leaders together");
    assert!(bench.decider.held() >= 10);
    // What the old leader was told about a starting instance is gone; it must be told again.
    bench.probe(s(96), 0, 50, true);
    bench.probe(s(97), 0, 50, true);
    assert_eq!(bench.state(50), State::Starting);
    bench.report(s(98), 50, true, true);
    assert_eq!(bench.state(50), State::Ready);
}

#[test]
fn a_stale_proposal_is_decided_again() {
    let mut bench = Bench::new(&dials(), 1, Mutants::default());
    bench.fleet(0, 30);
    bench.hold = true;
    for second in [5, 10, 15] {
        bench.probe(s(second), 0, 1, false);
    }
    let HealthMessage::Propose(proposal) = bench.out.sends.pop().unwrap().body else { panic!() };
    // Meanwhile the instance is withdrawn.
    let withdraw = Command::Move {
        instance: InstanceId(1),
        generation: Generation::first(1),
        to: State::Draining,
        reason: Reason::Withdrawn,
        source: Source::Controller,
        expected: None,
    };
    assert_eq!(bench.apply(s(16), withdraw), Verdict::Accepted);
    let verdict = bench.apply(s(16), proposal);
    assert_eq!(verdict, Verdict::StaleRead);
    let instance = InstanceId(1);
    bench.decider.ended(s(16), instance, Some(verdict), &bench.shard, &mut bench.out);
    bench.timer(s(17));
    assert_eq!(bench.out.sends, [], "there is nothing left to decide");
}

fn rules(failures: u8, successes: u8, confirming: u8) -> HealthRules {
    let dials = Dials {
        failure_threshold: failures.into(),
        recovery_threshold: successes.into(),
        confirming_probers: confirming.into(),
        ..dials()
    };
    HealthRules::new(&dials, 3)
}

/// Once the driver left out the probes of whoever had told enough in sum, so that one success of a prober that was
/// asked newly stood for both of the two it takes.
#[test]
fn a_row_is_settled_once_each_prober_that_looks_has_seen_enough() {
    let mut bench = Bench::new(&dials(), 3, Mutants::default());
    bench.fleet(0, 30);
    let first = ProberId(0);
    assert!(bench.decider.settled(s(1), 1, first), "its prober saw two");
    bench.decider.set_rules(rules(3, 2, 2));
    assert!(!bench.decider.settled(s(1), 1, first), "another prober has to look as well");
    for _ in 0..5 {
        bench.probe(s(5), 0, 1, true);
    }
    bench.probe(s(5), 1, 1, true);
    assert!(!bench.decider.settled(s(5), 1, first), "one success of it is not enough");
    bench.probe(s(10), 1, 1, true);
    assert!(bench.decider.settled(s(10), 1, first));
    // More successes are asked for: of each of the two.
    bench.decider.set_rules(rules(3, 3, 2));
    bench.probe(s(15), 0, 1, true);
    assert!(!bench.decider.settled(s(15), 1, first));
    bench.probe(s(15), 1, 1, true);
    assert!(bench.decider.settled(s(15), 1, first));
    // A third one, who looked when it stood in, holds it for down: it has to be seen to the end.
    for second in [20, 25, 30] {
        bench.probe(s(second), 2, 1, false);
    }
    assert_eq!(bench.state(1), State::Ready, "two must agree");
    assert!(!bench.decider.settled(s(30), 1, first));
    for second in [35, 40, 45] {
        assert!(!bench.decider.settled(s(second), 1, first));
        bench.probe(s(second), 2, 1, true);
    }
    assert!(bench.decider.settled(s(45), 1, first));
    bench.probe(s(50), 0, 1, false);
    assert!(!bench.decider.settled(s(50), 1, first), "a failure is the beginning of a run");
}

#[test]
fn a_prober_in_quarantine_is_stood_in_for_by_one_that_does_not_look_yet() {
    let mut bench = Bench::new(&dials(), 3, Mutants::default());
    bench.fleet(0, 30);
    bench.decider.set_rules(rules(3, 2, 2));
    let looks = |bench: &Bench| [0, 1, 2].map(|t| bench.decider.looks(s(90), ProberId(1), t).0);
    assert_eq!(looks(&bench), [1, 2, 0]);
    for second in [80, 85, 90] {
        for n in 0..30 {
            bench.probe(s(second), 1, n, false);
        }
    }
    assert!(bench.decider.quarantined(s(90), ProberId(1)));
    assert_eq!(looks(&bench), [2, 0, 1]);
    // One that died meanwhile is found by the two others.
    for second in [90, 91, 92] {
        bench.probe(s(second), 0, 5, false);
        assert_eq!(bench.state(5), State::Ready);
        bench.probe(s(second), 2, 5, false);
    }
    assert_eq!(bench.state(5), State::Unhealthy);
}

/// Once only a new opinion was looked at: whoever was held for down by one prober of two that had to agree stayed
/// READY for ever when one was enough.
#[test]
fn a_dial_that_asks_for_less_counts_from_the_next_failure_on() {
    let mut bench = Bench::new(&dials(), 3, Mutants::default());
    bench.fleet(0, 30);
    bench.decider.set_rules(rules(3, 2, 2));
    for second in [5, 10, 15, 20, 25] {
        bench.probe(s(second), 0, 1, false);
    }
    assert_eq!(bench.state(1), State::Ready, "one of two");
    bench.decider.set_rules(rules(3, 2, 1));
    bench.probe(s(26), 1, 1, true);
    assert_eq!(bench.state(1), State::Ready, "that was no failure");
    bench.probe(s(30), 0, 1, false);
    assert_eq!((bench.state(1), bench.reason()), (State::Unhealthy, Reason::ProbesFailed));
    // Back again: two successes, of which one came before the dial asked for two only.
    bench.decider.set_rules(rules(3, 4, 1));
    for second in [35, 40, 45] {
        bench.probe(s(second), 0, 1, true);
    }
    bench.decider.set_rules(rules(3, 2, 1));
    assert_eq!(bench.state(1), State::Unhealthy);
    bench.probe(s(50), 0, 1, true);
    assert_eq!(bench.state(1), State::Ready);
}

/// Once an opinion outlived the threshold that it was made by.
#[test]
fn a_dial_that_asks_for_more_asks_it_of_each_prober() {
    let mut bench = Bench::new(&dials(), 3, Mutants::default());
    bench.fleet(0, 30);
    bench.decider.set_rules(rules(2, 2, 2));
    for second in [5, 10] {
        bench.probe(s(second), 0, 1, false);
    }
    assert_eq!(bench.decider.opinion(1, ProberId(0)), Opinion::Down);
    bench.decider.set_rules(rules(4, 2, 2));
    assert_eq!(bench.decider.opinion(1, ProberId(0)), Opinion::Unknown);
    for second in [15, 20, 25, 30] {
        bench.probe(s(second), 1, 1, false);
    }
    assert_eq!(bench.state(1), State::Ready, "the first one saw two failures of four");
    bench.probe(s(31), 0, 1, false);
    assert_eq!(bench.state(1), State::Ready, "three");
    bench.probe(s(32), 0, 1, false);
    assert_eq!(bench.state(1), State::Unhealthy);

    // What waits for its agent has to be seen up four times, not two.
    bench.register(s(40), 0, 50, 0, Source::Agent(NodeId(50)));
    bench.probe(s(41), 0, 50, true);
    bench.probe(s(42), 0, 50, true);
    bench.decider.set_rules(rules(4, 4, 2));
    bench.report(s(43), 50, true, true);
    assert_eq!(bench.state(50), State::Starting);
    bench.probe(s(44), 0, 50, true);
    assert_eq!(bench.state(50), State::Starting);
    bench.probe(s(45), 0, 50, true);
    assert_eq!(bench.state(50), State::Ready);
}
