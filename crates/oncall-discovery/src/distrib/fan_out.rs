//! What a server sends: answers, deltas to everybody who lacks them, snapshots within the budget, heartbeats.

use super::message::{Delta, Down, Head, Snapshot, Watch, Wire, snapshot_bytes};
use super::server::{Server, ServerTimer};
use super::{Answer, SnapshotCause, answer};
use crate::mutants::Mutant;
use crate::types::{Cell, Metric, Out, Peer, Revision, Time};

impl Server {
    /// Answers a reader of a cell that is served.
    pub(super) fn answer_one<T>(&mut self, peer: Peer, watch: Watch, out: &mut Out<Wire, T>) {
        let base = self.as_of;
        let mutants = self.config.mutants;
        let Some(served) = self.cells.get_mut(&watch.cell) else { return };
        let as_of = base.max(served.as_of);
        let Some(store) = &served.store else { return };
        let head = store.head();
        match answer(head, watch, |rev| store.bridges(rev)) {
            Answer::Resumed => out.send(peer, Down::Resumed(store.told(as_of)).into()),
            Answer::ServerBehind => out.send(peer, Down::ServerBehind(store.told(as_of)).into()),
            Answer::Bridge { from } => {
                let delta = store.bridge(from, as_of, mutants);
                let Some(watcher) = served.watcher(peer) else { return };
                watcher.sent = Some(head);
                if let Some(delta) = delta {
                    send_delta(peer, delta, out);
                }
            }
            Answer::Snapshot(cause) => {
                let Some(watcher) = served.watcher(peer) else { return };
                watcher.queued = true;
                self.queue.push_back((peer, watch.cell));
                count_cause(cause, out);
            }
        }
    }

    /// A cell's head has moved: every watcher gets what it lacks.
    pub fn fan_out<T: From<ServerTimer>>(&mut self, now: Time, cell: Cell, out: &mut Out<Wire, T>) {
        let (base, mutants, retention) = (self.as_of, self.config.mutants, self.config.retention);
        let Some(served) = self.cells.get_mut(&cell) else { return };
        let as_of = base.max(served.as_of);
        let Some(store) = &mut served.store else { return };
        store.trim(now, retention, mutants);
        let head = store.head();
        // Nearly all stand at the same place: the delta is made once for each place in a row.
        let mut made: Option<(Revision, Delta)> = None;
        for watcher in served.watchers.iter_mut().filter(|watcher| !watcher.queued) {
            let watch = Watch { cell, cursor: watcher.sent, full: false };
            match answer(head, watch, |rev| store.bridges(rev)) {
                Answer::Resumed | Answer::ServerBehind => {}
                Answer::Bridge { from } => {
                    if made.as_ref().is_none_or(|(place, _)| *place != from) {
                        made = store.bridge(from, as_of, mutants).map(|delta| (from, delta));
                    }
                    watcher.sent = Some(head);
                    if let Some((_, delta)) = &made {
                        send_delta(watcher.peer, delta.clone(), out);
                    }
                }
                Answer::Snapshot(cause) => {
                    watcher.queued = true;
                    self.queue.push_back((watcher.peer, cell));
                    count_cause(cause, out);
                }
            }
        }
        self.drain(now, out);
    }

    /// Sends the snapshots that the byte budget has room for, first come first served.
    pub(super) fn drain<T: From<ServerTimer>>(&mut self, now: Time, out: &mut Out<Wire, T>) {
        while let Some(&(peer, cell)) = self.queue.front() {
            let Some(served) = self.cells.get_mut(&cell) else {
                self.queue.pop_front();
                continue;
            };
            let as_of = self.as_of.max(served.as_of);
            let snapshot = served.store.as_ref().map(|store| store.snapshot(as_of));
            let (Some(snapshot), Some(watcher)) = (snapshot, served.watcher(peer)) else {
                self.queue.pop_front();
                continue;
            };
            let bytes = snapshot_bytes(snapshot.head.count);
            if let Err(at) = self.budget.take(now, bytes)
                && !self.config.mutants.has(Mutant::NoSnapshotBudget)
            {
                self.wake(now, at, out);
                return;
            }
            watcher.sent = Some(snapshot.head.cursor);
            watcher.queued = false;
            self.queue.pop_front();
            send_snapshot(peer, snapshot, bytes, out);
        }
    }

    fn wake<T: From<ServerTimer>>(&mut self, now: Time, at: Time, out: &mut Out<Wire, T>) {
        if self.wake_at > now && self.wake_at <= at {
            return;
        }
        out.count(Metric::SnapshotsDeferred);
        self.wake_at = at;
        if at < Time::NEVER {
            out.timer(at, ServerTimer::Snapshots.into());
        }
    }

    /// Handles a timer of this server.
    pub fn on_timer<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        timer: ServerTimer,
        out: &mut Out<Wire, T>,
    ) {
        match timer {
            ServerTimer::Snapshots => {
                self.wake_at = Time::NEVER;
                self.drain(now, out);
            }
            ServerTimer::Heartbeat { peer, session } => self.heartbeat(now, peer, session, out),
        }
    }

    /// Drops from all logs what is no longer kept, also where nothing is published; once in a heartbeat.
    fn trim(&mut self, now: Time) {
        if now.since(self.trimmed) < self.config.heartbeat {
            return;
        }
        self.trimmed = now;
        for store in self.cells.values_mut().filter_map(|served| served.store.as_mut()) {
            store.trim(now, self.config.retention, self.config.mutants);
        }
    }

    fn heartbeat<T: From<ServerTimer>>(
        &mut self,
        now: Time,
        peer: Peer,
        session: u32,
        out: &mut Out<Wire, T>,
    ) {
        self.trim(now);
        let Some(stream) = self.streams.get(&peer).filter(|stream| stream.session == session)
        else {
            return;
        };
        let timer = ServerTimer::Heartbeat { peer, session };
        out.timer(now.after(self.config.heartbeat), timer.into());
        if self.config.mutants.has(Mutant::NoHeartbeat) {
            return;
        }
        let heads: Vec<Head> =
            stream.cells.iter().filter_map(|cell| self.head_for(*cell, peer)).collect();
        out.add(Metric::HeadsSent, heads.len() as u64);
        let policy = self.policy.map_or(0, |known| known.version);
        out.send(peer, Down::Heartbeat { heads, policy }.into());
    }

    /// A cell's head for a reader; nothing while it waits for a snapshot, which it would only ask for again.
    fn head_for(&self, cell: Cell, peer: Peer) -> Option<Head> {
        let served = self.cells.get(&cell)?;
        let at = served.watchers.binary_search_by_key(&peer, |watcher| watcher.peer).ok()?;
        let store = served.store.as_ref().filter(|_| !served.watchers[at].queued)?;
        Some(store.told(self.as_of.max(served.as_of)))
    }
}

fn count_cause<T>(cause: SnapshotCause, out: &mut Out<Wire, T>) {
    if cause == SnapshotCause::RetentionOver {
        out.count(Metric::RetentionOver);
    }
}

fn send_delta<T>(peer: Peer, delta: Delta, out: &mut Out<Wire, T>) {
    let message = Down::Delta(delta);
    out.count(Metric::DeltasSent);
    out.add(Metric::DeltaBytes, message.bytes());
    out.send(peer, message.into());
}

fn send_snapshot<T>(peer: Peer, snapshot: Snapshot, bytes: u64, out: &mut Out<Wire, T>) {
    out.add(Metric::SnapshotBytes, bytes);
    out.send(peer, Down::Snapshot(snapshot).into());
}
