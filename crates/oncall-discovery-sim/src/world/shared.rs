//! What all parts of a world share: the queue, the noise, the dials, clocks, counters, goals.

use super::bill::Books;
use super::clocks::Clocks;
use super::dials::Wishes;
use super::gauges::Meters;
use super::share::Share;
use crate::ledger::PairEvent;
use crate::noise::{Draw, Noise};
use crate::queue::{MS, Micros, Queue};
use crate::topology::REGIONS;
use oncall_discovery::dials::Dials;
use oncall_discovery::mutants::Mutants;
use oncall_discovery::types::{Span, Time};
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// Something that happens in a world.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) enum Event {
    /// A replica's timer.
    RaftTick { group: u16, replica: u8 },
    /// A message between replicas arrives; its place in the slab.
    Raft { group: u16, slot: u32 },
    /// A command reaches its group, or tries again.
    Ask { slot: u32 },
    /// A part of an instance's life; void for another life.
    Life { instance: u32, life: u32, what: Life },
    /// A lease of a group may have run out.
    Lease { group: u16 },
    /// The next bucket of probes.
    Probes,
    /// A probe that matters is answered or given up.
    Probe { instance: u32, life: u32, prober: u8, answer: Answer },
    /// A decider looks again at what it held back.
    Review { group: u16 },
    /// The schedule: an action begins.
    Begin { plan: u16 },
    /// A step of an action.
    Step { plan: u16, step: u32 },
    /// An action ends.
    End { plan: u16 },
    /// Pending changes of a cell are due.
    Flush { cell: u32 },
    /// A delta or snapshot arrives at a proxy.
    Deliver(Delivery),
    /// Part of a wave of deltas arrives: deliveries of a tick.
    Wave { slot: u32, tick: u32 },
    /// A proxy asks its relay to repair a cell.
    Repair { sub: u32, session: u32 },
    /// A relay's snapshot budget may have room.
    Snapshots { relay: u16 },
    /// A proxy looks after its stream.
    Tend { proxy: u16 },
    /// A proxy's hello reaches its relay.
    Hello { proxy: u16, session: u32 },
    /// The relay's answer reaches the proxy.
    Welcome { proxy: u16, session: u32 },
    /// The relay had no room.
    Busy { proxy: u16, session: u32, after: Micros },
    /// A heartbeat reaches a proxy.
    Heartbeat { proxy: u16, session: u32, beat: u16 },
    /// A policy reaches a relay.
    Policy { relay: u16 },
    /// A policy reaches a proxy.
    Adopt { proxy: u16, session: u32, version: u32 },
    /// Another number of relays is there.
    Relays { region: u8, count: u16 },
    /// A proxy is sent to another relay of its region.
    Move { proxy: u16, place: u16 },
    /// Something about a pair of proxy and endpoint.
    Pair { cell: u32, pair: PairEvent },
    /// A proxy's complaint about an endpoint reaches the decider.
    Complaint { sub: u32, instance: u32 },
    /// A second is over.
    Second,
    /// A message-level component: its place in the slab.
    Wire { slot: u32 },
    /// A message-level component's timer: its place in the slab.
    Timer { slot: u32 },
    /// A sampled request of a subscription, or its next attempt.
    Call { sub: u32, version: u32 },
}

/// A delta or a snapshot on its way to one subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivery {
    /// Subscription.
    pub sub: u32,
    /// Epoch that it leads to.
    pub seq: u32,
    /// Revision that it starts from.
    pub from: u32,
    /// Low bits of the stream's number.
    pub session: u16,
    /// Whether it is a whole set.
    pub snapshot: bool,
    /// Whether its bytes are bad.
    pub corrupt: bool,
}

/// A part of an instance's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Life {
    /// Startup and readiness passed.
    Booted,
    /// Its agent is asked to report.
    Report,
    /// It withdraws readiness.
    Withdraw,
    /// It no longer takes new work.
    Refuse,
    /// It exits.
    Exit,
    /// It dies without notice; frozen processes let probes time out.
    Die {
        /// Whether it only stops to answer.
        freeze: bool,
    },
    /// Its node is back: a new process at the same address.
    Return,
    /// A renewal that the process before it had sent arrives.
    LateRenewal,
}

/// How a probe ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// In time, and well.
    Ok,
    /// Refused, or no answer in time.
    Failed,
}

