//! The update: what a minibatch says about how to change the networks.
//!
//! libtorch works out gradients here, and does nothing else. A minibatch is cut into shards; each
//! shard's loss is a sum over its samples divided by the size of the whole minibatch, so that the
//! gradients of the shards add up to that of the mean.

#![expect(clippy::cast_possible_wrap, reason = "libtorch counts in i64; sizes are small")]

use crate::adam::{Adam, clip_norm};
use crate::config::Config;
use crate::params::Layout;
use anyhow::Result;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Split, Stream};
use oncall_rollout::Rollout;
use oncall_weights::Heads;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tch::{Kind, Tensor, no_grad};

/// A roll-out with what the critic and the actor are to learn from it.
#[derive(Debug)]
pub struct Lesson<'a> {
    /// What was seen, done and how likely that was.
    pub rollout: &'a Rollout,
    /// How much better than expected each decision was.
    pub advantages: &'a [f32],
    /// What the critic should have said.
    pub returns: &'a [f32],
}

/// Sizes that the loss needs.
#[derive(Debug, Clone)]
pub struct Model {
    layout: Layout,
    heads: Heads,
    /// `[logits, heads]`: 1 where a logit belongs to a head.
    segments: Vec<f32>,
    /// 1 for each dial whose entropy counts.
    explored: Vec<f32>,
    /// Where each head's logits begin.
    starts: Vec<i64>,
}

/// What changes from update to update.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// Learning rate.
    pub rate: f64,
    /// Weight of the entropy.
    pub entropy_weight: f64,
    /// Whether the decisions are a teacher's, to be repeated whatever came of them.
    pub imitate: bool,
    /// Stream of the shuffles.
    pub shuffle: EpisodeKey,
}

/// Means over the samples of an update.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stats {
    /// Policy part of the loss.
    pub policy_loss: f64,
    /// Squared error of the critic.
    pub value_loss: f64,
    /// Entropy of a decision, summed over the dials.
    pub entropy: f64,
    /// Divergence from the policy that played.
    pub kl: f64,
    /// Share of the samples whose ratio left the clip range.
    pub clip_fraction: f64,
    /// Norm of the gradients before they were shortened.
    pub gradient_norm: f64,
    /// Entropy of each dial's choice.
    pub dial_entropies: Vec<f64>,
}

impl Model {
    /// For networks of a layout. The entropy of a dial counts by its weight, 0 or 1.
    pub fn new(layout: Layout, heads: Heads, explored: Vec<f32>) -> Self {
        let (logits, count) = (heads.logits(), heads.count());
        let mut segments = vec![0.0; logits * count];
        let (mut logit, mut starts) = (0, Vec::with_capacity(count));
        for (head, &size) in heads.sizes().iter().enumerate() {
            starts.push(logit as i64);
            for _ in 0..size {
                segments[logit * count + head] = 1.0;
                logit += 1;
            }
        }
        Self { layout, heads, segments, explored, starts }
    }

    /// The layout of the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Logits `[n, logits]` and values `[n]` of observations `[n, inputs]`, and of what the critic is
    /// told `[n, inputs + context]`.
    fn forward(&self, params: &Tensor, seen: &Tensor, told: &Tensor) -> (Tensor, Tensor) {
        let arrays = self.layout.arrays();
        let sizes: Vec<i64> = arrays.iter().map(|array| array.len() as i64).collect();
        let pieces = params.split_with_sizes(&sizes, 0);
        let shaped: Vec<Tensor> = pieces
            .iter()
            .zip(arrays)
            .map(|(piece, array)| {
                let shape: Vec<i64> = array.shape.iter().map(|&size| size as i64).collect();
                piece.view(&shape[..])
            })
            .collect();
        let network = |arrays: &[Tensor], inputs: &Tensor| {
            let mut x = inputs.shallow_clone();
            for (index, pair) in arrays.chunks(2).enumerate() {
                x = x.linear(&pair[0], Some(&pair[1]));
                if 2 * index + 2 < arrays.len() {
                    x = x.tanh();
                }
            }
            x
        };
        let (actor, critic) = shaped.split_at(shaped.len() / 2);
        (network(actor, seen), network(critic, told).squeeze_dim(1))
    }

