//! Policies of the discovery world.
//!
//! | file | what is in it |
//! |---|---|
//! | `desk` | reading the signals by name |
//! | `setting` | one setting of all dials: `default`, `static`, `oracle` |
//! | `operator` | the scripted operator, by the pattern of the symptoms |

mod desk;
pub(crate) mod operator;
pub(crate) mod setting;

use oncall_core::Spec;
use std::sync::LazyLock;

/// The spec of the world.
pub(crate) static SPEC: LazyLock<Spec> = LazyLock::new(oncall_discovery_env::spec);
