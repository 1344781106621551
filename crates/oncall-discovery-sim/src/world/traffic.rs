//! Whose calls go where: what a service declares, what policy makes of it, and the traffic that follows.
//!
//! A subscription in the caller's own region carries the caller's demand. Of that, failover and writes of
//! single-writer data send parts to its subscriptions in other regions, and policy refuses what may go nowhere.
//! Nothing is lost: what a caller sends and what is refused add up to its demand.

use super::full::Full;
use super::shared::Shared;
use crate::ledger::{REMOTE, Sub};
use crate::queue::Micros;
use crate::topology::{REGIONS, Service, Topology};
use oncall_consensus::Pages;
use oncall_discovery::distrib::Cursor;
use oncall_discovery::policy::{
    Access, Failover, OwnerView, Ownership, REGIONS_MAX, RegionSet, ServicePolicy,
};
use oncall_discovery::proxy::{AgeAction, LinkState};
use oncall_discovery::types::{RegionId, Span};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Share of the calls of a single-writer service that write.
pub(crate) const WRITES: f64 = 0.1;
/// What a region declares it can take over, as a share of its instances. At the usual load of 60 % that is more
/// than there is, as declarations are: two thirds would just fit.
const SPARE: f64 = 0.8;
/// Lease of an ownership, and how far clocks may differ.
const OWNERSHIP: (Span, Span) = (Span::from_s(30), Span::from_s(1));

/// Ownership of a single-writer service, and what each region's proxies know of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Writer {
    pub(crate) service: u16,
    pub(crate) ownership: Ownership,
    pub(crate) views: [OwnerView; REGIONS],
    /// Where the writes of each region go; nowhere if the policy refuses them.
    pub(crate) to: [Option<u8>; REGIONS],
}

/// A head that a proxy was told of and had not reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) at: Micros,
    pub(crate) session: u32,
    pub(crate) head: Cursor,
}

/// What policy knows and decided.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Traffic {
    pub(crate) policies: Arc<[ServicePolicy]>,
    pub(crate) writers: Vec<Writer>,
    /// Place in `writers` by service; `u16::MAX` for the others.
    writer_of: Arc<[u16]>,
    /// By the callers' cell.
    pub(crate) failover: Vec<Failover>,
    pub(crate) shares: Vec<[f64; REGIONS]>,
    /// Cells whose callers may see less than what is published, or publish less, and whether each is listed: only
    /// there can failover begin or end.
    pub(crate) watched: Vec<u32>,
    is_watched: Vec<bool>,
    /// Dials of failover by which everything was looked at last.
    pub(crate) rules: [(f64, f64); REGIONS],
    /// For each subscription the one of the same proxy and service at home.
    pub(crate) twin: Arc<[u32]>,
    /// Refused micro-requests a second, by subscription at home.
    refused: Pages<u32>,
    /// Whether each proxy's views are too old for strict services (1) and for ordinary ones (2).
    pub(crate) aged: Vec<u8>,
    /// Largest number of retries of the second before.
    pub(crate) retries_max: u8,
    /// In verify mode: what subscriptions were told of (I20).
    #[serde(skip)]
    pub(crate) told: Vec<Told>,
    /// Endpoints that proxies complain about, for the deciders: subscription and instance.
    #[serde(skip)]
    pub(crate) complaints: Vec<(u32, u32)>,
}

/// What a service of a drawn world declares.
fn policy(number: usize, service: Service, target: [u32; REGIONS]) -> ServicePolicy {
    let mut counts = [0; REGIONS_MAX];
    counts[..REGIONS].copy_from_slice(&target);
    let order = (0..REGIONS).map(|hop| RegionId(((number + hop) % REGIONS) as u8));
    let single = service.cross_region && number % 4 == 1;
    ServicePolicy {
        access: if single { Access::SingleWriter } else { Access::ReadOnly },
        order: if service.cross_region { order.collect() } else { Vec::new() },
        residency: RegionSet::of(&[RegionId(0), RegionId(1), RegionId(2)]),
        spare: counts.map(|count| (f64::from(count) * SPARE) as u32),
        strict_age: service.strict,
        age_action: if service.strict || number % 4 == 3 {
            AgeAction::Reject
        } else {
            AgeAction::Degrade
        },
        ..ServicePolicy::home_only(counts)
    }
}

