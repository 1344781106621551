//! The one helper that lets go of the interpreter.

use crate::errors::Class;
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// From this many rows x minutes on, a call runs without the interpreter's lock. Below, letting go and
/// taking it back would cost a noticeable part of the call.
const DETACHED_WORK_MIN: usize = 64;

/// Runs `work`, which plays about `row_minutes`, without the interpreter's lock if that is worth it.
///
/// A panic in it, which can only be a fault of ours, becomes an `InternalError`.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    row_minutes: usize,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    // The engine is behind a mutex that a panic poisons: nobody sees a half-made step.
    let work = AssertUnwindSafe(work);
    let outcome = if row_minutes < DETACHED_WORK_MIN {
        catch_unwind(work)
    } else {
        py.detach(|| catch_unwind(work))
    };
    outcome.map_err(|panic| fault(py, &*panic))
}

/// The exception for a panic.
pub(crate) fn fault(py: Python<'_>, panic: &(dyn Any + Send)) -> PyErr {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    let message = format!("a fault of oncall-gym, please report it: {text}");
    Class::Internal.err(py, message)
}
