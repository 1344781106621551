//! Streams between proxies and relays: connecting, resuming, repairing, snapshots, heartbeats, faults.

use super::full::{ENDPOINT_BYTES, Full, HEADER_BYTES};
use super::shared::{Delivery, Event, HOP_PROXY, Shared};
use crate::noise::{Draw, Noise, pair};
use crate::queue::{Micros, S, micros};
use crate::topology::{REGIONS, Topology};
use oncall_discovery::dials::Dials;
use oncall_discovery::distrib::{
    Answer, Bucket, Cursor, Retention, ServiceLane, SnapshotCause, answer,
};
use oncall_discovery::mutants::Mutant;
use oncall_discovery::proxy::{CellSub, Link, LinkState, SubEvent, Tend};
use oncall_discovery::types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A node proxy's watching half.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Proxy {
    pub(crate) link: Link,
    pub(crate) region: u8,
    /// Relay that the link is for, counted over all regions.
    pub(crate) relay: u16,
    /// Something sent on this stream did not arrive: the next heartbeat is looked at closely.
    pub(crate) gapped: bool,
    /// Whether its node is there.
    up: bool,
    cut_until: Micros,
    /// When it wants to be called.
    tend_at: Micros,
    /// The newest time for which a source vouched for all heads.
    pub(crate) confirmed: Micros,
}

/// A relay.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Relay {
    pub(crate) lane: ServiceLane,
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

/// Patience of a proxy that waits for a welcome.
const PATIENCE: Span = Span(2 * S);
/// Snapshot bytes a second that a stream takes, for the time on the wire.
const STREAM_BYTES_PER_S: f64 = 50e6;

/// 32 fresh random bits for a proxy's decisions.
fn uniform(shared: &mut Shared, id: u16) -> u32 {
    let number = shared.next();
    (shared.noise.word(Draw::Backoff, u64::from(id), number) >> 32) as u32
}

impl Proxy {
    pub(crate) fn all(topology: &Topology, per_region: u16) -> Vec<Self> {
        topology
            .nodes
            .iter()
            .enumerate()
            .map(|(id, node)| {
                let home = (id / REGIONS) as u16 % per_region;
                Self {
                    link: Link::new(home),
                    region: node.region,
                    relay: u16::from(node.region) * per_region + home,
                    gapped: false,
                    up: true,
                    cut_until: 0,
                    tend_at: 0,
                    confirmed: 0,
                }
            })
            .collect()
    }

    /// Whether its node is there.
    pub(crate) fn is_there(&self) -> bool {
        self.up
    }

    /// Whether its network to the control plane is cut.
    pub(crate) fn is_cut(&self, now: Micros) -> bool {
        self.cut_until > now
    }
}

