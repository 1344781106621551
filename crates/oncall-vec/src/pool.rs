//! The engine's own worker threads.
//!
//! [`Pool::for_each`] calls a function once for each item of a slice, on the caller and on the
//! workers. Four demands shaped it:
//!
//! * **A worker that the system has put to sleep costs nothing.** Items are claimed one by one from
//!   a shared word; the caller claims too, and in the end it waits only for items that a worker has
//!   begun. It never waits for a worker as such.
//! * **Items stay where they are warm.** The caller claims from the front and every other worker from
//!   the back, so that with two threads an item is nearly always met by the thread, and in the cache,
//!   that had it in the batch before.
//! * **A batch takes microseconds.** Workers look for the next batch for a short while before they
//!   sleep, and so does the caller before it sleeps until the last item is done.
//! * **Forks.** Only the forking thread lives on in a child process. A pool that finds itself under
//!   another process number forgets its workers and makes new ones.
//!
//! A panic in an item does not hang anything: the other items are finished first, and the caller
//! panics with the same payload.
#![expect(unsafe_code, reason = "hands out items of a borrowed slice to threads that outlive it")]

use std::any::Any;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::process;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};

/// Looks before a thread sleeps: some ten microseconds.
const LOOKS: u32 = 400;

/// The word has, from its low bits on, the end of the items that nobody has claimed, their beginning,
/// and the number of the batch.
const END_BITS: u32 = 12;
const ITEMS_MAX: u64 = (1 << END_BITS) - 1;

/// The items that nobody has claimed.
fn unclaimed(word: u64) -> Range<usize> {
    ((word >> END_BITS) & ITEMS_MAX) as usize..(word & ITEMS_MAX) as usize
}

/// From which end a thread claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Front,
    Back,
}

/// A batch, on the stack of the caller. Whoever has claimed an item may read it until that item is
/// counted as done.
struct Batch {
    /// Runs the item of an index.
    run: unsafe fn(&Batch, usize),
    items: *mut (),
    function: *const (),
    len: usize,
}

/// Keeps hot words on cache lines of their own.
#[repr(align(128))]
struct Apart<T>(T);

struct Shared {
    /// Number of the batch and items left to claim. A claim is a compare-and-exchange of the whole
    /// word, so it fails if anything has happened since the word was read.
    word: Apart<AtomicU64>,
    /// Items of the batch that are done.
    done: Apart<AtomicUsize>,
    batch: AtomicPtr<Batch>,
    closing: AtomicBool,
    /// Workers that sleep or are about to.
    sleeping: AtomicUsize,
    caller_sleeps: AtomicBool,
    gate: Mutex<()>,
    work: Condvar,
    finished: Condvar,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new() -> Self {
        Self {
            word: Apart(AtomicU64::new(0)),
            done: Apart(AtomicUsize::new(0)),
            batch: AtomicPtr::new(std::ptr::null_mut()),
            closing: AtomicBool::new(false),
            sleeping: AtomicUsize::new(0),
            caller_sleeps: AtomicBool::new(false),
            gate: Mutex::new(()),
            work: Condvar::new(),
            finished: Condvar::new(),
            panic: Mutex::new(None),
        }
    }

    /// Claims and runs items until none is left; whether there was one.
    fn run_items(&self, side: Side) -> bool {
        let mut found = false;
        let mut word = self.word.0.load(Ordering::Acquire);
        loop {
            let items = unclaimed(word);
            if items.is_empty() {
                return found;
            }
            let (index, claimed) = match side {
                Side::Front => (items.start, word + (1 << END_BITS)),
                Side::Back => (items.end - 1, word - 1),
            };
            // Belongs to the word if the exchange below succeeds: the pointer was stored before
            // the word was, and is not stored again before all items of the batch are claimed.
            let batch = self.batch.load(Ordering::Relaxed);
            let claim = self.word.0.compare_exchange_weak(
                word,
                claimed,
                Ordering::AcqRel,
                Ordering::Acquire,
            );
            match claim {
                Ok(_) => {
                    // SAFETY: this thread has just claimed the item.
                    unsafe { self.run_item(batch, index) };
                    found = true;
                    word = self.word.0.load(Ordering::Acquire);
                }
                Err(newer) => word = newer,
            }
        }
    }

