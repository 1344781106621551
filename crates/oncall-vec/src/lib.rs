//! The vector engine: many environments of one world, stepped by one call.
//!
//! [`VecEnv`] owns the blocks of a [`World`](oncall_core::World) and, for each environment (a
//! *row*), what a world must not know: seed, episode number, length of the shift, sums of the
//! episode, and whether the episode is over. A step
//!
//! 1. checks every length, every action and the order of calls, and only then changes anything;
//! 2. begins a new episode in the rows whose last one is over (next-step mode);
//! 3. plays `decision_interval_min` minutes in all others, as far as their episode goes;
//! 4. truncates at the end of the shift, keeps the last observation, and begins a new episode at
//!    once in same-step mode;
//! 5. writes the scaled observation, the reward and whatever other columns were asked for.
//!
//! Results go into slices of the caller ([`Columns`]), borrowed for one call. With one thread a step
//! allocates nothing.
//!
//! **What this crate does not know:** any concrete world, files, clocks, entropy (callers bring the
//! seeds), and Python.
//!
//! **Determinism.** A row's trajectory follows from its seed, its episode number and its actions.
//! Threads, batch size, position in the batch and the other rows change no bit of it. Threads are
//! the engine's own, made at the first step that is worth them; see [`Options::threads`].
//!
//! **Errors.** [`VecError`] names the argument, the value and what was expected. After an error
//! nothing has changed. A row number beyond the batch is an error where a method returns a `Result`
//! and a panic, as with any index, where it does not.
#![warn(clippy::disallowed_methods, clippy::disallowed_types)]

mod actions;
mod autoreset;
mod columns;
mod engine;
mod error;
mod limit;
mod observe;
mod options;
mod pace;
mod pool;
mod row;
mod save;
mod seeds;
mod settle;
mod snapshot;
mod table;
mod vec_env;

pub use actions::Actions;
pub use autoreset::Autoreset;
pub use columns::{Columns, OwnedColumns, ResetColumns};
pub use error::{ErrorKind, VecError};
pub use options::{
    DECISION_INTERVAL_MIN_MAX, EPISODE_MINUTES_MAX, NUM_ENVS_MAX, Options, THREADS_MAX,
};
pub use row::{EpisodeStats, RowInfo};
pub use seeds::Seeds;
pub use snapshot::Snapshot;
pub use vec_env::{StepSummary, VecEnv};

#[cfg(test)]
#[path = "../tests/common/mod.rs"]
mod toy;
