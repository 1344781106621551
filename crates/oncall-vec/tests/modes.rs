//! What a step does in each autoreset mode, with running, ending, pending and ended rows.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod drive;

use common::{CALM, MINUTE, Toy};
use drive::{policy, reset, row_bits};
use oncall_vec::{Actions, Autoreset, ErrorKind, Options, OwnedColumns, Seeds, VecEnv};
use std::sync::Arc;

const KEEP: [i8; 5] = [0; 5];

fn options(autoreset: Autoreset) -> Options {
    Options { autoreset, ..Options::default() }
}

/// One calm row with episodes of three minutes, reset with seed 5.
fn calm(autoreset: Autoreset) -> (VecEnv<Toy<1>>, OwnedColumns) {
    let toy = Toy { wall: f64::INFINITY, ..Toy::new() };
    let options = Options { max_minutes: Some(3), ..options(autoreset) };
    let mut env = VecEnv::new(Arc::new(toy), 1, options).unwrap();
    reset(&mut env, Seeds::Rows(&[Some(5)]));
    let out = env.columns();
    (env, out)
}

/// The minute shown, reward != 0, truncated, ended, began, pending, over.
type Line = (f64, bool, bool, bool, bool, bool, bool);

fn step(env: &mut VecEnv<Toy<1>>, out: &mut OwnedColumns) -> Line {
    let summary = env.step(Actions::Dials(&CALM), &mut out.borrow()).unwrap();
    assert_eq!(summary.ended, usize::from(env.ended()[0]));
    assert_eq!(summary.reset, usize::from(env.began()[0]));
    assert!(!out.terminated[0]);
    assert_eq!(out.rewards[0] == 0.0, out.terms.iter().all(|&term| term == 0.0));
    let row = env.row(0);
    (
        out.signals[MINUTE],
        out.rewards[0] != 0.0,
        out.truncated[0],
        env.ended()[0],
        env.began()[0],
        row.pending,
        row.ended,
    )
}

#[test]
fn next_step() {
    let (mut env, mut out) = calm(Autoreset::NextStep);
    for episode in 0..3 {
        assert_eq!(env.row(0).episode, episode);
        assert_eq!(step(&mut env, &mut out), (1.0, true, false, false, false, false, false));
        assert_eq!(step(&mut env, &mut out), (2.0, true, false, false, false, false, false));
        assert_eq!(step(&mut env, &mut out), (3.0, true, true, true, false, true, true));
        assert_eq!(out.final_observations, out.observations);
        out.final_observations.fill(7.0);
        assert_eq!(step(&mut env, &mut out), (0.0, false, false, false, true, false, false));
        assert_eq!(out.cost, [0.0]);
        assert!(out.final_observations.iter().all(|&x| x == 7.0), "no episode ended");
    }
}

#[test]
fn same_step() {
    let (mut env, mut out) = calm(Autoreset::SameStep);
    for episode in 0..3 {
        assert_eq!(env.row(0).episode, episode);
        assert_eq!(step(&mut env, &mut out), (1.0, true, false, false, false, false, false));
        out.final_observations.fill(7.0);
        assert_eq!(step(&mut env, &mut out), (2.0, true, false, false, false, false, false));
        assert!(out.final_observations.iter().all(|&x| x == 7.0), "no episode ended");
        assert_eq!(step(&mut env, &mut out), (0.0, true, true, true, true, false, false));
        let minute = env.spec().columns_of(oncall_core::View::Operator);
        let minute = minute.iter().position(|&signal| signal == MINUTE).unwrap();
        let shown = env.spec().signals[MINUTE].unscale(out.final_observations[minute]);
        assert!((shown - 3.0).abs() < 1e-5, "{shown}");
        assert_eq!(out.observations[minute], env.spec().signals[MINUTE].scale(0.0));
    }
}

