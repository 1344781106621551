//! Steps 11 and 12: errors, the error budget and its burn.
//!
//! Google, *Site Reliability Engineering*, ch. 3-4 (error budget); *The Site Reliability Workbook*,
//! ch. 5 (burn-rate alerts over two windows).
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::params::Slo;
use oncall_core::math;

/// Minutes of the long burn window; its name is part of `burn_1h`.
pub const LONG_MIN: usize = 60;
/// Minutes of the short burn window; its name is part of `burn_5min`.
pub const SHORT_MIN: usize = 5;
/// The page rings at the threshold less this: a rollout hits the threshold exactly.
const PAGE_TOLERANCE: f64 = 1e-9;

/// Share of the admitted requests that fail: in the queue, or else in a bad build.
#[inline(always)]
pub fn error_rate(failed_share: f64, build_error_rate: f64) -> f64 {
    failed_share + (1.0 - failed_share) * build_error_rate
}

/// The last 60 error rates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ErrorWindow {
    /// A ring; the minute `t` stands at `t % 60`.
    pub rates: [f64; LONG_MIN],
}

impl ErrorWindow {
    /// A window that holds one rate throughout.
    pub fn filled(rate: f64) -> Self {
        Self { rates: [rate; LONG_MIN] }
    }

    /// Enters a minute's rate. The first one fills the whole window: before it nothing is known.
    #[inline(always)]
    pub fn push(&mut self, minute: u32, rate: f64) {
        if minute == 0 {
            *self = Self::filled(rate);
        } else {
            self.rates[minute as usize % LONG_MIN] = rate;
        }
    }

    /// Mean of the last hour.
    #[inline]
    pub fn mean_long(&self) -> f64 {
        self.rates.iter().fold(Sum::ZERO, |sum, &rate| sum.plus(Sum::of(rate))).mean(LONG_MIN)
    }

    /// Mean of the last five minutes up to `minute`.
    #[inline(always)]
    pub fn mean_short(&self, minute: u32) -> f64 {
        self.sum_short(minute).mean(SHORT_MIN)
    }

    /// Sum of the last five minutes up to `minute`.
    pub(crate) fn sum_short(&self, minute: u32) -> Sum {
        let last = minute as usize + LONG_MIN;
        let rates = (0..SHORT_MIN).map(|back| self.rates[(last - back) % LONG_MIN]);
        rates.fold(Sum::ZERO, |sum, rate| sum.plus(Sum::of(rate)))
    }
}

/// A sum of rates of 0..=1, exact: each is cut into a multiple of 2^-46 and one of 2^-93, and both
/// sums have room for 60 such numbers.
///
/// So the order of the additions does not matter, and a rate that was added can be taken away again:
/// a window's sum need not be made anew every minute, and no drift is left of an error that is over.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Sum {
    pub(crate) high: f64,
    pub(crate) low: f64,
}

impl Sum {
    pub(crate) const ZERO: Sum = Sum { high: 0.0, low: 0.0 };

    /// A rate. Adding and taking away a number leaves the digits above its last one.
    #[inline(always)]
    pub(crate) fn of(rate: f64) -> Self {
        const HIGH: f64 = 96.0;
        const LOW: f64 = 1.5 / 2_199_023_255_552.0; // 1.5 * 2^-41
        let high = (rate + HIGH) - HIGH;
        let low = ((rate - high) + LOW) - LOW;
        Self { high, low }
    }

    #[inline(always)]
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { high: self.high + other.high, low: self.low + other.low }
    }

    #[inline(always)]
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { high: self.high - other.high, low: self.low - other.low }
    }

    #[inline(always)]
    pub(crate) fn mean(self, minutes: usize) -> f64 {
        (self.high + self.low) * (1.0 / minutes as f64)
    }
}

/// Whether the pager rings.
#[inline(always)]
pub fn page(slo: &Slo, burn_long: f64, burn_short: f64) -> bool {
    math::min(burn_long, burn_short) >= slo.page_burn - PAGE_TOLERANCE
}

/// An error rate over the rate that the budget allows.
#[inline(always)]
pub fn burn(slo: &Slo, error_rate: f64) -> f64 {
    error_rate * (1.0 / slo.error_budget)
}

/// Share of the whole budget that a minute with this burn takes.
#[inline(always)]
pub fn burned(slo: &Slo, burn: f64) -> f64 {
    // Reciprocals of constants are worked out once where all services share them.
    burn * (1.0 / slo.window_min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    #[test]
    fn errors_of_the_build_hit_what_the_queue_let_through() {
        assert_eq!(error_rate(0.0, 0.05), 0.05);
        assert_eq!(error_rate(1.0, 0.05), 1.0);
        assert!((error_rate(0.5, 0.05) - 0.525).abs() < 1e-15);
    }

    #[test]
    fn the_window_is_a_ring_of_an_hour() {
        let mut window = ErrorWindow::filled(9.0);
        for minute in 0..150_u32 {
            window.push(minute, f64::from(minute));
            let expect = |n: u32| {
                let seen = (0..n).map(|back| f64::from(minute.saturating_sub(back)));
                seen.sum::<f64>() / f64::from(n)
            };
            assert!((window.mean_long() - expect(60)).abs() < 1e-12, "{minute}");
            assert!((window.mean_short(minute) - expect(5)).abs() < 1e-12, "{minute}");
        }
    }

    #[test]
    fn sums_are_exact_in_any_order() {
        let rates: Vec<f64> = (0..60).map(|i| (f64::from(i) * 0.37).fract().powi(i % 9)).collect();
        let forwards = rates.iter().fold(Sum::ZERO, |sum, &rate| sum.plus(Sum::of(rate)));
        let backwards = rates.iter().rev().fold(Sum::ZERO, |sum, &rate| sum.plus(Sum::of(rate)));
        assert_eq!(forwards, backwards);
        let nothing = rates.iter().fold(forwards, |sum, &rate| sum.minus(Sum::of(rate)));
        assert_eq!(nothing, Sum::ZERO);
        for rate in [1e-20, 1e-9, 0.001, 0.1, 1.0 / 3.0, 1.0] {
            let found = Sum::of(rate).mean(1);
            assert!((found - rate).abs() <= 1e-16 * rate + 1e-28, "{rate} {found}");
        }
    }

    #[test]
    fn both_windows_ring_the_pager() {
        let slo = Slo::defaults();
        assert!(page(&slo, 14.4, 14.4) && page(&slo, 14.4 - 1e-10, 20.0));
        assert!(!page(&slo, 14.3, 20.0) && !page(&slo, 20.0, 14.3));
        assert!((burned(&slo, 43_200.0) - 1.0).abs() < 1e-15);
    }
}
