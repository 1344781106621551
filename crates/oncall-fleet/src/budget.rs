//! Steps 11 and 12: errors, the error budget and its burn.
//!
//! Google, *Site Reliability Engineering*, ch. 3-4 (error budget); *The Site Reliability Workbook*,
//! ch. 5 (burn-rate alerts over two windows).

use crate::params::Slo;

/// Minutes of the long burn window; its name is part of `burn_1h`.
pub const LONG_MIN: usize = 60;
/// Minutes of the short burn window; its name is part of `burn_5min`.
pub const SHORT_MIN: usize = 5;
/// The page rings at the threshold less this: a rollout hits the threshold exactly.
const PAGE_TOLERANCE: f64 = 1e-9;

/// Share of the admitted requests that fail: in the queue, or else in a bad build.
#[inline]
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
    #[inline]
    pub fn push(&mut self, minute: u32, rate: f64) {
        if minute == 0 {
            *self = Self::filled(rate);
        } else {
            self.rates[minute as usize % LONG_MIN] = rate;
        }
    }

    /// Mean of the last hour. Four running sums, so that the additions need not wait for each other.
    #[inline]
    pub fn mean_long(&self) -> f64 {
        let mut sums = [0.0; 4];
        for quad in self.rates.as_chunks::<4>().0 {
            for (sum, rate) in sums.iter_mut().zip(quad) {
                *sum += rate;
            }
        }
        ((sums[0] + sums[1]) + (sums[2] + sums[3])) / LONG_MIN as f64
    }

    /// Mean of the last five minutes up to `minute`.
    #[inline]
    pub fn mean_short(&self, minute: u32) -> f64 {
        let last = minute as usize + LONG_MIN;
        let sum: f64 = (0..SHORT_MIN).map(|back| self.rates[(last - back) % LONG_MIN]).sum();
        sum / SHORT_MIN as f64
    }
}

/// Whether the pager rings.
#[inline]
pub fn page(slo: &Slo, burn_long: f64, burn_short: f64) -> bool {
    burn_long.min(burn_short) >= slo.page_burn - PAGE_TOLERANCE
}

/// Share of the whole budget that a minute with this burn takes.
#[inline]
pub fn burned(slo: &Slo, burn: f64) -> f64 {
    burn / slo.window_min
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
    fn both_windows_ring_the_pager() {
        let slo = Slo::defaults();
        assert!(page(&slo, 14.4, 14.4) && page(&slo, 14.4 - 1e-10, 20.0));
        assert!(!page(&slo, 14.3, 20.0) && !page(&slo, 20.0, 14.3));
        assert!((burned(&slo, 43_200.0) - 1.0).abs() < 1e-15);
    }
}
