//! `oncall list`: what comes along.
//!
//! `--json` prints one object: `schema_version`, `scenarios` (a list of `name`, `title`,
//! `description`, `hash`), and `policies` (a list of `name`, `doc`, `worlds`).

use crate::args::ListArgs;
use crate::output::{Table, hex, print, print_json};
use serde_json::{Value, json};

/// Prints the shipped scenarios and policies.
pub fn run(args: &ListArgs) -> anyhow::Result<()> {
    let scenarios: Vec<_> =
        oncall_env::shipped_names().into_iter().filter_map(oncall_env::shipped).collect();
    let policies: Vec<_> = oncall_planner::policies().collect();
    if args.json {
        let scenario = |scenario: &oncall_env::Scenario| {
            json!({
                "name": scenario.name,
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
    let mut known = Table::new(&["scenario", "what happens"]);
    for scenario in scenarios {
        known.row(vec![scenario.name, scenario.title]);
    }
    let mut rules = Table::new(&["policy", "plays", "what it does"]);
    for policy in policies {
        let cells = [policy.name.to_owned(), policy.worlds.join(", "), policy.doc.to_owned()];
        rules.row(cells.to_vec());
    }
    print(&format!(
        "{}\n{}\nMore: oncall describe SCENARIO, oncall describe --policies\n",
        known.text(),
        rules.text()
    ))
}
