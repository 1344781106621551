//! Paired evaluation: many episodes of several policies on the same mornings, and what they say.
//!
//! | file | what is in it |
//! |---|---|
//! | [`runner`] | plays episodes on rows and threads; the results depend on neither |
//! | [`evaluate`](fn@evaluate) | all policies on all scenarios |
//! | [`metrics`] | pages and minutes to mitigate, defined |
//! | [`stats`] | means, interquartile means, bootstrap intervals, what is asked over scenarios |
//! | [`score`] | the normalised score and its committed constants |
//! | [`report`] | everything summed up; the JSON, which is a stable format |
//! | [`planned`] | a policy against the planner, episode by episode |
//! | [`overall`] | performance profiles and pairs of policies, for drawings |
//! | [`table`] | the report for terminals |
//! | [`episodes`] | CSV, one row an episode |
//! | [`race`] | candidates on the same episodes, given up early; the search for a setting |
//! | [`cross`] | the best setting of each scenario in each other one |
//! | [`tune`] | the search for a policy's parameters, on training episodes |
//!
//! Of a concrete world this room knows the names of the signals that its metrics are made of, and who has
//! score 0 and 100. It opens no files.

// What must be equal to the bit is compared so.
#![cfg_attr(test, expect(clippy::float_cmp, reason = "equal to the bit is what is meant"))]

pub mod cross;
pub mod episodes;
mod error;
mod evaluate;
pub mod metrics;
pub mod overall;
pub mod planned;
pub mod race;
pub mod report;
pub mod runner;
pub mod score;
pub mod stats;
pub mod table;
pub mod tune;

pub use error::EvalError;
pub use evaluate::{Contender, MakePolicy, Progress, default_contenders, evaluate};
pub use oncall_core::hex;
pub use report::{PolicyEpisodes, Report, ScenarioEpisodes};
pub use runner::{
    EPISODES_MAX, EpisodeResult, Make, Plan, episode_minutes, measures, run_made, run_policy,
};
