//! What a minute costs by the model of the world: the copy that the planner has of it.
//!
//! The constants are the defaults of the scenario files; what the dashboard tells of them is learned.

use crate::level::Level;
use oncall_core::math;
use oncall_fleet::params::{Constants, Slo};
use oncall_fleet::queue::{LN_100, queue};
use oncall_fleet::{budget, cache, database};
use std::sync::{LazyLock, OnceLock};

/// Most instances.
pub(super) const MOST: usize = 40;

/// Dollars of a minute by its number of serving instances, theirs included; none is not a choice.
pub(super) type Row = [f64; MOST + 1];

/// What an operator cannot set in a minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Minute {
    pub(super) offered_rps: f64,
    /// Of the cache, 0 to 1.
    pub(super) warmth: f64,
    /// Whether a warm-up runs.
    pub(super) warm_up: bool,
    /// CPU time over a good build's.
    pub(super) cpu_factor: f64,
}

/// The dials that act within their minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Setting {
    pub(super) shed: f64,
    pub(super) feature: bool,
    pub(super) ttl_s: f64,
}

impl From<&Level> for Setting {
    fn from(level: &Level) -> Self {
        Self { shed: level.shed, feature: level.feature, ttl_s: level.ttl_s() }
    }
}

/// Settings that a later minute of a plan chooses from, about from cheap to dear.
const SETTINGS: [Setting; 21] = {
    const fn at(shed: f64, feature: bool, ttl_s: f64) -> Setting {
        Setting { shed, feature, ttl_s }
    }
    [
        at(0.0, true, 60.0),
        at(0.0, true, 30.0),
        at(0.0, true, 120.0),
        at(0.0, true, 600.0),
        at(0.25, true, 60.0),
        at(0.25, true, 600.0),
        at(0.5, true, 60.0),
        at(0.5, true, 200.0),
        at(0.5, true, 600.0),
        at(0.75, true, 60.0),
        at(0.75, true, 600.0),
        at(1.0, true, 60.0),
        at(1.0, true, 200.0),
        at(1.0, true, 600.0),
        at(0.0, false, 60.0),
        at(0.0, false, 600.0),
        at(0.5, false, 60.0),
        at(0.5, false, 600.0),
        at(1.0, false, 60.0),
        at(1.0, false, 200.0),
        at(1.0, false, 600.0),
    ]
};

/// Points of a relative error of the forecast and their weights, in standard deviations. The upper tail
/// must be there, since a minute that saturates costs as much as many that do not.
const POINTS: [(f64, f64); 4] = [(0.0, 0.80), (1.6, 0.15), (2.8, 0.045), (4.0, 0.005)];

/// Relative error of the next minutes' forecast: the noise of the demand, and the level's own.
pub(super) const SPREAD: f64 = 0.023;
/// The same while a surge runs, of which less is known.
pub(super) const SPREAD_SURGE: f64 = 0.035;

/// Expected requests in the waiting time that a request bears, above which the queue adds nothing.
const SURELY_SERVED: f64 = 20.0;
/// Longest p99 that is free whatever such a queue adds, seconds.
const SURELY_FREE_S: f64 = 0.75;

/// The model.
#[derive(Debug, Clone, Copy)]
pub(super) struct Model {
    pub(super) constants: Constants,
    /// Factor on the price of errors: an empty budget makes them dearer.
    pub(super) error_factor: f64,
}

/// A minute under a setting, apart from its fleet.
struct Flow {
    admitted_rps: f64,
    service_s: f64,
    /// Dollars that do not depend on the fleet.
    usd: f64,
    db_utilization: f64,
}

impl Model {
    pub(super) fn new() -> Self {
        Self { constants: Constants::defaults(), error_factor: 1.0 }
    }

    /// Dollars of an instance in a minute.
    pub(super) fn instance_usd(&self) -> f64 {
        self.constants.prices.instance_usd_h / 60.0
    }

    /// Dollars of a minute in which this share of the requests fails.
    pub(super) fn errors_usd(&self, error_rate: f64) -> f64 {
        let slo: &Slo = &self.constants.slo;
        let burned = budget::burned(slo, error_rate / slo.error_budget);
        self.error_factor * self.constants.prices.budget_usd * burned
    }

    /// Queries of a request.
    pub(super) fn queries(&self, feature: bool) -> f64 {
        let service = &self.constants.service;
        service.queries + if feature { service.feature_queries } else { 0.0 }
    }

    /// CPU time of a request of a good build.
    pub(super) fn cpu_ms(&self, feature: bool) -> f64 {
        let service = &self.constants.service;
        service.cpu_ms + if feature { service.feature_cpu_ms } else { 0.0 }
    }

