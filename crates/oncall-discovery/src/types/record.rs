//! The endpoint record (R44 to R47) and its states (R48 to R54).

use serde::{Deserialize, Serialize};

use super::{
    Address, Cell, Generation, InstanceId, Labels, NodeId, Place, Revision, Term, Time, ZoneId,
};

/// State of an instance in the catalog. Only `Ready` is routable (R54).
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[repr(u8)]
pub enum State {
    /// Registered, not yet through startup and readiness. No traffic (R49).
    #[default]
    Starting = 0,
    /// Takes new traffic (R50).
    Ready = 1,
    /// No new requests; existing ones finish (R51).
    Draining = 2,
    /// An active or confirmed passive health decision (R52).
    Unhealthy = 3,
    /// Its lease was not renewed, or its address belongs to a newer instance (R53, R57).
    Expired = 4,
    /// Left. What remains of it is its generation, as a fence (R56).
    Gone = 5,
}

impl State {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Starting, Self::Ready, Self::Draining, Self::Unhealthy, Self::Expired, Self::Gone];

    /// Whether new requests may go there.
    pub const fn routable(self) -> bool {
        matches!(self, Self::Ready)
    }

    /// Whether the lease matters: neither expired nor gone.
    pub const fn leased(self) -> bool {
        !matches!(self, Self::Expired | Self::Gone)
    }

    /// Name as people write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "STARTING",
            Self::Ready => "READY",
            Self::Draining => "DRAINING",
            Self::Unhealthy => "UNHEALTHY",
            Self::Expired => "EXPIRED",
            Self::Gone => "gone",
        }
    }
}

/// Why a transition was asked for (R55).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Reason {
    /// A new process registered.
    Registered = 0,
    /// A known process registered again after its record had expired (D10).
    Reregistered = 1,
    /// Startup and readiness passed.
    Started = 2,
    /// A deploy, a scale-in or the instance itself withdraws: the 3-second clock.
    Withdrawn = 3,
    /// The node's agent reports that readiness fails: the 3-second clock.
    ReadinessReported = 4,
    /// Active probes failed: the 15-second clock.
    ProbesFailed = 5,
    /// Proxies in two zones complained and a probe agreed (D9): the 15-second clock.
    PassiveConfirmed = 6,
    /// Enough successes in a row.
    Recovered = 7,
    /// The lease ran out.
    LeaseExpired = 8,
    /// A newer process took over its id or its address (I8).
    Replaced = 9,
    /// The process exited.
    Exited = 10,
    /// The drain period is over.
    DrainOver = 11,
    /// The orchestrator cleared away what had expired.
    Cleared = 12,
    /// The controller set another weight; the state stays.
    Reweighted = 13,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 14] = [
        Self::Registered,
        Self::Reregistered,
        Self::Started,
        Self::Withdrawn,
        Self::ReadinessReported,
        Self::ProbesFailed,
        Self::PassiveConfirmed,
        Self::Recovered,
        Self::LeaseExpired,
        Self::Replaced,
        Self::Exited,
        Self::DrainOver,
        Self::Cleared,
        Self::Reweighted,
    ];

    /// Whether leaving READY for this reason starts the 3-second clock (D13).
    pub const fn deliberate(self) -> bool {
        matches!(self, Self::Withdrawn | Self::ReadinessReported)
    }
}

/// Who asked for a transition (R55): the identity that was checked, not a claim in a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The orchestrator's controller of the region.
    Controller,
    /// A node's agent, for instances on its node.
    Agent(NodeId),
    /// The workload itself, for its own record.
    Workload(InstanceId),
    /// The health decider of the shard's leader.
    Health,
    /// The lease keeper of the leader of that term.
    Leases(Term),
}

