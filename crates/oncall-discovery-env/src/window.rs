//! The last ten minutes of the two clocks, and failures over an hour.

use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Ticks of ten minutes.
const TEN_MIN: u32 = 60;
/// Ticks of five minutes.
const FIVE_MIN: usize = 30;
/// Ticks of an hour.
const HOUR: usize = 360;

/// Clocks that stopped within ten minutes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Clock {
    stopped: VecDeque<(u32, f32)>,
    /// Median, 99 % quantile, longest, share beyond the objective.
    pub(crate) seen: (f64, f64, f64, f64),
}

impl Clock {
    /// Takes in what stopped in a tick, seconds.
    pub(crate) fn tick(&mut self, tick: u32, fresh: &[f64], objective_s: f64) {
        let before = self.stopped.len();
        while self.stopped.front().is_some_and(|(at, _)| at + TEN_MIN <= tick) {
            self.stopped.pop_front();
        }
        if fresh.is_empty() && before == self.stopped.len() {
            return;
        }
        self.stopped.extend(fresh.iter().map(|&seconds| (tick, seconds as f32)));
        let mut sorted: Vec<f32> = self.stopped.iter().map(|(_, seconds)| *seconds).collect();
        sorted.sort_by(f32::total_cmp);
        let at = |share: f64| {
            let place = ((sorted.len() as f64 * share).ceil() as usize).saturating_sub(1);
            sorted.get(place).map_or(0.0, |&seconds| f64::from(seconds))
        };
        let late = sorted.iter().filter(|&&seconds| f64::from(seconds) > objective_s).count();
        let count = sorted.len().max(1) as f64;
        self.seen = (at(0.5), at(0.99), at(1.0), late as f64 / count);
    }
}

/// Requests and failures, tick by tick.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Failures {
    ticks: VecDeque<(f64, f64)>,
}

impl Failures {
    /// Takes in a tick.
    pub(crate) fn tick(&mut self, requests: f64, failed: f64) {
        if self.ticks.len() == HOUR {
            self.ticks.pop_front();
        }
        self.ticks.push_back((requests, failed));
    }

    /// Failed shares of five minutes and of an hour.
    pub(crate) fn shares(&self) -> (f64, f64) {
        let share = |count: usize| {
            let last = self.ticks.iter().rev().take(count);
            let (requests, failed) =
                last.fold((0.0, 0.0), |sum, tick| (sum.0 + tick.0, sum.1 + tick.1));
            if requests > 0.0 { failed / requests } else { 0.0 }
        };
        (share(FIVE_MIN), share(HOUR))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_forgets_after_ten_minutes() {
        let mut clock = Clock::default();
        let fresh: Vec<f64> = (1..=100).map(f64::from).collect();
        clock.tick(1, &fresh, 15.0);
        assert_eq!(clock.seen, (50.0, 99.0, 100.0, 0.85));
        clock.tick(60, &[], 15.0);
        assert_eq!(clock.seen.0, 50.0);
        clock.tick(61, &[2.0], 15.0);
        assert_eq!(clock.seen, (2.0, 2.0, 2.0, 0.0));
        clock.tick(200, &[], 15.0);
        assert_eq!(clock.seen, (0.0, 0.0, 0.0, 0.0));
    }

    #[test]
    fn burns_look_back_as_far_as_they_say() {
        let mut failures = Failures::default();
        (0..330).for_each(|_| failures.tick(100.0, 1.0));
        (0..30).for_each(|_| failures.tick(100.0, 10.0));
        let (five, hour) = failures.shares();
        assert!((five - 0.1).abs() < 1e-12);
        assert!((hour - (330.0 + 300.0) / 36_000.0).abs() < 1e-12);
        failures.tick(100.0, 10.0);
        assert!(failures.shares().1 > hour);
    }
}
