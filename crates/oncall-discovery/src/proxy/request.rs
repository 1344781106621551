//! One request: which endpoint, whether again, and how it ends (R95, R96, R176, D20).

use serde::{Deserialize, Serialize};

use super::AgeRule;
use crate::types::{Cell, Endpoint, InstanceId, RegionId, ServiceId, Span};

/// Attempts that a request can make: one and three retries.
const ATTEMPTS_MAX: usize = 4;

/// What the service's policy allows for a request, decided before it starts: see the `policy` module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Regions that may serve it, in the order of preference. Empty: policy refuses it.
    pub regions: &'a [RegionId],
    /// How old the set may be.
    pub age: AgeRule,
}

/// A request under way. The caller keeps it between the attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Request {
    /// Which service.
    pub service: ServiceId,
    /// Whether doing it twice does no harm.
    pub idempotent: bool,
    pub(super) tried: [InstanceId; ATTEMPTS_MAX],
    pub(super) attempts: u8,
    pub(super) last: Option<Attempt>,
}

impl Request {
    /// A request that has not been tried.
    pub fn new(service: ServiceId, idempotent: bool) -> Self {
        let tried = [InstanceId::default(); ATTEMPTS_MAX];
        Self { service, idempotent, tried, attempts: 0, last: None }
    }

    /// Attempts made.
    pub const fn attempts(&self) -> u8 {
        self.attempts
    }

    /// Endpoints tried.
    pub fn tried(&self) -> &[InstanceId] {
        &self.tried[..usize::from(self.attempts)]
    }
}

/// One attempt, to be made by the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attempt {
    /// Out of which cell.
    pub cell: Cell,
    /// Where to.
    pub endpoint: Endpoint,
    /// How long connecting may take.
    pub connect_timeout: Span,
    /// The set was too old, and the service's rule is to use it all the same: not retried.
    pub degraded: bool,
}

/// How an attempt went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AttemptResult {
    /// An answer came.
    Served,
    /// The connection was refused: nothing was sent.
    ConnectRefused,
    /// The connection took too long: nothing was sent.
    ConnectTimeout,
    /// Sent, and then an error or no answer: it may have been done.
    FailedAfterSend,
    /// The endpoint's identity is not accepted, whatever the set says (R41, I21). Nothing was sent.
    IdentityRefused,
    /// The caller's identity is not accepted: final.
    CallerRefused,
    /// Cut off when the process left at the end of its drain period.
    Terminated,
}

/// A request that was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Served {
    /// By whom.
    pub attempt: Attempt,
    /// Attempts, with this one.
    pub attempts: u8,
}

/// How a request ended (I12): always one of these, never a silent way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Outcome {
    /// An answer came.
    Served(Served),
    /// Failed after bounded retries; after none at all if the breaker was open.
    Failed {
        /// Attempts made.
        attempts: u8,
    },
    /// Every endpoint that policy allows is ejected or was tried, or there is none (R95).
    NoBackend {
        /// Attempts made.
        attempts: u8,
    },
    /// Policy allows no region.
    PolicyRefused,
    /// The service refuses to be routed by a set as old as this one (R101).
    TooOld,
    /// The caller's or the endpoints' identity was refused, or the proxy may not follow the cell.
    AuthRefused,
    /// Cut off at the end of a drain period.
    ForciblyTerminated,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    /// Make this attempt and report how it went.
    Try(Attempt),
    /// It is over.
    Done(Outcome),
}

/// Where to choose from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pool {
    /// The caller's zone.
    Zone,
    /// The whole cell.
    Cell,
    /// Nobody is left.
    Empty,
}

/// The zone preference (R117): the caller's own zone while it has a candidate, else the cell. Candidates are
/// endpoints that are neither ejected nor tried. The caller's zone only counts in its own region.
pub const fn pool(in_zone: u32, in_cell: u32) -> Pool {
    match (in_zone, in_cell) {
        (_, 0) => Pool::Empty,
        (0, _) => Pool::Cell,
        _ => Pool::Zone,
    }
}

/// The place of a weighted choice: `uniform` is a fresh uniform 32-bit number. `None` if all weights are zero.
pub fn pick(weights: impl Iterator<Item = u16> + Clone, uniform: u32) -> Option<usize> {
    let total: u64 = weights.clone().map(u64::from).sum();
    let mut left = ((u128::from(total) * u128::from(uniform)) >> 32) as u64;
    for (at, weight) in weights.enumerate() {
        if left < u64::from(weight) {
            return Some(at);
        }
        left -= u64::from(weight);
    }
    None
}
