//! `CartPole` through the engine in Rust: what a step costs without Python.

use oncall_cartpole::CartPole;
use oncall_core::streams::scramble;
use oncall_vec::{Actions, Autoreset, Options, Seeds, VecEnv, VecError};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;

/// Steps a second by batch, the shortest of many runs, as a table. In Rust: what Python adds to a call
/// does not depend on the world.
///
/// `cargo run --release -p oncall-bench -- cartpole`; a batch size behind it is measured alone, for a
/// profiler.
pub(crate) fn measure(only: Option<usize>) -> Result<String, VecError> {
    const RUNS: usize = 60;
    let mut text = String::from("batch,ns_per_step,millions_per_s\n");
    let batches = only.map_or(vec![1, 64, 1024, 8192], |batch| vec![batch]);
    for batch in batches {
        let options = Options { autoreset: Autoreset::SameStep, ..Options::default() };
        let mut env = VecEnv::new(Arc::new(CartPole::new()), batch, options)?;
        let mut out = env.columns();
        env.reset(Seeds::Root(1), None, &mut out.borrow_reset())?;
        let pushes =
            |set: u64| (0..batch as u64).map(move |row| 1 + (scramble(set << 32 | row) & 1));
        let actions: Vec<Vec<i8>> = (0..16)
            .map(|set| pushes(set).map(|stop| i8::try_from(stop).unwrap_or(1)).collect())
            .collect();
        let mut columns = out.borrow();
        (columns.terms, columns.cost, columns.signals) = (None, None, None);
        let steps = (65_536 / batch).clamp(64, 4096) * if only.is_some() { 16 } else { 1 };
        let mut best = f64::MAX;
        for _ in 0..RUNS {
            let start = Instant::now();
            for step in 0..steps {
                env.step(Actions::Stops8(&actions[step % 16]), &mut columns)?;
            }
            best = best.min(start.elapsed().as_secs_f64() / (steps * batch) as f64);
        }
        let _ = writeln!(text, "{batch},{:.1},{:.2}", best * 1e9, 1e-6 / best);
    }
    Ok(text)
}
