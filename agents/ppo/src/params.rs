//! The networks as one flat row of numbers.

use oncall_core::draw::normal_pair;
use oncall_core::math::ln;
use oncall_core::streams::Purpose;
use oncall_core::{Dial, DialKind, EpisodeKey, Generator, Spec, Split, Stream};
use oncall_rollout::Affine;
use oncall_weights::file::Tensor;
use oncall_weights::{Heads, Mlp};

/// Gains of the orthogonal starts: hidden layers (for tanh), the dials (nearly uniform), the value.
const GAIN_HIDDEN: f64 = std::f64::consts::SQRT_2;
const GAIN_DIALS: f64 = 0.01;
const GAIN_VALUE: f64 = 1.0;

/// Layers of each network.
const DEPTH: usize = 3;

/// Where each layer lies in the flat row: `actor.0.weight`, `actor.0.bias` ... `critic.2.bias`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    arrays: Vec<Array>,
    len: usize,
}

/// One array of the flat row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Name, as in a file of weights.
    pub name: String,
    /// `[outputs, inputs]` or `[outputs]`.
    pub shape: Vec<usize>,
    /// Where it begins.
    pub start: usize,
}

impl Array {
    /// How many numbers it has.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Actor and critic, ready to play.
#[derive(Debug, Clone, PartialEq)]
pub struct Networks {
    /// From an observation to the logits of the dials.
    pub actor: Mlp,
    /// From an observation to its value.
    pub critic: Mlp,
}

impl Layout {
    /// Two networks of two hidden layers that share nothing: the critic's errors would swamp the actor.
    /// The critic takes `context` numbers after the inputs of both.
    pub fn new((inputs, context): (usize, usize), hidden: usize, logits: usize) -> Self {
        let (mut arrays, mut len) = (Vec::new(), 0);
        for (network, inputs, outputs) in
            [("actor", inputs, logits), ("critic", inputs + context, 1)]
        {
            let sizes = [inputs, hidden, hidden, outputs];
            for (layer, size) in sizes.windows(2).enumerate() {
                for (kind, shape) in [("weight", vec![size[1], size[0]]), ("bias", vec![size[1]])] {
                    let name = format!("{network}.{layer}.{kind}");
                    let array = Array { name, shape, start: len };
                    len += array.len();
                    arrays.push(array);
                }
            }
        }
        Self { arrays, len }
    }

    /// All arrays, in order.
    pub fn arrays(&self) -> &[Array] {
        &self.arrays
    }

    /// Numbers in all.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where a training starts: orthogonal weights, and dials that mostly take their first choice.
    pub fn start(&self, (spec, heads): (&Spec, &Heads), first_share: f64, seed: u64) -> Vec<f32> {
        let mut params = vec![0.0; self.len];
        let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
        for (index, array) in self.arrays.iter().enumerate() {
            let out = &mut params[array.start..][..array.len()];
            let is_last = index % (2 * DEPTH) >= 2 * (DEPTH - 1);
            let is_actor = index < 2 * DEPTH;
            if let [rows, columns] = array.shape[..] {
                let gain = match (is_last, is_actor) {
                    (false, _) => GAIN_HIDDEN,
                    (true, true) => GAIN_DIALS,
                    (true, false) => GAIN_VALUE,
                };
                let mut stream = key.stream(Purpose::Policy, index as u64);
                orthogonal(&mut stream, (rows, columns), gain, out);
            } else if is_last && is_actor {
                let mut rest = out;
                for (dial, &size) in spec.dials.iter().zip(heads.sizes()) {
                    rest[0] = first_logit(dial, size, first_share) as f32;
                    rest = &mut rest[size..];
                }
            }
        }
        params
    }

    /// The networks of a row of parameters.
    ///
    /// # Panics
    ///
    /// If the row has another length.
    pub fn networks(&self, params: &[f32]) -> Networks {
        assert_eq!(params.len(), self.len);
        let network = |arrays: &[Array]| {
            let of = |array: &Array| &params[array.start..][..array.len()];
            let layers: Vec<(&[f32], &[f32])> =
                arrays.chunks(2).map(|pair| (of(&pair[0]), of(&pair[1]))).collect();
            Mlp::new(&layers)
        };
        let (actor, critic) = self.arrays.split_at(2 * DEPTH);
        Networks { actor: network(actor), critic: network(critic) }
    }

