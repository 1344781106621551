//! Plans the episodes that define score 100, and writes the constants.
//!
//! ```text
//! cargo run --release -p oncall-planner --example planner_reference -- \
//!     agents/planner/reference.json crates/oncall-eval/reference.json
//! ```
//!
//! Minutes on one core; names of scenarios may follow, and the others keep what they have. Run it when a
//! scenario, a price, the model or the search has changed.

use oncall_core::Split;
use oncall_eval::hex;
use oncall_eval::score::{Hundred, Reference};
use oncall_planner::{
    Batch, PLANNER_VERSION, PlannerReference, REFERENCE_SEARCH, plan_batch, summarise,
};
use std::error::Error;
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

const EPISODES: usize = 100;
const SEED: u64 = 1;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let (Some(own), Some(scores)) = (args.next(), args.next()) else {
        return Err("expected the paths of the planner's and of the evaluation's constants".into());
    };
    let only: Vec<String> = args.collect();
    let mut reference: PlannerReference = serde_json::from_str(&std::fs::read_to_string(&own)?)?;
    (reference.planner_version, reference.schema_version) = (PLANNER_VERSION, 1);
    (reference.budget_min, reference.search_seed) =
        (REFERENCE_SEARCH.budget_min, REFERENCE_SEARCH.seed);
    (reference.split, reference.seed) = (Split::Test.name().to_owned(), SEED);
    for name in oncall_env::shipped_names() {
        if only.is_empty() || only.iter().any(|wanted| wanted == name) {
            measure(name, &mut reference)?;
            write(Path::new(&own), &reference)?;
            let mut known: Reference = serde_json::from_str(&std::fs::read_to_string(&scores)?)?;
            enter(&reference, &mut known);
            write(Path::new(&scores), &known)?;
        }
    }
    Ok(())
}

fn measure(name: &str, reference: &mut PlannerReference) -> Result<(), Box<dyn Error>> {
    let scenario = oncall_env::shipped(name).ok_or("a shipped name")?;
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let batch = Batch { episodes: EPISODES, split: Split::Test, seed: SEED, threads };
    let (begin, done) = (Instant::now(), AtomicUsize::new(0));
    let planned = plan_batch(&scenario, batch, REFERENCE_SEARCH, &|_| {
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        eprint!("\r{name}: {done} of {EPISODES} episodes");
        // A bar that cannot be drawn is no reason to stop.
        let _ = std::io::stderr().flush();
    })?;
    let entry = summarise(&scenario, &planned);
    eprintln!(
        "\r{name}: {:.3} +- {:.3} (best rule {:.3}) in {:.0} s",
        entry.mean,
        entry.standard_error,
        entry.best_rule_mean,
        begin.elapsed().as_secs_f64()
    );
    match reference.scenarios.iter_mut().find(|known| known.scenario == name) {
        Some(known) => *known = entry,
        None => reference.scenarios.push(entry),
    }
    Ok(())
}

/// Enters the means where the evaluation looks for them.
fn enter(reference: &PlannerReference, scores: &mut Reference) {
    for entry in &reference.scenarios {
        let hash = oncall_env::shipped(&entry.scenario).map(|scenario| hex(scenario.hash));
        let known = scores
            .scenarios
            .iter_mut()
            .find(|known| known.scenario == entry.scenario && Some(&known.hash) == hash.as_ref());
        if let Some(known) = known {
            let source = format!(
                "clairvoyant planner, version {}, {} minutes of search an episode: {} {} episodes \
                 of seed {}, standard error {:.4}",
                reference.planner_version,
                reference.budget_min,
                entry.returns.len(),
                reference.split,
                reference.seed,
                entry.standard_error
            );
            known.hundred = Some(Hundred { mean: entry.mean, source });
        }
    }
}

fn write(path: &Path, value: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    std::fs::write(path, serde_json::to_string_pretty(value)? + "\n")?;
    Ok(())
}
