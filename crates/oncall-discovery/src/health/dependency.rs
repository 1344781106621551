//! Dependencies in readiness (R114, R115, R177): how many of them count, and how often they may be asked.

use serde::{Deserialize, Serialize};

use crate::distrib::Bucket;
use crate::types::{Span, Time};

/// Which dependencies count in readiness.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum DependencyMode {
    /// None.
    Off,
    /// Those without which the instance can serve nothing.
    #[default]
    Critical,
    /// All.
    All,
}

impl DependencyMode {
    /// From the dial `dependency_mode`: 0, 1 or 2.
    pub fn from_dial(value: f64) -> Option<Self> {
        [Self::Off, Self::Critical, Self::All]
            .into_iter()
            .find(|&mode| f64::from(mode as u8).to_bits() == value.to_bits())
    }
}

/// What an agent found out about an instance's readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Readiness {
    /// The instance itself.
    pub local: bool,
    /// All its critical dependencies.
    pub critical: bool,
    /// All its other dependencies.
    pub others: bool,
}

impl Readiness {
    /// Everything is fine.
    pub const FINE: Self = Self { local: true, critical: true, others: true };

    /// Whether it is ready, as far as the dial looks.
    pub fn passes(self, mode: DependencyMode) -> bool {
        self.local
            && match mode {
                DependencyMode::Off => true,
                DependencyMode::Critical => self.critical,
                DependencyMode::All => self.critical && self.others,
            }
    }
}

/// Checks of one dependency by all who depend on it: at most so many a second, so that a slow database is not
/// buried under questions about its health. Who may not ask uses the last answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DependencyChecks {
    rate: Bucket,
    last: Option<(Time, bool)>,
}

impl DependencyChecks {
    /// At most so many checks a second.
    pub fn new(now: Time, checks_per_s: u64) -> Self {
        Self { rate: Bucket::new(now, checks_per_s, checks_per_s.max(1)), last: None }
    }

    /// Whether it may be asked now, or when again.
    pub fn may_ask(&mut self, now: Time) -> Result<(), Time> {
        self.rate.take(now, 1)
    }

    /// An answer, or its absence.
    pub fn answered(&mut self, now: Time, ok: bool) {
        self.last = Some((now, ok));
    }

    /// The last answer if it is not older than `age`; without one it is taken for fine, for a dependency that
    /// nobody could ask is no reason to remove a fleet.
    pub fn fine(&self, now: Time, age: Span) -> bool {
        self.last.is_none_or(|(at, ok)| ok || now.since(at) > age)
    }

    /// When to ask next: after the interval, give or take the jitter, so that a fleet does not ask in step.
    /// `uniform` is a fresh uniform 32-bit number.
    pub fn next(now: Time, interval: Span, jitter_pct: f64, uniform: u32) -> Time {
        let share = f64::from(uniform) / f64::from(u32::MAX) * 2.0 - 1.0;
        let factor = 1.0 + share * jitter_pct / 100.0;
        now.after(Span((interval.0 as f64 * factor).round() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dial_says_what_counts() {
        let cases = [(true, true), (true, false), (false, true), (false, false)];
        for (critical, others) in cases {
            let found = Readiness { local: true, critical, others };
            let passes =
                [0.0, 1.0, 2.0].map(|dial| found.passes(DependencyMode::from_dial(dial).unwrap()));
            assert_eq!(passes, [true, critical, critical && others]);
            let broken = Readiness { local: false, ..found };
            assert!(!broken.passes(DependencyMode::Off));
        }
        assert_eq!(DependencyMode::from_dial(3.0), None);
    }

    #[test]
    fn a_dependency_is_asked_at_a_limited_rate() {
        let mut checks = DependencyChecks::new(Time::ZERO, 10);
        let asked = (0..5_000).filter(|&ms| checks.may_ask(Time::from_ms(ms)).is_ok()).count();
        assert!((50..=60).contains(&asked), "{asked} in five seconds");
        assert!(checks.fine(Time::from_s(5), Span::from_s(10)), "nobody knows");
        checks.answered(Time::from_s(5), false);
        assert!(!checks.fine(Time::from_s(15), Span::from_s(10)));
        assert!(
            checks.fine(Time::from_s(16), Span::from_s(10)),
            "an old answer counts for nothing"
        );
    }

    #[test]
    fn checks_are_spread_by_the_jitter() {
        let next = |uniform| DependencyChecks::next(Time::ZERO, Span::from_s(10), 20.0, uniform);
        assert_eq!([next(0), next(u32::MAX)], [Time::from_s(8), Time::from_s(12)]);
    }
}
