//! Named random streams: every draw is a function of (seed, split, episode, purpose, minute).
//!
//! No generator is carried from minute to minute. The key of an episode, the purpose and the minute
//! are hashed into the start of a short stream, so a draw needs no history: threads, batch sizes and
//! actions cannot change it, and saving a row saves no generator.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::math;
use rand::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// The golden ratio in 64 bits, the increment of `SplitMix64`.
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// Finaliser of `SplitMix64` (Steele, Lea and Flood 2014; Stafford's variant 13): a bijection in
/// which every input bit reaches every output bit.
#[inline(always)]
pub fn scramble(word: u64) -> u64 {
    let z = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Mixes a word into a hash. Not commutative: `mix(a, b) != mix(b, a)`.
#[inline(always)]
pub fn mix(hash: u64, word: u64) -> u64 {
    scramble(scramble(hash.wrapping_add(GOLDEN)) ^ word.wrapping_mul(GOLDEN).rotate_left(32))
}

/// The seed of row `row` of a vector environment that was reset with the seed `root`.
///
/// Never `root + row`: neighbouring roots would share all but one of their rows.
pub fn row_seed(root: u64, row: u64) -> u64 {
    mix(mix(root, 0x726f_7773), row)
}

/// Which generator turns a key into numbers; a field of the scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Generator {
    /// PCG-XSH-RR 64/32 (O'Neill 2014), two outputs to a double of 53 random bits.
    #[default]
    Pcg,
    /// mulberry32, one output to a double of 32 random bits; seeds must fit in 32 bits.
    Mulberry32,
}

impl Generator {
    /// All of them; the first one is the default.
    pub const ALL: [Generator; 2] = [Generator::Pcg, Generator::Mulberry32];

    /// `pcg` or `mulberry32`.
    pub fn name(self) -> &'static str {
        match self {
            Generator::Pcg => "pcg",
            Generator::Mulberry32 => "mulberry32",
        }
    }
}

/// Training and test episodes are disjoint by construction: the split enters every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Split {
    /// For training and tuning.
    #[default]
    Train,
    /// Held out for evaluation.
    Test,
}

impl Split {
    /// `train` or `test`.
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Test => "test",
        }
    }

    /// The split of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Split::Train, Split::Test].into_iter().find(|split| split.name() == name)
    }
}

/// What a draw is for. The numbers are part of the format: never reuse or reorder them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Purpose {
    /// Which scenario of a mixture is played.
    Variant = 1,
    /// The distributions of the scenario, in the order of the file.
    Scenario = 2,
    /// The minute's demand.
    Demand = 3,
    /// Message noise of the discovery world.
    Network = 4,
    /// The actions of a random policy.
    Policy = 5,
    /// Delays of the exporters of the discovery world.
    Scrape = 6,
}

/// Identity of one episode; everything random in it follows from this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EpisodeKey {
    hash: u64,
    generator: Generator,
}

impl EpisodeKey {
    /// The key of episode number `episode` of a row that was seeded with `seed`.
    pub fn new(seed: u64, episode: u64, split: Split, generator: Generator) -> Self {
        let split_tag = match split {
            Split::Train => 0x7472_6169,
            Split::Test => 0x7465_7374,
        };
        Self { hash: mix(mix(mix(GOLDEN, split_tag), seed), episode), generator }
    }

    /// The same episode drawn by another generator.
    #[must_use]
    pub fn with_generator(self, generator: Generator) -> Self {
        Self { generator, ..self }
    }

    /// The stream of a purpose in a minute (0 where the purpose has no minute).
    #[inline]
    pub fn stream(self, purpose: Purpose, minute: u64) -> Stream {
        let hash = mix(self.hash ^ (purpose as u64).wrapping_mul(GOLDEN), minute);
        match self.generator {
            // Seed bytes of Pcg32: state, then increment. The purpose picks the sequence as well.
            Generator::Pcg => {
                let mut bytes = [0_u8; 16];
                bytes[..8].copy_from_slice(&hash.to_le_bytes());
                bytes[8..].copy_from_slice(&(scramble(hash) ^ purpose as u64).to_le_bytes());
                Stream::Pcg(Pcg32::from_seed(bytes))
            }
            Generator::Mulberry32 => Stream::Mulberry32(Mulberry32((hash >> 32) as u32)),
        }
    }

