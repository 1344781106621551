//! Applying log entries.

use std::cmp::Ordering;

use super::command::{Command, Entry, Registration};
use super::index::Index;
use super::shard::{CatalogOut, CatalogShard, NIL, Owner, Row, hash_of};
use super::table::{legal, may_move, may_register};
use crate::mutants::Mutant;
use crate::types::{
    AuditEntry, CellUpdate, Change, Generation, InstanceId, Metric, Reason, Revision, Sample,
    Source, State, Term, Time, Transition, Verdict,
};

/// A checked request to change a row.
#[derive(Clone, Copy)]
struct Ask {
    instance: InstanceId,
    generation: Generation,
    to: State,
    reason: Reason,
    source: Source,
    expected: Option<Revision>,
}

impl CatalogShard {
    /// Applies a committed entry of the term `term`. `now` is the acceptance time on the applier's clock; it is
    /// copied into the outputs and decides nothing.
    pub fn apply(&mut self, entry: &Entry, term: Term, now: Time, out: &mut CatalogOut) -> Verdict {
        let done = out.transitions.len();
        let (ask, verdict) = match entry.command {
            Command::Barrier => {
                self.term = self.term.max(term);
                return Verdict::Accepted;
            }
            Command::Sweep { start_before } => {
                self.sweep(start_before, out);
                return Verdict::Accepted;
            }
            // Of no concern to the records.
            Command::Configure { .. } => return Verdict::Accepted,
            Command::Register(registration, source) => {
                let to = if registration.ready { State::Ready } else { State::Starting };
                let ask = Ask {
                    instance: registration.instance,
                    generation: registration.generation,
                    to,
                    reason: Reason::Registered,
                    source,
                    expected: None,
                };
                (ask, self.register(&registration, source, now, out))
            }
            Command::Move { instance, generation, to, reason, source, expected } => {
                let ask = Ask { instance, generation, to, reason, source, expected };
                (ask, self.transition(ask, now, out))
            }
            Command::Expire { instance, generation, decided } => {
                let to = State::Expired;
                let (reason, source) = (Reason::LeaseExpired, Source::Leases(decided));
                let ask = Ask { instance, generation, to, reason, source, expected: None };
                let current = decided == self.term && term == self.term;
                if current || self.mutants.has(Mutant::OldLeaderExpiry) {
                    (ask, self.transition(ask, now, out))
                } else {
                    (ask, Verdict::StaleTerm)
                }
            }
            Command::Weigh { instance, generation, weight, source } => {
                let to = self.find(instance).map_or(State::Gone, |record| record.state);
                let reason = Reason::Reweighted;
                let ask = Ask { instance, generation, to, reason, source, expected: None };
                (ask, self.weigh(ask, weight, now, out))
            }
        };
        self.write_audit(entry, term, ask, verdict, &out.transitions[done..]);
        let registers = matches!(entry.command, Command::Register(..));
        let metric = match verdict {
            Verdict::Accepted if registers => Some(Metric::Registrations),
            Verdict::Accepted | Verdict::AlreadySo => None,
            _ => Some(Metric::WritesRefused),
        };
        out.samples.extend(metric.map(|metric| Sample { metric, value: 1 }));
        verdict
    }

    /// One line for each transition, or one for what changed no state: a refusal, a weight.
    fn write_audit(
        &mut self,
        entry: &Entry,
        term: Term,
        ask: Ask,
        verdict: Verdict,
        done: &[Transition],
    ) {
        let mut line = AuditEntry {
            sequence: 0,
            proposed: entry.proposed,
            term,
            source: ask.source,
            instance: ask.instance,
            generation: ask.generation,
            from: None,
            to: ask.to,
            reason: ask.reason,
            verdict,
            revision: Revision(0),
        };
        if done.is_empty() {
            if let Some(row) = self.row_of(ask.instance) {
                let row = &self.rows[row as usize];
                line.from = Some(row.state);
                line.revision = self.cells[usize::from(row.cell)].revision;
            }
            self.audit.write(line);
        }
        for transition in done {
            self.audit.write(AuditEntry {
                instance: transition.instance,
                generation: transition.generation,
                from: transition.from,
                to: transition.to,
                reason: transition.reason,
                revision: transition.revision,
                ..line
            });
        }
    }

