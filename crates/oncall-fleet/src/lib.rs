//! The fleet world: a web service behind a load balancer, minute by minute.
//!
//! One step is one minute of an on-call shift. The operator stands in front of a load balancer, a
//! fleet of instances, a cache, a database and a 99.9 % availability objective counted over 30 days.
//!
//! | step of the minute | file |
//! |---|---|
//! | 1 boots, 3 floor, 14 autoscaler | [`capacity`] |
//! | 2 presses, and the order of all | [`step`] |
//! | 4 events | [`events`] |
//! | 5 demand | [`demand`] |
//! | 7 and 14 cache | [`cache`] |
//! | 8 database | [`database`] |
//! | 9 and 10 queue | [`queue`], [`erlang`] |
//! | 11 and 12 errors and budget | [`budget`] |
//! | 13 money and the reward | [`reward`] |
//!
//! **What the model is not.** Every relation is textbook and every constant an illustration: a
//! teaching and research model, no advice for a real site, whose constants are calibrated to its own
//! machines and data. The queue is taken as stationary within the minute, p99 adds two quantiles, and
//! nothing inside a minute is simulated request by request.
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_methods, clippy::disallowed_types, clippy::float_cmp)
)]

pub mod budget;
pub mod cache;
pub mod capacity;
pub mod database;
pub mod demand;
pub mod dials;
pub mod erlang;
pub mod events;
pub mod invariants;
pub mod lanes;
pub mod params;
pub mod queue;
pub mod reward;
pub mod signals;
pub mod state;
pub mod step;
pub mod world;

pub use lanes::FleetLanes;
pub use params::Params;
pub use signals::Sig;
pub use state::Lane;
pub use world::FleetWorld;
