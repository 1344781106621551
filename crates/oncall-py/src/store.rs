//! Results that are made once: arrays that share one piece of memory, so that a step borrows it once.
//!
//! To borrow an array costs some forty nanoseconds, and a step has five of them; with one row that is
//! a third of the call.

use crate::actions::Held;
use crate::arrays::borrow_error;
use crate::errors::Class;
use crate::events;
use crate::vec_core::VecCore;
use bytemuck::checked;
use numpy::ndarray::ArrayView2;
use numpy::{PyArray1, PyArrayMethods, ToPyArray};
use oncall_env::Columns;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PySlice, PyTuple};

/// Words of a cache line: where a column begins.
const LINE: usize = 8;

/// The columns of a step, one after the other.
#[derive(Debug)]
pub(crate) struct Store {
    /// Rewards, observations, flags, final observations.
    words: Py<PyArray1<f64>>,
    obs: Py<PyAny>,
    rewards: Py<PyAny>,
    terminated: Py<PyAny>,
    truncated: Py<PyAny>,
    last: Option<Py<PyAny>>,
}

/// Words of so many elements of a size in bytes, up to the next cache line.
fn words(elements: usize, size: usize) -> usize {
    (elements * size).div_ceil(8).next_multiple_of(LINE)
}

impl Store {
    /// Arrays for the rows of `core`, with final observations or without.
    pub(crate) fn new(py: Python<'_>, core: &VecCore, has_last: bool) -> PyResult<Self> {
        let (n, k) = (core.rows, core.obs_len);
        let (rewards, obs, flags) = (words(n, 8), words(n * k, 4), words(n, 1));
        let last = if has_last { obs } else { 0 };
        let all = PyArray1::<f64>::zeros(py, rewards + obs + 2 * flags + last, false);
        let part = |start: usize, dtype: &str, len: usize, size: usize| {
            let span = PySlice::new(py, start as isize, (start + words(len, size)) as isize, 1);
            let view = all.get_item(span)?.call_method1("view", (dtype,))?;
            view.get_item(PySlice::new(py, 0, len as isize, 1))
        };
        let matrix = |start| part(start, "float32", n * k, 4)?.call_method1("reshape", (n, k));
        let after_flags = rewards + obs + 2 * flags;
        Ok(Self {
            obs: matrix(rewards)?.unbind(),
            rewards: part(0, "float64", n, 8)?.unbind(),
            terminated: part(rewards + obs, "bool", n, 1)?.unbind(),
            truncated: part(rewards + obs + flags, "bool", n, 1)?.unbind(),
            last: has_last.then(|| matrix(after_flags).map(Bound::unbind)).transpose()?,
            words: all.unbind(),
        })
    }

    /// The arrays, for Python.
    pub(crate) fn arrays<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let Self { obs, rewards, terminated, truncated, last, .. } = self;
        (obs, rewards, terminated, truncated, last).into_pyobject(py)
    }

    /// A step into the arrays; it gives them, or copies of them.
    pub(crate) fn step<'py>(
        &self,
        core: &VecCore,
        actions: &Bound<'py, PyAny>,
        copies: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = actions.py();
        let (n, k) = (core.rows, core.obs_len);
        let mut slot = core.guard(py)?;
        let held = Held::take_alone(core.mode, &core.spec, n, actions)?;
        let taken = held.actions(py)?;
        let words_of = self.words.bind(py);
        let mut borrowed =
            words_of.try_readwrite().map_err(|error| borrow_error(py, "obs", &error))?;
        let all = borrowed.as_slice_mut().map_err(|e| Class::Shape.err(py, e.to_string()))?;
        let (rewards, all) = all.split_at_mut(words(n, 8));
        let (obs, all) = all.split_at_mut(words(n * k, 4));
        let (terminated, all) = all.split_at_mut(words(n, 1));
        let (truncated, last) = all.split_at_mut(words(n, 1));
        let mut columns = Columns {
            observations: &mut bytemuck::cast_slice_mut(obs)[..n * k],
            rewards: &mut rewards[..n],
            terminated: flags(terminated, n),
            truncated: flags(truncated, n),
            final_observations: match self.last {
                Some(_) => Some(&mut bytemuck::cast_slice_mut(last)[..n * k]),
                None => None,
            },
            ..Columns::default()
        };
        let step = |engine: &mut oncall_env::AnyVecEnv| engine.step(taken, &mut columns);
        let summary = core.play_in(py, &mut slot, Class::Action, step)?;
        let infos = PyDict::new(py);
        if summary.ended + summary.reset > 0 {
            let last = columns.final_observations.as_deref();
            events::add(core, slot.engine(py)?, &infos, last, None)?;
        }
        if copies {
            let obs = ArrayView2::from_shape((n, k), &*columns.observations);
            let obs = obs.map_err(|e| Class::Shape.err(py, e.to_string()))?.to_pyarray(py);
            let rewards = PyArray1::from_slice(py, columns.rewards);
            let terminated = PyArray1::from_slice(py, columns.terminated);
            let truncated = PyArray1::from_slice(py, columns.truncated);
            return (obs, rewards, terminated, truncated, infos).into_pyobject(py);
        }
        (&self.obs, &self.rewards, &self.terminated, &self.truncated, infos).into_pyobject(py)
    }
}

/// Words as flags. A caller's view of them may have left bytes that are none: they are written anyway.
fn flags(words: &mut [f64], rows: usize) -> &mut [bool] {
    let bytes = &bytemuck::cast_slice::<f64, u8>(words)[..rows];
    if bytes.iter().any(|&byte| byte > 1) {
        words.fill(0.0);
    }
    let bytes: &mut [u8] = &mut bytemuck::cast_slice_mut(words)[..rows];
    checked::cast_slice_mut(bytes)
}
