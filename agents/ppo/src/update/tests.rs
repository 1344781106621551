//! The loss and its gradient against their definitions.

use super::*;
use crate::config::FIRST_SHARE;
use oncall_core::View;
use oncall_core::math::{exp, ln};
use oncall_rollout::Shape;
use oncall_weights::Scratch;

const CONTEXT: usize = 3;

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
    let layout = Layout::new((inputs, CONTEXT), hidden, heads.logits());
    let mut params = layout.start((&spec, &heads), FIRST_SHARE, 3);
    // Away from the start, so that every part of the network matters.
    let noise = numbers(0, params.len(), 0.05);
    params.iter_mut().zip(noise).for_each(|(param, noise)| *param += noise);
    let all = vec![1.0; heads.count()];
    (Model::new(layout, heads, all), params)
}

/// Observations and contexts, row by row.
fn told(observations: &[f32], contexts: &[f32]) -> Vec<f32> {
    let rows = contexts.len() / CONTEXT;
    let seen = observations.chunks_exact(observations.len() / rows);
    seen.zip(contexts.chunks_exact(CONTEXT)).flat_map(|(a, b)| [a, b].concat()).collect()
}

#[test]
fn the_plain_forward_pass_agrees_with_libtorch() {
    let (model, params) = fleet(64);
    let networks = model.layout().networks(&params);
    let rows = 300;
    let observations = numbers(1, rows * networks.actor.inputs(), 1.0);
    let contexts = numbers(2, rows * CONTEXT, 1.0);
    let (logits, values) = model.play(&params, &observations, &contexts);
    let told = told(&observations, &contexts);
    let mut scratch = Scratch::default();
    let own = networks.actor.forward(&observations, &mut scratch).to_vec();
    let own_values = networks.critic.forward(&told, &mut scratch);
    let (outputs, stride) = (networks.actor.outputs(), networks.actor.stride());
    for row in 0..rows {
        for (own, known) in own[row * stride..].iter().zip(&logits[row * outputs..][..outputs]) {
            assert!((own - known).abs() < 1e-5, "{own} {known}");
        }
        let own = own_values[row * networks.critic.stride()];
        assert!((own - values[row]).abs() < 1e-5, "{own} {}", values[row]);
    }
}

/// Against the definition in double precision, with heads far apart.
#[test]
fn log_probabilities_and_entropies_are_right() {
    let heads = Heads::new(vec![vec![0.0; 2], vec![0.0], vec![0.0; 3]], vec![0.0; 3]);
    let model = Model::new(Layout::new((2, 0), 2, 9), heads.clone(), vec![1.0; heads.count()]);
    let logits = [[0.3, -1.0, 2.0, 160.0, 159.0, -150.0, -151.0, -149.5, -170.0_f32]; 2];
    let choices = [[2_i64, 0, 2], [0, 1, 1]];
    let indices = choices.map(|[a, b, c]| [a, 3 + b, 5 + c]);
    let (log_probs, entropies) = model.distribution(
        &Tensor::from_slice(logits.as_flattened()).view([2, 9]),
        &Tensor::from_slice(indices.as_flattened()).view([2, 3]),
    );
    for (row, choices) in choices.iter().enumerate() {
        let (mut log_prob, mut start) = (0.0, 0);
        for (head, (&size, &choice)) in heads.sizes().iter().zip(choices).enumerate() {
            let place = [row as i64, head as i64];
            let head: Vec<f64> =
                logits[row][start..start + size].iter().map(|&x| f64::from(x)).collect();
            let top = head.iter().copied().fold(f64::MIN, f64::max);
            let norm = top + ln(head.iter().map(|x| exp(x - top)).sum());
            log_prob += head[choice as usize] - norm;
            let entropy: f64 = head.iter().map(|x| exp(x - norm) * (norm - x)).sum();
            assert!((entropies.double_value(&place) - entropy).abs() < 1e-4, "head {place:?}");
            start += size;
        }
        assert!((log_probs.double_value(&[row as i64]) - log_prob).abs() < 1e-4);
    }
}

fn lesson_parts(model: &Model, params: &[f32], len: usize) -> (Rollout, Vec<f32>, Vec<f32>) {
    let heads = &model.heads;
    let observation = model.layout.arrays()[0].shape[1];
    let shape = Shape { rows: len, steps: 1, observation, context: CONTEXT, heads: heads.count() };
    let mut rollout = Rollout::new(shape);
    rollout.observations = numbers(5, len * observation, 1.0);
    rollout.contexts = numbers(9, len * CONTEXT, 1.0);
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
    let pace = Pace {
        rate: 0.0,
        entropy_weight: config.entropy_weight,
        imitate: false,
        shuffle: shuffle_key(1, 1),
    };
    let samples = Samples::gather(&model, &lesson, &indices, &advantages);
    let (gradient, stats) = model.gradient((&config, pace), &params, &samples);
    assert!(stats.clip_fraction > 5.0 && stats.clip_fraction < 59.0, "{stats:?}");
    let dials: f64 = stats.dial_entropies.iter().sum();
    assert!((dials - stats.entropy).abs() < 1e-4 * dials, "{stats:?}");
    assert_eq!(stats.dial_entropies.len(), 8);
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
    let told = told(&lesson.rollout.observations, &lesson.rollout.contexts);
    let values = networks.critic.forward(&told, &mut other);
    let heads = &model.heads;
    let mut loss = 0.0;
    for sample in 0..lesson.advantages.len() {
        let row = &logits[sample * networks.actor.stride()..];
        let (mut log_prob, mut entropy, mut start) = (0.0, 0.0, 0);
        for (head, &size) in heads.sizes().iter().enumerate() {
            let logits: Vec<f64> = row[start..start + size].iter().map(|&x| f64::from(x)).collect();
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
        let pace =
            Pace { rate: 1e-2, entropy_weight: 0.1, imitate: false, shuffle: shuffle_key(1, 2) };
        let state = (&mut params, &mut adam);
        let stats = update(&model, &config, state, &lesson, pace, threads).unwrap();
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
