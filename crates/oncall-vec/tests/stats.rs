//! Episode statistics, decision intervals, lengths, cost and views.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod drive;

use common::{BUDGET, CALM, LEVEL, PRESSES, Toy, X};
use drive::{policy, reset};
use oncall_core::View;
use oncall_vec::{Actions, Autoreset, Options, Seeds, VecEnv};
use std::sync::Arc;

fn calm(rows: usize, options: Options) -> VecEnv<Toy<4>> {
    let toy = Toy { wall: f64::INFINITY, ..Toy::new() };
    let mut env = VecEnv::new(Arc::new(toy), rows, options).unwrap();
    reset(&mut env, Seeds::Root(2));
    env
}

#[test]
fn statistics_are_the_sums_of_what_was_returned() {
    for autoreset in [Autoreset::NextStep, Autoreset::SameStep] {
        let options = Options { autoreset, decision_interval_min: 2, ..Options::default() };
        let mut env = VecEnv::new(Arc::new(Toy::<4>::new()), 6, options).unwrap();
        reset(&mut env, Seeds::Root(2));
        let mut out = env.columns();
        // Return, cost, steps, terms.
        let mut sums = vec![(0.0, 0.0, 0, [0.0; 3]); 6];
        let mut episodes = [0; 6];
        for _ in 0..120 {
            let pending: Vec<bool> = (0..6).map(|i| env.row(i).pending).collect();
            let actions = policy(&env);
            env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
            for i in 0..6 {
                let terms: [f64; 3] = out.terms[i * 3..][..3].try_into().unwrap();
                assert_eq!(out.rewards[i], 0.0 - (terms[0] + terms[1] + terms[2]));
                if pending[i] {
                    assert_eq!(env.running_stats(i).steps, 0);
                    continue;
                }
                let sum = &mut sums[i];
                sum.0 += out.rewards[i];
                sum.1 += out.cost[i];
                sum.2 += 1;
                sum.3.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
                let ended = env.ended()[i];
                let stats = if ended { env.episode_stats(i) } else { env.running_stats(i) };
                assert_eq!((stats.return_, stats.cost, stats.steps), (sum.0, sum.1, sum.2));
                assert_eq!(stats.terms, sum.3);
                assert!(stats.minutes <= 2 * stats.steps && stats.minutes + 1 >= 2 * stats.steps);
                assert_eq!((stats.seed, stats.episode), (env.row(i).seed, episodes[i]));
                if ended {
                    *sum = (0.0, 0.0, 0, [0.0; 3]);
                    episodes[i] += 1;
                }
            }
        }
        assert!(episodes.iter().all(|&episodes| episodes > 5), "{episodes:?}");
    }
}

#[test]
fn the_last_episode_stays_through_resets() {
    let mut env = calm(1, Options { max_minutes: Some(2), ..Options::default() });
    let mut out = env.columns();
    assert_eq!(env.episode_stats(0).steps, 0);
    for _ in 0..2 {
        env.step(Actions::Dials(&CALM), &mut out.borrow()).unwrap();
    }
    let stats = env.episode_stats(0);
    assert_eq!((stats.steps, stats.minutes, stats.episode), (2, 2, 0));
    env.step(Actions::Dials(&CALM), &mut out.borrow()).unwrap();
    reset(&mut env, Seeds::Root(77));
    assert_eq!(env.episode_stats(0), stats);
    assert_eq!(env.running_stats(0).minutes, 0);
}

#[test]
fn an_interval_presses_once_and_adds_up() {
    let pressing = [4.0, 0.5, 10.0, 1.0, 1.0];
    let holding = [4.0, 0.5, 10.0, 1.0, 0.0];
    let mut long = calm(1, Options { decision_interval_min: 5, ..Options::default() });
    let mut short = calm(1, Options::default());
    let (mut long_out, mut out) = (long.columns(), short.columns());
    long.step(Actions::Dials(&pressing), &mut long_out.borrow()).unwrap();
    let (mut terms, mut reward, mut cost) = ([0.0; 3], 0.0, 0.0);
    for minute in 0..5 {
        let dials = if minute == 0 { &pressing } else { &holding };
        short.step(Actions::Dials(dials), &mut out.borrow()).unwrap();
        terms.iter_mut().zip(&out.terms).for_each(|(sum, term)| *sum += term);
        reward += out.rewards[0];
        cost += out.cost[0];
    }
    assert_eq!(long_out.signals[PRESSES], 1.0);
    assert_eq!(long_out.signals, out.signals);
    assert_eq!(long_out.observations, out.observations);
    assert_eq!(long_out.terms, terms);
    assert_eq!(long.digest(0), short.digest(0));
    assert!((long_out.rewards[0] - reward).abs() < 1e-12);
    assert!((long_out.cost[0] - cost).abs() < 1e-12);
    assert_eq!((long.running_stats(0).steps, long.running_stats(0).minutes), (1, 5));
}

#[test]
fn an_interval_stops_where_each_episode_ends() {
    let options = Options { decision_interval_min: 1000, ..Options::default() };
    let mut env = calm(9, options);
    let mut out = env.columns();
    let lengths: Vec<u32> = (0..9).map(|i| env.row(i).length_min).collect();
    assert!(lengths.iter().any(|&length| length != lengths[0]), "lengths are drawn");
    let actions: Vec<f64> = (0..9).flat_map(|_| CALM).collect();
    let summary = env.step(Actions::Dials(&actions), &mut out.borrow()).unwrap();
    assert_eq!((summary.ended, summary.reset), (9, 0));
    for (i, &length) in lengths.iter().enumerate() {
        assert!(out.truncated[i] && !out.terminated[i]);
        assert_eq!(env.row(i).minute, length);
    }
}

