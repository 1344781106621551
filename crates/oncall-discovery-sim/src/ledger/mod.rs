//! The traffic ledger: stale requests, failures and ejections in exact expectation (spec 3.3, 3.4).
//!
//! The view of a (proxy, cell) subscription is one number: the epoch it is at. Between events every
//! rate is constant, so the integrals are exact. Nothing is sampled but two things that are times and
//! not counts: when a proxy ejects an endpoint, and when a withdrawn endpoint got its last request.

mod cell;
mod load;
mod members;
mod misses;
mod pairs;
mod tail;

pub use cell::{CellLedger, Slot};
pub use members::{CALLERS, Calls, Counts, Load, Members, Pool, REMOTE, ZONES};
pub use pairs::{Ejection, MayEject, PairEvent};
pub use tail::{Clock, Stopped, Tail};

use crate::noise::{Draw, Noise};
use crate::queue::Micros;
use crate::topology::REGIONS;
use cell::Epoch;
use members::Hits;
use oncall_consensus::Pages;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// One (proxy, cell) subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sub {
    /// The proxy.
    pub proxy: u16,
    /// Zone of the proxy, or [`REMOTE`].
    pub caller: u8,
    /// Whether its stream stands and is in step.
    pub online: bool,
    /// Epoch that it is at.
    pub seq: u32,
    /// Micro-requests a second; whole numbers, so that mass is conserved to the last bit.
    pub lambda: u32,
    /// Place of its private record in the cell; `u32::MAX` without one.
    private: u32,
    /// Its stream delivers nothing before this time: newer deltas never overtake.
    pub fifo: Micros,
}

impl Sub {
    /// A connected subscription at the empty epoch 0.
    pub fn new(proxy: u16, caller: u8, lambda: u32) -> Self {
        Self { proxy, caller, online: true, seq: 0, lambda, private: u32::MAX, fifo: 0 }
    }
}

/// The accounts of all cells.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Ledger {
    /// One a cell.
    pub cells: Vec<CellLedger>,
    /// All subscriptions, those of one cell together.
    pub subs: Vec<Sub>,
    /// First subscription of each cell, and the end.
    first: Vec<u32>,
    /// Present READY interval of each instance.
    pub slots: Pages<Slot>,
    /// Earlier intervals of endpoints that are back, while an epoch with them lives.
    ghosts: Vec<Vec<(u32, Slot)>>,
    /// Endpoints of each cell's head, in no order.
    listed: Pages<Vec<u32>>,
    /// Numbers for events of pairs, each used once.
    versions: u32,
    /// How the proxies of each region call; a cell goes by those of its own region.
    calls: [Calls; REGIONS],
    /// Ejections that are in force, by region of the cell.
    ejected: [u64; REGIONS],
    /// Share and mean duration (s) of requests that may outlive a drain.
    long: (f64, f64),
    noise: Noise,
    #[serde(skip, default = "cap_after")]
    may_eject: MayEject,
    /// Pair events to schedule; the driver drains it.
    pub events: Vec<(Micros, PairEvent)>,
    /// Clocks that ran out; the driver drains it.
    pub stopped: Vec<Stopped>,
}

/// The rule where no other is given.
fn cap_after() -> MayEject {
    |ejected, candidates, share| f64::from(ejected + 1) <= share * f64::from(candidates)
}

/// What makes a ledger.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Subscriptions by cell.
    pub subs: Vec<Vec<Sub>>,
    /// Instances that will ever be.
    pub instances: usize,
    /// How proxies call.
    pub calls: Calls,
    /// Share and mean duration (s) of requests that may outlive a drain.
    pub long: (f64, f64),
    /// The noise.
    pub noise: Noise,
    /// The cap on ejections; `None` takes the rule of [`MayEject`] as written there.
    pub may_eject: Option<MayEject>,
}

