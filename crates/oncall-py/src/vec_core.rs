//! `VecCore`: the engine as Python sees it. Arrays are borrowed for one call.

use crate::actions::{Held, Mode};
use crate::ahead::{Ahead, Wanted};
use crate::arrays::{input, mask, output, output_if, plain, values, values_mut, values_mut_if};
use crate::describe::{self, About};
use crate::errors::{Class, engine_error, scenario_error};
use crate::events::{self, Key};
use crate::files::Mapping;
use crate::keywords::{Checked, Keywords, count, demand};
use crate::pools::Pools;
use crate::slot::Slot;
use crate::store::Store;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use oncall_core::{Spec, View};
use oncall_env::{
    AnyVecEnv, Columns, EpisodeStats, ResetColumns, Seeds, ShippedOr, VecError, load, load_named,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::sync::{Mutex, PoisonError};

/// Many environments of one scenario, stepped by one call.
///
/// Arrays are the caller's, of exactly the dtypes and shapes named, C-contiguous, none sharing
/// memory with another. With one row the first axis may be left out. After an exception nothing has
/// changed.
#[pyclass(frozen, module = "oncall_gym._native")]
pub(crate) struct VecCore {
    pub(crate) engine: Mutex<Slot>,
    /// The thread that takes steps ahead, once one was asked for.
    pub(crate) ahead: Mutex<Option<Ahead>>,
    /// What `step_bound` writes, once it was asked for.
    pub(crate) store: PyOnceLock<Store>,
    /// Arrays of infos that are used again.
    pub(crate) pools: Mutex<Pools>,
    /// Names of the infos of each reward term.
    pub(crate) term_keys: Vec<Key>,
    pub(crate) spec: Spec,
    about: About,
    view: View,
    /// Which action space it has.
    pub(crate) mode: Mode,
    pub(crate) rows: usize,
    pub(crate) obs_len: usize,
    /// How long a row of a step takes, in minutes of the fleet.
    pub(crate) work: usize,
}

impl VecCore {
    /// What Python sees of an engine.
    fn around(py: Python<'_>, engine: AnyVecEnv, about: About, mode: Mode) -> Self {
        let spec = engine.spec().clone();
        let term_keys = spec.terms.iter().map(|term| Key::new(py, term.name)).collect();
        let options = engine.options();
        let (view, interval) = (options.view, options.decision_interval_min as usize);
        // What a tick of discovery takes is worth many minutes of the fleet.
        let weight = if spec.tick_s == 60 { 1 } else { 1000 };
        Self {
            rows: engine.num_envs(),
            obs_len: engine.obs_len(),
            spec,
            engine: Mutex::new(Slot::Here(Box::new(engine))),
            ahead: Mutex::new(None),
            store: PyOnceLock::new(),
            pools: Mutex::default(),
            term_keys,
            about,
            view,
            mode,
            work: interval * weight,
        }
    }

    fn bound<'a>(&'a self, py: Python<'a>, name: &str) -> PyResult<&'a Store> {
        let error = || Class::Order.err(py, format!("{name}: no arrays: expected bind() first"));
        self.store.get(py).ok_or_else(error)
    }

    /// A column of minutes: whole ones where a tick is a minute, else parts of them as well.
    fn set_minutes(
        &self,
        dict: &Bound<'_, PyDict>,
        name: &str,
        ticks: impl Iterator<Item = u32>,
    ) -> PyResult<()> {
        let py = dict.py();
        let tick_min = f64::from(self.spec.tick_s) / 60.0;
        if self.spec.tick_s == 60 {
            dict.set_item(name, column(py, ticks.map(i64::from)))
        } else {
            dict.set_item(name, column(py, ticks.map(|ticks| f64::from(ticks) * tick_min)))
        }
    }

    /// A matrix with one row for each environment, written by `write`.
    pub(crate) fn matrix(
        &self,
        py: Python<'_>,
        width: usize,
        write: impl Fn(&AnyVecEnv, usize, &mut [f64]) -> Result<(), VecError>,
    ) -> PyResult<Vec<f64>> {
        let mut values = vec![0.0; self.rows * width];
        self.with(py, |engine| {
            for (row, out) in values.chunks_exact_mut(width).enumerate() {
                write(engine, row, out)?;
            }
            Ok(())
        })?;
        Ok(values)
    }

    pub(crate) fn spec_ref(&self) -> &Spec {
        &self.spec
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    pub(crate) fn scenario_name(&self) -> &str {
        &self.about.name
    }

    fn check_row(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<usize> {
        let expected = format!("0..={}", self.rows - 1);
        let found = plain::<usize>("row", row, &expected)?;
        if found < self.rows {
            return Ok(found);
        }
        Err(Class::Option.err(py, format!("row = {found}: expected {expected}")))
    }

    fn rows_matrix<'py>(
        &self,
        py: Python<'py>,
        values: Vec<f64>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let width = values.len() / self.rows;
        PyArray1::from_vec(py, values).reshape([self.rows, width])
    }
}

/// What [`VecCore::recv`] gives.
type Received<'py> = (
    usize,
    Bound<'py, PyArray2<f32>>,
    Bound<'py, PyArray1<f64>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<bool>>,
    Option<Bound<'py, PyArray2<f32>>>,
    Option<Bound<'py, PyArray2<f64>>>,
    Option<Bound<'py, PyArray1<f64>>>,
    Option<Bound<'py, PyArray2<f64>>>,
);

/// A column of one value for each row.
fn column<T: numpy::Element>(
    py: Python<'_>,
    values: impl Iterator<Item = T>,
) -> Bound<'_, PyArray1<T>> {
    PyArray1::from_vec(py, values.collect())
}

