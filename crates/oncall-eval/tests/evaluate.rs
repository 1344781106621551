//! All policies on all scenarios: the same mornings for everybody.

use oncall_core::Split;
use oncall_env::Scenario;
use oncall_eval::{Contender, Plan, default_contenders, evaluate};
use std::sync::atomic::{AtomicU64, Ordering};

const PLAN: Plan = Plan { episodes: 6, split: Split::Test, seed: 2, threads: 2 };

fn scenarios(names: &[&str]) -> Vec<Scenario> {
    names.iter().filter_map(|name| oncall_env::shipped(name)).collect()
}

fn contenders(texts: &[&str]) -> Vec<Contender> {
    texts.iter().map(|text| Contender::parse(text).expect("a known policy")).collect()
}

#[test]
fn everybody_meets_the_same_mornings() {
    let names = ["spike", "steady"];
    let policies = ["hold", "fixed-20", "hpa:target=0.5"];
    let told = AtomicU64::new(0);
    let (report, played) =
        evaluate(&scenarios(&names), &contenders(&policies), PLAN, &|progress| {
            assert!(names.contains(&progress.scenario) && policies.contains(&progress.policy));
            told.fetch_add(progress.minutes, Ordering::Relaxed);
        })
        .unwrap();
    assert_eq!(told.into_inner(), 6 * 3 * (240 + 240));
    assert_eq!(played.iter().map(|scenario| scenario.name.as_str()).collect::<Vec<_>>(), names);
    for scenario in &played {
        let found: Vec<&str> = scenario.policies.iter().map(|p| p.name.as_str()).collect();
        assert_eq!(found, policies);
        let seeds = |i: usize| -> Vec<u64> {
            scenario.policies[i].episodes.iter().map(|episode| episode.seed).collect()
        };
        assert_eq!((seeds(0), seeds(0)), (seeds(1), seeds(2)));
    }
    // Parameters are spelled out: those that were given and those that were not.
    let hpa = &report.scenarios[0].policies[2];
    assert!(hpa.params.contains(&("target".to_owned(), 0.5)) && hpa.params.len() > 1);
    assert_eq!(report.improvement.len(), 2 * 3);
    // Against a bigger fleet on a quiet day, `hold` wins every morning.
    let steady = report.improvement.iter().find(|pair| pair.scenario == "steady").unwrap();
    assert_eq!((steady.a.as_str(), steady.b.as_str(), steady.p), ("hold", "fixed-20", 1.0));
}

#[test]
fn an_action_changes_no_draw() {
    // What a policy does cannot change the demand: with the queue out of the way the two fixed fleets
    // refuse and admit the same requests, so they differ by the dollars of the fleet alone.
    let (_, played) =
        evaluate(&scenarios(&["steady"]), &contenders(&["fixed-20", "fixed-21"]), PLAN, &|_| ())
            .unwrap();
    let spec = scenarios(&["steady"])[0].world.spec().clone();
    let staleness = spec.term("staleness_usd").unwrap();
    let [a, b] = [0, 1].map(|i| &played[0].policies[i].episodes);
    for (a, b) in a.iter().zip(b) {
        assert_eq!(a.terms[staleness], b.terms[staleness]);
        assert!(a.return_ > b.return_);
    }
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let error = |names: &[&str], policies: &[&str], plan: Plan| {
        let found = evaluate(&scenarios(names), &contenders(policies), plan, &|_| ());
        found.unwrap_err().to_string()
    };
    assert_eq!(error(&[], &["hold"], PLAN), "scenarios = nothing: expected at least one");
    assert_eq!(error(&["spike"], &[], PLAN), "policies = nothing: expected at least one");
    assert_eq!(
        error(&["spike", "spike"], &["hold"], PLAN),
        "scenarios = spike: expected each name once"
    );
    assert_eq!(error(&["spike"], &["hpa", "hpa"], PLAN), "policies = hpa: expected each name once");
    let plan = Plan { episodes: 0, ..PLAN };
    assert!(error(&["spike"], &["hold"], plan).starts_with("episodes = 0"));
    assert!(Contender::parse("runbok").unwrap_err().to_string().contains("`runbok`"));
}

#[test]
fn all_honest_policies_are_compared_by_default() {
    let names: Vec<String> = default_contenders("fleet").into_iter().map(|c| c.name).collect();
    for name in ["hold", "target-tracking", "hpa", "runbook", "open-loop", "random"] {
        assert!(names.iter().any(|known| known == name), "{name}");
    }
    assert!(!names.iter().any(|name| name.starts_with("cheat-") || name == "fixed"));
}
