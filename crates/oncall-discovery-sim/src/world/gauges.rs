//! What can be read off a world while it runs: counters since the start, and levels now (spec 4.3).
//!
//! Counters are kept where things happen, a few additions each; a look at them copies them and walks over cells,
//! proxies and relays once, never over instances or subscriptions.

use super::World;
use super::fleet::cell_region;
use crate::ledger::Counts;
use crate::queue::{Micros, S};
use crate::topology::REGIONS;
use oncall_discovery::proxy::LinkState;
use oncall_discovery::types::{ProberId, Reason, State, Time, Transition};
use serde::{Deserialize, Serialize};

/// Sub-buckets of a doubling.
const SUB: usize = 4;
/// Doublings.
const DOUBLINGS: usize = 26;
/// Unit of the finest buckets, microseconds.
const UNIT_US: u64 = 64;
/// Places that the spread of probe failures over nodes and over services is counted in.
pub const BINS: usize = 16;

/// Times in buckets a quarter of a doubling wide, from 64 microseconds to two hours. Counts since the start, so the
/// difference of two is the histogram of what lies between.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Histogram([[u32; SUB]; DOUBLINGS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([[0; SUB]; DOUBLINGS])
    }
}

impl Histogram {
    /// Counts `count` times of `time` microseconds.
    #[inline]
    pub fn add(&mut self, time: Micros, count: u32) {
        let value = time / UNIT_US;
        let (row, column) = if value < SUB as u64 {
            (0, value as usize)
        } else {
            let top = 63 - value.leading_zeros() as usize;
            ((top - 1).min(DOUBLINGS - 1), (value >> (top - 2)) as usize % SUB)
        };
        let place = &mut self.0[row][column];
        *place = place.wrapping_add(count);
    }

    /// What was counted since an earlier look.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut out = *self;
        for (row, old) in out.0.iter_mut().flatten().zip(earlier.0.iter().flatten()) {
            *row = row.wrapping_sub(*old);
        }
        out
    }

    /// Adds what another one counted.
    pub fn merge(&mut self, other: &Self) {
        for (row, more) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *row = row.wrapping_add(*more);
        }
    }

    /// How many times.
    pub fn count(&self) -> u64 {
        self.0.iter().flatten().map(|&count| u64::from(count)).sum()
    }

    /// The time below which a share of the counts lies, seconds, linear within a bucket; `None` without any.
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let wanted = share.clamp(0.0, 1.0) * self.count() as f64;
        let mut below = 0.0;
        let mut last = None;
        for (index, &count) in self.0.iter().flatten().enumerate().filter(|(_, count)| **count > 0)
        {
            let (low, high) = (lower(index), lower(index + 1));
            let count = f64::from(count);
            if below + count >= wanted {
                let part = ((wanted - below) / count).max(0.0);
                return Some((low + part * (high - low)) / S as f64);
            }
            below += count;
            last = Some(high / S as f64);
        }
        last
    }
}

/// Lower edge of a bucket, microseconds.
fn lower(index: usize) -> f64 {
    let (row, column) = (index / SUB, index % SUB);
    let units = if row == 0 { column as u64 } else { ((SUB + column) as u64) << (row - 1) };
    (units * UNIT_US) as f64
}

