//! The distribution tier: from accepted changes to the proxies' streams (R79 to R91).
//!
//! Deltas chain per cell: each goes from the head before to the head after, names the incarnation of the history
//! and the checksum of the set after it. A `Publisher` at the catalog coalesces changes and serves relays; a
//! `Relay` serves proxies. Both are a `Server` over `CellStore`s, so there is one implementation of resuming,
//! budgets and heartbeats.
//!
//! The decisions stand on their own (`Cursor`, `Coalescer`, `DeltaLog`, `answer`, `Bucket`, `ServiceLane`):
//! a simulation that keeps one number for a proxy's view calls the same functions as the components here.

mod bucket;
mod coalesce;
mod cursor;
mod fan_out;
mod lane;
mod log;
mod message;
mod publisher;
mod relay;
mod resume;
mod server;
mod set;
mod store;

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;

pub use bucket::Bucket;
pub use coalesce::{Coalescer, Flush, Kind, Windows};
pub use cursor::{
    Cursor, DeltaVerdict, SnapshotHead, SnapshotVerdict, Step, judge_delta, judge_snapshot,
};
pub use lane::ServiceLane;
pub use log::{DeltaLog, Retention};
pub use message::{
    Delta, Down, ENDPOINT_BYTES, HEAD_BYTES, HEADER_BYTES, Head, OpenToAll, ProxyPolicy, Snapshot,
    Up, Watch, WatchPolicy, Wire, snapshot_bytes,
};
pub use publisher::{Missed, Publisher, PublisherInput, PublisherTimer, delta_of};
pub use relay::{Relay, RelayConfig, RelayInput, RelayTimer};
pub use resume::{Answer, SnapshotCause, answer};
pub use server::{Server, ServerConfig, ServerTimer};
pub use set::{EndpointSet, net};
pub use store::CellStore;
