//! The search for a policy's parameters: mean return on training episodes, and on no others.
//!
//! ```json
//! {
//!   "schema_version": 1,
//!   "scenario": "spike", "scenario_hash": "0123456789abcdef", "spec_hash": "0123456789abcdef",
//!   "policy": "hpa", "split": "train", "seed": 0, "episodes": 200, "rounds": 16, "candidates": 814,
//!   "start_usd": -60.1, "return_usd": -35.2,
//!   "fresh_seed": 123, "fresh_start_usd": -61.0, "fresh_usd": -36.0,
//!   "params": {"target": 0.5, "min": 12},
//!   "text": "hpa:target=0.5,min=12"
//! }
//! ```
//!
//! `return_usd` is the best candidate's mean return on the episodes that chose it, so it flatters;
//! `fresh_usd` is that on as many other training episodes. `start_usd` and `fresh_start_usd` are those of
//! the parameters that the search began with. A parameter that hardly matters goes back to its
//! default, so the result may be a few cents below the best candidate. `text` can be given to any `--policies`.

use crate::error::EvalError;
use crate::hex;
use crate::runner::{Plan, run_policy};
use crate::stats::mean;
use oncall_core::Split;
use oncall_core::streams::mix;
use oncall_env::Scenario;
use oncall_heuristics::tune::{Search, search};
use oncall_heuristics::{PolicySpec, registry};
use serde::Serialize;

/// Version of the JSON.
pub const SCHEMA_VERSION: u32 = 1;

/// From this number of parameters on, a policy is searched as a schedule.
const SCHEDULE_PARAMS_MIN: usize = 48;

/// What is searched, and how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Training episodes that score a candidate.
    pub episodes: usize,
    /// Seed of the episodes and of the candidates.
    pub seed: u64,
    /// Rounds of the search; `None` takes as many as the policy's kind needs.
    pub rounds: Option<usize>,
    /// Threads, 1..=256. Changes the speed and nothing else.
    pub threads: usize,
}

/// Most rounds of a search.
pub const ROUNDS_MAX: usize = 10_000;

/// What a search found; the fields are those of the JSON, see the module.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[expect(missing_docs, reason = "the fields are those of the JSON, which the module describes")]
pub struct Tuned {
    pub schema_version: u32,
    pub scenario: String,
    pub scenario_hash: String,
    pub spec_hash: String,
    pub policy: String,
    pub split: String,
    pub seed: u64,
    pub episodes: usize,
    pub rounds: usize,
    pub candidates: usize,
    pub start_usd: f64,
    pub return_usd: f64,
    pub fresh_seed: u64,
    pub fresh_start_usd: f64,
    pub fresh_usd: f64,
    #[serde(serialize_with = "crate::report::as_map")]
    pub params: Vec<(String, f64)>,
    pub text: String,
}

impl Tuned {
    /// The JSON, indented, with a line end.
    pub fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("names and numbers always have a JSON form") + "\n"
    }
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Candidates scored.
    pub candidates: usize,
    /// Candidates that will be scored, at most.
    pub of: usize,
    /// Mean return of the best so far.
    pub best_usd: f64,
}

/// Searches the parameters of `start` for the highest mean return on training episodes of a scenario.
/// It begins at the tuned set of the scenario, where there is one and `start` gives nothing else.
///
/// Refuses policies without parameters, and whatever [`run_policy`] refuses.
pub fn tune(
    scenario: &Scenario,
    start: &PolicySpec,
    effort: Effort,
    progress: &mut dyn FnMut(Step),
) -> Result<Tuned, EvalError> {
    let start = registry::resolve(start, scenario.world.spec().world, &scenario.name)?;
    let options = options(&start, effort)?;
    // 32 bits, which every reader of JSON keeps.
    let fresh_seed = mix(effort.seed, 0x6672_6573) >> 32;
    let score = |policy: &PolicySpec, seed: u64| -> Result<f64, EvalError> {
        let Effort { episodes, threads, .. } = effort;
        let plan = Plan { episodes, split: Split::Train, seed, threads };
        let episodes = run_policy(scenario, policy, plan, &|_| ())?;
        Ok(mean(&episodes.iter().map(|episode| episode.return_).collect::<Vec<_>>()))
    };
    let start_usd = score(&start, effort.seed)?;
    let of = most_candidates(&start, &options);
    let mut failed = None;
    let mut step = Step { candidates: 0, of, best_usd: start_usd };
    let found = search(&start, &scenario.name, &[], &options, &mut |candidates| {
        let mut one = |policy: &PolicySpec| {
            let usd = score(policy, effort.seed).unwrap_or_else(|error| {
                failed.get_or_insert(error);
                f64::NAN
            });
            step.candidates += 1;
            step.best_usd = step.best_usd.max(usd);
            progress(step);
            usd
        };
        candidates.iter().map(&mut one).collect()
    });
    if let Some(error) = failed {
        return Err(error);
    }
    let found = found?;
    Ok(Tuned {
        schema_version: SCHEMA_VERSION,
        scenario: scenario.name.clone(),
        scenario_hash: hex(scenario.hash),
        spec_hash: hex(scenario.world.spec().hash()),
        policy: start.name.clone(),
        split: Split::Train.name().to_owned(),
        seed: effort.seed,
        episodes: effort.episodes,
        rounds: options.rounds,
        candidates: found.scored,
        start_usd,
        return_usd: found.score,
        fresh_seed,
        fresh_start_usd: score(&start, fresh_seed)?,
        fresh_usd: score(&found.best, fresh_seed)?,
        text: found.best.to_string(),
        params: found.best.params,
    })
}

