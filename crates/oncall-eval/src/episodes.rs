//! CSV, one row an episode.
//!
//! `scenario`, `policy`, `split`, `index` (from 0; equal ones are the same morning for all policies),
//! `seed` and `episode` (`oncall run SCENARIO --seed SEED --split SPLIT` plays it), `played` (of a mixture the
//! scenario that the episode drew, else the scenario again), `minutes`, `return_usd`, the reward terms by
//! name and `budget_burned`; in a world with a pager `pages`, `minutes_to_mitigate` (empty where it never
//! burned) and `unmitigated` (0 or 1); then the metrics of the world by name. Numbers are the shortest text
//! that reads back the same.

use crate::metrics::{Outcome, table};
use crate::report::ScenarioEpisodes;
use crate::runner::EpisodeResult;
use oncall_core::{Spec, Split};
use std::io::{self, Write};

/// Writes all episodes.
pub fn write(
    out: impl Write,
    spec: &Spec,
    split: Split,
    scenarios: &[ScenarioEpisodes],
) -> io::Result<()> {
    let mut csv = csv::Writer::from_writer(out);
    let before = ["scenario", "policy", "split", "index", "seed", "episode", "played"];
    let incident: &[&str] = match spec.signal("page") {
        Some(_) => &["pages", "minutes_to_mitigate", "unmitigated"],
        None => &[],
    };
    let metrics = table(spec.world).iter().map(|metric| metric.name);
    let after = ["budget_burned"].into_iter().chain(incident.iter().copied()).chain(metrics);
    let terms = spec.terms.iter().map(|term| term.name);
    csv.write_record(
        before.into_iter().chain(["minutes", "return_usd"]).chain(terms).chain(after),
    )?;
    for scenario in scenarios {
        for policy in &scenario.policies {
            for (index, episode) in policy.episodes.iter().enumerate() {
                let names = [&scenario.name, &policy.name].map(ToString::to_string);
                let split = [split.name().to_owned(), index.to_string()];
                csv.write_record(names.into_iter().chain(split).chain(fields(episode)))?;
            }
        }
    }
    csv.flush()
}

fn fields(episode: &EpisodeResult) -> Vec<String> {
    let mut fields = vec![
        episode.seed.to_string(),
        episode.episode.to_string(),
        episode.played.clone(),
        episode.minutes.to_string(),
        episode.return_.to_string(),
    ];
    fields.extend(episode.terms.iter().map(ToString::to_string));
    fields.push(episode.budget_burned.to_string());
    if let Some(Outcome { pages, minutes_to_mitigate, unmitigated }) = episode.incident {
        fields.extend([
            pages.to_string(),
            minutes_to_mitigate.map(|minutes| minutes.to_string()).unwrap_or_default(),
            u8::from(unmitigated).to_string(),
        ]);
    }
    fields.extend(episode.metrics.iter().map(ToString::to_string));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::PolicyEpisodes;

    #[test]
    fn one_row_an_episode() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let terms: Vec<f64> = (0..spec.terms.len()).map(|i| 0.1 * i as f64).collect();
        let burned = EpisodeResult {
            seed: u64::MAX,
            episode: 0,
            played: "spike".to_owned(),
            minutes: 240,
            return_: -0.1 - 0.2,
            terms,
            budget_burned: 0.25,
            incident: Some(Outcome { pages: 2, minutes_to_mitigate: Some(12), unmitigated: true }),
            metrics: Vec::new(),
        };
        let quiet = EpisodeResult { incident: Some(Outcome::default()), ..burned.clone() };
        let policy = PolicyEpisodes {
            name: "hpa:target=0.5,min=6".to_owned(),
            params: Vec::new(),
            is_rule: true,
            episodes: vec![burned, quiet],
        };
        let scenario =
            ScenarioEpisodes { name: "spike".to_owned(), hash: 1, policies: vec![policy] };
        let mut out = Vec::new();
        write(&mut out, &spec, Split::Test, &[scenario]).unwrap();
        let mut reader = csv::Reader::from_reader(out.as_slice());
        let header = reader.headers().unwrap().clone();
        let of = |row: &csv::StringRecord, name: &str| {
            row[header.iter().position(|known| known == name).unwrap()].to_owned()
        };
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);
        assert_eq!(of(&rows[0], "policy"), "hpa:target=0.5,min=6");
        assert_eq!(of(&rows[0], "seed"), u64::MAX.to_string());
        assert_eq!(of(&rows[0], "played"), "spike");
        assert_eq!(of(&rows[0], "return_usd").parse::<f64>().unwrap(), -0.1 - 0.2);
        assert_eq!(of(&rows[0], spec.terms[3].name).parse::<f64>().unwrap(), 0.1 * 3.0);
        assert_eq!(of(&rows[1], "index"), "1");
        let last = ["minutes_to_mitigate", "unmitigated"];
        assert_eq!(last.map(|name| of(&rows[0], name)), ["12", "1"]);
        assert_eq!(last.map(|name| of(&rows[1], name)), ["", "0"]);
    }
}
