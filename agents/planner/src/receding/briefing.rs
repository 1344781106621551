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
    /// Whether a surge surely comes, and how many more may come later on average.
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

    /// Probability that a surge begins in the next minute. One that surely comes may begin at any time
    /// that leaves an hour for its decay.
    pub(super) fn surge_hazard(&self, seen: u32, left_min: f64, shift_min: f64) -> f64 {
        hazard(self.surge, seen, left_min - 60.0, shift_min)
    }

    /// Probability that the cache is emptied in the next minute.
    pub(super) fn flush_hazard(&self, seen: u32, left_min: f64, shift_min: f64) -> f64 {
        hazard(self.flush, seen, left_min, shift_min)
    }
}

/// Least time over which something that surely comes is spread.
const SURELY_WITHIN_MIN: f64 = 30.0;

fn hazard((sure, more): (bool, f64), seen: u32, left_min: f64, shift_min: f64) -> f64 {
    let first = if sure && seen == 0 { 1.0 / left_min.max(SURELY_WITHIN_MIN) } else { 0.0 };
    let later = if seen <= 1 { more / shift_min.max(1.0) } else { 0.0 };
    first + later
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_surge_grows_more_likely_until_it_came() {
        let spike = Briefing::of("spike", 240);
        assert_eq!(spike.surge_hazard(0, 240.0, 240.0), 1.0 / 180.0);
        assert_eq!(spike.surge_hazard(0, 100.0, 240.0), 1.0 / 40.0);
        assert_eq!(spike.surge_hazard(1, 100.0, 240.0), 0.0);
        assert_eq!(spike, Briefing::of("mixed", 240));
        let hard = Briefing::of("spike-hard", 240);
        assert_eq!(hard.surge_hazard(1, 100.0, 240.0), 0.5 / 240.0);
        assert_eq!(hard.surge_hazard(2, 100.0, 240.0), 0.0);
        assert_eq!(Briefing::of("my-file", 240), Briefing::default());
    }
}
