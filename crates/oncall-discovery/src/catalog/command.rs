//! What can be written into a shard's log.

use serde::{Deserialize, Serialize};

use crate::types::{
    Address, Cell, Generation, InstanceId, Labels, NodeId, Place, Reason, Revision, Source, State,
    Term, Time,
};

/// A new process, or a known one that registers again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Registration {
    /// Service and region.
    pub cell: Cell,
    /// Stable id; it never changes its cell.
    pub instance: InstanceId,
    /// Process start and registration sequence.
    pub generation: Generation,
    /// Where it listens.
    pub address: Address,
    /// Region and zone; the region is the cell's.
    pub place: Place,
    /// Its machine.
    pub node: NodeId,
    /// Version of the software.
    pub version: u16,
    /// Share of traffic relative to the others; at least 1.
    pub weight: u16,
    /// Capability labels.
    pub labels: Labels,
    /// Whether a process that was through startup before is ready now; only a repeated registration may say so.
    pub ready: bool,
}

/// A command of a shard's log. Copying one is cheap, so a log of them is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Command {
    /// The first entry of a leader's term: from here on, only that term may expire leases.
    Barrier,
    /// A registration.
    Register(Registration, Source),
    /// A transition.
    Move {
        /// Who.
        instance: InstanceId,
        /// Which life of it.
        generation: Generation,
        /// State asked for.
        to: State,
        /// Why.
        reason: Reason,
        /// On whose word.
        source: Source,
        /// Revision of the record that the decider read; health must give it, others may.
        expected: Option<Revision>,
    },
    /// Another weight for a live instance.
    Weigh {
        /// Who.
        instance: InstanceId,
        /// Which life of it.
        generation: Generation,
        /// The weight; at least 1.
        weight: u16,
        /// On whose word: a controller's.
        source: Source,
    },
    /// The lease ran out.
    Expire {
        /// Who.
        instance: InstanceId,
        /// Which life of it.
        generation: Generation,
        /// Term of the leader that decided it.
        decided: Term,
    },
    /// The operator's setting of this number is in force from here on. The setting itself is kept beside the log; its
    /// place in the log is what makes a leader of any later term know it.
    Configure {
        /// Number of the setting.
        version: u32,
    },
    /// Forgets what left and started before this. Unknown instances that started before are refused from then on,
    /// so that forgetting does not open the fence.
    Sweep {
        /// Exclusive bound of `generation.start`.
        start_before: u32,
    },
}

/// A command with the time at which the leader proposed it. Replicas see the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Entry {
    /// When it was proposed, on the leader's clock.
    pub proposed: Time,
    /// The command.
    pub command: Command,
}
