//! What the engine keeps for each row, apart from the state of its world: a column for each thing, so
//! that rows are worked on side by side.

use crate::autoreset::Status;
use crate::columns::cut;
use crate::row::{EpisodeStats, Row, Tally};
use std::ops::Range;

/// Numbers of a row in the columns below.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Lanes of a block.
    pub(crate) lanes: usize,
    /// Reward terms.
    pub(crate) terms: usize,
}

/// The columns of a batch.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    shape: Shape,
    pub(crate) status: Vec<Status>,
    pub(crate) minutes: Vec<u32>,
    pub(crate) length_min: Vec<u32>,
    pub(crate) steps: Vec<u32>,
    pub(crate) returns: Vec<f64>,
    pub(crate) costs: Vec<f64>,
    pub(crate) levels: Vec<f64>,
    pub(crate) seeds: Vec<u64>,
    pub(crate) episodes: Vec<u64>,
    /// Sums of the terms over the current episode: by block, term and lane.
    terms: Vec<f64>,
    /// The last episode that ended, and the sums of its terms, by row.
    last: Vec<Tally>,
    last_terms: Vec<f64>,
    pub(crate) ended: Vec<bool>,
    pub(crate) began: Vec<bool>,
}

/// The columns of some rows: whole blocks, or all that are left.
pub(crate) struct Rows<'a> {
    pub(crate) shape: Shape,
    pub(crate) status: &'a mut [Status],
    pub(crate) minutes: &'a mut [u32],
    pub(crate) length_min: &'a mut [u32],
    pub(crate) steps: &'a mut [u32],
    pub(crate) returns: &'a mut [f64],
    pub(crate) costs: &'a mut [f64],
    pub(crate) levels: &'a mut [f64],
    pub(crate) seeds: &'a mut [u64],
    pub(crate) episodes: &'a mut [u64],
    pub(crate) terms: &'a mut [f64],
    pub(crate) last: &'a mut [Tally],
    pub(crate) last_terms: &'a mut [f64],
    pub(crate) ended: &'a mut [bool],
    pub(crate) began: &'a mut [bool],
}

impl Shape {
    /// Where the sums of a block are.
    pub(crate) fn block(self, block: usize) -> Range<usize> {
        let size = self.lanes * self.terms;
        block * size..(block + 1) * size
    }

    /// Where a row's sum of a term is.
    fn term(self, row: usize, term: usize) -> usize {
        self.block(row / self.lanes).start + term * self.lanes + row % self.lanes
    }
}

impl Table {
    /// Rows that were never reset.
    pub(crate) fn new(rows: usize, shape: Shape) -> Self {
        Self {
            shape,
            status: vec![Status::Unseeded; rows],
            minutes: vec![0; rows],
            length_min: vec![0; rows],
            steps: vec![0; rows],
            returns: vec![0.0; rows],
            costs: vec![0.0; rows],
            levels: vec![0.0; rows],
            seeds: vec![0; rows],
            episodes: vec![0; rows],
            terms: vec![0.0; shape.block(rows.div_ceil(shape.lanes)).start],
            last: vec![Tally::default(); rows],
            last_terms: vec![0.0; rows * shape.terms],
            ended: vec![false; rows],
            began: vec![false; rows],
        }
    }

    /// All rows.
    pub(crate) fn rows(&mut self) -> Rows<'_> {
        Rows {
            shape: self.shape,
            status: &mut self.status,
            minutes: &mut self.minutes,
            length_min: &mut self.length_min,
            steps: &mut self.steps,
            returns: &mut self.returns,
            costs: &mut self.costs,
            levels: &mut self.levels,
            seeds: &mut self.seeds,
            episodes: &mut self.episodes,
            terms: &mut self.terms,
            last: &mut self.last,
            last_terms: &mut self.last_terms,
            ended: &mut self.ended,
            began: &mut self.began,
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.status.len()
    }

    /// A row's current episode.
    fn current(&self, row: usize) -> Tally {
        Tally {
            seed: self.seeds[row],
            episode: self.episodes[row],
            return_: self.returns[row],
            cost: self.costs[row],
            steps: self.steps[row],
            minutes: self.minutes[row],
        }
    }

    /// A row, apart from the sums of its terms.
    pub(crate) fn row(&self, row: usize) -> Row {
        Row {
            status: self.status[row],
            length_min: self.length_min[row],
            level: self.levels[row],
            current: self.current(row),
            last: self.last[row],
        }
    }

