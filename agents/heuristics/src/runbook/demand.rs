//! Forecast of the demand: a level with a trend (Holt 1957), and surges.

/// What is remembered of the demand.
#[derive(Debug, Clone, Copy)]
pub(super) struct Demand {
    /// Smoothed demand; negative before the first reading.
    level_rps: f64,
    /// Smoothed growth a minute.
    trend_rps: f64,
    /// The last reading.
    last_rps: f64,
    /// Its minute.
    last_min: f64,
    /// Growth of the last minute, while surging.
    growth_rps: f64,
    /// Rising readings in a row.
    rises: u32,
    /// Minute until which the surge counts as rising.
    rising_until_min: f64,
}

/// How readings are taken in.
#[derive(Debug, Clone, Copy)]
pub(super) struct Smoothing {
    /// Weight of the newest reading in the level.
    pub(super) level: f64,
    /// Weight of the newest growth in the trend.
    pub(super) trend: f64,
    /// Growth over the forecast that is a surge, as a share.
    pub(super) rise_share: f64,
    /// Minutes for which a surge counts as rising after the last rise.
    pub(super) hold_min: f64,
}

impl Demand {
    pub(super) fn new() -> Self {
        Self {
            level_rps: -1.0,
            trend_rps: 0.0,
            last_rps: 0.0,
            last_min: -1.0,
            growth_rps: 0.0,
            rises: 0,
            rising_until_min: -1.0,
        }
    }

    /// Takes in a reading.
    pub(super) fn read(&mut self, minute: f64, offered_rps: f64, smoothing: Smoothing) {
        let passed_min = (minute - self.last_min).max(1.0);
        if self.level_rps < 0.0 {
            self.level_rps = offered_rps;
            (self.last_rps, self.last_min) = (offered_rps, minute);
            return;
        }
        let expected = self.level_rps + self.trend_rps * passed_min;
        let surprise = offered_rps - expected;
        let large = smoothing.rise_share * expected.max(1.0);
        if surprise > large {
            self.rises += 1;
            self.growth_rps = ((offered_rps - self.last_rps) / passed_min).max(0.0);
            self.rising_until_min = minute + smoothing.hold_min;
            self.level_rps = offered_rps;
        } else if surprise < -large {
            self.rises = 0;
            self.growth_rps = 0.0;
            self.level_rps = offered_rps;
        } else {
            self.rises = 0;
            self.growth_rps = 0.0;
            let before = self.level_rps;
            self.level_rps = expected + smoothing.level * surprise;
            let slope = (self.level_rps - before) / passed_min;
            self.trend_rps += smoothing.trend * (slope - self.trend_rps);
        }
        (self.last_rps, self.last_min) = (offered_rps, minute);
    }

    /// Demand some minutes after the last reading, apart from a surge that still rises.
    pub(super) fn ahead_rps(&self, minutes: f64) -> f64 {
        (self.level_rps + self.trend_rps * minutes).max(0.0)
    }

    /// Demand in which a rising surge goes on growing for some minutes.
    pub(super) fn grown_rps(&self, minutes: f64) -> f64 {
        self.ahead_rps(minutes.min(1.0)) + self.growth_rps * minutes
    }

    /// Whether a surge rises, or may still.
    pub(super) fn rising(&self) -> bool {
        self.last_min <= self.rising_until_min
    }

    /// Rising readings in a row.
    pub(super) fn rises(&self) -> u32 {
        self.rises
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMOOTHING: Smoothing =
        Smoothing { level: 0.3, trend: 0.1, rise_share: 0.1, hold_min: 1.0 };

    #[test]
    fn follows_a_slow_trend_without_an_alarm() {
        let mut demand = Demand::new();
        for minute in 0..120 {
            demand.read(f64::from(minute), 1000.0 + f64::from(minute), SMOOTHING);
            assert!(!demand.rising());
        }
        assert!((demand.ahead_rps(5.0) - 1124.0).abs() < 3.0, "{demand:?}");
    }

    #[test]
    fn a_jump_is_a_surge_until_it_stops_rising() {
        let mut demand = Demand::new();
        demand.read(0.0, 1000.0, SMOOTHING);
        demand.read(1.0, 1300.0, SMOOTHING);
        assert!(demand.rising() && demand.rises() == 1);
        assert!((demand.grown_rps(4.0) - 2500.0).abs() < 1e-9);
        demand.read(2.0, 1600.0, SMOOTHING);
        assert_eq!(demand.rises(), 2);
        demand.read(3.0, 1610.0, SMOOTHING);
        assert!(demand.rising() && demand.rises() == 0);
        demand.read(4.0, 1590.0, SMOOTHING);
        assert!(!demand.rising());
        assert!((demand.grown_rps(4.0) - 1600.0).abs() < 10.0);
    }

    #[test]
    fn a_collapse_is_believed_at_once() {
        let mut demand = Demand::new();
        demand.read(0.0, 1000.0, SMOOTHING);
        demand.read(1.0, 100.0, SMOOTHING);
        assert_eq!(demand.ahead_rps(1.0), 100.0);
        demand.read(2.0, 0.0, SMOOTHING);
        assert_eq!(demand.ahead_rps(1.0), 0.0);
    }
}
