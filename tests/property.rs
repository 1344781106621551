//! Random scenarios under random dials: what must hold in every minute.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::{EpisodeKey, Generator, Split, View, World};
use oncall_fleet::params::{Constants, Deploy, Flush, Record, Slots, Surge};
use oncall_fleet::{FleetWorld, Lane, Params, Sig, invariants, signals};
use oncall_tests::Dice;
use proptest::prelude::*;

/// An event with every number anywhere in its range, within the first hour.
fn event<T: Record + Slots>(number: &mut impl FnMut(f64, f64, bool) -> f64) -> T {
    let mut event = T::defaults();
    for (index, field) in T::FIELDS.iter().enumerate() {
        let high = if field.name.starts_with("minute") || field.name == "start_min" {
            60.0
        } else {
            field.high
        };
        *event.slot(index) = number(field.low, high, field.whole);
    }
    event
}

/// A scenario with every number anywhere in its range, and now and then at an end of it.
fn random_params(dice: &mut Dice) -> Params {
    let mut params = Params::defaults("random");
    let mut number = |low: f64, high: f64, whole: bool| {
        let x = match dice.bits() % 8 {
            0 => low,
            1 => high,
            // Ranges span orders of magnitude: the cube favours their lower part.
            _ => low + (high - low) * dice.share() * dice.share() * dice.share(),
        };
        if whole { x.round() } else { x }
    };
    for (section, (name, fields)) in Constants::SECTIONS.iter().enumerate() {
        for (index, field) in fields.iter().enumerate() {
            // Half the numbers stay usual: a world in which everything is extreme is saturated.
            let drawn = number(field.low, field.high, field.whole);
            if number(0.0, 2.0, true) >= 1.0 && *name != "shift" {
                *params.numbers.constants.slot(section, index) = drawn;
            }
        }
    }
    let constants = &mut params.numbers.constants;
    constants.opening.serving = constants.opening.serving.min(constants.fleet.instances_max);
    constants.opening.min_instances =
        constants.opening.min_instances.min(constants.fleet.instances_max);
    for _ in 0..number(0.0, 4.0, true) as usize {
        params.numbers.surges.push(event::<Surge>(&mut number));
    }
    for _ in 0..number(0.0, 4.0, true) as usize {
        params.numbers.deploys.push(event::<Deploy>(&mut number));
    }
    for _ in 0..number(0.0, 4.0, true) as usize {
        params.numbers.flushes.push(event::<Flush>(&mut number));
    }
    params.hide_build_truth = number(0.0, 1.0, true) > 0.5;
    params
}

fn random_action(world: &FleetWorld, dice: &mut Dice) -> Vec<f64> {
    world
        .spec()
        .dials
        .iter()
        .map(|dial| match dice.bits() % 4 {
            0 => dial.settle(dial.low + (dial.high - dial.low) * dice.share()),
            1 => dial.from_stop((dice.bits() % dial.choices() as u64) as usize).unwrap(),
            _ => dial.from_stop(0).unwrap(),
        })
        .collect()
}

