//! Scores of many candidates on the same training episodes, block by block, given up early where a
//! candidate is clearly behind the best one; and the search for a setting that is made of it.
//!
//! The outcome is a function of the race, the candidates and their order. What was played is told to a
//! [`Journal`], and what the journal knows is not played again: a search that was broken off, begun
//! again with its journal, finds the same.

use crate::error::EvalError;
use crate::runner::{EpisodeResult, Plan, run_policy};
use crate::stats::mean;
use oncall_core::streams::mix;
use oncall_core::{Spec, Split};
use oncall_env::Scenario;
use oncall_heuristics::PolicySpec;
use oncall_heuristics::tune::Found;
use oncall_heuristics::tune::climb::{Climb, climb};

/// What a candidate is judged by: the return, as if the prices of some reward terms were others.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Objective {
    /// Terms by name with the factor on their price; the others keep theirs.
    pub factors: Vec<(String, f64)>,
}

impl Objective {
    /// The return, as if one reward term cost nothing.
    pub fn without(term: &str) -> Self {
        Self { factors: vec![(term.to_owned(), 0.0)] }
    }

    /// The same with more factors; one that stands already is multiplied.
    #[must_use]
    pub fn with(mut self, factors: &[(String, f64)]) -> Self {
        for (name, factor) in factors {
            match self.factors.iter_mut().find(|(known, _)| known == name) {
                Some((_, known)) => *known *= factor,
                None => self.factors.push((name.clone(), *factor)),
            }
        }
        self
    }

    /// The factors in the order of a world's terms, 1 where none is said.
    pub fn of(&self, spec: &Spec) -> Result<Vec<f64>, EvalError> {
        let mut all = vec![1.0; spec.terms.len()];
        for (name, factor) in &self.factors {
            let Some(term) = spec.term(name) else {
                let known: Vec<&str> = spec.terms.iter().map(|term| term.name).collect();
                let expected = format!("one of {}", known.join(", "));
                return Err(EvalError::value("term", name, expected));
            };
            if !(factor.is_finite() && *factor >= 0.0) {
                return Err(EvalError::value(name, factor, "a factor from 0"));
            }
            all[term] = *factor;
        }
        Ok(all)
    }

    /// A short text, for a journal.
    pub fn name(&self) -> String {
        let factors = self.factors.iter().map(|(name, factor)| format!("{name} x {factor}"));
        factors.fold("return".to_owned(), |text, factor| format!("{text}, {factor}"))
    }
}

/// The return of an episode under the factors of [`Objective::of`]; the very return where all are 1.
pub fn value(episode: &EpisodeResult, factors: &[f64]) -> f64 {
    let terms = episode.terms.iter().zip(factors);
    episode.return_ + terms.map(|(usd, factor)| usd * (1.0 - factor)).sum::<f64>()
}

/// Training episodes on which candidates are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Race {
    /// Seed of the episodes.
    pub seed: u64,
    /// Episodes of a block, from 2.
    pub block: usize,
    /// Blocks that a candidate plays at most.
    pub blocks: usize,
    /// Threads; they change nothing but the speed.
    pub threads: usize,
    /// What is compared.
    pub objective: Objective,
}

/// A candidate is given up where it is behind the best one by so many standard errors of the paired
/// difference.
const BEHIND: f64 = 1.5;

/// Remembers the returns of a block of episodes.
pub trait Journal {
    /// What a policy got in a block, if it is known.
    fn known(&self, policy: &str, block: usize) -> Option<Vec<f64>>;

    /// Keeps what a policy got in a block.
    fn keep(&mut self, policy: &str, block: usize, returns: &[f64]) -> Result<(), EvalError>;
}

/// A journal that remembers nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoJournal;

impl Journal for NoJournal {
    fn known(&self, _policy: &str, _block: usize) -> Option<Vec<f64>> {
        None
    }

    fn keep(&mut self, _policy: &str, _block: usize, _returns: &[f64]) -> Result<(), EvalError> {
        Ok(())
    }
}

/// Plays candidates on a scenario.
pub struct Judge<'a> {
    scenario: &'a Scenario,
    race: Race,
    journal: &'a mut dyn Journal,
    factors: Vec<f64>,
    /// Of the best candidate so far: its returns, block after block.
    best: Vec<f64>,
    /// Episodes played, without those that the journal knew.
    pub played: u64,
}

