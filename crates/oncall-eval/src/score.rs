//! The normalised score: 0 is what a plain policy gets, 100 what a reference gets.
//!
//! `score = 100 (return - zero) / (hundred - zero)`, with the means of the committed file
//! `reference.json`. Which policies these are is said for each world by [`anchors`]; for the fleet `hold`
//! and the reference planner. `cargo run --release -p oncall-eval --example reference` measures on
//! training episodes what can be played, and an entry's `source` says where score 100 comes from. A
//! score may be negative, and above 100 where a policy beats the reference. The constants are taken as
//! exact: a score's interval is that of the return.
//!
//! They belong to one version of a scenario. A file of the same name and another hash has no score.

use crate::stats::Estimate;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Who gets 0 and who gets 100 in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anchors {
    /// Name of the policy with score 0.
    pub zero: &'static str,
    /// Who has score 100, for people.
    pub hundred: &'static str,
    /// The policy with score 100, where it is one that can be played.
    pub hundred_policy: Option<&'static str>,
}

/// The anchors of a world.
pub fn anchors(world: &str) -> Anchors {
    match world {
        "discovery" => {
            Anchors { zero: "default", hundred: "oracle", hundred_policy: Some("oracle") }
        }
        _ => Anchors { zero: "hold", hundred: "reference planner", hundred_policy: None },
    }
}

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
    /// What gets 0.
    pub zero: Zero,
    /// What gets 100, where that is known.
    pub hundred: Option<Hundred>,
}

/// Mean return of the policy with score 0, and how it was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zero {
    /// Mean return, dollars.
    pub mean: f64,
    /// Episodes played.
    pub episodes: usize,
    /// Seed of the evaluation.
    pub seed: u64,
    /// `train`.
    pub split: String,
}

/// Mean return with score 100, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hundred {
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
    /// The map from returns to scores of a scenario, if both its constants are known.
    pub fn score(&self, scenario: &str, hash: u64) -> Option<Score> {
        let hash = crate::hex(hash);
        let known = self.scenarios.iter().find(|c| c.scenario == scenario && c.hash == hash)?;
        Score::new(known.zero.mean, known.hundred.as_ref()?.mean)
    }
}

/// The line from returns to scores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Score {
    zero: f64,
    hundred: f64,
}

impl Score {
    /// `None` unless the reference does better than the policy with score 0.
    pub fn new(zero: f64, hundred: f64) -> Option<Self> {
        (hundred > zero).then_some(Self { zero, hundred })
    }

    /// Mean return with score 100, dollars.
    pub fn hundred(self) -> f64 {
        self.hundred
    }

    /// The score of a return.
    pub fn of(self, return_: f64) -> f64 {
        100.0 * (return_ - self.zero) / (self.hundred - self.zero)
    }

    /// The score of an estimated return.
    pub fn of_estimate(self, estimate: Estimate) -> Estimate {
        let factor = 100.0 / (self.hundred - self.zero);
        estimate.affine(factor, -factor * self.zero)
    }
}
