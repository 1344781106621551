//! Roll-outs: many rows, played on threads with the plain forward pass.
//!
//! A worker owns neighbouring rows and plays them for a whole roll-out without a word to the others.
//! What a row draws depends on the training's seed, the row and the step, so the number of workers
//! changes nothing.

use crate::config::Config;
use crate::hindsight::Hindsight;
use crate::params::Networks;
use crate::rules::{Rules, pace};
use crate::teacher::Teachers;
use anyhow::{Context, Result, ensure};
use oncall_core::streams::{Purpose, mix, row_seed};
use oncall_core::{EpisodeKey, Generator, Split};
use oncall_env::{Actions, AnyVecEnv, Autoreset, Columns, EpisodeStats, Options, Scenario, Seeds};
use oncall_rollout::{Affine, End, Part, Rollout, Shape};
use oncall_weights::{Heads, Scratch};
use std::time::{Duration, Instant};

/// Before training, row `i` plays `7 i` steps, modulo [`stagger`], with nobody at the dials: else every
/// roll-out would hold one phase of the shift.
const STAGGER_ROW: usize = 7;

/// Steps over which rows are spread: the length of an episode. Of the fleet's shifts that of most.
fn stagger(env: &AnyVecEnv, decision_interval: u32) -> usize {
    let ticks = match env {
        AnyVecEnv::Fleet(_) => 240,
        AnyVecEnv::Discovery(_) => {
            let lengths = (0..env.num_envs()).map(|row| env.row(row).length_min as usize);
            lengths.max().unwrap_or(1)
        }
    };
    ticks.div_ceil(decision_interval as usize).max(1)
}

/// Seeds of some rows of a training, cut as the scenario's generator takes them.
pub(crate) fn row_seeds(
    env: &AnyVecEnv,
    seed: u64,
    rows: std::ops::Range<usize>,
) -> Vec<Option<u64>> {
    let mask = match env.generator() {
        Generator::Pcg => u64::MAX,
        Generator::Mulberry32 => u64::from(u32::MAX),
    };
    rows.map(|row| Some(row_seed(seed, row as u64) & mask)).collect()
}

/// Keeps the actor's draws apart from the rows' own.
const ACTOR: u64 = 0x0061_6374_6f72;

/// Plays roll-outs.
#[derive(Debug)]
pub struct Collector {
    workers: Vec<Worker>,
    shape: Shape,
}

/// Some neighbouring rows.
#[derive(Debug)]
struct Worker {
    env: AnyVecEnv,
    heads: Heads,
    keys: Vec<EpisodeKey>,
    /// Whose decisions the actor deviates from, if there is such a rule; and the ticks that a deviation stands, at
    /// each of which the rule decides anew. Without a rule the environment holds decisions by itself.
    over: Option<Rules>,
    ticks: u32,
    /// Who decides instead of the actor, as long as there is one.
    teachers: Option<Teachers>,
    /// What the rows show now, as the networks take it.
    observations: Vec<f32>,
    inputs: Affine,
    /// What the critic is told of the rows' episodes.
    contexts: Vec<f32>,
    hindsight: Hindsight,
    last_observations: Vec<f32>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    stops: Vec<i8>,
    actions: Vec<f64>,
    scratch: Scratch,
    weights: Vec<f32>,
    /// Spent in the environment since it was last asked.
    environment: Duration,
}

/// An episode that ended.
pub type Episode = EpisodeStats;

impl Collector {
    /// Rows of a scenario's training episodes, shared among `threads` workers, each at its own minute.
    pub fn new(scenario: &Scenario, config: &Config, seed: u64, threads: usize) -> Result<Self> {
        let threads = threads.clamp(1, config.rows);
        let counts = split(config.rows, threads);
        let hindsight =
            if config.plain_critic { Hindsight::none() } else { Hindsight::new(scenario, seed)? };
        let mut first = 0;
        let mut workers = Vec::with_capacity(threads);
        for count in counts {
            workers.push(Worker::new(scenario, (&hindsight, config), seed, first..first + count)?);
            first += count;
        }
        let env = &workers[0].env;
        let shape = Shape {
            rows: config.rows,
            steps: config.horizon,
            observation: env.obs_len(),
            context: hindsight.width(),
            heads: env.spec().dials.len(),
        };
        Ok(Self { workers, shape })
    }

