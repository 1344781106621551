//! Fully connected layers with tanh between them, in single precision.

#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::math::tanh;

/// Columns that are worked out together: two AVX2 registers, and no spill with four rows.
const COLUMNS: usize = 16;
/// Rows that share a pass over the weights.
const ROWS: usize = 4;

/// One layer.
#[derive(Debug, Clone, PartialEq)]
struct Layer {
    inputs: usize,
    outputs: usize,
    /// By block of 16 outputs, then by input, 16 numbers; outputs beyond the last are zero.
    packed: Vec<f32>,
    /// Padded to whole blocks.
    bias: Vec<f32>,
}

impl Layer {
    fn new(inputs: usize, outputs: usize, weight: &[f32], bias: &[f32]) -> Self {
        let blocks = outputs.div_ceil(COLUMNS);
        let mut packed = vec![0.0; blocks * inputs * COLUMNS];
        for (output, row) in weight.chunks_exact(inputs).enumerate() {
            let (block, column) = (output / COLUMNS, output % COLUMNS);
            for (input, &w) in row.iter().enumerate() {
                packed[(block * inputs + input) * COLUMNS + column] = w;
            }
        }
        let mut padded = vec![0.0; blocks * COLUMNS];
        padded[..outputs].copy_from_slice(bias);
        Self { inputs, outputs, packed, bias: padded }
    }

    fn width(&self) -> usize {
        self.bias.len()
    }
}

/// A network of fully connected layers with tanh after all but the last.
#[derive(Debug, Clone, PartialEq)]
pub struct Mlp {
    layers: Vec<Layer>,
}

/// Memory of a forward pass, to be kept between calls.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    from: Vec<f32>,
    to: Vec<f32>,
}

impl Mlp {
    /// From layers of (weight as `[outputs][inputs]`, bias), as training libraries store them.
    ///
    /// # Panics
    ///
    /// If there is no layer, or sizes do not fit.
    pub fn new(layers: &[(&[f32], &[f32])]) -> Self {
        assert!(!layers.is_empty(), "no layer");
        let mut built: Vec<Layer> = Vec::with_capacity(layers.len());
        for (weight, bias) in layers {
            let (inputs, rest) = (weight.len() / bias.len(), weight.len() % bias.len());
            let fits = built.last().is_none_or(|last| last.outputs == inputs);
            assert!(rest == 0 && inputs > 0 && fits, "{} and {}", weight.len(), bias.len());
            built.push(Layer::new(inputs, bias.len(), weight, bias));
        }
        Self { layers: built }
    }

    /// Numbers in an input row.
    pub fn inputs(&self) -> usize {
        self.layers[0].inputs
    }

    /// Numbers in an output row.
    pub fn outputs(&self) -> usize {
        self.layers[self.layers.len() - 1].outputs
    }

    /// Number of layers.
    pub fn depth(&self) -> usize {
        self.layers.len()
    }

    /// Distance between output rows: `outputs` rounded up to 16.
    pub fn stride(&self) -> usize {
        self.layers[self.layers.len() - 1].width()
    }

    /// The outputs of rows of inputs; output row `i` begins at `i * stride`.
    ///
    /// # Panics
    ///
    /// If the inputs are not whole rows.
    pub fn forward<'a>(&self, inputs: &[f32], scratch: &'a mut Scratch) -> &'a [f32] {
        assert!(inputs.len().is_multiple_of(self.inputs()), "{} inputs", inputs.len());
        let rows = inputs.len() / self.inputs();
        let Scratch { from, to } = scratch;
        let mut stride = self.inputs();
        for (index, layer) in self.layers.iter().enumerate() {
            to.resize(rows * layer.width(), 0.0);
            let source = if index == 0 { inputs } else { &from[..] };
            let is_last = index + 1 == self.layers.len();
            run(layer, (source, stride), to, !is_last);
            std::mem::swap(from, to);
            stride = layer.width();
        }
        from
    }
}

/// One layer over all rows, with the widest instructions that the processor has.
fn run(layer: &Layer, inputs: (&[f32], usize), out: &mut [f32], squash: bool) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        #[expect(unsafe_code, reason = "the processor was just asked whether it has AVX2")]
        unsafe {
            run_avx2(layer, inputs, out, squash);
        }
        return;
    }
    run_plain(layer, inputs, out, squash);
}

// Only AVX2, not FMA: a fused multiply-add rounds once, and the two paths would differ.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn run_avx2(layer: &Layer, inputs: (&[f32], usize), out: &mut [f32], squash: bool) {
    run_plain(layer, inputs, out, squash);
}

#[inline(always)]
fn run_plain(layer: &Layer, (inputs, stride): (&[f32], usize), out: &mut [f32], squash: bool) {
    let width = layer.width();
    let tiles = inputs.chunks(ROWS * stride).zip(out.chunks_mut(ROWS * width));
    for (inputs, out) in tiles {
        if out.len() == ROWS * width {
            tile::<ROWS>(layer, inputs, stride, out, squash);
        } else {
            for (inputs, out) in inputs.chunks(stride).zip(out.chunks_mut(width)) {
                tile::<1>(layer, inputs, stride, out, squash);
            }
        }
    }
}

