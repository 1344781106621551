//! What a simulated second costs: `cargo run --release -p oncall-discovery-sim --example seconds -- rollout full 3`.
//!
//! Plays a shipped scenario some times over and prints the least and the median time of a simulated second.

use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Setup, World};
use std::time::Instant;

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().unwrap_or_else(|| "rollout".to_owned());
    let scale = args.next().and_then(|scale| Scale::from_name(&scale)).unwrap_or(Scale::Full);
    let runs: u64 = args.next().and_then(|runs| runs.parse().ok()).unwrap_or(3);
    let Some(setup) = Setup::shipped(&name, scale, 1) else {
        return eprintln!("{name}: expected the name of a shipped scenario");
    };
    let mut times = Vec::new();
    for _ in 0..runs {
        let Ok(mut world) = World::new(setup.clone()) else {
            return eprintln!("{name}: does not begin");
        };
        let from = Instant::now();
        world.run();
        times.push(from.elapsed().as_secs_f64() * 1e6 / setup.scenario.length_s);
    }
    times.sort_unstable_by(f64::total_cmp);
    println!(
        "{name} {}: {:.1} us a simulated second at least, {:.1} in the median of {runs}",
        scale.name(),
        times[0],
        times[times.len() / 2]
    );
}
