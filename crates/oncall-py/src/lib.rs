//! The Python boundary: conversions only.
//!
//! Python sees one class that steps a batch ([`vec_core::VecCore`]), one for rule-based policies, and
//! the command line. Everything else, from spaces to Gymnasium's classes, is Python in
//! `python/oncall_gym`, which is the only caller.
//!
//! **What this crate does not know:** the model, defaults of a scenario, JSON, and arithmetic on
//! results. It checks arrays and arguments, borrows memory for the time of a call, lets go of the
//! interpreter where that is worth it, and turns errors into exceptions. No panic crosses it.

mod actions;
mod ahead;
mod arrays;
#[cfg(feature = "bench-worlds")]
mod bench_worlds;
mod describe;
mod detach;
mod errors;
mod events;
mod files;
mod keywords;
mod policies;
mod pools;
mod slot;
mod store;
mod vec_core;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::policies::PolicyCore;
    #[pymodule_export]
    use crate::vec_core::VecCore;
    use pyo3::prelude::*;
    use std::ffi::OsString;

    /// Version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Names of the scenarios that come along: those of the fleet, then those of discovery.
    #[pyfunction]
    fn scenario_names() -> Vec<&'static str> {
        [oncall_env::shipped_names(), oncall_env::discovery_names()].concat()
    }

    /// World of a shipped scenario, None if there is none of that name.
    #[pyfunction]
    fn scenario_world(name: &str) -> Option<&'static str> {
        if oncall_env::shipped_names().contains(&name) {
            return Some("fleet");
        }
        oncall_env::discovery_names().contains(&name).then_some("discovery")
    }

    /// JSON text of a shipped scenario, None if there is none of that name.
    #[pyfunction]
    fn scenario_text(name: &str) -> Option<&'static str> {
        oncall_env::shipped_text(name)
    }

    /// Names of the rule-based policies, each with a sentence and the worlds that it plays.
    #[pyfunction]
    fn policies() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
        crate::policies::described()
    }

    /// Runs the command line with these arguments, the program's name not among them, and returns its
    /// exit code.
    #[pyfunction]
    fn cli_main(py: Python<'_>, args: Vec<String>) -> i32 {
        let args = std::iter::once("oncall".to_owned()).chain(args).map(OsString::from);
        let args: Vec<OsString> = args.collect();
        py.detach(|| oncall_cli::run(args))
    }
}
