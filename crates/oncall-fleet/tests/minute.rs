//! The minute as a whole, by hand-made cases: what the golden episodes do not reach.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_core::streams::Purpose;
use oncall_core::{Digest, Dist, EpisodeKey, Generator, Split, World};
use oncall_fleet::dials::index;
use oncall_fleet::params::{Deploy, Flush, Record, Surge, Target};
use oncall_fleet::{FleetWorld, Lane, Params, Sig, invariants, signals};

const KEEP: [f64; index::COUNT] = {
    let mut keep = [f64::NAN; index::COUNT];
    keep[index::WARM_UP] = 0.0;
    keep[index::ROLLBACK] = 0.0;
    keep
};

fn key(seed: u64) -> EpisodeKey {
    EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg)
}

struct Shift {
    world: FleetWorld,
    lane: Lane,
    terms: [f64; 6],
}

impl Shift {
    fn new(params: Params) -> Self {
        Self::of(FleetWorld::single(params), 1)
    }

    fn of(world: FleetWorld, seed: u64) -> Self {
        let mut lane = world.new_block();
        world.reset(&mut lane, 0, key(seed));
        Self { world, lane, terms: [0.0; 6] }
    }

    fn play(&mut self, changes: &[(usize, f64)]) -> &mut Self {
        let mut action = KEEP;
        for (dial, value) in changes {
            action[*dial] = *value;
        }
        self.world.step(&mut self.lane, &[true], &action, &mut self.terms, &mut [false]);
        invariants::check(&self.lane).unwrap();
        self
    }

    fn see(&self, signal: Sig) -> f64 {
        let mut row = [0.0; signals::COUNT];
        self.world.signals(&self.lane, 0, &mut row);
        row[signal as usize]
    }
}

fn quiet() -> Params {
    let mut params = Params::defaults("quiet");
    params.numbers.constants.demand.noise = 0.0;
    params
}

#[test]
fn the_opening_minute_is_the_specified_one() {
    let shift = Shift::new(quiet());
    let near = |signal, expected: f64, digits: f64| {
        let found = shift.see(signal);
        assert!((found - expected).abs() < digits, "{signal:?}: {found} {expected}");
    };
    near(Sig::offered_rps, 1125.0, 1e-9);
    near(Sig::cache_hit, 0.771_429, 5e-7);
    near(Sig::db_utilization, 0.192_857, 5e-7);
    near(Sig::service_ms, 74.2478, 5e-5);
    near(Sig::offered_load, 83.5288, 5e-5);
    near(Sig::utilization, 0.522_055, 5e-7);
    near(Sig::fleet_usd_h, 4.0, 1e-12);
    near(Sig::cache_age_s, 30.0, 1e-12);
    near(Sig::error_rate, 0.0, 1e-12);
    near(Sig::burn, 0.0, 1e-12);
    near(Sig::recommendations, 1.0, 1e-15);
    near(Sig::cost_usd, 0.0, 1e-15);
    near(Sig::shift_min, 0.0, 1e-15);
    near(Sig::time_of_day_h, 8.0, 1e-12);
}

#[test]
fn the_first_minute_without_noise_shows_what_the_reset_showed() {
    let mut shift = Shift::new(quiet());
    let opening = shift.lane.seen;
    shift.play(&[]);
    assert_eq!(shift.lane.seen, opening);
    assert_eq!(shift.see(Sig::shift_min), 1.0);
    assert!(shift.see(Sig::cost_usd) > 0.0);
}

#[test]
fn an_instance_without_boot_delay_serves_from_the_next_minute() {
    for delay in [0.0, 1.0] {
        let mut params = quiet();
        params.numbers.constants.fleet.boot_delay_min = delay;
        let mut shift = Shift::new(params);
        shift.play(&[(index::MIN_INSTANCES, 14.0)]);
        assert_eq!((shift.see(Sig::serving), shift.see(Sig::booting)), (10.0, 4.0));
        shift.play(&[]);
        assert_eq!((shift.see(Sig::serving), shift.see(Sig::booting)), (14.0, 0.0));
    }
}

