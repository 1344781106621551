//! Discrete-event simulation of the discovery control plane: network, faults, traffic in expectation, invariants.

pub mod ledger;
pub mod noise;
pub mod oracle;
pub mod queue;
pub mod schedule;
pub mod topology;
pub mod world;
