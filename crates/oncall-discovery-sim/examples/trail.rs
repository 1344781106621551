//! Fingerprints of whole runs, to hold two builds against each other: `trail [SCALE…]`, one line a run.
//!
//! Each shipped scenario is played as it is, with dials that are turned all the time, and (up to the tenth scale)
//! with all checks; half-way the world is saved and read back. What a line hashes is what happened (rows, hashes of
//! the state, timelines, counters, gauges, money), not how it is stored, so a change of layout keeps all lines.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use oncall_discovery::dials::Dials;
use oncall_discovery_sim::schedule::SHIPPED;
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Setup, World};

/// Seconds between two turns.
const EVERY_S: u64 = 7;

fn main() {
    let mut scales: Vec<Scale> =
        std::env::args().skip(1).filter_map(|name| Scale::from_name(&name)).collect();
    if scales.is_empty() {
        scales = vec![Scale::Small, Scale::Tenth];
    }
    for scale in scales {
        for (name, _) in SHIPPED {
            for mode in ["plain", "turned", "checked"] {
                if scale == Scale::Full && mode == "checked" {
                    continue;
                }
                println!("{:<6} {name:<21} {mode:<8} {}", scale.name(), run(name, scale, mode));
            }
        }
    }
}

/// Plays a scenario and hashes what it was.
fn run(name: &str, scale: Scale, mode: &str) -> String {
    let mut setup = Setup::shipped(name, scale, 3).unwrap();
    if mode == "turned" {
        setup.shape = scale.env_shape();
    }
    setup.verify = mode == "checked";
    let length = setup.scenario.length_s as u64;
    let mut world = World::new(setup).unwrap();
    for second in 1..=length {
        world.run_until(second * 1_000_000);
        if mode == "turned" && second % EVERY_S == 0 {
            turn(&mut world, second);
        }
        if second == length / 2 {
            world = World::load(&world.save().unwrap()).unwrap();
        }
    }
    let mut hasher = blake3::Hasher::new();
    for hash in world.trail() {
        hasher.update(hash);
    }
    let mut text = |text: String| {
        hasher.update(text.as_bytes());
    };
    text(format!("{:?}", world.rows()));
    text(format!("{:?} {:?}", world.totals(), world.goals()));
    text(format!("{:?} {:?}", world.gauges(), world.bill()));
    text(format!("{:?}", world.clocks().timelines));
    text(format!("{:?} {:?}", world.violations(), world.in_force()));
    text(format!("{:?}", world.instances()));
    let violations = world.violations().len();
    let events = world.totals().events;
    format!("{} {events} events {violations} violations", &hasher.finalize().to_hex()[..16])
}

/// Sets one dial in four to somewhere in its range.
fn turn(world: &mut World, second: u64) {
    let mut dials = *world.dials();
    for (at, row) in Dials::TABLE.iter().enumerate() {
        let word = scramble(second * 64 + at as u64);
        if word.is_multiple_of(4) {
            let share = (word >> 8) as u32 as f64 / f64::from(u32::MAX);
            let value = row.min + share * (row.max - row.min);
            let value = if row.kind.whole() { value.round() } else { value };
            // One that breaks a rule between dials stays.
            dials = dials.with(row.name, value).unwrap_or(dials);
        }
    }
    world.turn(dials).unwrap();
}

/// Bits that look random.
fn scramble(word: u64) -> u64 {
    let z = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}
