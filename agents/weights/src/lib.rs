//! Trained policies without a machine-learning library: a reader of weights, a forward pass in plain
//! Rust, and a [`Policy`](oncall_core::Policy) that plays them.
//!
//! | file | what is in it |
//! |---|---|
//! | [`network`] | fully connected layers; the bits of a row do not depend on the batch |
//! | [`math`] | `exp` and `tanh` in single precision, the same everywhere |
//! | [`heads`] | the action's categorical distributions: sampling, the likeliest stop, log-probability |
//! | [`file`](mod@file) | weights with their metadata, as safetensors |
//! | [`shipped`] | the weights that come with the project |
//! | [`policy`] | from the dashboard to the dials |
//!
//! **Determinism.** Every output is a sum over the inputs in their order, without fused
//! multiply-adds. One row or four thousand, with or without AVX2: the same bits.

pub mod file;
pub mod heads;
pub mod math;
pub mod network;
pub mod policy;
pub mod shipped;

pub use file::{Meta, Weights, WeightsError};
pub use heads::{Grid, Heads};
pub use network::{Mlp, Scratch};
pub use policy::{Mode, PpoPolicy};
