//! `oncall bench`: steps of the world a second, by scenario, batch and threads: minutes of a fleet, ticks of
//! ten seconds of discovery.
//!
//! Prepared random actions of the multi-discrete space; next-step autoreset, whose resetting rows
//! are not counted as played. The runs of all pairs are interleaved, so that a noisy neighbour hits
//! all of them; steps of more than three times the median are left out, since the machine did something
//! else in them; the median of the runs is the figure, and the spread is shown.
//!
//! `--json` prints one object: `schema_version`, `scenario`, `scenario_hash`, `spec_hash`, `tick_s` (seconds
//! of a step), `instructions` (the set in use), `runs` (a pair), `results`, a list of `batch`, `threads`, and
//! `minutes_per_s` (steps a second; the name is that of the fleet's) with `median`, `min` and `max`, and
//! `state_us`, microseconds an environment to `save`, `load` and `copy` its state. Of several scenarios it
//! prints a list of such objects.

use crate::args::BenchArgs;
use crate::output::{Table, count, hex, print, print_json};
use crate::scenarios;
use anyhow::ensure;
use indicatif::{ProgressBar, ProgressStyle};
use oncall_core::isa::Isa;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Spec, Split};
use oncall_env::{Actions, AnyVecEnv, AnyWorld, Autoreset, Options, OwnedColumns, Scenario, Seeds};
use serde_json::json;
use std::time::{Duration, Instant};

/// Runs of each pair of batch and threads; odd, so that there is a middle one.
const RUNS: usize = 5;
/// Sets of actions that are played in turn.
const PREPARED: usize = 8;
/// Steps that take this many times the median are left out: the machine did something else.
const DISTURBED: f64 = 3.0;

/// Measures, and prints a table or JSON.
pub fn run(args: &BenchArgs) -> anyhow::Result<()> {
    let scenarios: Vec<Scenario> = args
        .scenario
        .iter()
        .map(|name| scenarios::open_at(name, args.scale))
        .collect::<Result<_, _>>()?;
    ensure!(!scenarios.is_empty(), "scenario: found nothing, expected at least one");
    let mut sets = Vec::new();
    for scenario in &scenarios {
        let mut cases = Vec::new();
        for batch in batches_of(args, scenario) {
            for threads in threads_of(args) {
                cases.push(Case::new(scenario, batch, threads)?);
            }
        }
        sets.push(cases);
    }
    let time = Duration::from_secs_f64(args.seconds / RUNS as f64);
    let bar = ProgressBar::new((RUNS * sets.iter().map(Vec::len).sum::<usize>()) as u64);
    if let Ok(style) = ProgressStyle::with_template("  measuring {bar:40} {pos}/{len}, {eta} left")
    {
        bar.set_style(style);
    }
    for _ in 0..RUNS {
        for case in sets.iter_mut().flatten() {
            case.measure(time)?;
            bar.inc(1);
        }
    }
    bar.finish_and_clear();
    let states: Vec<State> = scenarios.iter().map(State::measure).collect::<Result<_, _>>()?;
    let all = || scenarios.iter().zip(&sets).zip(&states);
    if args.json {
        let mut objects: Vec<serde_json::Value> =
            all().map(|((scenario, cases), state)| as_json(scenario, cases, state)).collect();
        return match objects.len() {
            1 => print_json(&objects.remove(0)),
            _ => print_json(&serde_json::Value::Array(objects)),
        };
    }
    let texts: Vec<String> =
        all().map(|((scenario, cases), state)| as_text(scenario, cases, state)).collect();
    print(&texts.join("\n"))
}

/// The batches that were asked for, or some. Discovery steps its rows one by one.
fn batches_of(args: &BenchArgs, scenario: &Scenario) -> Vec<usize> {
    match scenario.world {
        _ if !args.batch.is_empty() => args.batch.clone(),
        AnyWorld::Fleet(_) => vec![1, 32, 1024, 8192],
        AnyWorld::Discovery(_) => vec![1],
    }
}

/// The threads that were asked for, or one and all.
fn threads_of(args: &BenchArgs) -> Vec<usize> {
    if !args.threads.is_empty() {
        return args.threads.clone();
    }
    let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    if all == 1 { vec![1] } else { vec![1, all] }
}

/// One pair of batch and threads.
struct Case {
    batch: usize,
    threads: usize,
    env: AnyVecEnv,
    columns: OwnedColumns,
    actions: Vec<Vec<i32>>,
    /// Minutes a second, one for each run.
    rates: Vec<f64>,
}

impl Case {
    fn new(scenario: &Scenario, batch: usize, threads: usize) -> anyhow::Result<Self> {
        let options = Options { autoreset: Autoreset::NextStep, threads, ..Options::default() };
        let mut env = AnyVecEnv::new(scenario.world.clone(), batch, options)?;
        let mut columns = env.columns();
        env.reset(Seeds::Root(1), None, &mut columns.borrow_reset())?;
        let actions = (0..PREPARED).map(|set| prepare(env.spec(), batch, set as u64)).collect();
        Ok(Self { batch, threads, env, columns, actions, rates: Vec::new() })
    }

