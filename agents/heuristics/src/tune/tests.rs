//! The search on hills whose top is known.

use super::*;
use crate::registry;

fn start(text: &str) -> PolicySpec {
    text.parse().unwrap()
}

/// Minus the squared distance from a known best, as a share of each range.
fn hill(specs: &[PolicySpec]) -> Vec<f64> {
    let target = |name: &str| if name == "min" { 17.0 } else { 0.42 };
    specs
        .iter()
        .map(|spec| {
            let distance = |(name, value): &(String, f64)| {
                let param = &registry::describe(&spec.name).unwrap().params;
                let param = param.iter().find(|param| param.name == *name).unwrap();
                let d = param.to_unit(*value) - param.to_unit(target(name));
                if ["min", "target"].contains(&name.as_str()) { d * d } else { 0.0 }
            };
            -spec.params.iter().map(distance).sum::<f64>()
        })
        .collect()
}

#[test]
fn climbs_to_the_top_and_repeats_itself() {
    let options = Search { rounds: 12, population: 30, ..Search::rule(5) };
    let found = search(&start("hpa"), "", &[], &options, &mut hill).unwrap();
    assert!(found.score > -1e-4, "{found:?}");
    assert!(found.best.params.contains(&("min".to_owned(), 17.0)));
    assert_eq!(found, search(&start("hpa"), "", &[], &options, &mut hill).unwrap());
    assert!(found.history.is_sorted() && found.scored > 360);
    assert!(found.scored <= options.candidates_max(found.best.params.len()));
    found.best.check().unwrap();
}

#[test]
fn only_the_free_parameters_move() {
    let options = Search { rounds: 3, ..Search::rule(1) };
    let mut seen = Vec::new();
    let mut score = |specs: &[PolicySpec]| {
        seen.extend_from_slice(specs);
        hill(specs)
    };
    let found = search(&start("hpa:target=0.9"), "", &["min"], &options, &mut score).unwrap();
    assert!(found.best.params.contains(&("target".to_owned(), 0.9)));
    assert!(seen.len() > 100);
    assert!(seen.iter().all(|spec| spec.params.contains(&("target".to_owned(), 0.9))));
}

#[test]
fn scores_that_are_not_numbers_lose() {
    let options = Search { rounds: 2, population: 8, ..Search::rule(1) };
    let mut first = true;
    let mut score = |specs: &[PolicySpec]| {
        let start = std::mem::replace(&mut first, false);
        specs.iter().map(|_| if start { -7.0 } else { f64::NAN }).collect()
    };
    let found = search(&start("hpa"), "", &[], &options, &mut score).unwrap();
    assert_eq!(found.score, -7.0);
    assert_eq!(found.best, registry::resolve(&start("hpa"), "fleet", "").unwrap());
}

#[test]
fn a_schedule_is_searched_too() {
    let mut score = |specs: &[PolicySpec]| {
        let of = |spec: &PolicySpec| {
            let shed = |(name, value): &(String, f64)| {
                if name.ends_with("shed_share") { (value - 0.3).abs() } else { 0.0 }
            };
            -spec.params.iter().map(shed).sum::<f64>()
        };
        specs.iter().map(of).collect::<Vec<f64>>()
    };
    let options = Search { rounds: 30, population: 40, ..Search::schedule(2) };
    let start = start("open-loop");
    let before = score(&[registry::resolve(&start, "fleet", "").unwrap()])[0];
    let found = search(&start, "", &[], &options, &mut score).unwrap();
    assert!(found.score > 0.5 * before, "{} {before}", found.score);
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let mut score = |specs: &[PolicySpec]| vec![0.0; specs.len()];
    let mut refused = |spec: &PolicySpec, free: &[&str], options: &Search| {
        search(spec, "", free, options, &mut score).unwrap_err().to_string()
    };
    let rule = Search::rule(0);
    assert!(refused(&start("hold"), &[], &rule).contains("`hold`"));
    assert!(refused(&start("hpa"), &["mni"], &rule).contains("`mni` is not known"));
    assert!(
        refused(&start("hpa"), &[], &Search { population: 1, ..rule }).contains("1 candidates")
    );
}

