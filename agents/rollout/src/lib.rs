//! What lies between playing and learning, on plain slices, without any machine-learning library.
//!
//! | file | what is in it |
//! |---|---|
//! | [`buffer`] | a roll-out: what some rows saw, did and got for some steps, row by row |
//! | [`gae`] | advantages; a terminated episode is worth nothing more, a truncated one is |
//! | [`normal`] | running mean and spread: of discounted returns, and of observations |
//!
//! Everything is deterministic: sums run in a fixed order, whoever played the rows.

pub mod buffer;
pub mod gae;
pub mod normal;

pub use buffer::{End, Part, Rollout, Shape};
pub use gae::{Discount, advantages};
pub use normal::{Affine, Moments, ReturnScale};
