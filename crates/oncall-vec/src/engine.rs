//! The step of a block: begin what is pending, play, close, observe.

use crate::actions::{Actions, Decoder};
use crate::autoreset::{Turn, all_run};
use crate::columns::{Columns, Widths, cut};
use crate::error::VecError;
use crate::limit::Limit;
use crate::observe::{Observer, Sight};
use crate::options::Options;
use crate::settle::{Advance, Settle};
use crate::table::{Rows, Shape};
use oncall_core::{EpisodeKey, Spec, World, isa};
use std::marker::PhantomData;
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

impl<'a, W: World> Part<'a, W> {
    /// Takes the first blocks out, at most `blocks` of them.
    pub(crate) fn cut(&mut self, blocks: usize, widths: Widths) -> Part<'a, W> {
        let blocks = blocks.min(self.blocks.len());
        let rows = (blocks * W::LANES).min(self.rows.len());
        let actions = self.actions;
        self.actions = actions.skip(rows * widths.dials);
        Part {
            blocks: cut(&mut self.blocks, blocks),
            rows: self.rows.cut(rows, blocks),
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
    /// By dial and lane; and those of the next block, which are decoded a block ahead: what was just
    /// stored number by number cannot be loaded as a vector at once.
    dials: Vec<f64>,
    next_dials: Vec<f64>,
    /// Terms of the minute, and of the decision so far, by term and lane.
    minute_terms: Vec<f64>,
    terms: Vec<f64>,
    /// How far the cost signal fell.
    costs: Vec<f64>,
    pub(crate) sight: Sight,
}

impl Scratch {
    pub(crate) fn new(lanes: usize, widths: Widths) -> Self {
        Self {
            played: vec![false; lanes],
            active: vec![false; lanes],
            terminated: vec![false; lanes],
            dials: vec![f64::NAN; lanes * widths.dials],
            next_dials: vec![f64::NAN; lanes * widths.dials],
            minute_terms: vec![0.0; lanes * widths.terms],
            terms: vec![0.0; lanes * widths.terms],
            costs: vec![0.0; lanes],
            sight: Sight::new(lanes, widths),
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
        let limit = Limit::new(options.max_minutes, spec.tick_s);
        let (decoder, spec_hash) = (Decoder::new(spec), spec.hash());
        Ok(Self { world, options, widths, decoder, observer, limit, spec_hash })
    }

    /// How the rows' columns are laid out.
    pub(crate) fn shape(&self) -> Shape {
        Shape { lanes: W::LANES, terms: self.widths.terms }
    }

    /// Begins an episode in a lane.
    pub(crate) fn begin(
        &self,
        (block, lane): (&mut W::Block, usize),
        rows: &mut Rows<'_>,
        row: usize,
        (seed, episode): (u64, u64),
    ) {
        let split = self.options.split;
        let key = EpisodeKey::new(seed, episode, split, self.world.generator());
        self.world.reset(block, lane, key);
        let length_min = self.limit.length_min(self.world.length_min(block, lane));
        rows.begin(row, seed, episode, length_min);
    }

    /// Steps all blocks of a part. Everything has been checked.
    pub(crate) fn step(&self, part: &mut Part<'_, W>, scratch: &mut Scratch) {
        let rows = part.rows.len();
        let of = |index: usize| index * W::LANES..((index + 1) * W::LANES).min(rows);
        if rows > 0 {
            self.decoder.decode(part.actions, of(0), W::LANES, &mut scratch.next_dials);
        }
        for index in 0..part.blocks.len() {
            let range = of(index);
            std::mem::swap(&mut scratch.dials, &mut scratch.next_dials);
            if index + 1 < part.blocks.len() {
                self.decoder.decode(part.actions, of(index + 1), W::LANES, &mut scratch.next_dials);
            }
            self.open(part, index, range.clone(), scratch);
            self.play(&mut part.blocks[index], &mut part.rows, range.clone(), scratch);
            self.close(part, index, range, scratch);
        }
    }

    /// Begins what is pending.
    fn open(
        &self,
        part: &mut Part<'_, W>,
        index: usize,
        range: Range<usize>,
        scratch: &mut Scratch,
    ) {
        // Lanes without a row, and lanes that only begin, are not played. Their dials are valid, and
        // no lane that is not played commits anything.
        let played = &mut scratch.played[..W::LANES];
        if all_run(&part.rows.status[range.clone()]) {
            let used = range.len();
            for (lane, plays) in played.iter_mut().enumerate() {
                *plays = lane < used;
            }
        } else {
            played.fill(false);
            for (lane, i) in range.enumerate() {
                if self.options.autoreset.before_step(part.rows.status[i]) == Turn::Play {
                    played[lane] = true;
                } else {
                    let next = part.rows.next_episode(i);
                    self.begin((&mut part.blocks[index], lane), &mut part.rows, i, next);
                }
            }
        }
        scratch.active[..W::LANES].copy_from_slice(played);
    }

    /// Plays the ticks of a decision, each lane as far as its episode goes.
    fn play(
        &self,
        block: &mut W::Block,
        rows: &mut Rows<'_>,
        range: Range<usize>,
        scratch: &mut Scratch,
    ) {
        let Scratch { active, terminated, dials, minute_terms, terms, .. } = scratch;
        let used = range.len();
        let minutes = &mut rows.minutes[range.clone()];
        let lengths = &rows.length_min[range];
        for minute in 0..self.options.decision_interval_min {
            if !active[..used].contains(&true) {
                if minute == 0 {
                    terms.fill(0.0);
                }
                return;
            }
            if minute == 1 {
                self.decoder.release(dials, W::LANES);
            }
            self.world.step(block, active, dials, minute_terms, terminated);
            isa::run(Advance::<W> {
                used,
                is_first: minute == 0,
                minute_terms,
                terms,
                active,
                terminated,
                minutes,
                lengths,
                world: PhantomData,
            });
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
        let used = range.len();
        let (rows, columns) = (&mut part.rows, &mut part.columns);
        scratch.sight.look(&self.observer, &*self.world, &part.blocks[index], used);
        let Scratch { played, terminated, terms, costs, sight, .. } = scratch;
        let any_over = isa::run(Settle::<W> {
            used,
            played,
            ends: terminated,
            terms,
            now: sight.levels(used),
            sums: &mut rows.terms[self.shape().block(index)],
            levels: &mut rows.levels[range.clone()],
            steps: &mut rows.steps[range.clone()],
            returns: &mut rows.returns[range.clone()],
            costs: &mut rows.costs[range.clone()],
            minutes: &rows.minutes[range.clone()],
            lengths: &rows.length_min[range.clone()],
            ended: &mut rows.ended[range.clone()],
            began: &mut rows.began[range.clone()],
            rewards: &mut columns.rewards[range.clone()],
            terminated: &mut columns.terminated[range.clone()],
            truncated: &mut columns.truncated[range.clone()],
            paid: costs,
            world: PhantomData,
        });
        if let Some(costs) = &mut columns.cost {
            costs[range.clone()].copy_from_slice(&scratch.costs[..used]);
        }
        if let Some(out) = &mut columns.terms {
            let width = self.widths.terms;
            let out = &mut out[range.start * width..range.end * width];
            for (lane, row) in out.chunks_exact_mut(width).enumerate() {
                let column = scratch.terms[lane..].iter().step_by(W::LANES);
                row.iter_mut().zip(column).for_each(|(usd, term)| *usd = *term);
            }
        }
        let sight = &mut scratch.sight;
        let width = self.widths.observation;
        let out = &mut columns.observations[range.start * width..range.end * width];
        sight.write(&self.observer, &*self.world, &part.blocks[index], used, out);
        if let Some(signals) = &mut columns.signals {
            let width = self.widths.signals;
            let out = &mut signals[range.start * width..range.end * width];
            sight.write_signals(&*self.world, &part.blocks[index], used, out);
        }
        if any_over {
            self.end(part, index, range, sight);
        }
    }

    /// Ends the episodes that are over: keeps their last observations, and begins anew at once in
    /// same-step mode.
    fn end(&self, part: &mut Part<'_, W>, index: usize, range: Range<usize>, sight: &mut Sight) {
        let (rows, columns) = (&mut part.rows, &mut part.columns);
        for (lane, i) in range.enumerate() {
            if !(columns.terminated[i] || columns.truncated[i]) {
                continue;
            }
            rows.end(i);
            let observation = &mut columns.observations[span(i, self.widths.observation)];
            if let Some(last) = &mut columns.final_observations {
                last[span(i, self.widths.observation)].copy_from_slice(observation);
            }
            if self.options.autoreset.begins_at_end() {
                let next = rows.next_episode(i);
                let block = &mut part.blocks[index];
                self.begin((&mut *block, lane), rows, i, next);
                rows.began[i] = true;
                rows.levels[i] =
                    sight.write_lane(&self.observer, &*self.world, (&*block, lane), observation);
                if let Some(signals) = &mut columns.signals {
                    self.world.signals(block, lane, &mut signals[span(i, self.widths.signals)]);
                }
            }
        }
    }
}