#[test]
fn a_rollback_takes_five_minutes_and_a_second_fleet() {
    let mut params = quiet();
    params.numbers.deploys.push(Deploy { minute: 2.0, ..Deploy::defaults() });
    params.numbers.constants.opening.autoscale = 0.0;
    let mut shift = Shift::new(params);
    (0..6).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!(shift.see(Sig::bad_build_share), 0.8);
    shift.play(&[(index::ROLLBACK, 1.0)]);
    assert_eq!((shift.see(Sig::fleet_usd_h), shift.see(Sig::rollback_left_min)), (8.0, 4.0));
    // A press while it runs starts the five minutes over.
    shift.play(&[]).play(&[(index::ROLLBACK, 1.0)]);
    for left in [3.0, 2.0, 1.0, 0.0] {
        assert_eq!(shift.see(Sig::bad_build_share), 1.0);
        shift.play(&[]);
        assert_eq!(shift.see(Sig::rollback_left_min), left);
    }
    assert_eq!((shift.see(Sig::bad_build_share), shift.see(Sig::fleet_usd_h)), (1.0, 8.0));
    shift.play(&[]);
    assert_eq!((shift.see(Sig::bad_build_share), shift.see(Sig::fleet_usd_h)), (0.0, 4.0));
}

#[test]
fn a_rollback_pressed_too_early_only_costs() {
    let mut params = quiet();
    params.numbers.deploys.push(Deploy { minute: 2.0, ..Deploy::defaults() });
    let mut shift = Shift::new(params);
    shift.play(&[]).play(&[(index::ROLLBACK, 1.0)]); // minute 1: the deploy has not come
    (0..10).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!(shift.see(Sig::bad_build_share), 1.0);
    // In the minute of the deploy itself it counts as live, and the rest of the rollout never comes.
    let mut params = quiet();
    params.numbers.deploys.push(Deploy { minute: 2.0, rollout_min: 60.0, ..Deploy::defaults() });
    let mut shift = Shift::new(params);
    shift.play(&[]).play(&[]).play(&[(index::ROLLBACK, 1.0)]);
    (0..5).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!(shift.see(Sig::bad_build_share), 0.0);
}

#[test]
fn a_rollback_retires_what_was_live_at_its_press_and_nothing_later() {
    let mut params = quiet();
    for minute in [6.0, 2.0] {
        params.numbers.deploys.push(Deploy { minute, ..Deploy::defaults() });
    }
    let mut shift = Shift::new(params);
    (0..4).for_each(|_| {
        shift.play(&[]);
    });
    shift.play(&[(index::ROLLBACK, 1.0)]); // minute 4; the second deploy comes in minute 6
    (5..12).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!(shift.see(Sig::bad_build_share), 1.0, "the second build stays");
    shift.play(&[(index::ROLLBACK, 1.0)]);
    (0..5).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!(shift.see(Sig::bad_build_share), 0.0);
}

#[test]
fn the_truth_about_a_build_can_be_hidden() {
    let mut params = quiet();
    params.hide_build_truth = true;
    params.numbers.deploys.push(Deploy { minute: 0.0, bad: 0.0, ..Deploy::defaults() });
    let mut shift = Shift::new(params);
    (0..5).for_each(|_| {
        shift.play(&[]);
    });
    assert_eq!((shift.see(Sig::bad_build_share), shift.see(Sig::bad_build_truth)), (1.0, 0.0));
    assert_eq!(shift.see(Sig::error_rate), 0.0);
}

#[test]
fn a_warm_up_runs_six_minutes_and_a_press_meanwhile_does_nothing() {
    let mut params = quiet();
    params.numbers.flushes.push(Flush { minute: 1.0 });
    params.numbers.constants.shift.clock_start_h = 0.0;
    let mut shift = Shift::new(params);
    shift.play(&[]).play(&[(index::WARM_UP, 1.0)]);
    assert_eq!((shift.see(Sig::cache_warmth), shift.see(Sig::warm_up_left_min)), (0.0, 5.0));
    let mut before = shift.lane.warmth;
    assert!(before > 0.12);
    for left in [4.0, 3.0, 2.0, 1.0, 0.0] {
        shift.play(&[(index::WARM_UP, 1.0)]);
        assert_eq!(shift.see(Sig::warm_up_left_min), left);
        assert!(shift.lane.warmth - before > 0.12 || shift.lane.warmth == 1.0);
        before = shift.lane.warmth;
    }
    shift.play(&[]);
    assert!(shift.lane.warmth - before < 0.12);
}

