//! What becomes of one request, in expectation, given the view of the proxy that sends it.
//!
//! A proxy draws uniformly among the candidates of its own zone as long as one is left that it has
//! not tried, then among the others; it retries on distinct endpoints. So the outcomes are products
//! of falling factorials (spec 3.4), first over the zone's pool, then over the rest. Where endpoints that
//! serve may fail single attempts, it matters how many of either kind were tried: the sum is over that number.

use super::cell::Slot;
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
    /// Of these, the ones where every request fails: dead, past the accept grace, or of a revoked identity.
    pub failing: u32,
    /// Of these, the ones that the catalog no longer holds READY.
    pub stale: u32,
    /// Both failing and stale.
    pub both: u32,
    /// Of the failing, the ones that answer and whose identity is refused.
    pub refused: u32,
}

impl Pool {
    /// Adds or removes one endpoint.
    #[inline]
    pub fn count(&mut self, slot: &Slot, on: bool) {
        let (failing, stale) = (slot.fails(), slot.stale);
        let add = |field: &mut u32, yes: bool| {
            *field = if on { *field + u32::from(yes) } else { *field - u32::from(yes) };
        };
        add(&mut self.n, true);
        add(&mut self.failing, failing);
        add(&mut self.stale, stale);
        add(&mut self.both, failing && stale);
        add(&mut self.refused, slot.refused && !slot.failing);
    }

    /// Candidates that serve.
    #[inline]
    pub fn good(self) -> u32 {
        self.n - self.failing
    }

    fn sum(self, other: Self) -> Self {
        Self {
            n: self.n + other.n,
            failing: self.failing + other.failing,
            stale: self.stale + other.stale,
            both: self.both + other.both,
            refused: self.refused + other.refused,
        }
    }

    /// Whether the counts make sense: no part exceeds its whole (I16).
    pub fn is_consistent(self) -> bool {
        self.failing <= self.n
            && self.stale <= self.n
            && self.both <= self.failing.min(self.stale)
            && self.refused <= self.failing
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
    /// Attempts at endpoints where every request fails (R146).
    pub failures: f64,
    /// Requests that failed after all retries.
    pub failed: f64,
    /// Requests with no candidate left (R147).
    pub no_backend: f64,
    /// Retries.
    pub retries: f64,
    /// Requests that were served.
    pub served: f64,
    /// Attempts at endpoints that serve.
    pub live: f64,
    /// Of these, the ones that failed for want of a dependency.
    pub soft: f64,
    /// Of these, the ones that failed for want of capacity.
    pub overloaded: f64,
    /// Requests that policy refused: no region that may take them, or a view that is too old (R101).
    pub policy_refused: f64,
    /// Requests whose last endpoint showed a revoked identity.
    pub auth_refused: f64,
    /// Attempts in another region than the caller's.
    pub cross_region: f64,
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
        self.served += other.served * factor;
        self.live += other.live * factor;
        self.soft += other.soft * factor;
        self.overloaded += other.overloaded * factor;
        self.policy_refused += other.policy_refused * factor;
        self.auth_refused += other.auth_refused * factor;
        self.cross_region += other.cross_region * factor;
    }

    /// Adds what became of so many requests where nothing is bad: one attempt each, and served.
    #[inline]
    pub(crate) fn add_clean(&mut self, caller: u8, requests: f64) {
        self.requests += requests;
        self.served += requests;
        self.live += requests;
        self.cross_region += if caller == REMOTE { requests } else { 0.0 };
    }

    /// Requests that a user sees end otherwise than served.
    pub fn user_visible(&self) -> f64 {
        self.broken() + self.policy_refused
    }

    /// The same without those that a service's own policy refused.
    pub fn broken(&self) -> f64 {
        self.failed + self.no_backend + self.auth_refused
    }

    /// Attempts of all kinds.
    pub fn attempts(&self) -> f64 {
        self.failures + self.live
    }
}

/// Chances that a single attempt at an endpoint of a cell fails although the endpoint serves; each attempt
/// is on its own.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// A dependency that is slow or down.
    pub soft: f64,
    /// More attempts than the cell can take.
    pub over: f64,
}

impl Load {
    /// Nothing of the kind.
    pub const NONE: Self = Self { soft: 0.0, over: 0.0 };

    /// Chance that an attempt fails.
    #[inline]
    pub fn fails(self) -> f64 {
        self.over + (1.0 - self.over) * self.soft
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
    pub(crate) hits: Hits,
}

/// Where the attempts of one request go.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Hits {
    /// Expected failing attempts in the first and second pool.
    pub(crate) failing: [f64; 2],
    /// Expected attempts at one endpoint that serves, in the first and second pool.
    pub(crate) visits: [f64; 2],
}