/// Counters of a run; expectations for traffic, whole numbers for the rest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it, and the table of the report explains them")]
pub struct Totals {
    pub traffic: crate::ledger::Counts,
    pub proposals: u64,
    pub refused_no_leader: u64,
    pub accepted: u64,
    pub already_so: u64,
    pub refused_by_catalog: u64,
    pub old_generation_refused: u64,
    pub old_term_expiries_refused: u64,
    pub renewals: f64,
    pub leader_changes: u64,
    pub raft_messages: u64,
    pub probes: u64,
    pub probe_failures: u64,
    pub false_removals: u64,
    pub removals_by_probe: u64,
    pub removals_by_lease: u64,
    pub guard_held: u64,
    pub probes_quarantined: u64,
    pub flushes: u64,
    pub deltas: u64,
    pub delta_bytes: u64,
    pub lost_deliveries: u64,
    pub applied: u64,
    pub gaps: u64,
    pub heads_ahead: u64,
    pub delta_repairs: u64,
    pub snapshots: u64,
    pub snapshot_bytes: u64,
    pub snapshot_fallbacks: u64,
    pub checksum_rejects: u64,
    pub connects: u64,
    pub connects_refused: u64,
    pub resumed: u64,
    pub bridged: u64,
    pub heartbeats: u64,
    pub ejections: u64,
    pub forced: f64,
    pub in_flight_at_withdrawal: f64,
    pub starting_in_view: u64,
    pub relay_switches: u64,
    pub events: u64,
    pub complaints: u64,
    /// No-backend results although a permitted region had an instance that serves.
    pub no_backend_permitted: f64,
}

/// "Sometimes" goals: what tests must have reached, so that they do not pass for want of trying.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Goals {
    pub gap_repaired_by_delta: u64,
    pub gap_repaired_by_snapshot: u64,
    pub retention_overflow: u64,
    pub guard_held_a_removal: u64,
    pub old_generation_refused: u64,
    pub old_term_expiry_refused: u64,
    pub no_backend_returned: u64,
    pub failover_capped: u64,
    pub snapshot_checksum_rejected: u64,
}

impl Goals {
    /// Names and counts.
    pub fn list(&self) -> [(&'static str, u64); 9] {
        [
            ("gap repaired by delta", self.gap_repaired_by_delta),
            ("gap repaired by snapshot", self.gap_repaired_by_snapshot),
            ("retention overflow", self.retention_overflow),
            ("guard held a removal", self.guard_held_a_removal),
            ("old generation refused", self.old_generation_refused),
            ("expiry of a stepped-down leader refused", self.old_term_expiry_refused),
            ("no-backend returned", self.no_backend_returned),
            ("failover obeyed a cap", self.failover_capped),
            ("snapshot checksum rejected", self.snapshot_checksum_rejected),
        ]
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        self.gap_repaired_by_delta += other.gap_repaired_by_delta;
        self.gap_repaired_by_snapshot += other.gap_repaired_by_snapshot;
        self.retention_overflow += other.retention_overflow;
        self.guard_held_a_removal += other.guard_held_a_removal;
        self.old_generation_refused += other.old_generation_refused;
        self.old_term_expiry_refused += other.old_term_expiry_refused;
        self.no_backend_returned += other.no_backend_returned;
        self.failover_capped += other.failover_capped;
        self.snapshot_checksum_rejected += other.snapshot_checksum_rejected;
    }
}

/// A broken invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violation {
    /// Its name in the specification: `I1` to `I22`.
    pub invariant: String,
    /// When.
    pub at: Micros,
    /// What was found.
    pub what: String,
}

/// A step of a world's course, as far as the data plane sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Trace {
    /// An update reached its publisher.
    Update(oncall_discovery::types::CellUpdate),
    /// An instance starts or stops to fail all requests.
    Failing(u32, bool),
    /// The catalog holds it READY.
    Ready(u32),
    /// The catalog no longer does; its clock started then.
    NotReady(u32, Micros),
    /// It died; its clock starts.
    Died(u32),
    /// A dependency fails that share of a cell's attempts from now on.
    Soft(u32, f64),
}

/// What all parts of a world share.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Shared {
    pub(crate) queue: Queue<Event>,
    pub(crate) noise: Noise,
    /// What the operator wants.
    pub(crate) dials: Dials,
    /// In force at the leaders of each region.
    pub(crate) catalog: [Dials; REGIONS],
    /// In force at the relays of each region.
    pub(crate) relay: [Dials; REGIONS],
    /// By which the calls of each region's proxies are accounted.
    pub(crate) proxy: [Dials; REGIONS],
    pub(crate) wishes: Wishes,
    pub(crate) share: Share,
    pub(crate) meters: Meters,
    pub(crate) books: Books,
    /// Whether rows, hashes and finished timelines are kept.
    pub(crate) record: bool,
    pub(crate) clocks: Clocks,
    pub(crate) totals: Totals,
    pub(crate) goals: Goals,
    pub(crate) violations: Vec<Violation>,
    /// Set-level checks at every publication and delivery.
    pub(crate) verify: bool,
    /// Safeguards that tests take out.
    pub(crate) mutants: Mutants,
    /// Numbers draws that have no other index.
    counter: u64,
    /// The course, if it is recorded.
    #[serde(skip)]
    pub(crate) course: Option<Vec<(Micros, Trace)>>,
}

