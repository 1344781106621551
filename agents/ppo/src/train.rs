//! The loop: play, judge, learn; log; save.

use crate::adam::Adam;
use crate::checkpoint::{Checkpoint, Task, write_atomically};
use crate::collect::{Collector, Episode};
use crate::evaluate::{EVALUATION_SEED, Player, mean_and_error, returns};
use crate::log::Line;
use crate::params::{Layout, Networks};
use crate::records::Records;
use crate::update::{Lesson, Model, Pace, shuffle_key, update};
use anyhow::{Context, Result, bail, ensure};
use oncall_core::{Spec, View};
use oncall_env::Scenario;
use oncall_eval::score::reference;
use oncall_rollout::{Affine, Discount, End, Moments, ReturnScale, Rollout, advantages};
use oncall_weights::file::{Evaluation, FORMAT};
use oncall_weights::{Heads, Meta, Mode, Weights};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Names of the files in a training's folder.
const CHECKPOINT: &str = "checkpoint.safetensors";
const WEIGHTS: &str = "policy.safetensors";

/// An input that varies less counts as varying by this much: what hardly changes in training must not
/// throw the policy when it does.
const INPUT_STD_MIN: f64 = 0.05;

/// Where a training runs, how often it saves, and how it is judged; none of it changes the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Folder of the checkpoint, the weights and the log.
    pub out: PathBuf,
    /// Threads that play and learn.
    pub threads: usize,
    /// Updates between two checkpoints.
    pub checkpoint_every: u64,
    /// Episodes of the evaluation at the end; 0 for none.
    pub evaluation_episodes: usize,
}

/// A training under way.
pub struct Trainer {
    task: Task,
    scenario: Scenario,
    model: Model,
    collector: Collector,
    rollout: Rollout,
    params: Vec<f32>,
    adam: Adam,
    inputs: Affine,
    scale: ReturnScale,
    update: u64,
    seconds: f64,
    threads: usize,
    rewards: Vec<f32>,
    advantages: Vec<f32>,
    returns: Vec<f32>,
}

/// 1 for each dial whose entropy counts: those named, or all.
fn explored(spec: &Spec, names: &[String]) -> Result<Vec<f32>> {
    if let Some(name) = names.iter().find(|name| spec.dial(name).is_none()) {
        let all: Vec<&str> = spec.dials.iter().map(|dial| dial.name).collect();
        bail!("explore = {name}: expected dials of the scenario's world: {}", all.join(", "));
    }
    let counts = |name: &str| names.is_empty() || names.iter().any(|named| named == name);
    Ok(spec.dials.iter().map(|dial| f32::from(u8::from(counts(dial.name)))).collect())
}

impl Trainer {
    /// At the very start, after the warm-up.
    pub fn new(scenario: Scenario, task: Task, threads: usize) -> Result<Self> {
        let mut trainer = Self::cold(scenario, task, threads)?;
        trainer.warm_up()?;
        if trainer.is_taught() {
            let config = &trainer.task.config;
            let scenario = Some(&*trainer.scenario.name).filter(|_| !config.teacher_told);
            trainer.collector.set_teacher(config.teacher.as_deref(), scenario)?;
        }
        Ok(trainer)
    }

    fn cold(scenario: Scenario, task: Task, threads: usize) -> Result<Self> {
        let config = &task.config;
        config.check()?;
        let spec = scenario.world.spec();
        let heads = Heads::on(spec, &config.grid, config.over.is_some())?;
        let explored = explored(spec, &config.explore)?;
        let inputs = spec.columns_of(View::Operator).len();
        let collector = Collector::new(&scenario, config, task.seed, threads)?;
        // So that a rule that cannot be saved is refused before anything is played.
        collector.memories()?;
        let context = collector.shape().context;
        let layout = Layout::new((inputs, context), config.hidden, heads.logits());
        let params = layout.start((spec, &heads), config.first_share, task.seed);
        let samples = config.samples();
        Ok(Self {
            rollout: Rollout::new(collector.shape()),
            adam: Adam::new(params.len()),
            inputs: Affine::identity(inputs),
            scale: ReturnScale::new(config.rows, config.gamma, config.reward_clip),
            model: Model::new(layout, heads, explored),
            rewards: vec![0.0; samples],
            advantages: vec![0.0; samples],
            returns: vec![0.0; samples],
            update: 0,
            seconds: 0.0,
            task,
            scenario,
            collector,
            params,
            threads,
        })
    }