#[test]
fn an_interval_stops_where_the_world_ends_the_episode() {
    let options = Options { decision_interval_min: 1000, ..Options::default() };
    let toy = Toy::<4> { wall: 1.0, ..Toy::new() };
    let mut env = VecEnv::new(Arc::new(toy), 40, options).unwrap();
    reset(&mut env, Seeds::Root(2));
    let mut out = env.columns();
    env.step(Actions::Stops8(&[0; 200]), &mut out.borrow()).unwrap();
    let early = (0..40).filter(|&i| env.row(i).minute < env.row(i).length_min);
    assert!(early.clone().count() > 5);
    for i in early {
        assert!(out.terminated[i] && !out.truncated[i]);
        // One minute over the wall, and no further.
        let (x, slope) = (out.signals[i * 8 + X], out.signals[i * 8 + X + 1]);
        assert!(x.abs() > 1.0 && x.abs() < 1.0 + slope.abs() + 0.7, "{x}");
    }
}

#[test]
fn nothing_paid_is_zero_and_not_minus_zero() {
    let mut env = calm(50, Options::default());
    let mut out = env.columns();
    let actions: Vec<f64> = (0..50).flat_map(|_| [1.0, 0.0, 0.0, 1.0, 0.0]).collect();
    env.step(Actions::Dials(&actions), &mut out.borrow()).unwrap();
    let free: Vec<f64> = out.rewards.iter().copied().filter(|&reward| reward == 0.0).collect();
    assert!(!free.is_empty() && free.len() < 50);
    assert!(free.iter().all(|reward| reward.is_sign_positive()));
    assert!(out.rewards.iter().all(|&reward| reward <= 0.0));
}

#[test]
fn max_minutes_shortens_and_lengthens() {
    for length in [1, 5, 50] {
        let mut env = calm(3, Options { max_minutes: Some(length), ..Options::default() });
        let mut out = env.columns();
        let actions: Vec<f64> = (0..3).flat_map(|_| CALM).collect();
        for minute in 1..=length {
            env.step(Actions::Dials(&actions), &mut out.borrow()).unwrap();
            assert_eq!(out.truncated, [minute == length; 3]);
        }
        assert_eq!(env.row(0).length_min, length);
    }
}

#[test]
fn cost_is_what_the_budget_lost() {
    let mut env = calm(2, Options { autoreset: Autoreset::SameStep, ..Options::default() });
    let mut out = env.columns();
    let mut left = [1.0; 2];
    let mut total = 0.0;
    for _ in 0..60 {
        let actions = policy(&env);
        env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
        for (i, left) in left.iter_mut().enumerate() {
            let now = out.signals[i * 8 + BUDGET];
            if env.began()[i] {
                assert_eq!(now, 1.0);
                assert!(out.cost[i] > 0.0);
            } else {
                assert_eq!(out.cost[i], *left - now);
            }
            *left = now;
            total += out.cost[i];
        }
    }
    assert!(total > 0.1);
}

#[test]
fn views_have_their_columns() {
    for (view, names) in [
        (View::Operator, &["x", "budget_left", "presses", "minute", "level_now"][..]),
        (
            View::Full,
            &["x", "budget_left", "presses", "minute", "level_now", "slope", "gain_now"][..],
        ),
    ] {
        let mut env = calm(3, Options { view, ..Options::default() });
        assert_eq!(env.obs_len(), names.len());
        let mut out = env.columns();
        let actions = policy(&env);
        env.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
        for i in 0..3 {
            for (k, name) in names.iter().enumerate() {
                let index = env.spec().signal(name).unwrap();
                let natural = out.signals[i * 8 + index];
                let scaled = env.spec().signals[index].scale(natural);
                assert_eq!(out.observations[i * names.len() + k], scaled, "{name}");
            }
        }
    }
}

#[test]
fn one_can_look_at_a_row() {
    let mut env = calm(3, Options::default());
    let mut out = env.columns();
    let mut actions: Vec<f64> = (0..3).flat_map(|_| CALM).collect();
    actions[5] = 16.0;
    env.step(Actions::Dials(&actions), &mut out.borrow()).unwrap();
    let mut signals = [0.0; 8];
    env.signals(1, &mut signals).unwrap();
    assert_eq!(signals, out.signals[8..16]);
    assert_eq!(signals[LEVEL], 16.0);
    let mut dials = [0.0; 5];
    env.dials(1, &mut dials).unwrap();
    assert_eq!(dials, [16.0, 0.0, 60.0, 1.0, 0.0]);
    assert_eq!(env.drawn(1), [("slope".to_owned(), signals[1])]);
}

#[test]
fn only_the_columns_asked_for() {
    let mut env = calm(2, Options::default());
    let mut all = env.columns();
    let mut some = env.columns();
    let actions = policy(&env);
    let before: Vec<Vec<u8>> = (0..2).map(|i| env.save(i).unwrap()).collect();
    env.step(Actions::Policy(&actions), &mut all.borrow()).unwrap();
    let digest = env.digest(1);
    env.load(&[0, 1], &[&before[0], &before[1]]).unwrap();
    let mut columns = some.borrow();
    (columns.final_observations, columns.terms) = (None, None);
    (columns.cost, columns.signals) = (None, None);
    env.step(Actions::Policy(&actions), &mut columns).unwrap();
    assert_eq!(env.digest(1), digest);
    assert_eq!((some.observations, some.rewards), (all.observations, all.rewards));
}
