//! The discovery world as an environment: the control plane of service discovery, ten seconds a tick.
//!
//! | file | what it does |
//! |---|---|
//! | `dials` | the operator's dials, how fast they turn, rules between them |
//! | `scrape` | what exporters report |
//! | `own` | what the console knows without a scrape, and truths |
//! | `signals` | the table of what can be seen |
//! | `reward` | dollars |

pub mod dials;
mod lane;
mod meter;
pub mod own;
pub mod params;
pub mod plan;
pub mod reward;
pub mod scrape;
pub mod signals;
mod window;
mod world;
#[cfg(test)]
mod world_tests;

pub use oncall_discovery_sim::topology::Scale;
pub use params::Params;
pub use world::{DiscoveryWorld, Lane, MixtureError};

use oncall_core::Spec;

/// Rises with any change of a space or a trajectory; see CONTRIBUTING.md.
const VERSION: u32 = 0;

/// Seconds of a tick.
pub const TICK_S: u32 = 10;

/// The spec of discovery, the same for all scenarios and scales.
pub fn spec() -> Spec {
    Spec {
        world: "discovery",
        version: VERSION,
        tick_s: TICK_S,
        dials: dials::table(),
        signals: signals::table(),
        terms: reward::table(),
        cost: "budget_left",
    }
}
