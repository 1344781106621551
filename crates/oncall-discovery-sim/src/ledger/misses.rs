//! False ejection: endpoints that serve, and fail so many attempts in a row by chance.
//!
//! Where single attempts may fail, the visits of a proxy to an endpoint are a Poisson stream of successes and
//! misses, and a run of `k` misses ejects. In the time that counts visits the waiting time has one law for every
//! endpoint, so its hazard is worked out once for a cell; the endpoints of a proxy are alike, and the first of `n`
//! waits has `n` times the hazard. One event a subscription is enough, whatever the number of endpoints.

use super::Ledger;
use super::pairs::{Ejection, Pair, PairEvent};
use crate::noise::{Draw, pair as key_of};
use crate::queue::{Micros, S, after};
use oncall_core::math;
use serde::{Deserialize, Serialize};

/// An event of a subscription and none of its endpoints.
pub(super) const NOBODY: u32 = u32::MAX;
/// Step of the curve, visits.
const STEP: f64 = 0.1;
/// Relative change of the chance of a miss that asks for another curve.
const CHANGE: f64 = 0.02;
/// What is left of a hazard that is used up.
pub(super) const SPENT: f64 = 1e-9;
/// Errors in a row, at most.
const ERRORS_MAX: usize = 10;

/// Sum of the hazard of a run of `k` misses over the number of visits.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Curve {
    misses: f64,
    k: u8,
    /// At multiples of the step; beyond the last one it grows evenly.
    sums: Vec<f64>,
    /// Hazard at the end.
    last: f64,
}

impl Curve {
    fn new(misses: f64, k: u8) -> Self {
        let runs = usize::from(k).clamp(1, ERRORS_MAX);
        // Chances of the present run's length while no run has been long enough.
        let mut chance = [0.0; ERRORS_MAX];
        chance[0] = 1.0;
        let slope = |chance: &[f64; ERRORS_MAX]| {
            let all: f64 = chance.iter().sum();
            let mut slope = [0.0; ERRORS_MAX];
            slope[0] = (1.0 - misses) * all - chance[0];
            for at in 1..runs {
                slope[at] = misses * chance[at - 1] - chance[at];
            }
            slope
        };
        let ahead = |from: &[f64; ERRORS_MAX], slope: &[f64; ERRORS_MAX], by: f64| {
            std::array::from_fn(|at| from[at] + by * slope[at])
        };
        let steps = ((4.0 * runs as f64 + 10.0) / STEP) as usize;
        let mut sums = Vec::with_capacity(steps + 1);
        sums.push(0.0);
        for _ in 0..steps {
            let a = slope(&chance);
            let b = slope(&ahead(&chance, &a, 0.5 * STEP));
            let c = slope(&ahead(&chance, &b, 0.5 * STEP));
            let d = slope(&ahead(&chance, &c, STEP));
            let mean = std::array::from_fn(|at| (a[at] + 2.0 * (b[at] + c[at]) + d[at]) / 6.0);
            chance = ahead(&chance, &mean, STEP);
            sums.push(-math::ln(chance.iter().sum::<f64>()));
        }
        let last = misses * chance[runs - 1] / chance.iter().sum::<f64>();
        Self { misses, k, sums, last }
    }

    /// The sum of the hazard up to so many visits.
    fn at(&self, visits: f64) -> f64 {
        let place = visits / STEP;
        let index = place as usize;
        if let (Some(a), Some(b)) = (self.sums.get(index), self.sums.get(index + 1)) {
            return a + (b - a) * (place - index as f64);
        }
        let end = self.sums.len().saturating_sub(1);
        let known = self.sums.last().copied().unwrap_or_default();
        known + self.last * (visits - end as f64 * STEP)
    }

    /// The hazard there.
    fn hazard(&self, visits: f64) -> f64 {
        (self.at(visits + STEP) - self.at(visits)) / STEP
    }
}

/// A subscription's wait for its next false ejection; the pool of its own zone, and the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Miss {
    /// Visits so far of one endpoint that serves.
    visits: [f64; 2],
    /// Visits a second.
    rate: [f64; 2],
    /// Endpoints that serve.
    count: [u32; 2],
    since: Micros,
    /// Hazard that is left until the event.
    left: f64,
    version: u32,
    /// When its event comes, at the latest when it has to; 0 without one.
    due: Micros,
}

