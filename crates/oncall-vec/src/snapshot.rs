//! Rows copied in memory: from row to row, or into a snapshot and back.

use crate::autoreset::Status;
use crate::engine::Engine;
use crate::error::{VecError, check_len, name_rows};
use crate::limit;
use crate::options::interval_name;
use crate::row::Row;
use crate::vec_env::VecEnv;
use oncall_core::{Split, World};

/// What a state must have in common with the engine that restores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stamp {
    pub(crate) spec_hash: u64,
    pub(crate) params_hash: u64,
    pub(crate) split: Split,
    pub(crate) decision_interval_min: u32,
    /// Follows from the spec; only names the interval.
    pub(crate) tick_s: u32,
}

impl Stamp {
    pub(crate) fn of<W: World>(engine: &Engine<W>) -> Self {
        Self {
            spec_hash: engine.spec_hash,
            params_hash: engine.world.params_hash(),
            split: engine.options.split,
            decision_interval_min: engine.options.decision_interval_min,
            tick_s: engine.world.spec().tick_s,
        }
    }

    /// Checks that a state with the stamp `self` fits an engine with the stamp `engine`.
    pub(crate) fn check(self, engine: Stamp) -> Result<(), VecError> {
        let (mine, theirs) = (self.spec_hash, engine.spec_hash);
        if mine != theirs {
            return Err(VecError::state(format!(
                "spec hash = {mine:016x}: expected {theirs:016x}; the state is of another world or \
                 another version of it"
            )));
        }
        let (mine, theirs) = (self.params_hash, engine.params_hash);
        if mine != theirs {
            return Err(VecError::state(format!(
                "parameter hash = {mine:016x}: expected {theirs:016x}; the state is of another \
                 scenario"
            )));
        }
        if self.split != engine.split {
            let (mine, theirs) = (self.split.name(), engine.split.name());
            return Err(VecError::state(format!("split = {mine}: expected {theirs}")));
        }
        let (mine, theirs) = (self.decision_interval_min, engine.decision_interval_min);
        if mine != theirs {
            let (name, unit) = interval_name(engine.tick_s);
            let shown = |ticks: u32| u64::from(ticks) * u64::from(unit);
            let message = format!("{name} = {}: expected {}", shown(mine), shown(theirs));
            return Err(VecError::state(message));
        }
        Ok(())
    }
}

/// Copies of some rows, whatever their status; independent of the engine they came from.
#[derive(Clone)]
pub struct Snapshot<W: World> {
    pub(crate) stamp: Stamp,
    /// Row `k` is in lane `k % LANES` of block `k / LANES`.
    pub(crate) blocks: Vec<W::Block>,
    pub(crate) rows: Vec<Row>,
    pub(crate) terms: Vec<f64>,
    pub(crate) last_terms: Vec<f64>,
}

