//! Set-level invariants, in verify mode, and the liveness check at the end.

use super::World;
use super::fleet::cell_name;
use super::traffic::Told;
use crate::queue::{Micros, S, micros};
use crate::schedule::Action;
use oncall_discovery::proxy::LinkState;
use oncall_discovery::types::{Endpoint, State};

/// What a repair may take, with the queue at the relay.
const REPAIR: Micros = 5 * S;

impl World {
    /// After a publication: if the catalog has moved no further, the published set is its READY set, by
    /// checksum, and the accounts hold the same endpoints (I4, I5, I8).
    pub(crate) fn check_cell(&mut self, cell: u32) {
        let group = usize::from(self.group_of(cell));
        let Some(view) = self.control.groups[group].catalog.view(cell_name(cell)) else { return };
        let head = view.head();
        let published = self.plane.cells[cell as usize].head();
        if head.revision != published.rev {
            return;
        }
        let set: Vec<Endpoint> = view.endpoints().collect();
        let checksum = Endpoint::checksum(&set);
        let mut ids: Vec<u32> = set.iter().map(|endpoint| endpoint.instance.0).collect();
        ids.sort_unstable();
        let all = 0..self.fleet.instances.len() as u32;
        let here = all.filter(|&id| self.fleet.instances[id as usize].cell == cell);
        let accounted = self.plane.head_set(cell, here);
        self.shared.assert(checksum == head.checksum, "I4", || {
            format!("cell {cell}: {checksum:x} of the set, {:x} published", head.checksum)
        });
        self.shared.assert(ids == accounted, "I4", || {
            format!("cell {cell}: READY {ids:?}, in the accounts {accounted:?}")
        });
        let not_ready =
            ids.iter().filter(|&&id| self.fleet.instances[id as usize].state != State::Ready);
        let starting = not_ready.count();
        self.shared.totals.starting_in_view += starting as u64;
        self.shared.assert(starting == 0, "I5", || format!("cell {cell}: {starting} not READY"));
        let mut addresses: Vec<_> = set.iter().map(|endpoint| endpoint.address).collect();
        addresses.sort_unstable();
        let twice = addresses.windows(2).any(|pair| pair[0] == pair[1]);
        self.shared.assert(!twice, "I8", || format!("cell {cell}: an address twice"));
    }

    /// A connected proxy that was told of a head reaches it within a heartbeat and the time of a repair (I20).
    /// Looked at with each heartbeat; while something swallows messages on the way, nothing is promised.
    pub(crate) fn check_told(&mut self, proxy: u16) {
        let now = self.shared.now();
        let link = self.plane.proxies[usize::from(proxy)].link;
        let (session, up) = (link.session(), link.state() == LinkState::Up);
        let region = usize::from(self.plane.proxies[usize::from(proxy)].region);
        let bound = micros(self.shared.relay[region].head_heartbeat_s) + REPAIR;
        let mut late = None;
        let count = self.plane.subs.len();
        self.plane.traffic.told.resize(count, Told::default());
        let first = self.plane.proxy_first[usize::from(proxy)] as usize;
        let last = self.plane.proxy_first[usize::from(proxy) + 1] as usize;
        for at in first..last {
            let sub = self.plane.proxy_subs[at] as usize;
            let told = self.plane.traffic.told[sub];
            let cursor = self.plane.subs[sub].cursor();
            let head = self.plane.cells[self.plane.sub_cell[sub] as usize].head();
            let same = told.session == session && told.at > 0 && up;
            if same && cursor < Some(told.head) && !self.plane.queued[sub] {
                if now > told.at + bound && !self.swallowed(told.at, now) {
                    late = Some((sub, cursor, told));
                }
                continue;
            }
            let behind = up && cursor < Some(head);
            let next = Told { at: now, session, head };
            self.plane.traffic.told[sub] = if behind { next } else { Told::default() };
        }
        self.shared.assert(late.is_none(), "I20", || format!("at {late:?}"));
    }

    /// Whether something on the way may have swallowed messages between two times.
    fn swallowed(&self, from: Micros, to: Micros) -> bool {
        self.scenario.plan.iter().any(|planned| {
            let begins = micros(planned.at_s);
            let ends = begins + micros(planned.action.lasts_s());
            let swallows = matches!(
                planned.action,
                Action::Corrupt { .. }
                    | Action::DropDeltas { .. }
                    | Action::Silent { .. }
                    | Action::ProxyCut { .. }
                    | Action::Partition { .. }
            );
            swallows && begins <= to && from <= ends + REPAIR
        })
    }

    /// Liveness (I19), to be asked once everything has had time to heal: streams stand, nobody is behind,
    /// and the catalogs' READY sets are what is really serving.
    pub fn check_healed(&mut self) {
        // Ordinary churn never ends: what is on its way just now gets a few seconds.
        for _ in 0..20 {
            if self.plane.connected() >= 1.0 && self.plane.behind() == 0 {
                break;
            }
            self.run_until(self.shared.now() + S);
        }
        let (connected, behind) = (self.plane.connected(), self.plane.behind());
        let away = self.fleet.node_away.iter().filter(|&&until| until > 0).count();
        let there = 1.0 - away as f64 / self.fleet.node_away.len() as f64;
        self.shared.assert(connected >= there - 1e-9, "I19", || {
            format!("{:.1} % connected", 100.0 * connected)
        });
        self.shared.assert(behind == 0, "I19", || format!("{behind} subscriptions behind"));
        let led = self.control.groups.iter().filter(|group| group.live_leader().is_some()).count();
        let groups = self.control.groups.len();
        self.shared.assert(led == groups, "I19", || format!("{led} of {groups} groups are led"));
        let wrong = self.fleet.instances.iter().enumerate().filter(|(_, instance)| {
            let serves = instance.truth == super::Truth::Serving && !instance.dependency_bad;
            // Whoever began within the last minute is still on its way in or out.
            let settled = u64::from(instance.generation.start) * 1_000 + 60 * S < self.shared.now();
            settled && serves && matches!(instance.state, State::Starting | State::Expired)
                || (!instance.truth.answers() && instance.state == State::Ready && settled)
        });
        let wrong: Vec<_> = wrong.map(|(id, i)| (id, i.truth, i.state, i.generation)).collect();
        // Those that died within the detection bound are not known yet.
        let slack = self.fleet.instances.len() / 1_000 + 1;
        self.shared.assert(wrong.len() <= slack, "I19", || {
            format!(
                "{} instances misjudged, such as {:?}",
                wrong.len(),
                &wrong[..wrong.len().min(3)]
            )
        });
    }

    /// Mass conservation in every cell (I16).
    pub fn check_accounts(&mut self) {
        for cell in 0..self.topology.cells() {
            if let Err(what) = self.plane.ledger.check(cell) {
                self.shared.violate("I16", || format!("cell {cell}: {what}"));
            }
        }
    }
}