/// Counters of a region since the start of the world.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Accepted transitions by reason, in the order of [`Reason::ALL`]: registrations (R134), flaps
    /// ([`Reason::Recovered`], R138), removals by probes, by leases, by deployments.
    pub reasons: [u64; Reason::ALL.len()],
    /// Renewals of leases that the leaders took (R135); aggregated by node.
    pub renewals: f64,
    /// Commands that the region's logs accepted, and those refused: no leader there, or against the rules.
    pub writes: u64,
    /// See `writes`.
    pub refused: u64,
    /// From the first attempt at a write until its outcome was known (R136).
    pub write_latency: Histogram,
    /// Removals that the guard held back.
    pub guard_held: u64,
    /// Probes sent.
    pub probes: u64,
    /// Probes that failed, and how they spread: by prober, zone, node (hashed) and service (hashed).
    pub probe_failures: u64,
    /// See `probe_failures`.
    pub failures_by_prober: [u64; 3],
    /// See `probe_failures`.
    pub failures_by_zone: [u64; 4],
    /// See `probe_failures`.
    pub failures_by_node: [u64; BINS],
    /// See `probe_failures`.
    pub failures_by_service: [u64; BINS],
    /// Probes that a quarantined prober made.
    pub probes_quarantined: u64,
    /// From a probe to its answer, or to its timeout (R139).
    pub probe_latency: Histogram,
    /// Deltas sent by the region's relays, and their bytes.
    pub deltas: u64,
    /// See `deltas`.
    pub delta_bytes: u64,
    /// Snapshots sent by the region's relays, and their bytes.
    pub snapshots: u64,
    /// See `snapshots`.
    pub snapshot_bytes: u64,
    /// Heartbeats, and their bytes.
    pub heartbeats: u64,
    /// See `heartbeats`.
    pub heartbeat_bytes: u64,
    /// Policies sent to proxies, and their bytes.
    pub policies: u64,
    /// See `policies`.
    pub policy_bytes: u64,
    /// Bytes that came to the region's relays from publishers of other regions.
    pub far_bytes: u64,
    /// Time for which the region's relays worked, microseconds.
    pub relay_busy_us: f64,
    /// What a change finds as queue at a relay.
    pub relay_delay: Histogram,
    /// From publication to a proxy's apply (R140).
    pub watch_lag: Histogram,
    /// Gaps found in chains, or by a heartbeat (R142).
    pub gaps: u64,
    /// Gaps closed by a delta.
    pub delta_repairs: u64,
    /// Gaps closed by a whole snapshot (R143).
    pub snapshot_fallbacks: u64,
    /// Messages whose checksum was wrong.
    pub checksum_rejects: u64,
    /// Attempts to connect (R144), and those that found no room.
    pub connects: u64,
    /// See `connects`.
    pub connects_refused: u64,
    /// Endpoints ejected by a proxy.
    pub ejections: u64,
    /// Expected traffic at the region's cells (R145-R147).
    pub traffic: Counts,
    /// Requests without a backend although one that policy permits was serving.
    pub no_backend_avoidable: f64,
    /// Seconds for which requests waited for connections that never came.
    pub waited_s: f64,
    /// Withdrawals accepted, and those whose last new request came more than 3 s later (R6).
    pub withdrawals: u64,
    /// See `withdrawals`; known once the last connected proxy has applied the removal.
    pub withdrawals_late: u64,
    /// From acceptance to the last new request.
    pub withdrawal: Histogram,
    /// Hard failures whose clocks stopped, and those that were routed to for more than 15 s (R7).
    pub crashes: u64,
    /// See `crashes`.
    pub crashes_late: u64,
    /// From a crash to the last new request.
    pub crash: Histogram,
    /// Hard failures while the region could not decide anything: no objective, they cost requests (D8).
    pub crashes_in_outage: u64,
    /// Removals of instances that were fine.
    pub false_removals: u64,
    /// Long requests in flight when their instance was out of all views, expected (R149).
    pub in_flight: f64,
    /// Long requests cut at an exit, expected.
    pub forced: f64,
}

/// Counters of all regions, and the levels that are kept up to date with them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Meters {
    pub(crate) regions: Box<[Counters; REGIONS]>,
    /// Instances in each state.
    pub(crate) states: [[u32; State::ALL.len()]; REGIONS],
    /// READY instances of each cell, and how many there are to be.
    pub(crate) ready: Vec<u32>,
    pub(crate) target: Vec<u32>,
    /// Instances of each cell that take requests, whatever the catalog says.
    pub(crate) live: Vec<u32>,
    /// Whether an instance takes requests, and its state.
    facts: Vec<(bool, State)>,
    /// READY instances that take no requests.
    dead: [u32; REGIONS],
    /// Instances that would take requests and are UNHEALTHY or EXPIRED.
    shut_out: [u32; REGIONS],
    /// Changes that wait for their publication.
    pub(crate) pending: [i64; REGIONS],
    /// When a group of the region was last seen without a leader, or its probers without power.
    pub(crate) blind: [Micros; REGIONS],
    /// Work of a relay is this much slower through the log that it keeps.
    pub(crate) slowed: [f64; REGIONS],
    pub(crate) rollout: Rollout,
}

/// Rollouts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Rollout {
    /// Endpoints of all rollouts begun.
    pub planned: u64,
    /// Of these, those whose replacement began.
    pub done: u64,
    /// Rollouts that run now.
    pub running: u32,
    /// Seconds that rollouts ran beyond what they would take at the pace planned.
    pub overdue_s: f64,
}