    /// Size of a roll-out.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Time in the environment since the last call, mean of the workers.
    pub fn take_environment_time(&mut self) -> Duration {
        let workers = self.workers.len() as u32;
        let spent = self.workers.iter_mut().map(|worker| std::mem::take(&mut worker.environment));
        spent.sum::<Duration>() / workers
    }

    /// Changes how observations become inputs of the networks.
    pub fn set_inputs(&mut self, inputs: &Affine) -> Result<()> {
        self.workers.iter_mut().try_for_each(|worker| {
            worker.inputs = inputs.clone();
            worker.look()
        })
    }

    /// Lets a rule decide from now on, or the actor again; see [`Teachers::new`].
    pub fn set_teacher(&mut self, rule: Option<&str>, scenario: Option<&str>) -> Result<()> {
        for worker in &mut self.workers {
            worker.teachers =
                rule.map(|rule| Teachers::new(rule, scenario, &worker.env)).transpose()?;
        }
        Ok(())
    }

    /// Plays a roll-out that begins with the row's decision number `start`; gives the episodes that
    /// ended, in the order of the rows.
    pub fn collect(
        &mut self,
        networks: &Networks,
        start: u64,
        rollout: &mut Rollout,
    ) -> Result<Vec<Episode>> {
        let counts: Vec<usize> = self.workers.iter().map(|worker| worker.env.num_envs()).collect();
        let mut jobs: Vec<_> = self.workers.iter_mut().zip(rollout.parts(&counts)).collect();
        let (first, others) = jobs.split_at_mut(1);
        let parts = std::thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .map(|(worker, part)| scope.spawn(move || worker.collect(networks, start, part)))
                .collect();
            let (worker, part) = &mut first[0];
            let mut parts = vec![worker.collect(networks, start, part)];
            for thread in others {
                parts.push(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            }
            parts
        });
        let mut episodes = Vec::new();
        for part in parts {
            // By row, then by step, whoever played it.
            let mut part = part?;
            part.sort_by_key(|(row, _)| *row);
            episodes.extend(part.into_iter().map(|(_, episode)| episode));
        }
        Ok(episodes)
    }

    /// State of every row, as bytes.
    pub fn save(&self) -> Result<Vec<Vec<u8>>> {
        let rows = |worker: &Worker| {
            (0..worker.env.num_envs()).map(|row| worker.env.save(row)).collect::<Vec<_>>()
        };
        self.workers.iter().flat_map(rows).map(|state| Ok(state?)).collect()
    }

    /// What the rule that is played over remembers of the rows; nothing without one.
    pub fn memories(&self) -> Result<Vec<f64>> {
        let rules = self.workers.iter().filter_map(|worker| worker.over.as_ref());
        Ok(rules.map(Rules::memories).collect::<Result<Vec<_>>>()?.concat())
    }

    /// Goes on where [`Collector::save`] and [`Collector::memories`] were called, with any number of threads.
    pub fn load(&mut self, states: &[Vec<u8>], memories: &[f64]) -> Result<()> {
        let (mut states, mut memories) = (states, memories);
        let each = memories.len() / states.len().max(1);
        for worker in &mut self.workers {
            let rows: Vec<usize> = (0..worker.env.num_envs()).collect();
            let (own, rest) = states.split_at_checked(rows.len()).context("too few saved rows")?;
            let own: Vec<&[u8]> = own.iter().map(Vec::as_slice).collect();
            worker.env.load(&rows, &own)?;
            worker.look()?;
            states = rest;
            if let Some(over) = &mut worker.over {
                let (own, rest) =
                    memories.split_at_checked(rows.len() * each).context("too few memories")?;
                over.recall(own)?;
                memories = rest;
            }
        }
        ensure!(memories.is_empty(), "memories: expected none without a rule");
        Ok(())
    }
}

