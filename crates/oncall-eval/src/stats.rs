//! Means, interquartile means, quantiles, and bootstrap intervals of them.
//!
//! * The **interquartile mean** is `scipy.stats.trim_mean(x, 0.25)`, as rliable uses it: sort, drop
//!   `floor(n / 4)` values at each end, take the mean of the rest. No fractional weights.
//! * **Intervals** are 95 % percentile bootstrap intervals (Efron 1979): episodes are drawn with
//!   replacement, within each stratum (scenario) as many as it has; the ends are the 2.5 % and
//!   97.5 % quantiles of the statistic over the resamples.
//! * **Quantiles** interpolate linearly between order statistics (Hyndman and Fan's type 7).

use oncall_core::streams::{mix, scramble};
use rand::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// Share of the values that the interquartile mean drops at each end.
const TRIM: usize = 4;

/// Mean and interquartile mean, each with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Mean of all values.
    pub mean: f64,
    /// Interquartile mean.
    pub iqm: f64,
    /// Lower and upper end of the mean's interval.
    pub ci95: [f64; 2],
    /// Lower and upper end of the interquartile mean's interval.
    pub iqm_ci95: [f64; 2],
}

impl Estimate {
    /// The estimate of `factor * x + offset`, for a positive factor: all four statistics are
    /// equivariant, so nothing is resampled again.
    #[must_use]
    pub fn affine(self, factor: f64, offset: f64) -> Self {
        let map = |x: f64| factor * x + offset;
        Self {
            mean: map(self.mean),
            iqm: map(self.iqm),
            ci95: self.ci95.map(map),
            iqm_ci95: self.iqm_ci95.map(map),
        }
    }
}

/// A mean with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Share {
    /// Mean of all values.
    pub mean: f64,
    /// Lower and upper end of its interval.
    pub ci95: [f64; 2],
}

/// Arithmetic mean; NaN of nothing.
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Interquartile mean; NaN of nothing.
pub fn iqm(values: &[f64]) -> f64 {
    let sorted = sorted(values);
    let cut = sorted.len() / TRIM;
    mean(&sorted[cut..sorted.len() - cut])
}

/// Quantile `q` in 0..=1; NaN of nothing.
pub fn quantile(values: &[f64], q: f64) -> f64 {
    quantile_of_sorted(&sorted(values), q)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

fn quantile_of_sorted(sorted: &[f64], q: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let place = q.clamp(0.0, 1.0) * last as f64;
    let below = place.floor() as usize;
    let above = (below + 1).min(last);
    sorted[below] + (sorted[above] - sorted[below]) * (place - below as f64)
}

/// For each pair 1 where `a` is greater, 1/2 where both are equal, 0 where `b` is: the mean of these
/// is the paired probability of improvement of `a` over `b`.
///
/// Pairs are the same episode played twice, so this asks on how many mornings `a` does better. The
/// unpaired form that rliable reports compares every run with every other.
pub fn wins(a: &[f64], b: &[f64]) -> Vec<f64> {
    let win = |(a, b): (&f64, &f64)| match a.total_cmp(b) {
        // Both zeros are the same return.
        _ if a == b => 0.5,
        std::cmp::Ordering::Greater => 1.0,
        _ => 0.0,
    };
    a.iter().zip(b).map(win).collect()
}

/// A seeded bootstrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bootstrap {
    /// Resamples.
    pub resamples: usize,
    /// Seed of the bootstrap's own stream.
    pub seed: u64,
}

impl Bootstrap {
    /// 2,000 resamples.
    pub fn new(seed: u64) -> Self {
        Self { resamples: 2000, seed }
    }

    fn stream(self) -> Pcg32 {
        let hash = mix(self.seed, 0x626f_6f74);
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes[8..].copy_from_slice(&scramble(hash).to_le_bytes());
        Pcg32::from_seed(bytes)
    }