/// A climb with the same hill; two thirds of the dials do not matter.
fn climbed(seed: u64, starts: &[PolicySpec]) -> Found {
    let options = climb::Climb { wild: 6, steps: 60, slack: 0.0, ..climb::Climb::new(seed) };
    let target = |name: &str| match name {
        "lease_ttl_s" => 0.8,
        "relays_per_region" => 0.1,
        _ => 0.4,
    };
    let params = &registry::describe("static").unwrap().params;
    let mut hill = |spec: &PolicySpec, _best: f64| -> f64 {
        let distance = |(index, (name, value)): (usize, &(String, f64))| {
            let param = params.iter().find(|param| param.name == *name).unwrap();
            let d = param.to_unit(*value) - target(name);
            if index % 3 == 0 || *name == "relays_per_region" { d * d } else { 0.0 }
        };
        -spec.params.iter().enumerate().map(distance).sum::<f64>()
    };
    let found = climb::climb(starts, &options, &mut hill).unwrap();
    assert!(found.scored <= starts.len() + options.candidates_max(params.len()));
    assert!((hill(&found.best, 0.0) - found.score).abs() < 1e-12);
    found
}

#[test]
fn a_climb_finds_the_top_of_a_dear_hill_and_repeats_itself() {
    let start = registry::resolve(&start("default"), "discovery", "").unwrap();
    let found = climbed(3, std::slice::from_ref(&start));
    assert!(found.score > -0.02, "{found:?}");
    assert!(found.history.is_sorted());
    assert_eq!(found, climbed(3, std::slice::from_ref(&start)));
    assert_ne!(found.best, climbed(4, std::slice::from_ref(&start)).best);
    let digits = |value: f64| value.to_string().chars().filter(char::is_ascii_digit).count();
    assert!(found.best.params.iter().all(|(_, value)| digits(*value) <= 4), "{found:?}");
    // What did not matter is at its default.
    let jitter =
        |spec: &PolicySpec| spec.params.iter().find(|(name, _)| name == "reconnect_cap_s").cloned();
    assert_eq!(jitter(&found.best), jitter(&start));
    let better = climbed(3, &[start.clone(), found.best.clone()]);
    assert!(better.score >= found.score);
    let one = climb::Climb { free: vec!["lease_ttl_s".to_owned()], ..climb::Climb::new(3) };
    let begin = start;
    let mut lease = |spec: &PolicySpec, _: f64| spec.params.iter().map(|(_, value)| value).sum();
    let found = climb::climb(std::slice::from_ref(&begin), &one, &mut lease).unwrap();
    let moved = found.best.params.iter().zip(&begin.params).filter(|(a, b)| a != b);
    assert_eq!(
        moved.map(|(a, _)| a.clone()).collect::<Vec<_>>(),
        [("lease_ttl_s".to_owned(), 120.0)]
    );
    // What a start brought along, and does not matter, goes.
    let mut brought = begin.clone();
    brought.params.iter_mut().find(|(name, _)| name == "retries_max").unwrap().1 = 3.0;
    let mut lease = |spec: &PolicySpec, _: f64| {
        spec.params.iter().find(|(name, _)| name == "lease_ttl_s").unwrap().1
    };
    assert_eq!(climb::climb(&[brought], &one, &mut lease).unwrap().best, found.best);
    let unknown = climb::Climb { free: vec!["lease".to_owned()], ..one };
    let error = climb::climb(&[begin], &unknown, &mut |_, _| 0.0).unwrap_err().to_string();
    assert!(error.contains("parameter `lease` is not known"), "{error}");
    let error = climb::climb(&[], &climb::Climb::new(1), &mut |_, _| 0.0).unwrap_err().to_string();
    assert!(error.contains("expected at least one"), "{error}");
}
