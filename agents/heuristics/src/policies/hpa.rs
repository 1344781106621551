//! The horizontal autoscaler of Kubernetes, one reading a minute.
//!
//! `desired = ceil(current x metric / target)`, nothing within the tolerance. Instances that still
//! boot count as idle when the answer is to grow, and not at all when it is to shrink. Shrinking
//! follows the highest answer of the last five minutes; growing and shrinking are limited to a share
//! and a count of the fleet a minute (in a real cluster: of 15 seconds, in which our dashboard has no
//! new reading).

use crate::board::{Board, Turn};
use crate::param::params;
use crate::{Policy, PolicyKey};
use oncall_fleet::Sig;
use std::collections::VecDeque;

params! {
    /// The autoscaler's.
    HpaParams {
        target: 0.6, 0.1 ..= 0.95, ""; "Utilisation that it aims at."
        min: 10, 1 ..= 40, "", whole; "Smallest fleet."
        max: 40, 1 ..= 40, "", whole; "Largest fleet, and at least the smallest."
        tolerance: 0.1, 0 ..= 0.5, ""; "No change while metric / target is this close to 1."
        down_window_min: 5, 0 ..= 60, "min"; "Shrinking follows the highest answer of these minutes."
        up_share: 1, 0 ..= 10, ""; "It may grow by this share of the fleet in a minute,"
        up_count: 4, 1 ..= 40, "", whole; "or by this count, whichever is more."
        down_share: 1, 0.01 ..= 1, ""; "It may shrink by this share of the fleet in a minute."
    }
}

/// A product this close above a whole number counts as it, and a ratio this close to the tolerance is
/// within it.
const ROUNDING: f64 = 1e-9;

/// The autoscaler, with its answers of the last minutes.
pub(crate) struct Hpa {
    params: HpaParams,
    answers: VecDeque<(f64, f64)>,
}

impl Hpa {
    pub(crate) fn new(params: HpaParams) -> Self {
        Self { params, answers: VecDeque::new() }
    }

    /// The answer to a reading, before stabilisation and limits.
    fn answer(&self, serving: f64, booting: f64, utilization: f64) -> f64 {
        let current = serving + booting;
        let within = |ratio: f64| (ratio - 1.0).abs() <= self.params.tolerance + ROUNDING;
        let ceil = |wanted: f64| (wanted - ROUNDING).ceil();
        let ratio = utilization / self.params.target;
        if within(ratio) {
            return current;
        }
        if ratio < 1.0 || booting == 0.0 {
            return ceil(serving * ratio);
        }
        let with_idle = ratio * serving / current;
        // Idle newcomers must not turn the answer round.
        if with_idle < 1.0 || within(with_idle) { current } else { ceil(with_idle * current) }
    }
}

impl Policy for Hpa {
    fn reset(&mut self, _key: PolicyKey) {
        self.answers.clear();
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let board = Board(signals);
        let (serving, booting) = (board.get(Sig::serving), board.get(Sig::booting));
        let (now, current) = (board.get(Sig::shift_min), serving + booting);
        let params = &self.params;
        let max = params.max.max(params.min);
        let bounded = |count: f64| count.clamp(params.min, max);
        let answer = bounded(self.answer(serving, booting, board.get(Sig::utilization)));
        let window = params.down_window_min;
        self.answers.retain(|(minute, _)| now - minute < window);
        self.answers.push_back((now, answer));
        let highest = self.answers.iter().map(|(_, answer)| *answer).fold(answer, f64::max);
        // Growing at once; shrinking to the highest recent answer, never growing because of it.
        let stable = if answer >= current { answer } else { highest.min(current) };
        let up = current + (current * params.up_share).max(params.up_count);
        let down = (current * (1.0 - params.down_share)).floor();
        Turn::keep_all(action).fleet(bounded(stable.clamp(down.min(up), up)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::testing::{Row, act, policy};
    use oncall_fleet::dials::index;

    fn row(minute: u32, serving: f64, booting: f64, utilization: f64) -> Row {
        Row::quiet(minute)
            .with(Sig::serving, serving)
            .with(Sig::booting, booting)
            .with(Sig::utilization, utilization)
    }

    fn fleet(policy: &mut dyn Policy, row: &Row) -> f64 {
        let action = act(policy, row);
        assert_eq!(action[index::AUTOSCALE], 0.0);
        action[index::MIN_INSTANCES]
    }

    #[test]
    fn nothing_within_the_tolerance() {
        let at = |utilization| {
            fleet(&mut *policy("hpa:target=0.6,min=2"), &row(0, 10.0, 0.0, utilization))
        };
        assert_eq!([0.54, 0.6, 0.66].map(at), [10.0, 10.0, 10.0]);
        assert_eq!(at(0.661), 12.0);
        // 20 x 0.9 / 0.6 is thirty instances and not one more.
        assert_eq!(fleet(&mut *policy("hpa:target=0.6"), &row(0, 20.0, 0.0, 0.9)), 30.0);
    }

    #[test]
    fn shrinking_follows_the_highest_answer_of_five_minutes() {
        let mut hpa = policy("hpa:target=0.6,min=2");
        assert_eq!(fleet(&mut *hpa, &row(0, 20.0, 0.0, 0.6)), 20.0);
        for minute in 1..5 {
            assert_eq!(fleet(&mut *hpa, &row(minute, 20.0, 0.0, 0.3)), 20.0, "{minute}");
        }
        assert_eq!(fleet(&mut *hpa, &row(5, 20.0, 0.0, 0.3)), 10.0);
        // A new shift remembers nothing.
        hpa.reset(PolicyKey::default());
        assert_eq!(fleet(&mut *hpa, &row(0, 20.0, 0.0, 0.3)), 10.0);
    }

    #[test]
    fn growing_and_shrinking_are_limited() {
        let limited = "hpa:target=0.2,min=1,up_share=0.5,up_count=4,down_share=0.25";
        assert_eq!(fleet(&mut *policy(limited), &row(0, 4.0, 0.0, 1.0)), 8.0);
        assert_eq!(fleet(&mut *policy(limited), &row(0, 20.0, 0.0, 1.0)), 30.0);
        assert_eq!(fleet(&mut *policy(limited), &row(0, 20.0, 0.0, 0.01)), 15.0);
        assert_eq!(fleet(&mut *policy("hpa:target=0.2"), &row(0, 12.0, 0.0, 1.0)), 24.0);
        assert_eq!(fleet(&mut *policy("hpa:target=0.2"), &row(0, 30.0, 0.0, 1.0)), 40.0);
        assert_eq!(fleet(&mut *policy("hpa:min=6"), &row(0, 8.0, 0.0, 0.01)), 6.0);
    }

    #[test]
    fn booting_instances_count_as_idle() {
        let at = |booting, utilization| {
            fleet(&mut *policy("hpa:target=0.5,min=2"), &row(0, 10.0, booting, utilization))
        };
        assert_eq!(at(0.0, 0.9), 18.0);
        assert_eq!(at(4.0, 0.9), 18.0); // 14 x 0.9 x (10 / 14) / 0.5
        assert_eq!(at(8.0, 0.9), 18.0); // enough are on their way
        assert_eq!(at(10.0, 0.9), 20.0);
    }
}
