//! Rule-based policies of the worlds: the bar that a learned agent has to pass.
//!
//! A [`Policy`] is a rule that an operator could follow: it reads the operator's dashboard in natural
//! units and turns the dials. Every policy has a name, and a table of parameters with ranges
//! ([`describe`]); `tune` searches the table on training seeds, and what it found is shipped in
//! `tuned.json`.
//!
//! ```
//! use oncall_heuristics::{PolicyKey, PolicySpec, build_for};
//!
//! let spec: PolicySpec = "hpa:target=0.5,min=6".parse()?;
//! let mut policy = build_for(&spec, &oncall_fleet::world::spec(), "spike")?;
//! policy.reset(PolicyKey { seed: 7, episode: 0 });
//! let signals = vec![0.0; oncall_fleet::signals::COUNT];
//! let mut action = [f64::NAN; oncall_fleet::dials::index::COUNT];
//! policy.act(&signals, &mut action);
//! # Ok::<(), oncall_heuristics::PolicyError>(())
//! ```
//!
//! | file | what is in it |
//! |---|---|
//! | [`param`] | a parameter: name, unit, range |
//! | [`spec`] | a policy by name with parameters, parsed and printed; errors |
//! | [`registry`] | the list of all policies; building one |
//! | [`tuned`] | the shipped parameters |
//! | [`tune`] | the search |
//! | `policies` | the short rules |
//! | `runbook` | the reactive on-call rule of the fleet |
//! | `discovery` | the policies of the discovery world |

// The specification's numbers are exact, and tests compare what must be equal to the bit.
#![cfg_attr(test, expect(clippy::float_cmp, reason = "equal to the bit is what is meant"))]

mod board;
mod discovery;
pub mod param;
mod policies;
pub mod registry;
mod runbook;
pub mod spec;
pub mod tune;
pub mod tuned;

pub use oncall_core::{Policy, PolicyKey};
pub use param::Param;
pub use policies::trained::player;
pub use registry::{Description, build, build_for, describe, names, names_for};
pub use spec::{PolicyError, PolicySpec};
