//! The action as independent categorical choices, one for each dial.

use crate::math::exp;
use oncall_core::{Spec, Stream, math::ln};

/// Where each dial's logits lie in a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heads {
    sizes: Vec<usize>,
}

impl Heads {
    /// One for each dial, of as many choices as it has in the multi-discrete space.
    pub fn of(spec: &Spec) -> Self {
        Self::new(spec.dials.iter().map(oncall_core::Dial::choices).collect())
    }

    /// Heads of these sizes.
    ///
    /// # Panics
    ///
    /// If a head has no choice, or more than 127.
    pub fn new(sizes: Vec<usize>) -> Self {
        assert!(sizes.iter().all(|size| (1..=127).contains(size)), "{sizes:?}");
        Self { sizes }
    }

    /// Choices of each head.
    pub fn sizes(&self) -> &[usize] {
        &self.sizes
    }

    /// Number of heads.
    pub fn count(&self) -> usize {
        self.sizes.len()
    }

    /// Logits of a row.
    pub fn logits(&self) -> usize {
        self.sizes.iter().sum()
    }

    /// The likeliest choice of each head; of equals the first.
    pub fn greedy(&self, logits: &[f32], stops: &mut [i8]) {
        let mut rest = logits;
        for (stop, &size) in stops.iter_mut().zip(&self.sizes) {
            let (head, tail) = rest.split_at(size);
            let mut best = 0;
            for (index, logit) in head.iter().enumerate() {
                if *logit > head[best] {
                    best = index;
                }
            }
            *stop = best as i8;
            rest = tail;
        }
    }

    /// Draws a choice for each head, one uniform number each, and gives the logarithm of the
    /// probability of all of them together. `weights` is memory for as many numbers as logits.
    pub fn sample(
        &self,
        logits: &[f32],
        stream: &mut Stream,
        weights: &mut Vec<f32>,
        stops: &mut [i8],
    ) -> f32 {
        // Logarithms of the chosen weights are the logits less their maximum; the product of the
        // sums, at most 127 each, takes one logarithm for every eight heads.
        let (mut chosen, mut sums) = (0.0, 0.0);
        let mut product = 1.0_f64;
        let mut rest = logits;
        for (index, (stop, &size)) in stops.iter_mut().zip(&self.sizes).enumerate() {
            let (head, tail) = rest.split_at(size);
            let top = head.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            weights.clear();
            weights.extend(head.iter().map(|logit| exp(logit - top)));
            let sum: f32 = weights.iter().sum();
            let choice = pick(weights, (stream.uniform() * f64::from(sum)) as f32);
            *stop = choice as i8;
            chosen += f64::from(head[choice] - top);
            product *= f64::from(sum);
            if index % 8 == 7 {
                sums += ln(product);
                product = 1.0;
            }
            rest = tail;
        }
        (chosen - sums - ln(product)) as f32
    }
}

/// The first index at which the running sum exceeds a point.
fn pick(weights: &[f32], point: f32) -> usize {
    let mut sum = 0.0;
    for (index, weight) in weights.iter().enumerate() {
        sum += weight;
        if point < sum {
            return index;
        }
    }
    // Rounding can put the point onto the sum; the last choice that has any weight takes it.
    weights.iter().rposition(|&weight| weight > 1e-30).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::streams::{EpisodeKey, Generator, Purpose, Split};

    const LOGITS: [f32; 6] = [0.5, -1.0, 2.0, 300.0, 301.0, -400.0];

    fn stream(minute: u64) -> Stream {
        EpisodeKey::new(3, 0, Split::Train, Generator::Pcg).stream(Purpose::Policy, minute)
    }

    fn probabilities(head: &[f32]) -> Vec<f64> {
        let weights: Vec<f64> = head.iter().map(|&x| f64::from(x - 301.0).exp()).collect();
        let sum: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / sum).collect()
    }

    #[test]
    fn draws_follow_the_distribution_and_know_their_probability() {
        let heads = Heads::new(vec![3, 3]);
        let known = [probabilities(&LOGITS[..3]), probabilities(&LOGITS[3..])];
        let (mut counts, mut weights, mut stops) = ([[0_u32; 3]; 2], Vec::new(), [0; 2]);
        let n = 100_000;
        for minute in 0..n {
            let log_prob = heads.sample(&LOGITS, &mut stream(minute), &mut weights, &mut stops);
            let chosen = [stops[0] as usize, stops[1] as usize];
            let expected = known[0][chosen[0]].ln() + known[1][chosen[1]].ln();
            assert!((f64::from(log_prob) - expected).abs() < 1e-5, "{log_prob} {expected}");
            counts[0][chosen[0]] += 1;
            counts[1][chosen[1]] += 1;
        }
        for (counts, known) in counts.iter().flatten().zip(known.iter().flatten()) {
            let (mean, variance) = (n as f64 * known, n as f64 * known * (1.0 - known));
            assert!((f64::from(*counts) - mean).abs() <= 5.0 * variance.sqrt() + 0.01);
        }
    }

    #[test]
    fn many_heads_do_not_overflow() {
        let heads = Heads::new(vec![100; 400]);
        let (mut weights, mut stops) = (Vec::new(), [0; 400]);
        let log_prob = heads.sample(&[0.0; 40_000], &mut stream(0), &mut weights, &mut stops);
        assert!((f64::from(log_prob) + 400.0 * 100_f64.ln()).abs() < 1e-3, "{log_prob}");
    }

    #[test]
    fn greedy_takes_the_first_of_the_best() {
        let mut stops = [9; 3];
        Heads::new(vec![3, 2, 1]).greedy(&[0.0, 2.0, 2.0, -1.0, -2.0, 7.0], &mut stops);
        assert_eq!(stops, [1, 0, 0]);
    }

    #[test]
    fn a_point_on_the_sum_takes_the_last_with_weight() {
        assert_eq!(pick(&[1.0, 2.0, 0.0], 3.0), 1);
        assert_eq!(pick(&[1.0, 2.0], 1.0), 1);
        assert_eq!(pick(&[1.0, 2.0], 0.0), 0);
    }
}
