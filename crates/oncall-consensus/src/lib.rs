//! A replicated log in the manner of Raft: no I/O, no clock, no random numbers of its own.
//!
//! Written from Diego Ongaro's dissertation ("Consensus: Bridging Theory and Practice", 2014):
//! elections (3.4) with pre-vote (9.6) and check-quorum (6.2), replication (3.5), the rule about
//! entries of earlier terms (3.6.2), a barrier entry at the start of each term (6.4), leases for
//! reads (6.4.1), compaction and snapshot transfer (5). Membership is fixed, 3 or 5 replicas.
//!
//! A [`Replica`] is a plain value (`Clone`, `Eq`, `Hash`, serde). Its inputs are
//! [`tick`](Replica::tick), [`receive`](Replica::receive), [`propose`](Replica::propose) and
//! [`compact`](Replica::compact); each gets the time of the caller and fills an [`Output`].
//!
//! # The caller's duties
//!
//! 1. Call `tick` when [`deadline`](Replica::deadline) is reached (earlier calls cost one comparison).
//! 2. After every input: make what [`Output::dirty`] names durable, **then** send
//!    [`Output::messages`]. A caller whose disk is instant sends at once.
//! 3. Apply: if [`Output::installed`] is set, replace the state machine by the snapshot; then apply the
//!    places of [`Output::committed`]. The state machine is the caller's; commands should be idempotent,
//!    since a proposal of unknown outcome may be proposed again.
//! 4. After a crash: [`Replica::restart`] with the durable state, and the state machine from its
//!    snapshot (or from nothing). Committed places after the snapshot are reported again.
//! 5. Call [`compact`](Replica::compact) now and then with a snapshot of the state machine.
//!
//! # What is promised
//!
//! * A refused proposal is in no log. A taken one is a [`Proposal`], and only
//!   [`Outcome::Accepted`] (its place is committed with its term) means that it counts.
//! * A leader that has no confirmed quorum refuses proposals, and steps down a little later.
//! * [`Fence::Barrier`] ties a proposal to one term after that term's barrier is committed.
//! * Terms never fall along the log, and a place never changes once it is committed: revisions that
//!   follow the index are strictly monotonic (I1 of the discovery specification), and an expiry that
//!   was fenced carries the term of the leader that decided it in [`Entry::term`] (I9).
//! * Election timeouts are a function of (key, replica, term, attempt): equal inputs, equal outputs.
//!
//! What is *not* promised: progress while some links are dead and others live. A leader needs a
//! quorum that reaches it both ways, and an election a candidate with the newest log among one.
//!
//! # How it is verified
//!
//! [`harness`] plays plans of trouble against whole groups and checks every property after every input;
//! the unit tests search small groups exhaustively, with and without clocks; and each fault of
//! [`Mutation`], put in on purpose, must be found by one or the other.
//!
//! ```
//! use oncall_consensus::{Config, Fence, Outcome, Output, Replica};
//!
//! let mut group: Vec<Replica<&str, ()>> =
//!     (0..3).map(|id| Replica::new(Config::new(id, 3, 7), 0).unwrap()).collect();
//! let mut out = Output::new();
//! let mut post = Vec::new();
//! group[1].campaign(0, &mut out);
//! post.append(&mut out.messages);
//! let mut receipt = None;
//! while let Some(message) = post.pop() {
//!     let to = usize::from(message.to);
//!     group[to].receive(0, message, &mut out).unwrap();
//!     post.append(&mut out.messages);
//!     if let Some(term) = out.barrier {
//!         let taken = group[to].propose(0, "READY -> DRAINING", Fence::Barrier(term), &mut out);
//!         receipt = Some(taken.unwrap());
//!         post.append(&mut out.messages);
//!     }
//! }
//! assert_eq!(group[1].outcome(receipt.unwrap()), Outcome::Accepted);
//! ```
#![cfg_attr(not(test), warn(clippy::disallowed_methods, clippy::disallowed_types))]

mod config;
mod durable;
mod election;
mod error;
mod follow;
pub mod harness;
mod lead;
mod log;
mod message;
#[cfg(test)]
mod models;
mod mutation;
mod output;
mod pages;
mod peer;
mod query;
mod read;
mod replica;
mod types;

pub use config::{Config, ConfigError};
pub use durable::{Dirty, Durable, DurableError, Snapshot};
pub use error::{CompactError, MessageError, RestartError};
pub use log::Log;
pub use message::{Body, Message, MessageKind};
pub use mutation::Mutation;
pub use output::{Leadership, Output, StepDown};
pub use pages::Pages;
pub use read::{ReadState, ReadTicket};
pub use replica::Replica;
pub use types::{
    Entry, Fence, Index, NodeId, Outcome, Payload, Proposal, REPLICAS_MAX, Refusal, Role, Term,
    Time,
};
