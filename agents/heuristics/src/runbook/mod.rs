//! The reactive on-call rule.
//!
//! Every minute, in this order:
//! 1. **Roll back** when errors that the queue does not explain appear while a new build is live, and
//!    the errors to come cost more than the second fleet.
//! 2. **Warm up** when the cache is cold: its warmth follows from hit rate, TTL and traffic.
//! 3. **Size the fleet** by Little's law for the demand forecast at the end of a boot delay. While a
//!    surge rises nobody knows its top, so a large order goes out at once: what turns out too much is
//!    cancelled for nothing.
//! 4. **Degrade** as little as pays: of shedding, switching the recommendations off and a long TTL the
//!    combination whose price and damage together are lowest in the next minute; back to normal when
//!    that has been cheapest for some minutes.
//!
//! A *guard* before the first incident is for shifts in which something is known to come: some spare
//! instances, and as much shedding and as many more instances as pay if a flush has a given probability
//! a minute.

mod demand;
mod fleet;
mod model;
mod plan;
#[cfg(test)]
mod tests;

use crate::board::{Board, Turn};
use crate::param::params;
use crate::{Policy, PolicyKey};
use demand::{Demand, Smoothing};
use fleet::Orders;
use model::{Level, Model, Outlook};
use oncall_fleet::Sig;
use oncall_fleet::dials::index;

params! {
    /// The numbers of the rule.
    Rules {
        headroom: 0.08, 0 ..= 0.6, ""; "Spare servers over the load, as a share of it."
        smooth: 0.3, 0.05 ..= 1, ""; "Weight of the newest minute in the demand forecast."
        trend: 0.1, 0 ..= 0.5, ""; "Weight of the newest slope in the forecast's trend."
        boot_min: 3, 1 ..= 15, "min", whole; "Boot delay that is assumed until one was seen."
        ttl_s: 60, 5 ..= 300, "s"; "Time to live of a cache entry in normal times."
        ttl_stress_s: 600, 60 ..= 600, "s"; "Time to live of a cache entry when short of servers."
        rise_share: 0.08, 0.03 ..= 0.4, ""; "Growth over the forecast that is a surge, as a share."
        surge_floor: 30, 1 ..= 40, "", whole; "Instances ordered while a surge rises."
        surge_lead_min: 4, 0 ..= 10, "min"; "Minutes for which a rising surge is expected to go on."
        surge_hold_min: 1, 0 ..= 6, "min", whole; "Minutes for which the surge order stands after the last rise."
        growth_share: 0.8, 0 ..= 2, ""; "Share of the last minute's rise that the next minute is planned for."
        noise: 0.02, 0 ..= 0.1, ""; "Relative spread of the demand that degrading is planned for."
        calm_min: 0, 0 ..= 10, "min", whole; "Minutes for which a milder level must be best before it is taken."
        cold: 0.6, 0 ..= 0.98, ""; "A warm-up is started below this warmth of the cache."
        cold_spare: 6, 0 ..= 30, "", whole; "Most instances ordered because the cache is cold."
        build_errors: 0.002, 0.0005 ..= 0.03, ""; "Share of unexplained errors that condemns a new build."
        guard_spare: 0, 0 ..= 20, "", whole; "Spare instances before the first incident."
        flush_hazard: 0, 0 ..= 0.1, ""; "Probability a minute of a flush that is prepared for before the first incident."
        guard_always: 0, 0 ..= 1, "", whole; "1 guards again after an incident has passed."
    }
}

/// A drop of the cache's warmth in a minute that is a flush.
const FLUSH_DROP: f64 = 0.25;
/// Warmth at which a flush has passed.
const WARM_AGAIN: f64 = 0.8;
/// Rising readings in a row that make an incident.
const INCIDENT_RISES: u32 = 2;

/// The rule with what it remembers of the shift.
pub(crate) struct Runbook {
    rules: Rules,
    model: Model,
    memory: Memory,
}

