//! `oncall-ppo`: trains a policy.

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use oncall_env::{Scenario, ShippedFiles};
use oncall_ppo::checkpoint::Task;
use oncall_ppo::config::Config;
use oncall_ppo::log::Line;
use oncall_ppo::train::{Run, train, weights_path};
use std::path::{Path, PathBuf};

/// Trains policies for the on-call gym with proximal policy optimisation.
#[derive(Parser)]
#[command(name = "oncall-ppo", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Trains on the training episodes of a scenario.
    ///
    /// Writes checkpoint.safetensors (all that --resume needs), training.csv (one line an update) and,
    /// at the end, policy.safetensors (the weights, with how well they do).
    Train(Train),
}

#[derive(clap::Args)]
struct Train {
    /// A shipped scenario (`oncall list`) or a JSON file.
    #[arg(long)]
    scenario: String,
    /// Environment steps; rounded up to whole roll-outs.
    #[arg(long, default_value_t = 20_000_000)]
    steps: u64,
    /// Seed of everything: start, episodes, draws and shuffles.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for checkpoint, log and weights.
    #[arg(long)]
    out: PathBuf,
    /// Go on from the checkpoint in the folder, if there is one.
    #[arg(long)]
    resume: bool,
    /// Threads that play and learn; the result does not depend on them.
    #[arg(long, default_value_t = default_threads())]
    threads: usize,
    /// Updates between two checkpoints.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: u64,
    /// Episodes of the evaluation at the end, on training seeds that were not trained on; 0 for none.
    #[arg(long, default_value_t = 1000)]
    evaluation_episodes: usize,
    #[command(flatten, next_help_heading = "Hyper-parameters")]
    config: Config,
}

fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, Into::into)
}

fn main() -> Result<()> {
    match Cli::parse().command {
        Command::Train(args) => run(args),
    }
}

fn run(args: Train) -> Result<()> {
    let scenario = scenario(&args.scenario)?;
    let task = Task::new(&scenario, args.seed, args.steps, args.config)?;
    let run = Run {
        out: args.out,
        threads: args.threads.max(1),
        checkpoint_every: args.checkpoint_every,
        evaluation_episodes: args.evaluation_episodes,
    };
    let bar = ProgressBar::new(task.updates);
    let template = "{bar:24} {pos}/{len} updates, {elapsed} (ends in {eta}) {msg}";
    bar.set_style(ProgressStyle::with_template(template)?);
    let mut shown = Shown::default();
    let weights = train(scenario, &task, &run, args.resume, &mut |line| {
        bar.set_position(line.update as u64);
        bar.set_message(shown.message(line));
        // Where there is no terminal, a line now and then.
        if bar.is_hidden() && (line.update as u64).is_multiple_of(20) {
            println!("update {} {}", line.update, bar.message());
        }
    })?;
    bar.finish();
    println!("weights: {}", weights_path(&run.out).display());
    if let Some(found) = &weights.meta().evaluation {
        let score = found.score.map_or(String::new(), |score| format!(", score {score:.1}"));
        println!(
            "return {:.2} +- {:.2} usd{score} ({:?}, {} training episodes, seed {})",
            found.return_usd,
            found.return_se_usd,
            weights.meta().mode,
            found.episodes,
            found.seed
        );
    }
    Ok(())
}

/// A shipped scenario, else a file.
fn scenario(name: &str) -> Result<Scenario> {
    if let Some(scenario) = oncall_env::shipped(name) {
        return Ok(scenario);
    }
    let path = Path::new(name);
    let text = std::fs::read_to_string(path).with_context(|| {
        let known = oncall_env::shipped_names().join(", ");
        format!("scenario `{name}`: not a shipped one ({known}), and not a file")
    })?;
    Ok(oncall_env::load_named(name, &text, &ShippedFiles)?)
}

/// A smoothed return, since few episodes end in one roll-out.
#[derive(Default)]
struct Shown {
    return_usd: Option<f64>,
}

impl Shown {
    fn message(&mut self, line: &Line) -> String {
        if line.return_usd.is_finite() {
            let old = self.return_usd.unwrap_or(line.return_usd);
            self.return_usd = Some(0.8 * old + 0.2 * line.return_usd);
        }
        format!(
            "{:.0} steps/s, return {:.2} usd, entropy {:.2}, kl {:.4}, explained {:.2}",
            line.steps_per_s,
            self.return_usd.unwrap_or(f64::NAN),
            line.entropy,
            line.kl,
            line.explained_variance
        )
    }
}
