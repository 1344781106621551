//! A token bucket: how admission and the snapshot budget are kept (R87, R90, I18).

use serde::{Deserialize, Serialize};

use crate::types::Time;

/// Tokens per second up to a burst. Exact in whole numbers; 40 bytes.
///
/// In any interval of `w` seconds at most `burst + rate × w` tokens are taken, plus what one request larger than
/// the burst exceeds it by: such a request waits for a full bucket and leaves a debt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bucket {
    rate_per_s: u64,
    burst: u64,
    /// Tokens × 10⁶, so that a rate per second is a rate per microsecond.
    level: i64,
    filled: Time,
}

const SCALE: i64 = 1_000_000;

impl Bucket {
    /// A full bucket. Rates and bursts up to 10¹² keep clear of overflow; larger ones are cut there.
    pub fn new(now: Time, rate_per_s: u64, burst: u64) -> Self {
        let burst = burst.clamp(1, 1_000_000_000_000);
        let rate_per_s = rate_per_s.min(1_000_000_000_000);
        Self { rate_per_s, burst, level: burst as i64 * SCALE, filled: now }
    }

    /// An empty bucket: what a process starts with, since nobody knows what it gave away before it crashed.
    pub fn empty(now: Time, rate_per_s: u64, burst: u64) -> Self {
        Self { level: 0, ..Self::new(now, rate_per_s, burst) }
    }

    /// Changes the rate and the burst from now on; tokens above the new burst are lost.
    pub fn set(&mut self, now: Time, rate_per_s: u64, burst: u64) {
        self.fill(now);
        let fresh = Self::new(now, rate_per_s, burst);
        self.level = self.level.min(fresh.level);
        self.rate_per_s = fresh.rate_per_s;
        self.burst = fresh.burst;
    }

    /// Rate in force.
    pub const fn rate_per_s(&self) -> u64 {
        self.rate_per_s
    }

    /// Burst in force.
    pub const fn burst(&self) -> u64 {
        self.burst
    }

    fn fill(&mut self, now: Time) {
        let full = self.burst as i64 * SCALE;
        let elapsed = now.since(self.filled).0;
        self.filled = self.filled.max(now);
        let gained = i128::from(elapsed) * i128::from(self.rate_per_s);
        self.level = (i128::from(self.level) + gained).min(i128::from(full)) as i64;
    }

    /// Takes `amount` tokens now, or says when there will be enough ([`Time::NEVER`] at rate zero).
    pub fn take(&mut self, now: Time, amount: u64) -> Result<(), Time> {
        self.fill(now);
        let amount = amount.min(1_000_000_000_000) as i64 * SCALE;
        let needed = amount.min(self.burst as i64 * SCALE);
        if self.level >= needed {
            self.level -= amount;
            return Ok(());
        }
        let missing = (needed - self.level) as u64;
        Err(match self.rate_per_s {
            0 => Time::NEVER,
            rate => Time(now.0.saturating_add(missing.div_ceil(rate))),
        })
    }

    /// Whole tokens there are; zero in debt.
    pub fn available(&mut self, now: Time) -> u64 {
        self.fill(now);
        (self.level.max(0) / SCALE) as u64
    }
}
