//! The regional catalogs: consensus groups of real replicas, one copy of the state that they agree on.
//!
//! A shard's records depend on its log alone, so the world keeps them once and applies an entry when the
//! first replica learns that it is committed: that is the acceptance. What differs between replicas is how
//! far they are, and the publisher reads from one of them, so a lagging follower delays publication and
//! not acceptance.

use super::shared::{Event, HOP_ASK, HOP_REPLICA, Shared, Slab};
use crate::noise::{Draw, pair};
use crate::queue::{MS, Micros, S};
use oncall_consensus::{
    Config, Fence, Index, Message, NodeId as ReplicaId, Output, Replica, Term as RaftTerm,
};
use oncall_discovery::catalog::{CatalogOut, CatalogShard, Command, Entry};
use oncall_discovery::health::{Decider, HealthMessage, HealthRules, HealthTimer};
use oncall_discovery::lease::{LeaseKeeper, LeaseMessage};
use oncall_discovery::types::{CellUpdate, Out, Term, Time, Transition};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

mod group;

pub(crate) use group::Group;
use group::{Member, of_health};

/// Most that a lag delays messages to the followers that keep up.
const SLOW_FOLLOWER: Micros = 150 * MS;

type Node = Replica<Entry, ()>;
pub(crate) type Wire = Message<Entry, ()>;

/// A command on its way into a log, kept until its outcome is known.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// Group.
    pub group: u16,
    /// What is asked.
    pub command: Command,
    /// When it was asked first.
    pub born: Micros,
    /// Attempts.
    tries: u32,
    /// Whether it is tried again when nobody takes it.
    again: bool,
    /// Place in the log.
    proposal: Option<(Index, RaftTerm)>,
    /// When it is looked at next; other events for its place are void, perhaps those of an earlier command.
    due: Micros,
}

/// What the control plane tells the rest of the world.
#[derive(Debug, Clone, Default)]
pub(crate) struct Effects {
    /// Accepted transitions and when their command was asked first.
    pub(crate) transitions: Vec<(Transition, Micros)>,
    /// Updates that reached a publisher.
    pub(crate) updates: Vec<CellUpdate>,
    /// What deciders want, by group.
    pub(crate) health: Vec<(usize, Out<HealthMessage, HealthTimer>)>,
    /// Settings that a region's first group committed, by region.
    pub(crate) configured: Vec<(usize, u32)>,
    /// Settings that a region's publisher has read, by region.
    pub(crate) policies: Vec<(usize, u32)>,
    /// Groups whose decider has just begun to lead, and knows nothing yet.
    pub(crate) fresh: Vec<usize>,
}

impl Effects {
    pub(crate) fn is_empty(&self) -> bool {
        self.transitions.is_empty()
            && self.updates.is_empty()
            && self.health.is_empty()
            && self.fresh.is_empty()
            && self.configured.is_empty()
            && self.policies.is_empty()
    }
}

/// All groups.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Control {
    pub(crate) groups: Vec<Group>,
    pub(crate) asks: Slab<Ask>,
    messages: Slab<Wire>,
    #[serde(skip)]
    pub(crate) effects: Effects,
    #[serde(skip, default = "Output::new")]
    output: Output<Entry, ()>,
    #[serde(skip)]
    applied: CatalogOut,
}

impl Control {
    /// Groups with their catalogs as they stand; one replica of each is about to lead.
    pub(crate) fn new(
        catalogs: Vec<(u8, CatalogShard)>,
        replicas: u8,
        rules: HealthRules,
        shared: &mut Shared,
    ) -> Self {
        let ttl = Shared::span_s(shared.led(0).lease_ttl_s);
        let group = |(number, (region, catalog)): (usize, (u8, CatalogShard))| {
            let member = |id: u8| {
                let config = config(number, id, replicas, shared);
                Node::new(config, 0).map_or(Member::Gone, |node| Member::Up(Box::new(node)))
            };
            Group {
                region,
                members: (0..replicas).map(member).collect(),
                holds: vec![0; usize::from(replicas)],
                catalog,
                leases: LeaseKeeper::new(ttl),
                decider: Decider::new(rules),
                applied: 0,
                unpublished: VecDeque::new(),
                policies: VecDeque::new(),
                publisher: 1,
                waiting: VecDeque::new(),
                lag: 0,
                lag_until: 0,
                leader: None,
                confirmed: 0,
                ticking: vec![Micros::MAX; usize::from(replicas)],
                lease_at: Micros::MAX,
                review_at: Micros::MAX,
                cut: (0, 0),
            }
        };
        let groups: Vec<Group> = catalogs.into_iter().enumerate().map(group).collect();
        let mut control = Self {
            groups,
            asks: Slab::default(),
            messages: Slab::default(),
            effects: Effects::default(),
            output: Output::new(),
            applied: CatalogOut::default(),
        };
        for number in 0..control.groups.len() {
            let first = (number % usize::from(replicas)) as u8;
            control.with(number, first, shared, Node::campaign);
            for replica in 0..replicas {
                control.schedule(number, replica, shared);
            }
        }
        control
    }

