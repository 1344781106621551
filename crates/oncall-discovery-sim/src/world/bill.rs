//! Money, and the counts that money is asked for (spec 4.4). All prices stand in one table.

use super::World;
use super::fleet::cell_region;
use super::gauges::Counters;
use crate::ledger::Counts;
use crate::queue::{S, micros};
use crate::schedule::Action;
use crate::topology::REGIONS;
use oncall_discovery::types::State;
use serde::{Deserialize, Serialize};

/// One price or one quantity that prices are applied to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    /// Name, unit last.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Unit.
    pub unit: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

macro_rules! prices {
    ($($name:ident: $value:expr, $unit:expr, $source:expr;)*) => {
        $(#[doc = $source] const $name: f64 = $value;)*

        /// The table of prices and of what work costs in machines.
        pub const PRICES: &[Price] = &[$(Price {
            name: stringify!($name),
            value: $value,
            unit: $unit,
            source: $source,
        },)*];
    };
}

prices! {
    VCPU_H: 0.04, "$/vCPU-h", "Specification 4.4: relays and probers.";
    DRAIN_INSTANCE_H: 0.05, "$/instance-h", "Specification 4.4: a draining instance runs beside its replacement.";
    EGRESS_ZONE_GB: 0.01, "$/GB", "Specification 4.4: between zones.";
    EGRESS_REGION_GB: 0.02, "$/GB", "Specification 4.4: between regions.";
    RETENTION_GB_H: 0.005, "$/GB-h", "Specification 4.4: memory of relays for delta logs.";
    SPARE_INSTANCE_H: 0.000_75, "$/instance-h", "Assumption: capacity kept free for other regions, less what batch work pays for it.";
    RELAY_IDLE_VCPU: 8.0, "vCPU", "Assumption: a relay of the full fleet is a machine of eight cores that nobody else uses.";
    RELAY_WORK_VCPU: 1.0, "vCPU", "Assumption: what it takes more while it works.";
    HEARTBEAT_KB_VCPU_S: 0.03, "vCPU-s/kB", "Assumption: heads written, sent, read and compared, at both ends.";
    PROBE_PROBER_VCPU_S: 0.0015, "vCPU-s/probe", "Assumption: 700 probes a second and core, each with a connection and TLS.";
    PROBE_INSTANCE_VCPU_S: 0.0025, "vCPU-s/probe", "Assumption: TLS again, and a readiness check that looks at what the process needs.";
    RENEWAL_VCPU_S: 0.0004, "vCPU-s/renewal", "Assumption: one message of a node's agent for all its instances (R128).";
    WRITE_VCPU_S: 0.002, "vCPU-s/write", "Assumption: three replicas, disks included.";
    ZONE_SHARE: 0.666_666_666_666_666_6, "share", "Three zones: two of three proxies are in another one than their relay.";
    LOG_BYTES_PER_CHANGE: 2_560.0, "bytes", "256 bytes (R131) with indices, cursors of readers and room for peaks: tenfold.";
    LOG_CHANGES_PER_S: 166.0, "changes/s", "What logs are sized for: the rollout of R129, 83 additions and 83 removals.";
    FAR_CALL_BYTES: 20_000.0, "bytes/attempt", "Assumption: a call that is served in another region, both ways.";
}

/// Bytes of a delta log beside which a relay of the full fleet works at half speed: more log, more misses of the
/// cache at every delivery.
pub(crate) const LOG_HALF_SPEED_BYTES: f64 = 16e6;
/// Bytes of a change in a log.
pub(crate) const CHANGE_BYTES: f64 = 256.0;
/// Pace that rollouts are planned with at full scale, endpoints a second (R129): the plan does not follow the dial.
pub const PLANNED_PACE_PER_S: f64 = 83.0;

/// What was spent and what happened since the start. Dollars are those of this fleet: one of a hundredth of the
/// size spends about a hundredth; [`Bill::fleet_share`] is that part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Bill {
    /// Relays, at rest and at work, and heartbeats, $.
    pub relays: f64,
    /// Probers, $.
    pub probers: f64,
    /// What instances spend on answering probes, $.
    pub probed: f64,
    /// Renewals and writes at the catalogs, $.
    pub catalog: f64,
    /// Draining instances, $.
    pub drain: f64,
    /// Bytes between zones, $.
    pub egress_zone: f64,
    /// Bytes between regions, $.
    pub egress_region: f64,
    /// Memory for delta logs, $.
    pub retention: f64,
    /// Capacity kept free for other regions, $.
    pub spare: f64,
    /// Withdrawals accepted.
    pub withdrawals: u64,
    /// Of these, those whose last new request came more than 3 s later.
    pub withdrawals_late: u64,
    /// Hard failures whose clock stopped, those in a region that could not decide anything left out (D8).
    pub crashes: u64,
    /// Of these, those that were routed to for more than 15 s.
    pub crashes_late: u64,
    /// Requests, expected.
    pub requests: f64,
    /// Of these, those that failed for the user, no-backend included.
    pub failed: f64,
    /// Requests without a backend although one that policy permits was serving, expected.
    pub no_backend_avoidable: f64,
    /// Requests cut at an exit, expected.
    pub forced: f64,
    /// Attempts at endpoints that the catalog no longer held READY, expected (R145).
    pub stale: f64,
    /// Minutes that rollouts ran beyond what they would take at the pace planned.
    pub rollout_overdue_min: f64,
    /// This fleet as a part of the full one, by instances.
    pub fleet_share: f64,
}