/// Quantiles in the table.
const QUANTILES: usize = 4096;

/// Quantiles of the exponential distribution with mean 1, at the middles of equal parts, for hops: a look-up in
/// place of a logarithm. One table for all worlds: a batch that is played in turns finds it in the cache.
static TAILS: LazyLock<[f32; QUANTILES]> = LazyLock::new(|| {
    std::array::from_fn(|i| {
        -oncall_core::math::ln(1.0 - (i as f64 + 0.5) / QUANTILES as f64) as f32
    })
});

/// One hop: base and mean of the exponential part, microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Hop {
    /// Least time.
    pub base: f64,
    /// Mean of the rest.
    pub tail: f64,
}

impl Hop {
    /// Its delay for a random word.
    #[inline]
    pub(crate) fn of(self, word: u64) -> Micros {
        (self.base + self.tail * f64::from(TAILS[(word >> 52) as usize])) as Micros
    }
}

/// Catalog to relay, same region.
pub const HOP_RELAY: Hop = Hop { base: 10_000.0, tail: 40_000.0 };
/// Relay to proxy, same region.
pub const HOP_PROXY: Hop = Hop { base: 10_000.0, tail: 40_000.0 };
/// What another region adds to the first hop.
pub const REGION_US: f64 = 60_000.0;
/// Agent or controller to the leader.
pub(crate) const HOP_ASK: Hop = Hop { base: 1_000.0, tail: 2_000.0 };
/// Replica to replica, with the disk of the receiver.
pub(crate) const HOP_REPLICA: Hop = Hop { base: 800.0, tail: 700.0 };

impl Shared {
    pub(crate) fn new(noise: Noise, dials: &Dials, verify: bool, share: Share) -> Self {
        Self {
            queue: Queue::new(),
            noise,
            dials: *dials,
            catalog: [*dials; REGIONS],
            relay: [*dials; REGIONS],
            proxy: [*dials; REGIONS],
            wishes: Wishes::new(dials),
            share,
            meters: Meters::default(),
            books: Books::default(),
            record: true,
            clocks: Clocks::default(),
            totals: Totals::default(),
            goals: Goals::default(),
            violations: Vec::new(),
            verify,
            mutants: Mutants::default(),
            counter: 0,
            course: None,
        }
    }

    /// The dials that the leaders of a region go by, and their probers, publisher, agents and rollouts.
    #[inline]
    pub(crate) fn led(&self, region: usize) -> &Dials {
        &self.catalog[region]
    }

    #[inline]
    pub(crate) fn now(&self) -> Micros {
        self.queue.now()
    }

    #[inline]
    pub(crate) fn time(&self) -> Time {
        Time(self.queue.now())
    }

    #[inline]
    pub(crate) fn push(&mut self, at: Micros, event: Event) {
        self.queue.push(at, event);
    }

    /// A delay of one hop, keyed.
    #[inline]
    pub(crate) fn hop(&self, hop: Hop, draw: Draw, entity: u64, index: u64) -> Micros {
        hop.of(self.noise.word(draw, entity, index))
    }

    /// A number that no other draw of this kind uses.
    #[inline]
    pub(crate) fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }

    /// Records a step of the course.
    #[inline]
    pub(crate) fn trace(&mut self, step: Trace) {
        let now = self.queue.now();
        if let Some(course) = &mut self.course {
            course.push((now, step));
        }
    }

    /// Notes a broken invariant; the first thousand are kept.
    pub(crate) fn violate(&mut self, invariant: &str, what: impl FnOnce() -> String) {
        if self.violations.len() < 1_000 {
            let at = self.now();
            self.violations.push(Violation { invariant: invariant.to_owned(), at, what: what() });
        }
    }

    /// Asserts an invariant.
    #[inline]
    pub(crate) fn assert(&mut self, holds: bool, invariant: &str, what: impl FnOnce() -> String) {
        if !holds {
            self.violate(invariant, what);
        }
    }

    pub(crate) fn span_s(seconds: f64) -> Span {
        Dials::span_s(seconds)
    }

    /// Milliseconds since the start, as replicas count.
    pub(crate) fn ticks(&self) -> u64 {
        self.now() / MS
    }
}

/// Things with a number, where free places are used again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Slab<T> {
    rows: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { rows: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn put(&mut self, row: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.rows[at as usize] = Some(row);
            return at;
        }
        self.rows.push(Some(row));
        self.rows.len() as u32 - 1
    }

    pub(crate) fn take(&mut self, at: u32) -> Option<T> {
        let row = self.rows.get_mut(at as usize)?.take();
        if row.is_some() {
            self.free.push(at);
        }
        row
    }

    pub(crate) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.rows.get_mut(at as usize)?.as_mut()
    }

    pub(crate) fn get(&self, at: u32) -> Option<&T> {
        self.rows.get(at as usize)?.as_ref()
    }
}
