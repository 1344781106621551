//! Relays: their budgets, their queues, what goes wrong with them.

use super::full::{ENDPOINT_BYTES, Full, HEADER_BYTES};
use super::share::Share;
use super::shared::{Event, Shared};
use crate::noise::{Draw, Noise};
use crate::queue::{Micros, S};
use crate::topology::REGIONS;
use oncall_discovery::dials::Dials;
use oncall_discovery::distrib::{Bucket, ServiceLane};
use oncall_discovery::mutants::Mutant;
use oncall_discovery::proxy::LinkState;
use oncall_discovery::types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A relay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Relay {
    pub(crate) lane: ServiceLane,
    /// Number of the setting that it goes by.
    pub(crate) policy: u32,
    /// A policy is on its way to it.
    pub(crate) policy_due: bool,
    admission: Bucket,
    budget: Bucket,
    /// Subscriptions that wait for a snapshot, with the stream's number.
    waiting: VecDeque<(u32, u32)>,
    wake_at: Micros,
    down_until: Micros,
    silent_until: Micros,
    /// Nothing older than this is in its log.
    warm_from: Micros,
    drops: f64,
    corrupt: f64,
    spoiled_until: Micros,
    /// Connects and snapshot bytes of the present second (I18).
    window: Micros,
    window_connects: u64,
    window_bytes: u64,
}

/// Tokens of one connection: in a small fleet a relay admits less than one a second.
const CONNECTION: u64 = 1_000;

/// Admission in thousandths of a connection, and bytes of snapshots, both a second: one relay's part of its region's.
fn rates(dials: &Dials, share: Share, relays: u16) -> (u64, u64) {
    let part = |x: f64| (x / f64::from(relays)).ceil() as u64;
    let connects = part(dials.admission_per_s * share.admission * CONNECTION as f64);
    (connects.max(1), part(dials.snapshot_budget_mb_s * 1e6 * share.snapshots).max(1))
}

impl Relay {
    /// One of `relays` of a region, with full buckets.
    pub(crate) fn new(dials: &Dials, share: Share, relays: u16) -> Self {
        let (connects, bytes) = rates(dials, share, relays);
        Self {
            lane: ServiceLane::new(true),
            admission: Bucket::new(Time::ZERO, connects, connects.max(CONNECTION)),
            budget: Bucket::new(Time::ZERO, bytes, bytes / 10),
            policy: 0,
            policy_due: false,
            waiting: VecDeque::new(),
            wake_at: 0,
            down_until: 0,
            silent_until: 0,
            warm_from: 0,
            drops: 0.0,
            corrupt: 0.0,
            spoiled_until: 0,
            window: 0,
            window_connects: 0,
            window_bytes: 0,
        }
    }

    /// A new machine: nothing in its log, nothing wrong with it, empty buckets.
    pub(crate) fn start(&mut self, now: Micros, policy: u32) {
        self.restart(now, true);
        self.waiting.clear();
        (self.down_until, self.silent_until, self.spoiled_until) = (now, 0, 0);
        (self.policy, self.policy_due) = (policy, false);
    }

    /// When it is back, if it is down.
    pub(crate) fn back_at(&self) -> Micros {
        self.down_until
    }

    /// Since when it has a log, seconds ago.
    pub(crate) fn warm_s(&self, now: Micros) -> f64 {
        match self.warm_from {
            0 => f64::INFINITY,
            from => now.saturating_sub(from) as f64 / S as f64,
        }
    }

    /// Other rates from now on; the second is counted anew.
    fn rate(&mut self, now: Micros, (connects, bytes): (u64, u64)) {
        self.admission.set(Time(now), connects, connects.max(CONNECTION));
        self.budget.set(Time(now), bytes, bytes / 10);
        (self.window_connects, self.window_bytes) = (0, 0);
    }

    /// Takes a connection, if there is room. Returns when there will be, and otherwise how many connections this
    /// second has had and how many it may have.
    pub(crate) fn admit(&mut self, now: Micros) -> Result<(u64, u64), Time> {
        self.admission.take(Time(now), CONNECTION)?;
        let limit = (self.admission.rate_per_s() + self.admission.burst()) / CONNECTION;
        let (connects, _) = self.spend(now, 1, 0);
        Ok((connects, limit))
    }

