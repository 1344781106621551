//! No bit of a row depends on threads, batch size, position, lanes, or what was played before.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod drive;

use common::Toy;
use drive::{drive, everything, policy, reset};
use oncall_core::streams::row_seed;
use oncall_core::{Generator, Split, World};
use oncall_vec::{Actions, Autoreset, Options, Seeds, VecEnv};
use std::sync::Arc;

fn env<W: World>(world: W, rows: usize, options: Options) -> VecEnv<W> {
    VecEnv::new(Arc::new(world), rows, options).unwrap()
}

fn same_step(threads: usize) -> Options {
    Options { autoreset: Autoreset::SameStep, threads, ..Options::default() }
}

/// Digests of the rows of one batch after 60 steps.
fn digests<W: World>(world: W, rows: usize, options: Options) -> Vec<u64> {
    let mut env = env(world, rows, options);
    reset(&mut env, Seeds::Root(11));
    drive(&mut env, 60)
}

#[test]
fn lanes_threads_and_batch_sizes() {
    let reference = digests(Toy::<1>::new(), 1024, same_step(1));
    for rows in [1, 2, 31, 32, 33, 1024] {
        for threads in [1, 2, 8] {
            assert!(digests(Toy::<1>::new(), rows, same_step(threads)) == reference[..rows]);
            assert!(digests(Toy::<4>::new(), rows, same_step(threads)) == reference[..rows]);
        }
    }
    // A world with more lanes than rows, and a number that does not divide the batch.
    assert!(digests(Toy::<16>::new(), 1, same_step(1)) == reference[..1]);
    assert!(digests(Toy::<7>::new(), 1024, same_step(3)) == reference);
}

#[test]
fn threads_with_long_decisions() {
    let options = |threads| Options { decision_interval_min: 5, ..same_step(threads) };
    let reference = digests(Toy::<1>::new(), 300, options(1));
    assert!(digests(Toy::<4>::new(), 300, options(8)) == reference);
}

#[test]
fn rows_differ() {
    let mut digests = digests(Toy::<4>::new(), 1024, same_step(1));
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), 1024);
}

#[test]
fn threads_can_change_on_the_way() {
    let mut steady = env(Toy::<4>::new(), 1024, same_step(1));
    let mut moody = env(Toy::<4>::new(), 1024, same_step(1));
    reset(&mut steady, Seeds::Root(1));
    reset(&mut moody, Seeds::Root(1));
    for threads in [1, 3, 2, 1, 8] {
        moody.set_threads(threads).unwrap();
        assert_eq!(moody.options().threads, threads);
        assert!(drive(&mut steady, 5) == drive(&mut moody, 5));
    }
}

#[test]
fn seed_a_seed_b_seed_a() {
    let mut env = env(Toy::<4>::new(), 9, same_step(1));
    let mut of = |root| {
        reset(&mut env, Seeds::Root(root));
        drive(&mut env, 50)
    };
    let (a, b) = (of(1), of(2));
    assert!(a.iter().zip(&b).all(|(a, b)| a != b));
    assert_eq!(of(1), a);
}

#[test]
fn a_list_gives_each_row_what_it_gets_alone() {
    let seeds = [Some(3), Some(900), Some(row_seed(5, 2))];
    let mut many = env(Toy::<4>::new(), 3, same_step(1));
    reset(&mut many, Seeds::Rows(&seeds));
    let together = drive(&mut many, 40);
    for (seed, together) in seeds.iter().zip(&together) {
        let mut one = env(Toy::<1>::new(), 1, same_step(1));
        reset(&mut one, Seeds::Rows(&[*seed]));
        assert_eq!(drive(&mut one, 40), [*together]);
    }
    let mut root = env(Toy::<4>::new(), 3, same_step(1));
    reset(&mut root, Seeds::Root(5));
    assert_eq!(root.row(2).seed, seeds[2].unwrap());
    assert_eq!(drive(&mut root, 40)[2], together[2]);
}

#[test]
fn kept_seeds_play_the_next_episode() {
    let mut env = env(Toy::<4>::new(), 5, same_step(1));
    reset(&mut env, Seeds::Root(1));
    let first: Vec<u64> = (0..5).map(|i| env.digest_drawn(i)).collect();
    reset(&mut env, Seeds::Keep);
    assert!((0..5).all(|i| env.row(i).episode == 1 && env.digest_drawn(i) != first[i]));
    let seeds = [None, Some(env.row(1).seed), None, Some(4), None];
    reset(&mut env, Seeds::Rows(&seeds));
    let episodes: Vec<u64> = (0..5).map(|i| env.row(i).episode).collect();
    assert_eq!(episodes, [2, 0, 2, 0, 2]);
    assert_eq!(env.digest_drawn(1), first[1]);
    assert_eq!(env.row(3).seed, 4);
}

