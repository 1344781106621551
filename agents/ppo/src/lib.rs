//! Proximal policy optimisation (Schulman et al. 2017) of the operator's dials.
//!
//! | file | what is in it |
//! |---|---|
//! | [`config`] | every hyper-parameter, with what it does |
//! | [`params`] | the networks as one flat row of numbers, and where they start |
//! | [`collect`] | roll-outs: rows played on threads with the plain forward pass |
//! | [`hindsight`] | what was drawn for an episode, for the critic alone |
//! | [`rules`] | a rule beside the actor, a copy for each row |
//! | [`teacher`] | a rule to start from, whose decisions are repeated |
//! | [`adam`] | the optimiser |
//! | [`checkpoint`] | everything that a training needs to go on, in one file |
//! | [`evaluate`](mod@evaluate) | mean return of a policy on fresh training episodes |
//! | [`log`] | the CSV of a training |
//! | [`events`] | the event file of `TensorBoard` |
//! | [`curve`] | the learning curve as a picture |
//! | [`records`] | these three together |
//! | [`versus`] | trained weights against rules on the same episodes |
//! | `update` | loss and gradient; the only file that calls libtorch |
//! | `train` | the loop |
//!
//! The last two need the feature `torch`. Everything else is plain Rust: libtorch is asked for one
//! thing, the gradient of the loss for given parameters and samples, and keeps no state.
//!
//! **Determinism.** A training follows from its scenario, configuration and seed. Rows draw from
//! streams of their own, minibatches are cut into a fixed number of shards whose gradients are added
//! in order, and each shard runs on one of libtorch's threads, so the number of threads changes no
//! bit. Across processors nothing is promised, since libtorch chooses its kernels by what they can do.

pub mod adam;
pub mod checkpoint;
pub mod collect;
pub mod config;
pub mod curve;
pub mod evaluate;
pub mod events;
pub mod hindsight;
pub mod log;
pub mod params;
pub mod records;
pub mod rules;
pub mod teacher;
#[cfg(feature = "torch")]
pub mod train;
#[cfg(feature = "torch")]
pub mod update;
pub mod versus;