/// Attempts of a request, at most.
const TRIES_MAX: usize = 4;

/// What one attempt out of a pool comes to.
struct Attempted {
    stale: f64,
    failing: f64,
    good: f64,
    chance: [f64; TRIES_MAX + 1],
}

impl Outcome {
    /// Splits what was not served: the last endpoint was refused, or none is left, or it failed.
    fn end(mut self, caller: u8, reach: f64, refused: f64, exhausted: bool) -> Self {
        self.counts.requests = 1.0;
        self.counts.auth_refused = refused;
        let rest = reach - refused;
        if exhausted {
            self.counts.no_backend = rest;
        } else {
            self.counts.failed = rest;
        }
        if caller == REMOTE {
            self.counts.cross_region = self.counts.attempts();
        }
        self
    }
}

impl Pool {
    /// Share of the failing whose identity is refused.
    fn refused_share(self) -> f64 {
        if self.refused == 0 { 0.0 } else { f64::from(self.refused) / f64::from(self.failing) }
    }

    /// One more attempt after `tried` that all failed. `chance` is by the number of failing ones among them;
    /// `misses` is the chance that an endpoint that serves fails this once. Endpoints of a kind are alike.
    fn step(self, chance: &[f64; TRIES_MAX + 1], tried: u32, misses: f64) -> Attempted {
        let mut out = Attempted { stale: 0.0, failing: 0.0, good: 0.0, chance: [0.0; 5] };
        let left = f64::from(self.n - tried);
        let part = |some: u32, of: u32| if of == 0 { 0.0 } else { f64::from(some) / f64::from(of) };
        let stale_failing = part(self.both, self.failing);
        let stale_good = part(self.stale - self.both, self.good());
        for bad in 0..=tried.min(self.failing) {
            let at = bad as usize;
            let Some(good) = self.good().checked_sub(tried - bad) else { continue };
            let to_failing = chance[at] * f64::from(self.failing - bad) / left;
            let to_good = chance[at] * f64::from(good) / left;
            out.failing += to_failing;
            out.good += to_good;
            out.stale += to_failing * stale_failing + to_good * stale_good;
            out.chance[at + 1] += to_failing;
            out.chance[at] += to_good * misses;
        }
        out
    }
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

    /// Candidates that serve, in the pool tried first and in the rest.
    pub(crate) fn good_by_pool(&self, caller: u8) -> [u32; 2] {
        let (first, rest) = self.pools(caller);
        [first.good(), rest.good()]
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

    /// Candidates that serve.
    #[inline]
    pub fn good(&self) -> u32 {
        self.0.iter().map(|pool| pool.good()).sum()
    }

    /// Where the one attempt goes if nothing is bad.
    #[inline]
    pub(crate) fn clean_hits(&self, caller: u8) -> Hits {
        let (first, rest) = self.pools(caller);
        let each = |n: u32| 1.0 / f64::from(n);
        let visits = match (first.n, rest.n) {
            (0, 0) => [0.0, 0.0],
            (0, n) => [0.0, each(n)],
            (n, _) => [each(n), 0.0],
        };
        Hits { failing: [0.0; 2], visits }
    }

    /// The outcome where nothing is bad: one attempt, at the zone or, if that is empty, anywhere.
    #[inline]
    pub(crate) fn clean_outcome(&self, caller: u8) -> Outcome {
        self.attempts(caller, 0)
    }

    /// Expected outcome of one request.
    pub fn request(&self, caller: u8, calls: &Calls, load: Load) -> Counts {
        self.outcome(caller, calls, load).counts
    }

    pub(crate) fn outcome(&self, caller: u8, calls: &Calls, load: Load) -> Outcome {
        let loaded = load != Load::NONE;
        if !loaded && self.is_clean() {
            return self.attempts(caller, 0);
        }
        let tries = |retries: u8| {
            if loaded {
                self.loaded_attempts(caller, retries, load)
            } else {
                self.attempts(caller, retries)
            }
        };
        let full = tries(calls.retries);
        if full.counts.retries <= calls.retry_budget {
            return full;
        }
        // Retries beyond the budget are not made: that share of the requests has one attempt.
        let allowed = calls.retry_budget / full.counts.retries;
        let single = tries(0);
        let mut counts = Counts::default();
        counts.add(&full.counts, allowed);
        counts.add(&single.counts, 1.0 - allowed);
        let blend = |full: [f64; 2], single: [f64; 2]| {
            [0, 1].map(|i: usize| full[i] * allowed + single[i] * (1.0 - allowed))
        };
        let hits = Hits {
            failing: blend(full.hits.failing, single.hits.failing),
            visits: blend(full.hits.visits, single.hits.visits),
        };
        Outcome { counts, hits }
    }

    fn attempts(&self, caller: u8, retries: u8) -> Outcome {
        let (first, rest) = self.pools(caller);
        let tries = u32::from(retries) + 1;
        let mut out = Outcome::default();
        let (mut reach, mut refused) = (1.0, 0.0);
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
            out.hits.failing[at] += reach * fails;
            out.hits.visits[at] += reach / n;
            if i > 0 {
                out.counts.retries += reach;
            }
            let serves = reach * (f64::from(pool.good()) / n);
            out.counts.live += serves;
            out.counts.served += serves;
            reach *= fails;
            refused = reach * pool.refused_share();
            if reach == 0.0 {
                break;
            }
        }
        out.end(caller, reach, refused, first.n + rest.n <= tries)
    }