    /// Log-probability of the choices `[n, heads]` (as indices of logits), summed over the heads, and
    /// the entropy of each head `[n, heads]`.
    ///
    /// All heads at once: sums over a head are products with the indicator of its logits. Each head's
    /// own maximum is taken off first; with one for the whole row, far apart heads would overflow.
    fn distribution(&self, logits: &Tensor, choices: &Tensor) -> (Tensor, Tensor) {
        let count = self.heads.count() as i64;
        let segments = Tensor::from_slice(&self.segments).view([-1, count]);
        let tops = no_grad(|| {
            let sizes: Vec<i64> = self.heads.sizes().iter().map(|&size| size as i64).collect();
            let tops: Vec<Tensor> = logits
                .split_with_sizes(&sizes, 1)
                .iter()
                .map(|head| head.amax([1_i64].as_slice(), true).expand_as(head))
                .collect();
            Tensor::cat(&tops, 1)
        });
        let shifted = logits - tops;
        let weights = shifted.exp();
        let sums = weights.matmul(&segments);
        let norms = sums.log();
        let all = [1_i64].as_slice();
        let log_prob = shifted.gather(1, choices, false).sum_dim_intlist(all, false, Kind::Float)
            - norms.sum_dim_intlist(all, false, Kind::Float);
        let entropy = norms - (weights * shifted).matmul(&segments) / sums;
        (log_prob, entropy)
    }

    /// Gradient of the loss over some samples, and sums for the log.
    fn gradient(
        &self,
        (config, pace): (&Config, Pace),
        params: &[f32],
        samples: &Samples,
    ) -> (Vec<f32>, Stats) {
        let params = Tensor::from_slice(params).set_requires_grad(true);
        let (seen, told) = self.inputs(&samples.observations, &samples.contexts);
        let choices = Tensor::from_slice(&samples.choices).view([-1, self.heads.count() as i64]);
        let advantages = Tensor::from_slice(&samples.advantages);
        let returns = Tensor::from_slice(&samples.returns);

        let (logits, values) = self.forward(&params, &seen, &told);
        let (log_probs, entropies) = self.distribution(&logits, &choices);
        let log_ratio = &log_probs - Tensor::from_slice(&samples.log_probs);
        let ratio = log_ratio.exp();
        let gain = if pace.imitate {
            log_probs.sum(Kind::Float)
        } else {
            let clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip);
            (&ratio * &advantages).minimum(&(clipped * &advantages)).sum(Kind::Float)
        };
        let error = (values - returns).square().sum(Kind::Float);
        let entropy = entropies.sum(Kind::Float);
        let explored = (&entropies * Tensor::from_slice(&self.explored)).sum(Kind::Float);
        let scale = 1.0 / config.minibatch as f64;
        let loss = (&error * (0.5 * config.value_weight) - &explored * pace.entropy_weight - &gain)
            * scale;
        loss.backward();

        let mut gradient = vec![0.0; self.layout.len()];
        let len = gradient.len();
        params.grad().copy_data(&mut gradient, len);
        let stats = no_grad(|| {
            let sum = |tensor: Tensor| tensor.sum(Kind::Double).double_value(&[]);
            let of_heads = entropies.sum_dim_intlist([0_i64].as_slice(), false, Kind::Double);
            Stats {
                policy_loss: -gain.double_value(&[]),
                value_loss: error.double_value(&[]),
                entropy: entropy.double_value(&[]),
                kl: sum(&ratio - 1.0 - &log_ratio),
                clip_fraction: sum((&ratio - 1.0).abs().gt(config.clip).to_kind(Kind::Float)),
                gradient_norm: 0.0,
                dial_entropies: of_heads.iter::<f64>().into_iter().flatten().collect(),
            }
        });
        (gradient, stats)
    }

    /// Inputs of the actor and of the critic.
    fn inputs(&self, observations: &[f32], contexts: &[f32]) -> (Tensor, Tensor) {
        let arrays = self.layout.arrays();
        let width = arrays[0].shape[1] as i64;
        let context = arrays[arrays.len() / 2].shape[1] as i64 - width;
        let seen = Tensor::from_slice(observations).view([-1, width]);
        if context == 0 {
            return (seen.shallow_clone(), seen);
        }
        let told = Tensor::cat(&[&seen, &Tensor::from_slice(contexts).view([-1, context])], 1);
        (seen, told)
    }

    /// Logits and values, for comparison with the plain forward pass.
    pub fn play(
        &self,
        params: &[f32],
        observations: &[f32],
        contexts: &[f32],
    ) -> (Vec<f32>, Vec<f32>) {
        let (logits, values) = no_grad(|| {
            let (seen, told) = self.inputs(observations, contexts);
            self.forward(&Tensor::from_slice(params), &seen, &told)
        });
        let copy = |tensor: &Tensor| {
            let mut out = vec![0.0; tensor.numel()];
            let len = out.len();
            tensor.contiguous().copy_data(&mut out, len);
            out
        };
        (copy(&logits), copy(&values))
    }
}

