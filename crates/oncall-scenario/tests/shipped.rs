//! The shipped scenarios say what the specification's table says.

use oncall_core::{EpisodeKey, Generator, Split, World as _};
use oncall_fleet::params::{Constants, Deploy, Flush, Record as _};
use oncall_fleet::{Lane, Params};
use oncall_scenario::{
    Files as _, MemoryFiles, Scenario, ShippedFiles, ShippedOr, load, shipped, shipped_text,
};

fn scenario(name: &str) -> Scenario {
    let text = shipped_text(name).unwrap_or_else(|| panic!("{name} is shipped"));
    load(text, &ShippedFiles).unwrap_or_else(|errors| panic!("{name}: {errors}"))
}

fn params(name: &str) -> Params {
    scenario(name).world.variants()[0].clone()
}

fn episode(scenario: &Scenario, seed: u64) -> Lane {
    let mut block = scenario.world.new_block();
    scenario.world.reset(&mut block, 0, EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg));
    block
}

#[test]
fn every_shipped_file_loads_under_its_name() {
    let mut hashes = Vec::new();
    for file in shipped() {
        let scenario = scenario(file.name);
        assert_eq!(scenario.name, file.name);
        assert!(
            scenario.title != file.name && scenario.description.ends_with('.'),
            "{}",
            file.name
        );
        assert!(!hashes.contains(&scenario.hash), "{}", file.name);
        hashes.push(scenario.hash);
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/fleet");
    let files = std::fs::read_dir(folder).expect("the folder of scenarios").count();
    assert_eq!(files, shipped().len(), "a file of scenarios/fleet is not shipped");
}

#[test]
fn the_table_of_the_specification_holds() {
    // Clock, length, boot delay, budget, TTL.
    for (name, expected) in [
        ("spike", [8.0, 240.0, 8.0, 1.0, 60.0]),
        ("bad-build", [9.0, 120.0, 3.0, 0.2, 60.0]),
        ("cache-flush", [11.5, 150.0, 3.0, 1.0, 90.0]),
        ("steady", [8.0, 240.0, 3.0, 1.0, 60.0]),
    ] {
        let Constants { shift, fleet, opening, .. } = params(name).numbers.constants;
        let found = [
            shift.clock_start_h,
            shift.length_min,
            fleet.boot_delay_min,
            opening.budget_left,
            opening.cache_ttl_s,
        ];
        assert_eq!(found, expected, "{name}");
    }
    let bad_build = params("bad-build");
    assert_eq!(bad_build.numbers.deploys[..], [Deploy { minute: 10.0, ..Deploy::defaults() }]);
    assert_eq!(bad_build.numbers.constants.slo.page_burn, 6.0);
    assert_eq!(params("spike").numbers.constants.slo.page_burn, 14.4);
    assert_eq!(params("cache-flush").numbers.flushes[..], [Flush { minute: 30.0 }]);
    assert!(["spike", "steady"].iter().all(|name| {
        let numbers = params(name).numbers;
        numbers.deploys.is_empty() && numbers.flushes.is_empty()
    }));
}

#[test]
fn steady_is_the_defaults() {
    let found = params("steady");
    assert_eq!(found, Params { hash: found.hash, ..Params::defaults("steady") });
}

#[test]
fn the_surge_of_a_spike_is_drawn_as_specified() {
    let spike = scenario("spike");
    let surges: Vec<_> = (0..2000).map(|seed| episode(&spike, seed).numbers.surges[0]).collect();
    let ends = |of: &dyn Fn(usize) -> f64| {
        let values = (0..surges.len()).map(of);
        values.fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(x), high.max(x)))
    };
    for ((low, high), (lowest, highest)) in [
        (ends(&|i| surges[i].start_min), (20.0, 160.0)),
        (ends(&|i| surges[i].size), (1.0, 4.0)),
        (ends(&|i| surges[i].rise_min), (2.0, 8.0)),
    ] {
        let slack = 0.02 * (highest - lowest);
        assert!(low >= lowest && low < lowest + slack && high <= highest && high > highest - slack);
    }
    assert!(surges.iter().all(|surge| surge.decay_min == 45.0));
}

#[test]
fn the_usual_hit_rate_of_the_cache_flush_is_85_percent() {
    let lane = episode(&scenario("cache-flush"), 1);
    assert!((lane.seen.cache_hit - 0.85).abs() < 0.005, "{}", lane.seen.cache_hit);
}

/// What an open-loop schedule would have to know differs in every episode of a hard scenario.
#[test]
fn hard_scenarios_cannot_be_memorised() {
    type Event = fn(&Lane) -> f64;
    let cases: [(&str, Event, f64); 3] = [
        ("spike-hard", |lane| lane.numbers.surges[0].start_min, 240.0),
        ("bad-build-hard", |lane| lane.numbers.deploys[0].minute, 120.0),
        ("cache-flush-hard", |lane| lane.numbers.flushes[0].minute, 150.0),
    ];
    for (name, event, length_min) in cases {
        let hard = scenario(name);
        let mut minutes: Vec<f64> = (0..300).map(|seed| event(&episode(&hard, seed))).collect();
        assert!(minutes.iter().all(|minute| *minute < length_min - 20.0), "{name}");
        minutes.sort_by(f64::total_cmp);
        assert!(minutes[270] - minutes[30] > 0.3 * length_min, "{name}");
    }
    assert!(params("bad-build-hard").hide_build_truth);
    assert!(!params("bad-build").hide_build_truth);
    let bad_build = scenario("bad-build-hard");
    let bad =
        (0..500).filter(|seed| episode(&bad_build, *seed).numbers.deploys[0].bad == 1.0).count();
    assert!((250..350).contains(&bad), "{bad}");
    // A second event falls into about half of the shifts.
    for (name, event, length_min) in [
        ("spike-hard", (|lane| lane.numbers.surges[1].start_min) as Event, 240.0),
        ("bad-build-hard", |lane| lane.numbers.deploys[1].minute, 120.0),
        ("cache-flush-hard", |lane| lane.numbers.flushes[1].minute, 150.0),
    ] {
        let hard = scenario(name);
        let within = (0..500).filter(|seed| event(&episode(&hard, *seed)) < length_min).count();
        assert!((200..320).contains(&within), "{name}: {within}");
    }
}

#[test]
fn mixtures_draw_each_of_the_three() {
    for (name, suffix) in [("mixed", ""), ("mixed-hard", "-hard")] {
        let mixed = scenario(name);
        let names: Vec<&str> = mixed.world.variants().iter().map(|v| v.name.as_str()).collect();
        let expected: Vec<String> = ["spike", "bad-build", "cache-flush"]
            .iter()
            .map(|name| format!("{name}{suffix}"))
            .collect();
        assert_eq!(names, expected);
        for variant in 0..3 {
            let drawn = (0..600).filter(|seed| episode(&mixed, *seed).variant == variant).count();
            assert!((150..250).contains(&drawn), "{name} {variant}: {drawn}");
        }
    }
}

#[test]
fn unknown_names_get_a_suggestion() {
    let why = ShippedFiles.read("cache_flush").expect_err("not a name");
    assert!(why.contains("did you mean `cache-flush`?"), "{why}");
    let files = ShippedOr(MemoryFiles::new().with("own", "text").with("spike", "shadowed"));
    assert_eq!(files.read("own").as_deref(), Ok("text"));
    assert_eq!(files.read("spike").as_deref(), Ok(shipped_text("spike").expect("shipped")));
    assert!(files.read("none").is_err());
}
