//! How old a set may be, for each service (R94, R101).

use serde::{Deserialize, Serialize};

use crate::types::Span;

/// What a service wants done with a set that is too old.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AgeAction {
    /// Route by it all the same, mark the result, and don't retry.
    #[default]
    Degrade,
    /// Refuse the request.
    Reject,
}

/// A service's rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgeRule {
    /// Beyond this the set is too old.
    pub max: Span,
    /// What to do then.
    pub action: AgeAction,
}

/// What a set's age means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgeVerdict {
    /// Young enough.
    Fresh,
    /// Too old, used all the same.
    Degraded,
    /// Too old, not used.
    Rejected,
}

impl AgeRule {
    /// Judges an age.
    pub fn judge(self, age: Span) -> AgeVerdict {
        match self.action {
            _ if age <= self.max => AgeVerdict::Fresh,
            AgeAction::Degrade => AgeVerdict::Degraded,
            AgeAction::Reject => AgeVerdict::Rejected,
        }
    }
}
