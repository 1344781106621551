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
/// the caches of the other way.
const TRY: u32 = 8;
const COUNTED: u32 = 4;

/// Weight of the newest time in its mean.
const NEWEST: f64 = 0.25;

/// How long a batch takes in each way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pace {
    /// Mean seconds, alone and shared; 0 before the first.
    seconds: [f64; 2],
    batches: u32,
    /// Batches until the slower way is tried, and the last such distance.
    left: u32,
    distance: u32,
    /// Batches that are left of a try, and the seconds of those that counted.
    trying: u32,
    tried: f64,
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
            if self.trying < COUNTED {
                self.tried += seconds;
            }
            if self.trying > 0 {
                return;
            }
            seconds = self.tried / f64::from(COUNTED);
        }
        let mean = &mut self.seconds[usize::from(is_shared)];
        // A batch in which the system took the core away says nothing about the next ones.
        let seconds = if *mean > 0.0 { seconds.min(3.0 * *mean) } else { seconds };
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
            (self.trying, self.tried) = (TRY, 0.0);
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
    fn the_first_batch_is_shared_and_does_not_count() {
        let mut pace = Pace::default();
        pace.step(|shares| assert!(shares));
        assert_eq!(pace.seconds, [0.0; 2]);
        pace.step(|shares| assert!(!shares));
        assert!(pace.seconds[0] > 0.0);
    }
}
