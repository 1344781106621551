//! What is asked over several scenarios at once, as rliable defines it.

use super::bootstrap::{Resample, drawn_sum};
use super::{Bootstrap, Figure, ends, mean, quantile};

/// Share of the values above each threshold.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// The thresholds, as given.
    pub taus: Vec<f64>,
    /// Share of the values greater than the threshold, with its interval.
    pub shares: Vec<Figure>,
}

impl Bootstrap {
    /// Median over the strata of their means: rliable's aggregate median. NaN for no strata.
    pub fn median_of_means(self, strata: &[&[f64]]) -> Figure {
        let mut rng = self.stream();
        let resampled = |_| {
            let drawn = |stratum: &&[f64]| drawn_sum(stratum, &mut rng) / stratum.len() as f64;
            quantile(&strata.iter().map(drawn).collect::<Vec<f64>>(), 0.5)
        };
        let means: Vec<f64> = strata.iter().map(|stratum| mean(stratum)).collect();
        let medians: Vec<f64> = (0..self.resamples).map(resampled).collect();
        Figure { value: quantile(&means, 0.5), ci95: ends(&medians) }
    }

    /// How much is missing to `target` on the mean, where what lies above it counts as `target`.
    pub fn optimality_gap(self, strata: &[&[f64]], target: f64) -> Figure {
        let clipped: Vec<Vec<f64>> =
            strata.iter().map(|values| values.iter().map(|x| x.min(target)).collect()).collect();
        let clipped: Vec<&[f64]> = clipped.iter().map(Vec::as_slice).collect();
        self.mean(&clipped).rest_of(target)
    }

    /// The performance profile: the share of all values above each threshold, with a pointwise
    /// interval. The values of a stratum count as often as they are many.
    pub fn profile(self, strata: &[&[f64]], taus: &[f64]) -> Profile {
        let values = strata.concat();
        let mut resample = Resample::new(&values);
        let len = values.len() as f64;
        // First place of the sorted values that lies above each threshold.
        let first: Vec<usize> =
            taus.iter().map(|tau| resample.sorted.partition_point(|x| x <= tau)).collect();
        let mut rng = self.stream();
        let mut drawn: Vec<Vec<f64>> = vec![Vec::new(); taus.len()];
        let resamples = if values.is_empty() { 0 } else { self.resamples };
        for _ in 0..resamples {
            resample.draw(strata, &mut rng);
            let below = sums(&resample.counts);
            for (shares, &first) in drawn.iter_mut().zip(&first) {
                shares.push((values.len() - below[first]) as f64 / len);
            }
        }
        let share = |(&first, shares): (&usize, &Vec<f64>)| Figure {
            value: (values.len() - first) as f64 / len,
            ci95: ends(shares),
        };
        Profile { taus: taus.to_vec(), shares: first.iter().zip(&drawn).map(share).collect() }
    }

    /// The unpaired probability that a value of `a` is greater than one of `b`, half of the ties
    /// included (Mann and Whitney's U over the number of pairs), averaged over the strata; both are
    /// resampled on their own. NaN where a stratum is empty.
    pub fn improvement(self, a: &[&[f64]], b: &[&[f64]]) -> Figure {
        let mut duels: Vec<Duel> = a.iter().zip(b).map(|(a, b)| Duel::new(a, b)).collect();
        let averaged = |shares: &[f64]| mean(shares);
        let value = averaged(&duels.iter().map(Duel::share).collect::<Vec<f64>>());
        let mut rng = self.stream();
        let mut drawn = Vec::new();
        let resamples = if value.is_nan() { 0 } else { self.resamples };
        for _ in 0..resamples {
            let shares = duels.iter_mut().zip(a.iter().zip(b)).map(|(duel, (a, b))| {
                duel.a.draw(&[a], &mut rng);
                duel.b.draw(&[b], &mut rng);
                duel.share()
            });
            drawn.push(averaged(&shares.collect::<Vec<f64>>()));
        }
        Figure { value, ci95: ends(&drawn) }
    }
}

/// Sum of all counts before each place, and of all.
fn sums(counts: &[usize]) -> Vec<usize> {
    let mut sums = vec![0; counts.len() + 1];
    for (place, &count) in counts.iter().enumerate() {
        sums[place + 1] = sums[place] + count;
    }
    sums
}

/// Two samples, every value of the one against every value of the other.
struct Duel {
    a: Resample,
    b: Resample,
    /// For each value of `a` how many of `b` are smaller, and how many are not greater.
    under: Vec<[usize; 2]>,
}

impl Duel {
    fn new(a: &[f64], b: &[f64]) -> Self {
        let (mut a, mut b) = (Resample::new(a), Resample::new(b));
        let under =
            |x: &f64| [b.sorted.partition_point(|y| y < x), b.sorted.partition_point(|y| y <= x)];
        let under = a.sorted.iter().map(under).collect();
        a.counts.fill(1);
        b.counts.fill(1);
        Self { a, b, under }
    }

