//! Plays episodes: many rows at once, one policy object a row, every policy on the same mornings.
//!
//! Episode `i` of an evaluation is episode 0 of the row seed `(seed, i)`, whatever the policy, the
//! number of rows or the number of threads. Rows take the next episode of a shared queue when theirs
//! ends, and results are sorted by the number of their episode.

use crate::error::EvalError;
use crate::metrics::{Measures, Outcome, Watch};
use oncall_core::streams::row_seed;
use oncall_core::{Generator, Spec, Split};
use oncall_env::{Actions, AnyVecEnv, Autoreset, Columns, Options, OwnedColumns, Scenario, Seeds};
use oncall_heuristics::{Policy, PolicyKey, PolicySpec};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Most episodes of an evaluation.
pub const EPISODES_MAX: usize = 10_000_000;

/// Rows that a thread steps together: enough to spread the cost of a call, few enough for the cache.
const ROWS_A_THREAD: usize = 64;

/// What an episode came to.
#[derive(Debug, Clone, PartialEq)]
pub struct EpisodeResult {
    /// Seed of its row: `oncall run SCENARIO --seed SEED` plays the same morning.
    pub seed: u64,
    /// Number of the episode since the row was seeded; 0 in an evaluation.
    pub episode: u64,
    /// Scenario that was played: of a mixture the one that the episode drew.
    pub played: String,
    /// Minutes played.
    pub minutes: u32,
    /// Sum of rewards, dollars.
    pub return_: f64,
    /// Sum of each reward term in the order of the spec, dollars.
    pub terms: Vec<f64>,
    /// Share of the month's error budget burned.
    pub budget_burned: f64,
    /// How the incident went, in a world with a pager; see [`crate::metrics`].
    pub incident: Option<Outcome>,
    /// The metrics of the world, in the order of [`crate::metrics::table`].
    pub metrics: Vec<f64>,
}

/// Which episodes are played, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Episodes, 1 to ten million.
    pub episodes: usize,
    /// Training or test mornings.
    pub split: Split,
    /// Seed of the evaluation.
    pub seed: u64,
    /// Threads, 1..=256. Changes the speed and nothing else.
    pub threads: usize,
}

impl Plan {
    fn check(&self) -> Result<(), EvalError> {
        if !(1..=EPISODES_MAX).contains(&self.episodes) {
            let expected = format!("1..={EPISODES_MAX}");
            return Err(EvalError::value("episodes", self.episodes, expected));
        }
        if !(1..=oncall_env::THREADS_MAX).contains(&self.threads) {
            let expected = format!("1..={}", oncall_env::THREADS_MAX);
            return Err(EvalError::value("threads", self.threads, expected));
        }
        Ok(())
    }
}

