//! The committed constants are those of the shipped scenarios, and come out again.

use oncall_core::Split;
use oncall_eval::score::{Constants, Score, anchors, reference};
use oncall_eval::{Plan, hex, run_policy, stats};
use oncall_heuristics::PolicySpec;

/// After a change of a scenario, a price or the model: mint again, as `examples/reference.rs` says.
#[test]
fn hold_gets_what_the_file_says() {
    let shipped = oncall_env::shipped_names();
    let of_fleet = |c: &&Constants| shipped.contains(&c.scenario.as_str());
    let known: Vec<&Constants> = reference().scenarios.iter().filter(of_fleet).collect();
    let names: Vec<&str> = known.iter().map(|c| c.scenario.as_str()).collect();
    assert_eq!(names, shipped);
    for constants in known {
        let scenario = oncall_env::shipped(&constants.scenario).unwrap();
        assert_eq!(constants.hash, hex(scenario.hash), "{}", constants.scenario);
        let zero = &constants.zero;
        assert!(zero.split == "train" && zero.episodes >= 1000, "{}", constants.scenario);
        // All episodes again where a score depends on them, and a sample elsewhere.
        let is_scored = constants.hundred.is_some();
        let episodes = if is_scored { zero.episodes } else { 500 };
        let plan = Plan { episodes, split: Split::Train, seed: zero.seed, threads: 2 };
        let played = run_policy(&scenario, &PolicySpec::new("hold"), plan, &|_| ()).unwrap();
        let returns: Vec<f64> = played.iter().map(|episode| episode.return_).collect();
        let mean = stats::mean(&returns);
        let variance = stats::mean(&returns.iter().map(|r| (r - mean).powi(2)).collect::<Vec<_>>());
        let tolerance = if is_scored { 1e-9 } else { 5.0 * (variance / episodes as f64).sqrt() };
        assert!((mean - zero.mean).abs() <= tolerance, "{}: {mean}", constants.scenario);
    }
}

/// After a change of discovery or of a tuned setting: `oncall discovery anchors`.
#[test]
fn discoverys_constants_are_those_of_its_scenarios() {
    let shipped = oncall_env::shipped_names();
    let others = reference().scenarios.iter().filter(|c| !shipped.contains(&&*c.scenario));
    for constants in others {
        let name = &constants.scenario;
        let scenario = oncall_env::shipped(name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(constants.hash, hex(scenario.hash), "{name}");
        let zero = &constants.zero;
        assert!(zero.split == "train" && zero.episodes >= 20, "{name}");
        // A tenth and the full fleet take too long for a test.
        if name.contains('@') {
            continue;
        }
        let best = anchors("discovery").hundred_policy.unwrap();
        let hundred = constants.hundred.as_ref().unwrap();
        for (policy, expected) in [(anchors("discovery").zero, zero.mean), (best, hundred.mean)] {
            // All episodes again where they are quick, so that a price that changed is found, and a sample elsewhere.
            let episodes = if name == "calm" { zero.episodes } else { 10 };
            let plan = Plan { episodes, split: Split::Train, seed: zero.seed, threads: 2 };
            let played = run_policy(&scenario, &PolicySpec::new(policy), plan, &|_| ()).unwrap();
            let returns: Vec<f64> = played.iter().map(|episode| episode.return_).collect();
            let mean = stats::mean(&returns);
            let squares: Vec<f64> = returns.iter().map(|r| (r - mean).powi(2)).collect();
            // Half of it besides: ten episodes mostly show nothing of a tail that a mean of 200 has.
            let room = 6.0 * (stats::mean(&squares) / 10.0).sqrt() + 0.5 * expected.abs();
            let tolerance = if episodes == zero.episodes { 1e-9 } else { room };
            assert!((mean - expected).abs() <= tolerance, "{name} {policy}: {mean} {expected}");
        }
    }
}

#[test]
fn the_three_mornings_have_a_score_and_others_do_not() {
    for name in oncall_env::shipped_names() {
        let hash = oncall_env::shipped(name).unwrap().hash;
        let scored = ["spike", "bad-build", "cache-flush"].contains(&name);
        let constants = reference().scenarios.iter().find(|c| c.scenario == name).unwrap();
        assert_eq!(reference().score(name, hash).is_some(), constants.hundred.is_some(), "{name}");
        assert!(constants.hundred.is_some() || !scored, "{name}");
        assert!(reference().score(name, hash ^ 1).is_none(), "{name}");
    }
}

#[test]
fn hold_is_0_and_the_planner_100() {
    let score = Score::new(-150.0, -20.0).unwrap();
    for (return_, expected) in [(-150.0, 0.0), (-20.0, 100.0), (-85.0, 50.0), (-280.0, -100.0)] {
        assert!((score.of(return_) - expected).abs() < 1e-12);
    }
    assert!(Score::new(-20.0, -150.0).is_none() && Score::new(-20.0, -20.0).is_none());
}
