//! The buffer that components write into: messages, timers, metrics. The caller empties and reuses it.

use serde::{Deserialize, Serialize};

use super::{InstanceId, NodeId, ProberId, ProxyId, RegionId, RelayId, ShardId, Time};

/// Who a message goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Peer {
    /// The leader of a shard of a region, whoever that is.
    Catalog(RegionId, ShardId),
    /// A relay.
    Relay(RegionId, RelayId),
    /// A node proxy.
    Proxy(ProxyId),
    /// A node's agent.
    Agent(NodeId),
    /// A prober.
    Prober(RegionId, ProberId),
    /// A region's orchestrator controller.
    Controller(RegionId),
    /// The process itself.
    Instance(InstanceId),
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message<M> {
    /// To whom.
    pub to: Peer,
    /// What.
    pub body: M,
}

/// A wish to be called again. Timers are never cancelled: a component ignores one that no longer fits its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timer<T> {
    /// When.
    pub at: Time,
    /// With what.
    pub key: T,
}

/// What is counted or measured (R134 to R149). Counters unless said otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Accepted registrations (R134).
    Registrations,
    /// Instances renewed (R135).
    Renewals,
    /// Messages that renewals came in; aggregation is `Renewals` over this (R128).
    RenewalMessages,
    /// Renewals refused: unknown, old generation, wrong node, expired.
    RenewalsRefused,
    /// Commands that the catalog refused.
    WritesRefused,
    /// Commands that authorisation refused.
    AuthRefused,
    /// Expiries proposed by the lease keeper.
    ExpiriesProposed,
    /// READY to UNHEALTHY or back (R138).
    HealthFlaps,
    /// Milliseconds that a probe took, a value (R139).
    ProbeLatencyMs,
    /// Probes that failed.
    ProbeFailures,
    /// Removals that the capacity guard held back.
    GuardHeld,
    /// Verdicts thrown away because their prober is in quarantine.
    ProbesQuarantined,
    /// Decisions in which probers disagreed.
    ProbersDisagreed,
    /// Passive reports that did not reach a quorum.
    PassiveReports,
    /// Milliseconds from acceptance to apply at a proxy, a value (R140).
    WatchLagMs,
    /// Milliseconds since a proxy's snapshot was last confirmed, a value (R141).
    SnapshotAgeMs,
    /// Gaps that a proxy saw (R142).
    RevisionGaps,
    /// Gaps repaired by a bridging delta (D21).
    DeltaRepairs,
    /// Full snapshots after a gap, a failed check or lost retention (R143).
    SnapshotFallbacks,
    /// Snapshots or deltas whose checksum did not match.
    ChecksumRejects,
    /// Connection attempts of proxies (R144).
    Reconnects,
    /// Connections refused by admission.
    ConnectsRefused,
    /// Deltas sent.
    DeltasSent,
    /// Bytes of deltas sent.
    DeltaBytes,
    /// Bytes of snapshots sent.
    SnapshotBytes,
    /// Heads sent in heartbeats.
    HeadsSent,
    /// New requests to removed endpoints (R145).
    StaleRequests,
    /// Connection failures to stale endpoints (R146).
    StaleConnectFailures,
    /// Explicit no-backend results (R147).
    NoBackend,
    /// Results refused by policy.
    PolicyRefused,
    /// Requests refused because the peer's identity is revoked (R41).
    AuthRefusedRequests,
    /// Endpoints ejected locally.
    Ejections,
    /// Retries.
    Retries,
    /// Requests routed to another region.
    CrossRegion,
    /// Requests cut at the end of the drain period (R149).
    ForcedTerminations,
    /// Snapshots that became older than the normal age budget (R94).
    SnapshotAgeAlerts,
    /// Messages from an older life of a history, refused.
    ForksRefused,
    /// Empty snapshots refused because they were not newer.
    EmptySnapshotsRefused,
    /// Endpoints that a proxy does not route to because it has seen a newer generation of them.
    FencedEndpoints,
    /// Proxies that left a relay because of what it sent.
    RelaySwitches,
    /// Streams given up because nothing came for too long.
    SilentStreams,
    /// Heads told in a heartbeat that the reader had not reached.
    HeadsAhead,
    /// Circuit breakers opened.
    BreakersOpened,
    /// Retries not made because the retry budget was empty.
    RetriesDenied,
    /// Times that the snapshot queue stopped for the byte budget.
    SnapshotsDeferred,
    /// Watches refused by authorisation.
    WatchesDenied,
    /// Readers that came back from further than the delta log reaches.
    RetentionOver,
}

/// One measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// What.
    pub metric: Metric,
    /// How many, or how much.
    pub value: u64,
}

/// What a component wants done. `M` are its messages, `T` the keys of its timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Out<M, T> {
    /// Messages, in the order in which they are to be sent.
    pub sends: Vec<Message<M>>,
    /// Timers.
    pub timers: Vec<Timer<T>>,
    /// Measurements.
    pub samples: Vec<Sample>,
}

impl<M, T> Default for Out<M, T> {
    fn default() -> Self {
        Self { sends: Vec::new(), timers: Vec::new(), samples: Vec::new() }
    }
}

impl<M, T> Out<M, T> {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties it and keeps its memory.
    pub fn clear(&mut self) {
        self.sends.clear();
        self.timers.clear();
        self.samples.clear();
    }

    /// Sends a message.
    pub fn send(&mut self, to: Peer, message: M) {
        self.sends.push(Message { to, body: message });
    }

    /// Asks to be called at a time.
    pub fn timer(&mut self, at: Time, key: T) {
        self.timers.push(Timer { at, key });
    }

    /// Counts one.
    pub fn count(&mut self, metric: Metric) {
        self.add(metric, 1);
    }

    /// Counts several, or records a value.
    pub fn add(&mut self, metric: Metric, value: u64) {
        self.samples.push(Sample { metric, value });
    }

    /// Sum of the samples of a metric in the buffer.
    pub fn total(&self, metric: Metric) -> u64 {
        self.samples.iter().filter(|sample| sample.metric == metric).map(|s| s.value).sum()
    }
}
