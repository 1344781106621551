//! The data plane at full scale: one number for a view, the real decisions, traffic in expectation.
//!
//! Coalescing, chains, answers, gaps, repairs, budgets, streams and back-off are the components' own
//! functions; what is left out are the endpoint lists and the requests, which the ledger accounts for.

use super::fleet::{cell_name, cell_number, cell_region};
use super::relays::Relay;
use super::share::relays;
use super::shared::{Delivery, Event, HOP_PROXY, HOP_RELAY, REGION_US, Shared, Slab, Trace};
use super::streams::Proxy;
use super::traffic::Traffic;
use super::waves::Wave;
use crate::ledger::{Calls, Clock, Ejection, Ledger, REMOTE, Setup, Slot, Stopped};
use crate::noise::{Draw, pair};
use crate::queue::{MS, Micros, micros};
use crate::topology::{REGIONS, Topology};
use oncall_consensus::Pages;
use oncall_discovery::dials::Dials;
use oncall_discovery::distrib::{
    Coalescer, Cursor, DeltaLog, Retention, SnapshotHead, Step, Windows,
};
use oncall_discovery::mutants::Mutants;
use oncall_discovery::proxy::{By, CellSub, LinkState, SubEvent};
use oncall_discovery::types::{CellUpdate, Change, Incarnation, Revision, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::sync::Arc;

/// Subscribers from which deliveries travel as a wave, tick by tick.
const WAVE_MIN: usize = 256;
/// Tick of a wave.
pub(crate) const TICK: Micros = 10 * MS;
/// Bytes of an endpoint and around a message, as the tier counts them.
pub(crate) const ENDPOINT_BYTES: u64 = 256;
pub(crate) const HEADER_BYTES: u64 = 64;

/// A published epoch as relays know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) seq: u32,
    pub(crate) step: Step,
    pub(crate) count: u32,
    at: Micros,
    /// Changes of the cell up to here.
    pub(crate) total: u32,
}

/// What the delta log keeps of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    pub(crate) at: Micros,
    pub(crate) total: u32,
    pub(crate) changes: u32,
}

/// One cell of the distribution tier.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CellState {
    coalescer: Coalescer,
    pub(crate) log: DeltaLog<Mark>,
    published: VecDeque<Published>,
    added: Vec<u32>,
    removed: Vec<(u32, Option<Clock>)>,
    total: u32,
}

impl CellState {
    /// The published head.
    pub(crate) fn head(&self) -> Cursor {
        self.log.head()
    }

    pub(crate) fn newest(&self) -> Option<&Published> {
        self.published.back()
    }

    fn find(&self, seq: u32) -> Option<&Published> {
        let first = self.published.front()?.seq;
        self.published.get(seq.checked_sub(first)? as usize)
    }
}

/// The data plane.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Full {
    pub(crate) ledger: Ledger,
    pub(crate) cells: Pages<CellState>,
    pub(crate) subs: Vec<CellSub>,
    // What never changes is shared by all copies of a world.
    pub(crate) sub_cell: Arc<[u32]>,
    /// Subscriptions of each proxy: first places, and the list.
    pub(crate) proxy_first: Arc<[u32]>,
    pub(crate) proxy_subs: Arc<[u32]>,
    pub(crate) lambda: Arc<[u32]>,
    /// Subscriptions that wait for a snapshot; they get nothing else.
    pub(crate) queued: Vec<bool>,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) relays: Vec<Relay>,
    /// Numbers that a region's relays may have.
    pub(crate) stride: u16,
    /// Relays of each region now: the first ones.
    pub(crate) active: [u16; REGIONS],
    /// Until when each region is cut off from the others.
    pub(crate) parted: [Micros; REGIONS],
    /// Time that one delivery takes at a relay, microseconds.
    pub(crate) service_us: f64,
    pub(crate) waves: Slab<Wave>,
    clocks: Pages<Option<Clock>>,
    pub(crate) stopped: Vec<Stopped>,
    pub(crate) traffic: Traffic,
    #[serde(skip)]
    hops: Vec<Micros>,
    #[serde(skip)]
    pub(crate) due: Vec<(u32, Delivery)>,
}

/// Deliveries that a relay of the full fleet makes in a second.
pub const RELAY_DELIVERIES_PER_S: f64 = 3_000.0;

