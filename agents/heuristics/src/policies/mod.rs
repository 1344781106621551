//! The short rules.

pub(crate) mod cheats;
pub(crate) mod fixed;
pub(crate) mod hpa;
pub(crate) mod open_loop;
pub(crate) mod random;
pub(crate) mod trained;

#[cfg(test)]
pub(crate) mod testing;
