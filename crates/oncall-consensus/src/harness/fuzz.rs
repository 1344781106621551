//! Many plans, one after the other.

use std::fmt::Write;

use super::goals::Goals;
use super::oracle::Violation;
use super::plan::{Off, Plan, Reduction};
use super::shrink::shrink;
use super::world::{Report, run};

/// A plan that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What broke in the whole plan.
    pub violation: Violation,
    /// What can be left out.
    pub reduction: Reduction,
    /// What is left, and what breaks then.
    pub small: (Plan, Violation),
}

/// What came of a series of plans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FuzzReport {
    /// Plans played.
    pub schedules: u64,
    /// Counts over all of them.
    pub goals: Goals,
    /// Entries committed.
    pub committed: u64,
    /// Inputs handled.
    pub inputs: u64,
    /// Digest over all runs.
    pub digest: u64,
    /// The first failure; the series ends with it.
    pub failure: Option<Failure>,
}

/// Plays the plans of the seeds `first..first + schedules` and stops at the first failure, which it
/// makes small. `progress` is called after each plan.
pub fn fuzz(first: u64, schedules: u64, mut progress: impl FnMut(u64)) -> FuzzReport {
    let mut report = FuzzReport {
        schedules: 0,
        goals: Goals::default(),
        committed: 0,
        inputs: 0,
        digest: 0,
        failure: None,
    };
    let mut digest = oncall_core::Digest::new();
    for seed in first..first + schedules {
        let plan = Plan::from_seed(seed);
        let Report { violation, goals, trail, committed, inputs } = run(&plan);
        report.schedules += 1;
        report.goals.merge(&goals);
        report.committed += committed as u64;
        report.inputs += inputs;
        for mark in trail {
            digest.word(mark);
        }
        progress(report.schedules);
        if let Some(violation) = violation {
            report.failure = Some(make_small(&plan, violation));
            break;
        }
    }
    report.digest = digest.value();
    report
}

fn make_small(plan: &Plan, violation: Violation) -> Failure {
    let same = |found: &Violation| found.kind == violation.kind;
    let reduction = shrink(plan, |plan| run(plan).violation.as_ref().is_some_and(same));
    let small = plan.clone().reduced(&reduction);
    let found = run(&small).violation.unwrap_or_else(|| violation.clone());
    Failure { seed: plan.seed, violation, reduction, small: (small, found) }
}

/// The command that plays the small plan again.
pub fn reproduce_command(seed: u64, reduction: &Reduction) -> String {
    let mut command =
        format!("cargo run --release -p oncall-consensus --example fuzz -- --seed {seed}");
    if let Some(keep) = &reduction.keep {
        let numbers: Vec<String> = keep.iter().map(ToString::to_string).collect();
        let _ = write!(
            command,
            " --keep {}",
            if keep.is_empty() { "none".to_owned() } else { numbers.join(",") }
        );
    }
    let off = Off::ALL.iter().filter(|(off, _)| reduction.off.contains(off));
    let names: Vec<&str> = off.map(|&(_, name)| name).collect();
    if !names.is_empty() {
        let _ = write!(command, " --off {}", names.join(","));
    }
    command
}