impl Relay {
    pub(crate) fn new(dials: &Dials, per_region: u16) -> Self {
        let share = |x: f64| (x / f64::from(per_region)).ceil() as u64;
        let connects = share(dials.admission_per_s).max(1);
        let bytes = share(dials.snapshot_budget_mb_s * 1e6);
        Self {
            lane: ServiceLane::new(true),
            admission: Bucket::new(Time::ZERO, connects, connects),
            budget: Bucket::new(Time::ZERO, bytes, bytes / 10),
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
    /// All streams stand at the beginning, their heartbeats spread over the interval.
    pub(crate) fn open_streams(&mut self, shared: &mut Shared) {
        let heartbeat = micros(shared.dials.head_heartbeat_s);
        for id in 0..self.proxies.len() as u16 {
            let proxy = &mut self.proxies[usize::from(id)];
            let session = proxy.link.connect(Time::ZERO, PATIENCE);
            proxy.link.welcomed(Time::ZERO, session, Span(heartbeat));
            let at = shared.noise.below(Draw::HopProxy, u64::from(id) | 1 << 32, 0, heartbeat);
            shared.push(at, Event::Heartbeat { proxy: id, session });
            self.plan_tend(shared, id);
        }
    }

    fn plan_tend(&mut self, shared: &mut Shared, id: u16) {
        let proxy = &mut self.proxies[usize::from(id)];
        proxy.tend_at = proxy.link.due().0.max(shared.now() + 1);
        shared.push(proxy.tend_at, Event::Tend { proxy: id });
    }

    fn places(&self, id: u16) -> std::ops::Range<usize> {
        self.proxy_first[usize::from(id)] as usize..self.proxy_first[usize::from(id) + 1] as usize
    }

    /// A proxy looks after its stream.
    pub(crate) fn on_tend(&mut self, shared: &mut Shared, id: u16) {
        let now = shared.now();
        let heartbeat = self.rules.heartbeat;
        let proxy = &mut self.proxies[usize::from(id)];
        if proxy.tend_at != now || !proxy.up {
            return;
        }
        match proxy.link.tend(Time(now), heartbeat) {
            Tend::Nothing => self.plan_tend(shared, id),
            Tend::Silent | Tend::NoAnswer => self.lose(shared, id, Span::ZERO),
            Tend::Connect => {
                let session = proxy.link.connect(Time(now), PATIENCE);
                proxy.relay = u16::from(proxy.region) * self.per_region + proxy.link.relay();
                shared.totals.connects += 1;
                if !proxy.is_cut(now) {
                    let index = shared.next();
                    let hop = shared.hop(HOP_PROXY, Draw::HopProxy, u64::from(id) | 1 << 33, index);
                    shared.push(now + hop, Event::Hello { proxy: id, session });
                }
                self.plan_tend(shared, id);
            }
        }
    }

    /// The stream is gone: back off, stay with the views.
    pub(crate) fn lose(&mut self, shared: &mut Shared, id: u16, not_before: Span) {
        let uniform = uniform(shared, id);
        let (now, rule, relays) = (shared.time(), self.rules.back_off, self.per_region);
        let proxy = &mut self.proxies[usize::from(id)];
        let was_up = proxy.link.state() == LinkState::Up;
        proxy.link.lost(now, rule, not_before, relays, uniform);
        if was_up {
            self.go_offline(shared, id);
        }
        if self.proxies[usize::from(id)].up {
            self.plan_tend(shared, id);
        }
    }

    fn go_offline(&mut self, shared: &mut Shared, id: u16) {
        self.proxies[usize::from(id)].gapped = false;
        for at in self.places(id) {
            let sub = self.proxy_subs[at] as usize;
            self.queued[sub] = false;
            let cell = self.sub_cell[sub] as usize;
            self.ledger.set_online(shared.now(), cell, sub, false);
        }
        self.take_stopped();
    }

    /// A hello reaches its relay.
    pub(crate) fn on_hello(&mut self, shared: &mut Shared, id: u16, session: u32) {
        let now = shared.now();
        let proxy = self.proxies[usize::from(id)];
        if proxy.link.session() != session || proxy.is_cut(now) || !proxy.up {
            return;
        }
        let relay = &mut self.relays[usize::from(proxy.relay)];
        let index = shared.next();
        let hop = shared.hop(HOP_PROXY, Draw::HopProxy, u64::from(id) | 1 << 34, index);
        if relay.is_down(now) {
            shared.push(now + hop, Event::Busy { proxy: id, session, after: 0 });
            return;
        }
        if relay.silent_until > now {
            return;
        }
        let limit = relay.admission.rate_per_s() + relay.admission.burst();
        match relay.admission.take(Time(now), 1) {
            Ok(()) => {
                let (connects, _) = relay.spend(now, 1, 0);
                shared.assert(connects <= limit, "I18", || {
                    format!("{connects} connects in a second at one relay; at most {limit}")
                });
                shared.push(now + hop, Event::Welcome { proxy: id, session });
            }
            Err(at) => {
                shared.totals.connects_refused += 1;
                let after = at.0.saturating_sub(now);
                shared.push(now + hop, Event::Busy { proxy: id, session, after });
            }
        }
    }

    /// The relay had no room, or was not there.
    pub(crate) fn on_busy(&mut self, shared: &mut Shared, id: u16, session: u32, after: Micros) {
        let proxy = &self.proxies[usize::from(id)];
        if proxy.link.session() == session && proxy.link.state() == LinkState::Connecting {
            self.lose(shared, id, Span(after));
        }
    }

    /// The stream stands: every cell resumes from where the proxy is.
    pub(crate) fn on_welcome(&mut self, shared: &mut Shared, id: u16, session: u32) {
        let now = shared.now();
        let heartbeat = self.rules.heartbeat;
        let proxy = &mut self.proxies[usize::from(id)];
        if !proxy.up || !proxy.link.welcomed(Time(now), session, heartbeat) {
            return;
        }
        let relay = proxy.relay;
        if self.relays[usize::from(relay)].is_down(now) {
            return self.lose(shared, id, Span::ZERO);
        }
        shared.push(now + heartbeat.0, Event::Heartbeat { proxy: id, session });
        for at in self.places(id) {
            let sub = self.proxy_subs[at];
            self.subs[sub as usize].reconnected();
            self.answer(shared, sub, relay);
        }
        self.plan_tend(shared, id);
        self.drain(shared, relay);
        self.take_stopped();
    }

    /// A relay answers a watch: up to date, a bridge, or a snapshot in its turn.
    fn answer(&mut self, shared: &mut Shared, sub: u32, relay: u16) {
        let now = shared.now();
        let at = sub as usize;
        let number = self.sub_cell[at];
        let cell = number as usize;
        let rule = Retention {
            age: Shared::span_s(shared.dials.delta_retention_s),
            ..Retention::default()
        };
        self.cells[cell].log.trim(Time(now), rule, shared.mutants);
        let head = self.cells[cell].head();
        let watch = self.subs[at].watch(Full::cell_of(number));
        let warm_from = self.relays[usize::from(relay)].warm_from;
        let log = &self.cells[cell].log;
        // A cold relay has the head, and of the way there what was published since it started.
        let knows = |rev| {
            log.bridges(rev)
                && log
                    .since(rev)
                    .and_then(|mut marks| marks.next())
                    .is_none_or(|m| m.at >= warm_from)
        };
        match answer(head, watch, knows) {
            Answer::Resumed => {
                shared.totals.resumed += 1;
                let event = self.subs[at].on_head(head, Time(now));
                self.ledger.set_online(now, cell, at, true);
                if event != SubEvent::Confirmed {
                    self.not_applied(shared, sub, event);
                }
            }
            Answer::ServerBehind => {}
            Answer::Bridge { from } => {
                shared.totals.bridged += 1;
                let total =
                    |rev| log.since(rev).map_or(0, |marks| marks.map(|m| m.changes).sum::<u32>());
                let bytes = HEADER_BYTES + u64::from(total(from)) * ENDPOINT_BYTES;
                shared.totals.deltas += 1;
                shared.totals.delta_bytes += bytes;
                self.send(shared, sub, relay, (from.0, false), bytes);
            }
            Answer::Snapshot(cause) => {
                if cause == SnapshotCause::RetentionOver {
                    shared.goals.retention_overflow += 1;
                }
                if !self.queued[at] {
                    self.queued[at] = true;
                    let proxy = &self.proxies[usize::from(self.ledger.subs[at].proxy)];
                    let session = proxy.link.session();
                    self.relays[usize::from(relay)].waiting.push_back((sub, session));
                }
            }
        }
    }

    /// Sends the newest epoch of a subscription's cell to it alone.
    fn send(
        &mut self,
        shared: &mut Shared,
        sub: u32,
        number: u16,
        (from, snapshot): (u32, bool),
        bytes: u64,
    ) {
        let now = shared.now();
        let at = sub as usize;
        let cell = self.sub_cell[at] as usize;
        let Some(seq) = self.cells[cell].newest().map(|newest| newest.seq) else { return };
        let row = self.ledger.subs[at];
        let proxy = self.proxies[usize::from(row.proxy)];
        let index = shared.next();
        let relay = &mut self.relays[usize::from(number)];
        if relay.loses(now, shared.noise, u64::from(sub), index) {
            self.proxies[usize::from(row.proxy)].gapped = true;
            return;
        }
        let work = Span((1e6 / super::full::RELAY_DELIVERIES_PER_S) as u64);
        let left = relay.lane.enter(Time(now), work, false).0;
        let wire = (bytes as f64 / STREAM_BYTES_PER_S * S as f64) as Micros;
        let hop = shared.hop(HOP_PROXY, Draw::HopProxy, pair(sub, 1), index);
        let arrives = (left + hop + wire).max(row.fifo);
        let delivery = Delivery {
            sub,
            seq,
            from,
            session: proxy.link.session() as u16,
            snapshot,
            corrupt: relay.corrupts(now, shared.noise, u64::from(sub), index),
        };
        self.ledger.subs[at].fifo = arrives;
        self.ledger.expect(cell, seq, 1);
        shared.push(arrives, Event::Deliver(delivery));
    }

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
            self.send(shared, sub, number, (0, true), bytes);
        }
    }

