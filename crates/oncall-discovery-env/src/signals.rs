//! The table of signals: names, units, ranges, transforms, and what each one shows.
//!
//! Scraped signals come from [`Scrape`], with the delay of their group; own ones are what the operator's
//! console knows without a scrape. Ranges are those of the observation, which clips at their ends.

use crate::dials;
use crate::own::Own;
use crate::scrape::Scrape;
use oncall_core::{Dial, DialKind, Scale, Signal, View};
use oncall_discovery_sim::topology::REGIONS;

const LIN: Scale = Scale::Linear;
const fn log(knee: f64) -> Scale {
    Scale::Symlog { knee }
}

/// What is scraped together, with one delay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    /// Shards, leases, registration.
    Catalog,
    /// Deciders and probers.
    Health,
    /// Publishers and relays.
    Distribution,
    /// Proxies.
    Proxies,
    /// Requests, as proxies count them.
    Traffic,
    /// The objectives.
    Slo,
    /// Money.
    Cost,
}

impl Group {
    /// Number of groups.
    pub const COUNT: usize = 7;

    /// Whether an outage of the control plane takes its exporters away.
    pub fn is_control(self) -> bool {
        matches!(self, Self::Catalog | Self::Health | Self::Distribution)
    }
}

/// One row: a signal, or one for each region.
struct Row<S> {
    group: Group,
    names: &'static [&'static str],
    labels: &'static [&'static str],
    unit: &'static str,
    range: (f64, f64),
    scale: Scale,
    view: View,
    doc: &'static str,
    value: fn(&S, usize) -> f64,
}

macro_rules! names {
    (total $name:expr) => {
        &[$name]
    };
    (by_region $name:expr) => {
        &[concat!($name, "_r0"), concat!($name, "_r1"), concat!($name, "_r2")]
    };
}

macro_rules! labels {
    (total $label:literal) => {
        &[$label]
    };
    (by_region $label:literal) => {
        &[
            concat!($label, ", region 0"),
            concat!($label, ", region 1"),
            concat!($label, ", region 2"),
        ]
    };
}

macro_rules! rows {
    ($Source:ty, $view:expr; $($group:ident $span:ident $name:ident: $label:literal, $unit:literal,
        $low:literal, $high:literal, $scale:expr, $doc:literal, |$s:ident, $r:ident| $value:expr;)*) => {
        &[$(Row::<$Source> {
            group: Group::$group,
            names: names!($span stringify!($name)),
            labels: labels!($span $label),
            unit: $unit,
            range: ($low as f64, $high as f64),
            scale: $scale,
            view: $view,
            doc: $doc,
            value: |$s: &$Source, $r: usize| $value,
        },)*]
    };
}

