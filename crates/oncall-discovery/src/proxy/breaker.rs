//! A circuit breaker for each cell (R176, D20): when requests to a cell keep failing, most are not even tried.

use serde::{Deserialize, Serialize};

use crate::types::{Span, Time};

/// When it opens, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BreakerRule {
    /// Requests in a row that failed after their retries.
    pub failures: u8,
    /// Time until one request is let through as a trial.
    pub open: Span,
}

impl Default for BreakerRule {
    fn default() -> Self {
        Self { failures: 10, open: Span::from_s(5) }
    }
}

/// Whether a request may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Gate {
    /// Yes.
    Pass,
    /// Yes, as the one trial of an open breaker.
    Trial,
    /// No: it fails at once.
    Fail,
}

/// State of a breaker. 8 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Breaker {
    /// Open until then, in milliseconds; 0 is closed.
    until_ms: u32,
    failures: u8,
    trial: bool,
}

impl Breaker {
    /// Whether a request may go on. A trial that is never heard of again counts as failed after another period.
    pub fn gate(&mut self, now: Time, rule: BreakerRule) -> Gate {
        if self.until_ms == 0 {
            return Gate::Pass;
        }
        if now.ms() < self.until_ms {
            return Gate::Fail;
        }
        self.until_ms = now.after(rule.open).ms().max(1);
        self.trial = true;
        Gate::Trial
    }

    /// A request was served: closed.
    pub fn served(&mut self) {
        *self = Self::default();
    }

    /// A request failed after its retries. Returns true if that opened the breaker.
    pub fn failed(&mut self, now: Time, rule: BreakerRule) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = self.trial || (self.until_ms == 0 && self.failures >= rule.failures.max(1));
        if opens {
            self.trial = false;
            self.until_ms = now.after(rule.open).ms().max(1);
        }
        opens
    }

    /// Whether it is open.
    pub const fn open(&self) -> bool {
        self.until_ms != 0
    }
}
