//! Which scenario of a mixture an episode plays, from the running sums of the weights.

use crate::streams::{EpisodeKey, Purpose};

/// Share of the episodes that play each scenario; they sum to 1.
pub fn shares(cumulative: &[f64]) -> Vec<f64> {
    let total = cumulative.last().copied().unwrap_or(1.0);
    let before = [0.0].into_iter().chain(cumulative.iter().copied());
    cumulative.iter().zip(before).map(|(sum, before)| (sum - before) / total).collect()
}

/// The scenario of an episode. One alone draws nothing.
pub fn draw(cumulative: &[f64], key: EpisodeKey) -> usize {
    if cumulative.len() <= 1 {
        return 0;
    }
    let total = cumulative.last().copied().unwrap_or(1.0);
    let point = key.stream(Purpose::Variant, 0).uniform() * total;
    cumulative.iter().position(|&sum| point < sum).unwrap_or(cumulative.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::{Generator, Split};

    #[test]
    fn episodes_follow_the_shares() {
        let cumulative = [1.0, 4.0, 5.0];
        assert_eq!(shares(&cumulative), [0.2, 0.6, 0.2]);
        let mut counts = [0_u32; 3];
        for seed in 0..10_000 {
            counts[draw(&cumulative, EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg))] += 1;
        }
        for (count, share) in counts.into_iter().zip(shares(&cumulative)) {
            let spread = (10_000.0 * share * (1.0 - share)).sqrt();
            assert!((f64::from(count) - 10_000.0 * share).abs() < 5.0 * spread, "{counts:?}");
        }
        assert_eq!(draw(&[1.0], EpisodeKey::default()), 0);
    }
}
