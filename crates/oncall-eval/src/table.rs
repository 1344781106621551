//! The report for terminals: fixed width, no colours, policies from best to worst.

use crate::metrics;
use crate::report::{Improvement, IncidentReport, Mitigation, Report, ScenarioReport, Stat};
use crate::score::{Anchors, anchors};
use crate::stats::Figure;
use std::fmt::Write as _;

/// Shown where there is no value.
const NONE: &str = "–";

/// The whole report as text.
pub fn text(report: &Report) -> String {
    let mut out = String::new();
    for scenario in &report.scenarios {
        let order = best_first(scenario);
        let _ = writeln!(
            out,
            "{}: {} {} episodes a policy, seed {}, scenario {}, spec {}\n",
            scenario.name,
            report.episodes,
            report.split,
            report.seed,
            scenario.hash,
            report.spec_hash
        );
        out.push_str(&returns(scenario, &order));
        out.push('\n');
        out.push_str(&dollars(scenario, &order));
        out.push_str(&measured(&report.world, scenario, &order));
        out.push_str(&drawn(scenario, &order));
        out.push_str(&against(scenario, &order));
        if order.len() > 1 {
            out.push_str("\nshare of mornings on which the row's policy beats the column's\n");
            out.push_str(&matrix(scenario, &order, &report.improvement));
        }
        out.push('\n');
    }
    if !report.aggregate.is_empty() {
        out.push_str(&aggregate(report));
        out.push('\n');
    }
    out.push_str(&legend(report));
    out
}

fn legend(report: &Report) -> String {
    let Anchors { zero, hundred, .. } = anchors(&report.world);
    let has_incident =
        report.scenarios.iter().flat_map(|s| &s.policies).any(|p| p.incident.is_some());
    let incident = if has_incident {
        " Mitigated: median minutes\nfrom the first burn above 1 to the last before ten quiet minutes; \
         open: not mitigated by the end."
    } else {
        ""
    };
    // The name of the reference is long only where it stands alone.
    let who = hundred.rsplit(' ').next().unwrap_or(hundred);
    format!(
        "Returns and terms in dollars an episode. Brackets: 95 % bootstrap interval of the mean. IQM: mean of\n\
         the middle half of the episodes. Score: 0 = {zero}, 100 = {hundred}.{incident}\n\
         Difference: mean over the same mornings, dollars; gap closed: as a share of what the {who} is better than\n\
         the rule; beats {who}: share of the {who}'s own episodes on which the policy gets more.\n"
    )
}

/// Indices of the policies, the best mean return first.
fn best_first(scenario: &ScenarioReport) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scenario.policies.len()).collect();
    order.sort_by(|&a, &b| {
        let mean = |i: usize| scenario.policies[i].return_.mean;
        mean(b).total_cmp(&mean(a))
    });
    order
}

fn returns(scenario: &ScenarioReport, order: &[usize]) -> String {
    let head = ["policy", "return", "95 %", "IQM", "score", "95 %", "IQM"];
    let mut table = Grid::new(head.map(str::to_owned).to_vec());
    for &i in order {
        let policy = &scenario.policies[i];
        let mut cells = vec![label(&policy.name)];
        cells.extend(stat(policy.return_, 2));
        match policy.score {
            Some(score) => cells.extend(stat(score, 1)),
            None => cells.extend([NONE, NONE, NONE].map(str::to_owned)),
        }
        table.row(cells);
    }
    table.text()
}

/// Mean, interval, interquartile mean.
fn stat(stat: Stat, digits: usize) -> [String; 3] {
    let [low, high] = stat.ci95.map(|end| number(end, digits));
    [number(stat.mean, digits), format!("[{low}, {high}]"), number(stat.iqm, digits)]
}

fn dollars(scenario: &ScenarioReport, order: &[usize]) -> String {
    let terms = scenario.policies.first().map(|policy| policy.terms.as_slice()).unwrap_or_default();
    let name = |(name, _): &(String, f64)| name.trim_end_matches("_usd").to_owned();
    let mut head = vec!["policy".to_owned()];
    head.extend(terms.iter().map(name));
    head.push("burned".to_owned());
    let has_incident = scenario.policies.iter().any(|policy| policy.incident.is_some());
    if has_incident {
        head.extend(["pages", "mitigated", "open"].map(str::to_owned));
    }
    let mut table = Grid::new(head);
    for &i in order {
        let policy = &scenario.policies[i];
        let mut cells = vec![label(&policy.name)];
        cells.extend(policy.terms.iter().map(|(_, usd)| number(*usd, 2)));
        cells.push(format!("{} %", number(100.0 * policy.budget_burned, 2)));
        if let Some(IncidentReport { pages, minutes_to_mitigate }) = policy.incident {
            let Mitigation { median, share_unmitigated, .. } = minutes_to_mitigate;
            cells.push(number(pages, 2));
            cells.push(median.map_or(NONE.to_owned(), |m| format!("{} min", number(m, 1))));
            cells.push(format!("{} %", number(100.0 * share_unmitigated, 1)));
        }
        table.row(cells);
    }
    table.text()
}