/// Writes the dials of every row at a tick of its decision: those of the choices, over what the rule does now, if
/// there is one. What was pressed is not pressed again.
pub(crate) fn act(
    mut over: Option<&mut Rules>,
    env: &AnyVecEnv,
    heads: &Heads,
    (stops, tick): (&[i8], u32),
    actions: &mut [f64],
) -> Result<()> {
    let dials = heads.count();
    let rows = stops.chunks_exact(dials).zip(actions.chunks_exact_mut(dials));
    for (row, (stops, action)) in rows.enumerate() {
        if let Some(over) = &mut over {
            over.act(env, row, action)?;
        }
        heads.decode(stops, action);
        if tick > 0 {
            heads.release(stops, action);
        }
    }
    Ok(())
}

/// As even parts as can be.
fn split(rows: usize, parts: usize) -> Vec<usize> {
    (0..parts).map(|part| rows * (part + 1) / parts - rows * part / parts).collect()
}

impl Worker {
    fn new(
        scenario: &Scenario,
        (hindsight, config): (&Hindsight, &Config),
        seed: u64,
        rows: std::ops::Range<usize>,
    ) -> Result<Self> {
        let (held, ticks) = pace(config.over.is_some(), config.decision_interval);
        let options = Options {
            autoreset: Autoreset::SameStep,
            split: Split::Train,
            decision_interval_min: held,
            ..Options::default()
        };
        let mut env = AnyVecEnv::new(scenario.world.clone(), rows.len(), options)?;
        let mut columns = env.columns();
        let seeds = row_seeds(&env, seed, rows.clone());
        env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset())?;
        let dials = env.spec().dials.len();
        let keep = vec![f64::NAN; rows.len() * dials];
        let steps = stagger(&env, config.decision_interval);
        for step in (0..steps).rev() {
            for _ in 0..ticks {
                env.step(Actions::Policy(&keep), &mut columns.borrow())?;
            }
            let begins = |row: usize| STAGGER_ROW * row % steps == step;
            let mask: Vec<bool> = rows.clone().map(begins).collect();
            env.reset(Seeds::Keep, Some(&mask), &mut columns.borrow_reset())?;
        }
        let key = |row: usize| {
            EpisodeKey::new(mix(seed, ACTOR), row as u64, Split::Train, Generator::Pcg)
        };
        let mut worker = Self {
            heads: Heads::on(env.spec(), &config.grid, config.over.is_some())?,
            over: config
                .over
                .as_deref()
                .map(|rule| Rules::new(("over", rule), Some(&scenario.name), &env))
                .transpose()?,
            ticks,
            teachers: None,
            keys: rows.clone().map(key).collect(),
            inputs: Affine::identity(env.obs_len()),
            contexts: vec![0.0; rows.len() * hindsight.width()],
            hindsight: hindsight.clone(),
            observations: columns.observations,
            last_observations: columns.final_observations,
            rewards: columns.rewards,
            terminated: columns.terminated,
            truncated: columns.truncated,
            stops: vec![0; rows.len() * dials],
            actions: vec![0.0; rows.len() * dials],
            scratch: Scratch::default(),
            weights: Vec::new(),
            environment: Duration::ZERO,
            env,
        };
        worker.look()?;
        Ok(worker)
    }

    /// Reads what the rows show.
    fn look(&mut self) -> Result<()> {
        self.env.observe_into(&mut self.observations)?;
        self.inputs.apply(&mut self.observations);
        self.tell(|_| true);
        Ok(())
    }

    /// Tells the critic what was drawn for the episodes of some rows.
    fn tell(&mut self, is_new: impl Fn(usize) -> bool) {
        let width = self.hindsight.width();
        for row in (0..self.env.num_envs()).filter(|&row| is_new(row)) {
            self.hindsight.write(&self.env, row, &mut self.contexts[row * width..][..width]);
        }
    }

    /// Plays the part; gives the episodes that ended with the row that they were in.
    fn collect(
        &mut self,
        networks: &Networks,
        start: u64,
        part: &mut Part<'_>,
    ) -> Result<Vec<(usize, Episode)>> {
        let mut ended = Ended::default();
        for step in 0..part.shape.steps {
            self.decide(networks, start + step as u64, step, part)?;
            self.play(part.rewards, part.shape.steps, step)?;
            self.inputs.apply(&mut self.observations);
            self.record(step, part, &mut ended);
            let began = self.env.began().to_vec();
            self.tell(|row| began[row]);
        }
        self.inputs.apply(&mut ended.observations);
        self.appraise(networks, part, &ended);
        Ok(ended.episodes)
    }

    /// What was decided, for as long as it stands; writes what it earns.
    fn play(&mut self, earned: &mut [f64], steps: usize, step: usize) -> Result<()> {
        for tick in 0..self.ticks {
            act(
                self.over.as_mut(),
                &self.env,
                &self.heads,
                (&self.stops, tick),
                &mut self.actions,
            )?;
            let mut columns = Columns {
                observations: &mut self.observations,
                rewards: &mut self.rewards,
                terminated: &mut self.terminated,
                truncated: &mut self.truncated,
                final_observations: Some(&mut self.last_observations),
                ..Columns::default()
            };
            let began = Instant::now();
            self.env.step(Actions::Policy(&self.actions), &mut columns)?;
            self.environment += began.elapsed();
            for (row, reward) in self.rewards.iter().enumerate() {
                let earned = &mut earned[row * steps + step];
                *earned = if tick == 0 { *reward } else { *earned + *reward };
            }
            let is_last = tick + 1 == self.ticks;
            ensure!(
                is_last || !self.env.ended().contains(&true),
                "decision_interval = {}: expected a divisor of the episodes' lengths",
                self.ticks
            );
        }
        Ok(())
    }

    /// One decision of every row.
    fn decide(
        &mut self,
        networks: &Networks,
        number: u64,
        step: usize,
        part: &mut Part<'_>,
    ) -> Result<()> {
        let Shape { steps, observation, context, heads, .. } = part.shape;
        let logits = networks.actor.forward(&self.observations, &mut self.scratch);
        let stride = networks.actor.stride();
        for (row, (logits, stops)) in
            logits.chunks_exact(stride).zip(self.stops.chunks_exact_mut(heads)).enumerate()
        {
            let sample = row * steps + step;
            part.log_probs[sample] = if let Some(teachers) = &mut self.teachers {
                teachers.decide(&self.env, row, &self.heads, stops)?;
                self.heads.log_prob(logits, &mut self.weights, stops)
            } else {
                let mut stream = self.keys[row].stream(Purpose::Policy, number);
                self.heads.sample(logits, &mut stream, &mut self.weights, stops)
            };
            part.stops[sample * heads..][..heads].copy_from_slice(stops);
            part.observations[sample * observation..][..observation]
                .copy_from_slice(&self.observations[row * observation..][..observation]);
            part.contexts[sample * context..][..context]
                .copy_from_slice(&self.contexts[row * context..][..context]);
        }
        Ok(())
    }

    /// What a step came to.
    fn record(&self, step: usize, part: &mut Part<'_>, ended: &mut Ended) {
        let Shape { steps, observation, context, .. } = part.shape;
        for row in 0..self.rewards.len() {
            let sample = row * steps + step;
            part.ends[sample] = End::new(self.terminated[row], self.truncated[row]);
            if part.ends[sample].is_end() {
                let last = &self.last_observations[row * observation..][..observation];
                ended.observations.extend_from_slice(last);
                ended.contexts.extend_from_slice(&self.contexts[row * context..][..context]);
                ended.samples.push(sample);
                ended.episodes.push((row, self.env.episode_stats(row)));
            }
        }
    }

    /// The critic's values of what was seen, and of what each step led to.
    fn appraise(&mut self, networks: &Networks, part: &mut Part<'_>, ended: &Ended) {
        let Shape { steps, observation, context, .. } = part.shape;
        let (critic, stride) = (&networks.critic, networks.critic.stride());
        let scratch = &mut self.scratch;
        let mut told = Vec::new();
        let mut appraise = |seen: &[f32], contexts: &[f32], values: &mut [f32]| {
            told.clear();
            for row in 0..values.len() {
                told.extend_from_slice(&seen[row * observation..][..observation]);
                told.extend_from_slice(&contexts[row * context..][..context]);
            }
            let found = critic.forward(&told, scratch).iter().step_by(stride);
            values.iter_mut().zip(found).for_each(|(value, &found)| *value = found);
        };
        // Row by row, so that the layers stay in the cache.
        for (row, values) in part.values.chunks_exact_mut(steps).enumerate() {
            let (seen, contexts) = (row * steps * observation, row * steps * context);
            appraise(&part.observations[seen..], &part.contexts[contexts..], values);
        }
        let mut now = vec![0.0; part.shape.rows];
        appraise(&self.observations, &self.contexts, &mut now);
        let rows = part.values.chunks_exact(steps).zip(part.next_values.chunks_exact_mut(steps));
        for (now, (values, next)) in now.iter().zip(rows) {
            next[..steps - 1].copy_from_slice(&values[1..]);
            next[steps - 1] = *now;
        }
        let mut last = vec![0.0; ended.samples.len()];
        appraise(&ended.observations, &ended.contexts, &mut last);
        for (&sample, &value) in ended.samples.iter().zip(&last) {
            part.next_values[sample] = value;
        }
    }
}

