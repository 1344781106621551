//! The page around the drawings.

use super::svg::escape;
use super::{Chapter, Recording, timeline};
use crate::output::{hex, short};
use crate::play::Which;
use oncall_core::Spec;
use std::fmt::Write as _;

const STYLE: &str = include_str!("report.css");

/// The whole page.
pub(super) fn html(chapters: &[Chapter], policies: &[String], which: Which) -> String {
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"oncall {}\">\n<title>On-call report, seed {}</title>\n\
         <style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>On-call report</h1>\n",
        env!("CARGO_PKG_VERSION"),
        which.seed
    );
    let _ = writeln!(
        text,
        "<p>One shift of each scenario, played by {} {}. All policies of a drawing meet the same demand \
         and the same events; dashed vertical lines mark the events. Seed <b>{}</b>, split <b>{}</b>. \
         One shift is an anecdote: <code>oncall eval</code> compares policies over many.</p>",
        policies.len(),
        if policies.len() == 1 { "policy" } else { "policies" },
        which.seed,
        which.split.name()
    );
    text.push_str("<div class=\"legend\">");
    for (index, policy) in policies.iter().enumerate() {
        let class = timeline::class(index);
        let _ = write!(text, "<span><i class=\"{class}\"></i>{}</span>", escape(policy));
    }
    text.push_str("</div>\n");
    for chapter in chapters {
        write_chapter(&mut text, chapter, which);
    }
    text.push_str(
        "<footer>A model for teaching and research: every relation is textbook, every constant an \
         illustration. No advice for a real site.</footer>\n</main>\n</body>\n</html>\n",
    );
    text
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
    text.push_str("<th>budget burned</th><th>pages</th><th>mitigated in</th></tr>\n");
    let best = recordings.iter().map(|recording| recording.ending.stats.return_);
    let best = best.fold(f64::NEG_INFINITY, f64::max);
    for (index, recording) in recordings.iter().enumerate() {
        let (stats, outcome) = (&recording.ending.stats, &recording.ending.outcome);
        let mark = if stats.return_ >= best { " class=\"best\"" } else { "" };
        let _ = write!(
            text,
            "<tr{mark}><td class=\"who\"><i class=\"{}\"></i>{}</td><td>{:.2}</td>",
            timeline::class(index),
            escape(&recording.policy),
            stats.return_
        );
        for &dollars in &stats.terms {
            let _ = write!(text, "<td>{:.2}</td>", dollars + 0.0);
        }
        let mitigated = match (outcome.minutes_to_mitigate, outcome.unmitigated) {
            (None, _) => "–".to_owned(),
            (Some(minutes), true) => format!("not after {minutes} min"),
            (Some(minutes), false) => format!("{minutes} min"),
        };
        let _ = writeln!(
            text,
            "<td>{:.2} %</td><td>{}</td><td>{mitigated}</td></tr>",
            100.0 * stats.cost,
            outcome.pages
        );
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