    /// The checks that all commands about a known instance share.
    fn known(&self, ask: Ask) -> Result<usize, Verdict> {
        let row = self.row_of(ask.instance).ok_or(Verdict::UnknownInstance)? as usize;
        match ask.generation.cmp(&self.rows[row].generation) {
            Ordering::Equal => Ok(row),
            _ if self.mutants.has(Mutant::ZombieResurrection) => Ok(row),
            Ordering::Less => Err(Verdict::OldGeneration),
            Ordering::Greater => Err(Verdict::UnknownGeneration),
        }
    }

    fn transition(&mut self, ask: Ask, now: Time, out: &mut CatalogOut) -> Verdict {
        let at = match self.known(ask) {
            Ok(at) => at,
            Err(verdict) => return verdict,
        };
        let row = self.rows[at];
        if !may_move(ask.source, ask.reason, ask.instance, row.node) {
            return Verdict::WrongSource;
        }
        if row.state == ask.to {
            return Verdict::AlreadySo;
        }
        // Health decides on what it saw a while ago; only it must say what it read.
        let fresh = match ask.expected {
            Some(expected) => expected == row.revision,
            None => !matches!(ask.source, Source::Health),
        };
        if !fresh && !self.mutants.has(Mutant::StaleCompareAndSet) {
            return Verdict::StaleRead;
        }
        if !legal(row.state, ask.to, ask.reason) {
            return Verdict::IllegalTransition;
        }
        self.go(at, Some(row.state), ask.to, (ask.reason, ask.source), now, out);
        Verdict::Accepted
    }

    fn weigh(&mut self, ask: Ask, weight: u16, now: Time, out: &mut CatalogOut) -> Verdict {
        let at = match self.known(ask) {
            Ok(at) => at,
            Err(verdict) => return verdict,
        };
        if ask.source != Source::Controller {
            return Verdict::WrongSource;
        }
        if weight == 0 {
            return Verdict::ZeroWeight;
        }
        let row = self.rows[at];
        if !row.state.leased() {
            return Verdict::IllegalTransition;
        }
        if row.weight == weight {
            return Verdict::AlreadySo;
        }
        let before = self.to_record(&row).endpoint();
        let cell = &mut self.cells[usize::from(row.cell)];
        cell.revision = cell.revision.next();
        self.rows[at].weight = weight;
        self.rows[at].revision = cell.revision;
        if row.state.routable() {
            let after = self.to_record(&self.rows[at]).endpoint();
            let change = Change::Changed(before, after);
            self.publish(usize::from(row.cell), change, ask.reason, now, out);
        }
        Verdict::Accepted
    }

    fn register(
        &mut self,
        asked: &Registration,
        source: Source,
        now: Time,
        out: &mut CatalogOut,
    ) -> Verdict {
        let known = match self.may_enter(asked, source) {
            Ok(known) => known,
            Err(verdict) => return verdict,
        };
        let displaced = match self.displaced(asked) {
            Ok(displaced) => displaced,
            Err(verdict) => return verdict,
        };
        // The address answers for the new process from now on: whoever held it must be out of every routable set
        // before the next revision is read.
        if let Some(row) = displaced {
            let from = self.rows[row].state;
            self.go(row, Some(from), State::Expired, (Reason::Replaced, source), now, out);
        }
        if let Some(at) = known.filter(|&at| self.rows[at].state.leased()) {
            let from = self.rows[at].state;
            self.go(at, Some(from), State::Expired, (Reason::Replaced, source), now, out);
        }
        let same_process = |row: &Row| {
            row.generation.start == asked.generation.start && row.state == State::Expired
        };
        let again = known.filter(|&at| same_process(&self.rows[at]));
        let (at, from, reason) = match again {
            Some(at) => (at, Some(State::Expired), Reason::Reregistered),
            None => (self.fresh(known, asked), None, Reason::Registered),
        };
        let started = again.is_some() && self.rows[at].started;
        let row = &mut self.rows[at];
        row.generation = asked.generation;
        row.address = asked.address;
        row.labels = asked.labels;
        row.node = asked.node;
        row.version = asked.version;
        row.weight = asked.weight;
        row.zone = asked.place.zone;
        row.started = started;
        self.own(at);
        let to = if asked.ready && started { State::Ready } else { State::Starting };
        self.go(at, from, to, (reason, source), now, out);
        Verdict::Accepted
    }

