//! The expectation against requests sampled one by one, on the same random trajectories.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::{EpisodeKey, Generator, Split};
use oncall_discovery_sim::ledger::{Calls, Counts};
use oncall_discovery_sim::noise::Noise;
use oncall_discovery_sim::oracle::{Oracle, Outcome, Script, Shape, figures};

fn noise(seed: u64, run: u64) -> Noise {
    Noise::new(EpisodeKey::new(seed, run, Split::Test, Generator::Pcg))
}

#[derive(Default)]
struct Moments {
    n: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, x: f64) {
        self.n += 1.0;
        self.sum += x;
        self.squares += x * x;
    }

    fn mean(&self) -> f64 {
        self.sum / self.n
    }

    /// Variance of the mean.
    fn error2(&self) -> f64 {
        (self.squares / self.n - self.mean() * self.mean()).max(0.0) / (self.n - 1.0)
    }
}

fn row(outcome: &Outcome) -> Vec<(&'static str, f64)> {
    let mut row: Vec<_> = figures(&outcome.counts).into();
    row.push(("last", outcome.last_s.iter().sum()));
    row.push(("ejections", outcome.ejections));
    row
}

/// Mean differences over many trajectories and runs, in standard errors.
fn z_scores(shape: Shape, calls: Calls, trajectories: u64, runs: u64) -> Vec<(&'static str, f64)> {
    differences(shape, calls, trajectories, runs)
        .into_iter()
        .map(|(name, z, _)| (name, z))
        .collect()
}

