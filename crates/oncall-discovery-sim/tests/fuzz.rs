//! Five hundred schedules of the small cluster; many more by `cargo test --release -- --ignored`.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_discovery_sim::fuzz::{Campaign, campaign, draw_case, play, shrink};
use oncall_discovery_sim::schedule::Action;

fn assert_clean(campaign: &Campaign) {
    let first = campaign.findings.first();
    assert!(
        first.is_none(),
        "{} findings in {} cases; case {}: {:?}\nsmallest: {}",
        campaign.findings.len(),
        campaign.cases,
        first.unwrap().case,
        first.unwrap().violation,
        serde_json::to_string(&first.unwrap().setup).unwrap()
    );
}

#[test]
fn five_hundred_schedules_are_safe_and_heal() {
    let done =
        campaign(1, 0, |campaign| campaign.cases < 500 && campaign.findings.is_empty()).unwrap();
    assert_clean(&done);
    for (goal, count) in done.goals.list() {
        eprintln!("{goal}: {count}");
    }
    // Not vacuous: these were reached.
    let goals = done.goals;
    assert!(goals.gap_repaired_by_delta > 0 && goals.gap_repaired_by_snapshot > 0, "{goals:?}");
    assert!(goals.guard_held_a_removal > 0 && goals.no_backend_returned > 0, "{goals:?}");
    assert!(goals.snapshot_checksum_rejected > 0 && goals.failover_capped > 0, "{goals:?}");
    assert!(goals.old_generation_refused > 0 && goals.retention_overflow > 0, "{goals:?}");
    assert!(goals.old_term_expiry_refused > 0, "{goals:?}");
}

#[test]
#[ignore = "minutes; cargo test --release"]
fn ten_thousand_schedules_are_safe_and_heal() {
    assert_clean(&campaign(2, 0, |c| c.cases < 10_000 && c.findings.is_empty()).unwrap());
}

#[test]
fn a_case_is_a_function_of_its_numbers() {
    assert_eq!(draw_case(3, 7), draw_case(3, 7));
    assert_ne!(draw_case(3, 7).scenario.plan, draw_case(3, 8).scenario.plan);
    let (_, one) = play(&draw_case(3, 7)).unwrap();
    let (_, two) = play(&draw_case(3, 7)).unwrap();
    assert_eq!(one.trail(), two.trail());
    assert_eq!(one.digest().unwrap(), two.digest().unwrap());
}

/// The fuzzer can find something, and makes it small: a region that never gets its replicas back does not
/// heal, and nothing else of the schedule matters.
#[test]
fn what_does_not_heal_is_found_and_shrunk() {
    let mut setup = draw_case(5, 1);
    setup.scenario.plan.retain(|planned| !matches!(planned.action, Action::QuorumLoss { .. }));
    let forever = Action::QuorumLoss { region: 1, for_s: 1e6 };
    setup
        .scenario
        .plan
        .push(oncall_discovery_sim::schedule::Planned { at_s: 20.0, action: forever });
    let violation = play(&setup).unwrap().0.unwrap();
    assert_eq!(violation.invariant, "I19");
    let small = shrink(&setup, "I19").unwrap();
    assert_eq!(small.scenario.plan.len(), 1, "{:?}", small.scenario.plan);
}
