//! The health decider of a shard's leader: evidence in, proposals out.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::dependency::DependencyMode;
use super::guard::Guard;
use super::passive::{Complaints, PassiveRule};
use super::probe::{Opinion, ProbeRecord, Thresholds};
use super::prober::{ProberCheck, QuarantineRule};
use crate::catalog::{CatalogShard, Command};
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    EndpointRecord, Generation, InstanceId, Metric, Out, Peer, Place, ProberId, ProxyId, Reason,
    Source, Span, State, Time, Transition, Verdict,
};

/// Probers of a region, at most.
pub const PROBERS_MAX: usize = 3;

/// What the decider sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HealthMessage {
    /// To the shard's own log.
    Propose(Command),
    /// To a prober: probe this at once. Proxies complain about it.
    ProbeNow(InstanceId, Generation),
    /// To a node's agent: say how this is. A new leader does not know what was reported to the old one.
    ReportNow(InstanceId, Generation),
}

/// The decider's only timer: look again at what was held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HealthTimer;

/// The rules in force.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HealthRules {
    /// Runs of probes that change an opinion.
    pub thresholds: Thresholds,
    /// Probers that must agree on a removal; fewer if some are in quarantine.
    pub confirming: u8,
    /// Probers of the region, 1 to 3.
    pub probers: u8,
    /// Share that may be removed within 60 s, in percent.
    pub guard_share_pct: f64,
    /// Which dependencies count in readiness.
    pub mode: DependencyMode,
    /// When a prober is not believed.
    pub quarantine: QuarantineRule,
    /// When complaints count.
    pub passive: PassiveRule,
}

impl HealthRules {
    /// From the dials, for a region with so many probers; the rest by default.
    pub fn new(dials: &Dials, probers: u8) -> Self {
        let window = Dials::span_s(dials.probe_interval_s);
        Self {
            thresholds: Thresholds::from(dials),
            confirming: dials.confirming_probers as u8,
            probers: probers.clamp(1, PROBERS_MAX as u8),
            guard_share_pct: dials.guard_share_pct,
            mode: DependencyMode::from_dial(dials.dependency_mode).unwrap_or_default(),
            quarantine: QuarantineRule { window, ..QuarantineRule::default() },
            passive: PassiveRule::default(),
        }
    }
}

/// A probe's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSeen {
    /// Who probed.
    pub prober: ProberId,
    /// Whom.
    pub instance: InstanceId,
    /// Which life of it.
    pub generation: Generation,
    /// Whether it answered, well and in time.
    pub ok: bool,
}

/// Proposed, and not yet decided.
const PENDING: u8 = 1;
/// The pending proposal is a removal, which the guard has counted.
const REMOVING: u8 = 2;
/// The agent says that it is through startup.
const STARTED: u8 = 4;
/// The agent says that it is not ready.
const NOT_READY: u8 = 8;
/// The agent has said something about this life.
const REPORTED: u8 = 16;
/// The guard held a removal back, and it was counted.
const HELD: u8 = 32;
/// It was registered by a controller or an agent, so that an agent's report must come before READY.
const MANAGED: u8 = 64;

/// How often what was held back is looked at again.
const REVIEW: Span = Span::from_s(1);

/// The decider. Eight bytes an instance and some for what is going on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Decider {
    rules: HealthRules,
    probes: Vec<[ProbeRecord; PROBERS_MAX]>,
    flags: Vec<u8>,
    /// Zone in which a row became READY; its record may say another by the time it is replaced.
    zones: Vec<u8>,
    checks: [ProberCheck; PROBERS_MAX],
    /// READY instances by zone.
    zone_ready: Vec<u32>,
    guard: Guard,
    complaints: Complaints,
    /// Rows to look at again: held back by the guard, or not taken by the log.
    waiting: BTreeSet<u32>,
    leading: bool,
    mutants: Mutants,
}

type HealthOut = Out<HealthMessage, HealthTimer>;

impl Decider {
    /// A decider of a replica that does not lead.
    pub fn new(rules: HealthRules) -> Self {
        Self {
            rules,
            probes: Vec::new(),
            flags: Vec::new(),
            zones: Vec::new(),
            checks: [ProberCheck::default(); PROBERS_MAX],
            zone_ready: Vec::new(),
            guard: Guard::default(),
            complaints: Complaints::default(),
            waiting: BTreeSet::new(),
            leading: false,
            mutants: Mutants::default(),
        }
    }

