//! Policies that cheat the spirit of the objective, and the best setting that never moves, score below
//! the best tuned rule in every scenario with an incident. If one does not, the prices are wrong.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::Split;
use oncall_env::shipped;
use oncall_eval::{Plan, run_policy, stats};
use oncall_heuristics::names;

const EPISODES: usize = 300;

fn returns(scenario: &str, policy: &str) -> Vec<f64> {
    // Other episodes than those on which rules are tuned, and not the held-out ones either.
    let plan = Plan { episodes: EPISODES, split: Split::Train, seed: 77_001, threads: 2 };
    let scenario = shipped(scenario).unwrap();
    let results = run_policy(&scenario, &policy.parse().unwrap(), plan, &|_| {}).unwrap();
    results.iter().map(|result| result.return_).collect()
}

fn check(scenario: &str) {
    let honest: Vec<(&str, Vec<f64>)> = ["runbook", "target-tracking", "hpa"]
        .map(|policy| (policy, returns(scenario, policy)))
        .into_iter()
        .collect();
    let (best, best_returns) = honest
        .iter()
        .max_by(|a, b| stats::mean(&a.1).total_cmp(&stats::mean(&b.1)))
        .unwrap();
    let cheats = names().into_iter().filter(|name| name.starts_with("cheat-"));
    let mut compared = 0;
    for cheat in cheats.chain(["best-fixed", "hold"]) {
        let found = returns(scenario, cheat);
        // Paired: the mean difference is above four of its standard errors.
        let gaps: Vec<f64> = best_returns.iter().zip(&found).map(|(a, b)| a - b).collect();
        let mean = stats::mean(&gaps);
        let variance = stats::mean(&gaps.iter().map(|gap| (gap - mean) * (gap - mean)).collect::<Vec<_>>());
        let error = (variance / EPISODES as f64).sqrt();
        println!("{scenario}: {best} beats {cheat} by {mean:.2} +- {error:.2} dollars");
        assert!(mean > 4.0 * error, "{scenario}: {best} against {cheat}: {mean} +- {error}");
        compared += 1;
    }
    assert_eq!(compared, 8);
}

#[test]
fn cheating_does_not_pay_on_the_three_mornings() {
    ["spike", "bad-build", "cache-flush"].into_iter().for_each(check);
}

#[test]
fn cheating_does_not_pay_on_the_hard_mornings() {
    ["spike-hard", "bad-build-hard", "cache-flush-hard"].into_iter().for_each(check);
}
