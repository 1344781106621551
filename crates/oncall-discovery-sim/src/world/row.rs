//! One row a second: what a timeline shows.

use super::World;
use super::shared::{Event, Totals};
use crate::ledger::Counts;
use crate::queue::S;
use crate::topology::REGIONS;
use serde::{Deserialize, Serialize};

/// A second of a world; counts within the second, levels at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Seconds since the start.
    pub t_s: f64,
    /// Expected traffic.
    pub traffic: Counts,
    /// Counters within the second.
    pub accepted: u64,
    /// Commands that found no leader.
    pub refused_no_leader: u64,
    /// Deltas sent.
    pub deltas: u64,
    /// Bytes of deltas sent.
    pub delta_bytes: u64,
    /// Snapshots sent.
    pub snapshots: u64,
    /// Bytes of snapshots sent.
    pub snapshot_bytes: u64,
    /// Attempts to connect.
    pub connects: u64,
    /// Share of the proxies whose streams stand.
    pub connected: f64,
    /// Subscriptions of connected proxies behind the published head.
    pub behind: u64,
    /// Oldest confirmation of a proxy's views, seconds.
    pub snapshot_age_max_s: f64,
    /// Longest queue of a relay, milliseconds.
    pub relay_delay_max_ms: f64,
    /// Snapshots that wait for the budget.
    pub snapshots_waiting: u64,
    /// Groups with a leader.
    pub groups_led: u64,
    /// READY instances, as the catalogs have it.
    pub ready: u64,
    /// Endpoints ejected by a proxy within the second.
    pub ejections: u64,
}

impl Row {
    /// Names of the columns of a CSV, in the order of [`Row::values`].
    pub const COLUMNS: [&'static str; 22] = [
        "t_s",
        "requests_per_s",
        "stale_per_s",
        "connect_failures_per_s",
        "failed_per_s",
        "no_backend_per_s",
        "retries_per_s",
        "accepted",
        "refused_no_leader",
        "deltas",
        "delta_bytes",
        "snapshots",
        "snapshot_bytes",
        "connects",
        "connected",
        "behind",
        "snapshot_age_max_s",
        "relay_delay_max_ms",
        "snapshots_waiting",
        "groups_led",
        "ready",
        "ejections",
    ];

    /// The values in the order of the columns.
    pub fn values(&self) -> [f64; 22] {
        [
            self.t_s,
            self.traffic.requests,
            self.traffic.stale,
            self.traffic.failures,
            self.traffic.failed,
            self.traffic.no_backend,
            self.traffic.retries,
            self.accepted as f64,
            self.refused_no_leader as f64,
            self.deltas as f64,
            self.delta_bytes as f64,
            self.snapshots as f64,
            self.snapshot_bytes as f64,
            self.connects as f64,
            self.connected,
            self.behind as f64,
            self.snapshot_age_max_s,
            self.relay_delay_max_ms,
            self.snapshots_waiting as f64,
            self.groups_led as f64,
            self.ready as f64,
            self.ejections as f64,
        ]
    }
}

impl World {
    /// A second is over: bursts of the next one, what ran by time, and what is recorded.
    pub(crate) fn on_second(&mut self) {
        let now = self.shared.now();
        self.draw_bursts();
        for region in 0..REGIONS {
            // Aggregated by node (R128): one message a node and interval.
            let interval = self.shared.led(region).renewal_interval_s;
            let renewals = self.topology.by_region[region].len() as f64 / interval;
            self.shared.totals.renewals += renewals;
            self.shared.meters.regions[region].renewals += renewals;
        }
        self.look_for_leaders();
        let traffic = self.take_traffic();
        self.charge();
        self.shared.totals.traffic.add(&traffic, 1.0);
        if traffic.no_backend > 0.0 {
            self.shared.goals.no_backend_returned += 1;
        }
        self.check_traffic(&traffic);
        self.shared.push(now + S, Event::Second);
        if self.shared.record {
            self.record_second(traffic);
        }
    }

    /// When a region was last seen unable to decide: a group without a leader, or its probers stopped.
    fn look_for_leaders(&mut self) {
        let now = self.shared.now();
        for region in 0..REGIONS {
            let mut groups = self.control.groups.iter();
            let led = groups.all(|g| usize::from(g.region) != region || g.live_leader().is_some());
            if !led || self.probing.is_stopped(region, now) {
                self.shared.meters.blind[region] = now;
            }
        }
    }

    /// The row of a second, and every ten seconds a hash.
    fn record_second(&mut self, traffic: Counts) {
        let now = self.shared.now();
        let (totals, taken): (Totals, Totals) = (self.shared.totals, self.taken);
        let ready = self.control.groups.iter().map(|group| {
            group.catalog.views().map(|v| u64::from(v.count(oncall_discovery::types::State::Ready)))
        });
        let connected = self.plane.connected();
        // Looking at every subscription is dear: it is done while streams are down, and for a while after.
        let mut recent = self.rows.iter().rev().take(60);
        let amiss = connected < 1.0
            || recent.any(|row| row.connected < 1.0)
            || self.plane.snapshots_waiting() > 0;
        let behind =
            if amiss || now.is_multiple_of(10 * S) { self.plane.behind() as u64 } else { 0 };
        let row = Row {
            t_s: now as f64 / S as f64,
            traffic,
            accepted: totals.accepted - taken.accepted,
            refused_no_leader: totals.refused_no_leader - taken.refused_no_leader,
            deltas: totals.deltas - taken.deltas,
            delta_bytes: totals.delta_bytes - taken.delta_bytes,
            snapshots: totals.snapshots - taken.snapshots,
            snapshot_bytes: totals.snapshot_bytes - taken.snapshot_bytes,
            connects: totals.connects - taken.connects,
            connected,
            behind,
            snapshot_age_max_s: self.plane.age_max(now) as f64 / S as f64,
            relay_delay_max_ms: self.plane.relay_delay_max(now) as f64 / 1e3,
            snapshots_waiting: self.plane.snapshots_waiting() as u64,
            groups_led: self.control.groups.iter().filter(|g| g.live_leader().is_some()).count()
                as u64,
            ready: ready.flatten().sum(),
            ejections: totals.ejections - taken.ejections,
        };
        self.taken = totals;
        self.rows.push(row);
        if now.is_multiple_of(10 * S) {
            self.trail.push(self.quick_digest());
        }
    }

    /// Hash of what the future depends on most: heads, views, catalogs, counters, clocks. The full state
    /// is hashed by [`World::digest`].
    pub(crate) fn quick_digest(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new();
        let mut word = |word: u64| {
            hasher.update(&word.to_le_bytes());
        };
        word(self.shared.now());
        for group in &self.control.groups {
            word(group.catalog.audit().written());
            word(group.term());
        }
        for cell in self.plane.cells.iter() {
            word(u64::from(cell.head().rev.0));
        }
        // One word for all views: the hash of so many would cost more than the seconds that it covers.
        word(self.plane.subs.iter().fold(0, |sum, sub| {
            let rev = sub.cursor().map_or(u64::MAX, |cursor| u64::from(cursor.rev.0));
            oncall_core::streams::scramble(sum ^ rev)
        }));
        let traffic = self.shared.totals.traffic;
        for value in [traffic.requests, traffic.stale, traffic.failures, traffic.failed] {
            word(value.to_bits());
        }
        word(self.shared.totals.events);
        word(u64::from(self.shared.clocks.begun()));
        *hasher.finalize().as_bytes()
    }
}
