//! Natural signals to observations: the columns of a view, scaled as the spec says.

use crate::error::VecError;
use oncall_core::{Scale, Signal, Spec, View, math};

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
        let scaler = |index: usize| (index, Scaler::new(&spec.signals[index]));
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
            *out = scaler.scale(signals[*index]);
        }
    }
}

/// `Signal::scale` with its constant logarithms taken once: the same bits in half the time.
#[derive(Debug, Clone, Copy)]
struct Scaler {
    low: f64,
    high: f64,
    form: Form,
    ends: (f32, f32),
}

#[derive(Debug, Clone, Copy)]
enum Form {
    Symmetric,
    Linear,
    Log { span: f64 },
    Symlog { knee: f64, span: f64 },
}

impl Scaler {
    fn new(signal: &Signal) -> Self {
        let (low, high) = (signal.low, signal.high);
        let form = match signal.scale {
            Scale::Linear if low < 0.0 => Form::Symmetric,
            Scale::Linear => Form::Linear,
            Scale::Log => Form::Log { span: math::ln(high / low) },
            Scale::Symlog { knee } => Form::Symlog { knee, span: math::ln_1p(high / knee) },
        };
        Self { low, high, form, ends: signal.scaled_range() }
    }

    #[inline]
    fn scale(&self, x: f64) -> f32 {
        let x = x.clamp(self.low, self.high);
        let scaled = match self.form {
            Form::Symmetric => x / self.high,
            Form::Linear => (x - self.low) / (self.high - self.low),
            Form::Log { span } => math::ln(x / self.low) / span,
            Form::Symlog { knee, span } => {
                let size = math::ln_1p(x.abs() / knee) / span;
                if x < 0.0 { -size } else { size }
            }
        };
        (scaled as f32).clamp(self.ends.0, self.ends.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use oncall_core::World;

    #[test]
    fn scalers_give_the_bits_of_the_spec() {
        let toy = Toy::<1>::new();
        let mut forms = [false; 4];
        for signal in &toy.spec().signals {
            let scaler = Scaler::new(signal);
            forms[match scaler.form {
                Form::Symmetric => 0,
                Form::Linear => 1,
                Form::Log { .. } => 2,
                Form::Symlog { .. } => 3,
            }] = true;
            for step in -300..=300 {
                let x = signal.high * f64::from(step) / 250.0;
                assert_eq!(scaler.scale(x).to_bits(), signal.scale(x).to_bits(), "{}", signal.name);
            }
        }
        assert_eq!(forms, [true; 4], "the toy world uses every form");
    }

    #[test]
    fn an_unknown_cost_signal_is_refused() {
        let mut spec = Toy::<1>::new().spec().clone();
        spec.cost = "nothing";
        let error = Observer::new(&spec, View::Operator).unwrap_err();
        assert_eq!(error.to_string(), "spec.cost = nothing: expected the name of a signal");
    }
}