    /// Goes on from a checkpoint of the same task.
    pub fn resume(
        scenario: Scenario,
        task: &Task,
        checkpoint: Checkpoint,
        threads: usize,
    ) -> Result<Self> {
        ensure!(
            checkpoint.task == *task,
            "the checkpoint is of another training: found {}, expected {}",
            serde_json::to_string(&checkpoint.task)?,
            serde_json::to_string(task)?
        );
        let mut trainer = Self::cold(scenario, task.clone(), threads)?;
        let (found, expected) = (checkpoint.params.len(), trainer.params.len());
        ensure!(found == expected, "params = {found}: expected {expected}");
        let width = trainer.inputs.mean.len();
        let found = [checkpoint.inputs.mean.len(), checkpoint.inputs.factor.len()];
        ensure!(found == [width; 2], "inputs = {found:?}: expected {width}");
        trainer.collector.load(&checkpoint.rows, &checkpoint.memories)?;
        trainer.collector.set_inputs(&checkpoint.inputs)?;
        Ok(Self {
            inputs: checkpoint.inputs,
            params: checkpoint.params,
            adam: checkpoint.adam,
            scale: checkpoint.scale,
            update: checkpoint.update,
            seconds: checkpoint.seconds,
            ..trainer
        })
    }

    /// Looks around before learning, so that every input varies by about one.
    fn warm_up(&mut self) -> Result<()> {
        let config = &self.task.config;
        if config.warm_up == 0 {
            return Ok(());
        }
        let networks = self.networks();
        let mut moments = Moments::new(self.inputs.mean.len());
        for rollout in 0..config.warm_up {
            let start = rollout * config.horizon as u64;
            self.collector.collect(&networks, start, &mut self.rollout)?;
            moments.observe(&self.rollout.observations);
        }
        self.inputs = Affine::standard(&moments, INPUT_STD_MIN);
        self.collector.take_environment_time();
        self.collector.set_inputs(&self.inputs)
    }

    /// Whether a teacher still decides; its memory is not part of a checkpoint.
    fn is_taught(&self) -> bool {
        self.update < self.task.config.taught()
    }

    /// As it stands.
    pub fn checkpoint(&self) -> Result<Checkpoint> {
        Ok(Checkpoint {
            task: self.task.clone(),
            update: self.update,
            seconds: self.seconds,
            params: self.params.clone(),
            adam: self.adam.clone(),
            inputs: self.inputs.clone(),
            scale: self.scale.clone(),
            rows: self.collector.save()?,
            memories: self.collector.memories()?,
        })
    }

    /// Whether all updates are done.
    pub fn is_done(&self) -> bool {
        self.update >= self.task.updates
    }