/// How proxies call, from the dials.
///
/// The retry budget is a proxy's own, over all its cells and with a reserve: it binds when so large a share of
/// *everything* that a proxy sends fails. The accounts go cell by cell and leave it out, unless it is zero.
pub(crate) fn calls(dials: &Dials) -> Calls {
    Calls {
        retries: dials.retries_max as u8,
        retry_budget: if dials.retry_budget_pct > 0.0 { f64::MAX } else { 0.0 },
        eject_after: dials.ejection_errors as u8,
        eject_base_us: micros(dials.ejection_base_s),
        eject_share: dials.ejected_share_max_pct / 100.0,
    }
}

pub(crate) fn may_eject(ejected: u32, candidates: u32, share: f64) -> bool {
    let percent = (share * 100.0).round() as u8;
    oncall_discovery::proxy::may_eject(ejected, candidates, percent, Mutants::default())
}

impl Full {
    /// All streams stand, every view is at its head. `heads`: cursor, size and checksum of each cell.
    pub(crate) fn new(
        topology: &Topology,
        heads: &[(Cursor, u32, u64)],
        long: (f64, f64),
        shared: &mut Shared,
    ) -> Self {
        let lists = topology.subscriptions(shared.noise);
        let sub_cell: Arc<[u32]> = lists
            .iter()
            .enumerate()
            .flat_map(|(cell, list)| std::iter::repeat_n(cell as u32, list.len()))
            .collect();
        let rows: Vec<_> = lists.iter().flatten().copied().collect();
        let lambda = rows.iter().map(|sub| sub.lambda).collect();
        let (proxy_first, proxy_subs) = by_proxy(topology.nodes.len(), &rows);
        let mut ledger = Ledger::new(Setup {
            subs: lists,
            instances: topology.instances.len(),
            calls: calls(&shared.dials),
            long,
            noise: shared.noise,
            may_eject: Some(may_eject),
        });
        let cells: Pages<CellState> = heads
            .iter()
            .map(|&(head, count, checksum)| CellState {
                coalescer: Coalescer::new(head, count, checksum),
                log: DeltaLog::new(head),
                published: VecDeque::new(),
                added: Vec::new(),
                removed: Vec::new(),
                total: 0,
            })
            .collect();
        let count = relays(&topology.shape, shared.dials.relays_per_region);
        let most = Dials::TABLE.iter().find(|row| row.name == "relays_per_region");
        let stride = relays(&topology.shape, most.map_or(64.0, |row| row.max)).max(count);
        let active = [count; REGIONS];
        let proxies_of_subs: Vec<u16> = rows.iter().map(|sub| sub.proxy).collect();
        let traffic = Traffic::new(topology, &proxies_of_subs, &sub_cell);
        let mut full = Self {
            traffic,
            subs: Vec::new(),
            sub_cell,
            proxy_first,
            proxy_subs,
            lambda,
            queued: vec![false; rows.len()],
            proxies: Proxy::all(topology, stride, active),
            relays: (0..REGIONS * usize::from(stride))
                .map(|_| Relay::new(&shared.dials, shared.share, count))
                .collect(),
            stride,
            active,
            parted: [0; REGIONS],
            service_us: 1e6 / shared.share.relay_deliveries_per_s,
            waves: Slab::default(),
            clocks: Pages::default(),
            stopped: Vec::new(),
            hops: Vec::new(),
            due: Vec::new(),
            cells,
            ledger: {
                ledger.stopped.clear();
                ledger
            },
        };
        full.fill(topology, heads);
        let by_region = std::array::from_fn(|region| topology.by_region[region].len() as u32);
        shared.wishes.hold_all(by_region, u32::from(count) * REGIONS as u32, active);
        full.open_streams(shared);
        full
    }

    /// Publishes the first epoch of each cell and lets every subscription stand there.
    fn fill(&mut self, topology: &Topology, heads: &[(Cursor, u32, u64)]) {
        let mut members = vec![Vec::new(); heads.len()];
        for (id, placed) in topology.instances.iter().enumerate() {
            let zone = topology.nodes[usize::from(placed.node)].zone;
            self.ledger.open(0, placed.cell as usize, id as u32, zone);
            members[placed.cell as usize].push(id as u32);
        }
        for (cell, &(head, count, _)) in heads.iter().enumerate() {
            let seq = self.ledger.publish(0, cell, &members[cell], &[]);
            let range = self.ledger.range(cell);
            self.ledger.expect(cell, seq, range.len() as u32);
            let step = Step { incarnation: head.incarnation, from: Revision(0), to: head.rev };
            self.cells[cell].published.push_back(Published { seq, step, count, at: 0, total: 0 });
            for sub in range {
                self.ledger.apply(0, cell, sub, seq);
                self.subs.push(CellSub::at(head, Time::ZERO));
            }
        }
        self.ledger.events.clear();
        self.ledger.stopped.clear();
    }

