//! The operator's capacity sheet: what a minute would cost with these dials and this demand.
//!
//! It holds the default constants of the fleet, as a capacity plan of the service would; what differs
//! in a scenario is read from the dashboard where it shows (CPU time, warmth of the cache, demand).

use oncall_core::math;
use oncall_fleet::params::{Cache, Database, Fleet, Prices, Record, Service, Slo};
use oncall_fleet::queue::LN_100;
use oncall_fleet::{cache, database};

/// Half-width and weights of the three points that stand for the normal demand of a minute.
const SPREAD: f64 = 1.732_050_807_568_877_2;
const POINTS: [(f64, f64); 3] = [(0.0, 2.0 / 3.0), (SPREAD, 1.0 / 6.0), (-SPREAD, 1.0 / 6.0)];
/// Beyond this many timeouts' worth of spare drain nothing times out.
const CALM_EXPONENT: f64 = 30.0;
/// Below this utilisation a database tells nothing about its capacity.
const IDLE: f64 = 0.01;
const MINUTE_S: f64 = 60.0;

/// The dials that degrade.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Level {
    /// Share of the low-priority traffic refused.
    pub(super) shed: f64,
    /// Whether the recommendations are on.
    pub(super) feature: bool,
    /// Time to live of a cache entry.
    pub(super) ttl_s: f64,
}

/// What a minute will be like, whatever the level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Outlook {
    /// Demand.
    pub(super) offered_rps: f64,
    /// Warmth of the cache.
    pub(super) warmth: f64,
    /// Whether a warm-up runs.
    pub(super) warm_up: bool,
    /// CPU time over the good build's.
    pub(super) cpu_factor: f64,
}

/// The constants of the sheet.
#[derive(Debug, Clone)]
pub(super) struct Model {
    pub(super) fleet: Fleet,
    pub(super) cache: Cache,
    database: Database,
    pub(super) service: Service,
    pub(super) prices: Prices,
    slo: Slo,
    recovery: f64,
}

/// Load of a minute.
struct Load {
    admitted_rps: f64,
    cache_hit: f64,
    service_s: f64,
}

impl Model {
    pub(super) fn new() -> Self {
        let cache = Cache::defaults();
        Self {
            fleet: Fleet::defaults(),
            cache,
            database: Database::defaults(),
            service: Service::defaults(),
            prices: Prices::defaults(),
            slo: Slo::defaults(),
            recovery: cache::recovery_share(&cache),
        }
    }

    /// Learns the database's capacity from a load and the utilisation that it made.
    pub(super) fn calibrate(&mut self, queries_per_s: f64, utilization: f64) {
        if utilization > IDLE && queries_per_s > 0.0 {
            self.database.capacity_qps = queries_per_s / utilization;
        }
    }

    /// Queries of a request.
    pub(super) fn queries(&self, feature: bool) -> f64 {
        self.service.queries + if feature { self.service.feature_queries } else { 0.0 }
    }

    /// CPU time of a request on a good build.
    pub(super) fn cpu_ms(&self, feature: bool) -> f64 {
        self.service.cpu_ms + if feature { self.service.feature_cpu_ms } else { 0.0 }
    }

    fn database_load(
        &self,
        outlook: &Outlook,
        level: &Level,
        admitted_rps: f64,
        hit: f64,
    ) -> database::Load {
        let warm_up_qps = if outlook.warm_up { self.cache.warm_up_qps } else { 0.0 };
        let queries_per_s = admitted_rps * self.queries(level.feature) * (1.0 - hit) + warm_up_qps;
        database::load(&self.database, queries_per_s)
    }

    fn load(&self, outlook: &Outlook, level: &Level) -> Load {
        let admitted_rps = outlook.offered_rps * (1.0 - self.fleet.low_priority_share * level.shed);
        let cache_hit = cache::hit_share(&self.cache, admitted_rps, level.ttl_s, outlook.warmth);
        let query_ms = self.database_load(outlook, level, admitted_rps, cache_hit).query_ms;
        let cpu_ms = self.cpu_ms(level.feature) * outlook.cpu_factor;
        let service_ms = cpu_ms + (1.0 - cache_hit) * self.queries(level.feature) * query_ms;
        Load { admitted_rps, cache_hit, service_s: service_ms / 1000.0 }
    }

    /// Instances that carry the load with a share of the servers to spare (Little's law).
    pub(super) fn instances(&self, outlook: &Outlook, level: &Level, headroom: f64) -> f64 {
        let load = self.load(outlook, level);
        let servers = load.admitted_rps * load.service_s * (1.0 + headroom);
        (servers / self.fleet.servers_per_instance).ceil().clamp(1.0, self.fleet.instances_max)
    }

    /// Warmth of the cache a minute later.
    pub(super) fn warmed(&self, outlook: &Outlook, level: &Level) -> f64 {
        let load = self.load(outlook, level);
        let database = self.database_load(outlook, level, load.admitted_rps, load.cache_hit);
        let rho = database.utilization;
        cache::warmed(&self.cache, outlook.warmth, self.recovery, rho, outlook.warm_up)
    }

