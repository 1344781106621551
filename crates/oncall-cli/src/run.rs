//! `oncall run`: one episode as CSV, and its summary.
//!
//! The CSV has a column `seed`, the same in every row, so that a file says which shift it is, a column
//! `minute` (from 0), then the readouts by name in the order of the `Spec`, the
//! reward's terms, and `reward`; one row is a minute as it was played. Numbers are written so that
//! they read back as the same bits.
//!
//! `--json` prints one object: `schema_version`, `scenario`, `variant` (of a mixture, the scenario
//! drawn), `scenario_hash`, `spec_hash`, `seed`, `split`, `policy` (or `null` with `--dials`),
//! `minutes`, `return` (dollars), `terms` (dollars by name), `budget_burned` (share of the month's
//! budget), in a world with a pager `pages`, `minutes_to_mitigate` (`null` if nothing burned) and
//! `unmitigated`, in others `metrics` (the world's metrics by name), `drawn` (what the scenario's
//! distributions drew), `digest` (hash of the final state).

use crate::args::RunArgs;
use crate::output::{create, exact, hex, note, print, print_json, short};
use crate::play::{Driver, Ending, Shift, Which, random_seed};
use crate::scenarios;
use anyhow::{Context as _, anyhow, ensure};
use oncall_core::{Signal, Spec};
use oncall_env::Scenario;
use oncall_eval::metrics::Outcome;
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Plays an episode.
pub fn run(args: &RunArgs) -> anyhow::Result<()> {
    let is_piped = args.out.as_deref() == Some(Path::new("-"));
    ensure!(
        !(is_piped && args.json),
        "--out -: expected a file beside --json, whose summary goes to standard output"
    );
    let mut scenario = scenarios::open_at(&args.scenario, args.scale)?;
    if let Some(path) = &args.demand {
        let text = scenarios::read_text(path)?;
        let rates = oncall_env::demand_csv(&path.display().to_string(), &text)
            .map_err(|problems| anyhow!("{problems}"))?;
        let pinned = scenario.world.pin_demand(Some(rates));
        ensure!(pinned, "the world of {} takes no demand", scenario.name);
    }
    let mut driver = driver(args, &scenario)?;
    let which = Which {
        seed: args.seed.unwrap_or_else(random_seed),
        split: args.split.into(),
        minutes: args.minutes,
    };
    let shift = Shift::begin(&scenario, which)?;
    let file = match (&args.out, args.json) {
        (Some(path), _) => Some(path.clone()),
        (None, true) => None,
        (None, false) => Some(PathBuf::from("-")),
    };
    let spec = scenario.world.spec().clone();
    let ending = match &file {
        None => shift.play(&mut driver, |_| Ok(()))?,
        Some(path) => write_csv(path, (&spec, args.with_dials), shift, &mut driver)?,
    };
    let summary = Summary { args, scenario: &scenario, which, ending: &ending };
    match file {
        _ if args.json => print_json(&summary.json()),
        Some(path) if path == Path::new("-") => {
            note(summary.text().trim_end());
            Ok(())
        }
        _ => print(&summary.text()),
    }
}

fn driver(args: &RunArgs, scenario: &Scenario) -> anyhow::Result<Driver> {
    let Some(path) = &args.dials else { return Driver::policy(&args.policy, scenario) };
    let (name, text) = (path.display().to_string(), scenarios::read_text(path)?);
    let rows = oncall_env::dials_csv(&name, &text, scenario.world.spec())
        .map_err(|problems| anyhow!("{problems}"))?;
    Ok(Driver::Rows(rows))
}

/// Plays a shift and writes every minute.
fn write_csv(
    path: &Path,
    (spec, with_dials): (&Spec, bool),
    shift: Shift,
    driver: &mut Driver,
) -> anyhow::Result<Ending> {
    let mut out = create(path)?;
    let is_dial =
        |name: &str| name.strip_prefix("dial_").is_some_and(|name| spec.dial(name).is_some());
    let is_written = |signal: &Signal| signal.column || (with_dials && is_dial(signal.name));
    let columns: Vec<usize> =
        (0..spec.signals.len()).filter(|&i| is_written(&spec.signals[i])).collect();
    let names = columns.iter().map(|&i| spec.signals[i].name);
    let names =
        ["seed", "minute"].into_iter().chain(names).chain(spec.terms.iter().map(|term| term.name));
    let head: Vec<&str> = names.chain(["reward"]).collect();
    let cannot = || format!("cannot write {}", path.display());
    writeln!(out, "{}", head.join(",")).with_context(cannot)?;
    let (mut line, seed) = (String::new(), shift.seed());
    let ending = shift.play(driver, |minute| {
        line.clear();
        let _ = write!(line, "{seed},{}", minute.index);
        let seen = columns.iter().map(|&i| minute.signals[i]);
        for value in seen.chain(minute.terms.iter().copied()).chain([minute.reward]) {
            line.push(',');
            line.push_str(&exact(value));
        }
        writeln!(out, "{line}").with_context(cannot)
    })?;
    out.flush().with_context(cannot)?;
    Ok(ending)
}

