//! The world on its own: every setting of the dials and every fault keep the invariants; states travel.

use crate::params::{Fault, Kind, Params, common};
use crate::world::{DiscoveryWorld, Lane};
use crate::{dials, reward};
use oncall_core::streams::Purpose;
use oncall_core::{Digest, EpisodeKey, Generator, Split, World as _};

fn key(seed: u64) -> EpisodeKey {
    EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg)
}

/// A scenario in which one fault follows another, of every kind, with all checks on.
fn everything() -> DiscoveryWorld {
    let mut params = Params::defaults("everything");
    params.verify = true;
    for (at, &kind) in Kind::ALL.iter().enumerate() {
        let mut fault = Fault::defaults(kind, 0);
        fault.values[common::AT] = 2.0 * at as f64;
        params.numbers.faults.push(fault);
    }
    DiscoveryWorld::single(params)
}

/// Actions that look random: each dial is turned in one tick of six, to anywhere in its range.
fn wild(key: EpisodeKey, tick: u64) -> Vec<f64> {
    let mut stream = key.stream(Purpose::Policy, tick);
    let table = dials::table();
    (table.iter())
        .map(|dial| {
            let (turn, to) = (stream.uniform(), stream.uniform());
            if turn < 1.0 / 6.0 { dial.from_box(2.0 * to - 1.0) } else { f64::NAN }
        })
        .collect()
}

fn step(world: &DiscoveryWorld, lane: &mut Lane, action: &[f64]) -> [f64; reward::TERMS] {
    let mut terms = [f64::NAN; reward::TERMS];
    world.step(lane, &[true], action, &mut terms, &mut [true]);
    terms
}

fn digest(world: &DiscoveryWorld, lane: &Lane) -> u64 {
    let mut digest = Digest::new();
    world.digest(lane, 0, &mut digest);
    digest.value()
}

#[test]
fn whatever_is_turned_and_whatever_fails_no_invariant_breaks() {
    let world = everything();
    let violations = world.spec().signal("violations").unwrap();
    let mut signals = vec![0.0; world.spec().signals.len()];
    for seed in 0..6 {
        let mut lane = world.new_block();
        world.reset(&mut lane, 0, key(seed));
        for tick in 0..world.length_min(&lane, 0) {
            let terms = step(&world, &mut lane, &wild(key(seed), u64::from(tick)));
            assert!(terms.iter().all(|term| term.is_finite() && *term >= 0.0), "{terms:?}");
            world.signals(&lane, 0, &mut signals);
            for (signal, value) in world.spec().signals.iter().zip(&signals) {
                assert!(value.is_finite(), "seed {seed}, tick {tick}: {}", signal.name);
            }
            let found = lane.violations();
            assert!(found.is_empty(), "seed {seed}, tick {tick}: {found:?}");
            assert_eq!(signals[violations], 0.0);
        }
        lane.check_accounts();
        assert!(lane.violations().is_empty(), "seed {seed}: {:?}", lane.violations());
    }
}

#[test]
fn what_the_console_knows_is_right() {
    let world = everything();
    let signal = |name: &str| world.spec().signal(name).unwrap();
    let mut signals = vec![0.0; world.spec().signals.len()];
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, key(1));
    world.signals(&lane, 0, &mut signals);
    assert_eq!(signals[signal("episode_min")], 0.0);
    assert_eq!(signals[signal("episode_left_min")], 60.0);
    assert_eq!(signals[signal("rollout_next_min")], 5.0);
    assert_eq!(signals[signal("rollout_next_share")], 0.1);
    assert_eq!(signals[signal("truth_to_onset_min")], 5.0);
    assert_eq!(signals[signal("budget_left")], 1.0);
    assert!(signals[signal("requests_per_s")] > 200.0, "the opening minute was scraped");
    assert!((signals[signal("ready_share_r1")] - 1.0).abs() < 0.05);
    let keep = [f64::NAN; dials::COUNT];
    // The outage of the sixth place lasts from minute 17 to minute 27.
    let (mut unseen, mut frozen) = (Vec::new(), Vec::new());
    for tick in 1..=200_u32 {
        step(&world, &mut lane, &keep);
        world.signals(&lane, 0, &mut signals);
        let minute = f64::from(tick) / 6.0;
        assert!((signals[signal("episode_min")] - minute).abs() < 1e-9);
        if signals[signal("catalog_seen_r2")] == 0.0 {
            unseen.push(minute);
            frozen.push(signals[signal("catalog_writes_per_s_r2")].to_bits());
        }
    }
    let (first, last) = (unseen[0], unseen[unseen.len() - 1]);
    assert!((17.0..17.6).contains(&first) && (26.9..27.6).contains(&last), "{first} {last}");
    assert!(frozen.windows(2).all(|pair| pair[0] == pair[1]), "signals hold their last value");
}

