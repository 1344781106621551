//! What calls show: complaints of proxies for the deciders, dependencies that fail some attempts, identities that
//! are refused, and what is asserted of the traffic every second.

use super::World;
use super::fleet::{Truth, cell_region};
use super::shared::{Event, HOP_PROXY, HOP_RELAY, Shared, Trace};
use crate::ledger::Counts;
use crate::noise::{Draw, pair};
use crate::queue::{MS, Micros};
use crate::schedule::Action;
use crate::topology::REGIONS;
use oncall_discovery::auth::Subject;
use oncall_discovery::health::{
    LocalAction, LocalHealth, LocalRules, LocalSignal, Readiness, Thresholds,
};
use oncall_discovery::types::{InstanceId, Out, Place, ProxyId, RegionId, State, Time, ZoneId};

/// What a probe of an instance takes at the end of its dependency's lead-in, microseconds: longer than the usual
/// timeout, shorter than the longest one.
const SLOWEST: f64 = 2_500.0 * MS as f64;

impl World {
    /// Sends the writes of single-writer services to their first owners, and then measures what cells carry.
    pub(crate) fn start_traffic(&mut self) {
        for index in 0..self.plane.traffic.writers.len() {
            self.first_owner(index);
        }
        let now = self.shared.now();
        self.plane.set_capacities(now, &self.topology);
        self.plane.ledger.events.clear();
        self.plane.ledger.stopped.clear();
    }

    /// Once a second.
    pub(crate) fn tend_traffic(&mut self) {
        self.tend_failover();
        self.tend_ages();
    }

    /// Complaints travel by way of the relay.
    pub(crate) fn send_complaints(&mut self) {
        for (sub, instance) in std::mem::take(&mut self.plane.traffic.complaints) {
            if self.shared.course.is_some() {
                // Whoever follows the recorded course has ejections of its own.
                continue;
            }
            let index = self.shared.next();
            let entity = pair(sub, 3);
            let hops = self.shared.hop(HOP_PROXY, Draw::HopProxy, entity, index)
                + self.shared.hop(HOP_RELAY, Draw::HopRelay, entity, index);
            self.shared.push(self.shared.now() + hops, Event::Complaint { sub, instance });
        }
    }

    /// A complaint reaches the decider: evidence, and never a change of the catalog by itself (I13).
    pub(crate) fn on_complaint(&mut self, sub: u32, id: u32) {
        let Some(instance) = self.fleet.instances.get(id as usize).copied() else { return };
        if instance.state != State::Ready {
            return;
        }
        let number = usize::from(self.group_of(instance.cell));
        let proxy = self.plane.ledger.subs[sub as usize].proxy;
        let node = self.topology.nodes[usize::from(proxy)];
        let place = Place { region: RegionId(node.region), zone: ZoneId(node.zone) };
        let now = self.shared.time();
        let group = &mut self.control.groups[number];
        if group.live_leader().is_none() {
            return;
        }
        self.shared.totals.complaints += 1;
        // The proxy knows the generation that its set names: the one that the catalog holds READY.
        let row = group.catalog.find(InstanceId(id));
        let Some(generation) = row.map(|record| record.generation) else { return };
        let mut out = Out::new();
        let from = (ProxyId(proxy), place);
        let about = (InstanceId(id), generation);
        group.decider.on_complaint(now, about, from, &group.catalog, &mut out);
        self.health_out(number, out);
    }

    /// How long an instance's dependency makes a probe take now: it rises over the lead-in.
    pub(crate) fn slowness(&self, id: u32) -> Micros {
        let now = self.shared.now();
        let cell = self.fleet.instances[id as usize].cell;
        let slow = self.memory.iter().filter(|memory| {
            memory.slow.0 <= now && now < memory.slow.1 && memory.chosen.contains(&cell)
        });
        let share = |memory: &super::faults::Memory| {
            let (from, until) = memory.slow;
            (now - from) as f64 / (until - from) as f64
        };
        (slow.map(share).fold(0.0, f64::max) * SLOWEST) as Micros
    }

    /// Whether a dependency of a cell is down.
    pub(crate) fn dependency_down(&self, cell: u32) -> bool {
        self.memory.iter().any(|memory| memory.down && memory.chosen.contains(&cell))
    }

    /// Works out again which share of a cell's attempts its dependencies fail.
    pub(crate) fn refresh_soft(&mut self, cell: u32) {
        let mut serves = 1.0;
        for (memory, planned) in self.memory.iter().zip(&self.scenario.plan) {
            if let Action::BadDependency { fails, .. } = planned.action
                && memory.down
                && memory.chosen.contains(&cell)
            {
                serves *= 1.0 - fails.clamp(0.0, 1.0);
            }
        }
        let now = self.shared.now();
        self.shared.trace(Trace::Soft(cell, 1.0 - serves));
        self.plane.set_soft(&mut self.shared, now, cell as usize, 1.0 - serves);
    }

