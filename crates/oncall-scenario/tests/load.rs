//! Scenario texts, good and bad: every mistake is named, all at once, and nothing is guessed.

use oncall_core::{EpisodeKey, Generator, Split, World as _};
use oncall_fleet::Params;
use oncall_fleet::params::{Constants, Target};
use oncall_scenario::{MemoryFiles, NoFiles, Scenario, ScenarioErrors, load, load_named};

const HEAD: &str = r#""schema_version": 1, "world": "fleet", "name": "test""#;

/// A scenario with these fields beside the header.
fn with(fields: &str) -> Result<Scenario, ScenarioErrors> {
    load(&format!("{{{HEAD}, {fields}}}"), &NoFiles)
}

fn params(fields: &str) -> Params {
    with(fields).unwrap_or_else(|errors| panic!("{errors}")).world.variants()[0].clone()
}

/// Path, value and expectation of each problem.
fn problems(result: Result<Scenario, ScenarioErrors>) -> Vec<(String, String, String)> {
    let errors = result.expect_err("a text with mistakes");
    let problems = errors.problems().iter().cloned();
    problems.map(|problem| (problem.path, problem.value, problem.expected)).collect()
}

/// The only problem of these fields.
fn problem(fields: &str) -> (String, String, String) {
    let found = problems(with(fields));
    assert_eq!(found.len(), 1, "{fields}: {found:#?}");
    found.into_iter().next().expect("one problem")
}

fn paths(result: Result<Scenario, ScenarioErrors>) -> Vec<String> {
    problems(result).into_iter().map(|(path, ..)| path).collect()
}

fn key(seed: u64) -> EpisodeKey {
    EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg)
}

fn drawn(scenario: &Scenario, seed: u64) -> Vec<(String, f64)> {
    let mut block = scenario.world.new_block();
    scenario.world.reset(&mut block, 0, key(seed));
    scenario.world.drawn(&block, 0)
}

#[test]
fn an_empty_scenario_is_all_defaults() {
    let scenario = load(&format!("{{{HEAD}}}"), &NoFiles).unwrap();
    let found = &scenario.world.variants()[0];
    let defaults = Params { hash: found.hash, ..Params::defaults("test") };
    assert_eq!(*found, defaults);
    assert_eq!((scenario.title.as_str(), scenario.description.as_str()), ("test", ""));
    assert_eq!(scenario.hash, scenario.world.params_hash());
    assert!(scenario.mixture.is_empty());
}

