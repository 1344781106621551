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

/// A rollout, and processes that freeze or are killed; with or without local ejection.
fn setup(seed: u64, instances: u32, ejection: bool) -> Setup {
    let mut setup = Setup::shipped("rollout", Scale::Small, seed).unwrap();
    let rollout = Action::Rollout { endpoints: 60, services: 8, popular: true };
    let crash = |freeze| Action::Crashes { instances, over_s: 40.0, freeze };
    let plan = [(20.0, rollout), (25.0, crash(true)), (25.0, crash(false))];
    setup.scenario = Scenario {
        name: "agreement".to_owned(),
        about: String::new(),
        length_s: LENGTH_S,
        plan: plan.into_iter().map(|(at_s, action)| Planned { at_s, action }).collect(),
    };
    setup.dials.rollout_pace_per_s = 10.0;
    // What every region decides for itself is held against another oracle.
    setup.shape.target_load = 0.0;
    setup.dials.failover_trigger_pct = 0.0;
    // So that the retry budget, which is each proxy's own, does not decide.
    setup.dials.retry_budget_pct = 50.0;
    if !ejection {
        setup.dials.ejected_share_max_pct = 0.0;
    }
    setup
}

/// A dependency that nobody's readiness follows; two errors in a row eject.
fn dependency(seed: u64) -> Setup {
    let mut setup = setup(seed, 0, true);
    let fails =
        Action::BadDependency { services: 12, region: None, for_s: 60.0, fails: 0.3, slow_s: 0.0 };
    setup.scenario.plan = vec![Planned { at_s: 40.0, action: fails }];
    setup.dials.dependency_mode = 0.0;
    setup.dials.ejection_errors = 2.0;
    setup
}

fn row(sampled: &Sampled) -> [(&'static str, f64); 5] {
    [
        ("stale", sampled.counts.stale),
        ("failures", sampled.counts.failures),
        ("user-visible", sampled.counts.user_visible()),
        ("retries", sampled.counts.retries),
        ("last", sampled.last_s),
    ]
}

/// Name, sampled mean, relative difference, z-score.
fn compare(setup: impl Fn(u64) -> Setup, worlds: u64) -> Vec<(&'static str, f64, f64, f64)> {
    let runs = 4;
    let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); 5];
    let mut names = [""; 5];
    for seed in 0..worlds {
        let mut world = World::new(setup(seed)).unwrap();
        let bases = world.bases();
        world.record();
        world.run();
        let course = world.take_course();
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
        for (at, (name, value)) in row(&expected(&world)).into_iter().enumerate() {
            names[at] = name;
            pairs[at].push((sums[at], value));
        }
    }
    let summary = |at: usize| {
        let n = pairs[at].len() as f64;
        let mean = pairs[at].iter().map(|(sampled, _)| sampled).sum::<f64>() / n;
        let difference = pairs[at].iter().map(|(s, e)| s - e).sum::<f64>() / n;
        let squares = pairs[at].iter().map(|(s, e)| (s - e - difference) * (s - e - difference));
        let error = (squares.sum::<f64>() / (n - 1.0) / n).sqrt();
        assert!(mean > 1.0, "{} was hardly tried", names[at]);
        (names[at], mean, difference / mean, difference / error)
    };
    let all: Vec<_> = (0..5).map(summary).collect();
    eprintln!("(figure, sampled mean, relative difference, z) {all:.3?}");
    all
}

#[test]
fn expectation_and_samples_agree() {
    for (name, _, _, z) in compare(|seed| setup(seed, 25, false), 48) {
        assert!(z.abs() < 4.0, "{name} differs: z = {z:.2}");
    }
}

/// The last route to a crashed endpoint is drawn as if failures of proxies that have not yet ejected it
/// came at random, although they are fewer than an ejection needs: up to 6 % late in so small a fleet.
#[test]
fn with_ejection_too() {
    for (name, _, relative, z) in compare(|seed| setup(seed, 40, true), 48) {
        let late = name == "last" && (-0.06..0.0).contains(&relative);
        assert!(z.abs() < 4.0 || late, "{name} differs by {relative:.3}: z = {z:.2}");
    }
}

/// Single attempts that fail, retries that are independent of them, and endpoints that serve and are ejected for
/// a run of misses.
#[test]
fn with_a_dependency_that_fails_some() {
    let mut sums = [(0.0, 0.0); 4];
    let worlds = 12;
    let mut squares = [0.0; 4];
    for seed in 0..worlds {
        let mut world = World::new(dependency(seed)).unwrap();
        let bases = world.bases();
        world.record();
        world.run();
        let course = world.take_course();
        assert!(world.totals().ejections > 50, "{}", world.totals().ejections);
        let key = EpisodeKey::new(seed, 1, Split::Test, Generator::Pcg);
        let messages = Messages::new(&world, bases, Noise::new(key));
        let sampled = messages.run(&course, 10_000_000, (LENGTH_S * 1e6) as u64);
        let of = |counts: &oncall_discovery_sim::ledger::Counts| {
            [counts.soft, counts.retries, counts.failed, counts.no_backend]
        };
        let (found, due) = (of(&sampled.counts), of(&expected(&world).counts));
        for at in 0..4 {
            sums[at].0 += found[at];
            sums[at].1 += due[at];
            squares[at] += (found[at] - due[at]).powi(2);
        }
    }
    for (at, name) in ["soft", "retries", "failed", "no-backend"].into_iter().enumerate() {
        let (found, due) = sums[at];
        let z = (found - due) / squares[at].sqrt().max(1.0);
        eprintln!("{name}: {found:.0} sampled, {due:.1} expected, z = {z:.2}");
        assert!(z.abs() < 4.0, "{name}: {found} sampled, {due} expected");
    }
    assert!(sums[0].0 > 10_000.0 && sums[2].0 > 1_000.0, "hardly tried: {sums:?}");
}
