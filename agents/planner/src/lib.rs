//! Planners: search over dial schedules with a copy of the world.

mod clairvoyant;
mod episode;
mod error;
mod fleet;
mod level;
mod local;
mod presses;
mod reference;
mod search;
mod seeds;
mod solve;
mod table;
#[cfg(test)]
mod tests;

pub use clairvoyant::{
    Batch, EPISODES_MAX, Planned, plan_batch, plan_episodes, plan_row, play_row,
};
pub use episode::Schedule;
pub use error::PlannerError;
pub use reference::{
    PLANNER_VERSION, PlannedScenario, PlannerReference, REFERENCE_SEARCH, Recomputed,
    ReferenceCheck, planner_reference, reference_check, summarise,
};
pub use search::Search;