impl<'a> Judge<'a> {
    /// Before the first candidate.
    pub fn new(
        scenario: &'a Scenario,
        race: Race,
        journal: &'a mut dyn Journal,
    ) -> Result<Self, EvalError> {
        if race.block < 2 || race.blocks == 0 {
            let found = format!("{} of {}", race.blocks, race.block);
            return Err(EvalError::value("blocks", found, "at least 1 of at least 2 episodes"));
        }
        let factors = race.objective.of(scenario.world.spec())?;
        Ok(Self { scenario, race, journal, factors, best: Vec::new(), played: 0 })
    }

    /// Values of a block of episodes.
    fn block(&mut self, policy: &PolicySpec, block: usize) -> Result<Vec<f64>, EvalError> {
        let text = policy.to_string();
        if let Some(known) = self.journal.known(&text, block) {
            return Ok(known);
        }
        let Race { seed, block: episodes, threads, .. } = self.race;
        // 32 bits, which every generator takes.
        let seed = mix(seed, block as u64) >> 32;
        let plan = Plan { episodes, split: Split::Train, seed, threads };
        let played = run_policy(self.scenario, policy, plan, &|_| ())?;
        self.played += played.len() as u64;
        let values: Vec<f64> = played.iter().map(|episode| value(episode, &self.factors)).collect();
        self.journal.keep(&text, block, &values)?;
        Ok(values)
    }

    /// The mean of a candidate over all blocks, or minus infinity once it is clearly behind the best one.
    pub fn score(&mut self, policy: &PolicySpec) -> Result<f64, EvalError> {
        let mut values = Vec::new();
        for block in 0..self.race.blocks {
            values.extend(self.block(policy, block)?);
            if block + 1 < self.race.blocks && is_behind(&values, &self.best) {
                return Ok(f64::NEG_INFINITY);
            }
        }
        let score = mean(&values);
        if self.best.is_empty() || score > mean(&self.best) {
            self.best = values;
        }
        Ok(score)
    }

    /// The value of every episode of a policy, all blocks.
    pub fn values(&mut self, policy: &PolicySpec) -> Result<Vec<f64>, EvalError> {
        let blocks = (0..self.race.blocks).map(|block| self.block(policy, block));
        Ok(blocks.collect::<Result<Vec<_>, _>>()?.concat())
    }
}

/// Whether the first episodes are clearly worse than the best candidate's.
fn is_behind(values: &[f64], best: &[f64]) -> bool {
    if best.len() < values.len() {
        return false;
    }
    let pairs: Vec<f64> = values.iter().zip(best).map(|(a, b)| a - b).collect();
    let mean = mean(&pairs);
    let squares: f64 = pairs.iter().map(|pair| (pair - mean) * (pair - mean)).sum();
    let count = pairs.len() as f64;
    mean + BEHIND * (squares / (count * (count - 1.0))).sqrt() < 0.0
}

/// Where a search stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Candidates judged.
    pub candidates: usize,
    /// Candidates that will be judged, at most.
    pub of: usize,
    /// Episodes played.
    pub episodes: u64,
    /// Mean of the best so far, dollars.
    pub best_usd: f64,
}

