//! Infos of a step in which an episode ended or began.
//!
//! A batch whose rows end each at its own time has such a step nearly always, so they are written
//! here in one pass: arrays begin as zeros, and only the rows that they are for are visited.

use crate::vec_core::VecCore;
use numpy::ndarray::Array2;
use numpy::{Element, IntoPyArray, PyArray1};
use oncall_env::{AnyVecEnv, EpisodeStats};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A key of an info, and that of its mask.
#[derive(Debug)]
pub(crate) struct Key(Py<PyString>, Py<PyString>);

impl Key {
    /// The key of that name; the mask's has `_` in front.
    pub(crate) fn new(py: Python<'_>, name: &str) -> Self {
        let text = |name: &str| PyString::intern(py, name).unbind();
        Self(text(name), text(&format!("_{name}")))
    }
}

/// A name known here, as the two texts of a [`Key`].
macro_rules! key {
    ($py:expr, $name:literal) => {
        (intern!($py, $name), intern!($py, concat!("_", $name)))
    };
}

/// Some rows of a batch: as a mask, and one by one.
struct Rows<'a> {
    mask: &'a [bool],
    numbers: Vec<usize>,
}

impl<'a> Rows<'a> {
    fn new(mask: &'a [bool]) -> Self {
        let numbers = mask.iter().enumerate().filter(|(_, is_one)| **is_one);
        Self { mask, numbers: numbers.map(|(row, _)| row).collect() }
    }

    fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    fn array<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<bool>> {
        PyArray1::from_slice(py, self.mask)
    }

    /// A value for each of these rows, zero for the others.
    fn column<'py, T: Element + Copy + Default>(
        &self,
        py: Python<'py>,
        values: impl Iterator<Item = T>,
    ) -> Bound<'py, PyArray1<T>> {
        let mut column = vec![T::default(); self.mask.len()];
        for (&row, value) in self.numbers.iter().zip(values) {
            column[row] = value;
        }
        PyArray1::from_vec(py, column)
    }

    /// Rows of a matrix that are these, zeros for the others.
    fn matrix<'py>(&self, py: Python<'py>, values: &[f32], width: usize) -> Bound<'py, PyAny> {
        let mut matrix = Array2::zeros((self.mask.len(), width));
        for &row in &self.numbers {
            let from = &values[row * width..(row + 1) * width];
            matrix.row_mut(row).iter_mut().zip(from).for_each(|(to, from)| *to = *from);
        }
        matrix.into_pyarray(py).into_any()
    }
}

/// Adds what happened in the last step; `last` are final observations, of same-step mode.
pub(crate) fn add(
    core: &VecCore,
    engine: &AnyVecEnv,
    infos: &Bound<'_, PyDict>,
    last: Option<&[f32]>,
    cost: Option<&[f64]>,
) -> PyResult<()> {
    let py = infos.py();
    let (began, ended) = (Rows::new(engine.began()), Rows::new(engine.ended()));
    if began.numbers.iter().any(|&row| !ended.mask[row]) {
        let is_valid = |(began, ended): (&bool, &bool)| !*began || *ended;
        let valid: Vec<bool> = began.mask.iter().zip(ended.mask).map(is_valid).collect();
        let (key, mask) = key!(py, "valid");
        infos.set_item(key, PyArray1::from_vec(py, valid))?;
        infos.set_item(mask, PyArray1::from_vec(py, vec![true; core.rows]))?;
    }
    if !ended.is_empty() {
        let sums = sums(core, engine, py, &ended)?;
        let (key, mask) = key!(py, "oncall");
        match last {
            None => {
                infos.set_item(key, sums)?;
                infos.set_item(mask, ended.array(py))?;
            }
            Some(last) => {
                let info = PyDict::new(py);
                info.set_item(key, sums)?;
                info.set_item(mask, ended.array(py))?;
                if let Some(cost) = cost {
                    let costs = ended.numbers.iter().map(|&row| cost[row]);
                    let (key, mask) = key!(py, "cost");
                    info.set_item(key, ended.column(py, costs))?;
                    info.set_item(mask, ended.array(py))?;
                }
                let (key, mask) = key!(py, "final_obs");
                infos.set_item(key, ended.matrix(py, last, core.obs_len))?;
                infos.set_item(mask, ended.array(py))?;
                let (key, mask) = key!(py, "final_info");
                infos.set_item(key, info)?;
                infos.set_item(mask, ended.array(py))?;
            }
        }
    }
    if !began.is_empty() {
        let rows = || began.numbers.iter().map(|&row| engine.row(row));
        let (key, mask) = key!(py, "seed");
        infos.set_item(key, began.column(py, rows().map(|row| row.seed)))?;
        infos.set_item(mask, began.array(py))?;
        let (key, mask) = key!(py, "episode_number");
        infos.set_item(key, began.column(py, rows().map(|row| row.episode)))?;
        infos.set_item(mask, began.array(py))?;
    }
    Ok(())
}

/// The sums of the episodes that ended, by name, and their masks.
fn sums<'py>(
    core: &VecCore,
    engine: &AnyVecEnv,
    py: Python<'py>,
    ended: &Rows<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let stats: Vec<EpisodeStats> =
        ended.numbers.iter().map(|&row| engine.episode_stats(row)).collect();
    let dict = PyDict::new(py);
    // Values first and masks after them.
    macro_rules! put {
        ($name:literal, $values:expr) => {
            dict.set_item(key!(py, $name).0, ended.column(py, $values))?;
        };
    }
    put!("seed", stats.iter().map(|row| row.seed));
    put!("return_usd", stats.iter().map(|row| row.return_));
    put!("steps", stats.iter().map(|row| i64::from(row.steps)));
    if core.spec.tick_s == 60 {
        put!("minutes", stats.iter().map(|row| i64::from(row.minutes)));
    } else {
        let tick_min = f64::from(core.spec.tick_s) / 60.0;
        put!("minutes", stats.iter().map(|row| f64::from(row.minutes) * tick_min));
    }
    put!("budget_burned", stats.iter().map(|row| row.cost));
    for (index, Key(name, _)) in core.term_keys.iter().enumerate() {
        dict.set_item(name, ended.column(py, stats.iter().map(|row| row.terms[index])))?;
    }
    put!("episode_number", stats.iter().map(|row| row.episode));
    macro_rules! mask {
        ($($name:literal)*) => { $(dict.set_item(key!(py, $name).1, ended.array(py))?;)* };
    }
    mask!("seed" "return_usd" "steps" "minutes" "budget_burned");
    for Key(_, mask) in &core.term_keys {
        dict.set_item(mask, ended.array(py))?;
    }
    mask!("episode_number");
    Ok(dict)
}
