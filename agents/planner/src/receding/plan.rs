//! The fleet of the next minutes: what they cost on average with each number of instances, what may
//! come included, and the cheapest way through.

use super::briefing::Surges;
use super::forecast::{Path, middle};
use super::model::{MOST, Minute, Model, Row, SPREAD, SPREAD_SURGE, SURGE, USUAL, spread_out};
use super::sight::State;
use crate::fleet::{self, Costs, Rules};

/// A cache that is colder than this is an incident.
pub(super) const WARM: f64 = 0.97;
/// Points of size and of rise of a surge that may come.
const GRID: usize = 3;
/// Probability of a surge about as steep as can be, and how much of the first minute it then rises.
const TAIL: f64 = 0.04;
const TAIL_MIN: f64 = 0.85;
/// While a surge rises, nobody knows the next minute: the dials are set for more than comes, or for less.
const UNSURE: f64 = 1.06;
/// Minutes between two rows of a threat; between them it hardly differs.
const ANCHOR_MIN: usize = 20;

/// What may come, for which something is kept ready.
#[derive(Debug, Clone, Copy)]
pub(super) struct Threat {
    pub(super) surge_per_min: f64,
    pub(super) flush_per_min: f64,
    pub(super) surges: Surges,
}

/// What the fleet is planned for.
pub(super) struct Outlook<'a> {
    pub(super) model: &'a Model,
    pub(super) state: &'a State,
    pub(super) paths: &'a [Path],
    /// Demand without a surge, by minute.
    pub(super) usual_rps: &'a [f64],
    pub(super) surging: bool,
    pub(super) threat: Threat,
    /// Minute in which the cache is emptied, where it was told.
    pub(super) flush_in_min: Option<usize>,
}

struct Table(Vec<Row>);

impl Costs for Table {
    fn usd(&self, t: usize, n: usize) -> f64 {
        self.0[t][n]
    }
}

impl Threat {
    /// Minutes of which one may be the next: the one that is expected, or the first of an incident.
    pub(super) fn next(&self, minute: Minute, usual_rps: f64) -> Vec<(f64, Minute)> {
        let mut minutes = Vec::new();
        if self.surge_per_min > 0.0 {
            let share = self.surge_per_min * (1.0 - TAIL) / (GRID * GRID) as f64;
            for i in 0..GRID * GRID {
                let (size, rise_min) = self.surge(i);
                // It begins somewhere within a minute: a Latin square of size, rise and what is left.
                let left_min = middle((0.0, 1.0), (i % GRID + GRID - i / GRID) % GRID, GRID);
                let offered_rps = minute.offered_rps + usual_rps * left_min * size / rise_min;
                minutes.push((share, Minute { offered_rps, ..minute }));
            }
            let Surges { size, rise_min, .. } = self.surges;
            let offered_rps = minute.offered_rps + usual_rps * TAIL_MIN * size.1 / rise_min.0;
            minutes.push((self.surge_per_min * TAIL, Minute { offered_rps, ..minute }));
        }
        if self.flush_per_min > 0.0 {
            minutes.push((self.flush_per_min, Minute { warmth: 0.0, ..minute }));
        }
        minutes
    }

    fn surge(&self, i: usize) -> (f64, f64) {
        let Surges { size, rise_min, .. } = self.surges;
        (middle(size, i % GRID, GRID), middle(rise_min, i / GRID, GRID))
    }

    /// Expected dollars of what begins in a minute, after its first minute and until instances that are
    /// ordered then serve, by the number of those that serve already; these are not counted.
    fn later(&self, model: &Model, minute: Minute, usual_rps: f64, boot_min: usize) -> Row {
        let mut row = [0.0; MOST + 1];
        let mut minutes = 0.0;
        if self.surge_per_min > 0.0 {
            let weight = self.surge_per_min / (GRID * GRID) as f64;
            for i in 0..GRID * GRID {
                let (size, rise_min) = self.surge(i);
                for j in 1..=boot_min {
                    let risen = ((j as f64 + 0.5) / rise_min).min(1.0);
                    let offered_rps = minute.offered_rps + usual_rps * size * risen;
                    let forecast_rps = UNSURE * offered_rps * minute.cpu_factor;
                    SURGE.add_to(&mut row, weight, forecast_rps);
                }
            }
            minutes += self.surge_per_min * boot_min as f64;
        }
        if self.flush_per_min > 0.0 {
            let mut cold = Minute { warmth: 0.0, warm_up: true, ..minute };
            for _ in 0..boot_min {
                cold.warmth = model.warmed(cold.warmth, 1.0, cold.warmth > 0.0);
                let costs = model.row(&spread_out(self.flush_per_min, cold, SPREAD));
                add(&mut row, &costs, 1.0);
            }
            // A row counts its instances once, whatever the weights of its minutes.
            minutes += boot_min as f64;
        }
        for (n, usd) in row.iter_mut().enumerate() {
            *usd -= minutes * model.instance_usd() * n as f64;
        }
        row
    }
}