    /// One roll-out and what is learned from it.
    pub fn step(&mut self) -> Result<Line> {
        let began = Instant::now();
        let config = &self.task.config;
        if self.update == config.taught() {
            self.collector.set_teacher(None, None)?;
        }
        let networks = self.model.layout().networks(&self.params);
        let start = (config.warm_up + self.update) * config.horizon as u64;
        let episodes = self.collector.collect(&networks, start, &mut self.rollout)?;
        let played = began.elapsed();
        self.judge();
        let config = &self.task.config;
        let imitate = self.update < config.taught();
        let left = 1.0 - self.update as f64 / self.task.updates as f64;
        let pace = Pace {
            rate: if imitate {
                config.teacher_rate(self.update)
            } else {
                config.learning_rate * left
            },
            entropy_weight: if imitate {
                config.teacher_entropy_weight
            } else {
                config.entropy_weight * left
            },
            imitate,
            shuffle: shuffle_key(self.task.seed, self.update),
        };
        let lesson =
            Lesson { rollout: &self.rollout, advantages: &self.advantages, returns: &self.returns };
        let state = (&mut self.params, &mut self.adam);
        let stats = update(&self.model, config, state, &lesson, pace, self.threads)?;
        let broken = self.params.iter().position(|param| !param.is_finite());
        ensure!(broken.is_none(), "update {}: a parameter is no longer finite", self.update + 1);
        self.update += 1;
        let seconds = began.elapsed().as_secs_f64();
        self.seconds += seconds;
        let environment_s = self.collector.take_environment_time().as_secs_f64();
        let return_usd = mean_return(&episodes);
        let score = reference().score(&self.scenario.name, self.scenario.hash);
        Ok(Line {
            update: self.update as f64,
            steps: ((config.warm_up + self.update) * config.samples() as u64) as f64,
            seconds: self.seconds,
            steps_per_s: config.samples() as f64 / seconds,
            episodes: episodes.len() as f64,
            return_usd,
            entropy: stats.entropy,
            kl: stats.kl,
            clip_fraction: stats.clip_fraction,
            policy_loss: stats.policy_loss,
            value_loss: stats.value_loss,
            explained_variance: explained(&self.rollout.values, &self.returns),
            gradient_norm: stats.gradient_norm,
            learning_rate: pace.rate,
            reward_scale: self.scale.factor(),
            rollout_s: played.as_secs_f64(),
            update_s: seconds - played.as_secs_f64(),
            score: score.map_or(f64::NAN, |score| score.of(return_usd)),
            environment_s,
            forward_s: played.as_secs_f64() - environment_s,
            dial_entropies: stats.dial_entropies,
        })
    }

    /// Scales the rewards, and works out advantages and returns.
    fn judge(&mut self) {
        let config = &self.task.config;
        let rollout = &mut self.rollout;
        self.scale.observe(config.horizon, &rollout.rewards, &rollout.ends);
        self.scale.apply(&rollout.rewards, &mut self.rewards);
        if !config.bootstrap_end {
            for end in &mut rollout.ends {
                if *end == End::Truncated {
                    *end = End::Terminated;
                }
            }
        }
        advantages(
            Discount { gamma: config.gamma, lambda: config.lambda },
            config.horizon,
            (&self.rewards, &rollout.ends),
            (&rollout.values, &rollout.next_values),
            (&mut self.advantages, &mut self.returns),
        );
    }

    /// The networks as they are; they take standardised observations.
    fn networks(&self) -> Networks {
        self.model.layout().networks(&self.params)
    }

    /// The weights as they are, for a file; measured on `episodes` fresh training episodes, in the
    /// better of the two modes, unless 0.
    pub fn weights(&self, episodes: usize) -> Result<Weights> {
        let spec = self.scenario.world.spec();
        let params = self.model.layout().folded(&self.params, &self.inputs);
        let mut meta = Meta {
            format: FORMAT,
            world: spec.world.to_owned(),
            spec_hash: self.task.spec_hash.clone(),
            scenario: self.task.scenario.clone(),
            scenario_hash: self.task.scenario_hash.clone(),
            view: View::Operator.name().to_owned(),
            decision_interval_min: self.task.config.decision_interval,
            seed: self.task.seed,
            steps: (self.task.config.warm_up + self.update) * self.task.config.samples() as u64,
            grid: self.task.config.grid.clone(),
            over: self.task.config.over.clone(),
            mode: Mode::Sample,
            evaluation: None,
        };
        if episodes > 0 {
            let sampled = self.evaluate(&params, Mode::Sample, episodes)?;
            let greedy = self.evaluate(&params, Mode::Greedy, episodes)?;
            if greedy.return_usd > sampled.return_usd {
                (meta.mode, meta.evaluation) = (Mode::Greedy, Some(greedy));
            } else {
                meta.evaluation = Some(sampled);
            }
        }
        Ok(Weights::new(meta, self.model.layout().tensors(&params), spec)?)
    }