impl Meters {
    /// All instances READY and serving; `cells` of each.
    pub(crate) fn new(cells: usize, instances: impl Iterator<Item = u32>) -> Self {
        let mut meters = Self {
            ready: vec![0; cells],
            live: vec![0; cells],
            slowed: [1.0; REGIONS],
            ..Self::default()
        };
        for cell in instances {
            meters.ready[cell as usize] += 1;
            meters.live[cell as usize] += 1;
            meters.states[cell_region(cell)][State::Ready as usize] += 1;
            meters.facts.push((true, State::Ready));
        }
        meters.target = meters.ready.clone();
        meters
    }

    /// An accepted transition.
    pub(crate) fn moved(&mut self, cell: u32, transition: &Transition) {
        let region = cell_region(cell);
        let (from, to) = (transition.from, transition.to);
        self.regions[region].reasons[transition.reason as usize] += 1;
        let known = self.fact(transition.instance.0);
        self.set_fact(transition.instance.0, region, (known.0, to));
        if let Some(from) = from {
            let count = &mut self.states[region][from as usize];
            *count = count.saturating_sub(1);
        }
        self.states[region][to as usize] += 1;
        let ready = &mut self.ready[cell as usize];
        *ready += u32::from(to == State::Ready);
        *ready = ready.saturating_sub(u32::from(from == Some(State::Ready)));
    }

    /// An instance starts or stops to take requests.
    pub(crate) fn serve(&mut self, id: u32, cell: u32, serves: bool) {
        let (served, state) = self.fact(id);
        if served != serves {
            self.set_fact(id, cell_region(cell), (serves, state));
            let live = &mut self.live[cell as usize];
            *live = if serves { *live + 1 } else { live.saturating_sub(1) };
        }
    }

    fn fact(&self, id: u32) -> (bool, State) {
        self.facts.get(id as usize).copied().unwrap_or((false, State::Gone))
    }

    fn set_fact(&mut self, id: u32, region: usize, fact: (bool, State)) {
        let at = id as usize;
        if self.facts.len() <= at {
            self.facts.resize(at + 1, (false, State::Gone));
        }
        let old = std::mem::replace(&mut self.facts[at], fact);
        let dead = |(serves, state): (bool, State)| u32::from(!serves && state == State::Ready);
        let out = |(serves, state): (bool, State)| {
            u32::from(serves && matches!(state, State::Unhealthy | State::Expired))
        };
        self.dead[region] = self.dead[region] + dead(fact) - dead(old);
        self.shut_out[region] = self.shut_out[region] + out(fact) - out(old);
    }

    /// A probe failed.
    pub(crate) fn probe_failed(&mut self, cell: u32, (node, zone): (u16, u8), prober: u8) {
        let counters = &mut self.regions[cell_region(cell)];
        counters.probe_failures += 1;
        counters.failures_by_prober[usize::from(prober) % 3] += 1;
        counters.failures_by_zone[usize::from(zone) % 4] += 1;
        counters.failures_by_node[bin(u32::from(node))] += 1;
        counters.failures_by_service[bin(cell / REGIONS as u32)] += 1;
    }
}

/// A place for a number: neighbours go to different ones.
fn bin(number: u32) -> usize {
    (number.wrapping_mul(0x9e37_79b9) >> 28) as usize % BINS
}

/// Levels of a region now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Levels {
    /// Highest term of the region's groups.
    pub term: u64,
    /// Share of the region's groups with a leader.
    pub led: f64,
    /// Share of the region's groups whose publisher has heard of a leader with a quorum within two seconds.
    pub quorum: f64,
    /// How far the slowest publisher stands behind what was accepted, seconds.
    pub follower_lag_s: f64,
    /// Instances by state, in the order of [`State::ALL`].
    pub states: [u32; State::ALL.len()],
    /// READY instances that take no requests; not observable, for the truth.
    pub dead: u32,
    /// UNHEALTHY or EXPIRED instances that would take requests; not observable, for the truth.
    pub shut_out: u32,
    /// READY instances as a share of the target.
    pub ready_share: f64,
    /// Shares of the region's services below 50, 80 and 95 % of their targets.
    pub below: [f64; 3],
    /// READY shares of the five services that have the least (R137).
    pub worst: [f64; 5],
    /// Removals that the guard holds back.
    pub guard_holds: u32,
    /// Probers in quarantine, over all groups.
    pub quarantined: u32,
    /// Changes that wait for their publication.
    pub pending: u64,
    /// Longest queue of a relay, seconds.
    pub relay_delay_s: f64,
    /// Snapshots that wait for the budget.
    pub snapshots_waiting: u64,
    /// For how long back the region's relays can bridge a gap, seconds, the worst of them.
    pub retention_s: f64,
    /// Proxies.
    pub proxies: u32,
    /// Share of the proxies whose streams stand (of those whose nodes are there).
    pub connected: f64,
    /// Age of the proxies' views, seconds: half are younger, 99 % are younger, the oldest (R141).
    pub age_s: [f64; 3],
    /// Time since proxies last heard from the control plane, seconds, the longest.
    pub silence_s: f64,
    /// Endpoints that proxies have ejected now.
    pub ejected: u64,
    /// Share of the (proxy, cell) pairs that hold less than half of the cell's target.
    pub thin: f64,
    /// Share of the (proxy, cell) pairs that do not stand at the published head.
    pub behind: f64,
}