const SCRAPED: &[Row<Scrape>] = rows! { Scrape, View::Operator;
    Catalog by_region catalog_seen: "Control plane seen", "", 0, 1, LIN, "1 if the scrape of the region's control plane arrived; 0 while it is missing and its signals show their last value.", |s, r| s.seen[r];
    Catalog by_region catalog_writes_per_s: "Catalog writes", "1/s", 0, 1000, log(1.0), "Commands that the region's catalog accepted.", |s, r| s.writes_per_s[r];
    Catalog by_region write_latency_ms_p99: "Write latency p99", "ms", 0, 60000, log(10.0), "From the request to the acceptance, 99 % quantile.", |s, r| s.write_ms_p99[r];
    Catalog by_region follower_lag_s_max: "Follower lag", "s", 0, 60, log(0.05), "How far the slowest follower is behind its leader.", |s, r| s.follower_lag_s[r];
    Catalog by_region quorum: "Quorum", "", 0, 1, LIN, "Share of the region's groups that have a leader.", |s, r| s.quorum[r];
    Catalog total write_latency_ms_p50: "Write latency p50", "ms", 0, 60000, log(10.0), "From the request to the acceptance, median of all regions.", |s, _r| s.write_ms_p50;
    Catalog total writes_rejected_per_s: "Rejected writes", "1/s", 0, 1000, log(1.0), "Commands that found no leader.", |s, _r| s.rejected_per_s;
    Catalog total term_changes_10min: "Leader changes, 10 min", "", 0, 100, log(1.0), "New leaders of any group within ten minutes.", |s, _r| s.term_changes;
    Catalog total renewals_per_s: "Renewals", "1/s", 0, 100_000, log(1.0), "Messages that renew leases.", |s, _r| s.renewals_per_s;
    Catalog total registrations_per_s: "Registrations", "1/s", 0, 1000, log(1.0), "New instances.", |s, _r| s.registrations_per_s;
    Catalog total withdrawals_per_s: "Withdrawals", "1/s", 0, 1000, log(1.0), "Deliberate departures that the catalogs accepted.", |s, _r| s.withdrawals_per_s;
    Catalog total removals_probe_per_s: "Removals by probes", "1/s", 0, 1000, log(1.0), "Instances that probes, complaints or their own agents found bad.", |s, _r| s.removals_probe_per_s;
    Catalog total removals_lease_per_s: "Removals by leases", "1/s", 0, 1000, log(1.0), "Instances whose lease ran out.", |s, _r| s.removals_lease_per_s;
    Catalog total removals_held_per_s: "Removals held", "1/s", 0, 1000, log(1.0), "Removals that the capacity guard held back.", |s, _r| s.removals_held_per_s;
    Health by_region ready_share: "READY", "", 0, 2, LIN, "READY instances over the target of the region.", |s, r| s.ready_share[r];
    Health total services_below_50_share: "Services below 50 %", "", 0, 1, LIN, "Share of the cells with less than half of their target READY.", |s, _r| s.below_50;
    Health total services_below_80_share: "Services below 80 %", "", 0, 1, LIN, "Share of the cells with less than 80 % of their target READY.", |s, _r| s.below_80;
    Health total services_below_95_share: "Services below 95 %", "", 0, 1, LIN, "Share of the cells with less than 95 % of their target READY.", |s, _r| s.below_95;
    Health total ready_share_worst5: "READY, worst five", "", 0, 2, LIN, "Mean READY share of the five services that have least.", |s, _r| s.ready_worst5;
    Health total starting_share: "STARTING", "", 0, 1, log(0.001), "STARTING instances over the target of the fleet.", |s, _r| s.starting;
    Health total draining_share: "DRAINING", "", 0, 1, log(0.001), "DRAINING instances over the target of the fleet.", |s, _r| s.draining;
    Health total unhealthy_share: "UNHEALTHY", "", 0, 1, log(0.001), "UNHEALTHY instances over the target of the fleet.", |s, _r| s.unhealthy;
    Health total expired_share: "EXPIRED", "", 0, 1, log(0.001), "EXPIRED instances over the target of the fleet.", |s, _r| s.expired;
    Health total flaps_per_s: "Flaps", "1/s", 0, 1000, log(0.1), "Instances that came back from UNHEALTHY.", |s, _r| s.flaps_per_s;
    Health total probe_latency_ms_p50: "Probe latency p50", "ms", 0, 5000, log(10.0), "Median time of a probe, all regions.", |s, _r| s.probe_ms_p50;
    Health by_region probe_latency_ms_p99: "Probe latency p99", "ms", 0, 5000, log(10.0), "99 % quantile of the time of a probe.", |s, r| s.probe_ms_p99[r];
    Health by_region probe_failure_share: "Failed probes", "", 0, 1, log(0.001), "Share of the probes that failed.", |s, r| s.probe_failures[r];
    Health total probe_failures_by_node: "Failures by node", "", 0, 1, LIN, "How much the failed probes concentrate on few nodes: 0 spread, 1 all on one.", |s, _r| s.by_node;
    Health total probe_failures_by_zone: "Failures by zone", "", 0, 1, LIN, "How much the failed probes concentrate on few zones: 0 spread, 1 all in one.", |s, _r| s.by_zone;
    Health total probe_failures_by_service: "Failures by service", "", 0, 1, LIN, "How much the failed probes concentrate on few services: 0 spread, 1 all of one.", |s, _r| s.by_service;
    Health total removals_holding: "Removals waiting", "", 0, 10000, log(1.0), "Removals that the capacity guard holds now.", |s, _r| s.holding;
    Health total prober_disagreement: "Probers disagree", "", 0, 1, log(0.01), "How far the failure rates of a region's probers lie apart, the worst region.", |s, _r| s.disagreement;
    Distribution total changes_pending: "Changes waiting", "", 0, 100_000, log(1.0), "Changes that wait in coalescing windows.", |s, _r| s.pending;
    Distribution by_region relay_queue_ms_p99: "Relay queue p99", "ms", 0, 600_000, log(10.0), "Delay in the queues of the region's relays.", |s, r| s.relay_ms[r];
    Distribution total deltas_per_s: "Deltas", "1/s", 0, 1_000_000, log(10.0), "Deltas that relays sent.", |s, _r| s.deltas_per_s;
    Distribution total delta_mb_per_s: "Bytes of deltas", "MB/s", 0, 1000, log(0.01), "Bytes of these deltas.", |s, _r| s.delta_mb_per_s;
    Distribution total watch_lag_s_p50: "Watch lag p50", "s", 0, 600, log(0.1), "From the publication to the application at a proxy, median.", |s, _r| s.watch_lag_p50;
    Distribution total watch_lag_s_p99: "Watch lag p99", "s", 0, 600, log(0.1), "From the publication to the application at a proxy, 99 % quantile.", |s, _r| s.watch_lag_p99;
    Distribution total revision_gaps_per_s: "Gaps", "1/s", 0, 100_000, log(0.1), "Gaps that proxies found in their chains.", |s, _r| s.gaps_per_s;
    Distribution total snapshot_fallbacks_per_s: "Fallbacks to snapshots", "1/s", 0, 100_000, log(0.1), "Gaps that no retained delta could bridge.", |s, _r| s.fallbacks_per_s;
    Distribution total snapshots_waiting: "Snapshots waiting", "", 0, 1_000_000, log(1.0), "Snapshots that wait for the budget.", |s, _r| s.snapshots_waiting;
    Distribution total snapshot_mb_per_s: "Bytes of snapshots", "MB/s", 0, 10000, log(0.01), "Bytes of snapshots sent.", |s, _r| s.snapshot_mb_per_s;
    Distribution total retention_s: "Retention", "s", 0, 3600, log(30.0), "How far back relays can bridge a gap.", |s, _r| s.retention_s;
    Proxies by_region connected_share: "Connected", "", 0, 1, LIN, "Share of the region's proxies whose streams stand.", |s, r| s.connected[r];
    Proxies total reconnects_per_s: "Attempts to connect", "1/s", 0, 100_000, log(0.1), "Attempts of all proxies.", |s, _r| s.reconnects_per_s;
    Proxies total snapshot_age_s_p50: "Age of views p50", "s", 0, 3600, log(5.0), "Time since a proxy's views were last confirmed, median.", |s, _r| s.age_p50;
    Proxies total snapshot_age_s_p99: "Age of views p99", "s", 0, 3600, log(5.0), "Time since a proxy's views were last confirmed, 99 % quantile.", |s, _r| s.age_p99;
    Proxies total snapshot_age_s_max: "Age of views, oldest", "s", 0, 3600, log(5.0), "Time since a proxy's views were last confirmed, the oldest.", |s, _r| s.age_max;
    Proxies total last_contact_s_max: "Last contact, oldest", "s", 0, 3600, log(5.0), "Longest time since a proxy heard from its relay.", |s, _r| s.contact_s;
    Proxies total ejected_share: "Ejected", "", 0, 50, log(0.001), "Pairs of proxy and endpoint that are ejected, over the fleet's instances.", |s, _r| s.ejected;
    Proxies total thin_views_share: "Thin views", "", 0, 1, log(0.001), "Share of the pairs of proxy and cell with too few endpoints.", |s, _r| s.thin;
    Traffic total requests_per_s: "Requests", "1/s", 0, 1_000_000, log(100.0), "Requests of all proxies.", |s, _r| s.requests_per_s;
    Traffic by_region failed_share: "Failed", "", 0, 1, log(0.0001), "Share of the region's requests that failed after all retries.", |s, r| s.failed[r];
    Traffic total retries_share: "Retries", "", 0, 3, log(0.001), "Retries over requests.", |s, _r| s.retries;
    Traffic total added_latency_ms: "Added latency", "ms", 0, 10000, log(1.0), "Mean wait of a request for connections that failed.", |s, _r| s.added_ms;
    Traffic total stale_share: "Stale routes", "", 0, 1, log(0.0001), "New requests to endpoints that the catalog no longer holds, over requests.", |s, _r| s.stale;
    Traffic total connect_failures_share: "Failed connections", "", 0, 4, log(0.0001), "Attempts that failed at the endpoint, over requests.", |s, _r| s.connect_failures;
    Traffic total no_backend_share: "No backend", "", 0, 1, log(0.0001), "Share of the requests that found no candidate.", |s, _r| s.no_backend;
    Traffic total refused_share: "Refused by policy", "", 0, 1, log(0.0001), "Share of the requests that a policy refused, as by the age of the view.", |s, _r| s.refused;
    Traffic total cross_region_share: "To other regions", "", 0, 1, log(0.001), "Share of the requests that went to another region.", |s, _r| s.cross_region;
    Traffic by_region overload: "Load of READY instances", "x", 0, 10, LIN, "Load of a READY instance over its load at the target.", |s, r| s.overload[r];
    Slo total withdrawal_s_p50: "Withdrawal p50", "s", 0, 600, log(1.0), "From the acceptance to the last new request, median of ten minutes.", |s, _r| s.withdrawal_p50;
    Slo total withdrawal_s_p99: "Withdrawal p99", "s", 0, 600, log(1.0), "From the acceptance to the last new request, 99 % quantile of ten minutes; the objective is 3 s.", |s, _r| s.withdrawal_p99;
    Slo total withdrawal_late_share: "Withdrawals late", "", 0, 1, log(0.001), "Share of the withdrawals of ten minutes that took more than 3 s.", |s, _r| s.withdrawal_late;
    Slo total removal_s_p50: "Removal p50", "s", 0, 600, log(1.0), "From a silent death to the last route, median of ten minutes.", |s, _r| s.removal_p50;
    Slo total removal_s_p99: "Removal p99", "s", 0, 600, log(1.0), "From a silent death to the last route, 99 % quantile of ten minutes; the objective is 15 s.", |s, _r| s.removal_p99;
    Slo total removal_late_share: "Removals late", "", 0, 1, log(0.001), "Share of the silent deaths of ten minutes that were routed to after 15 s.", |s, _r| s.removal_late;
    Slo total last_request_s_max: "Last new request, longest", "s", 0, 3600, log(1.0), "Longest of both clocks within ten minutes.", |s, _r| s.last_request_s;
    Slo total drained_share: "Completed while draining", "", 0, 1, LIN, "Share of the requests in flight at a withdrawal that could end; ten minutes.", |s, _r| s.completed;
    Slo total forced_per_s: "Cut requests", "1/s", 0, 10000, log(0.01), "Requests in flight that an exit cut.", |s, _r| s.forced_per_s;
    Slo total convergence_s: "Convergence", "s", 0, 3600, log(5.0), "Time that views have been behind since they were last all at their heads; 0 while they are.", |s, _r| s.convergence_s;
    Slo total burn_5min: "Burn, 5 min", "x", 0, 10000, log(1.0), "Failed share of five minutes over the share that the budget allows.", |s, _r| s.burn_5min;
    Slo total burn_1h: "Burn, 1 h", "x", 0, 10000, log(1.0), "Failed share of an hour over the share that the budget allows.", |s, _r| s.burn_1h;
    Cost total relays_usd_h: "Relays", "usd/h", 0, 10000, log(1.0), "Relays of all regions.", |s, _r| s.relays_usd_h;
    Cost total probers_usd_h: "Probers", "usd/h", 0, 10000, log(1.0), "Probers, and what instances spend on answering them.", |s, _r| s.probers_usd_h;
    Cost total catalog_usd_h: "Catalogs", "usd/h", 0, 10000, log(1.0), "Renewals and writes at the catalogs.", |s, _r| s.catalog_usd_h;
    Cost total drain_usd_h: "Double running", "usd/h", 0, 10000, log(1.0), "Instances that drain while their successors run.", |s, _r| s.drain_usd_h;
    Cost total egress_usd_h: "Egress", "usd/h", 0, 10000, log(1.0), "Bytes between zones and regions.", |s, _r| s.egress_usd_h;
    Cost total memory_usd_h: "Retention memory", "usd/h", 0, 10000, log(1.0), "Memory of retained deltas.", |s, _r| s.memory_usd_h;
    Cost total spare_usd_h: "Spare capacity", "usd/h", 0, 10000, log(1.0), "Capacity held for failover.", |s, _r| s.spare_usd_h;
};