#[test]
fn a_flush_during_a_warm_up_starts_from_nothing() {
    let mut params = quiet();
    params.numbers.flushes.push(Flush { minute: 3.0 });
    let mut shift = Shift::new(params);
    shift.play(&[]).play(&[(index::WARM_UP, 1.0)]).play(&[]);
    assert_eq!(shift.see(Sig::cache_warmth), 1.0);
    shift.play(&[]);
    assert_eq!(shift.see(Sig::cache_warmth), 0.0);
    assert!(shift.lane.warmth > 0.12, "{}", shift.lane.warmth);
}

#[test]
fn no_traffic_has_no_errors_even_on_a_bad_build() {
    let mut params = quiet();
    params.numbers.constants.demand.base_rps = 0.0;
    params.numbers.deploys.push(Deploy { minute: 0.0, ..Deploy::defaults() });
    let mut shift = Shift::new(params);
    for _ in 0..10 {
        shift.play(&[(index::WARM_UP, 1.0)]);
        assert_eq!(shift.see(Sig::error_rate), 0.0);
        assert_eq!(shift.see(Sig::recommendations), 1.0);
        assert!(shift.terms[1..].iter().all(|&usd| usd == 0.0));
    }
    assert_eq!(shift.see(Sig::db_utilization), 0.15);
}

#[test]
fn the_pager_rings_exactly_at_the_threshold() {
    // A burn of exactly 14.4 in every minute: 28.8 % of the traffic on a build with 5 % errors.
    let mut params = quiet();
    let share =
        Deploy { minute: 0.0, rollout_min: 1.0, error_rate: 0.0144, extra_cpu: 0.0, bad: 1.0 };
    params.numbers.deploys.push(share);
    let mut shift = Shift::new(params);
    shift.play(&[]);
    assert_eq!(shift.see(Sig::page), 1.0, "{}", shift.see(Sig::burn_1h));
}

#[test]
fn demand_is_drawn_from_the_minute_and_not_from_the_dials() {
    let mut params = Params::defaults("spike");
    params.numbers.surges.push(Surge {
        start_min: 20.0,
        size: 2.0,
        rise_min: 5.0,
        decay_min: 45.0,
    });
    let world = FleetWorld::single(params);
    let (mut a, mut b) = (Shift::of(world.clone(), 9), Shift::of(world, 9));
    for minute in 0..60 {
        a.play(&[]);
        b.play(&[(index::SHED_SHARE, 1.0), (index::MIN_INSTANCES, f64::from(minute % 40 + 1))]);
        assert_eq!(a.see(Sig::offered_rps), b.see(Sig::offered_rps));
        let count = a.see(Sig::offered_rps) * 60.0;
        assert!((count - count.round()).abs() < 1e-9);
    }
}

#[test]
fn a_series_replaces_the_day_and_pinned_demand_replaces_all() {
    let mut params = quiet();
    params.series_rps = Some(vec![100.0, 200.0]);
    params.numbers.surges.push(Surge { start_min: 1.0, size: 1.0, rise_min: 0.0, decay_min: 1e5 });
    let mut shift = Shift::new(params.clone());
    let mut seen = Vec::new();
    for _ in 0..3 {
        shift.play(&[]);
        seen.push(shift.see(Sig::offered_rps));
    }
    assert_eq!(seen[..2], [100.0, 400.0]);
    assert!((seen[2] - 400.0).abs() < 0.01, "the last value holds under the surge");
    params.numbers.constants.demand.noise = 1.0;
    let mut world = FleetWorld::single(params);
    assert!(world.pin_demand(Some(vec![11.25, 33.5])));
    let mut shift = Shift::of(world, 1);
    assert_eq!(shift.see(Sig::offered_rps), 11.25);
    for expected in [11.25, 33.5, 33.5] {
        shift.play(&[]);
        assert_eq!(shift.see(Sig::offered_rps), expected);
    }
}

