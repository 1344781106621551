//! The catalog: who claims to run where (R18). One [`CatalogShard`] for each consistency group of a region.
//!
//! A shard changes through committed log entries only, and one entry does the same on every replica: what it does
//! depends on the entry, its term and the shard, never on the clock of whoever applies it. The checks, in this
//! order: the shard keeps the cell; the source may ask for this; the generation is the one on record (I7); a
//! repeated request is "already so"; the record has not moved since the decider read it; the term is the current
//! one (expiries, D11); the table of transitions has the row (D13). Everything else is refused and audited, and
//! changes nothing.
//!
//! D13 leaves out how a starting, unhealthy or expired instance leaves. Three rows are added for it, see
//! `docs/decisions/0005-transitions-of-the-catalog.md`.

mod apply;
mod audit;
mod command;
mod index;
mod shard;
mod table;

#[cfg(test)]
mod fence_model;
#[cfg(test)]
mod machine_tests;
#[cfg(test)]
mod tests;

pub use audit::AuditLog;
pub use command::{Command, Entry, Registration};
pub use shard::{CatalogOut, CatalogShard, CellHead, CellView, RestoreError};
pub use table::{legal, may_move, may_register};
