//! Small groups in every order of events: exhaustive search over the real code (stateright).
//!
//! [`clockless`] forgets all clocks: any replica may stand for election or send at any time, so what
//! holds there holds for every timing. [`timed`] keeps one clock, real timers and pre-votes, and asks
//! about leases and lost quorums.

mod clockless;
mod timed;

use crate::message::Message;
use crate::replica::Replica;
use crate::types::{Entry, NodeId, Term};

type Member = Replica<u8, u8>;
type Letter = Message<u8, u8>;

/// What was seen on the way to a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
struct History {
    /// Leader of each term, from term 1.
    leaders: Vec<Option<NodeId>>,
    /// Entries in the order of the log, with the term in which each was first reported as committed.
    committed: Vec<(Entry<u8>, Term)>,
    /// What went wrong.
    broken: Option<&'static str>,
}

impl History {
    fn elected(&mut self, member: &Member) {
        let (id, term) = (member.id(), member.term());
        self.leaders.resize(self.leaders.len().max(term as usize), None);
        let place = &mut self.leaders[term as usize - 1];
        if place.is_some_and(|first| first != id) {
            self.broken = Some("two leaders in one term");
        }
        *place = Some(id);
        let log = &member.durable().log;
        let earlier = self.committed.iter().filter(|(_, committed_in)| *committed_in < term);
        let mut kept = earlier.filter(|(entry, _)| entry.index > log.base_index());
        if kept.any(|(entry, _)| log.get(entry.index) != Some(entry)) {
            self.broken = Some("a leader lacks a committed entry");
        }
    }

    fn committed(&mut self, member: &Member, first: u64, last: u64) {
        for entry in member.entries(first, last) {
            match self.committed.get(entry.index as usize - 1) {
                Some((known, _)) if known == entry => {}
                None if entry.index as usize == self.committed.len() + 1 => {
                    self.committed.push((*entry, member.term()));
                }
                _ => self.broken = Some("two entries committed at one place"),
            }
        }
    }

    fn was_accepted(&self) -> bool {
        self.committed.iter().any(|(entry, _)| entry.command().is_some())
    }

    fn terms_led(&self) -> usize {
        self.leaders.iter().flatten().count()
    }
}

/// Logs agree up to the last place where they hold the same term, and committed entries are on the
/// disks of a majority.
fn logs_are_well(members: &[Member], history: &History) -> Result<(), &'static str> {
    for (n, one) in members.iter().enumerate() {
        for other in &members[n + 1..] {
            let (a, b) = (&one.durable().log, &other.durable().log);
            let base = a.base_index().max(b.base_index());
            let end = a.last_index().min(b.last_index());
            let agreed = (base..=end).rev().find(|&at| a.term_at(at) == b.term_at(at));
            let same = |at| a.get(at) == b.get(at);
            if !(base + 1..=agreed.unwrap_or(base)).all(same) {
                return Err("two logs differ before a place where they agree");
            }
        }
    }
    if let Some((last, _)) = history.committed.last() {
        let has = |member: &&Member| {
            let durable = member.durable();
            durable.log.get(last.index) == Some(last) || durable.snapshot_index() >= last.index
        };
        if members.iter().filter(has).count() <= members.len() / 2 {
            return Err("a committed entry is not with a majority");
        }
    }
    Ok(())
}