impl Ledger {
    /// All cells at the empty epoch 0.
    pub fn new(setup: Setup) -> Self {
        let mut first = vec![0];
        for subs in &setup.subs {
            first.push(first.last().copied().unwrap_or(0) + subs.len() as u32);
        }
        let count = setup.subs.len();
        let subs: Vec<Sub> = setup.subs.into_iter().flatten().collect();
        let mut ledger = Self {
            cells: vec![CellLedger::default(); count],
            subs,
            first,
            slots: std::iter::repeat_n(Slot::new(0), setup.instances).collect(),
            ghosts: vec![Vec::new(); count],
            listed: std::iter::repeat_n(Vec::new(), count).collect(),
            versions: 0,
            calls: [setup.calls; REGIONS],
            ejected: [0; REGIONS],
            long: setup.long,
            noise: setup.noise,
            may_eject: setup.may_eject.unwrap_or_else(cap_after),
            events: Vec::new(),
            stopped: Vec::new(),
        };
        for cell in 0..count {
            let mut epoch = Epoch::new(0, Members::default());
            for sub in ledger.range(cell) {
                let row = ledger.subs[sub];
                epoch.mass[usize::from(row.caller)] += u64::from(row.lambda);
                epoch.offline[usize::from(row.caller)] +=
                    if row.online { 0 } else { u64::from(row.lambda) };
                epoch.subs += 1;
                ledger.cells[cell].online += u32::from(row.online);
            }
            epoch.refresh(&setup.calls, Load::NONE);
            ledger.cells[cell].epochs.push(epoch);
            ledger.cells[cell].sum_rates();
        }
        ledger
    }

    /// Gives the ledger the cap on ejections again, which a saved state does not carry.
    pub fn set_may_eject(&mut self, may_eject: MayEject) {
        self.may_eject = may_eject;
    }

    /// How the proxies of a cell's region call.
    #[inline]
    pub fn calls(&self, cell: usize) -> &Calls {
        &self.calls[cell % REGIONS]
    }

    /// Ejections that are in force in a region's cells.
    pub fn ejected_now(&self, region: usize) -> u64 {
        self.ejected[region]
    }

    /// Places of a cell's subscriptions.
    #[inline]
    pub fn range(&self, cell: usize) -> Range<usize> {
        self.first[cell] as usize..self.first[cell + 1] as usize
    }

    /// Whether epoch `seq` of a cell holds an endpoint.
    #[inline]
    pub fn holds(&self, cell: usize, instance: u32, seq: u32) -> bool {
        self.slots.get(instance as usize).is_some_and(|slot| slot.is_in(seq))
            || self.ghosts[cell].iter().any(|(id, slot)| *id == instance && slot.is_in(seq))
    }

    /// Opens a READY interval: accepted, not yet published.
    pub fn open(&mut self, now: Micros, cell: usize, instance: u32, zone: u8) {
        self.slots.fill_up(instance as usize + 1, &Slot::new(0));
        let old = self.slots[instance as usize];
        if old.add != Slot::NEVER && old.rem > self.cells[cell].oldest() {
            // Still in somebody's view: same process, same address, so what is true of it is true there.
            self.ghosts[cell].push((instance, old));
        }
        let (failing, refused) = (old.failing, old.refused);
        self.slots[instance as usize] = Slot { failing, refused, ..Slot::new(zone) };
        if old.stale {
            self.slots[instance as usize].stale = true;
            self.set_stale(now, cell, instance, false);
        }
    }

    /// Publishes the next epoch of a cell: the head's set with some endpoints more and some less. The
    /// clocks of the removed start their tails. Returns the epoch's number.
    pub fn publish(
        &mut self,
        now: Micros,
        cell: usize,
        added: &[u32],
        removed: &[(u32, Option<Clock>)],
    ) -> u32 {
        self.cells[cell].settle(now);
        let mut members = self.cells[cell].head_members();
        let seq = self.cells[cell].head() + 1;
        for &(instance, _) in removed {
            // One that is READY again before its removal is published has a newer interval by now.
            let old = self.ghosts[cell].iter_mut().rev();
            let old = old.map(|(id, slot)| (*id, slot));
            let mut old = old.filter(|(id, slot)| *id == instance && slot.rem == Slot::NEVER);
            let slot = match old.next() {
                Some((_, slot)) => slot,
                None => &mut self.slots[instance as usize],
            };
            slot.rem = seq;
            let list = &mut self.listed[cell];
            if let Some(at) = list.iter().position(|&id| id == instance) {
                list.swap_remove(at);
            }
            members.0[usize::from(slot.zone)].count(slot, false);
        }
        for &instance in added {
            let slot = &mut self.slots[instance as usize];
            slot.add = seq;
            self.listed[cell].push(instance);
            members.0[usize::from(slot.zone)].count(slot, true);
        }
        self.open_tails(now, cell, seq, removed);
        let mut epoch = Epoch::new(seq, members);
        epoch.refresh(self.calls(cell), self.cells[cell].load);
        let ledger = &mut self.cells[cell];
        ledger.epochs.push(epoch);
        ledger.prune();
        let oldest = ledger.oldest();
        self.ghosts[cell].retain(|(_, slot)| slot.rem > oldest);
        self.watch(now, cell);
        seq
    }

