//! What a run showed, objective by objective.

use crate::queue::S;
use crate::world::{Goals, Kind, Percentiles, Row, Timeline, Totals, World};
use serde::Serialize;
use std::fmt::Write as _;

/// One objective and whether it was met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// What.
    pub objective: &'static str,
    /// What was measured, in words.
    pub figure: String,
    /// Whether it was met; `None` where there is no bound.
    pub met: Option<bool>,
}

/// A run in figures.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// Scenario.
    pub scenario: String,
    /// Length, seconds.
    pub length_s: f64,
    /// Acceptance to the last new request (R6, D1, D15).
    pub withdrawal: Percentiles,
    /// Asked for to the last new request (D14).
    pub withdrawal_observed: Percentiles,
    /// Acceptance to the last apply at a connected proxy.
    pub withdrawal_applied: Percentiles,
    /// Crash to the last new route (R7, D2).
    pub crash: Percentiles,
    /// Crash to the decision that it is dead.
    pub crash_detected: Percentiles,
    /// Crash to the last apply at a connected proxy.
    pub crash_applied: Percentiles,
    /// Seconds after the last fault until every stream stood and nobody was behind.
    pub converged_after_s: Option<f64>,
    /// Largest values of a second.
    pub peaks: Peaks,
    /// Counters.
    pub totals: Totals,
    /// What was reached.
    pub goals: Goals,
    /// Broken invariants.
    pub violations: usize,
    /// Last hash of the trail.
    pub digest: String,
}

/// Largest values of a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Peaks {
    /// Attempts to connect.
    pub connects_per_s: u64,
    /// Bytes of snapshots.
    pub snapshot_bytes_per_s: u64,
    /// Deltas.
    pub deltas_per_s: u64,
    /// Longest queue of a relay.
    pub relay_delay_ms: f64,
    /// Oldest views.
    pub snapshot_age_s: f64,
    /// User-visible failures.
    pub user_failures_per_s: f64,
}

fn since(from: u64, to: Option<u64>) -> Option<f64> {
    to.map(|to| to.saturating_sub(from) as f64 / S as f64)
}

impl Report {
    /// The figures of a world so far.
    pub fn of(world: &World) -> Self {
        let clocks = world.clocks();
        let applied = |line: &Timeline| since(line.start(), line.last_apply);
        let quiet = world.scenario().disturbed_until_s();
        let mut hasher = blake3::Hasher::new();
        world.trail().iter().for_each(|hash| {
            hasher.update(hash);
        });
        Self {
            scenario: world.scenario().name.clone(),
            length_s: world.now_s(),
            withdrawal: clocks.percentiles(Kind::Withdrawal, Timeline::seconds),
            withdrawal_observed: clocks
                .percentiles(Kind::Withdrawal, |line| since(line.began, line.last_request)),
            withdrawal_applied: clocks.percentiles(Kind::Withdrawal, applied),
            crash: clocks.percentiles(Kind::Crash, Timeline::seconds),
            crash_detected: clocks
                .percentiles(Kind::Crash, |line| since(line.began, line.detected)),
            crash_applied: clocks.percentiles(Kind::Crash, applied),
            converged_after_s: converged(world.rows(), quiet),
            peaks: Peaks::of(world.rows()),
            totals: *world.totals(),
            goals: *world.goals(),
            violations: world.violations().len(),
            digest: hasher.finalize().to_hex()[..16].to_owned(),
        }
    }

    /// User-visible failures as a share of all requests.
    pub fn failed_share(&self) -> f64 {
        self.totals.traffic.user_visible() / self.totals.traffic.requests.max(1.0)
    }

