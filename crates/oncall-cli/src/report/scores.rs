//! The tables of scores, per scenario and over all of them.

use super::svg::escape;
use super::timeline::class;
use oncall_eval::metrics::table;
use oncall_eval::planned::BeatsPlanner;
use oncall_eval::report::{Aggregate, PolicyReport, Report, ScenarioReport};
use oncall_eval::score::{anchors, reference};
use oncall_eval::stats::Figure;
use std::fmt::Write as _;

/// Shown where there is no value.
const NONE: &str = "<td>–</td>";

/// All tables of scores.
pub(super) fn write(text: &mut String, report: &Report, policies: &[String]) {
    let _ = write!(
        text,
        "<section id=\"scores\">\n<h2>Scores <small>{} {} episodes a policy and scenario, seed {}</small></h2>\n\
         <p>Returns are dollars an episode. Small brackets are 95 % intervals: bootstrap, 2,000 resamples of \
         the episodes, drawn within each scenario, seeded. IQM is the mean of the middle half of the \
         episodes. Score: 0 is <b>{}</b>, 100 {}. All policies meet the same mornings, so the difference \
         to the best rule is paired; that rule was chosen on these very episodes, which favours it.</p>\n",
        report.episodes,
        escape(&report.split),
        report.seed,
        anchors(&report.world).zero,
        hundred(&report.world)
    );
    for scenario in &report.scenarios {
        scenario_table(text, (scenario, &report.world), policies);
    }
    text.push_str("</section>\n");
    if !report.aggregate.is_empty() {
        overall_table(text, &report.aggregate, policies);
    }
}

/// Who has score 100, and what that is worth.
fn hundred(world: &str) -> &'static str {
    match world {
        "discovery" => {
            "the oracle, which is told the scenario and plays the best setting that a search found for it: \
             no proven bound"
        }
        _ => {
            "the planner, which knows each morning in advance and searches it: a planner’s score, not a \
             proven bound"
        }
    }
}