    /// The sums of a row's terms over its current episode.
    pub(crate) fn terms(&self, row: usize) -> impl Iterator<Item = f64> {
        (0..self.shape.terms).map(move |term| self.terms[self.shape.term(row, term)])
    }

    /// The sums of a row's terms over its last episode.
    pub(crate) fn last_terms(&self, row: usize) -> &[f64] {
        &self.last_terms[row * self.shape.terms..][..self.shape.terms]
    }

    /// Replaces a row; it is no longer shown as ended or begun in the last call.
    pub(crate) fn put(&mut self, row: usize, from: &Row, terms: &[f64], last_terms: &[f64]) {
        let Tally { seed, episode, return_, cost, steps, minutes } = from.current;
        self.status[row] = from.status;
        self.length_min[row] = from.length_min;
        self.levels[row] = from.level;
        (self.seeds[row], self.episodes[row]) = (seed, episode);
        (self.returns[row], self.costs[row]) = (return_, cost);
        (self.steps[row], self.minutes[row]) = (steps, minutes);
        self.last[row] = from.last;
        for (term, &usd) in terms.iter().enumerate() {
            let place = self.shape.term(row, term);
            self.terms[place] = usd;
        }
        let width = self.shape.terms;
        self.last_terms[row * width..][..width].copy_from_slice(last_terms);
        (self.ended[row], self.began[row]) = (false, false);
    }

    /// Sums over the last episode of a row.
    pub(crate) fn last_stats(&self, row: usize) -> EpisodeStats {
        self.last[row].stats(self.last_terms(row).to_vec())
    }

    /// As [`Table::last_stats`], without the terms.
    pub(crate) fn last_totals(&self, row: usize) -> EpisodeStats {
        self.last[row].stats(Vec::new())
    }

    /// Seed and number of a row's current episode.
    pub(crate) fn episode_key(&self, row: usize) -> (u64, u64) {
        (self.seeds[row], self.episodes[row])
    }

    /// Sums over a row's current episode.
    pub(crate) fn running_stats(&self, row: usize) -> EpisodeStats {
        self.current(row).stats(self.terms(row).collect())
    }
}

impl<'a> Rows<'a> {
    /// Takes the first rows out, which fill `blocks` blocks unless they are the last.
    pub(crate) fn cut(&mut self, rows: usize, blocks: usize) -> Rows<'a> {
        let terms = self.shape.block(blocks).start.min(self.terms.len());
        Rows {
            shape: self.shape,
            status: cut(&mut self.status, rows),
            minutes: cut(&mut self.minutes, rows),
            length_min: cut(&mut self.length_min, rows),
            steps: cut(&mut self.steps, rows),
            returns: cut(&mut self.returns, rows),
            costs: cut(&mut self.costs, rows),
            levels: cut(&mut self.levels, rows),
            seeds: cut(&mut self.seeds, rows),
            episodes: cut(&mut self.episodes, rows),
            terms: cut(&mut self.terms, terms),
            last: cut(&mut self.last, rows),
            last_terms: cut(&mut self.last_terms, rows * self.shape.terms),
            ended: cut(&mut self.ended, rows),
            began: cut(&mut self.began, rows),
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.status.len()
    }

    /// A row begins an episode.
    pub(crate) fn begin(&mut self, row: usize, seed: u64, episode: u64, length_min: u32) {
        self.status[row] = Status::Running;
        self.length_min[row] = length_min;
        (self.seeds[row], self.episodes[row]) = (seed, episode);
        (self.returns[row], self.costs[row]) = (0.0, 0.0);
        (self.steps[row], self.minutes[row]) = (0, 0);
        for term in 0..self.shape.terms {
            self.terms[self.shape.term(row, term)] = 0.0;
        }
    }

    /// A row's episode ends: its sums become those of the last episode.
    pub(crate) fn end(&mut self, row: usize) {
        self.ended[row] = true;
        self.status[row] = Status::Over;
        self.last[row] = Tally {
            seed: self.seeds[row],
            episode: self.episodes[row],
            return_: self.returns[row],
            cost: self.costs[row],
            steps: self.steps[row],
            minutes: self.minutes[row],
        };
        for term in 0..self.shape.terms {
            self.last_terms[row * self.shape.terms + term] = self.terms[self.shape.term(row, term)];
        }
    }

    /// Seed and number of a row's next episode.
    pub(crate) fn next_episode(&self, row: usize) -> (u64, u64) {
        (self.seeds[row], self.episodes[row].wrapping_add(1))
    }
}
