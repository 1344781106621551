//! A number of a scenario: fixed, or a distribution.

use crate::error::{Report, child, item};
use crate::node::{Node, plain};
use crate::object::{fields, unknown};
use oncall_core::Field;
use oncall_core::{Dist, Sampled};

/// The distributions, by the name of their field.
pub(crate) const KINDS: [&str; 4] = ["uniform", "exponential", "normal", "choice"];
/// The weights beside a choice.
pub(crate) const WEIGHTS: &str = "weights";
/// Highest weight; so that a sum of weights stays finite.
pub(crate) const WEIGHT_MAX: f64 = 1e9;

/// Whether a field is a switch: true and false are also written as such.
pub(crate) fn is_switch(field: &Field) -> bool {
    field.whole && field.low == 0.0 && field.high == 1.0
}

/// The range in words: `a whole number from 1 to 40 (min)`.
pub(crate) fn expectation(field: &Field) -> String {
    if is_switch(field) {
        return "true, false, 0 or 1".to_owned();
    }
    let kind = if field.whole { "a whole number" } else { "a number" };
    let unit = if field.unit.is_empty() { String::new() } else { format!(" ({})", field.unit) };
    format!("{kind} from {} to {}{unit}", plain(field.low), plain(field.high))
}

/// Reads a number or a distribution; reports what is wrong with it.
pub(crate) fn read(report: &mut Report, field: &Field, node: &Node, path: &str) -> Option<Sampled> {
    if let Node::Object(_) = node {
        return dist(report, field, node, path).map(Sampled::Drawn);
    }
    let expected = format!("{}, or a distribution", expectation(field));
    value(report, field, node, path, field.whole, &expected).map(Sampled::Fixed)
}

/// One value in the range of the field.
fn value(
    report: &mut Report,
    field: &Field,
    node: &Node,
    path: &str,
    whole: bool,
    expected: &str,
) -> Option<f64> {
    let number = match node {
        Node::Number(number) => Some(*number),
        Node::Bool(flag) if is_switch(field) => Some(f64::from(u8::from(*flag))),
        _ => None,
    };
    let fits = |x: &f64| *x >= field.low && *x <= field.high && (!whole || x.fract() == 0.0);
    let found = number.filter(fits);
    if found.is_none() {
        report.add(path, node.shown(), expected);
    }
    found
}

fn dist(report: &mut Report, field: &Field, node: &Node, path: &str) -> Option<Dist> {
    let before = report.len();
    let entries = fields(report, node, path, "a distribution");
    let mut kinds = Vec::new();
    let mut weights = None;
    for &(key, node) in &entries {
        if KINDS.contains(&key) {
            kinds.push((key, node));
        } else if key == WEIGHTS {
            weights = Some(node);
        } else {
            let known = [&KINDS[..], &[WEIGHTS]].concat();
            unknown(report, path, key, &known, None);
        }
    }
    let &[(kind, inner)] = kinds.as_slice() else {
        // A misspelt name is reported already.
        if report.len() == before || kinds.len() > 1 {
            let expected = format!("exactly one distribution: {}", KINDS.join(", "));
            report.add(path, node.shown(), expected);
        }
        return None;
    };
    if let (Some(weights), true) = (weights, kind != "choice") {
        report.add(child(path, WEIGHTS), weights.shown(), "weights only beside a choice");
    }
    let inner_path = child(path, kind);
    let found = match kind {
        "uniform" => uniform(report, field, inner, &inner_path),
        "exponential" => exponential(report, field, inner, &inner_path),
        "normal" => normal(report, field, inner, &inner_path),
        _ => choice(report, field, inner, &inner_path, weights, &child(path, WEIGHTS)),
    };
    found.filter(|_| report.len() == before)
}

fn uniform(report: &mut Report, field: &Field, node: &Node, path: &str) -> Option<Dist> {
    let [low_node, high_node] = pair(report, node, path, "[low, high]")?;
    // A drawn whole number is rounded, so the ends need not be whole.
    let expected = expectation(&Field { whole: false, ..*field });
    let low = value(report, field, low_node, &item(path, 0), false, &expected);
    let high = value(report, field, high_node, &item(path, 1), false, &expected);
    let (low, high) = (low?, high?);
    if low > high {
        report.add(path, node.shown(), "low at most high");
        return None;
    }
    Some(Dist::Uniform { low, high })
}

fn exponential(report: &mut Report, field: &Field, node: &Node, path: &str) -> Option<Dist> {
    let expected = format!("a positive mean, {}", expectation(&Field { whole: false, ..*field }));
    let mean = value(report, field, node, path, false, &expected)?;
    if mean <= 0.0 {
        report.add(path, node.shown(), expected);
        return None;
    }
    Some(Dist::Exponential { mean })
}

fn normal(report: &mut Report, field: &Field, node: &Node, path: &str) -> Option<Dist> {
    let [mean_node, std_node] = pair(report, node, path, "[mean, standard deviation]")?;
    let expected = format!("a mean, {}", expectation(&Field { whole: false, ..*field }));
    let mean = value(report, field, mean_node, &item(path, 0), false, &expected);
    let std = match std_node {
        Node::Number(std) if *std > 0.0 => Some(*std),
        _ => {
            report.add(item(path, 1), std_node.shown(), "a positive standard deviation");
            None
        }
    };
    Some(Dist::Normal { mean: mean?, std: std? })
}

fn choice(
    report: &mut Report,
    field: &Field,
    node: &Node,
    path: &str,
    weights: Option<&Node>,
    weights_path: &str,
) -> Option<Dist> {
    let values = match node {
        Node::Array(items) if !items.is_empty() => items,
        _ => {
            report.add(path, node.shown(), "an array of at least one value");
            return None;
        }
    };
    let expected = expectation(field);
    let found: Vec<Option<f64>> = (values.iter().enumerate())
        .map(|(i, node)| value(report, field, node, &item(path, i), field.whole, &expected))
        .collect();
    let weights = match weights {
        None => Some(vec![1.0; values.len()]),
        Some(node) => choice_weights(report, node, weights_path, values.len()),
    };
    Dist::choice(found.into_iter().collect::<Option<_>>()?, &weights?)
}

fn choice_weights(report: &mut Report, node: &Node, path: &str, count: usize) -> Option<Vec<f64>> {
    let items = match node {
        Node::Array(items) if items.len() == count => items,
        _ => {
            report.add(path, node.shown(), format!("{count} weights, one for each value"));
            return None;
        }
    };
    let mut weights = Vec::new();
    for (index, node) in items.iter().enumerate() {
        match node {
            Node::Number(weight) if (0.0..=WEIGHT_MAX).contains(weight) => weights.push(*weight),
            _ => {
                let expected = format!("a weight from 0 to {}", plain(WEIGHT_MAX));
                report.add(item(path, index), node.shown(), expected);
            }
        }
    }
    if weights.len() == count && weights.iter().all(|weight| *weight == 0.0) {
        report.add(path, node.shown(), "at least one positive weight");
        return None;
    }
    (weights.len() == count).then_some(weights)
}

/// An array of two.
fn pair<'n>(report: &mut Report, node: &'n Node, path: &str, what: &str) -> Option<[&'n Node; 2]> {
    if let Node::Array(items) = node
        && let [first, second] = items.as_slice()
    {
        return Some([first, second]);
    }
    report.add(path, node.shown(), format!("two numbers, {what}"));
    None
}
