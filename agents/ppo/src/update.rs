//! The update: what a minibatch says about how to change the networks.
//!
//! libtorch works out gradients here, and does nothing else. A minibatch is cut into shards; each
//! shard's loss is a sum over its samples divided by the size of the whole minibatch, so that the
//! gradients of the shards add up to that of the mean.

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
    /// Where each head's logits begin.
    starts: Vec<i64>,
}

/// Means over the samples of an update.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
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
}

impl Model {
    /// For networks of a layout.
    pub fn new(layout: Layout, heads: Heads) -> Self {
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
        Self { layout, heads, segments, starts }
    }

    /// The layout of the parameters.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Logits `[n, logits]` and values `[n]` of observations `[n, inputs]`.
    fn forward(&self, params: &Tensor, observations: &Tensor) -> (Tensor, Tensor) {
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
        let network = |arrays: &[Tensor]| {
            let mut x = observations.shallow_clone();
            for (index, pair) in arrays.chunks(2).enumerate() {
                x = x.linear(&pair[0], Some(&pair[1]));
                if 2 * index + 2 < arrays.len() {
                    x = x.tanh();
                }
            }
            x
        };
        let (actor, critic) = shaped.split_at(shaped.len() / 2);
        (network(actor), network(critic).squeeze_dim(1))
    }

