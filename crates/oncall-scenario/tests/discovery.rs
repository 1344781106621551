//! Scenarios of discovery, good and bad: every mistake is named, all at once; and the shipped ones.

use oncall_core::{EpisodeKey, Generator, Split, World as _};
use oncall_discovery_env::params::{Kind, Section, Target, common};
use oncall_discovery_env::{DiscoveryWorld, Params, Scale};
use oncall_scenario::{
    AnyScenario, Files, NoFiles, Scenario, ScenarioErrors, ShippedFiles, load_any, shipped,
    shipped_discovery, shipped_text,
};

const HEAD: &str = r#""schema_version": 1, "world": "discovery", "name": "test""#;

fn load(text: &str, files: &dyn Files) -> Result<Scenario<DiscoveryWorld>, ScenarioErrors> {
    match load_any(None, text, files)? {
        AnyScenario::Discovery(scenario) => Ok(scenario),
        AnyScenario::Fleet(scenario) => panic!("{} is of the fleet", scenario.name),
    }
}

/// A scenario with these fields beside the header.
fn with(fields: &str) -> Result<Scenario<DiscoveryWorld>, ScenarioErrors> {
    load(&format!("{{{HEAD}, {fields}}}"), &NoFiles)
}

fn params(fields: &str) -> Params {
    with(fields).unwrap_or_else(|errors| panic!("{errors}")).world.variants()[0].clone()
}

/// Path, value and expectation of each problem.
fn problems(fields: &str) -> Vec<(String, String, String)> {
    let errors = with(fields).expect_err("a text with mistakes");
    let problems = errors.problems().iter().cloned();
    problems.map(|problem| (problem.path, problem.value, problem.expected)).collect()
}

fn paths(fields: &str) -> Vec<String> {
    problems(fields).into_iter().map(|(path, ..)| path).collect()
}

fn shipped_scenario(name: &str) -> Scenario<DiscoveryWorld> {
    let text = shipped_text(name).unwrap_or_else(|| panic!("{name} is shipped"));
    load(text, &ShippedFiles).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

fn key(seed: u64) -> EpisodeKey {
    EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg)
}

#[test]
fn an_empty_scenario_is_all_defaults() {
    let scenario = load(&format!("{{{HEAD}}}"), &NoFiles).unwrap();
    let found = &scenario.world.variants()[0];
    assert_eq!(*found, Params { text_hash: found.text_hash, ..Params::defaults("test") });
    assert_eq!(scenario.hash, scenario.world.params_hash());
}

