//! The minute of a block of services is the plain minute, to the last bit: state, signals and
//! dollars, for every set of instructions, every scenario, and whatever part of a block plays.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::isa::{self, Isa};
use oncall_core::{Digest, Dist, EpisodeKey, Generator, Split, World};
use oncall_env::{AnyWorld, shipped, shipped_names};
use oncall_fleet::params::{Deploy, Flush, Record, Surge, Target};
use oncall_fleet::{FleetLanes, FleetWorld, Lane, Params, signals};
use oncall_tests::Dice;

const LANES: usize = FleetLanes::LANES;
const DIALS: usize = 8;
const TERMS: usize = 6;

fn digest_of<W: World>(world: &W, block: &W::Block, lane: usize) -> u64 {
    let mut digest = Digest::new();
    world.digest(block, lane, &mut digest);
    digest.value()
}

/// Settled dials as a policy in training turns them.
fn dials(world: &FleetWorld, dice: &mut Dice) -> [f64; DIALS] {
    std::array::from_fn(|index| {
        let dial = &world.spec().dials[index];
        let turn = dice.share() < 0.2;
        let stop = if turn { dice.bits() as usize % dial.choices() } else { 0 };
        dial.from_stop(stop).map(|x| if x.is_nan() { x } else { dial.settle(x) }).unwrap()
    })
}

/// Compares a lane with its plain twin.
fn compare(wide: (&FleetLanes, &<FleetLanes as World>::Block, usize), plain: &Lane, what: &str) {
    let (world, block, lane) = wide;
    let (mut found, mut expected) = ([0.0; signals::COUNT], [0.0; signals::COUNT]);
    world.signals(block, lane, &mut found);
    world.fleet().signals(plain, 0, &mut expected);
    for (index, signal) in world.spec().signals.iter().enumerate() {
        let (a, b) = (found[index], expected[index]);
        assert_eq!(a.to_bits(), b.to_bits(), "{what}, lane {lane}, {}: {a} {b}", signal.name);
    }
    let digests = (digest_of(world, block, lane), digest_of(world.fleet(), plain, 0));
    assert_eq!(digests.0, digests.1, "{what}, lane {lane}: state");
}

/// Plays both side by side. `plays` says which lanes play in a minute.
fn side_by_side(
    fleet: &FleetWorld,
    minutes: usize,
    what: &str,
    plays: impl Fn(usize, usize, &mut Dice) -> bool,
) {
    let wide = FleetLanes::new(fleet.clone());
    let mut dice = Dice(17);
    let mut block = wide.new_block();
    let mut plain: Vec<Lane> = (0..LANES).map(|_| fleet.new_block()).collect();
    let reset = |block: &mut _, plain: &mut Vec<Lane>, lane: usize, seed: u64| {
        let key = EpisodeKey::new(seed & 0xffff_ffff, 1, Split::Train, fleet.generator());
        wide.reset(block, lane, key);
        fleet.reset(&mut plain[lane], 0, key);
    };
    for lane in 0..LANES {
        reset(&mut block, &mut plain, lane, lane as u64 * 991 + 5);
        compare((&wide, &block, lane), &plain[lane], what);
    }
    for minute in 0..minutes {
        let active: [bool; LANES] = std::array::from_fn(|lane| plays(minute, lane, &mut dice));
        let mut by_dial = [0.0; DIALS * LANES];
        let mut by_term = [f64::NAN; TERMS * LANES];
        let mut ends = [true; LANES];
        let rows: [[f64; DIALS]; LANES] = std::array::from_fn(|_| dials(fleet, &mut dice));
        for (lane, row) in rows.iter().enumerate() {
            row.iter().enumerate().for_each(|(dial, x)| by_dial[dial * LANES + lane] = *x);
        }
        wide.step(&mut block, &active, &by_dial, &mut by_term, &mut ends);
        for lane in 0..LANES {
            let mut terms = [f64::NAN; TERMS];
            let mut end = [true];
            let row = &rows[lane];
            fleet.step(&mut plain[lane], &active[lane..=lane], row, &mut terms, &mut end);
            assert_eq!(ends[lane], end[0]);
            for (term, usd) in terms.iter().enumerate() {
                let found = by_term[term * LANES + lane];
                assert_eq!(found.to_bits(), usd.to_bits(), "{what}, term {term}: {found} {usd}");
            }
            compare((&wide, &block, lane), &plain[lane], &format!("{what}, minute {minute}"));
        }
        if dice.share() < 0.02 {
            let seed = dice.bits();
            reset(&mut block, &mut plain, (seed % LANES as u64) as usize, seed >> 8);
        }
    }
}

fn all_play(_: usize, _: usize, _: &mut Dice) -> bool {
    true
}

fn some_play(minute: usize, lane: usize, dice: &mut Dice) -> bool {
    // Also minutes in which one lane plays alone, and none.
    match minute % 7 {
        0 => lane == minute % LANES,
        1 => false,
        _ => dice.share() < 0.7,
    }
}

#[allow(irrefutable_let_patterns, reason = "the list of worlds may hold others")]
fn fleet_of(name: &str) -> FleetWorld {
    let AnyWorld::Fleet(fleet) = shipped(name).unwrap().world else { panic!("{name}: no fleet") };
    fleet
}