    /// Traffic facts of an instance: whether every request there fails.
    pub(crate) fn set_failing(&mut self, shared: &mut Shared, id: u32, cell: u32, failing: bool) {
        shared.trace(Trace::Failing(id, failing));
        shared.meters.serve(id, cell, !failing);
        if (id as usize) < self.ledger.slots.len() {
            self.ledger.set_failing(shared.now(), cell as usize, id, failing);
            self.drain_pairs(shared);
        }
    }

    /// Accepted: the instance is READY.
    pub(crate) fn enter_ready(
        &mut self,
        shared: &mut Shared,
        id: u32,
        cell: u32,
        zone: u8,
        failing: bool,
    ) {
        shared.trace(Trace::Ready(id));
        self.ledger.open(shared.now(), cell as usize, id, zone);
        self.ledger.set_failing(shared.now(), cell as usize, id, failing);
        self.drain_pairs(shared);
        self.clocks.fill_up(id as usize + 1, &None);
        self.clocks[id as usize] = None;
    }

    /// It died while READY; its clock runs.
    pub(crate) fn begin_crash(&mut self, shared: &mut Shared, cell: u32, clock: Clock) {
        if self
            .ledger
            .slots
            .get(clock.instance as usize)
            .is_some_and(|slot| slot.add != Slot::NEVER)
        {
            self.ledger.begin_tail(shared.now(), cell as usize, clock);
        }
    }

    /// Accepted: it is READY no longer; its clock runs.
    pub(crate) fn leave_ready(
        &mut self,
        shared: &mut Shared,
        id: u32,
        cell: u32,
        (key, start, zone): (u32, Micros, u8),
    ) {
        shared.trace(Trace::NotReady(id, start));
        self.ledger.set_stale(shared.now(), cell as usize, id, true);
        self.drain_pairs(shared);
        self.clocks.fill_up(id as usize + 1, &None);
        self.clocks[id as usize] = Some(Clock { key, instance: id, start, zone });
    }

    /// The publisher's replica has applied an update.
    pub(crate) fn on_update(&mut self, shared: &mut Shared, update: &CellUpdate) {
        shared.trace(Trace::Update(*update));
        let cell = cell_number(update.cell);
        let windows = Windows {
            removals: Dials::span_ms(shared.led(cell_region(cell)).coalesce_removals_ms),
            additions: Dials::span_ms(shared.led(cell_region(cell)).coalesce_additions_ms),
        };
        let now = shared.now();
        let state = &mut self.cells[cell as usize];
        match state.coalescer.note(Time(now), update, windows, shared.mutants) {
            Ok(Some(due)) => shared.push(due.0, Event::Flush { cell }),
            Ok(None) => {}
            Err(expected) => {
                shared.violate("I1", || format!("{update:?} does not continue {expected:?}"));
            }
        }
        let pending = &mut shared.meters.pending[cell_region(cell)];
        match update.change {
            Change::Added(endpoint) => {
                state.added.push(endpoint.instance.0);
                *pending += 1;
            }
            Change::Removed(endpoint) => {
                let id = endpoint.instance.0;
                let clock = self.clocks.get(id as usize).copied().flatten();
                if let Some(at) = state.added.iter().position(|&added| added == id) {
                    // Came and went between two publications: nobody ever saw it.
                    state.added.swap_remove(at);
                    *pending -= 1;
                    if let Some(clock) = clock {
                        self.stopped.push(Stopped {
                            clock,
                            published: now,
                            last_apply: now,
                            last_request: None,
                            in_flight: 0.0,
                        });
                    }
                } else {
                    state.removed.push((id, clock));
                    *pending += 1;
                }
            }
            Change::Changed(..) => {}
        }
    }

