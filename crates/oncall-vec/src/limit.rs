//! Truncation: the only place that knows when a shift is over.

/// How long episodes last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// Ticks, in the place of every scenario's own length.
    max_ticks: Option<u32>,
}

impl Limit {
    /// A limit in minutes, of a world with ticks of `tick_s` seconds.
    pub(crate) fn new(max_minutes: Option<u32>, tick_s: u32) -> Self {
        let ticks = |minutes: u32| minutes.saturating_mul(60) / tick_s.max(1);
        Self { max_ticks: max_minutes.map(ticks) }
    }

    /// Length of an episode whose scenario lasts `scenario` ticks.
    #[inline]
    pub(crate) fn length_min(self, scenario: u32) -> u32 {
        self.max_ticks.unwrap_or(scenario)
    }
}

/// Whether an episode of `length_min` ticks is over after `minutes` played ones.
#[inline]
pub(crate) fn is_over(minutes: u32, length_min: u32) -> bool {
    minutes >= length_min
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_decides_unless_told_otherwise() {
        assert_eq!(Limit::new(None, 60).length_min(240), 240);
        assert_eq!(Limit::new(Some(10), 60).length_min(240), 10);
        assert_eq!(Limit::new(Some(500), 60).length_min(240), 500);
        assert_eq!(Limit::new(Some(10), 10).length_min(360), 60, "six ticks a minute");
        assert!(!is_over(239, 240));
        assert!(is_over(240, 240));
    }
}