impl Miss {
    fn advance(&mut self, now: Micros, curve: &Curve) {
        let seconds = (now - self.since) as f64 / S as f64;
        self.left -= self.spent(seconds, curve);
        for pool in 0..2 {
            self.visits[pool] += self.rate[pool] * seconds;
        }
        self.since = now;
    }

    /// Hazard of the next seconds.
    fn spent(&self, seconds: f64, curve: &Curve) -> f64 {
        let part = |pool: usize| {
            let visits = self.visits[pool];
            let sum = curve.at(visits + self.rate[pool] * seconds) - curve.at(visits);
            f64::from(self.count[pool]) * sum
        };
        part(0) + part(1)
    }

    /// Seconds until the hazard is used up; none within an hour is never.
    fn wait(&self, curve: &Curve) -> Option<f64> {
        let (mut low, mut high) = (0.0, 3_600.0);
        if self.spent(high, curve) < self.left {
            return None;
        }
        while high - low > 1e-6 * high + 1e-6 {
            let middle = 0.5 * (low + high);
            if self.spent(middle, curve) < self.left { low = middle } else { high = middle }
        }
        Some(high)
    }
}

impl Ledger {
    /// Whether a cell's proxies may eject endpoints that serve.
    fn misses(&self, cell: usize) -> bool {
        self.cells[cell].load.fails() > 0.0 && self.calls(cell).eject_share > 0.0
    }

    /// After the chance of a miss changed: another curve, and waits that begin or end.
    pub(super) fn renew_misses(&mut self, now: Micros, cell: usize) {
        let (misses, k) = (self.cells[cell].load.fails(), self.calls(cell).eject_after);
        if !self.misses(cell) {
            for index in (0..self.cells[cell].privates.len()).rev() {
                self.cells[cell].privates[index].miss = None;
                self.cells[cell].privates[index].before.clear();
                self.drop_if_empty(now, cell, index);
            }
            self.cells[cell].curve = Curve::default();
            return;
        }
        let curve = &self.cells[cell].curve;
        if curve.k != k || (curve.misses - misses).abs() > CHANGE * misses {
            // What has passed goes by the old curve.
            let ledger = &mut self.cells[cell];
            for private in &mut ledger.privates {
                if let Some(miss) = &mut private.miss {
                    miss.advance(now, &ledger.curve);
                }
            }
            ledger.curve = Curve::new(misses, k);
            for index in 0..self.cells[cell].privates.len() {
                self.aim_miss(now, cell, index, true);
            }
        }
        for sub in self.range(cell) {
            self.open_miss(now, cell, sub);
        }
    }

    /// Makes a subscription wait, if it should and does not.
    pub(super) fn open_miss(&mut self, now: Micros, cell: usize, sub: usize) {
        let row = self.subs[sub];
        if row.lambda == 0 || !self.misses(cell) {
            return;
        }
        let index = self.private_of(sub).unwrap_or_else(|| {
            let epoch = &self.cells[cell].epochs[self.cells[cell].at(row.seq)];
            let (view, outcome) = (epoch.members, epoch.outcome(row.caller));
            self.new_private(cell, sub, view, outcome)
        });
        if self.cells[cell].privates[index].miss.is_none() {
            let left = self.noise.exponential(Draw::Ejection, key_of(sub as u32, NOBODY), now);
            let miss = Miss { since: now, left, ..Miss::default() };
            self.cells[cell].privates[index].miss = Some(miss);
            self.aim_miss(now, cell, index, true);
        }
    }

    /// Follows a private view: how often its endpoints are visited, and when the wait ends.
    pub(super) fn aim_miss(&mut self, now: Micros, cell: usize, index: usize, anew: bool) {
        let ledger = &mut self.cells[cell];
        let private = &mut ledger.privates[index];
        let Some(miss) = &mut private.miss else { return };
        let count = private.view.good_by_pool(private.caller);
        let each = private.lambda as f64 / 1e6;
        let rate = private.outcome.hits.visits.map(|visits| visits * each);
        if !anew && count == miss.count && rate == miss.rate {
            return;
        }
        miss.advance(now, &ledger.curve);
        (miss.count, miss.rate) = (count, rate);
        let wait_s = miss.wait(&ledger.curve);
        let Some(at) = wait_s.and_then(|wait_s| after(now, wait_s)) else { return };
        // An event that comes too early looks again. One that would come too late is replaced.
        if miss.due == 0 || at < miss.due {
            self.versions += 1;
            (miss.version, miss.due) = (self.versions, at);
            let event = PairEvent { sub: private.sub, instance: NOBODY, version: miss.version };
            self.events.push((at, event));
        }
    }

