//! The proxy as a component: follows its cells in the background.

use serde::{Deserialize, Serialize};

use super::link::{Link, LinkState, Tend};
use super::{Breaker, By, CellSub, Ejector, ProxyDials, RefusedFor, RetryBudget, SubEvent, View};
use crate::distrib::{Delta, Down, EndpointSet, Head, ProxyPolicy, Snapshot, Up, Wire};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Cell, Change, Metric, Out, Peer, Place, ProxyId, Span, Time};

/// What a proxy follows.
pub type Subscription = Cell;

/// What a proxy is told at the start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyConfig {
    /// Its id.
    pub id: ProxyId,
    /// Where it runs.
    pub place: Place,
    /// Relays that it may use.
    pub relays: Vec<Peer>,
    /// Place of its home relay in the list.
    pub home: u16,
    /// Proof of who it is. Opaque here.
    pub proof: u64,
    /// Proof of the control plane; a relay with another one is refused (R125).
    pub control_plane: u64,
    /// Safeguards taken out; none outside tests.
    pub mutants: Mutants,
}

/// The timer of a proxy: it looks at everything that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ProxyTimer;

/// What happens to a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProxyInput {
    /// It starts: opens its first stream.
    Start,
    /// The stream to a relay has broken.
    Lost(Peer),
    /// A message from a relay.
    Message(Peer, Down),
    /// The timer.
    Timer(ProxyTimer),
}

/// Everything about one cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Followed {
    pub(super) cell: Cell,
    pub(super) sub: CellSub,
    pub(super) view: View,
    pub(super) ejector: Ejector,
    pub(super) breaker: Breaker,
    /// When an open repair is to be repeated.
    repair_at: Time,
    repairs: u8,
    pub(super) denied: bool,
    alerted: bool,
    /// Removed while ejected; filled by a mistake only.
    pub(super) ghosts: Vec<crate::types::Endpoint>,
}

/// A node proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proxy {
    pub(super) config: ProxyConfig,
    pub(super) policy: ProxyPolicy,
    pub(super) cells: Vec<Followed>,
    pub(super) retries: RetryBudget,
    link: Link,
    age_check_at: Time,
    armed: Time,
}

impl Proxy {
    /// A proxy that follows `cells` and nothing else (R83, D16).
    pub fn new(config: ProxyConfig, cells: &[Subscription], policy: ProxyPolicy) -> Self {
        let mut cells = cells.to_vec();
        cells.sort_unstable();
        cells.dedup();
        let follow = |cell| Followed {
            cell,
            sub: CellSub::default(),
            view: View::default(),
            ejector: Ejector::default(),
            breaker: Breaker::default(),
            repair_at: Time::NEVER,
            repairs: 0,
            denied: false,
            alerted: false,
            ghosts: Vec::new(),
        };
        Self {
            link: Link::new(config.home % (config.relays.len() as u16).max(1)),
            config,
            policy,
            cells: cells.into_iter().map(follow).collect(),
            retries: RetryBudget::default(),
            age_check_at: Time::ZERO,
            armed: Time::NEVER,
        }
    }

    /// Its id.
    pub const fn id(&self) -> ProxyId {
        self.config.id
    }

    /// Its stream.
    pub const fn link(&self) -> &Link {
        &self.link
    }

    /// Whether its stream is open.
    pub fn connected(&self) -> bool {
        self.link.state() == LinkState::Up
    }

    /// The relay that it uses or tries.
    pub fn relay(&self) -> Option<Peer> {
        self.config.relays.get(usize::from(self.link.relay())).copied()
    }

    /// Dials in force here.
    pub const fn dials(&self) -> &ProxyDials {
        &self.policy.dials
    }

    /// Version of the policy in force here.
    pub const fn policy_version(&self) -> u32 {
        self.policy.version
    }

    /// Where it stands with a cell.
    pub fn sub(&self, cell: Cell) -> Option<&CellSub> {
        self.find(cell).map(|at| &self.cells[at].sub)
    }

    /// Its set of a cell; `None` if it does not follow the cell or has no set yet.
    pub fn view(&self, cell: Cell) -> Option<&View> {
        let at = self.find(cell)?;
        Some(&self.cells[at].view).filter(|_| self.cells[at].sub.has_set())
    }

