//! What a scenario of the fleet says: the numbers that differ from their defaults, and the events.

use super::said::{Said, as_json_list, table};
use crate::output::short;
use oncall_core::Sampled;
use oncall_fleet::params::{Constants, Params, Target};
use oncall_fleet::{FleetWorld, params};
use params::Record as _;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// All numbers worth telling: drawn ones, those that differ from their default, and all of an event.
fn said(scenario: &Params) -> Vec<Said> {
    let mut numbers = scenario.numbers;
    let mut all = Vec::new();
    for target in targets(scenario) {
        let field = target.field();
        let drawn = scenario.draws.iter().find(|(drawn, _)| *drawn == target);
        let fixed = *numbers.slot(target);
        let is_event = !matches!(target, Target::Constant(..));
        let value = match drawn {
            Some((_, dist)) => Sampled::Drawn(dist.clone()),
            None if is_event || field.default != Some(fixed) => Sampled::Fixed(fixed),
            None => continue,
        };
        all.push(Said {
            path: target.path(),
            default: field.default,
            unit: field.unit,
            doc: field.doc,
            value,
        });
    }
    all
}

/// Every number of a scenario, in the order of its tables.
fn targets(scenario: &Params) -> impl Iterator<Item = Target> + use<> {
    let numbers = &scenario.numbers;
    let constants = Constants::SECTIONS.iter().enumerate().flat_map(|(section, (_, fields))| {
        (0..fields.len()).map(move |field| Target::Constant(section, field))
    });
    let events = |count: usize, fields: usize, target: fn(usize, usize) -> Target| {
        (0..count).flat_map(move |item| (0..fields).map(move |field| target(item, field)))
    };
    constants
        .chain(events(numbers.surges.len(), params::Surge::FIELDS.len(), Target::Surge))
        .chain(events(numbers.deploys.len(), params::Deploy::FIELDS.len(), Target::Deploy))
        .chain(events(numbers.flushes.len(), params::Flush::FIELDS.len(), Target::Flush))
}

/// Appends what is played.
pub(super) fn write_text(text: &mut String, world: &FleetWorld) {
    let variants = world.variants();
    for (scenario, share) in variants.iter().zip(world.shares()) {
        if variants.len() > 1 {
            let share = short(100.0 * share, 1);
            let _ = write!(text, "\nIn {share} % of the episodes: {}", scenario.name);
        }
        text.push_str("\nWhat differs from the defaults\n");
        text.push_str(&table(said(scenario)));
        if let Some(series) = &scenario.series_rps {
            let mean = series.iter().sum::<f64>() / series.len() as f64;
            let (minutes, mean) = (series.len(), short(mean, 1));
            let _ = writeln!(text, "  demand of a file: {minutes} minutes, mean {mean} req/s");
        }
        if scenario.hide_build_truth {
            text.push_str("  the dashboard does not tell whether a new build is bad\n");
        }
    }
}

/// What is played, as the module `describe` documents it.
pub(super) fn as_json(world: &FleetWorld) -> Vec<Value> {
    let variant = |(scenario, share): (&Params, f64)| {
        json!({
            "name": scenario.name,
            "share": share,
            "length_min": scenario.numbers.constants.shift.length_min,
            "hide_build_truth": scenario.hide_build_truth,
            "series_min": scenario.series_rps.as_ref().map(Vec::len),
            "numbers": as_json_list(said(scenario)),
        })
    };
    world.variants().iter().zip(world.shares()).map(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::super::said::words;
    use super::*;
    use oncall_core::Dist;
    use params::Surge;

    #[test]
    fn tells_what_differs_and_every_event() {
        let mut scenario = Params::defaults("test");
        assert!(said(&scenario).is_empty());
        scenario.numbers.constants.fleet.boot_delay_min = 8.0;
        scenario.numbers.surges.push(Surge { start_min: 0.0, size: 2.0, ..Surge::defaults() });
        let dist = Dist::Uniform { low: 20.0, high: 160.0 };
        scenario.draws.push((Target::Surge(0, 0), dist));
        let told: Vec<String> =
            said(&scenario).iter().map(|s| format!("{}={}", s.path, words(&s.value))).collect();
        assert_eq!(
            told,
            [
                "fleet.boot_delay_min=8",
                "surges[0].start_min=uniform 20..160",
                "surges[0].size=2",
                "surges[0].rise_min=5",
                "surges[0].decay_min=45"
            ]
        );
    }
}
