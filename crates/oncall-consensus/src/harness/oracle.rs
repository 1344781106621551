//! What must hold, seen by someone who sees everything at once.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::trail::Key;
use super::world::{Chain, Command, State};
use crate::message::{Body, Message};
use crate::types::{Entry, Index, NodeId, Payload, Term, Time};

/// Which property broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ViolationKind {
    /// Two leaders in one term.
    ElectionSafety,
    /// Two votes of one replica in one term.
    OneVote,
    /// Two logs hold entries of the same index and term that differ, or follow different entries.
    LogMatching,
    /// A new leader lacks a committed entry.
    LeaderCompleteness,
    /// Two replicas applied different entries at one index.
    StateMachineSafety,
    /// A committed entry was replaced, or a commit index fell.
    CommittedImmutable,
    /// A committed entry is not on the disks of a majority.
    Durability,
    /// A leader replaced an entry of its own log.
    LeaderAppendOnly,
    /// A proposal was taken, or leadership kept, without answers of a quorum.
    Quorum,
    /// A fenced proposal was taken outside its term or before its barrier.
    Fence,
    /// An outcome was told that turned out wrong.
    Outcome,
    /// A read missed an accepted write.
    StaleRead,
    /// Without faults there was no leader, no progress or no agreement in time.
    Liveness,
    /// A replica that came back deposed a leader that had a quorum.
    Disruption,
    /// A replica refused what another replica sent, or its own durable state.
    Malformed,
}

/// A property broke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// When, in true ticks.
    pub at: Time,
    /// Which property.
    pub kind: ViolationKind,
    /// The story in one line.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {}", self.kind, self.at, self.text)
    }
}

type Check = Result<(), (ViolationKind, String)>;

/// Everything that was ever seen.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    leaders: BTreeMap<Term, NodeId>,
    votes: BTreeMap<(Term, NodeId), NodeId>,
    /// Every entry of every log ever, with the term of the entry before it.
    entries: BTreeMap<(Index, Term), (Payload<Command>, Term)>,
    /// What was reported as committed, by index from 1.
    pub(crate) committed: Vec<Entry<Command>>,
    /// Term in which each was first reported.
    commit_terms: Vec<Term>,
    /// State machine after each committed entry.
    chain: Vec<u64>,
}

/// The state machine: a hash over everything applied.
pub(crate) fn applied(before: Chain, entry: &Entry<Command>) -> Chain {
    let command = entry.command().map_or(0, |&command| u64::from(command) + 1);
    Chain { index: entry.index, hash: Key(before.hash).of(command).0 }
}

impl Oracle {
    pub(crate) fn elected(&mut self, id: NodeId, state: &State) -> Check {
        let first = *self.leaders.entry(state.term).or_insert(id);
        if first != id {
            let text = format!("{first} and {id} both lead term {}", state.term);
            return Err((ViolationKind::ElectionSafety, text));
        }
        // A candidate may learn late of its election: only what was committed in earlier terms counts.
        let committed = self.committed.iter().zip(&self.commit_terms);
        for (entry, &term) in committed.skip(state.log.base_index() as usize) {
            if term < state.term && state.log.term_at(entry.index) != Some(entry.term) {
                let text = format!("{id} leads term {} and lacks {entry:?}", state.term);
                return Err((ViolationKind::LeaderCompleteness, text));
            }
        }
        Ok(())
    }

    /// A message leaves: what it says about votes is binding.
    pub(crate) fn said<S>(&mut self, message: &Message<Command, S>) -> Check {
        let (voter, choice) = match message.body {
            Body::Vote { .. } => (message.from, message.from),
            Body::VoteReply { granted: true } => (message.from, message.to),
            _ => return Ok(()),
        };
        let first = *self.votes.entry((message.term, voter)).or_insert(choice);
        if first == choice {
            return Ok(());
        }
        let text = format!("{voter} voted for {first} and {choice} in term {}", message.term);
        Err((ViolationKind::OneVote, text))
    }

    /// A log has changed from `from` on.
    pub(crate) fn wrote(&mut self, id: NodeId, state: &State, from: Index) -> Check {
        for entry in state.log.range(from, state.log.last_index()) {
            let before = state.log.term_at(entry.index - 1).unwrap_or(0);
            let found = (entry.payload, before);
            let first = *self.entries.entry((entry.index, entry.term)).or_insert(found);
            if first != found {
                let text =
                    format!("{id} holds {entry:?} after term {before}, first seen {first:?}");
                return Err((ViolationKind::LogMatching, text));
            }
        }
        Ok(())
    }

    /// A replica reports an entry as committed.
    pub(crate) fn commits(
        &mut self,
        id: NodeId,
        term: Term,
        entry: &Entry<Command>,
    ) -> Result<(), String> {
        match self.committed.get(entry.index as usize - 1) {
            Some(known) if known == entry => Ok(()),
            Some(known) => Err(format!("{id} applies {entry:?}, committed is {known:?}")),
            None if entry.index as usize == self.committed.len() + 1 => {
                let before = self.state_at(entry.index - 1);
                self.chain.push(applied(before, entry).hash);
                self.committed.push(*entry);
                self.commit_terms.push(term);
                Ok(())
            }
            None => Err(format!("{id} applies {entry:?} after {} entries", self.committed.len())),
        }
    }

    /// What the state machine is after an index.
    pub(crate) fn state_at(&self, index: Index) -> Chain {
        let hash = index.checked_sub(1).and_then(|at| self.chain.get(at as usize));
        Chain { index, hash: hash.copied().unwrap_or(0) }
    }

    /// The last committed entry must be on the disks of a majority (and by log matching all before).
    pub(crate) fn durable<'a>(
        &self,
        quorum: usize,
        disks: impl Iterator<Item = &'a State> + Clone,
    ) -> Check {
        let Some(last) = self.committed.last() else { return Ok(()) };
        let has = |state: &&State| {
            state.log.term_at(last.index) == Some(last.term) || state.snapshot_index() >= last.index
        };
        let copies = disks.filter(has).count();
        if copies >= quorum {
            return Ok(());
        }
        let text = format!("{last:?} is committed and on {copies} disks, quorum {quorum}");
        Err((ViolationKind::Durability, text))
    }

    /// Whether the barrier of a term is committed.
    pub(crate) fn barrier_is_committed(&self, term: Term) -> bool {
        let own = self.committed.iter().rev().take_while(|entry| entry.term >= term);
        own.filter(|entry| entry.term == term).any(|entry| entry.payload == Payload::Barrier)
    }

    /// Every command that stood in any log at any time.
    pub(crate) fn logged(&self) -> BTreeSet<Command> {
        let command = |(payload, _): &(Payload<Command>, Term)| match *payload {
            Payload::Command(command) => Some(command),
            Payload::Barrier => None,
        };
        self.entries.values().filter_map(command).collect()
    }
}
