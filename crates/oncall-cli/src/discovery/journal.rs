//! What a search has played, in a file, so that one that was broken off goes on.
//!
//! The first line says what is searched, the others are `{"policy", "block", "values"}`, one a line. A
//! last line that was cut is left out.

use anyhow::{Context as _, ensure};
use oncall_eval::EvalError;
use oncall_eval::race::Journal;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What a search's values depend on, beside the candidates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    pub(super) scenario: String,
    pub(super) scenario_hash: String,
    pub(super) spec_hash: String,
    pub(super) seed: u64,
    pub(super) block: usize,
    pub(super) objective: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    policy: String,
    block: usize,
    values: Vec<f64>,
}

/// A journal in a file.
#[derive(Debug)]
pub(super) struct FileJournal {
    path: PathBuf,
    file: File,
    known: BTreeMap<(String, usize), Vec<f64>>,
}

impl FileJournal {
    /// Opens a journal, or begins one. Refuses one of another search.
    pub(super) fn open(path: &Path, head: &Head) -> anyhow::Result<Self> {
        let name = || path.display().to_string();
        let mut known = BTreeMap::new();
        let text = if path.exists() {
            std::fs::read_to_string(path).with_context(name)?
        } else {
            String::new()
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
        let mut lines = whole.lines();
        if let Some(first) = lines.next() {
            let found: Head = serde_json::from_str(first)
                .with_context(|| format!("{}: no journal of a search", name()))?;
            let (found_text, expected) =
                (serde_json::to_string(&found)?, serde_json::to_string(head)?);
            ensure!(
                found == *head,
                "{}: a journal of another search: found {found_text}, expected {expected}",
                name()
            );
        }
        for (number, line) in lines.enumerate() {
            let line: Line = serde_json::from_str(line)
                .with_context(|| format!("{}, line {}", name(), number + 2))?;
            known.insert((line.policy, line.block), line.values);
        }
        let mut file =
            OpenOptions::new().create(true).append(true).open(path).with_context(name)?;
        // What was cut would spoil the line after it.
        file.set_len(whole.len() as u64).with_context(name)?;
        if whole.is_empty() {
            writeln!(file, "{}", serde_json::to_string(head)?).with_context(name)?;
        }
        Ok(Self { path: path.to_owned(), file, known })
    }
}

impl Journal for FileJournal {
    fn known(&self, policy: &str, block: usize) -> Option<Vec<f64>> {
        self.known.get(&(policy.to_owned(), block)).cloned()
    }

    fn keep(&mut self, policy: &str, block: usize, values: &[f64]) -> Result<(), EvalError> {
        let line = Line { policy: policy.to_owned(), block, values: values.to_vec() };
        let failed = |error: &dyn std::fmt::Display| {
            EvalError::failed(format!("cannot write {}: {error}", self.path.display()))
        };
        let text = serde_json::to_string(&line).map_err(|error| failed(&error))?;
        writeln!(self.file, "{text}").map_err(|error| failed(&error))?;
        self.known.insert((line.policy, block), line.values);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(seed: u64) -> Head {
        Head {
            scenario: "spike".to_owned(),
            scenario_hash: "1".to_owned(),
            spec_hash: "2".to_owned(),
            seed,
            block: 2,
            objective: "return".to_owned(),
        }
    }

    #[test]
    fn what_was_kept_is_known_again() {
        let path = std::env::temp_dir().join(format!("oncall-journal-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let values = [-0.1 - 0.2, 1e-300];
        FileJournal::open(&path, &head(1)).unwrap().keep("hold", 3, &values).unwrap();
        // Killed in the middle of a line.
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        write!(file, "{{\"policy\": \"ho").unwrap();
        let mut journal = FileJournal::open(&path, &head(1)).unwrap();
        assert_eq!(journal.known("hold", 3).unwrap(), values);
        assert_eq!(journal.known("hold", 2), None);
        journal.keep("hold", 2, &[5.0]).unwrap();
        let journal = FileJournal::open(&path, &head(1)).unwrap();
        assert_eq!(journal.known("hold", 2).unwrap(), [5.0]);
        let error = FileJournal::open(&path, &head(2)).unwrap_err().to_string();
        assert!(error.contains("a journal of another search"), "{error}");
        std::fs::write(&path, "no json\n").unwrap();
        let error = FileJournal::open(&path, &head(1)).unwrap_err().to_string();
        assert!(error.contains("no journal of a search"), "{error}");
        std::fs::remove_file(&path).unwrap();
    }
}
