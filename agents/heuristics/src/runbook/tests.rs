//! The rule on hand-made dashboards.

use crate::policies::testing::{Row, act, policy};
use crate::{Policy, PolicyKey};
use oncall_fleet::Sig;
use oncall_fleet::dials::index::{
    AUTOSCALE, CACHE_TTL_S, FEATURE, MIN_INSTANCES, ROLLBACK, SHED_SHARE, WARM_UP,
};

fn runbook(given: &str) -> Box<dyn Policy> {
    let colon = if given.is_empty() { "" } else { ":" };
    policy(&format!("runbook{colon}{given}"))
}

/// A build that is live on a share of the traffic, with these errors, four minutes into the rollout.
fn build_row(minute: u32, error_rate: f64, failed_share: f64) -> Row {
    Row::quiet(minute)
        .with(Sig::bad_build_share, 0.8)
        .with(Sig::since_deploy_min, 3.0)
        .with(Sig::error_rate, error_rate)
        .with(Sig::failed_share, failed_share)
}

/// A minute at this demand with this many instances, as the model of the fleet shows it.
fn demand_row(minute: u32, offered_rps: f64, serving: f64) -> Row {
    let asked = offered_rps * 60.0 / 20_000.0;
    let hit = asked / (1.0 + asked);
    let rho = offered_rps * 3.0 * (1.0 - hit) / 4000.0;
    let query_ms = 5.0 / (1.0 - rho);
    Row::quiet(minute)
        .with(Sig::offered_rps, offered_rps)
        .with(Sig::admitted_rps, offered_rps)
        .with(Sig::cache_hit, hit)
        .with(Sig::db_utilization, rho)
        .with(Sig::query_ms, query_ms)
        .with(Sig::service_ms, 70.0 + (1.0 - hit) * 3.0 * query_ms)
        .with(Sig::serving, serving)
}

/// A minute with an empty cache.
fn cold_row(minute: u32, warmth: f64) -> Row {
    let hit = warmth * 1125.0 * 60.0 / (20_000.0 + 1125.0 * 60.0);
    let rho = 1125.0 * 3.0 * (1.0 - hit) / 4000.0;
    let query_ms = (5.0 / (1.0 - rho)).min(250.0);
    Row::quiet(minute)
        .with(Sig::cache_hit, hit)
        .with(Sig::db_utilization, rho)
        .with(Sig::query_ms, query_ms)
        .with(Sig::service_ms, 70.0 + (1.0 - hit) * 3.0 * query_ms)
}

#[test]
fn a_quiet_day_gets_what_it_needs_and_no_more() {
    let mut rule = runbook("headroom=0.1");
    for minute in 0..30 {
        let action = act(&mut *rule, &Row::quiet(minute));
        // 83.5 erlangs and a tenth are 91.9 servers of 96.
        assert_eq!((action[MIN_INSTANCES], action[AUTOSCALE]), (6.0, 0.0));
        assert_eq!((action[SHED_SHARE], action[FEATURE], action[CACHE_TTL_S]), (0.0, 1.0, 60.0));
        assert_eq!((action[WARM_UP], action[ROLLBACK]), (0.0, 0.0));
    }
}

#[test]
fn unexplained_errors_of_a_new_build_roll_it_back_once() {
    let mut rule = runbook("");
    let mut at = |row: Row| act(&mut *rule, &row)[ROLLBACK];
    assert_eq!(at(Row::quiet(9)), 0.0);
    assert_eq!(at(build_row(10, 0.01, 0.0)), 1.0);
    for left in (0..5_u32).rev() {
        // The last of these rows still shows the bad build, which is retired after it.
        let row = build_row(15 - left, 0.05, 0.0).with(Sig::rollback_left_min, f64::from(left));
        assert_eq!(at(row), 0.0, "{left}");
    }
    assert_eq!(at(Row::quiet(16)), 0.0);
    // A second bad build is another matter.
    assert_eq!(at(build_row(40, 0.02, 0.0)), 1.0);
}

#[test]
fn a_build_is_not_condemned_for_what_the_queue_does() {
    let pressed = |row: Row| act(&mut *runbook("build_errors=0.002"), &row)[ROLLBACK];
    assert_eq!(pressed(build_row(10, 0.3, 0.3)), 0.0);
    assert_eq!(pressed(build_row(10, 0.3 + 0.7 * 0.001, 0.3)), 0.0);
    assert_eq!(pressed(build_row(10, 0.3 + 0.7 * 0.01, 0.3)), 1.0);
    // Without a new build there is nothing to roll back to.
    assert_eq!(pressed(build_row(10, 0.05, 0.0).with(Sig::bad_build_share, 0.0)), 0.0);
    // A good new build, shown where the truth is hidden, is left alone.
    assert_eq!(pressed(build_row(10, 0.0, 0.0)), 0.0);
    // Nor does it pay when the shift is over before the traffic is switched.
    assert_eq!(pressed(build_row(10, 0.05, 0.0).with(Sig::shift_left_min, 4.0)), 0.0);
}

