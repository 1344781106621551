//! One seed, one trajectory: whatever the threads, the batch, or a save and restore in the middle.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::Split;
use oncall_env::{Actions, AnyVecEnv, Autoreset, Options, Seeds, shipped_names};
use oncall_tests::{Dice, engine, random_stops, reset_rows, threads, trajectory};

fn seeds(rows: usize) -> Vec<u64> {
    (0..rows as u64).map(|row| row * 7919 + 3).collect()
}

#[test]
fn threads_and_batch_size_change_no_bit() {
    // 260 steps: every row of `mixed` ends an episode and begins another.
    let alone: Vec<u64> = seeds(33)
        .iter()
        .map(|&seed| trajectory(&mut engine("mixed", 1, threads(1)), &[seed], 260)[0])
        .collect();
    for rows in [2, 31, 32, 33] {
        for count in [1, 2, 8] {
            let found = trajectory(&mut engine("mixed", rows, threads(count)), &seeds(rows), 260);
            assert_eq!(found, alone[..rows], "{rows} rows, {count} threads");
        }
    }
}

#[test]
fn a_large_batch_is_the_same_on_1_2_and_8_threads() {
    let of = |count| trajectory(&mut engine("mixed-hard", 1024, threads(count)), &seeds(1024), 40);
    let one = of(1);
    assert_eq!(one, of(2));
    assert_eq!(one, of(8));
    let alone = trajectory(&mut engine("mixed-hard", 1, threads(1)), &seeds(1024)[1000..1001], 40);
    assert_eq!(one[1000], alone[0]);
    let mut distinct = one.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(distinct.len(), 1024, "rows of a batch differ");
}

#[test]
fn threads_may_change_in_the_middle() {
    let mut fixed = engine("spike", 64, threads(1));
    let mut changing = engine("spike", 64, threads(1));
    reset_rows(&mut fixed, &seeds(64));
    reset_rows(&mut changing, &seeds(64));
    let mut columns = fixed.columns();
    let mut dice = Dice(5);
    for step in 0..30 {
        changing.set_threads([1, 3, 2][step % 3]).unwrap();
        let stops = random_stops(fixed.spec(), 64, &mut dice);
        fixed.step(Actions::Stops64(&stops), &mut columns.borrow()).unwrap();
        changing.step(Actions::Stops64(&stops), &mut columns.borrow()).unwrap();
    }
    assert!((0..64).all(|row| fixed.digest(row) == changing.digest(row)));
}

#[test]
fn seed_a_then_b_then_a_again() {
    for name in shipped_names() {
        let mut env = engine(name, 3, threads(1));
        let first = trajectory(&mut env, &[1, 2, 3], 25);
        let other = trajectory(&mut env, &[4, 5, 6], 25);
        assert_ne!(first, other, "{name}");
        assert_eq!(first, trajectory(&mut env, &[1, 2, 3], 25), "{name}");
        let fresh = trajectory(&mut engine(name, 3, threads(1)), &[1, 2, 3], 25);
        assert_eq!(first, fresh, "{name}: a used engine equals a new one");
    }
}

#[test]
fn a_root_seed_gives_every_row_its_own_and_repeats() {
    let digests = |root| {
        let mut env = engine("spike-hard", 16, threads(1));
        let mut columns = env.columns();
        env.reset(Seeds::Root(root), None, &mut columns.borrow_reset()).unwrap();
        (0..16).map(|row| env.digest_drawn(row)).collect::<Vec<_>>()
    };
    let (a, b) = (digests(7), digests(8));
    assert_eq!(a, digests(7));
    let mut all: Vec<u64> = a.into_iter().chain(b).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 32);
}

#[test]
fn a_restored_row_goes_on_to_the_bit_at_any_place_and_in_any_engine() {
    let mut env = engine("mixed", 5, threads(1));
    reset_rows(&mut env, &seeds(5));
    let mut columns = env.columns();
    let mut dice = Dice(11);
    let spec = env.spec().clone();
    let play = |env: &mut AnyVecEnv, stops: &[i64]| {
        let mut columns = env.columns();
        env.step(Actions::Stops64(stops), &mut columns.borrow()).unwrap();
    };
    for _ in 0..50 {
        play(&mut env, &random_stops(&spec, 5, &mut dice));
    }
    let states: Vec<Vec<u8>> = (0..5).map(|row| env.save(row).unwrap()).collect();
    let mut other = engine("mixed", 8, threads(2));
    other.reset(Seeds::Root(99), None, &mut other.columns().borrow_reset()).unwrap();
    let places = [7, 0, 3, 4, 1];
    let borrowed: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
    other.load(&places, &borrowed).unwrap();
    for _ in 0..220 {
        let stops = random_stops(&spec, 5, &mut dice);
        let width = spec.dials.len();
        let mut moved = vec![0; 8 * width];
        for (row, place) in places.iter().enumerate() {
            moved[place * width..][..width].copy_from_slice(&stops[row * width..][..width]);
        }
        play(&mut env, &stops);
        play(&mut other, &moved);
        for (row, place) in places.iter().enumerate() {
            assert_eq!(env.digest(row), other.digest(*place));
        }
    }
    env.reset(Seeds::Keep, None, &mut columns.borrow_reset()).unwrap();
}

#[test]
fn train_and_test_splits_share_no_episode() {
    let drawn = |split, name: &str| {
        let options = Options { split, autoreset: Autoreset::SameStep, ..Options::default() };
        let mut env = engine(name, 64, options);
        reset_rows(&mut env, &(0..64).collect::<Vec<_>>());
        let mut all: Vec<u64> = (0..64).map(|row| env.digest_drawn(row)).collect();
        env.reset(Seeds::Keep, None, &mut env.columns().borrow_reset()).unwrap();
        all.extend((0..64).map(|row| env.digest_drawn(row)));
        all
    };
    for name in shipped_names() {
        let mut all = drawn(Split::Train, name);
        all.extend(drawn(Split::Test, name));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4 * 64, "{name}");
    }
}

#[test]
fn two_policies_meet_the_same_morning() {
    let mut quiet = engine("mixed-hard", 32, threads(1));
    let mut busy = engine("mixed-hard", 32, threads(1));
    reset_rows(&mut quiet, &seeds(32));
    reset_rows(&mut busy, &seeds(32));
    let spec = quiet.spec().clone();
    let offered = spec.signal("offered_rps").unwrap();
    let (mut a, mut b) = (quiet.columns(), busy.columns());
    let mut dice = Dice(3);
    for _ in 0..100 {
        quiet.step(Actions::Stops64(&vec![0; 32 * 8]), &mut a.borrow()).unwrap();
        let stops = random_stops(&spec, 32, &mut dice);
        busy.step(Actions::Stops64(&stops), &mut b.borrow()).unwrap();
        let width = spec.signals.len();
        for row in 0..32 {
            assert_eq!(a.signals[row * width + offered], b.signals[row * width + offered]);
        }
    }
}
