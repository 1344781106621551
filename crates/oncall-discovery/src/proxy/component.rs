//! The proxy as a component: follows its cells in the background.

use serde::{Deserialize, Serialize};

use super::link::{Link, LinkState, Tend};
use super::{Breaker, CellSub, Ejector, ProxyDials, RetryBudget, View};
use crate::distrib::{Down, ProxyPolicy, Up, Wire};
use crate::mutants::Mutants;
use crate::types::{Cell, Metric, Out, Peer, Place, ProxyId, Span, Time};

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
    pub(super) repair_at: Time,
    pub(super) repairs: u8,
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
    pub(super) link: Link,
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
    pub(super) fn heartbeat(&self) -> Span {
        self.policy.dials.heartbeat.max(Span::from_ms(1))
    }

    pub(super) fn relays(&self) -> u16 {
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

    pub(super) fn lost(&mut self, now: Time, not_before: Span, uniform: u32) {
        let relays = self.relays();
        self.link.lost(now, self.policy.dials.back_off, not_before, relays, uniform);
        for followed in &mut self.cells {
            followed.repair_at = Time::NEVER;
        }
    }

    /// Leaves the relay because of what it sent.
    pub(super) fn leave(
        &mut self,
        now: Time,
        delay: Span,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
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
    pub(super) fn repair(
        &mut self,
        now: Time,
        at: usize,
        uniform: u32,
        out: &mut Out<Wire, ProxyTimer>,
    ) {
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
}