#[test]
fn a_mixture_draws_its_scenario_by_weight() {
    let named = |name: &str, hash| Params { hash, ..Params::defaults(name) };
    let world = FleetWorld::mixture(vec![(named("a", 1), 3.0), (named("b", 2), 1.0)]).unwrap();
    let mut lane = world.new_block();
    let mut counts = [0_u32; 2];
    for seed in 0..4000 {
        world.reset(&mut lane, 0, key(seed));
        counts[lane.variant as usize] += 1;
    }
    // Four standard errors of a binomial with p = 1/4.
    assert!((f64::from(counts[1]) - 1000.0).abs() < 4.0 * 750.0_f64.sqrt(), "{counts:?}");
    assert!(FleetWorld::mixture(vec![]).is_err());
    assert!(FleetWorld::mixture(vec![(named("a", 1), f64::NAN)]).is_err());
}

#[test]
fn train_and_test_episodes_are_disjoint_by_the_digest_of_what_was_drawn() {
    let mut params = Params::defaults("spike");
    params.numbers.surges.push(Surge { start_min: 0.0, size: 1.0, ..Surge::defaults() });
    params.draws = vec![(Target::Surge(0, 0), Dist::Uniform { low: 20.0, high: 160.0 })];
    let world = FleetWorld::single(params);
    let mut lane = world.new_block();
    let mut drawn = std::collections::BTreeSet::new();
    for split in [Split::Train, Split::Test] {
        for seed in 0..300 {
            for episode in 0..3 {
                world.reset(&mut lane, 0, EpisodeKey::new(seed, episode, split, Generator::Pcg));
                let mut digest = Digest::new();
                world.digest_drawn(&lane, 0, &mut digest);
                assert!(drawn.insert(digest.value()), "{split:?} {seed} {episode}");
            }
        }
    }
}

#[test]
fn a_state_survives_saving_to_the_bit_and_nothing_else_is_accepted() {
    let mut params = Params::defaults("bad-build");
    params.numbers.deploys.push(Deploy { minute: 3.0, ..Deploy::defaults() });
    let mut shift = Shift::new(params);
    (0..9).for_each(|_| {
        shift.play(&[(index::MIN_INSTANCES, 13.0), (index::ROLLBACK, 1.0)]);
    });
    let mut bytes = Vec::new();
    shift.world.save(&shift.lane, 0, &mut bytes);
    let mut other = shift.world.new_block();
    shift.world.load(&mut other, 0, &bytes).unwrap();
    assert_eq!(other, shift.lane);
    let before = other;
    assert!(shift.world.load(&mut other, 0, &bytes[..bytes.len() - 1]).is_err());
    assert!(shift.world.load(&mut other, 0, &[&bytes[..], &[0; 8]].concat()).is_err());
    assert!(shift.world.load(&mut other, 0, &[]).is_err());
    let mut wild = bytes.clone();
    wild[16] = 7; // a scenario that the world does not have
    assert!(shift.world.load(&mut other, 0, &wild).is_err());
    for position in (0..bytes.len()).step_by(8).skip(3) {
        let mut wild = bytes.clone();
        wild[position..position + 8].copy_from_slice(&f64::NAN.to_bits().to_le_bytes());
        // Either a rule is broken, or the word is a count or an unused number: never a panic.
        let _ = shift.world.load(&mut other, 0, &wild);
        other = before;
    }
    assert_eq!(other, before);
}

#[test]
fn noise_takes_one_pair_a_minute() {
    // The stream of a minute starts anew: minute 5 does not depend on whether 0 to 4 were played.
    let world = FleetWorld::single(Params::defaults("steady"));
    let mut shift = Shift::of(world, 3);
    (0..6).for_each(|_| {
        shift.play(&[]);
    });
    let mut stream = key(3).stream(Purpose::Demand, 5);
    let (first, second) = oncall_core::draw::normal_pair(&mut stream);
    let clock = 8.0 + 5.0 / 60.0;
    let mean = 60_000.0 * (1.0 + 0.25 * (std::f64::consts::TAU * (clock - 6.0) / 24.0).sin());
    let count = ((mean + mean.sqrt() * first) * (1.0 + 0.02 * second)).round();
    assert!((shift.see(Sig::offered_rps) * 60.0 - count).abs() < 1e-6);
}