    /// Parameters whose actor does with plain observations what that of `params` does with standardised
    /// ones: the shift and the factors go into its first layer. The critic stays as it is.
    pub fn folded(&self, params: &[f32], inputs: &Affine) -> Vec<f32> {
        let mut folded = params.to_vec();
        let (weight, bias) = (&self.arrays[0], &self.arrays[1]);
        let width = weight.shape[1];
        for output in 0..weight.shape[0] {
            let row = &mut folded[weight.start + output * width..][..width];
            // In double precision, since the shifts add up to a difference of like numbers.
            let mut shift = 0.0;
            for ((w, &mean), &factor) in row.iter_mut().zip(&inputs.mean).zip(&inputs.factor) {
                shift += f64::from(*w) * f64::from(factor) * f64::from(mean);
                *w *= factor;
            }
            let bias = &mut folded[bias.start + output];
            *bias = (f64::from(*bias) - shift) as f32;
        }
        folded
    }

    /// The actor's arrays, for a file: the critic is of use to the training only.
    pub fn tensors(&self, params: &[f32]) -> Vec<Tensor> {
        let tensor = |array: &Array| Tensor {
            name: array.name.clone(),
            shape: array.shape.clone(),
            values: params[array.start..][..array.len()].to_vec(),
        };
        self.arrays[..2 * DEPTH].iter().map(tensor).collect()
    }
}

/// Logit of a head's first choice against zero for the others, so that it has a share of the probability; of a
/// button, whose press is dear, half of the rest as well. A lone choice needs none.
fn first_logit(dial: &Dial, choices: usize, first_share: f64) -> f64 {
    if choices == 1 {
        return 0.0;
    }
    let is_button = dial.kind == DialKind::Press;
    let share = if is_button { f64::midpoint(1.0, first_share) } else { first_share };
    ln(share / (1.0 - share) * (choices - 1) as f64)
}

/// Fills a matrix whose rows (or columns, where these are fewer) are orthogonal, each of length `gain`.
fn orthogonal(stream: &mut Stream, (rows, columns): (usize, usize), gain: f64, out: &mut [f32]) {
    let (count, len) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    while vectors.len() < count {
        let mut vector: Vec<f64> = (0..len).map(|_| normal_pair(stream).0).collect();
        // Twice, because once leaves what rounding left of the first time.
        for _ in 0..2 {
            for earlier in &vectors {
                let share = dot(&vector, earlier);
                vector.iter_mut().zip(earlier).for_each(|(x, e)| *x -= share * e);
            }
        }
        let norm = dot(&vector, &vector).sqrt();
        if norm > 1e-6 {
            for x in &mut vector {
                *x /= norm;
            }
            vectors.push(vector);
        }
    }
    for row in 0..rows {
        for column in 0..columns {
            let x = if rows <= columns { vectors[row][column] } else { vectors[column][row] };
            out[row * columns + column] = (gain * x) as f32;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FIRST_SHARE;
    use oncall_weights::Scratch;

    fn layout() -> (Spec, Layout) {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let layout = Layout::new((20, 4), 32, Heads::of(&spec).logits());
        (spec, layout)
    }

    #[test]
    fn a_lone_choice_starts_with_a_finite_logit() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let menu =
            [("cache_ttl_s".to_owned(), vec![60.0]), ("shed_share".to_owned(), vec![0.0, 0.5])];
        let heads = Heads::on(&spec, &oncall_weights::Grid::Menu(menu.into()), false).unwrap();
        let layout = Layout::new((20, 4), 32, heads.logits());
        let params = layout.start((&spec, &heads), FIRST_SHARE, 3);
        assert!(params.iter().all(|param| param.is_finite()));
        let bias = layout.arrays().iter().find(|array| array.name == "actor.2.bias").unwrap();
        let found = &params[bias.start..][..bias.len()];
        assert_eq!(found.iter().filter(|logit| **logit == 0.0).count(), heads.count());
    }

    #[test]
    fn arrays_fill_the_row_without_gaps() {
        let (_, layout) = layout();
        let mut end = 0;
        for array in layout.arrays() {
            assert_eq!(array.start, end, "{}", array.name);
            end += array.len();
        }
        assert_eq!(end, layout.len());
        assert_eq!(layout.len(), 2 * (20 * 32 + 32 + 32 * 32 + 32) + 33 * 78 + 4 * 32 + 33);
        let names: Vec<&str> = layout.arrays().iter().map(|array| array.name.as_str()).collect();
        assert_eq!(
            (names[0], names[4], names[11]),
            ("actor.0.weight", "actor.2.weight", "critic.2.bias")
        );
    }

    #[test]
    fn rows_or_columns_are_orthogonal() {
        let (spec, layout) = layout();
        let params = layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 3);
        for (array, gain) in
            layout.arrays().iter().step_by(2).zip([GAIN_HIDDEN, GAIN_HIDDEN, GAIN_DIALS])
        {
            let (rows, columns) = (array.shape[0], array.shape[1]);
            let at =
                |row: usize, column: usize| f64::from(params[array.start + row * columns + column]);
            let dot = |a: usize, b: usize| -> f64 {
                if rows <= columns {
                    (0..columns).map(|i| at(a, i) * at(b, i)).sum()
                } else {
                    (0..rows).map(|i| at(i, a) * at(i, b)).sum()
                }
            };
            for a in 0..rows.min(columns) {
                for b in 0..=a {
                    let known = if a == b { gain * gain } else { 0.0 };
                    assert!((dot(a, b) - known).abs() < 1e-5, "{} {a} {b}", array.name);
                }
            }
        }
        assert_ne!(params, layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 4));
        assert_eq!(params, layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 3));
    }

    /// A policy that has learned nothing keeps its dials with 90 % and presses with 5 %.
    #[test]
    fn the_start_mostly_keeps() {
        let (spec, layout) = layout();
        let networks = layout.networks(&layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 3));
        let mut scratch = Scratch::default();
        let logits = networks.actor.forward(&[0.5; 20], &mut scratch);
        let mut start = 0;
        for (dial, &size) in spec.dials.iter().zip(Heads::of(&spec).sizes()) {
            let head = &logits[start..start + size];
            let sum: f32 = head.iter().map(|logit| logit.exp()).sum();
            let first = head[0].exp() / sum;
            let known = if dial.kind == oncall_core::DialKind::Press { 0.95 } else { 0.9 };
            assert!((first - known).abs() < 0.01, "{} {first}", dial.name);
            start += size;
        }
    }

    #[test]
    fn folded_parameters_take_plain_observations() {
        let (spec, layout) = layout();
        let params = layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 1);
        let column = |i: usize| i as f32 / 20.0;
        let inputs = Affine {
            mean: (0..20).map(|i| column(i) - 0.3).collect(),
            factor: (0..20).map(|i| 1.0 + 19.0 * column(i)).collect(),
        };
        let plain: Vec<f32> = (0..20).map(|i| (column(i) - 0.5).abs()).collect();
        let mut standard = plain.clone();
        inputs.apply(&mut standard);
        let networks = layout.networks(&params);
        let folded = layout.networks(&layout.folded(&params, &inputs));
        let mut scratch = (Scratch::default(), Scratch::default());
        let known = networks.actor.forward(&standard, &mut scratch.0);
        let found = folded.actor.forward(&plain, &mut scratch.1);
        assert!(known.iter().zip(found).all(|(a, b)| (a - b).abs() < 1e-4));
        assert_eq!(networks.critic, folded.critic);
    }

    #[test]
    fn tensors_are_the_arrays() {
        let (spec, layout) = layout();
        let params = layout.start((&spec, &Heads::of(&spec)), FIRST_SHARE, 1);
        let tensors = layout.tensors(&params);
        let flat: Vec<f32> = tensors.iter().flat_map(|tensor| tensor.values.clone()).collect();
        assert_eq!(flat, params[..flat.len()]);
        assert_eq!((tensors.len(), layout.arrays()[6].shape[1]), (6, 24));
        assert_eq!(tensors[2].shape, [32, 32]);
    }
}
