//! Actions as Python gives them: an array of stops or of the box space, or a dict of natural values.

use crate::arrays::{copy_of, input_of, numbers, wrong_dtype};
use crate::errors::Class;
use numpy::PyReadonlyArrayDyn;
use oncall_core::{Dial, Spec};
use oncall_env::Actions;
use pyo3::prelude::*;
use pyo3::types::PyDict;

const NAME: &str = "actions";

/// Which action space an environment has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Indices of stops; 0 keeps.
    MultiDiscrete,
    /// -1..1.
    Box,
    /// Natural values by name; a dial that is left out keeps.
    Dict,
}

impl Mode {
    /// The mode of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Mode::MultiDiscrete, Mode::Box, Mode::Dict].into_iter().find(|mode| mode.name() == name)
    }

    /// `multi_discrete`, `box` or `dict`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Mode::MultiDiscrete => "multi_discrete",
            Mode::Box => "box",
            Mode::Dict => "dict",
        }
    }
}

/// Actions held for the time of a call.
pub(crate) enum Held<'py> {
    Stops8(PyReadonlyArrayDyn<'py, i8>),
    Stops32(PyReadonlyArrayDyn<'py, i32>),
    Stops64(PyReadonlyArrayDyn<'py, i64>),
    Box32(PyReadonlyArrayDyn<'py, f32>),
    Box64(PyReadonlyArrayDyn<'py, f64>),
    Natural(Vec<f64>),
    Few64(Vec<i64>),
}

/// So many actions are copied rather than borrowed, where the caller gives no other array.
const FEW: usize = 16;

impl<'py> Held<'py> {
    /// As [`Held::take`], for a call that gets no other array; a few actions are copied.
    pub(crate) fn take_alone(
        mode: Mode,
        spec: &Spec,
        rows: usize,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let shape = [rows, spec.dials.len()];
        if mode == Mode::MultiDiscrete
            && shape[0] * shape[1] <= FEW
            && let Some(values) = copy_of(NAME, value, &shape)?
        {
            return Ok(Held::Few64(values));
        }
        Self::take(mode, spec, rows, value)
    }

    /// Borrows the actions of `rows` rows; only a dict is copied.
    pub(crate) fn take(
        mode: Mode,
        spec: &Spec,
        rows: usize,
        value: &Bound<'py, PyAny>,
    ) -> PyResult<Self> {
        let shape = [rows, spec.dials.len()];
        match mode {
            // int64 first: it is what a sample of the space has.
            Mode::MultiDiscrete => {
                if let Some(array) = input_of(NAME, value, &shape)? {
                    return Ok(Held::Stops64(array));
                }
                if let Some(array) = input_of(NAME, value, &shape)? {
                    return Ok(Held::Stops32(array));
                }
                if let Some(array) = input_of(NAME, value, &shape)? {
                    return Ok(Held::Stops8(array));
                }
                Err(wrong_dtype(NAME, value, "int8, int32 or int64 (action_mode multi_discrete)"))
            }
            Mode::Box => {
                if let Some(array) = input_of(NAME, value, &shape)? {
                    return Ok(Held::Box32(array));
                }
                if let Some(array) = input_of(NAME, value, &shape)? {
                    return Ok(Held::Box64(array));
                }
                Err(wrong_dtype(NAME, value, "float32 or float64 (action_mode box)"))
            }
            Mode::Dict => natural(spec, rows, value).map(Held::Natural),
        }
    }

    /// The actions as the engine takes them.
    pub(crate) fn actions(&self, py: Python<'_>) -> PyResult<Actions<'_>> {
        // Layouts were checked when they were borrowed.
        let fail = |error: numpy::AsSliceError| Class::Shape.err(py, error.to_string());
        Ok(match self {
            Held::Stops8(array) => Actions::Stops8(array.as_slice().map_err(fail)?),
            Held::Stops32(array) => Actions::Stops32(array.as_slice().map_err(fail)?),
            Held::Stops64(array) => Actions::Stops64(array.as_slice().map_err(fail)?),
            Held::Box32(array) => Actions::Box32(array.as_slice().map_err(fail)?),
            Held::Box64(array) => Actions::Box64(array.as_slice().map_err(fail)?),
            Held::Natural(values) => Actions::Policy(values),
            Held::Few64(values) => Actions::Stops64(values),
        })
    }
}

/// Gathers a dict of columns into rows. NaN stands for a dial that was left out, so a NaN of the
/// caller's must not get through.
fn natural(spec: &Spec, rows: usize, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let py = value.py();
    let dict = value.cast::<PyDict>().map_err(|_| {
        wrong_dtype("actions", value, "no array but a dict of natural values (action_mode dict)")
    })?;
    let width = spec.dials.len();
    let mut actions = vec![f64::NAN; rows * width];
    for (name, column) in dict {
        let name: String = name.extract().unwrap_or_else(|_| "a key that is no text".to_owned());
        let Some(dial) = spec.dial(&name) else {
            let names: Vec<&str> = spec.dials.iter().map(|dial| dial.name).collect();
            let message =
                format!("actions: no dial {name:?}: expected one of {}", names.join(", "));
            return Err(Class::Action.err(py, message));
        };
        for (row, number) in
            numbers(&format!("actions[{name:?}]"), &column, rows)?.into_iter().enumerate()
        {
            if number.is_nan() {
                let Dial { low, high, .. } = spec.dials[dial];
                let message = format!(
                    "actions: row {row}, {name} = NaN: expected {low}..={high}; leave the dial \
                             out to keep it"
                );
                return Err(Class::Action.err(py, message));
            }
            actions[row * width + dial] = number;
        }
    }
    Ok(actions)
}
