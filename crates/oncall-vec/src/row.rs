//! What the engine keeps for each environment, apart from the state of its world.

use crate::autoreset::Status;

/// One environment, as it is saved and copied; the engine keeps its rows as a
/// [`Table`](crate::table::Table). The sums of its reward terms lie beside it.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Row {
    pub(crate) status: Status,
    /// Minutes after which the episode is truncated.
    pub(crate) length_min: u32,
    /// The cost signal when it was last observed; a step's cost is how far it falls.
    pub(crate) level: f64,
    /// The episode that runs, or has just ended.
    pub(crate) current: Tally,
    /// The last episode that ended; all zero before one has.
    pub(crate) last: Tally,
}

/// Which episode it is, and its sums so far.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Tally {
    pub(crate) seed: u64,
    pub(crate) episode: u64,
    pub(crate) return_: f64,
    pub(crate) cost: f64,
    pub(crate) steps: u32,
    pub(crate) minutes: u32,
}

impl Tally {
    pub(crate) fn stats(&self, terms: Vec<f64>) -> EpisodeStats {
        EpisodeStats {
            return_: self.return_,
            steps: self.steps,
            minutes: self.minutes,
            terms,
            cost: self.cost,
            seed: self.seed,
            episode: self.episode,
        }
    }
}

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RowInfo {
    /// Seed of the row.
    pub seed: u64,
    /// Number of the episode since the row was seeded, from 0.
    pub episode: u64,
    /// Ticks of the world played of this episode; minutes of the fleet.
    pub minute: u32,
    /// Ticks after which it is truncated.
    pub length_min: u32,
    /// Whether the next step begins a new episode and ignores the row's action.
    pub pending: bool,
    /// Whether the episode is over.
    pub ended: bool,
}

/// Sums over an episode.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct EpisodeStats {
    /// Sum of rewards, dollars.
    pub return_: f64,
    /// Decisions taken.
    pub steps: u32,
    /// Ticks of the world played; minutes of the fleet.
    pub minutes: u32,
    /// Sum of each reward term in the order of the spec, dollars.
    pub terms: Vec<f64>,
    /// Error budget burned, the fall of the spec's cost signal.
    pub cost: f64,
    /// Seed of the row in that episode.
    pub seed: u64,
    /// Number of the episode since the row was seeded, from 0.
    pub episode: u64,
}
