//! All results of an evaluation, summed up; its JSON is a stable format.
//!
//! ```json
//! {
//!   "schema_version": 1,
//!   "world": "fleet", "spec_hash": "0123456789abcdef",
//!   "split": "test", "seed": 0, "episodes": 1000,
//!   "scenarios": [{
//!     "name": "spike", "hash": "0123456789abcdef", "best_rule": "hpa",
//!     "policies": [{
//!       "name": "runbook", "params": {"target": 0.6},
//!       "return": {"mean": -30.1, "median": -28.2, "iqm": -28.0,
//!                  "ci95": [-31.0, -29.2], "median_ci95": [-29.3, -27.5], "iqm_ci95": [-29.0, -27.0]},
//!       "score": {"mean": 93.8, "median": 95.2, "iqm": 95.4,
//!                 "ci95": [93.1, 94.5], "median_ci95": [94.6, 96.3], "iqm_ci95": [94.7, 96.2]},
//!       "against_best_rule": {"usd": {"value": 1.2, "ci95": [1.1, 1.4]},
//!                             "gap_closed": {"value": 0.12, "ci95": [0.11, 0.13]}},
//!       "beats_planner": {"episodes": 100, "share": 0.0},
//!       "budget_burned": 0.012,
//!       "terms": {"fleet_usd": 19.5, "budget_usd": 8.1},
//!       "pages": 0.9,
//!       "minutes_to_mitigate": {"median": 9.0, "share_burned": 0.98, "share_unmitigated": 0.01}
//!     }]
//!   }],
//!   "improvement": [{"scenario": "spike", "a": "runbook", "b": "hold", "p": 0.99, "ci95": [0.98, 1.0]}],
//!   "aggregate": [{"policy": "runbook", "scenarios": ["spike", "bad-build"], "score": {"mean": 93.8},
//!                  "median_of_means": {"value": 94.1, "ci95": [93.0, 95.2]},
//!                  "optimality_gap": {"value": 6.3, "ci95": [5.6, 7.0]}}]
//! }
//! ```
//!
//! * Hashes are 16 hex digits: numbers of JSON hold 53 bits.
//! * `return` is in dollars an episode. `ci95` is the 95 % interval of the mean, `median_ci95` and
//!   `iqm_ci95` are those of median and interquartile mean; see [`crate::stats`].
//! * `score` is null where the scenario has no reference; see [`crate::score`].
//! * `best_rule` is the honest policy without training that has the highest mean return; null where
//!   none played. `against_best_rule.usd` is the mean of the paired differences to it, `gap_closed` the
//!   same as a share of what the planner is better than that rule (the planner's mean and the rule's
//!   are taken as exact); null for the rule itself, and where there is no reference.
//! * `beats_planner.share`: of the planner's own episodes, the share on which the policy gets more; see
//!   [`crate::planned`]. Null where the planner's episodes are unknown.
//! * `budget_burned` (share of a month's error budget), `terms` (dollars) and `pages` are means an
//!   episode. `minutes_to_mitigate.median` is over the episodes in which it burned, and null if it
//!   never did; both shares are of all episodes. See [`crate::metrics`]. `pages` and
//!   `minutes_to_mitigate` are those of a world with a pager. A world with a table of metrics has
//!   `metrics` instead: means over the episodes, by name; null where no episode has one.
//! * In a mixture a policy has `played`, one entry for each scenario that an episode drew, by name:
//!   `{"scenario": "spike", "episodes": 331, "return": {"value": -25.1, "ci95": [-25.6, -24.6]}}`, the mean
//!   over these episodes.
//! * `improvement`: for each pair of policies, the share of mornings on which `a` gets more than `b`,
//!   half of the ties included.
//! * `aggregate`: each policy's score over all episodes of the scenarios that have a reference,
//!   resampled within each scenario (all fields as in `score`); there with two of them or more.
//!   `median_of_means` is the median of the scenarios' mean scores, `optimality_gap` what is missing to
//!   100 where a score above 100 counts as 100.
//!
//! Fields may be added; none is renamed, removed or changed in meaning without a new `schema_version`.

mod summary;

