//! The planner's constants: what it reaches on the episodes that define score 100.
//!
//! `reference.json` holds the return of every episode, so that a sample can be computed again and
//! compared one by one; the means stand once more in `oncall-eval`, which scores with them.
//!
//! **A planner's score, not a proven bound.** It knows each morning in advance and searches it until more
//! search hardly helps; a better search may still find a little more.

use crate::clairvoyant::{Batch, Planned, plan_episodes};
use crate::error::PlannerError;
use crate::search::Search;
use oncall_core::Split;
use oncall_env::Scenario;
use oncall_eval::{hex, stats};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Rises whenever the search changes what it finds.
pub const PLANNER_VERSION: u32 = 1;

/// The search of the committed constants.
pub const REFERENCE_SEARCH: Search = Search { budget_min: 1_500_000, seed: 1 };

/// The committed constants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannerReference {
    /// Version of this file's format.
    pub schema_version: u32,
    /// [`PLANNER_VERSION`] of the search.
    pub planner_version: u32,
    /// Minutes of the world that an episode's search may play.
    pub budget_min: u64,
    /// Seed of the restarts.
    pub search_seed: u64,
    /// Split of the episodes.
    pub split: String,
    /// Seed of the evaluation that they belong to.
    pub seed: u64,
    /// One entry a scenario.
    pub scenarios: Vec<PlannedScenario>,
}

/// The constants of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedScenario {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, in hex.
    pub hash: String,
    /// Mean return, dollars.
    pub mean: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Mean return of the best rule of each episode, which the search began with.
    pub best_rule_mean: f64,
    /// Return of every episode, in the order of the evaluation.
    pub returns: Vec<f64>,
}

static REFERENCE: LazyLock<PlannerReference> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../reference.json")).expect("the committed file is valid")
});

/// The shipped constants.
///
/// # Panics
///
/// Never: that the committed file is valid is a test.
pub fn planner_reference() -> &'static PlannerReference {
    &REFERENCE
}

/// Sums up planned episodes.
pub fn summarise(scenario: &Scenario, planned: &[Planned]) -> PlannedScenario {
    let returns: Vec<f64> = planned.iter().map(|planned| planned.return_).collect();
    let rules: Vec<f64> = planned.iter().map(|planned| planned.rule_return).collect();
    PlannedScenario {
        scenario: scenario.name.clone(),
        hash: hex(scenario.hash),
        mean: stats::mean(&returns),
        standard_error: standard_error(&returns),
        best_rule_mean: stats::mean(&rules),
        returns,
    }
}

/// Standard error of the mean.
pub fn standard_error(values: &[f64]) -> f64 {
    let (mean, count) = (stats::mean(values), values.len() as f64);
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    (squares / (count - 1.0).max(1.0) / count).sqrt()
}

/// Share of a return by which a recomputed one may be worse: rules that are tuned anew give the search
/// another start.
const TOLERANCE: f64 = 0.005;

/// An episode that was planned again.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recomputed {
    /// Its number in the evaluation.
    pub index: usize,
    /// Seed of its row.
    pub seed: u64,
    /// The committed return, dollars.
    pub committed: f64,
    /// The return now.
    pub found: f64,
}

impl Recomputed {
    /// Whether both are the same but for half a percent.
    pub fn agrees(&self) -> bool {
        (self.found - self.committed).abs() <= TOLERANCE * self.committed.abs()
    }
}

/// A sample of a scenario's committed episodes, planned again.
#[derive(Debug, Clone, PartialEq)]
pub struct ReferenceCheck {
    /// The committed entry.
    pub committed: &'static PlannedScenario,
    /// The sample, spread evenly over the episodes.
    pub episodes: Vec<Recomputed>,
}

impl ReferenceCheck {
    /// Whether every episode agrees.
    pub fn agrees(&self) -> bool {
        self.episodes.iter().all(Recomputed::agrees)
    }

    /// Largest difference of a return, dollars.
    pub fn worst_usd(&self) -> f64 {
        let differences = self.episodes.iter().map(|e| (e.found - e.committed).abs());
        differences.fold(0.0, f64::max)
    }
}

