//! What may be asked for in the next minutes: the known curve of the day times a learned level, and a
//! surge that goes on rising for a while nobody knows and then decays.

use super::briefing::Surges;
use oncall_core::math;
use oncall_fleet::demand::daily_factor;
use oncall_fleet::params::{Demand, Record};

/// Weight of the newest minute in the usual level: of one that differs by noise, and of one by more.
const SMOOTH: (f64, f64) = (0.08, 0.3);
/// Relative difference that is more than noise.
const NOISE: f64 = 0.035;
/// Growth over the expectation, as a share of the demand, that begins a surge.
const JUMP: f64 = 0.075;
/// A surge smaller than this is over.
const OVER: f64 = 0.04;
/// A surge that grew by less than this share of its slope has passed its top.
const TOPPED: f64 = 0.5;
/// Extra demand that is no false alarm.
const SURELY: f64 = 0.25;
/// What rises again within this time is the same surge, minutes.
const SAME_MIN: u32 = 5;
/// Weight of the newest minute in a decaying surge.
const SMOOTH_SURGE: f64 = 0.3;
/// Points of the times for which a rise may go on.
const POINTS: usize = 5;
/// Points of size and of rise of a surge of which only the first sign was seen.
const GRID: usize = 4;
/// Part of the first sign that may be noise.
const FIRST_SIGN: f64 = 0.8;

/// How a surge goes on: its extra demand now, its slope a minute, for how many more minutes.
#[derive(Debug, Clone, Copy)]
struct Rise {
    weight: f64,
    slope: f64,
    left_min: f64,
}

/// What is remembered of the demand.
#[derive(Debug, Clone)]
pub(super) struct Forecast {
    told: Surges,
    demand: Demand,
    /// Demand over the day's factor; none before the first reading.
    base_rps: Option<f64>,
    /// Extra demand as a share of the usual, and that on which the rising surge began.
    surge: f64,
    began_at: f64,
    /// Growth a minute.
    slope: f64,
    /// Minutes in which it rose; 0 if it does not.
    risen_min: u32,
    /// Surges that were large enough to be none by chance.
    seen: u32,
    counted: bool,
    /// Minutes since its top.
    fallen_min: u32,
}

/// What may be asked for, by minute.
#[derive(Debug, Clone)]
pub(super) struct Path {
    pub(super) weight: f64,
    pub(super) rates_rps: Vec<f64>,
}

impl Forecast {
    pub(super) fn new(told: Surges) -> Self {
        Self {
            told,
            demand: Demand::defaults(),
            base_rps: None,
            surge: 0.0,
            began_at: 0.0,
            slope: 0.0,
            risen_min: 0,
            seen: 0,
            counted: false,
            fallen_min: 0,
        }
    }

    /// Takes in the demand of a minute that began at `clock_h`.
    pub(super) fn read(&mut self, clock_h: f64, offered_rps: f64) {
        let reading = offered_rps / self.factor(clock_h);
        let Some(base) = self.base_rps else {
            self.base_rps = Some(reading.max(1e-9));
            return;
        };
        let extra = reading / base - 1.0;
        let noise = JUMP * (1.0 + extra.max(0.0));
        if self.risen_min > 0 {
            self.go_on(extra);
        } else if self.surge > 0.0 {
            self.fallen_min += 1;
            let expected = self.surge * math::exp(-1.0 / self.told.decay_min);
            if extra - expected > noise {
                self.begin(expected, extra);
            } else {
                self.surge = expected + SMOOTH_SURGE * (extra - expected);
            }
        } else if extra > noise {
            self.begin(0.0, extra);
        } else {
            let weight = if extra.abs() < NOISE { SMOOTH.0 } else { SMOOTH.1 };
            self.base_rps = Some(base * (1.0 + weight * extra));
        }
        if self.surge - self.began_at > SURELY && self.risen_min > 0 && !self.counted {
            self.seen += 1;
            self.counted = true;
        }
        if self.risen_min == 0 && self.surge < OVER {
            self.surge = 0.0;
        }
    }

