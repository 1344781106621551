//! Infos of a step in which an episode ended or began.
//!
//! A batch whose rows end each at its own time has such a step nearly always, so they are written
//! here in one pass: arrays are zeros but for the rows that they are for.

use crate::pools::{Number, Pools};
use crate::vec_core::VecCore;
use numpy::{PyArray1, PyArray2};
use oncall_env::{AnyVecEnv, EpisodeStats};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::sync::PoisonError;

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
        const TOGETHER: usize = 16;
        let mut numbers = Vec::with_capacity(mask.len() / TOGETHER + 4);
        for (group, flags) in mask.chunks(TOGETHER).enumerate() {
            // Nearly all groups have none: seen at once.
            if flags.first_chunk() != Some(&[false; TOGETHER]) {
                let rows = flags.iter().enumerate().filter(|(_, is_one)| **is_one);
                numbers.extend(rows.map(|(row, _)| group * TOGETHER + row));
            }
        }
        Self { mask, numbers }
    }

    fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }
}

/// Makes the arrays.
struct Maker<'a, 'py> {
    py: Python<'py>,
    pools: &'a mut Pools,
}

impl<'py> Maker<'_, 'py> {
    fn flags(&mut self, flags: &[bool]) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.pools.flags.make(self.py, [flags.len()], |to| to.copy_from_slice(flags))
    }

    /// A value for each of these rows, zero for the others.
    fn column<T: Number>(
        &mut self,
        rows: &Rows<'_>,
        values: impl Iterator<Item = T>,
    ) -> PyResult<Bound<'py, PyArray1<T>>> {
        T::pool(self.pools).make(self.py, [rows.mask.len()], |to| {
            for (&row, value) in rows.numbers.iter().zip(values) {
                to[row] = value;
            }
        })
    }

    /// Rows of a matrix that are these, zeros for the others.
    fn matrix(
        &mut self,
        rows: &Rows<'_>,
        values: &[f32],
        width: usize,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        self.pools.observations.make(self.py, [rows.mask.len(), width], |to| {
            for &row in &rows.numbers {
                let span = row * width..(row + 1) * width;
                to[span.clone()].copy_from_slice(&values[span]);
            }
        })
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
    let mut pools = core.pools.lock().unwrap_or_else(PoisonError::into_inner);
    let mut make = Maker { py, pools: &mut pools };
    let (began, ended) = (Rows::new(engine.began()), Rows::new(engine.ended()));
    if began.numbers.iter().any(|&row| !ended.mask[row]) {
        let is_valid = |(began, ended): (&bool, &bool)| !*began || *ended;
        let valid: Vec<bool> = began.mask.iter().zip(ended.mask).map(is_valid).collect();
        let (key, mask) = key!(py, "valid");
        infos.set_item(key, make.flags(&valid)?)?;
        infos.set_item(mask, make.flags(&vec![true; core.rows])?)?;
    }
    if !ended.is_empty() {
        let sums = sums(core, engine, &mut make, &ended)?;
        let (key, mask) = key!(py, "oncall");
        match last {
            None => {
                infos.set_item(key, sums)?;
                infos.set_item(mask, make.flags(ended.mask)?)?;
            }
            Some(last) => {
                let info = PyDict::new(py);
                info.set_item(key, sums)?;
                info.set_item(mask, make.flags(ended.mask)?)?;
                if let Some(cost) = cost {
                    let costs = ended.numbers.iter().map(|&row| cost[row]);
                    let (key, mask) = key!(py, "cost");
                    info.set_item(key, make.column(&ended, costs)?)?;
                    info.set_item(mask, make.flags(ended.mask)?)?;
                }
                let (key, mask) = key!(py, "final_obs");
                infos.set_item(key, make.matrix(&ended, last, core.obs_len)?)?;
                infos.set_item(mask, make.flags(ended.mask)?)?;
                let (key, mask) = key!(py, "final_info");
                infos.set_item(key, info)?;
                infos.set_item(mask, make.flags(ended.mask)?)?;
            }
        }
    }
    if !began.is_empty() {
        let keys: Vec<(u64, u64)> =
            began.numbers.iter().map(|&row| engine.episode_key(row)).collect();
        let (key, mask) = key!(py, "seed");
        infos.set_item(key, make.column(&began, keys.iter().map(|key| key.0))?)?;
        infos.set_item(mask, make.flags(began.mask)?)?;
        let (key, mask) = key!(py, "episode_number");
        infos.set_item(key, make.column(&began, keys.iter().map(|key| key.1))?)?;
        infos.set_item(mask, make.flags(began.mask)?)?;
    }
    Ok(())
}

/// The sums of the episodes that ended, by name, and their masks.
fn sums<'py>(
    core: &VecCore,
    engine: &AnyVecEnv,
    make: &mut Maker<'_, 'py>,
    ended: &Rows<'_>,
) -> PyResult<Bound<'py, PyDict>> {
    let py = make.py;
    let stats: Vec<EpisodeStats> =
        ended.numbers.iter().map(|&row| engine.episode_totals(row)).collect();
    let term =
        |index: usize| ended.numbers.iter().map(move |&row| engine.episode_terms(row)[index]);
    let dict = PyDict::new(py);
    // Values first and masks after them.
    macro_rules! put {
        ($name:literal, $values:expr) => {
            dict.set_item(key!(py, $name).0, make.column(ended, $values)?)?;
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
        dict.set_item(name, make.column(ended, term(index))?)?;
    }
    put!("episode_number", stats.iter().map(|row| row.episode));
    // One mask under every name: these columns are of the same rows.
    let flags = make.flags(ended.mask)?;
    macro_rules! mask {
        ($($name:literal)*) => { $(dict.set_item(key!(py, $name).1, &flags)?;)* };
    }
    mask!("seed" "return_usd" "steps" "minutes" "budget_burned");
    for Key(_, mask) in &core.term_keys {
        dict.set_item(mask, &flags)?;
    }
    mask!("episode_number");
    Ok(dict)
}
