//! Fifteen episodes of an independent implementation of the fleet: demand and dials in, all readouts
//! out. They agree to 1e-9 relative or 1e-12 absolute, counts exactly.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_env::{Actions, AnyVecEnv, Options, Seeds, shipped};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn check_episode(text: &str) -> usize {
    let golden: Value = serde_json::from_str(text).unwrap();
    let mut world = shipped(golden["scenario"].as_str().unwrap()).unwrap().world;
    let demand = numbers(&golden["demand_rps"]);
    let minutes = demand.len();
    assert!(world.pin_demand(Some(demand)));
    let options = Options { max_minutes: Some(minutes as u32), ..Options::default() };
    let mut env = AnyVecEnv::new(world, 1, options).unwrap();
    let spec = env.spec().clone();
    let dials: Vec<Vec<f64>> =
        spec.dials.iter().map(|dial| numbers(&golden["dials"][dial.name])).collect();
    let mut columns = env.columns();
    env.reset(Seeds::Rows(&[Some(0)]), None, &mut columns.borrow_reset()).unwrap();
    let mut compared = 0;
    for minute in 0..minutes {
        let action: Vec<f64> = dials.iter().map(|row| row[minute]).collect();
        env.step(Actions::Dials(&action), &mut columns.borrow()).unwrap();
        assert_eq!(columns.truncated[0], minute + 1 == minutes);
        let (signals, terms) = (&columns.signals, &columns.terms);
        for (name, expected) in golden["expect"].as_object().unwrap() {
            let expected = expected[minute].as_f64().unwrap();
            let found = if name == "reward" {
                columns.rewards[0]
            } else if let Some(index) = spec.signal(name) {
                signals[index]
            } else {
                terms[spec.term(name).unwrap_or_else(|| panic!("no readout {name}"))]
            };
            let whole = ["serving", "booting", "page"].contains(&name.as_str());
            let near = (found - expected).abs() <= (1e-9 * expected.abs()).max(1e-12);
            assert!(
                if whole { found.to_bits() == expected.to_bits() } else { near },
                "minute {minute}, {name}: found {found}, expected {expected}"
            );
            compared += 1;
        }
    }
    compared
}

#[test]
fn all_fifteen_episodes_agree() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/fleet");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 15);
    for file in files {
        let compared = check_episode(&std::fs::read_to_string(&file).unwrap());
        assert_eq!(compared, 180 * 33, "{}", file.display());
        println!("{}: {compared} values agree", file.display());
    }
}
