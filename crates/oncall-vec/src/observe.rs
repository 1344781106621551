//! Natural signals to observations: the columns of a view, scaled as the spec says.

use crate::columns::Widths;
use crate::error::VecError;
use oncall_core::isa::{self, Kernel};
use oncall_core::{RowScaler, Scaler, Spec, View, World};

/// Lanes that are scaled together.
const TOGETHER: usize = 16;

/// Which signals an observation shows, and how.
#[derive(Debug)]
pub(crate) struct Observer {
    columns: Vec<(usize, Scaler)>,
    row: RowScaler,
    /// Index of the spec's cost signal.
    cost: usize,
}

impl Observer {
    pub(crate) fn new(spec: &Spec, view: View) -> Result<Self, VecError> {
        let cost = spec
            .signal(spec.cost)
            .ok_or_else(|| VecError::option("spec.cost", spec.cost, "the name of a signal"))?;
        let scaler = |index: usize| (index, spec.signals[index].scaler());
        let columns: Vec<(usize, Scaler)> = spec.columns_of(view).into_iter().map(scaler).collect();
        let scalers: Vec<Scaler> = columns.iter().map(|(_, scaler)| *scaler).collect();
        Ok(Self { columns, row: RowScaler::new(&scalers), cost })
    }

    /// Numbers in an observation.
    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The cost signal among all signals of a row.
    #[inline]
    pub(crate) fn level(&self, signals: &[f64]) -> f64 {
        signals[self.cost]
    }

    /// The level of one lane.
    pub(crate) fn level_of<W: World>(&self, world: &W, block: &W::Block, lane: usize) -> f64 {
        if W::COLUMNS {
            return world.value(block, lane, self.cost);
        }
        let mut signals = vec![0.0; world.spec().signals.len()];
        world.signals(block, lane, &mut signals);
        self.level(&signals)
    }

    /// Scales one row of signals.
    #[inline]
    pub(crate) fn write(&self, signals: &[f64], out: &mut [f32]) {
        for ((index, scaler), out) in self.columns.iter().zip(out) {
            *out = scaler.apply(signals[*index]);
        }
    }
}

/// Working memory for looking at a block.
///
/// Of a world with columns each signal is asked for once for all lanes, and only those that the
/// observation shows; of another all signals of each lane.
#[derive(Debug, Clone)]
pub(crate) struct Sight {
    signals: usize,
    /// A column, or all signals of all lanes, by lane.
    natural: Vec<f64>,
    levels: Vec<f64>,
    /// Scaled numbers, by signal and lane; or a row that is not scaled yet.
    tile: Vec<f32>,
}

/// The scaling of a block, compiled for each set of instructions.
struct Scale<'a, W: World> {
    observer: &'a Observer,
    world: &'a W,
    block: &'a W::Block,
    natural: &'a mut [f64],
    tile: &'a mut [f32],
    out: &'a mut [f32],
}

impl<W: World> Kernel for Scale<'_, W> {
    type Out = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) {
        let Self { observer, world, block, natural, tile, out } = self;
        for ((signal, scaler), row) in observer.columns.iter().zip(tile.chunks_exact_mut(W::LANES))
        {
            let column = world.column(block, *signal, natural);
            let (many, few) = column.as_chunks::<TOGETHER>();
            let (scaled, rest) = row.as_chunks_mut::<TOGETHER>();
            // Loops, not closures: those would be compiled for the baseline.
            for (x, y) in many.iter().zip(scaled) {
                scaler.apply_all(x, y);
            }
            for (x, y) in few.iter().zip(rest) {
                *y = scaler.apply(*x);
            }
        }
        transpose(tile, W::LANES, observer.len(), out);
    }
}

/// Writes numbers that stand by signal and lane as rows, one for each lane.
#[inline(always)]
#[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
#[expect(clippy::needless_range_loop, reason = "a loop over lanes, which becomes shuffles")]
fn transpose(tile: &[f32], lanes: usize, width: usize, out: &mut [f32]) {
    let whole = if lanes.is_multiple_of(TOGETHER) { width / 4 * 4 } else { 0 };
    for (group, rows) in out.chunks_mut(TOGETHER * width).enumerate() {
        let mut first = 0;
        // Signals of sixteen lanes become neighbours in each row four at a time: a quarter of the
        // stores, and the shuffle is made of vector instructions. Sixteen signals at a time, so that
        // a row is found once for all of them.
        while first < whole {
            let fours = (whole - first).min(TOGETHER) / 4;
            let mut quads = [[[0.0; 4]; 4]; TOGETHER];
            for four in 0..fours {
                let signal = |k: usize| -> &[f32; TOGETHER] {
                    let start = (first + four * 4 + k) * lanes + group * TOGETHER;
                    tile[start..start + TOGETHER].try_into().expect("sixteen lanes")
                };
                let (a, b, c, d) = (signal(0), signal(1), signal(2), signal(3));
                for lane in 0..TOGETHER {
                    quads[lane][four] = [a[lane], b[lane], c[lane], d[lane]];
                }
            }
            for (row, quads) in rows.chunks_exact_mut(width).zip(&quads) {
                // Lengths that are known, since a copy of another length is a call.
                let row = &mut row[first..first + fours * 4];
                if let Ok(whole) = <&mut [f32; TOGETHER]>::try_from(&mut *row) {
                    *whole = *quads.as_flattened().first_chunk().expect("four quads");
                } else {
                    for (four, quad) in row.as_chunks_mut::<4>().0.iter_mut().zip(quads) {
                        *four = *quad;
                    }
                }
            }
            first += fours * 4;
        }
        for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
            let signals = tile.chunks_exact(lanes).skip(first);
            for (y, signals) in row[first..].iter_mut().zip(signals) {
                *y = signals[group * TOGETHER + lane];
            }
        }
    }
}

