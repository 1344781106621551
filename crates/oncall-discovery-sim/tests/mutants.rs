//! Safeguards taken out one at a time: the fuzzer's cases have to show the damage.
//!
//! Those that a world can express are here. The others are below its grain (it keeps one number for a view, and
//! what reaches a second line of defence is stopped by the first), and a test of their component catches them:
//!
//! | mutant | caught by, in `oncall-discovery/src` |
//! |---|---|
//! | `OldLeaderExpiry`, `StaleCompareAndSet`, `SharedAddress` | `catalog/tests.rs`, `catalog/fence_model.rs` |
//! | `NoGraceAfterLeaderChange` | `lease/leader_model.rs` |
//! | `GuardRounding` | `health/tests.rs` |
//! | `ResumeIgnoresRemovals`, `EmptySnapshotAccepted`, `NonAtomicSnapshot`, `RetentionByTimeOnly`, `LowerIncarnationAccepted` | `distrib/tests.rs`, `proxy/tests` |
//! | `EjectionCapBefore`, `NoRelaySwitch`, `ProxyWithoutFence`, `RejectWithoutBackOff`, `HealthBeatsRemoval` | `proxy/tests` |
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery::mutants::{Mutant, Mutants};
use oncall_discovery_sim::fuzz::draw_case;
use oncall_discovery_sim::schedule::{Action, Planned};
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Kind, Setup, World};

/// Cases of the fuzzer that are played at most.
const CASES: u64 = 400;

fn play(setup: Setup, mutants: Mutants) -> World {
    let mut world = World::new(setup).unwrap().with_mutants(mutants);
    world.run();
    world.check_healed();
    world
}

/// The first case in which a mutant breaks the invariant that stands against it; the same case is sound without.
fn caught(mutant: Mutant, invariants: &[&str]) {
    for case in 0..CASES {
        let setup = draw_case(1, case);
        let world = play(setup.clone(), Mutants::only(mutant));
        let broken = world.violations().iter().find(|v| invariants.contains(&v.invariant.as_str()));
        if let Some(broken) = broken {
            eprintln!("{mutant:?}: case {case}, {}: {}", broken.invariant, broken.what);
            assert_eq!(play(setup, Mutants::default()).violations(), [], "sound with it");
            return;
        }
    }
    panic!("{mutant:?} was never seen in {CASES} cases");
}

#[test]
fn an_old_generation_that_renews_is_seen() {
    caught(Mutant::ZombieResurrection, &["I7"]);
}

#[test]
fn complaints_that_decide_alone_are_seen() {
    caught(Mutant::PassiveAlone, &["I13"]);
}

#[test]
fn a_restart_for_readiness_is_seen() {
    caught(Mutant::ReadinessRestarts, &["I15"]);
}

#[test]
fn failover_beyond_the_cap_is_seen() {
    caught(Mutant::FailoverUncapped, &["I11"]);
}

#[test]
fn writes_without_a_token_are_seen() {
    caught(Mutant::WriterWithoutToken, &["I11"]);
}

#[test]
fn an_ignored_revocation_is_seen() {
    caught(Mutant::RevocationIgnored, &["I21"]);
}

#[test]
fn a_delta_that_does_not_join_is_seen() {
    caught(Mutant::NonContiguousDelta, &["I3"]);
}

#[test]
fn heads_that_are_never_told_are_seen() {
    caught(Mutant::NoHeartbeat, &["I19", "I20"]);
}

/// The fuzzer's fleets are too small to spend a budget.
#[test]
fn snapshots_without_a_budget_are_seen() {
    let broken = |mutants| {
        let mut setup = Setup::shipped("reconnect-storm-cold", Scale::Tenth, 1).unwrap();
        setup.dials.snapshot_budget_mb_s = 10.0;
        setup.scenario.plan.insert(0, Planned { at_s: 5.0, action: CHURN });
        let mut world = World::new(setup).unwrap().with_mutants(mutants);
        world.run_until(60_000_000);
        world.violations().iter().filter(|violation| violation.invariant == "I18").count()
    };
    assert_eq!(broken(Mutants::default()), 0);
    assert!(broken(Mutants::only(Mutant::NoSnapshotBudget)) > 0);
}

/// So that there is something to catch up with.
const CHURN: Action = Action::Churn { per_s: 50.0, for_s: 50.0 };

fn with_plan(plan: &[(f64, Action)]) -> Setup {
    let mut setup = Setup::shipped("calm", Scale::Small, 3).unwrap();
    setup.scenario.plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    setup
}

/// No invariant forbids a bad decision; its figure shows it.
#[test]
fn a_prober_that_is_believed_whatever_it_sees_costs_instances() {
    let removed = |mutants| {
        let bad = Action::BadProber { region: 0, for_s: 60.0 };
        play(with_plan(&[(20.0, bad)]), mutants).totals().false_removals
    };
    let (with, without) =
        (removed(Mutants::default()), removed(Mutants::only(Mutant::NoProberQuarantine)));
    assert!(without > 2 * with + 10, "{without} against {with}");
}

#[test]
fn removals_that_wait_like_additions_are_late() {
    let late = |mutants| {
        let roll = Action::Rollout { endpoints: 48, services: 8, popular: false };
        let mut setup = with_plan(&[(20.0, roll)]);
        setup.dials.coalesce_additions_ms = 5_000.0;
        let world = play(setup, mutants);
        let clocks = world.clocks();
        let published = clocks.percentiles(Kind::Withdrawal, |line| {
            Some((line.published? - line.accepted?) as f64 / 1e6)
        });
        published.p99
    };
    let (with, without) =
        (late(Mutants::default()), late(Mutants::only(Mutant::RemovalWaitsForAdditions)));
    assert!(with < 1.0 && without > 3.0, "{with} {without}");
}
