//! Local ejection: pairs of a subscription and an endpoint that fails it.
//!
//! While an endpoint fails every request, the failures of one proxy at it are a Poisson stream, so the
//! time of the k-th one is an Erlang time in units of expected failures. The pair's rate changes with
//! the view; the *work* left is kept and the event moved. A proxy with an ejected endpoint leaves the
//! common mass and is accounted on its own, because its candidates are its own (spec 3.4).

use super::members::{Calls, Members, Outcome, REMOTE, ZONES};
use super::misses::{Miss, NOBODY, SPENT};
use super::tail::Tail;
use super::{Ledger, Slot};
use crate::noise::{Draw, pair as key_of};
use crate::queue::{Micros, S, after};
use crate::topology::REGIONS;
use serde::{Deserialize, Serialize};

/// One endpoint that a subscription sees fail, or has ejected.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Pair {
    pub(crate) instance: u32,
    pub(crate) ejected: bool,
    /// Failures still to come, in expectation units; counts down at `hit` per second.
    work: f64,
    /// Since when `hit` holds; of an ejected one, when it ends.
    since: Micros,
    hit: f64,
    /// An event of another version is void. No two pairs ever have the same, or an event of one that was
    /// dropped could be taken for one of its successor.
    version: u32,
    /// When its event comes, at the latest when it has to; 0 without one.
    due: Micros,
    /// Ejections so far.
    times: u8,
}

impl Pair {
    /// One that serves and was ejected for a run of misses.
    pub(super) fn ejected_until(instance: u32, until: Micros, version: u32) -> Self {
        let (work, hit, times) = (0.0, 0.0, 1);
        Self { instance, ejected: true, work, since: until, hit, version, due: 0, times }
    }

    /// Whether its event was never scheduled.
    fn is_new(&self) -> bool {
        self.version == 0
    }
}

/// What one subscription keeps to itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Private {
    pub(crate) sub: u32,
    pub(crate) lambda: u64,
    pub(crate) caller: u8,
    pub(crate) pairs: Vec<Pair>,
    pub(super) ejected: u32,
    /// Its wait for a false ejection.
    pub(crate) miss: Option<Miss>,
    /// False ejections so far by endpoint, as long as it waits: each one is longer.
    pub(crate) before: Vec<(u32, u8)>,
    /// Its view is too old for the service: one attempt, no retry.
    pub(crate) degraded: bool,
    /// Candidates left.
    pub(crate) view: Members,
    pub(crate) outcome: Outcome,
}

impl Private {
    /// Whether it is accounted on its own.
    pub(crate) fn is_apart(&self) -> bool {
        self.ejected > 0 || self.degraded
    }

    pub(crate) fn has_ejected(&self, instance: u32) -> bool {
        self.pairs.iter().any(|pair| pair.ejected && pair.instance == instance)
    }
}

/// Something that happens to a pair at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PairEvent {
    /// Subscription.
    pub sub: u32,
    /// Endpoint.
    pub instance: u32,
    /// Version of the pair for which it was meant.
    pub version: u32,
}

/// What a pair event came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ejection {
    /// Nothing of the kind.
    None,
    /// The endpoint was ejected.
    Done,
    /// It would have been, but for the cap.
    Capped,
}

/// Whether one more may be ejected: the share *after* it must stay within the cap.
pub type MayEject = fn(ejected: u32, candidates: u32, share: f64) -> bool;

impl Ledger {
    /// Makes pairs for the subscriptions of a cell that send requests to endpoints which fail.
    pub(super) fn open_pairs(&mut self, now: Micros, cell: usize) {
        self.prune_failing(cell);
        if !self.cells[cell].failing.is_empty() {
            for sub in self.range(cell) {
                self.open_pairs_of(now, cell, sub);
            }
        }
    }

    /// Forgets failing endpoints that nobody has in view any more.
    fn prune_failing(&mut self, cell: usize) {
        let (oldest, slots, ghosts) = (self.cells[cell].oldest(), &self.slots, &self.ghosts[cell]);
        self.cells[cell].failing.retain(|&instance| {
            let slot = slots[instance as usize];
            slot.failing
                && (slot.rem > oldest
                    || ghosts.iter().any(|(id, old)| *id == instance && old.rem > oldest))
        });
    }

