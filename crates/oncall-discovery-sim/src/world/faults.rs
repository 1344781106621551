//! Carrying out a schedule.

use super::World;
use super::fleet::cell_region;
use super::shared::{Event, Life};
use crate::noise::Draw;
use crate::queue::{Micros, S, micros};
use crate::schedule::Action;
use crate::topology::REGIONS;
use oncall_discovery::types::State;
use serde::{Deserialize, Serialize};

/// What an action remembers between its steps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Memory {
    /// Instances, nodes or cells that it is about.
    pub(crate) chosen: Vec<u32>,
    /// From when until when its dependency is slow.
    pub(crate) slow: (Micros, Micros),
    /// Whether its dependency is down.
    pub(crate) down: bool,
    /// Steps done.
    pub(crate) done: u32,
    /// Replicas that it keeps down.
    pub(crate) held: Vec<(u16, u8)>,
    /// How far groups had applied when it began.
    pub(crate) applied: Vec<u64>,
}

impl World {
    /// An action begins.
    pub(crate) fn on_begin(&mut self, plan: u16) {
        let index = usize::from(plan);
        let action = self.scenario.plan[index].action;
        let now = self.shared.now();
        let end = now + micros(action.lasts_s());
        if action.lasts_s() > 0.0 {
            self.shared.push(end, Event::End { plan });
        }
        let salt = u64::from(plan) + 1;
        match action {
            Action::Rollout { endpoints, services, popular } => {
                self.memory[index].chosen = self.choose_rollout(endpoints, services, popular, salt);
                self.shared.push(now, Event::Step { plan, step: 0 });
            }
            Action::Crashes { instances, over_s, freeze } => {
                let chosen = self.some_serving(instances as usize, salt, |_| true);
                let count = chosen.len() as f64;
                for (at, &id) in chosen.iter().enumerate() {
                    let life = self.fleet.instances[id as usize].life;
                    let when = now + micros(over_s * at as f64 / count);
                    let what = Life::Die { freeze };
                    self.shared.push(when, Event::Life { instance: id, life, what });
                }
            }
            Action::Churn { .. } => self.shared.push(now, Event::Step { plan, step: 0 }),
            Action::Nodes { nodes, back_s } => self.fail_nodes(index, nodes, back_s, salt),
            Action::BadDependency { services, region, slow_s, .. } => {
                self.memory[index].chosen = self.choose_dependents(services, region, salt);
                self.begin_dependency(plan, micros(slow_s));
            }
            Action::Revoke { instances, .. } => {
                let chosen = self.some_serving(instances as usize, salt, |_| true);
                self.revoke(&chosen);
                self.memory[index].chosen = chosen;
            }
            Action::LeaderCut { region, .. } => {
                self.each_group(usize::from(region) % REGIONS, |control, group| {
                    control.cut_leader(group, end);
                });
            }
            Action::BadProber { region, .. } => {
                self.probing.spoil_prober(usize::from(region) % REGIONS, end);
            }
            Action::BadZoneLink { region, zone, loss, .. } => {
                self.probing.spoil_link(
                    usize::from(region) % REGIONS,
                    usize::from(zone) % 3,
                    loss,
                    end,
                );
                self.look_at_all();
            }
            Action::Outage { region, stops, .. } => {
                for r in regions(region) {
                    if stops.catalog {
                        self.crash(index, r, |_, _| true);
                    }
                    if stops.relays {
                        self.plane.stop_relays(&mut self.shared, r, end, stops.cold);
                    }
                    if stops.probers {
                        self.probing.stop(r, end);
                    }
                }
            }
            Action::RelayRestart { share, cold } => {
                self.plane.restart_relays(&mut self.shared, share, cold, salt);
            }
            Action::ProxyCut { proxies, .. } => {
                let count = self.topology.nodes.len() as u64;
                for i in 0..u64::from(proxies) {
                    let proxy = self.shared.noise.below(Draw::Fault, salt, i, count) as u16;
                    self.plane.cut_proxy(&mut self.shared, proxy, end);
                }
            }
            Action::QuorumLoss { region, .. } => {
                self.crash(index, usize::from(region) % REGIONS, |id, _| id != 0);
                self.memory[index].applied = self.applied(region);
            }
            Action::Partition { region, .. } => {
                self.plane.partition(usize::from(region) % REGIONS, end);
            }
            Action::DropDeltas { relay, share, .. } => {
                self.plane.spoil_relay(&mut self.shared, relay, share, 0.0, end);
            }
            Action::Corrupt { relay, share, .. } => {
                self.plane.spoil_relay(&mut self.shared, relay, 0.0, share, end);
            }
            Action::Silent { relay, .. } => self.plane.silence_relay(&mut self.shared, relay, end),
            Action::LagFollowers { region, lag_s, .. } => {
                self.each_group(usize::from(region) % REGIONS, |control, group| {
                    control.set_lag(group, micros(lag_s), end);
                });
            }
            Action::LeaderCrash { region, .. } => {
                self.crash(index, usize::from(region) % REGIONS, |id, leader| Some(id) == leader);
            }
        }
    }

