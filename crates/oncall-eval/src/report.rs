//! All results of an evaluation, summed up; its JSON is a stable format.
//!
//! ```json
//! {
//!   "schema_version": 1,
//!   "world": "fleet", "spec_hash": "0123456789abcdef",
//!   "split": "test", "seed": 0, "episodes": 1000,
//!   "scenarios": [{
//!     "name": "spike", "hash": "0123456789abcdef",
//!     "policies": [{
//!       "name": "runbook", "params": {"target": 0.6},
//!       "return": {"mean": -30.1, "iqm": -28.0, "ci95": [-31.0, -29.2], "iqm_ci95": [-29.0, -27.0]},
//!       "score": {"mean": 93.8, "iqm": 95.4, "ci95": [93.1, 94.5], "iqm_ci95": [94.7, 96.2]},
//!       "budget_burned": 0.012,
//!       "terms": {"fleet_usd": 19.5, "budget_usd": 8.1},
//!       "pages": 0.9,
//!       "minutes_to_mitigate": {"median": 9.0, "share_burned": 0.98, "share_unmitigated": 0.01}
//!     }]
//!   }],
//!   "improvement": [{"scenario": "spike", "a": "runbook", "b": "hold", "p": 0.99, "ci95": [0.98, 1.0]}],
//!   "aggregate": [{"policy": "runbook", "scenarios": ["spike", "bad-build"], "score": {"mean": 93.8}}]
//! }
//! ```
//!
//! * Hashes are 16 hex digits: numbers of JSON hold 53 bits.
//! * `return` is in dollars an episode. `ci95` is the 95 % interval of the mean, `iqm_ci95` that of the
//!   interquartile mean; see [`crate::stats`].
//! * `score` is null where the scenario has no reference; see [`crate::score`].
//! * `budget_burned` (share of a month's error budget), `terms` (dollars) and `pages` are means an
//!   episode. `minutes_to_mitigate.median` is over the episodes in which it burned, and null if it
//!   never did; both shares are of all episodes. See [`crate::metrics`].
//! * `improvement`: for each pair of policies, the share of mornings on which `a` gets more than `b`,
//!   half of the ties included.
//! * `aggregate`: each policy's score over all episodes of the scenarios that have a reference,
//!   resampled within each scenario (all fields as in `score`); there with two of them or more.
//!
//! Fields may be added; none is renamed, removed or changed in meaning without a new `schema_version`.

use crate::hex;
use crate::runner::{EpisodeResult, Plan};
use crate::score::Reference;
use crate::stats::{Bootstrap, Estimate, Share, mean, quantile, wins};
use oncall_core::Spec;
use oncall_env::Scenario;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

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
    /// Its episodes, in order.
    pub episodes: Vec<EpisodeResult>,
}

/// Mean, interquartile mean and intervals.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Stat {
    /// Mean.
    pub mean: f64,
    /// Interquartile mean.
    pub iqm: f64,
    /// Interval of the mean.
    pub ci95: [f64; 2],
    /// Interval of the interquartile mean.
    pub iqm_ci95: [f64; 2],
}

impl From<Estimate> for Stat {
    fn from(Estimate { mean, iqm, ci95, iqm_ci95 }: Estimate) -> Self {
        Self { mean, iqm, ci95, iqm_ci95 }
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
    pub budget_burned: f64,
    #[serde(serialize_with = "as_map")]
    pub terms: Vec<(String, f64)>,
    pub pages: f64,
    pub minutes_to_mitigate: Mitigation,
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
    /// Sums up. The bootstrap's stream follows from the plan's seed, so equal episodes make an equal
    /// report.
    pub fn new(
        spec: &Spec,
        plan: Plan,
        scenarios: &[ScenarioEpisodes],
        reference: &Reference,
    ) -> Self {
        let bootstrap = Bootstrap::new(plan.seed);
        let summary = |scenario| ScenarioReport::new(spec, scenario, reference, bootstrap);
        Self {
            schema_version: SCHEMA_VERSION,
            world: spec.world.to_owned(),
            spec_hash: hex(spec.hash()),
            split: plan.split.name().to_owned(),
            seed: plan.seed,
            episodes: plan.episodes,
            scenarios: scenarios.iter().map(summary).collect(),
            improvement: scenarios.iter().flat_map(|s| improvement(s, bootstrap)).collect(),
            aggregate: aggregate(scenarios, reference, bootstrap),
        }
    }

    /// The JSON, indented, with a line end.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("names and numbers always have a JSON form") + "\n"
    }
}