    /// Mean and interquartile mean of all values together, resampled within each stratum. All NaN
    /// for no values.
    pub fn estimate(self, strata: &[&[f64]]) -> Estimate {
        let values = strata.concat();
        let (mut means, mut iqms) = (Vec::new(), Vec::new());
        if !values.is_empty() {
            let mut resample = Resample::new(&values);
            let mut rng = self.stream();
            for _ in 0..self.resamples {
                resample.draw(strata, &mut rng);
                let (mean, iqm) = resample.mean_and_iqm();
                means.push(mean);
                iqms.push(iqm);
            }
        }
        Estimate {
            mean: mean(&values),
            iqm: iqm(&values),
            ci95: ends(&means),
            iqm_ci95: ends(&iqms),
        }
    }

    /// Mean of a sample.
    pub fn share(self, values: &[f64]) -> Share {
        let mut rng = self.stream();
        let resampled = |_| {
            let sum: f64 = (0..values.len()).map(|_| values[below(&mut rng, values.len())]).sum();
            sum / values.len() as f64
        };
        let means: Vec<f64> = if values.is_empty() {
            Vec::new()
        } else {
            (0..self.resamples).map(resampled).collect()
        };
        Share { mean: mean(values), ci95: ends(&means) }
    }
}

/// Ends of the 95 % interval.
fn ends(statistics: &[f64]) -> [f64; 2] {
    let sorted = sorted(statistics);
    [0.025, 0.975].map(|q| quantile_of_sorted(&sorted, q))
}

/// An index below `len`, by Lemire's multiplication; its bias is below `len / 2^32`.
#[inline]
fn below(rng: &mut Pcg32, len: usize) -> usize {
    ((u64::from(rng.next_u32()) * len as u64) >> 32) as usize
}

/// How often each value was drawn, in the order of the values: with it the trimmed mean of a
/// resample needs no sorting.
struct Resample {
    sorted: Vec<f64>,
    /// Place in `sorted` of each value as given.
    place: Vec<usize>,
    counts: Vec<usize>,
}