/// Samples of one shard, side by side.
struct Samples {
    observations: Vec<f32>,
    contexts: Vec<f32>,
    /// Indices of logits.
    choices: Vec<i64>,
    log_probs: Vec<f32>,
    advantages: Vec<f32>,
    returns: Vec<f32>,
}

impl Samples {
    /// Takes samples out of a roll-out; `advantages` are those of the indices.
    fn gather(model: &Model, lesson: &Lesson<'_>, indices: &[usize], advantages: &[f32]) -> Self {
        let Lesson { rollout, returns, .. } = lesson;
        let (width, heads) = (rollout.shape.observation, rollout.shape.heads);
        let observations = indices.iter().flat_map(|i| &rollout.observations[i * width..][..width]);
        let context = rollout.shape.context;
        let contexts = indices.iter().flat_map(|i| &rollout.contexts[i * context..][..context]);
        let choices = indices.iter().flat_map(|i| {
            let stops = &rollout.stops[i * heads..][..heads];
            stops.iter().zip(&model.starts).map(|(&stop, start)| start + i64::from(stop))
        });
        Self {
            observations: observations.copied().collect(),
            contexts: contexts.copied().collect(),
            choices: choices.collect(),
            log_probs: indices.iter().map(|&i| rollout.log_probs[i]).collect(),
            advantages: advantages.to_vec(),
            returns: indices.iter().map(|&i| returns[i]).collect(),
        }
    }
}

/// What a thread is to work out: shard number, parameters, samples.
type Job = (usize, Arc<Vec<f32>>, Samples);

/// What it found.
type Found = (usize, Vec<f32>, Stats);

/// Changes the parameters by all minibatches of a lesson; gives the means over them.
///
/// Threads live for one update: between two of them the memory would otherwise be held per thread.
pub fn update(
    model: &Model,
    config: &Config,
    (params, adam): (&mut Vec<f32>, &mut Adam),
    lesson: &Lesson<'_>,
    pace: Pace,
    threads: usize,
) -> Result<Stats> {
    let threads = threads.clamp(1, config.shards);
    let weights = (config, pace);
    // On every thread that calls libtorch: its own threads would make sums depend on their number.
    tch::set_num_threads(1);
    let work = |jobs: Receiver<Job>, found: Sender<Found>| {
        tch::set_num_threads(1);
        for (shard, params, samples) in jobs {
            let (gradient, stats) = model.gradient(weights, &params, &samples);
            if found.send((shard, gradient, stats)).is_err() {
                break;
            }
        }
    };
    std::thread::scope(|scope| {
        let (send_found, found) = channel();
        let mut senders = Vec::new();
        for _ in 1..threads {
            let (sender, jobs) = channel();
            let send_found = send_found.clone();
            scope.spawn(move || work(jobs, send_found));
            senders.push(sender);
        }
        drop(send_found);
        let mut all = Stats::default();
        for epoch in 0..config.epochs {
            let mut stream = pace.shuffle.stream(Purpose::Policy, epoch as u64);
            let order = shuffled(lesson.advantages.len(), &mut stream);
            for indices in order.chunks_exact(config.minibatch) {
                let (mut gradient, stats) =
                    minibatch(model, weights, params, lesson, indices, (&senders, &found))?;
                let norm = clip_norm(&mut gradient, config.gradient_norm_max);
                adam.step(params, &gradient, pace.rate, config.adam_epsilon);
                all.add(&stats);
                all.gradient_norm += norm;
            }
        }
        Ok(all.over(config.epochs * lesson.advantages.len(), config.minibatch))
    })
}