#[test]
fn a_flush_is_degraded_through_and_warmed_up() {
    let mut rule = runbook("cold=0.6");
    act(&mut *rule, &Row::quiet(29));
    let action = act(&mut *rule, &cold_row(30, 0.0));
    assert_eq!(action[WARM_UP], 1.0);
    assert!(action[FEATURE] < 0.5 || action[SHED_SHARE] > 0.5, "{action:?}");
    // It runs: no second press, even though the cache is still cold.
    let running = cold_row(31, 0.03).with(Sig::warm_up_left_min, 5.0);
    assert_eq!(act(&mut *rule, &running)[WARM_UP], 0.0);
    // Warm again: back to normal.
    let action = act(&mut *rule, &cold_row(50, 0.95));
    assert_eq!((action[WARM_UP], action[FEATURE], action[SHED_SHARE]), (0.0, 1.0, 0.0));
}

#[test]
fn a_rising_surge_gets_a_large_order_that_is_cancelled_at_the_top() {
    let mut rule = runbook("surge_floor=30,surge_hold_min=1,headroom=0.1");
    act(&mut *rule, &demand_row(0, 1125.0, 6.0));
    let rising = act(&mut *rule, &demand_row(1, 1500.0, 6.0));
    assert!(rising[MIN_INSTANCES] >= 30.0, "{rising:?}");
    let booting = |minute, rps| demand_row(minute, rps, 6.0).with(Sig::booting, 24.0);
    assert!(act(&mut *rule, &booting(2, 1900.0))[MIN_INSTANCES] >= 30.0);
    act(&mut *rule, &booting(3, 1900.0));
    let after = act(&mut *rule, &booting(4, 1890.0));
    // 136 erlangs and a tenth are 9.4 instances.
    assert!((9.0..=11.0).contains(&after[MIN_INSTANCES]), "{after:?}");
}

#[test]
fn sheds_only_while_saturated() {
    let mut rule = runbook("surge_floor=30,calm_min=0");
    act(&mut *rule, &demand_row(0, 1125.0, 6.0));
    let overloaded = act(&mut *rule, &demand_row(1, 2000.0, 6.0));
    assert!(overloaded[SHED_SHARE] > 0.9 && overloaded[FEATURE] < 0.5, "{overloaded:?}");
    let relieved = act(&mut *rule, &demand_row(20, 2000.0, 30.0));
    assert_eq!((relieved[SHED_SHARE], relieved[FEATURE]), (0.0, 1.0));
}

#[test]
fn steps_back_only_after_calm_minutes() {
    let mut rule = runbook("surge_floor=30,calm_min=5,surge_hold_min=0");
    act(&mut *rule, &demand_row(0, 1125.0, 6.0));
    act(&mut *rule, &demand_row(1, 2000.0, 6.0));
    for minute in 2..6 {
        let held = act(&mut *rule, &demand_row(minute, 2000.0, 30.0));
        assert!(held[SHED_SHARE] > 0.9 && held[FEATURE] < 0.5, "{minute} {held:?}");
    }
    let calm = act(&mut *rule, &demand_row(6, 2000.0, 30.0));
    assert_eq!((calm[SHED_SHARE], calm[FEATURE]), (0.0, 1.0));
}

#[test]
fn the_guard_stands_until_the_first_incident() {
    let text = "guard_spare=3,flush_hazard=0.03,headroom=0.1,cold=0";
    let mut rule = runbook(text);
    let guarded = act(&mut *rule, &Row::quiet(0));
    assert!(guarded[SHED_SHARE] > 0.0 && guarded[MIN_INSTANCES] >= 9.0, "{guarded:?}");
    act(&mut *rule, &cold_row(1, 0.0));
    let after = act(&mut *rule, &Row::quiet(40));
    assert_eq!((after[SHED_SHARE], after[MIN_INSTANCES]), (0.0, 6.0));
    let mut always = runbook(&format!("{text},guard_always=1"));
    for row in [Row::quiet(0), cold_row(1, 0.0), Row::quiet(40)] {
        act(&mut *always, &row);
    }
    assert!(act(&mut *always, &Row::quiet(41))[SHED_SHARE] > 0.0);
    // A new shift remembers nothing.
    rule.reset(PolicyKey::default());
    let bits = |action: [f64; 8]| action.map(f64::to_bits);
    assert_eq!(bits(act(&mut *rule, &Row::quiet(0))), bits(guarded));
}