const OWN: &[Row<Own>] = rows! { Own, View::Operator;
    Slo total budget_left: "Error budget left", "", -10, 10, log(0.1), "Share of the month's budget of failed requests, as accounted; may be negative.", |o, _r| o.budgets[0];
    Slo total withdrawal_budget_left: "Budget of late withdrawals left", "", -10, 10, log(0.1), "Share of the month's budget of withdrawals later than 3 s.", |o, _r| o.budgets[1];
    Slo total removal_budget_left: "Budget of late removals left", "", -10, 10, log(0.1), "Share of the month's budget of silent deaths routed to after 15 s.", |o, _r| o.budgets[2];
    Cost total cost_usd: "Running cost so far", "usd", 0, 100_000, log(10.0), "Dollars of all running costs since the episode began.", |o, _r| o.cost_usd;
    Proxies by_region proxies_in_force_share: "Proxies with the dials", "", 0, 1, LIN, "Share of the region's proxies that have the dials as they are wished.", |o, r| o.proxies_in_force[r];
    Catalog by_region catalog_in_force: "Catalog with the dials", "", 0, 1, LIN, "1 once the region's catalog acts on the dials as they are wished.", |o, r| o.catalog_in_force[r];
    Slo total rollout_running: "Rollout running", "", 0, 1, LIN, "1 while a rollout of the calendar is under way.", |o, _r| o.rollout_running;
    Slo total rollout_left_share: "Rollout left", "", 0, 1, log(0.01), "Endpoints that rollouts under way still have to replace, over the fleet.", |o, _r| o.rollout_left;
    Slo total rollout_next_min: "Next rollout", "min", 0, 60, LIN, "Minutes until the next rollout of the calendar; 60 if there is none.", |o, _r| o.rollout_next_min;
    Slo total rollout_next_share: "Size of the next rollout", "", 0, 1, log(0.01), "Endpoints of the next rollout over the fleet; 0 if there is none.", |o, _r| o.rollout_next_share;
    Slo total rollout_next_services_share: "Services of the next rollout", "", 0, 1, log(0.01), "Services over which the next rollout is spread, over all.", |o, _r| o.rollout_next_services;
    Slo total episode_min: "Episode so far", "min", 0, 60, LIN, "Minutes played.", |o, _r| o.played_min;
    Slo total episode_left_min: "Episode left", "min", 0, 60, LIN, "Minutes until the scenario ends.", |o, _r| o.left_min;
};

