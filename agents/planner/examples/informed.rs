//! Chooses the informed planner's posture on training episodes, measures it on the episodes of
//! `reference.json`, and writes both.
//!
//! ```text
//! cargo run --release -p oncall-planner --example informed -- agents/planner/informed.json spike
//! ```
//!
//! Minutes a scenario on one core; scenarios that are not named keep what they have.

use oncall_core::streams::row_seed;
use oncall_core::{EpisodeKey, Generator, Split};
use oncall_env::AnyWorld;
use oncall_eval::{hex, stats};
use oncall_fleet::FleetWorld;
use oncall_planner::{
    INFORMED_SEARCH, InformedScenario, Posture, Told, plan_informed, standard_error,
};
use std::error::Error;

/// Training episodes that a choice looks at, and test episodes of the mean.
const CHOICE: (u64, Split, u64) = (24, Split::Train, 4243);
const MEASURE: (u64, Split, u64) = (100, Split::Test, 1);

const TOLD: [Told; 3] = [Told::Everything, Told::InTurn, Told::InTurnInsured];
const INSTANCES: [f64; 5] = [6.0, 8.0, 10.0, 12.0, 14.0];
const SHED: [f64; 3] = [0.0, 0.5, 1.0];
const TTL_S: [f64; 2] = [30.0, 150.0];

fn returns(
    world: &FleetWorld,
    (posture, told): (Posture, Told),
    which: (u64, Split, u64),
) -> Vec<f64> {
    let (episodes, split, seed) = which;
    let key = |row| EpisodeKey::new(row_seed(seed, row), 0, split, Generator::Pcg);
    let plan = |row| plan_informed(world, key(row), posture, told, INFORMED_SEARCH).1;
    (0..episodes).map(plan).collect()
}

/// Coordinate by coordinate, and the fleet again at the end: shedding changes what it is worth.
fn choose(world: &FleetWorld, told: Told) -> Posture {
    let mut best = Posture { instances_per_krps: 8.0, shed_share: 0.0, cache_ttl_s: 60.0 };
    let mut known = f64::NEG_INFINITY;
    let mut consider = |best: &mut Posture, other: Posture| {
        let mean = stats::mean(&returns(world, (other, told), CHOICE));
        if mean > known {
            eprintln!("{mean:.2} {other:?}");
            (known, *best) = (mean, other);
        }
    };
    for instances_per_krps in INSTANCES {
        let other = Posture { instances_per_krps, ..best };
        consider(&mut best, other);
    }
    for shed_share in SHED {
        let other = Posture { shed_share, ..best };
        consider(&mut best, other);
    }
    for cache_ttl_s in TTL_S {
        let other = Posture { cache_ttl_s, ..best };
        consider(&mut best, other);
    }
    for add in [-4.0, -2.0, -1.0, 1.0, 2.0] {
        let other = Posture { instances_per_krps: best.instances_per_krps + add, ..best };
        consider(&mut best, other);
    }
    best
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("expected the path of informed.json, then scenarios")?;
    for name in args {
        let scenario = oncall_env::shipped(&name).ok_or_else(|| format!("no scenario `{name}`"))?;
        let AnyWorld::Fleet(world) = &scenario.world else {
            return Err(format!("scenario {name}: expected one of the fleet").into());
        };
        let entries = TOLD.map(|told| {
            let posture = choose(world, told);
            let found = returns(world, (posture, told), MEASURE);
            let entry = InformedScenario {
                hash: hex(scenario.hash),
                told,
                posture,
                mean: stats::mean(&found),
                standard_error: standard_error(&found),
                scenario: name.clone(),
            };
            eprintln!("{entry:?}");
            entry
        });
        let mut all: Vec<InformedScenario> =
            serde_json::from_str(&std::fs::read_to_string(&path)?)?;
        all.retain(|other| other.scenario != name);
        all.extend(entries);
        let order = |entry: &InformedScenario| {
            oncall_env::shipped_names().iter().position(|name| *name == entry.scenario)
        };
        all.sort_by_key(order);
        std::fs::write(&path, serde_json::to_string_pretty(&all)? + "\n")?;
    }
    Ok(())
}
