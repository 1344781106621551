//! Dials travel, in an outage they do not, and each of them does something.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery::dials::Dials;
use oncall_discovery::types::Reason;
use oncall_discovery_sim::schedule::{Action, Planned, Scenario, Stops};
use oncall_discovery_sim::topology::{REGIONS, Scale};
use oncall_discovery_sim::world::{Counters, Setup, World};

const S: u64 = 1_000_000;

fn world(plan: &[(f64, Action)], dials: &Dials) -> World {
    let shape = Scale::Small.env_shape();
    let plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    let scenario =
        Scenario { name: "test".to_owned(), about: String::new(), length_s: 3_600.0, plan };
    World::new(Setup { shape, scenario, dials: *dials, seed: 7, verify: true }).unwrap()
}

fn outage(for_s: f64, stops: Stops) -> Action {
    Action::Outage { region: None, for_s, stops }
}

/// A setting in which every dial has another value than the default.
fn other() -> Dials {
    Dials {
        probe_interval_s: 4.0,
        probe_timeout_s: 0.5,
        failure_threshold: 2.0,
        recovery_threshold: 3.0,
        delta_retention_s: 300.0,
        admission_per_s: 400.0,
        snapshot_budget_mb_s: 100.0,
        head_heartbeat_s: 5.0,
        reconnect_base_s: 0.5,
        retries_max: 2.0,
        ejection_errors: 2.0,
        drain_period_s: 20.0,
        relays_per_region: 32.0,
        ..Dials::default()
    }
}

#[test]
fn a_wish_is_everywhere_within_a_second_and_relays_after_two_minutes() {
    let mut world = world(&[], &Dials::default());
    world.run_until(10 * S);
    let before = world.in_force();
    world.turn(other()).unwrap();
    assert_eq!(world.in_force().catalog, before.catalog, "nothing is there at once");
    assert_eq!(world.in_force().proxies_with_wish_share, [0.0; REGIONS]);
    world.run_until(11 * S);
    let after = world.in_force();
    assert_eq!(
        (after.catalog, after.relay, after.proxies),
        ([other(); 3], [other(); 3], [other(); 3])
    );
    assert_eq!(after.proxies_with_wish_share, [1.0; REGIONS]);
    assert_eq!(after.relays, before.relays, "machines take two minutes");
    world.run_until(129 * S);
    assert_eq!(world.in_force().relays, before.relays);
    world.run_until(132 * S);
    assert_eq!(world.in_force().relays, [8; REGIONS], "a quarter of 32");
    world.turn(Dials { relays_per_region: 4.0, ..other() }).unwrap();
    world.run_until(300 * S);
    assert_eq!(world.in_force().relays, [2; REGIONS]);
    assert!(world.gauges().levels.iter().all(|level| level.connected > 0.99));
    assert_eq!(world.violations(), []);
}

#[test]
fn a_bad_wish_changes_nothing() {
    let mut world = world(&[], &Dials::default());
    world.run_until(5 * S);
    let before = world.digest().unwrap();
    let bad = Dials { probe_timeout_s: 9.0, ..Dials::default() };
    assert!(world.turn(bad).unwrap_err().to_string().starts_with("probe_timeout_s"));
    world.turn(Dials::default()).unwrap();
    assert_eq!(world.digest().unwrap(), before, "the same setting again is no wish");
}

#[test]
fn in_an_outage_nothing_arrives_and_afterwards_the_newest_does() {
    let mut world = world(&[(20.0, outage(120.0, Stops::WARM))], &Dials::default());
    world.run_until(30 * S);
    let before = world.in_force();
    for step in 0..10 {
        let retries = f64::from(step % 3);
        world.turn(Dials { retries_max: retries, ..other() }).unwrap();
        world.run_until((40 + 9 * step as u64) * S);
        let now = world.in_force();
        assert_eq!(
            (now.catalog, now.relay, now.proxies),
            (before.catalog, before.relay, before.proxies)
        );
    }
    world.turn(other()).unwrap();
    world.run_until(139 * S);
    assert_eq!(world.in_force().catalog, before.catalog);
    world.run_until(240 * S);
    let after = world.in_force();
    assert_eq!(
        (after.catalog, after.relay, after.proxies),
        ([other(); 3], [other(); 3], [other(); 3])
    );
    assert_eq!(after.proxies_with_wish_share, [1.0; REGIONS]);
    assert_eq!(world.violations(), []);
}

