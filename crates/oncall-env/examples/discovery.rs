//! Discovery on one core: `cargo run --release -p oncall-env --example discovery [pace|dollars] [EPISODES]`.
//!
//! `pace` prints ten-second steps a second at the three scales, through the engine, one row, on the
//! mixture for training: once with dials that stand, once with one dial in eight turned in each step.
//! `dollars` prints what each scenario costs with the dials at their defaults, by term.

use oncall_env::{Actions, AnyVecEnv, Options, Seeds, discovery_names, shipped};
use std::error::Error;
use std::time::Instant;

/// Ticks of an episode.
const EPISODE: u64 = 360;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let what = args.next().unwrap_or_else(|| "pace".to_owned());
    let episodes = args.next().map(|text| text.parse()).transpose()?;
    match what.as_str() {
        "pace" => pace(),
        "dollars" => dollars(episodes.unwrap_or(8)),
        other => Err(format!("{other}: expected pace or dollars").into()),
    }
}

fn engine(name: &str, rows: usize) -> Result<AnyVecEnv, Box<dyn Error>> {
    let scenario = shipped(name).ok_or_else(|| format!("no scenario {name}"))?;
    Ok(AnyVecEnv::new(scenario.world, rows, Options::default())?)
}

fn pace() -> Result<(), Box<dyn Error>> {
    println!("{:<8}{:>10}{:>14}{:>14}", "scale", "steps", "standing/s", "turning/s");
    for (scale, steps) in [("small", 20 * EPISODE), ("tenth", 2 * EPISODE), ("full", EPISODE)] {
        let name = format!("mixed-discovery@{scale}");
        let mut speeds = [0.0; 2];
        for (turns, speed) in speeds.iter_mut().enumerate() {
            let mut env = engine(&name, 1)?;
            let mut out = env.columns();
            env.reset(Seeds::Root(1), None, &mut out.borrow_reset())?;
            let sizes: Vec<u64> =
                env.spec().dials.iter().map(|dial| dial.choices() as u64).collect();
            let start = Clock::now();
            for step in 0..steps {
                let stop = |(at, size): (usize, &u64)| {
                    let word = scramble(step * 64 + at as u64);
                    if turns == 1 && word.is_multiple_of(8) { (word / 8 % size) as i8 } else { 0 }
                };
                let stops: Vec<i8> = sizes.iter().enumerate().map(stop).collect();
                env.step(Actions::Stops8(&stops), &mut out.borrow())?;
            }
            *speed = steps as f64 / start.seconds();
        }
        println!("{scale:<8}{steps:>10}{:>14.0}{:>14.0}", speeds[0], speeds[1]);
    }
    Ok(())
}

fn dollars(episodes: usize) -> Result<(), Box<dyn Error>> {
    for (at, name) in discovery_names().into_iter().enumerate() {
        let mut env = engine(name, episodes)?;
        let names: Vec<&str> = env.spec().terms.iter().map(|term| term.name).collect();
        if at == 0 {
            let head: Vec<String> = names.iter().map(|name| format!("{name:>12.12}")).collect();
            println!("{:<28}{:>10}{}", "scenario", "all", head.concat());
        }
        let mut out = env.columns();
        env.reset(Seeds::Root(1), None, &mut out.borrow_reset())?;
        let keep = vec![0_i8; episodes * env.spec().dials.len()];
        for _ in 0..EPISODE {
            env.step(Actions::Stops8(&keep), &mut out.borrow())?;
        }
        let mut sums = vec![0.0; names.len()];
        for row in 0..episodes {
            for (sum, term) in sums.iter_mut().zip(env.episode_stats(row).terms) {
                *sum += term / episodes as f64;
            }
        }
        let terms: Vec<String> = sums.iter().map(|sum| format!("{sum:>12.2}")).collect();
        println!("{name:<28}{:>10.2}{}", sums.iter().sum::<f64>(), terms.concat());
    }
    Ok(())
}

/// Time of this thread on a core where the system tells (other programs do not count), else time.
struct Clock(Instant, Option<u64>);

impl Clock {
    fn now() -> Self {
        Self(Instant::now(), on_core_ns())
    }

    fn seconds(&self) -> f64 {
        match (self.1, on_core_ns()) {
            (Some(before), Some(now)) => (now - before) as f64 / 1e9,
            _ => self.0.elapsed().as_secs_f64(),
        }
    }
}

fn on_core_ns() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

/// Bits that look random.
fn scramble(word: u64) -> u64 {
    let z = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}
