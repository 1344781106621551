//! The scripted operator: what a person with a runbook reads off the symptoms, and does.
//!
//! | pattern | what is done |
//! |---|---|
//! | probes fail, concentrated on a few services | health is believed less: a tight guard, no dependencies in readiness |
//! | probes fail, concentrated on nodes | health is believed sooner: a low failure threshold |
//! | probes fail as one vantage point sees it | several probers must agree |
//! | instances die one by one | low failure threshold, quick ejection, room for it |
//! | writes slow down or followers lag | prepare for an outage: long retention, old snapshots allowed, ejection ready, long leases |
//! | the control plane is gone | what it could still be told is told already; for the time after it, as for a storm |
//! | proxies come back in a storm | full jitter; admission and snapshot budget of a storm |
//! | a region cannot write, or has few instances | reads may fail over |
//! | one region's requests fail, the others' do not | proxies may eject more of what fails, and reads fail over |
//! | a rollout on few services | wide windows, more relays before it begins, a slow pace; spread: narrow windows |
//! | no rollout soon, nobody reconnects | fewer relays, a wider window of removals |
//! | gaps, or views that stay behind | heads are named often |
//!
//! A pattern stands for some minutes after it was last seen. Between incidents the setting is that of
//! `static`. Where two patterns ask for the same dial, the later one of the list has it.

use super::SPEC;
use super::desk::{Desk, PLACES};
use super::setting::tuned_for;
use crate::param::params;
use crate::{Policy, PolicyKey, tuned};
use std::sync::LazyLock;

params! {
    /// Where a symptom begins, and how the dials stand while it lasts.
    Rules {
        hold_min: 4, 0 ..= 20, "min"; "How long a pattern stands after it was last seen."
        probe_failures_min: 0.02, 0.001 ..= 0.3, ""; "Share of failed probes from which a pattern is looked for."
        by_service_min: 0.5, 0 ..= 1, ""; "Concentration on services that speaks of a bad check or a dependency."
        by_node_min: 0.3, 0 ..= 1, ""; "Concentration on nodes that speaks of node failures."
        by_zone_min: 0.6, 0 ..= 1, ""; "Concentration on zones that speaks of a bad link."
        disagreement_min: 0.1, 0.01 ..= 1, ""; "Disagreement between probers that speaks of a bad vantage point."
        hard_failed_min: 0.01, 0.0001 ..= 0.5, ""; "Failed share of a region from which something there fails for real."
        hard_ratio_min: 4, 1 ..= 100, "x"; "That share over the one of the region with the least."
        hard_ejected_pct: 60, 0 ..= 100, "%"; "Ejected share allowed while something of a region fails for real."
        hard_trigger_pct: 80, 0 ..= 100, "%"; "Failover trigger then."
        hard_cap_pct: 100, 0 ..= 100, "%"; "Failover cap then."
        storm_guard_pct: 10, 5 ..= 100, "%"; "Guard while a dependency is suspected."
        storm_failures: 4, 1 ..= 6, "", whole; "Failure threshold while a dependency is suspected."
        node_failures: 2, 1 ..= 6, "", whole; "Failure threshold while nodes fail."
        node_guard_pct: 50, 5 ..= 100, "%"; "Guard while nodes fail or instances die."
        vantage_probers: 2, 1 ..= 3, "", whole; "Probers that must agree while a vantage point is bad."
        dying_unhealthy_min: 0.005, 0.001 ..= 0.2, ""; "UNHEALTHY share from which instances are dying."
        ejection_errors: 2, 1 ..= 10, "", whole; "Errors to eject while instances die, or before an outage."
        ejected_share_pct: 30, 0 ..= 100, "%"; "Ejected share allowed while instances die, or before an outage."
        latency_factor: 2, 1.1 ..= 10, "x"; "Write latency over that of the calm minutes that speaks of an outage to come."
        lag_factor: 2, 1.1 ..= 20, "x"; "Follower lag over that of the calm minutes that does so too."
        prepare_min: 15, 1 ..= 40, "min"; "How long one stays prepared after the last sign."
        prepare_retention_s: 900, 10 ..= 1800, "s"; "Delta retention before an outage."
        prepare_age_s: 3600, 660 ..= 3600, "s"; "Oldest snapshot allowed before an outage."
        prepare_lease_s: 90, 10 ..= 120, "s"; "Lease before an outage and while leaders change."
        connected_min: 0.95, 0.3 ..= 1, ""; "Share of connected proxies below which a storm is on."
        storm_admission_per_s: 400, 20 ..= 2000, "1/s"; "Admission while proxies come back."
        storm_snapshot_mb_s: 500, 10 ..= 2000, "MB/s"; "Snapshot budget while proxies come back."
        failover_ready_min: 0.7, 0 ..= 1, ""; "READY share of a region below which reads may fail over."
        failover_trigger_pct: 60, 0 ..= 100, "%"; "Failover trigger while a region is lost."
        failover_cap_pct: 60, 0 ..= 100, "%"; "Failover cap while a region is lost."
        rollout_lead_min: 3, 0 ..= 10, "min"; "How long before a rollout one prepares for it."
        hot_services_max: 0.15, 0 ..= 1, ""; "Share of the services up to which a rollout is hot."
        hot_removals_ms: 350, 0 ..= 1000, "ms"; "Window of removals in a hot rollout."
        hot_additions_ms: 2000, 0 ..= 5000, "ms"; "Window of additions in a hot rollout."
        hot_relays: 34, 4 ..= 64, "", whole; "Relays in a hot rollout."
        hot_pace_per_s: 20, 10 ..= 200, "1/s"; "Pace of a hot rollout."
        spread_pace_per_s: 60, 10 ..= 200, "1/s"; "Pace of a spread rollout."
        quiet_relays: 8, 4 ..= 64, "", whole; "Relays while no rollout is near and nobody reconnects."
        quiet_removals_ms: 0, 0 ..= 1000, "ms"; "Window of removals then: fewer relays send fewer, larger batches."
        spread_removals_ms: 50, 0 ..= 1000, "ms"; "Window of removals in a spread rollout."
        gaps_min_per_s: 1, 0.01 ..= 100, "1/s"; "Gaps from which heads are named often."
        behind_min_s: 30, 1 ..= 600, "s"; "Time that views have been behind from which heads are named often."
        gap_heartbeat_s: 2, 1 ..= 60, "s"; "Heartbeat while views are behind."
    }
}

