//! An honest planner with a receding horizon: every minute it plans the next ones on its own forecast,
//! with a model whose constants are the defaults, and does the first minute of the plan.
//!
//! It reads the operator's dashboard and the scenario's description, and nothing else. What may come is
//! weighed with its probability: spare instances and shedding pay for themselves or are not bought.
//!
//! | file | what is in it |
//! |---|---|
//! | `briefing` | what a scenario's description says |
//! | `sight`, `orders` | from the dashboard to a state |
//! | `forecast` | paths of the demand |
//! | `model` | what a minute costs |
//! | `plan` | the cheapest fleet over the paths |

mod briefing;
mod forecast;
mod model;
mod orders;
mod plan;
mod sight;
#[cfg(test)]
mod tests;

use crate::level::{Level, Steps, cheapest};
use crate::table::exact;
use briefing::{Briefing, Past};
use forecast::{Forecast, Path};
use model::{Minute, Model, SPREAD, SPREAD_SURGE, spread_out};
use oncall_core::math;
use oncall_eval::{Contender, MakePolicy};
use oncall_fleet::Sig;
use oncall_fleet::dials::index;
use oncall_heuristics::{Policy, PolicyKey};
use orders::Orders;
use plan::{Outlook, Threat, WARM};
use sight::{Board, Sight, State};

/// Minutes that are planned ahead; less where less are left of the shift.
const HORIZON_MIN: usize = 40;
/// The same while the cache is cold: by then it is warm.
const HORIZON_COLD_MIN: usize = 20;
/// On quiet minutes the fleet is planned this often.
const REVIEW_MIN: u32 = 3;
/// Warmth from which a flush has passed, and another is prepared for.
const WARM_AGAIN: f64 = 0.85;
/// A press must pay this much.
const PRESS_USD: f64 = 0.01;
/// The search for the next minute's level, from the best of a list.
const STEPS: Steps = Steps { first: 0.12, halvings: 3 };

/// Name of the policy.
pub const RECEDING_NAME: &str = "planner-honest";

/// The policy.
#[derive(Debug, Clone)]
pub struct RecedingPlanner {
    scenario: String,
    memory: Option<Memory>,
}

/// What is remembered of a shift.
#[derive(Debug, Clone)]
struct Memory {
    told: Briefing,
    shift_min: f64,
    model: Model,
    sight: Sight,
    forecast: Forecast,
    orders: Orders,
    surges: Past,
    flushes: Past,
    floor: usize,
    level: Level,
    planned_min: Option<u32>,
}

impl RecedingPlanner {
    /// Before a shift of a scenario, of which it knows the description; of a scenario that is not
    /// shipped it expects nothing in particular.
    pub fn new(scenario: &str) -> Self {
        Self { scenario: scenario.to_owned(), memory: None }
    }

    /// The policy as one to compare, if that is its name.
    pub fn contender(name: &str) -> Option<Contender> {
        let make: MakePolicy = |scenario| Box::new(Self::new(scenario));
        (name == RECEDING_NAME).then(|| Contender::made(name, crate::registry::WORLDS, make))
    }
}

impl Policy for RecedingPlanner {
    fn reset(&mut self, _key: PolicyKey) {
        self.memory = None;
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let board = Board(signals);
        let scenario = &self.scenario;
        let memory = self.memory.get_or_insert_with(|| Memory::new(scenario, board));
        action[..index::COUNT].copy_from_slice(&memory.decide(board));
    }
}

impl Memory {
    fn new(scenario: &str, board: Board<'_>) -> Self {
        let shift_min = board.count(Sig::shift_min) + board.count(Sig::shift_left_min);
        let told = Briefing::of(scenario, shift_min);
        let ttl_s = board.get(Sig::dial_cache_ttl_s);
        Self {
            told,
            shift_min: f64::from(shift_min),
            model: Model::new(),
            sight: Sight::new(),
            forecast: Forecast::new(told.surges),
            orders: Orders::new(told.boot_min),
            surges: Past::default(),
            flushes: Past::default(),
            floor: board.count(Sig::serving).max(1) as usize,
            level: Level { shed: 0.0, feature: true, log_ttl: math::ln_1p(ttl_s) },
            planned_min: None,
        }
    }