    /// An action ends.
    pub(crate) fn on_end(&mut self, plan: u16) {
        let index = usize::from(plan);
        match self.scenario.plan[index].action {
            Action::Outage { .. } | Action::LeaderCrash { .. } => self.release(index),
            Action::QuorumLoss { region, .. } => {
                let applied = self.applied(region);
                let before = std::mem::take(&mut self.memory[index].applied);
                self.shared.assert(before == applied, "I10", || {
                    format!("region {region} accepted without a quorum: {before:?} to {applied:?}")
                });
                self.release(index);
            }
            Action::BadZoneLink { .. } => self.look_at_all(),
            Action::BadDependency { .. } => self.end_dependency(index),
            Action::Revoke { .. } => {
                let chosen = std::mem::take(&mut self.memory[index].chosen);
                self.reissue(&chosen);
            }
            Action::Nodes { .. } => self.return_nodes(index),
            _ => {}
        }
    }

    fn crash(&mut self, index: usize, region: usize, which: impl Fn(u8, Option<u8>) -> bool) {
        let mut held = std::mem::take(&mut self.memory[index].held);
        self.each_group(region, |control, group| control.crash(group, &which, &mut held));
        self.memory[index].held = held;
    }

    fn release(&mut self, index: usize) {
        for hold in std::mem::take(&mut self.memory[index].held) {
            self.control.release(hold, &mut self.shared);
        }
    }

    fn applied(&mut self, region: u8) -> Vec<u64> {
        let mut applied = Vec::new();
        self.each_group(usize::from(region) % REGIONS, |control, group| {
            applied.push(control.groups[group].applied());
        });
        applied
    }

    fn each_group(
        &mut self,
        region: usize,
        mut act: impl FnMut(&mut super::control::Control, usize),
    ) {
        let shards = usize::from(self.topology.shape.shards);
        for group in region * shards..(region + 1) * shards {
            act(&mut self.control, group);
        }
    }

    /// A further step of an action.
    pub(crate) fn on_step(&mut self, plan: u16, step: u32) {
        let index = usize::from(plan);
        let now = self.shared.now();
        match self.scenario.plan[index].action {
            Action::Rollout { .. } => self.roll(plan, step),
            Action::BadDependency { .. } => self.break_dependency(index),
            Action::Churn { per_s, for_s } => {
                let begun = micros(self.scenario.plan[index].at_s);
                if now >= begun + micros(for_s) {
                    return;
                }
                let salt = u64::from(plan) + 100;
                let noise = self.shared.noise;
                let count = self.fleet.instances.len() as u64;
                let id = noise.below(Draw::Churn, salt, u64::from(step), count) as u32;
                self.replace(id, u64::from(plan) << 32 | u64::from(step));
                let gap = noise.exponential(Draw::Churn, salt + 1, u64::from(step)) / per_s;
                self.shared.push(now + micros(gap).max(1), Event::Step { plan, step: step + 1 });
            }
            _ => {}
        }
    }