/// What was seen.
#[derive(Debug, Clone)]
struct Memory {
    demand: Demand,
    orders: Orders,
    /// Warmth in the last minute, and CPU time over the good build's.
    warmth: f64,
    cpu_factor: f64,
    /// What was left of the presses in the last minute.
    warm_up_left_min: f64,
    rollback_left_min: f64,
    /// An incident has been seen, and one is going on.
    incident_seen: bool,
    incident: bool,
    /// Shed share and spare instances of the guard.
    guard: (f64, f64),
    /// Whether it was planned in an incident, and when to look at it again.
    guard_incident: bool,
    review_min: f64,
    /// The level taken last, and until when no milder one is.
    level: Option<Level>,
    milder_from_min: f64,
}

/// What the dashboard of a minute says.
#[derive(Debug, Clone, Copy)]
struct Reading {
    now_min: f64,
    shift_left_min: f64,
    warmth: f64,
    cpu_factor: f64,
    /// Whether a warm-up ran in the minute, and what is left of it.
    warmed_up: bool,
    warm_up_left_min: f64,
    /// Whether a rollback was under way in the minute, and what is left of it.
    rolled_back: bool,
    rollback_left_min: f64,
    budget_left: f64,
}

impl Runbook {
    pub(crate) fn new(rules: Rules) -> Self {
        let memory = Memory::new(&rules);
        Self { rules, model: Model::new(), memory }
    }

    /// Reads the dashboard; the capacity sheet tells warmth and CPU time from what it shows.
    fn read(&mut self, board: Board) -> Reading {
        let memory = &self.memory;
        let feature = board.on(Sig::dial_feature);
        let asked = board.get(Sig::admitted_rps) / self.model.cache.objects
            * board.get(Sig::dial_cache_ttl_s);
        let hit = board.get(Sig::cache_hit);
        let warmth = if asked > 0.0 { hit * (1.0 + asked) / asked } else { memory.warmth };
        let waited_ms = (1.0 - hit) * self.model.queries(feature) * board.get(Sig::query_ms);
        let cpu_ms = board.get(Sig::service_ms) - waited_ms;
        let warm_up_left_min = board.get(Sig::warm_up_left_min);
        let warmed_up = memory.warm_up_left_min > 0.0 || warm_up_left_min > 0.0;
        let rollback_left_min = board.get(Sig::rollback_left_min);
        let rolled_back = memory.rollback_left_min > 0.0 || rollback_left_min > 0.0;
        let warm_up_qps = if warmed_up { self.model.cache.warm_up_qps } else { 0.0 };
        let asked_qps = board.get(Sig::admitted_rps) * self.model.queries(feature) * (1.0 - hit);
        self.model.calibrate(asked_qps + warm_up_qps, board.get(Sig::db_utilization));
        Reading {
            now_min: board.get(Sig::shift_min),
            shift_left_min: board.get(Sig::shift_left_min),
            warmth: warmth.clamp(0.0, 1.0),
            cpu_factor: (cpu_ms / self.model.cpu_ms(feature)).clamp(0.5, 4.0),
            warmed_up,
            warm_up_left_min,
            rolled_back,
            rollback_left_min,
            budget_left: board.get(Sig::budget_left),
        }
    }

    /// Notes incidents: a flush until the cache is warm again, a surge while it rises.
    fn note_incidents(&mut self, reading: &Reading) {
        let memory = &mut self.memory;
        let flushed = reading.warmth < memory.warmth - FLUSH_DROP;
        let surging = memory.demand.rises() >= INCIDENT_RISES;
        let cold = memory.incident && reading.warmth < WARM_AGAIN;
        memory.incident = flushed || surging || cold || memory.demand.rising() && memory.incident;
        memory.incident_seen |= memory.incident;
    }

