//! Bad input is named and leaves every bit as it was.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod drive;

use common::Toy;
use drive::{drive, everything, reset};
use oncall_core::{Generator, View};
use oncall_vec::{
    Actions, Autoreset, Columns, ErrorKind, Options, OwnedColumns, ResetColumns, Seeds, VecEnv,
    VecError,
};
use std::sync::Arc;

const ROWS: usize = 5;
const N: usize = ROWS * 5;

type Env = VecEnv<Toy<4>>;

fn new(options: Options) -> Result<Env, VecError> {
    VecEnv::new(Arc::new(Toy::new()), ROWS, options)
}

fn played() -> (Env, OwnedColumns) {
    let mut env = new(Options::default()).unwrap();
    reset(&mut env, Seeds::Root(1));
    drive(&mut env, 9);
    let out = env.columns();
    (env, out)
}

/// Calls, and checks the error, its message, and that neither engine nor output has changed.
fn refused(
    (env, out): (&mut Env, &mut OwnedColumns),
    kind: ErrorKind,
    message: &str,
    call: impl FnOnce(&mut Env, &mut OwnedColumns) -> Result<(), VecError>,
) {
    out.rewards.fill(7.5);
    out.observations.fill(7.5);
    out.signals.fill(7.5);
    let (before, columns) = (everything(env), out.clone());
    let error = call(env, out).unwrap_err();
    assert_eq!(error.to_string(), message);
    assert_eq!(error.kind(), kind);
    assert_eq!(everything(env), before);
    assert_eq!(*out, columns);
}

#[test]
fn options() {
    let of = |options| new(options).unwrap_err();
    let default = Options::default;
    for (error, message) in [
        (of(Options { threads: 0, ..default() }), "threads = 0: expected 1..=256"),
        (of(Options { threads: 257, ..default() }), "threads = 257: expected 1..=256"),
        (
            of(Options { decision_interval_min: 0, ..default() }),
            "decision_interval_min = 0: expected 1..=1440",
        ),
        (
            of(Options { decision_interval_min: 1441, ..default() }),
            "decision_interval_min = 1441: expected 1..=1440",
        ),
        (
            of(Options { max_minutes: Some(0), ..default() }),
            "max_minutes = 0: expected 1..=5256000",
        ),
        (
            of(Options { max_minutes: Some(u32::MAX), ..default() }),
            "max_minutes = 4294967295: expected 1..=5256000",
        ),
        (
            of(Options { view: View::Record, ..default() }),
            "view = record: expected operator or full",
        ),
    ] {
        assert_eq!((error.kind(), error.to_string().as_str()), (ErrorKind::Option, message));
    }
    for rows in [0, usize::MAX] {
        let error = VecEnv::new(Arc::new(Toy::<4>::new()), rows, default()).unwrap_err();
        assert_eq!(error.to_string(), format!("num_envs = {rows}: expected 1..=1048576"));
    }
    let (mut env, mut out) = played();
    refused((&mut env, &mut out), ErrorKind::Option, "threads = 0: expected 1..=256", |env, _| {
        env.set_threads(0)
    });
}

#[test]
fn actions() {
    let (mut env, mut out) = played();
    let mut check = |message: &str, actions: Actions<'_>| {
        let kind = if message.contains("values") { ErrorKind::Shape } else { ErrorKind::Value };
        refused((&mut env, &mut out), kind, message, |env, out| {
            env.step(actions, &mut out.borrow()).map(|_| ())
        });
    };
    // All other rows are good and would have been played.
    let mut stops = [1_i8; N];
    stops[17] = 4;
    check("actions: row 3, heat = 4: expected an index in 0..=3", Actions::Stops8(&stops));
    stops[17] = -128;
    check("actions: row 3, heat = -128: expected an index in 0..=3", Actions::Stops8(&stops));
    let mut stops = [1_i32; N];
    stops[24] = 2;
    check("actions: row 4, push = 2: expected an index in 0..=1", Actions::Stops32(&stops));
    let mut stops = [1_i64; N];
    stops[0] = i64::MIN;
    check(
        "actions: row 0, level = -9223372036854775808: expected an index in 0..=4",
        Actions::Stops64(&stops),
    );
    let mut boxes = [0.5_f32; N];
    boxes[5] = f32::NAN;
    check("actions: row 1, level = NaN: expected -1..=1", Actions::Box32(&boxes));
    let mut boxes = [0.5_f64; N];
    boxes[6] = -1.000_000_1;
    check("actions: row 1, gain = -1.0000001: expected -1..=1", Actions::Box64(&boxes));
    let mut dials = [1.0_f64; N];
    dials[10] = 40.4;
    check("actions: row 2, level = 40.4: expected 1..=40", Actions::Dials(&dials));
    dials[10] = f64::NEG_INFINITY;
    check("actions: row 2, level = -inf: expected 1..=40", Actions::Dials(&dials));
    dials[10] = f64::NAN;
    check("actions: row 2, level = NaN: expected 1..=40", Actions::Dials(&dials));
    dials[12] = -0.5;
    check(
        "actions: row 2, heat = -0.5: expected 0..=600 s, or NaN to keep",
        Actions::Policy(&dials),
    );
    check("actions: 24 values, expected 25 (5 rows of 5)", Actions::Dials(&dials[1..]));
    check("actions: 0 values, expected 25 (5 rows of 5)", Actions::Stops8(&[]));
}