    fn decide(&mut self, board: Board<'_>) -> [f64; index::COUNT] {
        let now = board.count(Sig::shift_min);
        let clock_h = board.get(Sig::time_of_day_h);
        let seen_h = if now == 0 { clock_h } else { clock_h - 1.0 / 60.0 };
        self.forecast.read(seen_h, board.get(Sig::offered_rps));
        self.orders.read(now, board.count(Sig::booting));
        let state = self.sight.read(board, now, &self.orders, &mut self.model);
        let flushes = self.flushes.count + u32::from(self.sight.flushed);
        self.flushes.update(flushes, f64::from(now));
        self.surges.update(self.forecast.seen(), f64::from(now));

        let left_min = board.count(Sig::shift_left_min).max(1) as usize;
        let cold = state.warmth < WARM || state.warm_up_left_min > 0;
        let flushing = state.warmth < WARM_AGAIN || state.warm_up_left_min > 0;
        let flush_in_min = minutes_until(self.told.flush_at_h, clock_h);
        let horizon = if cold { HORIZON_COLD_MIN } else { HORIZON_MIN }.min(left_min);
        let paths = self.forecast.paths(clock_h, horizon);
        let usual_rps: Vec<f64> =
            (0..horizon).map(|t| self.forecast.usual_rps(clock_h, t as f64)).collect();
        let outlook = Outlook {
            model: &self.model,
            state: &state,
            paths: &paths,
            usual_rps: &usual_rps,
            surging: self.forecast.surging(),
            threat: self.threat(f64::from(now), flushing),
            flush_in_min,
        };

        let emptied_now = flush_in_min == Some(0);
        let may_warm = (state.warmth < WARM || emptied_now) && state.warm_up_left_min == 0;
        let trouble = cold || self.forecast.surging() || state.build_errors > 0.0 || emptied_now;
        let mut warm_up = false;
        if trouble || self.planned_min.is_none_or(|at| now >= at + REVIEW_MIN) {
            let (floor, usd) = outlook.fleet(false);
            self.floor = floor;
            if may_warm {
                let (floor, pressed_usd) = outlook.fleet(true);
                warm_up = pressed_usd < usd - PRESS_USD;
                self.floor = if warm_up { floor } else { self.floor };
            }
            self.planned_min = Some(now);
        }
        let rollback = self.must_roll_back(&state, left_min as f64, clock_h);
        let next = next_minutes(&outlook, warm_up);
        let serving = (state.serving + state.coming[0] as usize).min(self.floor).max(1);
        self.level = self.best_level(&next, serving);
        self.orders.set_floor(now, state.serving as u32, self.floor as u32);
        exact(self.floor, &self.level, [warm_up, rollback])
    }

    /// What may come; nobody prepares for more while something goes on.
    fn threat(&self, now_min: f64, flushing: bool) -> Threat {
        let busy = flushing || self.forecast.rising();
        let factor = if busy { 0.0 } else { 1.0 };
        let (told, shift_min) = (&self.told, self.shift_min);
        Threat {
            surge_per_min: factor * told.surge_hazard(self.surges, now_min, shift_min),
            flush_per_min: factor * told.flush_hazard(self.flushes, now_min, shift_min),
            surges: told.surges,
        }
    }

    fn best_level(&self, minutes: &[(f64, Minute)], serving: usize) -> Level {
        let listed = self.model.best_setting(minutes, serving);
        let log_ttl = math::ln_1p(listed.ttl_s);
        let listed = Level { shed: listed.shed, feature: listed.feature, log_ttl };
        let mut cost = |level: &Level| self.model.mean_usd(minutes, &level.into(), serving);
        let start = if cost(&self.level) < cost(&listed) { self.level } else { listed };
        cheapest(start, STEPS, &mut cost).0
    }

    /// Whether a bad build is live, or goes out in this very minute as was told, and its errors until
    /// the end of the shift cost more than the second fleet.
    fn must_roll_back(&self, state: &State, left_min: f64, clock_h: f64) -> bool {
        let told = minutes_until(self.told.bad_build_at_h, clock_h) == Some(0);
        if state.rollback_left_min > 0 {
            return false;
        }
        let service = &self.model.constants.service;
        let second_usd = self.model.instance_usd() * state.serving as f64 * service.rollback_min;
        let saved_min = (left_min - service.rollback_min).max(0.0);
        let saved_usd = self.model.errors_usd(state.build_errors) * saved_min;
        told || state.build_errors > 0.0 && saved_usd > second_usd
    }
}

/// What the next minute may be, with weights.
fn next_minutes(outlook: &Outlook<'_>, warm_up: bool) -> Vec<(f64, Minute)> {
    let state = outlook.state;
    let warmth = if outlook.flush_in_min == Some(0) { 0.0 } else { state.warmth };
    let minute = |path: &Path| Minute {
        offered_rps: path.rates_rps[0],
        warmth,
        warm_up: warm_up || state.warm_up_left_min > 0,
        cpu_factor: state.cpu_factor,
    };
    let threat = &outlook.threat;
    let rest = 1.0 - threat.surge_per_min - threat.flush_per_min;
    let spread = if outlook.surging { SPREAD_SURGE } else { SPREAD };
    let mut minutes: Vec<(f64, Minute)> = Vec::new();
    for path in outlook.paths {
        minutes.extend(spread_out(rest * path.weight, minute(path), spread));
    }
    minutes.extend(threat.next(minute(&outlook.paths[0]), outlook.usual_rps[0]));
    minutes
}

/// Whole minutes from `clock_h` until a time of day; none if it is over.
fn minutes_until(at_h: Option<f64>, clock_h: f64) -> Option<usize> {
    let minutes = ((at_h? - clock_h) * 60.0).round();
    (minutes >= 0.0).then_some(minutes as usize)
}
