//! Planners: search over dial schedules with a copy of the world.
//!
//! The clairvoyant planner knows a morning in advance: its noise is a function of the episode's key. What
//! it reaches is score 100 of the scenario, a planner's score and not a proven bound.
//!
//! | file | what is in it |
//! |---|---|
//! | `clairvoyant` | many episodes on some threads |
//! | `search` | the stages: rules, fleet, presses, local search, restarts |
//! | `seeds` | what the rules do on the very episode |
//! | `episode` | a shift that is played again and again, from where it changes to where it no longer differs |
//! | `level` | the cheapest shed share, recommendations and TTL of a minute |
//! | `table`, `fleet`, `solve` | the cheapest fleet of a shift by dynamic programming |
//! | `informed` | the same without foresight: told of an incident when it can first be seen |
//! | `presses`, `local` | presses and blocks moved while it pays |
//! | `receding` | an honest planner, which knows no more than the operator, as a policy |
//! | `reference` | the committed constants, and a sample of them computed again |

mod clairvoyant;
mod episode;
mod error;
mod fleet;
mod informed;
mod level;
mod local;
mod presses;
mod receding;
mod reference;
mod registry;
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
pub use informed::{INFORMED_SEARCH, InformedScenario, Posture, Told, informed, plan_informed};
pub use receding::{RECEDING_NAME, RecedingPlanner};
pub use reference::{
    PLANNER_VERSION, PlannedScenario, PlannerReference, REFERENCE_SEARCH, Recomputed,
    ReferenceCheck, planner_reference, reference_check, standard_error, summarise,
};
pub use registry::{build_policy, policies};
pub use search::Search;
