//! What a scenario of the fleet says: the numbers that differ from their defaults, and the events.

use crate::output::{Table, short};
use oncall_core::{Dist, Sampled};
use oncall_fleet::params::{Constants, Field, Params, Target};
use oncall_fleet::{FleetWorld, params};
use params::Record as _;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// A number that a file says, or that has no default.
struct Said {
    path: String,
    field: &'static Field,
    value: Sampled,
}

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
        all.push(Said { path: target.path(), field, value });
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

fn number(value: f64) -> String {
    short(value, 4)
}

/// A value in words.
fn words(value: &Sampled) -> String {
    match value {
        Sampled::Fixed(value) => number(*value),
        Sampled::Drawn(Dist::Uniform { low, high }) => {
            format!("uniform {}..{}", number(*low), number(*high))
        }
        Sampled::Drawn(Dist::Exponential { mean }) => {
            format!("exponential, mean {}", number(*mean))
        }
        Sampled::Drawn(Dist::Normal { mean, std }) => {
            format!("normal, mean {}, std {}", number(*mean), number(*std))
        }
        Sampled::Drawn(Dist::Choice { values, cumulative }) => {
            let total = cumulative.last().copied().unwrap_or(1.0);
            let weights = weights(cumulative);
            if weights.windows(2).all(|pair| (pair[0] - pair[1]).abs() < 1e-9 * total) {
                let items: Vec<String> = values.iter().copied().map(number).collect();
                return format!("one of {}", items.join(", "));
            }
            let items = values.iter().zip(&weights).map(|(value, weight)| {
                format!("{} ({} %)", number(*value), short(100.0 * weight / total, 1))
            });
            items.collect::<Vec<_>>().join(" or ")
        }
    }
}

/// Weights from their running sums.
fn weights(cumulative: &[f64]) -> Vec<f64> {
    let before = [0.0].into_iter().chain(cumulative.iter().copied());
    cumulative.iter().zip(before).map(|(sum, before)| sum - before).collect()
}

/// A value as a scenario file writes it.
fn as_written(value: &Sampled) -> Value {
    match value {
        Sampled::Fixed(value) => json!(value),
        Sampled::Drawn(Dist::Uniform { low, high }) => json!({"uniform": [low, high]}),
        Sampled::Drawn(Dist::Exponential { mean }) => json!({"exponential": mean}),
        Sampled::Drawn(Dist::Normal { mean, std }) => json!({"normal": [mean, std]}),
        Sampled::Drawn(Dist::Choice { values, cumulative }) => {
            json!({"choice": values, "weights": weights(cumulative)})
        }
    }
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
        let mut table = Table::new(&["number", "value", "unit", ">default", "meaning"]);
        for Said { path, field, value } in said(scenario) {
            let default = field.default.map_or("-".to_owned(), number);
            let cells = [path, words(&value), field.unit.to_owned(), default, field.doc.to_owned()];
            table.row(cells.into());
        }
        text.push_str(&table.text());
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
    let said_json = |Said { path, field, value }: Said| {
        json!({
            "path": path,
            "value": as_written(&value),
            "default": field.default,
            "unit": field.unit,
            "doc": field.doc,
        })
    };
    let variant = |(scenario, share): (&Params, f64)| {
        json!({
            "name": scenario.name,
            "share": share,
            "length_min": scenario.numbers.constants.shift.length_min,
            "hide_build_truth": scenario.hide_build_truth,
            "series_min": scenario.series_rps.as_ref().map(Vec::len),
            "numbers": said(scenario).into_iter().map(said_json).collect::<Vec<_>>(),
        })
    };
    world.variants().iter().zip(world.shares()).map(variant).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
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

    #[test]
    fn choices_show_their_shares() {
        let choice = Dist::choice(vec![0.0, 1.0], &[1.0, 3.0]).map(Sampled::Drawn).unwrap();
        assert_eq!(words(&choice), "0 (25 %) or 1 (75 %)");
        let equal = Dist::choice(vec![6.0, 7.0], &[0.1, 0.1]).map(Sampled::Drawn).unwrap();
        assert_eq!(words(&equal), "one of 6, 7");
        assert_eq!(as_written(&choice), json!({"choice": [0.0, 1.0], "weights": [1.0, 3.0]}));
        let normal = Sampled::Drawn(Dist::Normal { mean: 1.5, std: 0.25 });
        assert_eq!(words(&normal), "normal, mean 1.5, std 0.25");
    }
}
