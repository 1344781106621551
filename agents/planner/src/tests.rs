//! The search against all schedules of small shifts, and against itself.

use crate::clairvoyant::{Batch, Planned, plan_batch, plan_episodes, plan_row};
use crate::episode::{Episode, Schedule, Trace};
use crate::presses;
use crate::search::{Search, Task, find};
use crate::seeds::{self, Seed};
use oncall_core::streams::row_seed;
use oncall_core::{EpisodeKey, Split, World};
use oncall_env::{Actions, AnyVecEnv, AnyWorld, Autoreset, NoFiles, Options, Scenario, Seeds};
use oncall_fleet::FleetWorld;
use oncall_fleet::dials::index;
use oncall_heuristics::PolicyKey;

const QUICK: Search = Search { budget_min: 200_000, seed: 3 };

fn shipped(name: &str) -> Scenario {
    oncall_env::shipped(name).unwrap()
}

fn fleet(scenario: &Scenario) -> &FleetWorld {
    let AnyWorld::Fleet(world) = &scenario.world else { panic!("a fleet") };
    world
}

fn key(world: &FleetWorld, seed: u64) -> EpisodeKey {
    EpisodeKey::new(seed, 0, Split::Test, world.generator())
}

fn batch(episodes: usize, threads: usize) -> Batch {
    Batch { episodes, split: Split::Test, seed: 1, threads }
}

/// A shift of six minutes on which the size of the fleet is all that matters.
const ONLY_THE_FLEET: &str = r#"{
    "schema_version": 1, "world": "fleet", "name": "tiny",
    "shift": {"length_min": 6},
    "demand": {"base_rps": 300},
    "fleet": {"boot_delay_min": 2, "instances_max": 4, "low_priority_share": 0},
    "service": {"feature_cpu_ms": 0, "feature_queries": 0, "queries": 0},
    "prices": {"staleness_usd_per_million_s": 0, "budget_usd": {"uniform": [5, 1000]}},
    "opening": {"serving": 2, "min_instances": 2},
    "surges": [{"start_min": {"uniform": [0, 4]}, "size": {"uniform": [0, 2]},
                "rise_min": 1, "decay_min": {"uniform": [0.5, 3]}}]
}"#;

#[test]
fn the_fleet_of_a_small_shift_is_that_of_all_fleets() {
    let scenario = oncall_env::load(ONLY_THE_FLEET, &NoFiles).unwrap();
    let world = fleet(&scenario);
    for seed in 0..8 {
        let key = key(world, seed);
        let policy_key = PolicyKey { seed, episode: 0 };
        let episode = Episode::of_key(world, key);
        let schedule = |code: usize| -> Schedule {
            let floor = |t: u32| (code / 4_usize.pow(t) % 4 + 1) as f64;
            (0..6).map(|t| [floor(t), 0.0, 0.6, 60.0, 0.0, 0.0, 1.0, 0.0]).collect()
        };
        let all =
            (0..4_usize.pow(6)).map(|code| Trace::new(&episode, schedule(code)).usd(&episode));
        let brute_usd = all.fold(f64::INFINITY, f64::min);
        // From where the autoscaler, which is not among the brute force's dials, has no part.
        let start = schedule(0b01_01_01_01_01_01);
        let return_ = seeds::return_of(world, key, &start);
        let rules = [Seed { policy: "two", schedule: start, return_ }];
        let found = find(&Task { world, scenario: "tiny", key, policy_key }, QUICK, &rules).exact;
        assert!(found.actions.iter().all(|action| action[index::AUTOSCALE] == 0.0));
        let usd = found.usd(&episode);
        assert!((usd - brute_usd).abs() < 1e-9, "seed {seed}: {usd}, all fleets {brute_usd}");
    }
}