#[test]
fn without_a_quorum_the_region_keeps_its_dials_and_the_others_do_not_wait() {
    let mut world =
        world(&[(20.0, Action::QuorumLoss { region: 1, for_s: 100.0 })], &Dials::default());
    world.run_until(30 * S);
    world.turn(other()).unwrap();
    world.run_until(100 * S);
    let held = world.in_force();
    assert_eq!(held.catalog, [other(), Dials::default(), other()]);
    assert_eq!(held.proxies, [other(), Dials::default(), other()]);
    world.run_until(160 * S);
    assert_eq!(world.in_force().proxies, [other(); 3]);
}

/// Catalogs live, relays do not: what leaders decide is in force, what proxies decide is not.
#[test]
fn without_relays_only_the_catalog_side_turns() {
    let stops = Stops { catalog: false, relays: true, probers: false, cold: false };
    let mut world = world(&[(20.0, outage(100.0, stops))], &Dials::default());
    world.run_until(30 * S);
    world.turn(other()).unwrap();
    world.run_until(110 * S);
    let held = world.in_force();
    assert_eq!((held.catalog, held.proxies), ([other(); 3], [Dials::default(); 3]));
    assert_eq!(held.relay, [Dials::default(); 3]);
    world.run_until(240 * S);
    assert_eq!(world.in_force().proxies_with_wish_share, [1.0; REGIONS]);
}

/// A relay that keeps its streams open and says nothing: its proxies miss the policy until they leave it.
#[test]
fn a_silent_relay_keeps_a_wish_from_its_proxies_until_they_leave_it() {
    let mut world = world(&[(20.0, Action::Silent { relay: 0, for_s: 100.0 })], &Dials::default());
    world.run_until(21 * S);
    world.turn(other()).unwrap();
    world.run_until(23 * S);
    let share = world.in_force().proxies_with_wish_share;
    assert!(share[0] < 1.0 && share[1..] == [1.0; 2], "{share:?}");
    world.run_until(130 * S);
    assert_eq!(world.in_force().proxies_with_wish_share, [1.0; REGIONS]);
}

fn busy() -> Vec<(f64, Action)> {
    vec![
        (5.0, Action::Rollout { endpoints: 100, services: 20, popular: false }),
        (8.0, Action::Crashes { instances: 10, over_s: 20.0, freeze: true }),
        (30.0, Action::Outage { region: Some(1), for_s: 30.0, stops: Stops::COLD }),
        (70.0, Action::RelayRestart { share: 1.0, cold: false }),
    ]
}

fn turns(world: &mut World, from_s: u64, until_s: u64) {
    turns_every(world, 5, from_s, until_s);
}

fn turns_every(world: &mut World, every_s: u64, from_s: u64, until_s: u64) {
    for at in (from_s..until_s).step_by(every_s as usize) {
        world.run_until(at * S);
        let step = (at / every_s) as f64;
        let wish = Dials {
            retries_max: step % 4.0,
            probe_interval_s: 2.0 + step % 7.0,
            relays_per_region: 8.0 + step % 20.0,
            head_heartbeat_s: 5.0 + step % 11.0,
            ..Dials::default()
        };
        world.turn(wish).unwrap();
    }
    world.run_until(until_s * S);
}

#[test]
fn the_same_turns_give_the_same_world_also_after_a_restore() {
    let mut one = world(&busy(), &Dials::default());
    let mut two = one.clone();
    turns(&mut one, 0, 240);
    turns(&mut two, 0, 47);
    // In the middle of an outage, with a wish that waits for a quorum and relays that are ordered.
    let mut three = World::load(&two.save().unwrap()).unwrap();
    assert_eq!(three.digest().unwrap(), two.digest().unwrap());
    assert_ne!(two.in_force().catalog[1], two.in_force().wish);
    turns(&mut two, 50, 240);
    turns(&mut three, 50, 240);
    assert_eq!(two.digest().unwrap(), three.digest().unwrap());
    assert_eq!(one.digest().unwrap(), two.digest().unwrap());
    assert_eq!(one.violations(), []);
}

