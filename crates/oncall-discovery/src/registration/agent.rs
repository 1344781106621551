//! A node's agent: it renews for all instances of its node, and takes them down in order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::dials::Dials;
use crate::types::{Generation, InstanceId, NodeId, ShardId, Span, Time};

/// What a node's agent renews: by shard, since each shard's leader keeps its own leases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    node: NodeId,
    running: BTreeMap<ShardId, BTreeMap<InstanceId, Generation>>,
}

impl Agent {
    /// An agent without instances.
    pub fn new(node: NodeId) -> Self {
        Self { node, running: BTreeMap::new() }
    }

    /// Its node.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// An instance was registered with this generation; it is renewed from now on.
    pub fn started(&mut self, shard: ShardId, instance: InstanceId, generation: Generation) {
        self.running.entry(shard).or_default().insert(instance, generation);
    }

    /// An instance's process ended; it is renewed no longer.
    pub fn stopped(&mut self, shard: ShardId, instance: InstanceId) {
        if let Some(instances) = self.running.get_mut(&shard) {
            instances.remove(&instance);
            if instances.is_empty() {
                self.running.remove(&shard);
            }
        }
    }

    /// One message for each shard with instances here (R128).
    pub fn renewals(
        &self,
    ) -> impl Iterator<Item = (ShardId, Vec<(InstanceId, Generation)>)> + use<'_> {
        self.running.iter().map(|(&shard, instances)| {
            (
                shard,
                instances.iter().map(|(&instance, &generation)| (instance, generation)).collect(),
            )
        })
    }

    /// When to renew next: early by up to a tenth of the interval, so that nodes that came up together drift
    /// apart and nobody is later than the interval (R128). `uniform` is a fresh uniform 32-bit number.
    pub fn next_renewal(now: Time, interval: Span, uniform: u32) -> Time {
        let early = (u128::from(interval.0) * u128::from(uniform) / 10) >> 32;
        now.after(Span(interval.0 - early as u64))
    }
}

/// What a process is asked to do while it goes down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShutdownStep {
    /// Nothing yet; ask again then.
    Wait(Time),
    /// Take no new work from now on; what is under way goes on.
    StopAccepting,
    /// Exit. So many units of work are cut off (R149).
    Exit {
        /// Work that was still under way.
        forced: u32,
    },
}

/// The order of a graceful shutdown (R104 to R106, R187): the catalog accepts DRAINING; proxies stop choosing the
/// instance; after a grace the process takes no new work itself, since propagation is not instantaneous; it exits
/// when its work is done, or when the drain period is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shutdown {
    accepted: Option<Time>,
    withdrawn: Time,
    grace: Span,
    drain: Span,
    accepting: bool,
}

impl Shutdown {
    /// Readiness is withdrawn at `now`. The dials of that moment count.
    pub fn new(now: Time, dials: &Dials) -> Self {
        Self {
            accepted: None,
            withdrawn: now,
            grace: Dials::span_s(dials.accept_grace_s),
            drain: Dials::span_s(dials.drain_period_s),
            accepting: true,
        }
    }

    /// The catalog accepted DRAINING.
    pub fn accepted(&mut self, at: Time) {
        self.accepted.get_or_insert(at);
    }

    /// Whether new work is still taken.
    pub fn accepting(&self) -> bool {
        self.accepting
    }

    /// What to do now, with so much work under way.
    ///
    /// Without an acceptance (the catalog is down) the drain period counts from the withdrawal: the platform's
    /// patience does not wait for a control plane.
    pub fn step(&mut self, now: Time, under_way: u32) -> ShutdownStep {
        let end = self.accepted.unwrap_or(self.withdrawn).after(self.drain);
        if now >= end {
            return ShutdownStep::Exit { forced: under_way };
        }
        let stop = self.withdrawn.after(self.grace).min(end);
        if self.accepting {
            if now < stop {
                return ShutdownStep::Wait(stop);
            }
            self.accepting = false;
            return ShutdownStep::StopAccepting;
        }
        // Idle is not the end before the catalog knows: proxies would go on choosing a process that is gone.
        if under_way == 0 && self.accepted.is_some() {
            return ShutdownStep::Exit { forced: 0 };
        }
        ShutdownStep::Wait(end)
    }
}
