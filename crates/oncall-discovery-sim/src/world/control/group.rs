//! One consistency group: its replicas, the state that they agree on, and its publisher.

use super::{Ask, Effects, Node};
use crate::queue::{Micros, S};
use crate::world::shared::{Event, Shared};
use oncall_consensus::{Durable, Index, NodeId as ReplicaId, Output, Term as RaftTerm};
use oncall_discovery::catalog::{CatalogOut, CatalogShard, Command, Entry};
use oncall_discovery::health::Decider;
use oncall_discovery::lease::LeaseKeeper;
use oncall_discovery::mutants::Mutants;
use oncall_discovery::types::{CellUpdate, Out, Term, Verdict};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A replica, or its disk while it is down.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Member {
    Up(Box<Node>),
    Down(Box<Durable<Entry, ()>>),
    /// Between two states; never seen by anybody.
    Gone,
}

/// One consistency group of a region.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) region: u8,
    pub(super) members: Vec<Member>,
    /// Faults that keep each replica down.
    pub(super) holds: Vec<u16>,
    pub(crate) catalog: CatalogShard,
    pub(crate) leases: LeaseKeeper,
    pub(crate) decider: Decider,
    pub(super) applied: Index,
    /// Updates that the publisher's replica has not applied yet.
    pub(super) unpublished: VecDeque<(Index, CellUpdate)>,
    /// Settings that it has not read yet.
    pub(super) policies: VecDeque<(Index, u32)>,
    /// The replica beside which the publisher runs.
    pub(super) publisher: ReplicaId,
    /// Commands in the log whose outcome is not known yet.
    pub(super) waiting: VecDeque<(Index, u32)>,
    /// Extra delay of messages to followers.
    pub(super) lag: Micros,
    pub(super) lag_until: Micros,
    pub(crate) leader: Option<ReplicaId>,
    /// When the publisher's replica last heard of a leader with a quorum.
    pub(crate) confirmed: Micros,
    /// When each replica's next valid tick comes; others in the queue are void.
    pub(super) ticking: Vec<Micros>,
    /// The same for the lease timer.
    pub(super) lease_at: Micros,
    /// The same for the decider's review.
    pub(crate) review_at: Micros,
    /// A replica that is cut off from the others, and until when.
    pub(super) cut: (ReplicaId, Micros),
}

impl Group {
    /// Takes safeguards out, for tests.
    pub(crate) fn set_mutants(&mut self, mutants: Mutants) {
        self.catalog = self.catalog.clone().with_mutants(mutants);
        self.leases = self.leases.clone().with_mutants(mutants);
        self.decider = self.decider.clone().with_mutants(mutants);
    }

    /// The live replica that leads in the highest term.
    pub(crate) fn live_leader(&self) -> Option<ReplicaId> {
        let live = self.members.iter().enumerate().filter_map(|(id, member)| match member {
            Member::Up(node) if node.is_leader() => Some((node.term(), id as u8)),
            _ => None,
        });
        live.max().map(|(_, id)| id)
    }

    /// Last index of the log that was applied.
    pub(crate) fn applied(&self) -> Index {
        self.applied
    }

    /// Whether a leader with a quorum is there.
    pub(crate) fn has_quorum(&mut self, ticks: u64) -> bool {
        self.members.iter_mut().any(|member| match member {
            Member::Up(node) => node.is_leader() && node.lease_read(ticks).is_ok(),
            _ => false,
        })
    }

    pub(crate) fn term(&self) -> RaftTerm {
        let terms = self.members.iter().filter_map(|member| match member {
            Member::Up(node) => Some(node.term()),
            _ => None,
        });
        terms.max().unwrap_or(0)
    }

    /// Applies what this replica knows to be committed and nobody applied before.
    pub(super) fn apply(
        &mut self,
        number: usize,
        replica: ReplicaId,
        shared: &mut Shared,
        (effects, out): (&mut Effects, &mut CatalogOut),
    ) {
        let Member::Up(node) = &mut self.members[usize::from(replica)] else { return };
        let commit = node.commit_index();
        if commit > self.applied {
            let now = shared.time();
            let first = self.applied + 1;
            for (offset, entry) in node.entries(first, commit).enumerate() {
                let index = first + offset as u64;
                out.clear();
                let Some(asked) = entry.command() else {
                    let barrier = Entry { proposed: now, command: Command::Barrier };
                    self.catalog.apply(&barrier, Term(entry.term), now, out);
                    continue;
                };
                if let Command::Configure { version } = asked.command {
                    shared.totals.accepted += 1;
                    shared.meters.regions[usize::from(self.region)].writes += 1;
                    effects.configured.push((usize::from(self.region), version));
                    self.policies.push_back((index, version));
                    continue;
                }
                let before = self.catalog.audit().written();
                let verdict = self.catalog.apply(asked, Term(entry.term), now, out);
                shared.assert(self.catalog.audit().written() > before, "I14", || {
                    format!("no audit line for {asked:?}")
                });
                count_verdict(shared, usize::from(self.region), verdict);
                let mut health = Out::new();
                for transition in out.transitions.drain(..) {
                    self.leases.observe(&self.catalog, &transition, &mut Out::new());
                    self.decider.observe(&self.catalog, &transition, &mut health);
                    if let Some(row) = self.catalog.row_of(transition.instance) {
                        self.leases.cover(row);
                    }
                    effects.transitions.push((transition, asked.proposed.0));
                }
                if let Some(instance) = of_health(&asked.command) {
                    self.decider.ended(now, instance, Some(verdict), &self.catalog, &mut health);
                }
                if !health.sends.is_empty() || !health.timers.is_empty() {
                    effects.health.push((number, health));
                }
                for update in out.updates.drain(..) {
                    self.unpublished.push_back((index, update));
                }
            }
            self.applied = commit;
        }
        if node.commit_index() > 2_048 && node.commit_index() % 1_024 < 8 {
            let _ = node.compact(node.commit_index(), (), 512, &mut Output::new());
        }
    }