impl Resample {
    fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut place = vec![0; values.len()];
        for (rank, &index) in order.iter().enumerate() {
            place[index] = rank;
        }
        let sorted = order.iter().map(|&index| values[index]).collect();
        Self { sorted, place, counts: vec![0; values.len()] }
    }

    fn draw(&mut self, strata: &[&[f64]], rng: &mut Pcg32) {
        self.counts.fill(0);
        let mut start = 0;
        for stratum in strata {
            for _ in 0..stratum.len() {
                self.counts[self.place[start + below(rng, stratum.len())]] += 1;
            }
            start += stratum.len();
        }
    }

    fn mean_and_iqm(&self) -> (f64, f64) {
        let len = self.sorted.len();
        let cut = len / TRIM;
        let (mut sum, mut inner, mut rank) = (0.0, 0.0, 0);
        for (&value, &count) in self.sorted.iter().zip(&self.counts) {
            sum += value * count as f64;
            let kept = (rank + count).min(len - cut).saturating_sub(rank.max(cut));
            inner += value * kept as f64;
            rank += count;
        }
        (sum / len as f64, inner / (len - 2 * cut) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples and the known values of `tests/reference/statistics.py` (`SciPy` 1.17).
    const A: [f64; 11] =
        [-22.5, -31.0, -18.25, -140.0, -22.5, -9.5, -55.75, -27.0, -33.5, -21.0, -19.0];
    const B: [f64; 11] =
        [-30.0, -31.0, -12.25, -100.0, -25.5, -9.5, -66.75, -28.0, -31.5, -41.0, -19.5];

    fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{found} {expected}");
    }

    fn near_ends(found: [f64; 2], expected: [f64; 2]) {
        near(found[0], expected[0]);
        near(found[1], expected[1]);
    }

    #[test]
    fn means_as_scipy_has_them() {
        near(mean(&A), -36.363_636_363_636_37);
        near(iqm(&A), -25.214_285_714_285_715);
        near(iqm(&B), -29.5);
        near(iqm(&A[..4]), -26.75);
        // Fewer than four values: nothing is dropped.
        near(iqm(&A[..3]), -23.916_666_666_666_668);
        assert!(iqm(&[]).is_nan() && mean(&[]).is_nan());
    }

    #[test]
    fn quantiles_as_numpy_has_them() {
        let expected = [-140.0, -118.9375, -22.5, -18.25, -9.5];
        for (q, expected) in [0.0, 0.025, 0.5, 0.9, 1.0].into_iter().zip(expected) {
            near(quantile(&A, q), expected);
        }
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn ties_are_half_a_win() {
        near(mean(&wins(&A, &B)), 7.0 / 11.0);
        near(mean(&wins(&A, &B)) + mean(&wins(&B, &A)), 1.0);
        assert_eq!(wins(&[0.0], &[-0.0]), [0.5]);
    }

    #[test]
    fn intervals_as_the_reference_draws_them() {
        let estimate = Bootstrap { resamples: 500, seed: 7 }.estimate(&[&A]);
        near(estimate.mean, mean(&A));
        near(estimate.iqm, iqm(&A));
        near_ends(estimate.ci95, [-58.092_613_636_363_64, -21.144_886_363_636_367]);
        near_ends(estimate.iqm_ci95, [-47.042_857_142_857_144, -20.231_250_000_000_003]);
        let estimate = Bootstrap { resamples: 500, seed: 8 }.estimate(&[&A, &B[..6]]);
        near_ends(estimate.ci95, [-51.021_691_176_470_59, -22.497_794_117_647_06]);
        near_ends(estimate.iqm_ci95, [-36.071_527_777_777_78, -20.055_555_555_555_557]);
        let share = Bootstrap { resamples: 500, seed: 7 }.share(&A);
        near_ends(share.ci95, [-58.092_613_636_363_64, -21.144_886_363_636_367]);
    }

    #[test]
    fn strata_stay_apart() {
        // Two constant strata: no resample can change their weights.
        let estimate = Bootstrap::new(1).estimate(&[&[0.0; 5], &[10.0; 5]]);
        assert_eq!(estimate.ci95, [5.0, 5.0]);
        let pooled = Bootstrap::new(1).estimate(&[&[[0.0; 5], [10.0; 5]].concat()]);
        assert!(pooled.ci95[0] < 4.0 && pooled.ci95[1] > 6.0);
    }

    /// Of intervals over 40 uniform numbers about 94 of 100 hold the true mean.
    #[test]
    fn intervals_cover_the_truth() {
        let mut rng = Bootstrap::new(99).stream();
        let covered = (0..400)
            .filter(|&seed| {
                let mut uniform = || f64::from(rng.next_u32()) / 4_294_967_296.0;
                let sample: Vec<f64> = (0..40).map(|_| uniform()).collect();
                let [low, high] = Bootstrap { resamples: 400, seed }.estimate(&[&sample]).ci95;
                low <= 0.5 && 0.5 <= high
            })
            .count();
        assert!((360..=393).contains(&covered), "{covered}");
    }

    #[test]
    fn affine_maps_what_it_would_resample() {
        let scaled = A.map(|x| 2.0 * x + 3.0);
        let direct = Bootstrap::new(3).estimate(&[&scaled]);
        let mapped = Bootstrap::new(3).estimate(&[&A]).affine(2.0, 3.0);
        near(mapped.mean, direct.mean);
        near(mapped.iqm, direct.iqm);
        near_ends(mapped.ci95, direct.ci95);
        near_ends(mapped.iqm_ci95, direct.iqm_ci95);
    }

    #[test]
    fn nothing_is_not_a_number_and_no_panic() {
        let nothing = Bootstrap::new(1).estimate(&[&[]]);
        assert!(nothing.mean.is_nan() && nothing.ci95[0].is_nan() && nothing.iqm_ci95[1].is_nan());
        assert!(Bootstrap::new(1).share(&[]).ci95[0].is_nan());
    }
}
