//! Where the engine is, and who may use it: one call at a time.

use crate::ahead::{Ahead, Outcome, Results};
use crate::detach;
use crate::errors::{Class, engine_error};
use crate::vec_core::VecCore;
use oncall_env::{AnyVecEnv, VecError};
use pyo3::prelude::*;
use std::sync::{MutexGuard, PoisonError, TryLockError};

/// Where the engine is.
pub(crate) enum Slot {
    Here(Box<AnyVecEnv>),
    /// With the thread that takes a step.
    Away,
    Closed,
}

impl Slot {
    pub(crate) fn engine(&mut self, py: Python<'_>) -> PyResult<&mut AnyVecEnv> {
        match self {
            Slot::Here(engine) => Ok(engine),
            Slot::Away => {
                let message = "a step was sent and not received: expected recv() first";
                Err(Class::Order.err(py, message))
            }
            Slot::Closed => {
                let message = "the environment is closed: expected a call before close()";
                Err(Class::Order.err(py, message))
            }
        }
    }
}

impl VecCore {
    /// The engine, if no other thread uses it.
    pub(crate) fn guard(&self, py: Python<'_>) -> PyResult<MutexGuard<'_, Slot>> {
        match self.engine.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => {
                let message =
                    "another thread is in a call of this environment: expected one at a time";
                Err(Class::Order.err(py, message))
            }
        }
    }

    /// Calls `look` with the engine.
    pub(crate) fn with<T>(
        &self,
        py: Python<'_>,
        look: impl FnOnce(&mut AnyVecEnv) -> Result<T, VecError>,
    ) -> PyResult<T> {
        let mut guard = self.guard(py)?;
        let engine = guard.engine(py)?;
        look(engine).map_err(|error| engine_error(py, &error, Class::Option))
    }

    /// As [`VecCore::with`], for work that plays minutes: without the interpreter's lock if that is
    /// worth it. A fault of ours closes the engine, whose state may be half made.
    pub(crate) fn play<T: Send>(
        &self,
        py: Python<'_>,
        value: Class,
        work: impl FnOnce(&mut AnyVecEnv) -> Result<T, VecError> + Send,
    ) -> PyResult<T> {
        self.play_in(py, &mut *self.guard(py)?, value, work)
    }

    /// As [`VecCore::play`], with the engine held already.
    pub(crate) fn play_in<T: Send>(
        &self,
        py: Python<'_>,
        slot: &mut Slot,
        value: Class,
        work: impl FnOnce(&mut AnyVecEnv) -> Result<T, VecError> + Send,
    ) -> PyResult<T> {
        let engine = slot.engine(py)?;
        match detach::run(py, self.rows * self.work, || work(engine)) {
            Ok(outcome) => outcome.map_err(|error| engine_error(py, &error, value)),
            Err(fault) => {
                *slot = Slot::Closed;
                Err(fault)
            }
        }
    }

    /// Waits for a step that was sent, and puts the engine back; `None` if none was.
    pub(crate) fn land(
        &self,
        py: Python<'_>,
        slot: &mut Slot,
    ) -> PyResult<Option<Result<Results, VecError>>> {
        if !matches!(slot, Slot::Away) {
            return Ok(None);
        }
        let thread = || self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if !thread().as_ref().is_some_and(Ahead::is_here) {
            *slot = Slot::Closed;
            let message = "this process was forked while a step was under way: the step, and the \
                           environment with it, stayed with the parent";
            return Err(Class::Order.err(py, message));
        }
        let outcome = py.detach(|| thread().as_ref().map(Ahead::wait));
        match outcome.unwrap_or(Err(std::sync::mpsc::RecvError)) {
            Ok(Outcome::Back(engine, results)) => {
                *slot = Slot::Here(engine);
                Ok(Some(*results))
            }
            Ok(Outcome::Fault(panic)) => {
                *slot = Slot::Closed;
                Err(detach::fault(py, &*panic))
            }
            Err(_) => {
                *slot = Slot::Closed;
                Err(Class::Internal.err(py, "the thread that takes steps is gone"))
            }
        }
    }
}
