//! What travels between catalog, relays and proxies, with the bytes that it costs.

use serde::{Deserialize, Serialize};

use super::{Cursor, SnapshotHead, Step};
use crate::types::{Cell, Change, Endpoint, Peer, Span, Time};

/// Bytes of an endpoint on the wire (R131: illustrative, and so a constant).
pub const ENDPOINT_BYTES: u64 = 256;
/// Bytes of any message around its parts.
pub const HEADER_BYTES: u64 = 64;
/// Bytes of one head in a heartbeat: cell, revision and age; the incarnation goes once per shard.
pub const HEAD_BYTES: u64 = 12;

/// A wish to follow a cell from where the reader stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Watch {
    /// Which cell.
    pub cell: Cell,
    /// Where the reader stands; `None` if it has nothing. "Nothing" and "an empty set" differ.
    pub cursor: Option<Cursor>,
    /// A check failed: a snapshot, please, and no delta.
    pub full: bool,
}

/// A change of a cell's set, chained to the one before.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Delta {
    /// Which cell.
    pub cell: Cell,
    /// From which head to which.
    pub step: Step,
    /// Net changes, at most one for each instance, in the order of instance ids.
    pub changes: Vec<Change>,
    /// Size of the set after.
    pub count: u32,
    /// Checksum of the set after.
    pub checksum: u64,
    /// When the oldest change in it was accepted; for the watch lag.
    pub accepted: Time,
    /// When the source was last known to be right about its head.
    pub as_of: Time,
    /// Has a removal: may go before others that have none.
    pub urgent: bool,
}

/// A whole set.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Snapshot {
    /// Which cell.
    pub cell: Cell,
    /// Its place and size.
    pub head: SnapshotHead,
    /// Checksum of the set.
    pub checksum: u64,
    /// All of it, in the order of instance ids.
    pub endpoints: Vec<Endpoint>,
    /// When the source was last known to be right about its head.
    pub as_of: Time,
}

/// Where a cell stands, as a heartbeat tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Head {
    /// Which cell.
    pub cell: Cell,
    /// Its head at the server.
    pub cursor: Cursor,
    /// When the source was last known to be right about it.
    pub as_of: Time,
}

/// From a reader to its server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Up {
    /// A new stream.
    Hello {
        /// Number of the stream; rises with each attempt of this reader.
        session: u32,
        /// Proof of who the reader is; opaque here, see [`WatchPolicy`].
        proof: u64,
        /// Everything it follows: only these are ever sent (R83).
        watches: Vec<Watch>,
        /// Version of the policy it has.
        policy: u32,
    },
    /// Follow a cell, or repair it.
    Watch(Watch),
    /// A heartbeat told of a newer policy than this reader has.
    PolicyMissed {
        /// The one it has.
        have: u32,
    },
    /// The stream ends.
    Bye,
}

/// From a server to a reader.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Down {
    /// The stream is open.
    Welcome {
        /// Number of the stream.
        session: u32,
        /// Proof that this is the control plane; opaque here (R125).
        proof: u64,
    },
    /// Admission is used up.
    Busy {
        /// Number of the stream.
        session: u32,
        /// Not before so long; the reader's own back-off comes on top.
        retry_after: Span,
    },
    /// The reader's identity was refused.
    Denied {
        /// Number of the stream.
        session: u32,
    },
    /// The reader may not follow this cell (I14).
    WatchDenied {
        /// Which cell.
        cell: Cell,
    },
    /// The server does not know this cell yet. Says nothing about the set: the reader keeps what it has.
    NotReady {
        /// Which cell.
        cell: Cell,
    },
    /// The reader is up to date.
    Resumed(Head),
    /// The server lags behind the reader.
    ServerBehind(Head),
    /// What is missing.
    Delta(Delta),
    /// Everything.
    Snapshot(Snapshot),
    /// Where the reader's cells stand; what makes a lost delta visible when nothing follows it.
    Heartbeat {
        /// The heads.
        heads: Vec<Head>,
        /// Version of the server's policy; 0 if it has none.
        policy: u32,
    },
    /// Dials and rules for proxies.
    Policy(ProxyPolicy),
}

/// Dials and rules that proxies obey. They travel like everything else: not at all in an outage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProxyPolicy {
    /// Rises with every change; a proxy takes only a newer one.
    pub version: u32,
    /// The values.
    pub dials: crate::proxy::ProxyDials,
}

/// All messages of this tier.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Wire {
    /// Towards the catalog.
    Up(Up),
    /// Towards the proxies.
    Down(Down),
    /// What a proxy has noticed about an endpoint (R98): evidence, never a command.
    Report(crate::proxy::PassiveReport),
}

impl From<Up> for Wire {
    fn from(message: Up) -> Self {
        Self::Up(message)
    }
}

impl From<Down> for Wire {
    fn from(message: Down) -> Self {
        Self::Down(message)
    }
}

impl Down {
    /// Bytes on the wire.
    pub fn bytes(&self) -> u64 {
        HEADER_BYTES
            + match self {
                Self::Delta(delta) => delta.changes.len() as u64 * ENDPOINT_BYTES,
                Self::Snapshot(snapshot) => snapshot.endpoints.len() as u64 * ENDPOINT_BYTES,
                Self::Heartbeat { heads, .. } => heads.len() as u64 * HEAD_BYTES,
                _ => 0,
            }
    }
}

/// Bytes of a snapshot of so many endpoints.
pub const fn snapshot_bytes(count: u32) -> u64 {
    HEADER_BYTES + count as u64 * ENDPOINT_BYTES
}

/// Who may open a stream and follow what (R124): least privilege, decided by whoever checks identities.
pub trait WatchPolicy {
    /// Whether `proof` shows that the reader is `peer`.
    fn may_connect(&self, peer: Peer, proof: u64) -> bool;

    /// Whether `peer` may follow `cell`.
    fn may_watch(&self, peer: Peer, cell: Cell) -> bool;
}

/// Everybody may follow everything; for worlds and tests in which identities play no part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenToAll;

impl WatchPolicy for OpenToAll {
    fn may_connect(&self, _peer: Peer, _proof: u64) -> bool {
        true
    }

    fn may_watch(&self, _peer: Peer, _cell: Cell) -> bool {
        true
    }
}
