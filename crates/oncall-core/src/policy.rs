//! The `Policy` trait: whatever turns the dials, a rule or a trained network.

/// A rule that an operator could follow.
///
/// One value plays one row of a batch. Elapsed time is read from the dashboard (`shift_min` in the fleet), so that
/// a rule also works where an action is held over several minutes.
pub trait Policy: Send {
    /// Forgets everything: a new shift begins.
    fn reset(&mut self, key: PolicyKey);

    /// Is told which scenario the episode is of, the one that was drawn of a mixture: after the reset,
    /// before the first step. Nobody but a reference that is meant to know it may use it.
    fn told(&mut self, scenario: &str) {
        let _ = scenario;
    }

    /// What it remembers of the episode, as numbers, so that a training that plays it can be saved in the middle of
    /// one; `None` if that cannot be.
    fn memory(&self) -> Option<Vec<f64>> {
        None
    }

    /// Goes on from what [`Policy::memory`] of the same policy gave: after the reset of that episode.
    fn recall(&mut self, memory: &[f64]) {
        let _ = memory;
    }

    /// Decides the dials of the next step.
    ///
    /// * `signals`: a full row in the order of `Spec.signals`, natural units, as [`crate::World`]
    ///   writes it; only columns of `View::Operator` are read.
    /// * `action`: one number a dial in the order of `Spec.dials`, natural units inside the dial's
    ///   range; NaN keeps, and 0 does not press.
    ///
    /// # Panics
    ///
    /// If a slice is shorter than its table.
    fn act(&mut self, signals: &[f64], action: &mut [f64]);
}

/// Which shift a policy plays; a random policy draws from it, so that what it does depends neither on
/// the batch nor on the other rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PolicyKey {
    /// Seed of the row.
    pub seed: u64,
    /// Number of the episode.
    pub episode: u64,
}
