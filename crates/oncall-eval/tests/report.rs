//! The report of hand-made episodes: every number by hand, and the shape of the JSON.

use oncall_core::{Spec, Split};
use oncall_eval::report::{PolicyEpisodes, Report, ScenarioEpisodes};
use oncall_eval::score::{Constants, Hold, Planner, Reference};
use oncall_eval::{EpisodeResult, Plan, hex, table};
use serde_json::Value;

const PLAN: Plan = Plan { episodes: 4, split: Split::Test, seed: 3, threads: 1 };

fn spec() -> Spec {
    oncall_env::shipped("spike").expect("a shipped name").world.spec().clone()
}

fn episode(return_: f64, mitigated: Option<u32>, unmitigated: bool) -> EpisodeResult {
    let mut terms = vec![0.0; spec().terms.len()];
    terms[1] = -return_;
    EpisodeResult {
        seed: 1,
        episode: 0,
        minutes: 240,
        return_,
        terms,
        budget_burned: -return_ / 1000.0,
        pages: u32::from(mitigated.is_some()),
        minutes_to_mitigate: mitigated,
        unmitigated,
    }
}

fn scenario(name: &str, hash: u64) -> ScenarioEpisodes {
    let good = [
        episode(-10.0, None, false),
        episode(-20.0, Some(4), false),
        episode(-30.0, Some(7), false),
        episode(-80.0, Some(90), true),
    ];
    let bad = [-10.0, -40.0, -20.0, -90.0].map(|return_| episode(return_, Some(8), false));
    let policy = |name: &str, params: &[(&str, f64)], episodes: &[EpisodeResult]| PolicyEpisodes {
        name: name.to_owned(),
        params: params.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        episodes: episodes.to_vec(),
    };
    ScenarioEpisodes {
        name: name.to_owned(),
        hash,
        policies: vec![
            policy("bad", &[], &bad),
            policy("good:z=1,a=2", &[("z", 1.0), ("a", 2.0)], &good),
        ],
    }
}

fn reference() -> Reference {
    let constants = |scenario: &str, hash: u64, planner: Option<f64>| Constants {
        scenario: scenario.to_owned(),
        hash: hex(hash),
        hold: Hold { mean: -60.0, episodes: 1000, seed: 1, split: "train".to_owned() },
        planner: planner.map(|mean| Planner { mean, source: "by hand".to_owned() }),
    };
    Reference {
        schema_version: 1,
        scenarios: vec![
            constants("one", 1, Some(-10.0)),
            constants("two", 2, Some(-20.0)),
            constants("no-planner", 3, None),
        ],
    }
}

fn report(scenarios: &[ScenarioEpisodes]) -> Report {
    Report::new(&spec(), PLAN, scenarios, &reference())
}

fn near(found: &Value, expected: f64) {
    let found = found.as_f64().expect("a number");
    assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{found} {expected}");
}

#[test]
fn the_numbers_are_those_of_the_episodes() {
    let text = report(&[scenario("one", 1)]).json();
    let json: Value = serde_json::from_str(&text).unwrap();
    let good = &json["scenarios"][0]["policies"][1];
    near(&good["return"]["mean"], -35.0);
    near(&good["return"]["iqm"], -25.0);
    // 100 (r + 60) / (-10 + 60)
    near(&good["score"]["mean"], 50.0);
    near(&good["score"]["iqm"], 70.0);
    for (end, place) in [("low", 0), ("high", 1)] {
        let return_ = good["return"]["ci95"][place].as_f64().unwrap();
        assert!((-80.0..=-10.0).contains(&return_), "{end}");
        near(&good["score"]["ci95"][place], 2.0 * (return_ + 60.0));
    }
    near(&good["budget_burned"], 0.035);
    near(&good["terms"][spec().terms[1].name], 35.0);
    near(&good["pages"], 0.75);
    near(&good["minutes_to_mitigate"]["median"], 7.0);
    near(&good["minutes_to_mitigate"]["share_burned"], 0.75);
    near(&good["minutes_to_mitigate"]["share_unmitigated"], 0.25);
    // bad against good: tie, loss, win, loss.
    let pair = &json["improvement"][0];
    assert_eq!((&pair["a"], &pair["b"]), (&"bad".into(), &"good:z=1,a=2".into()));
    near(&pair["p"], 0.375);
    assert!(pair["ci95"][0].as_f64().unwrap() < 0.375 && pair["ci95"][1].as_f64().unwrap() > 0.375);
    assert_eq!(json["improvement"].as_array().unwrap().len(), 1);
}