    /// The same with safeguards taken out, for tests.
    #[must_use]
    pub fn with_mutants(self, mutants: Mutants) -> Self {
        Self { mutants, ..self }
    }

    /// This replica leads: it starts without opinions, and asks the agents of what is not READY for theirs. What it
    /// saw accepted stays in the guard's count. Agents repeat "not ready" with every renewal, so that a READY
    /// instance's is not lost.
    pub fn lead(&mut self, catalog: &CatalogShard, out: &mut HealthOut) {
        self.probes.fill([ProbeRecord::NEW; PROBERS_MAX]);
        self.flags.iter_mut().for_each(|flags| *flags &= MANAGED);
        self.guard.reset_pending();
        self.complaints.clear_all();
        self.waiting.clear();
        self.leading = true;
        for (row, flags) in (0..catalog.rows()).zip(&self.flags) {
            let Some(record) = catalog.record(row).filter(|_| flags & MANAGED != 0) else {
                continue;
            };
            if matches!(record.state, State::Starting | State::Unhealthy) {
                let message = HealthMessage::ReportNow(record.instance, record.generation);
                out.send(Peer::Agent(record.node), message);
            }
        }
    }

    /// This replica leads no longer.
    pub fn step_down(&mut self) {
        self.leading = false;
    }

    /// Other dials. They count from the next evidence on, and opinions that took fewer probes than are asked for now
    /// have to be earned anew; see [`ProbeRecord::raise`].
    pub fn set_rules(&mut self, rules: HealthRules) {
        let before = std::mem::replace(&mut self.rules, rules).thresholds;
        for record in self.probes.iter_mut().flatten() {
            record.raise(before, rules.thresholds);
        }
    }

    /// The rules in force.
    pub fn rules(&self) -> &HealthRules {
        &self.rules
    }

    /// Rows whose removal the guard holds back now.
    pub fn held(&self) -> usize {
        self.waiting.iter().filter(|&&row| self.flags[row as usize] & HELD != 0).count()
    }

    /// Whether a prober is in quarantine.
    pub fn quarantined(&self, now: Time, prober: ProberId) -> bool {
        let known = self.checks.get(prober.index());
        known.is_some_and(|check| check.quarantined(now))
            && !self.mutants.has(Mutant::NoProberQuarantine)
    }

    /// A prober's opinion of a row.
    pub fn opinion(&self, row: u32, prober: ProberId) -> Opinion {
        let records = self.probes.get(row as usize);
        records
            .and_then(|records| records.get(prober.index()))
            .map_or(Opinion::Unknown, |r| r.opinion())
    }

    /// The prober that takes the `turn`-th look at a row, whose own probers are `first` and those after it: those that
    /// are believed come first, so that a prober in quarantine is stood in for, and no two turns are the same one's.
    pub fn looks(&self, now: Time, first: ProberId, turn: u8) -> ProberId {
        let probers = self.rules.probers;
        let own = || (0..probers).map(|hop| ProberId((first.0 + hop) % probers));
        let believed = own().filter(|&prober| !self.quarantined(now, prober));
        let others = own().filter(|&prober| self.quarantined(now, prober));
        believed.chain(others).nth(turn.into()).unwrap_or(first)
    }

    /// Whether successes in a READY row, by those that look at it (see [`Decider::looks`]), change nothing: each of
    /// them that is believed has seen enough in a row, and nobody holds it for down.
    pub fn settled(&self, now: Time, row: u32, first: ProberId) -> bool {
        let Some(records) = self.probes.get(row as usize) else { return false };
        let turns = 0..self.rules.confirming.clamp(1, self.rules.probers);
        let looking = turns.map(|turn| self.looks(now, first, turn));
        let mut believed = looking.filter(|&prober| !self.quarantined(now, prober));
        let settled = |prober: ProberId| records[prober.index()].settled_up(self.rules.thresholds);
        believed.all(settled) && records.iter().all(|record| record.opinion() != Opinion::Down)
    }

    /// Results of probes that changed no record (successes of [`ProbeRecord::settled_up`] instances); only the
    /// prober's own check counts them. For drivers that do not play every probe.
    pub fn settled_probes(&mut self, now: Time, prober: ProberId, ok: u32) {
        if let Some(check) = self.checks.get_mut(prober.index()) {
            check.record(now, ok, 0, self.rules.quarantine);
        }
    }