    /// Asks a group to accept a command. Without `again` it is dropped if nobody takes it.
    pub(crate) fn ask(&mut self, group: u16, command: Command, again: bool, shared: &mut Shared) {
        let born = shared.now();
        let index = shared.next();
        let due = born + shared.hop(HOP_ASK, Draw::Replica, u64::from(group) | 1 << 40, index);
        let ask = Ask { group, command, born, tries: 0, again, proposal: None, due };
        let slot = self.asks.put(ask);
        shared.push(due, Event::Ask { slot });
    }

    /// Looks at a command again after a while.
    fn plan_ask(&mut self, slot: u32, wait: Micros, shared: &mut Shared) {
        if let Some(ask) = self.asks.get_mut(slot) {
            ask.due = shared.now() + wait;
            shared.push(ask.due, Event::Ask { slot });
        }
    }

    /// Fetches the row that a command is about, for it will be applied soon; see `World::fetch_ahead`.
    #[inline]
    pub(crate) fn fetch_row(&self, slot: u32) {
        if let Some(Ask { group, command: Command::Move { instance, .. }, .. }) =
            self.asks.get(slot)
        {
            std::hint::black_box(self.groups[usize::from(*group)].catalog.row_of(*instance));
        }
    }

    /// A command reaches the group's leader, if there is one.
    pub(crate) fn on_ask(&mut self, slot: u32, shared: &mut Shared) {
        let Some(ask) = self.asks.get(slot).copied() else { return };
        if ask.due != shared.now() {
            return;
        }
        let group = usize::from(ask.group);
        if let Some((index, term)) = ask.proposal {
            let waits =
                self.groups[group].waiting.iter().any(|&(at, other)| at == index && other == slot);
            if waits && term >= self.groups[group].term() {
                // In the log of a leader that still leads: its outcome is open.
                return self.plan_ask(slot, 3 * S, shared);
            }
            self.groups[group].waiting.retain(|&(_, other)| other != slot);
        }
        let fence = match ask.command {
            Command::Expire { decided, .. } => Fence::Barrier(decided.0),
            _ => Fence::None,
        };
        let entry = Entry { proposed: shared.time(), command: ask.command };
        let leader = self.groups[group].live_leader();
        let mut proposal = None;
        if let Some(leader) = leader {
            self.with(group, leader, shared, |node, now, out| {
                proposal = node.propose(now, entry, fence, out).ok();
            });
        }
        if let (Command::Expire { decided, .. }, Some(_), None) = (ask.command, leader, proposal)
            && self.groups[group].term() > decided.0
        {
            // Decided by a leader that has stepped down since.
            shared.totals.old_term_expiries_refused += 1;
            shared.goals.old_term_expiry_refused += 1;
        }
        let Some(ask) = self.asks.get_mut(slot) else { return };
        ask.tries += 1;
        ask.proposal = proposal.map(|proposal| (proposal.index, proposal.term));
        if let Some(proposal) = proposal {
            shared.totals.proposals += 1;
            self.groups[group].waiting.push_back((proposal.index, slot));
            // A group whose log moved on without it, or which is gone: look again later.
            self.plan_ask(slot, 3 * S, shared);
            // With one live replica a proposal may be committed at once.
            self.settle(group, shared);
        } else {
            shared.totals.refused_no_leader += 1;
            let region = usize::from(self.groups[group].region);
            shared.meters.regions[region].refused += 1;
            if ask.again {
                let tries = u64::from(ask.tries);
                let jitter = shared.noise.uniform(Draw::Backoff, u64::from(slot) | 1 << 50, tries);
                let wait = ((0.5 + jitter) * MS as f64 * 1e3 * (tries as f64).min(4.0)) as Micros;
                self.plan_ask(slot, wait, shared);
            } else if let Some(ask) = self.asks.take(slot)
                && let Some(instance) = of_health(&ask.command)
            {
                let mut out = Out::new();
                let group = &mut self.groups[group];
                group.decider.ended(shared.time(), instance, None, &group.catalog, &mut out);
                self.effects.health.push((usize::from(ask.group), out));
            }
        }
    }

