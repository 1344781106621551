//! The brief's arithmetic against a run at full scale, and its metrics against what was done to the world.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery::types::Reason;
use oncall_discovery_sim::schedule::{Action, Planned, Stops};
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Gauges, Setup, Trace, World};

const S: u64 = 1_000_000;

/// 10,000 endpoints in 120 s: 83 additions and 83 removals a second (R129), sent to those who follow the service
/// and not to all 5,000 proxies (R130).
#[test]
fn a_rollout_of_ten_thousand_changes_167_memberships_a_second() {
    let mut setup = Setup::shipped("rollout", Scale::Full, 1).unwrap();
    setup.scenario.plan.retain(|planned| matches!(planned.action, Action::Rollout { .. }));
    let mut world = World::new(setup).unwrap();
    let deltas = world.totals().deltas;
    world.record();
    world.run_until(160 * S);
    let course = world.take_course();
    // Boots spread the first and the last seconds.
    let (from, to) = (35 * S, 125 * S);
    let within = |at: u64| (from..to).contains(&at);
    let added = course.iter().filter(|(at, step)| within(*at) && matches!(step, Trace::Ready(_)));
    let gone =
        course.iter().filter(|(at, step)| within(*at) && matches!(step, Trace::NotReady(..)));
    let per_s = |count: usize| count as f64 / ((to - from) / S) as f64;
    let (added, gone) = (per_s(added.count()), per_s(gone.count()));
    assert!((added - 83.3).abs() < 2.5 && (gone - 83.3).abs() < 2.5, "{added} {gone}");
    let changes = course.iter().filter(|(_, step)| matches!(step, Trace::Update(_))).count() as f64;
    let each = (world.totals().deltas - deltas) as f64 / changes;
    let proxies = f64::from(world.topology().shape.nodes);
    assert!(changes > 19_000.0 && each > 20.0, "{changes} changes, {each:.0} deliveries each");
    assert!(each * 10.0 < proxies, "{each:.0} deliveries a change; everybody would be {proxies}");
}

fn small(plan: &[(f64, Action)]) -> World {
    let mut setup = Setup::shipped("calm", Scale::Small, 2).unwrap();
    setup.scenario.plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    World::new(setup).unwrap()
}

fn reason(gauges: &Gauges, reason: Reason) -> u64 {
    let at = Reason::ALL.iter().position(|&known| known == reason).unwrap();
    gauges.counters.iter().map(|region| region.reasons[at]).sum()
}

/// R134: what was started is what was registered.
#[test]
fn registrations_are_counted() {
    let roll = Action::Rollout { endpoints: 30, services: 5, popular: true };
    let mut world = small(&[(10.0, roll)]);
    let before = world.gauges();
    world.run_until(60 * S);
    let after = world.gauges();
    let registered = |g: &Gauges| reason(g, Reason::Registered) + reason(g, Reason::Reregistered);
    assert_eq!(registered(&after) - registered(&before), 30);
}

/// R136: a write takes a round trip of the quorum, and longer while followers are slow.
#[test]
fn the_time_of_a_write_shows_slow_followers() {
    let p50 = |plan: &[(f64, Action)]| {
        let mut world = small(plan);
        world.run_until(60 * S);
        let counters = world.gauges().counters[0];
        assert!(counters.write_latency.count() > 20);
        counters.write_latency.quantile(0.5).unwrap()
    };
    let churn = Action::Churn { per_s: 5.0, for_s: 60.0 };
    let lag = Action::LagFollowers { region: 0, lag_s: 1.0, for_s: 60.0 };
    let (calm, slow) = (p50(&[(0.5, churn)]), p50(&[(0.5, churn), (0.5, lag)]));
    assert!((0.001..0.02).contains(&calm), "{calm}");
    assert!(slow > calm + 0.08, "{slow} against {calm}");
}

/// R100: what it costs to live on old sets is there to be seen: their age, calls to withdrawn addresses, calls
/// that fail there.
#[test]
fn the_costs_of_old_sets_are_metrics() {
    let out = Action::Outage {
        region: None,
        for_s: 60.0,
        stops: Stops { catalog: false, relays: true, probers: false, cold: false },
    };
    let roll = Action::Rollout { endpoints: 40, services: 5, popular: true };
    let mut world = small(&[(10.0, out), (12.0, roll)]);
    world.run_until(8 * S);
    let calm = world.totals().traffic;
    assert_eq!((calm.stale, calm.failures), (0.0, 0.0));
    world.run_until(68 * S);
    let (traffic, row) = (world.totals().traffic, *world.rows().last().unwrap());
    assert!(traffic.stale > 10.0 && traffic.failures > 10.0, "{traffic:?}");
    assert!(row.snapshot_age_max_s > 55.0 && row.connected < 0.01, "{row:?}");
}
