//! What calls meet in a world: dependencies, capacity, other regions, old views, revoked identities.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery::dials::Dials;
use oncall_discovery_sim::schedule::{Action, Planned, Scenario, Stops};
use oncall_discovery_sim::topology::{Scale, Shape};
use oncall_discovery_sim::world::{Setup, World};

fn setup(length_s: f64, dials: &Dials, plan: &[(f64, Action)]) -> Setup {
    let plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    let scenario = Scenario { name: "traffic".to_owned(), about: String::new(), length_s, plan };
    Setup { shape: Scale::Small.shape(), scenario, dials: *dials, seed: 5, verify: true }
}

fn play(setup: Setup) -> World {
    let mut world = World::new(setup).unwrap();
    world.run();
    assert_eq!(world.violations(), [], "safe whatever happens");
    world.check_accounts();
    world
}

fn dependency(fails: f64, slow_s: f64) -> Action {
    Action::BadDependency { services: 6, region: None, for_s: 120.0, fails, slow_s }
}

#[test]
fn a_bad_dependency_fails_some_and_readiness_follows_by_the_dial() {
    let run = |mode: f64| {
        let dials = Dials { dependency_mode: mode, guard_share_pct: 100.0, ..Dials::default() };
        play(setup(200.0, &dials, &[(20.0, dependency(0.3, 0.0))]))
    };
    let (off, critical) = (run(0.0), run(1.0));
    let (o, c) = (off.totals(), critical.totals());
    assert!(o.traffic.soft > 100.0, "{:?}", o.traffic);
    let least = |world: &World| world.rows().iter().map(|row| row.ready).min().unwrap();
    assert_eq!(least(&off), 480, "nobody looks at dependencies");
    assert!(least(&critical) < 450, "{}", least(&critical));
    // Trusting it takes everything out: nobody is left, although most requests could be served.
    assert!(c.no_backend_permitted > o.no_backend_permitted + 100.0);
    assert!(c.traffic.broken() > o.traffic.broken());
    // One retry is independent of the first attempt: about 0.3 squared of the requests fail.
    let share = o.traffic.failed / o.traffic.soft;
    assert!((0.15..0.3).contains(&share), "{share}");
}

#[test]
fn probes_grow_slow_before_they_fail_and_a_long_timeout_bridges_it() {
    let run = |timeout: f64| {
        let dials = Dials { probe_timeout_s: timeout, guard_share_pct: 100.0, ..Dials::default() };
        play(setup(110.0, &dials, &[(20.0, dependency(0.0, 89.0))]))
    };
    let (short, long) = (run(0.5), run(3.0));
    assert!(short.totals().false_removals > 20, "{}", short.totals().false_removals);
    assert_eq!(long.totals().false_removals, 0);
    let slowest = |world: &World| {
        let regions = world.gauges().counters;
        regions
            .iter()
            .filter_map(|region| region.probe_latency.quantile(0.9999))
            .fold(0.0, f64::max)
    };
    assert!(slowest(&long) > 2.0, "{}", slowest(&long));
    assert!(slowest(&short) < 0.7, "given up: {}", slowest(&short));
}

#[test]
fn too_few_instances_are_overloaded_and_more_attempts_make_it_worse() {
    let half = Action::Crashes { instances: 240, over_s: 5.0, freeze: false };
    let run = |target_load: f64, retries_max: f64| {
        let dials = Dials { retries_max, failover_trigger_pct: 0.0, ..Dials::default() };
        let mut setup = setup(60.0, &dials, &[(10.0, half)]);
        setup.shape = Shape { target_load, ..setup.shape };
        *play(setup).totals()
    };
    assert_eq!(run(0.0, 1.0).traffic.overloaded, 0.0);
    let (none, three) = (run(0.6, 0.0), run(0.6, 3.0));
    assert!(none.traffic.overloaded > 1_000.0, "{:?}", none.traffic);
    assert!(three.traffic.overloaded > 1.2 * none.traffic.overloaded, "{:?}", three.traffic);
}