    /// Tells that `count` deliveries of an epoch are under way, so that it is kept for them.
    #[inline]
    pub fn expect(&mut self, cell: usize, seq: u32, count: u32) {
        let ledger = &mut self.cells[cell];
        let at = ledger.at(seq);
        ledger.epochs[at].expected += count;
    }

    /// One of them will not arrive.
    #[inline]
    pub fn cancel(&mut self, cell: usize, seq: u32) {
        let ledger = &mut self.cells[cell];
        let at = ledger.at(seq);
        ledger.epochs[at].expected -= 1;
        if ledger.epochs[at].expected == 0 {
            ledger.prune();
        }
    }

    /// Starts a tail for the healthy endpoints that leave, and one for each failing one.
    fn open_tails(&mut self, now: Micros, cell: usize, seq: u32, removed: &[(u32, Option<Clock>)]) {
        let mut tails: Vec<Tail> = Vec::new();
        for &(instance, clock) in removed {
            let Some(clock) = clock else { continue };
            let failing = self.slots[instance as usize].fails();
            let name = failing.then_some(instance);
            let online = self.cells[cell].online;
            let begun =
                |tail: &&mut Tail| tail.instance == Some(instance) && tail.published.is_none();
            if let Some(tail) = self.cells[cell].tails.iter_mut().find(begun) {
                // It crashed, and its rate has been followed since.
                (tail.before, tail.waiting, tail.published) = (seq, online, Some(now));
                tail.clocks = vec![clock];
                continue;
            }
            match tails.iter_mut().find(|tail| tail.instance == name) {
                Some(tail) => tail.clocks.push(clock),
                None => tails.push(Tail {
                    before: seq,
                    instance: name,
                    failing,
                    published: Some(now),
                    waiting: online,
                    clocks: vec![clock],
                    ..Tail::default()
                }),
            }
        }
        self.cells[cell].tails.extend(tails);
        self.weigh_tails(now, cell);
        self.close_tails(now, cell);
    }

    /// Follows the rate at an endpoint from its crash on, since ejections change it long before the
    /// removal is published.
    pub fn begin_tail(&mut self, now: Micros, cell: usize, clock: Clock) {
        let tail = Tail {
            before: u32::MAX,
            instance: Some(clock.instance),
            failing: self.slots[clock.instance as usize].fails(),
            waiting: self.cells[cell].online,
            clocks: vec![clock],
            ..Tail::default()
        };
        self.cells[cell].tails.push(tail);
        self.weigh_tails(now, cell);
    }

    /// Works out the rates of all open tails from nothing.
    pub(super) fn weigh_tails(&mut self, now: Micros, cell: usize) {
        let mut tails = std::mem::take(&mut self.cells[cell].tails);
        for tail in &mut tails {
            tail.rate = [0.0; ZONES];
            let before = tail.before;
            for epoch in self.cells[cell].epochs.iter().filter(|epoch| epoch.seq < before) {
                for caller in 0..CALLERS as u8 {
                    let at = usize::from(caller);
                    let mass = (epoch.mass[at] - epoch.offline[at]) as f64 / 1e6;
                    lift(tail, (&epoch.members, &epoch.hits(caller)), caller, mass);
                }
            }
            for private in self.cells[cell].privates.iter().filter(|private| private.is_apart()) {
                let row = self.subs[private.sub as usize];
                let has = tail.instance.is_some_and(|instance| private.has_ejected(instance));
                if row.online && !has && row.seq < before {
                    let rate = private.lambda as f64 / 1e6;
                    lift(tail, (&private.view, &private.outcome.hits), private.caller, rate);
                }
            }
            tail.note(now);
        }
        self.cells[cell].tails = tails;
    }