/// The metrics of the world, in a world that has some.
fn measured(world: &str, scenario: &ScenarioReport, order: &[usize]) -> String {
    let metrics = metrics::table(world);
    if metrics.is_empty() {
        return String::new();
    }
    let head = ["policy"].into_iter().chain(metrics.iter().map(|metric| metric.label));
    let mut table = Grid::new(head.map(str::to_owned).collect());
    for &i in order {
        let policy = &scenario.policies[i];
        let mut cells = vec![label(&policy.name)];
        cells.extend(metrics.iter().zip(&policy.metrics).map(|(metric, (_, value))| {
            let shown = metric.factor * value;
            if shown.is_nan() { NONE.to_owned() } else { number(shown, 2) + metric.unit }
        }));
        table.row(cells);
    }
    format!("\n{}", table.text())
}

/// Mean returns by the scenario that an episode drew, in a mixture. All policies play the same episodes.
fn drawn(scenario: &ScenarioReport, order: &[usize]) -> String {
    let policies: Vec<_> = order.iter().map(|&i| &scenario.policies[i]).collect();
    let Some(first) = policies.first().filter(|policy| !policy.played.is_empty()) else {
        return String::new();
    };
    let head = ["drawn".to_owned(), "episodes".to_owned()];
    let names = policies.iter().map(|policy| label(&policy.name));
    let mut table = Grid::new(head.into_iter().chain(names).collect());
    for (i, part) in first.played.iter().enumerate() {
        let mut cells = vec![part.scenario.clone(), part.episodes.to_string()];
        cells.extend(policies.iter().map(|policy| number(policy.played[i].return_.value, 2)));
        table.row(cells);
    }
    format!("\n{}", table.text())
}

/// Who is better than the best rule and than the planner; nothing where there is neither.
fn against(scenario: &ScenarioReport, order: &[usize]) -> String {
    let policies = || order.iter().map(|&i| &scenario.policies[i]);
    let has_planner = policies().any(|policy| policy.beats_planner.is_some());
    let has_rule = policies().any(|policy| policy.against_best_rule.is_some());
    if !has_planner && !has_rule {
        return String::new();
    }
    let head = ["policy", "difference", "95 %", "gap closed", "95 %", "beats planner"];
    let mut table = Grid::new(head.map(str::to_owned).to_vec());
    for policy in policies() {
        let mut cells = vec![label(&policy.name)];
        let against = policy.against_best_rule;
        let usd = against.map(|against| figure(against.usd, 2, ""));
        let closed = against.and_then(|against| against.gap_closed);
        let closed = closed.map(|closed| figure(closed.scaled(100.0), 1, " %"));
        for pair in [usd, closed] {
            cells.extend(pair.unwrap_or_else(|| [NONE, NONE].map(str::to_owned)));
        }
        let beats = policy.beats_planner.map(|beats| number(100.0 * beats.share, 1) + " %");
        cells.push(beats.unwrap_or_else(|| NONE.to_owned()));
        table.row(cells);
    }
    let rule = scenario.best_rule.as_deref().map_or(NONE.to_owned(), label);
    format!(
        "\nagainst the best rule, {rule}, and the planner\n{}{}",
        table.text(),
        remark(scenario)
    )
}

/// Names whoever beats the planner too often.
fn remark(scenario: &ScenarioReport) -> String {
    let mut text = String::new();
    for policy in &scenario.policies {
        let Some(beats) = policy.beats_planner.filter(|beats| beats.is_too_often()) else {
            continue;
        };
        let count = (beats.share * beats.episodes as f64).round();
        let _ = writeln!(
            text,
            "  ! {} beats the planner on {count} of its {} episodes, more than 1 %: the planner's score is too low",
            label(&policy.name),
            beats.episodes
        );
    }
    text
}