/// Searches the best parameters, beginning with `starts`; see [`climb`].
pub fn search(
    scenario: &Scenario,
    starts: &[PolicySpec],
    (options, race): (&Climb, Race),
    journal: &mut dyn Journal,
    progress: &mut dyn FnMut(Step),
) -> Result<Found, EvalError> {
    let mut judge = Judge::new(scenario, race, journal)?;
    let mut failed = None;
    let params = starts.first().map_or(0, |start| start.params.len());
    let of = starts.len() + options.candidates_max(params);
    let mut step = Step { candidates: 0, of, episodes: 0, best_usd: f64::NEG_INFINITY };
    let found = climb(starts, options, &mut |policy, _| {
        let score = match &failed {
            None => judge.score(policy).unwrap_or_else(|error| {
                failed = Some(error);
                f64::NAN
            }),
            Some(_) => f64::NAN,
        };
        step.candidates += 1;
        step.episodes = judge.played;
        step.best_usd = step.best_usd.max(score);
        progress(step);
        score
    });
    match failed {
        Some(error) => Err(error),
        None => Ok(found?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Default)]
    struct Memory(BTreeMap<(String, usize), Vec<f64>>);

    impl Journal for Memory {
        fn known(&self, policy: &str, block: usize) -> Option<Vec<f64>> {
            self.0.get(&(policy.to_owned(), block)).cloned()
        }

        fn keep(&mut self, policy: &str, block: usize, returns: &[f64]) -> Result<(), EvalError> {
            assert!(self.0.insert((policy.to_owned(), block), returns.to_vec()).is_none());
            Ok(())
        }
    }

    const RACE: Race = Race {
        seed: 5,
        block: 4,
        blocks: 3,
        threads: 1,
        objective: Objective { factors: Vec::new() },
    };

    fn steady() -> Scenario {
        oncall_env::shipped("steady").unwrap()
    }

    fn starts() -> Vec<PolicySpec> {
        // Forty instances are far too many for a quiet day.
        let start = "target-tracking:min=40".parse().unwrap();
        vec![oncall_heuristics::registry::resolve(&start, "fleet", "steady").unwrap()]
    }

    fn climb_of(race: Race, journal: &mut dyn Journal) -> (Found, Step) {
        let options = Climb { wild: 2, sweeps: 1, steps: 6, ..Climb::new(1) };
        let mut last = None;
        let found = search(&steady(), &starts(), (&options, race), journal, &mut |step| {
            last = Some(step);
        });
        (found.unwrap(), last.unwrap())
    }

    #[test]
    fn finds_something_better_and_goes_on_where_it_was_broken_off() {
        let (found, last) = climb_of(RACE, &mut NoJournal);
        let mut nothing = NoJournal;
        let scenario = steady();
        let mut judge = Judge::new(&scenario, RACE, &mut nothing).unwrap();
        let began = judge.score(&starts()[0]).unwrap();
        assert!(found.score > began + 10.0, "{found:?} {began}");
        assert!((judge.score(&found.best).unwrap() - found.score).abs() < 1e-9);
        assert!(last.candidates == found.scored && last.candidates <= last.of);
        // Racing has spared something: else every candidate played all.
        assert!(last.episodes < (last.candidates * RACE.block * RACE.blocks) as u64);
        let mut memory = Memory::default();
        assert_eq!(climb_of(RACE, &mut memory).0, found);
        // Half of the journal is lost: that half is played again, and the same comes out.
        let half = memory.0.len() / 2;
        let mut kept = Memory(memory.0.into_iter().take(half).collect());
        let (again, step) = climb_of(Race { threads: 2, ..RACE }, &mut kept);
        assert_eq!(again, found);
        assert!(step.episodes > 0 && step.episodes < last.episodes);
    }

    #[test]
    fn a_term_can_be_left_out() {
        let scenario = steady();
        let of = |objective| {
            let mut nothing = NoJournal;
            let race = Race { objective, ..RACE };
            Judge::new(&scenario, race, &mut nothing).map(|mut judge| judge.values(&starts()[0]))
        };
        let all = of(Objective::default()).unwrap().unwrap();
        let free = of(Objective::without("fleet_usd")).unwrap().unwrap();
        assert_eq!(all.len(), RACE.block * RACE.blocks);
        assert!(all.iter().zip(&free).all(|(all, free)| *free > *all + 10.0), "{all:?} {free:?}");
        let error = of(Objective::without("nothing")).err().unwrap().to_string();
        assert!(error.starts_with("term = nothing: expected one of fleet_usd, "), "{error}");
        let half = [("fleet_usd".to_owned(), 0.5)];
        let half = of(Objective::default().with(&half).with(&half)).unwrap().unwrap();
        for ((all, free), half) in all.iter().zip(&free).zip(&half) {
            assert!((half - (0.25 * all + 0.75 * free)).abs() < 1e-9);
        }
        let negative = Objective { factors: vec![("fleet_usd".to_owned(), -1.0)] };
        let error = of(negative).err().unwrap().to_string();
        assert_eq!(error, "fleet_usd = -1: expected a factor from 0");
    }

    #[test]
    fn who_is_clearly_behind_is_given_up() {
        assert!(is_behind(&[-3.0, -4.0, -3.5], &[-1.0, -2.0, -1.6, 9.0]));
        assert!(!is_behind(&[-3.0, -1.0, -3.5], &[-1.0, -4.0, -1.6]));
        assert!(!is_behind(&[-3.0, -4.0], &[]), "nobody is best yet");
        assert!(!is_behind(&[1.0, 1.0], &[1.0, 1.0]));
        let scenario = steady();
        let mut nothing = NoJournal;
        let error = Judge::new(&scenario, Race { block: 1, ..RACE }, &mut nothing).err().unwrap();
        assert_eq!(
            error.to_string(),
            "blocks = 3 of 1: expected at least 1 of at least 2 episodes"
        );
    }
}