impl Sight {
    pub(crate) fn new(lanes: usize, widths: Widths) -> Self {
        Self {
            signals: widths.signals,
            natural: vec![0.0; lanes * widths.signals],
            levels: vec![0.0; lanes],
            tile: vec![0.0; lanes * widths.observation],
        }
    }

    /// Looks at the first `used` lanes of a block.
    pub(crate) fn look<W: World>(
        &mut self,
        observer: &Observer,
        world: &W,
        block: &W::Block,
        used: usize,
    ) {
        if W::COLUMNS && used == 1 {
            self.levels[0] = world.value(block, 0, observer.cost);
            return;
        }
        if W::COLUMNS {
            let column = world.column(block, observer.cost, &mut self.natural);
            self.levels[..W::LANES].copy_from_slice(&column[..W::LANES]);
            return;
        }
        for lane in 0..used {
            let row = &mut self.natural[lane * self.signals..][..self.signals];
            world.signals(block, lane, row);
            self.levels[lane] = observer.level(row);
        }
    }

    /// The cost signal of the lanes looked at.
    pub(crate) fn levels(&self, used: usize) -> &[f64] {
        &self.levels[..used]
    }

    /// Writes the observations of the lanes looked at.
    pub(crate) fn write<W: World>(
        &mut self,
        observer: &Observer,
        world: &W,
        block: &W::Block,
        used: usize,
        out: &mut [f32],
    ) {
        if W::COLUMNS && used > 1 {
            let (natural, tile) = (&mut *self.natural, &mut *self.tile);
            isa::run(Scale { observer, world, block, natural, tile, out });
        } else if W::COLUMNS {
            self.write_lane(observer, world, (block, 0), out);
        } else {
            let rows = out.chunks_exact_mut(observer.len());
            for (signals, out) in self.natural.chunks_exact(self.signals).zip(rows) {
                observer.write(signals, out);
            }
        }
    }

    /// Writes all natural signals of the lanes looked at, before anything else is looked at.
    pub(crate) fn write_signals<W: World>(
        &mut self,
        world: &W,
        block: &W::Block,
        used: usize,
        out: &mut [f64],
    ) {
        if !W::COLUMNS {
            out.copy_from_slice(&self.natural[..used * self.signals]);
            return;
        }
        for signal in 0..self.signals {
            let column = world.column(block, signal, &mut self.natural);
            let rows = out[signal..].iter_mut().step_by(self.signals);
            rows.zip(column).for_each(|(out, x)| *out = *x);
        }
    }

    /// Writes the observation of one lane and returns its cost signal.
    pub(crate) fn write_lane<W: World>(
        &mut self,
        observer: &Observer,
        world: &W,
        (block, lane): (&W::Block, usize),
        out: &mut [f32],
    ) -> f64 {
        if W::COLUMNS {
            if observer.row.is_single() {
                let row = &mut self.tile[..observer.len()];
                for ((signal, _), x) in observer.columns.iter().zip(&mut *row) {
                    *x = world.value(block, lane, *signal) as f32;
                }
                observer.row.apply(row, out);
            } else {
                for ((signal, scaler), out) in observer.columns.iter().zip(out) {
                    *out = scaler.apply(world.value(block, lane, *signal));
                }
            }
            return world.value(block, lane, observer.cost);
        }
        let row = &mut self.natural[..self.signals];
        world.signals(block, lane, row);
        observer.write(row, out);
        observer.level(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;

    #[test]
    fn an_unknown_cost_signal_is_refused() {
        let mut spec = Toy::<1>::new().spec().clone();
        spec.cost = "nothing";
        let error = Observer::new(&spec, View::Operator).unwrap_err();
        assert_eq!(error.to_string(), "spec.cost = nothing: expected the name of a signal");
    }

    #[test]
    fn a_transpose_is_one() {
        for (lanes, width, rows) in
            [(16, 45, 13), (16, 48, 16), (16, 3, 16), (32, 46, 29), (4, 45, 3), (1, 9, 1)]
        {
            let tile: Vec<f32> = (0..lanes * width).map(|i| i as f32).collect();
            let mut out = vec![0.0; rows * width];
            transpose(&tile, lanes, width, &mut out);
            for (i, y) in out.iter().enumerate() {
                assert_eq!(*y, tile[i % width * lanes + i / width]);
            }
        }
    }
}