/// One minute that two instances cannot carry: all levels on a grid.
#[test]
fn the_level_of_a_minute_is_that_of_all_levels() {
    let text = |base_rps: u32| {
        format!(
            r#"{{"schema_version": 1, "world": "fleet", "name": "tiny",
                "shift": {{"length_min": 1}}, "demand": {{"base_rps": {base_rps}}},
                "opening": {{"serving": 2, "min_instances": 2, "cache_warmth": 0.7}}}}"#
        )
    };
    for base_rps in [250, 400, 440, 480, 520, 560, 620, 800] {
        let scenario = oncall_env::load(&text(base_rps), &NoFiles).unwrap();
        let planned = plan_row(&scenario, 5, Split::Test, QUICK).unwrap();
        let world = fleet(&scenario);
        let episode = Episode::of_key(world, key(world, 5));
        let mut brute_usd = f64::INFINITY;
        for shed in 0..=50 {
            for ttl in 0..=60 {
                for feature in [0.0, 1.0] {
                    for floor in [1.0, 2.0] {
                        let ttl_s = (f64::from(ttl) / 60.0 * 601_f64.ln()).exp() - 1.0;
                        let shed = f64::from(shed) / 50.0;
                        let action = [floor, 0.0, 0.6, ttl_s, 0.0, shed, feature, 0.0];
                        let trace = Trace::new(&episode, vec![action]);
                        brute_usd = brute_usd.min(trace.usd(&episode));
                    }
                }
            }
        }
        // No worse than the grid, and no better than what lies between its points.
        let usd = -planned.return_;
        assert!(usd < brute_usd + 1e-6, "{base_rps}: {usd}, grid {brute_usd}");
        assert!(usd > brute_usd - 0.02 * brute_usd.abs(), "{base_rps}: {usd}, grid {brute_usd}");
    }
}

/// All pairs of press minutes, each with the levels that the search finds for it.
#[test]
fn presses_are_no_worse_than_any_two() {
    let scenario = oncall_env::load(
        r#"{"schema_version": 1, "world": "fleet", "name": "tiny", "shift": {"length_min": 16},
            "flushes": [{"minute": 2}]}"#,
        &NoFiles,
    )
    .unwrap();
    let world = fleet(&scenario);
    let key = key(world, 1);
    let planned = plan_row(&scenario, 1, Split::Test, QUICK).unwrap();
    let episode = Episode::of_key(world, key);
    for first in 0..16 {
        for second in first..16 {
            let mut schedule = planned.schedule.clone();
            for action in &mut schedule {
                action[index::WARM_UP] = 0.0;
            }
            let mut trace = Trace::new(&episode, schedule);
            presses::toggle(&episode, &mut trace, index::WARM_UP, first);
            if second > first {
                presses::toggle(&episode, &mut trace, index::WARM_UP, second);
            }
            let usd = trace.usd(&episode);
            assert!(-planned.return_ < 1.002 * usd, "{first} {second}: {usd} {}", planned.return_);
        }
    }
}

#[test]
fn plans_follow_from_the_seed_whatever_the_threads() {
    for name in ["mixed-hard", "cache-flush"] {
        let scenario = shipped(name);
        let plans = |threads| plan_batch(&scenario, batch(5, threads), QUICK, &|_| ()).unwrap();
        let alone = plans(1);
        assert_eq!(alone, plans(3), "{name}");
        let some = plan_episodes(&scenario, batch(5, 2), &[3, 1], QUICK, &|_| ()).unwrap();
        assert_eq!(some, [alone[3].clone(), alone[1].clone()], "{name}");
        assert!(alone.windows(2).all(|pair| pair[0].return_ != pair[1].return_), "{name}");
        assert_eq!(alone[2].seed, row_seed(1, 2));
    }
}

#[test]
fn more_budget_is_never_worse() {
    for (name, seed) in [("spike", 1), ("bad-build-hard", 2), ("cache-flush-hard", 3)] {
        let scenario = shipped(name);
        let budgets = [0, 200_000, 400_000, 800_000];
        let plan = |budget_min| {
            plan_row(&scenario, seed, Split::Train, Search { budget_min, seed: 7 }).unwrap()
        };
        let plans: Vec<Planned> = budgets.into_iter().map(plan).collect();
        for pair in plans.windows(2) {
            assert!(
                pair[1].return_ >= pair[0].return_ - 1e-9,
                "{name}: {} {}",
                pair[0].return_,
                pair[1].return_
            );
            assert!(pair[1].stages >= pair[0].stages, "{name}");
        }
        assert!(plans[3].return_ > plans[0].return_ && plans[3].stages > plans[0].stages, "{name}");
    }
}

