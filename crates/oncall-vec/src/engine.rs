//! The step of a block: begin what is pending, play, close, observe.

use crate::actions::{Actions, Decoder};
use crate::autoreset::{Status, Turn};
use crate::columns::{Columns, Widths, cut};
use crate::error::VecError;
use crate::limit::{self, Limit};
use crate::observe::Observer;
use crate::options::Options;
use crate::row::{Row, Tally};
use oncall_core::{EpisodeKey, Spec, World};
use std::ops::Range;
use std::sync::Arc;

/// What all rows share and no step changes.
pub(crate) struct Engine<W: World> {
    pub(crate) world: Arc<W>,
    pub(crate) options: Options,
    pub(crate) widths: Widths,
    pub(crate) decoder: Decoder,
    pub(crate) observer: Observer,
    pub(crate) limit: Limit,
    pub(crate) spec_hash: u64,
}

/// Whole blocks of a batch with everything that belongs to their rows: what one thread steps.
pub(crate) struct Part<'a, W: World> {
    pub(crate) blocks: &'a mut [W::Block],
    pub(crate) rows: Rows<'a>,
    /// From the first row of this part on.
    pub(crate) actions: Actions<'a>,
    pub(crate) columns: Columns<'a>,
}

/// The engine's own state of some rows.
pub(crate) struct Rows<'a> {
    pub(crate) states: &'a mut [Row],
    /// Sums of the reward terms over the current episode, and over the last one that ended.
    pub(crate) terms: &'a mut [f64],
    pub(crate) last_terms: &'a mut [f64],
    pub(crate) ended: &'a mut [bool],
    pub(crate) began: &'a mut [bool],
}

impl<'a, W: World> Part<'a, W> {
    /// Takes the first blocks out, at most `blocks` of them.
    pub(crate) fn cut(&mut self, blocks: usize, widths: Widths) -> Part<'a, W> {
        let blocks = blocks.min(self.blocks.len());
        let rows = (blocks * W::LANES).min(self.rows.states.len());
        let actions = self.actions;
        self.actions = actions.skip(rows * widths.dials);
        Part {
            blocks: cut(&mut self.blocks, blocks),
            rows: Rows {
                states: cut(&mut self.rows.states, rows),
                terms: cut(&mut self.rows.terms, rows * widths.terms),
                last_terms: cut(&mut self.rows.last_terms, rows * widths.terms),
                ended: cut(&mut self.rows.ended, rows),
                began: cut(&mut self.rows.began, rows),
            },
            actions,
            columns: self.columns.cut(rows, widths),
        }
    }
}

/// Working memory of one thread; nothing in it outlives a block.
#[derive(Debug, Clone)]
pub(crate) struct Scratch {
    /// Lanes that play this decision, and those of them whose episode still runs.
    played: Vec<bool>,
    active: Vec<bool>,
    terminated: Vec<bool>,
    dials: Vec<f64>,
    /// Terms of the minute, and of the decision so far.
    minute_terms: Vec<f64>,
    terms: Vec<f64>,
    pub(crate) signals: Vec<f64>,
}

impl Scratch {
    pub(crate) fn new(lanes: usize, widths: Widths) -> Self {
        Self {
            played: vec![false; lanes],
            active: vec![false; lanes],
            terminated: vec![false; lanes],
            dials: vec![f64::NAN; lanes * widths.dials],
            minute_terms: vec![0.0; lanes * widths.terms],
            terms: vec![0.0; lanes * widths.terms],
            signals: vec![0.0; widths.signals],
        }
    }
}

/// Row `row` of a row-major column.
fn span(row: usize, width: usize) -> Range<usize> {
    row * width..(row + 1) * width
}

impl<W: World> Engine<W> {
    pub(crate) fn new(world: Arc<W>, options: Options) -> Result<Self, VecError> {
        let spec: &Spec = world.spec();
        if spec.dials.is_empty() {
            return Err(VecError::option("spec.dials", "none", "at least one dial"));
        }
        let observer = Observer::new(spec, options.view)?;
        let widths = Widths {
            observation: observer.len(),
            dials: spec.dials.len(),
            terms: spec.terms.len(),
            signals: spec.signals.len(),
        };
        let limit = Limit { max_minutes: options.max_minutes };
        let (decoder, spec_hash) = (Decoder::new(spec), spec.hash());
        Ok(Self { world, options, widths, decoder, observer, limit, spec_hash })
    }

    /// Begins an episode in a lane. `terms` are the sums of its row.
    pub(crate) fn begin(
        &self,
        (block, lane): (&mut W::Block, usize),
        row: &mut Row,
        terms: &mut [f64],
        (seed, episode): (u64, u64),
    ) {
        let split = self.options.split;
        let key = EpisodeKey::new(seed, episode, split, self.world.generator());
        self.world.reset(block, lane, key);
        row.status = Status::Running;
        row.length_min = self.limit.length_min(self.world.length_min(block, lane));
        row.current = Tally::new(seed, episode);
        terms.fill(0.0);
    }

    /// Steps all blocks of a part. Everything has been checked.
    pub(crate) fn step(&self, part: &mut Part<'_, W>, scratch: &mut Scratch) {
        let rows = part.rows.states.len();
        for index in 0..part.blocks.len() {
            let range = index * W::LANES..((index + 1) * W::LANES).min(rows);
            self.open(part, index, range.clone(), scratch);
            self.play(&mut part.blocks[index], &mut part.rows.states[range.clone()], scratch);
            self.close(part, index, range, scratch);
        }
    }