    /// Whether it keeps its streams open and sends nothing.
    pub(crate) fn is_silent(&self, now: Micros) -> bool {
        self.silent_until > now
    }

    /// Queues a subscription for a snapshot.
    pub(crate) fn queue(&mut self, sub: u32, session: u32) {
        self.waiting.push_back((sub, session));
    }

    /// Whether its log has what was published then.
    pub(crate) fn has_since(&self, at: Micros) -> bool {
        at >= self.warm_from
    }

    /// It stops, and starts again at `until`: with empty buckets, since nobody knows what it gave away.
    fn restart(&mut self, until: Micros, cold: bool) {
        self.down_until = self.down_until.max(until);
        let at = Time(self.down_until);
        self.admission = Bucket::empty(at, self.admission.rate_per_s(), self.admission.burst());
        self.budget = Bucket::empty(at, self.budget.rate_per_s(), self.budget.burst());
        self.lane = ServiceLane::new(true);
        if cold {
            self.warm_from = self.warm_from.max(until);
        }
    }

    pub(crate) fn is_down(&self, now: Micros) -> bool {
        self.down_until > now
    }

    /// Whether it fails to send one message.
    pub(crate) fn loses(&self, now: Micros, noise: Noise, entity: u64, index: u64) -> bool {
        self.silent_until > now
            || (self.spoiled_until > now
                && self.drops > 0.0
                && noise.uniform(Draw::Fault, entity | 1 << 40, index) < self.drops)
    }

    /// Whether the bytes of one message are bad.
    pub(crate) fn corrupts(&self, now: Micros, noise: Noise, entity: u64, index: u64) -> bool {
        self.spoiled_until > now
            && self.corrupt > 0.0
            && noise.uniform(Draw::Fault, entity | 1 << 41, index) < self.corrupt
    }

    /// Counts against the budgets of this second.
    fn spend(&mut self, now: Micros, connects: u64, bytes: u64) -> (u64, u64) {
        if now / S != self.window {
            (self.window, self.window_connects, self.window_bytes) = (now / S, 0, 0);
        }
        self.window_connects += connects;
        self.window_bytes += bytes;
        (self.window_connects, self.window_bytes)
    }

    /// Snapshots that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }
}

impl Full {
    /// Sends waiting snapshots as far as the budget goes.
    pub(crate) fn drain(&mut self, shared: &mut Shared, number: u16) {
        let now = shared.now();
        loop {
            let relay = &mut self.relays[usize::from(number)];
            let Some(&(sub, session)) = relay.waiting.front() else { return };
            let row = self.ledger.subs[sub as usize];
            let proxy = self.proxies[usize::from(row.proxy)];
            let stands = proxy.link.session() == session && proxy.link.state() == LinkState::Up;
            if !stands || !self.queued[sub as usize] || relay.is_down(now) {
                relay.waiting.pop_front();
                continue;
            }
            let cell = self.sub_cell[sub as usize] as usize;
            let count = self.cells[cell].newest().map_or(0, |newest| newest.count);
            let bytes = HEADER_BYTES + u64::from(count) * ENDPOINT_BYTES;
            let unbounded = shared.mutants.has(Mutant::NoSnapshotBudget);
            if let Err(at) = relay.budget.take(Time(now), bytes)
                && !unbounded
            {
                if relay.wake_at <= now || at.0 < relay.wake_at {
                    relay.wake_at = at.0.max(now + 1);
                    shared.push(relay.wake_at, Event::Snapshots { relay: number });
                }
                return;
            }
            let limit = relay.budget.rate_per_s() + relay.budget.burst() + bytes;
            let (_, sent) = relay.spend(now, 0, bytes);
            shared.assert(sent <= limit, "I18", || {
                format!("{sent} snapshot bytes in a second at one relay; at most {limit}")
            });
            relay.waiting.pop_front();
            self.queued[sub as usize] = false;
            shared.totals.snapshots += 1;
            shared.totals.snapshot_bytes += bytes;
            let counters = &mut shared.meters.regions[usize::from(proxy.region)];
            counters.snapshots += 1;
            counters.snapshot_bytes += bytes;
            self.send(shared, sub, number, (0, true), bytes);
        }
    }

