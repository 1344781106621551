//! Keyed draws, and the running digest of a run.

use std::hash::{Hash, Hasher};

use oncall_core::Digest;
use oncall_core::streams::mix;

/// A draw that depends only on its key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Key(pub(crate) u64);

impl Key {
    /// The key of a part.
    pub(crate) fn of(self, part: u64) -> Self {
        Self(mix(self.0, part))
    }

    /// A number in `0..n`; 0 if `n` is 0.
    pub(crate) fn below(self, n: u64) -> u64 {
        if n == 0 { 0 } else { ((u128::from(self.of(0x6e).0) * u128::from(n)) >> 64) as u64 }
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True in `permille` of 1,000 cases.
    pub(crate) fn chance(self, permille: u64) -> bool {
        self.below(1_000) < permille
    }
}

/// Hashes values into one digest; equal runs give equal trails.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trail {
    digest: Digest,
    /// The digest at regular times.
    pub(crate) marks: Vec<u64>,
}

impl Trail {
    pub(crate) fn add(&mut self, value: &impl Hash) {
        value.hash(self);
    }

    pub(crate) fn mark(&mut self) {
        self.marks.push(self.digest.value());
    }
}

impl Hasher for Trail {
    fn finish(&self) -> u64 {
        self.digest.value()
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.digest.word(u64::from(byte));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.digest.word(u64::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.digest.word(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        self.digest.word(word);
    }

    fn write_usize(&mut self, word: usize) {
        self.digest.word(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.digest.word(word as u64);
    }
}
