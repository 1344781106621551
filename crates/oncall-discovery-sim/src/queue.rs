//! The event queue: a timing wheel for what is near, a coarser one for what is far, a heap for the rest.
//!
//! Order is total and does not depend on where an event waited: by time, then by the order in which
//! events were pushed. Most events of a simulated control plane lie less than a second ahead; heartbeats,
//! drains and ejections lie minutes ahead at most. The two wheels take both at constant cost.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Simulated time in microseconds since the start.
pub type Micros = u64;

/// One millisecond.
pub const MS: Micros = 1_000;
/// One second.
pub const S: Micros = 1_000_000;

/// A time in seconds as microseconds, rounded down; negative becomes zero.
pub fn micros(seconds: f64) -> Micros {
    (seconds * S as f64).max(0.0) as Micros
}

/// So much later that it never comes.
const NEVER_US: f64 = 9.2e18;

/// The first microsecond after a wait in seconds that began at `now`; `None` for one that never ends, as that
/// for a request of a caller who hardly sends any. Added as it is, it would wrap around to `now`, and what
/// waits would come at once, again and again.
pub(crate) fn after(now: Micros, wait_s: f64) -> Option<Micros> {
    let wait_us = wait_s * S as f64;
    (wait_us < NEVER_US).then(|| now + wait_us as Micros + 1)
}

/// Microseconds as seconds.
pub fn seconds(time: Micros) -> f64 {
    time as f64 / S as f64
}

/// Slots of the wheel; a power of two.
const SLOTS: u64 = 1024;
/// Width of a slot: the wheel reaches about a second ahead.
const SLOT_US: Micros = MS;
/// Slots of a block: what the wheel does not reach waits by block. A power of two that divides [`SLOTS`].
const BLOCK: u64 = 256;
/// The wheel holds the present block and the ones after it that fit in whole.
const AHEAD: u64 = SLOTS / BLOCK - 1;
/// Blocks of the coarse wheel, which reaches more than four minutes ahead.
const BLOCKS: u64 = 1024;
/// No node.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Entry<E> {
    at: Micros,
    sequence: u64,
    event: E,
}

impl<E> Entry<E> {
    fn key(&self) -> (Micros, u64) {
        (self.at, self.sequence)
    }
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// Events in the order of (time, sequence).
///
/// The events of both wheels lie in one list of nodes, which are used again last freed first: a world that is
/// played for a while after many others finds all of them close together. Which node comes next stands apart, in a
/// list that stays in the nearest memory: the events of a slot are fetched side by side and not one after the other.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(bound(serialize = "E: Serialize + Clone", deserialize = "E: Deserialize<'de>"))]
#[serde(into = "Waiting<E>", from = "Waiting<E>")]
pub struct Queue<E> {
    now: Micros,
    sequence: u64,
    /// Absolute number of the slot that is being played.
    slot: u64,
    nodes: Vec<Option<Entry<E>>>,
    /// The next node of the same slot or block, or the next free one.
    next: Vec<u32>,
    free: u32,
    /// First node of each slot.
    heads: Vec<u32>,
    /// A bit for each slot that has a node.
    busy: Vec<u64>,
    in_slots: usize,
    /// First node of each block beyond the wheel.
    blocks: Vec<u32>,
    in_blocks: usize,
    /// The slot being played, latest first.
    current: Vec<Entry<E>>,
    /// Whether nobody has looked at its events yet.
    fresh: bool,
    /// Pushed into the slot being played.
    near: BinaryHeap<Reverse<Entry<E>>>,
    /// Beyond both wheels.
    far: BinaryHeap<Reverse<Entry<E>>>,
}

/// A queue as it is saved: what waits, in its order, wherever it waited.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Waiting<E> {
    now: Micros,
    sequence: u64,
    slot: u64,
    entries: Vec<Entry<E>>,
}

