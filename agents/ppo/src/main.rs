//! `oncall-ppo`: trains a policy.

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use indicatif::{ProgressBar, ProgressStyle};
use oncall_core::Split;
use oncall_env::{Scenario, ShippedFiles};
use oncall_eval::Plan;
use oncall_ppo::checkpoint::Task;
use oncall_ppo::config::Config;
use oncall_ppo::log::Line;
use oncall_ppo::records::{self, Passed};
use oncall_ppo::train::{Run, train, weights_path};
use oncall_ppo::versus;
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
    /// Writes checkpoint.safetensors (all that --resume needs), training.csv (one line an update),
    /// events.out.tfevents (for `tensorboard --logdir`) and, at the end, policy.safetensors (the
    /// weights, with how well they do) and curve.svg (the learning curve).
    Train(Box<Train>),
    /// Plays trained weights and rules on the same held-out episodes, and prints the table of
    /// `oncall eval`.
    Evaluate(Evaluate),
}

#[derive(clap::Args)]
struct Evaluate {
    /// A file of weights: policy.safetensors of a training.
    #[arg(long)]
    weights: PathBuf,
    /// A shipped scenario or a JSON file; the one that they were trained on, if not given.
    #[arg(long)]
    scenario: Option<String>,
    /// Rules to compare with, as `oncall eval` takes them; the rule to beat, if not given.
    #[arg(long, value_name = "A,B")]
    policies: Option<String>,
    /// Episodes of each policy.
    #[arg(long, default_value_t = 1000)]
    episodes: usize,
    /// `test`: episodes that no training ever played; or `train`.
    #[arg(long, default_value = "test", value_parser = ["test", "train"])]
    split: String,
    /// Seed of the evaluation.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads; the result does not depend on them.
    #[arg(long, default_value_t = default_threads())]
    threads: usize,
    /// Write the figures as JSON here.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
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
        Command::Train(args) => run(*args),
        Command::Evaluate(args) => evaluate(&args),
    }
}

fn evaluate(args: &Evaluate) -> Result<()> {
    let name = match &args.scenario {
        Some(name) => name.clone(),
        None => versus::trained_on(&args.weights)?,
    };
    let scenario = scenario(&name)?;
    let weights = versus::read(&args.weights, &scenario)?;
    let bar = versus::bar_name(scenario.world.spec().world);
    let rules = versus::rules(args.policies.as_deref().unwrap_or(bar))?;
    let plan = Plan {
        episodes: args.episodes,
        split: if args.split == "train" { Split::Train } else { Split::Test },
        seed: args.seed,
        threads: args.threads.max(1),
    };
    let bar = ProgressBar::new(versus::minutes(&scenario, rules.len(), plan)? as u64);
    bar.set_style(ProgressStyle::with_template("{bar:24} {percent} %, {elapsed} (ends in {eta})")?);
    let report = versus::evaluate(&scenario, &weights, &rules, plan, &|minutes| bar.inc(minutes));
    bar.finish_and_clear();
    let report = report?;
    if let Some(path) = &args.json {
        std::fs::write(path, report.json()).with_context(|| path.display().to_string())?;
    }
    print!("{}", oncall_eval::table::text(&report));
    Ok(())
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
    let template = "{bar:24} {pos}/{len} updates, {elapsed} (ends in {eta})\n{msg}";
    bar.set_style(ProgressStyle::with_template(template)?);
    let spec = scenario.world.spec().clone();
    let dials: Vec<&str> = spec.dials.iter().map(|dial| dial.name).collect();
    let bar_usd = versus::bar(&scenario);
    let mut shown = Shown::default();
    let weights = train(scenario, &task, &run, args.resume, &mut |line| {
        shown.add(line);
        bar.set_position(line.update as u64);
        let is_due = (line.update as u64).is_multiple_of(20);
        if !bar.is_hidden() {
            bar.set_message(shown.message(line, &dials, "\n"));
        } else if is_due {
            // Where there is no terminal, a line now and then.
            println!("update {} {}", line.update, shown.message(line, &dials, "; "));
        }
    })?;
    shown.end(&bar);
    tell_passed(&run.out, versus::bar_name(spec.world), bar_usd)?;
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

/// How long it took to do as well as the rule to beat.
fn tell_passed(folder: &Path, name: &str, bar_usd: Option<f64>) -> Result<()> {
    let Some(bar_usd) = bar_usd else { return Ok(()) };
    match records::passed(folder, bar_usd)? {
        Some(Passed { steps, seconds }) => println!(
            "passed {name} ({bar_usd:.2} usd) after {:.2} M steps, {seconds:.0} s of training",
            steps / 1e6
        ),
        None => println!("did not pass {name} ({bar_usd:.2} usd) while it explored"),
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
        let known =
            [oncall_env::shipped_names(), oncall_env::discovery_names()].concat().join(", ");
        format!("scenario `{name}`: not a shipped one ({known}), and not a file")
    })?;
    Ok(oncall_env::load_named(name, &text, &ShippedFiles)?)
}

/// What the bar says: smoothed returns, since few episodes end in one roll-out, and sums of times.
#[derive(Default)]
struct Shown {
    return_usd: Option<f64>,
    score: Option<f64>,
    environment_s: f64,
    forward_s: f64,
    update_s: f64,
}

impl Shown {
    fn add(&mut self, line: &Line) {
        for (shown, new) in [(&mut self.return_usd, line.return_usd), (&mut self.score, line.score)]
        {
            if new.is_finite() {
                *shown = Some(0.8 * shown.unwrap_or(new) + 0.2 * new);
            }
        }
        self.environment_s += line.environment_s;
        self.forward_s += line.forward_s;
        self.update_s += line.update_s;
    }

    /// Three parts: how it goes, where the time goes, and how undecided each dial is.
    fn message(&self, line: &Line, dials: &[&str], between: &str) -> String {
        let dials = dials.iter().zip(&line.dial_entropies);
        let dials: Vec<String> = dials.map(|(dial, nats)| format!("{dial} {nats:.2}")).collect();
        let score = self.score.map_or(String::new(), |score| format!(", score {score:.1}"));
        format!(
            "{:.0} steps/s, return {:.2} usd{score}, kl {:.4}, explained {:.2}{between}{}{between}\
             entropy {:.2}: {}",
            line.steps_per_s,
            self.return_usd.unwrap_or(f64::NAN),
            line.kl,
            line.explained_variance,
            self.times(),
            line.entropy,
            dials.join(", ")
        )
    }

    fn times(&self) -> String {
        let all = self.environment_s + self.forward_s + self.update_s;
        let percent = |part: f64| 100.0 * part / all.max(f64::MIN_POSITIVE);
        format!(
            "time: environment {:.0} %, forward {:.0} %, update {:.0} %",
            percent(self.environment_s),
            percent(self.forward_s),
            percent(self.update_s)
        )
    }

    /// Where the time of this run went, below the bar.
    fn end(&self, bar: &ProgressBar) {
        bar.finish();
        let all = self.environment_s + self.forward_s + self.update_s;
        if all > 0.0 {
            println!("{all:.0} s of training; {}", self.times());
        }
    }
}