    /// Whether errors that the queue does not explain come from a build, and a rollback pays.
    fn must_roll_back(&self, board: Board, reading: &Reading) -> bool {
        let failed = board.get(Sig::failed_share);
        let unexplained = (board.get(Sig::error_rate) - failed) / (1.0 - failed);
        // The last minute of a rollback still shows the bad build, so a running one is left alone.
        let live = board.get(Sig::bad_build_share) > 0.0 && !reading.rolled_back;
        let rest_min = reading.shift_left_min - self.model.service.rollback_min;
        let saved = self.model.errors_usd(unexplained, reading.budget_left) * rest_min;
        let second_fleet = board.get(Sig::serving) * self.model.prices.instance_usd_h / 60.0;
        live && unexplained >= self.rules.build_errors
            && saved > second_fleet * self.model.service.rollback_min
    }

    /// CPU time over the good build's in the next minute: a rollout goes on as it began.
    fn next_cpu_factor(&self, reading: &Reading) -> f64 {
        if reading.rolled_back && reading.rollback_left_min == 0.0 {
            return 1.0;
        }
        reading.cpu_factor + (reading.cpu_factor - self.memory.cpu_factor).clamp(0.0, 0.1)
    }
}

impl Memory {
    fn new(rules: &Rules) -> Self {
        Self {
            demand: Demand::new(),
            orders: Orders::new(rules.boot_min),
            warmth: 0.0,
            cpu_factor: 1.0,
            warm_up_left_min: 0.0,
            rollback_left_min: 0.0,
            incident_seen: false,
            incident: false,
            guard: (0.0, 0.0),
            guard_incident: false,
            review_min: 0.0,
            level: None,
            milder_from_min: 0.0,
        }
    }
}

impl Policy for Runbook {
    fn reset(&mut self, _key: PolicyKey) {
        self.memory = Memory::new(&self.rules);
        self.model = Model::new();
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let board = Board(signals);
        let reading = self.read(board);
        let smoothing = Smoothing {
            level: self.rules.smooth,
            trend: self.rules.trend,
            rise_share: self.rules.rise_share,
            hold_min: self.rules.surge_hold_min,
        };
        self.memory.demand.read(reading.now_min, board.get(Sig::offered_rps), smoothing);
        self.note_incidents(&reading);
        self.memory.orders.read(reading.now_min, board.get(Sig::serving), board.get(Sig::booting));

        let roll_back = self.must_roll_back(board, &reading);
        let shown = Outlook {
            offered_rps: board.get(Sig::offered_rps),
            warmth: reading.warmth,
            warm_up: reading.warmed_up,
            cpu_factor: reading.cpu_factor,
        };
        let shown_level = Level {
            shed: board.get(Sig::dial_shed_share),
            feature: board.on(Sig::dial_feature),
            ttl_s: board.get(Sig::dial_cache_ttl_s),
        };
        let warmth = self.model.warmed(&shown, &shown_level);
        let running = reading.warm_up_left_min > 0.0;
        let warm_up = warmth < self.rules.cold && !running;
        let warm_up_min =
            if warm_up { self.model.cache.warm_up_min } else { reading.warm_up_left_min };
        let next = Outlook {
            offered_rps: self.memory.demand.grown_rps(self.rules.growth_share),
            warmth,
            warm_up: warm_up || running,
            cpu_factor: self.next_cpu_factor(&reading),
        };
        self.review_guard(reading.now_min, &next, reading.budget_left);
        let instances = self.size(board, &reading, &next, warm_up_min);
        let serving = self.memory.orders.order(reading.now_min, instances);
        let wanted = self.level(&reading, &next, serving);
        let level = self.with_patience(reading.now_min, wanted);

        Turn::keep_all(action)
            .fleet(instances)
            .set(index::CACHE_TTL_S, level.ttl_s)
            .set(index::SHED_SHARE, level.shed)
            .switch(index::FEATURE, level.feature)
            .switch(index::WARM_UP, warm_up)
            .switch(index::ROLLBACK, roll_back);
        let memory = &mut self.memory;
        (memory.warmth, memory.cpu_factor) = (reading.warmth, reading.cpu_factor);
        memory.warm_up_left_min = reading.warm_up_left_min;
        memory.rollback_left_min = reading.rollback_left_min;
    }
}