    /// Adds (or takes away) what one subscription sends to the endpoints of all open tails.
    pub(crate) fn lift_tails(&mut self, cell: usize, sub: usize, factor: f64) {
        let row = self.subs[sub];
        if row.online && !self.cells[cell].tails.is_empty() {
            self.lift_from(cell, sub, self.cells[cell].at(row.seq), factor);
        }
    }

    /// The same for a connected subscription whose epoch is at a known place.
    fn lift_from(&mut self, cell: usize, sub: usize, at: usize, factor: f64) {
        let row = self.subs[sub];
        let private = self.private_of(sub);
        let ledger = &mut self.cells[cell];
        let CellLedger { epochs, privates, tails, .. } = ledger;
        let apart = private.map(|index| &privates[index]).filter(|p| p.is_apart());
        let epoch = &epochs[at];
        let (view, hits) = match apart {
            Some(private) => (&private.view, private.outcome.hits),
            None => (&epoch.members, epoch.hits(row.caller)),
        };
        let rate = factor * f64::from(row.lambda) / 1e6;
        for tail in tails.iter_mut().filter(|tail| tail.before > row.seq) {
            let skip = tail.instance.is_some_and(|i| apart.is_some_and(|p| p.has_ejected(i)));
            if !skip {
                lift(tail, (view, &hits), row.caller, rate);
            }
        }
    }

    /// Stops the tails that nobody feeds any more.
    fn close_tails(&mut self, now: Micros, cell: usize) {
        let (noise, long) = (self.noise, self.long);
        let uniform = |key: u32| noise.uniform(Draw::LastRequest, u64::from(key), 0);
        let stopped = &mut self.stopped;
        self.cells[cell].tails.retain(|tail| {
            let over = tail.waiting == 0 && tail.published.is_some();
            if over {
                tail.stop(now, uniform, long, stopped);
            }
            !over
        });
    }

    /// A subscription moves to an epoch: an expected delta or snapshot was applied. An offline one comes
    /// online.
    pub fn apply(&mut self, now: Micros, cell: usize, sub: usize, seq: u32) {
        let row = self.subs[sub];
        if row.seq == seq {
            self.cancel(cell, seq);
            return self.set_online(now, cell, sub, true);
        }
        let ledger = &mut self.cells[cell];
        let (from, to) = (ledger.at(row.seq), ledger.at(seq));
        ledger.epochs[to].expected -= 1;
        let apart = row.private != u32::MAX;
        if row.online && !ledger.tails.is_empty() {
            self.lift_from(cell, sub, from, -1.0);
        }
        let ledger = &mut self.cells[cell];
        let caller = usize::from(row.caller);
        let is_apart = apart && ledger.privates[row.private as usize].is_apart();
        let clean = !apart && ledger.epochs[from].bad.is_none() && ledger.epochs[to].bad.is_none();
        if !clean {
            ledger.settle(now);
        }
        let mass = if is_apart { 0 } else { u64::from(row.lambda) };
        ledger.epochs[from].mass[caller] -= mass;
        ledger.epochs[from].offline[caller] -= if row.online { 0 } else { mass };
        ledger.epochs[from].subs -= 1;
        ledger.epochs[to].mass[caller] += mass;
        ledger.epochs[to].subs += 1;
        if !clean {
            let CellLedger { epochs, rate, .. } = ledger;
            epochs[from].add_rate(rate, row.caller, -(mass as f64));
            epochs[to].add_rate(rate, row.caller, mass as f64);
        }
        if !row.online {
            ledger.online += 1;
        }
        for tail in &mut ledger.tails {
            let was = row.online && row.seq < tail.before;
            let is = seq < tail.before;
            tail.waiting = tail.waiting + u32::from(is) - u32::from(was);
        }
        (self.subs[sub].seq, self.subs[sub].online) = (seq, true);
        if apart {
            self.move_private(now, cell, row.private as usize, seq);
        }
        if apart || !self.cells[cell].failing.is_empty() {
            self.refresh_sub(now, cell, sub);
            self.cells[cell].sum_rates();
        }
        if !self.cells[cell].tails.is_empty() {
            self.lift_from(cell, sub, to, 1.0);
            self.note_tails(now, cell);
        }
        let ledger = &mut self.cells[cell];
        // Nothing else can have become idle.
        if ledger.epochs[from].subs + ledger.epochs[from].expected == 0 {
            ledger.prune();
        }
        if ledger.tight {
            self.balance(now, cell);
        }
    }

