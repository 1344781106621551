//! Plays a shipped scenario and prints what it cost: `world SCENARIO SCALE SEED`.
#![allow(clippy::unwrap_used, reason = "an example may panic")]

use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Kind, Setup, Timeline, World};
use std::time::Instant;

/// Milliseconds of processor time of this thread, where the system tells (Linux).
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e6
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let scenario = args.get(1).map_or("rollout", String::as_str);
    let scale = args.get(2).and_then(|name| Scale::from_name(name)).unwrap_or(Scale::Small);
    let seed = args.get(3).and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut setup = Setup::shipped(scenario, scale, seed).unwrap();
    setup.verify = args.iter().any(|arg| arg == "verify");
    for pair in args.iter().filter_map(|arg| arg.split_once('=')) {
        setup.dials = setup.dials.with(pair.0, pair.1.parse().unwrap()).unwrap();
    }
    let begin = Instant::now();
    let mut world = World::new(setup).unwrap();
    eprintln!("built in {:?}", begin.elapsed());
    let length = world.scenario().length_s;
    let (mut worst, mut total, mut busy) = (0.0_f64, 0.0_f64, 0.0_f64);
    for second in 1..=(length as u64) {
        let begin = cpu_ms();
        world.run_until(second * 1_000_000);
        let spent = cpu_ms() - begin;
        worst = worst.max(spent);
        total += spent;
        if (31..=140).contains(&second) {
            busy += spent / 110.0;
        }
    }
    println!(
        "{:.3} ms of processor time a simulated second, {busy:.3} from 30 s to 140 s, worst {worst:.2}",
        total / length
    );
    println!("{:#?}", world.totals());
    println!("{:?}", world.goals().list());
    for kind in [Kind::Withdrawal, Kind::Crash, Kind::False] {
        println!("{kind:?} {:?}", world.clocks().percentiles(kind, Timeline::seconds));
    }
    println!("{} violations", world.violations().len());
    for violation in world.violations().iter().take(5) {
        println!("{violation:?}");
    }
    println!("behind {} connected {}", world.plane().behind(), world.plane().connected());
    println!("live epochs max {}", world.plane().live_epochs_max());
    let begin = cpu_ms();
    let copies: Vec<World> = (0..3).map(|_| world.clone()).collect();
    println!(
        "clone {:.1} ms of processor time, mean of three, into memory fresh from the system",
        (cpu_ms() - begin) / 3.0
    );
    let copy = &copies[0];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        println!("with three copies: {line}");
    }
    let best = (0..5).map(|_| {
        let begin = Instant::now();
        let copy = std::hint::black_box(world.clone());
        let spent = begin.elapsed().as_secs_f64() * 1e3;
        drop(copy);
        spent
    });
    println!("clone into memory that was used before: {:.1} ms", best.fold(f64::MAX, f64::min));
    let begin = Instant::now();
    let bytes = copy.save().unwrap();
    println!("save {:?}, {} bytes", begin.elapsed(), bytes.len());
}