    /// Pending changes of a cell are due.
    pub(crate) fn on_flush(&mut self, shared: &mut Shared, cell: u32) {
        let now = shared.now();
        let index = cell as usize;
        let retention = Retention {
            age: Shared::span_s(shared.relay[cell_region(cell)].delta_retention_s),
            ..Retention::default()
        };
        let state = &mut self.cells[index];
        let Some(flush) = state.coalescer.flush(Time(now)) else { return };
        let (added, removed) =
            (std::mem::take(&mut state.added), std::mem::take(&mut state.removed));
        shared.totals.flushes += 1;
        let seq = self.ledger.publish(now, index, &added, &removed);
        self.traffic.watch(index);
        let state = &mut self.cells[index];
        let changes = (added.len() + removed.len()) as u32;
        state.total += changes;
        shared.meters.pending[cell_region(cell)] -= i64::from(changes);
        shared.books.keep(cell_region(cell), changes);
        let mark = Mark { at: now, total: state.total, changes };
        let grew = state.log.push(Time(now), flush.step.to, mark);
        shared.assert(grew, "I1", || format!("cell {cell}: {:?} is not ahead", flush.step));
        state.log.trim(Time(now), retention, shared.mutants);
        state.published.push_back(Published {
            seq,
            step: flush.step,
            count: flush.count,
            at: now,
            total: state.total,
        });
        let oldest = self.ledger.cells[index].oldest();
        while state.published.front().is_some_and(|front| front.seq < oldest) {
            state.published.pop_front();
        }
        let members = self.ledger.cells[index].head_members().total().n;
        shared.assert(members == flush.count, "I4", || {
            format!("cell {cell}: {members} in the accounts, {} published", flush.count)
        });
        self.fan_out(shared, cell, flush.removed > 0);
        self.take_stopped();
    }

    pub(crate) fn take_stopped(&mut self) {
        self.stopped.append(&mut self.ledger.stopped);
    }

    pub(crate) fn drain_pairs(&mut self, shared: &mut Shared) {
        for (at, pair) in self.ledger.events.drain(..) {
            let cell = self.sub_cell[pair.sub as usize];
            shared.push(at, Event::Pair { cell, pair });
        }
    }

    /// Sends the newest epoch of a cell to all its connected subscribers.
    fn fan_out(&mut self, shared: &mut Shared, cell: u32, urgent: bool) {
        let now = shared.now();
        let index = cell as usize;
        let Some(&published) = self.cells[index].newest() else { return };
        let range = self.ledger.range(index);
        let wave = range.len() >= WAVE_MIN;
        let changes = self.cells[index].log.since(published.step.from);
        let changes = changes.and_then(|mut marks| marks.next()).map_or(1, |mark| mark.changes);
        let bytes = HEADER_BYTES + u64::from(changes) * ENDPOINT_BYTES;
        let work = self.service_us * (1.0 + 0.05 * f64::from(changes - changes.min(1)));
        let services = shared.meters.slowed.map(|slowed| Span((work * slowed) as u64));
        self.hops.clear();
        self.hops.resize(self.relays.len(), 0);
        self.due.clear();
        let home = (index % REGIONS) as u8;
        let hops = shared.noise.words(Draw::HopProxy, u64::from(cell));
        self.fetch_proxies(range.clone());
        let (mut sent, mut kept, mut far) = ([0_u64; REGIONS], 0_u32, [0_u64; REGIONS]);
        for sub in range {
            let row = self.ledger.subs[sub];
            let proxy = &mut self.proxies[usize::from(row.proxy)];
            if proxy.link.state() != LinkState::Up || self.queued[sub] {
                continue;
            }
            let number = usize::from(proxy.relay);
            let relay = &mut self.relays[number];
            if relay.is_down(now) {
                continue;
            }
            let region = usize::from(proxy.region);
            sent[region] += 1;
            if self.hops[number] == 0 {
                let hop =
                    shared.hop(HOP_RELAY, Draw::HopRelay, pair(cell, published.seq), number as u64);
                let way = if proxy.region == home { 0 } else { REGION_US as Micros };
                self.hops[number] = now + hop + way;
                far[region] += u64::from(proxy.region != home);
                let waits = relay.lane.delay(Time(now + hop + way)).0;
                shared.meters.regions[region].relay_delay.add(waits, 1);
            }
            let index_word = u64::from(published.seq) << 20 | u64::from(row.proxy);
            let loses = relay.loses(now, shared.noise, u64::from(cell), index_word);
            let left = relay.lane.enter(Time(self.hops[number]), services[region], urgent).0;
            let parted = proxy.region != home
                && self.parted[usize::from(proxy.region)].max(self.parted[usize::from(home)]) > now;
            if loses || parted || proxy.is_cut(now) {
                proxy.gapped = true;
                shared.totals.lost_deliveries += 1;
                continue;
            }
            let hop = HOP_PROXY.of(hops(index_word));
            let mut at = (left + hop).max(row.fifo);
            if wave {
                // It is played at the end of its tick, and nothing newer may come before that.
                at = now + (at - now).div_ceil(TICK) * TICK;
            }
            self.ledger.subs[sub].fifo = at;
            kept += 1;
            let delivery = Delivery {
                sub: sub as u32,
                seq: published.seq,
                from: published.step.from.0,
                session: proxy.link.session() as u16,
                snapshot: false,
                corrupt: relay.corrupts(now, shared.noise, u64::from(cell), index_word),
            };
            if wave {
                self.due.push((((at - now) / TICK) as u32, delivery));
            } else {
                shared.push(at, Event::Deliver(delivery));
            }
        }
        for (region, (&sent, far)) in sent.iter().zip(far).enumerate() {
            let counters = &mut shared.meters.regions[region];
            counters.deltas += sent;
            counters.delta_bytes += sent * bytes;
            counters.far_bytes += far * bytes;
            counters.relay_busy_us += sent as f64 * services[region].0 as f64;
            shared.totals.deltas += sent;
            shared.totals.delta_bytes += sent * bytes;
        }
        if kept > 0 {
            self.ledger.expect(index, published.seq, kept);
        }
        if wave && kept > 0 {
            self.start_wave(shared);
        }
    }