impl<E> From<Queue<E>> for Waiting<E> {
    fn from(queue: Queue<E>) -> Self {
        let Queue { now, sequence, slot, nodes, current, near, far, .. } = queue;
        let heaps = near.into_iter().chain(far).map(|Reverse(entry)| entry);
        let wheel = nodes.into_iter().flatten();
        let mut entries: Vec<Entry<E>> = wheel.chain(current).chain(heaps).collect();
        entries.sort_unstable_by_key(Entry::key);
        Self { now, sequence, slot, entries }
    }
}

impl<E> From<Waiting<E>> for Queue<E> {
    fn from(waiting: Waiting<E>) -> Self {
        let Waiting { now, sequence, slot, entries } = waiting;
        let mut queue = Self { now, sequence, slot, ..Self::default() };
        for entry in entries {
            queue.put(entry);
        }
        queue
    }
}

impl<E> Default for Queue<E> {
    fn default() -> Self {
        Self {
            now: 0,
            sequence: 0,
            slot: 0,
            nodes: Vec::new(),
            next: Vec::new(),
            free: NONE,
            heads: vec![NONE; SLOTS as usize],
            busy: vec![0; SLOTS as usize / 64],
            in_slots: 0,
            blocks: vec![NONE; BLOCKS as usize],
            in_blocks: 0,
            current: Vec::new(),
            fresh: false,
            near: BinaryHeap::new(),
            far: BinaryHeap::new(),
        }
    }
}

impl<E> Queue<E> {
    /// An empty queue at time zero.
    pub fn new() -> Self {
        Self::default()
    }

    /// Time of the event popped last, or the limit of the last search that found none.
    pub fn now(&self) -> Micros {
        self.now
    }

