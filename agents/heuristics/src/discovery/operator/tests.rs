//! The operator on hand-made rows: each pattern alone, and what it leaves alone.

use super::*;

/// A calm row at a minute.
fn calm(minute: f64) -> Vec<f64> {
    let mut row = vec![0.0; SPEC.signals.len()];
    let p = &*PLACES;
    row[p.episode_min] = minute;
    row[p.rollout_next_min] = 60.0;
    for places in [p.catalog_seen, p.quorum, p.ready_share, p.connected_share] {
        for place in places {
            row[place] = 1.0;
        }
    }
    for place in p.write_latency_ms_p99 {
        row[place] = 30.0;
    }
    for place in p.follower_lag_s_max {
        row[place] = 0.5;
    }
    row
}

fn operator() -> Operator {
    let defaults: Vec<f64> = Rules::table().iter().map(|param| param.default.unwrap()).collect();
    let mut operator = Operator::new(&Rules::from_values(&defaults));
    // So that the tests say what the rules do, and not what a search found.
    operator.base = SPEC.dials.iter().map(|dial| dial.default).collect();
    operator.base[DIALS.relays_per_region] = operator.rules.quiet_relays;
    operator.base[DIALS.coalesce_removals_ms] = operator.rules.quiet_removals_ms;
    operator.reset(PolicyKey::default());
    operator
}

/// Names of the dials that are off the base, with their values.
fn turned(operator: &mut Operator, row: &[f64]) -> Vec<(&'static str, f64)> {
    let mut action = vec![f64::NAN; SPEC.dials.len()];
    operator.act(row, &mut action);
    let dials = SPEC.dials.iter().zip(&action).zip(&operator.base);
    let moved = dials.filter(|((_, value), base)| value != base);
    moved.map(|((dial, value), _)| (dial.name, *value)).collect()
}

/// What is done about symptoms that begin at minute ten.
fn answers(symptoms: &[(usize, f64)]) -> Vec<(&'static str, f64)> {
    let mut operator = operator();
    for minute in [0.0, 2.0, 5.0, 9.0] {
        assert_eq!(turned(&mut operator, &calm(minute)), []);
    }
    let mut row = calm(10.0);
    for (place, value) in symptoms {
        row[*place] = *value;
    }
    turned(&mut operator, &row)
}

#[test]
fn what_is_remembered_can_be_saved() {
    let mut operator = operator();
    let mut row = calm(3.0);
    turned(&mut operator, &row);
    row = calm(10.0);
    row[PLACES.unhealthy_share] = 0.5;
    assert_ne!(turned(&mut operator, &row), []);
    let memory = operator.memory().unwrap();
    let mut other = self::operator();
    other.recall(&memory);
    assert_eq!(other.memory().unwrap(), memory);
    let later = calm(11.0);
    let expected = turned(&mut operator, &later);
    assert_ne!(expected, []);
    assert_eq!(turned(&mut other, &later), expected);
    assert_ne!(turned(&mut self::operator(), &later), expected);
}

#[test]
fn the_dials_are_those_of_the_world() {
    for name in DIAL_NAMES {
        assert!(SPEC.dial(name).is_some(), "{name}");
    }
}

#[test]
fn failed_probes_are_read_by_their_pattern() {
    let p = &*PLACES;
    let failing = (p.probe_failure_share[1], 0.2);
    let service = answers(&[failing, (p.probe_failures_by_service, 0.9)]);
    let expected =
        [("failure_threshold", 4.0), ("dependency_mode", 0.0), ("guard_share_pct", 10.0)];
    assert_eq!(service, expected);
    let node = answers(&[failing, (p.probe_failures_by_node, 0.8)]);
    assert_eq!(node, [("failure_threshold", 2.0), ("guard_share_pct", 50.0)]);
    let vantage = answers(&[failing, (p.prober_disagreement, 0.5)]);
    assert_eq!(vantage, [("confirming_probers", 2.0)]);
    let link = answers(&[failing, (p.probe_failures_by_zone, 0.9)]);
    assert_eq!(link, [("confirming_probers", 2.0)]);
    // Few failures are no pattern, however they lie.
    assert_eq!(answers(&[(p.probe_failures_by_service, 1.0), (p.probe_failures_by_node, 1.0)]), []);
}

