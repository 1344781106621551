//! Verification: a whole group in one process, with a network, disks and clocks that fail by plan.
//!
//! A [`Plan`] is data, drawn from a seed: which kinds of trouble are on (each seed another mixture),
//! how strong, and a list of events. [`run`] plays it in two phases. First **safety**: faults happen,
//! and after every input of every replica an omniscient [`Violation`] check runs over all of them.
//! Then **liveness**: the faults stop, and a leader, progress, agreement, and a replica's quiet return
//! must follow within stated times. [`fuzz`] plays many plans, and [`shrink`] makes a failing one small.
//!
//! Every draw is a function of (seed, purpose, who, count), so that taking one event out of a plan
//! moves as little of the rest as possible.

mod disk;
mod draw;
mod faults;
mod fuzz;
mod goals;
mod network;
mod oracle;
mod plan;
mod settle;
mod shrink;
mod trail;
mod watch;
mod workload;
mod world;

pub use fuzz::{Failure, FuzzReport, fuzz, reproduce_command};
pub use goals::{GOALS, Goals};
pub use oracle::{Violation, ViolationKind};
pub use plan::{Action, Event, Off, Plan, Reduction, Who};
pub use shrink::shrink;
pub use world::{Chain, Command, Report, run};

#[cfg(any(test, feature = "mutation"))]
pub use world::run_with;

#[cfg(test)]
mod tests;
