//! `VecEnv`: build, reset, step, and look.

use crate::actions::Actions;
use crate::autoreset::{Status, Turn, all_run};
use crate::columns::{Columns, OwnedColumns, ResetColumns};
use crate::engine::{Engine, Part, Scratch};
use crate::error::{VecError, check_len, name_rows};
use crate::observe::Sight;
use crate::options::{Options, check_threads};
use crate::pace::Pace;
use crate::pool::Pool;
use crate::row::{EpisodeStats, Row, RowInfo};
use crate::seeds::Seeds;
use crate::table::Table;
use oncall_core::{Digest, Spec, World};
use std::sync::Arc;

/// Below this many rows x signals x minutes a batch is stepped inline: the hand-over to another
/// thread takes as long as such a batch.
const SHARED_WORK_MIN: usize = 8192;

/// Parts that a thread finds in a batch, so that one who comes late takes less.
const PARTS_A_THREAD: usize = 4;

/// Many environments of one world.
pub struct VecEnv<W: World> {
    pub(crate) engine: Engine<W>,
    /// Row `i` is in lane `i % LANES` of block `i / LANES`; the last block may be partly used.
    pub(crate) blocks: Vec<W::Block>,
    pub(crate) table: Table,
    /// One for each part of a batch.
    scratch: Vec<Scratch>,
    pool: Pool,
    pace: Pace,
}

impl<W: World> std::fmt::Debug for VecEnv<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VecEnv")
            .field("world", &self.spec().world)
            .field("num_envs", &self.num_envs())
            .field("options", self.options())
            .finish_non_exhaustive()
    }
}

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StepSummary {
    /// Rows whose episode ended in this call.
    pub ended: usize,
    /// Rows that began a new episode in this call.
    pub reset: usize,
}

impl<W: World> VecEnv<W> {
    /// An engine of `num_envs` rows; they must be reset before they are stepped.
    ///
    /// Refuses options out of range, with the option's name.
    pub fn new(world: Arc<W>, num_envs: usize, options: Options) -> Result<Self, VecError> {
        options.check(num_envs, world.spec().tick_s)?;
        let threads = options.threads;
        let engine = Engine::new(world, options)?;
        let blocks = (0..num_envs.div_ceil(W::LANES)).map(|_| engine.world.new_block()).collect();
        let table = Table::new(num_envs, engine.shape());
        let (pool, pace) = (Pool::new(1), Pace::default());
        let mut env = Self { engine, blocks, table, scratch: Vec::new(), pool, pace };
        env.set_threads(threads)?;
        Ok(env)
    }

    /// The scenario that is played.
    pub fn world(&self) -> &W {
        &self.engine.world
    }

    /// What goes in and comes out.
    pub fn spec(&self) -> &Spec {
        self.engine.world.spec()
    }

    /// Number of rows.
    pub fn num_envs(&self) -> usize {
        self.table.len()
    }

    /// Numbers in an observation.
    pub fn obs_len(&self) -> usize {
        self.engine.widths.observation
    }

    /// The options, with the number of threads as it is now.
    pub fn options(&self) -> &Options {
        &self.engine.options
    }

    /// Changes the number of threads, 1..=256; results stay the same, bit for bit.
    pub fn set_threads(&mut self, threads: usize) -> Result<(), VecError> {
        check_threads(threads)?;
        self.engine.options.threads = threads;
        if self.pool.threads() != threads {
            self.pool = Pool::new(threads);
            self.pace = Pace::default();
        }
        let parts = if threads == 1 { 1 } else { threads * PARTS_A_THREAD };
        let scratch = || Scratch::new(W::LANES, self.engine.widths);
        self.scratch.resize_with(parts.min(self.blocks.len()), scratch);
        Ok(())
    }

    /// Columns of the right size for this engine.
    pub fn columns(&self) -> OwnedColumns {
        let widths = self.engine.widths;
        OwnedColumns::new(self.num_envs(), widths.observation, widths.terms, widths.signals)
    }