    /// Whether a registration may enter, and the row of the instance if there is one.
    fn may_enter(&self, asked: &Registration, source: Source) -> Result<Option<usize>, Verdict> {
        let cell = self.cell_at(asked.cell).ok_or(Verdict::WrongCell)?;
        if asked.place.region != self.region {
            return Err(Verdict::WrongCell);
        }
        if !may_register(source, asked) {
            return Err(Verdict::WrongSource);
        }
        if asked.weight == 0 {
            return Err(Verdict::ZeroWeight);
        }
        let Some(at) = self.row_of(asked.instance) else {
            let ghost = asked.generation.start < self.floor;
            return if ghost { Err(Verdict::BelowFloor) } else { Ok(None) };
        };
        let row = &self.rows[at as usize];
        if usize::from(row.cell) != cell {
            return Err(Verdict::WrongCell);
        }
        let known = row.generation;
        let zombie = self.mutants.has(Mutant::ZombieResurrection);
        match asked.generation.cmp(&known) {
            Ordering::Equal if !zombie && row.state.leased() => Err(Verdict::AlreadySo),
            // Equal: gone and expired lives stay so; a process that lives on must raise its sequence (D10).
            Ordering::Less | Ordering::Equal if !zombie => Err(Verdict::OldGeneration),
            Ordering::Greater if asked.generation.start > known.start => Ok(Some(at as usize)),
            _ => match row.state {
                State::Expired => Ok(Some(at as usize)),
                State::Gone if !zombie => Err(Verdict::OldGeneration),
                _ if zombie => Ok(Some(at as usize)),
                _ => Err(Verdict::IllegalTransition),
            },
        }
    }

    /// The live row that a registration pushes off its address, unless the address is a newer process's (I8).
    fn displaced(&self, asked: &Registration) -> Result<Option<usize>, Verdict> {
        if self.mutants.has(Mutant::SharedAddress) {
            return Ok(None);
        }
        let Some(owner) = self.owner_at(asked.address) else { return Ok(None) };
        let owner = self.owners[owner as usize];
        let holder = self.rows.get(owner.row as usize);
        if holder.is_some_and(|holder| holder.instance == asked.instance) {
            return Ok(None);
        }
        if owner.start >= asked.generation.start {
            return Err(Verdict::AddressTaken);
        }
        let there = |holder: &&Row| holder.address == asked.address && holder.state.leased();
        Ok(holder.filter(there).map(|_| owner.row as usize))
    }

    /// A row for a new life: the instance's own, or a new one at the end.
    fn fresh(&mut self, known: Option<usize>, asked: &Registration) -> usize {
        if let Some(at) = known {
            let row = self.rows[at];
            self.cells[usize::from(row.cell)].counts[row.state as usize] -= 1;
            if row.state != State::Gone {
                self.unlink(at);
            }
            return at;
        }
        let at = self.rows.len();
        self.rows.push(Row {
            instance: asked.instance,
            generation: asked.generation,
            address: asked.address,
            labels: asked.labels,
            revision: Revision(0),
            next: NIL,
            previous: NIL,
            node: asked.node,
            version: asked.version,
            weight: asked.weight,
            cell: self.cell_of[asked.cell.service.index()],
            zone: asked.place.zone,
            state: State::Gone,
            started: false,
        });
        let rows = &self.rows;
        let hash = |row: u32| u64::from(rows[row as usize].instance.0);
        self.by_instance.insert(u64::from(asked.instance.0), at as u32, hash);
        at
    }

    /// Makes a row the owner of its address.
    fn own(&mut self, at: usize) {
        let row = &self.rows[at];
        let owner = Owner { address: row.address, row: at as u32, start: row.generation.start };
        if let Some(place) = self.owner_at(owner.address) {
            self.owners[place as usize] = owner;
            return;
        }
        let place = self.owners.len() as u32;
        self.owners.push(owner);
        let owners = &self.owners;
        let hash = |place: u32| hash_of(owners[place as usize].address);
        self.by_address.insert(hash_of(owner.address), place, hash);
    }