fn fleets() -> impl Iterator<Item = &'static str> {
    shipped_names()
        .into_iter()
        .filter(|name| matches!(shipped(name).unwrap().world, AnyWorld::Fleet(_)))
}

#[test]
fn every_shipped_scenario_in_every_set_of_instructions() {
    for isa in Isa::ALL.into_iter().filter(|&isa| isa::force(isa)) {
        for name in fleets() {
            side_by_side(&fleet_of(name), 260, &format!("{name}, {}", isa.name()), all_play);
            side_by_side(&fleet_of(name), 130, &format!("{name}, {}", isa.name()), some_play);
        }
    }
}

/// What no shipped scenario has: everything at once.
fn crowded(generator: Generator) -> Params {
    let mut params = Params::defaults("crowded");
    params.generator = generator;
    params.numbers.constants.demand.base_rps = 40.0;
    params.numbers.constants.fleet.boot_delay_min = 0.0;
    let surge = |start_min, size| Surge { start_min, size, rise_min: 0.0, decay_min: 9.0 };
    let deploy = |minute, bad| Deploy { minute, bad, ..Deploy::defaults() };
    params.numbers.surges.push(surge(3.5, 30.0));
    params.numbers.surges.push(surge(50.0, 3.0));
    params.numbers.deploys.push(deploy(4.0, 1.0));
    params.numbers.deploys.push(deploy(9.0, 1.0));
    params.numbers.deploys.push(deploy(30.0, 0.0));
    params.numbers.flushes.push(Flush { minute: 2.0 });
    params.numbers.flushes.push(Flush { minute: 40.0 });
    params.draws.push((Target::Deploy(0, 0), Dist::Uniform { low: 0.0, high: 20.0 }));
    params
}

#[test]
fn crowded_scenarios_small_counts_series_and_both_generators() {
    for generator in Generator::ALL {
        let mut params = crowded(generator);
        side_by_side(&FleetWorld::single(params.clone()), 150, "crowded", all_play);
        // Below 30 requests a minute counts are Poisson; at times there are none.
        params.numbers.constants.demand.base_rps = 0.02;
        side_by_side(&FleetWorld::single(params.clone()), 150, "few requests", some_play);
        params.draws.push((Target::Constant(2, 2), Dist::Uniform { low: 0.0, high: 15.0 }));
        params.draws.push((Target::Constant(1, 0), Dist::Uniform { low: 0.0, high: 4000.0 }));
        let mut other = Params::defaults("other");
        other.generator = generator;
        other.series_rps = Some((0..60).map(|minute| f64::from(minute) * 40.0).collect());
        other.hide_build_truth = true;
        let mixture = FleetWorld::mixture(vec![(params, 1.0), (other, 2.0)]).unwrap();
        side_by_side(&mixture, 150, "mixture", all_play);
        side_by_side(&mixture, 150, "mixture", some_play);
        let mut pinned = mixture.clone();
        assert!(pinned.pin_demand(Some(vec![900.0, 5000.0, 0.0, 100.0])));
        side_by_side(&pinned, 40, "pinned", all_play);
        let mut quiet = Params::defaults("quiet");
        quiet.generator = generator;
        quiet.numbers.constants.demand.noise = 0.0;
        side_by_side(&FleetWorld::single(quiet), 40, "quiet", all_play);
    }
}

#[test]
fn saved_loaded_and_copied_lanes_go_on_alike() {
    let fleet = fleet_of("mixed-hard");
    let wide = FleetLanes::new(fleet.clone());
    let mut block = wide.new_block();
    let mut dice = Dice(3);
    for lane in 0..LANES {
        let key = EpisodeKey::new(lane as u64, 0, Split::Test, fleet.generator());
        wide.reset(&mut block, lane, key);
    }
    for _ in 0..77 {
        let dials: Vec<f64> = {
            let rows: Vec<_> = (0..LANES).map(|_| dials(&fleet, &mut dice)).collect();
            (0..DIALS * LANES).map(|i| rows[i % LANES][i / LANES]).collect()
        };
        let (mut terms, mut ends) = ([0.0; TERMS * LANES], [false; LANES]);
        wide.step(&mut block, &[true; LANES], &dials, &mut terms, &mut ends);
    }
    let mut bytes = Vec::new();
    wide.save(&block, 5, &mut bytes);
    let mut plain = fleet.new_block();
    fleet.load(&mut plain, 0, &bytes).unwrap();
    compare((&wide, &block, 5), &plain, "plain from lanes");
    let mut other = wide.new_block();
    wide.load(&mut other, 11, &bytes).unwrap();
    compare((&wide, &other, 11), &plain, "lanes from bytes");
    wide.copy_lane((&block, 5), (&mut other, 2));
    compare((&wide, &other, 2), &plain, "copied");
    assert!(wide.load(&mut other, 3, &bytes[..bytes.len() - 1]).is_err());
    let before = digest_of(&wide, &other, 2);
    let mut terms = [0.0; TERMS * LANES];
    wide.step(
        &mut other,
        &[false; LANES],
        &[f64::NAN; DIALS * LANES],
        &mut terms,
        &mut [false; LANES],
    );
    assert_eq!(before, digest_of(&wide, &other, 2));
}
