//! Drives engines with actions that depend on the episode and its minute only, and keeps a hash of
//! everything that each row returns.
#![allow(dead_code, reason = "each test file uses a part")]

use oncall_core::streams::Purpose;
use oncall_core::{Digest, EpisodeKey, Generator, Split, World};
use std::fmt::Write as _;

use oncall_vec::{Actions, OwnedColumns, Seeds, VecEnv};

/// Policy actions for every row: mostly keep, sometimes set, sometimes press.
pub(crate) fn policy<W: World>(env: &VecEnv<W>) -> Vec<f64> {
    let mut actions = Vec::new();
    for i in 0..env.num_envs() {
        let row = env.row(i);
        let key = EpisodeKey::new(row.seed, row.episode, Split::Train, Generator::Pcg);
        let mut stream = key.stream(Purpose::Policy, u64::from(row.minute));
        for dial in &env.spec().dials {
            let (keep, share) = (stream.uniform(), stream.uniform());
            let value = dial.low + (dial.high - dial.low) * share;
            actions.push(if keep < 0.6 { f64::NAN } else { value });
        }
    }
    actions
}

/// Bits of one row of the columns; of the final observation only where the row ended.
pub(crate) fn row_bits<W: World>(env: &VecEnv<W>, out: &OwnedColumns, i: usize) -> Vec<u64> {
    let (obs, terms) = (env.obs_len(), env.spec().terms.len());
    let signals = env.spec().signals.len();
    let mut bits: Vec<u64> = Vec::new();
    let f32s = |xs: &[f32]| xs.iter().map(|x| u64::from(x.to_bits())).collect::<Vec<_>>();
    let f64s = |xs: &[f64]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    bits.extend(f32s(&out.observations[i * obs..][..obs]));
    bits.extend(f64s(&out.signals[i * signals..][..signals]));
    bits.extend(f64s(&out.terms[i * terms..][..terms]));
    bits.extend(f64s(&[out.rewards[i], out.cost[i]]));
    bits.extend(
        [out.terminated[i], out.truncated[i], env.ended()[i], env.began()[i]].map(u64::from),
    );
    if env.ended()[i] {
        bits.extend(f32s(&out.final_observations[i * obs..][..obs]));
    }
    bits
}

/// Steps and returns a hash for each row of all it returned and all it holds.
pub(crate) fn drive<W: World>(env: &mut VecEnv<W>, steps: usize) -> Vec<u64> {
    let mut out = env.columns();
    let mut digests = vec![Digest::new(); env.num_envs()];
    for _ in 0..steps {
        let actions = policy(env);
        env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
        for (i, digest) in digests.iter_mut().enumerate() {
            for word in row_bits(env, &out, i) {
                digest.word(word);
            }
            digest.word(env.digest(i));
        }
    }
    digests.into_iter().map(Digest::value).collect()
}

/// Resets all rows.
pub(crate) fn reset<W: World>(env: &mut VecEnv<W>, seeds: Seeds<'_>) {
    let mut out = env.columns();
    env.reset(seeds, None, &mut out.borrow_reset()).unwrap();
}

/// Everything an engine shows and holds, to compare before and after.
pub(crate) fn everything<W: World>(env: &VecEnv<W>) -> String {
    let mut observations = vec![0.0; env.num_envs() * env.obs_len()];
    env.observe_into(&mut observations).unwrap();
    let observations: Vec<u32> = observations.iter().map(|x| x.to_bits()).collect();
    let mut text = format!("{:?} {:?} {observations:?}", env.ended(), env.began());
    for i in 0..env.num_envs() {
        let _ = write!(
            text,
            "\n{:?} {:x} {:?} {:?} {:?}",
            env.row(i),
            env.digest(i),
            env.running_stats(i),
            env.episode_stats(i),
            env.save(i).ok()
        );
    }
    text
}
