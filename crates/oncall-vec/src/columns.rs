//! Where results go: slices of the caller, borrowed for one call, row-major.

use crate::error::{VecError, check_len};

/// Numbers in a row of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Widths {
    pub(crate) observation: usize,
    pub(crate) dials: usize,
    pub(crate) terms: usize,
    pub(crate) signals: usize,
}

/// Output of a step for `n` rows. Lengths are checked before anything changes.
#[derive(Debug, Default)]
pub struct Columns<'a> {
    /// `n * obs_len`; scaled.
    pub observations: &'a mut [f32],
    /// `n`; dollars, minus the sum of the terms.
    pub rewards: &'a mut [f64],
    /// `n`; the world ended the episode.
    pub terminated: &'a mut [bool],
    /// `n`; the shift is over.
    pub truncated: &'a mut [bool],
    /// `n * obs_len`; the last observation of the episodes that ended in this step. Other rows are
    /// left as they are.
    pub final_observations: Option<&'a mut [f32]>,
    /// `n * terms`; dollars, summed over the decision interval.
    pub terms: Option<&'a mut [f64]>,
    /// `n`; how far the spec's cost signal fell in the step.
    pub cost: Option<&'a mut [f64]>,
    /// `n * signals`; natural units, of the observation that is returned.
    pub signals: Option<&'a mut [f64]>,
}

/// Takes the first `len` values out of a column.
#[expect(clippy::mut_mut, reason = "shortens the column in place")]
pub(crate) fn cut<'a, T>(column: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (head, tail) = std::mem::take(column).split_at_mut(len);
    *column = tail;
    head
}

impl<'a> Columns<'a> {
    pub(crate) fn check(&self, rows: usize, widths: Widths) -> Result<(), VecError> {
        let observation = widths.observation;
        check_len("observations", self.observations.len(), rows, observation)?;
        check_len("rewards", self.rewards.len(), rows, 1)?;
        check_len("terminated", self.terminated.len(), rows, 1)?;
        check_len("truncated", self.truncated.len(), rows, 1)?;
        if let Some(last) = &self.final_observations {
            check_len("final_observations", last.len(), rows, observation)?;
        }
        if let Some(terms) = &self.terms {
            check_len("terms", terms.len(), rows, widths.terms)?;
        }
        if let Some(cost) = &self.cost {
            check_len("cost", cost.len(), rows, 1)?;
        }
        if let Some(signals) = &self.signals {
            check_len("signals", signals.len(), rows, widths.signals)?;
        }
        Ok(())
    }

    /// The same columns for a shorter time.
    pub(crate) fn reborrow(&mut self) -> Columns<'_> {
        Columns {
            observations: &mut *self.observations,
            rewards: &mut *self.rewards,
            terminated: &mut *self.terminated,
            truncated: &mut *self.truncated,
            final_observations: self.final_observations.as_deref_mut(),
            terms: self.terms.as_deref_mut(),
            cost: self.cost.as_deref_mut(),
            signals: self.signals.as_deref_mut(),
        }
    }

    /// Takes the first `rows` rows out.
    pub(crate) fn cut(&mut self, rows: usize, widths: Widths) -> Columns<'a> {
        let observation = rows * widths.observation;
        Columns {
            observations: cut(&mut self.observations, observation),
            rewards: cut(&mut self.rewards, rows),
            terminated: cut(&mut self.terminated, rows),
            truncated: cut(&mut self.truncated, rows),
            final_observations: self.final_observations.as_mut().map(|c| cut(c, observation)),
            terms: self.terms.as_mut().map(|c| cut(c, rows * widths.terms)),
            cost: self.cost.as_mut().map(|c| cut(c, rows)),
            signals: self.signals.as_mut().map(|c| cut(c, rows * widths.signals)),
        }
    }
}

/// Output of a reset for `n` rows; rows outside the mask get what they show now.
#[derive(Debug, Default)]
pub struct ResetColumns<'a> {
    /// `n * obs_len`; scaled.
    pub observations: &'a mut [f32],
    /// `n * signals`; natural units.
    pub signals: Option<&'a mut [f64]>,
}

impl ResetColumns<'_> {
    pub(crate) fn check(&self, rows: usize, widths: Widths) -> Result<(), VecError> {
        check_len("observations", self.observations.len(), rows, widths.observation)?;
        match &self.signals {
            Some(signals) => check_len("signals", signals.len(), rows, widths.signals),
            None => Ok(()),
        }
    }
}

/// All columns with memory of their own, for callers in Rust; made by
/// [`VecEnv::columns`](crate::VecEnv::columns).
#[derive(Debug, Clone, PartialEq)]
pub struct OwnedColumns {
    /// See [`Columns::observations`].
    pub observations: Vec<f32>,
    /// See [`Columns::rewards`].
    pub rewards: Vec<f64>,
    /// See [`Columns::terminated`].
    pub terminated: Vec<bool>,
    /// See [`Columns::truncated`].
    pub truncated: Vec<bool>,
    /// See [`Columns::final_observations`].
    pub final_observations: Vec<f32>,
    /// See [`Columns::terms`].
    pub terms: Vec<f64>,
    /// See [`Columns::cost`].
    pub cost: Vec<f64>,
    /// See [`Columns::signals`].
    pub signals: Vec<f64>,
}

impl OwnedColumns {
    /// Zeros for `rows` rows.
    pub fn new(rows: usize, obs_len: usize, terms: usize, signals: usize) -> Self {
        Self {
            observations: vec![0.0; rows * obs_len],
            rewards: vec![0.0; rows],
            terminated: vec![false; rows],
            truncated: vec![false; rows],
            final_observations: vec![0.0; rows * obs_len],
            terms: vec![0.0; rows * terms],
            cost: vec![0.0; rows],
            signals: vec![0.0; rows * signals],
        }
    }

    /// All columns, for a step.
    pub fn borrow(&mut self) -> Columns<'_> {
        Columns {
            observations: &mut self.observations,
            rewards: &mut self.rewards,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            final_observations: Some(&mut self.final_observations),
            terms: Some(&mut self.terms),
            cost: Some(&mut self.cost),
            signals: Some(&mut self.signals),
        }
    }

    /// Observations and signals, for a reset.
    pub fn borrow_reset(&mut self) -> ResetColumns<'_> {
        ResetColumns { observations: &mut self.observations, signals: Some(&mut self.signals) }
    }
}