#[expect(clippy::mut_mut, reason = "shortens the column in place")]
fn drop_last<T>(column: &mut &mut [T]) {
    let slice = std::mem::take(column);
    let len = slice.len() - 1;
    *column = &mut slice[..len];
}

#[test]
fn columns() {
    let (mut env, mut out) = played();
    let mut check = |message: &str, shorten: fn(&mut Columns<'_>)| {
        refused((&mut env, &mut out), ErrorKind::Shape, message, |env, out| {
            let mut columns = out.borrow();
            shorten(&mut columns);
            env.step(Actions::Stops8(&[1; N]), &mut columns).map(|_| ())
        });
    };
    check("observations: 24 values, expected 25 (5 rows of 5)", |c| drop_last(&mut c.observations));
    check("rewards: 4 values, expected 5, one for each row", |c| drop_last(&mut c.rewards));
    check("terminated: 4 values, expected 5, one for each row", |c| drop_last(&mut c.terminated));
    check("truncated: 4 values, expected 5, one for each row", |c| drop_last(&mut c.truncated));
    check("final_observations: 24 values, expected 25 (5 rows of 5)", |c| {
        drop_last(c.final_observations.as_mut().unwrap());
    });
    check("terms: 14 values, expected 15 (5 rows of 3)", |c| drop_last(c.terms.as_mut().unwrap()));
    check("cost: 4 values, expected 5, one for each row", |c| drop_last(c.cost.as_mut().unwrap()));
    check("signals: 39 values, expected 40 (5 rows of 8)", |c| {
        drop_last(c.signals.as_mut().unwrap());
    });
}

#[test]
fn order_of_calls() {
    let mut env = new(Options::default()).unwrap();
    let mut out = env.columns();
    let mut check =
        |message: &str, call: fn(&mut Env, &mut OwnedColumns) -> Result<(), VecError>| {
            refused((&mut env, &mut out), ErrorKind::Order, message, call);
        };
    check("step: rows 0, 1, 2, 3, 4 never reset: expected a reset first", |env, out| {
        env.step(Actions::Stops8(&[0; N]), &mut out.borrow()).map(|_| ())
    });
    check(
        "seeds: rows 0, 1, 2, 3, 4 has no seed to keep: expected a seed for the first reset",
        |env, out| env.reset(Seeds::Keep, None, &mut out.borrow_reset()),
    );
    check("seeds: row 1 has no seed to keep: expected a seed for the first reset", |env, out| {
        let seeds = [Some(1), None, Some(3), Some(4), Some(5)];
        env.reset(Seeds::Rows(&seeds), None, &mut out.borrow_reset())
    });
    check("mask leaves out rows 0, 2, never reset: expected a full reset first", |env, out| {
        let mask = [false, true, false, true, true];
        env.reset(Seeds::Root(1), Some(&mask), &mut out.borrow_reset())
    });
    check("row 2 never reset: expected a reset first", |env, _| env.save(2).map(|_| ()));
    check("row 2 never reset: expected a reset first", |env, _| env.snapshot(&[2]).map(|_| ()));
    check("rows 2, 1 never reset: expected a reset first", |env, _| {
        env.copy_rows(&[2, 1], &[0, 3])
    });
}

#[test]
fn ended_rows_without_autoreset() {
    let options = Options { autoreset: Autoreset::Disabled, ..Options::default() };
    let mut env = new(options).unwrap();
    reset(&mut env, Seeds::Root(1));
    let mut out = env.columns();
    for _ in 0..20 {
        if env.ended().iter().all(|&ended| !ended) {
            env.step(Actions::Stops8(&[0; N]), &mut out.borrow()).unwrap();
        }
    }
    let over: Vec<String> = (0..ROWS).filter(|&i| env.ended()[i]).map(|i| i.to_string()).collect();
    assert!(!over.is_empty() && over.len() < ROWS);
    let noun = if over.len() == 1 { "row" } else { "rows" };
    let message = format!(
        "step: the episode of {noun} {} is over and autoreset is disabled: expected a reset of \
         these rows first",
        over.join(", ")
    );
    refused((&mut env, &mut out), ErrorKind::Order, &message, |env, out| {
        env.step(Actions::Stops8(&[0; N]), &mut out.borrow()).map(|_| ())
    });
}

