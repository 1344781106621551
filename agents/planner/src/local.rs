//! Local search on a played schedule: sizes and order minutes of the fleet, and each minute's level.

use crate::episode::{Action, Bill, Episode, Trace, same_future};
use crate::level::{FINE, GAIN_MIN_USD, Level, Steps, cheapest, cheapest_anywhere};
use crate::table::{Table, serving_next};
use oncall_fleet::dials::index;
use std::ops::Range;

/// Lengths of the blocks whose size is changed, minutes.
const BLOCKS_MIN: [usize; 6] = [1, 2, 5, 10, 20, 40];
/// Minutes by which the edge of a block is moved.
const EDGES_MIN: [usize; 3] = [1, 2, 4];

/// A schedule under improvement.
#[derive(Debug)]
pub(crate) struct Local<'e, 'p> {
    pub(crate) episode: &'e Episode<'p>,
    pub(crate) table: &'e Table,
    pub(crate) trace: Trace,
}

/// New dials from a minute on, and the bill of the shift with them.
struct Candidate {
    from: usize,
    actions: Vec<Action>,
    total: Bill,
}

impl Local<'_, '_> {
    pub(crate) fn usd(&self) -> f64 {
        self.trace.usd(self.episode)
    }

    fn take_if_better(&mut self, candidate: &Candidate) -> bool {
        let better = self.episode.total_usd(candidate.total) < self.usd() - GAIN_MIN_USD;
        if better {
            self.take(candidate);
        }
        better
    }

    fn take(&mut self, candidate: &Candidate) {
        self.trace.change(self.episode, candidate.from, &candidate.actions);
    }

    fn floor(&self, t: usize) -> usize {
        self.trace.actions[t][index::MIN_INSTANCES] as usize
    }

    /// Other floors in some minutes. Where another number serves because of it, the level becomes the
    /// table's; elsewhere it stays as polished.
    fn refloored(&self, minutes: Range<usize>, floor: impl Fn(usize) -> usize) -> Candidate {
        let (episode, trace) = (self.episode, &self.trace);
        let mut lane = trace.lanes[minutes.start];
        let mut actions = Vec::new();
        let mut total = trace.total;
        for t in minutes.start..trace.len() {
            let mut action = trace.actions[t];
            if minutes.contains(&t) {
                let most = episode.instances_max();
                action[index::MIN_INSTANCES] = floor(t).clamp(1, most) as f64;
            }
            let floor = action[index::MIN_INSTANCES] as usize;
            let serving = serving_next(&lane, floor);
            if serving != serving_next(&trace.lanes[t], self.floor(t)) {
                self.table.level(t, serving).set(&mut action);
            }
            let bill = episode.play(&mut lane, &action);
            let before = trace.bill(t);
            total.add(Bill { usd: bill.usd - before.usd, burned: bill.burned - before.burned });
            actions.push(action);
            if t + 1 >= minutes.end && same_future(&lane, &trace.lanes[t + 1]) {
                break;
            }
        }
        Candidate { from: minutes.start, actions, total }
    }

    fn try_floors(&mut self, minutes: Range<usize>, floor: impl Fn(usize) -> usize) -> bool {
        if minutes.is_empty() || minutes.clone().all(|t| floor(t) == self.floor(t)) {
            return false;
        }
        let candidate = self.refloored(minutes, floor);
        self.take_if_better(&candidate)
    }

    /// Larger and smaller blocks.
    fn blocks(&mut self, within: &Range<usize>) -> bool {
        let mut improved = false;
        for length in BLOCKS_MIN {
            for start in within.clone().step_by(length.div_ceil(2)) {
                let block = start..(start + length).min(self.trace.len());
                for step in [-1_isize, 1] {
                    let floors: Vec<usize> =
                        block.clone().map(|t| self.floor(t).saturating_add_signed(step)).collect();
                    improved |= self.try_floors(block.clone(), |t| floors[t - start].max(1));
                }
            }
        }
        improved
    }