#[test]
fn thousands_of_turns_leave_nothing_behind() {
    let mut turned = world(&[], &Dials::default());
    turned.quiet();
    // Until logs are as long as they get: they shrink every thousand entries.
    turns_every(&mut turned, 1, 0, 4_000);
    let mut largest = |from: u64| {
        let size = |at| {
            turns_every(&mut turned, 1, at, at + 50);
            turned.save().unwrap().len()
        };
        (from..from + 2_000).step_by(50).map(size).max().unwrap()
    };
    let (before, after) = (largest(4_000), largest(8_000));
    assert!(after < before + before / 50, "{before} to {after} bytes");
}

/// Rows, hashes and finished timelines are only a record: without them everything goes on alike.
#[test]
fn a_quiet_world_is_the_same_world() {
    let mut loud = world(&busy(), &Dials::default());
    let mut quiet = loud.clone();
    quiet.quiet();
    let mut late = loud.clone();
    for world in [&mut loud, &mut quiet] {
        turns(world, 0, 240);
    }
    turns(&mut late, 0, 100);
    late.quiet();
    turns(&mut late, 100, 240);
    for other in [&quiet, &late] {
        assert_eq!(loud.gauges(), other.gauges());
        assert_eq!(loud.bill(), other.bill());
        assert_eq!(loud.totals(), other.totals());
        assert_eq!(loud.goals(), other.goals());
        assert_eq!(loud.in_force(), other.in_force());
        assert!(other.clocks().timelines.is_empty() && other.trail().is_empty());
        assert!(other.rows().is_empty());
    }
    assert!(loud.rows().len() == 240 && !loud.clocks().timelines.is_empty());
    quiet.run_until(600 * S);
    late.run_until(600 * S);
    assert_eq!(quiet.digest().unwrap(), late.digest().unwrap());
}

/// What a dial is tried on: a plan, a base setting, an end, and a figure that has to move.
struct Trial {
    dial: &'static str,
    plan: Vec<(f64, Action)>,
    base: Dials,
    end_s: u64,
    figure: fn(&World) -> f64,
    /// Whether the figure rises with the dial; `None` if it only has to differ.
    rises: Option<bool>,
}

fn sum(world: &World, figure: impl Fn(&Counters) -> f64) -> f64 {
    world.gauges().counters.iter().map(figure).sum()
}

/// Mean of a region's crash clocks, weighted; seconds.
fn crash_s(world: &World) -> f64 {
    sum(world, |c| c.crash.quantile(0.5).unwrap_or(0.0))
}

fn transitions(world: &World, reason: Reason) -> f64 {
    sum(world, |c| c.reasons[reason as usize] as f64)
}

