//! `oncall discovery tune`: the settings that ship with the project, found on training episodes.
//!
//! `oracle` gets a setting for each scenario, `static` one for the training mixture, `safest` one for the
//! mixture as if running cost nothing, `operator` its thresholds on the mixture. The file has the form of
//! `agents/heuristics/tuned_discovery.json`: policy, scenario, seed, episodes, mean return, parameters
//! that differ from their defaults.

use super::journal::{FileJournal, Head};
use super::{MIXTURE, NINE};
use crate::eval::processors;
use crate::output::{hex, note, print};
use crate::scenarios;
use anyhow::{Context as _, ensure};
use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use oncall_env::Scenario;
use oncall_eval::race::{Journal, Judge, NoJournal, Objective, Race, search};
use oncall_eval::stats::mean;
use oncall_heuristics::tune::climb::Climb;
use oncall_heuristics::tuned::{DEFAULT, Table, Tuned};
use oncall_heuristics::{PolicySpec, describe, registry};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The reward term of the running costs.
pub(super) const OPS: &str = "ops_usd";

/// What is tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// A setting for each scenario.
    Oracle,
    /// One setting for the mixture.
    Static,
    /// One setting for the mixture, as if running cost nothing.
    Safest,
    /// The operator's thresholds, on the mixture.
    Operator,
}

impl Target {
    fn name(self) -> &'static str {
        match self {
            Target::Oracle => "oracle",
            Target::Static => "static",
            Target::Safest => "safest",
            Target::Operator => "operator",
        }
    }

    /// The policy that is played meanwhile: an oracle would play what it is told.
    fn played(self) -> &'static str {
        if self == Target::Operator { "operator" } else { "static" }
    }

    fn objective(self) -> Objective {
        if self == Target::Safest { Objective::without(OPS) } else { Objective::default() }
    }
}

/// Arguments of `oncall discovery tune`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall discovery tune oracle --journal tuning --save tuned.json\n  \
                        oncall discovery tune static --blocks 4\n  oncall discovery tune oracle \
                        --scenarios crash-wave --steps 200 --save tuned.json\n\nThe search plays \
                        training episodes only. With --journal a search that was broken off goes on \
                        where it was; the same command finds the same again."
)]
pub(super) struct TuneArgs {
    /// What is tuned.
    #[arg(value_enum)]
    target: Target,
    /// Scenarios; the nine for `oracle` and the mixture for the others, if not given.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    scenarios: Option<Vec<String>>,
    /// Training episodes of a block; a candidate that is clearly behind plays one block only.
    #[arg(long, value_name = "N", default_value_t = 8)]
    block: usize,
    /// Blocks of a candidate at most.
    #[arg(long, value_name = "N", default_value_t = 4)]
    blocks: usize,
    /// Seed of the episodes and of the search.
    #[arg(long, value_name = "N", default_value_t = 2024)]
    seed: u64,
    /// Candidates drawn over the whole box.
    #[arg(long, value_name = "N", default_value_t = 24)]
    wild: usize,
    /// Sweeps over the parameters.
    #[arg(long, value_name = "N", default_value_t = 2)]
    sweeps: usize,
    /// Steps that move a few parameters together.
    #[arg(long, value_name = "N", default_value_t = 80)]
    steps: usize,
    /// Parameters that are searched; all, if not given. The others stay where the best start has them.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    dials: Option<Vec<String>>,
    /// Return given up for each parameter that goes back to its default, dollars.
    #[arg(long, value_name = "USD", default_value_t = 0.05)]
    slack: f64,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Judge as if a reward term's price were multiplied.
    #[arg(long, value_name = "TERM=FACTOR", value_parser = weight)]
    weight: Vec<(String, f64)>,
    /// Folder for the journals of the searches.
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
    /// Enter what was found into this file, which need not be there yet.
    #[arg(long, value_name = "FILE.json")]
    save: Option<PathBuf>,
}

/// A reward term and a factor.
pub(super) fn weight(text: &str) -> Result<(String, f64), String> {
    let (name, factor) = text.split_once('=').ok_or("expected TERM=FACTOR")?;
    let factor = factor.trim().parse().map_err(|_| format!("{factor}: expected a number"))?;
    Ok((name.trim().to_owned(), factor))
}

