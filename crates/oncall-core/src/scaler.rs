//! Natural values to observations, one by one or many at a time with the same bits.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::isa::{self, Kernel};
use crate::math;
use crate::spec::{Scale, Signal};

/// A signal's transform, ready for many values; in single precision, within 3 units in the last place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaler {
    scale: Scale,
    low: f32,
    high: f32,
    /// Lower end of the observation: 0, or -1 where `low` is negative.
    bottom: f32,
    /// Taken away from a linear value.
    origin: f32,
    /// Times a value, before a symmetrical logarithm.
    inner: f32,
    /// Times the result.
    outer: f32,
    /// Lower end of a plain logarithm.
    log_low: f64,
}

impl Scaler {
    pub(crate) fn new(signal: &Signal) -> Self {
        let Signal { low, high, scale, .. } = *signal;
        let (origin, inner, per) = match scale {
            Scale::Linear if low < 0.0 => (0.0, 1.0, high),
            Scale::Linear => (low, 1.0, high - low),
            Scale::Log => (0.0, 1.0, math::ln(high / low)),
            Scale::Symlog { knee } => (0.0, 1.0 / knee, math::ln_1p(high / knee)),
        };
        let mut scaler = Self {
            scale,
            low: low as f32,
            high: high as f32,
            bottom: if low < 0.0 { -1.0 } else { 0.0 },
            origin: origin as f32,
            inner: inner as f32,
            outer: (1.0 / per) as f32,
            log_low: low,
        };
        // Rounding on the way must not keep an end from being one; what steps over it is cut.
        while scaler.apply(high) < 1.0 {
            scaler.outer = scaler.outer.next_up();
        }
        scaler
    }

    /// A value cut to the ends.
    #[inline(always)]
    fn cut(&self, x: f32) -> f32 {
        let x = if x < self.high { x } else { self.high };
        if x > self.low { x } else { self.low }
    }

    #[inline(always)]
    fn linear(&self, x: f32) -> f32 {
        (x - self.origin) * self.outer
    }

    #[inline(always)]
    fn symlog(&self, x: f32) -> f32 {
        let size = math::ln_1p_single(x.abs() * self.inner) * self.outer;
        if x < 0.0 { -size } else { size }
    }

    /// As [`Scaler::symlog`], of a value that is not negative.
    #[inline(always)]
    fn one_sided(&self, x: f32) -> f32 {
        math::ln_1p_single(x * self.inner) * self.outer
    }

    /// A result cut to its range.
    #[inline(always)]
    fn end(&self, y: f32) -> f32 {
        let y = if y < 1.0 { y } else { 1.0 };
        if y > self.bottom { y } else { self.bottom }
    }

    /// The observation of a natural value.
    #[inline]
    pub fn apply(&self, x: f64) -> f32 {
        let mut out = [0.0];
        self.apply_all(&[x], &mut out);
        out[0]
    }

    /// The observations of natural values.
    #[inline(always)]
    pub fn apply_all<const N: usize>(&self, x: &[f64; N], out: &mut [f32; N]) {
        // A copy, so that a loop holds the numbers in registers; and loops of one kind of number each,
        // since the widest kind decides how many lanes a loop has.
        let scaler = *self;
        let mut single = [0.0_f32; N];
        for i in 0..N {
            single[i] = x[i] as f32;
        }
        match scaler.scale {
            Scale::Linear => {
                for i in 0..N {
                    out[i] = scaler.end(scaler.linear(single[i]));
                }
            }
            Scale::Symlog { .. } if scaler.low < 0.0 => {
                for i in 0..N {
                    out[i] = scaler.end(scaler.symlog(scaler.cut(single[i])));
                }
            }
            Scale::Symlog { .. } => {
                for i in 0..N {
                    out[i] = scaler.end(scaler.one_sided(scaler.cut(single[i])));
                }
            }
            Scale::Log => {
                // In double precision up to here: near the lower end x/low - 1 is small.
                for i in 0..N {
                    let over = (x[i] * (1.0 / scaler.log_low) - 1.0) as f32;
                    let over = if over > 0.0 { over } else { 0.0 };
                    out[i] = scaler.end(math::ln_1p_single(over) * scaler.outer);
                }
            }
        }
    }
}