    /// Log-probability of the choices `[n, heads]` (as indices of logits), and the entropy, both summed over the heads.
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
        (log_prob, entropy.sum_dim_intlist(all, false, Kind::Float))
    }

    /// Gradient of the loss over some samples, and sums for the log.
    fn gradient(&self, config: &Config, params: &[f32], samples: &Samples) -> (Vec<f32>, Stats) {
        let width = self.layout.arrays()[0].shape[1] as i64;
        let params = Tensor::from_slice(params).set_requires_grad(true);
        let observations = Tensor::from_slice(&samples.observations).view([-1, width]);
        let choices = Tensor::from_slice(&samples.choices).view([-1, self.heads.count() as i64]);
        let advantages = Tensor::from_slice(&samples.advantages);
        let returns = Tensor::from_slice(&samples.returns);

        let (logits, values) = self.forward(&params, &observations);
        let (log_probs, entropies) = self.distribution(&logits, &choices);
        let log_ratio = log_probs - Tensor::from_slice(&samples.log_probs);
        let ratio = log_ratio.exp();
        let clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip);
        let gain = (&ratio * &advantages).minimum(&(clipped * &advantages)).sum(Kind::Float);
        let error = (values - returns).square().sum(Kind::Float);
        let entropy = entropies.sum(Kind::Float);
        let scale = 1.0 / config.minibatch as f64;
        let loss =
            (&error * (0.5 * config.value_weight) - &entropy * config.entropy_weight - &gain)
                * scale;
        loss.backward();

        let mut gradient = vec![0.0; self.layout.len()];
        let len = gradient.len();
        params.grad().copy_data(&mut gradient, len);
        let stats = no_grad(|| {
            let sum = |tensor: Tensor| tensor.sum(Kind::Double).double_value(&[]);
            Stats {
                policy_loss: -gain.double_value(&[]),
                value_loss: error.double_value(&[]),
                entropy: entropy.double_value(&[]),
                kl: sum(&ratio - 1.0 - &log_ratio),
                clip_fraction: sum((&ratio - 1.0).abs().gt(config.clip).to_kind(Kind::Float)),
                gradient_norm: 0.0,
            }
        });
        (gradient, stats)
    }

    /// Logits and values, for comparison with the plain forward pass.
    pub fn play(&self, params: &[f32], observations: &[f32]) -> (Vec<f32>, Vec<f32>) {
        let width = self.layout.arrays()[0].shape[1] as i64;
        let (logits, values) = no_grad(|| {
            let observations = Tensor::from_slice(observations).view([-1, width]);
            self.forward(&Tensor::from_slice(params), &observations)
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
        let choices = indices.iter().flat_map(|i| {
            let stops = &rollout.stops[i * heads..][..heads];
            stops.iter().zip(&model.starts).map(|(&stop, start)| start + i64::from(stop))
        });
        Self {
            observations: observations.copied().collect(),
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
    (rate, key): (f64, EpisodeKey),
    threads: usize,
) -> Result<Stats> {
    let threads = threads.clamp(1, config.shards);
    // On every thread that calls libtorch: its own threads would make sums depend on their number.
    tch::set_num_threads(1);
    let work = |jobs: Receiver<Job>, found: Sender<Found>| {
        tch::set_num_threads(1);
        for (shard, params, samples) in jobs {
            let (gradient, stats) = model.gradient(config, &params, &samples);
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
            let mut stream = key.stream(Purpose::Policy, epoch as u64);
            let order = shuffled(lesson.advantages.len(), &mut stream);
            for indices in order.chunks_exact(config.minibatch) {
                let (mut gradient, stats) =
                    minibatch(model, config, params, lesson, indices, (&senders, &found))?;
                let norm = clip_norm(&mut gradient, config.gradient_norm_max);
                adam.step(params, &gradient, rate, config.adam_epsilon);
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
    config: &Config,
    params: &[f32],
    lesson: &Lesson<'_>,
    indices: &[usize],
    (senders, found): (&[Sender<Job>], &Receiver<Found>),
) -> Result<(Vec<f32>, Stats)> {
    let advantages = normalised(lesson.advantages, indices);
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
        results[number] = Some(model.gradient(config, params, &samples));
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
    fn fields(&mut self) -> [&mut f64; 6] {
        [
            &mut self.policy_loss,
            &mut self.value_loss,
            &mut self.entropy,
            &mut self.kl,
            &mut self.clip_fraction,
            &mut self.gradient_norm,
        ]
    }

    fn add(&mut self, other: &Stats) {
        let mut other = *other;
        for (sum, x) in self.fields().into_iter().zip(other.fields()) {
            *sum += *x;
        }
    }

    /// Means: over samples, and of the norm over minibatches.
    fn over(mut self, samples: usize, minibatch: usize) -> Self {
        let norm = self.gradient_norm * minibatch as f64 / samples as f64;
        self.fields().into_iter().for_each(|x| *x /= samples as f64);
        Self { gradient_norm: norm, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::View;
    use oncall_core::math::{exp, ln};
    use oncall_rollout::Shape;
    use oncall_weights::Scratch;

    fn stream(number: u64) -> Stream {
        EpisodeKey::new(11, 0, Split::Train, Generator::Pcg).stream(Purpose::Policy, number)
    }

    fn numbers(number: u64, len: usize, size: f64) -> Vec<f32> {
        let mut stream = stream(number);
        (0..len).map(|_| (size * (2.0 * stream.uniform() - 1.0)) as f32).collect()
    }

    fn fleet(hidden: usize) -> (Model, Vec<f32>) {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let heads = Heads::of(&spec);
        let inputs = spec.columns_of(View::Operator).len();
        let layout = Layout::new(inputs, hidden, heads.logits());
        let mut params = layout.start(&spec, 3);
        // Away from the start, so that every part of the network matters.
        let noise = numbers(0, params.len(), 0.05);
        params.iter_mut().zip(noise).for_each(|(param, noise)| *param += noise);
        (Model::new(layout, heads), params)
    }

    #[test]
    fn the_plain_forward_pass_agrees_with_libtorch() {
        let (model, params) = fleet(64);
        let networks = model.layout().networks(&params);
        let rows = 300;
        let observations = numbers(1, rows * networks.actor.inputs(), 1.0);
        let (logits, values) = model.play(&params, &observations);
        let mut scratch = Scratch::default();
        let own = networks.actor.forward(&observations, &mut scratch).to_vec();
        let own_values = networks.critic.forward(&observations, &mut scratch);
        let (outputs, stride) = (networks.actor.outputs(), networks.actor.stride());
        for row in 0..rows {
            for (own, known) in own[row * stride..].iter().zip(&logits[row * outputs..][..outputs])
            {
                assert!((own - known).abs() < 1e-5, "{own} {known}");
            }
            let own = own_values[row * networks.critic.stride()];
            assert!((own - values[row]).abs() < 1e-5, "{own} {}", values[row]);
        }
    }

    /// Against the definition in double precision, with heads far apart.
    #[test]
    fn log_probabilities_and_entropies_are_right() {
        let heads = Heads::new(vec![3, 2, 4]);
        let model = Model::new(Layout::new(2, 2, 9), heads.clone());
        let logits = [[0.3, -1.0, 2.0, 160.0, 159.0, -150.0, -151.0, -149.5, -170.0_f32]; 2];
        let choices = [[2_i64, 0, 2], [0, 1, 1]];
        let indices = choices.map(|[a, b, c]| [a, 3 + b, 5 + c]);
        let (log_probs, entropies) = model.distribution(
            &Tensor::from_slice(logits.as_flattened()).view([2, 9]),
            &Tensor::from_slice(indices.as_flattened()).view([2, 3]),
        );
        for (row, choices) in choices.iter().enumerate() {
            let (mut log_prob, mut entropy, mut start) = (0.0, 0.0, 0);
            for (&size, &choice) in heads.sizes().iter().zip(choices) {
                let head: Vec<f64> =
                    logits[row][start..start + size].iter().map(|&x| f64::from(x)).collect();
                let top = head.iter().copied().fold(f64::MIN, f64::max);
                let norm = top + ln(head.iter().map(|x| exp(x - top)).sum());
                log_prob += head[choice as usize] - norm;
                entropy -= head.iter().map(|x| exp(x - norm) * (x - norm)).sum::<f64>();
                start += size;
            }
            assert!((log_probs.double_value(&[row as i64]) - log_prob).abs() < 1e-4);
            assert!((entropies.double_value(&[row as i64]) - entropy).abs() < 1e-4);
        }
    }

    fn lesson_parts(model: &Model, params: &[f32], len: usize) -> (Rollout, Vec<f32>, Vec<f32>) {
        let heads = &model.heads;
        let observation = model.layout.arrays()[0].shape[1];
        let shape = Shape { rows: len, steps: 1, observation, heads: heads.count() };
        let mut rollout = Rollout::new(shape);
        rollout.observations = numbers(5, len * observation, 1.0);
        let networks = model.layout.networks(params);
        let mut scratch = Scratch::default();
        let logits = networks.actor.forward(&rollout.observations, &mut scratch);
        let mut memory = Vec::new();
        let rows = logits.chunks_exact(networks.actor.stride());
        let stops = rollout.stops.chunks_exact_mut(heads.count());
        for ((index, logits), stops) in rows.enumerate().zip(stops) {
            let mut stream = stream(100 + index as u64);
            rollout.log_probs[index] = heads.sample(logits, &mut stream, &mut memory, stops);
        }
        (rollout, numbers(6, len, 1.0), numbers(7, len, 2.0))
    }

    /// The gradient against differences of the loss, worked out in the plain way.
    #[test]
    fn gradients_are_slopes_of_the_loss() {
        let (model, params) = fleet(8);
        let config = Config {
            minibatch: 64,
            entropy_weight: 0.3,
            value_weight: 0.7,
            clip: 0.05,
            ..Config::default()
        };
        let (mut rollout, advantages, returns) = lesson_parts(&model, &params, 64);
        // As if another policy had played: some ratios are inside the range, some outside.
        for (log_prob, noise) in rollout.log_probs.iter_mut().zip(numbers(8, 64, 0.1)) {
            *log_prob += noise;
        }
        let lesson = Lesson { rollout: &rollout, advantages: &advantages, returns: &returns };
        let indices: Vec<usize> = (0..64).collect();
        let samples = Samples::gather(&model, &lesson, &indices, &advantages);
        let (gradient, stats) = model.gradient(&config, &params, &samples);
        assert!(stats.clip_fraction > 5.0 && stats.clip_fraction < 59.0, "{stats:?}");
        let loss = |params: &[f32]| plain_loss(&model, &config, params, &lesson);
        let (mut checked, step) = (0, 1e-3);
        for index in (0..params.len()).step_by(7) {
            let moved = |by: f32| {
                let mut params = params.clone();
                params[index] += by;
                (loss(&params), params[index])
            };
            let ((above, at_above), (below, at_below)) = (moved(step), moved(-step));
            let slope = (above - below) / f64::from(at_above - at_below);
            let found = f64::from(gradient[index]);
            assert!((slope - found).abs() < 2e-3 + 0.02 * found.abs(), "{index}: {slope} {found}");
            checked += usize::from(found.abs() > 1e-2);
        }
        assert!(checked > 10, "{checked}");
    }

    /// The loss by the plain forward pass, in double precision from the logits on.
    fn plain_loss(model: &Model, config: &Config, params: &[f32], lesson: &Lesson<'_>) -> f64 {
        let networks = model.layout.networks(params);
        let (mut scratch, mut other) = (Scratch::default(), Scratch::default());
        let logits = networks.actor.forward(&lesson.rollout.observations, &mut scratch);
        let values = networks.critic.forward(&lesson.rollout.observations, &mut other);
        let heads = &model.heads;
        let mut loss = 0.0;
        for sample in 0..lesson.advantages.len() {
            let row = &logits[sample * networks.actor.stride()..];
            let (mut log_prob, mut entropy, mut start) = (0.0, 0.0, 0);
            for (head, &size) in heads.sizes().iter().enumerate() {
                let logits: Vec<f64> =
                    row[start..start + size].iter().map(|&x| f64::from(x)).collect();
                let norm = ln(logits.iter().map(|&x| exp(x)).sum());
                let stop = lesson.rollout.stops[sample * heads.count() + head];
                log_prob += logits[stop as usize] - norm;
                entropy -= logits.iter().map(|x| exp(x - norm) * (x - norm)).sum::<f64>();
                start += size;
            }
            let ratio = exp(log_prob - f64::from(lesson.rollout.log_probs[sample]));
            let advantage = f64::from(lesson.advantages[sample]);
            let clipped = ratio.clamp(1.0 - config.clip, 1.0 + config.clip);
            let value = f64::from(values[sample * networks.critic.stride()]);
            let error = value - f64::from(lesson.returns[sample]);
            loss += 0.5 * config.value_weight * error * error
                - config.entropy_weight * entropy
                - (ratio * advantage).min(clipped * advantage);
        }
        loss / lesson.advantages.len() as f64
    }

    #[test]
    fn threads_change_no_bit() {
        let (model, start) = fleet(16);
        let config = Config { minibatch: 64, shards: 4, epochs: 2, ..Config::default() };
        let (rollout, advantages, returns) = lesson_parts(&model, &start, 256);
        let lesson = Lesson { rollout: &rollout, advantages: &advantages, returns: &returns };
        let run = |threads| {
            let (mut params, mut adam) = (start.clone(), Adam::new(start.len()));
            let key = shuffle_key(1, 2);
            let state = (&mut params, &mut adam);
            let stats = update(&model, &config, state, &lesson, (1e-2, key), threads).unwrap();
            (params, adam, stats)
        };
        let alone = run(1);
        assert_ne!(alone.0, start);
        assert_eq!(alone.1.steps, 8);
        for threads in [2, 3, 4, 9] {
            assert_eq!(run(threads), alone, "{threads} threads");
        }
    }

    #[test]
    fn minibatches_are_normalised_and_orders_are_permutations() {
        let found = normalised(&[1.0, 100.0, 3.0, 5.0], &[0, 2, 3]);
        let known = [-1.224_744_9, 0.0, 1.224_744_9];
        assert!(found.iter().zip(known).all(|(a, b)| (a - b).abs() < 1e-6), "{found:?}");
        assert_eq!(normalised(&[2.0, 2.0], &[0, 1]), [0.0, 0.0]);
        let mut order = shuffled(1000, &mut stream(1));
        assert_ne!(order, shuffled(1000, &mut stream(2)));
        order.sort_unstable();
        assert!(order.iter().enumerate().all(|(i, &x)| i == x));
    }
}