#[test]
fn every_number_arrives_where_it_belongs() {
    for &section in &Section::ALL {
        for (index, field) in section.fields().iter().enumerate() {
            // The default, so that no rule between dials is broken, but for a few that have none.
            let value =
                if section == Section::Opening { field.default.unwrap() } else { field.high };
            let text = format!(r#""{}": {{"{}": {value}}}"#, section.name(), field.name);
            let mut found = params(&text);
            assert_eq!(*found.numbers.slot(Target::Section(section, index)), value, "{text}");
        }
    }
    for &kind in Kind::ALL {
        for (index, field) in kind.fields().iter().enumerate() {
            let text =
                format!(r#""{}": [{{}}, {{"{}": {}}}]"#, kind.name(), field.name, field.high);
            let mut found = params(&text);
            assert_eq!(*found.numbers.slot(Target::Fault(1, index)), field.high, "{text}");
            assert_eq!(found.numbers.faults[0].values[common::KEY], 0.0, "{text}");
        }
    }
    assert_eq!(params(r#""scale": "tenth""#).scale, Scale::Tenth);
}

#[test]
fn all_mistakes_are_reported_at_once() {
    let found = paths(
        r#""scale": "huge", "shift": {"length_min": 0.5, "onset_min": 3}, "rollout": [],
           "rollouts": [{"share": 2, "popular": 0.5, "shares": 1}, 7],
           "opening": {"probe_interval": 5, "retries_max": 1.5}, "surges": [],
           "outages": [{"region": 3}, {"cold": "yes"}]"#,
    );
    assert_eq!(
        found,
        [
            "$.rollout",
            "$.surges",
            "$.scale",
            "$.shift.length_min",
            "$.shift.onset_min",
            "$.rollouts[0].share",
            "$.rollouts[0].popular",
            "$.rollouts[0].shares",
            "$.rollouts[1]",
            "$.opening.probe_interval",
            "$.opening.retries_max",
            "$.outages[0].region",
            "$.outages[1].cold",
        ]
    );
    let (_, value, expected) = &problems(r#""rollouts": [{"share": 2}]"#)[0];
    assert_eq!(value, "2");
    assert_eq!(expected, "a number from 0 to 1, or a distribution");
    let (_, _, expected) = &problems(r#""rollout": []"#)[0];
    assert!(expected.contains("did you mean `rollouts`?"), "{expected}");
    let (_, value, expected) = &problems(r#""scale": "huge""#)[0];
    assert_eq!(
        (value.as_str(), expected.as_str()),
        (r#""huge""#, r#""small" or "tenth" or "full""#)
    );
    let many = ["{}"; 9].join(", ");
    assert_eq!(paths(&format!(r#""rollouts": [{many}]"#)), ["$.rollouts"]);
}

#[test]
fn rules_between_dials_hold_whatever_is_drawn() {
    let (path, value, expected) = &problems(r#""opening": {"probe_interval_s": 1}"#)[0];
    assert_eq!(path, "$.opening.probe_timeout_s");
    assert_eq!(value, "1");
    assert_eq!(expected, "less than `opening.probe_interval_s`, which can be 1");
    assert_eq!(
        paths(r#""opening": {"lease_ttl_s": {"uniform": [20, 60]}}"#),
        ["$.opening.renewal_interval_s"]
    );
    assert_eq!(
        paths(r#""opening": {"reconnect_base_s": 10, "reconnect_cap_s": 5}"#),
        ["$.opening.reconnect_base_s"]
    );
    params(r#""opening": {"lease_ttl_s": {"uniform": [30, 60]}, "probe_interval_s": 2}"#);
}

#[test]
fn a_key_names_draws_and_is_not_drawn() {
    assert_eq!(paths(r#""crash_waves": [{"key": {"uniform": [0, 3]}}]"#), ["$.crash_waves[0].key"]);
    let (path, _, expected) = &problems(r#""crash_waves": [{}, {"key": 0}]"#)[0];
    assert_eq!(path, "$.crash_waves[1].key");
    assert_eq!(expected, "another key than that of `crash_waves[0]`");
    params(r#""crash_waves": [{"key": 1}, {"key": 0}]"#);
}

#[test]
fn only_what_changes_a_trajectory_changes_the_hash() {
    let hash = |fields: &str| with(fields).unwrap_or_else(|errors| panic!("{errors}")).hash;
    let base = hash(r#""rollouts": [{"share": 0.1}]"#);
    assert_eq!(hash(r#""rollouts": [{}], "title": "Another""#), base);
    let others = [
        r#""rollouts": [{"share": 0.2}]"#,
        r#""rollouts": [{"share": {"uniform": [0.1, 0.2]}}]"#,
        r#""rollouts": [{"key": 3}]"#,
        r#""rollouts": [{"chance": 0.5}]"#,
        r#""rollouts": [{}], "scale": "tenth""#,
        r#""rollouts": [{}], "opening": {"drain_period_s": 60}"#,
        r#""rollouts": [{}], "background": {"loss": 0.001}"#,
    ];
    let mut hashes: Vec<u64> = others.iter().map(|fields| hash(fields)).collect();
    hashes.push(base);
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), others.len() + 1);
}

#[test]
fn a_mixture_keeps_to_one_world_and_one_scale() {
    let mixture = |parts: &str| format!(r#"{{{HEAD}, "mixture": [{parts}]}}"#);
    let text = mixture(r#"{"scenario": "calm"}, {"scenario": "spike"}"#);
    let errors = load(&text, &ShippedFiles).expect_err("two worlds");
    assert!(errors.to_string().contains(r#"spike: $.world: found "fleet", expected "discovery""#));
    let files = oncall_scenario::MemoryFiles::new()
        .with("a", format!("{{{HEAD}}}"))
        .with("b", format!(r#"{{{HEAD}, "scale": "full"}}"#));
    let text = mixture(r#"{"scenario": "a"}, {"scenario": "b"}"#);
    let errors = load(&text, &files).expect_err("two scales").to_string();
    assert!(errors.contains("at scale full") && errors.contains("small"), "{errors}");
    let own = format!(r#"{{{HEAD}, "scale": "full", "mixture": [{{"scenario": "a"}}]}}"#);
    assert!(load(&own, &files).is_err());
}

#[test]
fn every_shipped_file_loads_under_its_name() {
    let mut hashes = Vec::new();
    for file in shipped_discovery() {
        let scenario = shipped_scenario(file.name);
        assert_eq!(scenario.name, file.name);
        assert!(
            scenario.title != file.name && scenario.description.ends_with('.'),
            "{}",
            file.name
        );
        assert!(!hashes.contains(&scenario.hash), "{}", file.name);
        hashes.push(scenario.hash);
        for params in scenario.world.variants() {
            assert_eq!((params.scale, params.numbers.length_min()), (Scale::Small, 60.0));
        }
        assert!(shipped().iter().all(|fleet| fleet.name != file.name), "{}", file.name);
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/discovery");
    let files = std::fs::read_dir(folder).expect("the folder of scenarios").count();
    assert_eq!(files, shipped_discovery().len(), "a file of scenarios/discovery is not shipped");
}

/// Calm 20 %, one of the nine 50 %, pairs 30 %.
#[test]
fn the_mixture_is_the_one_of_the_specification() {
    let world = shipped_scenario("mixed-discovery").world;
    let shares = world.shares();
    let sum = |of: &dyn Fn(&str) -> bool| -> f64 {
        let named = world.variants().iter().zip(&shares);
        named.filter(|(params, _)| of(&params.name)).map(|(_, share)| share).sum()
    };
    assert!((sum(&|name| name == "calm") - 0.2).abs() < 1e-12);
    assert!((sum(&|name| name.starts_with("pair-")) - 0.3).abs() < 1e-12);
    assert_eq!(shares.len(), 15);
    let heldout = shipped_scenario("mixed-discovery-heldout").world;
    assert!(heldout.variants().iter().all(|params| params.name.starts_with("heldout-")));
}

/// The first five minutes are calm, and what an open-loop schedule would have to know differs.
#[test]
fn every_scenario_begins_calmly_and_differs() {
    for file in shipped_discovery() {
        for params in shipped_scenario(file.name).world.variants() {
            let mut onsets = Vec::new();
            for seed in 0..200 {
                let numbers = params.draw(key(seed));
                let times = numbers.faults.iter().map(|fault| numbers.at_min(fault));
                let first = times.fold(f64::INFINITY, f64::min);
                assert!(first >= 5.0, "{} {seed}: {first}", params.name);
                onsets.push(first);
            }
            onsets.sort_by(f64::total_cmp);
            if params.name != "calm" {
                assert!(onsets[180] - onsets[20] > 5.0, "{}", params.name);
                assert!(onsets[199] <= 40.0, "{}: time is left to act", params.name);
            }
        }
    }
}

#[test]
fn splits_share_no_episode() {
    let params = &shipped_scenario("rolling-deploy").world.variants()[0].clone();
    let onset = |split, seed| {
        let key = EpisodeKey::new(seed, 0, split, Generator::Pcg);
        params.draw(key).sections[0][1].to_bits()
    };
    let train: std::collections::BTreeSet<u64> = (0..500).map(|s| onset(Split::Train, s)).collect();
    assert_eq!(train.len(), 500);
    assert!((0..500).all(|seed| !train.contains(&onset(Split::Test, seed))));
}
