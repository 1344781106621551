//! From the dashboard to a state of the model.

use super::model::Model;
use super::orders::Orders;
use oncall_fleet::Sig;
use oncall_fleet::params::BOOT_DELAY_MAX_MIN;

/// Below this utilisation a database tells nothing about its capacity.
const IDLE: f64 = 0.01;
/// Share of failed requests that is no rounding error.
const ERRORS: f64 = 1e-6;
/// Most by which the CPU time is expected to go on growing in a minute, as a share.
const CPU_GROWTH_MAX: f64 = 0.1;

/// A row of signals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Board<'a>(pub(super) &'a [f64]);

impl Board<'_> {
    pub(super) fn get(self, signal: Sig) -> f64 {
        self.0[signal as usize]
    }

    pub(super) fn count(self, signal: Sig) -> u32 {
        self.get(signal).round().max(0.0) as u32
    }
}

/// What is known before the next minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct State {
    pub(super) serving: usize,
    /// Instances by the minutes until they serve.
    pub(super) coming: [u32; BOOT_DELAY_MAX_MIN],
    pub(super) boot_min: usize,
    pub(super) warmth: f64,
    pub(super) warm_up_left_min: usize,
    pub(super) rollback_left_min: u32,
    /// CPU time over a good build's, in the next minute.
    pub(super) cpu_factor: f64,
    /// Errors of a bad build once it is rolled out; 0 where none is live.
    pub(super) build_errors: f64,
}

/// What is remembered of the dashboard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// Warmth that is expected of the next minute, for minutes whose cache tells nothing.
    warmth: f64,
    /// What was left of the presses a minute before.
    warm_up_left_min: usize,
    rollback_left_min: u32,
    cpu_factor: f64,
    /// A drop of the warmth in a minute that was a flush.
    pub(super) flushed: bool,
}

/// A drop of the cache's warmth in a minute that is a flush.
const FLUSH_DROP: f64 = 0.25;

impl Sight {
    pub(super) fn new() -> Self {
        Self {
            warmth: 1.0,
            warm_up_left_min: 0,
            rollback_left_min: 0,
            cpu_factor: 1.0,
            flushed: false,
        }
    }

    /// The state before minute `now`, and what it tells of the model's constants.
    pub(super) fn read(
        &mut self,
        board: Board<'_>,
        now: u32,
        orders: &Orders,
        model: &mut Model,
    ) -> State {
        let feature = board.get(Sig::dial_feature) > 0.5;
        let (admitted_rps, hit) = (board.get(Sig::admitted_rps), board.get(Sig::cache_hit));
        let warm_up_left_min = board.count(Sig::warm_up_left_min) as usize;
        let warmed_up = now > 0 && (self.warm_up_left_min > 0 || warm_up_left_min > 0);
        let store = model.constants.cache;
        let queries = model.queries(feature);
        let warm_up_qps = if warmed_up { store.warm_up_qps } else { 0.0 };
        let asked_qps = admitted_rps * queries * (1.0 - hit) + warm_up_qps;
        let load = board.get(Sig::db_utilization);
        if load > IDLE && asked_qps > 0.0 {
            model.constants.database.capacity_qps = asked_qps / load;
        }
        let asked = admitted_rps / store.objects * board.get(Sig::dial_cache_ttl_s);
        let seen = if asked > 0.0 { hit * (1.0 + asked) / asked } else { self.warmth };
        let seen = seen.clamp(0.0, 1.0);
        self.flushed = seen < self.warmth - FLUSH_DROP;
        self.warmth = if now == 0 { seen } else { model.warmed(seen, load, warmed_up) };
        self.warm_up_left_min = warm_up_left_min;
        model.error_factor = if board.get(Sig::budget_left) > 0.0 {
            1.0
        } else {
            model.constants.prices.overdraft_factor
        };

        let waited_ms = (1.0 - hit) * queries * board.get(Sig::query_ms);
        let cpu_ms = board.get(Sig::service_ms) - waited_ms;
        let cpu_factor = (cpu_ms / model.cpu_ms(feature)).clamp(0.5, 4.0);
        let growth = (cpu_factor - self.cpu_factor).clamp(0.0, CPU_GROWTH_MAX);
        self.cpu_factor = cpu_factor;
        let rollback_left_min = board.count(Sig::rollback_left_min);
        // The last minute of a rollback still shows the build that is gone by now.
        let gone = self.rollback_left_min > 0 && rollback_left_min == 0;
        self.rollback_left_min = rollback_left_min;
        State {
            serving: board.count(Sig::serving).max(1) as usize,
            coming: orders.coming(now),
            boot_min: orders.boot_min() as usize,
            warmth: self.warmth,
            warm_up_left_min,
            rollback_left_min,
            cpu_factor: if gone { 1.0 } else { cpu_factor + growth },
            build_errors: if gone { 0.0 } else { build_errors(board) },
        }
    }
}

/// Errors that the queue does not explain, of the new build alone.
fn build_errors(board: Board<'_>) -> f64 {
    let failed = board.get(Sig::failed_share);
    let unexplained = (board.get(Sig::error_rate) - failed) / (1.0 - failed).max(1e-9);
    let share = board.get(Sig::bad_build_share);
    if share > 0.0 && unexplained > ERRORS { (unexplained / share).min(1.0) } else { 0.0 }
}