    /// A message between replicas arrives.
    pub(crate) fn on_message(&mut self, group: u16, slot: u32, shared: &mut Shared) {
        let Some(message) = self.messages.take(slot) else { return };
        let group = usize::from(group);
        let to = message.to;
        if matches!(self.groups[group].members[usize::from(to)], Member::Up(_)) {
            self.with(group, to, shared, |node, now, out| {
                // A member cannot send what its peers cannot read; if it did, nothing happens.
                let _ = node.receive(now, message, out);
            });
        }
    }

    /// A replica's timer.
    pub(crate) fn on_tick(&mut self, group: u16, replica: u8, shared: &mut Shared) {
        let group = usize::from(group);
        let ticking = &mut self.groups[group].ticking[usize::from(replica)];
        // An earlier deadline came up since this one was planned, and planned another one after it.
        if *ticking != shared.now() {
            return;
        }
        *ticking = Micros::MAX;
        if matches!(self.groups[group].members[usize::from(replica)], Member::Up(_)) {
            self.with(group, replica, shared, Node::tick);
        }
    }

    /// Gives one replica an input and carries out what comes of it.
    fn with(
        &mut self,
        number: usize,
        replica: ReplicaId,
        shared: &mut Shared,
        input: impl FnOnce(&mut Node, u64, &mut Output<Entry, ()>),
    ) {
        let Self { groups, messages, effects, output, applied, .. } = self;
        let group = &mut groups[number];
        let Member::Up(node) = &mut group.members[usize::from(replica)] else { return };
        input(node, shared.ticks(), output);
        if let Some(leadership) = output.leadership
            && leadership.leader.is_some()
            && leadership.leader != group.leader
        {
            shared.totals.leader_changes += u64::from(group.leader.is_some());
            group.leader = leadership.leader;
        }
        if let Some(term) = output.barrier {
            let mut out = Out::new();
            // The barrier is part of the log; the catalog learns the term from it.
            group.leases.lead(shared.time(), Term(term), &mut out);
            // The first leader of a world takes over a fleet that is known to be well.
            if shared.now() > S {
                let mut out = Out::new();
                group.decider.lead(&group.catalog, &mut out);
                effects.health.push((number, out));
                effects.fresh.push(number);
            }
            let at = group.leases.next();
            if at < Time::NEVER {
                group.plan_lease(number, at.0, shared);
            }
        }
        if output.committed.is_some() {
            group.apply(number, replica, shared, (effects, applied));
        }
        let is_publisher = replica == group.publisher;
        if is_publisher {
            group.confirm(shared);
            group.publish(shared, effects);
        }
        for message in output.messages.drain(..) {
            shared.totals.raft_messages += 1;
            let index = shared.next();
            let link = pair(number as u32, u32::from(message.from) << 8 | u32::from(message.to));
            let mut at = shared.now() + shared.hop(HOP_REPLICA, Draw::Replica, link, index);
            let lagging = shared.now() < group.lag_until && Some(message.to) != group.leader;
            // One replica of three keeps up, or nothing at all could be accepted; it is slow as well, which is
            // seen in the time that a write takes.
            if lagging {
                let keeps_up = message.to != group.publisher;
                at += if keeps_up { (group.lag / 10).min(SLOW_FOLLOWER) } else { group.lag };
            }
            let (cut, until) = group.cut;
            if shared.now() < until && (message.from == cut || message.to == cut) {
                continue;
            }
            let slot = messages.put(message);
            shared.push(at, Event::Raft { group: number as u16, slot });
        }
        self.schedule(number, replica, shared);
        self.settle(number, shared);
    }

    /// Makes sure that a replica is called at its deadline.
    fn schedule(&mut self, number: usize, replica: ReplicaId, shared: &mut Shared) {
        let group = &mut self.groups[number];
        let Member::Up(node) = &group.members[usize::from(replica)] else { return };
        let at = node.deadline().saturating_mul(MS).max(shared.now() + MS);
        let ticking = &mut group.ticking[usize::from(replica)];
        if at < *ticking {
            *ticking = at;
            shared.push(at, Event::RaftTick { group: number as u16, replica });
        }
    }