    /// Begins new episodes in the rows where `mask` is true, or in all.
    ///
    /// A new seed begins at episode 0, a kept one goes on to the next. The statistics of ended
    /// episodes stay; no row is shown as ended.
    ///
    /// Refuses wrong lengths, seeds that do not fit the scenario's generator, kept seeds of rows
    /// that never had one, and a first reset that leaves out rows, which have nothing to show.
    pub fn reset(
        &mut self,
        seeds: Seeds<'_>,
        mask: Option<&[bool]>,
        out: &mut ResetColumns<'_>,
    ) -> Result<(), VecError> {
        self.check_reset(seeds, mask, out)?;
        let generator = self.engine.world.generator();
        let mut rows = self.table.rows();
        rows.ended.fill(false);
        rows.began.fill(false);
        for i in 0..rows.len() {
            if mask.is_none_or(|mask| mask[i]) {
                let next = match seeds.of(i, generator) {
                    Some(seed) => (seed, 0),
                    None => rows.next_episode(i),
                };
                let lane = (&mut self.blocks[i / W::LANES], i % W::LANES);
                self.engine.begin(lane, &mut rows, i, next);
                rows.began[i] = true;
            }
        }
        self.show(out);
        Ok(())
    }

    fn check_reset(
        &self,
        seeds: Seeds<'_>,
        mask: Option<&[bool]>,
        out: &ResetColumns<'_>,
    ) -> Result<(), VecError> {
        let rows = self.num_envs();
        if let Some(mask) = mask {
            check_len("mask", mask.len(), rows, 1)?;
        }
        out.check(rows, self.engine.widths)?;
        let generator = self.engine.world.generator();
        seeds.check(rows, generator)?;
        let is_unseeded = |row: usize| self.table.status[row] == Status::Unseeded;
        let is_masked = |row: usize| mask.is_none_or(|mask| mask[row]);
        let hidden = |&row: &usize| is_unseeded(row) && !is_masked(row);
        if (0..rows).any(|row| hidden(&row)) {
            let rows = name_rows((0..rows).filter(hidden));
            let message =
                format!("mask leaves out {rows}, never reset: expected a full reset first");
            return Err(VecError::order(message));
        }
        let keeps_nothing = |&row: &usize| is_unseeded(row) && seeds.of(row, generator).is_none();
        if (0..rows).any(|row| keeps_nothing(&row)) {
            let rows = name_rows((0..rows).filter(keeps_nothing));
            return Err(VecError::order(format!(
                "seeds: {rows} has no seed to keep: expected a seed for the first reset"
            )));
        }
        Ok(())
    }

    /// Writes what the rows show, after their reset or as they stand.
    fn show(&mut self, out: &mut ResetColumns<'_>) {
        let Engine { world, observer, widths, .. } = &self.engine;
        let sight = &mut self.scratch[0].sight;
        let rows = self.table.len();
        for (index, block) in self.blocks.iter().enumerate() {
            let range = index * W::LANES..((index + 1) * W::LANES).min(rows);
            sight.look(observer, &**world, block, range.len());
            self.table.levels[range.clone()].copy_from_slice(sight.levels(range.len()));
            let span = range.start * widths.observation..range.end * widths.observation;
            sight.write(observer, &**world, block, range.len(), &mut out.observations[span]);
            if let Some(signals) = &mut out.signals {
                let span = range.start * widths.signals..range.end * widths.signals;
                sight.write_signals(&**world, block, range.len(), &mut signals[span]);
            }
        }
    }

    /// Takes one decision in every row: plays `decision_interval_min` minutes, or as many as the
    /// episode still has, and writes the columns.
    ///
    /// A row that is pending begins its next episode instead; its action is checked and ignored,
    /// its reward 0. Both flags of a row may be true.
    ///
    /// Refuses wrong lengths, actions out of range (with row and dial), rows that were never reset,
    /// and, with autoreset disabled, rows whose episode is over.
    pub fn step(
        &mut self,
        actions: Actions<'_>,
        out: &mut Columns<'_>,
    ) -> Result<StepSummary, VecError> {
        out.check(self.num_envs(), self.engine.widths)?;
        self.check_step(actions)?;
        self.step_parts(actions, out.reborrow());
        let count = |flags: &[bool]| flags.iter().filter(|&&flag| flag).count();
        Ok(StepSummary { ended: count(&self.table.ended), reset: count(&self.table.began) })
    }

    /// Says whether [`VecEnv::step`] would take these actions now, with its errors; nothing changes.
    pub fn check_step(&self, actions: Actions<'_>) -> Result<(), VecError> {
        self.check_turns()?;
        self.engine.decoder.check(actions, self.num_envs())
    }