/// Episodes that ended in a part, in the order of the steps.
#[derive(Default)]
struct Ended {
    samples: Vec<usize>,
    observations: Vec<f32>,
    contexts: Vec<f32>,
    episodes: Vec<(usize, Episode)>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FIRST_SHARE;
    use crate::params::Layout;
    use std::collections::BTreeSet;

    const SMALL: (usize, usize) = (12, 50);

    fn setting() -> (Scenario, Config, Networks) {
        let scenario = oncall_env::shipped("spike").unwrap();
        let config = Config { rows: SMALL.0, horizon: SMALL.1, minibatch: 60, ..Config::default() };
        let spec = scenario.world.spec();
        let inputs = spec.columns_of(oncall_core::View::Operator).len();
        let layout = Layout::new((inputs, 3), 16, Heads::of(spec).logits());
        let networks = layout.networks(&layout.start((spec, &Heads::of(spec)), FIRST_SHARE, 5));
        (scenario, config, networks)
    }

    fn play(collector: &mut Collector, networks: &Networks, from: u64, times: u64) -> Vec<Rollout> {
        let mut all = Vec::new();
        for time in from..from + times {
            let mut rollout = Rollout::new(collector.shape());
            collector.collect(networks, time * SMALL.1 as u64, &mut rollout).unwrap();
            all.push(rollout);
        }
        all
    }