    fn flow(&self, minute: &Minute, setting: &Setting) -> Flow {
        let Constants { cache: store, database: db, fleet, prices, .. } = &self.constants;
        let refused = fleet.low_priority_share * setting.shed;
        let admitted_rps = minute.offered_rps * (1.0 - refused);
        let hit = cache::hit_share(store, admitted_rps, setting.ttl_s, minute.warmth);
        let queries = self.queries(setting.feature);
        let warm_up_qps = if minute.warm_up { store.warm_up_qps } else { 0.0 };
        let load = database::load(db, admitted_rps * queries * (1.0 - hit) + warm_up_qps);
        let cpu_ms = self.cpu_ms(setting.feature) * minute.cpu_factor;
        let service_s = (cpu_ms + (1.0 - hit) * queries * load.query_ms) / 1000.0;
        let off = if setting.feature { 0.0 } else { prices.recommendations_usd_per_million };
        let stale = prices.staleness_usd_per_million_s * hit * 0.5 * setting.ttl_s;
        let shed = prices.shed_usd_per_million * minute.offered_rps * refused;
        let usd = 60e-6 * (shed + admitted_rps * (off + stale));
        Flow { admitted_rps, service_s, usd, db_utilization: load.utilization }
    }

    /// Dollars of errors and latency in the queue.
    fn queue_usd(&self, flow: &Flow, instances: usize) -> f64 {
        let Constants { service, fleet, prices, .. } = &self.constants;
        let servers = fleet.servers_per_instance as usize * instances;
        let drain_per_s = servers as f64 / flow.service_s - flow.admitted_rps;
        let p99_service_s = flow.service_s * LN_100;
        if drain_per_s > SURELY_SERVED && p99_service_s < SURELY_FREE_S {
            return 0.0;
        }
        let queue = queue(servers as f64, flow.admitted_rps, flow.service_s, service.timeout_s);
        let slow_s = (queue.p99_s - prices.latency_free_s).max(0.0);
        let latency_usd = prices.latency_usd_per_million_s * 60e-6 * flow.admitted_rps * slow_s;
        self.errors_usd(queue.failed_share) + latency_usd
    }

    /// Dollars of a minute apart from its fleet, and the load of the database.
    pub(super) fn usd(&self, minute: &Minute, setting: &Setting, instances: usize) -> (f64, f64) {
        let flow = self.flow(minute, setting);
        (flow.usd + self.queue_usd(&flow, instances), flow.db_utilization)
    }

    /// Expected dollars of a minute that may be one of several, by its number of instances, each at the
    /// setting that is best on average: it is chosen before anybody knows which minute it is.
    pub(super) fn row(&self, minutes: &[(f64, Minute)]) -> Row {
        let mut row = [f64::INFINITY; MOST + 1];
        for setting in &SETTINGS {
            let flows: Vec<(f64, Flow)> =
                minutes.iter().map(|(weight, m)| (*weight, self.flow(m, setting))).collect();
            let free: f64 = flows.iter().map(|(weight, flow)| weight * flow.usd).sum();
            for (n, usd) in row.iter_mut().enumerate().skip(1) {
                if free >= *usd {
                    continue;
                }
                let mut sum = free;
                for (weight, flow) in &flows {
                    sum += weight * self.queue_usd(flow, n);
                }
                *usd = usd.min(sum);
            }
        }
        let instance_usd = self.instance_usd();
        for (n, usd) in row.iter_mut().enumerate().skip(1) {
            *usd += instance_usd * n as f64;
        }
        row
    }

    /// The setting of the list that is best on average for some minutes.
    pub(super) fn best_setting(&self, minutes: &[(f64, Minute)], instances: usize) -> Setting {
        let mut best = (SETTINGS[0], f64::INFINITY);
        for setting in SETTINGS {
            let usd = self.mean_usd(minutes, &setting, instances);
            if usd < best.1 {
                best = (setting, usd);
            }
        }
        best.0
    }

    /// Expected dollars apart from the fleet.
    pub(super) fn mean_usd(
        &self,
        minutes: &[(f64, Minute)],
        setting: &Setting,
        instances: usize,
    ) -> f64 {
        minutes.iter().map(|(weight, m)| weight * self.usd(m, setting, instances).0).sum()
    }

    /// Warmth after a minute.
    pub(super) fn warmed(&self, warmth: f64, db_utilization: f64, warm_up: bool) -> f64 {
        let store = &self.constants.cache;
        cache::warmed(store, warmth, cache::recovery_share(store), db_utilization, warm_up)
    }
}

/// A minute as the points of its forecast's error.
pub(super) fn spread_out(weight: f64, minute: Minute, spread: f64) -> [(f64, Minute); 4] {
    POINTS.map(|(point, share)| {
        let offered_rps = minute.offered_rps * (1.0 + spread * point);
        (weight * share, Minute { offered_rps, ..minute })
    })
}

/// Demand of the first row of a [`Table`], requests/s; ratio of two neighbours; number of rows.
const TABLE_FIRST_RPS: f64 = 20.0;
const TABLE_LOG_STEP: f64 = 0.025;
const TABLE_ROWS: usize = 256;

/// Rows of minutes with a warm cache and the default constants, by demand; each is made when it is first
/// asked for, and is the same whoever asks.
pub(super) struct Table {
    rows: Vec<OnceLock<Row>>,
    spread: f64,
}

