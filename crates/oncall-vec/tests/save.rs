//! Saved, restored and copied rows go on as if nothing had happened.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod drive;

use common::Toy;
use drive::{drive, everything, policy, reset};
use oncall_core::{Digest, Split, World};
use oncall_vec::{Actions, Autoreset, ErrorKind, Options, Seeds, VecEnv};
use std::sync::Arc;

fn env<W: World>(world: W, rows: usize, autoreset: Autoreset) -> VecEnv<W> {
    let options = Options { autoreset, ..Options::default() };
    let mut env = VecEnv::new(Arc::new(world), rows, options).unwrap();
    reset(&mut env, Seeds::Root(21));
    env
}

fn saved<W: World>(env: &VecEnv<W>, rows: &[usize]) -> Vec<Vec<u8>> {
    rows.iter().map(|&row| env.save(row).unwrap()).collect()
}

fn load<W: World>(env: &mut VecEnv<W>, rows: &[usize], states: &[Vec<u8>]) {
    let states: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
    env.load(rows, &states).unwrap();
}

#[test]
fn bytes_go_on_at_other_positions() {
    let mut source = env(Toy::<4>::new(), 7, Autoreset::NextStep);
    drive(&mut source, 20);
    let states = saved(&source, &[1, 5, 6]);
    let stats: Vec<_> =
        [1, 5, 6].map(|i| (source.running_stats(i), source.episode_stats(i))).into();
    let expected = drive(&mut source, 40);

    // Into a fresh engine of another size, with other lanes, in another order, never reset.
    let options = Options::default();
    let mut target = VecEnv::new(Arc::new(Toy::<1>::new()), 3, options).unwrap();
    load(&mut target, &[2, 0, 1], &states);
    for (k, row) in [2, 0, 1].into_iter().enumerate() {
        assert_eq!((target.running_stats(row), target.episode_stats(row)), stats[k]);
        assert_eq!(target.save(row).unwrap(), states[k]);
    }
    let found = drive(&mut target, 40);
    assert_eq!([found[2], found[0], found[1]], [expected[1], expected[5], expected[6]]);

    // And back in time in the same one.
    load(&mut source, &[1, 5, 6], &states);
    let again = drive(&mut source, 40);
    assert_eq!([again[1], again[5], again[6]], [expected[1], expected[5], expected[6]]);
}

/// A driven engine with at least one row of each status.
fn mixed(autoreset: Autoreset) -> VecEnv<Toy<4>> {
    let mut env = env(Toy::<4>::new(), 40, autoreset);
    drive(&mut env, 10);
    let mut out = env.columns();
    for _ in 0..20 {
        if !(0..40).any(|i| env.row(i).ended) {
            let actions = policy(&env);
            env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
        }
    }
    assert!((0..40).any(|i| env.row(i).ended));
    assert!((0..40).any(|i| !env.row(i).ended));
    env
}

#[test]
fn pending_and_ended_rows_stay_so() {
    for mode in [Autoreset::NextStep, Autoreset::Disabled] {
        let source = mixed(mode);
        let rows: Vec<usize> = (0..40).collect();
        let states = saved(&source, &rows);
        for target_mode in [Autoreset::NextStep, Autoreset::SameStep, Autoreset::Disabled] {
            let mut target = env(Toy::<1>::new(), 40, target_mode);
            load(&mut target, &rows, &states);
            let mut snapped = env(Toy::<4>::new(), 40, target_mode);
            snapped.restore(&source.snapshot(&rows).unwrap(), &rows).unwrap();
            for i in rows.iter().copied() {
                let over = source.row(i).ended;
                let pending = over && target_mode != Autoreset::Disabled;
                for row in [target.row(i), snapped.row(i)] {
                    assert_eq!((row.ended, row.pending), (over, pending));
                }
                assert_eq!(target.digest(i), source.digest(i));
                assert_eq!(snapped.digest(i), source.digest(i));
            }
            let (actions, mut out) = (policy(&target), target.columns());
            let outcome = target.step(Actions::Policy(&actions), &mut out.borrow());
            if target_mode == Autoreset::Disabled {
                assert_eq!(outcome.unwrap_err().kind(), ErrorKind::Order);
            } else {
                let over = rows.iter().filter(|&&i| source.row(i).ended);
                assert!(over.clone().all(|&i| target.began()[i] && out.rewards[i] == 0.0));
                assert!(over.clone().all(|&i| target.row(i).episode == source.row(i).episode + 1));
            }
        }
    }
}

