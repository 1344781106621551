//! Generalised advantage estimation (Schulman et al. 2016).
//!
//! `delta = reward + gamma * V(next) - V`, where `V(next)` counts as zero after a termination and as
//! the value of the episode's own last observation after a truncation; the sum over later deltas is
//! cut at either.

use crate::buffer::End;

/// How much the future counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Discount {
    /// Factor a step on what comes later, 0..=1.
    pub gamma: f64,
    /// How far rewards are trusted rather than the critic: 0 one step, 1 to the end.
    pub lambda: f64,
}

/// Writes the advantage of each decision and the return that the critic should have said.
///
/// All slices hold whole rows of `steps` samples, row by row; rewards are in the critic's scale.
///
/// # Panics
///
/// If lengths differ, or `steps` is zero.
pub fn advantages(
    discount: Discount,
    steps: usize,
    (rewards, ends): (&[f32], &[End]),
    (values, next_values): (&[f32], &[f32]),
    (advantages, returns): (&mut [f32], &mut [f32]),
) {
    let len = rewards.len();
    let lengths = [ends.len(), values.len(), next_values.len(), advantages.len(), returns.len()];
    assert!(
        lengths == [len; 5] && len.is_multiple_of(steps),
        "{lengths:?}, rows of {steps}: {len}"
    );
    let gamma = discount.gamma as f32;
    let decay = (discount.gamma * discount.lambda) as f32;
    for start in (0..len).step_by(steps) {
        let mut later = 0.0;
        for i in (start..start + steps).rev() {
            let next = if ends[i] == End::Terminated { 0.0 } else { next_values[i] };
            let delta = rewards[i] + gamma * next - values[i];
            later = if ends[i].is_end() { delta } else { delta + decay * later };
            advantages[i] = later;
            returns[i] = later + values[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: Discount = Discount { gamma: 0.5, lambda: 0.5 };

    fn run(
        discount: Discount,
        steps: usize,
        rewards: &[f32],
        ends: &[End],
        values: (&[f32], &[f32]),
    ) -> (Vec<f32>, Vec<f32>) {
        let mut out = (vec![f32::NAN; rewards.len()], vec![f32::NAN; rewards.len()]);
        advantages(discount, steps, (rewards, ends), values, (&mut out.0, &mut out.1));
        out
    }

    /// Worked by hand: deltas are 1 + 0.5*4 - 2 = 1, 2 + 0.5*6 - 4 = 1, 3 + 0.5*8 - 6 = 1, and the
    /// decay is 0.25, so the advantages are 1 + 0.25 * 1.25, 1 + 0.25, 1.
    #[test]
    fn a_running_episode_leans_on_the_next_value() {
        let values = (&[2.0, 4.0, 6.0][..], &[4.0, 6.0, 8.0][..]);
        let (advantages, returns) = run(HALF, 3, &[1.0, 2.0, 3.0], &[End::Going; 3], values);
        assert_eq!(advantages, [1.3125, 1.25, 1.0]);
        assert_eq!(returns, [3.3125, 5.25, 7.0]);
    }

    /// The same numbers, the middle step ends the episode. Terminated: its delta is 2 - 4 = -2 and the
    /// first advantage 1 - 0.5. Truncated: its delta stays 1, and the first is 1 + 0.25.
    #[test]
    fn terminated_and_truncated_differ_and_both_cut_the_sum() {
        let values = (&[2.0, 4.0, 6.0][..], &[4.0, 6.0, 8.0][..]);
        let rewards = [1.0, 2.0, 3.0];
        let with = |end| run(HALF, 3, &rewards, &[End::Going, end, End::Going], values).0;
        assert_eq!(with(End::Terminated), [0.5, -2.0, 1.0]);
        assert_eq!(with(End::Truncated), [1.25, 1.0, 1.0]);
    }

    /// The value after a truncation is that of the last observation, whatever the next row of the
    /// buffer begins with.
    #[test]
    fn a_new_episode_does_not_leak_into_the_old_one() {
        let ends = [End::Truncated, End::Going];
        let of = |value: f32| run(HALF, 2, &[1.0, 1.0], &ends, (&[0.0, value], &[10.0, 2.0])).0[0];
        assert_eq!(of(0.0), 6.0);
        assert_eq!(of(1e6), 6.0);
    }

    #[test]
    fn rows_do_not_touch() {
        let values = (&[0.0; 4][..], &[0.0; 4][..]);
        let (advantages, _) = run(HALF, 2, &[0.0, 4.0, 0.0, 8.0], &[End::Going; 4], values);
        assert_eq!(advantages, [1.0, 4.0, 2.0, 8.0]);
    }

    /// With lambda 1 and no discount the returns are what was really paid to the end.
    #[test]
    fn lambda_one_is_the_sum_of_rewards() {
        let discount = Discount { gamma: 1.0, lambda: 1.0 };
        let ends = [End::Going, End::Going, End::Terminated];
        let values = (&[7.0, -3.0, 0.5][..], &[-3.0, 0.5, 99.0][..]);
        let (_, returns) = run(discount, 3, &[1.0, 2.0, 4.0], &ends, values);
        assert_eq!(returns, [7.0, 6.0, 4.0]);
    }
}