    /// The same where single attempts at endpoints that serve may fail.
    fn loaded_attempts(&self, caller: u8, retries: u8, load: Load) -> Outcome {
        let (first, rest) = self.pools(caller);
        let (tries, misses) = (u32::from(retries) + 1, load.fails());
        let mut out = Outcome::default();
        // By the number of failing endpoints among those tried in this pool: chance that all failed so far.
        let mut chance = [0.0; TRIES_MAX + 1];
        chance[0] = 1.0;
        let mut refused = 0.0;
        for i in 0..tries.min(first.n + rest.n).min(TRIES_MAX as u32) {
            let (at, pool, tried) =
                if i < first.n { (0, first, i) } else { (1, rest, i - first.n) };
            if tried == 0 {
                chance = [chance.iter().sum(), 0.0, 0.0, 0.0, 0.0];
            }
            if i > 0 {
                out.counts.retries += chance.iter().sum::<f64>();
            }
            let step = pool.step(&chance, tried, misses);
            out.counts.stale += step.stale;
            out.counts.failures += step.failing;
            out.hits.failing[at] += step.failing;
            out.counts.live += step.good;
            out.counts.served += step.good * (1.0 - misses);
            if pool.good() > 0 {
                out.hits.visits[at] += step.good / f64::from(pool.good());
            }
            refused = step.failing * pool.refused_share();
            chance = step.chance;
        }
        out.counts.overloaded = out.counts.live * load.over;
        out.counts.soft = (out.counts.live - out.counts.overloaded) * load.soft;
        out.end(caller, chance.iter().sum(), refused, first.n + rest.n <= tries)
    }

    /// Attempts that one endpoint of `zone` gets from one request of the caller.
    #[inline]
    pub(crate) fn attempts_at(&self, caller: u8, zone: u8, failing: bool, hits: &Hits) -> f64 {
        if failing {
            self.failing_share(caller, zone, hits)
        } else {
            hits.visits[usize::from(caller != zone)]
        }
    }

