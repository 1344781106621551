//! Means, interquartile means, quantiles, and bootstrap intervals of them.
//!
//! * The **interquartile mean** is `scipy.stats.trim_mean(x, 0.25)`, as rliable uses it: sort, drop
//!   `floor(n / 4)` values at each end, take the mean of the rest. No fractional weights.
//! * **Intervals** are 95 % percentile bootstrap intervals (Efron 1979): episodes are drawn with
//!   replacement, within each stratum (scenario) as many as it has; the ends are the 2.5 % and
//!   97.5 % quantiles of the statistic over the resamples.
//! * **Quantiles** interpolate linearly between order statistics (Hyndman and Fan's type 7).
//!
//! What is asked over several scenarios (median of their means, optimality gap, performance profile,
//! probability of improvement) is defined as by Agarwal et al., *Deep Reinforcement Learning at the
//! Edge of the Statistical Precipice* (2021); an episode stands where they have a run.

mod bootstrap;
mod overall;

pub use bootstrap::Bootstrap;
pub use overall::Profile;

/// Share of the values that the interquartile mean drops at each end.
const TRIM: usize = 4;

/// Mean, median and interquartile mean, each with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Mean of all values.
    pub mean: f64,
    /// Median of all values.
    pub median: f64,
    /// Interquartile mean.
    pub iqm: f64,
    /// Lower and upper end of the mean's interval.
    pub ci95: [f64; 2],
    /// Lower and upper end of the median's interval.
    pub median_ci95: [f64; 2],
    /// Lower and upper end of the interquartile mean's interval.
    pub iqm_ci95: [f64; 2],
}

impl Estimate {
    /// The estimate of `factor * x + offset`, for a positive factor: all statistics are equivariant,
    /// so nothing is resampled again.
    #[must_use]
    pub fn affine(self, factor: f64, offset: f64) -> Self {
        let map = |x: f64| factor * x + offset;
        Self {
            mean: map(self.mean),
            median: map(self.median),
            iqm: map(self.iqm),
            ci95: self.ci95.map(map),
            median_ci95: self.median_ci95.map(map),
            iqm_ci95: self.iqm_ci95.map(map),
        }
    }
}

/// A number with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize)]
pub struct Figure {
    /// The number.
    pub value: f64,
    /// Lower and upper end of its interval.
    pub ci95: [f64; 2],
}

impl Figure {
    /// Number and ends multiplied by a factor that is not negative.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        Self { value: factor * self.value, ci95: self.ci95.map(|end| factor * end) }
    }

    /// `whole` less this: the ends change places.
    #[must_use]
    pub fn rest_of(self, whole: f64) -> Self {
        let [low, high] = self.ci95;
        Self { value: whole - self.value, ci95: [whole - high, whole - low] }
    }
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

/// Ends of the 95 % interval of a statistic over its resamples.
fn ends(statistics: &[f64]) -> [f64; 2] {
    let sorted = sorted(statistics);
    [0.025, 0.975].map(|q| quantile_of_sorted(&sorted, q))
}

/// For each pair 1 where `a` is greater, 1/2 where both are equal, 0 where `b` is: the mean of these
/// is the paired probability of improvement of `a` over `b`.
///
/// Pairs are the same episode played twice, so this asks on how many mornings `a` does better. The
/// unpaired form that rliable reports compares every episode with every other: see
/// [`Bootstrap::improvement`].
pub fn wins(a: &[f64], b: &[f64]) -> Vec<f64> {
    let win = |(a, b): (&f64, &f64)| match a.total_cmp(b) {
        // Both zeros are the same return.
        _ if a == b => 0.5,
        std::cmp::Ordering::Greater => 1.0,
        _ => 0.0,
    };
    a.iter().zip(b).map(win).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The samples and the known values of `tests/reference/statistics.py` (`SciPy` 1.17).
    pub(super) const A: [f64; 11] =
        [-22.5, -31.0, -18.25, -140.0, -22.5, -9.5, -55.75, -27.0, -33.5, -21.0, -19.0];
    pub(super) const B: [f64; 11] =
        [-30.0, -31.0, -12.25, -100.0, -25.5, -9.5, -66.75, -28.0, -31.5, -41.0, -19.5];

    pub(super) fn near(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12 * expected.abs().max(1.0), "{found} {expected}");
    }

    pub(super) fn near_ends(found: [f64; 2], expected: [f64; 2]) {
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
    fn figures_keep_their_ends_in_order() {
        let figure = Figure { value: 60.0, ci95: [50.0, 80.0] };
        assert_eq!(figure.rest_of(100.0), Figure { value: 40.0, ci95: [20.0, 50.0] });
        assert_eq!(figure.scaled(0.5), Figure { value: 30.0, ci95: [25.0, 40.0] });
    }
}