#[test]
fn snapshots_branch() {
    let mut env = env(Toy::<4>::new(), 6, Autoreset::SameStep);
    drive(&mut env, 15);
    let snapshot = env.snapshot(&[3, 3, 1]).unwrap();
    assert_eq!((snapshot.len(), snapshot.is_empty()), (3, false));
    let expected = drive(&mut env, 30);
    env.restore(&snapshot, &[0, 3, 5]).unwrap();
    let found = drive(&mut env, 30);
    assert_eq!([found[0], found[3], found[5]], [expected[3], expected[3], expected[1]]);
    // The snapshot is not used up.
    env.restore(&snapshot, &[0, 3, 5]).unwrap();
    assert_eq!(drive(&mut env, 30)[0], expected[3]);
}

#[test]
fn rows_copy_as_they_were() {
    let mut env = env(Toy::<4>::new(), 10, Autoreset::SameStep);
    drive(&mut env, 15);
    let before: Vec<u64> = (0..10).map(|i| env.digest(i)).collect();
    let stats = env.running_stats(8);
    // A swap, a copy in the same block, a copy to another block, and a row onto itself.
    env.copy_rows(&[0, 1, 8, 2, 4], &[1, 0, 9, 7, 4]).unwrap();
    let after: Vec<u64> = (0..10).map(|i| env.digest(i)).collect();
    let from = [1, 0, 2, 3, 4, 5, 6, 2, 8, 8];
    assert_eq!(after, from.map(|i| before[i]));
    assert_eq!(env.running_stats(9), stats);
    let bits = drive(&mut env, 20);
    assert_eq!((bits[9], bits[7]), (bits[8], bits[2]));
    assert_ne!(bits[0], bits[1]);
}

#[test]
fn a_restored_row_has_neither_ended_nor_begun() {
    let mut env = mixed(Autoreset::NextStep);
    let ended = (0..40).find(|&i| env.ended()[i]).unwrap();
    let snapshot = env.snapshot(&[ended]).unwrap();
    env.restore(&snapshot, &[ended]).unwrap();
    assert!(!env.ended()[ended] && env.row(ended).ended);
    reset(&mut env, Seeds::Root(1));
    let state = env.save(0).unwrap();
    env.load(&[1], &[&state]).unwrap();
    assert!(env.began()[0] && !env.began()[1]);
}

