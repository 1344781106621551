//! The cross table: the best setting of each scenario, played in each other scenario.
//!
//! It answers whether one setting of the dials wins everywhere. A **cost** is how much worse a setting
//! is than the scenario's own best one, as a share of what that one is better than the plain policy
//! with score 0 (the gap). A setting **fits its own scenario only** if the median of its costs in the
//! other scenarios is at least [`COST_MIN`].

use crate::error::EvalError;
use crate::evaluate::{Contender, Progress};
use crate::race::{Objective, value};
use crate::runner::{EpisodeResult, Plan};
use crate::score::anchors;
use crate::stats::{Bootstrap, Figure, mean, quantile};
use oncall_env::Scenario;
use std::io::{self, Write};

/// Cost in the median other scenario from which a setting fits its own only.
pub const COST_MIN: f64 = 0.2;

/// Running costs of the safest setting over those of the plain one, at least and at most.
pub const OPS_RATIO: [f64; 2] = [3.0, 10.0];

/// A setting that is played in every scenario.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name, for people.
    pub name: String,
    /// Index of the scenario that it is the best one of.
    pub home: Option<usize>,
    /// What is played.
    pub policy: Contender,
}

/// What was played.
#[derive(Debug, Clone)]
pub struct Cross {
    /// Names of the scenarios.
    pub scenarios: Vec<String>,
    /// Names of the settings, and where they are at home.
    pub rows: Vec<(String, Option<usize>)>,
    /// Returns by setting, scenario and episode, dollars.
    pub returns: Vec<Vec<Vec<f64>>>,
    /// Mean running costs by setting and scenario, dollars.
    pub ops: Vec<Vec<f64>>,
    plain: usize,
    seed: u64,
}

