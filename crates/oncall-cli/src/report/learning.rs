//! The drawing of the learning curves, and the table of the seeds.

use super::curves::{Group, Middle, Training};
use super::plot::Plot;
use super::scores::number;
use super::svg::{Axis, escape};
use oncall_eval::hex;
use oncall_eval::report::{Report, ScenarioReport};
use oncall_eval::score::{Score, reference};
use std::fmt::Write as _;

/// What the curves of a scenario are held against.
#[derive(Debug, Clone, PartialEq)]
struct Bars {
    /// Name and mean return of the best rule of the page.
    rule: Option<(String, f64)>,
    /// Mean return of the planner, and the map to scores.
    score: Option<Score>,
}

impl Bars {
    fn of(group: &Group, report: Option<&Report>) -> Self {
        // Another version of the scenario has other dollars.
        let hash = oncall_env::shipped(&group.scenario).map(|scenario| scenario.hash);
        let is_same = |training: &Training| match (&training.hash, hash) {
            (Some(trained), Some(shipped)) => *trained == hex(shipped),
            (None, Some(_)) => true,
            _ => false,
        };
        let Some(hash) = hash.filter(|_| group.trainings.iter().all(is_same)) else {
            return Self { rule: None, score: None };
        };
        let played = report.and_then(|report| {
            report.scenarios.iter().find(|s| s.name == group.scenario && s.hash == hex(hash))
        });
        Self { rule: played.and_then(best_rule), score: reference().score(&group.scenario, hash) }
    }

    /// The part of the axis that is worth looking at: from the planner down to well below the rule and
    /// below where each training ended.
    fn axis(&self, group: &Group) -> Axis {
        let ends: Vec<f64> = group.trainings.iter().map(Training::end).collect();
        let highest = group.trainings.iter().flat_map(|training| &training.points).map(|p| p[1]);
        let top =
            self.score.map_or_else(|| highest.fold(f64::NEG_INFINITY, f64::max), Score::hundred);
        let lowest = ends.iter().copied().chain(self.rule.iter().map(|rule| rule.1));
        let bottom = lowest.fold(top, f64::min);
        let room = if bottom < top { 1.5 * (top - bottom) } else { 1.0 };
        Axis::linear([bottom - room, top], None)
    }
}

fn best_rule(scenario: &ScenarioReport) -> Option<(String, f64)> {
    let name = scenario.best_rule.as_ref()?;
    let policy = scenario.policies.iter().find(|policy| policy.name == *name)?;
    Some((name.clone(), policy.return_.mean))
}

/// All curves, and a table of the seeds; nothing without trainings.
pub(super) fn write(text: &mut String, groups: &[Group], report: Option<&Report>) {
    if groups.is_empty() {
        return;
    }
    text.push_str(
        "<section id=\"learning\">\n<h2>Learning curves</h2>\n<p>Mean return of the training episodes that \
         ended in an update, dollars, over environment steps: one thin line a training, their mean bold, \
         the band from the worst to the best. The policy still explores in these episodes; the finished \
         one does better. Dotted: the best rule on the test episodes above, and the planner. The axis shows the \
         part between; what is worse lies on its lower edge.</p>\n<div class=\"plots\">\n",
    );
    let bars: Vec<Bars> = groups.iter().map(|group| Bars::of(group, report)).collect();
    for (group, bars) in groups.iter().zip(&bars) {
        let _ = writeln!(text, "<div>{}</div>", draw(group, bars));
    }
    text.push_str("</div>\n");
    table(text, groups, &bars);
    text.push_str("</section>\n");
}