impl Bill {
    /// Names of the items of $ops, in the order of [`Bill::items`].
    pub const ITEMS: [&'static str; 9] = [
        "relays",
        "probers",
        "probed",
        "catalog",
        "drain",
        "egress_zone",
        "egress_region",
        "retention",
        "spare",
    ];

    /// The items of $ops.
    pub fn items(&self) -> [f64; 9] {
        [
            self.relays,
            self.probers,
            self.probed,
            self.catalog,
            self.drain,
            self.egress_zone,
            self.egress_region,
            self.retention,
            self.spare,
        ]
    }

    /// $ops: all items.
    pub fn ops(&self) -> f64 {
        self.items().iter().sum()
    }
}

/// The books: what was spent by item, and how far the counters had come when it was.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Books {
    spent: [f64; 9],
    marks: [Mark; REGIONS],
    /// Instances that a region would keep free at a failover cap of 100 %.
    spare: [f64; REGIONS],
    /// Changes in the logs of a region's relays, with the retention in force.
    kept: [f64; REGIONS],
}

/// Counters that are charged by difference.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Mark {
    probes: f64,
    renewals: f64,
    writes: f64,
    busy_us: f64,
    heartbeat_bytes: f64,
    bytes: f64,
    far_bytes: f64,
}

impl Mark {
    fn of(counters: &Counters) -> Self {
        let bytes = counters.delta_bytes
            + counters.snapshot_bytes
            + counters.heartbeat_bytes
            + counters.policy_bytes;
        Self {
            probes: counters.probes as f64,
            renewals: counters.renewals,
            writes: counters.writes as f64,
            busy_us: counters.relay_busy_us,
            heartbeat_bytes: counters.heartbeat_bytes as f64,
            bytes: bytes as f64,
            far_bytes: counters.far_bytes as f64 + counters.traffic.cross_region * FAR_CALL_BYTES,
        }
    }
}

impl Books {
    /// `spare`: instances that cross-region services declare as spare, by region.
    pub(crate) fn declare(&mut self, spare: [f64; REGIONS]) {
        self.spare = spare;
    }

    /// A publication put so many changes into the logs.
    #[inline]
    pub(crate) fn keep(&mut self, region: usize, changes: u32) {
        self.kept[region] += f64::from(changes);
    }
}

impl World {
    /// A second is over: what runs by time is charged, what runs by count since the last time as well.
    pub(crate) fn charge(&mut self) {
        let hour = 1.0 / 3_600.0;
        for region in 0..REGIONS {
            let relays = self.plane.active[region];
            let paid = f64::from(self.shared.wishes.paid_relays(region, relays));
            let shared = &mut self.shared;
            let (share, relay) = (shared.share, shared.relay[region]);
            let counters = &shared.meters.regions[region];
            let mark = Mark::of(counters);
            let old = std::mem::replace(&mut shared.books.marks[region], mark);
            let busy_s = (mark.busy_us - old.busy_us) / 1e6;
            let heartbeats_kb = (mark.heartbeat_bytes - old.heartbeat_bytes) / 1e3;
            let relay_vcpu = paid * RELAY_IDLE_VCPU + busy_s * RELAY_WORK_VCPU;
            let probes = mark.probes - old.probes;
            let catalog_vcpu = (mark.renewals - old.renewals) * RENEWAL_VCPU_S
                + (mark.writes - old.writes) * WRITE_VCPU_S;
            let draining = f64::from(shared.meters.states[region][State::Draining as usize]);
            // Sized for rollouts at this fleet's pace, by the dial of relays rather than by their number here.
            let log_gb = relay.delta_retention_s * LOG_CHANGES_PER_S * LOG_BYTES_PER_CHANGE / 1e9;
            let cap = shared.proxy[region].failover_cap_pct / 100.0;
            let dollars = [
                (relay_vcpu * share.machine + heartbeats_kb * HEARTBEAT_KB_VCPU_S) * VCPU_H * hour,
                probes * PROBE_PROBER_VCPU_S * VCPU_H * hour,
                probes * PROBE_INSTANCE_VCPU_S * VCPU_H * hour,
                catalog_vcpu * VCPU_H * hour,
                draining * DRAIN_INSTANCE_H * hour,
                (mark.bytes - old.bytes) * ZONE_SHARE * EGRESS_ZONE_GB / 1e9,
                (mark.far_bytes - old.far_bytes) * EGRESS_REGION_GB / 1e9,
                paid * share.machine * log_gb * RETENTION_GB_H * hour,
                shared.books.spare[region] * cap * SPARE_INSTANCE_H * hour,
            ];
            for (sum, more) in shared.books.spent.iter_mut().zip(dollars) {
                *sum += more;
            }
            // The log loses what is older than the retention: with a steady rate, as much as comes in.
            let kept = &mut shared.books.kept[region];
            *kept -= *kept / relay.delta_retention_s.max(1.0);
            let half = LOG_HALF_SPEED_BYTES * share.fleet;
            shared.meters.slowed[region] = 1.0 + *kept * CHANGE_BYTES / half;
        }
        self.count_overdue();
    }