    /// The first two uniform numbers of [`EpisodeKey::stream`] with [`Generator::Pcg`], without a
    /// generator: a loop over it becomes a loop of vector instructions.
    #[inline(always)]
    pub fn pcg_pair(self, purpose: Purpose, minute: u64) -> (f64, f64) {
        const MULTIPLIER: u64 = 6_364_136_223_846_793_005;
        let hash = mix(self.hash ^ (purpose as u64).wrapping_mul(GOLDEN), minute);
        let increment = (scramble(hash) ^ purpose as u64) | 1;
        let step = |state: u64| state.wrapping_mul(MULTIPLIER).wrapping_add(increment);
        let s0 = step(hash.wrapping_add(increment));
        let (s1, s2, s3) = (step(s0), step(step(s0)), step(step(step(s0))));
        (unit(pcg_output(s1) << 32 | pcg_output(s0)), unit(pcg_output(s3) << 32 | pcg_output(s2)))
    }

    /// A key of [`Generator::Pcg`] from the first of its [`EpisodeKey::bits`].
    #[inline(always)]
    pub fn pcg(hash: u64) -> Self {
        Self { hash, generator: Generator::Pcg }
    }

    /// Bits of the key, for digests and saved states.
    pub fn bits(self) -> (u64, u64) {
        (self.hash, self.generator as u64)
    }

    /// The inverse of [`EpisodeKey::bits`]; `None` for an unknown generator.
    pub fn from_bits((hash, generator): (u64, u64)) -> Option<Self> {
        let generator = Generator::ALL.into_iter().find(|&known| known as u64 == generator)?;
        Some(Self { hash, generator })
    }
}

/// Output of PCG-XSH-RR 64/32: the high bits, shifted and rotated by the highest.
#[inline(always)]
fn pcg_output(state: u64) -> u64 {
    let word = (((state >> 18) ^ state) >> 27) & 0xffff_ffff;
    let turn = state >> 59;
    ((word >> turn) | (word << (32 - turn))) & 0xffff_ffff
}

/// The upper 53 of 64 bits as a number of [0, 1).
#[inline(always)]
fn unit(bits: u64) -> f64 {
    const INV_2_53: f64 = 1.0 / 9_007_199_254_740_992.0;
    let bits = bits >> 11;
    // Exact, and in instructions that every set has for many lanes.
    let (high, low) = (math::from_whole(bits >> 32), math::from_whole(bits & 0xffff_ffff));
    (high * 4_294_967_296.0 + low) * INV_2_53
}

/// mulberry32 (Tommy Ettinger, public domain): 32 bits of state, as browsers' demos share seeds.
#[derive(Debug, Clone)]
pub struct Mulberry32(u32);

impl Mulberry32 {
    /// A generator that starts at `seed`.
    pub fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// The next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x6d2b_79f5);
        let z = self.0;
        let z = (z ^ (z >> 15)).wrapping_mul(z | 1);
        let z = z ^ z.wrapping_add((z ^ (z >> 7)).wrapping_mul(z | 0x3d));
        z ^ (z >> 14)
    }
}

/// A short sequence of uniform numbers.
#[derive(Debug, Clone)]
pub enum Stream {
    /// PCG.
    Pcg(Pcg32),
    /// mulberry32.
    Mulberry32(Mulberry32),
}

impl Stream {
    /// Uniform in [0, 1): 53 random bits with PCG, 32 with mulberry32.
    #[inline]
    pub fn uniform(&mut self) -> f64 {
        const INV_2_53: f64 = 1.0 / 9_007_199_254_740_992.0;
        const INV_2_32: f64 = 1.0 / 4_294_967_296.0;
        match self {
            Stream::Pcg(rng) => {
                let low = u64::from(rng.next_u32());
                let high = u64::from(rng.next_u32());
                (((high << 32) | low) >> 11) as f64 * INV_2_53
            }
            Stream::Mulberry32(rng) => f64::from(rng.next_u32()) * INV_2_32,
        }
    }