    /// Runs an item and counts it as done.
    ///
    /// # Safety
    ///
    /// This thread has claimed the item and not yet counted it as done, so that `for_each` has not
    /// returned and the batch is alive. It comes as a pointer, since a reference would have to be
    /// valid to the end of this function, and the batch may be gone before.
    unsafe fn run_item(&self, batch: *const Batch, index: usize) {
        let (len, outcome) = {
            // SAFETY: alive, see above; not used after this block.
            let batch = unsafe { &*batch };
            // SAFETY: `index` is below the length, and claimed by this thread alone.
            let run = || unsafe { (batch.run)(batch, index) };
            (batch.len, catch_unwind(AssertUnwindSafe(run)))
        };
        if let Err(payload) = outcome {
            lock(&self.panic).get_or_insert(payload);
        }
        // From here on the batch may be gone.
        let done = self.done.0.fetch_add(1, Ordering::SeqCst) + 1;
        if done == len && self.caller_sleeps.load(Ordering::SeqCst) {
            let _gate = lock(&self.gate);
            self.finished.notify_one();
        }
    }

    /// The life of a worker.
    fn work(&self, side: Side) {
        let mut looks = 0;
        while !self.closing.load(Ordering::SeqCst) {
            if self.run_items(side) {
                looks = 0;
            } else if looks < LOOKS {
                looks += 1;
                std::hint::spin_loop();
            } else {
                looks = 0;
                self.sleep();
            }
        }
    }

    /// Sleeps until there is something to claim.
    fn sleep(&self) {
        let mut gate = lock(&self.gate);
        // Said before the last look: either this thread sees the batch, or the caller, who stores
        // the batch first, sees a sleeper and wakes it.
        self.sleeping.fetch_add(1, Ordering::SeqCst);
        while unclaimed(self.word.0.load(Ordering::SeqCst)).is_empty()
            && !self.closing.load(Ordering::SeqCst)
        {
            gate = self.work.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleeping.fetch_sub(1, Ordering::SeqCst);
    }

    fn wake_workers(&self) {
        if self.sleeping.load(Ordering::SeqCst) > 0 {
            let _gate = lock(&self.gate);
            self.work.notify_all();
        }
    }

    /// Waits for the items that workers have begun.
    fn wait(&self, len: usize) {
        for _ in 0..LOOKS {
            if self.done.0.load(Ordering::Acquire) == len {
                return;
            }
            std::hint::spin_loop();
        }
        let mut gate = lock(&self.gate);
        self.caller_sleeps.store(true, Ordering::SeqCst);
        while self.done.0.load(Ordering::SeqCst) != len {
            gate = self.finished.wait(gate).unwrap_or_else(PoisonError::into_inner);
        }
        self.caller_sleeps.store(false, Ordering::SeqCst);
    }
}

/// The workers of one process.
struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    process: u32,
    batches: u64,
}

impl Team {
    /// As many workers as the system gives, at most `workers`.
    fn new(workers: usize) -> Self {
        let shared = Arc::new(Shared::new());
        let spawn = |index: usize| {
            let shared = Arc::clone(&shared);
            let side = if index % 2 == 1 { Side::Back } else { Side::Front };
            Builder::new().name(format!("oncall-vec-{index}")).spawn(move || shared.work(side)).ok()
        };
        let workers = (1..=workers).map_while(spawn).collect();
        Self { shared, workers, process: process::id(), batches: 0 }
    }