#[test]
fn an_outage_is_prepared_for_and_recovered_from() {
    let p = &*PLACES;
    let names = |found: Vec<(&'static str, f64)>| -> Vec<&str> {
        found.into_iter().map(|(name, _)| name).collect()
    };
    for sign in [(p.write_latency_ms_p99[2], 80.0), (p.follower_lag_s_max[0], 3.0)] {
        let prepared = names(answers(&[sign]));
        for dial in ["delta_retention_s", "ejection_errors", "snapshot_age_max_ordinary_s"] {
            assert!(prepared.contains(&dial), "{prepared:?}");
        }
    }
    let storm = answers(&[(p.connected_share[0], 0.6)]);
    assert!(storm.contains(&("reconnect_jitter_pct", 100.0)), "{storm:?}");
    assert!(storm.contains(&("admission_per_s", 400.0)), "{storm:?}");
    assert_eq!(storm, answers(&[(p.catalog_seen[1], 0.0)]), "told in time for the return");
}

#[test]
fn rollouts_are_read_off_the_calendar() {
    let p = &*PLACES;
    let hot = answers(&[(p.rollout_next_min, 2.0), (p.rollout_next_services_share, 0.01)]);
    let expected = [
        ("coalesce_removals_ms", 350.0),
        ("coalesce_additions_ms", 2000.0),
        ("rollout_pace_per_s", 20.0),
        ("relays_per_region", 34.0),
    ];
    assert_eq!(hot, expected);
    let spread = answers(&[(p.rollout_running, 1.0), (p.rollout_next_services_share, 0.8)]);
    assert_eq!(spread, [("coalesce_removals_ms", 50.0), ("rollout_pace_per_s", 60.0)]);
    assert_eq!(answers(&[(p.rollout_next_min, 30.0)]), []);
}

#[test]
fn what_fails_in_one_region_only_is_left_by_its_callers() {
    let p = &*PLACES;
    let hard = answers(&[(p.failed_share[1], 0.05), (p.failed_share[2], 0.001)]);
    let expected = [
        ("ejected_share_max_pct", 60.0),
        ("failover_trigger_pct", 80.0),
        ("failover_cap_pct", 100.0),
    ];
    assert_eq!(hard, expected);
    // What fails everywhere fails elsewhere as well.
    assert_eq!(answers(&p.failed_share.map(|place| (place, 0.05))), []);
}

#[test]
fn relays_are_few_while_nothing_needs_them() {
    let mut operator = operator();
    operator.base[DIALS.relays_per_region] = 20.0;
    operator.rules.quiet_removals_ms = 500.0;
    let quiet = [("coalesce_removals_ms", 500.0), ("relays_per_region", 8.0)];
    assert_eq!(turned(&mut operator, &calm(1.0)), quiet);
    let mut away = calm(2.0);
    away[PLACES.connected_share[0]] = 0.5;
    let names: Vec<&str> = turned(&mut operator, &away).into_iter().map(|dial| dial.0).collect();
    assert!(quiet.iter().all(|(name, _)| !names.contains(name)), "{names:?}");
}

#[test]
fn a_pattern_stands_for_a_while_and_a_reset_forgets_it() {
    let p = &*PLACES;
    let mut operator = operator();
    turned(&mut operator, &calm(0.0));
    let mut lost = calm(10.0);
    lost[p.quorum[2]] = 0.0;
    let found = turned(&mut operator, &lost);
    assert_eq!(found, [("failover_trigger_pct", 60.0), ("failover_cap_pct", 60.0)]);
    assert_eq!(turned(&mut operator, &calm(13.0)), found);
    assert_eq!(turned(&mut operator, &calm(14.5)), []);
    turned(&mut operator, &lost);
    operator.reset(PolicyKey::default());
    assert_eq!(turned(&mut operator, &calm(0.0)), []);
}