const TRUTHS: &[Row<Own>] = rows! { Own, View::Full;
    Slo total truth_scenario: "Scenario", "", 0, 64, LIN, "Number of the scenario of a mixture that is played; a truth.", |o, _r| o.truth.scenario;
    Health by_region truth_dead_routable_share: "Dead but READY", "", 0, 1, log(0.001), "Instances that take no requests and are still READY in the catalog, over the target; a truth.", |o, r| o.truth.dead_ready[r];
    Health by_region truth_alive_unroutable_share: "Alive but not READY", "", 0, 1, log(0.001), "Instances that could serve and are UNHEALTHY or EXPIRED, over the target; a truth.", |o, r| o.truth.alive_out[r];
    Slo total truth_to_onset_min: "To the onset", "min", -60, 60, LIN, "Minutes until the first fault of the scenario; negative afterwards, 60 without one; a truth.", |o, _r| o.truth.to_onset_min;
    Slo total truth_faults: "Faults", "", 0, 16, LIN, "Faults under way; a truth.", |o, _r| o.truth.faults;
    Health total truth_probe_loss_share: "Loss of probes", "", 0, 1, log(0.001), "Mean share of the probes that the network loses in this episode's regime; a truth.", |o, _r| o.truth.probe_loss;
    Slo total violations: "Broken invariants", "", 0, 1000, log(1.0), "Invariants I1 to I22 broken so far; anything but 0 is a bug.", |o, _r| o.truth.violations;
};

