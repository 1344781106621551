//! Streams between proxies and relays: connecting, resuming, repairing, snapshots, heartbeats, faults.

use super::full::{ENDPOINT_BYTES, Full, HEADER_BYTES};
use super::shared::{Delivery, Event, HOP_PROXY, Shared};
use crate::noise::{Draw, pair};
use crate::queue::{Micros, S, micros};
use crate::topology::{REGIONS, Topology};
use oncall_discovery::distrib::{Answer, Cursor, Retention, SnapshotCause, answer};
use oncall_discovery::mutants::Mutant;
use oncall_discovery::proxy::{CellSub, Link, LinkState, SubEvent, Tend};
use oncall_discovery::types::{Span, Time};
use serde::{Deserialize, Serialize};

/// A node proxy's watching half: one line of memory, since every delivery looks at another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[repr(align(64))]
pub(crate) struct Proxy {
    pub(crate) link: Link,
    pub(crate) region: u8,
    /// Relay that the link is for, counted over all regions.
    pub(crate) relay: u16,
    /// Something sent on this stream did not arrive: the next heartbeat is looked at closely.
    pub(crate) gapped: bool,
    /// Number of the setting that it goes by.
    pub(crate) policy: u32,
    /// Which chain of heartbeats is alive, and when its next one comes.
    pub(crate) beat: u16,
    pub(crate) beat_at: Micros,
    /// Whether its node is there.
    pub(crate) up: bool,
    cut_until: Micros,
    /// When it wants to be called.
    tend_at: Micros,
    /// The newest time for which a source vouched for all heads.
    pub(crate) confirmed: Micros,
}

const _: () = assert!(size_of::<Proxy>() == 64, "a proxy takes more than a line of memory");

/// Patience of a proxy that waits for a welcome.
const PATIENCE: Span = Span(2 * S);
/// Snapshot bytes a second that a stream takes, for the time on the wire.
const STREAM_BYTES_PER_S: f64 = 50e6;

/// Work of a heartbeat for each head that it names, in plain deliveries.
const HEARTBEAT_WORK: f64 = 0.04;

/// 32 fresh random bits for a proxy's decisions.
fn uniform(shared: &mut Shared, id: u16) -> u32 {
    let number = shared.next();
    (shared.noise.word(Draw::Backoff, u64::from(id), number) >> 32) as u32
}