    /// Begins what is pending and decodes the actions of the others.
    fn open(
        &self,
        part: &mut Part<'_, W>,
        index: usize,
        range: Range<usize>,
        scratch: &mut Scratch,
    ) {
        // Lanes without a row, and lanes that only begin, are not played. They keep the dials of an
        // earlier block, which are valid, and no lane that is not played commits anything.
        scratch.played.fill(false);
        for (lane, i) in range.enumerate() {
            let row = &mut part.rows.states[i];
            if self.options.autoreset.before_step(row.status) == Turn::Play {
                scratch.played[lane] = true;
                let dials = &mut scratch.dials[span(lane, self.widths.dials)];
                self.decoder.decode(part.actions, i, dials);
            } else {
                let next = (row.current.seed, row.current.episode.wrapping_add(1));
                let terms = &mut part.rows.terms[span(i, self.widths.terms)];
                self.begin((&mut part.blocks[index], lane), row, terms, next);
            }
        }
        scratch.active.copy_from_slice(&scratch.played);
        scratch.terms.fill(0.0);
    }

    /// Plays the minutes of a decision, each lane as far as its episode goes.
    fn play(&self, block: &mut W::Block, rows: &mut [Row], scratch: &mut Scratch) {
        let Scratch { active, terminated, dials, minute_terms, terms, .. } = scratch;
        for minute in 0..self.options.decision_interval_min {
            if !active.contains(&true) {
                return;
            }
            if minute == 1 {
                self.decoder.release(dials);
            }
            self.world.step(block, active, dials, minute_terms, terminated);
            for (lane, row) in rows.iter_mut().enumerate() {
                if active[lane] {
                    row.current.minutes += 1;
                    let over = limit::is_over(row.current.minutes, row.length_min);
                    active[lane] = !(terminated[lane] || over);
                    let lane = span(lane, self.widths.terms);
                    for (sum, term) in terms[lane.clone()].iter_mut().zip(&minute_terms[lane]) {
                        *sum += term;
                    }
                }
            }
        }
    }

    /// Settles the sums, ends what is over, and writes the columns.
    fn close(
        &self,
        part: &mut Part<'_, W>,
        index: usize,
        range: Range<usize>,
        scratch: &mut Scratch,
    ) {
        for (lane, i) in range.enumerate() {
            part.rows.ended[i] = false;
            part.rows.began[i] = !scratch.played[lane];
            if scratch.played[lane] {
                self.settle(part, index, (lane, i), scratch);
            } else {
                self.world.signals(&part.blocks[index], lane, &mut scratch.signals);
                part.rows.states[i].level = self.observer.level(&scratch.signals);
                part.columns.rewards[i] = 0.0;
                part.columns.terminated[i] = false;
                part.columns.truncated[i] = false;
                if let Some(cost) = &mut part.columns.cost {
                    cost[i] = 0.0;
                }
            }
            if let Some(terms) = &mut part.columns.terms {
                terms[span(i, self.widths.terms)]
                    .copy_from_slice(&scratch.terms[span(lane, self.widths.terms)]);
            }
            let observation = &mut part.columns.observations[span(i, self.widths.observation)];
            self.observer.write(&scratch.signals, observation);
            if let Some(signals) = &mut part.columns.signals {
                signals[span(i, self.widths.signals)].copy_from_slice(&scratch.signals);
            }
        }
    }

    /// Settles a row that was played; leaves the signals to observe in the scratch memory.
    fn settle(
        &self,
        part: &mut Part<'_, W>,
        index: usize,
        (lane, i): (usize, usize),
        scratch: &mut Scratch,
    ) {
        let (block, columns) = (&mut part.blocks[index], &mut part.columns);
        let row = &mut part.rows.states[i];
        let sums = &mut part.rows.terms[span(i, self.widths.terms)];
        let terms = &scratch.terms[span(lane, self.widths.terms)];
        self.world.signals(block, lane, &mut scratch.signals);

        let level = self.observer.level(&scratch.signals);
        let cost = row.level - level;
        // From zero, so that nothing paid is a reward of 0 and not of -0.
        let reward = 0.0 - terms.iter().fold(0.0, |sum, term| sum + term);
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        row.level = level;
        row.current.steps += 1;
        row.current.return_ += reward;
        row.current.cost += cost;

        let terminated = scratch.terminated[lane];
        let truncated = limit::is_over(row.current.minutes, row.length_min);
        columns.rewards[i] = reward;
        columns.terminated[i] = terminated;
        columns.truncated[i] = truncated;
        if let Some(costs) = &mut columns.cost {
            costs[i] = cost;
        }
        if !(terminated || truncated) {
            return;
        }

        part.rows.ended[i] = true;
        row.status = Status::Over;
        row.last = row.current;
        part.rows.last_terms[span(i, self.widths.terms)].copy_from_slice(sums);
        if let Some(last) = &mut columns.final_observations {
            self.observer.write(&scratch.signals, &mut last[span(i, self.widths.observation)]);
        }
        if self.options.autoreset.begins_at_end() {
            let next = (row.current.seed, row.current.episode.wrapping_add(1));
            self.begin((block, lane), row, sums, next);
            self.world.signals(block, lane, &mut scratch.signals);
            row.level = self.observer.level(&scratch.signals);
            part.rows.began[i] = true;
        }
    }
}
