//! What one prober makes of one instance: two bytes.

use serde::{Deserialize, Serialize};

use crate::dials::Dials;

/// Probes in a row that it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Thresholds {
    /// Failures that mean down, at least 1.
    pub failures: u8,
    /// Successes that mean up, at least 1.
    pub successes: u8,
}

impl From<&Dials> for Thresholds {
    fn from(dials: &Dials) -> Self {
        Self { failures: dials.failure_threshold as u8, successes: dials.recovery_threshold as u8 }
    }
}

/// What a prober holds an instance for.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Opinion {
    /// Too few probes yet.
    #[default]
    Unknown,
    /// Enough successes in a row, and not enough failures in a row since.
    Up,
    /// Enough failures in a row, and not enough successes in a row since.
    Down,
}

/// Bookkeeping of one prober about one instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProbeRecord {
    /// Successes in a row, or minus the failures in a row.
    run: i8,
    opinion: Opinion,
}

impl ProbeRecord {
    /// Nothing known.
    pub const NEW: Self = Self { run: 0, opinion: Opinion::Unknown };

    /// Takes a result. Returns the opinion if it changed.
    pub fn record(&mut self, ok: bool, thresholds: Thresholds) -> Option<Opinion> {
        let opinion = if ok {
            self.run = (self.run.max(0) + 1).min(thresholds.successes.max(1) as i8);
            (self.run >= thresholds.successes as i8).then_some(Opinion::Up)
        } else {
            self.run = (self.run.min(0) - 1).max(-(thresholds.failures.max(1) as i8));
            (-self.run >= thresholds.failures as i8).then_some(Opinion::Down)
        };
        let changed = opinion.filter(|&opinion| opinion != self.opinion)?;
        self.opinion = changed;
        Some(changed)
    }

    /// Takes note of other thresholds. An opinion that took fewer results than are asked for now is forgotten; the
    /// run that led to it, counted up to the old threshold, goes on. Lower thresholds wait for the next result.
    pub fn raise(&mut self, before: Thresholds, now: Thresholds) {
        let forgets = match self.opinion {
            Opinion::Up => now.successes > before.successes,
            Opinion::Down => now.failures > before.failures,
            Opinion::Unknown => false,
        };
        if forgets {
            self.opinion = Opinion::Unknown;
        }
    }

    /// The opinion.
    pub fn opinion(self) -> Opinion {
        self.opinion
    }

    /// Failures in a row.
    pub fn failures(self) -> u8 {
        (-self.run).max(0) as u8
    }

    /// Whether one more success would change nothing: a driver need not play it.
    pub fn settled_up(self, thresholds: Thresholds) -> bool {
        self.opinion == Opinion::Up && self.run >= thresholds.successes as i8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(record: &mut ProbeRecord, results: &str, n: u8, m: u8) -> Vec<Option<Opinion>> {
        let thresholds = Thresholds { failures: n, successes: m };
        results.chars().map(|c| record.record(c == '+', thresholds)).collect()
    }

    #[test]
    fn it_takes_a_run_to_change_an_opinion() {
        use Opinion::{Down, Up};
        let mut record = ProbeRecord::NEW;
        assert_eq!(play(&mut record, "++", 3, 2), [None, Some(Up)]);
        assert_eq!(play(&mut record, "--+--+", 3, 2), [None; 6], "no three in a row");
        assert_eq!(play(&mut record, "---", 3, 2), [None, None, Some(Down)]);
        assert_eq!(play(&mut record, "-", 3, 2), [None], "said once");
        assert_eq!(play(&mut record, "+-++", 3, 2), [None, None, None, Some(Up)]);
        assert_eq!(play(&mut record, "-", 1, 2), [Some(Down)]);
        assert_eq!(record.failures(), 1);
    }

    #[test]
    fn long_runs_saturate() {
        let mut record = ProbeRecord::NEW;
        play(&mut record, &"-".repeat(1_000), 6, 6);
        assert_eq!(record.failures(), 6);
        play(&mut record, &"+".repeat(1_000), 6, 6);
        let before = record;
        assert!(record.settled_up(Thresholds { failures: 6, successes: 6 }));
        play(&mut record, "+", 6, 6);
        assert_eq!(record, before, "a driver may leave this one out");
    }
}