    /// Attempts that one *failing* endpoint of `zone` gets from one request of the caller.
    pub(crate) fn failing_share(&self, caller: u8, zone: u8, hits: &Hits) -> f64 {
        let (first, rest) = self.pools(caller);
        let (pool, failing) =
            if caller == zone { (first, hits.failing[0]) } else { (rest, hits.failing[1]) };
        if pool.failing == 0 { 0.0 } else { failing / f64::from(pool.failing) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(n: u32, failing: u32, stale: u32, both: u32) -> Pool {
        Pool { n, failing, stale, both, refused: 0 }
    }

    const CALLS: Calls =
        Calls { retries: 1, retry_budget: 1.0, eject_after: 3, eject_base_us: 1, eject_share: 0.3 };

    /// Worked by hand: 4 candidates in the zone, one of them dead and withdrawn, one withdrawn but serving.
    #[test]
    fn a_zone_with_one_dead_endpoint() {
        let view = Members([pool(4, 1, 2, 1), pool(10, 0, 0, 0), Pool::default()]);
        let found = view.request(0, &CALLS, Load::NONE);
        // First attempt: stale 2/4. Retry after the dead one (1/4): one stale left among 3.
        assert_eq!(found.stale, 0.5 + 0.25 * (1.0 / 3.0));
        assert_eq!(found.failures, 0.25);
        assert_eq!((found.failed, found.no_backend, found.retries), (0.0, 0.0, 0.25));
        let visits = |caller| view.outcome(caller, &CALLS, Load::NONE).hits.visits;
        // One that serves: first attempt 1/4, or after the dead one 1/3 of what is left.
        assert_eq!(visits(0), [0.25 + 0.25 / 3.0, 0.0]);
        assert_eq!(visits(2)[1], 1.0 / 14.0 + 1.0 / 14.0 / 13.0, "an empty zone: anywhere");
    }

    #[test]
    fn the_last_candidate_decides_between_failed_and_no_backend() {
        let all_dead = |n| Members([pool(n, n, 0, 0), Pool::default(), Pool::default()]);
        let found = |n: u32| all_dead(n).request(0, &CALLS, Load::NONE);
        assert_eq!((found(3).failed, found(3).no_backend), (1.0, 0.0));
        assert_eq!((found(2).failed, found(2).no_backend), (0.0, 1.0));
        assert_eq!((found(1).failed, found(1).no_backend), (0.0, 1.0));
        assert_eq!((found(0).failed, found(0).no_backend), (0.0, 1.0));
        assert_eq!(found(0).retries, 0.0);
    }

    #[test]
    fn retries_leave_the_zone_once_it_is_exhausted() {
        let view = Members([pool(1, 1, 0, 0), pool(2, 1, 0, 0), pool(2, 0, 0, 0)]);
        let found = view.outcome(0, &CALLS, Load::NONE);
        assert_eq!(found.counts.failed, 0.25);
        assert_eq!(found.hits.failing, [1.0, 0.25]);
        assert_eq!(view.failing_share(0, 0, &found.hits), 1.0);
        assert_eq!(view.failing_share(0, 1, &found.hits), 0.25);
    }

    #[test]
    fn the_budget_caps_retries() {
        let view = Members([pool(10, 5, 0, 0), Pool::default(), Pool::default()]);
        let found = view.request(0, &Calls { retry_budget: 0.2, ..CALLS }, Load::NONE);
        assert!((found.retries - 0.2).abs() < 1e-12);
        // 40 % of the requests may retry: they fail 5/10 * 4/9; the others fail 5/10.
        assert!((found.failed - (0.4 * 20.0 / 90.0 + 0.6 * 0.5)).abs() < 1e-12);
    }

    /// By hand: three candidates, one dead, the others fail one attempt in four; one retry.
    #[test]
    fn a_dependency_fails_single_attempts() {
        let view = Members([pool(3, 1, 0, 0), Pool::default(), Pool::default()]);
        let found = view.request(0, &CALLS, Load { soft: 0.25, over: 0.0 });
        // First: dead 1/3, good 2/3 of which a quarter fails (1/6). Retry after the dead one: both are good.
        // Retry after a good one: one dead, one good.
        let retries: f64 = 1.0 / 3.0 + 1.0 / 6.0;
        assert!((found.retries - retries).abs() < 1e-12);
        assert!((found.failures - (1.0 / 3.0 + 1.0 / 12.0)).abs() < 1e-12);
        assert!((found.live - (2.0 / 3.0 + 1.0 / 3.0 + 1.0 / 12.0)).abs() < 1e-12);
        let failed = 1.0 / 3.0 * 0.25 + 1.0 / 12.0 + 1.0 / 12.0 * 0.25;
        assert!((found.failed - failed).abs() < 1e-12, "{found:?}");
        assert!((found.served - (1.0 - failed)).abs() < 1e-12);
        assert!((found.soft - found.live * 0.25).abs() < 1e-12);
    }

    /// Both ways of adding up agree where an attempt at a good endpoint never fails.
    #[test]
    fn without_load_the_general_sum_is_the_short_one() {
        for (n, failing, stale, both) in [(6, 2, 3, 1), (3, 3, 1, 1), (2, 0, 1, 0), (0, 0, 0, 0)] {
            let view = Members([pool(n, failing, stale, both), pool(4, 1, 1, 0), Pool::default()]);
            for (caller, retries) in [(0, 0), (0, 3), (1, 2), (2, 3), (REMOTE, 1)] {
                let short = view.attempts(caller, retries);
                let long = view.loaded_attempts(caller, retries, Load::NONE);
                let all = |out: &Outcome| {
                    let c = out.counts;
                    let [a, b] = out.hits.failing;
                    let firsts = [c.stale, c.failures, c.failed, c.no_backend, c.retries, c.served];
                    // Visits of endpoints that serve mean nothing where there is none.
                    let visits = out.hits.visits[0] * f64::from(view.pools(caller).0.good());
                    [firsts, [c.live, c.cross_region, a, b, visits, 0.0]].concat()
                };
                for (x, y) in all(&short).into_iter().zip(all(&long)) {
                    assert!(
                        (x - y).abs() < 1e-12,
                        "{view:?} {caller} {retries}: {short:?} {long:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_revoked_identity_is_an_end_of_its_own() {
        let view = Members([
            Pool { n: 4, failing: 2, stale: 0, both: 0, refused: 1 },
            Pool::default(),
            Pool::default(),
        ]);
        let found = view.request(0, &CALLS, Load::NONE);
        // Both failing ones are tried with chance 1/2 * 1/3, in either order.
        assert!((found.auth_refused - 1.0 / 12.0).abs() < 1e-12);
        assert!((found.failed - 1.0 / 12.0).abs() < 1e-12);
    }
}