    /// Makes the pairs of one subscription that are missing.
    pub(super) fn open_pairs_of(&mut self, now: Micros, cell: usize, sub: usize) {
        let row = self.subs[sub];
        if row.lambda == 0 || self.cells[cell].failing.is_empty() {
            return;
        }
        for at in 0..self.cells[cell].failing.len() {
            let instance = self.cells[cell].failing[at];
            let slot = self.slot_at(cell, instance, row.seq);
            let known = self.private_of(sub);
            let private = known.map(|index| &self.cells[cell].privates[index]);
            let has_pair = private.is_some_and(|p| p.pairs.iter().any(|q| q.instance == instance));
            if has_pair || !slot.is_in(row.seq) {
                continue;
            }
            let (view, outcome) = if let Some(private) = private {
                (private.view, private.outcome)
            } else {
                let epoch = &self.cells[cell].epochs[self.cells[cell].at(row.seq)];
                (epoch.members, epoch.outcome(row.caller))
            };
            if view.failing_share(row.caller, slot.zone, &outcome.hits) == 0.0 {
                continue;
            }
            let index = known.unwrap_or_else(|| self.new_private(cell, sub, view, outcome));
            let (key, k) = (key_of(sub as u32, instance), u32::from(self.calls(cell).eject_after));
            let work = self.noise.erlang(Draw::Ejection, key, now, k);
            let (hit, version, due, times) = (0.0, 0, 0, 0);
            let pair =
                Pair { instance, ejected: false, work, since: now, hit, version, due, times };
            self.cells[cell].privates[index].pairs.push(pair);
        }
    }

    pub(super) fn new_private(
        &mut self,
        cell: usize,
        sub: usize,
        view: Members,
        outcome: Outcome,
    ) -> usize {
        let row = &mut self.subs[sub];
        let index = self.cells[cell].privates.len();
        row.private = index as u32;
        self.cells[cell].privates.push(Private {
            sub: sub as u32,
            lambda: u64::from(row.lambda),
            caller: row.caller,
            pairs: Vec::new(),
            ejected: 0,
            degraded: false,
            miss: None,
            before: Vec::new(),
            view,
            outcome,
        });
        index
    }

    pub(super) fn private_of(&self, sub: usize) -> Option<usize> {
        let index = self.subs[sub].private;
        (index != u32::MAX).then_some(index as usize)
    }

    /// Drops the pairs of endpoints that are fine again and not ejected.
    pub(super) fn close_pairs(&mut self, now: Micros, cell: usize, instance: u32) {
        for index in (0..self.cells[cell].privates.len()).rev() {
            let private = &mut self.cells[cell].privates[index];
            private.pairs.retain(|pair| pair.instance != instance || pair.ejected);
            self.drop_if_empty(now, cell, index);
        }
    }

    pub(super) fn drop_if_empty(&mut self, now: Micros, cell: usize, index: usize) {
        let private = &self.cells[cell].privates[index];
        if private.pairs.is_empty() && !private.degraded && private.miss.is_none() {
            self.set_apart(now, cell, index, (0, false));
            let gone = self.cells[cell].privates.swap_remove(index);
            self.subs[gone.sub as usize].private = u32::MAX;
            if let Some(moved) = self.cells[cell].privates.get(index) {
                self.subs[moved.sub as usize].private = index as u32;
            }
        }
    }

    /// Changes how many endpoints are ejected and whether the view is too old, and with that whether the
    /// traffic is accounted apart.
    pub(super) fn set_apart(
        &mut self,
        now: Micros,
        cell: usize,
        index: usize,
        (ejected, degraded): (u32, bool),
    ) {
        let private = &mut self.cells[cell].privates[index];
        let now_ejected = &mut self.ejected[cell % REGIONS];
        *now_ejected = *now_ejected + u64::from(ejected) - u64::from(private.ejected);
        let was = private.is_apart();
        (private.ejected, private.degraded) = (ejected, degraded);
        let is = private.is_apart();
        if was == is {
            return;
        }
        let sub = private.sub as usize;
        let (lambda, caller, row) = (private.lambda, usize::from(private.caller), self.subs[sub]);
        let ledger = &mut self.cells[cell];
        ledger.settle(now);
        let at = ledger.at(row.seq);
        let epoch = &mut ledger.epochs[at];
        if is {
            epoch.mass[caller] -= lambda;
            epoch.offline[caller] -= if row.online { 0 } else { lambda };
        } else {
            epoch.mass[caller] += lambda;
            epoch.offline[caller] += if row.online { 0 } else { lambda };
        }
    }

