//! With one thread a step allocates nothing, whatever happens in it.
#![expect(unsafe_code, reason = "counting allocations takes an allocator")]

mod common;

use common::Toy;
use oncall_vec::{Actions, Autoreset, Options, Seeds, VecEnv};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands every request on to the system's allocator, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`, and `System` made the block.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count() -> usize {
    COUNT.with(Cell::get)
}

#[test]
fn a_step_allocates_nothing() {
    let before = count();
    drop(vec![1_u8; 100]);
    assert_eq!(count(), before + 1, "the count works");

    for autoreset in [Autoreset::NextStep, Autoreset::SameStep] {
        let options = Options { autoreset, ..Options::default() };
        let mut env = VecEnv::new(Arc::new(Toy::<4>::new()), 1501, options).unwrap();
        let mut out = env.columns();
        env.reset(Seeds::Root(1), None, &mut out.borrow_reset()).unwrap();
        let stops = vec![1_i8; 1501 * 5];
        let boxes = vec![0.1_f32; 1501 * 5];
        let policy = vec![f64::NAN; 1501 * 5];
        let (mut ended, before) = (0, count());
        for _ in 0..30 {
            for actions in
                [Actions::Stops8(&stops), Actions::Box32(&boxes), Actions::Policy(&policy)]
            {
                ended += env.step(actions, &mut out.borrow()).unwrap().ended;
            }
        }
        env.reset(Seeds::Keep, None, &mut out.borrow_reset()).unwrap();
        assert_eq!(count(), before);
        assert!(ended > 1501, "episodes ended and began");
    }
}