    /// A new instance starts; once it is READY, the old one leaves (R152).
    fn replace(&mut self, id: u32, number: u64) {
        let instance = self.fleet.instances[id as usize];
        if instance.state != State::Ready || instance.clock != u32::MAX {
            return;
        }
        let new = self.start_instance(instance.cell, number);
        self.fleet.instances[new as usize].replaces = id;
    }

    /// One replacement of a rollout; held back while the region cannot accept anything.
    fn roll(&mut self, plan: u16, step: u32) {
        let index = usize::from(plan);
        let now = self.shared.now();
        let Some(&id) = self.memory[index].chosen.get(step as usize) else { return };
        let cell = self.fleet.instances[id as usize].cell;
        let group = usize::from(self.group_of(cell));
        if self.control.groups[group].live_leader().is_none() {
            self.shared.push(now + S, Event::Step { plan, step });
            return;
        }
        self.replace(id, u64::from(plan) << 32 | u64::from(step));
        self.memory[index].done += 1;
        let pace = self.shared.led(cell_region(cell)).rollout_pace_per_s;
        let gap = S as f64 / (pace * self.topology.shape.pace_share);
        self.shared.push(now + gap as Micros, Event::Step { plan, step: step + 1 });
    }

    fn choose_rollout(&self, endpoints: u32, services: u16, popular: bool, salt: u64) -> Vec<u32> {
        let count = self.topology.services.len() as u16;
        let mut chosen: Vec<u16> = (0..count).collect();
        if !popular {
            chosen.sort_by_key(|&s| self.shared.noise.word(Draw::Rollout, salt, u64::from(s)));
        }
        chosen.truncate(usize::from(services.max(1)));
        // Bigger services take what smaller ones cannot give.
        let mut wanted = vec![false; usize::from(count)];
        for &service in &chosen {
            wanted[usize::from(service)] = true;
        }
        let among = |cell: u32| wanted[(cell / REGIONS as u32) as usize];
        let mut ids = self.some_serving(endpoints as usize, salt, |i| among(i.cell));
        let missing = endpoints as usize - ids.len();
        if missing > 0 && popular {
            // One service is not that big: the next popular ones follow.
            let mut rest = self.some_serving(usize::MAX, salt, |i| !among(i.cell));
            rest.sort_by_key(|&id| self.fleet.instances[id as usize].cell);
            ids.extend(rest.into_iter().take(missing));
        }
        ids
    }

    fn fail_nodes(&mut self, index: usize, nodes: u16, back_s: f64, salt: u64) {
        let now = self.shared.now();
        let count = self.topology.nodes.len() as u64;
        let back = if back_s > 0.0 { now + micros(back_s) } else { Micros::MAX };
        for i in 0..u64::from(nodes) {
            let node = self.shared.noise.below(Draw::Fault, salt, i, count) as usize;
            if self.fleet.node_away[node] > 0 {
                continue;
            }
            self.fleet.node_away[node] = back;
            self.memory[index].chosen.push(node as u32);
            for at in 0..self.fleet.on_node[node].len() {
                let id = self.fleet.on_node[node][at];
                self.die(id, true, false);
                self.look_again(id);
            }
            self.plane.node_down(&mut self.shared, node as u16);
        }
    }

