//! The exceptions of Python, and how the errors of the rooms below become one.
//!
//! The classes are written in Python (`oncall_gym.errors`), where they can have two bases and a
//! docstring; here they are only looked up.

use oncall_env::{ErrorKind, ScenarioErrors, VecError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

/// An exception of `oncall_gym.errors`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// An array has the wrong shape, layout or owner.
    Shape,
    /// An array has the wrong type of element, or is no array.
    Dtype,
    /// An action is out of its range.
    Action,
    /// Calls came in the wrong order.
    Order,
    /// Bytes are not a state of this environment.
    State,
    /// A scenario is wrong.
    Scenario,
    /// An option or an argument is out of its range.
    Option,
    /// A fault of this package.
    Internal,
}

impl Class {
    fn name(self) -> &'static str {
        match self {
            Class::Shape => "ShapeError",
            Class::Dtype => "DtypeError",
            Class::Action => "ActionError",
            Class::Order => "OrderError",
            Class::State => "StateError",
            Class::Scenario => "ScenarioError",
            Class::Option => "OptionError",
            Class::Internal => "InternalError",
        }
    }

    /// This exception with that message.
    pub(crate) fn err(self, py: Python<'_>, message: impl Into<String>) -> PyErr {
        static CLASSES: [PyOnceLock<Py<PyType>>; 8] = [const { PyOnceLock::new() }; 8];
        match CLASSES[self as usize].import(py, "oncall_gym.errors", self.name()) {
            Ok(class) => PyErr::from_type(class.clone(), (message.into(),)),
            Err(missing) => missing,
        }
    }
}

/// The exception for an error of the engine; `value` is the one for a value out of range, which is an
/// action in a step and an argument elsewhere.
pub(crate) fn engine_error(py: Python<'_>, error: &VecError, value: Class) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Shape => Class::Shape,
        ErrorKind::Value => value,
        ErrorKind::Order => Class::Order,
        ErrorKind::State => Class::State,
        ErrorKind::Option => Class::Option,
    };
    class.err(py, error.to_string())
}

/// The exception for everything that is wrong with a scenario.
pub(crate) fn scenario_error(py: Python<'_>, errors: &ScenarioErrors) -> PyErr {
    let message = match errors.problems().len() {
        1 => errors.to_string(),
        count => format!("{count} problems:\n{errors}"),
    };
    Class::Scenario.err(py, message)
}