    fn after_move(&mut self, now: Micros, cell: usize, sub: usize) {
        if !self.cells[cell].tails.is_empty() {
            self.lift_tails(cell, sub, 1.0);
            self.note_tails(now, cell);
        }
    }

    /// Notes the rates of all open tails; those that nobody feeds any more end.
    fn note_tails(&mut self, now: Micros, cell: usize) {
        let mut done = false;
        for tail in &mut self.cells[cell].tails {
            tail.note(now);
            done |= tail.waiting == 0;
        }
        if done {
            self.close_tails(now, cell);
        }
    }

    /// A subscription's stream breaks, or is back and in step.
    pub fn set_online(&mut self, now: Micros, cell: usize, sub: usize, online: bool) {
        let row = self.subs[sub];
        if row.online == online {
            return;
        }
        if !online {
            self.lift_tails(cell, sub, -1.0);
        }
        self.subs[sub].online = online;
        let is_apart =
            self.private_of(sub).is_some_and(|i| self.cells[cell].privates[i].is_apart());
        let ledger = &mut self.cells[cell];
        let at = ledger.at(row.seq);
        let offline = &mut ledger.epochs[at].offline[usize::from(row.caller)];
        let mass = if is_apart { 0 } else { u64::from(row.lambda) };
        if online {
            *offline -= mass;
            ledger.online += 1;
        } else {
            *offline += mass;
            ledger.online -= 1;
        }
        for tail in ledger.tails.iter_mut().filter(|tail| row.seq < tail.before) {
            tail.waiting = if online { tail.waiting + 1 } else { tail.waiting - 1 };
        }
        if online {
            return self.after_move(now, cell, sub);
        }
        self.note_tails(now, cell);
    }

    /// Changes the traffic of a subscription (a service fails over, say).
    pub fn set_lambda(&mut self, now: Micros, cell: usize, sub: usize, lambda: u32) {
        if self.subs[sub].lambda == lambda {
            return;
        }
        self.lift_tails(cell, sub, -1.0);
        self.cells[cell].settle(now);
        let row = self.subs[sub];
        self.subs[sub].lambda = lambda;
        let ledger = &mut self.cells[cell];
        let mut common = true;
        if row.private != u32::MAX {
            let private = &mut ledger.privates[row.private as usize];
            private.lambda = u64::from(lambda);
            common = !private.is_apart();
        }
        if common {
            let at = ledger.at(row.seq);
            let epoch = &mut ledger.epochs[at];
            let swap = |mass: &mut u64| *mass = *mass - u64::from(row.lambda) + u64::from(lambda);
            swap(&mut epoch.mass[usize::from(row.caller)]);
            if !row.online {
                swap(&mut epoch.offline[usize::from(row.caller)]);
            }
        }
        self.refresh_sub(now, cell, sub);
        self.cells[cell].sum_rates();
        self.after_move(now, cell, sub);
        self.watch(now, cell);
    }

    /// An endpoint starts or stops to fail all requests.
    pub fn set_failing(&mut self, now: Micros, cell: usize, instance: u32, failing: bool) {
        if self.slots[instance as usize].failing == failing {
            return;
        }
        self.mark(now, cell, instance, |slot| slot.failing = failing);
        if failing {
            self.cells[cell].failing.push(instance);
        } else {
            self.close_pairs(now, cell, instance);
        }
        self.after_marks(now, cell);
        self.reweigh_tails(now, cell, instance);
    }

