//! Where a search begins: what rules do on the very shift.

use crate::episode::Schedule;
use oncall_core::{EpisodeKey, Spec, World};
use oncall_fleet::{FleetWorld, Lane, dials, signals};
use oncall_heuristics::{Policy, PolicyKey, PolicySpec, build_for, registry};

/// A shift played by a rule.
#[derive(Debug, Clone)]
pub(crate) struct Seed {
    pub(crate) policy: &'static str,
    pub(crate) schedule: Schedule,
    pub(crate) return_: f64,
}

/// All honest rules, with the parameters tuned for the scenario; in a mixture also with those for the variant
/// that is played. Not the random one, and not the trained weights: what they are measured by must not move
/// when they are trained again.
pub(crate) fn play_all(
    world: &FleetWorld,
    scenario: &str,
    key: EpisodeKey,
    policy_key: PolicyKey,
) -> Vec<Seed> {
    let mut opening = world.new_block();
    world.reset(&mut opening, 0, key);
    let mut tuned_for = vec![scenario];
    tuned_for.extend(Some(world.scenario_of(&opening, 0)).filter(|variant| *variant != scenario));
    let is_start = |name: &&str| registry::is_rule(name) && *name != "random";
    let mut seeds = Vec::new();
    for policy in oncall_heuristics::names().filter(is_start) {
        for scenario in &tuned_for {
            // A policy that cannot be built without parameters is no rule to start from.
            let Ok(mut rule) = build_for(&PolicySpec::new(policy), world.spec(), scenario) else {
                continue;
            };
            rule.reset(policy_key);
            let (schedule, return_) = play(world, &opening, rule.as_mut());
            seeds.push(Seed { policy, schedule, return_ });
        }
    }
    seeds
}

fn settle(spec: &Spec, action: &mut [f64]) {
    for (dial, value) in spec.dials.iter().zip(action) {
        if !value.is_nan() {
            *value = dial.settle(*value);
        }
    }
}

/// Plays a policy; the schedule says every dial in every minute.
pub(crate) fn play(world: &FleetWorld, opening: &Lane, policy: &mut dyn Policy) -> (Schedule, f64) {
    let mut lane = *opening;
    let mut row = [0.0; signals::COUNT];
    let mut return_ = 0.0;
    let mut schedule = Schedule::new();
    for _ in 0..world.length_min(&lane, 0) {
        world.signals(&lane, 0, &mut row);
        let mut action = [f64::NAN; dials::index::COUNT];
        policy.act(&row, &mut action);
        settle(world.spec(), &mut action);
        return_ += reward(world, &mut lane, &action);
        let mut said = lane.dials.values();
        for dial in [dials::index::WARM_UP, dials::index::ROLLBACK] {
            said[dial] = f64::from(u8::from(action[dial] > 0.5));
        }
        schedule.push(said);
    }
    (schedule, return_)
}

/// The return of a schedule, summed as the engine sums it.
pub(crate) fn return_of(world: &FleetWorld, key: EpisodeKey, schedule: &Schedule) -> f64 {
    let mut lane = world.new_block();
    world.reset(&mut lane, 0, key);
    schedule.iter().fold(0.0, |sum, action| sum + reward(world, &mut lane, action))
}

fn reward(world: &FleetWorld, lane: &mut Lane, action: &[f64]) -> f64 {
    let mut terms = [0.0; oncall_fleet::reward::TERMS];
    world.step(lane, &[true], action, &mut terms, &mut [false]);
    0.0 - terms.iter().fold(0.0, |sum, term| sum + term)
}