    /// Rollouts that run longer than planned.
    fn count_overdue(&mut self) {
        let now = self.shared.now();
        let mut rollout = super::gauges::Rollout {
            overdue_s: self.shared.meters.rollout.overdue_s,
            ..Default::default()
        };
        for (planned, memory) in self.scenario.plan.iter().zip(&self.memory) {
            if !matches!(planned.action, Action::Rollout { .. }) || memory.chosen.is_empty() {
                continue;
            }
            let (all, done) = (memory.chosen.len() as u64, u64::from(memory.done));
            rollout.planned += all;
            rollout.done += done;
            if done < all {
                rollout.running += 1;
                let pace = PLANNED_PACE_PER_S * self.shared.share.pace;
                let end = micros(planned.at_s + all as f64 / pace);
                rollout.overdue_s += now.saturating_sub(end).min(S) as f64 / S as f64;
            }
        }
        self.shared.meters.rollout = rollout;
    }

    /// Traffic since the last second: what it means for users. Returns all of it.
    pub(crate) fn take_traffic(&mut self) -> Counts {
        let now = self.shared.now();
        let mut regions = [Counts::default(); REGIONS];
        for cell in 0..self.plane.cells.len() {
            let counts = self.plane.ledger.take(now, cell);
            let region = cell_region(cell as u32);
            regions[region].add(&counts, 1.0);
            if counts.no_backend > 0.0 {
                self.note_no_backend(cell, counts.no_backend);
            }
        }
        let mut all = Counts::default();
        for (region, counts) in regions.iter().enumerate() {
            let connect_s = self.shared.proxy[region].connect_timeout_ms / 1e3;
            let counters = &mut self.shared.meters.regions[region];
            counters.traffic.add(counts, 1.0);
            counters.waited_s += counts.failures * connect_s;
            all.add(counts, 1.0);
        }
        all
    }

    /// Requests of a cell had no backend: whether one that policy permits was serving.
    fn note_no_backend(&mut self, cell: usize, requests: f64) {
        let first = cell / REGIONS * REGIONS;
        let order = &self.plane.traffic.policies[cell / REGIONS].order;
        let mut permitted = order.iter().map(|region| first + region.index());
        let meters = &mut self.shared.meters;
        if meters.live[cell] > 0 || permitted.any(|cell| meters.live[cell] > 0) {
            meters.regions[cell_region(cell as u32)].no_backend_avoidable += requests;
            self.shared.totals.no_backend_permitted += requests;
        }
        if self.shared.verify {
            self.check_no_backend(cell as u32);
        }
    }

    /// What was spent and what happened since the start.
    pub fn bill(&self) -> Bill {
        let meters = &self.shared.meters;
        let [relays, probers, probed, catalog, drain, egress_zone, egress_region, retention, spare] =
            self.shared.books.spent;
        let mut bill = Bill {
            relays,
            probers,
            probed,
            catalog,
            drain,
            egress_zone,
            egress_region,
            retention,
            spare,
            rollout_overdue_min: meters.rollout.overdue_s / 60.0,
            fleet_share: self.shared.share.fleet,
            ..Bill::default()
        };
        for counters in meters.regions.iter() {
            bill.withdrawals += counters.withdrawals;
            bill.withdrawals_late += counters.withdrawals_late;
            bill.crashes += counters.crashes;
            bill.crashes_late += counters.crashes_late;
            bill.requests += counters.traffic.requests;
            bill.failed += counters.traffic.user_visible();
            bill.no_backend_avoidable += counters.no_backend_avoidable;
            bill.forced += counters.forced;
            bill.stale += counters.traffic.stale;
        }
        bill
    }
}
