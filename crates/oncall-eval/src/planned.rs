//! A policy against the planner, episode by episode.
//!
//! The planner's score is that of a search, not a proven bound. Where a policy gets more than the
//! planner on more than [`SHARE_MAX`] of the planner's own episodes, score 100 is set too low and the
//! planner has to search better. Whoever knows the planner's episodes passes them in: this room does
//! not know the planner.

use crate::error::EvalError;
use crate::evaluate::{Contender, Progress};
use crate::hex;
use crate::report::{Report, ScenarioEpisodes};
use crate::runner::{EpisodeResult, Plan};
use oncall_core::Split;
use oncall_env::Scenario;
use serde::Serialize;

/// Share of the episodes on which a policy may beat the planner before that is worth a remark.
pub const SHARE_MAX: f64 = 0.01;

/// Part of a return by which a policy has to be better: what both play alike may differ in the last
/// bits, because a search adds up in another order.
const MARGIN: f64 = 1e-9;

/// What the planner reached on the first episodes of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedEpisodes {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, in hex.
    pub hash: String,
    /// Split of the episodes.
    pub split: Split,
    /// Seed of the evaluation that they are of.
    pub seed: u64,
    /// Return of each episode from the first on, dollars.
    pub returns: Vec<f64>,
}

/// How often a policy gets more than the planner.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BeatsPlanner {
    /// Episodes that both played.
    pub episodes: usize,
    /// Share of them on which the policy gets more.
    pub share: f64,
}

impl BeatsPlanner {
    /// Whether that is so often that the planner should be improved.
    pub fn is_too_often(self) -> bool {
        self.share > SHARE_MAX
    }
}

impl PlannedEpisodes {
    fn is_of(&self, scenario: &Scenario) -> bool {
        self.scenario == scenario.name && self.hash == hex(scenario.hash)
    }

    /// Whether an evaluation has played all of these episodes.
    fn is_within(&self, plan: Plan) -> bool {
        self.split == plan.split && self.seed == plan.seed && self.returns.len() <= plan.episodes
    }

    fn plan(&self, threads: usize) -> Plan {
        Plan { episodes: self.returns.len(), split: self.split, seed: self.seed, threads }
    }

    /// How often these episodes, the first ones of the same evaluation, got more than the planner.
    fn compare(&self, episodes: &[EpisodeResult]) -> BeatsPlanner {
        let pairs = episodes.iter().zip(&self.returns);
        let better = |(episode, planned): &(&EpisodeResult, &f64)| {
            episode.return_ - **planned > MARGIN * planned.abs()
        };
        let count = pairs.len();
        BeatsPlanner { episodes: count, share: pairs.filter(better).count() as f64 / count as f64 }
    }
}

/// Episodes of each policy that the comparison plays beyond those of the evaluation.
pub fn episodes_to_play(scenario: &Scenario, plan: Plan, planned: &[PlannedEpisodes]) -> usize {
    let known = planned.iter().find(|planned| planned.is_of(scenario));
    known.filter(|planned| !planned.is_within(plan)).map_or(0, |planned| planned.returns.len())
}

/// Fills in `beats_planner` for all policies of the scenarios whose planned episodes are known. They
/// are played, unless the evaluation has played them already.
///
/// `scenarios`, `contenders`, `plan` and `played` are those of the report.
pub fn compare_to_planner(
    report: &mut Report,
    (scenarios, contenders, plan): (&[Scenario], &[Contender], Plan),
    played: &[ScenarioEpisodes],
    planned: &[PlannedEpisodes],
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(), EvalError> {
    for (i, scenario) in scenarios.iter().enumerate() {
        let Some(planned) = planned.iter().find(|planned| planned.is_of(scenario)) else {
            continue;
        };
        for (j, contender) in contenders.iter().enumerate() {
            let beats = if planned.is_within(plan) {
                planned.compare(&played[i].policies[j].episodes)
            } else {
                let names = (scenario.name.as_str(), contender.name.as_str());
                let tell =
                    |minutes| progress(Progress { scenario: names.0, policy: names.1, minutes });
                let plan = planned.plan(plan.threads);
                planned.compare(&contender.run(scenario, plan, &tell)?)
            };
            report.scenarios[i].policies[j].beats_planner = Some(beats);
        }
    }
    Ok(())
}