/// What is told about an episode.
struct Summary<'a> {
    args: &'a RunArgs,
    scenario: &'a Scenario,
    which: Which,
    ending: &'a Ending,
}

impl Summary<'_> {
    fn policy(&self) -> Option<&str> {
        self.args.dials.is_none().then_some(self.args.policy.as_str())
    }

    fn json(&self) -> Value {
        let Ending { stats, incident, metrics, drawn, digest, variant } = self.ending;
        let spec = self.scenario.world.spec();
        let terms = spec.terms.iter().zip(&stats.terms);
        let terms: Map<String, Value> =
            terms.map(|(term, &sum)| (term.name.to_owned(), json!(sum))).collect();
        let drawn: Map<String, Value> =
            drawn.iter().map(|(name, value)| (name.clone(), json!(value))).collect();
        let mut object = json!({
            "schema_version": 1,
            "scenario": self.scenario.name,
            "variant": variant,
            "scenario_hash": hex(self.scenario.hash),
            "spec_hash": hex(spec.hash()),
            "seed": self.which.seed,
            "split": self.which.split.name(),
            "policy": self.policy(),
            "minutes": stats.minutes,
            "return": stats.return_,
            "terms": terms,
            "budget_burned": stats.cost,
            "drawn": drawn,
            "digest": hex(*digest),
        });
        if let Some(Outcome { pages, minutes_to_mitigate, unmitigated }) = *incident {
            object["pages"] = json!(pages);
            object["minutes_to_mitigate"] = json!(minutes_to_mitigate);
            object["unmitigated"] = json!(unmitigated);
        }
        if !metrics.is_empty() {
            let metrics = metrics.iter().map(|&(name, value)| (name.to_owned(), json!(value)));
            object["metrics"] = metrics.collect::<Map<String, Value>>().into();
        }
        object
    }

    fn text(&self) -> String {
        let Ending { stats, incident, metrics, drawn, digest, variant } = self.ending;
        let scenario = self.scenario;
        let spec = scenario.world.spec();
        let played =
            if *variant == scenario.name { String::new() } else { format!(" ({variant})") };
        let who = match (&self.args.dials, self.policy()) {
            (Some(path), _) => format!("dials of {}", path.display()),
            (None, policy) => format!("policy {}", policy.unwrap_or_default()),
        };
        let incident = incident.map_or(String::new(), |outcome| format!(", {}", in_words(outcome)));
        let list = |items: Vec<String>| {
            if items.is_empty() { "nothing".to_owned() } else { items.join(", ") }
        };
        let terms = spec.terms.iter().zip(&stats.terms);
        let terms = list(terms.map(|(t, &sum)| format!("{} {}", t.name, short(sum, 3))).collect());
        let measured = if metrics.is_empty() {
            String::new()
        } else {
            let all = metrics.iter().map(|(name, value)| format!("{name} {}", short(*value, 3)));
            format!("measured       {}\n", list(all.collect()))
        };
        let drawn = list(drawn.iter().map(|(n, v)| format!("{n} {}", short(*v, 3))).collect());
        format!(
            "scenario       {}{played}, hash {}, spec {}\nepisode        seed {}, split {}, {who}\n\
             played         {} min, digest {}\nreturn         {} usd\nterms          {terms}\n\
             error budget   {} % of a month burned{incident}\n{measured}drawn          {drawn}\n",
            scenario.name,
            hex(scenario.hash),
            hex(spec.hash()),
            self.which.seed,
            self.which.split.name(),
            stats.minutes,
            hex(*digest),
            short(stats.return_, 4),
            short(100.0 * stats.cost, 3),
        )
    }
}

/// The incident of an episode.
fn in_words(outcome: Outcome) -> String {
    let pages = match outcome.pages {
        1 => "1 page".to_owned(),
        pages => format!("{pages} pages"),
    };
    let mitigated = match (outcome.minutes_to_mitigate, outcome.unmitigated) {
        (None, _) => "nothing to mitigate".to_owned(),
        (Some(minutes), true) => format!("not mitigated after {minutes} min"),
        (Some(minutes), false) => format!("mitigated in {minutes} min"),
    };
    format!("{pages}, {mitigated}")
}