    /// The view of a subscription is too old for its service to retry on, or is no longer.
    pub fn set_degraded(&mut self, now: Micros, cell: usize, sub: usize, degraded: bool) {
        let known = self.private_of(sub);
        if known.is_some_and(|index| self.cells[cell].privates[index].degraded) == degraded {
            return;
        }
        self.lift_tails(cell, sub, -1.0);
        let index = known.unwrap_or_else(|| {
            let row = self.subs[sub];
            let epoch = &self.cells[cell].epochs[self.cells[cell].at(row.seq)];
            let (view, outcome) = (epoch.members, epoch.outcome(row.caller));
            self.new_private(cell, sub, view, outcome)
        });
        let ejected = self.cells[cell].privates[index].ejected;
        self.set_apart(now, cell, index, (ejected, degraded));
        self.after_private(now, cell, sub);
    }

    /// Works out a private view again and moves the events of its pairs.
    pub(super) fn refresh_private(&mut self, now: Micros, cell: usize, index: usize) {
        let row = self.subs[self.cells[cell].privates[index].sub as usize];
        let at = self.cells[cell].at(row.seq);
        let mut view = self.cells[cell].epochs[at].members;
        for pair in self.cells[cell].privates[index].pairs.iter().filter(|pair| pair.ejected) {
            let slot = self.slot_at(cell, pair.instance, row.seq);
            view.0[usize::from(slot.zone)].count(&slot, false);
        }
        let (mut calls, load) = (*self.calls(cell), self.cells[cell].load);
        let private = &mut self.cells[cell].privates[index];
        private.view = view;
        if private.degraded {
            calls.retries = 0;
        }
        private.outcome = view.outcome(private.caller, &calls, load);
        let rate = private.lambda as f64 / 1e6;
        for pair in private.pairs.iter_mut().filter(|pair| !pair.ejected) {
            let zone = self.slots[pair.instance as usize].zone;
            let hit = rate * view.failing_share(private.caller, zone, &private.outcome.hits);
            let passed = (now - pair.since) as f64 / S as f64;
            pair.work = (pair.work - pair.hit * passed).max(0.0);
            pair.since = now;
            if hit == pair.hit && pair.due > 0 {
                continue;
            }
            pair.hit = hit;
            if pair.is_new() {
                self.versions += 1;
                pair.version = self.versions;
            }
            if let Some(at) = after(now, pair.work / hit) {
                // An event that comes too early looks again. One that would come too late is replaced.
                if pair.due == 0 || at < pair.due {
                    self.versions += 1;
                    (pair.version, pair.due) = (self.versions, at);
                    let (sub, instance, version) = (private.sub, pair.instance, pair.version);
                    self.events.push((at, PairEvent { sub, instance, version }));
                }
            }
        }
        self.aim_miss(now, cell, index, false);
    }

    /// Brings one subscription's private record up to date, and makes pairs that are missing.
    pub(super) fn refresh_sub(&mut self, now: Micros, cell: usize, sub: usize) {
        self.open_miss(now, cell, sub);
        if let Some(index) = self.private_of(sub) {
            self.refresh_private(now, cell, index);
        }
        if !self.cells[cell].failing.is_empty() {
            self.open_pairs_of(now, cell, sub);
            if let Some(index) = self.private_of(sub) {
                self.refresh_private(now, cell, index);
            }
        }
    }

    pub(super) fn refresh_privates(&mut self, now: Micros, cell: usize) {
        for index in 0..self.cells[cell].privates.len() {
            self.refresh_private(now, cell, index);
        }
        self.open_pairs(now, cell);
        for index in 0..self.cells[cell].privates.len() {
            if self.cells[cell].privates[index].pairs.iter().any(Pair::is_new) {
                self.refresh_private(now, cell, index);
            }
        }
    }