/// A number and its interval.
fn figure(figure: Figure, digits: usize, unit: &str) -> [String; 2] {
    let [low, high] = figure.ci95.map(|end| number(end, digits));
    [number(figure.value, digits) + unit, format!("[{low}, {high}]")]
}

fn matrix(scenario: &ScenarioReport, order: &[usize], improvement: &[Improvement]) -> String {
    let share = |a: usize, b: usize| {
        let (a, b) = (&scenario.policies[a].name, &scenario.policies[b].name);
        improvement.iter().filter(|pair| pair.scenario == scenario.name).find_map(|pair| {
            match (&pair.a, &pair.b) {
                (x, y) if x == a && y == b => Some(pair.p),
                (x, y) if x == b && y == a => Some(1.0 - pair.p),
                _ => None,
            }
        })
    };
    let mut head = vec!["policy".to_owned()];
    head.extend((1..=order.len()).map(|place| place.to_string()));
    let mut table = Grid::new(head);
    for (place, &a) in order.iter().enumerate() {
        let mut cells = vec![format!("{} {}", place + 1, label(&scenario.policies[a].name))];
        let cell = |&b: &usize| share(a, b).map_or(NONE.to_owned(), |p| number(p, 3));
        cells.extend(order.iter().map(cell));
        table.row(cells);
    }
    table.text()
}

fn aggregate(report: &Report) -> String {
    let mut order: Vec<_> = report.aggregate.iter().collect();
    order.sort_by(|a, b| b.score.mean.total_cmp(&a.score.mean));
    let head = ["policy", "score", "95 %", "IQM", "95 %", "median", "95 %", "gap", "95 %"];
    let mut table = Grid::new(head.map(str::to_owned).to_vec());
    for policy in &order {
        let score = policy.score;
        let mut cells = vec![label(&policy.policy)];
        cells.extend(figure(Figure { value: score.mean, ci95: score.ci95 }, 1, ""));
        cells.extend(figure(Figure { value: score.iqm, ci95: score.iqm_ci95 }, 1, ""));
        cells.extend(figure(policy.median_of_means, 1, ""));
        cells.extend(figure(policy.optimality_gap, 1, ""));
        table.row(cells);
    }
    format!(
        "all of {}; median of their means, gap to 100 without what lies above it\n\n{}",
        order[0].scenarios.join(", "),
        table.text()
    )
}

/// A policy's name, cut where its parameters would fill the line; the JSON has all of it.
fn label(name: &str) -> String {
    const LENGTH_MAX: usize = 28;
    if name.chars().count() <= LENGTH_MAX {
        return name.to_owned();
    }
    name.chars().take(LENGTH_MAX - 1).chain(['…']).collect()
}

/// A number with fixed digits; never `-0.00`.
fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
    if is_zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// Cells in columns: the first aligned to the left, the others to the right.
struct Grid {
    rows: Vec<Vec<String>>,
}

impl Grid {
    fn new(head: Vec<String>) -> Self {
        Self { rows: vec![head] }
    }

    fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn text(&self) -> String {
        let width = |column: usize| {
            self.rows
                .iter()
                .filter_map(|row| row.get(column))
                .map(|cell| cell.chars().count())
                .max()
        };
        let widths: Vec<usize> = (0..self.rows[0].len()).filter_map(width).collect();
        let mut out = String::new();
        for row in &self.rows {
            for (column, (cell, &width)) in row.iter().zip(&widths).enumerate() {
                let _ = match column {
                    0 => write!(out, "  {cell:<width$}"),
                    _ => write!(out, "  {cell:>width$}"),
                };
            }
            out.push('\n');
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align() {
        let mut grid = Grid::new(["policy", "x"].map(str::to_owned).to_vec());
        grid.row(vec!["a".to_owned(), "–".to_owned()]);
        grid.row(vec!["longer-name".to_owned(), "-12.50".to_owned()]);
        let expected = "  policy            x\n  a                 –\n  longer-name  -12.50\n";
        assert_eq!(grid.text(), expected);
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(label("hpa:target=0.5,min=6"), "hpa:target=0.5,min=6");
        let long = format!("open-loop:{}", "x=1,".repeat(50));
        assert_eq!(label(&long).chars().count(), 28);
        assert!(label(&long).starts_with("open-loop:x=1,") && label(&long).ends_with('…'));
    }

    #[test]
    fn zero_has_no_sign() {
        assert_eq!([-0.0, -0.001, 0.004].map(|x| number(x, 2)), ["0.00"; 3]);
        assert_eq!(number(-0.006, 2), "-0.01");
    }
}
