//! Truncation: the only place that knows when a shift is over.

/// How long episodes last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limit {
    /// In the place of every scenario's own length.
    pub(crate) max_minutes: Option<u32>,
}

impl Limit {
    /// Length of an episode whose scenario lasts `scenario_min`.
    #[inline]
    pub(crate) fn length_min(self, scenario_min: u32) -> u32 {
        self.max_minutes.unwrap_or(scenario_min)
    }
}

/// Whether an episode of `length_min` is over after `minutes` played ones.
#[inline]
pub(crate) fn is_over(minutes: u32, length_min: u32) -> bool {
    minutes >= length_min
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scenario_decides_unless_told_otherwise() {
        assert_eq!(Limit { max_minutes: None }.length_min(240), 240);
        assert_eq!(Limit { max_minutes: Some(10) }.length_min(240), 10);
        assert_eq!(Limit { max_minutes: Some(500) }.length_min(240), 500);
        assert!(!is_over(239, 240));
        assert!(is_over(240, 240));
    }
}