    /// A prober's result about an instance.
    pub fn on_probe(
        &mut self,
        now: Time,
        seen: ProbeSeen,
        catalog: &CatalogShard,
        out: &mut HealthOut,
    ) {
        let Some(row) = catalog.row_of(seen.instance) else { return };
        if catalog.record(row).is_some_and(|record| record.generation == seen.generation) {
            self.on_probe_of_row(now, row, seen.prober, seen.ok, catalog, out);
        }
    }

    /// The same for a driver that knows the row and that the generation is the present one.
    pub fn on_probe_of_row(
        &mut self,
        now: Time,
        row: u32,
        prober: ProberId,
        ok: bool,
        catalog: &CatalogShard,
        out: &mut HealthOut,
    ) {
        if prober.index() >= usize::from(self.rules.probers) {
            return;
        }
        self.reserve(row);
        if !ok {
            out.count(Metric::ProbeFailures);
        }
        let check = &mut self.checks[prober.index()];
        if check.record(now, ok.into(), (!ok).into(), self.rules.quarantine)
            && !self.mutants.has(Mutant::NoProberQuarantine)
        {
            // What it said in the run-up is worth nothing either.
            for records in &mut self.probes {
                records[prober.index()] = ProbeRecord::NEW;
            }
        }
        if self.quarantined(now, prober) {
            out.count(Metric::ProbesQuarantined);
            return;
        }
        let record = &mut self.probes[row as usize][prober.index()];
        let changed = record.record(ok, self.rules.thresholds).is_some();
        let opinion = record.opinion();
        self.complaints.probed(now, row, ok);
        if changed
            || (!ok && self.complaints.about(row))
            || self.asks_again(row, ok, opinion, catalog)
        {
            self.decide(now, row, catalog, out);
        }
    }

    /// Whether a result repeats an opinion that speaks for a move: what stood against it may have gone without any
    /// new opinion, with a dial or with a prober that is not believed any more.
    fn asks_again(&self, row: u32, ok: bool, opinion: Opinion, catalog: &CatalogShard) -> bool {
        let repeats = if ok { Opinion::Up } else { Opinion::Down };
        opinion == repeats
            && catalog.record(row).is_some_and(|record| match record.state {
                State::Ready => !ok,
                State::Starting | State::Unhealthy => ok,
                State::Draining | State::Expired | State::Gone => false,
            })
            && !self.waiting.contains(&row)
    }

    /// What a node's agent says of an instance: through startup, and ready as far as the dial looks.
    pub fn on_report(
        &mut self,
        now: Time,
        (instance, generation): (InstanceId, Generation),
        (started, ready): (bool, bool),
        catalog: &CatalogShard,
        out: &mut HealthOut,
    ) {
        let Some(row) = catalog.row_of(instance) else { return };
        if catalog.record(row).is_none_or(|record| record.generation != generation) {
            return;
        }
        self.reserve(row);
        let flags = &mut self.flags[row as usize];
        *flags = (*flags & !(STARTED | NOT_READY)) | REPORTED;
        *flags |= if started { STARTED } else { 0 } | if ready { 0 } else { NOT_READY };
        self.decide(now, row, catalog, out);
    }

    /// A proxy complains about an instance. Alone this changes nothing (I13): it may bring about a probe at once,
    /// and only a failed one makes the complaints count.
    pub fn on_complaint(
        &mut self,
        now: Time,
        (instance, generation): (InstanceId, Generation),
        from: (ProxyId, Place),
        catalog: &CatalogShard,
        out: &mut HealthOut,
    ) {
        out.count(Metric::PassiveReports);
        let Some(row) = catalog.row_of(instance) else { return };
        let ready = |record: &EndpointRecord| {
            record.generation == generation && record.state == State::Ready
        };
        if !catalog.record(row).as_ref().is_some_and(ready) || !self.leading {
            return;
        }
        let rule = self.rules.passive;
        let before = self.complaints.quorum(now, row, generation, rule);
        self.complaints.add(now, row, generation, from, rule);
        if !before && self.complaints.quorum(now, row, generation, rule) {
            for prober in (0..self.rules.probers).map(ProberId) {
                if !self.quarantined(now, prober) {
                    let peer = Peer::Prober(catalog.region(), prober);
                    out.send(peer, HealthMessage::ProbeNow(instance, generation));
                }
            }
        }
        self.reserve(row);
        self.decide(now, row, catalog, out);
    }