impl Traffic {
    pub(crate) fn new(topology: &Topology, proxies_of_subs: &[u16], sub_cell: &[u32]) -> Self {
        let mut targets = vec![[0; REGIONS]; topology.services.len()];
        for placed in &topology.instances {
            let cell = placed.cell as usize;
            targets[cell / REGIONS][cell % REGIONS] += 1;
        }
        let policies: Arc<[ServicePolicy]> = topology
            .services
            .iter()
            .zip(targets)
            .enumerate()
            .map(|(number, (&service, target))| policy(number, service, target))
            .collect();
        let mut writer_of = vec![u16::MAX; policies.len()];
        let mut writers = Vec::new();
        for (service, policy) in policies.iter().enumerate() {
            if policy.access == Access::SingleWriter {
                writer_of[service] = writers.len() as u16;
                let ownership = Ownership::new(OWNERSHIP.0, OWNERSHIP.1);
                let (views, to) = ([OwnerView::default(); REGIONS], [None; REGIONS]);
                writers.push(Writer { service: service as u16, ownership, views, to });
            }
        }
        let home = |cell: usize| {
            let mut shares = [0.0; REGIONS];
            shares[cell % REGIONS] = 1.0;
            shares
        };
        Self {
            policies,
            writers,
            writer_of: writer_of.into(),
            failover: vec![Failover::default(); topology.cells()],
            shares: (0..topology.cells()).map(home).collect(),
            watched: Vec::new(),
            is_watched: vec![false; topology.cells()],
            rules: [(-1.0, -1.0); REGIONS],
            twin: twins(topology, proxies_of_subs, sub_cell),
            refused: std::iter::repeat_n(0, sub_cell.len()).collect(),
            aged: vec![0; topology.nodes.len()],
            retries_max: 0,
            told: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// Instances that services declare as spare for other regions, by region.
    pub(crate) fn spare(&self) -> [f64; REGIONS] {
        let mut spare = [0.0; REGIONS];
        for policy in self.policies.iter().filter(|policy| !policy.order.is_empty()) {
            for (sum, &count) in spare.iter_mut().zip(&policy.spare) {
                *sum += f64::from(count);
            }
        }
        spare
    }

    /// Something changed that callers of a cell may see as less.
    #[inline]
    pub(crate) fn watch(&mut self, cell: usize) {
        if !self.is_watched[cell] && !self.policies[cell / REGIONS].order.is_empty() {
            self.is_watched[cell] = true;
            self.watched.push(cell as u32);
        }
    }

    /// Nothing is amiss in a cell any more.
    pub(crate) fn unwatch(&mut self, cell: usize) {
        self.is_watched[cell] = false;
    }

    pub(crate) fn writer(&self, service: usize) -> Option<&Writer> {
        self.writers.get(usize::from(self.writer_of[service]))
    }

    /// Whether a proxy's view is too old for a service.
    pub(crate) fn too_old(&self, proxy: usize, service: usize) -> Option<AgeAction> {
        let policy = &self.policies[service];
        let bit = if policy.strict_age { 1 } else { 2 };
        (self.aged[proxy] & bit != 0).then_some(policy.age_action)
    }
}

/// For each subscription the one of the same proxy and service in the proxy's region.
fn twins(topology: &Topology, proxies_of_subs: &[u16], sub_cell: &[u32]) -> Arc<[u32]> {
    let mut at_home: Vec<(u16, u32, u32)> = Vec::new();
    for (sub, (&proxy, &cell)) in proxies_of_subs.iter().zip(sub_cell).enumerate() {
        let region = topology.nodes[usize::from(proxy)].region;
        if cell as usize % REGIONS == usize::from(region) {
            at_home.push((proxy, cell / REGIONS as u32, sub as u32));
        }
    }
    at_home.sort_unstable();
    let find = |(sub, (&proxy, &cell)): (usize, (&u16, &u32))| {
        let key = (proxy, cell / REGIONS as u32);
        let found = at_home.binary_search_by_key(&key, |&(proxy, service, _)| (proxy, service));
        found.map_or(sub as u32, |at| at_home[at].2)
    };
    proxies_of_subs.iter().zip(sub_cell).enumerate().map(find).collect()
}

impl Full {
    /// What the endpoints of each cell can take: the load of the start is the target, and one of two can carry
    /// what both did. Cells with less traffic than their service has on average can take the average.
    pub(crate) fn set_capacities(&mut self, now: Micros, topology: &Topology) {
        let target_load = topology.shape.target_load;
        if target_load <= 0.0 {
            return;
        }
        for service in 0..topology.services.len() {
            let cells = service * REGIONS..(service + 1) * REGIONS;
            let counts = self.traffic.policies[service].target;
            let demand: Vec<f64> = cells.clone().map(|cell| self.ledger.routed(cell).1).collect();
            let room = |count: u32| (target_load * f64::from(count)).min(f64::from(count) - 1.0);
            let all: f64 = counts[..REGIONS].iter().map(|&count| room(count)).sum();
            let mean = demand.iter().sum::<f64>() / all.max(1.0);
            for (region, cell) in cells.enumerate() {
                let own = demand[region] / room(counts[region]).max(0.5);
                self.ledger.set_capacity(now, cell, own.max(mean));
            }
        }
    }

    /// Subscriptions of a cell with their present traffic.
    pub fn subscriptions(&self, cell: usize) -> &[Sub] {
        &self.ledger.subs[self.ledger.range(cell)]
    }

    /// A dependency fails a share of a cell's attempts.
    pub(crate) fn set_soft(&mut self, shared: &mut Shared, now: Micros, cell: usize, soft: f64) {
        self.ledger.set_soft(now, cell, soft);
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// An instance's identity is refused, or is no longer.
    pub(crate) fn set_refused(&mut self, shared: &mut Shared, id: u32, cell: u32, refused: bool) {
        if (id as usize) < self.ledger.slots.len() {
            self.ledger.set_refused(shared.now(), cell as usize, id, refused);
            self.drain_pairs(shared);
            self.take_stopped();
        }
    }

    /// Subscriptions of the same proxy and service in other regions.
    fn elsewhere(&self, local: usize) -> Vec<usize> {
        let proxy = usize::from(self.ledger.subs[local].proxy);
        let places = self.proxy_first[proxy] as usize..self.proxy_first[proxy + 1] as usize;
        let subs = self.proxy_subs[places].iter().map(|&sub| sub as usize);
        subs.filter(|&sub| sub != local && self.traffic.twin[sub] as usize == local).collect()
    }

    /// Whether the callers behind a subscription are there, with a set to go by.
    fn calls(&self, sub: usize) -> bool {
        let proxy = &self.proxies[usize::from(self.ledger.subs[sub].proxy)];
        proxy.is_there() && self.subs[sub].has_set()
    }

    /// Sends the demand of a subscription at home where policy wants it now.
    pub(crate) fn retraffic(&mut self, now: Micros, local: usize) {
        let home = self.sub_cell[local] as usize;
        let (service, proxy) = (home / REGIONS, usize::from(self.ledger.subs[local].proxy));
        let demand = if self.calls(local) { self.lambda[local] } else { 0 };
        let too_old = self.traffic.too_old(proxy, service);
        let shares = self.traffic.shares[home];
        let to = self.traffic.writer(service).map(|writer| writer.to[home % REGIONS]);
        let rejected = too_old == Some(AgeAction::Reject);
        let (mut left, mut refused) = if rejected { (0, demand) } else { (demand, 0) };
        let writes = if to.is_some() { (f64::from(left) * WRITES) as u32 } else { 0 };
        if to == Some(None) {
            (left, refused) = (left - writes, refused + writes);
        }
        if !self.traffic.policies[service].order.is_empty() {
            let reads = f64::from(if rejected { 0 } else { demand - writes });
            for other in self.elsewhere(local) {
                let region = self.sub_cell[other] as usize % REGIONS;
                // One that has no set yet cannot take anything; a write has nowhere else to go.
                let has_set = self.subs[other].has_set();
                let mut there = if has_set { (reads * shares[region]) as u32 } else { 0 };
                if to == Some(Some(region as u8)) {
                    there += writes;
                }
                left -= there;
                self.ledger.set_lambda(now, self.sub_cell[other] as usize, other, there);
                let degraded = too_old == Some(AgeAction::Degrade);
                self.ledger.set_degraded(now, self.sub_cell[other] as usize, other, degraded);
            }
        }
        self.ledger.set_lambda(now, home, local, left);
        self.ledger.set_degraded(now, home, local, too_old == Some(AgeAction::Degrade));
        let before = self.traffic.refused[local];
        if before != refused {
            self.traffic.refused[local] = refused;
            let sum = self.ledger.policy_refused(home) + u64::from(refused) - u64::from(before);
            self.ledger.set_policy_refused(now, home, sum);
        }
    }

    /// The same for all callers of a region and service.
    pub(crate) fn retraffic_cell(&mut self, shared: &mut Shared, home: usize) {
        for sub in self.ledger.range(home) {
            if self.ledger.subs[sub].caller != REMOTE {
                self.retraffic(shared.now(), sub);
            }
        }
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// All cells of a proxy, after it came, went, or grew old.
    pub(crate) fn retraffic_proxy(&mut self, shared: &mut Shared, proxy: usize) {
        for at in self.proxy_first[proxy] as usize..self.proxy_first[proxy + 1] as usize {
            let sub = self.proxy_subs[at] as usize;
            if self.traffic.twin[sub] as usize == sub {
                self.retraffic(shared.now(), sub);
            }
        }
        self.drain_pairs(shared);
        self.take_stopped();
    }

    /// Whether any proxy of a region has a stream, so that what the global layer says gets there.
    pub(crate) fn hears(&self, region: usize, now: Micros) -> bool {
        let here = self.proxies.iter().filter(|proxy| usize::from(proxy.region) == region);
        let mut up = here.filter(|proxy| proxy.link.state() == LinkState::Up && !proxy.is_cut(now));
        self.parted[region] <= now && up.next().is_some()
    }

    /// What callers of a region see READY in a cell of another: the mean over their views.
    pub(crate) fn seen_from(&self, region: usize, cell: usize) -> u32 {
        let (mut sum, mut count) = (0.0, 0.0);
        for sub in self.ledger.range(cell) {
            let row = self.ledger.subs[sub];
            if usize::from(self.proxies[usize::from(row.proxy)].region) == region {
                sum += f64::from(self.ledger.candidates(cell, sub));
                count += 1.0;
            }
        }
        if count > 0.0 { (sum / count) as u32 } else { 0 }
    }
}
