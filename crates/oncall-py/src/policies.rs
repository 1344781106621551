//! Rule-based policies for Python: dials in natural units, turned into an environment's own actions.

use crate::actions::Mode;
use crate::errors::Class;
use crate::vec_core::VecCore;
use numpy::{PyArray1, PyArrayMethods};
use oncall_core::{Dial, DialKind};
use oncall_env::{AnyVecEnv, RowInfo};
use oncall_heuristics::{Policy, PolicyKey};
use oncall_planner::{build_policy, policies};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::Mutex;

/// A row's rule, and where its episode stood when it last acted.
struct Row {
    policy: Box<dyn Policy>,
    last: Option<(PolicyKey, u32)>,
}

impl Row {
    /// Forgets the old episode if a new one has begun, however that came about.
    fn follow(&mut self, info: &RowInfo, scenario: &str) {
        let key = PolicyKey { seed: info.seed, episode: info.episode };
        let continues = self.last.is_some_and(|(last, minute)| last == key && minute < info.minute);
        if !continues {
            self.policy.reset(key);
            self.policy.told(scenario);
        }
        self.last = Some((key, info.minute));
    }
}

/// A rule-based policy, one for each row of an environment.
#[pyclass(frozen, module = "oncall_gym._native")]
pub(crate) struct PolicyCore {
    rows: Mutex<Vec<Row>>,
    text: String,
}

/// A dial's number in the box space; a dial that cannot keep is set to where it stands.
fn to_box(dial: &Dial, action: f64, standing: f64) -> f32 {
    let value = if action.is_nan() && dial.kind != DialKind::Switch { standing } else { action };
    dial.to_box(value) as f32
}

/// Natural values of a dial as its space has them: whole numbers unless it is continuous.
fn natural_column<'py>(py: Python<'py>, dial: &Dial, column: &[f64]) -> Bound<'py, PyAny> {
    match dial.kind {
        DialKind::Real | DialKind::Log => PyArray1::from_slice(py, column).into_any(),
        DialKind::Count | DialKind::Switch | DialKind::Press => {
            let whole = column.iter().map(|&value| dial.settle(value) as i64);
            PyArray1::from_iter(py, whole).into_any()
        }
    }
}

#[pymethods]
impl PolicyCore {
    #[new]
    fn new(py: Python<'_>, policy: &str, core: &VecCore) -> PyResult<Self> {
        let build = || build_policy(policy, core.spec_ref(), core.scenario_name());
        let rows: Result<Vec<Row>, _> =
            (0..core.rows()).map(|_| build().map(|policy| Row { policy, last: None })).collect();
        let rows = rows.map_err(|error| Class::Option.err(py, error.to_string()))?;
        Ok(Self { rows: Mutex::new(rows), text: policy.to_owned() })
    }

    fn __repr__(&self) -> String {
        format!("PolicyCore({:?})", self.text)
    }

    /// Decides for every row, and gives actions of the environment's own action space.
    fn act<'py>(&self, py: Python<'py>, core: &VecCore) -> PyResult<Bound<'py, PyAny>> {
        let natural = self.decide(py, core)?;
        let dials = &core.spec_ref().dials;
        let (n, width) = (core.rows(), dials.len());
        match core.mode {
            Mode::MultiDiscrete => {
                let index = |(i, &x): (usize, &f64)| {
                    i64::try_from(dials[i % width].nearest_stop(x)).unwrap_or_default()
                };
                let stops: Vec<i64> = natural.iter().enumerate().map(index).collect();
                Ok(PyArray1::from_vec(py, stops).reshape([n, width])?.into_any())
            }
            Mode::Box => {
                let standing = core.matrix(py, width, AnyVecEnv::dials)?;
                let values = natural.iter().zip(&standing).enumerate();
                let values: Vec<f32> =
                    values.map(|(i, (&x, &now))| to_box(&dials[i % width], x, now)).collect();
                Ok(PyArray1::from_vec(py, values).reshape([n, width])?.into_any())
            }
            Mode::Dict => {
                let standing = core.matrix(py, width, AnyVecEnv::dials)?;
                let dict = PyDict::new(py);
                for (i, dial) in dials.iter().enumerate() {
                    let rows = natural.chunks_exact(width).zip(standing.chunks_exact(width));
                    let value = |x: f64, now: f64| if x.is_nan() { now } else { x };
                    let column: Vec<f64> = rows.map(|(x, now)| value(x[i], now[i])).collect();
                    dict.set_item(dial.name, natural_column(py, dial, &column))?;
                }
                Ok(dict.into_any())
            }
        }
    }
}

impl PolicyCore {
    /// Natural units, NaN keeps, row by row.
    fn decide(&self, py: Python<'_>, core: &VecCore) -> PyResult<Vec<f64>> {
        let spec = core.spec_ref();
        let Ok(mut rows) = self.rows.try_lock() else {
            return Err(Class::Order.err(py, "another thread is in a call of this policy"));
        };
        if rows.len() != core.rows() {
            let message =
                format!("env: {} rows, expected {}, those of the policy", core.rows(), rows.len());
            return Err(Class::Shape.err(py, message));
        }
        let of = |engine: &AnyVecEnv, row| (engine.row(row), engine.scenario_of(row).to_owned());
        let info: Vec<(RowInfo, String)> =
            core.with(py, |engine| Ok((0..rows.len()).map(|row| of(engine, row)).collect()))?;
        if let Some(row) = info.iter().position(|(info, _)| info.length_min == 0) {
            let message = format!("act: row {row} was never reset, expected a reset first");
            return Err(Class::Order.err(py, message));
        }
        let width = spec.signals.len();
        let signals = core.matrix(py, width, AnyVecEnv::signals)?;
        let mut actions = vec![f64::NAN; rows.len() * spec.dials.len()];
        let slots = actions.chunks_exact_mut(spec.dials.len()).zip(signals.chunks_exact(width));
        for ((row, (info, scenario)), (action, seen)) in rows.iter_mut().zip(&info).zip(slots) {
            row.follow(info, scenario);
            row.policy.act(seen, action);
        }
        Ok(actions)
    }
}

/// Names of all policies with a sentence on each.
pub(crate) fn described() -> Vec<(&'static str, &'static str, Vec<&'static str>)> {
    policies().map(|policy| (policy.name, policy.doc, policy.worlds.to_vec())).collect()
}