    #[test]
    fn threads_change_nothing() {
        let (scenario, config, networks) = setting();
        let with = |threads| {
            let mut collector = Collector::new(&scenario, &config, 9, threads).unwrap();
            let rollouts = play(&mut collector, &networks, 0, 5);
            (rollouts, collector.save().unwrap())
        };
        let alone = with(1);
        assert_eq!(alone, with(2));
        assert_eq!(alone, with(5));
        assert_eq!(alone, with(99));
    }

    #[test]
    fn a_saved_collector_goes_on() {
        let (scenario, config, networks) = setting();
        let mut collector = Collector::new(&scenario, &config, 9, 1).unwrap();
        play(&mut collector, &networks, 0, 3);
        let saved = collector.save().unwrap();
        let known = play(&mut collector, &networks, 3, 3);
        let mut other = Collector::new(&scenario, &config, 1, 2).unwrap();
        // Draws follow from the seed, so that must be the same.
        let mut fresh = Collector::new(&scenario, &config, 9, 2).unwrap();
        fresh.load(&saved, &[]).unwrap();
        assert_eq!(play(&mut fresh, &networks, 3, 3), known);
        other.load(&saved, &[]).unwrap();
        assert_ne!(play(&mut other, &networks, 3, 3), known);
        assert!(fresh.load(&saved[..5], &[]).is_err());
        assert!(fresh.load(&saved, &[1.0]).is_err());
    }