fn scenario_table(
    text: &mut String,
    (scenario, world): (&ScenarioReport, &str),
    policies: &[String],
) {
    let metrics = table(world);
    let mut order: Vec<&PolicyReport> = scenario.policies.iter().collect();
    order.sort_by(|a, b| b.return_.mean.total_cmp(&a.return_.mean));
    let _ = writeln!(text, "<h3>{}</h3>", escape(&scenario.name));
    text.push_str(
        "<div class=\"scroll\"><table class=\"scores\">\n<tr><th>policy</th><th>mean return,&nbsp;$</th>\
         <th>median,&nbsp;$</th><th>IQM,&nbsp;$</th><th>score</th><th class=\"axis\"><i>0</i><i>100</i></th>\
         <th>against best rule,&nbsp;$</th><th>gap to 100 closed</th><th>beats planner</th>\
         <th>budget burned</th>",
    );
    if metrics.is_empty() {
        text.push_str("<th>pages</th>");
    }
    for metric in metrics {
        let _ = write!(text, "<th>{}</th>", escape(metric.label));
    }
    text.push_str("</tr>\n");
    for (place, policy) in order.iter().enumerate() {
        let index = index_of(policies, &policy.name);
        let is_rule = scenario.best_rule.as_ref() == Some(&policy.name);
        row_head(text, index, &policy.name, place == 0, is_rule);
        let return_ = policy.return_;
        cell(text, Figure { value: return_.mean, ci95: return_.ci95 }, 2, "");
        cell(text, Figure { value: return_.median, ci95: return_.median_ci95 }, 2, "");
        cell(text, Figure { value: return_.iqm, ci95: return_.iqm_ci95 }, 2, "");
        match policy.score {
            Some(score) => {
                let score = Figure { value: score.mean, ci95: score.ci95 };
                cell(text, score, 1, "");
                let _ = write!(text, "<td class=\"axis\">{}</td>", bar(score, index));
            }
            None => text.push_str(&NONE.repeat(2)),
        }
        let against = policy.against_best_rule;
        cell_or_none(text, against.map(|against| against.usd), 2, "");
        let closed = against.and_then(|against| against.gap_closed);
        match closed {
            // So much worse than the rule that the planner is no measure of it.
            Some(closed) if closed.ci95[1] < -1.0 => text.push_str("<td>below −100 %</td>"),
            closed => cell_or_none(text, closed.map(|closed| closed.scaled(100.0)), 0, " %"),
        }
        let beats = policy.beats_planner;
        let beats = beats.map_or(NONE.to_owned(), |beats| {
            let mark = if beats.is_too_often() { " class=\"alert\"" } else { "" };
            let percent = number(100.0 * beats.share, 0);
            format!("<td{mark}>{percent} %<small>of {}</small></td>", beats.episodes)
        });
        let burned = number(100.0 * policy.budget_burned, 2);
        let _ = write!(text, "{beats}<td>{burned} %</td>");
        if let Some(incident) = policy.incident {
            let _ = write!(text, "<td>{:.2}</td>", incident.pages);
        }
        for (metric, (_, value)) in metrics.iter().zip(&policy.metrics) {
            let _ = write!(text, "<td>{}{}</td>", number(metric.factor * value, 2), metric.unit);
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
    let _ = writeln!(text, "<p class=\"note\">{}</p>", footnote(scenario));
}

/// Where the planner stands, and whether somebody beats it too often.
fn footnote(scenario: &ScenarioReport) -> String {
    let constants = reference().scenarios.iter();
    let mut known = constants.filter(|c| c.scenario == scenario.name && c.hash == scenario.hash);
    let known = known.find_map(|c| Some((c, c.hundred.as_ref()?)));
    let mut text = format!("Scenario {} (hash {}). ", escape(&scenario.name), scenario.hash);
    match known {
        Some((constants, planner)) => {
            let _ = write!(
                text,
                "Score 0 is {}, 100 is {} dollars ({}).",
                number(constants.zero.mean, 2),
                number(planner.mean, 2),
                escape(&planner.source)
            );
        }
        None => text.push_str("No score 100 is known for it, so there is no score."),
    }
    for policy in &scenario.policies {
        if policy.beats_planner.is_some_and(BeatsPlanner::is_too_often) {
            let _ = write!(
                text,
                " <b>{} beats the planner on more than 1 % of the planner’s own episodes: its score is set \
                 too low.</b>",
                escape(&policy.name)
            );
        }
    }
    text
}

fn overall_table(text: &mut String, aggregate: &[Aggregate], policies: &[String]) {
    let mut order: Vec<&Aggregate> = aggregate.iter().collect();
    order.sort_by(|a, b| b.score.iqm.total_cmp(&a.score.iqm));
    let _ = write!(
        text,
        "<section id=\"overall\">\n<h2>All scenarios together <small>{}</small></h2>\n\
         <p>Scores over all episodes, as Agarwal et al. (2021) aggregate them: the interquartile mean over all \
         episodes, the median of the scenarios’ mean scores, the mean, and the optimality gap, which is what \
         is missing to 100 on the mean where a score above 100 counts as 100 (lower is better).</p>\n\
         <div class=\"scroll\"><table class=\"scores\">\n<tr><th>policy</th><th>IQM</th>\
         <th class=\"axis\"><i>0</i><i>100</i></th><th>median</th><th class=\"axis\"><i>0</i><i>100</i></th>\
         <th>mean</th><th class=\"axis\"><i>0</i><i>100</i></th><th>optimality gap</th>\
         <th class=\"axis\"><i>0</i><i>100</i></th></tr>\n",
        escape(&order[0].scenarios.join(", "))
    );
    for (place, policy) in order.iter().enumerate() {
        let index = index_of(policies, &policy.policy);
        row_head(text, index, &policy.policy, place == 0, false);
        let score = policy.score;
        let figures = [
            Figure { value: score.iqm, ci95: score.iqm_ci95 },
            policy.median_of_means,
            Figure { value: score.mean, ci95: score.ci95 },
            policy.optimality_gap,
        ];
        for figure in figures {
            cell(text, figure, 1, "");
            let _ = write!(text, "<td class=\"axis\">{}</td>", bar(figure, index));
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n</section>\n");
}

/// Where a policy stands among those of the page: its colour.
pub(super) fn index_of(policies: &[String], name: &str) -> usize {
    policies.iter().position(|known| known == name).unwrap_or(0)
}

fn row_head(text: &mut String, index: usize, name: &str, is_best: bool, is_rule: bool) {
    let mark = if is_best { " class=\"best\"" } else { "" };
    let names = match (is_best, is_rule) {
        (true, true) => "<small>best, and the best rule</small>",
        (true, false) => "<small>best</small>",
        (false, true) => "<small>best rule</small>",
        (false, false) => "",
    };
    let _ = write!(
        text,
        "<tr{mark}><td class=\"who\"><i class=\"{}\"></i>{}{names}</td>",
        class(index),
        escape(name)
    );
}

/// A number with its interval below.
fn cell(text: &mut String, figure: Figure, digits: usize, unit: &str) {
    let _ = write!(text, "<td>{}</td>", with_interval(figure, digits, unit));
}

fn cell_or_none(text: &mut String, figure: Option<Figure>, digits: usize, unit: &str) {
    match figure {
        Some(figure) => cell(text, figure, digits, unit),
        None => text.push_str(NONE),
    }
}

/// A number and, small, its interval.
pub(super) fn with_interval(figure: Figure, digits: usize, unit: &str) -> String {
    let [low, high] = figure.ci95.map(|end| number(end, digits));
    format!("{}{unit}<small>[{low}, {high}]</small>", number(figure.value, digits))
}

/// A number with fixed digits and a true minus; never minus zero.
pub(super) fn number(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

/// An interval from 0 to 100 as a small drawing; what lies outside is drawn on the edge.
fn bar(figure: Figure, index: usize) -> String {
    const WIDTH: f64 = 84.0;
    let x = |value: f64| 2.0 + (WIDTH - 4.0) * (value / 100.0).clamp(0.0, 1.0);
    let [low, high] = figure.ci95.map(x);
    format!(
        "<svg class=\"micro\" viewBox=\"0 0 {WIDTH} 16\" aria-hidden=\"true\"><path class=\"grid\" \
         d=\"M2 2V14M22 5V11M42 5V11M62 5V11M82 2V14M2 8H82\"></path><path class=\"reach {class}\" \
         d=\"M{low:.1} 8H{high:.1}\"></path><path class=\"point {class}\" d=\"M{at:.1} 3V13\"></path></svg>",
        class = class(index),
        at = x(figure.value),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::evaluate_all;
    use oncall_core::Split;
    use oncall_eval::{Contender, Plan};

    #[test]
    fn numbers_have_a_true_minus_and_no_minus_zero() {
        assert_eq!([-1.25, -0.001, 0.0, 3.0].map(|x| number(x, 1)), ["−1.2", "0.0", "0.0", "3.0"]);
        let figure = Figure { value: -2.0, ci95: [-3.0, 1.0] };
        assert_eq!(with_interval(figure, 0, " %"), "−2 %<small>[−3, 1]</small>");
    }

    #[test]
    fn bars_stay_inside() {
        let text = bar(Figure { value: -341.0, ci95: [-400.0, 120.0] }, 2);
        assert!(text.contains("M2.0 8H82.0") && text.contains("M2.0 3V13"), "{text}");
        assert!(text.contains("point p2"));
    }

    #[test]
    fn whoever_beats_the_planner_too_often_is_marked() {
        let scenarios = [oncall_env::shipped("steady").unwrap()];
        let policies = ["hold", "runbook"].map(str::to_owned);
        let contenders = ["hold", "runbook"].map(|text| Contender::parse(text).unwrap());
        let plan = Plan { episodes: 3, split: Split::Test, seed: 0, threads: 1 };
        let (mut report, _) = evaluate_all(&scenarios, &contenders, plan).unwrap();
        let page = |report: &Report| {
            let mut text = String::new();
            write(&mut text, report, &policies);
            text
        };
        assert!(!page(&report).contains("alert") && !page(&report).contains("too low"));
        let beats = BeatsPlanner { episodes: 100, share: 0.03 };
        report.scenarios[0].policies[1].beats_planner = Some(beats);
        let text = page(&report);
        assert!(text.contains("<td class=\"alert\">3 %<small>of 100</small></td>"), "{text}");
        assert!(text.contains("runbook beats the planner on more than 1 %"), "{text}");
        // The better one stands first, whatever the order on the page.
        let first = text.find("</i>runbook<small>best, and the best rule</small>").unwrap();
        assert!(first < text.find("</i>hold</td>").unwrap(), "{text}");
    }
}