    /// A pair's k-th failure, or the end of an ejection.
    pub fn pair_event(&mut self, now: Micros, cell: usize, event: PairEvent) -> Ejection {
        if event.instance == NOBODY {
            return self.miss_event(now, cell, event);
        }
        let sub = event.sub as usize;
        let Some(index) = self.private_of(sub) else { return Ejection::None };
        let private = &self.cells[cell].privates[index];
        let Some(at) = private
            .pairs
            .iter()
            .position(|pair| pair.instance == event.instance && pair.version == event.version)
        else {
            return Ejection::None;
        };
        let (ejected, degraded, pair) = (private.ejected, private.degraded, private.pairs[at]);
        let passed = now.saturating_sub(pair.since) as f64 / S as f64;
        if !pair.ejected && pair.work - pair.hit * passed > SPENT {
            self.cells[cell].privates[index].pairs[at].due = 0;
            self.refresh_private(now, cell, index);
            return Ejection::None;
        }
        let total = {
            let ledger = &self.cells[cell];
            ledger.epochs[ledger.at(self.subs[sub].seq)].members.total().n
        };
        self.lift_tails(cell, sub, -1.0);
        let mut ejection = Ejection::None;
        if pair.ejected {
            self.set_apart(now, cell, index, (ejected - 1, degraded));
            self.readmit(now, cell, index, at);
        } else if (self.may_eject)(ejected, total, self.calls(cell).eject_share) {
            ejection = Ejection::Done;
            if self.subs[sub].online {
                // Between crash and publication; what is left after that is drawn as a whole.
                let open = |tail: &&mut Tail| {
                    tail.instance == Some(event.instance) && tail.published.is_none()
                };
                for tail in self.cells[cell].tails.iter_mut().filter(open) {
                    tail.sure = now;
                }
            }
            self.set_apart(now, cell, index, (ejected + 1, degraded));
            let until = now + self.calls(cell).eject_base_us * u64::from(pair.times + 1);
            let pair = &mut self.cells[cell].privates[index].pairs[at];
            (pair.ejected, pair.times, pair.hit) = (true, pair.times.saturating_add(1), 0.0);
            pair.since = until;
            self.versions += 1;
            let version = self.versions;
            pair.version = version;
            self.events.push((until, PairEvent { version, ..event }));
        } else {
            // Held back by the cap: the next failure asks again.
            ejection = Ejection::Capped;
            let key = key_of(event.sub, event.instance);
            let pair = &mut self.cells[cell].privates[index].pairs[at];
            pair.work = self.noise.erlang(Draw::Ejection, key, now, 1);
            (pair.since, pair.hit, pair.due) = (now, 0.0, 0);
        }
        self.after_private(now, cell, sub);
        ejection
    }

    /// An ejection ended: the endpoint is a candidate again, with no failures counted.
    fn readmit(&mut self, now: Micros, cell: usize, index: usize, at: usize) {
        let k = u32::from(self.calls(cell).eject_after);
        let private = &mut self.cells[cell].privates[index];
        let (sub, instance) = (private.sub, private.pairs[at].instance);
        if !self.slots[instance as usize].failing {
            private.pairs.swap_remove(at);
            return;
        }
        let pair = &mut private.pairs[at];
        pair.work = self.noise.erlang(Draw::Ejection, key_of(sub, instance), now, k);
        (pair.ejected, pair.since, pair.hit, pair.due) = (false, now, 0.0, 0);
        self.versions += 1;
        pair.version = self.versions;
    }

    /// After pairs of one subscription changed: its view, the cell's rate, the tails it still feeds.
    pub(super) fn after_private(&mut self, now: Micros, cell: usize, sub: usize) {
        self.cells[cell].settle(now);
        if let Some(index) = self.private_of(sub) {
            self.drop_if_empty(now, cell, index);
        }
        self.refresh_sub(now, cell, sub);
        self.cells[cell].sum_rates();
        self.lift_tails(cell, sub, 1.0);
        for tail in &mut self.cells[cell].tails {
            tail.note(now);
        }
        self.watch(now, cell);
    }

    /// After a subscription moved to another epoch: pairs of endpoints that are no longer in view go.
    pub(super) fn move_private(&mut self, now: Micros, cell: usize, index: usize, seq: u32) {
        let (slots, ghosts) = (&self.slots, &self.ghosts[cell]);
        let private = &mut self.cells[cell].privates[index];
        private.pairs.retain(|pair| {
            slots[pair.instance as usize].is_in(seq)
                || ghosts.iter().any(|(id, slot)| *id == pair.instance && slot.is_in(seq))
        });
        self.hold_cap(now, cell, index, seq);
        let private = &self.cells[cell].privates[index];
        let ejected = private.pairs.iter().filter(|pair| pair.ejected).count() as u32;
        let degraded = private.degraded;
        self.set_apart(now, cell, index, (ejected, degraded));
        self.drop_if_empty(now, cell, index);
    }

