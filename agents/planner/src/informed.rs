//! A planner that is told of a morning once the first incident can be seen, and not before.
//!
//! Until then it holds a posture: a fleet in proportion to the demand, a shed share, a TTL. Then it knows
//! everything, how high the surge will go and what comes later too, and plans the rest of the shift. It
//! knows more than any honest policy, but it lacks foresight of the first incident: what it reaches says
//! how much of the clairvoyant planner's lead is foresight.
//!
//! An estimate, not a bound: the posture is constant, where a cleverer operator would let it follow the
//! hazard.

use crate::episode::{Bill, Episode, Schedule};
use crate::level::Level;
use crate::search::{Search, find_from};
use crate::table::exact;
use oncall_core::EpisodeKey;
use oncall_fleet::FleetWorld;
use oncall_fleet::dials::index;
use oncall_fleet::params::Numbers;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// What is held while nothing can be seen.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Posture {
    /// Instances for 1,000 requests/s of the last minute, rounded up.
    pub instances_per_krps: f64,
    /// Share of the low-priority traffic that is refused, 0 to 1.
    pub shed_share: f64,
    /// TTL of the cache, seconds.
    pub cache_ttl_s: f64,
}

/// What the informed planner reaches in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InformedScenario {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, in hex.
    pub hash: String,
    /// What is held before the first incident; chosen on training episodes.
    pub posture: Posture,
    /// Mean return, dollars, over the episodes of `reference.json`.
    pub mean: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
}

/// The search of the committed means.
pub const INFORMED_SEARCH: Search = Search { budget_min: 20_000, seed: 1 };

static INFORMED: LazyLock<Vec<InformedScenario>> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../informed.json")).expect("the committed file is valid")
});

/// The committed postures and means.
///
/// # Panics
///
/// Never: that the committed file is valid is a test.
pub fn informed() -> &'static [InformedScenario] {
    &INFORMED
}

impl Posture {
    fn action(&self, offered_rps: f64) -> [f64; index::COUNT] {
        let mut said = [0.0; index::COUNT];
        said[index::SHED_SHARE] = self.shed_share;
        said[index::FEATURE] = 1.0;
        said[index::CACHE_TTL_S] = self.cache_ttl_s;
        let floor = (self.instances_per_krps * offered_rps / 1000.0).ceil().max(1.0);
        exact(floor as usize, &Level::of(&said), [false; 2])
    }
}

/// The first minute whose dials can answer to an incident; the shift's end if there is none.
fn told_min(numbers: &Numbers, length_min: usize) -> usize {
    // A surge adds nothing yet in the minute in which it begins.
    let surges = numbers.surges.iter().map(|surge| surge.start_min.floor() + 2.0);
    let flushes = numbers.flushes.iter().map(|flush| flush.minute + 1.0);
    let deploys = numbers.deploys.iter().map(|deploy| deploy.minute + 1.0);
    surges.chain(flushes).chain(deploys).fold(length_min as f64, f64::min) as usize
}

/// The dials of every minute of an episode, settled, and its return in dollars. The same plan comes out
/// every time.
pub fn plan_informed(
    world: &FleetWorld,
    key: EpisodeKey,
    posture: Posture,
    search: Search,
) -> (Schedule, f64) {
    let whole = Episode::of_key(world, key);
    let told = told_min(&whole.opening.numbers, whole.length_min);
    let (mut lane, mut paid) = (whole.opening, Bill::default());
    let mut schedule = Schedule::with_capacity(whole.length_min);
    for _ in 0..told {
        let held = posture.action(lane.seen.offered_rps);
        paid.add(whole.play(&mut lane, &held));
        schedule.push(held);
    }
    if told < whole.length_min {
        let rest = Episode::of_state(world, &lane, whole.length_min);
        // One that holds, and one that begins with twice as many instances.
        let starts = [1.0, 2.0].map(|factor| {
            let held = posture.action(factor * lane.seen.offered_rps);
            vec![held; rest.length_min]
        });
        let found = find_from(&rest, key, search, starts.into_iter());
        paid.add(found.best.total);
        schedule.extend(found.best.actions);
    }
    (schedule, -whole.total_usd(paid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seeds;
    use oncall_core::{Generator, Split};
    use oncall_env::AnyWorld;
    use oncall_eval::hex;

    const POSTURE: Posture =
        Posture { instances_per_krps: 10.0, shed_share: 0.0, cache_ttl_s: 60.0 };

    #[test]
    fn the_return_is_that_of_the_schedule() {
        for name in ["spike-hard", "cache-flush-hard", "bad-build-hard", "steady"] {
            let AnyWorld::Fleet(world) = oncall_env::shipped(name).unwrap().world else {
                panic!("a fleet")
            };
            for seed in 0..3 {
                let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
                let (schedule, found) = plan_informed(&world, key, POSTURE, INFORMED_SEARCH);
                let played = seeds::return_of(&world, key, &schedule);
                assert!((found - played).abs() < 1e-9 * played.abs(), "{name}: {found} {played}");
            }
        }
    }

    #[test]
    fn the_posture_is_held_until_the_first_incident_shows() {
        let AnyWorld::Fleet(world) = oncall_env::shipped("spike").unwrap().world else {
            panic!("a fleet")
        };
        for seed in 0..5 {
            let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
            let (schedule, _) = plan_informed(&world, key, POSTURE, INFORMED_SEARCH);
            let opening = Episode::of_key(&world, key).opening;
            let start_min = opening.numbers.surges[0].start_min;
            let first = told_min(&opening.numbers, schedule.len());
            assert_eq!(first, start_min.floor() as usize + 2);
            let mut lane = opening;
            for action in &schedule[..first] {
                assert_eq!(*action, POSTURE.action(lane.seen.offered_rps));
                oncall_core::World::step(
                    &world,
                    &mut lane,
                    &[true],
                    action,
                    &mut [0.0; oncall_fleet::reward::TERMS],
                    &mut [false],
                );
            }
            assert_ne!(schedule[first], POSTURE.action(lane.seen.offered_rps));
        }
    }

    #[test]
    fn committed_postures_belong_to_the_shipped_scenarios() {
        for entry in informed() {
            let scenario = oncall_env::shipped(&entry.scenario).unwrap();
            assert_eq!(entry.hash, hex(scenario.hash), "{}", entry.scenario);
            assert!(entry.mean < 0.0 && entry.standard_error > 0.0);
        }
    }
}
