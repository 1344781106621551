//! What a plan does to the group.

use super::goals::Goal;
use super::plan::{Action, Event, Who};
use super::trail::Key;
use super::world::World;
use crate::replica::Replica;
use crate::types::{NodeId, Time};

impl World<'_> {
    pub(crate) fn strike(&mut self) {
        let now = self.now;
        let due = |event: &mut Event| event.at <= now;
        let strikes: Vec<Event> = self.strikes.extract_if(.., due).collect();
        for event in strikes {
            self.happen(event.action);
        }
    }

    fn find(&self, who: Who) -> Option<NodeId> {
        match who {
            Who::Id(id) => Some(id),
            Who::Leader => self.leader(),
            Who::AfterLeader(n) => self.leader().map(|id| (id + n) % self.plan.config.replicas),
        }
    }

    pub(crate) fn happen(&mut self, action: Action) {
        let now = self.now;
        match action {
            Action::CutOneWay { from, to, ticks } => {
                if let (Some(from), Some(to)) = (self.find(from), self.find(to)) {
                    self.network.cut(from, to, now + ticks);
                }
            }
            Action::Cut { a, b, ticks } => {
                if let (Some(a), Some(b)) = (self.find(a), self.find(b)) {
                    self.network.cut(a, b, now + ticks);
                    self.network.cut(b, a, now + ticks);
                }
            }
            Action::Isolate { who, ticks } => {
                if let Some(id) = self.find(who) {
                    self.split(1 << id, now + ticks);
                }
            }
            Action::Split { side, ticks } => self.split(side, now + ticks),
            Action::Crash { who, ticks } => {
                if let Some(id) = self.find(who) {
                    self.crash(id, now + ticks);
                }
            }
            Action::CrashAll { ticks } => {
                for id in self.ids() {
                    self.crash(id, now + ticks);
                }
            }
            Action::Pause { who, ticks } => {
                if let Some(id) = self.find(who) {
                    let node = self.node_mut(id);
                    node.paused_until = node.paused_until.max(now + ticks);
                }
            }
            Action::Burst { count } => self.burst(count),
            Action::Campaign { who } => {
                if let Some(id) = self.find(who).filter(|&id| self.awake(id).is_some()) {
                    self.input(id, Replica::campaign);
                }
            }
        }
    }

    /// Cuts all links between the replicas of a side and the others.
    pub(crate) fn split(&mut self, side: u8, until: Time) {
        for from in self.ids() {
            for to in self.ids() {
                if (side >> from & 1) != (side >> to & 1) {
                    self.network.cut(from, to, until);
                }
            }
        }
    }

    fn crash(&mut self, id: NodeId, until: Time) {
        let key = Key(self.plan.seed).of(0x6469_736b).of(u64::from(id));
        let node = self.node_mut(id);
        if node.replica.take().is_some() {
            let lost = node.disk.crash(key);
            self.goals.add(Goal::WritesLost, lost as u64);
        }
        let node = self.node_mut(id);
        node.up_at = node.up_at.max(until);
        node.paused_until = 0;
        self.check_durability();
    }

    /// Everything comes up, nothing is paused or cut any more.
    pub(crate) fn heal(&mut self) {
        self.network.heal();
        for node in &mut self.nodes {
            node.up_at = node.up_at.min(self.now);
            node.paused_until = node.paused_until.min(self.now);
        }
    }
}
