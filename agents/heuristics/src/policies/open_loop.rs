//! A schedule by blocks of ten minutes. It looks at nothing but the clock, so what it gains it gains
//! by memorising the scenario.

use crate::board::{Board, Turn};
use crate::param::Param;
use crate::{Policy, PolicyKey};
use oncall_fleet::Sig;
use oncall_fleet::dials::index;
use std::borrow::Cow;

/// Minutes of a block.
const BLOCK_MIN: f64 = 10.0;
/// Blocks of the table: four hours. The last one holds.
pub(crate) const BLOCKS: usize = 24;
/// Dials of a block, the fleet with the autoscaler off.
const BLOCK_DIALS: [usize; 4] =
    [index::MIN_INSTANCES, index::CACHE_TTL_S, index::SHED_SHARE, index::FEATURE];
/// Buttons, each pressed in two minutes at most.
const PRESSES: [(usize, &str); 4] = [
    (index::WARM_UP, "warm_up_1_min"),
    (index::WARM_UP, "warm_up_2_min"),
    (index::ROLLBACK, "rollback_1_min"),
    (index::ROLLBACK, "rollback_2_min"),
];

/// The table: the dials of block 0, of block 1 and so on, then the presses.
pub(crate) fn table() -> Vec<Param> {
    let mut params = Vec::new();
    for block in 0..BLOCKS {
        let dials = [
            ("min_instances", "", 1.0, 40.0, 10.0, true, "Instances, with the autoscaler off."),
            ("cache_ttl_s", "s", 0.0, 600.0, 60.0, false, "Time to live of a cache entry."),
            ("shed_share", "", 0.0, 1.0, 0.0, false, "Share of the low-priority traffic refused."),
            ("feature", "", 0.0, 1.0, 1.0, true, "1 keeps the recommendations on."),
        ];
        for (name, unit, low, high, default, whole, doc) in dials {
            let name = Cow::Owned(format!("b{block:02}_{name}"));
            params.push(Param {
                name,
                unit,
                low,
                high,
                default: Some(default),
                whole,
                log: false,
                doc,
            });
        }
    }
    params.extend(PRESSES.iter().map(|(_, name)| Param {
        name: Cow::Borrowed(*name),
        unit: "min",
        low: -1.0,
        high: BLOCKS as f64 * BLOCK_MIN - 1.0,
        default: Some(-1.0),
        whole: true,
        log: false,
        doc: "Minute of the shift in which it is pressed; -1 never.",
    }));
    params
}

/// Plays the schedule.
pub(crate) struct OpenLoop {
    blocks: Vec<[f64; BLOCK_DIALS.len()]>,
    /// Dial and minute.
    presses: Vec<(usize, f64)>,
    /// The minute decided last; -1 before the first. An action may be held over several minutes.
    last_min: f64,
}

impl OpenLoop {
    /// The schedule of a full row of values in the order of the table.
    pub(crate) fn new(values: &[f64]) -> Self {
        let (blocks, presses) = values.split_at(values.len() - PRESSES.len());
        Self {
            blocks: blocks.as_chunks().0.to_vec(),
            presses: PRESSES.iter().map(|(dial, _)| *dial).zip(presses.iter().copied()).collect(),
            last_min: -1.0,
        }
    }
}

impl Policy for OpenLoop {
    fn reset(&mut self, _key: PolicyKey) {
        self.last_min = -1.0;
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let now = Board(signals).get(Sig::shift_min);
        let block = ((now / BLOCK_MIN) as usize).min(self.blocks.len() - 1);
        let mut turn = Turn::keep_all(action);
        turn.switch(index::AUTOSCALE, false);
        for (dial, value) in BLOCK_DIALS.iter().zip(self.blocks[block]) {
            turn.set(*dial, value);
        }
        for (dial, minute) in &self.presses {
            if *minute > self.last_min && *minute <= now {
                turn.switch(*dial, true);
            }
        }
        self.last_min = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::testing::{Row, act, policy};

    #[test]
    fn blocks_and_presses_follow_the_clock() {
        let text =
            "open-loop:b03_shed_share=0.5,b23_min_instances=7,warm_up_1_min=31,rollback_2_min=12";
        let mut policy = policy(text);
        let mut at = |minute| act(&mut *policy, &Row::quiet(minute));
        let first = at(0);
        assert_eq!(first[..2], [10.0, 0.0]);
        assert_eq!(first[3..], [60.0, 0.0, 0.0, 1.0, 0.0]);
        assert!(first[index::TARGET_UTILIZATION].is_nan());
        assert_eq!(at(29)[index::SHED_SHARE], 0.0);
        assert_eq!(at(30)[index::SHED_SHARE], 0.5);
        assert_eq!([31, 32].map(|minute| at(minute)[index::WARM_UP]), [1.0, 0.0]);
        assert_eq!(at(40)[index::SHED_SHARE], 0.0);
        // The last block holds.
        assert_eq!(at(600)[index::MIN_INSTANCES], 7.0);
    }

    #[test]
    fn a_press_inside_a_held_action_comes_with_the_next_one() {
        let mut policy = policy("open-loop:rollback_1_min=12");
        let pressed = [0, 5, 10, 15, 20]
            .map(|minute| act(&mut *policy, &Row::quiet(minute))[index::ROLLBACK]);
        assert_eq!(pressed, [0.0, 0.0, 0.0, 1.0, 0.0]);
        policy.reset(PolicyKey::default());
        assert_eq!(act(&mut *policy, &Row::quiet(0))[index::ROLLBACK], 0.0);
        assert_eq!(act(&mut *policy, &Row::quiet(12))[index::ROLLBACK], 1.0);
    }
}
