//! A list in pages that copies share until one of them writes.
//!
//! Worlds of a hundred thousand instances are copied to look ahead, and most of what is copied is never written
//! again: records, logs, catalogs. A page is copied when it is written first after the list was copied; reading costs
//! one more look-up. The end of the list is a plain vector, so that appending shares nothing and costs nothing.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeSeq};

/// Elements of a page: a few thousand bytes of records.
const PAGE: usize = 128;

/// A growing list whose full pages are shared by its copies. It is saved, hashed, compared and printed like a vector.
#[derive(Clone, PartialEq, Eq)]
pub struct Pages<T> {
    /// Full ones.
    pages: Vec<Arc<[T; PAGE]>>,
    /// Less than a page.
    tail: Vec<T>,
}

impl<T> Default for Pages<T> {
    fn default() -> Self {
        Self { pages: Vec::new(), tail: Vec::new() }
    }
}

impl<T> Pages<T> {
    /// Elements.
    #[inline]
    pub fn len(&self) -> usize {
        self.pages.len() * PAGE + self.tail.len()
    }

    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty() && self.tail.is_empty()
    }

    /// An element.
    #[inline]
    pub fn get(&self, at: usize) -> Option<&T> {
        match self.pages.get(at / PAGE) {
            Some(page) => Some(&page[at % PAGE]),
            None => self.tail.get(at.checked_sub(self.pages.len() * PAGE)?),
        }
    }

    /// The last element.
    #[inline]
    pub fn last(&self) -> Option<&T> {
        self.tail.last().or_else(|| self.pages.last()?.last())
    }

    /// All elements in order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| page.iter()).chain(&self.tail)
    }

    /// Elements from `first` up to `end`, as far as they exist.
    pub fn range(&self, first: usize, end: usize) -> impl Iterator<Item = &T> {
        (first..end.min(self.len())).map(|at| &self[at])
    }

    /// Adds an element at the end.
    #[inline]
    pub fn push(&mut self, element: T) {
        self.tail.push(element);
        if self.tail.len() == PAGE {
            let page: Arc<[T]> = self.tail.drain(..).collect();
            self.pages.extend(Arc::try_from(page).ok());
        }
    }

    /// Bytes on the heap, whoever shares them.
    pub fn heap_bytes(&self) -> usize {
        let counts = 2 * size_of::<usize>();
        self.pages.capacity() * size_of::<usize>()
            + self.pages.len() * (PAGE * size_of::<T>() + counts)
            + self.tail.capacity() * size_of::<T>()
    }
}

impl<T: Clone> Pages<T> {
    /// An element to be written: its page is copied if another list shares it.
    #[inline]
    pub fn get_mut(&mut self, at: usize) -> Option<&mut T> {
        let full = self.pages.len() * PAGE;
        match self.pages.get_mut(at / PAGE) {
            Some(page) => Some(&mut Arc::make_mut(page)[at % PAGE]),
            None => self.tail.get_mut(at.checked_sub(full)?),
        }
    }

    /// Drops what comes after the first `len` elements.
    pub fn truncate(&mut self, len: usize) {
        if len >= self.pages.len() * PAGE {
            return self.tail.truncate(len - self.pages.len() * PAGE);
        }
        self.tail.clear();
        self.tail.extend_from_slice(&self.pages[len / PAGE][..len % PAGE]);
        self.pages.truncate(len / PAGE);
    }

    /// Drops the first `count` elements, or all. Those that stay are copied.
    pub fn drop_first(&mut self, count: usize) {
        *self = self.iter().skip(count).cloned().collect();
    }

    /// Fills the list up to `len` elements.
    pub fn fill_up(&mut self, len: usize, element: &T) {
        while self.len() < len {
            self.push(element.clone());
        }
    }
}

impl<T> Index<usize> for Pages<T> {
    type Output = T;

    #[inline]
    fn index(&self, at: usize) -> &T {
        match self.pages.get(at / PAGE) {
            Some(page) => &page[at % PAGE],
            None => &self.tail[at - self.pages.len() * PAGE],
        }
    }
}

impl<T: Clone> IndexMut<usize> for Pages<T> {
    #[inline]
    fn index_mut(&mut self, at: usize) -> &mut T {
        let full = self.pages.len() * PAGE;
        match self.pages.get_mut(at / PAGE) {
            Some(page) => &mut Arc::make_mut(page)[at % PAGE],
            None => &mut self.tail[at - full],
        }
    }
}

