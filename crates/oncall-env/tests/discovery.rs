//! Discovery through the engine: what every environment promises.

use oncall_env::{Actions, AnyVecEnv, Options, OwnedColumns, Seeds, discovery_names, shipped};

fn engine(name: &str, rows: usize, options: Options) -> AnyVecEnv {
    let scenario = shipped(name).unwrap_or_else(|| panic!("{name} is shipped"));
    AnyVecEnv::new(scenario.world, rows, options).unwrap()
}

fn reset(env: &mut AnyVecEnv, root: u64) -> OwnedColumns {
    let mut out = env.columns();
    env.reset(Seeds::Root(root), None, &mut out.borrow_reset()).unwrap();
    out
}

/// Stops that look random and are the same every time.
fn stops(env: &AnyVecEnv, step: u64) -> Vec<i8> {
    let dials = &env.spec().dials;
    (0..env.num_envs() as u64)
        .flat_map(|row| {
            dials.iter().enumerate().map(move |(at, dial)| {
                let word = oncall_core_word(row, step, at as u64);
                // Most dials stay in most steps, as with an operator.
                if word % 8 == 0 { (word / 8 % dial.choices() as u64) as i8 } else { 0 }
            })
        })
        .collect()
}

fn oncall_core_word(row: u64, step: u64, at: u64) -> u64 {
    let mut z = (row << 40 | step << 8 | at).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

#[test]
fn every_scenario_plays_to_its_end_with_finite_numbers_and_no_broken_invariant() {
    for name in discovery_names() {
        let mut env = engine(name, 1, Options::default());
        let mut out = reset(&mut env, 7);
        let (signals, obs_len) = (env.spec().signals.len(), env.obs_len());
        let violations = env.spec().signal("violations").unwrap();
        let mut natural = vec![0.0; signals];
        for step in 0..360 {
            let actions = stops(&env, step);
            env.step(Actions::Stops8(&actions), &mut out.borrow()).unwrap();
            assert!(out.rewards[0].is_finite(), "{name} {step}");
            env.signals(0, &mut natural).unwrap();
            for (signal, value) in env.spec().signals.iter().zip(&natural) {
                assert!(value.is_finite(), "{name} {step}: {} = {value}", signal.name);
            }
            assert_eq!(natural[violations], 0.0, "{name} {step}");
            assert!(out.observations.iter().all(|x| (-1.0..=1.0).contains(x)), "{name} {step}");
            assert_eq!(out.observations.len(), obs_len);
            assert_eq!(out.truncated[0], step == 359, "{name} {step}");
            assert!(!out.terminated[0]);
        }
    }
}