/// The transforms of a whole row, worked on side by side; the bits are those of [`Scaler::apply`].
#[derive(Debug, Clone, PartialEq)]
pub struct RowScaler {
    scalers: Vec<Scaler>,
    /// The numbers of the scalers by kind, padded to whole chunks.
    chunks: Vec<Chunk>,
    has_plain_log: bool,
}

/// Signals that are scaled together.
const CHUNK: usize = 16;

/// Numbers of a chunk of scalers, a column for each.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Chunk {
    low: [f32; CHUNK],
    high: [f32; CHUNK],
    bottom: [f32; CHUNK],
    origin: [f32; CHUNK],
    inner: [f32; CHUNK],
    outer: [f32; CHUNK],
    /// 1 for a logarithm, 0 for a linear scale.
    bent: [f32; CHUNK],
    has_bent: bool,
}

/// A row, compiled for each set of instructions.
struct Row<'a> {
    chunks: &'a [Chunk],
    natural: &'a [f32],
    out: &'a mut [f32],
}

impl Kernel for Row<'_> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.natural.chunks(CHUNK).zip(self.out.chunks_mut(CHUNK));
        for (chunk, (natural, out)) in self.chunks.iter().zip(rows) {
            let mut x = [0.0; CHUNK];
            x[..natural.len()].copy_from_slice(natural);
            let mut y = [0.0; CHUNK];
            if !chunk.has_bent {
                for i in 0..CHUNK {
                    let scaler = chunk.scaler(i);
                    y[i] = scaler.end(scaler.linear(x[i]));
                }
                out.copy_from_slice(&y[..out.len()]);
                continue;
            }
            for i in 0..CHUNK {
                let scaler = chunk.scaler(i);
                let (linear, bent) = (scaler.linear(x[i]), scaler.symlog(scaler.cut(x[i])));
                y[i] = scaler.end(if chunk.bent[i] > 0.5 { bent } else { linear });
            }
            out.copy_from_slice(&y[..out.len()]);
        }
    }
}

impl Chunk {
    #[inline(always)]
    fn scaler(&self, i: usize) -> Scaler {
        Scaler {
            scale: Scale::Linear,
            low: self.low[i],
            high: self.high[i],
            bottom: self.bottom[i],
            origin: self.origin[i],
            inner: self.inner[i],
            outer: self.outer[i],
            log_low: 1.0,
        }
    }
}

impl RowScaler {
    /// The transforms of a row's signals.
    pub fn new(scalers: &[Scaler]) -> Self {
        let column = |chunk: &[Scaler], of: fn(&Scaler) -> f32| {
            let mut column = [1.0; CHUNK];
            column.iter_mut().zip(chunk).for_each(|(x, scaler)| *x = of(scaler));
            column
        };
        let chunks = scalers.chunks(CHUNK).map(|chunk| Chunk {
            low: column(chunk, |s| s.low),
            high: column(chunk, |s| s.high),
            bottom: column(chunk, |s| s.bottom),
            origin: column(chunk, |s| s.origin),
            inner: column(chunk, |s| s.inner),
            outer: column(chunk, |s| s.outer),
            bent: column(chunk, |s| if s.scale == Scale::Linear { 0.0 } else { 1.0 }),
            has_bent: chunk.iter().any(|s| s.scale != Scale::Linear),
        });
        Self {
            chunks: chunks.collect(),
            has_plain_log: scalers.iter().any(|s| s.scale == Scale::Log),
            scalers: scalers.to_vec(),
        }
    }

    /// The observation of a row of natural values, which the caller gives in single precision: what
    /// [`Scaler::apply`] makes of them first.
    ///
    /// # Panics
    ///
    /// If the slices are not as long as the row.
    pub fn apply(&self, natural: &[f32], out: &mut [f32]) {
        assert_eq!((natural.len(), out.len()), (self.scalers.len(), self.scalers.len()), "a row");
        isa::run(Row { chunks: &self.chunks, natural, out });
    }

