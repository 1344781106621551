//! Search of a policy's parameters.
//!
//! The cross-entropy method (Rubinstein 1999): draw candidates around a centre, keep the best, move
//! centre and spread to them; then a refinement that moves one parameter at a time. The crate needs no
//! engine for it: the caller scores a list of candidates, on **training seeds only**, and every
//! candidate on the same ones.
//!
//! The search is a pure function of its options and of the scores.

pub mod climb;

use crate::param::Param;
use crate::registry::Description;
use crate::spec::{PolicyError, PolicySpec};
use crate::tuned;
use oncall_core::draw::normal_pair;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Split, Stream};

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Search {
    /// Seed of the candidates.
    pub seed: u64,
    /// Rounds of the cross-entropy method.
    pub rounds: usize,
    /// Candidates of a round; at least 2.
    pub population: usize,
    /// Share of a round that the next one is drawn from.
    pub elite_share: f64,
    /// First spread of the candidates, as a share of a parameter's range.
    pub spread: f64,
    /// Sweeps over the parameters, one at a time, afterwards.
    pub sweeps: usize,
    /// Score given up for each parameter that goes back to its default at the end, so that those
    /// that do not matter say nothing.
    pub slack: f64,
}

impl Search {
    /// For a policy with some twenty parameters: it looks everywhere first.
    pub fn rule(seed: u64) -> Self {
        Self {
            seed,
            rounds: 16,
            population: 48,
            elite_share: 0.2,
            spread: 0.3,
            sweeps: 1,
            slack: 0.004,
        }
    }

    /// For a schedule of some hundred parameters: it stays near the start and takes more rounds.
    pub fn schedule(seed: u64) -> Self {
        Self {
            seed,
            rounds: 60,
            population: 80,
            elite_share: 0.15,
            spread: 0.12,
            sweeps: 1,
            slack: 0.002,
        }
    }
}

impl Search {
    /// Candidates that a search over so many parameters scores at most; for a progress bar.
    pub fn candidates_max(&self, params: usize) -> usize {
        1 + self.rounds * self.population + params * (self.sweeps * STEPS.len() + 1)
    }
}

/// What a search found.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The best candidate, with every parameter spelled out.
    pub best: PolicySpec,
    /// Its score.
    pub score: f64,
    /// Candidates scored.
    pub scored: usize,
    /// Best score after each round and sweep.
    pub history: Vec<f64>,
}

/// Spread below which a parameter is settled.
const SPREAD_MIN: f64 = 0.02;
/// Weight of a round's elite in the centre and the spread of the next one.
const PACE: f64 = 0.7;
/// Share of a round's candidates that are drawn over the whole range in the first third of the rounds.
const WILD_SHARE: f64 = 0.25;
/// In a candidate of a long table this many parameters move, on average, and the rest stays.
const MOVED: f64 = 24.0;
/// Steps of a sweep, as shares of a parameter's range.
const STEPS: [f64; 4] = [0.12, -0.12, 0.03, -0.03];