    fn run(&mut self, batch: &Batch) {
        let shared = &*self.shared;
        self.batches = self.batches.wrapping_add(1);
        shared.done.0.store(0, Ordering::Relaxed);
        shared.batch.store(std::ptr::from_ref(batch).cast_mut(), Ordering::Relaxed);
        let word = (self.batches << (2 * END_BITS)) | batch.len as u64;
        shared.word.0.store(word, Ordering::SeqCst);
        shared.wake_workers();
        shared.run_items(Side::Front);
        shared.wait(batch.len);
        let payload = lock(&shared.panic).take();
        if let Some(payload) = payload {
            resume_unwind(payload);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if self.process != process::id() {
            // A child process has no such threads, and the locks may be held by one of them.
            std::mem::forget(std::mem::take(&mut self.workers));
            return;
        }
        self.shared.closing.store(true, Ordering::SeqCst);
        self.shared.wake_workers();
        for worker in self.workers.drain(..) {
            // A worker catches every panic of an item, so there is nothing to report.
            let _ = worker.join();
        }
    }
}

/// Threads that are made when they are first needed.
pub(crate) struct Pool {
    threads: usize,
    team: Option<Team>,
}

impl Pool {
    /// A pool of `threads` threads, the caller's included.
    pub(crate) fn new(threads: usize) -> Self {
        Self { threads, team: None }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Whether workers have been made.
    #[cfg(test)]
    pub(crate) fn has_workers(&self) -> bool {
        self.team.is_some()
    }

    /// Calls `function` once for each item, in any order and on any thread of the pool.
    pub(crate) fn for_each<T, F>(&mut self, items: &mut [T], function: F)
    where
        T: Send,
        F: Fn(&mut T) + Sync,
    {
        if self.threads == 1 {
            items.iter_mut().for_each(function);
            return;
        }
        if self.team.as_ref().is_none_or(|team| team.process != process::id()) {
            self.team = Some(Team::new(self.threads - 1));
        }
        let Some(team) = &mut self.team else { return };
        for items in items.chunks_mut(ITEMS_MAX as usize) {
            let batch = Batch {
                run: run_one::<T, F>,
                items: items.as_mut_ptr().cast(),
                function: (&raw const function).cast(),
                len: items.len(),
            };
            team.run(&batch);
        }
    }
}

/// Calls the function of a batch with one of its items.
///
/// # Safety
///
/// The batch was made by `for_each::<T, F>`, which has not returned; `index` is below its length and
/// was claimed by this thread alone.
unsafe fn run_one<T: Send, F: Fn(&mut T) + Sync>(batch: &Batch, index: usize) {
    // SAFETY: the slice outlives the call of `for_each`, the index is inside it, and no other
    // thread touches this item; `T: Send` lets it be used here.
    let item = unsafe { &mut *batch.items.cast::<T>().add(index) };
    // SAFETY: the function outlives the call of `for_each`; `F: Sync` lets it be shared.
    let function = unsafe { &*batch.function.cast::<F>() };
    function(item);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_once() {
        for threads in [1, 2, 3, 8] {
            let mut pool = Pool::new(threads);
            for len in [0, 1, 2, 7, 64, 1000] {
                let mut items: Vec<u64> = (0..len).collect();
                pool.for_each(&mut items, |item| *item = *item * 2 + 1);
                assert!(items.iter().zip(0..).all(|(&item, i)| item == i * 2 + 1));
            }
        }
    }

    #[test]
    fn more_items_than_a_word_can_count() {
        let mut items = vec![0_u8; 3 * ITEMS_MAX as usize + 5];
        Pool::new(2).for_each(&mut items, |item| *item += 1);
        assert!(items.iter().all(|&item| item == 1));
    }

    #[test]
    fn many_short_batches() {
        let mut pool = Pool::new(4);
        let mut items = [0_u32; 6];
        for round in 1..=20_000 {
            pool.for_each(&mut items, |item| *item += 1);
            assert!(items.iter().all(|&item| item == round));
        }
    }

    #[test]
    fn workers_sleep_and_wake() {
        let mut pool = Pool::new(3);
        let mut items = [0_u32; 8];
        for round in 1..=20 {
            std::thread::sleep(std::time::Duration::from_millis(2));
            pool.for_each(&mut items, |item| {
                // Long enough for the caller to sleep on the last ones.
                std::thread::sleep(std::time::Duration::from_micros(300));
                *item += 1;
            });
            assert!(items.iter().all(|&item| item == round));
        }
    }

    #[test]
    fn workers_help() {
        // Two items that wait for each other: one thread alone would never finish.
        let here = AtomicUsize::new(0);
        Pool::new(2).for_each(&mut [(), ()], |()| {
            here.fetch_add(1, Ordering::SeqCst);
            while here.load(Ordering::SeqCst) < 2 {
                std::thread::yield_now();
            }
        });
        assert_eq!(here.into_inner(), 2);
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_items() {
        let mut pool = Pool::new(3);
        let mut items: Vec<u32> = (0..50).collect();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            pool.for_each(&mut items, |item| {
                assert!(*item != 13, "thirteen");
                *item += 100;
            });
        }));
        let payload = outcome.unwrap_err();
        assert_eq!(payload.downcast_ref::<&str>(), Some(&"thirteen"));
        assert_eq!(items.iter().filter(|&&item| item >= 100).count(), 49);
        // And the pool goes on working.
        pool.for_each(&mut items, |item| *item = 1);
        assert_eq!(items.iter().sum::<u32>(), 50);
    }

    #[test]
    fn a_pool_of_another_process_is_made_anew() {
        let mut pool = Pool::new(2);
        let mut items = [0_u32; 4];
        pool.for_each(&mut items, |item| *item += 1);
        let team = pool.team.as_mut().unwrap();
        let old = Arc::clone(&team.shared);
        // What a child sees after a fork: workers of a process that it is not.
        team.process += 1;
        pool.for_each(&mut items, |item| *item += 1);
        assert_eq!(items, [2; 4]);
        assert!(!Arc::ptr_eq(&old, &pool.team.as_ref().unwrap().shared));
        assert!(!old.closing.load(Ordering::SeqCst), "the old team was not touched");
        old.closing.store(true, Ordering::SeqCst);
        old.wake_workers();
    }
}
