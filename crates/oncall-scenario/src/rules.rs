//! Rules between the numbers of a scenario.

use crate::error::Report;
use crate::node::plain;
use oncall_core::Dist;
use oncall_fleet::Params;
use oncall_fleet::params::{Constants, Field, Target};

/// The first number may never be above the second one.
const AT_MOST: [(&str, &str); 3] = [
    ("opening.serving", "fleet.instances_max"),
    ("opening.min_instances", "fleet.instances_max"),
    ("database.query_ms", "database.query_ms_max"),
];

/// Reports every rule that is broken, or that a draw could break; numbers that `failed` are left
/// out.
pub(crate) fn check(report: &mut Report, params: &Params, failed: &[Target]) {
    for (low_name, high_name) in AT_MOST {
        let (Some(low), Some(high)) = (constant(low_name), constant(high_name)) else {
            debug_assert!(false, "a rule names an unknown number");
            continue;
        };
        if failed.contains(&low) || failed.contains(&high) {
            continue;
        }
        let (low_span, high_span) = (Span::of(params, low), Span::of(params, high));
        if low_span.high > high_span.low {
            let limit = high_span.words(high_span.low, "as little as");
            let expected = format!("at most `{high_name}`, which is {limit}");
            let found = low_span.words(low_span.high, "as much as");
            report.add(format!("$.{low_name}"), found, expected);
        }
    }
}

/// A number of [`Constants`] by `section.field`.
fn constant(path: &str) -> Option<Target> {
    let (section, name) = path.split_once('.')?;
    let section = Constants::SECTIONS.iter().position(|(known, _)| *known == section)?;
    let field = Constants::SECTIONS[section].1.iter().position(|field| field.name == name)?;
    Some(Target::Constant(section, field))
}

/// The values that a number can take.
struct Span {
    low: f64,
    high: f64,
    drawn: bool,
    default: bool,
}

impl Span {
    fn of(params: &Params, target: Target) -> Self {
        let field = target.field();
        if let Some((_, dist)) = params.draws.iter().find(|(drawn, _)| *drawn == target) {
            let (low, high) = ends(field, dist);
            return Self { low, high, drawn: true, default: false };
        }
        let mut numbers = params.numbers;
        let value = *numbers.slot(target);
        Self { low: value, high: value, drawn: false, default: field.default == Some(value) }
    }

    /// One end of the span.
    fn words(&self, end: f64, drawn: &str) -> String {
        let end = plain(end);
        match (self.drawn, self.default) {
            (true, _) => format!("a draw of {drawn} {end}"),
            (false, true) => format!("{end} (the default)"),
            (false, false) => end,
        }
    }
}

/// The lowest and the highest value that a distribution can draw for a field.
pub(crate) fn ends(field: &Field, dist: &Dist) -> (f64, f64) {
    let (low, high) = match dist {
        Dist::Uniform { low, high } => (*low, *high),
        Dist::Exponential { .. } => (field.low.max(0.0), field.high),
        Dist::Normal { .. } => (field.low, field.high),
        Dist::Choice { values, .. } => (
            values.iter().copied().fold(f64::INFINITY, f64::min),
            values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        ),
    };
    let round = |x: f64| if field.whole { x.round_ties_even() } else { x };
    (round(low.clamp(field.low, field.high)), round(high.clamp(field.low, field.high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_names_known_numbers() {
        assert!(
            AT_MOST.iter().all(|(low, high)| constant(low).is_some() && constant(high).is_some())
        );
        assert_eq!(constant("fleet.none"), None);
    }
}