impl<T> FromIterator<T> for Pages<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut pages = Self::default();
        elements.into_iter().for_each(|element| pages.push(element));
        pages
    }
}

impl<T: Hash> Hash for Pages<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_usize(self.len());
        for element in self.iter() {
            element.hash(state);
        }
    }
}

impl<T: fmt::Debug> fmt::Debug for Pages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Pages<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(self.len()))?;
        for element in self.iter() {
            list.serialize_element(element)?;
        }
        list.end()
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pages<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::collections::hash_map::DefaultHasher;

    #[derive(Clone, Debug)]
    enum Op {
        Push(u16),
        Fill(usize, u16),
        Write(usize, u16),
        Truncate(usize),
        DropFirst(usize),
        /// From now on the copy made last is written instead.
        Copy,
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => any::<u16>().prop_map(Op::Push),
            2 => (0..400_usize, any::<u16>()).prop_map(|(more, x)| Op::Fill(more, x)),
            6 => (0..1_000_usize, any::<u16>()).prop_map(|(at, x)| Op::Write(at, x)),
            1 => (0..1_000_usize).prop_map(Op::Truncate),
            1 => (0..400_usize).prop_map(Op::DropFirst),
            2 => Just(Op::Copy),
        ]
    }

    proptest! {
        /// Against vectors: contents, copies that stay what they were, equality whatever the history.
        #[test]
        fn pages_are_vectors(ops in prop::collection::vec(op(), 0..60)) {
            let (mut pages, mut plain) = (Pages::default(), Vec::new());
            let mut copies = Vec::new();
            for op in ops {
                match op {
                    Op::Push(x) => {
                        pages.push(x);
                        plain.push(x);
                    }
                    Op::Fill(more, x) => {
                        pages.fill_up(pages.len() + more, &x);
                        plain.resize(plain.len() + more, x);
                    }
                    Op::Write(at, x) => {
                        prop_assert_eq!(pages.get_mut(at).copied(), plain.get(at).copied());
                        if at < plain.len() {
                            pages[at] = x;
                            plain[at] = x;
                        }
                    }
                    Op::Truncate(len) => {
                        pages.truncate(len);
                        plain.truncate(len);
                    }
                    Op::DropFirst(count) => {
                        pages.drop_first(count);
                        plain.drain(..count.min(plain.len()));
                    }
                    Op::Copy => copies.push((pages.clone(), plain.clone())),
                }
                prop_assert_eq!((pages.len(), pages.is_empty()), (plain.len(), plain.is_empty()));
                prop_assert_eq!((pages.last(), pages.get(plain.len())), (plain.last(), None));
            }
            copies.push((pages, plain));
            for (pages, plain) in copies {
                prop_assert!(pages.iter().eq(&plain));
                prop_assert!((0..plain.len()).all(|at| pages[at] == plain[at]));
                prop_assert!(pages.range(100, 300).eq(plain.iter().take(300).skip(100)));
                prop_assert_eq!(format!("{pages:?}"), format!("{plain:?}"));
                prop_assert_eq!(&plain.into_iter().collect::<Pages<u16>>(), &pages);
                let hash = |value: &dyn Fn(&mut DefaultHasher)| {
                    let mut hasher = DefaultHasher::new();
                    value(&mut hasher);
                    hasher.finish()
                };
                let listed: Vec<u32> = pages.iter().map(|&x| u32::from(x)).collect();
                let paged: Pages<u32> = listed.iter().copied().collect();
                let all: VecDeque<u32> = listed.into();
                prop_assert_eq!(hash(&|h| paged.hash(h)), hash(&|h| all.hash(h)));
                let saved = postcard::to_stdvec(&pages).unwrap();
                prop_assert_eq!(&saved, &postcard::to_stdvec(&pages.iter().collect::<Vec<_>>()).unwrap());
                prop_assert_eq!(postcard::from_bytes::<Pages<u16>>(&saved).unwrap(), pages);
            }
        }
    }

    #[test]
    fn a_copy_shares_what_is_not_written() {
        let one: Pages<u32> = (0..1_000).collect();
        let mut two = one.clone();
        two[300] = 7;
        let shared = one.pages.iter().zip(&two.pages).filter(|(a, b)| Arc::ptr_eq(a, b)).count();
        assert_eq!((one.pages.len(), shared), (7, 6));
        assert_eq!((one[300], two[300]), (300, 7));
    }
}
