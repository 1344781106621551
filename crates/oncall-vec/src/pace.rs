//! Whether several threads pay: measured as it goes.
//!
//! A second thread halves the time of a batch if it has a core of its own, and lengthens it if another
//! program sits there. Neither can be known beforehand, and both change. So both ways are timed: the
//! better one is taken, and the other one tried again from time to time. Results do not depend on it.
#![expect(clippy::disallowed_methods, reason = "the time decides who works, and no result")]

use std::time::Instant;

/// The way that was slower lately is tried again after so many batches: at first, and at most. Each
/// try that fails doubles the distance to the next one.
const TRY_AFTER: [u32; 2] = [32, 4096];

/// Batches of a try, and how many of them count, the last ones: the first ones wake sleeping threads, or find
/// the caches of the other way. The median of those is what the try found.
const TRY: usize = 8;
const COUNTED: usize = 5;

/// A batch of a try that takes so many times the mean of the better way ends it: on a core that is
/// taken, the next ones would be as slow.
const HOPELESS: f64 = 4.0;

/// Weight of the newest time in its mean, and what a time counts for at most, in means: a batch in which
/// the system took the core away says nothing about the next ones.
const NEWEST: f64 = 0.1;
const MOST: f64 = 2.0;

/// How long a batch takes in each way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Mean seconds, alone and shared; 0 before the first.
    seconds: [f64; 2],
    batches: u32,
    /// Batches until the slower way is tried, and the last such distance.
    left: u32,
    distance: u32,
    /// Batches that are left of a try, and the seconds of those that count.
    trying: usize,
    tried: [f64; COUNTED],
}

impl Pace {
    /// Whether sharing was faster lately.
    fn is_shared_better(&self) -> bool {
        self.seconds[1] <= self.seconds[0]
    }

    /// Whether the next batch should be shared.
    fn shares(&self) -> bool {
        match self.batches {
            0 => true,
            1 => false,
            // The way that is better, or the other one when its turn has come.
            _ => self.is_shared_better() != (self.trying > 0),
        }
    }

    fn record(&mut self, is_shared: bool, seconds: f64) {
        let before = self.is_shared_better();
        let is_try = self.trying > 0;
        let mut seconds = seconds;
        if is_try {
            self.trying -= 1;
            if seconds > HOPELESS * self.seconds[usize::from(!is_shared)] {
                self.trying = 0;
            } else {
                if self.trying < COUNTED {
                    self.tried[self.trying] = seconds;
                }
                if self.trying > 0 {
                    return;
                }
                self.tried.sort_by(f64::total_cmp);
                seconds = self.tried[COUNTED / 2];
            }
        }
        let mean = &mut self.seconds[usize::from(is_shared)];
        let seconds = if *mean > 0.0 { seconds.min(MOST * *mean) } else { seconds };
        // A try is rare: what it found counts for more than what was found long ago.
        let weight = if is_try { 0.7 } else { NEWEST };
        *mean = if *mean > 0.0 { *mean + weight * (seconds - *mean) } else { seconds };
        self.batches = self.batches.wrapping_add(1).max(2);
        if self.is_shared_better() != before {
            self.distance = TRY_AFTER[0];
            self.left = self.distance;
        } else if is_try {
            self.distance = (2 * self.distance).clamp(TRY_AFTER[0], TRY_AFTER[1]);
            self.left = self.distance;
        } else {
            self.left = self.left.saturating_sub(1);
        }
        if self.left == 0 {
            self.trying = TRY;
        }
    }

    /// Steps a batch, shared or not as it seems best.
    pub(crate) fn step(&mut self, work: impl FnOnce(bool)) {
        let shares = self.shares();
        let start = Instant::now();
        work(shares);
        let first = self.batches == 0;
        self.record(shares, start.elapsed().as_secs_f64());
        if first {
            // The first batch shared made the threads; its time says nothing.
            *self = Self { batches: 1, ..Self::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shares of the batches that are shared, of `count` batches that take these seconds.
    fn shared(pace: &mut Pace, count: u32, seconds: [f64; 2]) -> f64 {
        let mut shared = 0;
        for _ in 0..count {
            let shares = pace.shares();
            shared += u32::from(shares);
            pace.record(shares, seconds[usize::from(shares)]);
        }
        f64::from(shared) / f64::from(count)
    }

    #[test]
    fn the_faster_way_is_taken_and_the_other_one_tried() {
        let mut pace = Pace::default();
        let often = shared(&mut pace, 4800, [2e-4, 1e-4]);
        assert!((0.98..1.0).contains(&often), "{often}");
        // A neighbour takes the second core: the batch is soon stepped alone.
        assert!(shared(&mut pace, 480, [2e-4, 3e-4]) < 0.1);
        assert!(shared(&mut pace, 4800, [2e-4, 3e-4]) < 0.01);
        // And it goes away again.
        shared(&mut pace, 9600, [2e-4, 1e-4]);
        assert!(shared(&mut pace, 480, [2e-4, 1e-4]) > 0.9);
    }

    #[test]
    fn a_batch_that_was_interrupted_changes_nothing() {
        let mut pace = Pace::default();
        shared(&mut pace, 300, [2e-4, 1e-4]);
        for _ in 0..20 {
            while pace.trying > 0 || !pace.shares() {
                shared(&mut pace, 1, [2e-4, 1e-4]);
            }
            pace.record(true, 5e-2);
            assert!(pace.is_shared_better());
            shared(&mut pace, 30, [2e-4, 1e-4]);
        }
        // Nor do two in a try.
        shared(&mut pace, 300, [2e-4, 3e-4]);
        while pace.trying != COUNTED {
            shared(&mut pace, 1, [2e-4, 3e-4]);
        }
        for seconds in [1e-4, 7e-4, 1e-4, 7e-4, 1e-4] {
            assert!(pace.shares());
            pace.record(true, seconds);
        }
        assert!(pace.is_shared_better());
    }

    #[test]
    fn a_hopeless_try_is_short() {
        let mut pace = Pace::default();
        let (mut batches, mut slow) = (0, 0);
        shared(&mut pace, 300, [2e-4, 3e-4]);
        while batches < 20_000 {
            let shares = pace.shares();
            pace.record(shares, if shares { 4e-3 } else { 2e-4 });
            (batches, slow) = (batches + 1, slow + u32::from(shares));
        }
        assert!(slow <= 16, "{slow}");
    }

    #[test]
    fn the_first_batch_is_shared_and_does_not_count() {
        let mut pace = Pace::default();
        pace.step(|shares| assert!(shares));
        assert_eq!(pace.seconds, [0.0; 2]);
        pace.step(|shares| assert!(!shares));
        assert!(pace.seconds[0] > 0.0);
    }
}
