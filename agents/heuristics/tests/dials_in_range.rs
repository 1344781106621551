//! Whatever the dashboard shows, a policy's dials stay inside their ranges, and what no operator sees
//! changes nothing.

use oncall_core::View;
use oncall_fleet::{dials, signals};
use oncall_heuristics::{Policy, PolicyKey, PolicySpec, build, build_for, describe, names_for};
use proptest::prelude::*;

fn fleet() -> oncall_core::Spec {
    oncall_fleet::world::spec()
}

/// A row of any numbers in and far beyond the ranges of the signals, minutes in order.
fn rows() -> impl Strategy<Value = Vec<Vec<f64>>> {
    let row = signals::table()
        .into_iter()
        .map(|signal| {
            let wide = signal.high * 20.0;
            prop_oneof![
                6 => signal.low..=signal.high,
                1 => Just(signal.low),
                1 => Just(0.0),
                1 => Just(signal.high),
                1 => -wide..=wide,
            ]
        })
        .collect::<Vec<_>>();
    let minute = signals::Sig::shift_min as usize;
    prop::collection::vec(row, 1..12).prop_map(move |mut rows| {
        for (index, row) in rows.iter_mut().enumerate() {
            row[minute] = index as f64;
        }
        rows
    })
}

/// What a policy does with each of the rows.
fn play(policy: &mut dyn Policy, rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    policy.reset(PolicyKey { seed: 3, episode: 1 });
    let one = |row: &Vec<f64>| {
        let mut action = vec![f64::INFINITY; dials::index::COUNT];
        policy.act(row, &mut action);
        action
    };
    rows.iter().map(one).collect()
}

fn check(name: &str, actions: &[Vec<f64>]) -> Result<(), TestCaseError> {
    for action in actions {
        for (dial, value) in dials::table().iter().zip(action) {
            let keeps = value.is_nan() && !["warm_up", "rollback"].contains(&dial.name);
            prop_assert!(keeps || dial.accepts(*value), "{name} {} = {value}", dial.name);
        }
    }
    Ok(())
}

fn bits(actions: &[Vec<f64>]) -> Vec<u64> {
    actions.iter().flatten().map(|value| value.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn dials_stay_in_range(rows in rows(), shares in prop::collection::vec(0.0..=1.0_f64, 200)) {
        for name in names_for("fleet") {
            let mut policy = build(&PolicySpec::new(name)).unwrap();
            check(name, &play(&mut *policy, &rows))?;
            // Any parameters that the table admits.
            let description = describe(name).unwrap();
            let values: Vec<f64> =
                description.params.iter().zip(&shares).map(|(param, share)| param.from_unit(*share)).collect();
            let mut policy = build(&PolicySpec::from_values(description, &values)).unwrap();
            check(name, &play(&mut *policy, &rows))?;
        }
    }

    #[test]
    fn only_the_operators_columns_are_read(rows in rows()) {
        let hidden: Vec<usize> = signals::table()
            .iter()
            .enumerate()
            .filter(|(_, signal)| signal.view != View::Operator)
            .map(|(index, _)| index)
            .collect();
        assert!(hidden.len() > 10);
        let mut blinded = rows.clone();
        for row in &mut blinded {
            for &index in &hidden {
                row[index] = f64::NAN;
            }
        }
        for name in names_for("fleet") {
            let mut policy = build_for(&PolicySpec::new(name), &fleet(), "cache-flush").unwrap();
            prop_assert_eq!(bits(&play(&mut *policy, &rows)), bits(&play(&mut *policy, &blinded)), "{}", name);
        }
    }
}

/// A policy that has played another shift plays the next one as a new one would.
#[test]
fn a_reset_forgets_everything() {
    let row = |minute: usize, offered: f64| {
        let mut row = vec![0.5; signals::COUNT];
        row[signals::Sig::shift_min as usize] = minute as f64;
        row[signals::Sig::offered_rps as usize] = offered;
        row[signals::Sig::admitted_rps as usize] = offered;
        row
    };
    let calm: Vec<Vec<f64>> = (0..20).map(|minute| row(minute, 1000.0)).collect();
    let wild: Vec<Vec<f64>> =
        (0..20).map(|minute| row(minute, 100.0 * (minute * minute) as f64)).collect();
    for name in names_for("fleet") {
        let mut used = build_for(&PolicySpec::new(name), &fleet(), "spike").unwrap();
        play(&mut *used, &wild);
        let mut new = build_for(&PolicySpec::new(name), &fleet(), "spike").unwrap();
        assert_eq!(bits(&play(&mut *used, &calm)), bits(&play(&mut *new, &calm)), "{name}");
    }
}