    /// A transition was accepted, by whomever. Followers call this too, so that the guard's count survives a change
    /// of leader.
    pub fn observe(&mut self, catalog: &CatalogShard, seen: &Transition, out: &mut HealthOut) {
        let Some(row) = catalog.row_of(seen.instance) else { return };
        let Some(record) = catalog.record(row) else { return };
        self.reserve(row);
        let cell = catalog.place_of(seen.cell);
        self.settle(row, cell);
        self.count_ready(row, record.place.zone.index(), seen);
        let (was, health) = (seen.from == Some(State::Ready), seen.source == Source::Health);
        if health && was && seen.to == State::Unhealthy {
            self.guard.removed(seen.time, cell, self.zones[row as usize].into());
        }
        if health && seen.from != Some(State::Starting) {
            out.count(Metric::HealthFlaps);
        }
        let flags = &mut self.flags[row as usize];
        *flags &= !HELD;
        if seen.from.is_none() || seen.reason == Reason::Reregistered {
            let managed = matches!(seen.source, Source::Controller | Source::Agent(_));
            *flags = if managed { MANAGED } else { 0 };
        }
        if (seen.from, seen.to) != (Some(State::Starting), State::Ready) {
            // A new state has to be earned by new probes.
            self.probes[row as usize] = [ProbeRecord::NEW; PROBERS_MAX];
            self.complaints.clear(row);
        }
        self.waiting.remove(&row);
    }

    /// Keeps the number of READY instances by zone.
    fn count_ready(&mut self, row: u32, zone: usize, seen: &Transition) {
        let (was, is) = (seen.from == Some(State::Ready), seen.to == State::Ready);
        if was && !is {
            let zone = usize::from(self.zones[row as usize]);
            self.zone_ready[zone] -= 1;
        } else if is && !was {
            self.zones[row as usize] = zone as u8;
            if self.zone_ready.len() <= zone {
                self.zone_ready.resize(zone + 1, 0);
            }
            self.zone_ready[zone] += 1;
        }
    }

    /// How a proposal ended: the verdict, or none if the log did not take it or nobody knows.
    pub fn ended(
        &mut self,
        now: Time,
        instance: InstanceId,
        verdict: Option<Verdict>,
        catalog: &CatalogShard,
        out: &mut HealthOut,
    ) {
        if verdict.is_some_and(Verdict::accepted) {
            return; // `observe` saw it.
        }
        let Some(row) = catalog.row_of(instance) else { return };
        let Some(record) = catalog.record(row) else { return };
        self.reserve(row);
        self.settle(row, catalog.place_of(record.cell));
        self.wait(now, row, out);
    }

    /// Looks again at what was held back.
    pub fn on_timer(&mut self, now: Time, catalog: &CatalogShard, out: &mut HealthOut) {
        self.complaints.prune(now, self.rules.passive);
        let waiting = std::mem::take(&mut self.waiting);
        for row in waiting {
            if row < catalog.rows() {
                self.decide(now, row, catalog, out);
            }
        }
    }

    /// After a sweep of the catalog: rows got new numbers.
    pub fn renumber(&mut self, moved: &[u32]) {
        let probes = std::mem::take(&mut self.probes);
        let flags = std::mem::take(&mut self.flags);
        let zones = std::mem::take(&mut self.zones);
        for (((&row, probes), flags), zone) in moved.iter().zip(probes).zip(flags).zip(zones) {
            if row != u32::MAX {
                self.reserve(row);
                self.probes[row as usize] = probes;
                self.flags[row as usize] = flags;
                self.zones[row as usize] = zone;
            }
        }
        self.complaints.renumber(moved);
        let waiting = std::mem::take(&mut self.waiting);
        let moved = |row: u32| moved.get(row as usize).copied().filter(|&row| row != u32::MAX);
        self.waiting = waiting.into_iter().filter_map(moved).collect();
    }