use crate::planned::BeatsPlanner;
use crate::runner::EpisodeResult;
use crate::stats::{Estimate, Figure};
use oncall_env::Scenario;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
pub(crate) use summary::scored;

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// The episodes of all policies on one scenario.
#[derive(Debug, Clone)]
pub struct ScenarioEpisodes {
    /// Name of the scenario.
    pub name: String,
    /// Its hash.
    pub hash: u64,
    /// What each policy did, in the same order on every scenario.
    pub policies: Vec<PolicyEpisodes>,
}

impl ScenarioEpisodes {
    /// No policies yet.
    pub fn new(scenario: &Scenario) -> Self {
        Self { name: scenario.name.clone(), hash: scenario.hash, policies: Vec::new() }
    }
}

/// The episodes of a policy on one scenario.
#[derive(Debug, Clone)]
pub struct PolicyEpisodes {
    /// Name of the policy, as it was asked for.
    pub name: String,
    /// Every parameter that it played with.
    pub params: Vec<(String, f64)>,
    /// Whether it is an honest rule: neither trained nor a cheat.
    pub is_rule: bool,
    /// Its episodes, in order.
    pub episodes: Vec<EpisodeResult>,
}

/// Mean, median, interquartile mean and intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stat {
    /// Mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Interquartile mean.
    pub iqm: f64,
    /// Interval of the mean.
    pub ci95: [f64; 2],
    /// Interval of the median.
    pub median_ci95: [f64; 2],
    /// Interval of the interquartile mean.
    pub iqm_ci95: [f64; 2],
}

impl From<Estimate> for Stat {
    fn from(estimate: Estimate) -> Self {
        let Estimate { mean, median, iqm, ci95, median_ci95, iqm_ci95 } = estimate;
        Self { mean, median, iqm, ci95, median_ci95, iqm_ci95 }
    }
}

/// An evaluation, summed up. See the module for the meaning of every field.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Report {
    pub schema_version: u32,
    pub world: String,
    pub spec_hash: String,
    pub split: String,
    pub seed: u64,
    pub episodes: usize,
    pub scenarios: Vec<ScenarioReport>,
    pub improvement: Vec<Improvement>,
    pub aggregate: Vec<Aggregate>,
}

/// A scenario's part of a [`Report`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct ScenarioReport {
    pub name: String,
    pub hash: String,
    pub best_rule: Option<String>,
    pub policies: Vec<PolicyReport>,
}

/// A policy's part of a [`ScenarioReport`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct PolicyReport {
    pub name: String,
    #[serde(serialize_with = "as_map")]
    pub params: Vec<(String, f64)>,
    #[serde(rename = "return")]
    pub return_: Stat,
    pub score: Option<Stat>,
    pub against_best_rule: Option<Difference>,
    pub beats_planner: Option<BeatsPlanner>,
    pub budget_burned: f64,
    #[serde(serialize_with = "as_map")]
    pub terms: Vec<(String, f64)>,
    #[serde(flatten)]
    pub incident: Option<IncidentReport>,
    #[serde(serialize_with = "as_map", skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(String, f64)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub played: Vec<Played>,
}

/// A policy on those episodes of a mixture that drew one of its scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Played {
    pub scenario: String,
    pub episodes: usize,
    #[serde(rename = "return")]
    pub return_: Figure,
}

/// What the pager says, in a world that has one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct IncidentReport {
    pub pages: f64,
    pub minutes_to_mitigate: Mitigation,
}

/// How much better than the best rule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Difference {
    pub usd: Figure,
    pub gap_closed: Option<Figure>,
}

/// How long incidents lasted.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Mitigation {
    pub median: Option<f64>,
    pub share_burned: f64,
    pub share_unmitigated: f64,
}

/// How often one policy does better than another.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Improvement {
    pub scenario: String,
    pub a: String,
    pub b: String,
    pub p: f64,
    pub ci95: [f64; 2],
}

/// A policy's score over several scenarios.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Aggregate {
    pub policy: String,
    pub scenarios: Vec<String>,
    pub score: Stat,
    pub median_of_means: Figure,
    pub optimality_gap: Figure,
}

/// Pairs as an object, in their order.
pub(crate) fn as_map<S: Serializer>(
    pairs: &[(String, f64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (key, value) in pairs {
        map.serialize_entry(key, value)?;
    }
    map.end()
}

impl Report {
    /// The JSON, indented, with a line end.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("names and numbers always have a JSON form") + "\n"
    }
}
