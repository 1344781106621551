//! What the exporters report at one scrape: natural units, rates over the last ten seconds.

use oncall_discovery_sim::topology::REGIONS;
use serde::{Deserialize, Serialize};

/// Numbers of a scrape. Arrays of [`REGIONS`] are by region.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[expect(
    missing_docs,
    reason = "each field is a signal of the same name, described in the table of signals"
)]
pub struct Scrape {
    pub seen: [f64; REGIONS],
    pub writes_per_s: [f64; REGIONS],
    pub write_ms_p99: [f64; REGIONS],
    pub follower_lag_s: [f64; REGIONS],
    pub quorum: [f64; REGIONS],
    pub write_ms_p50: f64,
    pub rejected_per_s: f64,
    pub term_changes: f64,
    pub renewals_per_s: f64,
    pub registrations_per_s: f64,
    pub withdrawals_per_s: f64,
    pub removals_probe_per_s: f64,
    pub removals_lease_per_s: f64,
    pub removals_held_per_s: f64,

    pub ready_share: [f64; REGIONS],
    pub below_50: f64,
    pub below_80: f64,
    pub below_95: f64,
    pub ready_worst5: f64,
    pub starting: f64,
    pub draining: f64,
    pub unhealthy: f64,
    pub expired: f64,
    pub flaps_per_s: f64,
    pub probe_ms_p50: f64,
    pub probe_ms_p99: [f64; REGIONS],
    pub probe_failures: [f64; REGIONS],
    pub by_node: f64,
    pub by_zone: f64,
    pub by_service: f64,
    pub holding: f64,
    pub disagreement: f64,

    pub pending: f64,
    pub relay_ms: [f64; REGIONS],
    pub deltas_per_s: f64,
    pub delta_mb_per_s: f64,
    pub watch_lag_p50: f64,
    pub watch_lag_p99: f64,
    pub gaps_per_s: f64,
    pub fallbacks_per_s: f64,
    pub snapshots_waiting: f64,
    pub snapshot_mb_per_s: f64,
    pub retention_s: f64,

    pub connected: [f64; REGIONS],
    pub reconnects_per_s: f64,
    pub age_p50: f64,
    pub age_p99: f64,
    pub age_max: f64,
    pub contact_s: f64,
    pub ejected: f64,
    pub thin: f64,

    pub requests_per_s: f64,
    pub failed: [f64; REGIONS],
    pub retries: f64,
    pub added_ms: f64,
    pub stale: f64,
    pub connect_failures: f64,
    pub no_backend: f64,
    pub refused: f64,
    pub cross_region: f64,
    pub overload: [f64; REGIONS],

    pub withdrawal_p50: f64,
    pub withdrawal_p99: f64,
    pub withdrawal_late: f64,
    pub removal_p50: f64,
    pub removal_p99: f64,
    pub removal_late: f64,
    pub last_request_s: f64,
    pub completed: f64,
    pub forced_per_s: f64,
    pub convergence_s: f64,
    pub burn_5min: f64,
    pub burn_1h: f64,

    pub relays_usd_h: f64,
    pub probers_usd_h: f64,
    pub catalog_usd_h: f64,
    pub drain_usd_h: f64,
    pub egress_usd_h: f64,
    pub memory_usd_h: f64,
    pub spare_usd_h: f64,
}

impl Scrape {
    /// Puts the values of the scrape before in the place of what no exporter of the control plane reports:
    /// a region's where that region's is down, the totals where all are.
    pub(crate) fn freeze(&mut self, before: &Self, up: [bool; REGIONS]) {
        for region in (0..REGIONS).filter(|&region| !up[region]) {
            macro_rules! keep {
                ($($field:ident)*) => { $(self.$field[region] = before.$field[region];)* };
            }
            keep!(writes_per_s write_ms_p99 follower_lag_s quorum ready_share probe_ms_p99
                probe_failures relay_ms);
        }
        if up != [false; REGIONS] {
            return;
        }
        macro_rules! keep {
            ($($field:ident)*) => { $(self.$field = before.$field;)* };
        }
        keep!(write_ms_p50 rejected_per_s term_changes renewals_per_s registrations_per_s
            withdrawals_per_s removals_probe_per_s removals_lease_per_s removals_held_per_s);
        keep!(below_50 below_80 below_95 ready_worst5 starting draining unhealthy expired
            flaps_per_s probe_ms_p50 by_node by_zone by_service holding disagreement);
        keep!(pending deltas_per_s delta_mb_per_s watch_lag_p50 watch_lag_p99 gaps_per_s
            fallbacks_per_s snapshots_waiting snapshot_mb_per_s retention_s);
    }
}
