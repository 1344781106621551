use super::*;
use oncall_core::{EpisodeKey, Generator, Split, World};
use oncall_env::{AnyWorld, shipped};
use oncall_eval::{Contender, Plan};
use oncall_fleet::{FleetWorld, dials, signals};

const SHIPPED: [&str; 9] = [
    "steady",
    "spike",
    "spike-hard",
    "bad-build",
    "bad-build-hard",
    "cache-flush",
    "cache-flush-hard",
    "mixed",
    "mixed-hard",
];

fn world(scenario: &str) -> FleetWorld {
    let AnyWorld::Fleet(world) = shipped(scenario).unwrap().world else { panic!("a fleet") };
    world
}

/// Rows and dials of a shift's first minutes.
fn played(planner: &mut dyn Policy, scenario: &str, seed: u64, minutes: u32) -> Vec<Vec<f64>> {
    let world = world(scenario);
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg));
    planner.reset(PolicyKey { seed, episode: 0 });
    let mut all = Vec::new();
    for _ in 0..minutes.min(world.length_min(&lane, 0)) {
        let (mut row, mut action) = (vec![0.0; signals::COUNT], vec![0.0; index::COUNT]);
        world.signals(&lane, 0, &mut row);
        planner.act(&row, &mut action);
        world.step(&mut lane, &[true], &action, &mut [0.0; 6], &mut [false]);
        row.extend(action);
        all.push(row);
    }
    all
}

/// What an operator does not see is replaced by nonsense: the dials are the same. So they follow from
/// the rows of the dashboard alone; the planner has no other source.
#[test]
fn decides_on_what_the_operator_sees() {
    for scenario in ["spike-hard", "bad-build-hard", "cache-flush-hard"] {
        let rows = played(&mut RecedingPlanner::new(scenario), scenario, 3, 90);
        let mut blind = RecedingPlanner::new(scenario);
        blind.reset(PolicyKey { seed: 99, episode: 7 });
        let table = signals::table();
        for row in &rows {
            let (signals, dials) = row.split_at(signals::COUNT);
            let seen: Vec<f64> = signals
                .iter()
                .zip(&table)
                .map(|(value, s)| if s.view == oncall_core::View::Operator { *value } else { 7e7 })
                .collect();
            let mut action = [0.0; index::COUNT];
            blind.act(&seen, &mut action);
            assert_eq!(action[..], *dials, "{scenario}");
        }
    }
}

#[test]
fn a_new_shift_is_played_as_by_a_new_planner() {
    let mut used = RecedingPlanner::new("cache-flush-hard");
    played(&mut used, "cache-flush-hard", 1, 60);
    let again = played(&mut used, "cache-flush-hard", 2, 60);
    let new = played(&mut RecedingPlanner::new("cache-flush-hard"), "cache-flush-hard", 2, 60);
    assert_eq!(again, new);
}

#[test]
fn plays_every_shipped_scenario_within_the_dials_ranges() {
    let table = dials::table();
    for scenario in SHIPPED {
        for row in played(&mut RecedingPlanner::new(scenario), scenario, 5, 240) {
            for (value, dial) in row[signals::COUNT..].iter().zip(&table) {
                assert!(
                    (dial.low..=dial.high).contains(value),
                    "{scenario} {}: {value}",
                    dial.name
                );
            }
        }
    }
}

/// Mean returns over some training episodes.
fn means(scenario: &str, policies: &[&str], episodes: usize) -> Vec<f64> {
    let plan = Plan { episodes, split: Split::Train, seed: 4, threads: 2 };
    let contenders: Vec<Contender> = policies
        .iter()
        .map(|name| {
            RecedingPlanner::contender(name).unwrap_or_else(|| Contender::parse(name).unwrap())
        })
        .collect();
    let scenario = shipped(scenario).unwrap();
    let (_, played) = oncall_eval::evaluate(&[scenario], &contenders, plan, &|_| ()).unwrap();
    assert!(!played[0].policies[0].is_rule);
    let mean = |policy: &oncall_eval::PolicyEpisodes| {
        policy.episodes.iter().map(|episode| episode.return_).sum::<f64>() / episodes as f64
    };
    played[0].policies.iter().map(mean).collect()
}

#[test]
fn beats_the_autoscaler_in_every_incident_and_is_level_with_the_rule() {
    for scenario in &SHIPPED[1..7] {
        let means = means(scenario, &[RECEDING_NAME, "hold", "target-tracking", "runbook"], 24);
        let [planner, hold, tracking, rule] = means[..] else { panic!("four of them") };
        assert!(planner > 0.8 * hold && planner > 0.8 * tracking, "{scenario}: {means:?}");
        assert!(planner > 1.05 * rule, "{scenario}: {means:?}");
    }
}
