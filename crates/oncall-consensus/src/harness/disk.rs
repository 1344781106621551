//! A disk that takes its time: what it has not confirmed is lost in a crash, and so are the messages
//! that waited for it.

use std::collections::VecDeque;

use super::trail::Key;
use super::world::{Letter, State};
use crate::durable::Dirty;
use crate::types::Time;

/// A write on its way to the disk.
#[derive(Debug)]
struct Write {
    due: Time,
    dirty: Dirty,
    /// What the disk will hold; `None` if nothing changes and only the messages wait their turn.
    image: Option<State>,
    letters: Vec<Letter>,
}

/// The durable state, and writes in order.
#[derive(Debug, Default)]
pub(crate) struct Disk {
    /// What a restart finds.
    pub(crate) state: State,
    writes: VecDeque<Write>,
    count: u64,
}

impl Disk {
    /// Takes a write; its messages come out of [`Disk::done`] once it and all before it are durable.
    pub(crate) fn write(
        &mut self,
        now: Time,
        (key, delay_max): (Key, Time),
        state: &State,
        dirty: Dirty,
        letters: Vec<Letter>,
    ) {
        self.count += 1;
        let delay = if dirty.is_empty() { 0 } else { key.of(self.count).between(0, delay_max) };
        let earliest = self.writes.back().map_or(now, |write| write.due);
        let image = (!dirty.is_empty()).then(|| state.clone());
        let due = (now + delay).max(earliest);
        self.writes.push_back(Write { due, dirty, image, letters });
    }

    /// The messages of the next write that is durable by now; an error if what was named as changed is
    /// not all that changed.
    pub(crate) fn done(&mut self, now: Time) -> Option<Result<Vec<Letter>, String>> {
        if self.writes.front()?.due > now {
            return None;
        }
        let write = self.writes.pop_front()?;
        if let Some(image) = &write.image {
            self.state.write(image, write.dirty);
            if self.state != *image {
                return Some(Err(format!("{:?} is not all that changed", write.dirty)));
            }
        }
        Some(Ok(write.letters))
    }

    /// The process is gone. Some of the writes may have reached the disk, in order; no message leaves.
    /// Returns how many were lost.
    pub(crate) fn crash(&mut self, key: Key) -> usize {
        self.count += 1;
        let reached = key.of(self.count).below(self.writes.len() as u64 + 1) as usize;
        let mut lost = 0;
        for (n, write) in self.writes.drain(..).enumerate() {
            match write.image {
                Some(image) if n < reached => self.state = image,
                Some(_) => lost += 1,
                None => {}
            }
        }
        lost
    }
}
