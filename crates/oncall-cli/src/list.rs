//! `oncall list`: what comes along.
//!
//! `--json` prints one object: `schema_version`, `scenarios` (a list of `name`, `world`, `title`,
//! `description`, `hash`), and `policies` (a list of `name`, `doc`, `worlds`).

use crate::args::ListArgs;
use crate::output::{Table, hex, print, print_json};
use serde_json::{Value, json};

/// Prints the shipped scenarios and policies.
pub fn run(args: &ListArgs) -> anyhow::Result<()> {
    let names = [oncall_env::shipped_names(), oncall_env::discovery_names()];
    let scenarios: Vec<_> = names.into_iter().flatten().filter_map(oncall_env::shipped).collect();
    let policies: Vec<_> = oncall_planner::policies().collect();
    if args.json {
        let scenario = |scenario: &oncall_env::Scenario| {
            json!({
                "name": scenario.name,
                "world": scenario.world.spec().world,
                "title": scenario.title,
                "description": scenario.description,
                "hash": hex(scenario.hash),
            })
        };
        return print_json(&json!({
            "schema_version": 1,
            "scenarios": scenarios.iter().map(scenario).collect::<Vec<Value>>(),
            "policies": policies
                .iter()
                .map(|policy| json!({"name": policy.name, "doc": policy.doc, "worlds": policy.worlds}))
                .collect::<Vec<Value>>(),
        }));
    }
    let mut known = Table::new(&["scenario", "world", "what happens"]);
    for scenario in scenarios {
        let world = scenario.world.spec().world.to_owned();
        known.row(vec![scenario.name, world, scenario.title]);
    }
    let mut rules = Table::new(&["policy", "plays", "what it does"]);
    for policy in policies {
        let cells = [policy.name.to_owned(), policy.worlds.join(", "), policy.doc.to_owned()];
        rules.row(cells.to_vec());
    }
    print(&format!(
        "{}\n{}\nScenarios of discovery have a fleet of three sizes: NAME, NAME@tenth, NAME@full.\n\
         More: oncall describe SCENARIO, oncall describe --policies\n",
        known.text(),
        rules.text()
    ))
}
