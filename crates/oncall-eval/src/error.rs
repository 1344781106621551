//! One opaque error: a sentence with the argument, the value and the expectation.

use oncall_env::VecError;
use oncall_heuristics::PolicyError;

/// Why an evaluation cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct EvalError {
    message: String,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }

    /// What went wrong outside of an evaluation, as a sentence.
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(message)
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

impl From<VecError> for EvalError {
    fn from(error: VecError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<PolicyError> for EvalError {
    fn from(error: PolicyError) -> Self {
        Self::new(error.to_string())
    }
}