    /// Over a rule that remembers: what it remembers is saved with the rows, and goes to whichever worker has them.
    #[test]
    fn a_saved_collector_goes_on_over_a_rule() {
        let scenario = oncall_env::shipped("mixed-discovery").unwrap();
        let config = Config {
            rows: 3,
            horizon: 30,
            minibatch: 90,
            decision_interval: 3,
            over: Some("operator".to_owned()),
            ..Config::default()
        };
        let spec = scenario.world.spec();
        let inputs = spec.columns_of(oncall_core::View::Operator).len();
        let heads = Heads::on(spec, &config.grid, true).unwrap();
        let mut collector = Collector::new(&scenario, &config, 9, 2).unwrap();
        let layout = Layout::new((inputs, collector.shape().context), 8, heads.logits());
        let networks = layout.networks(&layout.start((spec, &heads), 0.999, 5));
        let play = |collector: &mut Collector, time: u64| {
            let mut rollout = Rollout::new(collector.shape());
            collector.collect(&networks, 30 * time, &mut rollout).unwrap();
            rollout
        };
        play(&mut collector, 0);
        let (saved, memories) = (collector.save().unwrap(), collector.memories().unwrap());
        let known = play(&mut collector, 1);
        for threads in [1, 3] {
            let mut fresh = Collector::new(&scenario, &config, 9, threads).unwrap();
            fresh.load(&saved, &memories).unwrap();
            assert_eq!(fresh.memories().unwrap(), memories);
            assert_eq!(play(&mut fresh, 1), known);
            assert!(fresh.load(&saved, &[]).is_err());
        }
    }

    /// Values, next values and rewards against the definition, with episodes ending in between.
    #[test]
    fn values_belong_to_their_observations() {
        let (scenario, config, networks) = setting();
        let mut collector = Collector::new(&scenario, &config, 2, 2).unwrap();
        let mut scratch = Scratch::default();
        let mut value = |told: &[f32]| networks.critic.forward(told, &mut scratch)[0];
        let width = collector.shape().observation;
        let (mut ends, mut episodes) = (0, 0);
        for time in 0..6 {
            let mut rollout = Rollout::new(collector.shape());
            episodes +=
                collector.collect(&networks, time * SMALL.1 as u64, &mut rollout).unwrap().len();
            let observation = |sample: usize| {
                let seen = &rollout.observations[sample * width..][..width];
                [seen, &rollout.contexts[sample * 3..][..3]].concat()
            };
            for sample in 0..rollout.shape.len() {
                assert_eq!(rollout.values[sample], value(&observation(sample)));
                assert!(rollout.log_probs[sample] < 0.0 && rollout.rewards[sample] <= 0.0);
                if (sample + 1) % SMALL.1 == 0 {
                    continue;
                }
                let next = value(&observation(sample + 1));
                if rollout.ends[sample].is_end() {
                    // The last observation of one shift is not the first of the next.
                    assert_ne!(rollout.next_values[sample], next);
                    ends += 1;
                } else {
                    assert_eq!(rollout.next_values[sample], next);
                }
            }
        }
        assert!(ends >= 10 && episodes >= ends, "{ends} {episodes}");
    }

    #[test]
    fn rows_are_spread_over_the_shift() {
        let (scenario, config, _) = setting();
        let collector = Collector::new(&scenario, &config, 9, 3).unwrap();
        let minutes: BTreeSet<u32> = collector
            .workers
            .iter()
            .flat_map(|worker| (0..worker.env.num_envs()).map(|row| worker.env.row(row).minute))
            .collect();
        assert_eq!(
            minutes.into_iter().collect::<Vec<_>>(),
            (0..12).map(|row| 7 * row).collect::<Vec<_>>()
        );
    }
}