    /// Proposes what the evidence about a row asks for, if anything.
    fn decide(&mut self, now: Time, row: u32, catalog: &CatalogShard, out: &mut HealthOut) {
        if !self.leading || self.flags[row as usize] & PENDING != 0 {
            return;
        }
        let Some(record) = catalog.record(row) else { return };
        let wanted = match record.state {
            State::Starting => self.up(now, row).then_some((State::Ready, Reason::Started)),
            State::Ready => self.down(now, row, &record, out).map(|why| (State::Unhealthy, why)),
            State::Unhealthy => self.up(now, row).then_some((State::Ready, Reason::Recovered)),
            State::Draining | State::Expired | State::Gone => None,
        };
        let Some((to, reason)) = wanted else {
            self.flags[row as usize] &= !HELD;
            return;
        };
        if to == State::Unhealthy {
            let cell = catalog.place_of(record.cell);
            let zone = usize::from(self.zones[row as usize]);
            let ready = catalog.view(record.cell).map_or(0, |view| view.count(State::Ready));
            let zone_ready = self.zone_ready.get(zone).copied().unwrap_or_default();
            let share_pct = self.rules.guard_share_pct;
            let limits = ((cell, ready), (zone, zone_ready));
            if !self.guard.allows(now, limits.0, limits.1, share_pct, self.mutants) {
                if self.flags[row as usize] & HELD == 0 {
                    out.count(Metric::GuardHeld);
                }
                self.flags[row as usize] |= HELD;
                self.wait(now, row, out);
                return;
            }
            self.guard.propose(cell, zone);
            self.flags[row as usize] |= REMOVING;
        }
        self.flags[row as usize] = (self.flags[row as usize] | PENDING) & !HELD;
        let command = Command::Move {
            instance: record.instance,
            generation: record.generation,
            to,
            reason,
            source: Source::Health,
            expected: Some(record.revision),
        };
        let peer = Peer::Catalog(catalog.region(), catalog.shard());
        out.send(peer, HealthMessage::Propose(command));
    }

    /// Whether a row may become READY: no prober says no, one says yes, and so does the agent where there is one.
    fn up(&self, now: Time, row: u32) -> bool {
        let flags = self.flags[row as usize];
        let (up, down, _) = self.tally(now, row);
        let reported = flags & REPORTED != 0;
        let agent = flags & STARTED != 0 && flags & NOT_READY == 0;
        let needs_agent = reported || flags & MANAGED != 0;
        down == 0 && up > 0 && (agent || !needs_agent)
    }

    /// Why a READY row should leave, if it should.
    fn down(
        &self,
        now: Time,
        row: u32,
        record: &EndpointRecord,
        out: &mut HealthOut,
    ) -> Option<Reason> {
        if self.flags[row as usize] & (REPORTED | NOT_READY) == REPORTED | NOT_READY {
            return Some(Reason::ReadinessReported);
        }
        let (up, down, believed) = self.tally(now, row);
        let needed = self.rules.confirming.max(1).min(believed);
        if down >= needed && down > 0 {
            return Some(Reason::ProbesFailed);
        }
        if down > 0 && up > 0 {
            out.count(Metric::ProbersDisagreed);
        }
        let rule = self.rules.passive;
        let quorum = self.complaints.quorum(now, row, record.generation, rule);
        let agrees =
            self.complaints.probe_agrees(now, row, rule) || self.mutants.has(Mutant::PassiveAlone);
        (quorum && agrees).then_some(Reason::PassiveConfirmed)
    }

    /// Probers that hold a row for up, for down, and probers that are believed.
    fn tally(&self, now: Time, row: u32) -> (u8, u8, u8) {
        let mut tally = (0, 0, 0);
        for prober in (0..self.rules.probers).map(ProberId) {
            if self.quarantined(now, prober) {
                continue;
            }
            tally.2 += 1;
            match self.probes[row as usize][prober.index()].opinion() {
                Opinion::Up => tally.0 += 1,
                Opinion::Down => tally.1 += 1,
                Opinion::Unknown => {}
            }
        }
        tally
    }

    /// The pending proposal of a row is decided.
    fn settle(&mut self, row: u32, cell: usize) {
        let flags = &mut self.flags[row as usize];
        if *flags & REMOVING != 0 {
            self.guard.settle(cell, self.zones[row as usize].into());
        }
        *flags &= !(PENDING | REMOVING);
    }

    fn wait(&mut self, now: Time, row: u32, out: &mut HealthOut) {
        if self.waiting.is_empty() {
            out.timer(now.after(REVIEW), HealthTimer);
        }
        self.waiting.insert(row);
    }

    fn reserve(&mut self, row: u32) {
        let rows = row as usize + 1;
        if self.flags.len() < rows {
            self.flags.resize(rows, 0);
            self.zones.resize(rows, 0);
            self.probes.resize(rows, [ProbeRecord::NEW; PROBERS_MAX]);
        }
    }
}