    /// A subscription asks for a repair, after a wait.
    pub(crate) fn ask_repair(&mut self, shared: &mut Shared, sub: u32, wait: Span) {
        let row = self.ledger.subs[sub as usize];
        let proxy = &self.proxies[usize::from(row.proxy)];
        let index = shared.next();
        let hop = shared.hop(HOP_PROXY, Draw::HopProxy, pair(sub, 2), index);
        let session = proxy.link.session();
        shared.push(shared.now() + wait.0 + hop, Event::Repair { sub, session });
    }

    /// The request for a repair reaches the relay.
    pub(crate) fn on_repair(&mut self, shared: &mut Shared, sub: u32, session: u32) {
        let now = shared.now();
        let row = self.ledger.subs[sub as usize];
        let proxy = self.proxies[usize::from(row.proxy)];
        let relay = &self.relays[usize::from(proxy.relay)];
        let stands = proxy.link.session() == session && proxy.link.state() == LinkState::Up;
        if !stands || relay.is_down(now) || relay.silent_until > now {
            return;
        }
        if proxy.is_cut(now) {
            self.proxies[usize::from(row.proxy)].gapped = true;
            return;
        }
        self.answer(shared, sub, proxy.relay);
        self.drain(shared, proxy.relay);
    }

    /// A check failed: try again after a back-off, and after two failures at another relay.
    pub(crate) fn rejected(&mut self, shared: &mut Shared, sub: u32, tries: u8) {
        let id = self.ledger.subs[sub as usize].proxy;
        let uniform = uniform(shared, id);
        let wait = self.rules.back_off.delay(tries.saturating_sub(1), uniform);
        if tries < 2 {
            self.proxies[usize::from(id)].gapped = true;
            self.ask_repair(shared, sub, wait);
            return;
        }
        shared.totals.relay_switches += 1;
        let (now, relays) = (shared.time(), self.per_region);
        self.proxies[usize::from(id)].link.leave(now, wait, relays, uniform);
        self.go_offline(shared, id);
        self.plan_tend(shared, id);
    }

