//! What an input brings about.

use crate::durable::Dirty;
use crate::message::Message;
use crate::types::{Index, NodeId, Term};

/// Why a leader stopped leading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StepDown {
    /// It heard of a newer term.
    NewerTerm,
    /// No quorum has answered for `election_timeout_max`.
    NoQuorum,
}

/// Who leads, as one replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Leadership {
    /// The term.
    pub term: Term,
    /// Its leader, if known.
    pub leader: Option<NodeId>,
}

/// The effects of one input. A buffer of the caller, reused; every input **clears it first**, so drain
/// it after each call.
///
/// The order that safety asks for: make the parts named in `dirty` durable, then send `messages`.
/// Applying committed entries need not wait for the disk.
#[derive(Debug, Clone)]
pub struct Output<C, S> {
    /// Messages, to be sent after `dirty` is durable.
    pub messages: Vec<Message<C, S>>,
    /// What of [`Replica::durable`](crate::Replica::durable) has changed.
    pub dirty: Dirty,
    /// Newly committed places `(first, last)`, both included; read them with
    /// [`Replica::entries`](crate::Replica::entries). Always begins right after what was reported
    /// before, or after an installed snapshot.
    pub committed: Option<(Index, Index)>,
    /// A snapshot up to this index was installed: replace the state machine by
    /// [`Replica::snapshot`](crate::Replica::snapshot) *before* applying `committed`.
    pub installed: Option<Index>,
    /// The term or the known leader has changed.
    pub leadership: Option<Leadership>,
    /// This replica was elected in this term.
    pub elected: Option<Term>,
    /// The barrier of this term, led by this replica, was committed: from here on every earlier commit
    /// is applied here, and fenced proposals are taken.
    pub barrier: Option<Term>,
    /// This replica has stopped leading.
    pub stepped_down: Option<StepDown>,
    /// Uncommitted entries from this index on were replaced by the leader's.
    pub truncated: Option<Index>,
}

impl<C, S> Default for Output<C, S> {
    fn default() -> Self {
        Self {
            messages: Vec::new(),
            dirty: Dirty::default(),
            committed: None,
            installed: None,
            leadership: None,
            elected: None,
            barrier: None,
            stepped_down: None,
            truncated: None,
        }
    }
}

impl<C, S> Output<C, S> {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the buffer and keeps its memory.
    #[inline]
    pub fn clear(&mut self) {
        let Self {
            messages,
            dirty,
            committed,
            installed,
            leadership,
            elected,
            barrier,
            stepped_down,
            truncated,
        } = self;
        messages.clear();
        *dirty = Dirty::default();
        *committed = None;
        *installed = None;
        *leadership = None;
        *elected = None;
        *barrier = None;
        *stepped_down = None;
        *truncated = None;
    }
}
