//! Benchmarks as data, with expected digests.
//!
//! `benches/definitions/*.json` say what is played; each has a digest that its trajectory must have, so
//! that a fast wrong path cannot win. `--check` verifies without timing (a test does the same);
//! otherwise every definition is timed in turn, several times around, and the medians are printed and
//! appended to `benches/record/engine.csv`. What the numbers cannot say stands in `benches/BIAS.md`.
//!
//! `cargo run --release -p oncall-bench [-- --check | NAME | parts | cartpole [BATCH]]`
#![allow(clippy::print_stdout, reason = "this is what a benchmark is for")]

mod cartpole;
mod parts;

use oncall_core::Digest;
use oncall_env::{Actions, AnyVecEnv, Options, OwnedColumns, Seeds, shipped};
use serde::Deserialize;
use std::error::Error;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Instant;

/// Rounds over all definitions; the median of an odd number is one of them.
const ROUNDS: usize = 7;
/// Action sets that are prepared beforehand and played in turn.
const PREPARED: usize = 16;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Definition {
    name: String,
    scenario: String,
    batch: usize,
    steps: usize,
    expected_digest: String,
    #[serde(rename = "analysis")]
    _analysis: String,
}

struct Bench {
    definition: Definition,
    env: AnyVecEnv,
    columns: OwnedColumns,
    actions: Vec<Vec<i32>>,
}

impl Bench {
    fn new(definition: Definition) -> Result<Self, Box<dyn Error>> {
        let scenario = shipped(&definition.scenario).ok_or("no such scenario")?;
        let env = AnyVecEnv::new(scenario.world, definition.batch, Options::default())?;
        let mut bits = 1_u64;
        let mut next = || {
            bits = oncall_core::streams::scramble(bits.wrapping_add(0x9e37_79b9_7f4a_7c15));
            bits
        };
        let actions =
            (0..PREPARED)
                .map(|_| {
                    let dials = (0..definition.batch).flat_map(|_| env.spec().dials.iter());
                    // One dial in eight is turned, as by a policy that has begun to learn.
                    dials
                        .map(|dial| {
                            if next() % 8 == 0 {
                                (next() % dial.choices() as u64) as i32
                            } else {
                                0
                            }
                        })
                        .collect()
                })
                .collect();
        Ok(Self { columns: env.columns(), definition, env, actions })
    }

    fn reset(&mut self) -> Result<(), Box<dyn Error>> {
        Ok(self.env.reset(Seeds::Root(1), None, &mut self.columns.borrow_reset())?)
    }

    /// Plays the definition and returns the seconds that its steps took, without the steps in which
    /// the machine did something else: those of more than three times the median.
    fn play(&mut self) -> Result<f64, Box<dyn Error>> {
        self.reset()?;
        let mut columns = self.columns.borrow();
        // What a learner does not ask for is not written.
        (columns.terms, columns.cost, columns.signals) = (None, None, None);
        // A single row takes less time than a look at the clock.
        let together = (1024 / self.definition.batch).clamp(1, self.definition.steps);
        let mut spans = Vec::with_capacity(self.definition.steps / together);
        for first in (0..self.definition.steps).step_by(together) {
            let start = Instant::now();
            for step in first..(first + together).min(self.definition.steps) {
                self.env.step(Actions::Stops32(&self.actions[step % PREPARED]), &mut columns)?;
            }
            spans.push(start.elapsed().as_secs_f64());
        }
        let mut sorted = spans.clone();
        sorted.sort_by(f64::total_cmp);
        let most = 3.0 * sorted[sorted.len() / 2];
        let kept: Vec<f64> = spans.iter().copied().filter(|&span| span <= most).collect();
        Ok(kept.iter().sum::<f64>() / kept.len() as f64 * spans.len() as f64)
    }

    fn digest(&mut self) -> Result<String, Box<dyn Error>> {
        self.play()?;
        let mut digest = Digest::new();
        (0..self.definition.batch).for_each(|row| digest.word(self.env.digest(row)));
        self.columns.observations.iter().for_each(|x| digest.word(u64::from(x.to_bits())));
        Ok(oncall_core::hex(digest.value()))
    }
}

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn benches() -> Result<Vec<Bench>, Box<dyn Error>> {
    let text = std::fs::read_to_string(folder().join("definitions/engine.json"))?;
    serde_json::from_str::<Vec<Definition>>(&text)?.into_iter().map(Bench::new).collect()
}

fn check(benches: &mut [Bench]) -> Result<(), Box<dyn Error>> {
    let mut wrong = String::new();
    for bench in benches {
        let found = bench.digest()?;
        let expected = &bench.definition.expected_digest;
        if found != *expected {
            let _ =
                writeln!(wrong, "{}: digest {found}, expected {expected}", bench.definition.name);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.into()) }
}

fn measure(benches: &mut [Bench], record: Option<&str>) -> Result<(), Box<dyn Error>> {
    let mut seconds = vec![Vec::new(); benches.len()];
    for _ in 0..ROUNDS {
        for (bench, seconds) in benches.iter_mut().zip(&mut seconds) {
            seconds.push(bench.play()?);
        }
    }
    let record = record.map(|file| folder().join(file));
    let read = |file| std::fs::read_to_string(file).unwrap_or_default();
    let mut history = record.as_ref().map(read).unwrap_or_default();
    if history.is_empty() {
        history.push_str(
            "version,name,batch,ns_per_minute_median,ns_per_minute_min,ns_per_minute_max\n",
        );
    }
    println!("{:<14} {:>7} {:>14} {:>14}", "definition", "batch", "M minutes/s", "ns per minute");
    for (bench, seconds) in benches.iter().zip(&mut seconds) {
        seconds.sort_by(f64::total_cmp);
        let Definition { name, batch, steps, .. } = &bench.definition;
        let ns = |s: f64| s * 1e9 / (batch * steps) as f64;
        let [low, median, high] = [0, ROUNDS / 2, ROUNDS - 1].map(|i| ns(seconds[i]));
        println!("{name:<14} {batch:>7} {:>14.2} {median:>14.1}", 1e3 / median);
        let version = env!("CARGO_PKG_VERSION");
        let _ = writeln!(history, "{version},{name},{batch},{median:.1},{low:.1},{high:.1}");
    }
    record.map_or(Ok(()), |file| Ok(std::fs::write(file, history)?))
}

fn main() -> Result<(), Box<dyn Error>> {
    if std::env::args().nth(1).as_deref() == Some("cartpole") {
        let batch = std::env::args().nth(2).and_then(|batch| batch.parse().ok());
        print!("{}", cartpole::measure(batch)?);
        return Ok(());
    }
    if std::env::args().nth(1).as_deref() == Some("parts") {
        let text = parts::measure()?;
        print!("{text}");
        return Ok(std::fs::write(folder().join("record/parts.csv"), text)?);
    }
    let mut benches = benches()?;
    if std::env::args().nth(1).is_none_or(|name| name == "--check") {
        check(&mut benches)?;
    }
    if std::env::args().nth(1).as_deref() == Some("--check") {
        println!("{} definitions have their expected digests", benches.len());
        return Ok(());
    }
    // A name measures that one alone, for a profiler; the record is of whole runs.
    match std::env::args().nth(1) {
        Some(name) => benches.retain(|bench| bench.definition.name == name),
        None => return measure(&mut benches, Some("record/engine.csv")),
    }
    measure(&mut benches, None)
}

#[cfg(test)]
mod tests {
    /// A definition whose digest moved must be minted anew with a note why.
    #[test]
    fn every_definition_has_its_digest() {
        super::check(&mut super::benches().expect("the definitions load")).expect("digests agree");
    }
}
