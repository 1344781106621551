//! The page around the drawings.

use super::curves::Group;
use super::scores::number;
use super::svg::escape;
use super::{Chapter, Recording, learning, pairs, scores, timeline};
use crate::output::{hex, short};
use crate::play::Which;
use oncall_core::Spec;
use oncall_eval::Report;
use oncall_eval::overall::{Duel, Profiles};
use std::fmt::Write as _;

const STYLE: &str = include_str!("report.css");

/// What a page shows.
pub(super) struct Page {
    /// In the order of their colours.
    pub(super) policies: Vec<String>,
    /// `None` if no episodes were asked for.
    pub(super) statistics: Option<Statistics>,
    pub(super) curves: Vec<Group>,
    pub(super) chapters: Vec<Chapter>,
    pub(super) which: Which,
}

/// What many episodes say.
pub(super) struct Statistics {
    pub(super) report: Report,
    pub(super) profiles: Vec<Profiles>,
    pub(super) duels: Vec<Duel>,
}

impl Page {
    /// The whole page.
    pub(super) fn html(&self) -> String {
        let policies = &self.policies;
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n\
             <meta name=\"generator\" content=\"oncall {}\">\n<title>On-call report, seed {}</title>\n\
             <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>On-call report</h1>\n",
            env!("CARGO_PKG_VERSION"),
            self.which.seed
        );
        self.write_contents(&mut text);
        text.push_str("<div class=\"legend\">");
        for (index, policy) in policies.iter().enumerate() {
            let class = timeline::class(index);
            let _ = write!(text, "<span><i class=\"{class}\"></i>{}</span>", escape(policy));
        }
        text.push_str("</div>\n");
        if let Some(Statistics { report, profiles, duels }) = &self.statistics {
            scores::write(&mut text, report, policies);
            pairs::write_profiles(&mut text, profiles, policies);
            pairs::write_pairs(&mut text, report, duels, policies);
        }
        let report = self.statistics.as_ref().map(|statistics| &statistics.report);
        learning::write(&mut text, &self.curves, report);
        self.write_shifts(&mut text);
        text.push_str(
            "<footer>A model for teaching and research: every relation is textbook, every constant an \
             illustration. No advice for a real site.</footer>\n</main>\n</body>\n</html>\n",
        );
        text
    }

    /// What follows, with links to it.
    fn write_contents(&self, text: &mut String) {
        let mut links = Vec::new();
        if let Some(statistics) = &self.statistics {
            links.push(("scores", "Scores"));
            if !statistics.report.aggregate.is_empty() {
                links.push(("overall", "All scenarios together"));
            }
            if !statistics.profiles.is_empty() {
                links.push(("profiles", "Performance profiles"));
            }
            if self.policies.len() > 1 {
                links.push(("pairs", "Probability of improvement"));
            }
        }
        if !self.curves.is_empty() {
            links.push(("learning", "Learning curves"));
        }
        if !self.chapters.is_empty() {
            links.push(("shifts", "One shift of each scenario"));
        }
        text.push_str("<nav>");
        for (id, name) in links {
            let _ = write!(text, "<a href=\"#{id}\">{name}</a> ");
        }
        text.push_str("</nav>\n");
    }

    /// The timelines.
    fn write_shifts(&self, text: &mut String) {
        let (count, which) = (self.policies.len(), self.which);
        let _ = writeln!(
            text,
            "<section id=\"shifts\">\n<h2>One shift of each scenario</h2>\n<p>Played by {count} {}. All \
             policies of a drawing meet the same demand and the same events; dashed vertical lines mark the \
             events. Seed <b>{}</b>, split <b>{}</b>. One shift is an anecdote{}.</p>\n</section>",
            if count == 1 { "policy" } else { "policies" },
            which.seed,
            which.split.name(),
            if self.statistics.is_some() { "; the tables above are over many" } else { "" }
        );
        for chapter in &self.chapters {
            write_chapter(text, chapter, which);
        }
    }
}