fn failover(trigger: f64, cap: f64) -> World {
    let dials = Dials { failover_trigger_pct: trigger, failover_cap_pct: cap, ..Dials::default() };
    let half = Action::Crashes { instances: 200, over_s: 5.0, freeze: false };
    play(setup(90.0, &dials, &[(10.0, half)]))
}

#[test]
fn reads_fail_over_within_the_cap() {
    let (never, capped, generous) =
        (failover(0.0, 30.0), failover(80.0, 30.0), failover(80.0, 100.0));
    let cross = |world: &World| world.totals().traffic.cross_region;
    // Writes of single-writer services cross regions all the time.
    assert!(cross(&never) > 0.0);
    assert!(cross(&capped) > 1.2 * cross(&never), "{} {}", cross(&capped), cross(&never));
    assert!(cross(&generous) > cross(&capped));
    assert!(capped.goals().failover_capped > 0);
    assert_eq!(never.goals().failover_capped, 0);
}

#[test]
fn a_view_that_is_too_old_is_refused_or_degraded_by_the_service() {
    let dials = Dials { snapshot_age_max_strict_s: 60.0, ..Dials::default() };
    let out = Action::Outage { region: None, for_s: 120.0, stops: Stops::WARM };
    let strict = play(setup(300.0, &dials, &[(20.0, out)]));
    let patient = play(setup(300.0, &Dials::default(), &[(20.0, out)]));
    let refused = strict.totals().traffic.policy_refused;
    assert_eq!(patient.totals().traffic.policy_refused, 0.0);
    let topology = strict.topology();
    let any = topology.services.iter().any(|service| service.strict);
    assert_eq!(refused > 0.0, any, "{refused}");
    let last = strict.rows().last().unwrap();
    assert_eq!(last.traffic.policy_refused, 0.0, "over once the views are confirmed again");
}

#[test]
fn ordinary_services_degrade_or_refuse_in_a_long_quorum_loss() {
    let dials = Dials { snapshot_age_max_ordinary_s: 660.0, ..Dials::default() };
    let loss = Action::QuorumLoss { region: 0, for_s: 800.0 };
    let die = Action::Crashes { instances: 60, over_s: 700.0, freeze: false };
    let run = |dials: &Dials| play(setup(900.0, dials, &[(20.0, loss), (30.0, die)]));
    let (short, long) = (run(&dials), run(&Dials::default()));
    let at =
        |world: &World, t_s: f64| world.rows().iter().find(|row| row.t_s >= t_s).unwrap().traffic;
    assert_eq!(at(&short, 650.0).policy_refused, at(&long, 650.0).policy_refused);
    assert!(at(&short, 760.0).policy_refused > at(&long, 760.0).policy_refused);
    assert!(at(&short, 880.0).policy_refused < 0.5 * at(&short, 760.0).policy_refused);
}

#[test]
fn writes_wait_for_the_token_of_a_region_that_is_cut_off() {
    let mut moved = 0;
    for region in 0..3 {
        let cut = Action::Partition { region, for_s: 90.0 };
        let world = play(setup(180.0, &Dials::default(), &[(20.0, cut)]));
        let refused = |t_s: f64| {
            world.rows().iter().find(|row| row.t_s >= t_s).unwrap().traffic.policy_refused
        };
        assert_eq!(refused(15.0), 0.0);
        assert!(refused(40.0) > 0.0);
        // Within the lease nobody may take over; afterwards only callers of the region itself stay refused.
        assert!(refused(70.0) <= refused(40.0), "{} {}", refused(40.0), refused(70.0));
        moved += u32::from(refused(70.0) < refused(40.0));
        assert_eq!(refused(170.0), 0.0);
    }
    assert!(moved > 0, "no region owned anything");
}

#[test]
fn a_revoked_identity_is_refused_although_the_view_holds_it() {
    let revoke = Action::Revoke { instances: 240, for_s: 30.0 };
    let mut setup = setup(60.0, &Dials::default(), &[(10.0, revoke)]);
    // The other half would be overloaded.
    setup.shape.target_load = 0.0;
    let world = play(setup);
    assert!(world.totals().traffic.auth_refused > 100.0, "{:?}", world.totals().traffic);
    assert_eq!(world.totals().ejections, 0, "no matter of health");
    assert_eq!(world.rows().last().unwrap().traffic.auth_refused, 0.0);
}

