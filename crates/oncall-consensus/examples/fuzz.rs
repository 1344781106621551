//! Plays many plans against the consensus core, or one plan again.
//!
//! `--schedules N` plays N plans from `--first S` (0); `--seed S` plays one, less what `--keep` (numbers of
//! events, or `none`) and `--off` (kinds of trouble) leave out.

use std::process::ExitCode;
use std::time::Instant;

use oncall_consensus::harness::{
    Failure, GOALS, Off, Plan, Reduction, fuzz, reproduce_command, run,
};

fn number(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("{name} is `{value}`, expected a whole number"))
}

fn kinds(value: &str) -> Result<Vec<Off>, String> {
    let names = Off::ALL.map(|(_, name)| name).join(", ");
    let find = |name: &str| Off::ALL.iter().find(|(_, known)| *known == name).map(|&(off, _)| off);
    value
        .split(',')
        .map(|name| find(name).ok_or(format!("--off has `{name}`, expected one of {names}")))
        .collect()
}

struct Options {
    schedules: u64,
    first: u64,
    seed: Option<u64>,
    reduction: Reduction,
}

fn options() -> Result<Options, String> {
    let mut options =
        Options { schedules: 10_000, first: 0, seed: None, reduction: Reduction::default() };
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments.next().ok_or(format!("{name} needs a value"))?;
        match name.as_str() {
            "--schedules" => options.schedules = number(&name, &value)?,
            "--first" => options.first = number(&name, &value)?,
            "--seed" => options.seed = Some(number(&name, &value)?),
            "--keep" if value == "none" => options.reduction.keep = Some(Vec::new()),
            "--keep" => {
                let numbers = value.split(',').map(|n| Ok(number(&name, n)? as usize));
                options.reduction.keep = Some(numbers.collect::<Result<_, String>>()?);
            }
            "--off" => options.reduction.off = kinds(&value)?,
            _ => {
                return Err(format!(
                    "unknown option {name}, expected --schedules, --first, --seed, --keep or --off"
                ));
            }
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let Options { schedules, first, seed, reduction } = match options() {
        Ok(options) => options,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    if let Some(seed) = seed {
        let plan = Plan::from_seed(seed).reduced(&reduction);
        println!("{plan:#?}");
        let report = run(&plan);
        println!("digests: {:016x?}", report.trail);
        if let Some(violation) = report.violation {
            println!("{violation}");
            return ExitCode::FAILURE;
        }
        println!("nothing found, {} entries committed", report.committed);
        return ExitCode::SUCCESS;
    }
    let start = Instant::now();
    let report = fuzz(first, schedules, |done| {
        if done.is_multiple_of(1_000) {
            eprintln!("{done} plans, {:.1} s", start.elapsed().as_secs_f64());
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let (inputs, committed) = (report.inputs, report.committed);
    println!("{} plans in {seconds:.1} s, {inputs} inputs, {committed} entries", report.schedules);
    for (name, count) in GOALS.iter().zip(report.goals.counts) {
        println!("{count:>12}  {name}");
    }
    println!("digest of all runs: {:016x}", report.digest);
    if let Some(Failure { seed, violation, reduction, small }) = report.failure {
        println!("seed {seed}: {violation}\nmade small: {}\n{:#?}", small.1, small.0);
        println!("again: {}", reproduce_command(seed, &reduction));
        return ExitCode::FAILURE;
    }
    let missed = report.goals.missed();
    if !missed.is_empty() {
        println!("never happened: {missed:?}");
        return ExitCode::FAILURE;
    }
    println!("nothing found");
    ExitCode::SUCCESS
}
