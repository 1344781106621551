//! The clairvoyant planner over many episodes: those of an evaluation, on some threads.

use crate::episode::Schedule;
use crate::error::PlannerError;
use crate::search::{Search, Task, plan};
use crate::seeds;
use oncall_core::streams::row_seed;
use oncall_core::{EpisodeKey, Generator, Split, World};
use oncall_env::{AnyWorld, Scenario};
use oncall_fleet::FleetWorld;
use oncall_heuristics::{Policy, PolicyKey};
use std::sync::atomic::{AtomicUsize, Ordering};

/// A planned episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// Seed of its row.
    pub seed: u64,
    /// Return of the plan, dollars, as the engine plays it.
    pub return_: f64,
    /// The dials of every minute: settled, none kept, presses 1.
    pub schedule: Schedule,
    /// Name of the best rule of those that the search began with.
    pub rule: &'static str,
    /// Its return.
    pub rule_return: f64,
    /// Stages of the search.
    pub stages: u64,
    /// Minutes of the world that were played.
    pub played_min: u64,
    /// What the relaxed fleet problem promises for the presses of the plan: a measure of how much a
    /// better search could still find, but for the levels and the presses.
    pub relaxed_return: f64,
}

/// Which episodes are planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Batch {
    /// How many; their numbers begin at 0.
    pub episodes: usize,
    /// Training or test mornings.
    pub split: Split,
    /// Seed of the evaluation: episode `i` is that of `oncall eval --seed`.
    pub seed: u64,
    /// Threads, 1 to 256. Changes the speed and nothing else.
    pub threads: usize,
}

/// Most episodes of a batch.
pub const EPISODES_MAX: usize = 1_000_000;

impl Batch {
    fn check(&self) -> Result<(), PlannerError> {
        let value = PlannerError::value;
        if !(1..=EPISODES_MAX).contains(&self.episodes) {
            return Err(value("episodes", self.episodes, format!("1..={EPISODES_MAX}")));
        }
        let most = oncall_env::THREADS_MAX;
        if !(1..=most).contains(&self.threads) {
            return Err(value("threads", self.threads, format!("1..={most}")));
        }
        Ok(())
    }
}

/// Plans all episodes of a batch; see [`plan_episodes`].
pub fn plan_batch(
    scenario: &Scenario,
    batch: Batch,
    search: Search,
    progress: &(dyn Fn(&Planned) + Sync),
) -> Result<Vec<Planned>, PlannerError> {
    batch.check()?;
    let numbers: Vec<usize> = (0..batch.episodes).collect();
    plan_episodes(scenario, batch, &numbers, search, progress)
}

/// Plans some episodes of a batch, by number, in the order given. `progress` is told of every episode
/// that is done, from any thread.
///
/// The same plans come out for any number of threads.
pub fn plan_episodes(
    scenario: &Scenario,
    batch: Batch,
    numbers: &[usize],
    search: Search,
    progress: &(dyn Fn(&Planned) + Sync),
) -> Result<Vec<Planned>, PlannerError> {
    batch.check()?;
    if let Some(number) = numbers.iter().find(|&&number| number >= batch.episodes) {
        return Err(PlannerError::value("episode", number, format!("below {}", batch.episodes)));
    }
    let world = fleet(scenario)?;
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(&number) = numbers.get(index) else { return done };
            let seed = row_seed(batch.seed, number as u64);
            let (key, policy_key) = keys(world, seed, batch.split);
            let planned = plan(&Task { world, scenario: &scenario.name, key, policy_key }, search);
            progress(&planned);
            done.push((index, planned));
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> =
            (1..batch.threads.min(numbers.len())).map(|_| scope.spawn(work)).collect();
        let mut all = work();
        for thread in others {
            match thread.join() {
                Ok(part) => all.extend(part),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(index, _)| *index);
    Ok(all.into_iter().map(|(_, planned)| planned).collect())
}

/// Plans the first episode of a row that is seeded with `seed`: the one that
/// `oncall run SCENARIO --seed SEED` plays.
///
/// Refuses a scenario of another world than the fleet.
pub fn plan_row(
    scenario: &Scenario,
    seed: u64,
    split: Split,
    search: Search,
) -> Result<Planned, PlannerError> {
    let world = fleet(scenario)?;
    let (key, policy_key) = keys(world, seed, split);
    Ok(plan(&Task { world, scenario: &scenario.name, key, policy_key }, search))
}

/// The fleet of a scenario: the planner has a model of no other world.
fn fleet(scenario: &Scenario) -> Result<&FleetWorld, PlannerError> {
    match &scenario.world {
        AnyWorld::Fleet(world) => Ok(world),
        AnyWorld::Discovery(_) => {
            Err(PlannerError::value("scenario", &scenario.name, "a scenario of the fleet"))
        }
    }
}

/// What a policy gets on the episode that [`plan_row`] plans, dollars.
///
/// Refuses a scenario of another world than the fleet.
pub fn play_row(
    scenario: &Scenario,
    seed: u64,
    split: Split,
    policy: &mut dyn Policy,
) -> Result<f64, PlannerError> {
    let world = fleet(scenario)?;
    let (key, policy_key) = keys(world, seed, split);
    let mut opening = world.new_block();
    world.reset(&mut opening, 0, key);
    policy.reset(policy_key);
    Ok(seeds::play(world, &opening, policy).1)
}

/// The keys of a row's first episode, its seed cut as the engine cuts it.
fn keys(world: &FleetWorld, seed: u64, split: Split) -> (EpisodeKey, PolicyKey) {
    let generator = world.generator();
    let seed = match generator {
        Generator::Pcg => seed,
        Generator::Mulberry32 => seed & u64::from(u32::MAX),
    };
    (EpisodeKey::new(seed, 0, split, generator), PolicyKey { seed, episode: 0 })
}
