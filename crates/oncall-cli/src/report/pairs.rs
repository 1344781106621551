//! Performance profiles, and who beats whom.

use super::plot::Plot;
use super::scores::{index_of, with_interval};
use super::svg::{Axis, escape};
use super::timeline::class;
use oncall_eval::overall::{Duel, Profiles};
use oncall_eval::report::Report;
use oncall_eval::stats::{Figure, Profile};
use std::fmt::Write as _;

/// Highest threshold of a profile: an easy morning is worth more than the planner's mean.
pub(super) const TAU_MAX: u32 = 105;

/// The thresholds of the profiles.
pub(super) fn taus() -> Vec<f64> {
    (0..=TAU_MAX).map(f64::from).collect()
}

/// The profiles of each scenario and of all together.
pub(super) fn write_profiles(text: &mut String, profiles: &[Profiles], policies: &[String]) {
    if profiles.is_empty() {
        return;
    }
    text.push_str(
        "<section id=\"profiles\">\n<h2>Performance profiles</h2>\n<p>Share of the episodes with a score \
         above a threshold; bands are pointwise 95 % bootstrap intervals. Where one curve lies above another \
         everywhere, that policy has the better mornings throughout; where they cross, one is better on the \
         bad mornings and the other on the good ones.</p>\n<div class=\"plots\">\n",
    );
    // The one over all scenarios comes last and is shown first.
    let split = if profiles.len() > 1 { profiles.len() - 1 } else { 0 };
    for profiles in profiles[split..].iter().chain(&profiles[..split]) {
        let title = match profiles.scenarios.as_slice() {
            [one] => one.clone(),
            many => format!("all {} scenarios", many.len()),
        };
        let x = Axis::between(0.0, f64::from(TAU_MAX));
        let mut plot = Plot::new(&title, (x, "score above"), Axis::between(0.0, 1.0));
        for (name, Profile { taus, shares }) in &profiles.policies {
            let class = class(index_of(policies, name));
            let ends: Vec<(f64, [f64; 2])> =
                taus.iter().zip(shares).map(|(&tau, share)| (tau, share.ci95)).collect();
            plot.band(&class, &ends);
            let points: Vec<[f64; 2]> =
                taus.iter().zip(shares).map(|(&tau, share)| [tau, share.value]).collect();
            plot.line(&class, name, &points);
        }
        let label = format!("Performance profiles, {title}");
        let _ = writeln!(text, "<div>{}</div>", plot.svg(&label));
    }
    text.push_str("</div>\n</section>\n");
}

/// The tables of who beats whom; nothing for a single policy.
pub(super) fn write_pairs(text: &mut String, report: &Report, duels: &[Duel], policies: &[String]) {
    if policies.len() < 2 {
        return;
    }
    text.push_str(
        "<section id=\"pairs\">\n<h2>Probability of improvement</h2>\n<p>How likely the policy of the row \
         gets more than the one of the column, half of the ties included. <b>Paired</b>: on how many \
         mornings, both playing the same one. <b>Unpaired</b>: over all pairs of episodes of the same \
         scenario, the mean over the scenarios, as Agarwal et al. (2021) report it. Brackets are 95 % bootstrap \
         intervals; where one holds 50, the two are not told apart.</p>\n",
    );
    if report.scenarios.len() > 1 {
        let all = format!("all {} scenarios", report.scenarios.len());
        matrix(text, &format!("{all}, paired"), policies, &|a, b| {
            side(duels, (a, b), |duel| (&duel.a, &duel.b, duel.paired))
        });
    }
    let scope = match report.scenarios.as_slice() {
        [one] => one.name.clone(),
        many => format!("all {} scenarios", many.len()),
    };
    matrix(text, &format!("{scope}, unpaired"), policies, &|a, b| {
        side(duels, (a, b), |duel| (&duel.a, &duel.b, duel.unpaired))
    });
    for scenario in &report.scenarios {
        let pairs: Vec<_> =
            report.improvement.iter().filter(|pair| pair.scenario == scenario.name).collect();
        matrix(text, &format!("{}, paired", scenario.name), policies, &|a, b| {
            side(&pairs, (a, b), |pair| {
                (&pair.a, &pair.b, Figure { value: pair.p, ci95: pair.ci95 })
            })
        });
    }
    text.push_str("</section>\n");
}

/// The figure of a pair, from the side of its first policy; `None` if the pair did not play.
fn side<T>(
    pairs: &[T],
    (a, b): (&str, &str),
    of: impl Fn(&T) -> (&String, &String, Figure),
) -> Option<Figure> {
    pairs.iter().find_map(|pair| match of(pair) {
        (x, y, figure) if x == a && y == b => Some(figure),
        (x, y, figure) if x == b && y == a => Some(figure.rest_of(1.0)),
        _ => None,
    })
}

fn matrix(
    text: &mut String,
    title: &str,
    policies: &[String],
    figure: &dyn Fn(&str, &str) -> Option<Figure>,
) {
    let _ = write!(
        text,
        "<h3>{}</h3>\n<div class=\"scroll\"><table class=\"pairs\">\n<tr><th>beats, %</th>",
        escape(title)
    );
    for name in policies {
        let _ = write!(text, "<th>{}</th>", escape(name));
    }
    text.push_str("</tr>\n");
    for (index, row) in policies.iter().enumerate() {
        let class = class(index);
        let _ = write!(text, "<tr><td class=\"who\"><i class=\"{class}\"></i>{}</td>", escape(row));
        for column in policies {
            match figure(row, column) {
                Some(share) => text.push_str(&shaded(share)),
                None => text.push_str("<td>–</td>"),
            }
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
}

/// A cell, the greener the likelier it is above 50 %, the redder below.
fn shaded(share: Figure) -> String {
    let side = if share.value >= 0.5 { "win" } else { "loss" };
    let weight = (2.0 * (share.value - 0.5).abs() * 45.0).round();
    let text = with_interval(share.scaled(100.0), 1, "");
    format!("<td class=\"{side}\" style=\"--w:{weight}%\">{text}</td>")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_seen_from_both_sides() {
        let figure = Figure { value: 0.75, ci95: [0.5, 1.0] };
        let pairs = [("a".to_owned(), "b".to_owned(), figure)];
        let of = |a, b| side(&pairs, (a, b), |(a, b, figure)| (a, b, *figure));
        assert_eq!(of("a", "b"), Some(figure));
        assert_eq!(of("b", "a"), Some(Figure { value: 0.25, ci95: [0.0, 0.5] }));
        assert_eq!(of("a", "a"), None);
    }

    #[test]
    fn cells_are_shaded_by_how_sure_they_are() {
        let cell = |value| shaded(Figure { value, ci95: [value; 2] });
        assert!(cell(1.0).starts_with("<td class=\"win\" style=\"--w:45%\">100.0<small>"));
        assert!(cell(0.5).contains("\"win\" style=\"--w:0%\""));
        assert!(cell(0.25).contains("\"loss\" style=\"--w:23%\""), "{}", cell(0.25));
    }
}
