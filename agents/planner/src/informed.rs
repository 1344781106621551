//! A planner that is told of an incident once it can be seen, and not before.
//!
//! Until the first one it holds a posture: a fleet in proportion to the demand, a shed share, a TTL. Then it
//! knows how high the surge will go, how long it will last and every minute's noise, and plans the rest of
//! the shift: more than any honest policy knows, but without foresight. What it reaches says how much of the
//! clairvoyant planner's lead is foresight. [`Told`] says what it learns of later incidents.
//!
//! An estimate, not a bound: the posture is constant, where a cleverer operator would let it follow the
//! hazard.

use crate::episode::{Action, Bill, Episode, Schedule};
use crate::level::Level;
use crate::search::{Search, find_from};
use crate::table::exact;
use oncall_core::EpisodeKey;
use oncall_fleet::dials::index;
use oncall_fleet::params::Numbers;
use oncall_fleet::{FleetWorld, Lane};
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

/// What the planner learns at an incident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Told {
    /// This one and all that come later.
    Everything,
    /// This one; it plans as if it were the last, and anew at the next.
    InTurn,
    /// The same, but it never goes below the instances of its posture while the shift lasts.
    InTurnInsured,
}

/// What the informed planner reaches in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InformedScenario {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, in hex.
    pub hash: String,
    /// What it learns.
    pub told: Told,
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
    fn instances(&self, offered_rps: f64) -> f64 {
        (self.instances_per_krps * offered_rps / 1000.0).ceil().max(1.0)
    }

    fn action(&self, offered_rps: f64) -> Action {
        let mut said = [0.0; index::COUNT];
        said[index::SHED_SHARE] = self.shed_share;
        said[index::FEATURE] = 1.0;
        said[index::CACHE_TTL_S] = self.cache_ttl_s;
        exact(self.instances(offered_rps) as usize, &Level::of(&said), [false; 2])
    }
}

/// A minute that never comes.
const NEVER_MIN: f64 = 1e9;

/// Of each incident the first minute whose dials can answer to it, and where its own minute stands.
fn incidents(numbers: &mut Numbers) -> impl Iterator<Item = (f64, &mut f64)> {
    // A surge adds nothing yet in the minute in which it begins.
    let surges = numbers.surges.iter_mut().map(|surge| &mut surge.start_min);
    let surges = surges.map(|start| (start.floor() + 2.0, start));
    let flushes = numbers.flushes.iter_mut().map(|flush| &mut flush.minute);
    let deploys = numbers.deploys.iter_mut().map(|deploy| &mut deploy.minute);
    surges.chain(flushes.chain(deploys).map(|minute| (*minute + 1.0, minute)))
}

/// The minutes at which something is told, in order, and the shift's end.
fn told_min(numbers: &Numbers, length_min: usize, told: Told) -> Vec<usize> {
    let mut numbers = *numbers;
    let all = incidents(&mut numbers).map(|(minute, _)| minute.max(0.0) as usize);
    let mut all: Vec<usize> = all.filter(|&minute| minute < length_min).collect();
    all.sort_unstable();
    all.dedup();
    if told == Told::Everything {
        all.truncate(1);
    }
    all.push(length_min);
    all
}

/// The same state, but what is told later than `minute` never comes.
fn known(lane: &Lane, minute: usize, told: Told) -> Lane {
    let mut known = *lane;
    if told != Told::Everything {
        for (at, start) in incidents(&mut known.numbers) {
            if at > minute as f64 {
                *start = NEVER_MIN;
            }
        }
    }
    known
}

/// The dials of every minute of an episode, settled, and its return in dollars. The same plan comes out
/// every time.
pub fn plan_informed(
    world: &FleetWorld,
    key: EpisodeKey,
    posture: Posture,
    told: Told,
    search: Search,
) -> (Schedule, f64) {
    let whole = Episode::of_key(world, key);
    let (mut lane, mut paid) = (whole.opening, Bill::default());
    let mut schedule = Schedule::with_capacity(whole.length_min);
    let minutes = told_min(&whole.opening.numbers, whole.length_min, told);
    for _ in 0..minutes[0] {
        let held = posture.action(lane.seen.offered_rps);
        paid.add(whole.play(&mut lane, &held));
        schedule.push(held);
    }
    for (&now, &next) in minutes.iter().zip(&minutes[1..]) {
        let rest = Episode::of_state(world, &known(&lane, now, told), whole.length_min);
        // One that holds, and one that begins with twice as many instances.
        let starts = [1.0, 2.0].map(|factor| {
            let held = posture.action(factor * lane.seen.offered_rps);
            vec![held; rest.length_min]
        });
        let found = find_from(&rest, key, search, starts.into_iter());
        for mut action in found.best.actions.into_iter().take(next - now) {
            if told == Told::InTurnInsured {
                let floor = &mut action[index::MIN_INSTANCES];
                let most = rest.instances_max() as f64;
                *floor = floor.max(posture.instances(lane.seen.offered_rps)).min(most);
            }
            paid.add(whole.play(&mut lane, &action));
            schedule.push(action);
        }
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
            for (seed, told) in
                [Told::Everything, Told::InTurn, Told::InTurnInsured].into_iter().enumerate()
            {
                let key = EpisodeKey::new(seed as u64, 0, Split::Train, Generator::Pcg);
                let (schedule, found) = plan_informed(&world, key, POSTURE, told, INFORMED_SEARCH);
                let played = seeds::return_of(&world, key, &schedule);
                assert!((found - played).abs() < 1e-9 * played.abs(), "{name}: {found} {played}");
            }
        }
    }

    /// Two mornings that differ in the second surge only are played alike until it can be seen.
    #[test]
    fn in_turn_knows_nothing_of_the_next_incident() {
        let AnyWorld::Fleet(world) = oncall_env::shipped("spike-hard").unwrap().world else {
            panic!("a fleet")
        };
        let of = |seed| EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
        let two = |seed: &u64| {
            let numbers = Episode::of_key(&world, of(*seed)).opening.numbers;
            told_min(&numbers, 240, Told::InTurn).len() == 3
        };
        let seed = (0..50).find(two).unwrap();
        let opening = Episode::of_key(&world, of(seed)).opening;
        let minutes = told_min(&opening.numbers, 240, Told::InTurn);
        assert!(minutes[0] < minutes[1]);
        let hidden = known(&opening, minutes[0], Told::InTurn);
        let starts: Vec<f64> = hidden.numbers.surges.iter().map(|surge| surge.start_min).collect();
        assert_eq!(starts.iter().filter(|&&start| start == NEVER_MIN).count(), 1, "{starts:?}");
        assert_eq!(known(&opening, minutes[1], Told::InTurn), opening);
        assert_eq!(known(&opening, minutes[0], Told::Everything), opening);
    }

    #[test]
    fn the_posture_is_held_until_the_first_incident_shows() {
        let AnyWorld::Fleet(world) = oncall_env::shipped("spike").unwrap().world else {
            panic!("a fleet")
        };
        for seed in 0..5 {
            let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
            let (schedule, _) =
                plan_informed(&world, key, POSTURE, Told::Everything, INFORMED_SEARCH);
            let opening = Episode::of_key(&world, key).opening;
            let start_min = opening.numbers.surges[0].start_min;
            let first = told_min(&opening.numbers, schedule.len(), Told::Everything)[0];
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