    /// The identity of an endpoint is revoked: whoever connects refuses it, whatever its view says. That is
    /// no matter of health, so nobody ejects it.
    pub fn set_refused(&mut self, now: Micros, cell: usize, instance: u32, refused: bool) {
        if self.slots[instance as usize].refused == refused {
            return;
        }
        self.mark(now, cell, instance, |slot| slot.refused = refused);
        self.after_marks(now, cell);
        self.reweigh_tails(now, cell, instance);
    }

    fn reweigh_tails(&mut self, now: Micros, cell: usize, instance: u32) {
        if !self.cells[cell].tails.is_empty() {
            self.part_tails(cell, instance, self.slots[instance as usize].fails());
            self.weigh_tails(now, cell);
        }
    }

    /// An endpoint that starts or stops to fail gets attempts at another rate than its neighbours in
    /// the tail: from now on it has one of its own.
    fn part_tails(&mut self, cell: usize, instance: u32, failing: bool) {
        let mut parted = Vec::new();
        for tail in &mut self.cells[cell].tails {
            if tail.instance == Some(instance) {
                tail.failing = failing;
            } else if let Some(at) = tail.clocks.iter().position(|clock| clock.instance == instance)
            {
                let clocks = vec![tail.clocks.swap_remove(at)];
                parted.push(Tail { instance: Some(instance), failing, clocks, ..tail.clone() });
            }
        }
        let tails = &mut self.cells[cell].tails;
        tails.retain(|tail| !tail.clocks.is_empty());
        tails.extend(parted);
    }

    /// The catalog no longer holds an endpoint READY, or does so again.
    pub fn set_stale(&mut self, now: Micros, cell: usize, instance: u32, stale: bool) {
        if self.slots[instance as usize].stale == stale {
            return;
        }
        self.mark(now, cell, instance, |slot| slot.stale = stale);
        self.after_marks(now, cell);
    }

    fn after_marks(&mut self, now: Micros, cell: usize) {
        self.refresh_privates(now, cell);
        self.cells[cell].sum_rates();
        self.watch(now, cell);
    }

    /// Changes what is true of an endpoint, in all its intervals and in every epoch that holds it.
    fn mark(&mut self, now: Micros, cell: usize, instance: u32, change: impl Fn(&mut Slot)) {
        let calls = *self.calls(cell);
        let ledger = &mut self.cells[cell];
        let load = ledger.load;
        ledger.settle(now);
        let ghosts = self.ghosts[cell].iter_mut().filter(|(id, _)| *id == instance);
        let slots = ghosts.map(|(_, slot)| slot).chain([&mut self.slots[instance as usize]]);
        for slot in slots {
            let before = *slot;
            change(slot);
            for epoch in ledger.epochs.iter_mut().filter(|epoch| before.is_in(epoch.seq)) {
                let pool = epoch.pool(slot.zone);
                pool.count(&before, false);
                pool.count(slot, true);
                epoch.refresh(&calls, load);
            }
        }
    }

    /// Counts of a cell up to `now`, since they were last taken.
    pub fn take(&mut self, now: Micros, cell: usize) -> Counts {
        self.cells[cell].settle(now);
        std::mem::take(&mut self.cells[cell].counts)
    }

    /// Whether a request at this very moment could fail or be stale.
    pub fn is_quiet(&self, cell: usize) -> bool {
        self.cells[cell].epochs.iter().all(|epoch| epoch.bad.is_none())
    }

    /// Checks I16 for a cell.
    pub fn check(&self, cell: usize) -> Result<(), String> {
        let rows = &self.subs[self.range(cell)];
        let total = rows.iter().map(|sub| u64::from(sub.lambda)).sum();
        self.cells[cell].check(total, rows.len() as u32)
    }
}

/// Adds a rate to each zone's endpoints of a tail.
fn lift(tail: &mut Tail, (view, hits): (&Members, &Hits), caller: u8, rate: f64) {
    for zone in 0..ZONES {
        let failing = tail.failing;
        tail.rate[zone] += rate * view.attempts_at(caller, zone as u8, failing, hits);
    }
}