fn write_chapter(text: &mut String, chapter: &Chapter, which: Which) {
    let Chapter { scenario, recordings } = chapter;
    let spec = scenario.world.spec();
    let _ = write!(
        text,
        "<section>\n<h2>{} <small>{}</small></h2>\n<p>{}</p>\n",
        escape(&scenario.title),
        escape(&scenario.name),
        escape(&scenario.description)
    );
    write_table(text, spec, recordings);
    let label = format!("Timeline of {}, seed {}", scenario.name, which.seed);
    let _ = write!(
        text,
        "<div class=\"drawing\">\n{}</div>\n",
        timeline::draw(spec, recordings, &label)
    );
    let resting = timeline::resting_dials(spec, recordings);
    if !resting.is_empty() {
        let _ = writeln!(text, "<p class=\"note\">{}.</p>", escape(&resting));
    }
    let _ =
        writeln!(text, "<p class=\"note\">{}</p>\n</section>", escape(&provenance(chapter, which)));
}

/// Everything that is needed to play the shift again.
fn provenance(chapter: &Chapter, which: Which) -> String {
    let Chapter { scenario, recordings } = chapter;
    let mut text = format!(
        "Scenario {} (hash {}), spec {}, seed {}, split {}.",
        scenario.name,
        hex(scenario.hash),
        hex(scenario.world.spec().hash()),
        which.seed,
        which.split.name()
    );
    let Some(first) = recordings.first() else { return text };
    if first.ending.variant != scenario.name {
        let _ = write!(text, " Played: {}.", first.ending.variant);
    }
    let drawn = first.ending.drawn.iter();
    let drawn: Vec<String> =
        drawn.map(|(name, value)| format!("{name} {}", short(*value, 2))).collect();
    if !drawn.is_empty() {
        let _ = write!(text, " Drawn: {}.", drawn.join(", "));
    }
    text
}

fn write_table(text: &mut String, spec: &Spec, recordings: &[Recording]) {
    text.push_str("<div class=\"scroll\"><table>\n<tr><th>policy</th><th>return,&nbsp;$</th>");
    for term in &spec.terms {
        let _ = write!(text, "<th>{},&nbsp;$</th>", escape(&term.label.to_lowercase()));
    }
    text.push_str("<th>budget burned</th>");
    let metrics = oncall_eval::metrics::table(spec.world);
    if metrics.is_empty() {
        text.push_str("<th>pages</th><th>mitigated in</th>");
    }
    for metric in metrics {
        let _ = write!(text, "<th>{}</th>", escape(metric.label));
    }
    text.push_str("</tr>\n");
    let best = recordings.iter().map(|recording| recording.ending.stats.return_);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    for (index, recording) in recordings.iter().enumerate() {
        let stats = &recording.ending.stats;
        let mark = if stats.return_ >= best { " class=\"best\"" } else { "" };
        let _ = write!(
            text,
            "<tr{mark}><td class=\"who\"><i class=\"{}\"></i>{}</td><td>{}</td>",
            timeline::class(index),
            escape(&recording.policy),
            number(stats.return_, 2)
        );
        for &dollars in &stats.terms {
            let _ = write!(text, "<td>{}</td>", number(dollars, 2));
        }
        let _ = write!(text, "<td>{:.2} %</td>", 100.0 * stats.cost);
        if let Some(outcome) = recording.ending.incident {
            let mitigated = match (outcome.minutes_to_mitigate, outcome.unmitigated) {
                (None, _) => "–".to_owned(),
                (Some(minutes), true) => format!("not after {minutes} min"),
                (Some(minutes), false) => format!("{minutes} min"),
            };
            let _ = write!(text, "<td>{}</td><td>{mitigated}</td>", outcome.pages);
        }
        for (metric, (_, value)) in metrics.iter().zip(&recording.ending.metrics) {
            let shown = number(metric.factor * value, 2) + metric.unit;
            let _ = write!(text, "<td>{shown}</td>");
        }
        text.push_str("</tr>\n");
    }
    text.push_str("</table></div>\n");
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_policy_has_a_colour_in_both_themes() {
        for index in 0..super::super::POLICIES_MAX {
            let colour = format!("--{}:", super::timeline::class(index));
            assert_eq!(super::STYLE.matches(&colour).count(), 2, "{colour}");
        }
    }
}
