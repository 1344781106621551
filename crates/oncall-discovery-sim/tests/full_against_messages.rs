//! The full-scale data plane against publishers, relays, proxies and requests one by one, on the same
//! courses.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::{EpisodeKey, Generator, Split};
use oncall_discovery_sim::messages::{Messages, Sampled, expected};
use oncall_discovery_sim::noise::Noise;
use oncall_discovery_sim::schedule::{Action, Planned, Scenario};
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::world::{Setup, World};

const LENGTH_S: f64 = 150.0;

fn setup(seed: u64) -> Setup {
    let mut setup = Setup::shipped("rollout", Scale::Small, seed).unwrap();
    let rollout = Action::Rollout { endpoints: 60, services: 8, popular: true };
    let crash = |freeze| Action::Crashes { instances: 40, over_s: 40.0, freeze };
    let plan = [(20.0, rollout), (25.0, crash(true)), (25.0, crash(false))];
    setup.scenario = Scenario {
        name: "agreement".to_owned(),
        about: String::new(),
        length_s: LENGTH_S,
        plan: plan.into_iter().map(|(at_s, action)| Planned { at_s, action }).collect(),
    };
    setup.dials.rollout_pace_per_s = 10.0;
    // So that the retry budget and the breaker, which are each proxy's own, do not decide.
    setup.dials.retry_budget_pct = 50.0;
    setup
}

fn row(sampled: &Sampled) -> [(&'static str, f64); 5] {
    [
        ("stale", sampled.counts.stale),
        ("failures", sampled.counts.failures),
        ("failed", sampled.counts.failed),
        ("retries", sampled.counts.retries),
        ("last", sampled.last_s),
    ]
}

#[test]
fn expectation_and_samples_agree() {
    let (worlds, runs) = (24, 4);
    let mut differences = vec![Vec::new(); 5];
    let mut means = [0.0; 5];
    let mut names = [""; 5];
    for seed in 0..worlds {
        let mut world = World::new(setup(seed)).unwrap();
        let bases = world.bases();
        world.record();
        world.run();
        let course = world.take_course();
        let counted = row(&expected(&world));
        let mut sums = [0.0; 5];
        for run in 0..runs {
            let key = EpisodeKey::new(seed, 1 + run, Split::Test, Generator::Pcg);
            let messages = Messages::new(&world, bases.clone(), Noise::new(key));
            let sampled = messages.run(&course, 10_000_000, (LENGTH_S * 1e6) as u64);
            assert_eq!(sampled.to_starting, 0, "requests to an instance that was never READY");
            assert!(sampled.counts.requests > 10_000.0);
            for (sum, (_, value)) in sums.iter_mut().zip(row(&sampled)) {
                *sum += value / runs as f64;
            }
        }
        for (at, (name, value)) in counted.into_iter().enumerate() {
            names[at] = name;
            means[at] += sums[at] / worlds as f64;
            differences[at].push(sums[at] - value);
        }
    }
    for at in 0..5 {
        let n = differences[at].len() as f64;
        let mean = differences[at].iter().sum::<f64>() / n;
        let variance = differences[at].iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let z = mean / (variance / n).sqrt();
        eprintln!("{}: mean {:.2}, difference {mean:.3}, z = {z:.2}", names[at], means[at]);
        assert!(means[at] > 1.0, "{} was hardly tried", names[at]);
        assert!(z.abs() < 4.0, "{} differs: z = {z:.2}", names[at]);
    }
}
