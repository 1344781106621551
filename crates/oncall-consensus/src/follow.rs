//! A follower takes entries and snapshots (dissertation 3.5 and 5).

use crate::durable::Snapshot;
use crate::log::Log;
use crate::message::Body;
use crate::mutation::Mutation;
use crate::output::Output;
use crate::replica::Replica;
use crate::types::{Entry, Index, NodeId, Term, Time};

impl<C: Clone, S: Clone> Replica<C, S> {
    pub(crate) fn follow_append(
        &mut self,
        from: NodeId,
        (prev_index, prev_term): (Index, Term),
        entries: Vec<Entry<C>>,
        commit: Index,
        sent_at: Time,
        out: &mut Output<C, S>,
    ) {
        // Everything committed here is in the leader's log too, so only later places need comparing.
        let known = prev_index < self.commit;
        if !known && self.durable.log.term_at(prev_index) != Some(prev_term) {
            let hint_index =
                self.durable.log.last_with_term_up_to(prev_term, prev_index.saturating_sub(1));
            let hint_term = self.durable.log.term_at(hint_index).unwrap_or(0);
            let body = Body::Mismatch { prev_index, hint_index, hint_term, sent_at };
            self.send(from, body, out);
            return;
        }
        let last_new = prev_index + entries.len() as u64;
        self.take_entries(entries, out);
        let matched = last_new.max(self.commit);
        let safe = if self.config.mutated(Mutation::CommitBeyondMatch) {
            commit
        } else {
            commit.min(matched)
        };
        self.advance_commit(safe, out);
        let matched = if self.config.mutated(Mutation::AckUnmatched) {
            self.durable.log.last_index()
        } else {
            matched
        };
        self.send(from, Body::Appended { matched, sent_at }, out);
    }

    /// Adds what is missing; where an entry differs, the leader's replaces it and all after it.
    fn take_entries(&mut self, entries: Vec<Entry<C>>, out: &mut Output<C, S>) {
        let log = &mut self.durable.log;
        for entry in entries {
            if entry.index <= self.commit {
                continue;
            }
            match log.term_at(entry.index) {
                Some(term) if term == entry.term => continue,
                Some(_) if self.config.mutated(Mutation::NoTruncation) => continue,
                Some(_) => {
                    log.truncate_from(entry.index);
                    out.truncated.get_or_insert(entry.index);
                }
                None => {}
            }
            out.dirty.log(entry.index);
            log.push(entry);
        }
    }

    pub(crate) fn follow_install(
        &mut self,
        from: NodeId,
        snapshot: Snapshot<S>,
        sent_at: Time,
        out: &mut Output<C, S>,
    ) {
        let index = snapshot.index;
        if index > self.commit {
            let log = &mut self.durable.log;
            let agrees = log.term_at(index) == Some(snapshot.term);
            if agrees && !self.config.mutated(Mutation::InstallLosesTail) {
                // The entries after it were acknowledged and may count already: they stay.
                log.compact(index, snapshot.term);
            } else {
                *log = Log::after(index, snapshot.term);
                out.dirty.log(index + 1);
            }
            self.durable.snapshot = Some(snapshot);
            out.dirty.snapshot = true;
            self.commit = index;
            out.installed = Some(index);
        }
        self.send(from, Body::Appended { matched: self.commit, sent_at }, out);
    }
}
