//! Steps 9 and 10: service time and the queue in front of the servers (M/M/c).
//!
//! **Approximations.** The queue is taken as stationary within the minute, and `p99` adds the 99 %
//! quantile of an exponential service time to the 99 % quantile of the wait: the sum of two quantiles
//! is not the quantile of the sum.

use oncall_core::math;

/// `ln 100`: the 99 % quantile of an exponential time over its mean.
pub const LN_100: f64 = 4.605_170_185_988_092;
/// The share of requests beyond the 99 % quantile.
const TAIL: f64 = 0.01;

/// Erlang B, the blocking probability of `servers` servers under `load` erlangs, by the textbook
/// recursion `1/B(n) = 1 + (n / a) / B(n - 1)`: sums of positive terms only, so it is stable for
/// every load. Kept as the reference of [`erlang_b`].
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

/// Erlang B, four steps of the recursion at a time.
///
/// `1/B(n+4) = A + P / B(n)` with `A` and `P` from the four ratios alone, so that the chain of
/// dependent operations is a quarter as long. All terms stay positive; an overflow means that
/// `B < 1e-308`, and gives 0.
#[inline]
pub fn erlang_b(servers: u32, load: f64) -> f64 {
    if load <= 0.0 {
        return if servers == 0 { 1.0 } else { 0.0 };
    }
    let per_load = 1.0 / load;
    let (mut inverse, mut n) = (1.0, 0.0);
    for _ in 0..servers / 4 {
        let r1 = (n + 1.0) * per_load;
        let r2 = (n + 2.0) * per_load;
        let r3 = (n + 3.0) * per_load;
        let r4 = (n + 4.0) * per_load;
        let last_two = r3 * r4;
        inverse = (1.0 + r4 + last_two + last_two * r2) + last_two * (r1 * r2) * inverse;
        n += 4.0;
    }
    for _ in 0..servers % 4 {
        n += 1.0;
        inverse = 1.0 + n * per_load * inverse;
    }
    1.0 / inverse
}

/// Erlang C, the probability that a request waits; 1 where the load reaches the servers.
#[inline]
pub fn erlang_c(servers: u32, load: f64) -> f64 {
    if load >= f64::from(servers) {
        return 1.0;
    }
    let b = erlang_b(servers, load);
    b / (1.0 - load / f64::from(servers) * (1.0 - b))
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

/// The queue of a minute: `servers` servers, `rate_per_s` requests, `service_s` each.
#[inline]
pub fn queue(servers: u32, rate_per_s: f64, service_s: f64, timeout_s: f64) -> Queue {
    let servers_f = f64::from(servers);
    let offered_load = rate_per_s * service_s;
    let p99_service_s = service_s * LN_100;
    if offered_load >= servers_f {
        return Queue {
            offered_load,
            p_wait: 1.0,
            utilization: 1.0,
            failed_share: 1.0 - servers_f / offered_load,
            p99_s: timeout_s + p99_service_s,
        };
    }
    let p_wait = erlang_c(servers, offered_load);
    let drain_per_s = servers_f / service_s - rate_per_s;
    let wait_s = if p_wait > TAIL { math::ln(p_wait / TAIL) / drain_per_s } else { 0.0 };
    Queue {
        offered_load,
        p_wait,
        utilization: offered_load / servers_f,
        failed_share: p_wait * math::exp(-drain_per_s * timeout_s),
        p99_s: p99_service_s + wait_s.min(timeout_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_forms() {
        // One server: B = a / (1 + a), C = a. Two: B = a^2 / (2 + 2 a + a^2).
        for a in [1e-6, 0.1, 0.5, 0.999] {
            assert!((erlang_b(1, a) - a / (1.0 + a)).abs() < 1e-15);
            assert!((erlang_c(1, a) - a).abs() < 1e-15);
            assert!((erlang_b(2, a) - a * a / (2.0 + 2.0 * a + a * a)).abs() < 1e-15);
        }
        assert_eq!((erlang_b(0, 1.0), erlang_b(0, 0.0), erlang_b(3, 0.0)), (1.0, 1.0, 0.0));
    }

    #[test]
    fn four_at_a_time_equals_one_at_a_time() {
        for servers in 0..=640 {
            for share in [1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999, 1.0, 1.5, 1e3, 1e9] {
                let load = share * f64::from(servers.max(1));
                let (fast, plain) = (erlang_b(servers, load), erlang_b_reference(servers, load));
                assert!((fast - plain).abs() <= 1e-12 * plain, "{servers} {load} {fast} {plain}");
            }
        }
    }

    #[test]
    fn the_edge_of_saturation_is_continuous() {
        let at = |rate: f64| queue(160, rate, 0.1, 2.0);
        let (below, above) = (at(1600.0 - 1e-7), at(1600.0));
        assert!(below.p_wait > 0.999_99 && above.p_wait == 1.0);
        assert!((below.p99_s - above.p99_s).abs() < 1e-9);
        assert_eq!(above.failed_share, 0.0);
        assert_eq!(at(3200.0).failed_share, 0.5);
    }

    #[test]
    fn no_traffic_is_quiet() {
        let idle = queue(160, 0.0, 0.07, 2.0);
        assert_eq!((idle.p_wait, idle.failed_share, idle.utilization), (0.0, 0.0, 0.0));
        assert_eq!(idle.p99_s, 0.07 * LN_100);
    }
}