    /// A delta or a snapshot arrives.
    pub(crate) fn deliver(&mut self, shared: &mut Shared, delivery: Delivery) {
        let now = shared.now();
        let sub = delivery.sub as usize;
        let cell = self.sub_cell[sub] as usize;
        let row = self.ledger.subs[sub];
        let proxy = &mut self.proxies[usize::from(row.proxy)];
        let stands =
            proxy.link.state() == LinkState::Up && proxy.link.session() as u16 == delivery.session;
        let published = self.cells[cell].find(delivery.seq).copied();
        let (true, false, Some(published)) = (stands, proxy.is_cut(now), published) else {
            proxy.gapped |= stands;
            shared.totals.lost_deliveries += 1;
            self.ledger.cancel(cell, delivery.seq);
            return;
        };
        proxy.link.heard(Time(now));
        let region = proxy.region;
        let end = published.step.end();
        let before = self.subs[sub].cursor();
        let event = if delivery.snapshot {
            let head = SnapshotHead { cursor: end, count: published.count };
            self.subs[sub].on_snapshot(head, !delivery.corrupt, Time(published.at), shared.mutants)
        } else {
            let step = Step { from: Revision(delivery.from), ..published.step };
            self.subs[sub].on_delta(step, !delivery.corrupt, Time(published.at), shared.mutants)
        };
        let after = self.subs[sub].cursor();
        shared.assert(after >= before, "I2", || format!("sub {sub}: {before:?} to {after:?}"));
        match event {
            SubEvent::Applied { by, repaired, first } => {
                let from = before.map(|cursor| cursor.rev);
                let joins = by == By::Snapshot || from == Some(Revision(delivery.from));
                shared.assert(after == Some(end) && joins, "I3", || {
                    format!("sub {sub}: {before:?} to {after:?}, by {delivery:?} to {end:?}")
                });
                if by == By::Delta {
                    let counters = &mut shared.meters.regions[usize::from(region)];
                    counters.watch_lag.add(now - published.at, 1);
                }
                self.applied(shared, sub, cell, (by, repaired, first), delivery.seq);
            }
            other => {
                self.ledger.cancel(cell, delivery.seq);
                self.not_applied(shared, delivery.sub, other);
            }
        }
    }

    fn applied(
        &mut self,
        shared: &mut Shared,
        sub: usize,
        cell: usize,
        (by, repaired, first): (By, bool, bool),
        seq: u32,
    ) {
        let now = shared.now();
        shared.totals.applied += 1;
        let proxy = &mut self.proxies[usize::from(self.ledger.subs[sub].proxy)];
        proxy.link.proved();
        let counters = &mut shared.meters.regions[usize::from(proxy.region)];
        match (by, repaired) {
            (By::Snapshot, _) if !first => {
                counters.snapshot_fallbacks += 1;
                shared.totals.snapshot_fallbacks += 1;
                shared.goals.gap_repaired_by_snapshot += 1;
            }
            (By::Delta, true) => {
                counters.delta_repairs += 1;
                shared.totals.delta_repairs += 1;
                shared.goals.gap_repaired_by_delta += 1;
            }
            _ => {}
        }
        self.ledger.apply(now, cell, sub, seq);
        if first {
            self.retraffic(now, self.traffic.twin[sub] as usize);
        }
        if !self.ledger.events.is_empty() {
            self.drain_pairs(shared);
        }
        if !self.ledger.stopped.is_empty() {
            self.take_stopped();
        }
        if shared.verify
            && let Err(what) = self.ledger.check(cell)
        {
            shared.violate("I16", || format!("cell {cell}: {what}"));
        }
    }

