//! The keywords of a constructor, as Python gives them, to options.

use crate::actions::Mode;
use crate::arrays::plain;
use crate::errors::Class;
use oncall_core::{Spec, Split, View};
use oncall_env::{Autoreset, Options};
use pyo3::prelude::*;

/// As they were given; None is the default.
pub(crate) struct Keywords<'a, 'py> {
    pub(crate) num_envs: Option<&'a Bound<'py, PyAny>>,
    pub(crate) action_mode: &'a str,
    pub(crate) observation: &'a str,
    pub(crate) decision_interval_min: Option<&'a Bound<'py, PyAny>>,
    pub(crate) decision_interval_s: Option<&'a Bound<'py, PyAny>>,
    pub(crate) autoreset_mode: &'a str,
    pub(crate) split: &'a str,
    pub(crate) threads: Option<&'a Bound<'py, PyAny>>,
    pub(crate) max_minutes: Option<&'a Bound<'py, PyAny>>,
}

/// As the engine takes them; it checks their ranges.
pub(crate) struct Checked {
    pub(crate) rows: usize,
    pub(crate) mode: Mode,
    /// With an interval of one tick.
    pub(crate) options: Options,
    pub(crate) interval: Interval,
}

/// A whole number of at least 0; the engine knows the range.
pub(crate) fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<u32> {
    plain(name, value, "a whole number of at least 1")
}

/// The option of that name, or an error that lists the names.
fn named<T>(
    py: Python<'_>,
    option: &str,
    name: &str,
    value: Option<T>,
    names: &str,
) -> PyResult<T> {
    value.ok_or_else(|| {
        Class::Option.err(py, format!("{option} = {name:?}: expected one of {names}"))
    })
}

impl Keywords<'_, '_> {
    /// Looks every name up and converts every number.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<Checked> {
        let number = |name: &str, value: Option<&Bound<'_, PyAny>>| {
            value.map(|value| count(name, value)).transpose()
        };
        let Self { action_mode, observation, autoreset_mode, split, .. } = *self;
        let mode = Mode::from_name(action_mode);
        let mode = named(py, "action_mode", action_mode, mode, "multi_discrete, box, dict")?;
        let view = View::from_name(observation);
        let autoreset = Autoreset::from_name(autoreset_mode);
        let modes = "next_step, same_step, disabled";
        let interval = Interval {
            minutes: number("decision_interval_min", self.decision_interval_min)?,
            seconds: number("decision_interval_s", self.decision_interval_s)?,
        };
        let options = Options {
            autoreset: named(py, "autoreset_mode", autoreset_mode, autoreset, modes)?,
            view: named(py, "observation", observation, view, "operator, full")?,
            decision_interval_min: 1,
            split: named(py, "split", split, Split::from_name(split), "train, test")?,
            threads: number("threads", self.threads)?.unwrap_or(1) as usize,
            max_minutes: number("max_minutes", self.max_minutes)?,
        };
        let rows = number("num_envs", self.num_envs)?.unwrap_or(1) as usize;
        Ok(Checked { rows, mode, options, interval })
    }
}

/// How long an action stands, as it was given.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Interval {
    minutes: Option<u32>,
    seconds: Option<u32>,
}

impl Interval {
    /// In ticks of a world; one if nothing was given. Each world takes the keyword of its own clock.
    pub(crate) fn ticks(self, py: Python<'_>, spec: &Spec) -> PyResult<u32> {
        let (world, tick_s) = (spec.world, spec.tick_s);
        let message = match (self.minutes, self.seconds) {
            (None, None) => return Ok(1),
            (Some(minutes), None) if tick_s == 60 => return Ok(minutes),
            (None, Some(seconds)) if tick_s != 60 && seconds % tick_s == 0 => {
                return Ok(seconds / tick_s);
            }
            (_, Some(seconds)) if tick_s == 60 => format!(
                "decision_interval_s = {seconds}: expected decision_interval_min, in which {world} \
                 counts its decisions"
            ),
            (Some(minutes), _) => format!(
                "decision_interval_min = {minutes}: expected decision_interval_s, in which {world} \
                 counts its decisions"
            ),
            (None, Some(seconds)) => format!(
                "decision_interval_s = {seconds}: expected a multiple of {tick_s}, the shortest \
                 decision of {world}"
            ),
        };
        Err(Class::Option.err(py, message))
    }
}

/// Demand that replaces the drawn one.
pub(crate) fn demand(demand_rps: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let rates: Vec<f64> = plain("demand_rps", demand_rps, "a list of rates in req/s")?;
    let bad = |rate: &f64| !(rate.is_finite() && *rate >= 0.0);
    let message = match rates.iter().position(bad) {
        Some(minute) => format!(
            "demand_rps: minute {minute} = {}: expected a finite rate of at least 0",
            rates[minute]
        ),
        None if rates.is_empty() => "demand_rps: no minute, expected at least one".to_owned(),
        None => return Ok(rates),
    };
    Err(Class::Option.err(demand_rps.py(), message))
}
