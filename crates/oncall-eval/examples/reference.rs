//! Measures what `hold` gets on every shipped scenario of the fleet, and writes the constants of the scores.
//!
//! ```text
//! cargo run --release -p oncall-eval --example reference -- crates/oncall-eval/reference.json
//! ```
//!
//! The planner's values are kept as they stand in the file, and so are the entries of discovery, which
//! `oncall discovery anchors` measures. Run it when a scenario, a price or the model
//! has changed: until then the scores of that scenario are blank.

use oncall_core::Split;
use oncall_eval::score::{Constants, Reference, Zero, reference};
use oncall_eval::{EvalError, Plan, hex, run_policy, stats};
use oncall_heuristics::PolicySpec;
use std::error::Error;

/// Training episodes, so that nothing of the test episodes enters a score.
const PLAN: Plan = Plan { episodes: 10_000, split: Split::Train, seed: 1, threads: 1 };

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("expected the path of reference.json")?;
    let scenarios = oncall_env::shipped_names().into_iter().map(measure);
    let mut measured: Vec<Constants> = scenarios.collect::<Result<_, _>>()?;
    let is_fleet = |known: &&Constants| oncall_env::shipped_names().contains(&&*known.scenario);
    measured.extend(reference().scenarios.iter().filter(|known| !is_fleet(known)).cloned());
    let measured = Reference { schema_version: 1, scenarios: measured };
    std::fs::write(path, serde_json::to_string_pretty(&measured)? + "\n")?;
    Ok(())
}

fn measure(name: &'static str) -> Result<Constants, EvalError> {
    let scenario = oncall_env::shipped(name).expect("a shipped name");
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let plan = Plan { threads, ..PLAN };
    let episodes = run_policy(&scenario, &PolicySpec::new("hold"), plan, &|_| ())?;
    let returns: Vec<f64> = episodes.iter().map(|episode| episode.return_).collect();
    let known = reference().scenarios.iter().find(|known| known.scenario == name);
    Ok(Constants {
        scenario: name.to_owned(),
        hash: hex(scenario.hash),
        zero: Zero {
            mean: stats::mean(&returns),
            episodes: plan.episodes,
            seed: plan.seed,
            split: plan.split.name().to_owned(),
        },
        hundred: known.and_then(|known| known.hundred.clone()),
    })
}