    /// Revokes identities: from now on whoever connects refuses them.
    pub(crate) fn revoke(&mut self, ids: &[u32]) {
        let now = self.shared.time();
        for &id in ids {
            let generation = self.fleet.instances[id as usize].generation;
            let subject = Subject(u64::from(id));
            self.fleet.revocations.revoke(subject, now);
            self.fleet.revoked.push((id, generation));
            self.refuse_or_admit(id);
        }
    }

    /// They are given new ones.
    pub(crate) fn reissue(&mut self, ids: &[u32]) {
        let now = self.shared.time();
        for &id in ids {
            self.fleet.revoked.retain(|&(revoked, _)| revoked != id);
            self.fleet.instances[id as usize].issued = now;
            self.refuse_or_admit(id);
        }
    }

    /// What callers do when an instance shows its token: the view has no say in it.
    pub(crate) fn refuse_or_admit(&mut self, id: u32) {
        let instance = self.fleet.instances[id as usize];
        let subject = Subject(u64::from(id));
        let refused = self.fleet.revocations.covers(subject, instance.issued);
        self.plane.set_refused(&mut self.shared, id, instance.cell, refused);
    }

    /// Nobody whose identity is revoked is served from, although a stale view holds it (I21).
    fn check_revoked(&mut self) {
        for at in 0..self.fleet.revoked.len() {
            let (id, generation) = self.fleet.revoked[at];
            let instance = self.fleet.instances[id as usize];
            let slot = self.plane.ledger.slots.get(id as usize).copied();
            // A new process has a new identity.
            let same = instance.generation == generation && instance.truth.answers();
            let refused = slot.is_none_or(|slot| slot.refused);
            self.shared.assert(!same || refused, "I21", || {
                format!("instance {id}: revoked, and served from all the same")
            });
        }
    }

    /// Every request ends in one of the known ways, within bounded attempts (I12).
    pub(crate) fn check_traffic(&mut self, second: &Counts) {
        let ends = second.served
            + second.failed
            + second.no_backend
            + second.policy_refused
            + second.auth_refused;
        let slack = 1e-6 * (1.0 + second.requests);
        self.shared.assert((second.requests - ends).abs() <= slack, "I12", || {
            format!("{} requests, {ends} ends: {second:?}", second.requests)
        });
        let retries = self.plane.traffic.retries_max;
        let now = (0..REGIONS).map(|r| self.plane.ledger.calls(r).retries).max().unwrap_or(0);
        let most = (1.0 + f64::from(now.max(retries))) * second.requests + slack;
        self.shared.assert(second.attempts() <= most, "I12", || {
            format!("{} attempts of {} requests", second.attempts(), second.requests)
        });
        self.plane.traffic.retries_max = now;
        self.check_revoked();
    }

    /// Where nothing is failing single attempts, a live candidate that was not ejected is never "no backend"
    /// (I17).
    pub(crate) fn check_no_backend(&mut self, cell: u32) {
        let found = self.plane.ledger.silent_no_backend(cell as usize);
        self.shared.assert(!found, "I17", || {
            format!("cell {cell}: no backend, and a live candidate in view")
        });
    }

    /// What the agent on the node makes of a look at a process: readiness is reported and restarts nothing.
    pub(crate) fn local_check(&self, id: u32) -> Option<LocalAction> {
        let instance = self.fleet.instances[id as usize];
        let rules = LocalRules {
            readiness: Thresholds { failures: 1, successes: 1 },
            liveness_failures: 3,
            startup_max: Shared::span_s(60.0),
            mode: self.health_rules(cell_region(instance.cell)).mode,
        };
        let (serves, now) = (instance.truth == Truth::Serving, self.shared.time());
        let found = Readiness { local: serves, critical: !instance.dependency_bad, others: true };
        let mut local = LocalHealth::new(now).with_mutants(self.shared.mutants);
        local.check(now, LocalSignal::Startup(instance.truth.answers()), &rules);
        local.check(now, LocalSignal::Readiness(found), &rules)
    }

    /// The agent starts a process again.
    pub(crate) fn restart(&mut self, id: u32) {
        let cell = self.fleet.instances[id as usize].cell;
        self.plane.set_failing(&mut self.shared, id, cell, true);
        self.start_process(id);
    }

    fn first_owner(&mut self, index: usize) {
        let now = Time(self.shared.now());
        let service = usize::from(self.plane.traffic.writers[index].service);
        let first = self.plane.traffic.policies[service].order[0];
        let writer = &mut self.plane.traffic.writers[index];
        if let Ok(token) = writer.ownership.claim(now, first) {
            for view in &mut writer.views {
                view.learn(token);
            }
            writer.to = [Some(first.0); REGIONS];
        }
        for region in 0..REGIONS {
            self.plane.retraffic_cell(&mut self.shared, service * REGIONS + region);
        }
    }
}
