//! Natural signals to observations: the columns of a view, scaled as the spec says.

use crate::error::VecError;
use oncall_core::{Scaler, Spec, View};

/// Turns one row of signals into one row of an observation.
#[derive(Debug)]
pub(crate) struct Observer {
    columns: Vec<(usize, Scaler)>,
    /// Index of the spec's cost signal.
    cost: usize,
}

impl Observer {
    pub(crate) fn new(spec: &Spec, view: View) -> Result<Self, VecError> {
        let cost = spec
            .signal(spec.cost)
            .ok_or_else(|| VecError::option("spec.cost", spec.cost, "the name of a signal"))?;
        let scaler = |index: usize| (index, spec.signals[index].scaler());
        Ok(Self { columns: spec.columns_of(view).into_iter().map(scaler).collect(), cost })
    }

    /// Numbers in an observation.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The cost signal among all signals of a row.
    #[inline]
    pub(crate) fn level(&self, signals: &[f64]) -> f64 {
        signals[self.cost]
    }

    #[inline]
    pub(crate) fn write(&self, signals: &[f64], out: &mut [f32]) {
        for ((index, scaler), out) in self.columns.iter().zip(out) {
            *out = scaler.apply(signals[*index]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use oncall_core::World;

    #[test]
    fn an_unknown_cost_signal_is_refused() {
        let mut spec = Toy::<1>::new().spec().clone();
        spec.cost = "nothing";
        let error = Observer::new(&spec, View::Operator).unwrap_err();
        assert_eq!(error.to_string(), "spec.cost = nothing: expected the name of a signal");
    }
}
