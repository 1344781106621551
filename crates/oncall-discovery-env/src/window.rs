//! What is counted over several ticks: the two clocks over ten minutes, failures over an hour.

use oncall_discovery_sim::world::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Ticks of ten minutes.
const TEN_MIN: u32 = 60;
/// Ticks of five minutes.
const FIVE_MIN: usize = 30;
/// Ticks of an hour.
const HOUR: usize = 360;

/// Clocks that stopped within ten minutes; ticks without any are not kept.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    ticks: VecDeque<(u32, Histogram, u64)>,
    sum: Histogram,
    late: u64,
}

impl Clock {
    /// Takes in what stopped in a tick.
    pub(crate) fn tick(&mut self, tick: u32, stopped: &Histogram, late: u64) {
        while self.ticks.front().is_some_and(|(at, ..)| at + TEN_MIN <= tick) {
            if let Some((_, old, late)) = self.ticks.pop_front() {
                self.sum = self.sum.since(&old);
                self.late -= late;
            }
        }
        if stopped.count() > 0 || late > 0 {
            self.ticks.push_back((tick, *stopped, late));
            self.sum.merge(stopped);
            self.late += late;
        }
    }

    /// A quantile, seconds; 0 without any clock.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        self.sum.quantile(share).unwrap_or(0.0)
    }

    /// Share of the clocks that stopped late.
    pub(crate) fn late_share(&self) -> f64 {
        let count = self.sum.count();
        if count > 0 { (self.late as f64 / count as f64).min(1.0) } else { 0.0 }
    }
}

/// Two counts of each tick, of which a ratio is shown.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ratio {
    ticks: VecDeque<(f64, f64)>,
}

impl Ratio {
    /// Takes in a tick.
    pub(crate) fn tick(&mut self, whole: f64, part: f64) {
        if self.ticks.len() == HOUR {
            self.ticks.pop_front();
        }
        self.ticks.push_back((whole, part));
    }

    fn over(&self, count: usize) -> Option<f64> {
        let last = self.ticks.iter().rev().take(count);
        let (whole, part) = last.fold((0.0, 0.0), |sum, tick| (sum.0 + tick.0, sum.1 + tick.1));
        (whole > 0.0).then(|| part / whole)
    }

    /// The ratio over five minutes; 0 of nothing.
    pub(crate) fn five_min(&self) -> f64 {
        self.over(FIVE_MIN).unwrap_or(0.0)
    }

    /// The ratio over ten minutes, `None` of nothing.
    pub(crate) fn ten_min(&self) -> Option<f64> {
        self.over(TEN_MIN as usize)
    }

    /// The ratio over an hour; 0 of nothing.
    pub(crate) fn hour(&self) -> f64 {
        self.over(HOUR).unwrap_or(0.0)
    }
}

/// How far a count has risen within ten minutes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Rise {
    ticks: VecDeque<u64>,
}

impl Rise {
    /// Takes in the count at a tick.
    pub(crate) fn tick(&mut self, count: u64) {
        if self.ticks.len() as u32 > TEN_MIN {
            self.ticks.pop_front();
        }
        self.ticks.push_back(count);
    }

    /// By how much it has risen.
    pub(crate) fn by(&self) -> u64 {
        let ends = self.ticks.front().zip(self.ticks.back());
        ends.map_or(0, |(first, last)| last.saturating_sub(*first))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stopped(seconds: impl Iterator<Item = u64>) -> Histogram {
        let mut histogram = Histogram::default();
        seconds.for_each(|s| histogram.add(s * 1_000_000, 1));
        histogram
    }

    #[test]
    fn a_clock_forgets_after_ten_minutes() {
        let mut clock = Clock::default();
        clock.tick(1, &stopped(1..=100), 85);
        assert!((clock.quantile(0.5) / 50.0 - 1.0).abs() < 0.15, "{}", clock.quantile(0.5));
        assert!((clock.quantile(0.99) / 99.0 - 1.0).abs() < 0.15);
        assert_eq!(clock.late_share(), 0.85);
        clock.tick(60, &stopped(0..0), 0);
        assert_eq!(clock.late_share(), 0.85);
        clock.tick(61, &stopped(std::iter::once(2)), 0);
        assert_eq!(clock.late_share(), 0.0);
        assert!((clock.quantile(0.99) / 2.0 - 1.0).abs() < 0.25);
        clock.tick(200, &stopped(0..0), 0);
        assert_eq!((clock.quantile(0.5), clock.late_share()), (0.0, 0.0));
    }

    #[test]
    fn ratios_look_back_as_far_as_they_say() {
        let mut failures = Ratio::default();
        assert_eq!((failures.ten_min(), failures.hour()), (None, 0.0));
        (0..330).for_each(|_| failures.tick(100.0, 1.0));
        (0..30).for_each(|_| failures.tick(100.0, 10.0));
        assert!((failures.five_min() - 0.1).abs() < 1e-12);
        assert!((failures.ten_min().unwrap() - 0.055).abs() < 1e-12);
        assert!((failures.hour() - (330.0 + 300.0) / 36_000.0).abs() < 1e-12);
        let before = failures.hour();
        failures.tick(100.0, 10.0);
        assert!(failures.hour() > before, "the oldest tick is gone");
    }

    #[test]
    fn a_rise_is_that_of_ten_minutes() {
        let mut terms = Rise::default();
        (0..100).for_each(|tick| terms.tick(tick / 10));
        assert_eq!(terms.by(), 6);
    }
}