    /// Minutes of orders and releases, and the sizes between them.
    fn edges(&mut self, within: &Range<usize>) -> bool {
        let mut improved = false;
        for t in within.start.max(1)..within.end {
            let (before, here) = (self.floor(t - 1), self.floor(t));
            if before == here {
                continue;
            }
            for by in EDGES_MIN {
                improved |= self.try_floors(t..(t + by).min(self.trace.len()), |_| before);
                improved |= self.try_floors(t.saturating_sub(by)..t, |_| here);
            }
            let end = (t..self.trace.len()).find(|&u| self.floor(u) != self.floor(t));
            let end = end.unwrap_or(self.trace.len());
            let here = self.floor(t);
            for size in [here.saturating_sub(2), here - 1, here + 1, here + 2, before] {
                improved |= self.try_floors(t..end, |_| size.max(1));
            }
        }
        improved
    }

    /// The level of each minute, with all that follows from it.
    pub(crate) fn levels(&mut self, within: Range<usize>, steps: Steps) -> bool {
        within.fold(false, |improved, t| {
            let start = Level::of(&self.trace.actions[t]);
            self.level(t, |cost| cheapest(start, steps, cost)) || improved
        })
    }

    /// The level of each minute, wherever it lies.
    pub(crate) fn levels_anywhere(&mut self, within: Range<usize>) {
        for t in within {
            self.level(t, |cost| cheapest_anywhere(cost));
        }
    }

    fn level(
        &mut self,
        t: usize,
        search: impl FnOnce(&mut dyn FnMut(&Level) -> f64) -> (Level, f64),
    ) -> bool {
        let action = self.trace.actions[t];
        let (trace, episode) = (&self.trace, self.episode);
        let with = |level: &Level| {
            let mut action = action;
            level.set(&mut action);
            action
        };
        let mut cost =
            |level: &Level| episode.total_usd(trace.try_change(episode, t, &[with(level)]));
        let (best, usd) = search(&mut cost);
        let better = usd < self.usd() - GAIN_MIN_USD;
        if better {
            let action = with(&best);
            self.trace.change(self.episode, t, &[action]);
        }
        better
    }

    /// One pass of everything; whether it helped.
    pub(crate) fn sweep(&mut self, within: &Range<usize>) -> bool {
        let edges = self.edges(within);
        let blocks = self.blocks(within);
        let levels = self.levels(within.clone(), FINE);
        edges || blocks || levels
    }

    /// Changes the size of a block whatever it costs.
    pub(crate) fn kick(&mut self, block: Range<usize>, step: isize) {
        let floors: Vec<usize> =
            block.clone().map(|t| self.floor(t).saturating_add_signed(step).max(1)).collect();
        let start = block.start;
        let candidate = self.refloored(block, |t| floors[t - start]);
        self.take(&candidate);
    }
}

/// Lets the autoscaler order what the floor would order a moment earlier: it does so after the minute's
/// bill, and what it orders serves no later. Takes what pays.
pub(crate) fn order_after_the_bill(episode: &Episode<'_>, trace: &mut Trace) {
    for t in 0..trace.len() {
        let action = trace.actions[t];
        let lane = &trace.lanes[t];
        let have = lane.capacity.serving + lane.capacity.booting_total();
        let wanted = action[index::MIN_INSTANCES] as u32;
        if wanted <= have || action[index::AUTOSCALE] > 0.5 {
            continue;
        }
        let mut played = *lane;
        let mut action = action;
        action[index::MIN_INSTANCES] = f64::from(have);
        action[index::AUTOSCALE] = 1.0;
        episode.play(&mut played, &action);
        // Half an instance below the number, so that rounding up gives it.
        let busy = f64::from(lane.capacity.serving + lane.capacity.booting[0]);
        let target = busy * played.seen.utilization / (f64::from(wanted) - 0.5);
        action[index::TARGET_UTILIZATION] = target.clamp(0.30, 0.95);
        let total = trace.try_change(episode, t, &[action]);
        if episode.total_usd(total) < trace.usd(episode) - GAIN_MIN_USD {
            trace.change(episode, t, &[action]);
        }
    }
}
