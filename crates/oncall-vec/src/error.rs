//! One opaque error: what kind it is, and a sentence with the argument, the value, the expectation.

use std::fmt::Display;

/// What went wrong, for callers that map errors onto their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// A slice has the wrong length.
    Shape,
    /// A value is out of its range, not a number, or names no row.
    Value,
    /// The calls came in the wrong order, such as a step before the first reset.
    Order,
    /// Bytes or a snapshot are not a state that this engine can restore.
    State,
    /// An option is out of its range.
    Option,
}

/// Why a call was refused; nothing has changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct VecError {
    kind: ErrorKind,
    message: String,
}

impl VecError {
    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    pub(crate) fn new(kind: ErrorKind, message: String) -> Self {
        Self { kind, message }
    }

    /// `name = found: expected expected`.
    pub(crate) fn value(name: impl Display, found: impl Display, expected: impl Display) -> Self {
        Self::new(ErrorKind::Value, format!("{name} = {found}: expected {expected}"))
    }

    pub(crate) fn option(name: &str, found: impl Display, expected: impl Display) -> Self {
        Self::new(ErrorKind::Option, format!("{name} = {found}: expected {expected}"))
    }

    pub(crate) fn order(message: String) -> Self {
        Self::new(ErrorKind::Order, message)
    }

    /// A snapshot of one world for an engine of another.
    pub fn foreign(found: &str, expected: &str) -> Self {
        Self::state(format!("snapshot of the world {found:?}: expected {expected:?}"))
    }

    pub(crate) fn state(message: String) -> Self {
        Self::new(ErrorKind::State, message)
    }
}

/// Checks a slice of `rows` rows of `width` values.
pub(crate) fn check_len(
    name: &str,
    found: usize,
    rows: usize,
    width: usize,
) -> Result<(), VecError> {
    if found == rows * width {
        return Ok(());
    }
    let expected = rows * width;
    let message = if width == 1 {
        format!("{name}: {found} values, expected {expected}, one for each row")
    } else {
        format!("{name}: {found} values, expected {expected} ({rows} rows of {width})")
    };
    Err(VecError::new(ErrorKind::Shape, message))
}

/// `row 3`, `rows 3, 5`, or `rows 0, 1, 2, 3, 4, 5, 6, 7 and 92 more`.
pub(crate) fn name_rows(rows: impl Iterator<Item = usize>) -> String {
    const SHOWN: usize = 8;
    let rows: Vec<usize> = rows.collect();
    let shown: Vec<String> = rows.iter().take(SHOWN).map(ToString::to_string).collect();
    let noun = if rows.len() == 1 { "row" } else { "rows" };
    let rest = match rows.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{noun} {}{rest}", shown.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_argument_value_and_expectation() {
        let error = check_len("observations", 7, 2, 4).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert_eq!(error.to_string(), "observations: 7 values, expected 8 (2 rows of 4)");
        let error = check_len("rewards", 7, 2, 1).unwrap_err();
        assert_eq!(error.to_string(), "rewards: 7 values, expected 2, one for each row");
        assert_eq!(VecError::value("a", 1, "2").to_string(), "a = 1: expected 2");
    }

    #[test]
    fn many_rows_are_counted() {
        assert_eq!(name_rows([3].into_iter()), "row 3");
        assert_eq!(name_rows([3, 5].into_iter()), "rows 3, 5");
        assert_eq!(name_rows(0..100), "rows 0, 1, 2, 3, 4, 5, 6, 7 and 92 more");
    }
}