/// Minutes at the beginning of an episode in which nothing happens.
const CALM_MIN: f64 = 5.0;

/// Smallest baseline of the write latency and of the follower lag: less is noise.
const LATENCY_FLOOR_MS: f64 = 20.0;
const LAG_FLOOR_S: f64 = 0.2;

macro_rules! dials {
    ($($name:ident)*) => {
        /// Where the dials that the rules turn stand.
        struct DialPlaces {
            $($name: usize,)*
        }

        static DIALS: LazyLock<DialPlaces> = LazyLock::new(|| {
            // A test holds that the world has all of them.
            let place = |name: &str| SPEC.dial(name).unwrap_or(usize::MAX);
            DialPlaces { $($name: place(stringify!($name)),)* }
        });

        #[cfg(test)]
        const DIAL_NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

dials! {
    failure_threshold
    confirming_probers
    dependency_mode
    guard_share_pct
    lease_ttl_s
    coalesce_removals_ms
    coalesce_additions_ms
    delta_retention_s
    snapshot_budget_mb_s
    admission_per_s
    reconnect_jitter_pct
    head_heartbeat_s
    ejection_errors
    ejected_share_max_pct
    failover_trigger_pct
    failover_cap_pct
    snapshot_age_max_ordinary_s
    snapshot_age_max_strict_s
    rollout_pace_per_s
    relays_per_region
}

/// What the symptoms speak of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    /// No rollout is near.
    Quiet,
    /// Instances die one by one.
    Dying,
    /// Whole nodes fail.
    Nodes,
    /// A dependency or a check is bad.
    Dependency,
    /// A prober or a link is bad.
    Vantage,
    /// Leaders change, followers lag.
    Leaders,
    /// Signs of an outage to come.
    Precursor,
    /// Proxies come back, or will.
    Storm,
    /// A region cannot write or has few instances.
    Region,
    /// Something of one region fails for real.
    Hard,
    /// Views have gaps or stay behind.
    Behind,
    /// A rollout on few services, under way or about to begin.
    Hot,
    /// A rollout on many.
    Spread,
}

/// In the order in which they act; the later one wins.
const PATTERNS: [Pattern; 13] = [
    Pattern::Quiet,
    Pattern::Dying,
    Pattern::Nodes,
    Pattern::Dependency,
    Pattern::Vantage,
    Pattern::Leaders,
    Pattern::Precursor,
    Pattern::Storm,
    Pattern::Region,
    Pattern::Hard,
    Pattern::Behind,
    Pattern::Spread,
    Pattern::Hot,
];

/// The policy.
pub(crate) struct Operator {
    rules: Rules,
    base: Vec<f64>,
    memory: Memory,
}

/// What is remembered of an episode.
#[derive(Debug, Clone, Copy)]
struct Memory {
    /// Largest write latency and follower lag of the calm minutes.
    latency_ms: f64,
    lag_s: f64,
    /// Minute until which each pattern stands.
    until_min: [f64; PATTERNS.len()],
}

impl Default for Memory {
    fn default() -> Self {
        Self {
            latency_ms: LATENCY_FLOOR_MS,
            lag_s: LAG_FLOOR_S,
            until_min: [f64::NEG_INFINITY; PATTERNS.len()],
        }
    }
}

impl Operator {
    /// An operator that holds the setting of `static` between incidents.
    pub(crate) fn new(rules: &Rules) -> Self {
        let base = tuned_for("static", tuned::DEFAULT);
        Self { rules: *rules, base, memory: Memory::default() }
    }

    /// Remembers what calm looks like.
    fn look(&mut self, desk: Desk<'_>) {
        if desk.get(PLACES.episode_min) <= CALM_MIN {
            let memory = &mut self.memory;
            memory.latency_ms = memory.latency_ms.max(desk.most(PLACES.write_latency_ms_p99));
            memory.lag_s = memory.lag_s.max(desk.most(PLACES.follower_lag_s_max));
        }
    }

    /// Whether a rollout runs or is about to begin.
    fn rollout_near(&self, desk: Desk<'_>) -> bool {
        desk.get(PLACES.rollout_running) > 0.5
            || desk.get(PLACES.rollout_next_min) <= self.rules.rollout_lead_min
    }

    /// Whether a pattern shows now.
    fn shows(&self, pattern: Pattern, desk: Desk<'_>) -> bool {
        let (rules, p) = (&self.rules, &*PLACES);
        let failing = desk.most(p.probe_failure_share) >= rules.probe_failures_min;
        let by_service = failing && desk.get(p.probe_failures_by_service) >= rules.by_service_min;
        let by_node = failing && desk.get(p.probe_failures_by_node) >= rules.by_node_min;
        let is_vantage = desk.get(p.prober_disagreement) >= rules.disagreement_min
            || (failing && desk.get(p.probe_failures_by_zone) >= rules.by_zone_min);
        match pattern {
            Pattern::Dying => desk.get(p.unhealthy_share) >= rules.dying_unhealthy_min,
            Pattern::Nodes => by_node && !by_service,
            Pattern::Dependency => by_service && !is_vantage,
            Pattern::Vantage => is_vantage,
            Pattern::Leaders => desk.get(p.term_changes_10min) > 0.5,
            Pattern::Precursor => {
                let latency_ms = desk.most(p.write_latency_ms_p99);
                let lag_s = desk.most(p.follower_lag_s_max);
                latency_ms > rules.latency_factor * self.memory.latency_ms
                    || lag_s > rules.lag_factor * self.memory.lag_s
            }
            Pattern::Storm => {
                let connected = desk.least(p.connected_share) < rules.connected_min;
                connected || desk.least(p.catalog_seen) < 0.5
            }
            Pattern::Region => {
                let ready = desk.least(p.ready_share) < rules.failover_ready_min;
                ready || desk.least(p.quorum) < 0.5
            }
            Pattern::Hard => {
                let worst = desk.most(p.failed_share);
                worst >= rules.hard_failed_min
                    && worst >= rules.hard_ratio_min * desk.least(p.failed_share)
            }
            Pattern::Behind => {
                desk.get(p.revision_gaps_per_s) >= rules.gaps_min_per_s
                    || desk.get(p.convergence_s) >= rules.behind_min_s
            }
            Pattern::Quiet => !self.rollout_near(desk),
            Pattern::Hot | Pattern::Spread => {
                let is_on = self.rollout_near(desk);
                // While one runs, the calendar may already show the one after it.
                let is_hot = desk.get(p.rollout_next_services_share) <= rules.hot_services_max;
                is_on && is_hot == (pattern == Pattern::Hot)
            }
        }
    }

    /// How the dials stand while a pattern does.
    fn answer(&self, pattern: Pattern, wish: &mut Wish<'_>) {
        let (rules, d) = (&self.rules, &*DIALS);
        match pattern {
            Pattern::Dying => {
                self.eject(wish);
                wish.set(d.guard_share_pct, rules.node_guard_pct);
            }
            Pattern::Nodes => {
                wish.set(d.failure_threshold, rules.node_failures);
                wish.set(d.guard_share_pct, rules.node_guard_pct);
            }
            Pattern::Dependency => {
                wish.set(d.guard_share_pct, rules.storm_guard_pct);
                wish.set(d.failure_threshold, rules.storm_failures);
                wish.set(d.dependency_mode, 0.0);
            }
            Pattern::Vantage => wish.set(d.confirming_probers, rules.vantage_probers),
            Pattern::Leaders => wish.set(d.lease_ttl_s, rules.prepare_lease_s),
            Pattern::Precursor => {
                self.eject(wish);
                wish.set(d.delta_retention_s, rules.prepare_retention_s);
                wish.set(d.snapshot_age_max_ordinary_s, rules.prepare_age_s);
                wish.set(d.snapshot_age_max_strict_s, rules.prepare_age_s);
                wish.set(d.lease_ttl_s, rules.prepare_lease_s);
                wish.set(d.reconnect_jitter_pct, 100.0);
            }
            Pattern::Storm => {
                wish.set(d.reconnect_jitter_pct, 100.0);
                wish.set(d.admission_per_s, rules.storm_admission_per_s);
                wish.set(d.snapshot_budget_mb_s, rules.storm_snapshot_mb_s);
                // Whoever comes back needs the relays that a quiet hour does without.
                for dial in [d.relays_per_region, d.coalesce_removals_ms] {
                    wish.set(dial, self.base[dial]);
                }
            }
            Pattern::Region => {
                wish.set(d.failover_trigger_pct, rules.failover_trigger_pct);
                wish.set(d.failover_cap_pct, rules.failover_cap_pct);
            }
            Pattern::Hard => {
                wish.set(d.ejected_share_max_pct, rules.hard_ejected_pct);
                wish.set(d.failover_trigger_pct, rules.hard_trigger_pct);
                wish.set(d.failover_cap_pct, rules.hard_cap_pct);
            }
            Pattern::Quiet => {
                wish.set(d.relays_per_region, rules.quiet_relays);
                wish.set(d.coalesce_removals_ms, rules.quiet_removals_ms);
            }
            Pattern::Behind => wish.set(d.head_heartbeat_s, rules.gap_heartbeat_s),
            Pattern::Spread => {
                wish.set(d.coalesce_removals_ms, rules.spread_removals_ms);
                wish.set(d.rollout_pace_per_s, rules.spread_pace_per_s);
            }
            Pattern::Hot => {
                wish.set(d.coalesce_removals_ms, rules.hot_removals_ms);
                wish.set(d.coalesce_additions_ms, rules.hot_additions_ms);
                wish.set(d.relays_per_region, rules.hot_relays);
                wish.set(d.rollout_pace_per_s, rules.hot_pace_per_s);
            }
        }
    }

    /// Proxies help themselves.
    fn eject(&self, wish: &mut Wish<'_>) {
        wish.set(DIALS.ejection_errors, self.rules.ejection_errors);
        wish.set(DIALS.ejected_share_max_pct, self.rules.ejected_share_pct);
    }
}

impl Policy for Operator {
    fn reset(&mut self, _key: PolicyKey) {
        self.memory = Memory::default();
    }

    fn memory(&self) -> Option<Vec<f64>> {
        let Memory { latency_ms, lag_s, until_min } = self.memory;
        Some([&[latency_ms, lag_s], &until_min[..]].concat())
    }

    fn recall(&mut self, memory: &[f64]) {
        if let Some((&[latency_ms, lag_s], until_min)) = memory.split_first_chunk()
            && let Ok(until_min) = until_min.try_into()
        {
            self.memory = Memory { latency_ms, lag_s, until_min };
        }
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let desk = Desk(signals);
        self.look(desk);
        let now_min = desk.get(PLACES.episode_min);
        let mut wish = Wish(&mut action[..self.base.len()]);
        wish.0.copy_from_slice(&self.base);
        for (place, &pattern) in PATTERNS.iter().enumerate() {
            if self.shows(pattern, desk) {
                let stands_min = match pattern {
                    Pattern::Precursor => self.rules.prepare_min,
                    Pattern::Quiet | Pattern::Hot | Pattern::Spread => 0.0,
                    _ => self.rules.hold_min,
                };
                self.memory.until_min[place] = now_min + stands_min;
            }
            if now_min <= self.memory.until_min[place] {
                self.answer(pattern, &mut wish);
            }
        }
    }
}

/// A setting in the making.
struct Wish<'a>(&'a mut [f64]);

impl Wish<'_> {
    /// Sets a dial; what lies outside its range goes to the nearer end.
    fn set(&mut self, dial: usize, value: f64) {
        if let (Some(out), Some(dial)) = (self.0.get_mut(dial), SPEC.dials.get(dial)) {
            *out = value.clamp(dial.low, dial.high);
        }
    }
}

#[cfg(test)]
mod tests;
