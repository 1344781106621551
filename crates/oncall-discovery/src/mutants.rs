//! Faults that real systems had, behind switches that exist in tests only.
//!
//! A check that never fails shows nothing. Each switch takes one safeguard out; a test must then see the damage.
//! Without the feature `mutants` a [`Mutants`] holds nothing and every switch is off, so the safeguards cannot be
//! taken out by configuration.

use serde::{Deserialize, Serialize};

/// A safeguard that can be taken out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Mutant {
    /// The catalog does not compare generations: late messages of old processes count (eureka#98).
    ZombieResurrection = 0,
    /// The catalog lets a stepped-down leader's expiry through (etcd#12528).
    OldLeaderExpiry = 1,
    /// A new leader expires leases whose renewals only the old one heard.
    NoGraceAfterLeaderChange = 2,
    /// The capacity guard rounds up and counts what is left instead of what was there.
    GuardRounding = 3,
    /// A prober that sees everything fail is believed (kubernetes#45126).
    NoProberQuarantine = 4,
    /// The catalog does not look at the revision that a decider read (kubernetes#99345).
    StaleCompareAndSet = 5,
    /// A newer instance does not displace the older one at its address.
    SharedAddress = 6,
    /// Complaints of proxies alone make an instance unhealthy.
    PassiveAlone = 7,
    /// A failing readiness restarts the process.
    ReadinessRestarts = 8,
    /// Writes of a single-writer service move without a transferred ownership.
    WriterWithoutToken = 9,
    /// Failover does not stop at the declared capacity.
    FailoverUncapped = 10,
    /// A revoked identity is accepted until its token expires.
    RevocationIgnored = 11,

    /// A bridging delta forgets what was removed in the meantime (istio#41494).
    ResumeIgnoresRemovals = 32,
    /// An empty snapshot replaces a set although it is not newer (nacos#4470).
    EmptySnapshotAccepted = 33,
    /// A delta is applied whatever it starts from.
    NonContiguousDelta = 34,
    /// A snapshot is added to the old set instead of replacing it.
    NonAtomicSnapshot = 35,
    /// Retention looks at the age alone, so that quiet time empties it.
    RetentionByTimeOnly = 36,
    /// Heads are never told: a lost delta that nothing follows stays lost (envoy#9800).
    NoHeartbeat = 37,
    /// The ejection cap looks at the number before the ejection (envoy#27066).
    EjectionCapBefore = 38,
    /// Failed checks never make a proxy leave its relay.
    NoRelaySwitch = 39,
    /// A lower incarnation is taken like any other (consul#8354).
    LowerIncarnationAccepted = 40,
    /// A removal waits as long as an addition.
    RemovalWaitsForAdditions = 41,
    /// A proxy routes to an older generation again (eureka#98).
    ProxyWithoutFence = 42,
    /// A failed check is repeated at once, for ever (envoy#4718).
    RejectWithoutBackOff = 43,
    /// Snapshots ignore the byte budget.
    NoSnapshotBudget = 44,
    /// Local health outlives the endpoint's removal (envoy#440).
    HealthBeatsRemoval = 45,
}

/// Which safeguards are out. Nothing at all without the feature `mutants`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Mutants {
    #[cfg(any(test, feature = "mutants"))]
    bits: u64,
}

impl Mutants {
    /// One safeguard out.
    #[cfg(any(test, feature = "mutants"))]
    pub const fn only(mutant: Mutant) -> Self {
        Self { bits: 1 << mutant as u8 }
    }

    /// Whether a safeguard is out.
    #[cfg(any(test, feature = "mutants"))]
    pub const fn has(self, mutant: Mutant) -> bool {
        self.bits >> mutant as u8 & 1 == 1
    }

    /// Whether a safeguard is out: never.
    #[cfg(not(any(test, feature = "mutants")))]
    pub const fn has(self, _: Mutant) -> bool {
        false
    }
}