    fn begin(&mut self, from: f64, extra: f64) {
        // One that seemed to have passed its top and did not is no other.
        self.counted &= self.surge > 0.0 && self.fallen_min < SAME_MIN;
        (self.began_at, self.surge, self.slope) = (from, extra, extra - from);
        (self.risen_min, self.fallen_min) = (1, 0);
    }

    fn go_on(&mut self, extra: f64) {
        let grown = extra - self.surge;
        // Of the first minute only a part rose, nobody knows which.
        let first = self.risen_min == 1;
        let least = if first { 0.6 * JUMP * (1.0 + extra) } else { TOPPED * self.slope };
        self.surge = extra.max(0.0);
        if grown < least {
            self.risen_min = 0;
            return;
        }
        let weight = 1.0 / f64::from(self.risen_min);
        self.slope += weight * (grown - self.slope);
        self.risen_min += 1;
    }

    fn factor(&self, clock_h: f64) -> f64 {
        daily_factor(&self.demand, clock_h, 0.0)
    }

    /// Whether a surge rises.
    pub(super) fn rising(&self) -> bool {
        self.risen_min > 0
    }

    /// Whether a surge runs.
    pub(super) fn surging(&self) -> bool {
        self.surge > 0.0
    }

    /// Surges seen so far.
    pub(super) fn seen(&self) -> u32 {
        self.seen
    }

    /// Demand without any surge, some minutes after `clock_h`.
    pub(super) fn usual_rps(&self, clock_h: f64, ahead_min: f64) -> f64 {
        self.base_rps.unwrap_or(0.0) * self.factor(clock_h + ahead_min / 60.0)
    }

    /// Ways in which the rise may go on. Size and length are uniform in what was told, so that of a
    /// slope's surges long ones are likelier: there are more of them.
    fn rises(&self) -> Vec<Rise> {
        let Surges { size, rise_min, .. } = self.told;
        let risen = (self.surge - self.began_at).max(1e-6);
        let mut rises = Vec::new();
        if self.risen_min == 1 {
            for i in 0..GRID * GRID {
                let length_min = middle(rise_min, i / GRID, GRID);
                let slope = middle(size, i % GRID, GRID) / length_min;
                if slope > FIRST_SIGN * risen {
                    let left_min = (length_min - risen / slope).max(0.0);
                    rises.push(Rise { weight: 1.0 / slope, slope, left_min });
                }
            }
        } else if self.risen_min > 1 {
            let slope = self.slope;
            let elapsed_min = risen / slope;
            let low = rise_min.0.max(size.0 / slope).max(elapsed_min);
            let high = rise_min.1.min(size.1 / slope);
            for point in 0..POINTS {
                let length_min = middle((low, high.max(low + 0.5)), point, POINTS);
                let left_min = length_min - elapsed_min;
                rises.push(Rise { weight: length_min, slope, left_min });
            }
        }
        if rises.is_empty() {
            rises.push(Rise {
                weight: 1.0,
                slope: self.slope,
                left_min: f64::from(self.risen_min.min(1)),
            });
        }
        let sum: f64 = rises.iter().map(|rise| rise.weight).sum();
        for rise in &mut rises {
            rise.weight /= sum;
        }
        rises
    }

    /// Paths of the demand over the next minutes with their weights, which sum to 1.
    pub(super) fn paths(&self, clock_h: f64, minutes: usize) -> Vec<Path> {
        let path = |rise: Rise| {
            let rates = (0..minutes).map(|t| {
                let ahead_min = t as f64 + 1.0;
                let top = self.surge + rise.slope * rise.left_min.min(ahead_min);
                let fallen_min = (ahead_min - rise.left_min).max(0.0);
                let surge = top * math::exp(-fallen_min / self.told.decay_min);
                self.usual_rps(clock_h, t as f64) * (1.0 + surge)
            });
            Path { weight: rise.weight, rates_rps: rates.collect() }
        };
        self.rises().into_iter().map(path).collect()
    }
}

