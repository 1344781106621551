//! What is wrong with a file: all of it at once.

use std::fmt;

/// One thing that is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The file, where it is known.
    pub file: Option<String>,
    /// JSON path such as `$.demand.base_rps`, or the line and column of a CSV.
    pub path: String,
    /// What stands there, as written and shortened.
    pub value: String,
    /// What should stand there.
    pub expected: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        write!(f, "{}: found {}, expected {}", self.path, self.value, self.expected)
    }
}

/// Every problem of a scenario and of the files that it names; never empty. Prints one a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScenarioErrors {
    problems: Vec<Problem>,
}

impl ScenarioErrors {
    /// The problems: those of the header first, then in the order of the file.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for ScenarioErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let end = if index == 0 { "" } else { "\n" };
            write!(f, "{end}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ScenarioErrors {}

/// Collects the problems of a file.
#[derive(Debug)]
pub(crate) struct Report {
    file: Option<String>,
    problems: Vec<Problem>,
}

impl Report {
    pub(crate) fn new(file: Option<&str>) -> Self {
        Self { file: file.map(str::to_owned), problems: Vec::new() }
    }

    pub(crate) fn add(
        &mut self,
        path: impl Into<String>,
        value: impl Into<String>,
        expected: impl Into<String>,
    ) {
        self.problems.push(Problem {
            file: self.file.clone(),
            path: path.into(),
            value: value.into(),
            expected: expected.into(),
        });
    }

    /// Takes over the problems of another file.
    pub(crate) fn extend(&mut self, errors: ScenarioErrors) {
        self.problems.extend(errors.problems);
    }

    /// How many there are so far.
    pub(crate) fn len(&self) -> usize {
        self.problems.len()
    }

    /// `value` if nothing was wrong.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, ScenarioErrors> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.into_errors()) }
    }

    /// The problems; at least one must have been added.
    pub(crate) fn into_errors(self) -> ScenarioErrors {
        debug_assert!(!self.problems.is_empty());
        ScenarioErrors { problems: self.problems }
    }
}

/// Longest text of a value that is shown, in characters.
const SHOWN_MAX: usize = 60;

/// Shortens a text to be shown.
pub(crate) fn shorten(text: &str) -> String {
    if text.chars().count() <= SHOWN_MAX {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(SHOWN_MAX).collect();
    short.push('…');
    short
}

/// Path of a field of an object.
pub(crate) fn child(path: &str, key: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '$';
    if !key.is_empty() && key.chars().all(plain) {
        format!("{path}.{key}")
    } else {
        format!("{path}[{:?}]", shorten(key))
    }
}

/// Path of an item of an array.
pub(crate) fn item(path: &str, index: usize) -> String {
    format!("{path}[{index}]")
}
