//! `oncall describe`: a scenario, and what goes into its world and comes out; or the policies.
//!
//! `describe SCENARIO --json` prints one object: `schema_version`, `name`, `title`, `description`,
//! `hash`, `spec_hash`, `world`, `spec_version`, `generator`, `variants` (what is played: one, or
//! those of a mixture), `dials`, `signals`, `terms`, `cost`. A variant has `name`, `share` (of the
//! episodes), `length_min`, `hide_build_truth`, `series_min` (minutes of a demand
//! series, or `null`), and `numbers`: those that differ from the defaults and all of the events, each
//! with `path`, `value` (a number, or a distribution as a scenario file writes it), `default`, `unit`
//! and `doc`.
//!
//! `describe --policies --json` prints `schema_version` and `policies`, a list of `name`, `doc` and
//! `params` (`name`, `unit`, `low`, `high`, `default` or `null`, `whole`, `doc`).

mod discovery;
mod fleet;
mod said;

use crate::args::DescribeArgs;
use crate::output::{Table, hex, print, print_json, short, wrap};
use crate::scenarios;
use oncall_core::{Dial, DialKind, Scale, Signal, Spec, View};
use oncall_env::{AnyWorld, Scenario};
use oncall_heuristics::Param;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// Prints the description.
pub fn run(args: &DescribeArgs) -> anyhow::Result<()> {
    let Some(name) = &args.scenario else {
        return if args.json { print_json(&policies_json()) } else { print(&policies_text()) };
    };
    let scenario = scenarios::open_at(name, args.scale)?;
    if args.json { print_json(&scenario_json(&scenario)) } else { print(&scenario_text(&scenario)) }
}

fn scenario_text(scenario: &Scenario) -> String {
    let spec = scenario.world.spec();
    let mut text = format!("{}: {}\n", scenario.name, scenario.title);
    if !scenario.description.is_empty() {
        let _ = writeln!(text, "{}", wrap(&scenario.description, 100).join("\n"));
    }
    let _ = writeln!(
        text,
        "\nhash {}, spec {} (world {}, version {}), generator {}",
        hex(scenario.hash),
        hex(spec.hash()),
        spec.world,
        spec.version,
        scenario.world.generator().name()
    );
    match &scenario.world {
        AnyWorld::Fleet(world) => fleet::write_text(&mut text, world),
        AnyWorld::Discovery(world) => discovery::write_text(&mut text, world),
    }
    let _ = write!(text, "\nDials (what the operator turns)\n{}", dials_table(&spec.dials).text());
    let _ = write!(
        text,
        "\nReadouts (* not on the operator's dashboard, + also a column of the CSV)\n{}",
        signals_table(&spec.signals).text()
    );
    let mut terms = Table::new(&["term", "what is paid for"]);
    for term in &spec.terms {
        terms.row(vec![term.name.to_owned(), format!("{}: {}", term.label, term.doc)]);
    }
    let _ = write!(
        text,
        "\nReward (dollars a {}, minus the sum of the terms)\n{}",
        tick(spec),
        terms.text()
    );
    text
}

/// The shortest step of a world, in words.
fn tick(spec: &Spec) -> String {
    if spec.tick_s == 60 { "minute".to_owned() } else { format!("tick of {} s", spec.tick_s) }
}

/// `0..600`, or the words of a switch or a press.
fn dial_range(dial: &Dial) -> String {
    match dial.kind {
        DialKind::Switch => "off, on".to_owned(),
        DialKind::Press => "press".to_owned(),
        DialKind::Count | DialKind::Real | DialKind::Log => {
            format!("{}..{}", short(dial.low, 3), short(dial.high, 3))
        }
    }
}

fn dials_table(dials: &[Dial]) -> Table {
    let mut table = Table::new(&["dial", "range", "unit", ">default", "meaning"]);
    for dial in dials {
        let default = match dial.kind {
            DialKind::Press => "-".to_owned(),
            DialKind::Switch => if dial.default > 0.5 { "on" } else { "off" }.to_owned(),
            _ => short(dial.default, 3),
        };
        let (name, unit) = (dial.name.to_owned(), dial.unit.to_owned());
        table.row(vec![name, dial_range(dial), unit, default, dial.doc.to_owned()]);
    }
    table
}

