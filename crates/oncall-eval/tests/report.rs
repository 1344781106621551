//! The report of hand-made episodes: every number by hand, and the shape of the JSON.

use oncall_core::{Spec, Split};
use oncall_eval::metrics::Outcome;
use oncall_eval::planned::BeatsPlanner;
use oncall_eval::report::{PolicyEpisodes, Report, ScenarioEpisodes};
use oncall_eval::score::{Constants, Hundred, Reference, Zero};
use oncall_eval::stats::Bootstrap;
use oncall_eval::{EpisodeResult, Plan, hex, overall, table};
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
        played: "spike".to_owned(),
        minutes: 240,
        return_,
        terms,
        budget_burned: -return_ / 1000.0,
        incident: Some(Outcome {
            pages: u32::from(mitigated.is_some()),
            minutes_to_mitigate: mitigated,
            unmitigated,
        }),
        metrics: Vec::new(),
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
        is_rule: name == "bad",
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
        zero: Zero { mean: -60.0, episodes: 1000, seed: 1, split: "train".to_owned() },
        hundred: planner.map(|mean| Hundred { mean, source: "by hand".to_owned() }),
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
    near(&good["return"]["median"], -25.0);
    // 100 (r + 60) / (-10 + 60)
    near(&good["score"]["mean"], 50.0);
    near(&good["score"]["iqm"], 70.0);
    near(&good["score"]["median"], 70.0);
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
fn a_mixture_is_told_by_the_scenarios_drawn() {
    let plain = report(&[scenario("one", 1)]);
    assert!(plain.scenarios[0].policies.iter().all(|policy| policy.played.is_empty()));
    assert!(!plain.json().contains("played") && !table::text(&plain).contains("drawn"));

    let mut mixture = scenario("one", 1);
    for policy in &mut mixture.policies {
        for (episode, drawn) in policy.episodes.iter_mut().zip(["flush", "spike", "flush", "flush"])
        {
            drawn.clone_into(&mut episode.played);
        }
    }
    let mixture = report(&[mixture]);
    let json: Value = serde_json::from_str(&mixture.json()).unwrap();
    let good = &json["scenarios"][0]["policies"][1]["played"];
    assert_eq!(good.as_array().unwrap().len(), 2);
    assert_eq!((&good[0]["scenario"], &good[0]["episodes"]), (&"flush".into(), &3.into()));
    near(&good[0]["return"]["value"], -40.0);
    assert_eq!((&good[1]["scenario"], &good[1]["episodes"]), (&"spike".into(), &1.into()));
    near(&good[1]["return"]["value"], -20.0);
    // The better policy, good, stands first.
    let text = table::text(&mixture);
    let row = text.lines().find(|line| line.trim_start().starts_with("flush")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["flush", "3", "-40.00", "-40.00"]);
    let row = text.lines().find(|line| line.trim_start().starts_with("spike")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["spike", "1", "-20.00", "-40.00"]);
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
    // Means 50 and 62.5; without the 25 above 100 the mean is 53.125.
    assert!((good.median_of_means.value - 56.25).abs() < 1e-12);
    assert!((good.optimality_gap.value - 46.875).abs() < 1e-12);
    let [low, high] = good.optimality_gap.ci95;
    assert!(low < 46.875 && 46.875 < high, "{low} {high}");
}

#[test]
fn differences_are_paired_and_against_the_best_rule() {
    let report = report(&[scenario("one", 1), scenario("no-planner", 3)]);
    let one = &report.scenarios[0];
    assert_eq!(one.best_rule.as_deref(), Some("bad"));
    assert!(one.policies[0].against_best_rule.is_none(), "not against itself");
    // 0, 20, -10, 10 dollars better, and the planner is 30 better than the rule's mean of -40.
    let against = one.policies[1].against_best_rule.unwrap();
    assert!((against.usd.value - 5.0).abs() < 1e-12);
    assert!(-10.0 <= against.usd.ci95[0] && against.usd.ci95[0] < 5.0);
    let closed = against.gap_closed.unwrap();
    assert!((closed.value - 5.0 / 30.0).abs() < 1e-12);
    assert!((closed.ci95[1] - against.usd.ci95[1] / 30.0).abs() < 1e-12);
    let unscored = report.scenarios[1].policies[1].against_best_rule.unwrap();
    assert!(unscored.gap_closed.is_none() && unscored.usd == against.usd);
    // Nobody is a rule: nothing to be held against.
    let mut none = scenario("one", 1);
    none.policies.iter_mut().for_each(|policy| policy.is_rule = false);
    let none = Report::new(&spec(), PLAN, &[none], &reference());
    assert!(none.scenarios[0].best_rule.is_none());
    assert!(none.scenarios[0].policies.iter().all(|policy| policy.against_best_rule.is_none()));
}

