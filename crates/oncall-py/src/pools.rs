//! Arrays that nobody holds any more are used again.
//!
//! A step with events makes some twenty arrays. Their memory goes back to the system and comes again,
//! page by page, which in a batch of thousands takes longer than the step.

use crate::arrays::borrow_error;
use crate::errors::Class;
use numpy::ndarray::{Dimension, IntoDimension, Ix1, Ix2};
use numpy::{Element, PyArray, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::collections::VecDeque;

/// Most arrays of a kind that are kept: those of three steps, since a caller mostly still holds the
/// last one.
const KEPT_MAX: usize = 48;

/// Arrays of batches of more rows are not kept: there the memory matters more.
const ROWS_MAX: usize = 1 << 16;

/// Arrays of one type and shape, the oldest first.
#[derive(Debug)]
pub(crate) struct Pool<T, D: Dimension> {
    kept: VecDeque<Py<PyArray<T, D>>>,
}

impl<T, D: Dimension> Default for Pool<T, D> {
    fn default() -> Self {
        Self { kept: VecDeque::new() }
    }
}

impl<T: Element + Copy + Default, D: Dimension> Pool<T, D> {
    /// An array of zeros into which `write` writes.
    pub(crate) fn make<'py>(
        &mut self,
        py: Python<'py>,
        shape: impl IntoDimension<Dim = D>,
        write: impl FnOnce(&mut [T]),
    ) -> PyResult<Bound<'py, PyArray<T, D>>> {
        let shape = shape.into_dimension();
        if let Some(array) = self.take(py, shape.slice())
            && let Ok(mut borrowed) = array.try_readwrite()
            && let Ok(values) = borrowed.as_slice_mut()
        {
            values.fill(T::default());
            write(values);
            drop(borrowed);
            self.keep(&array);
            return Ok(array);
        }
        let array = PyArray::zeros(py, shape, false);
        let mut borrowed =
            array.try_readwrite().map_err(|error| borrow_error(py, "infos", &error))?;
        write(borrowed.as_slice_mut().map_err(|e| Class::Shape.err(py, e.to_string()))?);
        drop(borrowed);
        self.keep(&array);
        Ok(array)
    }

    /// The oldest array, if it is as it was made and nobody else has it: no view, no buffer.
    fn take<'py>(&mut self, py: Python<'py>, shape: &[usize]) -> Option<Bound<'py, PyArray<T, D>>> {
        let oldest = self.kept.front()?;
        #[expect(deprecated, reason = "its successor is the same look without a safe name")]
        if oldest.get_refcnt(py) != 1 {
            return None;
        }
        let array = self.kept.pop_front()?.into_bound(py);
        (array.shape() == shape).then_some(array)
    }

    fn keep(&mut self, array: &Bound<'_, PyArray<T, D>>) {
        if array.shape().first().is_some_and(|&rows| rows > ROWS_MAX) {
            return;
        }
        if self.kept.len() == KEPT_MAX {
            self.kept.pop_front();
        }
        self.kept.push_back(array.clone().unbind());
    }
}

/// Arrays of every kind that the infos of a batch have.
#[derive(Debug, Default)]
pub(crate) struct Pools {
    pub(crate) flags: Pool<bool, Ix1>,
    pub(crate) observations: Pool<f32, Ix2>,
    reals: Pool<f64, Ix1>,
    counts: Pool<i64, Ix1>,
    seeds: Pool<u64, Ix1>,
}

/// A number of which infos have columns.
pub(crate) trait Number: Element + Copy + Default {
    /// The arrays of them.
    fn pool(pools: &mut Pools) -> &mut Pool<Self, Ix1>;
}

impl Number for f64 {
    fn pool(pools: &mut Pools) -> &mut Pool<Self, Ix1> {
        &mut pools.reals
    }
}

impl Number for i64 {
    fn pool(pools: &mut Pools) -> &mut Pool<Self, Ix1> {
        &mut pools.counts
    }
}

impl Number for u64 {
    fn pool(pools: &mut Pools) -> &mut Pool<Self, Ix1> {
        &mut pools.seeds
    }
}
