//! What the tests of the whole share: the only place here that touches the engine's API.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::{Spec, Split};
use oncall_env::{Actions, AnyVecEnv, Options, Seeds, shipped};

/// A small generator for test inputs (`SplitMix64`), apart from the streams under test.
#[derive(Debug, Clone)]
pub struct Dice(pub u64);

impl Dice {
    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        oncall_core::streams::scramble(self.0)
    }

    /// Uniform in [0, 1).
    pub fn share(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / 9_007_199_254_740_992.0
    }
}

/// Random indices of the multi-discrete space: mostly keep, like a learning policy.
pub fn random_stops(spec: &Spec, rows: usize, dice: &mut Dice) -> Vec<i64> {
    let mut stops = Vec::with_capacity(rows * spec.dials.len());
    for _ in 0..rows {
        for dial in &spec.dials {
            let turn = dice.share() < 0.15;
            stops.push(if turn { (dice.bits() % dial.choices() as u64) as i64 } else { 0 });
        }
    }
    stops
}

/// An engine of a shipped scenario.
pub fn engine(scenario: &str, rows: usize, options: Options) -> AnyVecEnv {
    AnyVecEnv::new(shipped(scenario).unwrap().world, rows, options).unwrap()
}

/// Resets all rows with exactly these seeds.
pub fn reset_rows(env: &mut AnyVecEnv, seeds: &[u64]) {
    let seeds: Vec<Option<u64>> = seeds.iter().copied().map(Some).collect();
    let mut columns = env.columns();
    env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset()).unwrap();
}

/// Plays a row's own action sequence, which depends on its seed and the step only, and returns a
/// digest of everything that came out: observations, rewards, flags, terms and the state.
pub fn trajectory(env: &mut AnyVecEnv, seeds: &[u64], steps: usize) -> Vec<u64> {
    reset_rows(env, seeds);
    let spec = env.spec().clone();
    let mut columns = env.columns();
    let mut digests = vec![oncall_core::Digest::new(); seeds.len()];
    let width = env.obs_len();
    for step in 0..steps {
        let stops: Vec<i64> = seeds
            .iter()
            .flat_map(|seed| random_stops(&spec, 1, &mut Dice(seed ^ ((step as u64) << 32))))
            .collect();
        env.step(Actions::Stops64(&stops), &mut columns.borrow()).unwrap();
        for (row, digest) in digests.iter_mut().enumerate() {
            for x in &columns.observations[row * width..][..width] {
                digest.word(u64::from(x.to_bits()));
            }
            digest.f64(columns.rewards[row]);
            digest
                .word(u64::from(columns.terminated[row]) << 1 | u64::from(columns.truncated[row]));
            let terms = spec.terms.len();
            columns.terms[row * terms..][..terms].iter().for_each(|&usd| digest.f64(usd));
            digest.word(env.digest(row));
        }
    }
    digests.iter().map(|digest| digest.value()).collect()
}

/// Options with a given number of threads.
pub fn threads(threads: usize) -> Options {
    Options { threads, split: Split::Train, ..Options::default() }
}