/// The search that fits a policy's number of parameters.
fn options(policy: &PolicySpec, effort: Effort) -> Result<Search, EvalError> {
    let params = params(policy);
    let options = if params < SCHEDULE_PARAMS_MIN {
        Search::rule(effort.seed)
    } else {
        Search::schedule(effort.seed)
    };
    let rounds = effort.rounds.unwrap_or(options.rounds);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        return Err(EvalError::value("rounds", rounds, format!("1..={ROUNDS_MAX}")));
    }
    Ok(Search { rounds, ..options })
}

/// Number of a policy's parameters.
fn params(policy: &PolicySpec) -> usize {
    registry::describe(&policy.name).map_or(0, |description| description.params.len())
}

/// The start, the rounds, at most four steps a parameter in each sweep, and one back to its default.
fn most_candidates(policy: &PolicySpec, options: &Search) -> usize {
    1 + options.rounds * options.population + (4 * options.sweeps + 1) * params(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const EFFORT: Effort = Effort { episodes: 8, seed: 4, rounds: Some(2), threads: 1 };

    fn tuned(policy: &str, effort: Effort) -> (Result<Tuned, EvalError>, Vec<Step>) {
        let scenario = oncall_env::shipped("steady").unwrap();
        let mut steps = Vec::new();
        let found = tune(&scenario, &policy.parse().unwrap(), effort, &mut |step| steps.push(step));
        (found, steps)
    }

    #[test]
    fn finds_something_better_on_training_episodes() {
        // Forty instances are far too many for a quiet day.
        let (found, steps) = tuned("target-tracking:min=40", EFFORT);
        let found = found.unwrap();
        assert!(found.return_usd > found.start_usd + 10.0, "{found:?}");
        assert!(found.fresh_usd > found.fresh_start_usd + 10.0, "{found:?}");
        assert_eq!((found.split.as_str(), found.rounds), ("train", 2));
        let last = steps.last().unwrap();
        assert_eq!(last.candidates, found.candidates);
        assert!(last.candidates <= last.of);
        // The search may give up a little for fewer parameters.
        let given_up = last.best_usd - found.return_usd;
        assert!((0.0..0.1).contains(&given_up), "{given_up}");
        assert!(steps.windows(2).all(|pair| pair[0].best_usd <= pair[1].best_usd));
        // What was found can be given to an evaluation, and gets there what it got here.
        let policy: PolicySpec = found.text.parse().unwrap();
        let plan = Plan { episodes: 8, split: Split::Train, seed: 4, threads: 1 };
        let scenario = oncall_env::shipped("steady").unwrap();
        let again = run_policy(&scenario, &policy, plan, &|_| ()).unwrap();
        let again = mean(&again.iter().map(|e| e.return_).collect::<Vec<_>>());
        assert!((again - found.return_usd).abs() < 1e-9, "{again} {found:?}");
    }

    #[test]
    fn threads_change_nothing() {
        let two = tuned("target-tracking", Effort { threads: 2, ..EFFORT }).0.unwrap();
        assert_eq!(tuned("target-tracking", EFFORT).0.unwrap(), two);
    }

    #[test]
    fn what_cannot_be_tuned_is_refused() {
        let error = |policy, effort| tuned(policy, effort).0.unwrap_err().to_string();
        assert!(error("hold", EFFORT).contains("`hold`"));
        let rounds = error("hpa", Effort { rounds: Some(0), ..EFFORT });
        assert_eq!(rounds, "rounds = 0: expected 1..=10000");
        let episodes = error("hpa", Effort { episodes: 0, ..EFFORT });
        assert!(episodes.starts_with("episodes = 0"), "{episodes}");
    }
}
