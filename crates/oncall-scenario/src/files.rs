//! Where texts come from: the caller supplies them by name.

use crate::shipped::{ShippedFiles, shipped_text};
use std::collections::BTreeMap;

/// Texts by name: the CSV of a demand series, the scenarios of a mixture.
pub trait Files {
    /// The text of that name, or a sentence that says why there is none.
    fn read(&self, name: &str) -> Result<String, String>;
}

/// Texts kept in memory.
#[derive(Debug, Clone, Default)]
pub struct MemoryFiles {
    texts: BTreeMap<String, String>,
}

impl MemoryFiles {
    /// No texts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a text, in the place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.insert(name.into(), text.into());
        self
    }
}

impl Files for MemoryFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        self.texts.get(name).cloned().ok_or_else(|| "there is no such file".to_owned())
    }
}

/// No texts at all.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _name: &str) -> Result<String, String> {
        Err("no files can be read here".to_owned())
    }
}

/// The shipped scenarios by their names, and everything else from the caller's texts.
#[derive(Debug, Clone, Copy)]
pub struct ShippedOr<F>(pub F);

impl<F: Files> Files for ShippedOr<F> {
    fn read(&self, name: &str) -> Result<String, String> {
        match shipped_text(name) {
            Some(_) => ShippedFiles.read(name),
            None => self.0.read(name),
        }
    }
}

impl<F: Files + ?Sized> Files for &F {
    fn read(&self, name: &str) -> Result<String, String> {
        (**self).read(name)
    }
}