    /// A heartbeat reaches a proxy. `confirmed`: until when the region's catalogs are known to be right.
    pub(crate) fn on_heartbeat(
        &mut self,
        shared: &mut Shared,
        id: u16,
        session: u32,
        confirmed: Micros,
    ) {
        let now = shared.now();
        let proxy = &mut self.proxies[usize::from(id)];
        if proxy.link.session() != session || proxy.link.state() != LinkState::Up || !proxy.up {
            return;
        }
        shared.push(now + self.rules.heartbeat.0, Event::Heartbeat { proxy: id, session });
        let relay = &self.relays[usize::from(proxy.relay)];
        if proxy.is_cut(now) || relay.silent_until > now || relay.is_down(now) {
            return;
        }
        proxy.link.heard(Time(now));
        proxy.confirmed = confirmed;
        shared.totals.heartbeats += 1;
        // Where nothing was lost, every head is known or on its way: looking would confirm, no more.
        if !proxy.gapped && !shared.verify || shared.mutants.has(Mutant::NoHeartbeat) {
            return;
        }
        proxy.gapped = false;
        for at in self.places(id) {
            let sub = self.proxy_subs[at];
            let index = sub as usize;
            if self.queued[index] || self.ledger.subs[index].fifo > now {
                // What is under way may not close the gap: look again next time.
                self.proxies[usize::from(id)].gapped = true;
                continue;
            }
            if self.is_parted(sub, id, now) {
                // Its relay knows no newer head than it does.
                self.proxies[usize::from(id)].gapped = true;
                continue;
            }
            let head: Cursor = self.cells[self.sub_cell[index] as usize].head();
            match self.subs[index].on_head(head, Time(confirmed)) {
                SubEvent::Confirmed | SubEvent::Nothing => {
                    if self.subs[index].needs_repair() {
                        self.proxies[usize::from(id)].gapped = true;
                        self.ask_repair(shared, sub, Span::ZERO);
                    }
                }
                event => self.not_applied(shared, sub, event),
            }
        }
    }

