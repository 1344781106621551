//! The retry budget: retries are a share of requests, so that they cannot multiply an overload (R96).

use serde::{Deserialize, Serialize};

/// Thousandths of a retry that may be made. 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct RetryBudget {
    milli: u32,
}

/// Retries that may be saved up.
const RESERVE: u32 = 10;

impl Default for RetryBudget {
    /// Full: a proxy that has just started may retry.
    fn default() -> Self {
        Self { milli: RESERVE * 1_000 }
    }
}

impl RetryBudget {
    /// A request begins: it pays in its share.
    pub fn deposit(&mut self, share_pct: u8) {
        self.milli = (self.milli + u32::from(share_pct) * 10).min(RESERVE * 1_000);
    }

    /// Takes one retry, if there is one. With a share of zero there never is.
    pub fn take(&mut self, share_pct: u8) -> bool {
        if share_pct == 0 || self.milli < 1_000 {
            return false;
        }
        self.milli -= 1_000;
        true
    }

    /// Retries there are.
    pub const fn available(self) -> u32 {
        self.milli / 1_000
    }
}