/// All that can be read.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Gauges {
    /// Seconds since the start.
    pub t_s: f64,
    /// Counters by region.
    pub counters: [Counters; REGIONS],
    /// Levels by region.
    pub levels: [Levels; REGIONS],
    /// Rollouts.
    pub rollout: Rollout,
}

impl World {
    /// Counters since the start and levels now.
    pub fn gauges(&self) -> Gauges {
        Gauges {
            t_s: self.now_s(),
            counters: *self.shared.meters.regions,
            levels: std::array::from_fn(|region| self.levels(region)),
            rollout: self.shared.meters.rollout,
        }
    }

    fn levels(&self, region: usize) -> Levels {
        let mut levels = Levels::default();
        self.catalog_levels(region, &mut levels);
        self.ready_levels(region, &mut levels);
        self.relay_levels(region, &mut levels);
        self.proxy_levels(region, &mut levels);
        self.view_levels(region, &mut levels);
        levels
    }

    fn catalog_levels(&self, region: usize, levels: &mut Levels) {
        let now = self.shared.now();
        let shards = usize::from(self.topology.shape.shards);
        let groups = &self.control.groups[region * shards..(region + 1) * shards];
        let part = 1.0 / shards as f64;
        for group in groups {
            levels.term = levels.term.max(group.term());
            levels.led += if group.live_leader().is_some() { part } else { 0.0 };
            levels.quorum += if group.confirmed + 2 * S >= now { part } else { 0.0 };
            levels.follower_lag_s = levels.follower_lag_s.max(group.lag_s(now));
            levels.guard_holds += group.decider.held() as u32;
            let quarantined = |p: &u8| group.decider.quarantined(Time(now), ProberId(*p));
            levels.quarantined += (0..super::probing::PROBERS).filter(quarantined).count() as u32;
        }
        levels.states = self.shared.meters.states[region];
        levels.dead = self.shared.meters.dead[region];
        levels.shut_out = self.shared.meters.shut_out[region];
        levels.pending = self.shared.meters.pending[region].max(0) as u64;
    }

    fn ready_levels(&self, region: usize, levels: &mut Levels) {
        let meters = &self.shared.meters;
        levels.worst = [f64::INFINITY; 5];
        let (mut ready_sum, mut target_sum, mut services) = (0, 0, 0_u32);
        let mut below = [0_u32; 3];
        for cell in (region..meters.ready.len()).step_by(REGIONS) {
            let (ready, target) = (meters.ready[cell], meters.target[cell].max(1));
            ready_sum += ready;
            target_sum += target;
            services += 1;
            let share = f64::from(ready) / f64::from(target);
            for (count, limit) in below.iter_mut().zip([0.5, 0.8, 0.95]) {
                *count += u32::from(share < limit);
            }
            if share < levels.worst[4] {
                insert(&mut levels.worst, share);
            }
        }
        levels.worst = levels.worst.map(|share| if share.is_finite() { share } else { 1.0 });
        levels.ready_share = f64::from(ready_sum) / f64::from(target_sum.max(1));
        levels.below = below.map(|count| f64::from(count) / f64::from(services.max(1)));
    }

    fn relay_levels(&self, region: usize, levels: &mut Levels) {
        let now = self.shared.now();
        levels.retention_s = self.shared.relay[region].delta_retention_s;
        for number in self.plane.relays_of(region) {
            let relay = &self.plane.relays[number];
            let delay = relay.lane.delay(Time(now)).0 as f64 / S as f64;
            levels.relay_delay_s = levels.relay_delay_s.max(delay);
            levels.snapshots_waiting += relay.waiting() as u64;
            levels.retention_s = levels.retention_s.min(relay.warm_s(now));
        }
    }