/// Searches the parameters of `start`'s policy for the highest score.
///
/// `start` is scored first and is never lost; what it does not give has its default. `scenario` names
/// the tuned set that it starts from, if there is one. `free` names the parameters to search; empty
/// means all. `score` gives one number a candidate, higher is better; NaN counts as worst.
pub fn search(
    start: &PolicySpec,
    scenario: &str,
    free: &[&str],
    options: &Search,
    score: &mut dyn FnMut(&[PolicySpec]) -> Vec<f64>,
) -> Result<Found, PolicyError> {
    let (description, values) = start.values(&tuned::sets(&start.name, scenario))?;
    let free: Vec<String> = free.iter().map(|name| (*name).to_owned()).collect();
    let free = free_indices(description, &free)?;
    if options.population < 2 || free.is_empty() {
        return Err(PolicyError::new(format!(
            "search of policy `{}`: it has {} parameters to search and {} candidates a round, expected at least 1 and 2",
            start.name,
            free.len(),
            options.population
        )));
    }
    let unit = |(param, value): (&Param, &f64)| {
        // A dial that is kept starts in the middle of its range once it is searched.
        if value.is_nan() { 0.5 } else { param.to_unit(*value) }
    };
    let params = &description.params;
    let centre: Vec<f64> = params.iter().zip(&values).map(unit).collect();
    let spread = vec![options.spread; free.len()];
    let mut run = Run {
        description,
        base: values,
        free,
        options,
        centre,
        spread,
        best: None,
        scored: 0,
        history: Vec::new(),
    };
    let start_values = run.base.clone();
    run.score(vec![start_values], score);
    for round in 0..options.rounds {
        run.cross_entropy(round, score);
    }
    for _ in 0..options.sweeps {
        run.sweep(score);
    }
    run.simplify(score);
    let Run { best, scored, history, .. } = run;
    let (score, values) = best.unwrap_or((f64::NEG_INFINITY, Vec::new()));
    Ok(Found { best: PolicySpec::from_values(description, &values), score, scored, history })
}

fn free_indices(description: &Description, free: &[String]) -> Result<Vec<usize>, PolicyError> {
    if free.is_empty() {
        return Ok((0..description.params.len()).collect());
    }
    let index = |name: &String| {
        let spec = PolicySpec {
            name: description.name.to_owned(),
            params: vec![(name.clone(), f64::NAN)],
        };
        let found = description.params.iter().position(|param| param.name == *name);
        // The message for an unknown parameter is the one of `check`.
        found.ok_or_else(|| spec.check().err().unwrap_or_else(|| PolicyError::new(String::new())))
    };
    free.iter().map(index).collect()
}

/// A search under way.
struct Run<'a> {
    description: &'static Description,
    /// Values of the parameters that are not searched.
    base: Vec<f64>,
    free: Vec<usize>,
    options: &'a Search,
    /// Centre of the candidates by parameter, 0..1, and spread by free parameter.
    centre: Vec<f64>,
    spread: Vec<f64>,
    best: Option<(f64, Vec<f64>)>,
    scored: usize,
    history: Vec<f64>,
}

