//! A policy against the planner's episodes: the right mornings, whether they were played or not.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use oncall_core::Split;
use oncall_eval::planned::{BeatsPlanner, PlannedEpisodes, compare_to_planner, episodes_to_play};
use oncall_eval::{Contender, Plan, evaluate, hex, run_policy};
use oncall_heuristics::PolicySpec;
use std::sync::atomic::{AtomicU64, Ordering};

const EPISODES: usize = 8;

fn plan(seed: u64, episodes: usize) -> Plan {
    Plan { episodes, split: Split::Test, seed, threads: 2 }
}

/// "Planned" episodes: those of a policy, half of them a cent worse than it, one of them equal.
fn planned(policy: &str) -> PlannedEpisodes {
    let scenario = oncall_env::shipped("steady").unwrap();
    let played =
        run_policy(&scenario, &PolicySpec::new(policy), plan(5, EPISODES), &|_| ()).unwrap();
    let returns = played.iter().enumerate().map(|(i, episode)| match i {
        0 => episode.return_,
        i if i % 2 == 0 => episode.return_ - 0.01,
        _ => episode.return_ + 0.01,
    });
    PlannedEpisodes {
        scenario: scenario.name.clone(),
        hash: hex(scenario.hash),
        split: Split::Test,
        seed: 5,
        returns: returns.collect(),
    }
}

/// What the comparison finds for `hold` and `fixed-20`, and the minutes that it played for it.
fn compared(plan: Plan, planned: &[PlannedEpisodes]) -> (Vec<Option<BeatsPlanner>>, u64) {
    let scenarios = [oncall_env::shipped("steady").unwrap()];
    let contenders = ["hold", "fixed-20"].map(|text| Contender::parse(text).unwrap());
    let (mut report, played) = evaluate(&scenarios, &contenders, plan, &|_| ()).unwrap();
    let told = AtomicU64::new(0);
    let tell = |progress: oncall_eval::Progress<'_>| {
        told.fetch_add(progress.minutes, Ordering::Relaxed);
    };
    compare_to_planner(&mut report, (&scenarios, &contenders, plan), &played, planned, &tell)
        .unwrap();
    let found = report.scenarios[0].policies.iter().map(|policy| policy.beats_planner);
    assert_eq!(
        told.load(Ordering::Relaxed),
        240 * 2 * episodes_to_play(&scenarios[0], plan, planned) as u64
    );
    (found.collect(), told.into_inner())
}

#[test]
fn only_what_is_better_counts() {
    let hold = planned("hold");
    // Episodes 2, 4 and 6 of 8; the equal one does not count. A fleet of twenty never wins.
    let expected = [3.0 / 8.0, 0.0].map(|share| Some(BeatsPlanner { episodes: EPISODES, share }));
    // Other mornings, another split or too few of them: they are played for the purpose.
    let played = 2 * 240 * EPISODES as u64;
    for plan in [plan(4, EPISODES), Plan { split: Split::Train, ..plan(5, EPISODES) }, plan(5, 3)] {
        assert_eq!(compared(plan, std::slice::from_ref(&hold)), (expected.to_vec(), played));
    }
    // The same mornings: nothing is played twice.
    assert_eq!(compared(plan(5, EPISODES + 2), &[hold]), (expected.to_vec(), 0));
}

#[test]
fn another_scenario_is_not_compared() {
    let other = PlannedEpisodes { hash: hex(1), ..planned("hold") };
    assert_eq!(compared(plan(4, 2), &[other]), (vec![None, None], 0));
    assert_eq!(compared(plan(4, 2), &[]), (vec![None, None], 0));
}

#[test]
fn one_in_a_hundred_is_no_reason_yet() {
    let beats = |share| BeatsPlanner { episodes: 100, share };
    assert!(!beats(0.01).is_too_often() && beats(0.02).is_too_often());
}
