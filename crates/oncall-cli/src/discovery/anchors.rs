//! `oncall discovery anchors`: what the policies with score 0 and 100 get, measured on training episodes,
//! for `crates/oncall-eval/reference.json`.

use super::{MIXTURE, NINE};
use crate::args::ScaleArg;
use crate::eval::processors;
use crate::output::{Table, hex, note, print};
use crate::scenarios;
use anyhow::{Context as _, ensure};
use clap::Args;
use oncall_core::Split;
use oncall_env::Scenario;
use oncall_eval::score::{Constants, Hundred, Reference, Zero, anchors, reference};
use oncall_eval::stats::{Bootstrap, mean};
use oncall_eval::{Plan, run_policy};
use oncall_heuristics::PolicySpec;
use std::path::PathBuf;

/// Scenarios beside the nine that get a score.
const OTHERS: [&str; 2] = ["calm", MIXTURE];

/// Arguments of `oncall discovery anchors`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  oncall discovery anchors --episodes 200 --save \
                        crates/oncall-eval/reference.json\n\nEntries of other scenarios and scales \
                        stay. Run it when a scenario, a price, the model or a tuned setting has \
                        changed: until then a changed scenario has no score.")]
pub(super) struct AnchorArgs {
    /// Scenarios; the nine, the calm hour and the mixture, if not given.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    scenarios: Option<Vec<String>>,
    /// How large the fleet is.
    #[arg(long, value_enum)]
    scale: Option<ScaleArg>,
    /// Training episodes of each policy.
    #[arg(long, value_name = "N", default_value_t = 200)]
    episodes: usize,
    /// Seed of the episodes; not that of the search for the settings.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Enter the constants into this file.
    #[arg(long, value_name = "FILE.json")]
    save: Option<PathBuf>,
}

/// Measures, prints, and saves.
pub(super) fn run(args: &AnchorArgs) -> anyhow::Result<()> {
    let usual = || NINE.iter().chain(&OTHERS).map(|name| (*name).to_owned()).collect();
    let names: Vec<String> = args.scenarios.clone().unwrap_or_else(usual);
    let scenarios: Vec<Scenario> =
        names.iter().map(|name| scenarios::open_at(name, args.scale)).collect::<Result<_, _>>()?;
    for scenario in &scenarios {
        let world = scenario.world.spec().world;
        ensure!(world == "discovery", "scenarios = {}: expected one of discovery", scenario.name);
    }
    let mut all = match &args.save {
        Some(path) => {
            let name = || path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(name)?;
            serde_json::from_str::<Reference>(&text).with_context(name)?
        }
        None => reference().clone(),
    };
    let mut table = Table::new(&["scenario", ">score 0", ">score 100", ">gap", ">95 %"]);
    for scenario in &scenarios {
        note(&format!("{} ...", scenario.name));
        let (constants, gaps) = measure(args, scenario)?;
        let gap = Bootstrap::new(args.seed).mean(&[&gaps]);
        table.row(vec![
            scenario.name.clone(),
            format!("{:.2}", constants.zero.mean),
            constants.hundred.as_ref().map_or("-".to_owned(), |known| format!("{:.2}", known.mean)),
            format!("{:.2}", gap.value),
            format!("[{:.2}, {:.2}]", gap.ci95[0], gap.ci95[1]),
        ]);
        all.scenarios.retain(|known| known.scenario != constants.scenario);
        all.scenarios.push(constants);
        if let Some(path) = &args.save {
            let text = serde_json::to_string_pretty(&all)? + "\n";
            std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    print(&table.text())
}

/// The constants of a scenario, and by how much score 100 is better on each episode.
fn measure(args: &AnchorArgs, scenario: &Scenario) -> anyhow::Result<(Constants, Vec<f64>)> {
    let known = anchors(scenario.world.spec().world);
    let plan = Plan {
        episodes: args.episodes,
        split: Split::Train,
        seed: args.seed,
        threads: args.threads.unwrap_or_else(processors),
    };
    let returns = |policy: &str| -> anyhow::Result<Vec<f64>> {
        let played = run_policy(scenario, &PolicySpec::new(policy), plan, &|_| ())?;
        Ok(played.iter().map(|episode| episode.return_).collect())
    };
    let best = known.hundred_policy.context("a policy with score 100")?;
    let (zero, hundred) = (returns(known.zero)?, returns(best)?);
    let gaps: Vec<f64> = hundred.iter().zip(&zero).map(|(hundred, zero)| hundred - zero).collect();
    let source = format!("{best}, {} train episodes of seed {}", plan.episodes, plan.seed);
    let constants = Constants {
        scenario: scenario.name.clone(),
        hash: hex(scenario.hash),
        zero: Zero {
            mean: mean(&zero),
            episodes: plan.episodes,
            seed: plan.seed,
            split: plan.split.name().to_owned(),
        },
        hundred: Some(Hundred { mean: mean(&hundred), source }),
    };
    Ok((constants, gaps))
}
