//! The arithmetic of a step over the rows of a block, compiled for each set of instructions.
//!
//! Lanes are worked on in groups, and each group in arrays of its own: a compiler cannot see that a
//! dozen slices do not overlap, and would take the lanes one by one.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set")]

use crate::limit;
use oncall_core::World;
use oncall_core::isa::Kernel;
use std::marker::PhantomData;

/// Lanes of a group; what is left is worked on one by one.
const GROUP: usize = 16;

/// `N` values from `at` on.
#[inline(always)]
fn load<T: Copy, const N: usize>(from: &[T], at: usize) -> [T; N] {
    *from[at..].first_chunk().expect("a group is inside its column")
}

/// The place of `N` values from `at` on.
#[inline(always)]
fn place<T, const N: usize>(to: &mut [T], at: usize) -> &mut [T; N] {
    to[at..].first_chunk_mut().expect("a group is inside its column")
}

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
    fn group<const N: usize>(&mut self, at: usize) {
        let mut active: [bool; N] = load(self.active, at);
        for term in (at..self.terms.len()).step_by(W::LANES) {
            let terms: [f64; N] = load(self.minute_terms, term);
            let sums: &mut [f64; N] = place(self.terms, term);
            let before = if self.is_first { [0.0; N] } else { *sums };
            let mut after = [0.0; N];
            for i in 0..N {
                after[i] = before[i] + if active[i] { terms[i] } else { 0.0 };
            }
            *sums = after;
        }
        let mut minutes: [u32; N] = load(self.minutes, at);
        let lengths: [u32; N] = load(self.lengths, at);
        let terminated: [bool; N] = load(self.terminated, at);
        for i in 0..N {
            minutes[i] += u32::from(active[i]);
        }
        for i in 0..N {
            active[i] &= !(terminated[i] | limit::is_over(minutes[i], lengths[i]));
        }
        *place(self.minutes, at) = minutes;
        *place(self.active, at) = active;
    }
}

impl<W: World> Kernel for Advance<'_, W> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let whole = self.used / GROUP * GROUP;
        for at in (0..whole).step_by(GROUP) {
            self.group::<GROUP>(at);
        }
        for at in whole..self.used {
            self.group::<1>(at);
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
    /// Whether an episode of the group is over.
    #[inline(always)]
    fn group<const N: usize>(&mut self, at: usize) -> bool {
        let played: [bool; N] = load(self.played, at);
        // From zero, so that nothing paid is a reward of 0 and not of -0.
        let mut paid = [0.0; N];
        for term in (at..self.terms.len()).step_by(W::LANES) {
            let terms: [f64; N] = load(self.terms, term);
            let sums: &mut [f64; N] = place(self.sums, term);
            let mut after = *sums;
            for i in 0..N {
                paid[i] += terms[i];
                after[i] += terms[i];
            }
            *sums = after;
        }
        // A row that only begins: no reward, no cost, no flag; its sums were just cleared.
        let now: [f64; N] = load(self.now, at);
        let before: [f64; N] = load(self.levels, at);
        let (mut rewards, mut costs) = ([0.0; N], [0.0; N]);
        let mut returns: [f64; N] = load(self.returns, at);
        let mut all_costs: [f64; N] = load(self.costs, at);
        for i in 0..N {
            rewards[i] = if played[i] { 0.0 - paid[i] } else { 0.0 };
            costs[i] = if played[i] { before[i] - now[i] } else { 0.0 };
            returns[i] += rewards[i];
            all_costs[i] += costs[i];
        }
        *place(self.levels, at) = now;
        *place(self.rewards, at) = rewards;
        *place(self.paid, at) = costs;
        *place(self.returns, at) = returns;
        *place(self.costs, at) = all_costs;
        self.flags(at, played)
    }

    #[inline(always)]
    fn flags<const N: usize>(&mut self, at: usize, played: [bool; N]) -> bool {
        let mut steps: [u32; N] = load(self.steps, at);
        let minutes: [u32; N] = load(self.minutes, at);
        let lengths: [u32; N] = load(self.lengths, at);
        let ends: [bool; N] = load(self.ends, at);
        let (mut truncated, mut terminated, mut began) = ([false; N], [false; N], [false; N]);
        for i in 0..N {
            steps[i] += u32::from(played[i]);
        }
        for i in 0..N {
            truncated[i] = played[i] & limit::is_over(minutes[i], lengths[i]);
        }
        let mut any_over = false;
        for i in 0..N {
            terminated[i] = played[i] & ends[i];
            began[i] = !played[i];
            any_over |= truncated[i] | terminated[i];
        }
        *place(self.steps, at) = steps;
        *place(self.truncated, at) = truncated;
        *place(self.terminated, at) = terminated;
        *place(self.began, at) = began;
        *place(self.ended, at) = [false; N];
        any_over
    }
}

impl<W: World> Kernel for Settle<'_, W> {
    type Out = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        let whole = self.used / GROUP * GROUP;
        let mut any_over = false;
        for at in (0..whole).step_by(GROUP) {
            any_over |= self.group::<GROUP>(at);
        }
        for at in whole..self.used {
            any_over |= self.group::<1>(at);
        }
        any_over
    }
}