impl ScenarioReport {
    fn new(
        spec: &Spec,
        scenario: &ScenarioEpisodes,
        reference: &Reference,
        bootstrap: Bootstrap,
    ) -> Self {
        let score = reference.score(&scenario.name, scenario.hash);
        let summary = |policy: &PolicyEpisodes| {
            let estimate = bootstrap.estimate(&[&policy.returns()]);
            let score = score.map(|score| score.of_estimate(estimate).into());
            policy.summary(spec, estimate.into(), score)
        };
        Self {
            name: scenario.name.clone(),
            hash: hex(scenario.hash),
            policies: scenario.policies.iter().map(summary).collect(),
        }
    }
}

impl PolicyEpisodes {
    fn returns(&self) -> Vec<f64> {
        self.of(|episode| episode.return_)
    }

    fn of(&self, value: impl Fn(&EpisodeResult) -> f64) -> Vec<f64> {
        self.episodes.iter().map(value).collect()
    }

    fn summary(&self, spec: &Spec, return_: Stat, score: Option<Stat>) -> PolicyReport {
        let terms = spec.terms.iter().enumerate();
        PolicyReport {
            name: self.name.clone(),
            params: self.params.clone(),
            return_,
            score,
            budget_burned: mean(&self.of(|e| e.budget_burned)),
            terms: terms
                .map(|(i, t)| (t.name.to_owned(), mean(&self.of(|e| e.terms[i]))))
                .collect(),
            pages: mean(&self.of(|e| f64::from(e.pages))),
            minutes_to_mitigate: self.mitigation(),
        }
    }

    fn mitigation(&self) -> Mitigation {
        let minutes: Vec<f64> =
            self.episodes.iter().filter_map(|e| e.minutes_to_mitigate).map(f64::from).collect();
        Mitigation {
            median: (!minutes.is_empty()).then(|| quantile(&minutes, 0.5)),
            share_burned: minutes.len() as f64 / self.episodes.len() as f64,
            share_unmitigated: mean(&self.of(|e| f64::from(u8::from(e.unmitigated)))),
        }
    }
}

/// All pairs of policies, each once.
fn improvement(scenario: &ScenarioEpisodes, bootstrap: Bootstrap) -> Vec<Improvement> {
    let returns: Vec<Vec<f64>> = scenario.policies.iter().map(PolicyEpisodes::returns).collect();
    let mut pairs = Vec::new();
    for (i, a) in scenario.policies.iter().enumerate() {
        for (j, b) in scenario.policies.iter().enumerate().skip(i + 1) {
            let Share { mean: p, ci95 } = bootstrap.share(&wins(&returns[i], &returns[j]));
            let (a, b) = (a.name.clone(), b.name.clone());
            pairs.push(Improvement { scenario: scenario.name.clone(), a, b, p, ci95 });
        }
    }
    pairs
}

/// Scores over the scenarios that have a reference; nothing for fewer than two of them.
fn aggregate(
    scenarios: &[ScenarioEpisodes],
    reference: &Reference,
    bootstrap: Bootstrap,
) -> Vec<Aggregate> {
    let scored: Vec<_> =
        scenarios.iter().filter_map(|s| Some((s, reference.score(&s.name, s.hash)?))).collect();
    if scored.len() < 2 {
        return Vec::new();
    }
    let of_policy = |(i, policy): (usize, &PolicyEpisodes)| {
        let strata: Vec<Vec<f64>> = scored
            .iter()
            .map(|(scenario, score)| scenario.policies[i].of(|e| score.of(e.return_)))
            .collect();
        let strata: Vec<&[f64]> = strata.iter().map(Vec::as_slice).collect();
        Aggregate {
            policy: policy.name.clone(),
            scenarios: scored.iter().map(|(scenario, _)| scenario.name.clone()).collect(),
            score: bootstrap.estimate(&strata).into(),
        }
    };
    scored[0].0.policies.iter().enumerate().map(of_policy).collect()
}
