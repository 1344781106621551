//! One episode, minute by minute: what `run` writes and `report` draws.

use oncall_core::{DialKind, Spec, Split};
use oncall_env::{
    Actions, AnyVecEnv, Autoreset, EpisodeStats, Options, OwnedColumns, Scenario, Seeds,
};
use oncall_eval::measures;
use oncall_eval::metrics::{Measures, Outcome, table};
use oncall_heuristics::{Policy, PolicyKey};

/// Who turns the dials.
pub(crate) enum Driver {
    /// A policy.
    Policy(Box<dyn Policy>),
    /// Rows of natural values, one a minute, NaN where a dial is left alone.
    Rows(Vec<Vec<f64>>),
}

impl Driver {
    /// The policy of that text, with the parameters tuned for the scenario.
    pub(crate) fn policy(text: &str, scenario: &Scenario) -> anyhow::Result<Self> {
        let spec = scenario.world.spec();
        Ok(Self::Policy(oncall_planner::build_policy(text, spec, &scenario.name)?))
    }

    fn begin(&mut self, seed: u64, scenario: &str) {
        if let Driver::Policy(policy) = self {
            policy.reset(PolicyKey { seed, episode: 0 });
            policy.told(scenario);
        }
    }

    /// The action of a minute, given what the operator saw.
    fn act(&mut self, spec: &Spec, minute: usize, signals: &[f64], action: &mut [f64]) {
        match self {
            Driver::Policy(policy) => policy.act(signals, action),
            Driver::Rows(rows) => match rows.get(minute) {
                Some(row) => action.copy_from_slice(row),
                // The dials stand as the last row left them.
                None => action.fill(f64::NAN),
            },
        }
        for (value, dial) in action.iter_mut().zip(&spec.dials) {
            if dial.kind == DialKind::Press && value.is_nan() {
                *value = 0.0;
            }
        }
    }
}

/// Which episode.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Which {
    pub(crate) seed: u64,
    pub(crate) split: Split,
    /// Length in the place of the scenario's.
    pub(crate) minutes: Option<u32>,
}

/// A played minute.
#[derive(Debug)]
pub(crate) struct Minute<'a> {
    /// Its number, from 0.
    pub(crate) index: u32,
    /// In the order of the spec, natural units.
    pub(crate) signals: &'a [f64],
    /// The dials as they stood.
    pub(crate) dials: &'a [f64],
    /// The action; presses show here.
    pub(crate) action: &'a [f64],
    /// Dollars.
    pub(crate) terms: &'a [f64],
    /// Dollars.
    pub(crate) reward: f64,
}

/// What is known of an episode when it is over.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) stats: EpisodeStats,
    /// In a world with a pager.
    pub(crate) incident: Option<Outcome>,
    /// The world's metrics by name.
    pub(crate) metrics: Vec<(&'static str, f64)>,
    /// What was drawn, truths included.
    pub(crate) drawn: Vec<(String, f64)>,
    /// Hash of the last state: equal for equal trajectories.
    pub(crate) digest: u64,
    /// Of a mixture, the scenario that was drawn.
    pub(crate) variant: String,
}

/// A shift that has begun: everything that can be wrong with what was asked has been checked.
#[derive(Debug)]
pub(crate) struct Shift {
    env: AnyVecEnv,
    spec: Spec,
    measures: Measures,
    columns: OwnedColumns,
    seed: u64,
}

impl Shift {
    /// The seed that replays it.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Begins a shift. Refuses seeds and lengths that the engine refuses.
    pub(crate) fn begin(scenario: &Scenario, which: Which) -> anyhow::Result<Self> {
        let options = Options {
            autoreset: Autoreset::Disabled,
            split: which.split,
            max_minutes: which.minutes,
            ..Options::default()
        };
        let mut env = AnyVecEnv::new(scenario.world.clone(), 1, options)?;
        let mut columns = env.columns();
        env.reset(Seeds::Rows(&[Some(which.seed)]), None, &mut columns.borrow_reset())?;
        let (spec, measures) = (env.spec().clone(), measures(env.spec())?);
        Ok(Self { spec, measures, env, columns, seed: which.seed })
    }

    /// Plays it to its end and shows every minute to `each`.
    pub(crate) fn play(
        self,
        driver: &mut Driver,
        mut each: impl FnMut(&Minute<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Ending> {
        let Self { mut env, spec, measures, mut columns, seed } = self;
        driver.begin(seed, env.scenario_of(0));
        let mut watch = measures.watch();
        let mut action = vec![0.0; spec.dials.len()];
        let mut dials = action.clone();
        let (drawn, variant) = (env.drawn(0), env.scenario_of(0).to_owned());
        let mut minute = 0;
        while !env.row(0).ended {
            driver.act(&spec, minute as usize, &columns.signals, &mut action);
            env.step(Actions::Policy(&action), &mut columns.borrow())?;
            env.dials(0, &mut dials)?;
            watch.step(&measures, &columns.signals);
            each(&Minute {
                index: minute,
                signals: &columns.signals,
                dials: &dials,
                action: &action,
                terms: &columns.terms,
                reward: columns.rewards[0],
            })?;
            minute += 1;
        }
        let names = table(spec.world).iter().map(|metric| metric.name);
        Ok(Ending {
            stats: env.episode_stats(0),
            incident: watch.outcome(&measures),
            metrics: names.zip(watch.metrics(&measures)).collect(),
            drawn,
            digest: env.digest(0),
            variant,
        })
    }
}

/// A seed that nobody chose: 32 random bits, so that it is easily typed again and fits every
/// generator. The standard library seeds its hash maps from the system's entropy.
pub(crate) fn random_seed() -> u64 {
    use std::hash::{BuildHasher as _, Hasher as _};
    std::collections::hash_map::RandomState::new().build_hasher().finish() >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_seeds_differ_and_are_short() {
        let seeds: Vec<u64> = (0..4).map(|_| random_seed()).collect();
        assert!(seeds.iter().all(|&seed| u32::try_from(seed).is_ok()));
        assert!(seeds.windows(2).any(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn rows_hold_but_presses_do_not() {
        let scenario = oncall_env::shipped("steady").unwrap();
        let spec = scenario.world.spec();
        let mut row: Vec<f64> = spec.dials.iter().map(|_| f64::NAN).collect();
        let press = spec.dials.iter().position(|dial| dial.kind == DialKind::Press).unwrap();
        let count = spec.dials.iter().position(|dial| dial.kind == DialKind::Count).unwrap();
        (row[press], row[count]) = (1.0, 20.0);
        let mut driver = Driver::Rows(vec![row]);
        let mut seen = Vec::new();
        let which = Which { seed: 1, split: Split::Train, minutes: Some(5) };
        let shift = Shift::begin(&scenario, which).unwrap();
        let ending = shift.play(&mut driver, |minute| {
            seen.push((minute.action[press], minute.dials[count]));
            Ok(())
        });
        assert_eq!(seen[0], (1.0, 20.0));
        assert_eq!(seen[1..], [(0.0, 20.0); 4]);
        assert_eq!(ending.unwrap().stats.minutes, 5);
    }
}
