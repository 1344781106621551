//! The dials that act within their minute (shed share, recommendations, TTL): the cheapest ones, by
//! pattern search (Hooke and Jeeves 1961).

use crate::episode::Action;
use oncall_core::math;
use oncall_fleet::dials::index;

/// Highest TTL.
const TTL_MAX_S: f64 = 600.0;
/// A level is better if it saves more than this.
pub(crate) const GAIN_MIN_USD: f64 = 1e-6;

/// How much is degraded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Level {
    pub(crate) shed: f64,
    pub(crate) feature: bool,
    /// `ln(1 + TTL)`: as the box space, in which the steps of the search are alike everywhere.
    pub(crate) log_ttl: f64,
}

/// Steps of the search in shed share and log TTL, from coarse to fine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Steps {
    /// First step in shed share; that in log TTL is twice as long.
    pub(crate) first: f64,
    /// Times that it is halved.
    pub(crate) halvings: u32,
}

/// Looks everywhere around.
pub(crate) const COARSE: Steps = Steps { first: 0.32, halvings: 5 };
/// Goes on from what is nearly best.
pub(crate) const FINE: Steps = Steps { first: 0.04, halvings: 5 };

impl Level {
    pub(crate) fn of(action: &Action) -> Self {
        Self {
            shed: action[index::SHED_SHARE],
            feature: action[index::FEATURE] > 0.5,
            log_ttl: math::ln_1p(action[index::CACHE_TTL_S]),
        }
    }

    pub(crate) fn ttl_s(&self) -> f64 {
        math::exp_m1(self.log_ttl).clamp(0.0, TTL_MAX_S)
    }

    /// Writes the three dials.
    pub(crate) fn set(&self, action: &mut Action) {
        action[index::SHED_SHARE] = self.shed;
        action[index::FEATURE] = f64::from(u8::from(self.feature));
        action[index::CACHE_TTL_S] = self.ttl_s();
    }

    /// All that can be degraded is.
    pub(crate) fn degraded() -> Self {
        Self { shed: 1.0, feature: false, log_ttl: math::ln_1p(TTL_MAX_S) }
    }

    /// A level at shares of the ranges.
    pub(crate) fn at(shed: f64, feature: bool, log_ttl_share: f64) -> Self {
        Self { shed, feature, log_ttl: log_ttl_share * math::ln_1p(TTL_MAX_S) }
    }

    fn moved(&self, shed: f64, log_ttl: f64) -> Self {
        Self {
            shed: (self.shed + shed).clamp(0.0, 1.0),
            feature: self.feature,
            log_ttl: (self.log_ttl + log_ttl).clamp(0.0, math::ln_1p(TTL_MAX_S)),
        }
    }
}

/// Directions in (shed, log TTL), each beside its reverse. The last ones go along the edge of saturation,
/// whose slope depends on how much the cache answers already.
const DIRECTIONS: [(f64, f64); 12] = [
    (-1.0, 0.0),
    (1.0, 0.0),
    (0.0, -2.0),
    (0.0, 2.0),
    (-1.0, 2.0),
    (1.0, -2.0),
    (-0.6, 2.0),
    (0.6, -2.0),
    (-0.3, 2.0),
    (0.3, -2.0),
    (-0.08, 2.0),
    (0.08, -2.0),
];

/// A level near `start` with as low a cost as can be found, and its cost.
pub(crate) fn cheapest(
    start: Level,
    steps: Steps,
    cost: &mut (impl FnMut(&Level) -> f64 + ?Sized),
) -> (Level, f64) {
    let same = descend(start, steps, cost);
    let other = descend(Level { feature: !start.feature, ..start }, steps, cost);
    if other.1 < same.1 - GAIN_MIN_USD { other } else { same }
}