impl Proxy {
    /// All proxies; `stride` relays of each region have numbers, and so many of them are there.
    pub(crate) fn all(topology: &Topology, stride: u16, active: [u16; REGIONS]) -> Vec<Self> {
        topology
            .nodes
            .iter()
            .enumerate()
            .map(|(id, node)| {
                let home = (id / REGIONS) as u16 % active[usize::from(node.region)];
                Self {
                    link: Link::new(home),
                    region: node.region,
                    relay: u16::from(node.region) * stride + home,
                    gapped: false,
                    policy: 0,
                    beat: 0,
                    beat_at: 0,
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

impl Full {
    /// All streams stand at the beginning, their heartbeats spread over the interval.
    pub(crate) fn open_streams(&mut self, shared: &mut Shared) {
        let heartbeat = micros(shared.dials.head_heartbeat_s);
        for id in 0..self.proxies.len() as u16 {
            let proxy = &mut self.proxies[usize::from(id)];
            let session = proxy.link.connect(Time::ZERO, PATIENCE);
            proxy.link.welcomed(Time::ZERO, session, Span(heartbeat));
            let at = shared.noise.below(Draw::HopProxy, u64::from(id) | 1 << 32, 0, heartbeat);
            self.plan_heartbeat(shared, id, at);
            self.plan_tend(shared, id);
        }
    }

    /// The next heartbeat of a proxy's stream comes at a time; what was planned before is void.
    pub(crate) fn plan_heartbeat(&mut self, shared: &mut Shared, id: u16, at: Micros) {
        let proxy = &mut self.proxies[usize::from(id)];
        proxy.beat = proxy.beat.wrapping_add(1);
        proxy.beat_at = at;
        let (session, beat) = (proxy.link.session(), proxy.beat);
        shared.push(at, Event::Heartbeat { proxy: id, session, beat });
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
        let proxy = &mut self.proxies[usize::from(id)];
        let heartbeat = shared.wishes.rules(proxy.policy).heartbeat;
        if proxy.tend_at != now || !proxy.up {
            return;
        }
        match proxy.link.tend(Time(now), heartbeat) {
            Tend::Nothing => self.plan_tend(shared, id),
            Tend::Silent | Tend::NoAnswer => self.lose(shared, id, Span::ZERO),
            Tend::Connect => {
                let session = proxy.link.connect(Time(now), PATIENCE);
                proxy.relay = u16::from(proxy.region) * self.stride + proxy.link.relay();
                shared.totals.connects += 1;
                shared.meters.regions[usize::from(proxy.region)].connects += 1;
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
        let now = shared.time();
        let proxy = &mut self.proxies[usize::from(id)];
        let rule = shared.wishes.rules(proxy.policy).back_off;
        let relays = self.active[usize::from(proxy.region)];
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
        let index = shared.next();
        let hop = shared.hop(HOP_PROXY, Draw::HopProxy, u64::from(id) | 1 << 34, index);
        let gone = !self.is_active(proxy.relay);
        let relay = &mut self.relays[usize::from(proxy.relay)];
        if gone || relay.is_down(now) {
            shared.push(now + hop, Event::Busy { proxy: id, session, after: 0 });
            return;
        }
        if relay.is_silent(now) {
            return;
        }
        match relay.admit(now) {
            Ok((connects, limit)) => {
                shared.assert(connects <= limit, "I18", || {
                    format!("{connects} connects in a second at one relay; at most {limit}")
                });
                shared.push(now + hop, Event::Welcome { proxy: id, session });
            }
            Err(at) => {
                shared.totals.connects_refused += 1;
                shared.meters.regions[usize::from(proxy.region)].connects_refused += 1;
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
        let proxy = &mut self.proxies[usize::from(id)];
        let relay = proxy.relay;
        // The welcome brings the relay's policy.
        let policy = self.relays[usize::from(relay)].policy;
        let heartbeat = shared.wishes.rules(policy.max(proxy.policy)).heartbeat;
        if !proxy.up || !proxy.link.welcomed(Time(now), session, heartbeat) {
            return;
        }
        self.plan_heartbeat(shared, id, now + heartbeat.0);
        self.adopt(shared, id, policy);
        if self.relays[usize::from(relay)].is_down(now) {
            return self.lose(shared, id, Span::ZERO);
        }
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
        let age = Shared::span_s(shared.relay[cell % REGIONS].delta_retention_s);
        let rule = Retention { age, ..Retention::default() };
        self.cells[cell].log.trim(Time(now), rule, shared.mutants);
        let head = self.cells[cell].head();
        let watch = self.subs[at].watch(Full::cell_of(number));
        let source = &self.relays[usize::from(relay)];
        let log = &self.cells[cell].log;
        // A cold relay has the head, and of the way there what was published since it started.
        let knows = |rev| {
            log.bridges(rev)
                && log
                    .since(rev)
                    .and_then(|mut marks| marks.next())
                    .is_none_or(|m| source.has_since(m.at))
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
                let region = self.region_of_relay(relay);
                shared.meters.regions[region].deltas += 1;
                shared.meters.regions[region].delta_bytes += bytes;
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
                    self.relays[usize::from(relay)].queue(sub, session);
                }
            }
        }
    }

    /// Sends the newest epoch of a subscription's cell to it alone.
    pub(crate) fn send(
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
        let changes = bytes.saturating_sub(HEADER_BYTES) / ENDPOINT_BYTES;
        let work = self.service(shared, number, 1.0 + 0.05 * changes.saturating_sub(1) as f64);
        let relay = &mut self.relays[usize::from(number)];
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
        if !stands || relay.is_down(now) || relay.is_silent(now) {
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
        let policy = self.proxies[usize::from(id)].policy;
        let back_off = shared.wishes.rules(policy).back_off;
        let wait = back_off.delay(tries.saturating_sub(1), uniform);
        if tries < 2 {
            self.proxies[usize::from(id)].gapped = true;
            self.ask_repair(shared, sub, wait);
            return;
        }
        shared.totals.relay_switches += 1;
        let now = shared.time();
        let relays = self.active[usize::from(self.proxies[usize::from(id)].region)];
        self.proxies[usize::from(id)].link.leave(now, wait, relays, uniform);
        self.go_offline(shared, id);
        self.plan_tend(shared, id);
    }

    /// A heartbeat reaches a proxy. `confirmed`: until when the region's catalogs are known to be right.
    pub(crate) fn on_heartbeat(
        &mut self,
        shared: &mut Shared,
        id: u16,
        (session, beat): (u32, u16),
        confirmed: Micros,
    ) {
        let now = shared.now();
        let proxy = &mut self.proxies[usize::from(id)];
        let stands = proxy.link.session() == session && proxy.link.state() == LinkState::Up;
        if !stands || proxy.beat != beat || !proxy.up {
            return;
        }
        let number = proxy.relay;
        let relay = &self.relays[usize::from(number)];
        let heartbeat = shared.wishes.rules(relay.policy).heartbeat.0;
        proxy.beat_at = now + heartbeat;
        shared.push(proxy.beat_at, Event::Heartbeat { proxy: id, session, beat });
        if relay.is_silent(now) || relay.is_down(now) {
            return;
        }
        self.count_heartbeat(shared, id, number);
        let (proxy, relay) =
            (&mut self.proxies[usize::from(id)], &self.relays[usize::from(number)]);
        if proxy.is_cut(now) {
            return;
        }
        proxy.link.heard(Time(now));
        proxy.confirmed = confirmed;
        shared.totals.heartbeats += 1;
        if proxy.policy != relay.policy {
            // A policy was lost, or is still under way: the heartbeat tells its number.
            self.send_policy(shared, id);
        }
        let proxy = &mut self.proxies[usize::from(id)];
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

    /// What a heartbeat costs its relay: it names the heads of all cells that the proxy follows.
    fn count_heartbeat(&mut self, shared: &mut Shared, id: u16, number: u16) {
        let heads = self.places(id).len() as f64;
        let work = self.service(shared, number, heads * HEARTBEAT_WORK);
        let now = shared.time();
        self.relays[usize::from(number)].lane.enter(now, work, false);
        let counters = &mut shared.meters.regions[self.region_of_relay(number)];
        counters.heartbeats += 1;
        counters.heartbeat_bytes += HEADER_BYTES + 8 * heads as u64;
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
}