    fn return_nodes(&mut self, index: usize) {
        for node in std::mem::take(&mut self.memory[index].chosen) {
            self.fleet.node_away[node as usize] = 0;
            self.plane.node_up(&mut self.shared, node as u16);
            for at in 0..self.fleet.on_node[node as usize].len() {
                let id = self.fleet.on_node[node as usize][at];
                let life = self.fleet.instances[id as usize].life;
                let state = self.fleet.instances[id as usize].state;
                // What had left before the node failed does not come back.
                if !matches!(state, State::Gone | State::Draining) {
                    self.shared.push(
                        self.shared.now(),
                        Event::Life { instance: id, life, what: Life::Return },
                    );
                }
            }
        }
    }

    /// Cells of the services that share a dependency.
    fn choose_dependents(&self, services: u16, region: Option<u8>, salt: u64) -> Vec<u32> {
        let far = |service: &u32| self.topology.services[*service as usize].cross_region;
        let mut among: Vec<u32> = (0..self.topology.services.len() as u32).collect();
        if region.is_some() && among.iter().any(far) {
            among.retain(far);
        }
        let count = among.len() as u64;
        let mut hit: Vec<u32> = (0..u64::from(services))
            .map(|i| among[self.shared.noise.below(Draw::Fault, salt, i, count) as usize])
            .collect();
        hit.sort_unstable();
        hit.dedup();
        let cells =
            |service: u32| regions(region).map(move |r| service * REGIONS as u32 + r as u32);
        hit.into_iter().flat_map(cells).collect()
    }

    /// A shared dependency begins to fail; first it may be slow for a while.
    fn begin_dependency(&mut self, plan: u16, slow: Micros) {
        let index = usize::from(plan);
        let now = self.shared.now();
        if slow == 0 {
            return self.break_dependency(index);
        }
        self.memory[index].slow = (now, now + slow);
        self.shared.push(now + slow, Event::Step { plan, step: 1 });
        for id in self.dependents(index) {
            self.fleet.instances[id as usize].dependency_slow = true;
            self.look_again(id);
        }
    }

    /// Instances of the cells that an action is about.
    pub(crate) fn dependents(&self, index: usize) -> Vec<u32> {
        let hit = &self.memory[index].chosen;
        let within = |id: &u32| hit.binary_search(&self.fleet.instances[*id as usize].cell).is_ok();
        (0..self.fleet.instances.len() as u32).filter(within).collect()
    }

    /// The dependency is down: readiness follows it if the dial says so, and a share of the attempts fails.
    fn break_dependency(&mut self, index: usize) {
        let salt = index as u64 + 1;
        // Its end may have come before.
        if self.memory[index].chosen.is_empty() {
            return;
        }
        self.memory[index].down = true;
        for cell in self.memory[index].chosen.clone() {
            self.refresh_soft(cell);
        }
        // Agents see it as well, each with its next report.
        for id in self.dependents(index) {
            let instance = &mut self.fleet.instances[id as usize];
            (instance.dependency_bad, instance.dependency_slow) = (true, false);
            let life = instance.life;
            let region = cell_region(instance.cell);
            self.look_again(id);
            let interval = micros(self.shared.led(region).renewal_interval_s);
            let wait = self.shared.noise.below(Draw::Renewal, u64::from(id), salt, interval);
            let at = self.shared.now() + wait;
            self.shared.push(at, Event::Life { instance: id, life, what: Life::Report });
        }
    }

    fn end_dependency(&mut self, index: usize) {
        let ids = self.dependents(index);
        let cells = std::mem::take(&mut self.memory[index].chosen);
        (self.memory[index].down, self.memory[index].slow) = (false, (0, 0));
        for cell in cells {
            self.refresh_soft(cell);
        }
        for id in ids {
            let down = self.dependency_down(self.fleet.instances[id as usize].cell);
            let instance = &mut self.fleet.instances[id as usize];
            (instance.dependency_bad, instance.dependency_slow) = (down, false);
            self.look_again(id);
            self.report(id);
        }
    }
}

fn regions(region: Option<u8>) -> std::ops::Range<usize> {
    region.map_or(0..REGIONS, |r| usize::from(r) % REGIONS..usize::from(r) % REGIONS + 1)
}
