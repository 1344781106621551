//! Discrete-event simulation of the discovery control plane: network, faults, traffic in expectation, invariants.

pub mod fuzz;
pub mod ledger;
pub mod messages;
pub mod noise;
pub mod oracle;
pub mod picture;
pub mod queue;
pub mod report;
pub mod schedule;
pub mod topology;
pub mod verify;
pub mod world;

pub use oncall_discovery::dials;
