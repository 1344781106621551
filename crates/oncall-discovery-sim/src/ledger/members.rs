//! What becomes of one request, in expectation, given the view of the proxy that sends it.
//!
//! A proxy draws uniformly among the candidates of its own zone as long as one is left that it has
//! not tried, then among the others; it retries on distinct endpoints. So the outcomes are products
//! of falling factorials (spec 3.4), first over the zone's pool, then over the rest.

use serde::{Deserialize, Serialize};

/// Zones of a region that the accounts keep apart.
pub const ZONES: usize = 3;
/// Caller class of a proxy in another region: no zone is preferred.
pub const REMOTE: u8 = ZONES as u8;
/// Caller classes: the zones, then [`REMOTE`].
pub const CALLERS: usize = ZONES + 1;

/// Endpoints of one pool by what is true of them now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// Candidates.
    pub n: u32,
    /// Of these, the ones where every request fails: dead, or past the accept grace.
    pub failing: u32,
    /// Of these, the ones that the catalog no longer holds READY.
    pub stale: u32,
    /// Both failing and stale.
    pub both: u32,
}

impl Pool {
    /// Adds or removes one endpoint.
    #[inline]
    pub fn count(&mut self, failing: bool, stale: bool, on: bool) {
        let add = |field: &mut u32, yes: bool| {
            *field = if on { *field + u32::from(yes) } else { *field - u32::from(yes) };
        };
        add(&mut self.n, true);
        add(&mut self.failing, failing);
        add(&mut self.stale, stale);
        add(&mut self.both, failing && stale);
    }

    fn sum(self, other: Self) -> Self {
        Self {
            n: self.n + other.n,
            failing: self.failing + other.failing,
            stale: self.stale + other.stale,
            both: self.both + other.both,
        }
    }

    /// Whether the counts make sense: no part exceeds its whole (I16).
    pub fn is_consistent(self) -> bool {
        self.failing <= self.n && self.stale <= self.n && self.both <= self.failing.min(self.stale)
    }
}

/// A view: one pool a zone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Members(pub [Pool; ZONES]);

/// Expected counts for one request, or, times a rate, for one second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counts {
    /// Requests.
    pub requests: f64,
    /// Attempts at endpoints that the catalog no longer holds READY (R145).
    pub stale: f64,
    /// Attempts that failed at the endpoint (R146).
    pub failures: f64,
    /// Requests that failed after all retries.
    pub failed: f64,
    /// Requests with no candidate left (R147).
    pub no_backend: f64,
    /// Retries.
    pub retries: f64,
}

impl Counts {
    /// Adds `other` times `factor`.
    #[inline]
    pub fn add(&mut self, other: &Self, factor: f64) {
        self.requests += other.requests * factor;
        self.stale += other.stale * factor;
        self.failures += other.failures * factor;
        self.failed += other.failed * factor;
        self.no_backend += other.no_backend * factor;
        self.retries += other.retries * factor;
    }

    /// Failures that a user sees.
    pub fn user_visible(&self) -> f64 {
        self.failed + self.no_backend
    }
}

/// How a proxy treats a request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Calls {
    /// Retries of a request.
    pub retries: u8,
    /// Retries that a proxy allows itself, as a share of its requests.
    pub retry_budget: f64,
    /// Consecutive failures that eject an endpoint.
    pub eject_after: u8,
    /// First ejection, microseconds; grows with each one.
    pub eject_base_us: u64,
    /// Largest share of a view that may be ejected.
    pub eject_share: f64,
}

impl Default for Calls {
    fn default() -> Self {
        Self {
            retries: 1,
            retry_budget: 0.2,
            eject_after: 3,
            eject_base_us: 30_000_000,
            eject_share: 0.3,
        }
    }
}

/// Failing attempts of one request by pool, next to its counts.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Outcome {
    pub(crate) counts: Counts,
    /// Expected failing attempts in the first and second pool.
    pub(crate) failing: [f64; 2],
    /// Expected attempts at one endpoint that serves, in the first and second pool.
    pub(crate) visits: [f64; 2],
}

impl Members {
    /// The pool tried first and the pool tried after it.
    #[inline]
    fn pools(&self, caller: u8) -> (Pool, Pool) {
        let [a, b, c] = self.0;
        match caller {
            0 => (a, b.sum(c)),
            1 => (b, a.sum(c)),
            2 => (c, a.sum(b)),
            _ => (Pool::default(), a.sum(b).sum(c)),
        }
    }

    /// All pools together.
    pub fn total(&self) -> Pool {
        self.0[0].sum(self.0[1]).sum(self.0[2])
    }

    /// Whether nothing here is failing or stale, and there is something.
    #[inline]
    pub fn is_clean(&self) -> bool {
        let bad = self.0.iter().fold(0, |sum, pool| sum + pool.failing + pool.stale);
        bad == 0 && self.0.iter().any(|pool| pool.n > 0)
    }

    /// The outcome where nothing is bad: one attempt, at the zone or, if that is empty, anywhere.
    #[inline]
    pub(crate) fn clean_outcome(&self, caller: u8) -> Outcome {
        self.attempts(caller, 0)
    }

    /// Expected outcome of one request.
    pub fn request(&self, caller: u8, calls: &Calls) -> Counts {
        self.outcome(caller, calls).counts
    }