/// The middle of one of `points` equal parts of a range.
pub(super) fn middle((low, high): (f64, f64), part: usize, points: usize) -> f64 {
    low + (high - low) * (part as f64 + 0.5) / points as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: Surges = Surges { size: (1.0, 4.0), rise_min: (2.0, 8.0), decay_min: 45.0 };

    fn mean(paths: &[Path], t: usize) -> f64 {
        paths.iter().map(|path| path.weight * path.rates_rps[t]).sum()
    }

    fn usual(clock_h: f64) -> f64 {
        1000.0 * daily_factor(&Demand::defaults(), clock_h, 0.0)
    }

    #[test]
    fn a_quiet_day_follows_its_curve() {
        let mut forecast = Forecast::new(TOLD);
        for minute in 0..60 {
            let clock_h = 8.0 + f64::from(minute) / 60.0;
            let noise = if minute % 2 == 0 { 1.02 } else { 0.98 };
            forecast.read(clock_h, usual(clock_h) * if minute == 0 { 1.0 } else { noise });
            assert!(!forecast.surging());
        }
        let paths = forecast.paths(9.0, 181);
        assert_eq!((paths.len(), paths[0].weight), (1, 1.0));
        assert!((paths[0].rates_rps[0] / usual(9.0) - 1.0).abs() < 0.004);
        assert!((paths[0].rates_rps[180] / 1250.0 - 1.0).abs() < 0.004);
    }

    #[test]
    fn a_surge_rises_decays_and_is_over() {
        let mut forecast = Forecast::new(TOLD);
        let mut clock_h = 8.0;
        let mut read = |forecast: &mut Forecast, factor: f64| {
            forecast.read(clock_h, usual(clock_h) * factor);
            clock_h += 1.0 / 60.0;
        };
        for factor in [1.0, 1.0, 1.2] {
            read(&mut forecast, factor);
        }
        // The first sign: on average it rises faster than it did in a part of a minute.
        assert!(forecast.rising() && forecast.seen() == 0);
        let paths = forecast.paths(8.05, 20);
        assert!((paths.iter().map(|path| path.weight).sum::<f64>() - 1.0).abs() < 1e-12);
        assert!(mean(&paths, 0) > 1.45 * usual(8.05), "{paths:?}");
        for factor in [1.6, 2.0] {
            read(&mut forecast, factor);
        }
        assert!(forecast.rising() && forecast.seen() == 1);
        let paths = forecast.paths(clock_h_of(5), 20);
        // A slope of 0.4 a minute and a size of at most 4 and 8 minutes: up to 3.2 in all, 1 risen.
        let top = paths.iter().map(|path| path.rates_rps[5]).fold(0.0, f64::max);
        assert!((3.6..4.3).contains(&(top / usual(8.1))), "{top}");
        for minute in 0..200_i32 {
            read(&mut forecast, 1.0 + 1.1 * (-f64::from(minute) / 45.0).exp());
            assert!(!forecast.rising(), "{minute}");
            if minute == 10 {
                let paths = forecast.paths(clock_h_of(16), 46);
                let shares =
                    [0, 45].map(|t| paths[0].rates_rps[t] / usual(clock_h_of(16 + t)) - 1.0);
                assert!((shares[1] / shares[0] - 1.0 / std::f64::consts::E).abs() < 0.02);
            }
        }
        assert!(!forecast.surging() && forecast.seen() == 1);
    }

    /// A rise that halts for a minute is one surge, and one half an hour later is another.
    #[test]
    fn surges_are_counted_once() {
        let mut forecast = Forecast::new(TOLD);
        let mut factors = vec![1.0, 1.0, 1.2, 1.6, 1.6, 2.2, 2.8];
        factors.extend((0..30).map(|t| 1.0 + 1.8 * (-f64::from(t) / 45.0).exp()));
        let top = factors[factors.len() - 1];
        for (minute, factor) in factors.into_iter().enumerate() {
            forecast.read(clock_h_of(minute), usual(clock_h_of(minute)) * factor);
        }
        assert_eq!((forecast.seen(), forecast.rising()), (1, false));
        for (t, extra) in [(37, 0.5), (38, 1.0)] {
            forecast.read(clock_h_of(t), usual(clock_h_of(t)) * (top + extra));
        }
        assert_eq!((forecast.seen(), forecast.rising()), (2, true));
    }

    fn clock_h_of(minute: usize) -> f64 {
        8.0 + minute as f64 / 60.0
    }
}