    /// Places of a region's relays.
    pub(crate) fn relays_of(&self, region: usize) -> std::ops::Range<usize> {
        let first = region * usize::from(self.stride);
        first..first + usize::from(self.active[region])
    }

    /// Region of a relay.
    pub(crate) fn region_of_relay(&self, number: u16) -> usize {
        usize::from(number / self.stride)
    }

    /// Whether there is such a relay now.
    pub(crate) fn is_active(&self, number: u16) -> bool {
        number % self.stride < self.active[self.region_of_relay(number)]
    }

    /// Gives a relay its part of the region's rates, by the setting that it goes by.
    pub(crate) fn rate_relay(&mut self, shared: &Shared, number: u16) {
        let region = self.region_of_relay(number);
        let relay = &mut self.relays[usize::from(number)];
        if let Some(dials) = shared.wishes.dials(relay.policy) {
            relay.rate(shared.now(), rates(&dials, shared.share, self.active[region]));
        }
    }

    /// Time that a relay works for so many plain deliveries; it is counted.
    pub(crate) fn service(&self, shared: &mut Shared, number: u16, deliveries: f64) -> Span {
        let region = self.region_of_relay(number);
        let meters = &mut shared.meters;
        let us = self.service_us * meters.slowed[region] * deliveries;
        meters.regions[region].relay_busy_us += us;
        Span(us as u64)
    }

    fn drop_streams(&mut self, shared: &mut Shared, relay: u16) {
        self.relays[usize::from(relay)].waiting.clear();
        for id in 0..self.proxies.len() as u16 {
            let proxy = &self.proxies[usize::from(id)];
            if proxy.relay == relay && proxy.link.state() == LinkState::Up && proxy.up {
                self.lose(shared, id, Span::ZERO);
            }
        }
    }

    /// All relays of a region stop until a time.
    pub(crate) fn stop_relays(
        &mut self,
        shared: &mut Shared,
        region: usize,
        until: Micros,
        cold: bool,
    ) {
        for number in self.relays_of(region) {
            self.relays[number].restart(until, cold);
            self.drop_streams(shared, number as u16);
        }
    }

    /// Relays restart within a second.
    pub(crate) fn restart_relays(
        &mut self,
        shared: &mut Shared,
        share: f64,
        cold: bool,
        salt: u64,
    ) {
        let until = shared.now() + S;
        for number in (0..REGIONS).flat_map(|region| self.relays_of(region)).collect::<Vec<_>>() {
            if shared.noise.uniform(Draw::Fault, salt | 1 << 42, number as u64) >= share {
                continue;
            }
            self.relays[number].restart(until, cold);
            self.drop_streams(shared, number as u16);
        }
    }

    /// A relay of region 0 drops or spoils messages.
    pub(crate) fn spoil_relay(
        &mut self,
        _shared: &mut Shared,
        relay: u16,
        drops: f64,
        corrupt: f64,
        until: Micros,
    ) {
        let relay = &mut self.relays[usize::from(relay % self.active[0])];
        (relay.drops, relay.corrupt, relay.spoiled_until) = (drops, corrupt, until);
    }

    /// A relay of region 0 sends nothing and keeps its streams open.
    pub(crate) fn silence_relay(&mut self, _shared: &mut Shared, relay: u16, until: Micros) {
        self.relays[usize::from(relay % self.active[0])].silent_until = until;
    }

    /// Snapshots that wait for the budget.
    pub fn snapshots_waiting(&self) -> usize {
        self.relays.iter().map(Relay::waiting).sum()
    }

    /// Longest queue of a relay.
    pub fn relay_delay_max(&self, now: Micros) -> Micros {
        self.relays.iter().map(|relay| relay.lane.delay(Time(now)).0).max().unwrap_or(0)
    }
}