    fn measure(&mut self, time: Duration) -> anyhow::Result<()> {
        let mut turn = 0;
        // Seconds a minute of some steps each: a single row takes less time than a look at the clock.
        let mut paces = Vec::new();
        let start = Instant::now();
        while start.elapsed() < time || paces.is_empty() {
            let (mut played, begin) = (0, Instant::now());
            for _ in 0..(1024 / self.batch).max(1) {
                let actions = Actions::Stops32(&self.actions[turn % PREPARED]);
                let mut columns = self.columns.borrow();
                // What a learner does not ask for is not written.
                (columns.terms, columns.cost, columns.signals) = (None, None, None);
                let summary = self.env.step(actions, &mut columns)?;
                played += self.batch - summary.reset;
                turn += 1;
            }
            if played > 0 {
                paces.push(begin.elapsed().as_secs_f64() / played as f64);
            }
        }
        paces.sort_by(f64::total_cmp);
        let most = DISTURBED * paces[paces.len() / 2];
        let kept = &paces[..paces.partition_point(|&pace| pace <= most)];
        self.rates.push(kept.len() as f64 / kept.iter().sum::<f64>());
        Ok(())
    }

    /// Lowest, median and highest rate.
    fn spread(&self) -> [f64; 3] {
        let mut rates = self.rates.clone();
        rates.sort_by(f64::total_cmp);
        [rates[0], rates[rates.len() / 2], rates[rates.len() - 1]]
    }
}

/// Microseconds an environment; the shortest of several runs.
struct State {
    save: f64,
    load: f64,
    copy: f64,
}

impl State {
    fn measure(scenario: &Scenario) -> anyhow::Result<Self> {
        // A row of discovery has some hundred kilobytes to some megabytes.
        let (rows, tries) = match scenario.world {
            AnyWorld::Fleet(_) => (256, 50),
            AnyWorld::Discovery(_) => (2, 5),
        };
        let mut env = AnyVecEnv::new(scenario.world.clone(), rows, Options::default())?;
        let mut columns = env.columns();
        env.reset(Seeds::Root(1), None, &mut columns.borrow_reset())?;
        let (all, half): (Vec<usize>, Vec<usize>) = ((0..rows).collect(), (0..rows / 2).collect());
        let other: Vec<usize> = (rows / 2..rows).collect();
        let mut best = [f64::MAX; 3];
        for _ in 0..tries {
            let start = Instant::now();
            let saved: Vec<Vec<u8>> =
                all.iter().map(|&row| env.save(row)).collect::<Result<_, _>>()?;
            best[0] = best[0].min(start.elapsed().as_secs_f64() / rows as f64);
            let states: Vec<&[u8]> = saved.iter().map(Vec::as_slice).collect();
            let start = Instant::now();
            env.load(&all, &states)?;
            best[1] = best[1].min(start.elapsed().as_secs_f64() / rows as f64);
            let start = Instant::now();
            env.copy_rows(&half, &other)?;
            best[2] = best[2].min(start.elapsed().as_secs_f64() / half.len() as f64);
        }
        let [save, load, copy] = best.map(|seconds| seconds * 1e6);
        Ok(Self { save, load, copy })
    }
}

/// Random actions as an untrained policy takes them: mostly keep.
fn prepare(spec: &Spec, batch: usize, set: u64) -> Vec<i32> {
    let key = EpisodeKey::new(set, 0, Split::Train, Generator::Pcg);
    let mut stream = key.stream(Purpose::Policy, 0);
    let mut actions = Vec::with_capacity(batch * spec.dials.len());
    for _ in 0..batch {
        for dial in &spec.dials {
            let keeps = stream.uniform() < 0.9;
            let stop = if keeps { 0 } else { stream.below(dial.choices()) };
            actions.push(i32::try_from(stop).unwrap_or(0));
        }
    }
    actions
}

fn as_text(scenario: &Scenario, cases: &[Case], state: &State) -> String {
    let unit = if scenario.world.spec().tick_s == 60 { "minutes" } else { "steps" };
    let rate = format!(">{unit}/s");
    let mut table = Table::new(&[">batch", ">threads", &rate, ">lowest", ">highest", ">us a step"]);
    for case in cases {
        let [low, median, high] = case.spread();
        let cells = [case.batch.to_string(), case.threads.to_string()];
        let rates = [median, low, high].map(count);
        let step_us = format!("{:.2}", case.batch as f64 / median * 1e6);
        table.row(cells.into_iter().chain(rates).chain([step_us]).collect());
    }
    let State { save, load, copy } = state;
    format!(
        "{} (hash {}): median of {RUNS} interleaved runs, {} instructions\n{}\n\
         state of an environment: saved in {save:.2} us, loaded in {load:.2} us, copied in {copy:.2} us\n",
        scenario.name,
        hex(scenario.hash),
        Isa::current().name(),
        table.text()
    )
}

fn as_json(scenario: &Scenario, cases: &[Case], state: &State) -> serde_json::Value {
    let result = |case: &Case| {
        let [min, median, max] = case.spread();
        json!({
            "batch": case.batch,
            "threads": case.threads,
            "minutes_per_s": {"median": median, "min": min, "max": max},
        })
    };
    json!({
        "schema_version": 1,
        "scenario": scenario.name,
        "scenario_hash": hex(scenario.hash),
        "spec_hash": hex(scenario.world.spec().hash()),
        "tick_s": scenario.world.spec().tick_s,
        "instructions": Isa::current().name(),
        "runs": RUNS,
        "results": cases.iter().map(result).collect::<Vec<_>>(),
        "state_us": {"save": state.save, "load": state.load, "copy": state.copy},
    })
}