/// Names of the dials as they are wished, in the order of the table of dials.
const DIAL_NAMES: [&str; dials::COUNT] = [
    "dial_probe_interval_s",
    "dial_probe_timeout_s",
    "dial_failure_threshold",
    "dial_recovery_threshold",
    "dial_probe_jitter_pct",
    "dial_confirming_probers",
    "dial_dependency_mode",
    "dial_guard_share_pct",
    "dial_lease_ttl_s",
    "dial_renewal_interval_s",
    "dial_coalesce_removals_ms",
    "dial_coalesce_additions_ms",
    "dial_delta_retention_s",
    "dial_snapshot_budget_mb_s",
    "dial_admission_per_s",
    "dial_reconnect_base_s",
    "dial_reconnect_cap_s",
    "dial_reconnect_jitter_pct",
    "dial_head_heartbeat_s",
    "dial_ejection_errors",
    "dial_ejection_base_s",
    "dial_ejected_share_max_pct",
    "dial_connect_timeout_ms",
    "dial_retries_max",
    "dial_retry_budget_pct",
    "dial_drain_period_s",
    "dial_accept_grace_s",
    "dial_failover_trigger_pct",
    "dial_failover_cap_pct",
    "dial_snapshot_age_max_ordinary_s",
    "dial_snapshot_age_max_strict_s",
    "dial_rollout_pace_per_s",
    "dial_relays_per_region",
];

