//! Random search and local search, for settings of many dials of which few matter, where a score is
//! dear: candidates come one by one, so that the caller may give one up early.
//!
//! First the starts, and settings drawn over the whole box. From the best one a sweep over the
//! parameters, one at a time over the whole of each range, then a finer one; then steps that move a few
//! parameters together. What does not matter goes back to its default.

use crate::param::Param;
use crate::registry::Description;
use crate::spec::{PolicyError, PolicySpec};
use oncall_core::draw::normal_pair;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Split, Stream};

use super::{Found, free_indices};

/// How to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Climb {
    /// Seed of the candidates.
    pub seed: u64,
    /// Settings drawn over the whole box.
    pub wild: usize,
    /// Sweeps over the parameters; the first is coarse.
    pub sweeps: usize,
    /// Steps that move a few parameters together.
    pub steps: usize,
    /// Score given up for each parameter that goes back to its default at the end.
    pub slack: f64,
    /// Names of the parameters that move; all of them, if empty.
    pub free: Vec<String>,
}

impl Climb {
    /// As the shipped settings were found.
    pub fn new(seed: u64) -> Self {
        Self { seed, wild: 24, sweeps: 2, steps: 80, slack: 0.05, free: Vec::new() }
    }

    /// Candidates that are scored at most, beside the starts.
    pub fn candidates_max(&self, params: usize) -> usize {
        let all = params;
        let params = if self.free.is_empty() { params } else { self.free.len() };
        self.wild + self.sweeps * GRID.len() * params + self.steps + 1 + all
    }
}

/// Places of the coarse sweep, as shares of a range.
const GRID: [f64; 5] = [0.0, 0.25, 0.5, 0.75, 1.0];
/// Steps of the finer sweeps.
const FINE: [f64; 4] = [0.12, -0.12, 0.05, -0.05];
/// Parameters that a step moves, on average, and how far.
const MOVED: f64 = 3.0;
const SPREAD: f64 = 0.15;

/// Searches the parameters of a policy for the highest score, beginning with `starts` (at least one,
/// with every parameter spelled out). `score` is called for one candidate at a time with the best score
/// so far; NaN counts as worst. A pure function of its arguments and of the scores.
pub fn climb(
    starts: &[PolicySpec],
    options: &Climb,
    score: &mut dyn FnMut(&PolicySpec, f64) -> f64,
) -> Result<Found, PolicyError> {
    let first = starts.first().ok_or_else(|| {
        PolicyError::new("search: found no setting to begin with, expected at least one".to_owned())
    })?;
    let description = first.check()?;
    if description.params.is_empty() {
        return Err(PolicyError::new(format!(
            "search of policy `{}`: it has no parameters",
            first.name
        )));
    }
    let free = free_indices(description, &options.free)?;
    let mut run = Run {
        description,
        free,
        options,
        best: Vec::new(),
        found: f64::NEG_INFINITY,
        scored: 0,
        history: Vec::new(),
    };
    for start in starts {
        let (known, values) = start.values(&[])?;
        if known.name != description.name {
            return Err(PolicyError::new(format!(
                "search of policy `{}`: found a start of `{}`",
                description.name, known.name
            )));
        }
        run.take(values, score);
    }
    for index in 0..options.wild {
        let mut stream = run.stream(0, index);
        let mut values = run.best.clone();
        for &place in &run.free {
            values[place] = run.params()[place].from_unit(stream.uniform());
        }
        run.take(values, score);
    }
    run.history.push(run.found);
    for sweep in 0..options.sweeps {
        run.sweep(sweep, score);
        run.history.push(run.found);
    }
    for index in 0..options.steps {
        run.step(index, score);
    }
    run.history.push(run.found);
    run.simplify(score);
    let Run { best, found, scored, history, .. } = run;
    Ok(Found { best: PolicySpec::from_values(description, &best), score: found, scored, history })
}

/// A search under way.
struct Run<'a> {
    description: &'static Description,
    /// Places of the parameters that move.
    free: Vec<usize>,
    options: &'a Climb,
    best: Vec<f64>,
    found: f64,
    scored: usize,
    history: Vec<f64>,
}