/// A dial that is turned in an outage arrives after it.
#[test]
fn dials_do_not_travel_in_an_outage() {
    let mut params = Params::defaults("outage");
    params.numbers.faults.push(Fault::defaults(Kind::Outage, 0));
    let world = DiscoveryWorld::single(params);
    let signal = |name: &str| world.spec().signal(name).unwrap();
    let mut signals = vec![0.0; world.spec().signals.len()];
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, key(2));
    let mut action = [f64::NAN; dials::COUNT];
    let (mut before, mut within, mut after) = (Vec::new(), Vec::new(), Vec::new());
    for tick in 1..=120_u32 {
        // Turned once a minute before the outage of minutes 5 to 15, and once within it.
        action[dials::index("ejection_errors")] = match tick {
            6 => 4.0,
            48 => 5.0,
            _ => f64::NAN,
        };
        step(&world, &mut lane, &action);
        world.signals(&lane, 0, &mut signals);
        let share = signals[signal("proxies_in_force_share_r0")];
        let catalog = signals[signal("catalog_in_force_r0")];
        match tick {
            8..=29 => before.push((share, catalog)),
            50..=89 => within.push((share, catalog)),
            100..=120 => after.push((share, catalog)),
            _ => {}
        }
    }
    assert!(before.iter().all(|found| *found == (1.0, 1.0)), "{before:?}");
    assert!(within.iter().all(|found| *found == (0.0, 0.0)), "{within:?}");
    assert_eq!(after.last(), Some(&(1.0, 1.0)), "{after:?}");
}

#[test]
fn a_state_goes_on_where_it_was_and_damage_is_refused() {
    let world = everything();
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, key(5));
    for tick in 0..130 {
        step(&world, &mut lane, &wild(key(5), tick));
    }
    let mut bytes = Vec::new();
    world.save(&lane, 0, &mut bytes);
    let mut other = world.new_block();
    world.load(&mut other, 0, &bytes).unwrap();
    assert_eq!(digest(&world, &other), digest(&world, &lane));
    for tick in 130..200 {
        let action = wild(key(5), tick);
        assert_eq!(step(&world, &mut other, &action), step(&world, &mut lane, &action), "{tick}");
    }
    assert_eq!(digest(&world, &other), digest(&world, &lane));

    let before = digest(&world, &other);
    for at in (0..bytes.len()).step_by(bytes.len() / 40) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(world.load(&mut other, 0, &damaged).is_err(), "byte {at}");
        assert!(world.load(&mut other, 0, &bytes[..at]).is_err(), "cut at {at}");
    }
    assert_eq!(digest(&world, &other), before, "nothing changed");
}

/// Whole-set checks look and touch nothing.
#[test]
fn checks_change_no_bit_of_the_terms() {
    let checked = everything();
    let mut params = checked.variants()[0].clone();
    params.verify = false;
    let plain = DiscoveryWorld::single(params);
    let (mut a, mut b) = (checked.new_block(), plain.new_block());
    checked.reset(&mut a, 0, key(9));
    plain.reset(&mut b, 0, key(9));
    for tick in 0..100 {
        let action = wild(key(9), tick);
        assert_eq!(step(&checked, &mut a, &action), step(&plain, &mut b, &action), "{tick}");
    }
}

/// What cannot be foreseen cannot be prepared for: before an outage the console shows more than on a calm day.
#[test]
fn an_outage_casts_its_shadow() {
    let mut params = Params::defaults("outage");
    let mut outage = Fault::defaults(Kind::Outage, 0);
    outage.values[common::AT] = 15.0;
    params.numbers.faults.push(outage);
    let world = DiscoveryWorld::single(params);
    let signal = |name: &str| world.spec().signal(name).unwrap();
    let keep = [f64::NAN; dials::COUNT];
    let mut signals = vec![0.0; world.spec().signals.len()];
    let (mut calm, mut before) = ([0.0_f64; 2], [0.0_f64; 2]);
    for seed in 0..4 {
        let mut lane = world.new_block();
        world.reset(&mut lane, 0, key(seed));
        // The outage begins in minute 20, its precursor in minute 16; scrapes are half a minute old.
        for tick in 1..120 {
            step(&world, &mut lane, &keep);
            world.signals(&lane, 0, &mut signals);
            let seen = if tick < 96 { &mut calm } else { &mut before };
            seen[0] = seen[0].max(signals[signal("follower_lag_s_max_r1")]);
            seen[1] = seen[1].max(signals[signal("write_latency_ms_p99_r1")]);
        }
    }
    assert!(before[0] > 0.4 && calm[0] < 0.2, "lag: {calm:?} {before:?}");
    assert!(before[1] > 2.0 * calm[1], "latency: {calm:?} {before:?}");
}