/// As [`cheapest`], from nowhere in particular: the best shed share of each TTL of a grid, then the
/// neighbourhood of the best.
pub(crate) fn cheapest_anywhere(cost: &mut (impl FnMut(&Level) -> f64 + ?Sized)) -> (Level, f64) {
    let mut best = (Level::degraded(), f64::INFINITY);
    for feature in [true, false] {
        for point in 0..=GRID {
            let level = Level::at(0.0, feature, f64::from(point) / f64::from(GRID));
            let found = best_shed(level, cost);
            if found.1 < best.1 {
                best = found;
            }
        }
    }
    descend(best.0, Steps { first: 0.08, halvings: 6 }, cost)
}

/// Points of the grid of TTLs less one.
const GRID: u32 = 12;
/// A first bit of shedding that does not pay says that none does.
const SHED_A_BIT: f64 = 0.01;
/// Thirds of the range of shed shares, narrowed down this many times.
const NARROWINGS: u32 = 8;

fn best_shed(level: Level, cost: &mut (impl FnMut(&Level) -> f64 + ?Sized)) -> (Level, f64) {
    let mut at = |shed: f64| {
        let level = Level { shed, ..level };
        (level, cost(&level))
    };
    let none = at(0.0);
    if none.1 <= at(SHED_A_BIT).1 {
        return none;
    }
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..NARROWINGS {
        let third = (high - low) / 3.0;
        if at(low + third).1 <= at(high - third).1 { high -= third } else { low += third }
    }
    let (inner, end) = (at(0.5 * (low + high)), at(high));
    if end.1 < inner.1 { end } else { inner }
}

fn descend(
    start: Level,
    steps: Steps,
    cost: &mut (impl FnMut(&Level) -> f64 + ?Sized),
) -> (Level, f64) {
    let mut best = (start, cost(&start));
    let mut step = steps.first;
    for _ in 0..=steps.halvings {
        // A step that helped is taken again before others are tried; a whole round in vain ends it.
        let (mut at, mut failed) = (0, 0);
        while failed < DIRECTIONS.len() {
            let (shed, log_ttl) = DIRECTIONS[at];
            let moved = best.0.moved(shed * step, log_ttl * step);
            let usd = if moved == best.0 { f64::INFINITY } else { cost(&moved) };
            if usd < best.1 - GAIN_MIN_USD {
                best = (moved, usd);
                failed = 0;
            } else {
                failed += 1;
                at = (at + 1) % DIRECTIONS.len();
            }
        }
        step *= 0.5;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_bottom_of_a_bowl_and_of_a_bent_valley() {
        let start = Level { shed: 0.9, feature: true, log_ttl: 0.5 };
        let bowl = |l: &Level| {
            let off = if l.feature { 1.0 } else { 0.0 };
            (l.shed - 0.31).powi(2) + (l.log_ttl - 4.0).powi(2) + off
        };
        let (found, usd) = cheapest(start, COARSE, &mut |l: &Level| bowl(l));
        assert!(!found.feature && usd < 1e-3, "{found:?} {usd}");
        // Shedding costs; what is neither shed nor cached fails.
        let edge = |l: &Level| {
            let load = 2.0 - l.shed - 0.3 * l.log_ttl;
            0.3 * l.shed + 0.05 * l.log_ttl * l.log_ttl + 50.0 * (load - 1.0).max(0.0)
        };
        let (found, usd) = cheapest(start, COARSE, &mut |l: &Level| edge(l));
        // On the edge shed = 1 - 0.3 x, so 0.3 - 0.09 x + 0.05 x^2 is least at x = 0.9.
        assert!((found.log_ttl - 0.9).abs() < 0.1 && usd < 0.2595 + 0.002, "{found:?} {usd}");
    }

    #[test]
    fn dials_go_there_and_back() {
        let mut action = [0.0; index::COUNT];
        let level = Level { shed: 0.25, feature: true, log_ttl: math::ln_1p(60.0) };
        level.set(&mut action);
        assert!((action[index::CACHE_TTL_S] - 60.0).abs() < 1e-9);
        let back = Level::of(&action);
        assert_eq!((back.shed, back.feature), (0.25, true));
        assert!((back.log_ttl - level.log_ttl).abs() < 1e-12);
        let degraded = Level::degraded();
        degraded.set(&mut action);
        assert_eq!(action[index::CACHE_TTL_S], TTL_MAX_S);
    }
}
