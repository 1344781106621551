//! What a user chooses when an engine is built.

use crate::autoreset::Autoreset;
use crate::error::VecError;
use oncall_core::{Split, View};

/// Most environments in one engine.
pub const NUM_ENVS_MAX: usize = 1 << 20;

/// Most threads of one engine.
pub const THREADS_MAX: usize = 256;

/// Longest decision interval, ticks: a day of the fleet.
pub const DECISION_INTERVAL_MIN_MAX: u32 = 1440;

/// Longest episode that `max_minutes` may ask for: ten years.
pub const EPISODE_MINUTES_MAX: u32 = 10 * 365 * 1440;

/// How an engine steps its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What happens when an episode ends.
    pub autoreset: Autoreset,
    /// Which signals the observation holds: operator or full.
    pub view: View,
    /// Ticks of the world that one action stands, 1..=1440: minutes of the fleet, tens of seconds of
    /// discovery (see `Spec::tick_s`). Presses happen in the first of them.
    pub decision_interval_min: u32,
    /// Training or test episodes.
    pub split: Split,
    /// Threads that step a batch, the caller's included, 1..=256. One steps inline, without a pool;
    /// so do batches too small to be worth a hand-over (rows x signals x minutes below 8192).
    /// A batch that is worth it is stepped in whichever way was faster lately, so that a busy
    /// neighbour does not make many threads slower than one. Changes the speed and nothing else.
    pub threads: usize,
    /// Length of an episode in the place of the scenario's, in minutes whatever a tick is; may be
    /// longer than it.
    pub max_minutes: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            autoreset: Autoreset::default(),
            view: View::Operator,
            decision_interval_min: 1,
            split: Split::Train,
            threads: 1,
            max_minutes: None,
        }
    }
}

impl Options {
    /// Checks every option and the number of environments.
    pub(crate) fn check(&self, num_envs: usize, tick_s: u32) -> Result<(), VecError> {
        if !(1..=NUM_ENVS_MAX).contains(&num_envs) {
            return Err(VecError::option("num_envs", num_envs, format!("1..={NUM_ENVS_MAX}")));
        }
        if self.view == View::Record {
            return Err(VecError::option("view", self.view.name(), "operator or full"));
        }
        if !(1..=DECISION_INTERVAL_MIN_MAX).contains(&self.decision_interval_min) {
            let (name, unit) = interval_name(tick_s);
            return Err(VecError::option(
                name,
                u64::from(self.decision_interval_min) * u64::from(unit),
                format!("{unit}..={}", DECISION_INTERVAL_MIN_MAX * unit),
            ));
        }
        check_threads(self.threads)?;
        match self.max_minutes {
            Some(minutes) if !(1..=EPISODE_MINUTES_MAX).contains(&minutes) => {
                Err(VecError::option("max_minutes", minutes, format!("1..={EPISODE_MINUTES_MAX}")))
            }
            _ => Ok(()),
        }
    }
}

/// What a decision interval is called in a world of such ticks, and what one tick counts there:
/// minutes if a tick is one, else seconds.
pub(crate) fn interval_name(tick_s: u32) -> (&'static str, u32) {
    if tick_s == 60 { ("decision_interval_min", 1) } else { ("decision_interval_s", tick_s) }
}

/// Checks a number of threads.
pub(crate) fn check_threads(threads: usize) -> Result<(), VecError> {
    if (1..=THREADS_MAX).contains(&threads) {
        return Ok(());
    }
    Err(VecError::option("threads", threads, format!("1..={THREADS_MAX}")))
}
