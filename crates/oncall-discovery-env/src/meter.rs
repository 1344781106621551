//! Reads the simulator's gauges and its bill: differences become rates, counts become dollars.

use crate::own::Own;
use crate::plan::Window;
use crate::reward::{self, TERMS};
use crate::scrape::Scrape;
use crate::window::{Clock, Failures};
use crate::TICK_S;
use oncall_discovery::dials::Dials;
use oncall_discovery_sim::world::{Totals, World};
use serde::{Deserialize, Serialize};

/// Counts of a tick that cost something.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    pub(crate) failed: f64,
    pub(crate) no_backend: f64,
    pub(crate) forced: f64,
    pub(crate) withdrawals_late: f64,
    pub(crate) removals_late: f64,
    pub(crate) deploy_delay_min: f64,
    pub(crate) ops_usd: f64,
}

/// What was read last, and what is kept over several ticks.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Meter {
    before: Totals,
    withdrawals: Clock,
    removals: Clock,
    failures: Failures,
    /// Requests in a second at the start.
    nominal_rps: f64,
    instances: f64,
    ticks: u32,
}

impl Meter {
    pub(crate) fn new(world: &mut World) -> Self {
        Self {
            before: *world.totals(),
            withdrawals: Clock::default(),
            removals: Clock::default(),
            failures: Failures::default(),
            nominal_rps: 0.0,
            instances: f64::from(world.topology().shape.instances),
            ticks: 0,
        }
    }

    /// The opening minute is over: what it showed is the measure of the budgets.
    pub(crate) fn open(&mut self, _own: &mut Own) {
        self.nominal_rps = self.before.traffic.requests / (f64::from(self.ticks * TICK_S));
    }

    /// Hands a wish to the simulator.
    pub(crate) fn turn(&mut self, world: &mut World, dials: Dials) -> bool {
        world.set_dials(dials).is_ok()
    }

    /// What exporters would report now, and what the last tick cost.
    pub(crate) fn read(&mut self, world: &mut World) -> (Scrape, Spent) {
        self.ticks += 1;
        let now = *world.totals();
        let d = |f: fn(&Totals) -> f64| f(&now) - f(&self.before);
        let requests = d(|t| t.traffic.requests);
        let failed = d(|t| t.traffic.failed + t.traffic.no_backend);
        self.failures.tick(requests, failed);
        self.withdrawals.tick(self.ticks, &[], 3.0);
        self.removals.tick(self.ticks, &[], 15.0);
        let share = |x: f64| if requests > 0.0 { x / requests } else { 0.0 };
        let per_s = 1.0 / f64::from(TICK_S);
        let (burn_5min, burn_1h) = self.failures.shares();
        let scrape = Scrape {
            requests_per_s: requests * per_s,
            failed: [share(failed); 3],
            retries: share(d(|t| t.traffic.retries)),
            stale: share(d(|t| t.traffic.stale)),
            no_backend: share(d(|t| t.traffic.no_backend)),
            burn_5min: burn_5min / reward::REQUEST_BUDGET,
            burn_1h: burn_1h / reward::REQUEST_BUDGET,
            ..Scrape::default()
        };
        let spent = Spent { failed, no_backend: d(|t| t.traffic.no_backend), forced: d(|t| t.forced), ..Spent::default() };
        self.before = now;
        (scrape, spent)
    }

    /// The terms of a tick, and the accounts.
    pub(crate) fn terms(&self, spent: &Spent, own: &mut Own) -> [f64; TERMS] {
        let budgets = [
            spent.failed / (reward::REQUEST_BUDGET * self.nominal_rps * reward::MONTH_S),
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
        let requests = reward::FULL_RPS / self.nominal_rps;
        [
            spent.ops_usd,
            budgets[0] * reward::REQUEST_BUDGET_USD,
            budgets[1] * reward::WITHDRAWAL_BUDGET_USD,
            budgets[2] * reward::REMOVAL_BUDGET_USD,
            spent.no_backend * requests * reward::NO_BACKEND_USD,
            spent.forced * requests * reward::FORCED_USD,
            spent.deploy_delay_min * reward::DEPLOY_DELAY_USD,
        ]
    }

    /// What the console shows of the simulator without delay.
    pub(crate) fn look(&self, world: &World, _windows: &[Window], own: &mut Own) {
        own.truth.violations = world.violations().len() as f64;
    }
}
