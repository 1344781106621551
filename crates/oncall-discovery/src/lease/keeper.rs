//! The lease keeper of a shard's leader.

use serde::{Deserialize, Serialize};

use crate::catalog::{CatalogShard, Command};
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    EndpointRecord, Generation, InstanceId, Metric, NodeId, Out, Peer, Span, State, Term, Time,
    Transition,
};

/// What the keeper sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LeaseMessage {
    /// To the shard's own log: an expiry.
    Propose(Command),
    /// To a node's agent: these were not renewed, and why. It has to register them again, or to stop them.
    NotRenewed(Vec<(InstanceId, Generation, RenewalRefusal)>),
}

/// The keeper's only timer: look for leases that ran out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseTimer;

/// Why a lease was not renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
pub enum RenewalRefusal {
    /// This replica does not lead.
    #[error("renewal: this replica does not lead")]
    NotLeading,
    /// instance: not on record.
    #[error("instance: not on record")]
    Unknown,
    /// generation: not the one on record.
    #[error("generation: not the one on record")]
    OtherGeneration,
    /// node: the instance is on another.
    #[error("node: the instance is on another")]
    OtherNode,
    /// The record has expired or is about to, or is gone.
    #[error("state: expired or gone; only a new registration helps")]
    Over,
}

/// Nothing heard since this leader began; the grace decides.
const UNHEARD: u32 = 0;

const COVERED: u8 = 1;
const EXPIRING: u8 = 2;

/// Deadlines of a shard's leases, by row of the catalog. Five bytes an instance.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct LeaseKeeper {
    /// The term that this replica leads and whose barrier is committed.
    term: Option<Term>,
    ttl: Span,
    /// No lease runs out before this, in ms: the grace after a change of leader.
    grace_ms: u32,
    /// Lower bound of all deadlines, in ms: nothing to look for before.
    next_ms: u32,
    deadline_ms: Vec<u32>,
    flags: Vec<u8>,
    mutants: Mutants,
}

impl LeaseKeeper {
    /// A keeper of a replica that does not lead.
    pub fn new(ttl: Span) -> Self {
        Self {
            term: None,
            ttl,
            grace_ms: 0,
            next_ms: u32::MAX,
            deadline_ms: Vec::new(),
            flags: Vec::new(),
            mutants: Mutants::default(),
        }
    }

