//! The hash of a scenario: of everything that changes a trajectory, and of nothing else.

use oncall_core::{Dist, fnv1a};
use oncall_fleet::Params;
use oncall_fleet::params::{Constants, Deploy, Flush, Record, Surge, Target};
use std::fmt::Write as _;

/// FNV-1a over the resolved numbers, the distributions in their order, the series and the flags, by
/// their bits. Name, title, description, spaces and the order of fixed fields do not count.
pub(crate) fn hash(params: &Params) -> u64 {
    let mut text = String::from("fleet scenario 1\n");
    let generator = params.generator.name();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{generator} {}", params.hide_build_truth);
    let mut numbers = params.numbers;
    for target in targets(params) {
        // A drawn number counts by its distribution, not by the value that stands for it.
        if !params.draws.iter().any(|(drawn, _)| *drawn == target) {
            let _ = writeln!(text, "{} {:016x}", target.path(), numbers.slot(target).to_bits());
        }
    }
    for (target, dist) in &params.draws {
        let _ = writeln!(text, "{} {}", target.path(), words(dist));
    }
    if let Some(series) = &params.series_rps {
        let _ = writeln!(text, "series {}", bits(series));
    }
    fnv1a(text.as_bytes())
}

/// Every number of a scenario, in the order of the tables.
fn targets(params: &Params) -> Vec<Target> {
    let constants = Constants::SECTIONS.iter().enumerate().flat_map(|(section, (_, fields))| {
        (0..fields.len()).map(move |field| Target::Constant(section, field))
    });
    let (surge, deploy, flush) = (Surge::FIELDS.len(), Deploy::FIELDS.len(), Flush::FIELDS.len());
    let numbers = &params.numbers;
    constants
        .chain(pairs(numbers.surges.len(), surge).map(|(i, field)| Target::Surge(i, field)))
        .chain(pairs(numbers.deploys.len(), deploy).map(|(i, field)| Target::Deploy(i, field)))
        .chain(pairs(numbers.flushes.len(), flush).map(|(i, field)| Target::Flush(i, field)))
        .collect()
}

fn pairs(items: usize, fields: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..items).flat_map(move |item| (0..fields).map(move |field| (item, field)))
}

/// The same of a scenario of discovery; its scale counts apart.
pub(crate) fn discovery_hash(params: &oncall_discovery_env::Params) -> u64 {
    use oncall_discovery_env::params::{Section, Target};
    let mut text = String::from("discovery scenario 1\n");
    let mut numbers = params.numbers.clone();
    let sections = Section::ALL.iter().flat_map(|&section| {
        (0..section.fields().len()).map(move |field| Target::Section(section, field))
    });
    let faults = numbers.faults.iter().enumerate().flat_map(|(fault, row)| {
        (0..row.values.len()).map(move |field| Target::Fault(fault, field))
    });
    let targets: Vec<Target> = sections.chain(faults).collect();
    for target in targets {
        let path = params.numbers.path(target);
        // A drawn number counts by its distribution, not by the value that stands for it.
        if let Some((_, dist)) = params.draws.iter().find(|(drawn, _)| *drawn == target) {
            let _ = writeln!(text, "{path} {}", words(dist));
        } else {
            let _ = writeln!(text, "{path} {:016x}", numbers.slot(target).to_bits());
        }
    }
    fnv1a(text.as_bytes())
}

fn words(dist: &Dist) -> String {
    match dist {
        Dist::Uniform { low, high } => format!("uniform {}", bits(&[*low, *high])),
        Dist::Exponential { mean } => format!("exponential {}", bits(&[*mean])),
        Dist::Normal { mean, std } => format!("normal {}", bits(&[*mean, *std])),
        Dist::Choice { values, cumulative } => {
            format!("choice {} of {}", bits(values), bits(cumulative))
        }
    }
}

fn bits(values: &[f64]) -> String {
    let mut text = String::with_capacity(values.len() * 17);
    for value in values {
        let _ = write!(text, "{:016x} ", value.to_bits());
    }
    text
}
