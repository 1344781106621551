//! What the catalog says when something was accepted or refused.

use serde::{Deserialize, Serialize};

use super::{
    Cell, Endpoint, Generation, Incarnation, InstanceId, Reason, Revision, Source, State, Term,
    Time,
};

/// One accepted transition (R55).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Transition {
    /// Where.
    pub cell: Cell,
    /// Who.
    pub instance: InstanceId,
    /// Which life of it.
    pub generation: Generation,
    /// State before; `None` for an instance that the catalog did not know.
    pub from: Option<State>,
    /// State after.
    pub to: State,
    /// Why.
    pub reason: Reason,
    /// On whose word.
    pub source: Source,
    /// The cell's revision after it.
    pub revision: Revision,
    /// When it was accepted: committed, on the clock of whoever applied it first. The 3-second clock starts here (R34).
    pub time: Time,
}

/// What happened to a cell's routable set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Change {
    /// Became routable.
    Added(Endpoint),
    /// Is routable no longer. The endpoint as it was.
    Removed(Endpoint),
    /// Stays routable, with another weight: before and after.
    Changed(Endpoint, Endpoint),
}

/// One change of a cell's routable set: what the distribution tier consumes.
///
/// These chain: `from` is the `to` of the update before, or revision 0 at the start of an incarnation. Revisions
/// in between belong to transitions that did not touch the routable set (a registration, say); no head ever
/// names them, so a proxy that is at `to` is up to date until the next update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CellUpdate {
    /// Which cell.
    pub cell: Cell,
    /// Life of the shard's history.
    pub incarnation: Incarnation,
    /// Head of the cell before.
    pub from: Revision,
    /// Head of the cell after.
    pub to: Revision,
    /// What changed.
    pub change: Change,
    /// Why: whether a removal was deliberate decides its clock.
    pub reason: Reason,
    /// Size of the routable set after.
    pub count: u32,
    /// Checksum of the routable set after; see [`Endpoint::fingerprint`].
    pub checksum: u64,
    /// When it was accepted.
    pub accepted: Time,
}

/// What became of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum Verdict {
    /// It changed the catalog.
    #[error("accepted")]
    Accepted,
    /// It asks for what is already so (same generation, same state): a repeated message. Nothing changed.
    #[error("already so")]
    AlreadySo,
    /// generation: older than the one on record, which is what a message of a replaced process looks like.
    #[error("generation: older than the one on record")]
    OldGeneration,
    /// generation: newer than the one on record, but only a registration may introduce one.
    #[error("generation: never registered")]
    UnknownGeneration,
    /// instance: not known, and this command does not introduce it.
    #[error("instance: not known")]
    UnknownInstance,
    /// generation.start: not newer than what was swept from the tombstones, so it may be a ghost.
    #[error("generation.start: at or below the floor of swept tombstones")]
    BelowFloor,
    /// cell: the instance belongs to another cell, or the cell to another shard.
    #[error("cell: the instance belongs to another, or the shard does not keep it")]
    WrongCell,
    /// expected: the record has moved on since the decider read it.
    #[error("expected: the record has another revision by now")]
    StaleRead,
    /// term: an expiry decided by a leader of another term.
    #[error("term: decided by the leader of another term")]
    StaleTerm,
    /// to: the table of transitions has no such row.
    #[error("to: no such transition from the present state")]
    IllegalTransition,
    /// source: not one that may ask for this transition.
    #[error("source: may not ask for this transition")]
    WrongSource,
    /// address: held by a routable instance that started later.
    #[error("address: held by a routable instance that started later")]
    AddressTaken,
    /// weight: must be at least 1.
    #[error("weight: 0; expected at least 1")]
    ZeroWeight,
}

impl Verdict {
    /// Whether the catalog changed.
    pub const fn accepted(self) -> bool {
        matches!(self, Self::Accepted)
    }
}

/// One line of the audit log (R124): every command, accepted or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AuditEntry {
    /// Number of the line since the shard began.
    pub sequence: u64,
    /// When the leader proposed it.
    pub proposed: Time,
    /// Term of the log entry.
    pub term: Term,
    /// On whose word.
    pub source: Source,
    /// About whom.
    pub instance: InstanceId,
    /// Which life of it, as the command said.
    pub generation: Generation,
    /// State before, if it was known.
    pub from: Option<State>,
    /// State asked for.
    pub to: State,
    /// Why.
    pub reason: Reason,
    /// What became of it.
    pub verdict: Verdict,
    /// The cell's revision after it; 0 if the cell is unknown.
    pub revision: Revision,
}
