//! The arithmetic of a step over the rows of a block, compiled for each set of instructions: columns
//! side by side, each loop with numbers of one width and without a branch.

use crate::limit;
use oncall_core::World;
use oncall_core::isa::Kernel;
use std::marker::PhantomData;

/// After a tick of the world: its terms are added up, and the lanes whose episode is over stop.
pub(crate) struct Advance<'a, W> {
    /// Lanes that have a row, the first ones.
    pub(crate) used: usize,
    /// Whether the sums begin with this tick.
    pub(crate) is_first: bool,
    /// By term and lane, as all columns of terms here.
    pub(crate) minute_terms: &'a [f64],
    pub(crate) terms: &'a mut [f64],
    pub(crate) active: &'a mut [bool],
    pub(crate) terminated: &'a [bool],
    pub(crate) minutes: &'a mut [u32],
    pub(crate) lengths: &'a [u32],
    pub(crate) world: PhantomData<W>,
}

impl<W: World> Advance<'_, W> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    #[expect(clippy::needless_range_loop, reason = "loops over lanes, side by side")]
    fn lanes(self, n: usize) {
        let active = &mut self.active[..n];
        let columns = self.terms.chunks_exact_mut(W::LANES);
        for (sums, terms) in columns.zip(self.minute_terms.chunks_exact(W::LANES)) {
            let (sums, terms) = (&mut sums[..n], &terms[..n]);
            for i in 0..n {
                let sum = if self.is_first { 0.0 } else { sums[i] };
                sums[i] = sum + if active[i] { terms[i] } else { 0.0 };
            }
        }
        let (minutes, lengths) = (&mut self.minutes[..n], &self.lengths[..n]);
        let terminated = &self.terminated[..n];
        for i in 0..n {
            minutes[i] += u32::from(active[i]);
        }
        for i in 0..n {
            active[i] &= !(terminated[i] | limit::is_over(minutes[i], lengths[i]));
        }
    }
}

impl<W: World> Kernel for Advance<'_, W> {
    type Out = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) {
        // Twice, so that whole blocks are loops of a known length.
        if self.used == W::LANES {
            self.lanes(W::LANES);
        } else {
            let used = self.used;
            self.lanes(used);
        }
    }
}

/// After a decision: rewards, costs and flags of the rows, and the sums of their episodes.
pub(crate) struct Settle<'a, W> {
    /// Lanes that have a row, the first ones.
    pub(crate) used: usize,
    /// Lanes that played, and where the world ended the episode.
    pub(crate) played: &'a [bool],
    pub(crate) ends: &'a [bool],
    /// Dollars of the decision by term and lane, and of the episode so far.
    pub(crate) terms: &'a [f64],
    pub(crate) sums: &'a mut [f64],
    /// The cost signal now, and as it was.
    pub(crate) now: &'a [f64],
    pub(crate) levels: &'a mut [f64],
    pub(crate) steps: &'a mut [u32],
    pub(crate) returns: &'a mut [f64],
    pub(crate) costs: &'a mut [f64],
    pub(crate) minutes: &'a [u32],
    pub(crate) lengths: &'a [u32],
    pub(crate) ended: &'a mut [bool],
    pub(crate) began: &'a mut [bool],
    /// Results.
    pub(crate) rewards: &'a mut [f64],
    pub(crate) terminated: &'a mut [bool],
    pub(crate) truncated: &'a mut [bool],
    /// How far the cost signal fell.
    pub(crate) paid: &'a mut [f64],
    pub(crate) world: PhantomData<W>,
}

impl<W: World> Settle<'_, W> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    #[expect(clippy::needless_range_loop, reason = "loops over lanes, side by side")]
    fn lanes(self, n: usize) -> bool {
        let (played, rewards) = (&self.played[..n], &mut self.rewards[..n]);
        // From zero, so that nothing paid is a reward of 0 and not of -0.
        for i in 0..n {
            rewards[i] = 0.0;
        }
        let columns = self.sums.chunks_exact_mut(W::LANES);
        for (sums, terms) in columns.zip(self.terms.chunks_exact(W::LANES)) {
            let (sums, terms) = (&mut sums[..n], &terms[..n]);
            for i in 0..n {
                rewards[i] += terms[i];
                sums[i] += terms[i];
            }
        }
        // A row that only begins: no reward, no cost, no flag; its sums were just cleared.
        let (now, levels) = (&self.now[..n], &mut self.levels[..n]);
        let (returns, costs, paid) =
            (&mut self.returns[..n], &mut self.costs[..n], &mut self.paid[..n]);
        for i in 0..n {
            let reward = if played[i] { 0.0 - rewards[i] } else { 0.0 };
            let cost = if played[i] { levels[i] - now[i] } else { 0.0 };
            rewards[i] = reward;
            paid[i] = cost;
            levels[i] = now[i];
            returns[i] += reward;
            costs[i] += cost;
        }
        let (steps, truncated) = (&mut self.steps[..n], &mut self.truncated[..n]);
        let (minutes, lengths) = (&self.minutes[..n], &self.lengths[..n]);
        for i in 0..n {
            steps[i] += u32::from(played[i]);
        }
        for i in 0..n {
            truncated[i] = played[i] & limit::is_over(minutes[i], lengths[i]);
        }
        let (ends, terminated) = (&self.ends[..n], &mut self.terminated[..n]);
        let (ended, began) = (&mut self.ended[..n], &mut self.began[..n]);
        let mut any_over = false;
        for i in 0..n {
            terminated[i] = played[i] & ends[i];
            ended[i] = false;
            began[i] = !played[i];
            any_over |= truncated[i] | terminated[i];
        }
        any_over
    }
}

impl<W: World> Kernel for Settle<'_, W> {
    type Out = bool;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) -> bool {
        // Twice, so that whole blocks are loops of a known length.
        if self.used == W::LANES {
            self.lanes(W::LANES)
        } else {
            let used = self.used;
            self.lanes(used)
        }
    }
}
