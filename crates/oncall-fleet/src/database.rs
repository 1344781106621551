//! Step 8: the database.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::params::Database;
use oncall_core::math;

/// Load of a minute and what it does to a query.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Load {
    /// Load over capacity; may exceed 1.
    pub utilization: f64,
    /// Time of a query.
    pub query_ms: f64,
}

/// Query time `t / (1 - rho)`, at most its value at saturation (utilisation law, M/M/1).
#[inline(always)]
pub fn load(database: &Database, queries_per_s: f64) -> Load {
    let utilization = queries_per_s * (1.0 / database.capacity_qps);
    let query_ms = if utilization < 1.0 {
        math::min(database.query_ms / (1.0 - utilization), database.query_ms_max)
    } else {
        database.query_ms_max
    };
    Load { utilization, query_ms }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    #[test]
    fn queries_slow_down_up_to_the_limit() {
        let database = Database::defaults();
        let at = |qps| load(&database, qps).query_ms;
        assert_eq!([0.0, 2000.0, 3950.0, 4000.0, 9e9].map(at), [5.0, 10.0, 250.0, 250.0, 250.0]);
        assert!((at(3900.0) - 200.0).abs() < 1e-9);
        assert_eq!(load(&database, 5000.0).utilization, 1.25);
    }
}