/// The same, with the difference relative to the sampled mean.
fn differences(
    shape: Shape,
    calls: Calls,
    trajectories: u64,
    runs: u64,
) -> Vec<(&'static str, f64, f64)> {
    let mut sums: Vec<(&'static str, f64, f64, f64)> = Vec::new();
    for seed in 0..trajectories {
        let script = Script::draw(shape, noise(seed, 0));
        let (mut drawn, mut counted): (Vec<Moments>, Vec<Moments>) = Default::default();
        let mut names = Vec::new();
        for run in 1..=runs {
            let sampled = row(&Oracle::new(&script, calls, noise(seed, run)).run());
            let expected = row(&script.account(calls, noise(seed, 1_000_000 + run)).0);
            drawn.resize_with(sampled.len(), Moments::default);
            counted.resize_with(sampled.len(), Moments::default);
            names = sampled.iter().map(|(name, _)| *name).collect();
            for (i, (_, x)) in sampled.iter().enumerate() {
                drawn[i].add(*x);
                counted[i].add(expected[i].1);
            }
        }
        sums.resize(names.len(), ("", 0.0, 0.0, 0.0));
        for (i, name) in names.into_iter().enumerate() {
            sums[i].0 = name;
            sums[i].1 += drawn[i].mean() - counted[i].mean();
            sums[i].2 += drawn[i].error2() + counted[i].error2();
            sums[i].3 += drawn[i].mean();
        }
    }
    sums.into_iter()
        .map(|(name, difference, error2, mean)| {
            let z = if error2 > 0.0 { difference / error2.sqrt() } else { difference * 1e9 };
            (name, z, difference / mean.max(1e-9))
        })
        .collect()
}

const NEVER_EJECT: Calls = Calls {
    retries: 1,
    retry_budget: 10.0,
    eject_after: 3,
    eject_base_us: 10_000_000,
    eject_share: 0.0,
};

const SHAPE: Shape = Shape {
    subs: 24,
    endpoints: 12,
    publications: 14,
    gap_s: 2.0,
    crash: 0.3,
    offline: 0.05,
    load: 0.0,
    soft: 0.0,
    refuse: 0.0,
};

fn agree(name: &str, shape: Shape, calls: Calls, skip: &[&str]) {
    compare(name, z_scores(shape, calls, 30, 40), skip);
}

/// The same with fewer runs, where the oracle has a lot to write out; `tried` must have happened.
fn agree_on(name: &str, shape: Shape, calls: Calls, tried: &[&str]) {
    compare(name, z_scores(shape, calls, 20, 16), &[]);
    let mut sums = [0.0; 12];
    for seed in 0..20 {
        let counts = Script::draw(shape, noise(seed, 0)).account(calls, noise(seed, 1)).0.counts;
        for (sum, (_, value)) in sums.iter_mut().zip(figures(&counts)) {
            *sum += value;
        }
    }
    for ((figure, _), sum) in figures(&Counts::default()).into_iter().zip(sums) {
        assert!(!tried.contains(&figure) || sum > 50.0, "{name}: {figure} was hardly tried, {sum}");
    }
}

fn compare(name: &str, scores: Vec<(&'static str, f64)>, skip: &[&str]) {
    eprintln!("{name}: {scores:.2?}");
    for (figure, z) in scores {
        assert!(skip.contains(&figure) || z.abs() < 4.0, "{name}: {figure} differs, z = {z:.2}");
    }
}

#[test]
fn stale_requests_failures_and_retries() {
    // A proxy that reconnects to an old set is not in the tail of the ledger (D1).
    agree("one retry", SHAPE, NEVER_EJECT, &["last"]);
    agree("all connected", Shape { offline: 0.0, ..SHAPE }, NEVER_EJECT, &[]);
    agree("two retries", SHAPE, Calls { retries: 2, ..NEVER_EJECT }, &["last"]);
    agree("no retry", SHAPE, Calls { retries: 0, ..NEVER_EJECT }, &["last"]);
}

#[test]
fn cells_so_small_that_nothing_is_left() {
    let shape = Shape { endpoints: 3, crash: 0.6, offline: 0.0, ..SHAPE };
    agree("three endpoints", shape, NEVER_EJECT, &[]);
    agree("three, two retries", shape, Calls { retries: 2, ..NEVER_EJECT }, &[]);
}

#[test]
fn ejections() {
    let calls = Calls { eject_share: 0.5, ..NEVER_EJECT };
    let shape = Shape { publications: 6, gap_s: 8.0, crash: 0.8, offline: 0.0, ..SHAPE };
    agree("ejection", shape, calls, &[]);
    agree("ejection, no retry", shape, Calls { retries: 0, eject_after: 1, ..calls }, &[]);
}

/// A dependency fails single attempts; retries are independent of it.
#[test]
fn a_dependency_that_fails_some() {
    let shape = Shape { soft: 0.5, offline: 0.0, ..SHAPE };
    agree_on("soft", shape, NEVER_EJECT, &["soft"]);
    agree_on("soft, three retries", shape, Calls { retries: 3, ..NEVER_EJECT }, &["soft"]);
    let small = Shape { endpoints: 3, crash: 0.6, ..shape };
    agree_on("soft, three endpoints", small, Calls { retries: 2, ..NEVER_EJECT }, &["soft"]);
}

/// Runs of misses eject endpoints that serve.
#[test]
fn false_ejections() {
    let calls = Calls { eject_share: 0.5, ..NEVER_EJECT };
    let shape = Shape { soft: 0.9, crash: 0.0, offline: 0.0, publications: 6, gap_s: 8.0, ..SHAPE };
    let once = Calls { eject_after: 1, ..calls };
    agree_on("soft, one error ejects", shape, once, &["soft"]);
    agree_on("soft, two errors eject", shape, Calls { eject_after: 2, ..calls }, &["soft"]);
    let tight = Shape { load: 0.9, soft: 0.0, ..shape };
    agree_on("overload ejects", tight, Calls { eject_after: 2, ..calls }, &["overloaded"]);
}

/// Too few live endpoints for the attempts, with everything that multiplies attempts.
#[test]
fn overload() {
    let shape = Shape { load: 0.9, crash: 0.6, offline: 0.0, ..SHAPE };
    agree_on("overload", shape, NEVER_EJECT, &["overloaded"]);
    agree_on("overload, no retry", shape, Calls { retries: 0, ..NEVER_EJECT }, &["overloaded"]);
    let soft = Shape { soft: 0.5, ..shape };
    let twice = Calls { retries: 2, ..NEVER_EJECT };
    agree_on("overload and soft, two retries", soft, twice, &["overloaded", "soft"]);
    let ejecting = Calls { eject_share: 0.5, ..NEVER_EJECT };
    let slow = Shape { publications: 6, gap_s: 8.0, crash: 0.8, ..shape };
    agree_on("overload and ejection", slow, ejecting, &["overloaded"]);
}

#[test]
fn refused_identities_and_old_views() {
    let shape = Shape { refuse: 0.5, offline: 0.0, ..SHAPE };
    agree_on("refused", shape, NEVER_EJECT, &["auth_refused"]);
    let slow = Shape { publications: 6, gap_s: 8.0, crash: 0.8, ..shape };
    let ejecting = Calls { eject_share: 0.5, ..NEVER_EJECT };
    agree_on("refused, ejection", slow, ejecting, &["auth_refused"]);
    let all = Shape { soft: 0.5, load: 0.8, ..shape };
    let tried = ["auth_refused", "soft", "overloaded", "cross_region"];
    agree_on("everything", all, Calls { retries: 2, ..NEVER_EJECT }, &tried);
}

/// Sharper by ten times the work. One figure stays off: with several failing endpoints in so small a
/// view, requests that fail twice are 4 % more than expected, since two ejections that share failures
/// are drawn as if they did not.
#[test]
#[ignore = "minutes"]
fn many_more() {
    let ejecting = Calls { eject_share: 0.5, ..NEVER_EJECT };
    let slow = Shape { publications: 6, gap_s: 8.0, crash: 0.8, offline: 0.0, ..SHAPE };
    eprintln!("{:.4?}", differences(SHAPE, NEVER_EJECT, 400, 40));
    eprintln!("{:.4?}", differences(Shape { offline: 0.0, ..SHAPE }, NEVER_EJECT, 400, 40));
    eprintln!("{:.4?}", differences(slow, ejecting, 400, 40));
}