/// Plans a sample of a scenario's committed episodes again, on some threads. `progress` is told of every
/// episode that is done.
///
/// Refuses a scenario without committed constants or of another hash, and a sample of none or of more
/// episodes than there are.
pub fn reference_check(
    scenario: &Scenario,
    sample: usize,
    threads: usize,
    progress: &(dyn Fn() + Sync),
) -> Result<ReferenceCheck, PlannerError> {
    let reference = planner_reference();
    let known = reference.scenarios.iter().find(|known| known.scenario == scenario.name);
    let Some(committed) = known else {
        let names: Vec<&str> = reference.scenarios.iter().map(|k| k.scenario.as_str()).collect();
        let expected = format!("one with constants: {}", names.join(", "));
        return Err(PlannerError::value("scenario", &scenario.name, expected));
    };
    let hash = hex(scenario.hash);
    if committed.hash != hash {
        let expected = format!("{}, that of the constants", committed.hash);
        return Err(PlannerError::value(&format!("hash of {}", scenario.name), hash, expected));
    }
    let count = committed.returns.len();
    if !(1..=count).contains(&sample) {
        return Err(PlannerError::value("sample", sample, format!("1..={count}")));
    }
    let split = Split::from_name(&reference.split)
        .ok_or_else(|| PlannerError::value("split", &reference.split, "train or test"))?;
    let search = Search { budget_min: reference.budget_min, seed: reference.search_seed };
    let indices: Vec<usize> = (0..sample).map(|i| i * count / sample).collect();
    let batch = Batch { episodes: count, split, seed: reference.seed, threads };
    let planned = plan_episodes(scenario, batch, &indices, search, &|_| progress())?;
    let episodes = indices.iter().zip(&planned).map(|(&index, planned)| Recomputed {
        index,
        seed: planned.seed,
        committed: committed.returns[index],
        found: planned.return_,
    });
    Ok(ReferenceCheck { committed, episodes: episodes.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_those_of_the_shipped_scenarios_and_of_the_scores() {
        let reference = planner_reference();
        assert_eq!(reference.planner_version, PLANNER_VERSION);
        let search = Search { budget_min: reference.budget_min, seed: reference.search_seed };
        assert_eq!(search, REFERENCE_SEARCH);
        let names: Vec<&str> = reference.scenarios.iter().map(|k| k.scenario.as_str()).collect();
        assert_eq!(names, oncall_env::shipped_names());
        for known in &reference.scenarios {
            let name = &known.scenario;
            assert_eq!(known.hash, hex(oncall_env::shipped(name).unwrap().hash), "{name}");
            assert_eq!(known.returns.len(), 100, "{name}");
            assert!((stats::mean(&known.returns) - known.mean).abs() < 1e-9, "{name}");
            assert!(known.mean > known.best_rule_mean && known.standard_error > 0.0, "{name}");
            let scores = oncall_eval::score::reference();
            let score = scores.scenarios.iter().find(|c| c.scenario == *name).unwrap();
            let planner = score.hundred.as_ref().map(|hundred| hundred.mean);
            assert_eq!((&score.hash, planner), (&known.hash, Some(known.mean)), "{name}");
        }
    }

    #[test]
    fn a_sample_comes_out_again() {
        for name in oncall_env::shipped_names() {
            let scenario = oncall_env::shipped(name).unwrap();
            let check = reference_check(&scenario, 2, 2, &|| ()).unwrap();
            let indices: Vec<usize> = check.episodes.iter().map(|e| e.index).collect();
            assert_eq!(indices, [0, 50], "{name}");
            assert!(check.agrees(), "{name}: {:?}", check.episodes);
        }
    }

    #[test]
    fn a_wrong_constant_disagrees_and_bad_samples_are_refused() {
        let good = Recomputed { index: 0, seed: 1, committed: -10.0, found: -10.04 };
        assert!(good.agrees());
        assert!(!Recomputed { found: -10.06, ..good }.agrees());
        assert!(!Recomputed { found: -9.9, ..good }.agrees());
        let steady = oncall_env::shipped("steady").unwrap();
        let error = |scenario: &Scenario, sample| {
            reference_check(scenario, sample, 1, &|| ()).unwrap_err().to_string()
        };
        assert_eq!(error(&steady, 0), "sample = 0: expected 1..=100");
        assert_eq!(error(&steady, 101), "sample = 101: expected 1..=100");
        let other = Scenario { hash: steady.hash ^ 1, ..steady.clone() };
        assert!(error(&other, 1).starts_with("hash of steady = "), "{}", error(&other, 1));
        let unknown = Scenario { name: "nobody".to_owned(), ..steady };
        assert!(error(&unknown, 1).starts_with("scenario = nobody: expected one with constants"));
    }
}
