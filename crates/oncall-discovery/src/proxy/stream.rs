//! What a proxy does with the messages of its stream.

use super::component::{Proxy, ProxyTimer};
use super::{By, RefusedFor, SubEvent, leaves_relay};
use crate::distrib::{Delta, Down, EndpointSet, Head, Snapshot, Up, Wire};
use crate::mutants::Mutant;
use crate::types::{Change, Metric, Out, Span, Time};

impl Proxy {
    pub(super) fn on_message(
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
        if leaves_relay(tries, self.relays(), mutants) {
            self.leave(now, delay, uniform, out);
        } else {
            self.cells[at].repair_at = now.after(delay);
        }
    }
}