impl<W: World> std::fmt::Debug for Snapshot<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl<W: World> Snapshot<W> {
    /// Room for `rows` rows.
    pub(crate) fn with_rows(engine: &Engine<W>, rows: usize) -> Self {
        let blocks = (0..rows.div_ceil(W::LANES)).map(|_| engine.world.new_block()).collect();
        let terms = vec![0.0; rows * engine.widths.terms];
        Self {
            stamp: Stamp::of(engine),
            blocks,
            rows: vec![Row::default(); rows],
            last_terms: terms.clone(),
            terms,
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether it holds no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl<W: World> VecEnv<W> {
    /// Copies rows; a row may be named more than once.
    ///
    /// Refuses rows beyond the batch, and rows that were never reset.
    pub fn snapshot(&self, rows: &[usize]) -> Result<Snapshot<W>, VecError> {
        self.check_rows("rows", rows)?;
        self.check_seeded(rows)?;
        let mut snapshot = Snapshot::with_rows(&self.engine, rows.len());
        let terms = self.engine.widths.terms;
        for (to, &from) in rows.iter().enumerate() {
            let target = (&mut snapshot.blocks[to / W::LANES], to % W::LANES);
            self.engine.world.copy_lane(self.lane(from), target);
            snapshot.rows[to] = self.table.row(from);
            let sums = &mut snapshot.terms[to * terms..][..terms];
            sums.iter_mut().zip(self.table.terms(from)).for_each(|(to, sum)| *to = sum);
            snapshot.last_terms[to * terms..][..terms].copy_from_slice(self.table.last_terms(from));
        }
        Ok(snapshot)
    }

    /// Puts the rows of a snapshot into the rows named, in that order; they are no longer shown as
    /// ended or begun in the last call.
    ///
    /// The snapshot may come from another engine of the same scenario, split and decision interval;
    /// its autoreset mode and its `max_minutes` do not matter, unless this engine's episodes would
    /// be over by then.
    pub fn restore(&mut self, snapshot: &Snapshot<W>, rows: &[usize]) -> Result<(), VecError> {
        self.check_rows("rows", rows)?;
        self.check_distinct("rows", rows)?;
        check_len("rows", rows.len(), snapshot.len(), 1)?;
        snapshot.stamp.check(Stamp::of(&self.engine))?;
        for (from, row) in snapshot.rows.iter().enumerate() {
            self.check_length(row, (&snapshot.blocks[from / W::LANES], from % W::LANES))?;
        }
        self.put(snapshot, rows);
        Ok(())
    }

    /// Copies rows onto others, `from[k]` onto `to[k]`, all as they were before the call.
    ///
    /// Refuses lists of different length, rows beyond the batch, a target named twice, and sources
    /// that were never reset.
    pub fn copy_rows(&mut self, from: &[usize], to: &[usize]) -> Result<(), VecError> {
        self.check_rows("to", to)?;
        self.check_distinct("to", to)?;
        self.check_rows("from", from)?;
        check_len("from", from.len(), to.len(), 1)?;
        let snapshot = self.snapshot(from)?;
        self.put(&snapshot, to);
        Ok(())
    }

    /// Refuses a running episode that would be over under this engine's limit.
    pub(crate) fn check_length(
        &self,
        row: &Row,
        (block, lane): (&W::Block, usize),
    ) -> Result<(), VecError> {
        let length = self.engine.limit.length_min(self.engine.world.length_min(block, lane));
        let minutes = row.current.minutes;
        if row.status == Status::Running && minutes > 0 && limit::is_over(minutes, length) {
            let name = if self.spec().tick_s == 60 { "minute" } else { "tick" };
            return Err(VecError::state(format!(
                "{name} = {minutes} of a running episode: expected less than the {length} {name}s \
                 that an episode lasts here"
            )));
        }
        Ok(())
    }

    /// Restores without checks.
    pub(crate) fn put(&mut self, snapshot: &Snapshot<W>, rows: &[usize]) {
        let terms = self.engine.widths.terms;
        for (from, &to) in rows.iter().enumerate() {
            let source = (&snapshot.blocks[from / W::LANES], from % W::LANES);
            let world = &self.engine.world;
            let length = self.engine.limit.length_min(world.length_min(source.0, source.1));
            world.copy_lane(source, (&mut self.blocks[to / W::LANES], to % W::LANES));
            let row = Row { length_min: length, ..snapshot.rows[from] };
            let sums = &snapshot.terms[from * terms..][..terms];
            self.table.put(to, &row, sums, &snapshot.last_terms[from * terms..][..terms]);
        }
    }

    pub(crate) fn check_rows(&self, name: &str, rows: &[usize]) -> Result<(), VecError> {
        match rows.iter().find(|&&row| row >= self.num_envs()) {
            Some(row) => Err(VecError::value(name, row, format!("0..={}", self.num_envs() - 1))),
            None => Ok(()),
        }
    }

    /// Refuses rows that are named twice; all of them are inside the batch.
    pub(crate) fn check_distinct(&self, name: &str, rows: &[usize]) -> Result<(), VecError> {
        let mut seen = vec![false; self.num_envs()];
        match rows.iter().find(|&&row| std::mem::replace(&mut seen[row], true)) {
            Some(row) => {
                Err(VecError::value(name, format!("{row} twice"), "each row at most once"))
            }
            None => Ok(()),
        }
    }

    pub(crate) fn check_seeded(&self, rows: &[usize]) -> Result<(), VecError> {
        let unseeded = |row: &usize| self.table.status[*row] == Status::Unseeded;
        if rows.iter().any(unseeded) {
            let rows = name_rows(rows.iter().copied().filter(unseeded));
            return Err(VecError::order(format!("{rows} never reset: expected a reset first")));
        }
        Ok(())
    }
}