    /// Refuses rows that cannot be stepped.
    fn check_turns(&self) -> Result<(), VecError> {
        let mode = self.engine.options.autoreset;
        let status = &self.table.status;
        if all_run(status) || !status.iter().any(|&status| mode.before_step(status) == Turn::Refuse)
        {
            return Ok(());
        }
        let of = |status| {
            let rows = self.table.status.iter().enumerate();
            rows.filter(move |(_, found)| **found == status).map(|(i, _)| i)
        };
        if of(Status::Unseeded).next().is_some() {
            let rows = name_rows(of(Status::Unseeded));
            return Err(VecError::order(format!(
                "step: {rows} never reset: expected a reset first"
            )));
        }
        Err(VecError::order(format!(
            "step: the episode of {} is over and autoreset is disabled: expected a reset of these \
             rows first",
            name_rows(of(Status::Over))
        )))
    }

    /// Steps the batch, shared among the threads where it is big enough.
    fn step_parts(&mut self, actions: Actions<'_>, columns: Columns<'_>) {
        let interval = self.engine.options.decision_interval_min as usize;
        let work = self.table.len() * self.engine.widths.signals * interval * W::WORK;
        if work < SHARED_WORK_MIN || self.scratch.len() == 1 {
            return self.step_as(false, actions, columns);
        }
        let mut pace = std::mem::take(&mut self.pace);
        pace.step(|shares| self.step_as(shares, actions, columns));
        self.pace = pace;
    }

    /// Steps the batch alone or shared.
    fn step_as(&mut self, shares: bool, actions: Actions<'_>, columns: Columns<'_>) {
        let engine = &self.engine;
        let parts = if shares { self.scratch.len() } else { 1 };
        let mut all = Part { blocks: &mut self.blocks, rows: self.table.rows(), actions, columns };
        if parts == 1 {
            engine.step(&mut all, &mut self.scratch[0]);
            return;
        }
        let blocks = all.blocks.len().div_ceil(parts);
        let mut parts: Vec<(Part<'_, W>, &mut Scratch)> = Vec::with_capacity(parts);
        for scratch in &mut self.scratch {
            if !all.blocks.is_empty() {
                parts.push((all.cut(blocks, engine.widths), scratch));
            }
        }
        self.pool.for_each(&mut parts, |(part, scratch)| engine.step(part, scratch));
    }

    /// Writes what every row shows now, `num_envs * obs_len` numbers; NaN for rows never reset.
    pub fn observe_into(&self, out: &mut [f32]) -> Result<(), VecError> {
        let width = self.engine.widths.observation;
        check_len("observations", out.len(), self.num_envs(), width)?;
        let Engine { world, observer, widths, .. } = &self.engine;
        let mut sight = Sight::new(W::LANES, *widths);
        let rows = out.chunks_mut(W::LANES * width);
        for (index, (block, out)) in self.blocks.iter().zip(rows).enumerate() {
            let used = out.len() / width;
            let first = index * W::LANES;
            if (first..first + used).all(|row| self.is_seeded(row)) {
                sight.look(observer, &**world, block, used);
                sight.write(observer, &**world, block, used, out);
                continue;
            }
            for (lane, out) in out.chunks_exact_mut(width).enumerate() {
                if self.is_seeded(first + lane) {
                    sight.write_lane(observer, &**world, (block, lane), out);
                } else {
                    out.fill(f32::NAN);
                }
            }
        }
        Ok(())
    }

    /// Writes one row's signals in natural units; NaN for a row never reset.
    pub fn signals(&self, row: usize, out: &mut [f64]) -> Result<(), VecError> {
        self.look("signals", row, out, self.engine.widths.signals, W::signals)
    }

    /// Writes one row's dials as they stand, in natural units, 0 for presses; NaN for a row never
    /// reset.
    pub fn dials(&self, row: usize, out: &mut [f64]) -> Result<(), VecError> {
        self.look("dials", row, out, self.engine.widths.dials, W::dials)
    }

    fn look(
        &self,
        name: &str,
        row: usize,
        out: &mut [f64],
        width: usize,
        write: impl Fn(&W, &W::Block, usize, &mut [f64]),
    ) -> Result<(), VecError> {
        self.check_rows("row", &[row])?;
        check_len(name, out.len(), 1, width)?;
        if self.is_seeded(row) {
            let (block, lane) = self.lane(row);
            write(&self.engine.world, block, lane, out);
        } else {
            out.fill(f64::NAN);
        }
        Ok(())
    }

    fn is_seeded(&self, row: usize) -> bool {
        self.table.status[row] != Status::Unseeded
    }

    /// Where a row is.
    pub(crate) fn lane(&self, row: usize) -> (&W::Block, usize) {
        (&self.blocks[row / W::LANES], row % W::LANES)
    }

    /// Where a row stands; all zero before its first reset.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn row(&self, row: usize) -> RowInfo {
        let Row { status, length_min, current, .. } = self.table.row(row);
        let pending = status == Status::Over
            && self.engine.options.autoreset.before_step(status) == Turn::Begin;
        RowInfo {
            seed: current.seed,
            episode: current.episode,
            minute: current.minutes,
            length_min,
            pending,
            ended: status == Status::Over,
        }
    }