    /// Events waiting.
    pub fn len(&self) -> usize {
        self.in_slots + self.in_blocks + self.current.len() + self.near.len() + self.far.len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a slot was taken since this was asked last.
    #[inline]
    pub(crate) fn is_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// What is left of the slot being played, but for what was pushed into it since; the next one last.
    #[inline]
    pub(crate) fn playing(&self) -> impl ExactSizeIterator<Item = &E> {
        self.current.iter().map(|entry| &entry.event)
    }

    /// Pushes an event; a time in the past means now.
    #[inline]
    pub fn push(&mut self, at: Micros, event: E) {
        let at = at.max(self.now);
        self.sequence += 1;
        self.put(Entry { at, sequence: self.sequence, event });
    }

    #[inline]
    fn put(&mut self, entry: Entry<E>) {
        let slot = entry.at / SLOT_US;
        let ahead = (slot / BLOCK).saturating_sub(self.slot / BLOCK);
        if slot <= self.slot {
            self.near.push(Reverse(entry));
        } else if ahead <= AHEAD {
            let at = self.put_in_node(entry);
            self.link_slot(slot, at);
        } else if ahead <= AHEAD + BLOCKS {
            let at = self.put_in_node(entry);
            self.link_block(slot / BLOCK, at);
        } else {
            self.far.push(Reverse(entry));
        }
    }

    /// Puts an entry into a free node, or a new one.
    #[inline]
    fn put_in_node(&mut self, entry: Entry<E>) -> u32 {
        let at = self.free;
        if let Some(free) = self.nodes.get_mut(at as usize) {
            self.free = self.next[at as usize];
            *free = Some(entry);
            at
        } else {
            self.nodes.push(Some(entry));
            self.next.push(NONE);
            self.nodes.len() as u32 - 1
        }
    }

    #[inline]
    fn link_slot(&mut self, slot: u64, at: u32) {
        let place = (slot % SLOTS) as usize;
        self.next[at as usize] = std::mem::replace(&mut self.heads[place], at);
        self.busy[place / 64] |= 1 << (place % 64);
        self.in_slots += 1;
    }

    #[inline]
    fn link_block(&mut self, block: u64, at: u32) {
        let head = &mut self.blocks[(block % BLOCKS) as usize];
        self.next[at as usize] = std::mem::replace(head, at);
        self.in_blocks += 1;
    }

    /// The next event not later than `limit`; without one, the time becomes `limit`.
    #[inline]
    pub fn pop_until(&mut self, limit: Micros) -> Option<(Micros, E)> {
        loop {
            let from_near = match (self.current.last(), self.near.peek()) {
                (None, None) => {
                    if self.advance(limit / SLOT_US) {
                        continue;
                    }
                    self.now = self.now.max(limit);
                    return None;
                }
                (Some(entry), Some(Reverse(near))) => near < entry,
                (entry, _) => entry.is_none(),
            };
            let at = if from_near {
                self.near.peek().map_or(0, |near| near.0.at)
            } else {
                self.current.last().map_or(0, |entry| entry.at)
            };
            if at > limit {
                self.now = self.now.max(limit);
                return None;
            }
            let entry =
                if from_near { self.near.pop().map(|near| near.0) } else { self.current.pop() }?;
            self.now = entry.at;
            return Some((entry.at, entry.event));
        }
    }

    /// Moves to the next slot up to `last` that has events; `false` if there is none.
    fn advance(&mut self, last: u64) -> bool {
        while self.slot < last {
            // Whatever waits in the wheel comes before all that it does not reach.
            let next = if self.in_slots > 0 { self.next_busy() } else { self.next_beyond() };
            let before = self.slot / BLOCK;
            self.slot = next.clamp(self.slot + 1, last);
            if self.slot / BLOCK > before {
                self.refill(before);
            }
            if self.take_slot() {
                return true;
            }
        }
        false
    }

    /// A slot that is not after any event beyond the wheel.
    fn next_beyond(&self) -> u64 {
        let first = self.slot / BLOCK + AHEAD + 1;
        let mut blocks = first..first + BLOCKS;
        let busy = |block: &u64| self.blocks[(block % BLOCKS) as usize] != NONE;
        let block = if self.in_blocks > 0 { blocks.find(busy) } else { None };
        let far = self.far.peek().map_or(u64::MAX, |far| far.0.at / SLOT_US);
        block.map_or(far, |block| far.min(block * BLOCK))
    }

    /// The first slot after the present one that has a node.
    fn next_busy(&self) -> u64 {
        let from = self.slot + 1;
        let place = (from % SLOTS) as usize;
        let (first, bit) = (place / 64, place % 64);
        let words = self.busy.len();
        // The first word once more at the end: its bits before the place come last.
        for step in 0..=words {
            let mut word = self.busy[(first + step) % words];
            if step == 0 {
                word &= u64::MAX << bit;
            }
            if word != 0 {
                let found = 64 * ((first + step) % words) + word.trailing_zeros() as usize;
                return from + (found + SLOTS as usize - place) as u64 % SLOTS;
            }
        }
        u64::MAX
    }

    /// Takes the events of the present slot out of the wheel, if there are any.
    fn take_slot(&mut self) -> bool {
        let here = (self.slot % SLOTS) as usize;
        let mut at = std::mem::replace(&mut self.heads[here], NONE);
        if at == NONE {
            return false;
        }
        self.busy[here / 64] &= !(1 << (here % 64));
        while let Some(node) = self.nodes.get_mut(at as usize) {
            self.current.extend(node.take());
            let next = std::mem::replace(&mut self.next[at as usize], self.free);
            self.free = at;
            at = next;
        }
        self.in_slots -= self.current.len();
        self.fresh = true;
        self.current.sort_unstable_by_key(|entry| Reverse(entry.key()));
        true
    }

    /// Takes into the wheels what they now reach, after the present block was `before`.
    fn refill(&mut self, before: u64) {
        let now = self.slot / BLOCK;
        // After a longer leap the same places would come again, and they are empty by then.
        for block in (before..now).take(BLOCKS as usize) {
            let block = block + AHEAD + 1;
            let mut at = std::mem::replace(&mut self.blocks[(block % BLOCKS) as usize], NONE);
            while let Some(node) = self.nodes.get(at as usize) {
                let next = self.next[at as usize];
                let slot = node.as_ref().map_or(0, |entry| entry.at / SLOT_US);
                self.link_slot(slot, at);
                self.in_blocks -= 1;
                at = next;
            }
        }
        while let Some(Reverse(far)) = self.far.peek() {
            let slot = far.at / SLOT_US;
            let ahead = slot / BLOCK - now;
            if ahead > AHEAD + BLOCKS {
                return;
            }
            if let Some(Reverse(entry)) = self.far.pop() {
                let at = self.put_in_node(entry);
                if ahead <= AHEAD {
                    self.link_slot(slot, at);
                } else {
                    self.link_block(slot / BLOCK, at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wait_without_end_never_comes() {
        assert_eq!(after(7, 0.0), Some(8));
        assert_eq!(after(7, 2.5), Some(7 + 2_500_000 + 1));
        // A millionth of a request in an age of the universe, none at all, none out of nothing.
        for wait_s in [1e30, f64::INFINITY, f64::NAN] {
            assert_eq!(after(7, wait_s), None, "{wait_s}");
        }
        assert!(after(u64::MAX / 4, 9e12).unwrap() > u64::MAX / 4);
    }

    /// A time within reach of the wheel, of the coarse wheel, of neither.
    fn ahead() -> impl Strategy<Value = u64> {
        prop_oneof![0_u64..5_000_000, 0_u64..90_000_000, 0_u64..2_000_000_000]
    }

    proptest! {
        /// The order is that of a plain sorted list, whatever is near, far, or pushed while playing.
        #[test]
        fn order_is_that_of_a_sorted_list(
            first in prop::collection::vec(ahead(), 1..60),
            later in prop::collection::vec(ahead(), 0..60),
            steps in prop::collection::vec(prop_oneof![1_u64..3_000_000, 1_u64..900_000_000], 1..20),
        ) {
            let mut queue = Queue::new();
            let mut list: Vec<(Micros, usize)> = Vec::new();
            for (id, &at) in first.iter().enumerate() {
                queue.push(at, id);
                list.push((at, id));
            }
            // Sixty pushes, each up to 2,000 s after the one before, end within 200,000 s.
            let (mut limit, mut pushed) = (0, later.iter());
            for step in steps.into_iter().chain([200_000 * S]) {
                limit += step;
                while let Some((at, id)) = queue.pop_until(limit) {
                    list.sort_unstable();
                    prop_assert_eq!((at, id), list.remove(0));
                    if let Some(delay) = pushed.next() {
                        let id = 1000 + list.len() + pushed.len();
                        queue.push(at + delay, id);
                        // Equal times keep the order of pushing, which the list cannot know.
                        prop_assume!(list.iter().all(|known| known.0 != at + delay));
                        list.push((at + delay, id));
                    }
                }
                prop_assert_eq!(queue.now(), limit);
                prop_assert!(list.iter().all(|known| known.0 > limit));
            }
            prop_assert!(queue.is_empty());
        }
    }

    #[test]
    fn equal_times_keep_the_order_of_pushing() {
        let mut queue = Queue::new();
        for id in 0..100 {
            queue.push(7 * S + 5, id);
        }
        assert_eq!(queue.pop_until(S), None);
        queue.push(0, 1000);
        assert_eq!(queue.pop_until(S), Some((S, 1000)), "the past means now");
        for id in 0..100 {
            assert_eq!(queue.pop_until(60 * S), Some((7 * S + 5, id)));
        }
    }

    #[test]
    fn a_saved_queue_goes_on_alike() {
        let mut queue = Queue::new();
        for id in 0..500_u32 {
            queue.push(u64::from(id * 7919 % 500) * 33_333, id);
        }
        while queue.pop_until(5 * S).is_some() {}
        let bytes = postcard::to_stdvec(&queue).unwrap();
        let mut copy: Queue<u32> = postcard::from_bytes(&bytes).unwrap();
        while let Some(next) = queue.pop_until(60 * S) {
            assert_eq!(copy.pop_until(60 * S), Some(next));
        }
        assert!(copy.is_empty());
    }
}