/// The transform of a dial that is shown.
fn scale_of(dial: &Dial) -> Scale {
    match dial.kind {
        DialKind::Log if dial.low > 0.0 => Scale::Log,
        DialKind::Log => log(20.0),
        _ => LIN,
    }
}

fn push<S>(row: &Row<S>, table: &mut Vec<Signal>) {
    for (&name, &label) in row.names.iter().zip(row.labels) {
        table.push(Signal {
            name,
            label,
            unit: row.unit,
            low: row.range.0,
            high: row.range.1,
            scale: row.scale,
            view: row.view,
            column: true,
            doc: row.doc,
        });
    }
}

/// The table of signals.
pub fn table() -> Vec<Signal> {
    let mut table = Vec::new();
    for row in SCRAPED {
        push(row, &mut table);
    }
    for row in OWN {
        push(row, &mut table);
    }
    for (dial, name) in dials::table().into_iter().zip(DIAL_NAMES) {
        table.push(Signal {
            name,
            label: dial.label,
            unit: dial.unit,
            low: dial.low,
            high: dial.high,
            scale: scale_of(&dial),
            view: View::Operator,
            column: false,
            doc: "The dial as it is wished, in the place of the action once it has been turned so far.",
        });
    }
    for row in TRUTHS {
        push(row, &mut table);
    }
    table
}

/// Writes the natural values in the order of the table. `scrapes` are those that each group shows now.
pub fn write(scrapes: [&Scrape; Group::COUNT], own: &Own, out: &mut [f64]) {
    let mut at = 0;
    for row in SCRAPED {
        let scrape = scrapes[row.group as usize];
        at = put(row, scrape, at, out);
    }
    for row in OWN {
        at = put(row, own, at, out);
    }
    out[at..at + dials::COUNT].copy_from_slice(&own.dials);
    at += dials::COUNT;
    for row in TRUTHS {
        at = put(row, own, at, out);
    }
    debug_assert_eq!(at, out.len());
}

fn put<S>(row: &Row<S>, source: &S, at: usize, out: &mut [f64]) -> usize {
    for (region, place) in out[at..at + row.names.len()].iter_mut().enumerate() {
        *place = (row.value)(source, region);
    }
    at + row.names.len()
}

/// Copies what an outage of the control plane takes away from the scrape before: a region's signals when
/// that region's is gone, the totals when all are.
pub fn freeze(now: &mut Scrape, before: &Scrape, up: [bool; REGIONS]) {
    now.seen = up.map(|up| f64::from(u8::from(up)));
    if up == [true; REGIONS] {
        return;
    }
    now.freeze(before, up);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_table_is_well_formed() {
        let table = table();
        let names: BTreeSet<_> = table.iter().map(|signal| signal.name).collect();
        assert_eq!(names.len(), table.len(), "no name twice");
        let operator = table.iter().filter(|signal| signal.view == View::Operator).count();
        assert_eq!((operator, table.len()), (154, 165));
        for signal in &table {
            assert!(signal.low < signal.high, "{}", signal.name);
            let symmetric = signal.low >= 0.0 || signal.low == -signal.high;
            assert!(symmetric, "{}", signal.name);
            assert!(signal.scale != Scale::Log || signal.low > 0.0, "{}", signal.name);
            assert!(signal.doc.ends_with('.'), "{}", signal.name);
        }
    }

    #[test]
    fn dials_are_shown_under_their_names() {
        for (dial, name) in dials::table().iter().zip(DIAL_NAMES) {
            assert_eq!(name, format!("dial_{}", dial.name));
        }
    }

    #[test]
    fn values_stand_where_their_names_do() {
        let table = table();
        let mut scrape = Scrape { retention_s: 77.0, ..Scrape::default() };
        scrape.overload[2] = 3.5;
        let mut own = Own::default();
        own.truth.violations = 9.0;
        own.dials[4] = 12.0;
        let mut out = vec![0.0; table.len()];
        write([&scrape; Group::COUNT], &own, &mut out);
        let value = |name: &str| out[table.iter().position(|s| s.name == name).unwrap()];
        assert_eq!(value("retention_s"), 77.0);
        assert_eq!((value("overload_r2"), value("overload_r1")), (3.5, 0.0));
        assert_eq!((value("violations"), value("dial_probe_jitter_pct")), (9.0, 12.0));
    }
}