    /// Looks for commands whose outcome is known now.
    fn settle(&mut self, number: usize, shared: &mut Shared) {
        let group = &mut self.groups[number];
        while let Some(&(index, slot)) = group.waiting.front() {
            if index > group.applied {
                break;
            }
            group.waiting.pop_front();
            let Some(ask) = self.asks.get(slot).copied() else { continue };
            let accepted = group.outcome_of(&ask);
            match accepted {
                // Another leader's entry stands there: the command never takes effect.
                None if ask.again => {
                    if let Some(ask) = self.asks.get_mut(slot) {
                        ask.proposal = None;
                        ask.due = shared.now() + 200 * MS;
                        shared.push(ask.due, Event::Ask { slot });
                    }
                }
                _ => {
                    self.asks.take(slot);
                    let region = usize::from(group.region);
                    let latency = shared.now().saturating_sub(ask.born);
                    shared.meters.regions[region].write_latency.add(latency, 1);
                }
            }
        }
    }

    /// The lease timer of a group.
    pub(crate) fn on_lease_timer(&mut self, number: usize, shared: &mut Shared) {
        let mut out = Out::new();
        let group = &mut self.groups[number];
        if group.lease_at != shared.now() {
            return;
        }
        group.lease_at = Micros::MAX;
        let leads = group.live_leader().is_some();
        if leads {
            group.leases.on_timer(shared.time(), &group.catalog, &mut out);
        }
        let next = group.leases.next();
        for message in out.sends {
            if let LeaseMessage::Propose(command) = message.body {
                self.ask(number as u16, command, false, shared);
            }
        }
        if next < Time::NEVER {
            let at = if leads { next.0 } else { shared.now() + S };
            let at = at.max(shared.now() + 100 * MS);
            self.groups[number].plan_lease(number, at, shared);
        }
    }

    /// The renewals of an instance stopped: the last one came at `last`.
    pub(crate) fn uncover(
        &mut self,
        number: usize,
        instance: oncall_discovery::types::InstanceId,
        last: Micros,
        shared: &mut Shared,
    ) {
        let group = &mut self.groups[number];
        let Some(row) = group.catalog.row_of(instance) else { return };
        let mut out = Out::new();
        group.leases.uncover(row, Time(last), &mut out);
        for timer in out.timers {
            group.plan_lease(number, timer.at.0, shared);
        }
    }

    /// Stops replicas of a group. What was stopped is added to `held`; each hold has to be released.
    pub(crate) fn crash(
        &mut self,
        number: usize,
        which: impl Fn(ReplicaId, Option<ReplicaId>) -> bool,
        held: &mut Vec<(u16, ReplicaId)>,
    ) {
        let group = &mut self.groups[number];
        let leader = group.live_leader();
        for id in 0..group.members.len() {
            if !which(id as u8, leader) {
                continue;
            }
            held.push((number as u16, id as u8));
            group.holds[id] += 1;
            let member = std::mem::replace(&mut group.members[id], Member::Gone);
            group.members[id] = match member {
                Member::Up(node) => Member::Down(Box::new(node.into_durable())),
                other => other,
            };
        }
        if group.live_leader().is_none() {
            group.leases.step_down();
            group.decider.step_down();
        }
        group.move_publisher();
    }

    /// Releases a hold on a replica; without any left it starts from its disk.
    pub(crate) fn release(&mut self, (number, id): (u16, ReplicaId), shared: &mut Shared) {
        let number = usize::from(number);
        let group = &mut self.groups[number];
        let replicas = group.members.len() as u8;
        group.holds[usize::from(id)] -= 1;
        if group.holds[usize::from(id)] > 0 {
            return;
        }
        let member = std::mem::replace(&mut group.members[usize::from(id)], Member::Gone);
        group.members[usize::from(id)] = match member {
            Member::Down(durable) => {
                let config = config(number, id, replicas, shared);
                Node::restart(config, *durable, shared.ticks())
                    .map_or(Member::Gone, |node| Member::Up(Box::new(node)))
            }
            other => other,
        };
        group.ticking[usize::from(id)] = Micros::MAX;
        self.schedule(number, id, shared);
        self.groups[number].move_publisher();
    }

    /// Cuts the leader of a group off from its followers; it goes on until it notices.
    pub(crate) fn cut_leader(&mut self, number: usize, until: Micros) {
        if let Some(leader) = self.groups[number].live_leader() {
            self.groups[number].cut = (leader, until);
        }
    }

    /// Makes followers' messages late.
    pub(crate) fn set_lag(&mut self, number: usize, lag: Micros, until: Micros) {
        (self.groups[number].lag, self.groups[number].lag_until) = (lag, until);
    }
}

fn config(number: usize, id: ReplicaId, replicas: u8, shared: &Shared) -> Config {
    let mut config = Config::new(id, replicas, shared.noise.word(Draw::Election, number as u64, 0));
    // A quiet group is cheaper with fewer heartbeats; elections take as long.
    config.heartbeat_interval = 500;
    config.eager_commit = true;
    config
}