    /// Share of the drawn pairs in which `a` is greater; NaN without pairs.
    fn share(&self) -> f64 {
        let sums = sums(&self.b.counts);
        let wins = |(&count, under): (&usize, &[usize; 2])| {
            count as f64 * (sums[under[0]] + sums[under[1]]) as f64 / 2.0
        };
        let won: f64 = self.a.counts.iter().zip(&self.under).map(wins).sum();
        won / (self.a.sorted.len() * self.b.sorted.len()) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{A, B, near, near_ends};
    use super::*;

    /// Three scenarios of different lengths, as in `tests/reference/statistics.py`.
    const C: [f64; 3] = [-5.0, -60.0, -20.5];

    fn strata() -> [&'static [f64]; 3] {
        [&A, &B[..6], &C]
    }

    #[test]
    fn medians_and_gaps_as_the_reference_draws_them() {
        let bootstrap = Bootstrap { resamples: 400, seed: 9 };
        let median = bootstrap.median_of_means(&strata());
        near(median.value, -34.708_333_333_333_336);
        near_ends(median.ci95, [-49.340_625, -19.443_750_000_000_012]);
        let gap = bootstrap.optimality_gap(&strata(), -20.0);
        near(gap.value, 17.012_500_000_000_003);
        near_ends(gap.ci95, [5.668_125_000_000_001, 32.124_062_499_999_99]);
    }

    #[test]
    fn gaps_by_hand() {
        // What lies above the target hides nothing that is missing elsewhere.
        let gap = Bootstrap::new(1).optimality_gap(&[&[130.0; 4], &[60.0; 4]], 100.0);
        assert_eq!((gap.value, gap.ci95), (20.0, [20.0, 20.0]));
        let median = Bootstrap::new(1).median_of_means(&[&[1.0; 2], &[7.0; 3], &[3.0; 9]]);
        assert_eq!((median.value, median.ci95), (3.0, [3.0, 3.0]));
    }

    #[test]
    fn profiles_as_the_reference_draws_them() {
        let taus = [-150.0, -31.0, -22.5, -10.0, 0.0];
        let profile = Bootstrap { resamples: 400, seed: 9 }.profile(&strata(), &taus);
        assert_eq!(profile.taus, taus);
        let shares: Vec<f64> = profile.shares.iter().map(|share| share.value).collect();
        assert_eq!(shares, [1.0, 0.65, 0.4, 0.15, 0.0]);
        let expected = [[1.0, 1.0], [0.448_75, 0.8], [0.2, 0.6], [0.0, 0.3], [0.0, 0.0]];
        for (share, expected) in profile.shares.iter().zip(expected) {
            near_ends(share.ci95, expected);
        }
    }

    #[test]
    fn improvements_as_scipy_has_them() {
        let bootstrap = Bootstrap { resamples: 300, seed: 5 };
        let [a, b]: [[&[f64]; 2]; 2] = [[&A, &B[..6]], [&B, &A[3..]]];
        let found = bootstrap.improvement(&a, &b);
        near(found.value, 0.550_748_966_942_148_8);
        near_ends(found.ci95, [0.336_667_097_107_438_03, 0.752_425_533_746_556_4]);
        near(bootstrap.improvement(&a[..1], &b[..1]).value, 0.570_247_933_884_297_5);
        // The other way round nothing is lost.
        near(bootstrap.improvement(&b, &a).value, 1.0 - found.value);
    }

    #[test]
    fn unpaired_and_paired_are_not_the_same_question() {
        // Each morning a cent better, and the mornings differ by dollars.
        let b: Vec<f64> = (0..100).map(f64::from).collect();
        let a: Vec<f64> = b.iter().map(|x| x + 0.01).collect();
        let unpaired = Bootstrap::new(1).improvement(&[&a], &[&b]);
        assert_eq!(mean(&crate::stats::wins(&a, &b)), 1.0);
        assert_eq!(unpaired.value, 0.505);
        assert!(unpaired.ci95[0] < 0.45 && unpaired.ci95[1] > 0.55, "{unpaired:?}");
    }

    #[test]
    fn nothing_is_not_a_number_and_no_panic() {
        let bootstrap = Bootstrap { resamples: 10, seed: 1 };
        assert!(bootstrap.median_of_means(&[]).value.is_nan());
        assert!(bootstrap.optimality_gap(&[], 100.0).ci95[0].is_nan());
        assert!(bootstrap.profile(&[], &[0.0]).shares[0].value.is_nan());
        assert!(bootstrap.improvement(&[&[]], &[&[]]).value.is_nan());
        assert!(bootstrap.improvement(&[&[1.0]], &[&[]]).ci95[1].is_nan());
    }
}
