//! Steps taken ahead: a thread plays a batch while Python does something else.
//!
//! The engine itself travels: it goes to the thread with the actions and comes back with the results.
//! While it is away nobody can touch it, so nothing is shared and nothing needs a lock for the time of
//! a step. Results are made by the thread and become numpy arrays without a copy.

use crate::actions::Held;
use oncall_env::{Actions, AnyVecEnv, Columns, VecError};
use pyo3::prelude::*;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process;
use std::sync::mpsc::{Receiver, RecvError, SyncSender, TryRecvError, sync_channel};
use std::thread::Builder;

/// Looks before a waiting thread sleeps: some ten microseconds.
const LOOKS: u32 = 400;

/// Actions that outlive the call which brought them.
enum Kept {
    Stops8(Vec<i8>),
    Stops32(Vec<i32>),
    Stops64(Vec<i64>),
    Box32(Vec<f32>),
    Box64(Vec<f64>),
    Natural(Vec<f64>),
}

impl Kept {
    fn of(actions: Actions<'_>) -> Self {
        match actions {
            Actions::Stops8(values) => Kept::Stops8(values.to_vec()),
            Actions::Stops32(values) => Kept::Stops32(values.to_vec()),
            Actions::Stops64(values) => Kept::Stops64(values.to_vec()),
            Actions::Box32(values) => Kept::Box32(values.to_vec()),
            Actions::Box64(values) => Kept::Box64(values.to_vec()),
            Actions::Dials(values) | Actions::Policy(values) => Kept::Natural(values.to_vec()),
        }
    }

    fn actions(&self) -> Actions<'_> {
        match self {
            Kept::Stops8(values) => Actions::Stops8(values),
            Kept::Stops32(values) => Actions::Stops32(values),
            Kept::Stops64(values) => Actions::Stops64(values),
            Kept::Box32(values) => Actions::Box32(values),
            Kept::Box64(values) => Actions::Box64(values),
            Kept::Natural(values) => Actions::Policy(values),
        }
    }
}

/// Which columns are made besides those of every step.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "one for each column that may be left out")]
pub(crate) struct Wanted {
    pub(crate) final_obs: bool,
    pub(crate) terms: bool,
    pub(crate) cost: bool,
    pub(crate) signals: bool,
}

/// What a step gave.
pub(crate) struct Results {
    /// Rows that ended an episode or began one.
    pub(crate) events: usize,
    pub(crate) observations: Vec<f32>,
    pub(crate) rewards: Vec<f64>,
    pub(crate) terminated: Vec<bool>,
    pub(crate) truncated: Vec<bool>,
    pub(crate) final_observations: Option<Vec<f32>>,
    pub(crate) terms: Option<Vec<f64>>,
    pub(crate) cost: Option<Vec<f64>>,
    pub(crate) signals: Option<Vec<f64>>,
}

struct Job {
    engine: Box<AnyVecEnv>,
    actions: Kept,
    wanted: Wanted,
}

/// How a step ended: with the engine, unless a fault of ours left it half made.
pub(crate) enum Outcome {
    Back(Box<AnyVecEnv>, Box<Result<Results, VecError>>),
    Fault(Box<dyn Any + Send>),
}

/// The thread, and the ways to it.
pub(crate) struct Ahead {
    jobs: SyncSender<Job>,
    outcomes: Receiver<Outcome>,
    /// Where the thread lives: a forked child has none.
    process: u32,
}

fn play(mut job: Job) -> Outcome {
    let step = AssertUnwindSafe(|| {
        let results = step(&mut job.engine, job.actions.actions(), job.wanted);
        (job.engine, results)
    });
    match catch_unwind(step) {
        Ok((engine, results)) => Outcome::Back(engine, Box::new(results)),
        Err(panic) => Outcome::Fault(panic),
    }
}

fn step(engine: &mut AnyVecEnv, actions: Actions<'_>, wanted: Wanted) -> Result<Results, VecError> {
    let (rows, width) = (engine.num_envs(), engine.obs_len());
    let (terms, signals) = (engine.spec().terms.len(), engine.spec().signals.len());
    let mut results = Results {
        events: 0,
        observations: vec![0.0; rows * width],
        rewards: vec![0.0; rows],
        terminated: vec![false; rows],
        truncated: vec![false; rows],
        final_observations: wanted.final_obs.then(|| vec![0.0; rows * width]),
        terms: wanted.terms.then(|| vec![0.0; rows * terms]),
        cost: wanted.cost.then(|| vec![0.0; rows]),
        signals: wanted.signals.then(|| vec![0.0; rows * signals]),
    };
    let mut columns = Columns {
        observations: &mut results.observations,
        rewards: &mut results.rewards,
        terminated: &mut results.terminated,
        truncated: &mut results.truncated,
        final_observations: results.final_observations.as_deref_mut(),
        terms: results.terms.as_deref_mut(),
        cost: results.cost.as_deref_mut(),
        signals: results.signals.as_deref_mut(),
    };
    let summary = engine.step(actions, &mut columns)?;
    results.events = summary.ended + summary.reset;
    Ok(results)
}

impl Ahead {
    /// A thread that waits for work; the error says that the system gave none.
    pub(crate) fn start() -> std::io::Result<Self> {
        let (jobs, work) = sync_channel::<Job>(1);
        let (done, outcomes) = sync_channel(1);
        // Ends when either side is dropped.
        let live = move || {
            while let Ok(job) = wait(&work) {
                if done.send(play(job)).is_err() {
                    return;
                }
            }
        };
        Builder::new().name("oncall-ahead".to_owned()).spawn(live)?;
        Ok(Self { jobs, outcomes, process: process::id() })
    }

    /// Whether the thread lives in this process.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }

    /// Sends the engine off; gives it back if the thread is gone.
    pub(crate) fn send(
        &self,
        py: Python<'_>,
        engine: Box<AnyVecEnv>,
        held: &Held<'_>,
        wanted: Wanted,
    ) -> PyResult<Result<(), Box<AnyVecEnv>>> {
        let actions = match held.actions(py) {
            Ok(actions) => Kept::of(actions),
            Err(error) => return Err(error),
        };
        let sent = self.jobs.send(Job { engine, actions, wanted });
        Ok(sent.map_err(|refused| refused.0.engine))
    }

    /// Waits for the engine to come back.
    pub(crate) fn wait(&self) -> Result<Outcome, RecvError> {
        wait(&self.outcomes)
    }
}

/// Looks for a while before it sleeps.
fn wait<T>(from: &Receiver<T>) -> Result<T, RecvError> {
    for _ in 0..LOOKS {
        match from.try_recv() {
            Ok(found) => return Ok(found),
            Err(TryRecvError::Disconnected) => return Err(RecvError),
            Err(TryRecvError::Empty) => std::hint::spin_loop(),
        }
    }
    from.recv()
}
