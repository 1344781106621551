//! Fifteen episodes of an independent implementation of the fleet: demand and dials in, all readouts
//! out. They agree to 1e-9 relative or 1e-12 absolute, counts exactly.

use oncall_core::{EpisodeKey, World};
use oncall_fleet::params::{Deploy, Flush, Record};
use oncall_fleet::{FleetWorld, Params};
use serde_json::Value;

fn world(scenario: &str) -> FleetWorld {
    let mut params = Params::defaults(scenario);
    match scenario {
        "spike" => params.numbers.constants.fleet.boot_delay_min = 8.0,
        "bad-build" => {
            params.numbers.constants.slo.page_burn = 6.0;
            params.numbers.constants.opening.budget_left = 0.2;
            params.numbers.deploys.push(Deploy { minute: 10.0, ..Deploy::defaults() });
        }
        "cache-flush" => params.numbers.flushes.push(Flush { minute: 30.0 }),
        other => panic!("no golden scenario {other}"),
    }
    FleetWorld::single(params)
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

fn check_episode(text: &str) -> usize {
    let golden: Value = serde_json::from_str(text).unwrap();
    let mut world = world(golden["scenario"].as_str().unwrap());
    let demand = numbers(&golden["demand_rps"]);
    let minutes = demand.len();
    world.pin_demand(Some(demand));
    let spec = world.spec().clone();
    let dials: Vec<Vec<f64>> =
        spec.dials.iter().map(|dial| numbers(&golden["dials"][dial.name])).collect();
    let mut block = world.new_block();
    world.reset(&mut block, 0, EpisodeKey::default());
    let mut signals = vec![0.0; spec.signals.len()];
    let mut terms = vec![0.0; spec.terms.len()];
    let mut compared = 0;
    for minute in 0..minutes {
        let action: Vec<f64> =
            spec.dials.iter().zip(&dials).map(|(dial, row)| dial.settle(row[minute])).collect();
        world.step(&mut block, &[true], &action, &mut terms, &mut [false]);
        world.signals(&block, 0, &mut signals);
        for (name, expected) in golden["expect"].as_object().unwrap() {
            let expected = expected[minute].as_f64().unwrap();
            let found = if name == "reward" {
                -terms.iter().sum::<f64>()
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