/// Gradient of one minibatch, its shards shared among this thread and the others.
fn minibatch(
    model: &Model,
    (config, pace): (&Config, Pace),
    params: &[f32],
    lesson: &Lesson<'_>,
    indices: &[usize],
    (senders, found): (&[Sender<Job>], &Receiver<Found>),
) -> Result<(Vec<f32>, Stats)> {
    let advantages = if pace.imitate {
        vec![1.0; indices.len()]
    } else {
        normalised(lesson.advantages, indices)
    };
    let shard = config.minibatch / config.shards;
    let shared = Arc::new(params.to_vec());
    let mut results: Vec<Option<(Vec<f32>, Stats)>> = vec![None; config.shards];
    let mut own = Vec::new();
    let shards = indices.chunks_exact(shard).zip(advantages.chunks_exact(shard));
    for (number, (indices, advantages)) in shards.enumerate() {
        let samples = Samples::gather(model, lesson, indices, advantages);
        match (number + senders.len()) % (senders.len() + 1) {
            thread if thread < senders.len() => {
                senders[thread].send((number, Arc::clone(&shared), samples))?;
            }
            _ => own.push((number, samples)),
        }
    }
    let sent = config.shards - own.len();
    for (number, samples) in own {
        results[number] = Some(model.gradient((config, pace), params, &samples));
    }
    for _ in 0..sent {
        let (number, gradient, stats) = found.recv()?;
        results[number] = Some((gradient, stats));
    }
    // In the order of the shards, whoever was first.
    let mut sum = (vec![0.0; params.len()], Stats::default());
    for (gradient, stats) in results.into_iter().flatten() {
        sum.0.iter_mut().zip(&gradient).for_each(|(sum, g)| *sum += g);
        sum.1.add(&stats);
    }
    Ok(sum)
}

/// A minibatch's advantages with mean 0 and spread 1, so that the step does not depend on the
/// rewards' scale.
fn normalised(advantages: &[f32], indices: &[usize]) -> Vec<f32> {
    let values = || indices.iter().map(|&i| f64::from(advantages[i]));
    let count = indices.len() as f64;
    let mean = values().sum::<f64>() / count;
    let variance = values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
    values().map(|x| ((x - mean) / (variance.sqrt() + 1e-8)) as f32).collect()
}

/// The numbers below `len` in random order (Fisher and Yates).
fn shuffled(len: usize, stream: &mut Stream) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for last in (1..len).rev() {
        order.swap(last, stream.below(last + 1));
    }
    order
}

/// The stream of an update's shuffles.
pub fn shuffle_key(seed: u64, update: u64) -> EpisodeKey {
    const SHUFFLE: u64 = 0x7368_7566;
    EpisodeKey::new(oncall_core::streams::mix(seed, SHUFFLE), update, Split::Train, Generator::Pcg)
}

impl Stats {
    fn fields(&mut self) -> impl Iterator<Item = &mut f64> {
        let single = [
            &mut self.policy_loss,
            &mut self.value_loss,
            &mut self.entropy,
            &mut self.kl,
            &mut self.clip_fraction,
            &mut self.gradient_norm,
        ];
        single.into_iter().chain(&mut self.dial_entropies)
    }

    fn add(&mut self, other: &Stats) {
        let mut other = other.clone();
        self.dial_entropies.resize(other.dial_entropies.len(), 0.0);
        for (sum, x) in self.fields().zip(other.fields()) {
            *sum += *x;
        }
    }

    /// Means: over samples, and of the norm over minibatches.
    fn over(mut self, samples: usize, minibatch: usize) -> Self {
        let norm = self.gradient_norm * minibatch as f64 / samples as f64;
        self.fields().for_each(|x| *x /= samples as f64);
        Self { gradient_norm: norm, ..self }
    }
}

#[cfg(test)]
mod tests;
