//! Discovery through the engine: what every environment promises.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use oncall_env::{
    Actions, AnyVecEnv, AnyWorld, Autoreset, ErrorKind, Options, OwnedColumns, Seeds,
    discovery_names, shipped,
};

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
                let word = scramble(row << 40 | step << 8 | at as u64);
                // Most dials stay in most steps, as with an operator.
                if word.is_multiple_of(8) { (word / 8 % dial.choices() as u64) as i8 } else { 0 }
            })
        })
        .collect()
}

fn scramble(word: u64) -> u64 {
    let z = word.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z ^ (z >> 31)
}

fn drive(env: &mut AnyVecEnv, out: &mut OwnedColumns, steps: std::ops::Range<u64>) {
    for step in steps {
        let actions = stops(env, step);
        env.step(Actions::Stops8(&actions), &mut out.borrow()).unwrap();
    }
}

fn digests(env: &AnyVecEnv) -> Vec<u64> {
    (0..env.num_envs()).map(|row| env.digest(row)).collect()
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

/// No bit of a row depends on threads, batch size, position, or what was played before.
#[test]
fn threads_batches_and_order_change_nothing() {
    const NAME: &str = "mixed-discovery";
    let options =
        |threads| Options { threads, autoreset: Autoreset::SameStep, ..Options::default() };
    let run = |rows, threads| {
        let mut env = engine(NAME, rows, options(threads));
        let mut out = reset(&mut env, 11);
        drive(&mut env, &mut out, 0..60);
        (digests(&env), out.rewards)
    };
    let reference = run(9, 1);
    for threads in [2, 8] {
        assert_eq!(run(9, threads), reference, "{threads} threads");
    }
    let smaller = run(4, 1);
    assert_eq!(smaller.0[..], reference.0[..4]);
    assert_eq!(smaller.1[..], reference.1[..4]);
    // A, B, A in one engine.
    let mut env = engine(NAME, 2, options(1));
    let mut seen = Vec::new();
    for root in [1, 2, 1] {
        let mut out = reset(&mut env, root);
        drive(&mut env, &mut out, 0..30);
        seen.push((digests(&env), out.observations));
    }
    assert_eq!(seen[0], seen[2]);
    assert_ne!(seen[0], seen[1]);
}

#[test]
fn a_row_goes_on_from_bytes_snapshots_and_copies() {
    let mut env = engine("control-plane-outage", 3, Options::default());
    let mut out = reset(&mut env, 5);
    drive(&mut env, &mut out, 0..150);
    let (bytes, snapshot) = (env.save(1).unwrap(), env.snapshot(&[1]).unwrap());
    drive(&mut env, &mut out, 150..200);
    let expected = env.digest(1);
    let mut other = engine("control-plane-outage", 3, Options { threads: 2, ..Options::default() });
    let mut out = reset(&mut other, 77);
    other.load(&[1], &[&bytes]).unwrap();
    drive(&mut other, &mut out, 150..200);
    assert_eq!(other.digest(1), expected);
    other.restore(&snapshot, &[1]).unwrap();
    drive(&mut other, &mut out, 150..200);
    assert_eq!(other.digest(1), expected);
    other.copy_rows(&[1], &[0]).unwrap();
    assert_eq!(other.digest(0), expected);
}

#[test]
fn foreign_and_damaged_states_are_refused_and_change_nothing() {
    let mut env = engine("calm", 1, Options::default());
    let mut out = reset(&mut env, 5);
    drive(&mut env, &mut out, 0..5);
    let (before, bytes) = (env.digest(0), env.save(0).unwrap());
    let mut refused = |bytes: &[u8], part: &str| {
        let error = env.load(&[0], &[bytes]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::State, "{error}");
        assert!(error.to_string().contains(part), "{error}");
        assert_eq!(env.digest(0), before);
    };
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 1;
    refused(&damaged, "corrupt");
    refused(&bytes[..bytes.len() - 9], "cut short");
    for (name, part) in [
        ("calm@tenth", "another scenario"),
        ("crash-wave", "another scenario"),
        ("steady", "another world"),
    ] {
        let mut other = engine(name, 1, Options::default());
        reset(&mut other, 5);
        refused(&other.save(0).unwrap(), part);
    }
    let mut thirty = engine("calm", 1, Options { decision_interval_min: 3, ..Options::default() });
    reset(&mut thirty, 5);
    refused(&thirty.save(0).unwrap(), "decision_interval_s = 30: expected 10");
    let fleet = engine("steady", 1, Options::default());
    let mut fleet_env = fleet;
    reset(&mut fleet_env, 1);
    let error = env.restore(&fleet_env.snapshot(&[0]).unwrap(), &[0]).unwrap_err();
    assert_eq!(error.to_string(), r#"snapshot of the world "fleet": expected "discovery""#);
}

#[test]
fn a_longer_decision_is_several_ticks_of_one() {
    let totals = |interval: u32| {
        let options = Options { decision_interval_min: interval, ..Options::default() };
        let mut env = engine("crash-wave", 1, options);
        let mut out = reset(&mut env, 3);
        let keep = vec![0_i8; env.spec().dials.len()];
        for _ in 0..360 / interval {
            env.step(Actions::Stops8(&keep), &mut out.borrow()).unwrap();
        }
        assert!(out.truncated[0]);
        let stats = env.episode_stats(0);
        (stats.steps, stats.minutes, stats.return_)
    };
    let (one, three) = (totals(1), totals(3));
    assert_eq!((one.0, one.1), (360, 360));
    assert_eq!((three.0, three.1), (120, 360));
    assert!((one.2 - three.2).abs() < 1e-9 * one.2.abs());
}

#[test]
fn minutes_are_minutes_and_intervals_have_their_name() {
    let options = Options { max_minutes: Some(2), ..Options::default() };
    let mut env = engine("calm", 1, options);
    let mut out = reset(&mut env, 3);
    let keep = vec![0_i8; env.spec().dials.len()];
    for step in 1..=12 {
        env.step(Actions::Stops8(&keep), &mut out.borrow()).unwrap();
        assert_eq!(out.truncated[0], step == 12);
    }
    let world = || shipped("calm").unwrap().world;
    let bad = Options { decision_interval_min: 0, ..Options::default() };
    let error = AnyVecEnv::new(world(), 1, bad).unwrap_err();
    assert_eq!(error.to_string(), "decision_interval_s = 0: expected 10..=14400");
}

#[test]
fn each_mode_of_autoreset_begins_another_episode() {
    for autoreset in [Autoreset::NextStep, Autoreset::SameStep] {
        let options = Options { autoreset, max_minutes: Some(1), ..Options::default() };
        let mut env = engine("calm", 2, options);
        let mut out = reset(&mut env, 3);
        let first = env.digest_drawn(0);
        drive(&mut env, &mut out, 0..8);
        assert_eq!(env.row(0).episode, 1, "{autoreset:?}");
        assert_ne!(env.digest_drawn(0), first);
    }
}

/// Train and test share no episode, and a mixture draws what its weights say.
#[test]
fn splits_and_mixtures() {
    let drawn = |split| {
        let mut env = engine("mixed-discovery", 40, Options { split, ..Options::default() });
        reset(&mut env, 3);
        let names: Vec<String> = (0..40).map(|row| env.scenario_of(row).to_owned()).collect();
        let digests: std::collections::BTreeSet<u64> =
            (0..40).map(|row| env.digest_drawn(row)).collect();
        (names, digests)
    };
    let (train, test) = (drawn(oncall_core::Split::Train), drawn(oncall_core::Split::Test));
    assert_eq!((train.1.len(), test.1.len()), (40, 40));
    assert!(train.1.is_disjoint(&test.1));
    let names: std::collections::BTreeSet<&String> = train.0.iter().chain(&test.0).collect();
    assert!(names.len() >= 10, "{names:?}");
}

#[test]
fn bad_actions_name_the_dial_and_change_nothing() {
    let mut env = engine("calm", 2, Options::default());
    let mut out = reset(&mut env, 3);
    let before = digests(&env);
    let dials = env.spec().dials.len();
    let mut stops = vec![0_i8; 2 * dials];
    stops[dials + 2] = 9;
    let error = env.step(Actions::Stops8(&stops), &mut out.borrow()).unwrap_err().to_string();
    assert!(error.contains("failure_threshold") && error.contains('9'), "{error}");
    let mut natural = vec![f64::NAN; 2 * dials];
    for (value, named) in [(0.5, "probe_interval_s"), (f64::INFINITY, "probe_interval_s")] {
        natural[0] = value;
        let error = env.step(Actions::Policy(&natural), &mut out.borrow()).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    assert_eq!(digests(&env), before);
}

#[test]
fn a_scale_is_chosen_by_name() {
    for (scale, instances) in [("small", 1_000), ("tenth", 10_000), ("full", 100_000)] {
        let scenario = shipped(&format!("crash-wave@{scale}")).unwrap();
        assert_eq!(scenario.name.contains('@'), scale != "small");
        let AnyWorld::Discovery(world) = &scenario.world else { panic!("of discovery") };
        assert_eq!(world.scale().env_shape().instances, instances);
        assert_eq!(scenario.hash, scenario.world.params_hash());
    }
    assert!(shipped("crash-wave@huge").is_none());
    let error = shipped("calm").unwrap().with_scale("huge").unwrap_err().to_string();
    assert_eq!(error, r#"scale = "huge": expected one of small, tenth, full"#);
    let error = shipped("spike").unwrap().with_scale("full").unwrap_err().to_string();
    assert!(error.contains("only scenarios of discovery"), "{error}");
}
