//! What each minute of a shift costs with each number of serving instances, at the best level for it.
//!
//! Every entry is measured by playing the minute on a copy of the world that stands where a known
//! schedule brought it (warmth of the cache, rollback, builds), with the fleet replaced.

use crate::episode::{Action, Episode, Trace, same_future};
use crate::fleet::Costs;
use crate::level::{COARSE, Level, Steps, cheapest};
use oncall_fleet::Lane;
use oncall_fleet::capacity::Capacity;
use oncall_fleet::dials::index;

/// A minute that costs less than this apart from its fleet needs no more instances.
const CALM_USD: f64 = 5e-4;

#[derive(Debug, Clone, Copy)]
struct Entry {
    usd: f64,
    level: Level,
}

#[derive(Debug, Clone)]
struct Row {
    /// The state that it was measured in, fleet replaced.
    state: Lane,
    presses: [bool; 2],
    /// By instances, from 1.
    entries: Vec<Entry>,
}

/// All minutes.
#[derive(Debug, Clone, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
    /// Factor on the price of errors, for shifts that overdraw their budget.
    error_factor: f64,
    changed: usize,
}

fn presses(action: &Action) -> [bool; 2] {
    [action[index::WARM_UP] > 0.5, action[index::ROLLBACK] > 0.5]
}

/// An action that sets everything: exactly `floor` instances, no autoscaler.
pub(crate) fn exact(floor: usize, level: &Level, presses: [bool; 2]) -> Action {
    let mut action = [0.0; index::COUNT];
    action[index::MIN_INSTANCES] = floor as f64;
    action[index::TARGET_UTILIZATION] = 0.6;
    action[index::WARM_UP] = f64::from(u8::from(presses[0]));
    action[index::ROLLBACK] = f64::from(u8::from(presses[1]));
    level.set(&mut action);
    action
}

impl Table {
    pub(crate) fn new(error_factor: f64) -> Self {
        Self { rows: Vec::new(), error_factor, changed: 0 }
    }

    /// Measures the minutes whose state differs from the one that they were measured in.
    pub(crate) fn update(&mut self, episode: &Episode<'_>, trace: &Trace) {
        self.changed = 0;
        for t in 0..trace.len() {
            let mut state = trace.lanes[t];
            state.capacity = Capacity::serving(1);
            let pressed = presses(&trace.actions[t]);
            let known = self.rows.get(t);
            if known.is_some_and(|row| row.presses == pressed && same_future(&row.state, &state)) {
                continue;
            }
            self.changed += 1;
            let entries = self.measure(episode, &state, pressed);
            let row = Row { state, presses: pressed, entries };
            if t < self.rows.len() {
                self.rows[t] = row;
            } else {
                self.rows.push(row);
            }
        }
    }

    /// Minutes measured by the last update.
    pub(crate) fn changed(&self) -> usize {
        self.changed
    }

    fn measure(&self, episode: &Episode<'_>, state: &Lane, pressed: [bool; 2]) -> Vec<Entry> {
        let most = episode.instances_max();
        let mut level = Level::degraded();
        let mut entries: Vec<Entry> = Vec::with_capacity(most);
        let rolls = state.rollback_left_min > 0 || pressed[1];
        let instance_usd = episode.instance_usd() * if rolls { 2.0 } else { 1.0 };
        let mut calm = None;
        for n in 1..=most {
            let fleet_usd = instance_usd * n as f64;
            let other_usd = calm.unwrap_or_else(|| {
                let steps = if n == 1 { COARSE } else { Steps { first: 0.16, halvings: 4 } };
                let mut cost = |level: &Level| {
                    let mut lane = *state;
                    lane.capacity.serving = n as u32;
                    let bill = episode.play(&mut lane, &exact(n, level, pressed));
                    let budget_usd = lane.numbers.constants.prices.budget_usd;
                    bill.usd + (self.error_factor - 1.0) * budget_usd * bill.burned
                };
                let (best, usd) = cheapest(level, steps, &mut cost);
                level = best;
                usd - fleet_usd
            });
            if calm.is_none() && other_usd < CALM_USD {
                calm = Some(other_usd);
            }
            entries.push(Entry { usd: other_usd + fleet_usd, level });
        }
        entries
    }

    /// The best level of minute `t` with `serving` instances.
    pub(crate) fn level(&self, t: usize, serving: usize) -> Level {
        let entries = &self.rows[t].entries;
        entries[serving.clamp(1, entries.len()) - 1].level
    }
}

impl Costs for Table {
    fn usd(&self, t: usize, n: usize) -> f64 {
        self.rows[t].entries[n - 1].usd
    }
}

/// Instances that will serve in the next minute, if the floor is `floor` and the autoscaler off.
pub(crate) fn serving_next(lane: &Lane, floor: usize) -> usize {
    let mut capacity = lane.capacity;
    capacity.boot();
    let settings = oncall_fleet::capacity::Settings {
        min_instances: floor as u32,
        autoscale: false,
        target_utilization: 0.6,
    };
    capacity.hold_floor(&lane.numbers.constants.fleet, settings);
    capacity.serving as usize
}
