//! The vocabulary that all components share: time, ids, records, transitions, messages out.

mod event;
mod ids;
mod labels;
mod out;
mod record;
mod time;

pub use event::{AuditEntry, CellUpdate, Change, Transition, Verdict};
pub use ids::{
    Address, Cell, Directory, DirectoryError, Generation, Incarnation, InstanceId, NodeId, Place,
    ProberId, ProxyId, RegionId, RelayId, Revision, ServiceId, ServiceKey, ShardId, Term, ZoneId,
};
pub use labels::{Label, LabelError, Labels};
pub use out::{Message, Metric, Out, Peer, Sample, Timer};
pub use record::{Endpoint, EndpointRecord, Reason, Source, State};
pub use time::{Span, Time};
