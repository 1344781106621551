//! The service time of a relay: what makes small coalescing windows dangerous.

use serde::{Deserialize, Serialize};

use crate::types::{Span, Time};

/// A server that works at a fixed rate, with or without a lane for removals. 24 bytes.
///
/// In closed form: the urgent lane waits for urgent work only, the other for all. Work that already has its
/// departure time keeps it, so urgent work may overlap the end of ordinary work that is under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceLane {
    urgent_free: Time,
    free: Time,
    /// Whether urgent work goes first.
    pub urgent_first: bool,
}

impl ServiceLane {
    /// An idle server.
    pub const fn new(urgent_first: bool) -> Self {
        Self { urgent_free: Time::ZERO, free: Time::ZERO, urgent_first }
    }

    /// Takes work that needs `service` time; returns when it is done.
    pub fn enter(&mut self, now: Time, service: Span, urgent: bool) -> Time {
        if urgent && self.urgent_first {
            let done = self.urgent_free.max(now).after(service);
            self.urgent_free = done;
            self.free = self.free.max(now).after(service);
            return done;
        }
        self.free = self.free.max(now).after(service);
        self.free
    }

    /// How long ordinary work that came now would wait.
    pub fn delay(&self, now: Time) -> Span {
        self.free.since(now)
    }
}