fn draw(group: &Group, bars: &Bars) -> String {
    let count = group.trainings.len();
    let seeds = if count == 1 { "1 training".to_owned() } else { format!("{count} trainings") };
    let title = format!("{}, {seeds}", group.scenario);
    let steps = |steps: f64| steps / 1e6;
    let all = group.trainings.iter().flat_map(|training| &training.points);
    let x = Axis::linear(all.map(|point| steps(point[0])), Some(0.0));
    let mut plot = Plot::new(&title, (x, "million environment steps"), bars.axis(group));
    let middle = if count > 1 { group.middle() } else { Vec::new() };
    let band: Vec<(f64, [f64; 2])> =
        middle.iter().map(|&Middle { steps: x, ends, .. }| (steps(x), ends)).collect();
    plot.band("learned", &band);
    if let Some(score) = bars.score {
        plot.level("line", "planner", score.hundred());
    }
    if let Some((name, usd)) = &bars.rule {
        plot.level("line rule", name, *usd);
    }
    for training in &group.trainings {
        let points: Vec<[f64; 2]> = training.points.iter().map(|&[x, y]| [steps(x), y]).collect();
        let thin = if count > 1 { " thin" } else { "" };
        plot.line(&format!("learned{thin}"), &format!("seed {}", training.seed), &points);
    }
    let mean: Vec<[f64; 2]> =
        middle.iter().map(|&Middle { steps: x, mean, .. }| [steps(x), mean]).collect();
    if !mean.is_empty() {
        plot.line("learned bold", "mean", &mean);
    }
    plot.svg(&format!("Learning curves, {title}"))
}

fn table(text: &mut String, groups: &[Group], bars: &[Bars]) {
    text.push_str(
        "<div class=\"scroll\"><table>\n<tr><th>scenario</th><th>seed</th><th>steps</th><th>training</th>\
         <th>return in the last tenth,&nbsp;$</th><th>score</th><th>finished policy,&nbsp;$</th>\
         <th>score</th></tr>\n",
    );
    for (group, bars) in groups.iter().zip(bars) {
        for training in &group.trainings {
            let score =
                |usd: f64| bars.score.map_or("–".to_owned(), |score| number(score.of(usd), 1));
            let steps = training.points.last().map_or(0.0, |point| point[0]);
            let seconds = training.seconds.map_or("–".to_owned(), |s| format!("{s:.0} s"));
            let end = training.end();
            let _ = write!(
                text,
                "<tr><td class=\"who\">{}</td><td>{}</td><td>{}</td><td>{seconds}</td><td>{}</td>\
                 <td>{}</td>",
                escape(&group.scenario),
                escape(&training.seed),
                crate::output::count(steps),
                number(end, 2),
                score(end)
            );
            let _ = match training.evaluation {
                Some((usd, episodes)) => writeln!(
                    text,
                    "<td>{}<small>{episodes} fresh training episodes</small></td><td>{}</td></tr>",
                    number(usd, 2),
                    score(usd)
                ),
                None => writeln!(text, "<td>–</td><td>–</td></tr>"),
            };
        }
    }
    text.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(scenario: &str, hash: Option<&str>) -> Group {
        let training = |seed: &str, end: f64| Training {
            scenario: scenario.to_owned(),
            hash: hash.map(str::to_owned),
            seed: seed.to_owned(),
            points: vec![[1e6, -900.0], [2e6, end]],
            seconds: Some(61.0),
            evaluation: Some((-25.0, 1000)),
        };
        Group {
            scenario: scenario.to_owned(),
            trainings: vec![training("1", -30.0), training("2", -28.0)],
        }
    }

    #[test]
    fn curves_have_a_band_a_mean_and_the_bars() {
        let mut text = String::new();
        write(&mut text, &[group("spike", None)], None);
        assert_eq!(text.matches("class=\"learned thin\"").count(), 2);
        assert_eq!(text.matches("class=\"learned bold\"").count(), 1);
        assert_eq!(text.matches("class=\"band learned\"").count(), 1);
        assert!(text.contains(">planner</text>") && text.contains("61 s"));
        // Nobody asked for an evaluation: no rule to be held against.
        assert!(!text.contains("line rule"));
        assert!(!text.contains("NaN"), "{text}");
        let score = reference().score("spike", oncall_env::shipped("spike").unwrap().hash).unwrap();
        assert!(text.contains(&format!("<td>{:.1}</td>", score.of(-28.0))), "{text}");
    }

    #[test]
    fn another_version_of_a_scenario_has_no_score() {
        for group in [group("spike", Some("00")), group("mine", None)] {
            assert_eq!(Bars::of(&group, None), Bars { rule: None, score: None });
            let mut text = String::new();
            write(&mut text, &[group], None);
            assert!(!text.contains(">planner</text>") && !text.contains("NaN"), "{text}");
        }
    }
}