impl Run<'_> {
    fn params(&self) -> &'static [Param] {
        &self.description.params
    }

    /// Draws of a candidate: a function of the search's seed and of its place.
    fn stream(&self, phase: u64, index: usize) -> Stream {
        let key = EpisodeKey::new(self.options.seed, phase, Split::Train, Generator::Pcg);
        key.stream(Purpose::Policy, index as u64)
    }

    /// Scores a candidate and keeps it if it is better.
    fn take(&mut self, mut values: Vec<f64>, score: &mut dyn FnMut(&PolicySpec, f64) -> f64) {
        for &index in &self.free {
            values[index] = short(&self.params()[index], values[index]);
        }
        let spec = PolicySpec::from_values(self.description, &values);
        let found = score(&spec, self.found);
        self.scored += 1;
        if found > self.found || self.best.is_empty() {
            (self.found, self.best) =
                (if found.is_nan() { f64::NEG_INFINITY } else { found }, values);
        }
    }

    /// Moves one parameter at a time; the order is drawn, so that none is always first.
    fn sweep(&mut self, sweep: usize, score: &mut dyn FnMut(&PolicySpec, f64) -> f64) {
        let params = self.params();
        let mut stream = self.stream(1, sweep);
        let mut order: Vec<(f64, usize)> =
            self.free.iter().map(|&index| (stream.uniform(), index)).collect();
        order.sort_by(|a, b| a.0.total_cmp(&b.0));
        for (_, index) in order {
            let param = &params[index];
            let now = param.to_unit(self.best[index]);
            let places: Vec<f64> = match sweep {
                0 => GRID.to_vec(),
                _ => FINE.iter().map(|step| now + least(param, *step)).collect(),
            };
            let mut tried = vec![self.best[index]];
            for place in places {
                let value = param.from_unit(place);
                if !tried.contains(&value) {
                    tried.push(value);
                    let mut values = self.best.clone();
                    values[index] = value;
                    self.take(values, score);
                }
            }
        }
    }

    /// Moves a few parameters together.
    fn step(&mut self, index: usize, score: &mut dyn FnMut(&PolicySpec, f64) -> f64) {
        let params = self.params();
        let mut stream = self.stream(2, index);
        let mut values = self.best.clone();
        for &place in &self.free {
            let (param, value) = (&params[place], &mut values[place]);
            let (moves, by) = (stream.uniform(), SPREAD * normal_pair(&mut stream).0);
            if moves * self.free.len() as f64 <= MOVED {
                *value = param.from_unit(param.to_unit(*value) + least(param, by));
            }
        }
        if values != self.best {
            self.take(values, score);
        }
    }

    /// Puts parameters back to their defaults where that costs next to nothing: first all those at once that
    /// were not searched, which a start may have brought along, then every one alone.
    fn simplify(&mut self, score: &mut dyn FnMut(&PolicySpec, f64) -> f64) {
        let searched = self.free.clone();
        let others: Vec<usize> =
            (0..self.params().len()).filter(|index| !searched.contains(index)).collect();
        let ones = (0..self.params().len()).map(|index| vec![index]);
        for group in std::iter::once(others).chain(ones) {
            let mut values = self.best.clone();
            for index in group {
                values[index] = self.params()[index].default.unwrap_or(values[index]);
            }
            if values == self.best {
                continue;
            }
            let spec = PolicySpec::from_values(self.description, &values);
            let plain = score(&spec, self.found - self.options.slack);
            self.scored += 1;
            if plain >= self.found - self.options.slack {
                (self.found, self.best) = (plain, values);
            }
        }
    }
}

/// A value with three digits, inside its range: what is scored is what a file says.
fn short(param: &Param, value: f64) -> f64 {
    let size = value.abs();
    // Places after the point.
    let places = [(100.0, 0), (10.0, 1), (1.0, 2)].into_iter().find(|(least, _)| size >= *least);
    let unit = 10_f64.powi(places.map_or(3, |(_, places)| places));
    ((value * unit).round_ties_even() / unit).clamp(param.low, param.high)
}

/// A step of a parameter's unit range; a whole number moves by one at least.
fn least(param: &Param, step: f64) -> f64 {
    let least = if param.whole { 1.0 / (param.high - param.low) } else { 0.0 };
    step.signum() * step.abs().max(least)
}