    /// A smaller set may hold fewer ejections: those that would end first end now.
    fn hold_cap(&mut self, now: Micros, cell: usize, index: usize, seq: u32) {
        let total = {
            let ledger = &self.cells[cell];
            ledger.epochs[ledger.at(seq)].members.total().n
        };
        loop {
            let pairs = &self.cells[cell].privates[index].pairs;
            let ejected = pairs.iter().filter(|pair| pair.ejected).count() as u32;
            if ejected == 0 || (self.may_eject)(ejected - 1, total, self.calls(cell).eject_share) {
                return;
            }
            let out = pairs.iter().enumerate().filter(|(_, pair)| pair.ejected);
            let Some((at, _)) = out.min_by_key(|(_, pair)| pair.since) else { return };
            self.readmit(now, cell, index, at);
        }
    }

    /// The READY interval of an endpoint that epoch `seq` holds.
    pub(super) fn slot_at(&self, cell: usize, instance: u32, seq: u32) -> Slot {
        let slot = self.slots[instance as usize];
        let ghost = || self.ghosts[cell].iter().find(|(id, old)| *id == instance && old.is_in(seq));
        if slot.is_in(seq) { slot } else { ghost().map_or(slot, |(_, old)| *old) }
    }

    /// Whether all callers of a cell see the same: what is published.
    pub fn is_uniform(&self, cell: usize) -> bool {
        self.cells[cell].epochs.len() == 1 && self.cells[cell].privates.is_empty()
    }

    /// Candidates of a subscription: what its view holds and it has not ejected.
    pub fn candidates(&self, cell: usize, sub: usize) -> u32 {
        let ledger = &self.cells[cell];
        let at = ledger.at(self.subs[sub].seq);
        ledger.epochs[at].members.total().n - self.ejected(cell, sub) as u32
    }

    /// The mean of the candidates over a cell's callers at home, weighed by their traffic; what is published
    /// if none of them calls.
    pub fn candidates_mean(&self, cell: usize) -> u32 {
        let ledger = &self.cells[cell];
        let head = ledger.head_members().total().n;
        if self.is_uniform(cell) {
            return head;
        }
        let (mut sum, mut traffic) = (0.0, 0.0);
        for epoch in &ledger.epochs {
            let mass = epoch.mass[..ZONES].iter().sum::<u64>() as f64;
            sum += mass * f64::from(epoch.members.total().n);
            traffic += mass;
        }
        for private in ledger.privates.iter().filter(|p| p.is_apart() && p.caller != REMOTE) {
            sum += private.lambda as f64 * f64::from(private.view.total().n);
            traffic += private.lambda as f64;
        }
        if traffic > 0.0 { (sum / traffic + 0.5) as u32 } else { head }
    }

    /// Endpoints that a subscription has ejected.
    pub fn ejected(&self, cell: usize, sub: usize) -> usize {
        let private = self.private_of(sub).map(|index| &self.cells[cell].privates[index]);
        private.map_or(0, |private| private.ejected as usize)
    }

    /// Takes new rules of calling for the cells of a region; views and rates follow at once. Where nothing is bad
    /// and nothing is ejected, every rule has the same outcome.
    pub fn set_calls(&mut self, now: Micros, region: usize, calls: Calls) {
        if self.calls[region] == calls {
            return;
        }
        self.calls[region] = calls;
        for cell in (region..self.cells.len()).step_by(REGIONS) {
            if self.is_quiet(cell) && self.cells[cell].privates.is_empty() {
                continue;
            }
            self.cells[cell].settle(now);
            let load = self.cells[cell].load;
            for epoch in &mut self.cells[cell].epochs {
                epoch.refresh(&calls, load);
            }
            self.renew_misses(now, cell);
            self.refresh_privates(now, cell);
            self.cells[cell].sum_rates();
            self.watch(now, cell);
        }
    }
}