/// `R` rows. Each output is its bias plus the products in the order of the inputs, whatever `R`.
#[inline(always)]
fn tile<const R: usize>(
    layer: &Layer,
    inputs: &[f32],
    stride: usize,
    out: &mut [f32],
    squash: bool,
) {
    let (depth, width) = (layer.inputs, layer.width());
    let rows: [&[f32]; R] = std::array::from_fn(|row| &inputs[row * stride..][..depth]);
    let weights = layer.packed.as_chunks::<COLUMNS>().0.chunks_exact(depth);
    let biases = layer.bias.as_chunks::<COLUMNS>().0;
    for (block, (weights, bias)) in weights.zip(biases).enumerate() {
        let mut sums = [*bias; R];
        for (input, weights) in weights.iter().enumerate() {
            for (sums, row) in sums.iter_mut().zip(&rows) {
                let x = row[input];
                for (sum, weight) in sums.iter_mut().zip(weights) {
                    *sum += x * weight;
                }
            }
        }
        for (row, sums) in sums.iter_mut().enumerate() {
            if squash {
                for sum in sums.iter_mut() {
                    *sum = tanh(*sum);
                }
            }
            out[row * width + block * COLUMNS..][..COLUMNS].copy_from_slice(sums);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::streams::{EpisodeKey, Generator, Purpose, Split};

    fn numbers(seed: u64, len: usize) -> Vec<f32> {
        let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
        let mut stream = key.stream(Purpose::Policy, 0);
        (0..len).map(|_| (2.0 * stream.uniform() - 1.0) as f32).collect()
    }

    fn network(sizes: &[usize]) -> (Vec<Vec<f32>>, Mlp) {
        let mut tensors = Vec::new();
        for (index, pair) in sizes.windows(2).enumerate() {
            tensors.push(numbers(2 * index as u64, pair[0] * pair[1]));
            tensors.push(numbers(2 * index as u64 + 1, pair[1]));
        }
        let layers: Vec<(&[f32], &[f32])> =
            tensors.chunks(2).map(|pair| (&pair[0][..], &pair[1][..])).collect();
        let mlp = Mlp::new(&layers);
        (tensors, mlp)
    }

    /// Against the definition in double precision.
    #[test]
    fn forward_is_what_it_should_be() {
        let sizes = [43, 64, 64, 51];
        let (tensors, mlp) = network(&sizes);
        let rows = 7;
        let inputs = numbers(99, rows * sizes[0]);
        let mut scratch = Scratch::default();
        let found = mlp.forward(&inputs, &mut scratch);
        assert_eq!((mlp.inputs(), mlp.outputs(), mlp.stride()), (43, 51, 64));
        for row in 0..rows {
            let mut x: Vec<f64> = inputs[row * 43..][..43].iter().map(|&x| x.into()).collect();
            for (index, pair) in tensors.chunks(2).enumerate() {
                let sum = |(weights, bias): (&[f32], &f32)| {
                    let products = weights.iter().zip(&x).map(|(&w, x)| f64::from(w) * x);
                    let sum = f64::from(*bias) + products.sum::<f64>();
                    if index == 2 { sum } else { sum.tanh() }
                };
                x = pair[0].chunks_exact(sizes[index]).zip(&pair[1]).map(sum).collect();
            }
            for (known, &found) in x.iter().zip(&found[row * 64..]) {
                assert!((known - f64::from(found)).abs() < 1e-5, "{known} {found}");
            }
        }
    }

    /// One row alone, any batch, and the path without AVX2: the same bits.
    #[test]
    fn bits_do_not_depend_on_the_batch_or_the_processor() {
        let (_, mlp) = network(&[43, 64, 64, 51]);
        let rows = 4099;
        let inputs = numbers(5, rows * 43);
        let mut scratch = Scratch::default();
        let all = mlp.forward(&inputs, &mut scratch).to_vec();
        for (row, inputs) in inputs.chunks_exact(43).enumerate() {
            let mut alone = Scratch::default();
            assert_eq!(mlp.forward(inputs, &mut alone), &all[row * 64..][..64]);
        }
        for batch in [2, 3, 5, 31, 1024] {
            let mut scratch = Scratch::default();
            let found = mlp.forward(&inputs[..batch * 43], &mut scratch);
            assert_eq!(found, &all[..batch * 64]);
        }
        let (mut from, mut to) = (inputs, Vec::new());
        for (index, layer) in mlp.layers.iter().enumerate() {
            to = vec![0.0; rows * layer.width()];
            let stride = from.len() / rows;
            run_plain(layer, (&from, stride), &mut to, index < 2);
            from.clone_from(&to);
        }
        assert_eq!(to, all);
    }

    #[test]
    fn no_rows_no_outputs() {
        let (_, mlp) = network(&[3, 4, 2]);
        assert!(mlp.forward(&[], &mut Scratch::default()).is_empty());
    }

    #[test]
    #[should_panic(expected = "12 and 5")]
    fn layers_must_fit() {
        Mlp::new(&[(&[0.0; 12], &[0.0; 5])]);
    }
}
