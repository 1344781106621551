//! Step 13 and the reward: what a minute costs. Nothing else knows money.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::params::Prices;
use oncall_core::math;

/// Number of reward terms.
pub const TERMS: usize = 6;

/// What is paid for in a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bill {
    /// Instances billed: serving, booting and the second fleet of a rollback.
    pub instances: f64,
    /// Share of the month's error budget burned.
    pub burned: f64,
    /// Share of it that is left afterwards.
    pub budget_left: f64,
    /// Requests refused.
    pub shed_requests: f64,
    /// Requests admitted.
    pub admitted_requests: f64,
    /// Whether the recommendations were on.
    pub feature: bool,
    /// 99th percentile of the latency.
    pub p99_s: f64,
    /// Requests answered by the cache.
    pub cache_answers: f64,
    /// Mean age of such an answer.
    pub cache_age_s: f64,
}

/// Dollars of the fleet in an hour.
#[inline(always)]
pub fn fleet_usd_h(prices: &Prices, instances: f64) -> f64 {
    prices.instance_usd_h * instances
}

/// Dollars of a minute by term, in the order of `Spec.terms`: fleet, budget, shed, recommendations,
/// latency, staleness. The reward is minus their sum.
#[inline(always)]
pub fn terms(prices: &Prices, bill: &Bill) -> [f64; TERMS] {
    let overdrawn = math::min(math::max(-bill.budget_left, 0.0), bill.burned);
    let admitted_millions = bill.admitted_requests * 1e-6;
    let slow_s = math::max(bill.p99_s - prices.latency_free_s, 0.0);
    let degraded = if bill.feature { 0.0 } else { 1.0 };
    [
        fleet_usd_h(prices, bill.instances) * (1.0 / 60.0),
        prices.budget_usd * ((bill.burned - overdrawn) + prices.overdraft_factor * overdrawn),
        prices.shed_usd_per_million * (bill.shed_requests * 1e-6),
        prices.recommendations_usd_per_million * admitted_millions * degraded,
        prices.latency_usd_per_million_s * admitted_millions * slow_s,
        prices.staleness_usd_per_million_s * (bill.cache_answers * 1e-6) * bill.cache_age_s,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    const QUIET: Bill = Bill {
        instances: 10.0,
        burned: 0.0,
        budget_left: 1.0,
        shed_requests: 0.0,
        admitted_requests: 1e6,
        feature: true,
        p99_s: 0.3,
        cache_answers: 1e6,
        cache_age_s: 30.0,
    };

    #[test]
    fn each_term_has_its_price() {
        let prices = Prices::defaults();
        let near = |bill: Bill, expected: [f64; TERMS]| {
            for (found, expected) in terms(&prices, &bill).iter().zip(expected) {
                assert!((found - expected).abs() < 1e-12, "{found} {expected}");
            }
        };
        let fleet = 4.0 / 60.0;
        near(QUIET, [fleet, 0.0, 0.0, 0.0, 0.0, 0.06]);
        near(Bill { shed_requests: 5e5, ..QUIET }, [fleet, 0.0, 3.0, 0.0, 0.0, 0.06]);
        near(Bill { feature: false, ..QUIET }, [fleet, 0.0, 0.0, 3.0, 0.0, 0.06]);
        near(Bill { p99_s: 2.5, ..QUIET }, [fleet, 0.0, 0.0, 0.0, 15.0, 0.06]);
    }

    #[test]
    fn the_part_beyond_an_empty_budget_costs_three_times() {
        let prices = Prices::defaults();
        let cost = |before: f64, after: f64| {
            terms(&prices, &Bill { burned: before - after, budget_left: after, ..QUIET })[1]
        };
        assert!((cost(0.5, 0.4) - 100.0).abs() < 1e-9);
        assert!((cost(0.1, -0.1) - 400.0).abs() < 1e-9);
        assert!((cost(-0.1, -0.2) - 300.0).abs() < 1e-9);
    }
}