/// Plays random minutes and checks every one.
fn check(params: Params, seed: u64, minutes: usize) {
    let mut dice = Dice(seed);
    let world = FleetWorld::single(params);
    let spec = world.spec().clone();
    let observed = spec.columns_of(View::Full);
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg));
    let mut row = vec![0.0; spec.signals.len()];
    let (mut cost_usd, mut instance_min) = (0.0, 0.0);
    let opening_budget = lane.budget_left;
    let mut burned = 0.0;
    for minute in 0..=minutes {
        invariants::check(&lane).unwrap_or_else(|broken| panic!("minute {minute}: {broken}"));
        world.signals(&lane, 0, &mut row);
        for index in &observed {
            let signal = &spec.signals[*index];
            let (low, high) = signal.scaled_range();
            let seen = signal.scale(row[*index]);
            assert!((low..=high).contains(&seen), "{}: {} shows {seen}", signal.name, row[*index]);
        }
        if minute == minutes {
            break;
        }
        let before = lane.budget_left;
        let mut terms = vec![0.0; spec.terms.len()];
        world.step(&mut lane, &[true], &random_action(&world, &mut dice), &mut terms, &mut [false]);
        assert!(terms.iter().all(|usd| usd.is_finite() && *usd >= 0.0), "{terms:?}");
        world.signals(&lane, 0, &mut row);
        let at = |signal: Sig| row[signal as usize];
        check_money(&lane, &at, &terms, &mut cost_usd, &mut instance_min);
        let burn = at(Sig::error_rate) / lane.numbers.constants.slo.error_budget;
        assert_near(at(Sig::burn), burn, "burn");
        burned += burn / lane.numbers.constants.slo.window_min;
        assert_near(
            before - lane.budget_left,
            burn / lane.numbers.constants.slo.window_min,
            "budget",
        );
        assert!(at(Sig::admitted_rps) <= at(Sig::offered_rps));
        assert!(at(Sig::error_rate) >= at(Sig::failed_share) || at(Sig::admitted_rps) == 0.0);
    }
    assert!((opening_budget - lane.budget_left - burned).abs() <= 1e-9 * burned.max(1.0));
}

/// Cost is instance-minutes times the price.
fn check_money(
    lane: &Lane,
    at: &impl Fn(Sig) -> f64,
    terms: &[f64],
    cost_usd: &mut f64,
    instance_min: &mut f64,
) {
    let price = lane.numbers.constants.prices.instance_usd_h;
    let billed = if price > 0.0 { at(Sig::fleet_usd_h) / price } else { 0.0 };
    let fleet = at(Sig::serving) + at(Sig::booting);
    if price > 0.0 {
        let second = billed - fleet;
        assert!(second.abs() < 1e-9 * fleet.max(1.0) || (second - at(Sig::serving)).abs() < 1e-6);
    }
    *instance_min += billed;
    *cost_usd += terms[0];
    assert_near(at(Sig::cost_usd), *cost_usd, "cost so far");
    assert_near(*cost_usd, *instance_min * price / 60.0, "instance-minutes x price");
}

fn assert_near(found: f64, expected: f64, what: &str) {
    let slack = 1e-9 * expected.abs().max(found.abs()).max(1.0);
    assert!((found - expected).abs() <= slack, "{what}: found {found}, expected {expected}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_minute_of_a_random_scenario_is_sound(seed in any::<u64>()) {
        check(random_params(&mut Dice(seed)), seed, 90);
    }

    #[test]
    fn fifty_times_the_demand(seed in any::<u64>(), size in 40.0..100.0_f64) {
        let mut params = Params::defaults("flood");
        params.numbers.surges.push(Surge { start_min: 5.0, size, rise_min: 1.0, decay_min: 45.0 });
        check(params, seed, 60);
    }

    #[test]
    fn no_demand_on_one_instance(seed in any::<u64>()) {
        let mut params = Params::defaults("empty");
        params.numbers.constants.demand.base_rps = 0.0;
        params.numbers.constants.opening.serving = 1.0;
        params.numbers.constants.opening.min_instances = 1.0;
        params.numbers.flushes.push(Flush { minute: 3.0 });
        check(params, seed, 60);
    }
}

/// The dashboard of a flooded service clips in the observation and not in the record.
#[test]
fn natural_values_may_leave_the_range_of_the_observation() {
    let mut params = Params::defaults("flood");
    params.numbers.constants.demand.base_rps = 1e6;
    let world = FleetWorld::single(params);
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, EpisodeKey::new(1, 0, Split::Train, Generator::Pcg));
    let mut row = [0.0; signals::COUNT];
    world.signals(&lane, 0, &mut row);
    let offered = &world.spec().signals[Sig::offered_rps as usize];
    assert!(row[Sig::offered_rps as usize] > offered.high);
    assert_eq!(offered.scale(row[Sig::offered_rps as usize]), 1.0);
}