    pub(crate) fn outcome(&self, caller: u8, calls: &Calls) -> Outcome {
        if self.is_clean() {
            return self.attempts(caller, 0);
        }
        let full = self.attempts(caller, calls.retries);
        if full.counts.retries <= calls.retry_budget {
            return full;
        }
        // Retries beyond the budget are not made: that share of the requests has one attempt.
        let allowed = calls.retry_budget / full.counts.retries;
        let single = self.attempts(caller, 0);
        let mut counts = Counts::default();
        counts.add(&full.counts, allowed);
        counts.add(&single.counts, 1.0 - allowed);
        let blend = |full: [f64; 2], single: [f64; 2]| {
            [0, 1].map(|i: usize| full[i] * allowed + single[i] * (1.0 - allowed))
        };
        Outcome {
            counts,
            failing: blend(full.failing, single.failing),
            visits: blend(full.visits, single.visits),
        }
    }

    fn attempts(&self, caller: u8, retries: u8) -> Outcome {
        let (first, rest) = self.pools(caller);
        let tries = u32::from(retries) + 1;
        let mut out = Outcome::default();
        out.counts.requests = 1.0;
        let mut reach = 1.0;
        for i in 0..tries.min(first.n + rest.n) {
            let (at, pool, tried) =
                if i < first.n { (0, first, i) } else { (1, rest, i - first.n) };
            let (n, tried_f) = (f64::from(pool.n - tried), f64::from(tried));
            // Those tried before failed, so the stale ones among them are a share of the failing.
            let gone = if pool.failing == 0 {
                0.0
            } else {
                tried_f * f64::from(pool.both) / f64::from(pool.failing)
            };
            let fails = f64::from(pool.failing.saturating_sub(tried)) / n;
            out.counts.stale += reach * (f64::from(pool.stale) - gone) / n;
            out.counts.failures += reach * fails;
            out.failing[at] += reach * fails;
            out.visits[at] += reach / n;
            if i > 0 {
                out.counts.retries += reach;
            }
            reach *= fails;
            if reach == 0.0 {
                return out;
            }
        }
        if first.n + rest.n <= tries {
            out.counts.no_backend = reach;
        } else {
            out.counts.failed = reach;
        }
        out
    }

    /// Attempts that one endpoint of `zone` gets from one request of the caller.
    #[inline]
    pub(crate) fn attempts_at(&self, caller: u8, zone: u8, failing: bool, out: &Outcome) -> f64 {
        if failing {
            self.failing_share(caller, zone, out)
        } else {
            out.visits[usize::from(caller != zone)]
        }
    }

    /// Attempts that one *failing* endpoint of `zone` gets from one request of the caller.
    pub(crate) fn failing_share(&self, caller: u8, zone: u8, outcome: &Outcome) -> f64 {
        let (first, rest) = self.pools(caller);
        let (pool, failing) =
            if caller == zone { (first, outcome.failing[0]) } else { (rest, outcome.failing[1]) };
        if pool.failing == 0 { 0.0 } else { failing / f64::from(pool.failing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(n: u32, failing: u32, stale: u32, both: u32) -> Pool {
        Pool { n, failing, stale, both }
    }

    const CALLS: Calls =
        Calls { retries: 1, retry_budget: 1.0, eject_after: 3, eject_base_us: 1, eject_share: 0.3 };

    /// Worked by hand: 4 candidates in the zone, one of them dead and withdrawn, one withdrawn but serving.
    #[test]
    fn a_zone_with_one_dead_endpoint() {
        let view = Members([pool(4, 1, 2, 1), pool(10, 0, 0, 0), Pool::default()]);
        let found = view.request(0, &CALLS);
        // First attempt: stale 2/4. Retry after the dead one (1/4): one stale left among 3.
        assert_eq!(found.stale, 0.5 + 0.25 * (1.0 / 3.0));
        assert_eq!(found.failures, 0.25);
        assert_eq!((found.failed, found.no_backend, found.retries), (0.0, 0.0, 0.25));
        let visits = |caller| view.outcome(caller, &CALLS).visits;
        // One that serves: first attempt 1/4, or after the dead one 1/3 of what is left.
        assert_eq!(visits(0), [0.25 + 0.25 / 3.0, 0.0]);
        assert_eq!(visits(2)[1], 1.0 / 14.0 + 1.0 / 14.0 / 13.0, "an empty zone: anywhere");
    }

    #[test]
    fn the_last_candidate_decides_between_failed_and_no_backend() {
        let all_dead = |n| Members([pool(n, n, 0, 0), Pool::default(), Pool::default()]);
        let found = |n: u32| all_dead(n).request(0, &CALLS);
        assert_eq!((found(3).failed, found(3).no_backend), (1.0, 0.0));
        assert_eq!((found(2).failed, found(2).no_backend), (0.0, 1.0));
        assert_eq!((found(1).failed, found(1).no_backend), (0.0, 1.0));
        assert_eq!((found(0).failed, found(0).no_backend), (0.0, 1.0));
        assert_eq!(found(0).retries, 0.0);
    }

    #[test]
    fn retries_leave_the_zone_once_it_is_exhausted() {
        let view = Members([pool(1, 1, 0, 0), pool(2, 1, 0, 0), pool(2, 0, 0, 0)]);
        let found = view.outcome(0, &CALLS);
        assert_eq!(found.counts.failed, 0.25);
        assert_eq!(found.failing, [1.0, 0.25]);
        assert_eq!(view.failing_share(0, 0, &found), 1.0);
        assert_eq!(view.failing_share(0, 1, &found), 0.25);
    }

    #[test]
    fn the_budget_caps_retries() {
        let view = Members([pool(10, 5, 0, 0), Pool::default(), Pool::default()]);
        let found = view.request(0, &Calls { retry_budget: 0.2, ..CALLS });
        assert!((found.retries - 0.2).abs() < 1e-12);
        // 40 % of the requests may retry: they fail 5/10 * 4/9; the others fail 5/10.
        assert!((found.failed - (0.4 * 20.0 / 90.0 + 0.6 * 0.5)).abs() < 1e-12);
    }
}