#[test]
fn splits_are_disjoint() {
    let drawn = |split| {
        let mut env = env(Toy::<4>::new(), 500, Options { split, ..Options::default() });
        reset(&mut env, Seeds::Root(1));
        (0..500).map(|i| env.digest_drawn(i)).collect::<Vec<_>>()
    };
    let (train, test) = (drawn(Split::Train), drawn(Split::Test));
    assert!(train.iter().all(|digest| !test.contains(digest)));
}

#[test]
fn mulberry32_seeds_have_32_bits() {
    let toy = || Toy::<1> { generator: Generator::Mulberry32, ..Toy::new() };
    let mut env = env(toy(), 3, Options::default());
    reset(&mut env, Seeds::Root(u64::MAX));
    for i in 0..3 {
        assert_eq!(env.row(i).seed, row_seed(u64::MAX, i as u64) & 0xffff_ffff);
    }
    reset(&mut env, Seeds::Rows(&[Some(0xffff_ffff), None, None]));
    assert_eq!(env.row(0).seed, 0xffff_ffff);
}

#[test]
fn a_masked_reset_leaves_the_others_alone() {
    let mut with = env(Toy::<4>::new(), 11, Options::default());
    let mut without = env(Toy::<4>::new(), 11, Options::default());
    for env in [&mut with, &mut without] {
        reset(env, Seeds::Root(8));
        drive(env, 17);
    }
    let mask: Vec<bool> = (0..11).map(|i| i % 3 == 1).collect();
    let mut out = with.columns();
    with.reset(Seeds::Root(99), Some(&mask), &mut out.borrow_reset()).unwrap();
    let mut observations = vec![0.0; 11 * with.obs_len()];
    without.observe_into(&mut observations).unwrap();
    let width = with.obs_len();
    for (i, &masked) in mask.iter().enumerate() {
        let span = i * width..(i + 1) * width;
        assert_eq!(masked, out.observations[span.clone()] != observations[span]);
        assert_eq!(masked, with.digest(i) != without.digest(i));
        assert_eq!(masked, with.running_stats(i) != without.running_stats(i));
        assert_eq!(with.episode_stats(i), without.episode_stats(i));
        assert_eq!(with.began()[i], masked);
    }
    with.observe_into(&mut observations).unwrap();
    assert_eq!(observations, out.observations);
    let (with, without) = (drive(&mut with, 30), drive(&mut without, 30));
    for i in (0..11).filter(|i| !mask[*i]) {
        assert_eq!(with[i], without[i]);
    }
}

#[test]
fn an_empty_mask_changes_no_row() {
    let mut env = env(Toy::<4>::new(), 5, Options::default());
    reset(&mut env, Seeds::Root(8));
    drive(&mut env, 7);
    let (before, mut out) = (everything(&env), env.columns());
    env.reset(Seeds::Root(1), Some(&[false; 5]), &mut out.borrow_reset()).unwrap();
    assert_eq!(everything(&env), before);
}

/// Every form of the same action leads to the same state.
#[test]
fn forms_of_actions_agree() {
    let of = |actions: Actions<'_>| {
        let mut env = env(Toy::<4>::new(), 2, Options::default());
        reset(&mut env, Seeds::Root(8));
        let mut out = env.columns();
        env.step(actions, &mut out.borrow()).unwrap();
        [env.digest(0), env.digest(1)]
    };
    // level 4, gain -1, heat kept or 600, mode off, push.
    let stops = [2_i8, 1, 3, 1, 1, 2, 1, 3, 1, 1];
    let expected = of(Actions::Stops8(&stops));
    assert_eq!(of(Actions::Stops32(&stops.map(i32::from))), expected);
    assert_eq!(of(Actions::Stops64(&stops.map(i64::from))), expected);
    let dials = [4.0, -1.0, 600.0, 0.0, 1.0, 4.2, -1.0, 600.0, 0.3, 0.9];
    assert_eq!(of(Actions::Dials(&dials)), expected);
    assert_eq!(of(Actions::Policy(&dials)), expected);
    let level = 2.0 * 3.0 / 39.0 - 1.0;
    let boxed = [level, -0.5, 1.0, -1.0, 1.0, level, -0.5, 1.0, -0.4, 0.2];
    assert_eq!(of(Actions::Box64(&boxed)), expected);
    assert_eq!(of(Actions::Box32(&boxed.map(|x| x as f32))), expected);
    let kept = of(Actions::Stops8(&[0; 10]));
    assert_ne!(kept, expected);
    assert_eq!(of(Actions::Policy(&[f64::NAN; 10])), kept);
}

/// The actions of these tests do not depend on the position of a row.
#[test]
fn the_policy_is_a_function_of_the_episode() {
    let mut a = env(Toy::<1>::new(), 1, Options::default());
    let mut b = env(Toy::<1>::new(), 2, Options::default());
    reset(&mut a, Seeds::Rows(&[Some(6)]));
    reset(&mut b, Seeds::Rows(&[Some(1), Some(6)]));
    let bits = |xs: &[f64]| xs.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&policy(&a)), bits(&policy(&b)[5..]));
}