    /// The verdict on each objective.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let clock = |p: &Percentiles| {
            format!(
                "p50 {:.3} s, p99 {:.3} s, max {:.3} s ({} of them)",
                p.p50, p.p99, p.max, p.count
            )
        };
        let bound = |p: &Percentiles, limit: f64| (p.count > 0).then_some(p.p99 <= limit);
        let row = |objective, figure, met| Verdict { objective, figure, met };
        let t = &self.totals;
        let converged = match self.converged_after_s {
            Some(s) => format!("{s:.0} s after the last fault"),
            None => "not within the run".to_owned(),
        };
        vec![
            row("withdrawal p99 <= 3 s", clock(&self.withdrawal), bound(&self.withdrawal, 3.0)),
            row("  from the first request", clock(&self.withdrawal_observed), None),
            row("  last apply of a proxy", clock(&self.withdrawal_applied), None),
            row("hard failure p99 <= 15 s", clock(&self.crash), bound(&self.crash, 15.0)),
            row("  detection alone", clock(&self.crash_detected), None),
            row(
                "requests to STARTING = 0",
                t.starting_in_view.to_string(),
                Some(t.starting_in_view == 0),
            ),
            row("stale requests", format!("{:.1}", t.traffic.stale), None),
            row(
                "user-visible failures",
                format!(
                    "{:.1} failed, {:.1} no-backend, {:.4} % of {:.0}",
                    t.traffic.failed,
                    t.traffic.no_backend,
                    100.0 * self.failed_share(),
                    t.traffic.requests
                ),
                None,
            ),
            row("forced terminations", format!("{:.2}", t.forced), None),
            row("false removals", t.false_removals.to_string(), None),
            row(
                "snapshot fallbacks",
                format!(
                    "{} ({} snapshots, {:.1} MB)",
                    t.snapshot_fallbacks,
                    t.snapshots,
                    t.snapshot_bytes as f64 / 1e6
                ),
                None,
            ),
            row("gaps", format!("{} ({} repaired by delta)", t.gaps, t.delta_repairs), None),
            row("convergence", converged, Some(self.converged_after_s.is_some())),
            row(
                "writes",
                format!(
                    "{} accepted, {:.1}/s, {} found no leader",
                    t.accepted,
                    t.accepted as f64 / self.length_s,
                    t.refused_no_leader
                ),
                None,
            ),
            row(
                "deliveries",
                format!(
                    "{} deltas, {:.1} MB, peak {}/s, queue at most {:.0} ms",
                    t.deltas,
                    t.delta_bytes as f64 / 1e6,
                    self.peaks.deltas_per_s,
                    self.peaks.relay_delay_ms
                ),
                Some(self.peaks.relay_delay_ms < 3_000.0),
            ),
            row("invariants", format!("{} broken", self.violations), Some(self.violations == 0)),
        ]
    }
}

impl Peaks {
    fn of(rows: &[Row]) -> Self {
        rows.iter().fold(Self::default(), |peaks, row| Self {
            connects_per_s: peaks.connects_per_s.max(row.connects),
            snapshot_bytes_per_s: peaks.snapshot_bytes_per_s.max(row.snapshot_bytes),
            deltas_per_s: peaks.deltas_per_s.max(row.deltas),
            relay_delay_ms: peaks.relay_delay_ms.max(row.relay_delay_max_ms),
            snapshot_age_s: peaks.snapshot_age_s.max(row.snapshot_age_max_s),
            user_failures_per_s: peaks.user_failures_per_s.max(row.traffic.user_visible()),
        })
    }
}

/// When, after `quiet`, all streams stood and nobody was behind, for good or until churn came again.
fn converged(rows: &[Row], quiet_s: f64) -> Option<f64> {
    let healed = |row: &&Row| {
        row.t_s > quiet_s && row.connected >= 1.0 && row.behind == 0 && row.snapshots_waiting == 0
    };
    rows.iter().find(healed).map(|row| row.t_s - quiet_s)
}

/// The rows as CSV.
pub fn rows_csv(rows: &[Row]) -> String {
    let mut text = Row::COLUMNS.join(",") + "\n";
    for row in rows {
        let cells: Vec<String> = row.values().iter().map(|value| format!("{value}")).collect();
        text += &(cells.join(",") + "\n");
    }
    text
}

/// The timelines of all withdrawals and crashes as CSV, seconds since the start (R151, R168).
pub fn timelines_csv(world: &World) -> String {
    let mut text =
        "kind,service,region,instance,reason,t_began,t_detected,t_accept,t_publish,t_last_apply,\
                    t_last_request,t_exit,in_flight,forced\n"
            .to_owned();
    let at =
        |time: Option<u64>| time.map_or(String::new(), |t| format!("{:.6}", t as f64 / S as f64));
    for line in world.clocks().timelines.iter() {
        let kind = match line.kind {
            Kind::Withdrawal => "withdrawal",
            Kind::Crash => "crash",
            Kind::False => "false",
        };
        let reason = line.reason.map_or(String::new(), |reason| format!("{reason:?}"));
        let _ = writeln!(
            text,
            "{kind},{},{},{},{reason},{},{},{},{},{},{},{},{:.6},{:.6}",
            line.cell / crate::topology::REGIONS as u32,
            line.cell % crate::topology::REGIONS as u32,
            line.instance,
            at(Some(line.began)),
            at(line.detected),
            at(line.accepted),
            at(line.published),
            at(line.last_apply),
            at(line.last_request),
            at(line.exited),
            line.in_flight,
            line.forced,
        );
    }
    text
}