fn signals_table(signals: &[Signal]) -> Table {
    let mut table = Table::new(&["readout", "", "unit", "meaning"]);
    for signal in signals {
        let hidden = if signal.view == View::Operator { "" } else { "*" };
        let column = if signal.column { "+" } else { "" };
        let marks = format!("{hidden}{column}");
        let (name, unit) = (signal.name.to_owned(), signal.unit.to_owned());
        table.row(vec![name, marks, unit, signal.doc.to_owned()]);
    }
    table
}

fn scenario_json(scenario: &Scenario) -> Value {
    let spec = scenario.world.spec();
    let variants = match &scenario.world {
        AnyWorld::Fleet(world) => fleet::as_json(world),
        AnyWorld::Discovery(world) => discovery::as_json(world),
    };
    json!({
        "schema_version": 1,
        "name": scenario.name,
        "title": scenario.title,
        "description": scenario.description,
        "hash": hex(scenario.hash),
        "spec_hash": hex(spec.hash()),
        "world": spec.world,
        "spec_version": spec.version,
        "tick_s": spec.tick_s,
        "generator": scenario.world.generator().name(),
        "variants": variants,
        "dials": spec.dials.iter().map(dial_json).collect::<Vec<_>>(),
        "signals": spec.signals.iter().map(signal_json).collect::<Vec<_>>(),
        "terms": terms_json(spec),
        "cost": spec.cost,
    })
}

fn dial_json(dial: &Dial) -> Value {
    json!({
        "name": dial.name,
        "label": dial.label,
        "unit": dial.unit,
        "kind": dial.kind.name(),
        "low": dial.low,
        "high": dial.high,
        "default": dial.default,
        "stops": dial.stops,
        "doc": dial.doc,
    })
}

fn signal_json(signal: &Signal) -> Value {
    let knee = match signal.scale {
        Scale::Linear | Scale::Log => None,
        Scale::Symlog { knee } => Some(knee),
    };
    json!({
        "name": signal.name,
        "label": signal.label,
        "unit": signal.unit,
        "low": signal.low,
        "high": signal.high,
        "scale": signal.scale.name(),
        "knee": knee,
        "view": signal.view.name(),
        "column": signal.column,
        "doc": signal.doc,
    })
}

fn terms_json(spec: &Spec) -> Vec<Value> {
    let terms = spec.terms.iter();
    terms.map(|term| json!({"name": term.name, "label": term.label, "doc": term.doc})).collect()
}

fn policies() -> impl Iterator<Item = &'static oncall_heuristics::Description> {
    oncall_planner::policies()
}

/// Parameters of a schedule differ by their block only; more than this are not worth a line each.
const PARAMS_SHOWN_MAX: usize = 40;

fn policies_text() -> String {
    let mut text = String::from(
        "Policies. Parameters are written as in hpa:target=0.5,min=6; the others are those tuned for \
         the scenario,\nor the defaults below. fixed-20 is short for a fixed fleet of 20 instances.\n",
    );
    for policy in policies() {
        let (name, worlds) = (policy.name, policy.worlds.join(", "));
        let _ = writeln!(text, "\n{name} ({worlds})\n  {}", wrap(policy.doc, 100).join("\n  "));
        if policy.params.is_empty() {
            continue;
        }
        let mut table = Table::new(&["parameter", "range", "unit", ">default", "meaning"]);
        for param in policy.params.iter().take(PARAMS_SHOWN_MAX) {
            let range = format!("{}..{}", short(param.low, 4), short(param.high, 4));
            let default = param.default.map_or("as it stands".to_owned(), |value| short(value, 4));
            let (name, unit) = (param.name.to_string(), param.unit.to_owned());
            table.row(vec![name, range, unit, default, param.doc.to_owned()]);
        }
        text.push_str(&table.text());
        if let Some(more) = policy.params.len().checked_sub(PARAMS_SHOWN_MAX).filter(|&n| n > 0) {
            let _ = writeln!(text, "  and {more} more (see --json)");
        }
    }
    text
}

fn policies_json() -> Value {
    let param = |param: &Param| {
        json!({
            "name": param.name,
            "unit": param.unit,
            "low": param.low,
            "high": param.high,
            "default": param.default,
            "whole": param.whole,
            "doc": param.doc,
        })
    };
    let policy = |policy: &'static oncall_heuristics::Description| {
        json!({
            "name": policy.name,
            "doc": policy.doc,
            "worlds": policy.worlds,
            "params": policy.params.iter().map(param).collect::<Vec<_>>(),
        })
    };
    json!({"schema_version": 1, "policies": policies().map(policy).collect::<Vec<_>>()})
}