    /// Dollars of a minute's share of failed requests.
    pub(super) fn errors_usd(&self, error_rate: f64, budget_left: f64) -> f64 {
        let overdraft = if budget_left > 0.0 { 1.0 } else { self.prices.overdraft_factor };
        let whole = self.slo.error_budget * self.slo.window_min;
        self.prices.budget_usd * overdraft * error_rate / whole
    }

    /// Expected dollars of a minute, without the fleet: (damage, price of the level). The damage is
    /// errors and latency. `noise` is the relative spread of the demand.
    pub(super) fn minute_usd(
        &self,
        outlook: &Outlook,
        level: &Level,
        serving: f64,
        noise: f64,
        budget_left: f64,
    ) -> (f64, f64) {
        let servers = self.fleet.servers_per_instance * serving;
        let (mut damage, mut price) = (0.0, 0.0);
        for (point, weight) in POINTS {
            let offered_rps = outlook.offered_rps * (1.0 + point * noise);
            let load = self.load(&Outlook { offered_rps, ..*outlook }, level);
            let admitted_millions = load.admitted_rps * MINUTE_S / 1e6;
            let (failed, p99_s) = self.queue(servers, &load);
            let slow_s = (p99_s - self.prices.latency_free_s).max(0.0);
            damage += weight
                * (self.errors_usd(failed, budget_left)
                    + self.prices.latency_usd_per_million_s * admitted_millions * slow_s);
            let refused_millions = (offered_rps - load.admitted_rps) * MINUTE_S / 1e6;
            let degraded = if level.feature { 0.0 } else { admitted_millions };
            let aged = admitted_millions * load.cache_hit * level.ttl_s / 2.0;
            price += weight
                * (self.prices.shed_usd_per_million * refused_millions
                    + self.prices.recommendations_usd_per_million * degraded
                    + self.prices.staleness_usd_per_million_s * aged);
        }
        (damage, price)
    }

    /// Failed share and p99 of the queue. Everybody is taken to wait, which is nearly so where it
    /// matters: close to saturation.
    fn queue(&self, servers: f64, load: &Load) -> (f64, f64) {
        let erlangs = load.admitted_rps * load.service_s;
        let timeout_s = self.service.timeout_s;
        let p99_service_s = load.service_s * LN_100;
        if erlangs >= servers {
            return (1.0 - servers / erlangs, timeout_s + p99_service_s);
        }
        let drain_per_s = servers / load.service_s - load.admitted_rps;
        let exponent = drain_per_s * timeout_s;
        let failed = if exponent > CALM_EXPONENT { 0.0 } else { math::exp(-exponent) };
        (failed, p99_service_s + (LN_100 / drain_per_s).min(timeout_s))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Level = Level { shed: 0.0, feature: true, ttl_s: 60.0 };
    const OPENING: Outlook =
        Outlook { offered_rps: 1125.0, warmth: 1.0, warm_up: false, cpu_factor: 1.0 };

    #[test]
    fn the_opening_minute_is_the_specified_one() {
        let model = Model::new();
        let load = model.load(&OPENING, &CALM);
        assert!((load.service_s - 0.074_247_8).abs() < 1e-7);
        // 83.53 erlangs are 5.2 instances.
        assert_eq!(model.instances(&OPENING, &CALM, 0.0), 6.0);
        assert_eq!(model.instances(&OPENING, &CALM, 0.2), 7.0);
        let (damage, price) = model.minute_usd(&OPENING, &CALM, 10.0, 0.02, 1.0);
        assert_eq!(damage, 0.0);
        assert!((price - 0.002 * 0.0675 * 0.771_428_6 * 30.0).abs() < 1e-5);
    }

    #[test]
    fn too_few_instances_hurt_and_each_lever_helps() {
        let model = Model::new();
        let damage = |level: &Level| model.minute_usd(&OPENING, level, 4.0, 0.02, 1.0).0;
        let full = damage(&CALM);
        assert!(full > 5.0);
        assert!(damage(&Level { shed: 1.0, ..CALM }) < full);
        assert!(damage(&Level { feature: false, ..CALM }) < full);
        assert!(damage(&Level { ttl_s: 600.0, ..CALM }) < full);
        let overdrawn = model.minute_usd(&OPENING, &CALM, 4.0, 0.02, -0.1).0;
        assert!(overdrawn > 2.0 * full);
        let bad = Outlook { cpu_factor: 1.25, ..OPENING };
        assert!(model.instances(&bad, &CALM, 0.0) > model.instances(&OPENING, &CALM, 0.0));
    }

    #[test]
    fn a_cold_cache_warms() {
        let model = Model::new();
        let cold = Outlook { warmth: 0.0, ..OPENING };
        assert!(model.instances(&cold, &CALM, 0.0) > 10.0);
        let slow = model.warmed(&cold, &CALM);
        let fast = model.warmed(&Outlook { warm_up: true, ..cold }, &CALM);
        assert!((slow - 0.032_8).abs() < 1e-4 && (fast - slow - 0.12).abs() < 0.01);
    }
}