#[pymethods]
impl VecCore {
    #[new]
    #[pyo3(signature = (scenario_json, *, file=None, files=None, num_envs=None,
        action_mode="multi_discrete", observation="operator", decision_interval_min=None,
        decision_interval_s=None, autoreset_mode="next_step", split="train", threads=None,
        max_minutes=None, demand_rps=None, scale=None))]
    #[expect(clippy::too_many_arguments, reason = "the keywords of Python, each with its default")]
    fn new(
        py: Python<'_>,
        scenario_json: &str,
        file: Option<&str>,
        files: Option<&Bound<'_, PyAny>>,
        num_envs: Option<&Bound<'_, PyAny>>,
        action_mode: &str,
        observation: &str,
        decision_interval_min: Option<&Bound<'_, PyAny>>,
        decision_interval_s: Option<&Bound<'_, PyAny>>,
        autoreset_mode: &str,
        split: &str,
        threads: Option<&Bound<'_, PyAny>>,
        max_minutes: Option<&Bound<'_, PyAny>>,
        demand_rps: Option<&Bound<'_, PyAny>>,
        scale: Option<&str>,
    ) -> PyResult<Self> {
        let keywords = Keywords {
            num_envs,
            action_mode,
            observation,
            decision_interval_min,
            decision_interval_s,
            autoreset_mode,
            split,
            threads,
            max_minutes,
        };
        let checked = keywords.check(py)?;
        #[cfg(feature = "bench-worlds")]
        if crate::bench_worlds::is_cartpole(scenario_json) {
            let given = demand_rps.map(|_| "demand_rps").or(scale.map(|_| "scale"));
            let (engine, about) = crate::bench_worlds::cartpole(py, &checked, given)?;
            return Ok(Self::around(py, engine, about, checked.mode));
        }
        let Checked { rows, mode, mut options, interval } = checked;
        let files = ShippedOr(Mapping(files));
        let loaded = match file {
            Some(file) => load_named(file, scenario_json, &files),
            None => load(scenario_json, &files),
        };
        let mut scenario = loaded.map_err(|errors| scenario_error(py, &errors))?;
        if let Some(scale) = scale {
            let scaled = scenario.with_scale(scale);
            scenario = scaled.map_err(|error| Class::Option.err(py, error.to_string()))?;
        }
        options.decision_interval_min = interval.ticks(py, scenario.world.spec())?;
        if let Some(demand_rps) = demand_rps {
            let rates = demand(demand_rps)?;
            if !scenario.world.pin_demand(Some(rates)) {
                return Err(
                    Class::Option.err(py, "demand_rps: this world has no demand to replace")
                );
            }
        }
        let about = About {
            name: scenario.name,
            title: scenario.title,
            description: scenario.description,
            scenario_hash: scenario.hash,
            params_hash: scenario.world.params_hash(),
            generator: scenario.world.generator().name(),
        };
        let engine = AnyVecEnv::new(scenario.world, rows, options)
            .map_err(|error| engine_error(py, &error, Class::Option))?;
        Ok(Self::around(py, engine, about, mode))
    }

    /// Number of rows.
    #[getter]
    fn num_envs(&self) -> usize {
        self.rows
    }

    /// Numbers in an observation.
    #[getter]
    fn obs_len(&self) -> usize {
        self.obs_len
    }

    /// Name of the action space: `multi_discrete`, `box` or `dict`.
    #[getter]
    fn action_mode(&self) -> &'static str {
        self.mode.name()
    }

    /// Threads that step a batch.
    #[getter]
    fn num_threads(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |engine| Ok(engine.options().threads))
    }

    /// Changes the number of threads; results stay the same, bit for bit.
    fn set_num_threads(&self, py: Python<'_>, threads: &Bound<'_, PyAny>) -> PyResult<()> {
        let threads = count("threads", threads)? as usize;
        self.with(py, |engine| engine.set_threads(threads))
    }

    /// Dials, signals, reward terms and hashes, as plain dicts and lists.
    fn spec<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        describe::engine(py, &self.spec, self.view, &self.about)
    }

    /// Begins new episodes in the rows of `mask` (`bool[n]`), or in all, and writes what every row
    /// shows: `obs` (`float32[n, obs_len]`) and `signals` (`float64[n, signals]`).
    ///
    /// `seeds`: None keeps every row's seed and goes on to its next episode; an int gives row i a seed
    /// mixed from it and i; a list gives each row exactly its seed, None keeping.
    #[pyo3(signature = (seeds, mask, obs, signals=None))]
    fn reset_into(
        &self,
        py: Python<'_>,
        seeds: &Bound<'_, PyAny>,
        mask: Option<&Bound<'_, PyAny>>,
        obs: &Bound<'_, PyAny>,
        signals: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        const EXPECTED: &str = "None, a seed of 0..2**64, or a list of a seed or None for each row";
        let list: Vec<Option<u64>>;
        let seeds = if seeds.is_none() {
            Seeds::Keep
        } else if let Ok(root) = seeds.extract::<u64>() {
            Seeds::Root(root)
        } else {
            list = plain("seed", seeds, EXPECTED)?;
            Seeds::Rows(&list)
        };
        let mask = mask.map(|mask| self::mask("reset_mask", mask, self.rows)).transpose()?;
        let mut obs = output::<f32>("obs", obs, &[self.rows, self.obs_len])?;
        let mut signals =
            output_if::<f64>("signals", signals, &[self.rows, self.spec.signals.len()])?;
        let mut columns = ResetColumns {
            observations: values_mut(py, &mut obs)?,
            signals: values_mut_if(py, signals.as_mut())?,
        };
        self.play(py, Class::Option, |engine| engine.reset(seeds, mask.as_deref(), &mut columns))
    }

    /// Takes one decision in every row, and gives the number of rows that ended an episode or began
    /// one: 0 for an ordinary step.
    ///
    /// Writes `obs` (`float32[n, obs_len]`), `rewards` (`float64[n]`, dollars), `terminated` and
    /// `truncated` (`bool[n]`), and where given `final_obs` (`float32[n, obs_len]`, rows that ended
    /// only), `terms` (`float64[n, terms]`, dollars paid), `cost` (`float64[n]`, budget burned) and
    /// `signals` (`float64[n, signals]`, natural units).
    #[pyo3(signature = (actions, obs, rewards, terminated, truncated, final_obs=None, terms=None,
        cost=None, signals=None))]
    #[expect(clippy::too_many_arguments, reason = "one for each column")]
    fn step_into<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        obs: &Bound<'py, PyAny>,
        rewards: &Bound<'py, PyAny>,
        terminated: &Bound<'py, PyAny>,
        truncated: &Bound<'py, PyAny>,
        final_obs: Option<&Bound<'py, PyAny>>,
        terms: Option<&Bound<'py, PyAny>>,
        cost: Option<&Bound<'py, PyAny>>,
        signals: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<usize> {
        let (n, k) = (self.rows, self.obs_len);
        let held = Held::take(self.mode, &self.spec, n, actions)?;
        let mut obs = output::<f32>("obs", obs, &[n, k])?;
        let mut rewards = output::<f64>("rewards", rewards, &[n])?;
        let mut terminated = output::<bool>("terminated", terminated, &[n])?;
        let mut truncated = output::<bool>("truncated", truncated, &[n])?;
        let mut final_obs = output_if::<f32>("final_obs", final_obs, &[n, k])?;
        let mut terms = output_if::<f64>("terms", terms, &[n, self.spec.terms.len()])?;
        let mut cost = output_if::<f64>("cost", cost, &[n])?;
        let mut signals = output_if::<f64>("signals", signals, &[n, self.spec.signals.len()])?;
        let actions = held.actions(py)?;
        let mut columns = Columns {
            observations: values_mut(py, &mut obs)?,
            rewards: values_mut(py, &mut rewards)?,
            terminated: values_mut(py, &mut terminated)?,
            truncated: values_mut(py, &mut truncated)?,
            final_observations: values_mut_if(py, final_obs.as_mut())?,
            terms: values_mut_if(py, terms.as_mut())?,
            cost: values_mut_if(py, cost.as_mut())?,
            signals: values_mut_if(py, signals.as_mut())?,
        };
        let summary = self.play(py, Class::Action, |engine| engine.step(actions, &mut columns))?;
        Ok(summary.ended + summary.reset)
    }

    /// Arrays that `step_bound` writes from now on, made once: `obs`, `rewards`, `terminated`,
    /// `truncated` and, with `final_obs`, a fifth one. They share one piece of memory.
    fn bind<'py>(&self, py: Python<'py>, final_obs: bool) -> PyResult<Bound<'py, PyTuple>> {
        self.store.get_or_try_init(py, || Store::new(py, self, final_obs))?.arrays(py)
    }

    /// Takes one decision in every row into the arrays of `bind`, and gives what a step of Gymnasium
    /// gives: `obs`, `rewards`, `terminated`, `truncated` and the infos.
    fn step_bound<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.bound(py, "step_bound")?.step(self, actions, false)
    }

    /// As `step_bound`, but gives copies of the arrays: where these are small, a copy takes less time
    /// than a new array to step into.
    fn step_copied<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        self.bound(py, "step_copied")?.step(self, actions, true)
    }

    /// Puts the infos of the last step into `infos`, if an episode ended or began in it: `valid`,
    /// `oncall` or `final_obs` and `final_info`, `seed` and `episode_number`, each with its mask.
    /// With `final_obs` (`float32[n, obs_len]`) those of same-step mode.
    #[pyo3(signature = (infos, final_obs=None, cost=None))]
    fn add_events<'py>(
        &self,
        py: Python<'py>,
        infos: &Bound<'py, PyDict>,
        final_obs: Option<&Bound<'py, PyAny>>,
        cost: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let last =
            final_obs.map(|last| input::<f32>("final_obs", last, &[self.rows, self.obs_len]));
        let (last, cost) =
            (last.transpose()?, cost.map(|cost| input::<f64>("cost", cost, &[self.rows])));
        let cost = cost.transpose()?;
        let last = last.as_ref().map(|last| values(py, last)).transpose()?;
        let cost = cost.as_ref().map(|cost| values(py, cost)).transpose()?;
        self.with(py, |engine| Ok(events::add(self, engine, infos, last, cost)))?
    }

    /// What every row shows now, `float32[n, obs_len]`; NaN for rows never reset.
    fn observations<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let mut values = vec![0.0; self.rows * self.obs_len];
        self.with(py, |engine| engine.observe_into(&mut values))?;
        PyArray1::from_vec(py, values).reshape([self.rows, self.obs_len])
    }

    /// What every row shows now in natural units, all signals, `float64[n, signals]`.
    fn signals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.matrix(py, self.spec.signals.len(), AnyVecEnv::signals)?;
        self.rows_matrix(py, values)
    }

    /// The dials as they stand in natural units, 0 for presses, `float64[n, dials]`.
    fn dials<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let values = self.matrix(py, self.spec.dials.len(), AnyVecEnv::dials)?;
        self.rows_matrix(py, values)
    }

    /// Natural values of scaled observations, `float32[m, obs_len]` to `float64[m, obs_len]`.
    fn natural<'py>(
        &self,
        py: Python<'py>,
        obs: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = obs.len().unwrap_or_default();
        let obs = input::<f32>("obs", obs, &[rows, self.obs_len])?;
        let columns = self.spec.columns_of(self.view);
        let scaled = obs.as_slice().map_err(|e| Class::Shape.err(py, e.to_string()))?;
        let signal = |i: usize| &self.spec.signals[columns[i % columns.len()]];
        let natural = scaled.iter().enumerate().map(|(i, &y)| signal(i).unscale(y)).collect();
        PyArray1::from_vec(py, natural).reshape([rows, self.obs_len])
    }

    /// Where the rows stand, as columns: `seed`, `episode`, `minute`, `length_min`, `pending`,
    /// `ended`, `is_seeded`.
    fn row_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let info: Vec<_> =
            self.with(py, |engine| Ok((0..self.rows).map(|i| engine.row(i)).collect()))?;
        let dict = PyDict::new(py);
        dict.set_item("seed", column(py, info.iter().map(|row| row.seed)))?;
        dict.set_item("episode", column(py, info.iter().map(|row| row.episode)))?;
        self.set_minutes(&dict, "minute", info.iter().map(|row| row.minute))?;
        self.set_minutes(&dict, "length_min", info.iter().map(|row| row.length_min))?;
        dict.set_item("pending", column(py, info.iter().map(|row| row.pending)))?;
        dict.set_item("ended", column(py, info.iter().map(|row| row.ended)))?;
        // Before its first reset a row has no length.
        dict.set_item("is_seeded", column(py, info.iter().map(|row| row.length_min > 0)))?;
        Ok(dict)
    }

    /// Rows whose episode ended in the last step, `bool[n]`.
    fn ended<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.with(py, |engine| Ok(PyArray1::from_slice(py, engine.ended())))
    }

    /// Rows that began an episode in the last call, `bool[n]`.
    fn began<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray1<bool>>> {
        self.with(py, |engine| Ok(PyArray1::from_slice(py, engine.began())))
    }

    /// Sums over each row's last ended episode, or over the one that runs, as columns: `seed`,
    /// `episode`, `return_usd`, `steps`, `minutes`, `budget_burned`, and each reward term.
    #[pyo3(signature = (*, running=false))]
    fn episode_stats<'py>(&self, py: Python<'py>, running: bool) -> PyResult<Bound<'py, PyDict>> {
        let stats: Vec<EpisodeStats> = self.with(py, |engine| {
            let of =
                |row| if running { engine.running_stats(row) } else { engine.episode_stats(row) };
            Ok((0..self.rows).map(of).collect())
        })?;
        let dict = PyDict::new(py);
        dict.set_item("seed", column(py, stats.iter().map(|row| row.seed)))?;
        dict.set_item("episode", column(py, stats.iter().map(|row| row.episode)))?;
        dict.set_item("return_usd", column(py, stats.iter().map(|row| row.return_)))?;
        dict.set_item("steps", column(py, stats.iter().map(|row| i64::from(row.steps))))?;
        self.set_minutes(&dict, "minutes", stats.iter().map(|row| row.minutes))?;
        dict.set_item("budget_burned", column(py, stats.iter().map(|row| row.cost)))?;
        for (index, term) in self.spec.terms.iter().enumerate() {
            dict.set_item(term.name, column(py, stats.iter().map(|row| row.terms[index])))?;
        }
        Ok(dict)
    }

    /// States of the rows named, each as bytes that fit any row of any environment of the same
    /// scenario, split and decision interval.
    fn save<'py>(&self, py: Python<'py>, rows: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let rows: Vec<usize> = plain("rows", rows, "a list of row numbers")?;
        let states = self.with(py, |engine| {
            rows.iter().map(|&row| engine.save(row)).collect::<Result<Vec<_>, _>>()
        })?;
        PyList::new(py, states.iter().map(|state| PyBytes::new(py, state)))
    }

    /// Puts states into the rows named, all or none.
    fn load(
        &self,
        py: Python<'_>,
        rows: &Bound<'_, PyAny>,
        states: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let rows: Vec<usize> = plain("rows", rows, "a list of row numbers")?;
        let items: Vec<Py<PyBytes>> = states.extract().map_err(|_| {
            Class::State.err(py, "states: expected a list of bytes, as save() gives it")
        })?;
        let states: Vec<&[u8]> = items.iter().map(|state| state.as_bytes(py)).collect();
        self.with(py, |engine| engine.load(&rows, &states))
    }

    /// Copies rows onto others, `source[k]` onto `target[k]`, all as they were before the call.
    fn copy_rows(
        &self,
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        target: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let source: Vec<usize> = plain("source", source, "a list of row numbers")?;
        let target: Vec<usize> = plain("target", target, "a list of row numbers")?;
        self.with(py, |engine| engine.copy_rows(&source, &target))
    }

    /// What was drawn for a row's episode, truths included.
    fn drawn(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<Vec<(String, f64)>> {
        let row = self.check_row(py, row)?;
        self.with(py, |engine| Ok(engine.drawn(row)))
    }

    /// Name of the scenario that a row plays; of a mixture, the one that was drawn.
    fn scenario_of(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<String> {
        let row = self.check_row(py, row)?;
        self.with(py, |engine| Ok(engine.scenario_of(row).to_owned()))
    }

    /// Hash of everything that a row's future depends on.
    fn digest(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<u64> {
        let row = self.check_row(py, row)?;
        self.with(py, |engine| Ok(engine.digest(row)))
    }

    /// Hash of what was drawn for a row's episode, apart from any state.
    fn digest_drawn(&self, py: Python<'_>, row: &Bound<'_, PyAny>) -> PyResult<u64> {
        let row = self.check_row(py, row)?;
        self.with(py, |engine| Ok(engine.digest_drawn(row)))
    }

    /// Sends a step off, to be played by a thread of its own: `recv` has its results. Until then
    /// every other call raises. Columns are made where they are asked for.
    #[pyo3(signature = (actions, *, final_obs=false, terms=false, cost=false, signals=false))]
    #[expect(clippy::fn_params_excessive_bools, reason = "keywords, one for each column")]
    fn send<'py>(
        &self,
        py: Python<'py>,
        actions: &Bound<'py, PyAny>,
        final_obs: bool,
        terms: bool,
        cost: bool,
        signals: bool,
    ) -> PyResult<()> {
        let held = Held::take(self.mode, &self.spec, self.rows, actions)?;
        let mut guard = self.guard(py)?;
        // Refused now rather than when it is received.
        let checked = guard.engine(py)?.check_step(held.actions(py)?);
        checked.map_err(|error| engine_error(py, &error, Class::Action))?;
        let mut ahead = self.ahead.lock().unwrap_or_else(PoisonError::into_inner);
        if ahead.as_ref().is_none_or(|ahead| !ahead.is_here()) {
            *ahead = Some(Ahead::start()?);
        }
        let Some(ahead) = &*ahead else { return Ok(()) };
        let wanted = Wanted { final_obs, terms, cost, signals };
        let Slot::Here(engine) = std::mem::replace(&mut *guard, Slot::Away) else { return Ok(()) };
        if let Err(engine) = ahead.send(py, engine, &held, wanted)? {
            *guard = Slot::Here(engine);
            return Err(Class::Internal.err(py, "the thread that takes steps is gone"));
        }
        Ok(())
    }

    /// Waits for the step that was sent and gives its results as new arrays: the number of rows that
    /// ended an episode or began one, `obs`, `rewards`, `terminated`, `truncated`, and where they were
    /// asked for `final_obs`, `terms`, `cost` and `signals`.
    fn recv<'py>(&self, py: Python<'py>) -> PyResult<Received<'py>> {
        let mut guard = self.guard(py)?;
        let Some(results) = self.land(py, &mut guard)? else {
            guard.engine(py)?;
            return Err(Class::Order.err(py, "recv: no step was sent: expected send() first"));
        };
        let results = results.map_err(|error| engine_error(py, &error, Class::Action))?;
        let (n, k) = (self.rows, self.obs_len);
        let wide = |values: Option<Vec<f64>>| values.map(|v| self.rows_matrix(py, v)).transpose();
        let last = results.final_observations;
        let last = last.map(|v| PyArray1::from_vec(py, v).reshape([n, k])).transpose()?;
        Ok((
            results.events,
            PyArray1::from_vec(py, results.observations).reshape([n, k])?,
            PyArray1::from_vec(py, results.rewards),
            PyArray1::from_vec(py, results.terminated),
            PyArray1::from_vec(py, results.truncated),
            last,
            wide(results.terms)?,
            results.cost.map(|cost| PyArray1::from_vec(py, cost)),
            wide(results.signals)?,
        ))
    }

    /// Frees the engine; every later call but this one raises. A step that was sent is waited for.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let mut guard = self.guard(py)?;
        let landed = self.land(py, &mut guard);
        *guard = Slot::Closed;
        *self.ahead.lock().unwrap_or_else(PoisonError::into_inner) = None;
        landed.map(|_| ())
    }
}
