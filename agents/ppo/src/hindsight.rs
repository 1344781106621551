//! What was drawn for an episode, as inputs of the critic.
//!
//! When the surge comes and how high it goes moves a return far more than any decision does. A critic
//! that is told takes this out of the advantages, and out of nothing else: what was drawn does not
//! depend on the actions, so the policy's gradient stays right on average. The actor is never told.

use crate::collect::row_seeds;
use anyhow::Result;
use oncall_core::Split;
use oncall_env::{AnyVecEnv, Options, Scenario, Seeds};
use oncall_rollout::Moments;
use std::collections::{BTreeMap, BTreeSet};

/// Episodes that are looked at to see what there is, and how much it varies.
const EPISODES: usize = 512;

/// Of them so many at a time: a row of some worlds has megabytes.
const ROWS: usize = 64;

/// The columns: one for each drawn number, and one for each scenario of a mixture.
#[derive(Debug, Clone, PartialEq)]
pub struct Hindsight {
    /// Name, mean and factor of each drawn number.
    numbers: Vec<(String, f64, f64)>,
    /// Names of the scenarios, where there are several.
    scenarios: Vec<String>,
}

impl Hindsight {
    /// No columns.
    pub fn none() -> Self {
        Self { numbers: Vec::new(), scenarios: Vec::new() }
    }

    /// The columns of a scenario.
    pub fn new(scenario: &Scenario, seed: u64) -> Result<Self> {
        let options = Options { split: Split::Train, ..Options::default() };
        let mut env = AnyVecEnv::new(scenario.world.clone(), ROWS, options)?;
        let mut columns = env.columns();
        let mut drawn: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        let mut scenarios = BTreeSet::new();
        for first in (0..EPISODES).step_by(ROWS) {
            let seeds = row_seeds(&env, seed, first..first + ROWS);
            env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset())?;
            for row in 0..ROWS {
                for (name, value) in env.drawn(row) {
                    drawn.entry(name).or_default().push(value);
                }
                scenarios.insert(env.scenario_of(row).to_owned());
            }
        }
        let numbers = drawn.into_iter().map(|(name, values)| {
            let mut moments = Moments::new(1);
            moments.observe(&values);
            let std = moments.std(0);
            (name, moments.mean[0], if std > 0.0 { 1.0 / std } else { 0.0 })
        });
        let scenarios = if scenarios.len() > 1 { scenarios } else { BTreeSet::new() };
        Ok(Self { numbers: numbers.collect(), scenarios: scenarios.into_iter().collect() })
    }

    /// Number of columns.
    pub fn width(&self) -> usize {
        self.numbers.len() + self.scenarios.len()
    }

    /// Writes a row's columns: drawn numbers with mean 0 and spread 1, 0 where the episode has none of
    /// that name; 1 for the scenario that it plays.
    pub fn write(&self, env: &AnyVecEnv, row: usize, out: &mut [f32]) {
        if self.width() == 0 {
            return;
        }
        let drawn = env.drawn(row);
        let (numbers, scenarios) = out.split_at_mut(self.numbers.len());
        for ((name, mean, factor), out) in self.numbers.iter().zip(numbers) {
            let found = drawn.iter().find(|(drawn, _)| drawn == name);
            *out = found.map_or(0.0, |(_, value)| ((value - mean) * factor) as f32);
        }
        let plays = env.scenario_of(row);
        for (name, out) in self.scenarios.iter().zip(scenarios) {
            *out = f32::from(u8::from(name == plays));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drawn_numbers_are_told_in_order() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let hindsight = Hindsight::new(&scenario, 1).unwrap();
        assert_eq!(hindsight.width(), 3);
        let mut env = AnyVecEnv::new(scenario.world, 200, Options::default()).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(5), None, &mut columns.borrow_reset()).unwrap();
        let mut moments = Moments::new(3);
        for row in 0..200 {
            let mut out = [f32::NAN; 3];
            hindsight.write(&env, row, &mut out);
            moments.observe(&out);
            let drawn = env.drawn(row);
            for ((name, mean, factor), out) in hindsight.numbers.iter().zip(out) {
                let value = drawn.iter().find(|(drawn, _)| drawn == name).unwrap().1;
                assert!((value - (mean + f64::from(out) / factor)).abs() < 1e-4, "{name}");
            }
        }
        for column in 0..3 {
            assert!(moments.mean[column].abs() < 0.3 && (moments.std(column) - 1.0).abs() < 0.2);
        }
    }

    #[test]
    fn a_mixture_tells_which_scenario_it_plays() {
        let scenario = oncall_env::shipped("mixed").unwrap();
        let hindsight = Hindsight::new(&scenario, 1).unwrap();
        assert!(hindsight.scenarios.len() >= 3, "{hindsight:?}");
        let mut env = AnyVecEnv::new(scenario.world, 50, Options::default()).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(5), None, &mut columns.borrow_reset()).unwrap();
        for row in 0..50 {
            let mut out = vec![f32::NAN; hindsight.width()];
            hindsight.write(&env, row, &mut out);
            let flags = &out[hindsight.numbers.len()..];
            let index = flags.iter().position(|&flag| flag == 1.0).unwrap();
            assert_eq!(hindsight.scenarios[index], env.scenario_of(row));
            assert_eq!(flags.iter().sum::<f32>(), 1.0);
            assert!(out.iter().all(|x| x.is_finite()));
        }
    }

    /// Faults of a mixture that an episode does not play are 0, as the mean of those that do.
    #[test]
    fn discovery_tells_its_draws_and_its_scenario() {
        let scenario = oncall_env::shipped("mixed-discovery").unwrap();
        let hindsight = Hindsight::new(&scenario, 1).unwrap();
        assert!(hindsight.scenarios.len() > 9, "{:?}", hindsight.scenarios);
        assert!(hindsight.numbers.len() > 10, "{:?}", hindsight.numbers);
        let mut env = AnyVecEnv::new(scenario.world, 20, Options::default()).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(5), None, &mut columns.borrow_reset()).unwrap();
        for row in 0..20 {
            let mut out = vec![f32::NAN; hindsight.width()];
            hindsight.write(&env, row, &mut out);
            assert!(out.iter().all(|x| x.is_finite() && x.abs() < 20.0), "{out:?}");
            assert_eq!(out[hindsight.numbers.len()..].iter().sum::<f32>(), 1.0);
        }
    }
}
