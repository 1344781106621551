//! Reading the dashboard and turning the dials, by name.

use oncall_core::{Dial, Spec};
use oncall_fleet::Sig;
use oncall_fleet::dials::{self, index};
use std::sync::LazyLock;

/// The table of dials.
pub(crate) static DIALS: LazyLock<Vec<Dial>> = LazyLock::new(dials::table);

/// Signals that say how long the shift has lasted, minutes; a world has one of them.
const SHIFT: [&str; 2] = ["shift_min", "episode_min"];

/// The number of the step, read from the dashboard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    signal: usize,
    steps_a_min: f64,
}

impl Clock {
    /// The clock of a world; one that shows none stands at step 0.
    pub(crate) fn of(spec: &Spec) -> Self {
        let signal = SHIFT.into_iter().find_map(|name| spec.signal(name));
        Self { signal: signal.unwrap_or(usize::MAX), steps_a_min: 60.0 / f64::from(spec.tick_s) }
    }

    /// Steps since the shift began.
    pub(crate) fn step(self, signals: &[f64]) -> u64 {
        let shift_min = signals.get(self.signal).copied().unwrap_or(0.0);
        // Ten seconds are no whole number of minutes, and must not fall short of their step.
        (shift_min.max(0.0) * self.steps_a_min + 1e-6) as u64
    }
}

/// One row of signals in natural units.
#[derive(Clone, Copy)]
pub(crate) struct Board<'a>(pub(crate) &'a [f64]);

impl Board<'_> {
    /// The value of a signal.
    pub(crate) fn get(self, signal: Sig) -> f64 {
        self.0[signal as usize]
    }

    /// Whether a switch signal is on.
    pub(crate) fn on(self, signal: Sig) -> bool {
        self.get(signal) > 0.5
    }
}

/// An action in the making.
pub(crate) struct Turn<'a>(&'a mut [f64]);

impl<'a> Turn<'a> {
    /// Keeps every dial and presses nothing.
    pub(crate) fn keep_all(action: &'a mut [f64]) -> Self {
        action[..index::COUNT].fill(f64::NAN);
        (action[index::WARM_UP], action[index::ROLLBACK]) = (0.0, 0.0);
        Self(action)
    }

    /// Turns a dial; what lies outside its range goes to the nearer end, and NaN keeps.
    pub(crate) fn set(&mut self, dial: usize, value: f64) -> &mut Self {
        // `clamp` keeps NaN, which a press must not hold: it does not press.
        let is_press = dial == index::WARM_UP || dial == index::ROLLBACK;
        let value = if is_press && value.is_nan() { 0.0 } else { value };
        self.0[dial] = value.clamp(DIALS[dial].low, DIALS[dial].high);
        self
    }

    /// Turns a switch or presses a button.
    pub(crate) fn switch(&mut self, dial: usize, on: bool) -> &mut Self {
        self.set(dial, f64::from(u8::from(on)))
    }

    /// A fleet of exactly this many instances: the autoscaler is off.
    pub(crate) fn fleet(&mut self, instances: f64) -> &mut Self {
        self.set(index::MIN_INSTANCES, instances.round_ties_even()).switch(index::AUTOSCALE, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_inside_the_ranges() {
        let mut action = [7.0; index::COUNT];
        let mut turn = Turn::keep_all(&mut action);
        turn.set(index::CACHE_TTL_S, 1e9).set(index::SHED_SHARE, -1.0);
        turn.set(index::ROLLBACK, f64::NAN).fleet(50.0);
        assert_eq!(action[index::CACHE_TTL_S], 600.0);
        assert_eq!(action[index::SHED_SHARE], 0.0);
        assert_eq!(action[index::ROLLBACK], 0.0);
        assert_eq!((action[index::MIN_INSTANCES], action[index::AUTOSCALE]), (40.0, 0.0));
        assert!(action[index::FEATURE].is_nan());
    }
}
