//! What a step of an environment costs: `cargo run --release -p oncall-discovery-sim --example steps -- small 20`.
//!
//! Plays an hour in steps of ten seconds over the environment's shape, under ordinary churn, a rollout, crashes and
//! a restart of all relays, and prints the median over the runs of: the step alone, with a turn of four dials each
//! time, and with a look at gauges and bill as well.

use oncall_discovery::dials::Dials;
use oncall_discovery_sim::schedule::{Action, Planned, Scenario};
use oncall_discovery_sim::topology::{Scale, Shape};
use oncall_discovery_sim::world::{Setup, World};
use std::hint::black_box;
use std::time::Instant;

const STEPS: u64 = 360;

fn setup(shape: Shape) -> Setup {
    let part = |x: f64| (f64::from(shape.instances) * x) as u32;
    let plan = [
        (1.0, Action::Churn { per_s: f64::from(shape.instances) * 2e-5, for_s: 3_600.0 }),
        (
            600.0,
            Action::Rollout {
                endpoints: shape.rollout,
                services: shape.services / 10,
                popular: false,
            },
        ),
        (1_500.0, Action::Crashes { instances: part(0.01), over_s: 120.0, freeze: true }),
        (2_400.0, Action::RelayRestart { share: 1.0, cold: true }),
    ];
    let plan = plan.into_iter().map(|(at_s, action)| Planned { at_s, action }).collect();
    let scenario =
        Scenario { name: "steps".to_owned(), about: String::new(), length_s: 3_600.0, plan };
    Setup { shape, scenario, dials: Dials::default(), seed: 3, verify: false }
}

/// Microseconds a step.
fn play(world: &mut World, turns: bool, looks: bool) -> f64 {
    let from = Instant::now();
    for step in 0..STEPS {
        if turns {
            let at = (step % 7) as f64;
            let wish = Dials {
                probe_interval_s: 3.0 + at / 2.0,
                retries_max: 1.0 + (step % 2) as f64,
                head_heartbeat_s: 8.0 + at,
                ejection_base_s: 30.0 + at,
                ..Dials::default()
            };
            black_box(world.turn(wish).is_ok());
        }
        world.run_until((step + 1) * 10_000_000);
        if looks {
            black_box((world.gauges(), world.bill()));
        }
    }
    from.elapsed().as_secs_f64() * 1e6 / STEPS as f64
}

fn main() {
    let mut args = std::env::args().skip(1);
    let scale = args.next().and_then(|scale| Scale::from_name(&scale)).unwrap_or(Scale::Small);
    let runs: usize = args.next().and_then(|runs| runs.parse().ok()).unwrap_or(20);
    let Ok(mut world) = World::new(setup(scale.env_shape())) else { return };
    world.quiet();
    let kinds = [(false, false), (true, false), (true, true)];
    let mut times = [const { Vec::new() }; 3];
    for _ in 0..runs {
        for (times, (turns, looks)) in times.iter_mut().zip(kinds) {
            times.push(play(&mut world.clone(), turns, looks));
        }
    }
    let medians = times.map(|mut times| {
        times.sort_unstable_by(f64::total_cmp);
        (times[0], times[times.len() / 2])
    });
    for (name, (least, median)) in ["step", "with a turn", "with a look"].iter().zip(medians) {
        println!(
            "{:6} {name:12} {least:9.1} us at least, {median:9.1} us in the median",
            scale.name()
        );
    }
}
