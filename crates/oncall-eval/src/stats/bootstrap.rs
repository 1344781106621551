//! The seeded bootstrap, and what it says of one policy.

use super::{Estimate, Figure, TRIM, ends, iqm, mean, quantile};
use oncall_core::streams::{mix, scramble};
use rand::rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg32;

/// A seeded bootstrap. Every statistic begins the same stream anew, so that none depends on which
/// others were asked for.
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

    pub(super) fn stream(self) -> Pcg32 {
        let hash = mix(self.seed, 0x626f_6f74);
        let mut bytes = [0_u8; 16];
        bytes[..8].copy_from_slice(&hash.to_le_bytes());
        bytes[8..].copy_from_slice(&scramble(hash).to_le_bytes());
        Pcg32::from_seed(bytes)
    }

    /// Mean, median and interquartile mean of all values together, resampled within each stratum.
    /// All NaN for no values.
    pub fn estimate(self, strata: &[&[f64]]) -> Estimate {
        let values = strata.concat();
        let (mut means, mut medians, mut iqms) = (Vec::new(), Vec::new(), Vec::new());
        if !values.is_empty() {
            let mut resample = Resample::new(&values);
            let mut rng = self.stream();
            for _ in 0..self.resamples {
                resample.draw(strata, &mut rng);
                let (mean, iqm) = resample.mean_and_iqm();
                means.push(mean);
                medians.push(resample.median());
                iqms.push(iqm);
            }
        }
        Estimate {
            mean: mean(&values),
            median: quantile(&values, 0.5),
            iqm: iqm(&values),
            ci95: ends(&means),
            median_ci95: ends(&medians),
            iqm_ci95: ends(&iqms),
        }
    }

    /// Mean of all values together, resampled within each stratum. NaN for no values.
    pub fn mean(self, strata: &[&[f64]]) -> Figure {
        let count: usize = strata.iter().map(|stratum| stratum.len()).sum();
        let mut means = Vec::new();
        if count > 0 {
            let mut rng = self.stream();
            for _ in 0..self.resamples {
                let sum: f64 = strata.iter().map(|stratum| drawn_sum(stratum, &mut rng)).sum();
                means.push(sum / count as f64);
            }
        }
        Figure { value: mean(&strata.concat()), ci95: ends(&means) }
    }
}

/// Sum of as many draws as there are values.
pub(super) fn drawn_sum(values: &[f64], rng: &mut Pcg32) -> f64 {
    (0..values.len()).map(|_| values[below(rng, values.len())]).sum()
}

/// An index below `len`, by Lemire's multiplication; its bias is below `len / 2^32`.
#[inline]
fn below(rng: &mut Pcg32, len: usize) -> usize {
    ((u64::from(rng.next_u32()) * len as u64) >> 32) as usize
}

/// How often each value was drawn, in the order of the values: with it the order statistics of a
/// resample need no sorting.
pub(super) struct Resample {
    pub(super) sorted: Vec<f64>,
    /// Place in `sorted` of each value as given.
    place: Vec<usize>,
    /// By place in `sorted`.
    pub(super) counts: Vec<usize>,
}

impl Resample {
    pub(super) fn new(values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut place = vec![0; values.len()];
        for (rank, &index) in order.iter().enumerate() {
            place[index] = rank;
        }
        let sorted = order.iter().map(|&index| values[index]).collect();
        Self { sorted, place, counts: vec![0; values.len()] }
    }

    pub(super) fn draw(&mut self, strata: &[&[f64]], rng: &mut Pcg32) {
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

    fn median(&self) -> f64 {
        let len = self.sorted.len();
        let (below, above) = (self.drawn((len - 1) / 2), self.drawn(len / 2));
        below + (above - below) * 0.5
    }

    /// The drawn value of a rank, from the smallest.
    fn drawn(&self, rank: usize) -> f64 {
        let mut end = 0;
        let at = self.counts.iter().position(|&count| {
            end += count;
            end > rank
        });
        at.map_or(f64::NAN, |place| self.sorted[place])
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{A, B, near, near_ends};
    use super::*;

    #[test]
    fn intervals_as_the_reference_draws_them() {
        let estimate = Bootstrap { resamples: 500, seed: 7 }.estimate(&[&A]);
        near(estimate.mean, mean(&A));
        near(estimate.iqm, iqm(&A));
        near(estimate.median, -22.5);
        near_ends(estimate.ci95, [-58.092_613_636_363_64, -21.144_886_363_636_367]);
        near_ends(estimate.iqm_ci95, [-47.042_857_142_857_144, -20.231_250_000_000_003]);
        let estimate = Bootstrap { resamples: 500, seed: 8 }.estimate(&[&A, &B[..6]]);
        near_ends(estimate.ci95, [-51.021_691_176_470_59, -22.497_794_117_647_06]);
        near_ends(estimate.iqm_ci95, [-36.071_527_777_777_78, -20.055_555_555_555_557]);
        near(estimate.median, -25.5);
        near_ends(estimate.median_ci95, [-31.0, -19.0]);
        // An even number of values: the median lies between two.
        let estimate = Bootstrap { resamples: 500, seed: 7 }.estimate(&[&A[..10]]);
        near_ends(estimate.median_ci95, [-40.306_25, -21.0]);
        let mean = Bootstrap { resamples: 500, seed: 7 }.mean(&[&A]);
        near_ends(mean.ci95, [-58.092_613_636_363_64, -21.144_886_363_636_367]);
    }

    #[test]
    fn strata_stay_apart() {
        // Two constant strata: no resample can change their weights.
        let estimate = Bootstrap::new(1).estimate(&[&[0.0; 5], &[10.0; 5]]);
        assert_eq!(estimate.ci95, [5.0, 5.0]);
        assert_eq!(Bootstrap::new(1).mean(&[&[0.0; 5], &[10.0; 5]]).ci95, [5.0, 5.0]);
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
        near(mapped.median, direct.median);
        near(mapped.iqm, direct.iqm);
        near_ends(mapped.ci95, direct.ci95);
        near_ends(mapped.median_ci95, direct.median_ci95);
        near_ends(mapped.iqm_ci95, direct.iqm_ci95);
    }

    #[test]
    fn nothing_is_not_a_number_and_no_panic() {
        let nothing = Bootstrap::new(1).estimate(&[&[]]);
        assert!(nothing.mean.is_nan() && nothing.ci95[0].is_nan() && nothing.iqm_ci95[1].is_nan());
        assert!(nothing.median.is_nan() && nothing.median_ci95[0].is_nan());
        assert!(Bootstrap::new(1).mean(&[]).ci95[0].is_nan());
    }
}
