//! The normalised score: 0 is what `hold` gets, 100 what the reference planner gets.
//!
//! `score = 100 (return - hold) / (planner - hold)`, with the means of the committed file
//! `reference.json`: `hold` measured on training episodes (`cargo run --release -p oncall-eval
//! --example reference` mints it again), the planner's as the entry's `source` says. A score may be
//! negative, and above 100 where a policy beats the reference. The constants are taken as exact: a
//! score's interval is that of the return.
//!
//! They belong to one version of a scenario. A file of the same name and another hash has no score.

use crate::stats::Estimate;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// The committed constants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reference {
    /// Version of this file's format.
    pub schema_version: u32,
    /// One entry a scenario.
    pub scenarios: Vec<Constants>,
}

/// The constants of a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Constants {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, in hex; see [`crate::hex`].
    pub hash: String,
    /// What `hold` gets.
    pub hold: Hold,
    /// What the planner gets, where that is known.
    pub planner: Option<Planner>,
}

/// Mean return of `hold`, and how it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    /// Mean return, dollars.
    pub mean: f64,
    /// Episodes played.
    pub episodes: usize,
    /// Seed of the evaluation.
    pub seed: u64,
    /// `train`.
    pub split: String,
}

/// Mean return of the planner, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planner {
    /// Mean return, dollars.
    pub mean: f64,
    /// One sentence.
    pub source: String,
}

static REFERENCE: LazyLock<Reference> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../reference.json")).expect("the committed file is valid")
});

/// The shipped constants.
///
/// # Panics
///
/// Never: that the committed file is valid is a test.
pub fn reference() -> &'static Reference {
    &REFERENCE
}

impl Reference {
    /// The map from returns to scores of a scenario, if it and its planner are known.
    pub fn score(&self, scenario: &str, hash: u64) -> Option<Score> {
        let hash = crate::hex(hash);
        let known = self.scenarios.iter().find(|c| c.scenario == scenario && c.hash == hash)?;
        Score::new(known.hold.mean, known.planner.as_ref()?.mean)
    }
}

/// The line from returns to scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    hold: f64,
    planner: f64,
}

impl Score {
    /// `None` unless the planner does better than `hold`.
    pub fn new(hold: f64, planner: f64) -> Option<Self> {
        (planner > hold).then_some(Self { hold, planner })
    }

    /// Mean return of the planner, dollars.
    pub fn planner(self) -> f64 {
        self.planner
    }

    /// The score of a return.
    pub fn of(self, return_: f64) -> f64 {
        100.0 * (return_ - self.hold) / (self.planner - self.hold)
    }

    /// The score of an estimated return.
    pub fn of_estimate(self, estimate: Estimate) -> Estimate {
        let factor = 100.0 / (self.planner - self.hold);
        estimate.affine(factor, -factor * self.hold)
    }
}