    /// An index below `len`.
    pub fn below(&mut self, len: usize) -> usize {
        ((self.uniform() * len as f64) as usize).min(len.saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// The first outputs of mulberry32(1) as every JavaScript engine prints them, times 2^32.
    #[test]
    fn mulberry32_known_answers() {
        let mut rng = Mulberry32::new(1);
        let drawn: Vec<u32> = (0..4).map(|_| rng.next_u32()).collect();
        assert_eq!(drawn, [2_693_262_067, 11_749_833, 2_265_367_787, 4_213_581_821]);
    }

    /// Fixes the whole derivation: key, purpose, minute, generator, conversion to a double. The
    /// values are those of `tests/reference/known_answers.py`.
    #[test]
    fn stream_known_answers() {
        let key = EpisodeKey::new(7, 3, Split::Train, Generator::Pcg);
        let mut stream = key.stream(Purpose::Demand, 11);
        assert_eq!(stream.uniform(), PCG_7_3_DEMAND_11[0]);
        assert_eq!(stream.uniform(), PCG_7_3_DEMAND_11[1]);
        let mut stream = key.with_generator(Generator::Mulberry32).stream(Purpose::Demand, 11);
        assert_eq!(stream.uniform(), MULBERRY_7_3_DEMAND_11);
    }
    const PCG_7_3_DEMAND_11: [f64; 2] = [0.515_057_035_683_957_9, 0.435_831_451_193_232_97];
    const MULBERRY_7_3_DEMAND_11: f64 = 0.465_884_162_345_901_13;

    #[test]
    fn pairs_are_the_first_of_the_stream() {
        for seed in 0..2000 {
            let key = EpisodeKey::new(seed, seed / 7, Split::Test, Generator::Pcg);
            let mut stream = key.stream(Purpose::Demand, seed * 3);
            let first = stream.uniform();
            assert_eq!(key.pcg_pair(Purpose::Demand, seed * 3), (first, stream.uniform()));
        }
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let mut seen = BTreeSet::new();
        for seed in 0..8 {
            for episode in 0..8 {
                for split in [Split::Train, Split::Test] {
                    let key = EpisodeKey::new(seed, episode, split, Generator::Pcg);
                    for purpose in [Purpose::Variant, Purpose::Scenario, Purpose::Demand] {
                        for minute in 0..8 {
                            let mut stream = key.stream(purpose, minute);
                            assert!(seen.insert(stream.uniform().to_bits()));
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn neighbouring_roots_share_no_row() {
        let rows = |root| (0..512).map(|row| row_seed(root, row)).collect::<BTreeSet<_>>();
        assert_eq!(rows(41).len(), 512);
        assert_eq!(row_seed(41, 0), 11_932_947_807_809_121_776);
        assert_eq!(row_seed(41, 1), 8_461_183_370_221_091_984);
        assert!(rows(41).is_disjoint(&rows(42)));
    }

    #[test]
    fn uniforms_are_uniform() {
        // 64 cells, 64,000 draws of neighbouring minutes: chi-square with 63 degrees of freedom is
        // below 125 in all but about one of 200,000 such tests.
        for generator in [Generator::Pcg, Generator::Mulberry32] {
            let mut cells = [0_u32; 64];
            let key = EpisodeKey::new(1, 0, Split::Train, generator);
            for minute in 0..32_000 {
                let mut stream = key.stream(Purpose::Demand, minute);
                for _ in 0..2 {
                    cells[(stream.uniform() * 64.0) as usize] += 1;
                }
            }
            let chi2: f64 = cells
                .iter()
                .map(|&n| (f64::from(n) - 1000.0) * (f64::from(n) - 1000.0) / 1000.0)
                .sum();
            assert!((20.0..125.0).contains(&chi2), "{generator:?}: {chi2}");
        }
    }
}