    fn evaluate(&self, params: &[f32], mode: Mode, episodes: usize) -> Result<Evaluation> {
        let actor = self.model.layout().networks(params).actor;
        let config = &self.task.config;
        let player = Player {
            actor: &actor,
            grid: &config.grid,
            over: config.over.as_deref().map(|rule| (rule, &*self.scenario.name)),
            decision_interval: config.decision_interval,
        };
        let found = returns(&self.scenario, player, mode, episodes, self.threads)?;
        let (return_usd, return_se_usd) = mean_and_error(&found);
        let score = reference().score(&self.scenario.name, self.scenario.hash);
        Ok(Evaluation {
            return_usd,
            return_se_usd,
            score: score.map(|score| score.of(return_usd)),
            episodes: episodes as u64,
            seed: EVALUATION_SEED,
            split: "train".to_owned(),
        })
    }
}

/// Trains from the start, or, if `resume`, from the checkpoint in the folder where there is one.
/// `tell` sees every update. Gives the weights, which are in the folder too.
pub fn train(
    scenario: Scenario,
    task: &Task,
    run: &Run,
    resume: bool,
    tell: &mut dyn FnMut(&Line),
) -> Result<Weights> {
    fs::create_dir_all(&run.out).with_context(|| run.out.display().to_string())?;
    let path = run.out.join(CHECKPOINT);
    let mut trainer = if resume && path.exists() {
        let checkpoint = Checkpoint::read(&path)?;
        Trainer::resume(scenario, task, checkpoint, run.threads)
            .with_context(|| path.display().to_string())?
    } else {
        ensure!(
            resume || !path.exists(),
            "{}: holds a checkpoint already; add --resume, or name another folder",
            run.out.display()
        );
        Trainer::new(scenario, task.clone(), run.threads)?
    };
    let mut records = Records::open(&run.out, trainer.update, &trainer.scenario, task.seed)?;
    while !trainer.is_done() {
        let line = trainer.step()?;
        records.write(&line)?;
        tell(&line);
        let is_due = trainer.update.is_multiple_of(run.checkpoint_every) || trainer.is_done();
        if is_due && !trainer.is_taught() {
            trainer.checkpoint()?.write(&path)?;
        }
    }
    let weights = trainer.weights(run.evaluation_episodes)?;
    records.draw(weights.meta().evaluation.as_ref().map(|found| found.return_usd))?;
    write_atomically(&weights_path(&run.out), &weights.to_bytes())?;
    Ok(weights)
}

/// Where a training leaves its weights.
pub fn weights_path(out: &Path) -> PathBuf {
    out.join(WEIGHTS)
}

fn mean_return(episodes: &[Episode]) -> f64 {
    episodes.iter().map(|episode| episode.return_).sum::<f64>() / episodes.len() as f64
}

/// Share of the returns' variance that the values explain.
fn explained(values: &[f32], returns: &[f32]) -> f64 {
    let variance = |numbers: &mut dyn Iterator<Item = f64>| {
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for x in numbers {
            (count, sum, squares) = (count + 1.0, sum + x, squares + x * x);
        }
        squares / count - (sum / count) * (sum / count)
    };
    let all = variance(&mut returns.iter().map(|&x| f64::from(x)));
    let errors = values.iter().zip(returns).map(|(&v, &r)| f64::from(r) - f64::from(v));
    1.0 - variance(&mut errors.into_iter()) / all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explained_variance() {
        assert_eq!(explained(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0]), 1.0);
        assert_eq!(explained(&[0.0, 0.0], &[1.0, 2.0]), 0.0);
        assert!((explained(&[0.5, 1.0], &[1.0, 2.0]) - 0.75).abs() < 1e-12);
    }
}