/// On every scenario: better than the rules, what the engine pays, and as the relaxed problem says.
#[test]
fn a_plan_beats_the_rules_and_the_engine_pays_what_it_says() {
    for name in oncall_env::shipped_names() {
        let scenario = shipped(name);
        for planned in plan_batch(&scenario, batch(2, 2), QUICK, &|_| ()).unwrap() {
            assert!(planned.return_ >= planned.rule_return, "{name}");
            let all = seeds::play_all(
                fleet(&scenario),
                name,
                key(fleet(&scenario), planned.seed),
                PolicyKey { seed: planned.seed, episode: 0 },
            );
            assert!(all.iter().all(|rule| planned.return_ >= rule.return_), "{name}");
            assert_eq!(engine_return(&scenario, &planned), planned.return_, "{name}");
            let gap = (planned.relaxed_return - planned.return_) / planned.return_.abs();
            assert!(gap.abs() < 0.05, "{name}: {planned:?}");
        }
    }
}

fn engine_return(scenario: &Scenario, planned: &Planned) -> f64 {
    let options =
        Options { autoreset: Autoreset::Disabled, split: Split::Test, ..Options::default() };
    let mut env = AnyVecEnv::new(scenario.world.clone(), 1, options).unwrap();
    let mut columns = env.columns();
    let seeds = [Some(planned.seed)];
    env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset()).unwrap();
    for action in &planned.schedule {
        env.step(Actions::Policy(action), &mut columns.borrow()).unwrap();
    }
    assert!(columns.truncated[0]);
    env.episode_stats(0).return_
}

#[test]
fn a_change_costs_what_playing_it_all_again_costs() {
    let scenario = shipped("cache-flush-hard");
    let world = fleet(&scenario);
    let episode = Episode::of_key(world, key(world, 9));
    let planned = plan_row(&scenario, 9, Split::Test, QUICK).unwrap();
    let trace = Trace::new(&episode, planned.schedule.clone());
    for (t, dial, value) in [
        (0, index::MIN_INSTANCES, 12.0),
        (40, index::CACHE_TTL_S, 0.0),
        (70, index::SHED_SHARE, 1.0),
        (71, index::WARM_UP, 1.0),
        (149, index::FEATURE, 0.0),
    ] {
        let mut action = trace.actions[t];
        action[dial] = value;
        let usd = episode.total_usd(trace.try_change(&episode, t, &[action]));
        let mut schedule = planned.schedule.clone();
        schedule[t] = action;
        let whole = Trace::new(&episode, schedule.clone());
        assert!((usd - whole.usd(&episode)).abs() < 1e-9, "{t}");
        let played = seeds::return_of(world, key(world, 9), &schedule);
        assert!((usd + played).abs() < 1e-9, "{t}");
        let mut changed = trace.clone();
        changed.change(&episode, t, &[action]);
        assert!((changed.usd(&episode) - usd).abs() < 1e-9, "{t}");
    }
}

/// The sum of the overdrawn parts of the minutes is how far the budget ends below zero.
#[test]
fn an_overdraft_is_priced_as_the_world_prices_it() {
    for budget_left in [-0.5, 0.0, 0.2] {
        let scenario = oncall_env::load(
            &format!(
                r#"{{"schema_version": 1, "world": "fleet", "name": "tiny",
                    "shift": {{"length_min": 60}}, "opening": {{"budget_left": {budget_left}}},
                    "surges": [{{"start_min": 5, "size": 4}}]}}"#
            ),
            &NoFiles,
        )
        .unwrap();
        let world = fleet(&scenario);
        let episode = Episode::of_key(world, key(world, 2));
        let kept = vec![[10.0, 0.0, 0.6, 60.0, 0.0, 0.0, 1.0, 0.0]; 60];
        let trace = Trace::new(&episode, kept.clone());
        assert!(episode.overdraws(trace.total));
        let played = seeds::return_of(world, key(world, 2), &kept);
        assert!((trace.usd(&episode) + played).abs() < 1e-8, "{} {played}", trace.usd(&episode));
        let planned = plan_row(&scenario, 2, Split::Test, QUICK).unwrap();
        assert!(planned.return_ >= planned.rule_return);
    }
}

#[test]
fn bad_batches_are_refused() {
    let scenario = shipped("steady");
    let error = |batch, numbers: &[usize]| {
        plan_episodes(&scenario, batch, numbers, QUICK, &|_| ()).unwrap_err().to_string()
    };
    assert_eq!(error(batch(0, 1), &[]), "episodes = 0: expected 1..=1000000");
    assert_eq!(error(batch(1, 0), &[0]), "threads = 0: expected 1..=256");
    assert_eq!(error(batch(3, 1), &[0, 3]), "episode = 3: expected below 3");
}
