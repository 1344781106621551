//! Dollars: what an episode costs, from counts of the simulator.
//!
//! Budgets are shares of what a month allows, so they are the same at every scale. Costs in proportion to
//! the fleet are those of a fleet of full size: a smaller world stands for it, and trade-offs stay the same.

use oncall_core::Term;

/// Share of requests that may fail.
pub const REQUEST_BUDGET: f64 = 1e-4;
/// Share of withdrawals that may take more than 3 s.
pub const WITHDRAWAL_BUDGET: f64 = 0.01;
/// Share of silent deaths that may be routed to after 15 s.
pub const REMOVAL_BUDGET: f64 = 0.01;

/// Seconds of the month over which budgets are counted.
pub const MONTH_S: f64 = 30.0 * 86_400.0;

/// Withdrawals that a month expects of an instance: eight rollouts of a tenth of the fleet a day, and the
/// ordinary churn.
pub const WITHDRAWALS_PER_INSTANCE: f64 = 76.0;
/// Silent deaths that a month expects of an instance.
pub const REMOVALS_PER_INSTANCE: f64 = 10.0;

/// Dollars for the whole budget of failed requests: 100 for 1 %. A tenth of what the specification began with, as
/// with the other budgets: running costs have to weigh something beside them.
pub const REQUEST_BUDGET_USD: f64 = 10_000.0;
/// Dollars for the whole budget of late withdrawals: 40 for 1 %.
pub const WITHDRAWAL_BUDGET_USD: f64 = 4_000.0;
/// Dollars for the whole budget of late removals: 40 for 1 %.
pub const REMOVAL_BUDGET_USD: f64 = 4_000.0;
/// Requests in a second of a fleet of full size.
pub const FULL_RPS: f64 = 200_000.0;
/// Dollars for a request that found no backend although policy had a live one.
pub const NO_BACKEND_USD: f64 = 1e-4;
/// Dollars for a request cut in flight: what is cut is long work, an upload or a report, done again from its
/// beginning. Fifty times what the specification began with: there, no drain at all was the best one.
pub const FORCED_USD: f64 = 0.05;
/// Dollars for an attempt at an endpoint that had been withdrawn: refused and retried, or served by a process that
/// is about to exit; half of what a failed request costs. Not in the specification: without it nothing pulls
/// against a long coalescing window.
pub const STALE_USD: f64 = 1e-4;
/// Dollars for a minute of rollout beyond its plan. Twice what the specification began with: there, the slowest
/// pace was the best one.
pub const DEPLOY_DELAY_USD: f64 = 10.0;

/// Number of terms.
pub const TERMS: usize = 8;

/// The terms, in the order in which they are written.
pub fn table() -> Vec<Term> {
    let term = |name, label, doc| Term { name, label, doc };
    vec![
        term(
            "ops_usd",
            "Operations",
            "Relays, probers, double running while draining, egress, retention memory, spare capacity.",
        ),
        term(
            "request_budget_usd",
            "Failed requests",
            "Share of the month's budget of failed requests (0.01 %) burned.",
        ),
        term(
            "withdrawal_budget_usd",
            "Late withdrawals",
            "Share of the month's budget of withdrawals later than 3 s (1 %) burned.",
        ),
        term(
            "removal_budget_usd",
            "Late removals",
            "Share of the month's budget of silent deaths routed to after 15 s (1 %) burned.",
        ),
        term(
            "no_backend_usd",
            "No backend",
            "Requests without a backend where policy permitted a live one.",
        ),
        term("forced_usd", "Cut requests", "Requests in flight that an exit cut."),
        term("stale_usd", "Stale requests", "Attempts at endpoints that had been withdrawn."),
        term("deploy_delay_usd", "Late rollouts", "Minutes of rollouts beyond their plan."),
    ]
}
