//! The `Spec` and the scenario as plain dicts, for `oncall_gym.spaces`.

use oncall_core::{Dial, Signal, Spec, Term, View, hex};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// What an engine plays.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) scenario_hash: u64,
    pub(crate) params_hash: u64,
    pub(crate) generator: &'static str,
}

fn dial<'py>(py: Python<'py>, dial: &Dial) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", dial.name)?;
    dict.set_item("label", dial.label)?;
    dict.set_item("unit", dial.unit)?;
    dict.set_item("kind", dial.kind.name())?;
    dict.set_item("low", dial.low)?;
    dict.set_item("high", dial.high)?;
    dict.set_item("default", dial.default)?;
    dict.set_item("stops", dial.stops.to_vec())?;
    dict.set_item("initial_logit", dial.initial_logit())?;
    dict.set_item("doc", dial.doc)?;
    Ok(dict)
}

fn signal<'py>(py: Python<'py>, signal: &Signal) -> PyResult<Bound<'py, PyDict>> {
    let (scaled_low, scaled_high) = signal.scaled_range();
    let dict = PyDict::new(py);
    dict.set_item("name", signal.name)?;
    dict.set_item("label", signal.label)?;
    dict.set_item("unit", signal.unit)?;
    dict.set_item("low", signal.low)?;
    dict.set_item("high", signal.high)?;
    dict.set_item("scale", signal.scale.name())?;
    dict.set_item("scaled_low", scaled_low)?;
    dict.set_item("scaled_high", scaled_high)?;
    dict.set_item("view", signal.view.name())?;
    dict.set_item("column", signal.column)?;
    dict.set_item("doc", signal.doc)?;
    Ok(dict)
}

fn term<'py>(py: Python<'py>, term: &Term) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("name", term.name)?;
    dict.set_item("label", term.label)?;
    dict.set_item("doc", term.doc)?;
    Ok(dict)
}

fn list<'py, T>(
    py: Python<'py>,
    items: &[T],
    describe: impl Fn(Python<'py>, &T) -> PyResult<Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyList>> {
    let dicts: PyResult<Vec<_>> = items.iter().map(|item| describe(py, item)).collect();
    PyList::new(py, dicts?)
}

/// Everything that Python needs to know about an engine, once.
pub(crate) fn engine<'py>(
    py: Python<'py>,
    spec: &Spec,
    view: View,
    about: &About,
) -> PyResult<Bound<'py, PyDict>> {
    let observation: Vec<&str> =
        spec.columns_of(view).iter().map(|&column| spec.signals[column].name).collect();
    let dict = PyDict::new(py);
    dict.set_item("world", spec.world)?;
    dict.set_item("version", spec.version)?;
    dict.set_item("tick_s", spec.tick_s)?;
    dict.set_item("hash", hex(spec.hash()))?;
    dict.set_item("scenario", &about.name)?;
    dict.set_item("title", &about.title)?;
    dict.set_item("description", &about.description)?;
    dict.set_item("scenario_hash", hex(about.scenario_hash))?;
    dict.set_item("params_hash", hex(about.params_hash))?;
    dict.set_item("generator", about.generator)?;
    dict.set_item("cost", spec.cost)?;
    dict.set_item("dials", list(py, &spec.dials, dial)?)?;
    dict.set_item("signals", list(py, &spec.signals, signal)?)?;
    dict.set_item("terms", list(py, &spec.terms, term)?)?;
    dict.set_item("observation", observation)?;
    Ok(dict)
}