    fn proxy_levels(&self, region: usize, levels: &mut Levels) {
        let now = self.shared.now();
        let mut ages = Histogram::default();
        let (mut up, mut there, mut oldest) = (0_u32, 0_u32, 0);
        for proxy in self.plane.proxies.iter().skip(region).step_by(REGIONS) {
            if !proxy.up {
                continue;
            }
            there += 1;
            up += u32::from(proxy.link.state() == LinkState::Up);
            let age = now - proxy.confirmed.min(now);
            oldest = oldest.max(age);
            ages.add(age, 1);
            let silence = Time(now).since(proxy.link.last_contact()).0 as f64 / S as f64;
            levels.silence_s = levels.silence_s.max(silence);
        }
        levels.proxies = there;
        levels.connected = f64::from(up) / f64::from(there.max(1));
        let at = |share| ages.quantile(share).unwrap_or(0.0).min(oldest as f64 / S as f64);
        levels.age_s = [at(0.5), at(0.99), oldest as f64 / S as f64];
    }

    fn view_levels(&self, region: usize, levels: &mut Levels) {
        let (mut subs, mut thin, mut behind) = (0, 0, 0);
        let ledger = &self.plane.ledger;
        for cell in (region..ledger.cells.len()).step_by(REGIONS) {
            let all = ledger.range(cell).len() as u32;
            let accounts = &ledger.cells[cell];
            let target = self.shared.meters.target[cell];
            subs += all;
            behind += all - accounts.head_subs();
            thin += accounts.thin_subs(target / 2);
        }
        levels.ejected = ledger.ejected_now(region);
        levels.thin = f64::from(thin) / f64::from(subs.max(1));
        levels.behind = f64::from(behind) / f64::from(subs.max(1));
    }
}

/// Puts a share among the five smallest.
fn insert(worst: &mut [f64; 5], share: f64) {
    let Some(at) = worst.iter().position(|&other| share < other) else { return };
    worst[at..].rotate_right(1);
    worst[at] = share;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a sorted list: every quantile lies within the bucket of the true one, a fifth wide at most.
        #[test]
        fn quantiles_are_those_of_the_list(
            mut times in prop::collection::vec(300_u64..4_000_000_000, 1..200),
            share in 0.0_f64..1.0,
        ) {
            let mut histogram = Histogram::default();
            for &time in &times {
                histogram.add(time, 1);
            }
            times.sort_unstable();
            let rank = ((share * times.len() as f64).ceil() as usize).clamp(1, times.len());
            let truth = times[rank - 1] as f64 / S as f64;
            let found = histogram.quantile(share).unwrap();
            prop_assert_eq!(histogram.count(), times.len() as u64);
            prop_assert!((truth * 0.79..=truth * 1.26).contains(&found), "{} for {}", found, truth);
        }
    }

    #[test]
    fn a_difference_holds_what_lies_between() {
        let mut histogram = Histogram::default();
        histogram.add(3 * S, 5);
        let earlier = histogram;
        histogram.add(20 * S, 7);
        let between = histogram.since(&earlier);
        assert_eq!((between.count(), earlier.count(), histogram.count()), (7, 5, 12));
        assert!((16.0..24.0).contains(&between.quantile(0.5).unwrap()));
        assert_eq!(Histogram::default().quantile(0.5), None);
        histogram.add(Micros::MAX, 1);
        assert_eq!(histogram.count(), 13, "what is longer than two hours is in the last bucket");
    }

    /// The buckets cover the line: each begins where the one before ends.
    #[test]
    fn buckets_begin_where_others_end() {
        let edge = |index: usize| lower(index) as Micros;
        for index in 1..SUB * DOUBLINGS {
            let mut histogram = Histogram::default();
            histogram.add(edge(index), 1);
            histogram.add(edge(index) - 1, 1);
            let filled: Vec<usize> =
                (0..SUB * DOUBLINGS).filter(|at| histogram.0[at / SUB][at % SUB] == 1).collect();
            assert_eq!(filled, [index - 1, index]);
        }
    }

    #[test]
    fn the_worst_five_are_the_five_smallest() {
        let mut worst = [f64::INFINITY; 5];
        for share in [0.9, 0.2, 1.0, 0.4, 0.8, 0.1, 0.7, 0.3] {
            insert(&mut worst, share);
        }
        assert_eq!(worst, [0.1, 0.2, 0.3, 0.4, 0.7]);
    }
}
