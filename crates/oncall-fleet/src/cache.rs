//! Steps 7 and 14: the cache.
//!
//! Hit rate of a TTL cache under Poisson requests: Jung, Berger and Balakrishnan, *Modeling TTL-based
//! Internet caches*, 2003: `r T / (1 + r T)` for objects that are asked for at rate r each.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::params::Cache;
use oncall_core::math;

/// Share of the requests that the cache answers.
#[inline(always)]
pub fn hit_share(cache: &Cache, admitted_rps: f64, ttl_s: f64, warmth: f64) -> f64 {
    let asked = admitted_rps * (1.0 / cache.objects) * ttl_s;
    warmth * asked / (1.0 + asked)
}

/// Share of what is cold that a minute's ordinary traffic warms: `1 - e^(-1/recovery)`.
pub fn recovery_share(cache: &Cache) -> f64 {
    -math::exp_m1(-1.0 / cache.recovery_min)
}

/// Warmth after the minute: ordinary traffic warms, slower while the database is saturated; a
/// warm-up loads its share on top.
#[inline(always)]
pub fn warmed(
    cache: &Cache,
    warmth: f64,
    recovery: f64,
    db_utilization: f64,
    warm_up: bool,
) -> f64 {
    let pace = if db_utilization > 1.0 { 1.0 / db_utilization } else { 1.0 };
    let loaded = if warm_up { cache.warm_up_share } else { 0.0 };
    math::min(warmth + (1.0 - warmth) * recovery * pace + loaded, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    #[test]
    fn hits_grow_with_ttl_and_traffic() {
        let cache = Cache::defaults();
        assert!((hit_share(&cache, 1125.0, 60.0, 1.0) - 0.771_428_571_428_571_4).abs() < 1e-15);
        assert_eq!(hit_share(&cache, 1125.0, 0.0, 1.0), 0.0);
        assert_eq!(hit_share(&cache, 0.0, 600.0, 1.0), 0.0);
        assert_eq!(hit_share(&cache, 1125.0, 60.0, 0.0), 0.0);
    }

    #[test]
    fn warming_slows_while_saturated_and_stops_at_one() {
        let cache = Cache::defaults();
        let recovery = recovery_share(&cache);
        assert!((recovery - (1.0 - (-1.0_f64 / 30.0).exp())).abs() < 1e-15);
        assert_eq!(warmed(&cache, 0.0, recovery, 0.0, false), recovery);
        assert_eq!(warmed(&cache, 0.0, recovery, 2.0, false), recovery / 2.0);
        assert_eq!(warmed(&cache, 0.0, recovery, 0.5, true), recovery + 0.12);
        assert_eq!(warmed(&cache, 0.95, recovery, 0.5, true), 1.0);
    }
}