    /// Whether every transform can be worked on in single precision.
    pub fn is_single(&self) -> bool {
        !self.has_plain_log
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::View;

    fn signal(low: f64, high: f64, scale: Scale) -> Signal {
        let (name, text) = ("x", "");
        let (view, column) = (View::Operator, true);
        Signal { name, label: text, unit: text, low, high, scale, view, column, doc: text }
    }

    /// The transform as the documentation of [`Scale`] writes it.
    fn plain(low: f64, high: f64, scale: Scale, x: f64) -> f64 {
        let x = x.clamp(low, high);
        match scale {
            Scale::Linear if low < 0.0 => x / high,
            Scale::Linear => (x - low) / (high - low),
            Scale::Log => math::ln(x / low) / math::ln(high / low),
            Scale::Symlog { knee } => {
                x.signum() * math::ln_1p(x.abs() / knee) / math::ln_1p(high / knee)
            }
        }
    }

    #[test]
    fn single_precision_is_enough() {
        for (low, high, scale) in [
            (0.0, 40.0, Scale::Linear),
            (-1.0, 1.0, Scale::Linear),
            (1.0, 1e5, Scale::Log),
            (0.0, 1e5, Scale::Symlog { knee: 100.0 }),
            (0.0, 1.0, Scale::Symlog { knee: 0.001 }),
            (-1e3, 1e3, Scale::Symlog { knee: 0.1 }),
        ] {
            let scaler = signal(low, high, scale).scaler();
            for step in 0..=4000 {
                let far = low + (high - low) * f64::from(step) / 4000.0;
                for x in [far, far * 1e-3, far * 1e-6, far * 1e-9] {
                    let (found, expected) = (scaler.apply(x), plain(low, high, scale, x));
                    let error = (f64::from(found) - expected).abs();
                    assert!(error < 4e-7 * expected.abs() + 1e-12, "{scale:?} {x} {found}");
                }
            }
            assert_eq!(scaler.apply(0.0_f64.max(low)).to_bits() >> 31, 0, "no negative zero");
        }
    }

    #[test]
    fn many_are_as_one() {
        let scaler = signal(-1e3, 1e3, Scale::Symlog { knee: 0.1 }).scaler();
        let x: [f64; 33] = std::array::from_fn(|i| (i as f64 - 16.0).powi(3) * 0.37);
        let mut out = [0.0; 33];
        scaler.apply_all(&x, &mut out);
        assert_eq!(out, x.map(|x| scaler.apply(x)));
    }

    #[test]
    fn a_row_is_as_one_by_one() {
        let scalers: Vec<Scaler> = (0..45)
            .map(|i| match i % 4 {
                0 => signal(0.0, f64::from(i + 1), Scale::Linear),
                1 => signal(-1.0, 1.0, Scale::Linear),
                2 => signal(0.0, 1000.0, Scale::Symlog { knee: f64::from(i) * 0.1 }),
                _ => signal(-50.0, 50.0, Scale::Symlog { knee: 0.01 }),
            })
            .map(|signal| signal.scaler())
            .collect();
        let row = RowScaler::new(&scalers);
        assert!(row.is_single());
        for step in -200..200 {
            let natural: Vec<f64> = (0..45).map(|i| f64::from(step * (i + 3)) * 0.0137).collect();
            let single: Vec<f32> = natural.iter().map(|&x| x as f32).collect();
            let mut out = vec![7.0; 45];
            row.apply(&single, &mut out);
            for (i, scaler) in scalers.iter().enumerate() {
                assert_eq!(out[i].to_bits(), scaler.apply(natural[i]).to_bits(), "{i}");
            }
        }
        assert!(!RowScaler::new(&[signal(1.0, 9.0, Scale::Log).scaler()]).is_single());
    }
}
