//! Reads the simulator's gauges and its bill: differences become rates, counts become dollars.

use crate::own::Own;
use crate::reward::{self, TERMS};
use crate::scrape::Scrape;
use crate::window::{Clock, Ratio, Rise};
use crate::{TICK_S, dials};
use oncall_core::math;
use oncall_discovery::dials::Dials;
use oncall_discovery::types::{Reason, State};
use oncall_discovery_sim::topology::REGIONS;
use oncall_discovery_sim::world::{Bill, Counters, Gauges, Histogram, Levels, World};
use serde::{Deserialize, Serialize};

/// Seconds to which counts of a tick are related.
const TICK: f64 = TICK_S as f64;

/// Failed probes below which their pattern says little.
const PATTERN_MIN: f64 = 8.0;

/// Counts of a tick that cost something.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    failed: f64,
    no_backend: f64,
    forced: f64,
    stale: f64,
    withdrawals_late: f64,
    removals_late: f64,
    deploy_delay_min: f64,
    ops_usd: f64,
}

/// What was read last, and what is kept over several ticks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meter {
    before: Box<Gauges>,
    billed: Bill,
    withdrawals: Clock,
    removals: Clock,
    failures: Ratio,
    flights: Ratio,
    terms: Rise,
    behind_s: f64,
    /// Requests in a second at the start, by region.
    nominal_rps: [f64; REGIONS],
    instances: f64,
    ticks: u32,
}

/// Counts of one region within a tick.
struct Diff<'a> {
    now: &'a Counters,
    before: &'a Counters,
}

impl Diff<'_> {
    fn count(&self, of: fn(&Counters) -> u64) -> f64 {
        of(self.now).wrapping_sub(of(self.before)) as f64
    }

    fn sum(&self, of: fn(&Counters) -> f64) -> f64 {
        of(self.now) - of(self.before)
    }

    fn reason(&self, reason: Reason) -> f64 {
        let at = reason as usize;
        self.now.reasons[at].wrapping_sub(self.before.reasons[at]) as f64
    }

    fn times(&self, of: fn(&Counters) -> &Histogram) -> Histogram {
        of(self.now).since(of(self.before))
    }

    fn p99_ms(&self, of: fn(&Counters) -> &Histogram) -> f64 {
        self.times(of).quantile(0.99).unwrap_or(0.0) * 1e3
    }
}

/// All regions within a tick.
struct Tick<'a> {
    regions: [Diff<'a>; REGIONS],
    levels: &'a [Levels; REGIONS],
}