fn add(sum: &mut Row, row: &Row, weight: f64) {
    for (sum, usd) in sum.iter_mut().zip(row).skip(1) {
        *sum += weight * usd;
    }
}

impl Outlook<'_> {
    fn minutes(&self) -> usize {
        self.usual_rps.len()
    }

    fn mean_rps(&self, t: usize) -> f64 {
        self.paths.iter().map(|path| path.weight * path.rates_rps[t]).sum()
    }

    /// Warmth and warm-up by minute. After a flush that was told a warm-up is pressed.
    fn cache(&self, press: bool) -> Vec<(f64, bool)> {
        let mut warmth = self.state.warmth;
        let mut left_min = self.state.warm_up_left_min;
        let length_min = self.model.constants.cache.warm_up_min as usize;
        if press && left_min == 0 {
            left_min = length_min;
        }
        let instances = self.state.serving;
        let minutes = (0..self.minutes()).map(|t| {
            if self.flush_in_min == Some(t) {
                warmth = 0.0;
                // The model presses in the minute after, unless one runs.
            } else if left_min == 0
                && t > 0
                && self.flush_in_min.is_some_and(|flush| t == flush + 1)
            {
                left_min = length_min;
            }
            let seen = (warmth, left_min > 0);
            if warmth < WARM || left_min > 0 {
                let offered_rps = self.mean_rps(t);
                let cpu_factor = self.state.cpu_factor;
                let minute = Minute { offered_rps, warmth, warm_up: seen.1, cpu_factor };
                let setting = self.model.best_setting(&[(1.0, minute)], instances);
                let (_, load) = self.model.usd(&minute, &setting, instances);
                warmth = self.model.warmed(warmth, load, seen.1);
            }
            left_min = left_min.saturating_sub(1);
            seen
        });
        minutes.collect()
    }

    fn minute(&self, t: usize, (warmth, warm_up): (f64, bool)) -> Minute {
        let cpu_factor = self.state.cpu_factor;
        Minute { offered_rps: self.mean_rps(t), warmth, warm_up, cpu_factor }
    }

    /// What a minute costs beyond its expected course, if something may come.
    fn threat(&self, t: usize) -> Row {
        let minute = self.minute(t, (self.state.warmth, false));
        let spread = if self.surging { SPREAD_SURGE } else { SPREAD };
        let usual_rps = self.usual_rps[t];
        let hazard = self.threat.surge_per_min + self.threat.flush_per_min;
        let alone = self.model.row(&spread_out(1.0, minute, spread));
        let mut both = spread_out(1.0 - hazard, minute, spread).to_vec();
        both.extend(self.threat.next(minute, usual_rps));
        let mut row = self.model.row(&both);
        add(&mut row, &alone, -1.0);
        let later = self.threat.later(self.model, minute, usual_rps, self.state.boot_min);
        add(&mut row, &later, 1.0);
        row
    }

    fn costs(&self, press: bool) -> Table {
        let spread = if self.surging { SPREAD_SURGE } else { SPREAD };
        let table = if self.surging { &SURGE } else { &USUAL };
        let mut rows = Vec::with_capacity(self.minutes());
        for (t, cache) in self.cache(press).into_iter().enumerate() {
            let mut row = [0.0; MOST + 1];
            if cache.0 < WARM || cache.1 {
                row = self.model.row(&spread_out(1.0, self.minute(t, cache), spread));
            } else {
                for path in self.paths {
                    let rate = path.rates_rps[t] * self.state.cpu_factor;
                    table.add_to(&mut row, path.weight, rate);
                }
            }
            rows.push(row);
        }
        if self.threat.surge_per_min + self.threat.flush_per_min > 0.0 {
            let last = self.minutes() - 1;
            let anchors: Vec<Row> = (0..=last.div_ceil(ANCHOR_MIN))
                .map(|anchor| self.threat((anchor * ANCHOR_MIN).min(last)))
                .collect();
            for (t, row) in rows.iter_mut().enumerate() {
                let share = (t % ANCHOR_MIN) as f64 / ANCHOR_MIN as f64;
                let after = (t / ANCHOR_MIN + 1).min(anchors.len() - 1);
                add(row, &anchors[t / ANCHOR_MIN], 1.0 - share);
                add(row, &anchors[after], share);
            }
        }
        Table(rows)
    }

    /// The floor of the next minute, and what the horizon costs.
    pub(super) fn fleet(&self, press: bool) -> (usize, f64) {
        let rules = Rules {
            minutes: self.minutes(),
            most: MOST,
            serving: self.state.serving,
            coming: self.state.coming.iter().map(|&count| count as usize).collect(),
            boot_min: self.state.boot_min,
            instance_usd: self.model.instance_usd(),
        };
        let (sizes, usd) = fleet::cheapest(&rules, &self.costs(press));
        (fleet::floors(&sizes, rules.boot_min)[0], usd)
    }
}
