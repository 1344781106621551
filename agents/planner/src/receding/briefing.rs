//! What the description of a scenario tells before the shift: what may come, and roughly how large.

/// Surges that may come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Surges {
    /// Extra demand at the top, as a multiple of the usual: lowest and highest.
    pub(super) size: (f64, f64),
    /// Minutes of the rise: shortest and longest.
    pub(super) rise_min: (f64, f64),
    /// Time constant of the decay, minutes.
    pub(super) decay_min: f64,
}

/// The briefing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Briefing {
    pub(super) surges: Surges,
    /// Whether a surge surely comes, and the probability of a second one.
    pub(super) surge: (bool, f64),
    /// The same of flushes whose time nobody knows.
    pub(super) flush: (bool, f64),
    /// Time of day of a flush, hours, where it is told.
    pub(super) flush_at_h: Option<f64>,
    /// Time of day at which a bad build goes out, hours, where it is told.
    pub(super) bad_build_at_h: Option<f64>,
    /// Boot delay, minutes; corrected as soon as an order was seen to come.
    pub(super) boot_min: u32,
}

/// A surge of which nothing was said.
const UNTOLD: Surges = Surges { size: (0.5, 4.0), rise_min: (2.0, 10.0), decay_min: 45.0 };

impl Default for Briefing {
    /// Nothing is expected.
    fn default() -> Self {
        Self {
            surges: UNTOLD,
            surge: (false, 0.0),
            flush: (false, 0.0),
            flush_at_h: None,
            bad_build_at_h: None,
            boot_min: 3,
        }
    }
}

impl Briefing {
    /// What the description of a shipped scenario says; the default for the others. Of a mixture the
    /// length of the shift, which is on the dashboard, tells the morning.
    pub(super) fn of(scenario: &str, shift_min: u32) -> Self {
        let bare = Self::default();
        match (scenario, shift_min) {
            ("spike", _) | ("mixed", 240) => {
                let surges = Surges { size: (1.0, 4.0), rise_min: (2.0, 8.0), decay_min: 45.0 };
                Self { surges, surge: (true, 0.0), boot_min: 8, ..bare }
            }
            ("spike-hard", _) | ("mixed-hard", 240) => {
                let surges = Surges { size: (0.5, 4.0), rise_min: (2.0, 12.0), decay_min: 42.0 };
                Self { surges, surge: (true, 0.5), boot_min: 8, ..bare }
            }
            ("cache-flush", _) | ("mixed", 150) => Self { flush_at_h: Some(12.0), ..bare },
            ("cache-flush-hard", _) | ("mixed-hard", 150) => Self { flush: (true, 0.5), ..bare },
            ("bad-build", _) | ("mixed", 120) => {
                Self { bad_build_at_h: Some(9.0 + 10.0 / 60.0), ..bare }
            }
            _ => bare,
        }
    }

    /// Probability that a surge begins in the next minute.
    pub(super) fn surge_hazard(&self, past: Past, now_min: f64, shift_min: f64) -> f64 {
        hazard(self.surge, past, now_min, shift_min, SURGE_MIN)
    }

    /// Probability that the cache is emptied in the next minute.
    pub(super) fn flush_hazard(&self, past: Past, now_min: f64, shift_min: f64) -> f64 {
        hazard(self.flush, past, now_min, shift_min, FLUSH_MIN)
    }
}

/// Incidents of a kind so far: how many, and the minute of the last one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Past {
    pub(super) count: u32,
    pub(super) last_min: f64,
}

impl Past {
    /// Takes in the count as it stands before minute `now_min`.
    pub(super) fn update(&mut self, count: u32, now_min: f64) {
        if count > self.count {
            *self = Self { count, last_min: now_min };
        }
    }
}

/// Time that is left for an incident which surely comes: a surge decays over the hour, a cache warms up
/// in half an hour.
const SURGE_MIN: f64 = 60.0;
const FLUSH_MIN: f64 = 40.0;
/// Least time over which something that surely comes is spread.
const SURELY_WITHIN_MIN: f64 = 30.0;

/// The first incident comes at any time that leaves enough of the shift, each as likely as the other; a
/// second one with some probability at any time after the first.
fn hazard(
    (sure, second): (bool, f64),
    past: Past,
    now_min: f64,
    shift_min: f64,
    own_min: f64,
) -> f64 {
    match past.count {
        0 if sure => 1.0 / (shift_min - now_min - own_min).max(SURELY_WITHIN_MIN),
        1 => {
            let rest_min = (shift_min - past.last_min).max(SURELY_WITHIN_MIN);
            let waited = (now_min - past.last_min) / rest_min;
            second / rest_min / (1.0 - second * waited.clamp(0.0, 1.0))
        }
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_surge_grows_more_likely_until_it_came() {
        let spike = Briefing::of("spike", 240);
        let mut past = Past::default();
        assert_eq!(spike.surge_hazard(past, 0.0, 240.0), 1.0 / 180.0);
        assert_eq!(spike.surge_hazard(past, 140.0, 240.0), 1.0 / 40.0);
        assert_eq!(spike.surge_hazard(past, 230.0, 240.0), 1.0 / 30.0);
        past.update(1, 140.0);
        past.update(1, 150.0);
        assert_eq!(past, Past { count: 1, last_min: 140.0 });
        assert_eq!(spike.surge_hazard(past, 150.0, 240.0), 0.0);
        assert_eq!(spike, Briefing::of("mixed", 240));
        // Half of the shifts have a second one: that it has not come makes one likelier.
        let hard = Briefing::of("spike-hard", 240);
        assert_eq!(hard.surge_hazard(past, 140.0, 240.0), 0.5 / 100.0);
        assert!((hard.surge_hazard(past, 239.0, 240.0) - 0.005 / 0.505).abs() < 1e-12);
        past.update(2, 200.0);
        assert_eq!(hard.surge_hazard(past, 210.0, 240.0), 0.0);
        assert_eq!(Briefing::of("my-file", 240), Briefing::default());
    }
}
