//! Registration: who may write what into the catalog, and the two that usually do (R31 to R33, R58, R59).
//!
//! With an orchestrator, its [`Controller`] is the source of truth: it compares the desired life cycle with the
//! catalog and writes the difference. Without one, a node's [`agent`] or the workload itself registers, within
//! the limits of an authenticated role. [`admit`] is the only way from a request to a log command; the catalog
//! checks the source once more when it applies.

pub mod agent;
mod controller;
mod request;
mod watch;

#[cfg(test)]
mod tests;

pub use controller::{Controller, Desired, Outcome, Wish};
pub use request::{Admitted, Request, admit};
pub use watch::WatchGrants;
