//! Whatever a file says, loading it answers: a world that can be played, or a list of problems.

use oncall_core::{EpisodeKey, Split, World as _};
use oncall_fleet::params::{Constants, Field};
use oncall_scenario::{
    MemoryFiles, Scenario, ShippedFiles, ShippedOr, demand_csv, dials_csv, load, shipped,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// A value that has nothing to do with the place where it is put.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |x| x.is_finite()).prop_map(Value::from),
        prop_oneof![Just(0.0), Just(1.0), Just(-1.0), Just(0.5), Just(1e308)].prop_map(Value::from),
        prop_oneof![
            "[a-z_ ]{0,12}",
            Just("spike".to_owned()),
            Just("mixed".to_owned()),
            Just("d.csv".to_owned())
        ]
        .prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-z_\"\\\\ ]{0,8}",
        Just("uniform".to_owned()),
        Just("choice".to_owned()),
        Just("weights".to_owned()),
        Just("mixture".to_owned()),
        Just("scenario".to_owned()),
        Just("series".to_owned()),
        Just("csv".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every place of a value, by JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, inner)| places(inner, &format!("{at}/{key}"), found));
        }
        Value::Array(items) => {
            (items.iter().enumerate())
                .for_each(|(i, inner)| places(inner, &format!("{at}/{i}"), found));
        }
        _ => {}
    }
}

/// Plays a few minutes; the invariants of the world are checked in debug builds.
fn play(scenario: &Scenario, seed: u64) {
    let world = &scenario.world;
    let mut block = world.new_block();
    world.reset(&mut block, 0, EpisodeKey::new(seed, 0, Split::Train, world.generator()));
    let spec = world.spec();
    let mut signals = vec![0.0; spec.signals.len()];
    let (dials, mut terms) = (vec![f64::NAN; spec.dials.len()], vec![0.0; spec.terms.len()]);
    for _ in 0..12 {
        world.signals(&block, 0, &mut signals);
        assert!(signals.iter().all(|signal| signal.is_finite()));
        world.step(&mut block, &[true], &dials, &mut terms, &mut [false]);
        assert!(terms.iter().all(|term| term.is_finite()));
    }
}

/// A number or a distribution that a field may hold.
fn valid(field: &'static Field) -> impl Strategy<Value = Value> {
    let number = move |share: f64| {
        let x = field.low + (field.high - field.low) * share;
        if field.whole {
            x.round().clamp(field.low, field.high)
        } else {
            x.clamp(field.low, field.high)
        }
    };
    prop_oneof![
        (0.0..=1.0).prop_map(move |share| json!(number(share))),
        Just(json!(field.low)),
        Just(json!(field.high)),
        (0.0..=1.0, 0.0..=1.0).prop_map(move |(a, b): (f64, f64)| {
            json!({"uniform": [number(a.min(b)), number(a.max(b))]})
        }),
        prop::collection::vec(0.0..=1.0, 1..4).prop_map(
            move |shares| json!({"choice": shares.into_iter().map(number).collect::<Vec<_>>()})
        ),
        (0.0..=1.0, 0.1..10.0)
            .prop_map(move |(share, std): (f64, f64)| json!({"normal": [number(share), std]})),
    ]
}

/// A scenario in which some numbers are replaced by valid ones.
fn valid_scenario() -> impl Strategy<Value = Value> {
    let all: Vec<(&str, &'static Field)> = Constants::SECTIONS
        .iter()
        .flat_map(|(section, fields)| fields.iter().map(move |field| (*section, field)))
        .collect();
    prop::sample::subsequence(all.clone(), 0..all.len()).prop_flat_map(|chosen| {
        let values: Vec<_> = chosen.iter().map(|(_, field)| valid(field)).collect();
        (Just(chosen), values).prop_map(|(chosen, values)| {
            let mut file = json!({
                "schema_version": 1, "world": "fleet", "name": "random",
                "surges": [{"start_min": 2, "size": 50}], "deploys": [{"minute": 3}], "flushes": [{"minute": 4}],
            });
            for ((section, field), value) in chosen.into_iter().zip(values) {
                file[section][field.name] = value;
            }
            file
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_in_the_wrong_place_never_panics(
        file in prop::sample::select(shipped()),
        place in any::<prop::sample::Index>(),
        value in anything(),
        seed in any::<u64>(),
    ) {
        let mut root: Value = serde_json::from_str(file.text).expect("JSON");
        let mut found = Vec::new();
        places(&root, "", &mut found);
        *root.pointer_mut(place.get(&found).as_str()).expect("a place") = value;
        let csv = MemoryFiles::new().with("d.csv", "requests_per_s\n5\n");
        match load(&root.to_string(), &ShippedOr(csv)) {
            Ok(scenario) => play(&scenario, seed),
            Err(errors) => prop_assert!(!errors.problems().is_empty() && !errors.to_string().is_empty()),
        }
    }

    #[test]
    fn a_text_with_a_hole_never_panics(
        file in prop::sample::select(shipped()),
        from in any::<prop::sample::Index>(),
        len in 0_usize..40,
        patch in "[\\[\\]{},:\"0-9a-z .-]{0,6}",
    ) {
        let from = from.index(file.text.len());
        let to = (from + len).min(file.text.len());
        let text = [&file.text.as_bytes()[..from], patch.as_bytes(), &file.text.as_bytes()[to..]].concat();
        // The shipped texts are ASCII, so any cut leaves UTF-8.
        let text = String::from_utf8(text).expect("UTF-8");
        if let Ok(scenario) = load(&text, &ShippedFiles) {
            play(&scenario, 1);
        }
    }

    #[test]
    fn scenarios_that_load_can_be_played(file in valid_scenario(), seed in any::<u64>()) {
        match load(&file.to_string(), &ShippedFiles) {
            Ok(scenario) => play(&scenario, seed),
            // Each number is right; only a rule between two of them may be broken.
            Err(errors) => prop_assert!(
                errors.problems().iter().all(|problem| problem.expected.starts_with("at most `")
                    || problem.expected.starts_with("a positive")),
                "{errors}"
            ),
        }
    }

    #[test]
    fn csv_texts_never_panic(text in "(requests_per_s|timestamp,count|cache_ttl_s,feature)?(\n[0-9:TZ ,.eNa\"-]{0,20}){0,8}") {
        if let Ok(rates) = demand_csv("d", &text) {
            prop_assert!(!rates.is_empty() && rates.iter().all(|rate| (0.0..=1e6).contains(rate)));
        }
        if let Ok(rows) = dials_csv("d", &text, &oncall_fleet::world::spec()) {
            prop_assert!(!rows.is_empty());
        }
    }
}
