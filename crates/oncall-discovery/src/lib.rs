//! The service-discovery control plane and its proxies as components without I/O, clock or random numbers.
//!
//! Four things are kept apart (R17): the *catalog* records who claims to run where, *health* decides whether an
//! instance should get traffic now, *distribution* delivers candidates, a *proxy* selects one. Two clocks run on
//! two paths (R5): a deliberate withdrawal is one accepted transition away from the proxies (3 s); a silent death
//! has to be found by probes first (15 s). A lease is only the safety net for abandoned records (R78).
//!
//! Every component is a value: it takes the time and an input and writes messages, timers and measurements into
//! an [`types::Out`]. It can be cloned at any moment, and the same inputs give the same outputs to the bit.
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod auth;
pub mod catalog;
pub mod dials;
pub mod distrib;
pub mod health;
pub mod lease;
pub mod mutants;
pub mod policy;
pub mod proxy;
pub mod registration;
pub mod types;

#[cfg(test)]
mod plane_tests;