/// Plays a policy on a scenario, with the parameters that were tuned for it where `policy` names
/// none. Results are in the order of the episodes. `progress` is told of played minutes, in parts,
/// from any thread.
pub fn run_policy(
    scenario: &Scenario,
    policy: &PolicySpec,
    plan: Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<EpisodeResult>, EvalError> {
    let make = || Ok(oncall_heuristics::build_for(policy, scenario.world.spec(), &scenario.name)?);
    play(scenario, &make, plan, ROWS_A_THREAD, progress)
}

/// [`run_policy`] for a policy that has no name among the shipped ones, weights from a file for
/// example. `make` is called once for each row that is played at a time.
pub fn run_made(
    scenario: &Scenario,
    make: &Make<'_>,
    plan: Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<EpisodeResult>, EvalError> {
    play(scenario, make, plan, ROWS_A_THREAD, progress)
}

/// Makes a policy object for a row.
pub type Make<'a> = dyn Fn() -> Result<Box<dyn Policy>, EvalError> + Sync + 'a;

/// [`run_policy`] for any policy and any number of rows a thread.
pub(crate) fn play(
    scenario: &Scenario,
    make: &Make<'_>,
    plan: Plan,
    rows: usize,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Vec<EpisodeResult>, EvalError> {
    plan.check()?;
    let threads = plan.threads.min(plan.episodes);
    let rows = rows.min(plan.episodes.div_ceil(threads));
    let queue = AtomicUsize::new(0);
    let mut players: Vec<Player<'_>> = (0..threads)
        .map(|_| Player::new(scenario, make, plan, rows, &queue))
        .collect::<Result<_, _>>()?;
    let parts = std::thread::scope(|scope| {
        let (first, others) = players.split_at_mut(1);
        let others: Vec<_> =
            others.iter_mut().map(|player| scope.spawn(move || player.play(progress))).collect();
        let own = first[0].play(progress);
        let joined = others.into_iter().map(|thread| match thread.join() {
            Ok(part) => part,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(joined).collect::<Result<Vec<_>, _>>()
    })?;
    let mut results: Vec<(usize, EpisodeResult)> = parts.into_iter().flatten().collect();
    results.sort_unstable_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

/// Mean length of a scenario's first episodes, minutes: what a progress bar may expect of the others.
/// A mixture's differ.
pub fn episode_minutes(scenario: &Scenario, split: Split, seed: u64) -> Result<f64, EvalError> {
    const ROWS: usize = 32;
    let options = Options { split, ..Options::default() };
    let mut env = AnyVecEnv::new(scenario.world.clone(), ROWS, options)?;
    let mut columns = env.columns();
    env.reset(Seeds::Root(seed), None, &mut columns.borrow_reset())?;
    let sum: f64 = (0..ROWS).map(|row| f64::from(env.row(row).length_min)).sum();
    Ok(sum / ROWS as f64)
}

/// The seed of an episode, cut as the engine does where the scenario's generator takes 32 bits.
fn episode_seed(root: u64, index: usize, generator: Generator) -> u64 {
    let seed = row_seed(root, index as u64);
    match generator {
        Generator::Pcg => seed,
        Generator::Mulberry32 => seed & u64::from(u32::MAX),
    }
}

/// One thread's rows.
struct Player<'a> {
    env: AnyVecEnv,
    columns: OwnedColumns,
    policies: Vec<Box<dyn Policy>>,
    actions: Vec<f64>,
    measures: Measures,
    watches: Vec<Watch>,
    /// Episode that each row plays; `None` once the queue is empty.
    playing: Vec<Option<usize>>,
    seeds: Vec<Option<u64>>,
    mask: Vec<bool>,
    queue: &'a AtomicUsize,
    plan: Plan,
}

impl<'a> Player<'a> {
    fn new(
        scenario: &Scenario,
        make: &Make<'_>,
        plan: Plan,
        rows: usize,
        queue: &'a AtomicUsize,
    ) -> Result<Self, EvalError> {
        // Disabled, so that an ended episode's last minute can still be seen.
        let options =
            Options { autoreset: Autoreset::Disabled, split: plan.split, ..Options::default() };
        let env = AnyVecEnv::new(scenario.world.clone(), rows, options)?;
        let spec = env.spec();
        let measures = measures(spec)?;
        Ok(Self {
            columns: env.columns(),
            policies: (0..rows).map(|_| make()).collect::<Result<_, _>>()?,
            actions: vec![f64::NAN; rows * spec.dials.len()],
            watches: vec![measures.watch(); rows],
            measures,
            playing: vec![None; rows],
            seeds: vec![None; rows],
            mask: vec![true; rows],
            env,
            queue,
            plan,
        })
    }

    /// Plays until the queue is empty and every row has ended.
    fn play(
        &mut self,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<(usize, EpisodeResult)>, EvalError> {
        let mut results = Vec::new();
        self.begin()?;
        while self.playing.iter().any(Option::is_some) {
            self.minute()?;
            progress(self.playing.iter().flatten().count() as u64);
            self.collect(&mut results);
            if self.mask.contains(&true) {
                self.begin()?;
            }
        }
        Ok(results)
    }

    /// Begins the next episodes of the queue in the rows of the mask. A row that gets none plays its
    /// last seed again, unseen, until the others have ended.
    fn begin(&mut self) -> Result<(), EvalError> {
        let generator = self.env.generator();
        for row in 0..self.mask.len() {
            if !self.mask[row] {
                continue;
            }
            let index = self.queue.fetch_add(1, Ordering::Relaxed);
            self.playing[row] = (index < self.plan.episodes).then_some(index);
            let index = index.min(self.plan.episodes - 1);
            let seed = episode_seed(self.plan.seed, index, generator);
            self.seeds[row] = Some(seed);
            self.watches[row] = self.measures.watch();
            self.policies[row].reset(PolicyKey { seed, episode: 0 });
        }
        if self.playing.iter().all(Option::is_none) {
            return Ok(());
        }
        let mut out = self.columns.borrow_reset();
        self.env.reset(Seeds::Rows(&self.seeds), Some(&self.mask), &mut out)?;
        for row in (0..self.mask.len()).filter(|&row| self.mask[row]) {
            self.policies[row].told(self.env.scenario_of(row));
        }
        Ok(())
    }

    /// One minute of every row.
    fn minute(&mut self) -> Result<(), EvalError> {
        let OwnedColumns { observations, rewards, terminated, truncated, signals, .. } =
            &mut self.columns;
        let dials = self.actions.len() / self.policies.len();
        let width = signals.len() / self.policies.len();
        let rows = signals.chunks_exact(width).zip(self.actions.chunks_exact_mut(dials));
        for (policy, (signals, action)) in self.policies.iter_mut().zip(rows) {
            policy.act(signals, action);
        }
        let mut out = Columns {
            observations,
            rewards,
            terminated,
            truncated,
            final_observations: None,
            terms: None,
            cost: None,
            signals: Some(&mut *signals),
        };
        self.env.step(Actions::Policy(&self.actions), &mut out)?;
        for (watch, signals) in self.watches.iter_mut().zip(signals.chunks_exact(width)) {
            watch.step(&self.measures, signals);
        }
        Ok(())
    }

    /// Takes the results of the rows that ended, and marks these rows for their next episode.
    fn collect(&mut self, results: &mut Vec<(usize, EpisodeResult)>) {
        self.mask.copy_from_slice(self.env.ended());
        for row in 0..self.mask.len() {
            if let (true, Some(index)) = (self.mask[row], self.playing[row]) {
                results.push((index, self.result(row)));
            }
        }
    }

    fn result(&self, row: usize) -> EpisodeResult {
        let stats = self.env.episode_stats(row);
        let watch = &self.watches[row];
        EpisodeResult {
            seed: stats.seed,
            episode: stats.episode,
            played: self.env.scenario_of(row).to_owned(),
            minutes: stats.minutes,
            return_: stats.return_,
            terms: stats.terms,
            budget_burned: stats.cost,
            incident: watch.outcome(&self.measures),
            metrics: watch.metrics(&self.measures),
        }
    }
}

/// Where the signals of the world's metrics stand.
pub fn measures(spec: &Spec) -> Result<Measures, EvalError> {
    Measures::of(spec).map_err(|(world, name)| {
        EvalError::new(format!("signals of the world {world}: expected one named {name}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::atomic::AtomicU64;

    const PLAN: Plan = Plan { episodes: 37, split: Split::Test, seed: 5, threads: 1 };

    fn shipped(name: &str) -> Scenario {
        oncall_env::shipped(name).unwrap()
    }

    fn results(scenario: &str, policy: &str, plan: Plan, rows: usize) -> Vec<EpisodeResult> {
        let policy: PolicySpec = policy.parse().unwrap();
        let scenario = shipped(scenario);
        let build = oncall_heuristics::build_for;
        let make = || Ok(build(&policy, scenario.world.spec(), &scenario.name).unwrap());
        play(&scenario, &make, plan, rows, &|_| ()).unwrap()
    }

    /// The mixture's episodes differ in length, so rows go on to the next at different minutes.
    #[test]
    fn rows_and_threads_change_nothing() {
        for policy in ["runbook", "random"] {
            let alone = results("mixed", policy, PLAN, 1);
            assert_eq!(alone.len(), PLAN.episodes);
            let played: BTreeSet<_> =
                alone.iter().map(|e| (e.played.as_str(), e.minutes)).collect();
            assert_eq!(played, [("bad-build", 120), ("cache-flush", 150), ("spike", 240)].into());
            for (rows, threads) in [(2, 1), (7, 1), (64, 1), (1, 3), (5, 2), (64, 8)] {
                let plan = Plan { threads, ..PLAN };
                assert_eq!(
                    results("mixed", policy, plan, rows),
                    alone,
                    "{rows} rows, {threads} threads"
                );
            }
        }
    }

    /// More episodes only add to those that were there.
    #[test]
    fn episodes_follow_from_seed_and_number() {
        let few = results("spike", "hold", PLAN, 8);
        let many = results("spike", "hold", Plan { episodes: 50, ..PLAN }, 8);
        assert_eq!(few[..], many[..PLAN.episodes]);
        let seeds: BTreeSet<u64> = many.iter().map(|e| e.seed).collect();
        assert_eq!(seeds.len(), 50);
        let expected: Vec<u64> = (0..50).map(|i| row_seed(PLAN.seed, i)).collect();
        assert_eq!(many.iter().map(|e| e.seed).collect::<Vec<_>>(), expected);
        let train = results("spike", "hold", Plan { split: Split::Train, ..PLAN }, 8);
        assert!(few.iter().zip(&train).all(|(test, train)| test.return_ != train.return_));
        let other = results("spike", "hold", Plan { seed: 6, ..PLAN }, 8);
        assert!(few.iter().all(|e| other.iter().all(|o| o.seed != e.seed)));
    }

    /// Against one row stepped by hand, with everything counted from what is seen.
    #[test]
    fn an_episode_is_what_a_single_row_plays() {
        let scenario = shipped("bad-build");
        let spec = scenario.world.spec().clone();
        for result in results("bad-build", "hold", Plan { episodes: 3, ..PLAN }, 2) {
            let options =
                Options { autoreset: Autoreset::Disabled, split: PLAN.split, ..Options::default() };
            let mut env = AnyVecEnv::new(scenario.world.clone(), 1, options).unwrap();
            let mut columns = env.columns();
            let seeds = [Some(result.seed)];
            env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset()).unwrap();
            let of =
                |columns: &OwnedColumns, name: &str| columns.signals[spec.signal(name).unwrap()];
            let (mut rewards, mut terms) = (0.0, vec![0.0; spec.terms.len()]);
            let (mut pages, mut rang, mut first, mut last) = (0, false, None, 0);
            let (before, keep) = (of(&columns, "budget_left"), vec![f64::NAN; spec.dials.len()]);
            for minute in 0..result.minutes {
                env.step(Actions::Policy(&keep), &mut columns.borrow()).unwrap();
                rewards += columns.rewards[0];
                terms.iter_mut().zip(&columns.terms).for_each(|(sum, term)| *sum += term);
                let rings = of(&columns, "page") == 1.0;
                pages += u32::from(rings && !rang);
                rang = rings;
                if of(&columns, "burn") > 1.0 {
                    first = first.or(Some(minute));
                    last = minute;
                }
            }
            assert!(columns.truncated[0]);
            let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} {b}");
            near(result.return_, rewards);
            result.terms.iter().zip(&terms).for_each(|(a, b)| near(*a, *b));
            near(result.return_, -terms.iter().sum::<f64>());
            near(result.budget_burned, before - of(&columns, "budget_left"));
            let incident = result.incident.unwrap();
            assert_eq!(incident.pages, pages);
            // Nobody rolls the bad build back: it burns to the end.
            assert_eq!(last, result.minutes - 1);
            assert_eq!(incident.minutes_to_mitigate, first.map(|first| result.minutes - first));
            assert!(incident.unmitigated);
        }
    }

    #[test]
    fn progress_counts_the_minutes_of_the_episodes() {
        let told = AtomicU64::new(0);
        let scenario = shipped("mixed");
        let plan = Plan { threads: 2, ..PLAN };
        let tell = |minutes| {
            told.fetch_add(minutes, Ordering::Relaxed);
        };
        let results = run_policy(&scenario, &PolicySpec::new("hold"), plan, &tell).unwrap();
        let played: u64 = results.iter().map(|e| u64::from(e.minutes)).sum();
        assert_eq!(told.into_inner(), played);
        let expected = episode_minutes(&scenario, PLAN.split, PLAN.seed).unwrap();
        assert!((120.0..=240.0).contains(&expected));
        assert_eq!(episode_minutes(&shipped("spike"), PLAN.split, PLAN.seed).unwrap(), 240.0);
    }

    #[test]
    fn bad_plans_are_refused() {
        let error = |plan| {
            let hold = PolicySpec::new("hold");
            run_policy(&shipped("spike"), &hold, plan, &|_| ()).unwrap_err().to_string()
        };
        let episodes = error(Plan { episodes: 0, ..PLAN });
        assert_eq!(episodes, "episodes = 0: expected 1..=10000000");
        assert!(error(Plan { episodes: usize::MAX, ..PLAN }).starts_with("episodes = "));
        assert_eq!(error(Plan { threads: 0, ..PLAN }), "threads = 0: expected 1..=256");
        let unknown = PolicySpec::new("nobody");
        let unknown = run_policy(&shipped("spike"), &unknown, PLAN, &|_| ()).unwrap_err();
        assert!(unknown.to_string().contains("`nobody`"), "{unknown}");
    }
}