    /// Hands over what the publisher's replica has applied.
    pub(super) fn publish(&mut self, _shared: &mut Shared, effects: &mut Effects) {
        let Member::Up(node) = &self.members[usize::from(self.publisher)] else { return };
        let commit = node.commit_index();
        while let Some(&(index, version)) = self.policies.front() {
            if index > commit {
                break;
            }
            self.policies.pop_front();
            effects.policies.push((usize::from(self.region), version));
        }
        while let Some((index, _)) = self.unpublished.front() {
            if *index > commit {
                break;
            }
            if let Some((_, update)) = self.unpublished.pop_front() {
                effects.updates.push(update);
            }
        }
    }

    /// Makes sure that the leases are looked at no later than at a time.
    pub(super) fn plan_lease(&mut self, number: usize, at: Micros, shared: &mut Shared) {
        let at = at.max(shared.now() + 1);
        if at < self.lease_at {
            self.lease_at = at;
            shared.push(at, Event::Lease { group: number as u16 });
        }
    }

    /// How long ago the oldest update was accepted that its publisher has not read yet, seconds.
    pub(crate) fn lag_s(&self, now: Micros) -> f64 {
        // Heartbeats show how far a follower lags also while nothing is written.
        let lag = if now < self.lag_until { self.lag } else { 0 };
        let oldest = self.unpublished.front();
        let unpublished = oldest.map_or(0, |(_, update)| now.saturating_sub(update.accepted.0));
        lag.max(unpublished) as f64 / S as f64
    }

    pub(super) fn confirm(&mut self, shared: &Shared) {
        if self.has_quorum(shared.ticks()) {
            self.confirmed = shared.now();
        }
    }

    /// The publisher runs beside a live follower, or the leader if there is none.
    pub(super) fn move_publisher(&mut self) {
        let leader = self.live_leader();
        let up = |id: &u8| matches!(self.members[usize::from(*id)], Member::Up(_));
        if up(&self.publisher) && Some(self.publisher) != leader {
            return;
        }
        let ids: Vec<u8> = (0..self.members.len() as u8).filter(up).collect();
        let follower = ids.iter().find(|id| Some(**id) != leader);
        if let Some(&id) = follower.or(ids.first()) {
            self.publisher = id;
        }
    }

    /// Whether a command stands at its place of the log; `None` if another entry does.
    pub(super) fn outcome_of(&self, ask: &Ask) -> Option<()> {
        let (index, term) = ask.proposal?;
        let node = self.members.iter().find_map(|member| match member {
            Member::Up(node) if node.commit_index() >= index => Some(node),
            _ => None,
        })?;
        let proposal = oncall_consensus::Proposal { index, term };
        (node.outcome(proposal) != oncall_consensus::Outcome::Superseded).then_some(())
    }
}

/// The instance of a proposal of the decider.
pub(super) fn of_health(command: &Command) -> Option<oncall_discovery::types::InstanceId> {
    match command {
        Command::Move { instance, source: oncall_discovery::types::Source::Health, .. } => {
            Some(*instance)
        }
        _ => None,
    }
}

fn count_verdict(shared: &mut Shared, region: usize, verdict: Verdict) {
    let counters = &mut shared.meters.regions[region];
    match verdict {
        Verdict::Accepted => counters.writes += 1,
        Verdict::AlreadySo => {}
        _ => counters.refused += 1,
    }
    let totals = &mut shared.totals;
    match verdict {
        Verdict::Accepted => totals.accepted += 1,
        Verdict::AlreadySo => totals.already_so += 1,
        Verdict::OldGeneration | Verdict::BelowFloor => {
            totals.old_generation_refused += 1;
            shared.goals.old_generation_refused += 1;
        }
        Verdict::StaleTerm => {
            totals.old_term_expiries_refused += 1;
            shared.goals.old_term_expiry_refused += 1;
        }
        _ => totals.refused_by_catalog += 1,
    }
}