#[test]
fn the_limit_is_the_restoring_engines() {
    let options = |max_minutes| Options { max_minutes, ..Options::default() };
    let toy = || Arc::new(Toy::<1> { wall: f64::INFINITY, ..Toy::new() });
    let mut source = VecEnv::new(toy(), 1, options(None)).unwrap();
    reset(&mut source, Seeds::Rows(&[Some(4)]));
    drive(&mut source, 10);
    let states = saved(&source, &[0]);
    let mut longer = VecEnv::new(toy(), 1, options(Some(100))).unwrap();
    load(&mut longer, &[0], &states);
    assert_eq!((longer.row(0).minute, longer.row(0).length_min), (10, 100));
    let mut shorter = VecEnv::new(toy(), 1, options(Some(10))).unwrap();
    let error = shorter.load(&[0], &[&states[0]]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    assert!(error.to_string().contains("minute = 10"), "{error}");
    let snapshot = source.snapshot(&[0]).unwrap();
    assert_eq!(shorter.restore(&snapshot, &[0]).unwrap_err().kind(), ErrorKind::State);
}

/// Loads `bytes` into row 2 together with a good state for row 0: refused, and nothing changed.
fn refused(env: &mut VecEnv<Toy<4>>, bytes: &[u8], expected: &str) {
    let good = env.save(1).unwrap();
    let before = everything(env);
    let error = env.load(&[0, 2], &[&good, bytes]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::State);
    let message = error.to_string();
    assert!(message.starts_with("states[1] for row 2: "), "{message}");
    assert!(message.contains(expected), "{message}, expected {expected}");
    assert_eq!(everything(env), before);
}

#[test]
fn bad_bytes_are_refused() {
    let mut env = env(Toy::<4>::new(), 4, Autoreset::NextStep);
    drive(&mut env, 15);
    let good = env.save(3).unwrap();
    refused(&mut env, &[], "first bytes");
    refused(&mut env, b"PK\x03\x04 something else", "first bytes");
    for len in 8..32 {
        refused(&mut env, &good[..len], "cut short");
    }
    for len in [32, 100, good.len() - 8, good.len() - 1] {
        refused(&mut env, &good[..len], "cut short");
    }
    let long: Vec<u8> = good.iter().copied().chain([0]).collect();
    refused(&mut env, &long, "followed by more");
    let mut newer = good.clone();
    newer[8] = 1;
    refused(&mut env, &newer, "format version = 1: expected 2");
    for at in (24..good.len()).step_by(7) {
        let mut corrupt = good.clone();
        corrupt[at] ^= 0x10;
        refused(&mut env, &corrupt, "checksum");
    }
}

#[test]
fn states_of_others_are_refused() {
    let mut target = env(Toy::<4>::new(), 4, Autoreset::NextStep);
    drive(&mut target, 15);
    let of = |toy: Toy<4>, options: Options| {
        let mut other = VecEnv::new(Arc::new(toy), 1, options).unwrap();
        reset(&mut other, Seeds::Root(1));
        (other.save(0).unwrap(), other.snapshot(&[0]).unwrap())
    };
    let default = Options::default;
    for ((bytes, snapshot), expected) in [
        (of(Toy { wall: 5.0, ..Toy::new() }, default()), "another scenario"),
        (
            of(Toy::new(), Options { split: Split::Test, ..default() }),
            "split = test: expected train",
        ),
        (
            of(Toy::new(), Options { decision_interval_min: 2, ..default() }),
            "decision_interval_min = 2: expected 1",
        ),
    ] {
        refused(&mut target, &bytes, expected);
        let before = everything(&target);
        let error = target.restore(&snapshot, &[3]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State);
        assert!(error.to_string().contains(expected), "{error}");
        assert_eq!(everything(&target), before);
    }
    // What does not change a trajectory does not matter.
    let options = Options {
        autoreset: Autoreset::SameStep,
        view: oncall_core::View::Full,
        threads: 2,
        max_minutes: Some(60),
        ..default()
    };
    let (bytes, snapshot) = of(Toy::new(), options);
    target.load(&[0], &[&bytes]).unwrap();
    target.restore(&snapshot, &[1]).unwrap();
    assert_eq!(target.digest(0), target.digest(1));
}
/// The bytes with their checksum made right again.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let body = bytes.len() - 8;
    let mut strands = [Digest::new(); 4];
    for (i, word) in bytes[..body].chunks(8).enumerate() {
        strands[i % 4].word(u64::from_le_bytes(word.try_into().unwrap()));
    }
    let mut digest = Digest::new();
    for strand in strands {
        digest.word(strand.value());
    }
    bytes[body..].copy_from_slice(&digest.value().to_le_bytes());
    bytes
}

/// Bytes that are whole and yet say what cannot be.
#[test]
fn impossible_states_are_refused() {
    let mut env = env(Toy::<4>::new(), 4, Autoreset::NextStep);
    drive(&mut env, 15);
    let good = env.save(3).unwrap();
    assert_eq!(sealed(good.clone()), good);
    let with = |at: usize, word: u64| {
        let mut bytes = good.clone();
        bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        sealed(bytes)
    };
    refused(&mut env, &with(24, 1), "another world or another version of it");
    refused(&mut env, &with(32, 1), "another scenario");
    refused(&mut env, &with(40, 2), "split = 2: expected 0 or 1");
    refused(&mut env, &with(56, 0), "status = 0: expected 1 or 2");
    refused(&mut env, &with(56, 3), "status = 3: expected 1 or 2");
    // After status: seed, episode, return, cost, steps, minutes.
    refused(&mut env, &with(96, 1 << 33), "steps = 4294967295: expected at most the ");
    refused(&mut env, &with(104, 1000), "minute = 1000 of a running episode");
    // The toy's x, the seventh of its 16 words.
    let x = good.len() - 8 - 16 * 8 + 6 * 8;
    let expected = "state of the world: x = inf: expected a finite number";
    refused(&mut env, &with(x, f64::INFINITY.to_bits()), expected);
    // Whole words missing or too many, the length adjusted.
    for len in [40, 64, 160, good.len() - 16, good.len() + 8] {
        let mut bytes = good.clone();
        bytes.resize(len, 0);
        bytes[16..24].copy_from_slice(&(len as u64).to_le_bytes());
        refused(&mut env, &sealed(bytes), "");
    }
}