impl Tick<'_> {
    fn each(&self, of: impl Fn(&Diff<'_>) -> f64) -> [f64; REGIONS] {
        std::array::from_fn(|region| of(&self.regions[region]))
    }

    fn level(&self, of: impl Fn(&Levels) -> f64) -> [f64; REGIONS] {
        std::array::from_fn(|region| of(&self.levels[region]))
    }

    fn total(&self, of: impl Fn(&Diff<'_>) -> f64) -> f64 {
        self.regions.iter().map(of).sum()
    }

    fn rate(&self, of: impl Fn(&Diff<'_>) -> f64) -> f64 {
        self.total(of) / TICK
    }

    fn mean(&self, of: impl Fn(&Levels) -> f64) -> f64 {
        self.levels.iter().map(of).sum::<f64>() / REGIONS as f64
    }

    fn most(&self, of: impl Fn(&Levels) -> f64) -> f64 {
        self.levels.iter().map(of).fold(0.0, f64::max)
    }

    /// Times of all regions together.
    fn times(&self, of: fn(&Counters) -> &Histogram) -> Histogram {
        let mut sum = Histogram::default();
        for region in &self.regions {
            sum.merge(&region.times(of));
        }
        sum
    }

    /// How much the failures of probes concentrate on few of `N` places, 0..1.
    fn pattern<const N: usize>(&self, of: fn(&Counters) -> &[u64; N], places: usize) -> f64 {
        let mut counts = [0.0; N];
        for region in &self.regions {
            let pairs = of(region.now).iter().zip(of(region.before));
            for (sum, (now, before)) in counts.iter_mut().zip(pairs) {
                *sum += now.wrapping_sub(*before) as f64;
            }
        }
        concentration(&counts, places)
    }
}

/// One minus the entropy of a spread over the highest one, drawn towards 0 where the counts are few.
fn concentration(counts: &[f64], places: usize) -> f64 {
    let total: f64 = counts.iter().sum();
    if total <= 0.0 || places < 2 {
        return 0.0;
    }
    let parts = counts.iter().filter(|&&count| count > 0.0).map(|count| count / total);
    let entropy: f64 = parts.map(|share| -share * math::ln(share)).sum();
    let spread = entropy / math::ln(places as f64);
    (1.0 - spread).clamp(0.0, 1.0) * total / (total + PATTERN_MIN)
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}

impl Meter {
    pub(crate) fn new(world: &World) -> Self {
        Self {
            before: Box::new(world.gauges()),
            billed: world.bill(),
            withdrawals: Clock::default(),
            removals: Clock::default(),
            failures: Ratio::default(),
            flights: Ratio::default(),
            terms: Rise::default(),
            behind_s: 0.0,
            nominal_rps: [1.0; REGIONS],
            instances: f64::from(world.topology().shape.instances),
            ticks: 0,
        }
    }

    /// The opening minute is over: its traffic is the measure of the budgets and of overload.
    pub(crate) fn open(&mut self) {
        let played_s = f64::from(self.ticks) * TICK;
        self.nominal_rps =
            self.before.counters.map(|region| (region.traffic.requests / played_s).max(1e-9));
    }

    /// What exporters would report now, and what the last tick cost.
    pub(crate) fn read(&mut self, world: &World) -> (Scrape, Spent) {
        self.ticks += 1;
        let now = Box::new(world.gauges());
        let before = std::mem::replace(&mut self.before, now);
        let now = self.before.clone();
        let tick = Tick {
            regions: std::array::from_fn(|region| Diff {
                now: &now.counters[region],
                before: &before.counters[region],
            }),
            levels: &now.levels,
        };
        let mut scrape = Scrape::default();
        self.catalog(&tick, &mut scrape);
        health(&tick, self.instances, &mut scrape);
        distribution(&tick, &mut scrape);
        self.proxies(&tick, &mut scrape);
        self.traffic(&tick, &mut scrape);
        self.objectives(&tick, &mut scrape);
        let spent = self.bill(world, &mut scrape);
        (scrape, spent)
    }

    fn catalog(&mut self, tick: &Tick<'_>, out: &mut Scrape) {
        out.writes_per_s = tick.each(|region| region.count(|c| c.writes) / TICK);
        out.write_ms_p99 = tick.each(|region| region.p99_ms(|c| &c.write_latency));
        out.follower_lag_s = tick.level(|level| level.follower_lag_s);
        out.quorum = tick.level(|level| level.quorum);
        let all = tick.times(|c| &c.write_latency);
        out.write_ms_p50 = all.quantile(0.5).unwrap_or(0.0) * 1e3;
        out.rejected_per_s = tick.rate(|region| region.count(|c| c.refused));
        self.terms.tick(tick.levels.iter().map(|level| level.term).sum());
        out.term_changes = self.terms.by() as f64;
        out.renewals_per_s = tick.rate(|region| region.sum(|c| c.renewals));
        out.registrations_per_s = tick
            .rate(|region| region.reason(Reason::Registered) + region.reason(Reason::Reregistered));
        out.withdrawals_per_s = tick.rate(|region| region.reason(Reason::Withdrawn));
        out.removals_probe_per_s = tick.rate(|region| {
            region.reason(Reason::ProbesFailed)
                + region.reason(Reason::PassiveConfirmed)
                + region.reason(Reason::ReadinessReported)
        });
        out.removals_lease_per_s = tick.rate(|region| region.reason(Reason::LeaseExpired));
        out.removals_held_per_s = tick.rate(|region| region.count(|c| c.guard_held));
    }

    fn proxies(&mut self, tick: &Tick<'_>, out: &mut Scrape) {
        out.connected = tick.level(|level| level.connected);
        out.reconnects_per_s = tick.rate(|region| region.count(|c| c.connects));
        out.age_p50 = tick.mean(|level| level.age_s[0]);
        out.age_p99 = tick.most(|level| level.age_s[1]);
        out.age_max = tick.most(|level| level.age_s[2]);
        out.contact_s = tick.most(|level| level.silence_s);
        out.ejected = tick.mean(|level| level.ejected as f64) * REGIONS as f64 / self.instances;
        out.thin = tick.mean(|level| level.thin);
        // A delta on its way is no disturbance: one pair in two hundred may be behind.
        let behind = tick.most(|level| level.behind) > 0.005;
        self.behind_s = if behind { self.behind_s + TICK } else { 0.0 };
        out.convergence_s = self.behind_s;
    }

    fn traffic(&mut self, tick: &Tick<'_>, out: &mut Scrape) {
        let requests = tick.total(|region| region.sum(|c| c.traffic.requests));
        let part = |of: fn(&Counters) -> f64| share(tick.total(|r| r.sum(of)), requests);
        out.requests_per_s = requests / TICK;
        out.failed = tick.each(|region| {
            share(region.sum(|c| c.traffic.user_visible()), region.sum(|c| c.traffic.requests))
        });
        out.retries = part(|c| c.traffic.retries);
        out.added_ms = 1e3 * part(|c| c.waited_s);
        out.stale = part(|c| c.traffic.stale);
        out.connect_failures = part(|c| c.traffic.failures);
        out.no_backend = part(|c| c.traffic.no_backend);
        out.refused = part(|c| c.traffic.policy_refused);
        out.cross_region = part(|c| c.traffic.cross_region);
        let loads = tick.each(|region| region.sum(|c| c.traffic.requests) / TICK);
        out.overload = std::array::from_fn(|region| {
            let ready = tick.levels[region].ready_share.max(0.01);
            loads[region] / self.nominal_rps[region] / ready
        });
        self.failures.tick(requests, tick.total(|r| r.sum(|c| c.traffic.user_visible())));
    }

    fn objectives(&mut self, tick: &Tick<'_>, out: &mut Scrape) {
        let late = |of: fn(&Counters) -> u64| tick.total(|region| region.count(of)) as u64;
        let withdrawals_late = late(|c| c.withdrawals_late);
        self.withdrawals.tick(self.ticks, &tick.times(|c| &c.withdrawal), withdrawals_late);
        self.removals.tick(self.ticks, &tick.times(|c| &c.crash), late(|c| c.crashes_late));
        let forced = tick.total(|region| region.sum(|c| c.forced));
        self.flights.tick(tick.total(|region| region.sum(|c| c.in_flight)), forced);
        (out.withdrawal_p50, out.withdrawal_p99, out.withdrawal_late) = (
            self.withdrawals.quantile(0.5),
            self.withdrawals.quantile(0.99),
            self.withdrawals.late_share(),
        );
        (out.removal_p50, out.removal_p99, out.removal_late) =
            (self.removals.quantile(0.5), self.removals.quantile(0.99), self.removals.late_share());
        out.last_request_s = self.withdrawals.quantile(1.0).max(self.removals.quantile(1.0));
        out.completed = 1.0 - self.flights.ten_min().unwrap_or(0.0).clamp(0.0, 1.0);
        out.forced_per_s = forced / TICK;
        out.burn_5min = self.failures.five_min() / reward::REQUEST_BUDGET;
        out.burn_1h = self.failures.hour() / reward::REQUEST_BUDGET;
    }

    /// Dollars of a tick, those of a fleet of full size, and counts that cost something.
    fn bill(&mut self, world: &World, out: &mut Scrape) -> Spent {
        let now = world.bill();
        let before = std::mem::replace(&mut self.billed, now);
        let usd = |of: fn(&Bill) -> f64| (of(&now) - of(&before)) / now.fleet_share;
        let usd_h = |of: fn(&Bill) -> f64| usd(of) * 3600.0 / TICK;
        out.relays_usd_h = usd_h(|b| b.relays);
        out.probers_usd_h = usd_h(|b| b.probers + b.probed);
        out.catalog_usd_h = usd_h(|b| b.catalog);
        out.drain_usd_h = usd_h(|b| b.drain);
        out.egress_usd_h = usd_h(|b| b.egress_zone + b.egress_region);
        out.memory_usd_h = usd_h(|b| b.retention);
        out.spare_usd_h = usd_h(|b| b.spare);
        let count = |of: fn(&Bill) -> f64| of(&now) - of(&before);
        Spent {
            failed: count(|b| b.failed),
            no_backend: count(|b| b.no_backend_avoidable),
            forced: count(|b| b.forced),
            stale: count(|b| b.stale),
            withdrawals_late: count(|b| b.withdrawals_late as f64),
            removals_late: count(|b| b.crashes_late as f64),
            deploy_delay_min: count(|b| b.rollout_overdue_min),
            ops_usd: usd(Bill::ops),
        }
    }

    /// The terms of a tick, and the accounts.
    pub(crate) fn terms(&self, spent: &Spent, own: &mut Own) -> [f64; TERMS] {
        let nominal_rps: f64 = self.nominal_rps.iter().sum();
        let budgets = [
            spent.failed / (reward::REQUEST_BUDGET * nominal_rps * reward::MONTH_S),
            spent.withdrawals_late
                / (reward::WITHDRAWAL_BUDGET * reward::WITHDRAWALS_PER_INSTANCE * self.instances),
            spent.removals_late
                / (reward::REMOVAL_BUDGET * reward::REMOVALS_PER_INSTANCE * self.instances),
        ];
        for (left, burned) in own.budgets.iter_mut().zip(budgets) {
            *left -= burned;
        }
        own.cost_usd += spent.ops_usd;
        // Requests count as those of a fleet of full size.
        let requests = reward::FULL_RPS / nominal_rps;
        [
            spent.ops_usd,
            budgets[0] * reward::REQUEST_BUDGET_USD,
            budgets[1] * reward::WITHDRAWAL_BUDGET_USD,
            budgets[2] * reward::REMOVAL_BUDGET_USD,
            spent.no_backend * requests * reward::NO_BACKEND_USD,
            spent.forced * requests * reward::FORCED_USD,
            spent.stale * requests * reward::STALE_USD,
            spent.deploy_delay_min * reward::DEPLOY_DELAY_USD,
        ]
    }

    /// What the console shows of the simulator without delay.
    pub(crate) fn look(&self, world: &World, own: &mut Own) {
        let force = world.in_force();
        own.proxies_in_force = force.proxies_with_wish_share;
        own.catalog_in_force =
            force.catalog.map(|dials| f64::from(u8::from(acts_on(&dials, &own.dials))));
        let rollout = self.before.rollout;
        own.rollout_running = f64::from(u8::from(rollout.running > 0));
        own.rollout_left = rollout.planned.saturating_sub(rollout.done) as f64 / self.instances;
        own.truth.violations = world.violations().len() as f64;
        let target = self.instances / REGIONS as f64;
        own.truth.dead_ready = self.before.levels.map(|level| f64::from(level.dead) / target);
        own.truth.alive_out = self.before.levels.map(|level| f64::from(level.shut_out) / target);
    }
}

/// Whether a catalog goes by all of a wish.
fn acts_on(dials: &Dials, wish: &[f64; dials::COUNT]) -> bool {
    dials.values().iter().zip(wish).all(|(has, wanted)| has == wanted)
}

fn health(tick: &Tick<'_>, instances: f64, out: &mut Scrape) {
    out.ready_share = tick.level(|level| level.ready_share);
    [out.below_50, out.below_80, out.below_95] =
        std::array::from_fn(|at| tick.mean(|level| level.below[at]));
    let mut worst: Vec<f64> = tick.levels.iter().flat_map(|level| level.worst).collect();
    worst.sort_by(f64::total_cmp);
    out.ready_worst5 = worst[..5].iter().sum::<f64>() / 5.0;
    let state = |state: State| {
        tick.levels.iter().map(|level| f64::from(level.states[state as usize])).sum::<f64>()
            / instances
    };
    out.starting = state(State::Starting);
    out.draining = state(State::Draining);
    out.unhealthy = state(State::Unhealthy);
    out.expired = state(State::Expired);
    out.flaps_per_s = tick.rate(|region| region.reason(Reason::Recovered));
    let all = tick.times(|c| &c.probe_latency);
    out.probe_ms_p50 = all.quantile(0.5).unwrap_or(0.0) * 1e3;
    out.probe_ms_p99 = tick.each(|region| region.p99_ms(|c| &c.probe_latency));
    out.probe_failures =
        tick.each(|region| share(region.count(|c| c.probe_failures), region.count(|c| c.probes)));
    out.by_node = tick.pattern(|c| &c.failures_by_node, 16);
    out.by_zone = tick.pattern(|c| &c.failures_by_zone, 3);
    out.by_service = tick.pattern(|c| &c.failures_by_service, 16);
    out.holding = tick.levels.iter().map(|level| f64::from(level.guard_holds)).sum();
    out.disagreement = tick.each(disagreement).into_iter().fold(0.0, f64::max);
}

/// How far the failure rates of a region's three probers lie apart; each makes a third of the probes.
fn disagreement(region: &Diff<'_>) -> f64 {
    let pairs = region.now.failures_by_prober.iter().zip(region.before.failures_by_prober);
    let failures: Vec<f64> = pairs.map(|(now, old)| now.wrapping_sub(old) as f64).collect();
    let most = failures.iter().copied().fold(0.0, f64::max);
    let least = failures.iter().copied().fold(f64::INFINITY, f64::min);
    share(3.0 * (most - least), region.count(|c| c.probes)).min(1.0)
}

fn distribution(tick: &Tick<'_>, out: &mut Scrape) {
    out.pending = tick.levels.iter().map(|level| level.pending as f64).sum();
    out.relay_ms = tick.each(|region| region.p99_ms(|c| &c.relay_delay));
    out.deltas_per_s = tick.rate(|region| region.count(|c| c.deltas));
    out.delta_mb_per_s = tick.rate(|region| region.count(|c| c.delta_bytes)) / 1e6;
    let lag = tick.times(|c| &c.watch_lag);
    out.watch_lag_p50 = lag.quantile(0.5).unwrap_or(0.0);
    out.watch_lag_p99 = lag.quantile(0.99).unwrap_or(0.0);
    out.gaps_per_s = tick.rate(|region| region.count(|c| c.gaps));
    out.fallbacks_per_s = tick.rate(|region| region.count(|c| c.snapshot_fallbacks));
    out.snapshots_waiting = tick.levels.iter().map(|level| level.snapshots_waiting as f64).sum();
    out.snapshot_mb_per_s = tick.rate(|region| region.count(|c| c.snapshot_bytes)) / 1e6;
    let least = tick.levels.iter().map(|level| level.retention_s).fold(f64::INFINITY, f64::min);
    out.retention_s = if least.is_finite() { least } else { 0.0 };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concentration_tells_one_from_many() {
        assert_eq!(concentration(&[0.0; 16], 16), 0.0);
        let one = concentration(&[1000.0, 0.0, 0.0, 0.0], 4);
        assert!(one > 0.98 && one <= 1.0, "{one}");
        assert!(concentration(&[500.0; 4], 4) < 1e-12);
        let half = concentration(&[500.0, 500.0, 0.0, 0.0], 4);
        assert!((half - 0.5).abs() < 0.01, "{half}");
        // One failure is no pattern.
        assert!(concentration(&[1.0, 0.0, 0.0, 0.0], 4) < 0.2);
    }
}
