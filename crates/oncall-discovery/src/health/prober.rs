//! Whether a prober can be believed: one that sees too many of its targets fail at once looks at the world
//! through a broken link, and its verdicts would deregister a healthy fleet.

use serde::{Deserialize, Serialize};

use crate::types::{Span, Time};

/// When a prober is put into quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct QuarantineRule {
    /// More than this share of failed probes, in percent.
    pub share_pct: u8,
    /// With fewer probes in the window no share is computed.
    pub probes_min: u32,
    /// Length of the window; about one round of probes.
    pub window: Span,
    /// How long the quarantine lasts after the last bad window.
    pub hold: Span,
}

impl Default for QuarantineRule {
    /// Half of at least 20 probes within 5 s; 30 s.
    fn default() -> Self {
        Self { share_pct: 50, probes_min: 20, window: Span::from_s(5), hold: Span::from_s(30) }
    }
}

/// Counts of a prober's results in this window and the one before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProberCheck {
    window: u64,
    probes: [u32; 2],
    failed: [u32; 2],
    until: Time,
}

impl ProberCheck {
    /// Counts results. True if the quarantine begins with them.
    pub fn record(&mut self, now: Time, ok: u32, failed: u32, rule: QuarantineRule) -> bool {
        let length = rule.window.0.max(1);
        // Mostly it is still the same one, and a division takes longer than all the rest.
        let start = self.window.checked_mul(length);
        let same = start.is_some_and(|start| start <= now.0 && now.0 - start < length);
        let window = if same { self.window } else { now.0 / length };
        match window - self.window.min(window) {
            0 => {}
            1 => {
                self.probes = [0, self.probes[0]];
                self.failed = [0, self.failed[0]];
            }
            _ => (self.probes, self.failed) = ([0; 2], [0; 2]),
        }
        self.window = window;
        self.probes[0] += ok + failed;
        self.failed[0] += failed;
        // Either the running window alone or with the one before: a link that breaks late in a window shows at once.
        let bad = |probes: u32, failed: u32| {
            probes >= rule.probes_min
                && u64::from(failed) * 100 > u64::from(probes) * u64::from(rule.share_pct)
        };
        let together = (self.probes[0] + self.probes[1], self.failed[0] + self.failed[1]);
        if !bad(self.probes[0], self.failed[0]) && !bad(together.0, together.1) {
            return false;
        }
        let begins = !self.quarantined(now);
        self.until = now.after(rule.hold);
        begins
    }

    /// Whether its verdicts count for nothing now.
    pub fn quarantined(&self, now: Time) -> bool {
        now < self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULE: QuarantineRule = QuarantineRule {
        share_pct: 50,
        probes_min: 20,
        window: Span::from_s(5),
        hold: Span::from_s(30),
    };

    #[test]
    fn a_prober_that_sees_more_than_half_fail_is_not_believed() {
        let mut check = ProberCheck::default();
        assert!(!check.record(Time::from_s(0), 10, 10, RULE), "half is not more than half");
        assert!(check.record(Time::from_s(1), 0, 1, RULE));
        assert!(!check.record(Time::from_s(2), 0, 1, RULE), "it began before");
        assert!(check.quarantined(Time::from_ms(31_999)));
        assert!(!check.quarantined(Time::from_s(32)));
    }

    #[test]
    fn few_probes_prove_nothing() {
        let mut check = ProberCheck::default();
        assert!(!check.record(Time::from_s(0), 0, 19, RULE));
        assert!(check.record(Time::from_s(9), 0, 1, RULE), "the window before counts");
        let mut check = ProberCheck::default();
        assert!(!check.record(Time::from_s(0), 0, 19, RULE));
        assert!(!check.record(Time::from_s(10), 0, 1, RULE), "older windows do not");
    }

    #[test]
    fn a_good_window_before_does_not_hide_a_bad_one() {
        let mut check = ProberCheck::default();
        assert!(!check.record(Time::from_s(0), 1_000, 0, RULE));
        assert!(check.record(Time::from_s(6), 0, 20, RULE));
    }
}
