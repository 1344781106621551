//! Plays one case of the fuzzer and prints what broke: `case SEED NUMBER`.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use oncall_discovery_sim::fuzz::{draw_case, play, shrink};

fn main() {
    let args: Vec<u64> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    let setup = draw_case(args[0], args[1]);
    let (violation, world) = play(&setup).unwrap();
    println!("{violation:?}\n{:?}", world.totals());
    if let Some(violation) = violation {
        let small = shrink(&setup, &violation.invariant).unwrap();
        println!("{:?}\n{:?}", small.scenario.plan, small.dials);
        println!("{:?}", play(&small).unwrap().0);
    }
}