#[test]
fn scores_need_a_reference_of_the_same_version() {
    let score = |name: &str, hash: u64| {
        report(&[scenario(name, hash)]).scenarios[0].policies[0].score.is_some()
    };
    assert!(score("one", 1));
    assert!(!score("one", 2));
    assert!(!score("no-planner", 3));
    assert!(!score("unknown", 1));
}

#[test]
fn the_aggregate_is_over_all_scored_episodes() {
    assert!(report(&[scenario("one", 1), scenario("no-planner", 3)]).aggregate.is_empty());
    let report = report(&[scenario("one", 1), scenario("two", 2), scenario("no-planner", 3)]);
    let good = &report.aggregate[1];
    assert_eq!((good.policy.as_str(), good.scenarios.len()), ("good:z=1,a=2", 2));
    // Scores on "one": 100, 80, 60, -40; on "two": 125, 100, 75, -50.
    assert!((good.score.mean - 56.25).abs() < 1e-12);
    // Two of the eight are dropped at each end: 100, 125 and -40, -50.
    assert!((good.score.iqm - 78.75).abs() < 1e-12);
}

/// Fails when a field is renamed, dropped or moved: then `schema_version` has to rise.
#[test]
fn the_json_has_the_documented_shape() {
    let scenarios = [scenario("one", 1), scenario("two", 2), scenario("no-planner", 3)];
    let text = report(&scenarios).json();
    let json: Value = serde_json::from_str(&text).unwrap();
    let keys = |value: &Value| {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys.join(" ")
    };
    assert_eq!(
        keys(&json),
        "aggregate episodes improvement scenarios schema_version seed spec_hash split world"
    );
    assert_eq!((json["schema_version"].as_u64(), json["split"].as_str()), (Some(1), Some("test")));
    assert_eq!(json["spec_hash"], hex(spec().hash()));
    let scenario = &json["scenarios"][0];
    assert_eq!(
        (keys(scenario).as_str(), &scenario["hash"]),
        ("hash name policies", &hex(1).into())
    );
    let policy = &scenario["policies"][1];
    assert_eq!(
        keys(policy),
        "budget_burned minutes_to_mitigate name pages params return score terms"
    );
    for stat in [&policy["return"], &policy["score"], &json["aggregate"][0]["score"]] {
        assert_eq!(keys(stat), "ci95 iqm iqm_ci95 mean");
    }
    assert_eq!(keys(&policy["minutes_to_mitigate"]), "median share_burned share_unmitigated");
    assert_eq!(keys(&json["improvement"][0]), "a b ci95 p scenario");
    assert_eq!(keys(&json["aggregate"][0]), "policy scenarios score");
    assert!(json["scenarios"][2]["policies"][0]["score"].is_null());
    // Parameters and terms keep their order.
    assert!(text.find("\"z\": 1.0").unwrap() < text.find("\"a\": 2.0").unwrap());
}

#[test]
fn the_same_episodes_make_the_same_report() {
    let scenarios = [scenario("one", 1), scenario("two", 2)];
    assert_eq!(report(&scenarios).json(), report(&scenarios).json());
    let other = Report::new(&spec(), Plan { seed: 4, ..PLAN }, &scenarios, &reference());
    assert_ne!(other.aggregate, report(&scenarios).aggregate);
}

#[test]
fn the_table_shows_the_best_first_and_fits_a_terminal() {
    let text = table::text(&report(&[scenario("one", 1), scenario("no-planner", 3)]));
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("  ")).collect();
    assert!(
        rows[1].starts_with("  good:z=1,a=2  -35.00") && rows[2].starts_with("  bad  "),
        "{text}"
    );
    assert!(rows[1].contains(" 50.0  ") && rows[1].ends_with("70.0"), "{text}");
    assert!(text.contains("1 good:z=1,a=2      –  0.625"), "{text}");
    assert!(text.contains("2 bad           0.375      –"), "{text}");
    assert!(text.contains(&hex(1)) && text.contains(&hex(spec().hash())));
    assert!(text.contains("7.0 min  25.0 %"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
    let unscored = text.split("no-planner").nth(1).unwrap();
    assert!(unscored.lines().any(|line| line.contains("good") && line.ends_with('–')), "{text}");
}