    /// Cells that it follows, in order.
    pub fn cells(&self) -> impl Iterator<Item = Cell> + '_ {
        self.cells.iter().map(|followed| followed.cell)
    }

    /// Endpoints of a cell that are ejected now.
    pub fn ejected(&self, now: Time, cell: Cell) -> u32 {
        self.find(cell).map_or(0, |at| self.cells[at].ejector.out(now))
    }

    /// Age of its oldest set (R93).
    pub fn age_max(&self, now: Time) -> Span {
        self.cells.iter().map(|followed| followed.sub.age(now)).max().unwrap_or_default()
    }

    /// Repairs that are open.
    pub fn open_repairs(&self) -> usize {
        self.cells.iter().filter(|followed| followed.sub.needs_repair() && !followed.denied).count()
    }

    /// Whether each open repair will be asked for again without anything else happening (I3). Holds while the
    /// stream is open.
    pub fn repairs_are_scheduled(&self) -> bool {
        self.cells.iter().all(|followed| {
            !followed.sub.needs_repair() || followed.denied || followed.repair_at < Time::NEVER
        })
    }

    pub(super) fn find(&self, cell: Cell) -> Option<usize> {
        self.cells.binary_search_by_key(&cell, |followed| followed.cell).ok()
    }

    /// Never no time at all, which would not let time pass.
    fn heartbeat(&self) -> Span {
        self.policy.dials.heartbeat.max(Span::from_ms(1))
    }

    fn relays(&self) -> u16 {
        self.config.relays.len() as u16
    }

    /// Handles an input. `uniform` is a fresh uniform 32-bit number, for jitter and the choice of a relay.
    pub fn on_event(
        &mut self,
        now: Time,
        input: ProxyInput,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        match input {
            ProxyInput::Start => {
                self.age_check_at = now.after(self.heartbeat());
                self.connect(now, out);
            }
            ProxyInput::Lost(peer) => {
                if self.relay() == Some(peer) && self.link.state() != LinkState::Down {
                    self.lost(now, Span::ZERO, uniform);
                }
            }
            ProxyInput::Message(peer, message) => {
                if self.relay() == Some(peer) && self.link.state() != LinkState::Down {
                    self.on_message(now, message, uniform, out);
                }
            }
            ProxyInput::Timer(ProxyTimer) => {
                self.armed = Time::NEVER;
                self.tick(now, uniform, out);
            }
        }
        self.arm(out);
    }

    /// Sets the timer if something is due before it would ring.
    fn arm(&mut self, out: &mut Out<Wire, ProxyTimer>) {
        let repairs = self.cells.iter().map(|followed| followed.repair_at).min();
        // Without any relay there is nothing to connect to, now or later.
        let link = if self.relay().is_some() { self.link.due() } else { Time::NEVER };
        let due = link.min(self.age_check_at).min(repairs.unwrap_or(Time::NEVER));
        if due < self.armed {
            self.armed = due;
            out.timer(due, ProxyTimer);
        }
    }

    fn connect(&mut self, now: Time, out: &mut Out<Wire, ProxyTimer>) {
        let Some(relay) = self.relay() else { return };
        let session = self.link.connect(now, self.heartbeat());
        for followed in &mut self.cells {
            followed.sub.reconnected();
            followed.repair_at = Time::NEVER;
            followed.denied = false;
        }
        let watches = self.cells.iter().map(|followed| followed.sub.watch(followed.cell)).collect();
        let (proof, policy) = (self.config.proof, self.policy.version);
        out.count(Metric::Reconnects);
        out.send(relay, Up::Hello { session, proof, watches, policy }.into());
    }

    fn lost(&mut self, now: Time, not_before: Span, uniform: u32) {
        let relays = self.relays();
        self.link.lost(now, self.policy.dials.back_off, not_before, relays, uniform);
        for followed in &mut self.cells {
            followed.repair_at = Time::NEVER;
        }
    }

    /// Leaves the relay because of what it sent.
    fn leave(&mut self, now: Time, delay: Span, uniform: u32, out: &mut Out<Wire, ProxyTimer>) {
        if let Some(relay) = self.relay() {
            out.send(relay, Up::Bye.into());
        }
        out.count(Metric::RelaySwitches);
        let relays = self.relays();
        self.link.leave(now, delay, relays, uniform);
        for followed in &mut self.cells {
            followed.repair_at = Time::NEVER;
        }
    }

    fn tick(&mut self, now: Time, uniform: u32, out: &mut Out<Wire, ProxyTimer>) {
        match self.link.tend(now, self.heartbeat()) {
            Tend::Nothing => {}
            Tend::Connect => self.connect(now, out),
            Tend::NoAnswer => self.lost(now, Span::ZERO, uniform),
            Tend::Silent => {
                out.count(Metric::SilentStreams);
                if let Some(relay) = self.relay() {
                    out.send(relay, Up::Bye.into());
                }
                self.lost(now, Span::ZERO, uniform);
            }
        }
        if self.connected() {
            for at in 0..self.cells.len() {
                if self.cells[at].repair_at <= now {
                    self.repair(now, at, uniform, out);
                }
            }
        }
        if now >= self.age_check_at {
            self.age_check_at = now.after(self.heartbeat());
            self.check_ages(now, out);
        }
    }

    /// Measures the ages, and raises an alert where one passes the normal budget. Nothing else changes (R94).
    fn check_ages(&mut self, now: Time, out: &mut Out<Wire, ProxyTimer>) {
        out.add(Metric::SnapshotAgeMs, self.age_max(now).ms());
        for followed in &mut self.cells {
            let old = followed.sub.age(now) > self.policy.dials.age_alert;
            if old && !followed.alerted {
                out.count(Metric::SnapshotAgeAlerts);
            }
            followed.alerted = old;
        }
    }

    /// Asks for a cell's repair, and once more later if nothing comes of it.
    fn repair(&mut self, now: Time, at: usize, uniform: u32, out: &mut Out<Wire, ProxyTimer>) {
        let Some(relay) = self.relay() else { return };
        let followed = &mut self.cells[at];
        if !followed.sub.needs_repair() || followed.denied {
            followed.repair_at = Time::NEVER;
            return;
        }
        let attempt = followed.repairs.max(followed.sub.tries());
        followed.repair_at = now.after(self.policy.dials.back_off.delay(attempt, uniform));
        followed.repairs = followed.repairs.saturating_add(1);
        out.send(relay, Up::Watch(followed.sub.watch(followed.cell)).into());
    }

    fn on_message(
        &mut self,
        now: Time,
        message: Down,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        match message {
            Down::Welcome { session, proof } => self.welcomed(now, session, proof, uniform, out),
            Down::Busy { session, retry_after } => {
                if session == self.link.session() && !self.connected() {
                    self.lost(now, retry_after, uniform);
                }
            }
            Down::Denied { session } => {
                if session == self.link.session() && !self.connected() {
                    out.count(Metric::AuthRefused);
                    self.lost(now, Span::ZERO, uniform);
                }
            }
            // Whatever else comes before the welcome has no stream to belong to.
            _ if !self.connected() => {}
            _ => {
                self.link.heard(now);
                self.on_stream(now, message, uniform, out);
            }
        }
    }

    fn welcomed(
        &mut self,
        now: Time,
        session: u32,
        proof: u64,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        if session != self.link.session() || self.connected() {
            return;
        }
        if proof != self.config.control_plane {
            out.count(Metric::AuthRefused);
            let delay = self.policy.dials.back_off.delay(self.link.attempts(), uniform);
            self.leave(now, delay, uniform, out);
            return;
        }
        self.link.welcomed(now, session, self.heartbeat());
        // The hello has asked for everything; whoever still lacks something then asks again.
        let again = now.after(self.policy.dials.back_off.delay(0, uniform));
        for followed in self.cells.iter_mut().filter(|followed| followed.sub.needs_repair()) {
            followed.repair_at = again;
            followed.repairs = 0;
        }
    }

    fn on_stream(
        &mut self,
        now: Time,
        message: Down,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        match message {
            Down::Delta(delta) => self.on_delta(now, &delta, uniform, out),
            Down::Snapshot(snapshot) => self.on_snapshot(now, snapshot, uniform, out),
            Down::Resumed(head) | Down::ServerBehind(head) => {
                self.on_head(now, head, uniform, out);
            }
            Down::Heartbeat { heads, policy } => {
                if let Some(relay) = self.relay().filter(|_| policy > self.policy.version) {
                    out.send(relay, Up::PolicyMissed { have: self.policy.version }.into());
                }
                self.on_heartbeat(now, &heads, uniform, out);
            }
            Down::WatchDenied { cell } => {
                if let Some(at) = self.find(cell) {
                    self.cells[at].denied = true;
                }
            }
            Down::Policy(policy) => {
                if policy.version > self.policy.version {
                    self.policy = policy;
                }
            }
            Down::NotReady { .. }
            | Down::Welcome { .. }
            | Down::Busy { .. }
            | Down::Denied { .. } => {}
        }
    }

    fn on_heartbeat(
        &mut self,
        now: Time,
        heads: &[Head],
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        let mut behind = false;
        let mut told = vec![false; self.cells.len()];
        for head in heads {
            let event = self.on_head(now, *head, uniform, out);
            behind |= event == Some(SubEvent::Refused(RefusedFor::ServerBehind));
            if let Some(at) = self.find(head.cell) {
                told[at] = true;
            }
            if !self.connected() {
                return;
            }
        }
        if self.link.lags(behind) && self.relays() > 1 {
            self.leave(now, Span::ZERO, uniform, out);
            return;
        }
        // A cell that the relay does not mention is one that it has forgotten, or cannot serve yet.
        let Some(relay) = self.relay() else { return };
        for (followed, _) in self.cells.iter().zip(told).filter(|(_, told)| !told) {
            if !followed.denied && !followed.sub.needs_repair() {
                out.send(relay, Up::Watch(followed.sub.watch(followed.cell)).into());
            }
        }
    }

    fn on_head(
        &mut self,
        now: Time,
        head: Head,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) -> Option<SubEvent> {
        let at = self.find(head.cell)?;
        let event = self.cells[at].sub.on_head(head.cursor, head.as_of);
        self.settle(now, at, event, uniform, out);
        Some(event)
    }

    fn on_delta(
        &mut self,
        now: Time,
        delta: &Delta,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        let Some(at) = self.find(delta.cell) else { return };
        let mutants = self.config.mutants;
        let followed = &mut self.cells[at];
        let next = followed.sub.cursor().is_some_and(|cursor| cursor.rev == delta.step.from);
        let intact = next && followed.view.fits(delta);
        let event = followed.sub.on_delta(delta.step, intact, delta.as_of, mutants);
        if matches!(event, SubEvent::Applied { .. }) {
            if mutants.has(Mutant::HealthBeatsRemoval) {
                for change in &delta.changes {
                    if let Change::Removed(endpoint) = change
                        && followed.ejector.is_out(now, endpoint)
                    {
                        followed.ghosts.push(*endpoint);
                    }
                }
            }
            let fenced = followed.view.apply(now, delta, mutants);
            out.add(Metric::FencedEndpoints, fenced as u64);
            out.add(Metric::WatchLagMs, now.since(delta.accepted).ms());
        }
        self.settle(now, at, event, uniform, out);
    }

    fn on_snapshot(
        &mut self,
        now: Time,
        snapshot: Snapshot,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        let Some(at) = self.find(snapshot.cell) else { return };
        let mutants = self.config.mutants;
        let followed = &mut self.cells[at];
        let same_place = followed.sub.cursor() == Some(snapshot.head.cursor);
        let intact =
            EndpointSet::intact(&snapshot.endpoints, snapshot.head.count, snapshot.checksum)
                && (!same_place || snapshot.checksum == followed.view.set().checksum());
        let event = followed.sub.on_snapshot(snapshot.head, intact, snapshot.as_of, mutants);
        if matches!(event, SubEvent::Applied { .. }) {
            let fenced = followed.view.replace(now, snapshot.endpoints, mutants);
            out.add(Metric::FencedEndpoints, fenced as u64);
        }
        self.settle(now, at, event, uniform, out);
    }

    /// Acts on what a message meant for a cell.
    fn settle(
        &mut self,
        now: Time,
        at: usize,
        event: SubEvent,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        event.count(out);
        match event {
            SubEvent::Applied { by, .. } => {
                self.link.proved();
                let rule = self.policy.dials.eject;
                let followed = &mut self.cells[at];
                followed.ejector.on_set(now, followed.view.set().endpoints(), rule);
                followed.repairs = 0;
                if !followed.sub.needs_repair() {
                    followed.repair_at = Time::NEVER;
                } else if by == By::Snapshot {
                    self.repair(now, at, uniform, out);
                }
            }
            SubEvent::Confirmed => self.link.proved(),
            SubEvent::Repair(_) => self.repair(now, at, uniform, out),
            SubEvent::Rejected { tries, .. } => self.rejected(now, at, tries, uniform, out),
            SubEvent::Nothing | SubEvent::Refused(_) => {}
        }
    }

    /// A check failed: ask for a snapshot after a back-off that grows with each failure, every second time of
    /// another relay. Never at once, or a relay with bad bytes would be asked for them for ever.
    fn rejected(
        &mut self,
        now: Time,
        at: usize,
        tries: u8,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
        let mutants = self.config.mutants;
        if mutants.has(Mutant::RejectWithoutBackOff) {
            self.repair(now, at, uniform, out);
            return;
        }
        let delay = self.policy.dials.back_off.delay(tries - 1, uniform);
        let switch =
            tries.is_multiple_of(2) && self.relays() > 1 && !mutants.has(Mutant::NoRelaySwitch);
        if switch {
            self.leave(now, delay, uniform, out);
        } else {
            self.cells[at].repair_at = now.after(delay);
        }
    }
}
