//! Exponential back-off with jitter (R88).

use serde::{Deserialize, Serialize};

use crate::types::Span;

/// Times between attempts (dials 16 to 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BackOff {
    /// After the first failure.
    pub base: Span,
    /// At most.
    pub cap: Span,
    /// Random part of the delay, in percent: 0 is none, 100 is "full jitter".
    pub jitter_pct: u8,
}

impl Default for BackOff {
    fn default() -> Self {
        Self { base: Span::from_s(1), cap: Span::from_s(30), jitter_pct: 50 }
    }
}

impl BackOff {
    /// The delay after `attempt` earlier failures: `d = min(cap, base × 2^attempt)`, uniform between
    /// `d × (1 − jitter)` and `d`. `uniform` is a fresh uniform 32-bit number.
    pub fn delay(self, attempt: u8, uniform: u32) -> Span {
        let doublings = u32::from(attempt).min(63);
        let full = self.base.0.saturating_mul(1 << doublings).min(self.cap.0);
        let jitter = full / 100 * u64::from(self.jitter_pct.min(100))
            + full % 100 * u64::from(self.jitter_pct.min(100)) / 100;
        let random = (u128::from(jitter) * u128::from(uniform)) >> 32;
        Span(full - jitter + random as u64)
    }
}
