//! The numbers that a scenario file says, for people and as JSON.

use crate::output::{Table, short};
use oncall_core::{Dist, Sampled};
use serde_json::{Value, json};

/// A number that a file says, or that has no default.
pub(super) struct Said {
    /// Where it stands in the file.
    pub(super) path: String,
    pub(super) default: Option<f64>,
    pub(super) unit: &'static str,
    pub(super) doc: &'static str,
    pub(super) value: Sampled,
}

/// All of them, a row each.
pub(super) fn table(said: Vec<Said>) -> String {
    let mut table = Table::new(&["number", "value", "unit", ">default", "meaning"]);
    for Said { path, default, unit, doc, value } in said {
        let default = default.map_or("-".to_owned(), number);
        table.row([path, words(&value), unit.to_owned(), default, doc.to_owned()].into());
    }
    table.text()
}

/// All of them, an object each, as the module `describe` documents it.
pub(super) fn as_json_list(said: Vec<Said>) -> Vec<Value> {
    let one = |Said { path, default, unit, doc, value }: Said| {
        json!({
            "path": path,
            "value": as_written(&value),
            "default": default,
            "unit": unit,
            "doc": doc,
        })
    };
    said.into_iter().map(one).collect()
}

fn number(value: f64) -> String {
    short(value, 4)
}

/// A value in words.
pub(super) fn words(value: &Sampled) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;

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