    /// The same with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(self, mutants: Mutants) -> Self {
        Self { mutants, ..self }
    }

    /// The barrier of this replica's term is committed: it may decide expiries from now on, after the grace.
    pub fn lead(&mut self, now: Time, term: Term, out: &mut Out<LeaseMessage, LeaseTimer>) {
        self.term = Some(term);
        self.deadline_ms.fill(UNHEARD);
        // A cover is the driver's word that renewals arrive; it holds for the new leader too.
        self.flags.iter_mut().for_each(|flags| *flags &= COVERED);
        let grace =
            if self.mutants.has(Mutant::NoGraceAfterLeaderChange) { Span::ZERO } else { self.ttl };
        self.grace_ms = now.after(grace).ms();
        self.next_ms = self.grace_ms;
        out.timer(now.after(grace), LeaseTimer);
    }

    /// This replica leads no longer: it renews nothing and decides nothing.
    pub fn step_down(&mut self) {
        self.term = None;
    }

    /// The term that this keeper decides in.
    pub fn term(&self) -> Option<Term> {
        self.term
    }

    /// Another TTL for grants and renewals from now on. Leases that run keep their deadlines.
    pub fn set_ttl(&mut self, ttl: Span) {
        self.ttl = ttl;
    }

    /// A transition was accepted: registrations grant a lease.
    pub fn observe(
        &mut self,
        catalog: &CatalogShard,
        seen: &Transition,
        out: &mut Out<LeaseMessage, LeaseTimer>,
    ) {
        let Some(row) = catalog.row_of(seen.instance) else { return };
        self.reserve(row);
        self.flags[row as usize] &= !EXPIRING;
        let granted = !seen.from.is_some_and(State::leased) && seen.to.leased();
        if granted {
            self.flags[row as usize] = 0;
            self.set(row, seen.time.after(self.ttl).ms(), out);
        }
    }

    /// Renews the leases that a node's agent lists. Those that it may not renew are answered.
    pub fn renew(
        &mut self,
        now: Time,
        catalog: &CatalogShard,
        node: NodeId,
        listed: &[(InstanceId, Generation)],
        out: &mut Out<LeaseMessage, LeaseTimer>,
    ) {
        out.count(Metric::RenewalMessages);
        let mut refused = Vec::new();
        for &(instance, generation) in listed {
            match self.renewable(catalog, node, instance, generation) {
                Ok(row) => {
                    self.reserve(row);
                    // Not `set`: a renewal never brings the next deadline nearer.
                    self.deadline_ms[row as usize] = now.after(self.ttl).ms();
                }
                Err(why) => refused.push((instance, generation, why)),
            }
        }
        out.add(Metric::Renewals, (listed.len() - refused.len()) as u64);
        if !refused.is_empty() {
            out.add(Metric::RenewalsRefused, refused.len() as u64);
            out.send(Peer::Agent(node), LeaseMessage::NotRenewed(refused));
        }
    }

    fn renewable(
        &self,
        catalog: &CatalogShard,
        node: NodeId,
        instance: InstanceId,
        generation: Generation,
    ) -> Result<u32, RenewalRefusal> {
        if self.term.is_none() {
            return Err(RenewalRefusal::NotLeading);
        }
        let row = catalog.row_of(instance).ok_or(RenewalRefusal::Unknown)?;
        let record = catalog.record(row).ok_or(RenewalRefusal::Unknown)?;
        let zombie = self.mutants.has(Mutant::ZombieResurrection);
        if record.generation != generation && !zombie {
            return Err(RenewalRefusal::OtherGeneration);
        }
        if record.node != node {
            return Err(RenewalRefusal::OtherNode);
        }
        let expiring = self.flags.get(row as usize).is_some_and(|flags| flags & EXPIRING != 0);
        if expiring || !record.state.leased() {
            return Err(RenewalRefusal::Over);
        }
        Ok(row)
    }

    /// The driver vouches that this row's renewals arrive; they need not be played.
    pub fn cover(&mut self, row: u32) {
        self.reserve(row);
        self.flags[row as usize] |= COVERED;
    }

    /// Ends the cover: the last renewal arrived at `last`.
    pub fn uncover(&mut self, row: u32, last: Time, out: &mut Out<LeaseMessage, LeaseTimer>) {
        self.reserve(row);
        self.flags[row as usize] &= !COVERED;
        self.set(row, last.after(self.ttl).ms(), out);
    }

    /// Looks for leases that ran out and proposes their expiry, in order of rows.
    pub fn on_timer(
        &mut self,
        now: Time,
        catalog: &CatalogShard,
        out: &mut Out<LeaseMessage, LeaseTimer>,
    ) {
        let Some(term) = self.term else { return };
        if now.ms() < self.next_ms {
            return;
        }
        self.reserve(catalog.rows().saturating_sub(1));
        let mut next_ms = u32::MAX;
        for row in 0..catalog.rows() {
            let flags = self.flags[row as usize];
            if flags != 0 {
                continue;
            }
            let Some(record) = catalog.record(row).filter(|record| record.state.leased()) else {
                continue;
            };
            let deadline_ms = self.deadline_ms[row as usize].max(self.grace_ms);
            if now.ms() < deadline_ms {
                next_ms = next_ms.min(deadline_ms);
                continue;
            }
            self.flags[row as usize] |= EXPIRING;
            out.count(Metric::ExpiriesProposed);
            let (instance, generation) = (record.instance, record.generation);
            let command = Command::Expire { instance, generation, decided: term };
            let peer = Peer::Catalog(catalog.region(), catalog.shard());
            out.send(peer, LeaseMessage::Propose(command));
        }
        self.next_ms = next_ms;
        if next_ms != u32::MAX {
            out.timer(Time::from_ms(u64::from(next_ms)), LeaseTimer);
        }
    }

    /// A proposed expiry did not get into the log. It is tried again `again` later; a renewal until then saves it.
    pub fn not_proposed(
        &mut self,
        now: Time,
        row: u32,
        again: Span,
        out: &mut Out<LeaseMessage, LeaseTimer>,
    ) {
        self.reserve(row);
        self.flags[row as usize] &= !EXPIRING;
        self.set(row, now.after(again).ms(), out);
    }

    /// After a sweep of the catalog: rows got new numbers.
    pub fn renumber(&mut self, moved: &[u32]) {
        let (old, flags) = (std::mem::take(&mut self.deadline_ms), std::mem::take(&mut self.flags));
        for ((&row, deadline_ms), flags) in moved.iter().zip(old).zip(flags) {
            if row != u32::MAX {
                self.reserve(row);
                self.deadline_ms[row as usize] = deadline_ms;
                self.flags[row as usize] = flags;
            }
        }
    }

    /// The record of an instance with its lease, as this leader knows it (R45).
    pub fn record(&self, catalog: &CatalogShard, instance: InstanceId) -> Option<EndpointRecord> {
        let row = catalog.row_of(instance)?;
        let record = catalog.record(row)?;
        Some(EndpointRecord { lease_expiry: self.expiry(row), ..record })
    }

    /// When a row's lease runs out, if nothing more is heard; never, where this replica does not decide.
    pub fn expiry(&self, row: u32) -> Time {
        let flags = self.flags.get(row as usize).copied().unwrap_or_default();
        if self.term.is_none() || flags & COVERED != 0 {
            return Time::NEVER;
        }
        let heard_ms = self.deadline_ms.get(row as usize).copied().unwrap_or(UNHEARD);
        Time::from_ms(u64::from(heard_ms.max(self.grace_ms)))
    }

    /// When to call [`Self::on_timer`] at the latest.
    pub fn next(&self) -> Time {
        if self.next_ms == u32::MAX { Time::NEVER } else { Time::from_ms(u64::from(self.next_ms)) }
    }

    fn set(&mut self, row: u32, deadline_ms: u32, out: &mut Out<LeaseMessage, LeaseTimer>) {
        self.deadline_ms[row as usize] = deadline_ms;
        let deadline_ms = deadline_ms.max(self.grace_ms);
        if deadline_ms < self.next_ms {
            self.next_ms = deadline_ms;
            out.timer(Time::from_ms(u64::from(deadline_ms)), LeaseTimer);
        }
    }

    fn reserve(&mut self, row: u32) {
        let rows = row as usize + 1;
        if self.flags.len() < rows {
            self.flags.resize(rows, 0);
            self.deadline_ms.resize(rows, UNHEARD);
        }
    }
}