impl Run<'_> {
    fn params(&self) -> &'static [Param] {
        &self.description.params
    }

    /// Scores candidates; returns them, best first (of equals the earlier), and keeps the best ever.
    fn score(
        &mut self,
        candidates: Vec<Vec<f64>>,
        score: &mut dyn FnMut(&[PolicySpec]) -> Vec<f64>,
    ) -> Vec<(f64, Vec<f64>)> {
        let specs: Vec<PolicySpec> = candidates
            .iter()
            .map(|values| PolicySpec::from_values(self.description, values))
            .collect();
        let scores = score(&specs);
        self.scored += specs.len();
        let known = |index: usize| scores.get(index).copied().filter(|score| !score.is_nan());
        let mut ranked: Vec<(f64, Vec<f64>)> = candidates
            .into_iter()
            .enumerate()
            .map(|(index, values)| (known(index).unwrap_or(f64::NEG_INFINITY), values))
            .collect();
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
        if let Some(first) = ranked.first()
            && self.best.as_ref().is_none_or(|best| first.0 > best.0)
        {
            self.best = Some(first.clone());
        }
        self.history.extend(self.best.as_ref().map(|best| best.0));
        ranked
    }

    /// One round: draw, score, move centre and spread to the elite.
    fn cross_entropy(&mut self, round: usize, score: &mut dyn FnMut(&[PolicySpec]) -> Vec<f64>) {
        let candidates =
            (0..self.options.population).map(|index| self.draw(round, index)).collect();
        let ranked = self.score(candidates, score);
        let elite = ((self.options.population as f64 * self.options.elite_share) as usize)
            .clamp(2, ranked.len());
        let params = self.params();
        for (slot, &index) in self.free.iter().enumerate() {
            let units: Vec<f64> = ranked[..elite]
                .iter()
                .map(|(_, values)| params[index].to_unit(values[index]))
                .collect();
            let mean = units.iter().sum::<f64>() / elite as f64;
            let variance =
                units.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / elite as f64;
            self.centre[index] += PACE * (mean - self.centre[index]);
            let spread = &mut self.spread[slot];
            *spread = (*spread + PACE * (variance.sqrt() - *spread)).max(SPREAD_MIN);
        }
    }

    /// A candidate of a round; a pure function of the search's seed and of its place.
    fn draw(&self, round: usize, index: usize) -> Vec<f64> {
        let key = EpisodeKey::new(self.options.seed, round as u64, Split::Train, Generator::Pcg);
        let mut stream = key.stream(Purpose::Policy, index as u64);
        let early = 3 * round < self.options.rounds;
        let short = self.free.len() as f64 <= MOVED;
        let wild = early && short && stream.uniform() < WILD_SHARE;
        let moved = if short { 1.0 } else { MOVED / self.free.len() as f64 };
        // Half of a long table's candidates step from the best one, which the elite may have lost.
        let from_best = !short && stream.uniform() < 0.5;
        let mut values = self.base.clone();
        for (slot, &param) in self.free.iter().enumerate() {
            let centre = match &self.best {
                Some((_, best)) if from_best && !best[param].is_nan() => {
                    self.params()[param].to_unit(best[param])
                }
                _ => self.centre[param],
            };
            values[param] = self.draw_one(&mut stream, param, centre, slot, wild, moved);
        }
        values
    }

    fn draw_one(
        &self,
        stream: &mut Stream,
        param: usize,
        centre: f64,
        slot: usize,
        wild: bool,
        moved: f64,
    ) -> f64 {
        let (first, second) = (stream.uniform(), normal_pair(stream).0);
        let unit = if wild {
            first
        } else if first < moved {
            centre + self.spread[slot] * second
        } else {
            centre
        };
        self.params()[param].from_unit(unit)
    }

    /// Puts parameters back to their defaults, one after the other, where it costs next to nothing.
    fn simplify(&mut self, score: &mut dyn FnMut(&[PolicySpec]) -> Vec<f64>) {
        for &index in &self.free.clone() {
            let Some((found, mut values)) = self.best.clone() else { return };
            let Some(default) =
                self.params()[index].default.filter(|value| *value != values[index])
            else {
                continue;
            };
            values[index] = default;
            let spec = PolicySpec::from_values(self.description, &values);
            let plain = score(&[spec]).first().copied().unwrap_or(f64::NAN);
            self.scored += 1;
            if plain >= found - self.options.slack {
                self.best = Some((plain, values));
            }
        }
    }

    /// Moves one parameter at a time, and keeps what helps.
    fn sweep(&mut self, score: &mut dyn FnMut(&[PolicySpec]) -> Vec<f64>) {
        for &index in &self.free.clone() {
            let Some((_, best)) = self.best.clone() else { return };
            let param = &self.params()[index];
            let unit = if best[index].is_nan() { 0.5 } else { param.to_unit(best[index]) };
            let mut tried: Vec<f64> = Vec::new();
            for step in STEPS {
                // A whole number moves by one at least.
                let least = if param.whole { 1.0 / (param.high - param.low) } else { 0.0 };
                let value = param.from_unit(unit + step.signum() * step.abs().max(least));
                if value != best[index] && !tried.contains(&value) {
                    tried.push(value);
                }
            }
            let moved = |value: f64| {
                let mut values = best.clone();
                values[index] = value;
                values
            };
            let candidates: Vec<Vec<f64>> = tried.into_iter().map(moved).collect();
            if !candidates.is_empty() {
                self.score(candidates, score);
            }
        }
    }
}

#[cfg(test)]
mod tests;
