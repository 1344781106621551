//! Distributions, exactly as the specification fixes them, and numbers that may be drawn.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::math;
use crate::streams::Stream;

/// Exponential with the given mean, by the inverse of its distribution function.
#[inline]
pub fn exponential(stream: &mut Stream, mean: f64) -> f64 {
    -mean * math::ln(1.0 - stream.uniform())
}

/// Two independent standard normal numbers from two uniform ones of [0, 1) (Box and Muller 1958).
#[inline(always)]
pub fn box_muller(first: f64, second: f64) -> (f64, f64) {
    // 1 - u lies in (0, 1], so the logarithm is finite.
    let radius = math::sqrt(-2.0 * math::ln_normal(1.0 - first));
    let (sin, cos) = math::sin_cos_normal(std::f64::consts::TAU * second);
    (radius * cos, radius * sin)
}

/// Two independent standard normal numbers from the next two uniform ones; see [`box_muller`].
#[inline]
pub fn normal_pair(stream: &mut Stream) -> (f64, f64) {
    let first = stream.uniform();
    box_muller(first, stream.uniform())
}

/// Poisson with the given mean (Knuth 1969, section 3.4.1); for means below about 700.
pub fn poisson(stream: &mut Stream, mean: f64) -> f64 {
    let limit = math::exp(-mean);
    let (mut count, mut product) = (0_u32, stream.uniform());
    while product > limit {
        count += 1;
        product *= stream.uniform();
    }
    f64::from(count)
}

/// A distribution of a scenario's number, drawn once per episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Dist {
    /// Uniform between two ends.
    Uniform {
        /// Lower end.
        low: f64,
        /// Upper end.
        high: f64,
    },
    /// Exponential, cut at the ends of the field's range.
    Exponential {
        /// Mean before the cut.
        mean: f64,
    },
    /// Normal, cut at the ends of the field's range.
    Normal {
        /// Mean before the cut.
        mean: f64,
        /// Standard deviation before the cut.
        std: f64,
    },
    /// One of several values.
    Choice {
        /// The values.
        values: Vec<f64>,
        /// Running sums of the weights; the last one is their total.
        cumulative: Vec<f64>,
    },
}

impl Dist {
    /// A choice with weights; `None` unless both have the same length, at least one value, and
    /// weights that are finite, not negative and not all zero.
    pub fn choice(values: Vec<f64>, weights: &[f64]) -> Option<Self> {
        let mut total = 0.0;
        let cumulative: Vec<f64> = weights
            .iter()
            .map(|weight| {
                total += weight;
                total
            })
            .collect();
        let valid = weights.iter().all(|w| w.is_finite() && *w >= 0.0) && total > 0.0;
        (valid && values.len() == weights.len()).then_some(Dist::Choice { values, cumulative })
    }

    /// One draw. A uniform, exponential or choice takes one uniform number, a normal takes two.
    pub fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Dist::Uniform { low, high } => low + (high - low) * stream.uniform(),
            Dist::Exponential { mean } => exponential(stream, *mean),
            Dist::Normal { mean, std } => mean + std * normal_pair(stream).0,
            Dist::Choice { values, cumulative } => {
                let total = cumulative.last().copied().unwrap_or(0.0);
                let point = stream.uniform() * total;
                let index = cumulative.iter().position(|&sum| point < sum);
                values[index.unwrap_or(values.len() - 1)]
            }
        }
    }
}

/// A number of a scenario: fixed, or drawn once per episode.
#[derive(Debug, Clone, PartialEq)]
pub enum Sampled {
    /// The same in every episode.
    Fixed(f64),
    /// Drawn.
    Drawn(Dist),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{EpisodeKey, Generator, Purpose, Split};

    fn stream(seed: u64) -> Stream {
        EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg).stream(Purpose::Scenario, 0)
    }

    fn moments(draw: impl Fn(&mut Stream) -> f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        let n = 40_000;
        for seed in 0..n {
            let x = draw(&mut stream(seed));
            sum += x;
            squares += x * x;
        }
        let mean = sum / n as f64;
        (mean, squares / n as f64 - mean * mean)
    }

    fn near(found: (f64, f64), mean: f64, variance: f64) {
        // Five standard errors of the mean; the variance within 8 %.
        assert!((found.0 - mean).abs() < 5.0 * (variance / 40_000.0).sqrt(), "{found:?}");
        assert!((found.1 / variance - 1.0).abs() < 0.08, "{found:?}");
    }

    #[test]
    fn moments_are_right() {
        near(moments(|s| Dist::Uniform { low: 2.0, high: 8.0 }.draw(s)), 5.0, 3.0);
        near(moments(|s| exponential(s, 4.0)), 4.0, 16.0);
        near(moments(|s| normal_pair(s).0), 0.0, 1.0);
        near(moments(|s| normal_pair(s).1), 0.0, 1.0);
        near(moments(|s| poisson(s, 3.5)), 3.5, 3.5);
        near(moments(|s| Dist::Normal { mean: 1.0, std: 3.0 }.draw(s)), 1.0, 9.0);
        let choice = Dist::choice(vec![1.0, 5.0], &[3.0, 1.0]).unwrap();
        near(moments(|s| choice.draw(s)), 2.0, 3.0);
    }

    /// The values are those of `tests/reference/known_answers.py`.
    #[test]
    fn known_answers() {
        let s = || stream(1);
        let drawn = [
            s().uniform(),
            Dist::Uniform { low: 20.0, high: 160.0 }.draw(&mut s()),
            exponential(&mut s(), 45.0),
            normal_pair(&mut s()).0,
            normal_pair(&mut s()).1,
            poisson(&mut s(), 20.0),
            Dist::choice(vec![1.0, 2.0, 3.0], &[1.0, 1.0, 1.0]).unwrap().draw(&mut s()),
        ];
        for (found, known) in drawn.iter().zip(KNOWN) {
            assert!((found / known - 1.0).abs() < 1e-14, "{found} {known}");
        }
    }
    const KNOWN: [f64; 7] = [
        0.661_835_883_211_767_6,
        112.657_023_649_647_46,
        48.790_077_692_118_51,
        -0.558_705_053_238_934_6,
        -1.362_459_746_529_330_9,
        31.0,
        2.0,
    ];

    #[test]
    fn bad_choices_are_refused() {
        assert!(Dist::choice(vec![], &[]).is_none());
        assert!(Dist::choice(vec![1.0], &[0.0]).is_none());
        assert!(Dist::choice(vec![1.0], &[-1.0]).is_none());
        assert!(Dist::choice(vec![1.0], &[f64::NAN]).is_none());
        assert!(Dist::choice(vec![1.0, 2.0], &[1.0]).is_none());
    }
}