/// A leader that is cut off decides expiries until it notices; its successor refuses them.
#[test]
fn an_expiry_of_a_stepped_down_leader_is_refused() {
    let nodes = Action::Nodes { nodes: 20, back_s: 90.0 };
    let cut = Action::LeaderCut { region: 0, for_s: 15.0 };
    let refused: u64 = (0..6)
        .map(|step| {
            let plan = [(10.0, nodes), (30.0 + f64::from(step), cut)];
            play(setup(60.0, &Dials::default(), &plan)).goals().old_term_expiry_refused
        })
        .sum();
    assert!(refused > 0);
}

#[test]
fn a_late_renewal_of_an_old_life_is_refused() {
    let nodes = Action::Nodes { nodes: 6, back_s: 40.0 };
    assert!(
        play(setup(90.0, &Dials::default(), &[(10.0, nodes)])).goals().old_generation_refused > 0
    );
}

#[test]
fn complaints_bring_probes_and_shorten_the_time_to_removal() {
    let crash = Action::Crashes { instances: 48, over_s: 30.0, freeze: false };
    let dials = Dials { probe_interval_s: 15.0, ejection_errors: 1.0, ..Dials::default() };
    let world = play(setup(120.0, &dials, &[(10.0, crash)]));
    assert!(world.totals().complaints > 50);
    let detected = oncall_discovery_sim::report::Report::of(&world).crash_detected;
    assert!(detected.p50 < 30.0, "three probes 15 s apart would take 37 s: {detected:?}");
}

/// Old views of a fleet that moved on: dead endpoints, ejections and overload in the same cells. Whatever changes
/// there moves events of every proxy, and moving them must not fill the queue.
#[test]
fn overload_among_dead_endpoints_does_not_flood_the_queue() {
    let stops = Stops { catalog: false, relays: true, probers: false, cold: true };
    let out = Action::Outage { region: None, for_s: 120.0, stops };
    let roll = Action::Rollout { endpoints: 240, services: 12, popular: true };
    let events = |target_load: f64| {
        let mut setup = setup(160.0, &Dials::default(), &[(10.0, out), (15.0, roll)]);
        setup.shape.target_load = target_load;
        let world = play(setup);
        (world.totals().events, world.totals().traffic.overloaded)
    };
    let ((plain, none), (loaded, overloaded)) = (events(0.0), events(0.6));
    assert!(none == 0.0 && overloaded > 1_000.0, "{overloaded}");
    assert!(loaded < 2 * plain, "{loaded} events against {plain}");
}

/// A dependency of one region: only its callers' attempts fail, and of services whose reads may go elsewhere. With
/// dependencies in readiness its endpoints leave and reads fail over; without, attempts go on failing.
#[test]
fn a_dependency_of_one_region_is_cured_by_failover() {
    let action = Action::BadDependency {
        services: 2,
        region: Some(1),
        for_s: 300.0,
        fails: 0.9,
        slow_s: 0.0,
    };
    let run = |mode: f64| {
        let dials = Dials {
            dependency_mode: mode,
            guard_share_pct: 100.0,
            failover_cap_pct: 100.0,
            failover_trigger_pct: 80.0,
            ..Dials::default()
        };
        play(setup(400.0, &dials, &[(20.0, action)]))
    };
    let (ignored, counted) = (run(0.0), run(2.0));
    let (i, c) = (&ignored.totals().traffic, &counted.totals().traffic);
    assert!(i.soft > 100.0 && i.broken() > 3.0 * c.broken(), "{i:?} {c:?}");
    assert!(c.cross_region > i.cross_region, "{i:?} {c:?}");
    // Other regions' callers meet nothing.
    let visible =
        |world: &World, region: usize| world.gauges().counters[region].traffic.user_visible();
    assert!(visible(&ignored, 1) > 100.0);
    assert!(visible(&ignored, 0) + visible(&ignored, 2) < 0.01 * visible(&ignored, 1));
}