fn health_trials() -> Vec<Trial> {
    let base = Dials { probe_timeout_s: 0.5, ..Dials::default() };
    let crashes = |freeze| vec![(10.0, Action::Crashes { instances: 60, over_s: 20.0, freeze })];
    let rollout = vec![(5.0, Action::Rollout { endpoints: 80, services: 20, popular: false })];
    let link = vec![(5.0, Action::BadZoneLink { region: 0, zone: 1, loss: 1.0, for_s: 100.0 })];
    let dependency = vec![(
        5.0,
        Action::BadDependency { services: 4, region: None, for_s: 60.0, fails: 0.15, slow_s: 0.0 },
    )];
    let blind = Stops { catalog: false, relays: false, probers: true, cold: false };
    let nodes = vec![(5.0, outage(200.0, blind)), (8.0, Action::Nodes { nodes: 4, back_s: 0.0 })];
    let trial = |dial, plan: &[(f64, Action)], end_s, figure: fn(&World) -> f64, rises| Trial {
        dial,
        plan: plan.to_vec(),
        base,
        end_s,
        figure,
        rises: Some(rises),
    };
    let expired = |world: &World| transitions(world, Reason::LeaseExpired);
    vec![
        trial("probe_interval_s", &[], 60, |w| sum(w, |c| c.probes as f64), false),
        trial("probe_timeout_s", &crashes(true), 120, crash_s, true),
        trial("failure_threshold", &crashes(false), 120, crash_s, true),
        trial("recovery_threshold", &rollout, 25, |w| transitions(w, Reason::Started), false),
        trial("probe_jitter_pct", &crashes(false), 120, crash_s, true),
        trial("confirming_probers", &[], 60, |w| sum(w, |c| c.probes as f64), true),
        trial(
            "dependency_mode",
            &dependency,
            60,
            |w| transitions(w, Reason::ReadinessReported),
            true,
        ),
        trial("guard_share_pct", &link, 60, |w| sum(w, |c| c.guard_held as f64), false),
        Trial {
            base: Dials { renewal_interval_s: 3.0, ..base },
            ..trial("lease_ttl_s", &nodes, 60, expired, false)
        },
        Trial {
            base: Dials { lease_ttl_s: 120.0, ..base },
            ..trial("renewal_interval_s", &[], 60, |w| sum(w, |c| c.renewals), false)
        },
        trial("drain_period_s", &rollout, 120, |w| w.bill().drain, true),
        trial("drain_period_s", &rollout, 400, |w| w.bill().forced, false),
        trial("accept_grace_s", &rollout, 120, |w| sum(w, |c| c.traffic.failures), false),
        trial("rollout_pace_per_s", &rollout, 20, |w| w.gauges().rollout.done as f64, true),
        trial("rollout_pace_per_s", &rollout, 400, |w| w.bill().rollout_overdue_min, false),
    ]
}

fn distribution_trials() -> Vec<Trial> {
    let rollout = vec![(5.0, Action::Rollout { endpoints: 80, services: 20, popular: false })];
    let cold = vec![(20.0, Action::RelayRestart { share: 1.0, cold: true })];
    let stops = Stops { catalog: false, relays: true, probers: false, cold: false };
    let away =
        vec![(5.0, Action::Churn { per_s: 1.0, for_s: 300.0 }), (20.0, outage(200.0, stops))];
    let trial = |dial, plan: &[(f64, Action)], end_s, figure: fn(&World) -> f64, rises| Trial {
        dial,
        plan: plan.to_vec(),
        base: Dials::default(),
        end_s,
        figure,
        rises,
    };
    let withdrawal: fn(&World) -> f64 =
        |world| sum(world, |c| c.withdrawal.quantile(0.95).unwrap_or(0.0));
    let connects: fn(&World) -> f64 = |world| sum(world, |c| c.connects as f64);
    let connected: fn(&World) -> f64 =
        |world| world.gauges().levels.iter().map(|level| level.connected).sum();
    vec![
        trial("coalesce_removals_ms", &rollout, 120, withdrawal, Some(true)),
        trial("coalesce_additions_ms", &rollout, 120, |w| sum(w, |c| c.deltas as f64), Some(false)),
        trial("delta_retention_s", &[], 60, |w| w.bill().retention, Some(true)),
        trial("delta_retention_s", &rollout, 90, |w| sum(w, |c| c.relay_busy_us), Some(true)),
        trial(
            "snapshot_budget_mb_s",
            &cold_with_changes(),
            40,
            |w| sum(w, |c| c.snapshots as f64),
            Some(true),
        ),
        trial("admission_per_s", &cold, 25, connected, Some(true)),
        trial("reconnect_base_s", &away, 60, connects, Some(false)),
        trial("reconnect_cap_s", &away, 220, connects, Some(false)),
        trial("reconnect_jitter_pct", &away, 60, connects, None),
        trial("head_heartbeat_s", &[], 90, |w| sum(w, |c| c.heartbeats as f64), Some(false)),
        trial("head_heartbeat_s", &[], 90, |w| sum(w, |c| c.relay_busy_us), Some(false)),
        trial("relays_per_region", &[], 200, |w| w.bill().relays, Some(true)),
    ]
}

