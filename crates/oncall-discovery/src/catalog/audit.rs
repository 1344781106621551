//! The audit log (R124): the last lines, and a hash chain over all lines that ever were.

use serde::{Deserialize, Serialize};

use crate::types::{AuditEntry, Source, State};

/// A bounded ring of lines. What fell out of it is still held by the digest: two shards with one digest have the
/// same history, and a line that was altered afterwards does not fit the chain.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AuditLog {
    lines: Vec<AuditEntry>,
    capacity: u32,
    written: u64,
    digest: [u8; 24],
}

impl AuditLog {
    /// Keeps so many lines.
    pub fn new(capacity: u32) -> Self {
        Self { lines: Vec::new(), capacity, written: 0, digest: [0; 24] }
    }

    /// Writes a line; its sequence number is set here.
    pub(super) fn write(&mut self, mut line: AuditEntry) {
        line.sequence = self.written;
        self.digest = Self::link(&self.digest, &line);
        if (self.lines.len() as u64) < u64::from(self.capacity) {
            self.lines.push(line);
        } else if self.capacity > 0 {
            self.lines[(self.written % u64::from(self.capacity)) as usize] = line;
        }
        self.written += 1;
    }

    /// Lines ever written.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Hash over all lines ever written.
    pub fn digest(&self) -> [u8; 24] {
        self.digest
    }

    /// The lines that are still there, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = &AuditEntry> {
        let start = if self.lines.is_empty() {
            0
        } else {
            (self.written % self.lines.len() as u64) as usize
        };
        self.lines[start..].iter().chain(&self.lines[..start])
    }

    /// The digest after a line, from the one before it: BLAKE3 of both, cut to 24 bytes, so that the two together
    /// are one block of the hash. The line's number is its place in the chain.
    pub fn link(before: &[u8; 24], line: &AuditEntry) -> [u8; 24] {
        let (kind, who) = match line.source {
            Source::Controller => (0, 0),
            Source::Agent(node) => (1, u32::from(node.0)),
            Source::Workload(instance) => (2, instance.0),
            Source::Health => (3, 0),
            Source::Leases(term) => (4, term.0 as u32),
        };
        let from = line.from.map_or(State::ALL.len() as u8, |state| state as u8);
        let what = [kind << 4 | from, line.to as u8, line.reason as u8, line.verdict as u8];
        let words = [
            line.term.0 as u32,
            who,
            line.instance.0,
            line.generation.start,
            line.generation.sequence,
            u32::from_le_bytes(what),
            line.revision.0,
        ];
        let mut bytes = [0; 64];
        bytes[..24].copy_from_slice(before);
        bytes[24..32].copy_from_slice(&line.proposed.0.to_le_bytes());
        for (chunk, word) in bytes[32..60].chunks_exact_mut(4).zip(words) {
            chunk.copy_from_slice(&word.to_le_bytes());
        }
        let hash = blake3::hash(&bytes);
        std::array::from_fn(|at| hash.as_bytes()[at])
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.lines.capacity() * size_of::<AuditEntry>()
    }
}