/// For the usual demand.
pub(super) static USUAL: LazyLock<Table> = LazyLock::new(|| Table::new(SPREAD));
/// For surges.
pub(super) static SURGE: LazyLock<Table> = LazyLock::new(|| Table::new(SPREAD_SURGE));

impl Table {
    fn new(spread: f64) -> Self {
        Self { rows: (0..TABLE_ROWS).map(|_| OnceLock::new()).collect(), spread }
    }

    fn at(&self, index: usize) -> &Row {
        self.rows[index].get_or_init(|| {
            let offered_rps = TABLE_FIRST_RPS * math::exp(TABLE_LOG_STEP * index as f64);
            let minute = Minute { offered_rps, warmth: 1.0, warm_up: false, cpu_factor: 1.0 };
            Model::new().row(&spread_out(1.0, minute, self.spread))
        })
    }

    /// Adds the row of a demand, interpolated, with a weight.
    pub(super) fn add_to(&self, sum: &mut Row, weight: f64, offered_rps: f64) {
        let place = math::ln(offered_rps.max(TABLE_FIRST_RPS) / TABLE_FIRST_RPS) / TABLE_LOG_STEP;
        let place = place.min((TABLE_ROWS - 2) as f64);
        let below = place.floor();
        let (low, high) = (self.at(below as usize), self.at(below as usize + 1));
        let share = place - below;
        for ((sum, low), high) in sum.iter_mut().zip(low).zip(high).skip(1) {
            *sum += weight * (low + share * (high - low));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::{EpisodeKey, World};
    use oncall_fleet::{FleetWorld, Params, step};

    const NOON: Minute =
        Minute { offered_rps: 1250.0, warmth: 1.0, warm_up: false, cpu_factor: 1.0 };

    /// Minutes that are calm, nearly saturated, saturated and with a cold cache, against the world.
    #[test]
    fn costs_what_the_world_bills() {
        let params = Params::defaults("model");
        let model = Model::new();
        let mut checked = 0;
        for offered_rps in [300.0, 1250.0, 1700.0, 1950.0, 2000.0, 2050.0, 5000.0] {
            for warmth in [1.0, 0.4, 0.0] {
                for (shed, feature, ttl_s) in [(0.0, true, 60.0), (1.0, false, 600.0)] {
                    let setting = Setting { shed, feature, ttl_s };
                    let mut lane =
                        step::open(&params, 0, EpisodeKey::default(), Some(&[offered_rps]));
                    lane.warmth = warmth;
                    let level = Level { shed, feature, log_ttl: math::ln_1p(ttl_s) };
                    let action = crate::table::exact(10, &level, [false; 2]);
                    let terms = step::play(&params, &mut lane, &action, Some(&[offered_rps]));
                    let minute = Minute { offered_rps, warmth, ..NOON };
                    let (usd, db) = model.usd(&minute, &setting, 10);
                    let usd = usd + 10.0 * model.instance_usd();
                    let billed: f64 = terms.iter().sum();
                    assert!((usd - billed).abs() < 1e-9 * billed.max(1.0), "{usd} {billed}");
                    assert!((db - lane.seen.db_utilization).abs() < 1e-9);
                    assert!((model.warmed(warmth, db, false) - lane.warmth).abs() < 1e-12);
                    checked += 1;
                }
            }
        }
        assert_eq!(checked, 42);
        assert_eq!(FleetWorld::single(params).spec().terms.len(), 6);
    }

    #[test]
    fn a_row_falls_steeply_and_then_rises_by_what_instances_cost() {
        let model = Model::new();
        let row = model.row(&spread_out(1.0, NOON, SPREAD));
        assert!(row[2] > row[5] + 1.0 && row[5] > row[7], "{row:?}");
        assert!((row[30] - row[29] - model.instance_usd()).abs() < 1e-12);
        let best = (1..=MOST).min_by(|a, b| row[*a].total_cmp(&row[*b])).unwrap();
        assert!((6..=8).contains(&best), "{best}");
        let mut interpolated = [0.0; MOST + 1];
        USUAL.add_to(&mut interpolated, 1.0, NOON.offered_rps);
        for n in best..=MOST {
            assert!((interpolated[n] - row[n]).abs() < 0.01, "{n}");
        }
    }

    #[test]
    fn what_may_come_is_prepared_for() {
        let model = Model::new();
        let emptied = Minute { warmth: 0.0, ..NOON };
        let calm = model.best_setting(&[(1.0, NOON)], 12);
        let may = model.best_setting(&[(0.98, NOON), (0.02, emptied)], 12);
        let surely = model.best_setting(&[(1.0, emptied)], 12);
        assert_eq!((calm.shed, calm.feature), (0.0, true));
        assert!(may.shed > 0.0 && may.feature, "{may:?}");
        // Twelve instances carry it at half the shedding; eight do not.
        assert!(surely.shed >= may.shed, "{surely:?}");
        let short = model.best_setting(&[(1.0, emptied)], 4);
        assert!(short.shed == 1.0 && !short.feature, "{short:?}");
        assert!(model.usd(&emptied, &calm, 4).0 > 10.0 * model.usd(&emptied, &short, 4).0);
    }
}