/// Searches, prints, and saves.
pub(super) fn run(args: &TuneArgs) -> anyhow::Result<()> {
    let names = match (&args.scenarios, args.target) {
        (Some(names), _) => names.clone(),
        (None, Target::Oracle) => NINE.map(str::to_owned).to_vec(),
        (None, _) => vec![MIXTURE.to_owned()],
    };
    let scenarios: Vec<Scenario> =
        names.iter().map(|name| scenarios::open(name)).collect::<Result<_, _>>()?;
    for scenario in &scenarios {
        let world = scenario.world.spec().world;
        ensure!(world == "discovery", "scenarios = {}: expected one of discovery", scenario.name);
    }
    if let Some(folder) = &args.journal {
        std::fs::create_dir_all(folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
    }
    // A file that cannot be read is known before the search.
    let mut table = read(args.save.as_deref())?;
    for scenario in &scenarios {
        let tuned = tune(args, scenario, &table)?;
        let key = if scenario.name == MIXTURE { DEFAULT } else { &scenario.name };
        table.entry(args.target.name().to_owned()).or_default().insert(key.to_owned(), tuned);
        if let Some(path) = &args.save {
            let text = serde_json::to_string_pretty(&table)? + "\n";
            std::fs::write(path, text)
                .with_context(|| format!("cannot write {}", path.display()))?;
        }
    }
    Ok(())
}

pub(super) fn read(path: Option<&Path>) -> anyhow::Result<Table> {
    match path {
        Some(path) if path.exists() => {
            let name = || path.display().to_string();
            let text = std::fs::read_to_string(path).with_context(name)?;
            serde_json::from_str(&text).with_context(name)
        }
        _ => Ok(oncall_heuristics::tuned::table().clone()),
    }
}

/// Where a search begins: the scenario's own set, the defaults, and every set that is known.
fn starts(target: Target, scenario: &Scenario, table: &Table) -> anyhow::Result<Vec<PolicySpec>> {
    let played = target.played();
    let sets: &[&str] =
        if played == "static" { &["oracle", "static", "safest"] } else { &[played] };
    let mut all: Vec<(bool, BTreeMap<String, f64>)> = vec![(false, BTreeMap::new())];
    for (name, tuned) in sets.iter().filter_map(|set| table.get(*set)).flatten() {
        all.push((*name == scenario.name, tuned.params.clone()));
    }
    all.sort_by_key(|(is_own, _)| !is_own);
    let mut starts: Vec<PolicySpec> = Vec::new();
    for (_, params) in all {
        let start = spelled_out(played, &params)?;
        if !starts.contains(&start) {
            starts.push(start);
        }
    }
    Ok(starts)
}

/// A policy with some parameters, and the defaults of the others.
fn spelled_out(policy: &str, params: &BTreeMap<String, f64>) -> anyhow::Result<PolicySpec> {
    let description = describe(policy).context("a known policy")?;
    let value = |param: &oncall_heuristics::Param| {
        params.get(param.name.as_ref()).copied().or(param.default).unwrap_or(f64::NAN)
    };
    let values: Vec<f64> = description.params.iter().map(value).collect();
    let spec = PolicySpec::from_values(description, &values);
    spec.check()?;
    Ok(spec)
}

/// The setting of a set, as a policy that plays it whatever it is told; the defaults without a set.
pub(super) fn setting_of(
    table: &Table,
    policy: &str,
    scenario: &str,
) -> anyhow::Result<PolicySpec> {
    let set = table.get(policy).and_then(|sets| sets.get(scenario));
    spelled_out("static", &set.map_or_else(BTreeMap::new, |tuned| tuned.params.clone()))
}

fn tune(args: &TuneArgs, scenario: &Scenario, table: &Table) -> anyhow::Result<Tuned> {
    let target = args.target;
    let race = Race {
        seed: args.seed,
        block: args.block,
        blocks: args.blocks,
        threads: args.threads.unwrap_or_else(processors),
        objective: target.objective().with(&args.weight),
    };
    let options = Climb {
        seed: args.seed,
        wild: args.wild,
        sweeps: args.sweeps,
        steps: args.steps,
        slack: args.slack,
        free: args.dials.clone().unwrap_or_default(),
    };
    let head = Head {
        scenario: scenario.name.clone(),
        scenario_hash: hex(scenario.hash),
        spec_hash: hex(scenario.world.spec().hash()),
        seed: race.seed,
        block: race.block,
        objective: race.objective.name(),
    };
    let mut journal: Box<dyn Journal> = match &args.journal {
        None => Box::new(NoJournal),
        Some(folder) => {
            let file = format!("{}-{}.jsonl", target.name(), scenario.name);
            Box::new(FileJournal::open(&folder.join(file), &head)?)
        }
    };
    let bar = ProgressBar::new(0);
    let template = "  {msg} {bar:30} {pos}/{len} candidates, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    let starts = starts(target, scenario, table)?;
    let found =
        search(scenario, &starts, (&options, race.clone()), journal.as_mut(), &mut |step| {
            bar.set_length(step.of as u64);
            bar.set_message(format!("{}: {:.2}", scenario.name, step.best_usd));
            bar.set_position(step.candidates as u64);
            // Where there is no terminal, a line now and then.
            if bar.is_hidden() && step.candidates.is_multiple_of(50) {
                note(&format!(
                    "{} {}: {} of {} candidates, {} episodes, best {:.2}",
                    target.name(),
                    scenario.name,
                    step.candidates,
                    step.of,
                    step.episodes,
                    step.best_usd
                ));
            }
        });
    bar.finish_and_clear();
    let best = found?.best;
    // What a set gets is its return, whatever it was judged by.
    let mut nothing = NoJournal;
    let plain = race.objective == Objective::default();
    let journal: &mut dyn Journal = if plain { journal.as_mut() } else { &mut nothing };
    let race = Race { objective: Objective::default(), ..race };
    let values = Judge::new(scenario, race, journal)?.values(&best)?;
    let return_usd = (mean(&values) * 1e3).round() / 1e3;
    print(&format!("{} {}: {return_usd} usd\n  {best}\n", target.name(), scenario.name))?;
    let defaults = registry::describe(&best.name).context("a known policy")?;
    let is_default = |name: &str, value: f64| {
        defaults.params.iter().any(|param| param.name == name && param.default == Some(value))
    };
    Ok(Tuned {
        seed: args.seed,
        episodes: u32::try_from(values.len())?,
        return_usd,
        params: best.params.into_iter().filter(|(name, value)| !is_default(name, *value)).collect(),
    })
}