#[test]
fn resets() {
    let (mut env, mut out) = played();
    let mut check =
        |message: &str, call: fn(&mut Env, &mut OwnedColumns) -> Result<(), VecError>| {
            refused((&mut env, &mut out), ErrorKind::Shape, message, call);
        };
    check("mask: 4 values, expected 5, one for each row", |env, out| {
        env.reset(Seeds::Root(1), Some(&[true; 4]), &mut out.borrow_reset())
    });
    check("seeds: 6 values, expected 5, one for each row", |env, out| {
        env.reset(Seeds::Rows(&[Some(1); 6]), None, &mut out.borrow_reset())
    });
    check("observations: 24 values, expected 25 (5 rows of 5)", |env, out| {
        let observations = &mut out.observations[1..];
        env.reset(Seeds::Root(1), None, &mut ResetColumns { observations, signals: None })
    });
    check("signals: 8 values, expected 40 (5 rows of 8)", |env, out| {
        let mut columns = out.borrow_reset();
        columns.signals = columns.signals.map(|signals| &mut signals[..8]);
        env.reset(Seeds::Root(1), None, &mut columns)
    });
}

#[test]
fn seeds_of_mulberry32() {
    let toy = Toy::<4> { generator: Generator::Mulberry32, ..Toy::new() };
    let mut env = VecEnv::new(Arc::new(toy), ROWS, Options::default()).unwrap();
    reset(&mut env, Seeds::Root(1));
    let mut out = env.columns();
    refused(
        (&mut env, &mut out),
        ErrorKind::Value,
        "seeds: row 2 = 4294967296: expected 0..=4294967295, as this scenario draws with mulberry32",
        |env, out| {
            let seeds = [Some(1), None, Some(1 << 32), None, Some(u64::MAX)];
            env.reset(Seeds::Rows(&seeds), None, &mut out.borrow_reset())
        },
    );
}

#[test]
fn rows_that_are_not_there() {
    let (mut env, mut out) = played();
    let state = env.save(0).unwrap();
    let snapshot = env.snapshot(&[0, 1]).unwrap();
    let mut check = |kind, message: &str, call: &dyn Fn(&mut Env) -> Result<(), VecError>| {
        refused((&mut env, &mut out), kind, message, |env, _| call(env));
    };
    let (value, shape) = (ErrorKind::Value, ErrorKind::Shape);
    check(value, "row = 5: expected 0..=4", &|env| env.save(5).map(|_| ()));
    check(value, "row = 5: expected 0..=4", &|env| env.signals(5, &mut [0.0; 8]));
    check(value, "row = 9: expected 0..=4", &|env| env.dials(9, &mut [0.0; 5]));
    check(value, "rows = 5: expected 0..=4", &|env| env.snapshot(&[0, 5]).map(|_| ()));
    check(value, "rows = 7: expected 0..=4", &|env| env.load(&[7], &[&state]));
    check(value, "rows = 1 twice: expected each row at most once", &|env| {
        env.load(&[1, 1], &[&state, &state])
    });
    check(shape, "states: 1 values, expected 2, one for each row", &|env| {
        env.load(&[1, 2], &[&state])
    });
    check(value, "rows = 6: expected 0..=4", &|env| env.restore(&snapshot, &[0, 6]));
    check(value, "rows = 0 twice: expected each row at most once", &|env| {
        env.restore(&snapshot, &[0, 0])
    });
    check(shape, "rows: 1 values, expected 2, one for each row", &|env| {
        env.restore(&snapshot, &[0])
    });
    check(value, "from = 5: expected 0..=4", &|env| env.copy_rows(&[5], &[0]));
    check(value, "to = 5: expected 0..=4", &|env| env.copy_rows(&[0], &[5]));
    check(value, "to = 3 twice: expected each row at most once", &|env| {
        env.copy_rows(&[0, 1], &[3, 3])
    });
    check(shape, "from: 1 values, expected 2, one for each row", &|env| {
        env.copy_rows(&[0], &[3, 4])
    });
    check(shape, "signals: 7 values, expected 8 (1 rows of 8)", &|env| {
        env.signals(0, &mut [0.0; 7])
    });
    check(shape, "observations: 3 values, expected 25 (5 rows of 5)", &|env| {
        env.observe_into(&mut [0.0; 3])
    });
}