#[test]
fn profiles_and_pairs_are_over_all_scenarios() {
    let bootstrap = Bootstrap::new(1);
    let scenarios = [scenario("one", 1), scenario("two", 2), scenario("no-planner", 3)];
    let profiles = overall::profiles(&scenarios, &reference(), &[0.0, 75.0, 100.0], bootstrap);
    let names: Vec<String> = profiles.iter().map(|profile| profile.scenarios.join("+")).collect();
    assert_eq!(names, ["one", "two", "one+two"]);
    // Scores of "good" on "one": 100, 80, 60, -40; on "two": 125, 100, 75, -50.
    let shares = |place: usize| -> Vec<f64> {
        profiles[place].policies[1].1.shares.iter().map(|share| share.value).collect()
    };
    assert_eq!([shares(0), shares(1)], [[0.75, 0.5, 0.0], [0.75, 0.5, 0.25]]);
    assert_eq!(shares(2), [0.75, 0.5, 0.125]);

    let duels = overall::duels(&scenarios, bootstrap);
    assert_eq!(duels.len(), 1);
    assert_eq!((duels[0].a.as_str(), duels[0].b.as_str()), ("bad", "good:z=1,a=2"));
    // Three times the same: paired a tie and a win in four; unpaired, of sixteen pairs of -10, -40,
    // -20, -90 with -10, -20, -30, -80: 3.5 and 1 and 2.5 and 0.
    assert!((duels[0].paired.value - 0.375).abs() < 1e-12);
    assert!((duels[0].unpaired.value - 7.0 / 16.0).abs() < 1e-12);
    assert!(overall::duels(&[], bootstrap).is_empty());
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
        ("best_rule hash name policies", &hex(1).into())
    );
    let policy = &scenario["policies"][1];
    assert_eq!(
        keys(policy),
        "against_best_rule beats_planner budget_burned minutes_to_mitigate name pages params return \
         score terms"
    );
    for stat in [&policy["return"], &policy["score"], &json["aggregate"][0]["score"]] {
        assert_eq!(keys(stat), "ci95 iqm iqm_ci95 mean median median_ci95");
    }
    let against = &policy["against_best_rule"];
    assert_eq!(keys(against), "gap_closed usd");
    for figure in [&against["usd"], &against["gap_closed"], &json["aggregate"][0]["optimality_gap"]]
    {
        assert_eq!(keys(figure), "ci95 value");
    }
    assert!(
        policy["beats_planner"].is_null() && scenario["policies"][0]["against_best_rule"].is_null()
    );
    assert_eq!(keys(&policy["minutes_to_mitigate"]), "median share_burned share_unmitigated");
    assert_eq!(keys(&json["improvement"][0]), "a b ci95 p scenario");
    assert_eq!(
        keys(&json["aggregate"][0]),
        "median_of_means optimality_gap policy scenarios score"
    );
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
    assert!(text.contains("against the best rule, bad,"), "{text}");
    let row = |text: &str| {
        let part = text.split("against the best rule").nth(1).unwrap();
        part.lines().find(|line| line.contains("good")).unwrap().to_owned()
    };
    assert!(row(&text).contains(" 5.00  ") && row(&text).contains(" 16.7 %  "), "{text}");
    assert!(row(&text).ends_with('–') && !text.contains("too low"), "{text}");
    let unscored = text.split("no-planner").nth(1).unwrap();
    assert!(unscored.lines().any(|line| line.contains("good") && line.ends_with('–')), "{text}");
}

#[test]
fn whoever_beats_the_planner_is_named() {
    let mut report = report(&[scenario("one", 1)]);
    let mut text = |share| {
        let beats = BeatsPlanner { episodes: 200, share };
        report.scenarios[0].policies[1].beats_planner = Some(beats);
        table::text(&report)
    };
    assert!(!text(0.01).contains("too low") && text(0.01).contains("1.0 %"));
    let text = text(0.015);
    let line = "! good:z=1,a=2 beats the planner on 3 of its 200 episodes, more than 1 %";
    assert!(text.contains(line), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 110), "{text}");
}