    /// Rows whose episode ended in the last call; [`VecEnv::episode_stats`] has its sums.
    pub fn ended(&self) -> &[bool] {
        &self.table.ended
    }

    /// Rows that began a new episode in the last call, by a reset or of themselves.
    pub fn began(&self) -> &[bool] {
        &self.table.began
    }

    /// Sums over the last episode of a row that ended; zero steps before one has.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn episode_stats(&self, row: usize) -> EpisodeStats {
        self.table.last_stats(row)
    }

    /// As [`VecEnv::episode_stats`], without the sums of the terms: nothing is allocated.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn episode_totals(&self, row: usize) -> EpisodeStats {
        self.table.last_totals(row)
    }

    /// The sums of the terms over the last episode of a row that ended, dollars.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn episode_terms(&self, row: usize) -> &[f64] {
        self.table.last_terms(row)
    }

    /// Seed and number of a row's current episode.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn episode_key(&self, row: usize) -> (u64, u64) {
        self.table.episode_key(row)
    }

    /// Sums over a row's current episode so far.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn running_stats(&self, row: usize) -> EpisodeStats {
        self.table.running_stats(row)
    }

    /// Hash of everything that a row's future depends on: equal digests mean equal trajectories
    /// under equal actions.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn digest(&self, row: usize) -> u64 {
        let Row { status, length_min, current, .. } = self.table.row(row);
        let mut digest = Digest::new();
        digest.word(status as u64);
        digest.word(u64::from(length_min));
        digest.word(current.seed);
        digest.word(current.episode);
        digest.word(u64::from(current.minutes));
        if self.is_seeded(row) {
            let (block, lane) = self.lane(row);
            self.engine.world.digest(block, lane, &mut digest);
        }
        digest.value()
    }

    /// Hash of what was drawn for a row's episode, apart from any state.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn digest_drawn(&self, row: usize) -> u64 {
        let mut digest = Digest::new();
        if self.is_seeded(row) {
            let (block, lane) = self.lane(row);
            self.engine.world.digest_drawn(block, lane, &mut digest);
        }
        digest.value()
    }

    /// Name of the scenario that a row plays: of a mixture, the one that was drawn.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn scenario_of(&self, row: usize) -> &str {
        let (block, lane) = self.lane(row);
        self.engine.world.scenario_of(block, lane)
    }

    /// What was drawn for a row's episode, as names and values, truths included; empty for a row
    /// never reset.
    ///
    /// # Panics
    ///
    /// If there is no such row.
    pub fn drawn(&self, row: usize) -> Vec<(String, f64)> {
        let (block, lane) = self.lane(row);
        if self.is_seeded(row) { self.engine.world.drawn(block, lane) } else { Vec::new() }
    }

    /// Whether worker threads have been made.
    #[cfg(test)]
    pub(crate) fn has_workers(&self) -> bool {
        self.pool.has_workers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    /// The toy shows eight signals, so 1024 rows are just worth it.
    #[test]
    fn workers_are_made_when_they_are_worth_it() {
        for (rows, threads, interval, expected) in [
            (1024, 2, 1, true),
            (1024, 1, 1, false),
            (1023, 2, 1, false),
            (205, 2, 5, true),
            (204, 2, 5, false),
        ] {
            let options =
                Options { threads, decision_interval_min: interval, ..Options::default() };
            let mut env = VecEnv::new(Arc::new(Toy::<4>::new()), rows, options).unwrap();
            let mut out = env.columns();
            env.reset(Seeds::Root(1), None, &mut out.borrow_reset()).unwrap();
            assert!(!env.has_workers(), "made lazily");
            let actions = vec![0_i8; rows * 5];
            env.step(Actions::Stops8(&actions), &mut out.borrow()).unwrap();
            assert_eq!(env.has_workers(), expected, "{rows} {threads} {interval}");
        }
    }
}
