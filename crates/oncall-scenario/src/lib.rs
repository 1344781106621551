//! Scenario files: text to validated parameters, every error at once.
//!
//! A scenario is a JSON file. Everything but `schema_version`, `world` and `name` may be left out;
//! the defaults, ranges and units stand in the field tables of [`oncall_fleet::params`], and the
//! JSON Schema ([`schema_json`]) is made from the same tables.
//!
//! ```json
//! { "schema_version": 1, "world": "fleet", "name": "two-links",
//!   "demand": {"base_rps": {"uniform": [900, 1100]}},
//!   "surges": [{"start_min": {"uniform": [20, 160]}, "size": {"choice": [1, 2, 4]}}] }
//! ```
//!
//! Any number may be a distribution. They are drawn once an episode, in the order of the file, so
//! this room keeps the order of the keys.
//!
//! | file | what it does |
//! |---|---|
//! | `node` | JSON with the order of its keys and every duplicate, and its printer |
//! | `error` | the list of problems, each with path, value and expectation |
//! | `object` | fields of an object: unknown, duplicate, missing |
//! | `number` | a number or a distribution |
//! | `fleet` | a scenario of the fleet, and `rules` between its numbers |
//! | `discovery` | a scenario of discovery |
//! | `worlds` | what the loader asks of a world |
//! | `load` | a scenario or a mixture, from text to a world |
//! | `table`, `series`, `dials` | CSV: rows, demand by minute, dials by minute |
//! | `schema` | JSON Schema from the field tables |
//! | `shipped` | the scenarios that come along |
//!
//! This room opens no files: texts come in through [`Files`].

mod canonical;
mod dials;
mod discovery;
mod error;
mod files;
mod fleet;
mod load;
mod node;
mod number;
mod object;
mod rules;
mod schema;
mod series;
mod shipped;
mod suggest;
mod table;
mod worlds;

pub use dials::dials_csv;
pub use error::{Problem, ScenarioErrors};
pub use files::{Files, MemoryFiles, NoFiles, ShippedOr};
pub use load::{AnyScenario, Scenario, load, load_any, load_named};
pub use schema::{discovery_schema_json, schema_json};
pub use series::demand_csv;
pub use shipped::{Shipped, ShippedFiles, shipped, shipped_discovery, shipped_text};