/// What the catalog knows of an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EndpointRecord {
    /// Service and region; the [`super::Directory`] has namespace, service and port name.
    pub cell: Cell,
    /// Stable id.
    pub instance: InstanceId,
    /// Process start and registration sequence.
    pub generation: Generation,
    /// Where it listens.
    pub address: Address,
    /// Region and zone.
    pub place: Place,
    /// Its machine.
    pub node: NodeId,
    /// Version of the software, as the orchestrator numbers them.
    pub version: u16,
    /// Share of traffic relative to the others; at least 1.
    pub weight: u16,
    /// Capability labels.
    pub labels: Labels,
    /// State.
    pub state: State,
    /// When the lease runs out, as far as the answering leader knows; [`Time::NEVER`] from a follower, which
    /// hears no renewals.
    pub lease_expiry: Time,
    /// Revision of the last transition.
    pub revision: Revision,
}

/// What a proxy needs to know of a routable instance. 32 bytes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Endpoint {
    /// Stable id.
    pub instance: InstanceId,
    /// Process start and registration sequence.
    pub generation: Generation,
    /// Where it listens.
    pub address: Address,
    /// Capability labels.
    pub labels: Labels,
    /// Its machine.
    pub node: NodeId,
    /// Version of the software.
    pub version: u16,
    /// Share of traffic relative to the others; at least 1.
    pub weight: u16,
    /// Zone within the cell's region.
    pub zone: ZoneId,
}

impl Endpoint {
    /// Hash of everything a proxy would use. The checksum of a set is the wrapping sum of these, so adding
    /// one and subtracting one keeps it up to date, in any order.
    pub fn fingerprint(&self) -> u64 {
        use oncall_core::streams::mix;
        let id = u64::from(self.instance.0) << 32 | u64::from(self.generation.start);
        let place = u64::from(self.address.ip) << 32
            | u64::from(self.address.port) << 16
            | u64::from(self.node.0);
        let rest =
            u64::from(self.version) << 32 | u64::from(self.weight) << 16 | u64::from(self.zone.0);
        let more = u64::from(self.generation.sequence) << 32 | u64::from(self.labels.bits());
        mix(mix(mix(id, place), rest), more)
    }

    /// Checksum of a set, from nothing. The empty set has zero.
    pub fn checksum<'a>(set: impl IntoIterator<Item = &'a Self>) -> u64 {
        set.into_iter().fold(0, |sum, endpoint| sum.wrapping_add(endpoint.fingerprint()))
    }
}

impl EndpointRecord {
    /// The part that proxies get.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint {
            instance: self.instance,
            generation: self.generation,
            address: self.address,
            labels: self.labels,
            node: self.node,
            version: self.version,
            weight: self.weight,
            zone: self.place.zone,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Label;

    #[test]
    fn the_fingerprint_covers_every_field() {
        let base = Endpoint { weight: 1, ..Endpoint::default() };
        let again = base.generation.again();
        let others = [
            Endpoint { instance: InstanceId(1), ..base },
            Endpoint { generation: Generation::first(1), ..base },
            Endpoint { generation: again, ..base },
            Endpoint { address: Address { ip: 1, port: 0 }, ..base },
            Endpoint { address: Address { ip: 0, port: 1 }, ..base },
            Endpoint { labels: Labels::NONE.with(Label::Track, 1).unwrap(), ..base },
            Endpoint { node: NodeId(1), ..base },
            Endpoint { version: 1, ..base },
            Endpoint { weight: 2, ..base },
            Endpoint { zone: ZoneId(1), ..base },
        ];
        let mut prints: Vec<u64> = others.iter().map(Endpoint::fingerprint).collect();
        prints.push(base.fingerprint());
        prints.sort_unstable();
        prints.dedup();
        assert_eq!(prints.len(), others.len() + 1);
        // The checksum of a set does not depend on its order, and the empty set has none.
        let backwards = others.iter().rev();
        assert_eq!(Endpoint::checksum(&others), Endpoint::checksum(backwards));
        assert_eq!(Endpoint::checksum([]), 0);
        assert!(size_of::<Endpoint>() <= 32);
    }
}