    /// Lost, late, bad: what a subscription does when a message could not be applied.
    pub(crate) fn not_applied(&mut self, shared: &mut Shared, sub: u32, event: SubEvent) {
        let proxy = usize::from(self.ledger.subs[sub as usize].proxy);
        let counters = &mut shared.meters.regions[usize::from(self.proxies[proxy].region)];
        match event {
            SubEvent::Repair(why) => {
                counters.gaps += 1;
                shared.totals.gaps += 1;
                if why == oncall_discovery::proxy::RepairFor::HeadAhead {
                    shared.totals.heads_ahead += 1;
                }
                self.ask_repair(shared, sub, Span::ZERO);
            }
            SubEvent::Rejected { tries, .. } => {
                counters.checksum_rejects += 1;
                shared.totals.checksum_rejects += 1;
                shared.goals.snapshot_checksum_rejected += 1;
                self.rejected(shared, sub, tries);
            }
            SubEvent::Nothing
            | SubEvent::Applied { .. }
            | SubEvent::Confirmed
            | SubEvent::Refused(_) => {}
        }
    }

    /// A pair event of the ledger.
    pub(crate) fn on_pair(
        &mut self,
        shared: &mut Shared,
        cell: u32,
        pair: crate::ledger::PairEvent,
    ) {
        let ejection = self.ledger.pair_event(shared.now(), cell as usize, pair);
        if ejection == Ejection::Done {
            self.traffic.watch(cell as usize);
            shared.totals.ejections += 1;
            let proxy = usize::from(self.ledger.subs[pair.sub as usize].proxy);
            let region = usize::from(self.proxies[proxy].region);
            shared.meters.regions[region].ejections += 1;
        }
        if ejection != Ejection::None && self.ledger.subs[pair.sub as usize].online {
            self.traffic.complaints.push((pair.sub, pair.instance));
        }
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// Subscriptions of connected proxies that stand behind the published head.
    pub fn behind(&self) -> usize {
        let mut behind = 0;
        for (cell, state) in self.cells.iter().enumerate() {
            let head = Some(state.head());
            for sub in self.ledger.range(cell) {
                // Few stand behind, so that few proxies have to be asked.
                if self.subs[sub].cursor() != head {
                    let proxy = &self.proxies[usize::from(self.ledger.subs[sub].proxy)];
                    behind += usize::from(proxy.link.state() == LinkState::Up);
                }
            }
        }
        behind
    }

    /// Whether a subscription is one of another region.
    pub fn is_remote(&self, sub: usize) -> bool {
        self.ledger.subs[sub].caller == REMOTE
    }

    pub(crate) fn cell_of(sub_cell: u32) -> oncall_discovery::types::Cell {
        cell_name(sub_cell)
    }

    /// Largest number of live epochs of a cell.
    pub fn live_epochs_max(&self) -> usize {
        self.ledger.cells.iter().map(crate::ledger::CellLedger::live).max().unwrap_or(0)
    }

    /// The endpoints of a cell's head, by the accounts: what the published set is held against (I4).
    pub(crate) fn head_set(&self, cell: u32, instances: impl Iterator<Item = u32>) -> Vec<u32> {
        let seq = self.ledger.cells[cell as usize].head();
        instances.filter(|&id| self.ledger.holds(cell as usize, id, seq)).collect()
    }
}

/// Subscriptions by proxy.
fn by_proxy(proxies: usize, rows: &[crate::ledger::Sub]) -> (Arc<[u32]>, Arc<[u32]>) {
    let mut first = vec![0_u32; proxies + 1];
    for row in rows {
        first[usize::from(row.proxy) + 1] += 1;
    }
    for proxy in 0..proxies {
        first[proxy + 1] += first[proxy];
    }
    let mut place = first.clone();
    let mut list = vec![0; rows.len()];
    for (sub, row) in rows.iter().enumerate() {
        let at = &mut place[usize::from(row.proxy)];
        list[*at as usize] = sub as u32;
        *at += 1;
    }
    (first.into(), list.into())
}

/// The life of history in which worlds begin.
pub(crate) const FIRST: Incarnation = Incarnation(1);
