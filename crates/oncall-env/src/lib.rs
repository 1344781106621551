//! The closed list of worlds behind one type, and scenarios ready to play.
//!
//! Everything to the right of this room (Python, the command line, agents) sees [`AnyVecEnv`] and
//! does not know which world it steps: one `match` a call, none per row. This room opens no files:
//! the caller supplies texts through [`Files`].

mod any;
mod load;

pub use any::{AnySnapshot, AnyVecEnv, AnyWorld};
pub use load::{ScaleError, Scenario, discovery_names, load, load_named, shipped, shipped_names};
pub use oncall_scenario::{
    Files, MemoryFiles, NoFiles, ScenarioErrors, ShippedFiles, ShippedOr, demand_csv, dials_csv,
    discovery_schema_json, schema_json, shipped_text,
};
pub use oncall_vec::{
    Actions, Autoreset, Columns, DECISION_INTERVAL_MIN_MAX, EPISODE_MINUTES_MAX, EpisodeStats,
    ErrorKind, NUM_ENVS_MAX, Options, OwnedColumns, ResetColumns, RowInfo, Seeds, StepSummary,
    THREADS_MAX, VecError,
};
