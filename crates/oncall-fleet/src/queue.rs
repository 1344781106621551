//! Steps 9 and 10: service time and the queue in front of the servers (M/M/c).
//!
//! **Approximations.** The queue is taken as stationary within the minute, and `p99` adds the 99 %
//! quantile of an exponential service time to the 99 % quantile of the wait: the sum of two quantiles
//! is not the quantile of the sum.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::erlang::{self, Known};
use oncall_core::math;

/// `ln 100`: the 99 % quantile of an exponential time over its mean.
pub const LN_100: f64 = 4.605_170_185_988_092;
/// The share of requests within the 99 % quantile, over that beyond it.
const PER_TAIL: f64 = 100.0;

/// Erlang B, the blocking probability of `servers` servers under `load` erlangs, by the textbook
/// recursion `1/B(n) = 1 + (n / a) / B(n - 1)`: sums of positive terms only, so it is stable for
/// every load. The reference of [`erlang_c`].
pub fn erlang_b_reference(servers: u32, load: f64) -> f64 {
    if load <= 0.0 {
        return if servers == 0 { 1.0 } else { 0.0 };
    }
    let mut inverse = 1.0;
    for n in 1..=servers {
        inverse = 1.0 + f64::from(n) / load * inverse;
    }
    1.0 / inverse
}

/// Erlang C from [`erlang_b_reference`]. The reference of [`erlang_c`].
pub fn erlang_c_reference(servers: u32, load: f64) -> f64 {
    if load >= f64::from(servers) {
        return 1.0;
    }
    let b = erlang_b_reference(servers, load);
    b / (1.0 - load / f64::from(servers) * (1.0 - b))
}

/// Erlang C, the probability that a request waits; 1 where the load reaches the servers. For at most
/// 640 servers; see [`erlang`] for the method and its error bound.
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    if load >= f64::from(servers) {
        return 1.0;
    }
    if load <= 0.0 {
        return 0.0;
    }
    let servers = f64::from(servers);
    erlang::wait_probability(servers, load, erlang::look_up(servers, load))
}

/// What the queue does to a minute's requests.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Queue {
    /// Offered load, erlangs.
    pub offered_load: f64,
    /// Probability of a wait.
    pub p_wait: f64,
    /// Share of the servers that is busy, at most 1.
    pub utilization: f64,
    /// Share of the requests that time out or find no server.
    pub failed_share: f64,
    /// 99 % quantile of the latency.
    pub p99_s: f64,
}

/// The queue of a minute: 1 to 640 servers, `rate_per_s` requests, `service_s` each.
#[inline]
pub fn queue(servers: f64, rate_per_s: f64, service_s: f64, timeout_s: f64) -> Queue {
    let known = erlang::look_up(servers, rate_per_s * service_s);
    solve(servers, known, rate_per_s, service_s, timeout_s)
}

/// [`queue`], given what the table of Erlang C says.
#[inline(always)]
pub fn solve(servers: f64, known: Known, rate_per_s: f64, service_s: f64, timeout_s: f64) -> Queue {
    let offered_load = rate_per_s * service_s;
    let is_full = offered_load >= servers;
    let waits = erlang::wait_probability(servers, offered_load, known);
    let p_wait = if offered_load > 0.0 { waits } else { 0.0 };
    let p_wait = if is_full { 1.0 } else { p_wait };

    let drain_per_s = servers / service_s - rate_per_s;
    let late = p_wait * math::exp(-drain_per_s * timeout_s);
    let wait_s = math::ln_normal(p_wait * PER_TAIL) / drain_per_s;
    let wait_s = if p_wait * PER_TAIL > 1.0 { wait_s } else { 0.0 };
    let wait_s = if is_full { timeout_s } else { math::min(wait_s, timeout_s) };
    Queue {
        offered_load,
        p_wait,
        utilization: if is_full { 1.0 } else { offered_load * known.inverse },
        failed_share: if is_full { 1.0 - servers / offered_load } else { late },
        p99_s: service_s * LN_100 + wait_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        // One server: B = a / (1 + a), C = a. Two: B = a^2 / (2 + 2 a + a^2), C = a^2 / (2 + a).
        for a in [1e-6, 0.1, 0.5, 0.999] {
            assert!((erlang_b_reference(1, a) - a / (1.0 + a)).abs() < 1e-15);
            assert!((erlang_b_reference(2, a) - a * a / (2.0 + 2.0 * a + a * a)).abs() < 1e-15);
            assert!((erlang_c(1, a) / a - 1.0).abs() < 1e-14, "{a}");
            assert!((erlang_c(2, a) / (a * a / (2.0 + a)) - 1.0).abs() < 1e-14, "{a}");
        }
        let of = |servers, load| erlang_b_reference(servers, load);
        assert_eq!((of(0, 1.0), of(0, 0.0), of(3, 0.0)), (1.0, 1.0, 0.0));
        assert_eq!((erlang_c(3, 0.0), erlang_c(3, 3.0), erlang_c(3, 1e9)), (0.0, 1.0, 1.0));
    }

    #[test]
    fn the_edge_of_saturation_is_continuous() {
        let at = |rate: f64| queue(160.0, rate, 0.1, 2.0);
        let (below, above) = (at(1600.0 - 1e-7), at(1600.0));
        assert!(below.p_wait > 0.999_99 && above.p_wait == 1.0);
        assert!((below.p99_s - above.p99_s).abs() < 1e-9);
        assert_eq!(above.failed_share, 0.0);
        assert_eq!(at(3200.0).failed_share, 0.5);
    }

    #[test]
    fn no_traffic_is_quiet() {
        let idle = queue(160.0, 0.0, 0.07, 2.0);
        assert_eq!((idle.p_wait, idle.failed_share, idle.utilization), (0.0, 0.0, 0.0));
        assert_eq!(idle.p99_s, 0.07 * LN_100);
    }
}
