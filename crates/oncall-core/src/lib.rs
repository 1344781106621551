//! The contract between worlds and the engine that steps them.
//!
//! A *world* is a deterministic simulation that an operator steers with *dials*. It owns its
//! dynamics and its money, and nothing else: no clock, no files, no threads, no generator state,
//! and no idea of truncation, batches, observations as `f32`, or Python.
//!
//! **The determinism promise.** Everything random is a pure function of
//! `(seed, split, episode number, purpose, minute)`; see [`streams`]. A trajectory therefore does
//! not depend on the number of threads, on the batch size, on the other rows of a batch, or on
//! what was played before.
//!
//! **Units.** Natural units everywhere, named by suffix (`_min`, `_s`, `_ms`, `_rps`, `_usd`,
//! `_usd_h`); shares are 0..1. All state is `f64`. Only [`spec::Signal::scale`] makes an `f32`.
#![cfg_attr(
    not(test),
    warn(clippy::disallowed_methods, clippy::disallowed_types, clippy::float_cmp)
)]

pub mod digest;
pub mod draw;
pub mod field;
pub mod isa;
pub mod math;
pub mod mixture;
pub mod policy;
pub mod scaler;
pub mod spec;
pub mod streams;
pub mod world;

pub use digest::{Digest, fnv1a, hex};
pub use draw::{Dist, Sampled};
pub use field::Field;
pub use policy::{Policy, PolicyKey};
pub use scaler::{RowScaler, Scaler};
pub use spec::{Dial, DialKind, Scale, Signal, Spec, Term, View};
pub use streams::{EpisodeKey, Generator, Split, Stream};
pub use world::{LoadError, Words, World};
