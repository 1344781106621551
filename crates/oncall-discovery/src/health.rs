//! Health: whether an instance should get traffic now (R19), with four signals kept apart (R103).
//!
//! | signal | who | what it may do |
//! |---|---|---|
//! | startup | the node's agent, or the probers | holds liveness back, lets STARTING become READY (R111) |
//! | readiness | the node's agent, with as much of its dependencies as the dial says | takes traffic away, never restarts (R112, I15) |
//! | liveness | the node's agent, on the spot | restarts the process, and does nothing to the catalog (R113) |
//! | active probes | regional probers, off the node (D3) | READY to UNHEALTHY after `n` failures in a row, back after `m` successes |
//! | passive | proxies of callers | local ejection; here only a complaint that needs a quorum and a failed probe (D9, I13) |
//!
//! The [`Decider`] of a shard's leader turns them into proposals; each carries the revision it was decided on. Two
//! safeguards stand before a removal: a prober that sees too much fail at once is not believed, and a capacity
//! guard limits what a service and a zone may lose within a minute. The guard delays a decision; it never routes
//! to anything that is not READY (D7).

mod decider;
mod dependency;
mod guard;
mod local;
mod passive;
mod probe;
mod prober;

#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod tests;

pub use decider::{Decider, HealthMessage, HealthRules, HealthTimer, PROBERS_MAX, ProbeSeen};
pub use dependency::{DependencyChecks, DependencyMode, Readiness};
pub use guard::{Guard, SlidingCount, allowance};
pub use local::{LocalAction, LocalHealth, LocalRules, LocalSignal};
pub use passive::{Complaint, Complaints, PassiveRule};
pub use probe::{Opinion, ProbeRecord, Thresholds};
pub use prober::{ProberCheck, QuarantineRule};