#[test]
fn disabled() {
    let (mut env, mut out) = calm(Autoreset::Disabled);
    for episode in 0..3 {
        assert_eq!(env.row(0).episode, episode);
        assert_eq!(step(&mut env, &mut out), (1.0, true, false, false, false, false, false));
        assert_eq!(step(&mut env, &mut out), (2.0, true, false, false, false, false, false));
        assert_eq!(step(&mut env, &mut out), (3.0, true, true, true, false, false, true));
        assert_eq!(out.final_observations, out.observations);
        let before = drive::everything(&env);
        let error = env.step(Actions::Stops8(&KEEP), &mut out.borrow()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Order);
        assert!(error.to_string().contains("row 0"), "{error}");
        assert_eq!(drive::everything(&env), before);
        env.reset(Seeds::Keep, Some(&[true]), &mut out.borrow_reset()).unwrap();
        assert_eq!((env.ended()[0], env.began()[0]), (false, true));
    }
}

/// A terminated row goes the same way as a truncated one, and both flags may be set.
#[test]
fn terminated_and_truncated() {
    let mut both = 0;
    for wall in [0.6, 1.5, 3.0] {
        let toy = Toy::<4> { wall, ..Toy::new() };
        let options = Options { max_minutes: Some(4), ..options(Autoreset::NextStep) };
        let mut env = VecEnv::new(Arc::new(toy), 200, options).unwrap();
        reset(&mut env, Seeds::Root(1));
        let mut out = env.columns();
        for _ in 0..20 {
            let minutes: Vec<u32> = (0..200).map(|i| env.row(i).minute).collect();
            let pending: Vec<bool> = (0..200).map(|i| env.row(i).pending).collect();
            let actions = policy(&env);
            env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
            for i in 0..200 {
                let x = out.signals[i * 8 + common::X].abs();
                assert_eq!(out.terminated[i], !pending[i] && x > wall);
                assert_eq!(out.truncated[i], !pending[i] && minutes[i] == 3);
                assert_eq!(env.ended()[i], out.terminated[i] || out.truncated[i]);
                assert_eq!(env.row(i).pending, env.ended()[i]);
                both += usize::from(out.terminated[i] && out.truncated[i]);
            }
        }
    }
    assert!(both > 0);
}

/// The two automatic modes return what the disabled one returns when its caller resets by hand.
#[test]
fn modes_agree() {
    const ROWS: usize = 13;
    let new = |autoreset| {
        let mut env = VecEnv::new(Arc::new(Toy::<4>::new()), ROWS, options(autoreset)).unwrap();
        reset(&mut env, Seeds::Root(3));
        env
    };
    for mode in [Autoreset::NextStep, Autoreset::SameStep] {
        let mut auto = new(mode);
        let mut rows: Vec<Vec<Vec<u64>>> = vec![Vec::new(); ROWS];
        let mut out = auto.columns();
        for _ in 0..300 {
            let actions = policy(&auto);
            auto.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
            for (i, rows) in rows.iter_mut().enumerate() {
                rows.push(row_bits(&auto, &out, i));
            }
        }

        let mut manual = new(Autoreset::Disabled);
        let mut by_hand: Vec<Vec<Vec<u64>>> = vec![Vec::new(); ROWS];
        let mut first = manual.columns();
        while by_hand.iter().any(|rows| rows.len() < 300) {
            let actions = policy(&manual);
            manual.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
            let ended = manual.ended().to_vec();
            let played: Vec<_> = (0..ROWS).map(|i| row_bits(&manual, &out, i)).collect();
            // What a reset shows, with all else as the mode promises.
            first.observations.fill(0.0);
            manual.reset(Seeds::Keep, Some(&ended), &mut first.borrow_reset()).unwrap();
            let shown = manual.obs_len() + manual.spec().signals.len();
            for (i, mut bits) in played.into_iter().enumerate() {
                let mut zeros = vec![0; bits.len()];
                if ended[i] {
                    zeros.truncate(shown + 9);
                    zeros[..shown].copy_from_slice(&row_bits(&manual, &first, i)[..shown]);
                    if mode == Autoreset::SameStep {
                        bits[..shown].copy_from_slice(&zeros[..shown]);
                        bits[shown + 8] = 1;
                    } else {
                        zeros[shown + 8] = 1;
                    }
                }
                by_hand[i].push(bits);
                if ended[i] && mode == Autoreset::NextStep {
                    by_hand[i].push(zeros);
                }
            }
        }
        for (auto, by_hand) in rows.iter().zip(&by_hand) {
            assert_eq!(auto[..], by_hand[..300], "{mode:?}");
        }
        assert!((0..ROWS).all(|i| auto.row(i).episode > 5), "episodes ended");
    }
}
