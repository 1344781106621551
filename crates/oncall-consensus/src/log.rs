//! The log in memory: entries after a base that was compacted away.

use serde::{Deserialize, Serialize};

use crate::pages::Pages;
use crate::types::{Entry, Index, Term};

/// Entries with contiguous indices; everything up to the base is known only by the base's term.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Log<C> {
    base_index: Index,
    base_term: Term,
    entries: Pages<Entry<C>>,
}

impl<C> Default for Log<C> {
    fn default() -> Self {
        Self { base_index: 0, base_term: 0, entries: Pages::default() }
    }
}

impl<C> Log<C> {
    /// An empty log after the given place.
    pub(crate) fn after(base_index: Index, base_term: Term) -> Self {
        Self { base_index, base_term, entries: Pages::default() }
    }

    /// The last place that was compacted away; 0 if none.
    #[inline]
    pub fn base_index(&self) -> Index {
        self.base_index
    }

    /// The last place; equals the base if there are no entries.
    #[inline]
    pub fn last_index(&self) -> Index {
        self.base_index + self.entries.len() as u64
    }

    /// Term of the last place.
    #[inline]
    pub fn last_term(&self) -> Term {
        self.entries.last().map_or(self.base_term, |entry| entry.term)
    }

    /// Term of a place; `None` before the base and after the end.
    #[inline]
    pub fn term_at(&self, index: Index) -> Option<Term> {
        if index == self.base_index {
            return Some(self.base_term);
        }
        self.get(index).map(|entry| entry.term)
    }

    /// An entry; `None` up to the base and after the end.
    #[inline]
    pub fn get(&self, index: Index) -> Option<&Entry<C>> {
        let offset = index.checked_sub(self.base_index + 1)?;
        self.entries.get(offset as usize)
    }

    /// The entries from `first` to `last`, both included, as far as they exist.
    pub fn range(&self, first: Index, last: Index) -> impl Iterator<Item = &Entry<C>> {
        let first = first.max(self.base_index + 1);
        let last = last.min(self.last_index());
        let start = (first - self.base_index - 1).min(self.entries.len() as u64) as usize;
        let end = last.saturating_sub(self.base_index) as usize;
        self.entries.range(start, end)
    }

    /// Whether the last entry of a log with this end is at least as new as ours (5.4.1 of the Raft
    /// paper: the later term wins, then the longer log).
    #[inline]
    pub(crate) fn is_covered_by(&self, last_index: Index, last_term: Term) -> bool {
        (last_term, last_index) >= (self.last_term(), self.last_index())
    }

    /// The last place at or before `index` whose term is at most `term`; never before the base.
    pub(crate) fn last_with_term_up_to(&self, term: Term, index: Index) -> Index {
        let mut at = index.min(self.last_index());
        while at > self.base_index && self.term_at(at).is_some_and(|here| here > term) {
            at -= 1;
        }
        at
    }

    /// Adds an entry at the end; its index must be the next one.
    #[inline]
    pub(crate) fn push(&mut self, entry: Entry<C>) {
        debug_assert_eq!(entry.index, self.last_index() + 1);
        self.entries.push(entry);
    }

    /// Whether the entries are contiguous and their terms never fall.
    pub(crate) fn is_sound(&self) -> bool {
        let mut term = self.base_term;
        self.entries.iter().zip(self.base_index + 1..).all(|(entry, index)| {
            let fits = entry.index == index && entry.term >= term && entry.term > 0;
            term = entry.term;
            fits
        })
    }
}

impl<C: Clone> Log<C> {
    /// Drops the entries from `index` on.
    pub(crate) fn truncate_from(&mut self, index: Index) {
        let keep = index.saturating_sub(self.base_index + 1);
        self.entries.truncate(keep as usize);
    }

    /// Drops the entries up to `index`, whose term is `term`. Does nothing if they are gone already.
    pub(crate) fn compact(&mut self, index: Index, term: Term) {
        if index <= self.base_index {
            return;
        }
        let gone = (index - self.base_index).min(self.entries.len() as u64);
        self.entries.drop_first(gone as usize);
        self.base_index = index;
        self.base_term = term;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Payload;

    fn log(base: Index, terms: &[Term]) -> Log<u32> {
        let mut log = Log::after(base, u64::from(base > 0));
        for &term in terms {
            let index = log.last_index() + 1;
            log.push(Entry { term, index, payload: Payload::Command(index as u32) });
        }
        log
    }

    fn indices(log: &Log<u32>, first: Index, last: Index) -> Vec<Index> {
        log.range(first, last).map(|entry| entry.index).collect()
    }

    #[test]
    fn places_and_ranges() {
        let log = log(10, &[1, 2, 2]);
        assert_eq!((log.base_index(), log.last_index(), log.last_term()), (10, 13, 2));
        let terms: Vec<_> = (9..=14).map(|index| log.term_at(index)).collect();
        assert_eq!(terms, [None, Some(1), Some(1), Some(2), Some(2), None]);
        assert_eq!(indices(&log, 0, 99), [11, 12, 13]);
        assert_eq!(indices(&log, 12, 12), [12]);
        assert!(indices(&log, 13, 12).is_empty());
        assert!(indices(&log, 14, 20).is_empty());
        assert!(indices(&log, 3, 9).is_empty());
    }

    #[test]
    fn truncation_and_compaction() {
        let mut log = log(10, &[1, 2, 2]);
        log.truncate_from(13);
        assert_eq!((log.last_index(), log.last_term()), (12, 2));
        log.compact(11, 1);
        assert_eq!((log.base_index(), log.last_index()), (11, 12));
        log.compact(5, 1);
        assert_eq!(log.base_index(), 11);
        log.compact(20, 4);
        assert_eq!((log.base_index(), log.last_index(), log.last_term()), (20, 20, 4));
        log.truncate_from(1);
        assert_eq!(log.last_index(), 20);
    }

    #[test]
    fn which_log_is_newer() {
        let log = log(0, &[1, 2, 2]);
        assert!(log.is_covered_by(3, 2) && log.is_covered_by(4, 2) && log.is_covered_by(1, 3));
        assert!(!log.is_covered_by(2, 2) && !log.is_covered_by(9, 1));
        assert_eq!(log.last_with_term_up_to(1, 3), 1);
        assert_eq!(log.last_with_term_up_to(2, 9), 3);
        assert_eq!(log.last_with_term_up_to(0, 3), 0);
    }

    #[test]
    fn unsound_logs_are_seen() {
        assert!(log(10, &[1, 2, 2]).is_sound());
        assert!(!log(0, &[2, 1]).is_sound());
        let mut hole = log(0, &[1, 1]);
        hole.entries[1].index = 3;
        assert!(!hole.is_sound());
    }
}