    /// Carries out a transition. `from` is `None` for a new life, whose row is in no list and in no count.
    fn go(
        &mut self,
        at: usize,
        from: Option<State>,
        to: State,
        (reason, source): (Reason, Source),
        now: Time,
        out: &mut CatalogOut,
    ) {
        let index = usize::from(self.rows[at].cell);
        let cell = &mut self.cells[index];
        cell.revision = cell.revision.next();
        if let Some(from) = from {
            cell.counts[from as usize] -= 1;
        }
        cell.counts[to as usize] += 1;
        let row = &mut self.rows[at];
        row.revision = cell.revision;
        row.state = to;
        row.started |= to == State::Ready;
        let (instance, generation) = (row.instance, row.generation);
        let transition = Transition {
            cell: cell.cell,
            instance,
            generation,
            from,
            to,
            reason,
            source,
            revision: cell.revision,
            time: now,
        };
        out.transitions.push(transition);
        if from.is_none() {
            self.link(at);
        } else if to == State::Gone {
            self.unlink(at);
        }
        let endpoint = self.to_record(&self.rows[at]).endpoint();
        let was = from.is_some_and(State::routable);
        if was && !to.routable() {
            self.publish(index, Change::Removed(endpoint), reason, now, out);
        } else if !was && to.routable() {
            self.publish(index, Change::Added(endpoint), reason, now, out);
        }
    }

    /// Moves a cell's head to its revision and tells the distribution tier.
    fn publish(
        &mut self,
        index: usize,
        change: Change,
        reason: Reason,
        now: Time,
        out: &mut CatalogOut,
    ) {
        let cell = &mut self.cells[index];
        let sum = cell.checksum;
        cell.checksum = match &change {
            Change::Added(endpoint) => sum.wrapping_add(endpoint.fingerprint()),
            Change::Removed(endpoint) => sum.wrapping_sub(endpoint.fingerprint()),
            Change::Changed(before, after) => {
                sum.wrapping_sub(before.fingerprint()).wrapping_add(after.fingerprint())
            }
        };
        let from = std::mem::replace(&mut cell.head, cell.revision);
        out.updates.push(CellUpdate {
            cell: cell.cell,
            incarnation: self.incarnation,
            from,
            to: cell.head,
            change,
            reason,
            count: cell.counts[State::Ready as usize],
            checksum: cell.checksum,
            accepted: now,
        });
    }

    fn link(&mut self, at: usize) {
        let cell = &mut self.cells[usize::from(self.rows[at].cell)];
        let next = std::mem::replace(&mut cell.first, at as u32);
        self.rows[at].next = next;
        self.rows[at].previous = NIL;
        if let Some(row) = self.rows.get_mut(next as usize) {
            row.previous = at as u32;
        }
    }

    fn unlink(&mut self, at: usize) {
        let Row { next, previous, cell, .. } = self.rows[at];
        match self.rows.get_mut(previous as usize) {
            Some(row) => row.next = next,
            None => self.cells[usize::from(cell)].first = next,
        }
        if let Some(row) = self.rows.get_mut(next as usize) {
            row.previous = previous;
        }
        self.rows[at].next = NIL;
        self.rows[at].previous = NIL;
    }

    /// Forgets rows that are gone and started before a bound; the others move together and get new numbers.
    fn sweep(&mut self, start_before: u32, out: &mut CatalogOut) {
        self.floor = self.floor.max(start_before);
        let old = std::mem::take(&mut self.rows);
        self.by_instance = Index::default();
        let keep = |row: &Row| row.state != State::Gone || row.generation.start >= start_before;
        let mut moved = vec![NIL; old.len()];
        for (from, row) in old.iter().enumerate().filter(|(_, row)| keep(row)) {
            moved[from] = self.rows.len() as u32;
            self.rows.push(*row);
        }
        for cell in &mut self.cells {
            cell.first = moved.get(cell.first as usize).copied().unwrap_or(NIL);
            cell.counts[State::Gone as usize] = 0;
        }
        for at in 0..self.rows.len() {
            let row = &mut self.rows[at];
            row.next = moved.get(row.next as usize).copied().unwrap_or(NIL);
            row.previous = moved.get(row.previous as usize).copied().unwrap_or(NIL);
            if row.state == State::Gone {
                self.cells[usize::from(row.cell)].counts[State::Gone as usize] += 1;
            }
            let instance = row.instance;
            let rows = &self.rows;
            let hash = |row: u32| u64::from(rows[row as usize].instance.0);
            self.by_instance.insert(u64::from(instance.0), at as u32, hash);
        }
        // Owners stay even where their row went: an older process must not get the address back.
        for at in 0..self.owners.len() {
            let owner = &mut self.owners[at];
            owner.row = moved.get(owner.row as usize).copied().unwrap_or(NIL);
        }
        out.moved = Some(moved);
    }
}