/// Views fall behind, and the relays that come back know nothing of what happened.
fn cold_with_changes() -> Vec<(f64, Action)> {
    let stops = Stops { catalog: false, relays: true, probers: false, cold: true };
    vec![
        (1.0, Action::Rollout { endpoints: 100, services: 20, popular: false }),
        (5.0, outage(25.0, stops)),
    ]
}

fn proxy_trials() -> Vec<Trial> {
    // Dead endpoints stay in the views while the catalogs cannot remove them.
    let stops = Stops { catalog: true, relays: false, probers: true, cold: false };
    let dead = vec![
        (20.0, outage(300.0, stops)),
        (22.0, Action::Crashes { instances: 60, over_s: 2.0, freeze: true }),
    ];
    let trial = |dial, end_s, figure: fn(&World) -> f64, rises| Trial {
        dial,
        plan: dead.clone(),
        base: Dials { retry_budget_pct: 50.0, ..Dials::default() },
        end_s,
        figure,
        rises: Some(rises),
    };
    let ejections: fn(&World) -> f64 = |world| sum(world, |c| c.ejections as f64);
    let ejected: fn(&World) -> f64 =
        |world| world.gauges().levels.iter().map(|level| level.ejected as f64).sum();
    let retries: fn(&World) -> f64 = |world| sum(world, |c| c.traffic.retries);
    let cross: fn(&World) -> f64 = |world| sum(world, |c| c.traffic.cross_region);
    let refused: fn(&World) -> f64 = |world| sum(world, |c| c.traffic.policy_refused);
    // A third of a region is taken out.
    let link = vec![(20.0, Action::BadZoneLink { region: 0, zone: 1, loss: 1.0, for_s: 150.0 })];
    let eager = Dials { guard_share_pct: 100.0, failover_trigger_pct: 90.0, ..Dials::default() };
    let away = |for_s| vec![(20.0, outage(for_s, Stops::WARM))];
    vec![
        trial("ejection_errors", 40, ejections, false),
        trial("ejection_base_s", 300, ejections, false),
        trial("ejected_share_max_pct", 100, ejected, true),
        trial("connect_timeout_ms", 100, |w| sum(w, |c| c.waited_s), true),
        trial("retries_max", 60, retries, true),
        trial("retry_budget_pct", 60, retries, true),
        trial("failover_cap_pct", 60, |w| w.bill().spare, true),
        Trial { plan: link.clone(), base: eager, ..trial("failover_cap_pct", 200, cross, true) },
        Trial { plan: link, base: eager, ..trial("failover_trigger_pct", 200, cross, true) },
        Trial { plan: away(900.0), ..trial("snapshot_age_max_ordinary_s", 900, refused, false) },
        Trial { plan: away(400.0), ..trial("snapshot_age_max_strict_s", 400, refused, false) },
    ]
}

/// No dial is dead: turned from one end to the other, it moves what it is there for. It is turned after the
/// start and arrives like any wish, before anything happens.
#[test]
fn every_dial_moves_something() {
    let trials: Vec<Trial> =
        [health_trials(), distribution_trials(), proxy_trials()].into_iter().flatten().collect();
    for row in Dials::TABLE {
        let tried = trials.iter().any(|trial| trial.dial == row.name);
        assert!(tried, "{}: never tried", row.name);
    }
    for trial in &trials {
        let row = Dials::TABLE.iter().find(|row| row.name == trial.dial).unwrap();
        // The timeout has to stay below the interval, the back-off below its cap, and so on.
        let ends = match trial.dial {
            "probe_timeout_s" => [row.min, 4.0],
            _ => [row.min, row.max],
        };
        let [low, high] = ends.map(|value| {
            let wish = trial.base.with(trial.dial, value).unwrap();
            let mut world = world(&trial.plan, &trial.base);
            world.turn(wish).unwrap();
            world.run_until(trial.end_s * S);
            assert_eq!(world.violations(), [], "{} at {value}", trial.dial);
            (trial.figure)(&world)
        });
        let ok = match trial.rises {
            Some(true) => high > low,
            Some(false) => high < low,
            None => high.to_bits() != low.to_bits(),
        };
        assert!(ok, "{} from end to end: {low} to {high}", trial.dial);
        eprintln!("{:28} {low:12.4} {high:12.4}", trial.dial);
    }
}
