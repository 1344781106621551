//! A hash index from keys to positions of a table that holds the keys itself. Never iterated, so the order of
//! its places cannot leak; a flat vector, so that cloning a shard is a copy of memory.

use std::sync::Arc;

use oncall_core::streams::scramble;
use serde::{Deserialize, Serialize};

/// Positions by hash; linear probing, at most three quarters full, no removal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Index {
    /// Position plus one; zero is free. Its length is a power of two.
    /// Copies share them until one of them adds a position, which is seldom.
    places: Arc<Vec<u32>>,
    len: usize,
}

impl Index {
    /// The position whose key hashes to `hash` and for which `is` holds.
    pub(super) fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.places.len().checked_sub(1)?;
        let mut at = scramble(hash) as usize & mask;
        loop {
            let position = self.places[at].checked_sub(1)?;
            if is(position) {
                return Some(position);
            }
            at = (at + 1) & mask;
        }
    }

    /// Adds a position whose key is not in yet. `hash_of` gives the hashes of those that are.
    pub(super) fn insert(&mut self, hash: u64, position: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.len + 1) * 4 > self.places.len() * 3 {
            let grown = vec![0; (self.places.len() * 2).max(16)];
            for place in std::mem::replace(&mut self.places, Arc::new(grown)).iter() {
                if let Some(old) = place.checked_sub(1) {
                    self.put(hash_of(old), old);
                }
            }
        }
        self.put(hash, position);
        self.len += 1;
    }

    fn put(&mut self, hash: u64, position: u32) {
        let places = Arc::make_mut(&mut self.places);
        let mask = places.len() - 1;
        let mut at = scramble(hash) as usize & mask;
        while places[at] != 0 {
            at = (at + 1) & mask;
        }
        places[at] = position + 1;
    }

    /// Bytes on the heap.
    pub(super) fn heap_bytes(&self) -> usize {
        self.places.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_was_put_in_and_nothing_else() {
        let keys: Vec<u64> = (0..1_000).map(|n| n * 7).collect();
        let mut index = Index::default();
        assert_eq!(index.find(7, |_| true), None);
        for (position, &key) in keys.iter().enumerate() {
            index.insert(key, position as u32, |at| keys[at as usize]);
        }
        for (position, &key) in keys.iter().enumerate() {
            let found = index.find(key, |at| keys[at as usize] == key);
            assert_eq!(found, Some(position as u32));
            assert_eq!(index.find(key + 1, |at| keys[at as usize] == key + 1), None);
        }
    }
}