/// Plays every setting in every scenario; one of them is the plain policy. `ops` is the reward term of the
/// running costs.
///
/// Refuses an empty list and whatever an evaluation refuses.
pub fn play(
    scenarios: &[Scenario],
    rows: &[Row],
    (plan, ops): (Plan, &str),
    objective: &Objective,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Cross, EvalError> {
    let spec = scenarios.first().map(|scenario| scenario.world.spec());
    let spec = spec.ok_or_else(|| EvalError::value("scenarios", "nothing", "at least one"))?;
    let zero = anchors(spec.world).zero;
    let plain = rows.iter().position(|row| row.policy.name == zero);
    let plain = plain.ok_or_else(|| EvalError::value("rows", "no plain policy", zero))?;
    let factors = objective.of(spec)?;
    let term = spec.term(ops);
    let term = term.ok_or_else(|| EvalError::value("term", ops, "one of the world"))?;
    let (mut returns, mut costs) = (Vec::new(), Vec::new());
    for row in rows {
        let (mut line, mut spent) = (Vec::new(), Vec::new());
        for scenario in scenarios {
            let tell = |minutes| {
                progress(Progress { scenario: &scenario.name, policy: &row.name, minutes });
            };
            let played = row.policy.run(scenario, plan, &tell)?;
            let of = |value: &dyn Fn(&EpisodeResult) -> f64| -> Vec<f64> {
                played.iter().map(value).collect()
            };
            line.push(of(&|episode| value(episode, &factors)));
            spent.push(mean(&of(&|episode| episode.terms[term])));
        }
        returns.push(line);
        costs.push(spent);
    }
    Ok(Cross {
        scenarios: scenarios.iter().map(|scenario| scenario.name.clone()).collect(),
        rows: rows.iter().map(|row| (row.name.clone(), row.home)).collect(),
        returns,
        ops: costs,
        plain,
        seed: plan.seed,
    })
}

impl Cross {
    /// The row that is at home in a scenario.
    fn home(&self, scenario: usize) -> Option<usize> {
        self.rows.iter().position(|(_, home)| *home == Some(scenario))
    }

    fn difference(&self, scenario: usize, a: usize, b: usize) -> Vec<f64> {
        let (a, b) = (&self.returns[a][scenario], &self.returns[b][scenario]);
        a.iter().zip(b).map(|(a, b)| a - b).collect()
    }

    /// What the best setting of a scenario is better than the plain policy, dollars, with its paired
    /// interval.
    pub fn gap(&self, scenario: usize) -> Option<Figure> {
        let home = self.home(scenario)?;
        let pairs = self.difference(scenario, home, self.plain);
        Some(Bootstrap::new(self.seed).mean(&[&pairs]))
    }

    /// The cost of a setting in a scenario, as a share of the gap; `None` without a gap.
    pub fn cost(&self, row: usize, scenario: usize) -> Option<f64> {
        let gap = self.gap(scenario)?.value;
        let behind = mean(&self.difference(scenario, self.home(scenario)?, row));
        (gap > 0.0).then(|| behind / gap)
    }

    /// Costs of a setting in all scenarios but its own.
    pub fn costs_elsewhere(&self, row: usize) -> Vec<f64> {
        let others = (0..self.scenarios.len()).filter(|s| self.rows[row].1 != Some(*s));
        others.filter_map(|scenario| self.cost(row, scenario)).collect()
    }

    /// The settings that fit their own scenario only, and all that have one.
    pub fn own_only(&self) -> (usize, usize) {
        let at_home = (0..self.rows.len()).filter(|row| self.rows[*row].1.is_some());
        let fits = |row: usize| {
            let costs = self.costs_elsewhere(row);
            !costs.is_empty() && quantile(&costs, 0.5) >= COST_MIN
        };
        at_home.fold((0, 0), |(own, all), row| (own + usize::from(fits(row)), all + 1))
    }

    /// Running costs of a row over those of the plain policy, over all scenarios.
    pub fn ops_ratio(&self, row: usize) -> f64 {
        mean(&self.ops[row]) / mean(&self.ops[self.plain])
    }

    /// One row a setting and scenario: `setting`, `scenario`, `episodes`, `return_usd`, `ops_usd`,
    /// `gap_usd`, `cost` (share of the gap).
    pub fn write_csv(&self, out: impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record([
            "setting",
            "scenario",
            "episodes",
            "return_usd",
            "ops_usd",
            "gap_usd",
            "cost",
        ])?;
        for (row, (name, _)) in self.rows.iter().enumerate() {
            for (scenario, of) in self.scenarios.iter().enumerate() {
                let returns = &self.returns[row][scenario];
                let some = |value: Option<f64>| value.map(|x| x.to_string()).unwrap_or_default();
                csv.write_record([
                    name.clone(),
                    of.clone(),
                    returns.len().to_string(),
                    mean(returns).to_string(),
                    self.ops[row][scenario].to_string(),
                    some(self.gap(scenario).map(|gap| gap.value)),
                    some(self.cost(row, scenario)),
                ])?;
            }
        }
        csv.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hand_made() -> Cross {
        // The plain one, the best ones of two scenarios, and one that is good in both.
        let constant = |values: [f64; 2]| values.map(|value| vec![value; 4]).to_vec();
        Cross {
            scenarios: ["one", "two"].map(str::to_owned).to_vec(),
            rows: vec![
                ("plain".to_owned(), None),
                ("best of one".to_owned(), Some(0)),
                ("best of two".to_owned(), Some(1)),
                ("both".to_owned(), None),
            ],
            returns: vec![
                constant([-100.0, -50.0]),
                constant([-20.0, -60.0]),
                constant([-28.0, -10.0]),
                constant([-24.0, -12.0]),
            ],
            ops: vec![vec![2.0, 2.0], vec![4.0, 4.0], vec![3.0, 5.0], vec![20.0, 12.0]],
            plain: 0,
            seed: 1,
        }
    }

    #[test]
    fn costs_by_hand() {
        let cross = hand_made();
        assert_eq!((cross.gap(0).unwrap().value, cross.gap(1).unwrap().value), (80.0, 40.0));
        assert_eq!(cross.cost(1, 0), Some(0.0));
        assert_eq!(cross.cost(1, 1), Some(50.0 / 40.0));
        assert_eq!(cross.costs_elsewhere(2), [0.1]);
        assert_eq!(cross.costs_elsewhere(3), [0.05, 0.05]);
        assert_eq!(cross.own_only(), (1, 2));
        assert_eq!(cross.ops_ratio(3), 8.0);
        let mut csv = Vec::new();
        cross.write_csv(&mut csv).unwrap();
        let text = String::from_utf8(csv).unwrap();
        assert_eq!(text.lines().count(), 9);
        assert!(text.contains("best of one,two,4,-60,4,40,1.25"), "{text}");
    }

    #[test]
    fn rows_are_played_on_the_same_episodes() {
        let scenarios = ["steady", "spike"].map(|name| oncall_env::shipped(name).unwrap());
        let row = |text: &str, home| Row {
            name: text.to_owned(),
            home,
            policy: Contender::parse(text).unwrap(),
        };
        let rows = [row("hold", None), row("fixed-12", Some(0)), row("fixed-30", Some(1))];
        let plan = Plan { episodes: 6, split: oncall_core::Split::Train, seed: 3, threads: 1 };
        let cross =
            play(&scenarios, &rows, (plan, "fleet_usd"), &Objective::default(), &|_| ()).unwrap();
        assert!(cross.ops_ratio(2) > cross.ops_ratio(1));
        assert!(cross.cost(2, 0).is_none_or(|cost| cost > 0.0));
        let error = |rows: &[Row], term| {
            play(&scenarios, rows, (plan, term), &Objective::default(), &|_| ())
                .unwrap_err()
                .to_string()
        };
        assert!(error(&rows[1..], "fleet_usd").contains("expected hold"));
        assert!(error(&rows, "nothing").starts_with("term = nothing"));
    }
}
