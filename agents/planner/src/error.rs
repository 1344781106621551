//! One opaque error: a sentence with the argument, the value and the expectation.

/// Why nothing can be planned or checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlannerError {
    message: String,
}

impl PlannerError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// `name = found: expected expected`.
    pub(crate) fn value(
        name: &str,
        found: impl std::fmt::Display,
        expected: impl std::fmt::Display,
    ) -> Self {
        Self::new(format!("{name} = {found}: expected {expected}"))
    }
}