#[test]
fn every_number_arrives_where_it_belongs() {
    // The top of each range, so that no two rules collide; and the two that must stay below others.
    for (section, (section_name, fields)) in Constants::SECTIONS.iter().enumerate() {
        for (index, field) in fields.iter().enumerate() {
            let value = if field.name == "query_ms" { 7.0 } else { field.high };
            let mut found = params(&format!(r#""{section_name}": {{"{}": {value}}}"#, field.name));
            let mut expected = Params::defaults("test");
            *expected.numbers.slot(Target::Constant(section, index)) = value;
            assert_eq!(found.numbers.constants.slot(section, index), &value, "{}", field.name);
            assert_eq!(found.numbers, expected.numbers, "{section_name}.{}", field.name);
        }
    }
    let found = params(
        r#""surges": [{"start_min": 1.5, "size": 2}], "deploys": [{"minute": 3, "bad": false}, {"minute": 1}],
           "flushes": [{"minute": 4}], "generator": "mulberry32", "hide_build_truth": true"#,
    );
    assert_eq!((found.numbers.surges[0].start_min, found.numbers.surges[0].decay_min), (1.5, 45.0));
    assert_eq!((found.numbers.deploys[0].bad, found.numbers.deploys[1].bad), (0.0, 1.0));
    assert_eq!((found.numbers.deploys[1].minute, found.numbers.flushes[0].minute), (1.0, 4.0));
    assert_eq!((found.generator, found.hide_build_truth), (Generator::Mulberry32, true));
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let text = r#"{
        "schema_version": 2, "world": "fleet", "name": "six mistakes",
        "demand": {"base_rps": -1, "bse_rps": 1000},
        "fleet": {"boot_delay_min": 2.5},
        "flushes": [{}]
    }"#;
    let errors = load_named("six.json", text, &NoFiles).expect_err("six mistakes");
    let found: Vec<&str> = errors.problems().iter().map(|problem| problem.path.as_str()).collect();
    assert_eq!(
        found,
        [
            "$.schema_version",
            "$.name",
            "$.demand.base_rps",
            "$.demand.bse_rps",
            "$.fleet.boot_delay_min",
            "$.flushes[0].minute"
        ]
    );
    let text = errors.to_string();
    assert_eq!(text.lines().count(), 6, "{text}");
    assert!(text.lines().all(|line| line.starts_with("six.json: $.")), "{text}");
    assert!(text.contains("found -1, expected a number from 0 to 1000000 (req/s)"), "{text}");
    assert!(text.contains("did you mean `base_rps`?"), "{text}");
    assert!(text.contains("found 2.5, expected a whole number from 0 to 15 (min)"), "{text}");
    assert!(text.contains("found nothing, expected a whole number"), "{text}");
}

#[test]
fn a_misspelt_field_of_every_object_is_refused() {
    let mut cases: Vec<(String, String)> = Constants::SECTIONS
        .iter()
        .map(|(section, fields)| {
            let name = format!("{}x", fields[0].name);
            (format!(r#""{section}": {{"{name}": 1}}"#), format!("$.{section}.{name}"))
        })
        .collect();
    for (fields, path) in [
        (r#""demnd": {}"#, "$.demnd"),
        (r#""surges": [{"start_min": 1, "size": 1, "rise": 1}]"#, "$.surges[0].rise"),
        (r#""deploys": [{"minute": 1, "errorrate": 1}]"#, "$.deploys[0].errorrate"),
        (r#""flushes": [{"minute": 1}, {"minute": 1, "minutes": 1}]"#, "$.flushes[1].minutes"),
        (r#""demand": {"base_rps": {"unifrm": [1, 2]}}"#, "$.demand.base_rps.unifrm"),
        (r#""demand": {"base_rps": {"uniform": [1, 2], "low": 1}}"#, "$.demand.base_rps.low"),
    ] {
        cases.push((fields.to_owned(), path.to_owned()));
    }
    for (fields, path) in cases {
        let found = problem(&fields);
        assert_eq!(
            (found.0.as_str(), found.1.as_str()),
            (path.as_str(), "an unknown field"),
            "{found:?}"
        );
    }
    let mixture = format!(r#"{{{HEAD}, "mixture": [{{"scenario": "a", "wieght": 1}}]}}"#);
    let files = MemoryFiles::new().with("a", format!("{{{HEAD}}}"));
    assert_eq!(paths(load(&mixture, &files)), ["$.mixture[0].wieght"]);
    // A known name in the wrong place is sent to the right one.
    assert!(problem(r#""base_rps": 1"#).2.contains("`demand.base_rps`"));
    assert!(problem(r#""fleet": {"size": 1}"#).2.contains("`surges[..].size`"));
}

#[test]
fn duplicates_are_refused() {
    assert_eq!(problem(r#""name": "again""#).0, "$.name");
    assert_eq!(problem(r#""demand": {}, "demand": {"base_rps": 3}"#).0, "$.demand");
    let (path, value, _) = problem(r#""demand": {"base_rps": 3, "base_rps": 4}"#);
    assert_eq!((path.as_str(), value.as_str()), ("$.demand.base_rps", "4 (a second `base_rps`)"));
    let fields = r#""demand": {"base_rps": {"choice": [1], "choice": [2]}}"#;
    assert_eq!(problem(fields).0, "$.demand.base_rps.choice");
}

#[test]
fn wrong_kinds_are_refused() {
    for (fields, path) in [
        (r#""demand": 3"#, "$.demand"),
        (r#""demand": {"base_rps": "1000"}"#, "$.demand.base_rps"),
        (r#""demand": {"base_rps": null}"#, "$.demand.base_rps"),
        (r#""demand": {"base_rps": [1, 2]}"#, "$.demand.base_rps"),
        (r#""demand": {"base_rps": true}"#, "$.demand.base_rps"),
        (r#""surges": {}"#, "$.surges"),
        (r#""surges": [3]"#, "$.surges[0]"),
        (r#""title": 3"#, "$.title"),
        (r#""hide_build_truth": 1"#, "$.hide_build_truth"),
        (r#""generator": "xorshift""#, "$.generator"),
        (r#""opening": {"autoscale": 0.5}"#, "$.opening.autoscale"),
        (r#""demand": {"series": "a.csv"}"#, "$.demand.series"),
        (
            r#""flushes": [{"minute": 1}, {"minute": 1}, {"minute": 1}, {"minute": 1}, {"minute": 1}]"#,
            "$.flushes",
        ),
        (r#""odd \" key": 1"#, r#"$["odd \" key"]"#),
    ] {
        assert_eq!(problem(fields).0, path, "{fields}");
    }
    for (text, path) in
        [("[]", "$"), ("3", "$"), ("", "$"), ("{", "$"), (r#"{"schema_version": 1,}"#, "$")]
    {
        assert_eq!(paths(load(text, &NoFiles)), [path], "{text}");
    }
    let (_, value, _) = problems(load("{\n\"a\": NaN}", &NoFiles)).remove(0);
    assert!(value.contains("line 2 column"), "{value}");
    let missing = paths(load("{}", &NoFiles));
    assert_eq!(missing, ["$.schema_version", "$.world", "$.name"]);
    let other = load(r#"{"schema_version": 1, "world": "discovery", "name": "a"}"#, &NoFiles);
    assert_eq!(paths(other), ["$.world"]);
}

#[test]
fn impossible_distributions_are_refused() {
    for (dist, path) in [
        (r#"{"uniform": [2, 1]}"#, ".uniform"),
        (r#"{"uniform": [-1, 1]}"#, ".uniform[0]"),
        (r#"{"uniform": [1, 2e6]}"#, ".uniform[1]"),
        (r#"{"uniform": [1]}"#, ".uniform"),
        (r#"{"uniform": [1, 2, 3]}"#, ".uniform"),
        (r#"{"uniform": [1, "2"]}"#, ".uniform[1]"),
        (r#"{"exponential": 0}"#, ".exponential"),
        (r#"{"exponential": 2e6}"#, ".exponential"),
        (r#"{"exponential": [1]}"#, ".exponential"),
        (r#"{"normal": [-1, 1]}"#, ".normal[0]"),
        (r#"{"normal": [1, 0]}"#, ".normal[1]"),
        (r#"{"normal": [1, -1]}"#, ".normal[1]"),
        (r#"{"normal": 1}"#, ".normal"),
        (r#"{"choice": []}"#, ".choice"),
        (r#"{"choice": [1, -5]}"#, ".choice[1]"),
        (r#"{"choice": [1, 2], "weights": [1]}"#, ".weights"),
        (r#"{"choice": [1, 2], "weights": [0, 0]}"#, ".weights"),
        (r#"{"choice": [1, 2], "weights": [1, -1]}"#, ".weights[1]"),
        (r#"{"choice": [1, 2], "weights": [1, 1e300]}"#, ".weights[1]"),
        (r#"{"uniform": [1, 2], "weights": [1, 1]}"#, ".weights"),
        (r#"{"weights": [1, 1]}"#, ""),
        (r#"{"uniform": [1, 2], "normal": [1, 2]}"#, ""),
        ("{}", ""),
    ] {
        let found = problem(&format!(r#""demand": {{"base_rps": {dist}}}"#));
        assert_eq!(found.0, format!("$.demand.base_rps{path}"), "{dist}: {found:?}");
    }
    // A whole number may be drawn between ends that are not whole, but not chosen.
    params(r#""fleet": {"boot_delay_min": {"uniform": [1.5, 3.5]}}"#);
    let found = problem(r#""fleet": {"boot_delay_min": {"choice": [1, 1.5]}}"#);
    assert_eq!(found.0, "$.fleet.boot_delay_min.choice[1]");
}

#[test]
fn rules_between_numbers_hold_for_every_draw() {
    for (fields, path) in [
        (r#""opening": {"serving": 30}, "fleet": {"instances_max": 20}"#, "$.opening.serving"),
        (
            r#""opening": {"min_instances": 21}, "fleet": {"instances_max": 20}"#,
            "$.opening.min_instances",
        ),
        (r#""database": {"query_ms": 300}"#, "$.database.query_ms"),
        (r#""database": {"query_ms_max": 4}"#, "$.database.query_ms"),
        (
            r#""fleet": {"instances_max": {"uniform": [9.4, 20]}}, "opening": {"serving": 9}"#,
            "$.opening.min_instances",
        ),
        (
            r#""opening": {"serving": {"choice": [10, 25]}}, "fleet": {"instances_max": 20}"#,
            "$.opening.serving",
        ),
        (
            r#""opening": {"serving": {"normal": [10, 1]}}, "fleet": {"instances_max": 39}"#,
            "$.opening.serving",
        ),
        (r#""database": {"query_ms": {"exponential": 5}}"#, "$.database.query_ms"),
    ] {
        assert_eq!(problem(fields).0, path, "{fields}");
    }
    let both = with(r#""fleet": {"instances_max": 8}"#);
    let (_, value, expected) = problems(both).remove(0);
    assert_eq!(
        (value.as_str(), expected.as_str()),
        ("10 (the default)", "at most `fleet.instances_max`, which is 8")
    );
    params(r#""opening": {"serving": {"uniform": [5, 20.4]}}, "fleet": {"instances_max": 20}"#);
    // A number that is wrong in itself is reported once.
    assert_eq!(problem(r#""opening": {"serving": 99}"#).0, "$.opening.serving");
}

#[test]
fn distributions_are_drawn_in_the_order_of_the_file() {
    let one = with(
        r#""flushes": [{"minute": {"uniform": [0, 90]}}], "demand": {"noise_std": {"uniform": [0, 1]}, "base_rps": {"uniform": [0, 1000]}}"#,
    )
    .unwrap();
    let other = with(
        r#""demand": {"base_rps": {"uniform": [0, 1000]}, "noise_std": {"uniform": [0, 1]}}, "flushes": [{"minute": {"uniform": [0, 90]}}]"#,
    )
    .unwrap();
    let (one_drawn, other_drawn) = (drawn(&one, 5), drawn(&other, 5));
    let names = |drawn: &[(String, f64)]| -> Vec<String> {
        drawn.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&one_drawn), ["flushes[0].minute", "demand.noise_std", "demand.base_rps"]);
    assert_eq!(names(&other_drawn), ["demand.base_rps", "demand.noise_std", "flushes[0].minute"]);
    // Each takes the next number of the stream, whatever it is.
    for (one, other) in [
        (one_drawn[0].1 / 90.0, other_drawn[0].1 / 1000.0),
        (one_drawn[2].1 / 1000.0, other_drawn[2].1 / 90.0),
    ] {
        assert!((one - other).abs() <= 0.5 / 90.0, "{one} {other}");
    }
    assert_eq!(one_drawn[1], other_drawn[1]);
    assert_ne!(one_drawn[2].1, other_drawn[0].1);
    assert_ne!(one_drawn[0].1, other_drawn[2].1);
    assert_ne!(one.hash, other.hash);
    assert_eq!(drawn(&one, 5), one_drawn);
    assert_ne!(drawn(&one, 6), one_drawn);
}

#[test]
fn draws_stay_in_the_range_of_the_field() {
    let scenario = with(
        r#""fleet": {"boot_delay_min": {"exponential": 14}}, "opening": {"budget_left": {"normal": [0.9, 2]},
           "feature": {"choice": [true, false], "weights": [1, 3]}, "min_instances": {"uniform": [1, 40]}}"#,
    )
    .unwrap();
    let all: Vec<Vec<(String, f64)>> = (0..400).map(|seed| drawn(&scenario, seed)).collect();
    let of = |index: usize| all.iter().map(move |drawn| drawn[index].1);
    assert!(of(0).all(|x| (0.0..=15.0).contains(&x) && x.fract() == 0.0));
    assert!(of(0).any(|x| x == 15.0), "cut at the upper end");
    assert!(of(1).all(|x| (-10.0..=1.0).contains(&x)) && of(1).any(|x| x == 1.0));
    let on = of(2).filter(|x| *x == 1.0).count();
    assert!(of(2).all(|x| x == 0.0 || x == 1.0) && (60..140).contains(&on), "{on}");
    assert!(of(3).all(|x| x.fract() == 0.0));
}

#[test]
fn the_hash_sees_trajectories_and_nothing_else() {
    let hash = |fields: &str| params(fields).hash;
    let base = hash(r#""title": "a""#);
    for same in [
        r#""title": "b", "description": "c", "$schema": "d""#,
        "\"title\"\n:   \"a\"",
        r#""prices": {"instance_usd_h": 0.4}"#,
        r#""prices": {"instance_usd_h": 4e-1}, "demand": {"noise": true}, "surges": []"#,
    ] {
        assert_eq!(hash(same), base, "{same}");
    }
    let mut seen = vec![base];
    for other in [
        r#""prices": {"instance_usd_h": 0.41}"#,
        r#""prices": {"instance_usd_h": {"uniform": [0.4, 0.4]}}"#,
        r#""prices": {"instance_usd_h": {"uniform": [0.3, 0.5]}}"#,
        r#""prices": {"instance_usd_h": {"normal": [0.3, 0.5]}}"#,
        r#""prices": {"instance_usd_h": {"exponential": 0.4}}"#,
        r#""prices": {"instance_usd_h": {"choice": [0.3, 0.5]}}"#,
        r#""prices": {"instance_usd_h": {"choice": [0.3, 0.5], "weights": [1, 2]}}"#,
        r#""hide_build_truth": true"#,
        r#""generator": "mulberry32""#,
        r#""flushes": [{"minute": 1}]"#,
        r#""flushes": [{"minute": 1}, {"minute": 1}]"#,
        r#""deploys": [{"minute": 1}]"#,
        r#""surges": [{"start_min": 1, "size": 0}]"#,
    ] {
        let hash = hash(other);
        assert!(!seen.contains(&hash), "{other}");
        seen.push(hash);
    }
    let renamed = load(r#"{"schema_version": 1, "world": "fleet", "name": "other"}"#, &NoFiles);
    assert_eq!(renamed.unwrap().hash, base);
}

#[test]
fn a_series_replaces_the_daily_curve() {
    let files = MemoryFiles::new().with("d.csv", "requests_per_s\n10\n30\n20\n");
    let with_series =
        |series: &str| load(&format!(r#"{{{HEAD}, "demand": {{"series": {series}}}}}"#), &files);
    let rates = |series: &str| {
        with_series(series).unwrap().world.variants()[0].series_rps.clone().expect("a series")
    };
    assert_eq!(rates(r#"{"csv": "d.csv"}"#), [10.0, 30.0, 20.0]);
    assert_eq!(rates(r#"{"csv": "d.csv", "peak_rps": 1500}"#), [500.0, 1500.0, 1000.0]);
    let scaled = rates(r#"{"csv": "d.csv", "mean_rps": 1000}"#);
    assert!(
        (scaled.iter().sum::<f64>() - 3000.0).abs() < 1e-9
            && (scaled[1] / scaled[0] - 3.0).abs() < 1e-12
    );
    // It is what the users ask for.
    let scenario = load(
        &format!(r#"{{{HEAD}, "demand": {{"noise": false, "series": {{"csv": "d.csv"}}}}}}"#),
        &files,
    )
    .unwrap();
    let mut block = scenario.world.new_block();
    scenario.world.reset(&mut block, 0, key(1));
    let (dials, mut terms) = (vec![f64::NAN; 8], vec![0.0; 6]);
    let offered: Vec<f64> = (0..5)
        .map(|_| {
            scenario.world.step(&mut block, &[true], &dials, &mut terms, &mut [false]);
            block.seen.offered_rps
        })
        .collect();
    assert_eq!(offered, [10.0, 30.0, 20.0, 20.0, 20.0]);
    assert_ne!(with_series(r#"{"csv": "d.csv"}"#).unwrap().hash, params(r#""title": """#).hash);
    for (series, path) in [
        (r#"{"csv": "d.csv", "peak_rps": 1, "mean_rps": 1}"#, "$.demand.series.mean_rps"),
        (r#"{"csv": "d.csv", "peak_rps": 0}"#, "$.demand.series.peak_rps"),
        (r#"{"csv": "d.csv", "mean_rps": {"uniform": [1, 2]}}"#, "$.demand.series.mean_rps"),
        (r#"{"csv": "e.csv"}"#, "$.demand.series.csv"),
        (r#"{"csv": 3}"#, "$.demand.series.csv"),
        (r#"{"peak_rps": 3}"#, "$.demand.series.csv"),
        (r#"{"csv": "d.csv", "mean": 1}"#, "$.demand.series.mean"),
    ] {
        assert_eq!(paths(with_series(series)), [path], "{series}");
    }
    let both = format!(
        r#"{{{HEAD}, "demand": {{"daily_rise_h": 3, "base_rps": 900, "series": {{"csv": "d.csv"}}}}}}"#
    );
    assert_eq!(paths(load(&both, &files)), ["$.demand.daily_rise_h", "$.demand.base_rps"]);
}

#[test]
fn problems_of_a_csv_name_its_file() {
    let files = MemoryFiles::new().with("d.csv", "requests_per_s\n10\nmany\n-2\n");
    let text = format!(r#"{{{HEAD}, "demand": {{"series": {{"csv": "d.csv"}}}}, "x": 1}}"#);
    let errors = load_named("s.json", &text, &files).expect_err("bad rows").to_string();
    assert_eq!(errors.lines().count(), 3, "{errors}");
    assert!(errors.contains("d.csv: line 3, column requests_per_s: found \"many\""), "{errors}");
    assert!(errors.contains("d.csv: line 4, column requests_per_s: found \"-2\""), "{errors}");
    assert!(errors.contains("s.json: $.x: "), "{errors}");
    // A mistake in the scale does not hide those of the file.
    let text = text.replace(r#""csv": "d.csv""#, r#""peak_rps": -1, "csv": "d.csv""#);
    assert_eq!(load(&text, &files).expect_err("bad rows").problems().len(), 4);
}

fn mixture(list: &str, files: &MemoryFiles) -> Result<Scenario, ScenarioErrors> {
    load(&format!(r#"{{{HEAD}, "mixture": {list}}}"#), files)
}

#[test]
fn a_mixture_draws_its_scenarios_by_weight() {
    let part = |name: &str, rest: &str| {
        format!(r#"{{"schema_version": 1, "world": "fleet", "name": "{name}"{rest}}}"#)
    };
    let files = MemoryFiles::new()
        .with("a", part("a", ""))
        .with("b", part("b", r#", "shift": {"length_min": 60}"#))
        .with("m", part("m", r#", "generator": "mulberry32""#))
        .with("nested", part("nested", r#", "mixture": [{"scenario": "nested"}]"#))
        .with("broken", part("broken", r#", "fleet": {"boot_delay_min": 16}, "y": 1"#));
    let scenario =
        mixture(r#"[{"scenario": "a", "weight": 3}, {"scenario": "b"}]"#, &files).unwrap();
    assert_eq!(scenario.mixture, [("a".to_owned(), 3.0), ("b".to_owned(), 1.0)]);
    let mut block = scenario.world.new_block();
    let short = (0..1000)
        .filter(|seed| {
            scenario.world.reset(&mut block, 0, key(*seed));
            scenario.world.length_min(&block, 0) == 60
        })
        .count();
    assert!((200..300).contains(&short), "{short}");
    for (list, found) in [
        ("[]", vec!["$.mixture"]),
        ("3", vec!["$.mixture"]),
        ("[3]", vec!["$.mixture[0]"]),
        ("[{}]", vec!["$.mixture[0].scenario"]),
        (r#"[{"scenario": 3}]"#, vec!["$.mixture[0].scenario"]),
        (r#"[{"scenario": "c"}]"#, vec!["$.mixture[0].scenario"]),
        (r#"[{"scenario": "a", "weight": 0}]"#, vec!["$.mixture[0].weight"]),
        (r#"[{"scenario": "a", "weight": -1}]"#, vec!["$.mixture[0].weight"]),
        (r#"[{"scenario": "a"}, {"scenario": "nested"}]"#, vec!["$.mixture[1].scenario"]),
        (r#"[{"scenario": "a"}, {"scenario": "m"}]"#, vec!["$.mixture[1].scenario"]),
        (
            r#"[{"scenario": "broken"}, {"scenario": "c"}]"#,
            vec!["$.y", "$.fleet.boot_delay_min", "$.mixture[1].scenario"],
        ),
    ] {
        assert_eq!(paths(mixture(list, &files)), found, "{list}");
    }
    let errors = mixture(r#"[{"scenario": "broken"}]"#, &files).expect_err("a broken part");
    assert!(errors.problems().iter().all(|problem| problem.file.as_deref() == Some("broken")));
    let beside = format!(r#"{{{HEAD}, "mixture": [{{"scenario": "a"}}], "fleet": {{}}, "z": 1}}"#);
    assert_eq!(paths(load(&beside, &files)), ["$.fleet", "$.z"]);
}