    /// Takes the dials in force: rules of proxies, budgets of relays, how requests are made.
    pub(crate) fn set_dials(&mut self, shared: &mut Shared) {
        self.rules = oncall_discovery::proxy::ProxyDials::from(&shared.dials);
        let fresh = Relay::new(&shared.dials, self.per_region);
        for relay in &mut self.relays {
            let at = shared.time();
            relay.admission.set(at, fresh.admission.rate_per_s(), fresh.admission.burst());
            relay.budget.set(at, fresh.budget.rate_per_s(), fresh.budget.burst());
        }
        for region in 0..REGIONS {
            self.ledger.set_calls(shared.now(), region, super::full::calls(&shared.dials));
        }
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// Whether a subscription's cell is across a cut.
    fn is_parted(&self, sub: u32, id: u16, now: Micros) -> bool {
        let home = self.sub_cell[sub as usize] as usize % REGIONS;
        let here = usize::from(self.proxies[usize::from(id)].region);
        home != here && self.parted[home].max(self.parted[here]) > now
    }

    /// A region is cut off from the others.
    pub(crate) fn partition(&mut self, region: usize, until: Micros) {
        self.parted[region] = self.parted[region].max(until);
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
        let count = usize::from(self.per_region);
        for number in region * count..(region + 1) * count {
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
        for number in 0..self.relays.len() {
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
        let relay = &mut self.relays[usize::from(relay % self.per_region)];
        (relay.drops, relay.corrupt, relay.spoiled_until) = (drops, corrupt, until);
    }

    /// A relay of region 0 sends nothing and keeps its streams open.
    pub(crate) fn silence_relay(&mut self, _shared: &mut Shared, relay: u16, until: Micros) {
        self.relays[usize::from(relay % self.per_region)].silent_until = until;
    }

    /// A proxy's network to the control plane is cut: nobody is told.
    pub(crate) fn cut_proxy(&mut self, _shared: &mut Shared, proxy: u16, until: Micros) {
        let proxy = &mut self.proxies[usize::from(proxy)];
        proxy.cut_until = proxy.cut_until.max(until);
    }

    /// A node and its proxy are gone, and so are their requests.
    pub(crate) fn node_down(&mut self, shared: &mut Shared, id: u16) {
        let proxy = &mut self.proxies[usize::from(id)];
        let was_up = proxy.link.state() == LinkState::Up;
        proxy.up = false;
        proxy.link = Link::new(proxy.link.relay());
        if was_up {
            self.go_offline(shared, id);
        }
        self.retraffic_proxy(shared, usize::from(id));
    }

    /// A node is back; its proxy starts with nothing.
    pub(crate) fn node_up(&mut self, shared: &mut Shared, id: u16) {
        self.proxies[usize::from(id)].up = true;
        self.proxies[usize::from(id)].confirmed = shared.now();
        for at in self.places(id) {
            self.subs[self.proxy_subs[at] as usize] = CellSub::default();
        }
        self.plan_tend(shared, id);
    }

    /// Share of the proxies whose streams stand.
    pub fn connected(&self) -> f64 {
        let up = self.proxies.iter().filter(|proxy| proxy.link.state() == LinkState::Up).count();
        up as f64 / self.proxies.len() as f64
    }

    /// Oldest confirmation of a proxy that is there.
    pub fn age_max(&self, now: Micros) -> Micros {
        let there = self.proxies.iter().filter(|proxy| proxy.up);
        there.map(|proxy| now - proxy.confirmed.min(now)).max().unwrap_or(0)
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
