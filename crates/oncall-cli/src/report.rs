//! `oncall report`: one page of HTML with what many episodes say of some policies, how trained ones
//! learned, and an episode of each scenario, minute by minute.
//!
//! The page stands alone: styles and drawings are inside, there are no scripts, and nothing is loaded
//! from anywhere. Equal arguments make equal bytes.

mod curves;
mod learning;
mod page;
mod pairs;
mod plot;
mod scores;
mod svg;
mod timeline;

use self::page::{Page, Statistics};
use crate::args::ReportArgs;
use crate::eval::{check_folder, contender, evaluate_all, processors};
use crate::output::{create, note, print};
use crate::play::{Driver, Ending, Shift, Which};
use crate::scenarios;
use anyhow::{Context as _, ensure};
use indicatif::{ProgressBar, ProgressStyle};
use oncall_core::Spec;
use oncall_env::Scenario;
use oncall_eval::score::reference;
use oncall_eval::stats::Bootstrap;
use oncall_eval::{Contender, Plan, overall};
use std::path::Path;

/// Colours that a page has for policies.
const POLICIES_MAX: usize = 8;

/// Longest episode that is drawn; a week of minutes is a blur already.
const MINUTES_MAX: u32 = 10_080;

/// Plays the episodes and writes the page.
pub fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let scenarios = args
        .scenarios
        .iter()
        .map(|name| scenarios::open_at(name, args.scale))
        .collect::<Result<Vec<_>, _>>()?;
    let world = scenarios.first().map_or("", |scenario| scenario.world.spec().world);
    let policies = &args.policies.as_ref().map_or_else(|| usual(world), |list| list.0.clone());
    ensure!(
        policies.len() <= POLICIES_MAX,
        "policies: found {}, expected at most {POLICIES_MAX} on a page",
        policies.len()
    );
    let contenders: Vec<Contender> =
        policies.iter().map(|text| contender(text)).collect::<Result<_, _>>()?;
    check_folder(&args.out)?;
    let (curves, empty) = curves::read(&args.curves)?;
    for folder in empty {
        note(&format!("{}: no episode has ended yet, left out", folder.display()));
    }
    let which = Which { seed: args.seed, split: args.split.into(), minutes: None };
    // Before the many episodes: what cannot be drawn is known in a moment.
    let chapters = chapters(&scenarios, policies, which)?;
    let statistics = match args.episodes {
        0 => None,
        episodes => {
            let plan = Plan {
                episodes,
                split: which.split,
                seed: args.eval_seed,
                threads: args.threads.unwrap_or_else(processors),
            };
            Some(statistics(&scenarios, &contenders, plan)?)
        }
    };
    let page = Page { policies: policies.clone(), statistics, curves, chapters, which };
    let text = page.html();
    let cannot = || format!("cannot write {}", args.out.display());
    let mut out = create(&args.out)?;
    out.write_all(text.as_bytes()).with_context(cannot)?;
    out.flush().with_context(cannot)?;
    drop(out);
    if args.out == Path::new("-") {
        return Ok(());
    }
    print(&format!("{}: {} kB\n", args.out.display(), text.len() / 1000))
}

/// The policies of a page unless told otherwise.
fn usual(world: &str) -> Vec<String> {
    let names: &[&str] = match world {
        "discovery" => &["default", "static", "operator", "oracle"],
        _ => &["hold", "target-tracking", "hpa", "open-loop", "runbook", "ppo"],
    };
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// What many episodes say.
fn statistics(
    scenarios: &[Scenario],
    contenders: &[Contender],
    plan: Plan,
) -> anyhow::Result<Statistics> {
    let (report, played) = evaluate_all(scenarios, contenders, plan)?;
    // Some seconds for many episodes: long enough to wonder.
    let spinner = ProgressBar::new_spinner().with_message("comparing the policies");
    spinner.enable_steady_tick(std::time::Duration::from_millis(200));
    let bootstrap = Bootstrap::new(plan.seed);
    let profiles = overall::profiles(&played, reference(), &pairs::taus(), bootstrap);
    let duels = overall::duels(&played, bootstrap);
    spinner.finish_and_clear();
    Ok(Statistics { report, profiles, duels })
}

/// One shift of every scenario, played by every policy.
fn chapters(
    scenarios: &[Scenario],
    policies: &[String],
    which: Which,
) -> anyhow::Result<Vec<Chapter>> {
    let bar = ProgressBar::new((scenarios.len() * policies.len()) as u64);
    if let Ok(style) = ProgressStyle::with_template("  playing {bar:40} {pos}/{len} {msg}") {
        bar.set_style(style);
    }
    let mut chapters = Vec::new();
    for scenario in scenarios {
        let mut recordings = Vec::new();
        for policy in policies {
            bar.set_message(format!("{}, {policy}", scenario.name));
            recordings.push(record(scenario, which, policy)?);
            bar.inc(1);
        }
        chapters.push(Chapter { scenario: scenario.clone(), recordings });
    }
    bar.finish_and_clear();
    Ok(chapters)
}

/// One scenario, played by every policy.
struct Chapter {
    scenario: Scenario,
    recordings: Vec<Recording>,
}

/// One episode, every minute kept.
struct Recording {
    policy: String,
    ending: Ending,
    minutes: usize,
    /// `minutes * signals`.
    signals: Vec<f64>,
    /// `minutes * dials`, as they stood.
    dials: Vec<f64>,
    /// `minutes * dials`, as they were turned.
    actions: Vec<f64>,
    rewards: Vec<f64>,
}

impl Recording {
    /// One signal over time; `None` if the world has no such signal.
    fn signal(&self, spec: &Spec, name: &str) -> Option<Vec<f64>> {
        spec.signal(name).map(|index| column(&self.signals, spec.signals.len(), index))
    }

    /// One dial over time.
    fn dial(&self, spec: &Spec, index: usize) -> Vec<f64> {
        column(&self.dials, spec.dials.len(), index)
    }

    /// What was done with one dial over time; NaN where it was left alone.
    fn action(&self, spec: &Spec, index: usize) -> Vec<f64> {
        column(&self.actions, spec.dials.len(), index)
    }
}

fn column(matrix: &[f64], width: usize, index: usize) -> Vec<f64> {
    matrix.iter().skip(index).step_by(width).copied().collect()
}

fn record(scenario: &Scenario, which: Which, policy: &str) -> anyhow::Result<Recording> {
    let mut driver = Driver::policy(policy, scenario)?;
    let (mut signals, mut dials) = (Vec::new(), Vec::new());
    let (mut actions, mut rewards) = (Vec::new(), Vec::new());
    let ending = Shift::begin(scenario, which)?.play(&mut driver, |minute| {
        ensure!(
            minute.index < MINUTES_MAX,
            "{}: an episode longer than {MINUTES_MAX} min cannot be drawn",
            scenario.name
        );
        signals.extend_from_slice(minute.signals);
        dials.extend_from_slice(minute.dials);
        actions.extend_from_slice(minute.action);
        rewards.push(minute.reward);
        Ok(())
    })?;
    let minutes = rewards.len();
    Ok(Recording { policy: policy.to_owned(), ending, minutes, signals, dials, actions, rewards })
}