    /// A run of misses is long enough.
    pub(super) fn miss_event(&mut self, now: Micros, cell: usize, event: PairEvent) -> Ejection {
        let sub = event.sub as usize;
        let Some(index) = self.private_of(sub) else { return Ejection::None };
        let ledger = &mut self.cells[cell];
        let private = &mut ledger.privates[index];
        let (degraded, ejected) = (private.degraded, private.ejected);
        let Some(miss) = private.miss.as_mut().filter(|miss| miss.version == event.version) else {
            return Ejection::None;
        };
        miss.advance(now, &ledger.curve);
        miss.due = 0;
        if miss.left > SPENT {
            self.aim_miss(now, cell, index, true);
            return Ejection::None;
        }
        miss.left = self.noise.exponential(Draw::Ejection, key_of(event.sub, NOBODY), now);
        let weight = |pool: usize| {
            let hazard = ledger.curve.hazard(miss.visits[pool]);
            f64::from(miss.count[pool]) * miss.rate[pool] * hazard
        };
        let (near, all) = (weight(0), weight(0) + weight(1));
        let draw = self.noise.uniform(Draw::Pick, key_of(event.sub, NOBODY), now);
        let chosen = self.one_that_serves(cell, sub, draw * all < near, now);
        let row = self.subs[sub];
        let total = self.cells[cell].epochs[self.cells[cell].at(row.seq)].members.total().n;
        let share = self.calls(cell).eject_share;
        let Some(instance) = chosen.filter(|_| (self.may_eject)(ejected, total, share)) else {
            self.aim_miss(now, cell, index, true);
            return if chosen.is_some() { Ejection::Capped } else { Ejection::None };
        };
        self.lift_tails(cell, sub, -1.0);
        self.set_apart(now, cell, index, (ejected + 1, degraded));
        let base = self.calls(cell).eject_base_us;
        let private = &mut self.cells[cell].privates[index];
        let known = private.before.iter().position(|(id, _)| *id == instance);
        let at = known.unwrap_or_else(|| {
            private.before.push((instance, 0));
            private.before.len() - 1
        });
        private.before[at].1 = private.before[at].1.saturating_add(1);
        let until = now + base * u64::from(private.before[at].1);
        self.versions += 1;
        let version = self.versions;
        private.pairs.push(Pair::ejected_until(instance, until, version));
        self.events.push((until, PairEvent { instance, version, ..event }));
        self.after_private(now, cell, sub);
        if let Some(index) = self.private_of(sub) {
            self.aim_miss(now, cell, index, true);
        }
        Ejection::Done
    }

    /// An endpoint of a subscription's view that serves and that it has not ejected, of its own zone or not.
    fn one_that_serves(&self, cell: usize, sub: usize, near: bool, now: Micros) -> Option<u32> {
        let row = self.subs[sub];
        let private = self.private_of(sub).map(|index| &self.cells[cell].privates[index])?;
        let list = &self.listed[cell];
        let key = key_of(sub as u32, NOBODY - 1);
        let start = self.noise.below(Draw::Pick, key, now, list.len() as u64) as usize;
        let fits = |instance: &&u32| {
            let slot = self.slots[**instance as usize];
            slot.is_in(row.seq)
                && !slot.fails()
                && (slot.zone == row.caller) == near
                && !private.has_ejected(**instance)
        };
        list[start..].iter().chain(&list[..start]).find(fits).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One error ejects: each visit is a chance.
    #[test]
    fn one_error_is_a_plain_exponential() {
        let curve = Curve::new(0.2, 1);
        for visits in [0.05, 1.0, 7.3, 40.0] {
            assert!((curve.at(visits) - 0.2 * visits).abs() < 1e-6, "{visits}");
        }
    }

    /// The mean wait of a run of k misses is known: (1 - p^k) / (p^k (1 - p)) visits.
    #[test]
    fn the_mean_of_the_wait_is_that_of_runs() {
        for (p, k) in [(0.5_f64, 2_u8), (0.3, 3), (0.7, 3)] {
            let curve = Curve::new(p, k);
            let (mut mean, mut at) = (0.0, 0.0);
            while curve.at(at) < 40.0 {
                mean += 0.01 * math::exp(-curve.at(at + 0.005));
                at += 0.01;
            }
            let run = p.powi(k.into());
            let known = (1.0 - run) / (run * (1.0 - p));
            assert!((mean / known - 1.0).abs() < 1e-3, "{p} {k}: {mean} {known}");
        }
    }
}
