//! Actions: checked for all rows first, decoded into dials block by block afterwards.

use crate::error::{VecError, check_len};
use oncall_core::isa::{self, Kernel};
use oncall_core::{Dial, DialKind, Spec};
use std::ops::Range;

/// The actions of one step, row-major, `n * dials` values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Actions<'a> {
    /// Indices of the multi-discrete space; 0 keeps, or does not press.
    Stops8(&'a [i8]),
    /// Indices of the multi-discrete space; 0 keeps, or does not press.
    Stops32(&'a [i32]),
    /// Indices of the multi-discrete space; 0 keeps, or does not press.
    Stops64(&'a [i64]),
    /// The box space, -1..=1.
    Box32(&'a [f32]),
    /// The box space, -1..=1.
    Box64(&'a [f64]),
    /// Natural units, every dial set.
    Dials(&'a [f64]),
    /// Natural units; NaN keeps a dial, or does not press.
    Policy(&'a [f64]),
}

impl<'a> Actions<'a> {
    fn len(&self) -> usize {
        match self {
            Actions::Stops8(values) => values.len(),
            Actions::Stops32(values) => values.len(),
            Actions::Stops64(values) => values.len(),
            Actions::Box32(values) => values.len(),
            Actions::Box64(values) | Actions::Dials(values) | Actions::Policy(values) => {
                values.len()
            }
        }
    }

    /// The actions from the value `start` on.
    pub(crate) fn skip(self, start: usize) -> Actions<'a> {
        match self {
            Actions::Stops8(values) => Actions::Stops8(&values[start..]),
            Actions::Stops32(values) => Actions::Stops32(&values[start..]),
            Actions::Stops64(values) => Actions::Stops64(&values[start..]),
            Actions::Box32(values) => Actions::Box32(&values[start..]),
            Actions::Box64(values) => Actions::Box64(&values[start..]),
            Actions::Dials(values) => Actions::Dials(&values[start..]),
            Actions::Policy(values) => Actions::Policy(&values[start..]),
        }
    }
}

/// Turns actions into what a world takes: natural units, settled, NaN for keep.
#[derive(Debug)]
pub(crate) struct Decoder {
    dials: Vec<Dial>,
    /// The settled stops of all dials, each after its index 0.
    stops: Vec<f64>,
    /// Where each dial's stops begin, and how many there are.
    ranges: Vec<(usize, usize)>,
    /// Choices of the dials of [`TOGETHER`] rows, one after the other.
    choices: Vec<u64>,
    /// Indices of the presses.
    presses: Vec<usize>,
}

/// Rows whose stops are checked together.
const TOGETHER: usize = 16;

/// A look at many stops, compiled for each set of instructions: whether one is not below its choices.
struct AnyBad<'a, T> {
    values: &'a [T],
    choices: &'a [u64],
}

impl<T: Copy + Into<i64>> Kernel for AnyBad<'_, T> {
    type Out = bool;

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) -> bool {
        // Without a branch, since nearly every batch is good. A negative index wraps to a huge one.
        let mut bad = false;
        for values in self.values.chunks(self.choices.len()) {
            for (&value, &choices) in values.iter().zip(self.choices) {
                bad |= value.into() as u64 >= choices;
            }
        }
        bad
    }
}

/// What a world stores for a natural value; NaN keeps a dial and does not press.
fn settle(dial: &Dial, value: f64) -> f64 {
    match (value.is_nan(), dial.kind) {
        (true, DialKind::Press) => 0.0,
        (true, _) => value,
        (false, _) => dial.settle(value),
    }
}

impl Decoder {
    pub(crate) fn new(spec: &Spec) -> Self {
        let dials = spec.dials.clone();
        let (mut stops, mut ranges) = (Vec::new(), Vec::new());
        for dial in &dials {
            ranges.push((stops.len(), dial.choices()));
            let natural = |index| dial.from_stop(index).unwrap_or(f64::NAN);
            stops.extend((0..dial.choices()).map(|index| settle(dial, natural(index))));
        }
        let is_press = |&dial: &usize| dials[dial].kind == DialKind::Press;
        let presses = (0..dials.len()).filter(is_press).collect();
        let row = dials.iter().map(|dial| dial.choices() as u64);
        let choices = row.cycle().take(dials.len() * TOGETHER).collect();
        Self { dials, stops, ranges, choices, presses }
    }

    /// Checks the length and every value.
    pub(crate) fn check(&self, actions: Actions<'_>, rows: usize) -> Result<(), VecError> {
        check_len("actions", actions.len(), rows, self.dials.len())?;
        match actions {
            Actions::Stops8(values) => self.check_stops(values),
            Actions::Stops32(values) => self.check_stops(values),
            Actions::Stops64(values) => self.check_stops(values),
            Actions::Box32(values) => self.check_box(values),
            Actions::Box64(values) => self.check_box(values),
            Actions::Dials(values) => self.check_dials(values, false),
            Actions::Policy(values) => self.check_dials(values, true),
        }
    }

    fn check_stops<T: Copy + Into<i64>>(&self, values: &[T]) -> Result<(), VecError> {
        if !isa::run(AnyBad { values, choices: &self.choices }) {
            return Ok(());
        }
        // Gone through again to name the value.
        let is_bad = |value: T, choices: usize| value.into() as u64 >= choices as u64;
        self.name_bad(
            values,
            |dial, value| is_bad(value, dial.choices()),
            |value| value.into().to_string(),
            |dial| format!("an index in 0..={}", dial.stops.len()),
        )
    }

    fn check_box<T: Copy + Into<f64>>(&self, values: &[T]) -> Result<(), VecError> {
        let is_bad = |value: T| !(-1.0..=1.0).contains(&value.into());
        if !values.iter().any(|&value| is_bad(value)) {
            return Ok(());
        }
        self.name_bad(
            values,
            |_, value| is_bad(value),
            |value| value.into().to_string(),
            |_| "-1..=1".to_owned(),
        )
    }

    fn check_dials(&self, values: &[f64], may_keep: bool) -> Result<(), VecError> {
        self.name_bad(
            values,
            |dial, value| !(dial.accepts(value) || may_keep && value.is_nan()),
            |value| value.to_string(),
            |dial| {
                let unit = if dial.unit.is_empty() { "" } else { " " };
                let keep = if may_keep { ", or NaN to keep" } else { "" };
                format!("{}..={}{unit}{}{keep}", dial.low, dial.high, dial.unit)
            },
        )
    }

    /// The error that names the first bad value, if there is one.
    fn name_bad<T: Copy>(
        &self,
        values: &[T],
        is_bad: impl Fn(&Dial, T) -> bool,
        show: impl Fn(T) -> String,
        expected: impl Fn(&Dial) -> String,
    ) -> Result<(), VecError> {
        for (row, values) in values.chunks_exact(self.dials.len()).enumerate() {
            for (&value, dial) in values.iter().zip(&self.dials) {
                if is_bad(dial, value) {
                    let name = format!("actions: row {row}, {}", dial.name);
                    return Err(VecError::value(name, show(value), expected(dial)));
                }
            }
        }
        Ok(())
    }

    /// Writes the dials of some rows of checked actions, by dial and lane, `lanes` of them a dial.
    pub(crate) fn decode(
        &self,
        actions: Actions<'_>,
        rows: Range<usize>,
        lanes: usize,
        out: &mut [f64],
    ) {
        let span = rows.start * self.dials.len()..rows.end * self.dials.len();
        match actions {
            Actions::Stops8(values) => self.decode_stops(&values[span], lanes, out),
            Actions::Stops32(values) => self.decode_stops(&values[span], lanes, out),
            Actions::Stops64(values) => self.decode_stops(&values[span], lanes, out),
            Actions::Box32(values) => self.decode_box(&values[span], lanes, out),
            Actions::Box64(values) => self.decode_box(&values[span], lanes, out),
            Actions::Dials(values) | Actions::Policy(values) => {
                for (lane, values) in values[span].chunks_exact(self.dials.len()).enumerate() {
                    let columns = out[lane..].iter_mut().step_by(lanes);
                    for ((dial, &value), out) in self.dials.iter().zip(values).zip(columns) {
                        *out = settle(dial, value);
                    }
                }
            }
        }
    }

    fn decode_stops<T: Copy + Into<i64>>(&self, values: &[T], lanes: usize, out: &mut [f64]) {
        // By row and not by dial: the stops of a row are neighbours. Places are counted up, since an
        // iterator with steps begins with a division.
        for (lane, values) in values.chunks_exact(self.dials.len()).enumerate() {
            let mut place = lane;
            for (&(start, _), &value) in self.ranges.iter().zip(values) {
                out[place] = self.stops[start + value.into() as usize];
                place += lanes;
            }
        }
    }

    fn decode_box<T: Copy + Into<f64>>(&self, values: &[T], lanes: usize, out: &mut [f64]) {
        for (lane, values) in values.chunks_exact(self.dials.len()).enumerate() {
            let columns = out[lane..].iter_mut().step_by(lanes);
            for ((dial, &value), out) in self.dials.iter().zip(values).zip(columns) {
                *out = settle(dial, dial.from_box(value.into()));
            }
        }
    }

    /// Lets go of the presses in dials that stand by dial and lane.
    pub(crate) fn release(&self, dials: &mut [f64], lanes: usize) {
        for &press in &self.presses {
            dials[press * lanes..][..lanes].fill(0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use oncall_core::World;

    fn decoder() -> Decoder {
        Decoder::new(Toy::<1>::new().spec())
    }

    fn decode(actions: Actions<'_>) -> Vec<String> {
        let decoder = decoder();
        decoder.check(actions, 1).unwrap();
        let mut out = vec![7.0; decoder.dials.len()];
        decoder.decode(actions, 0..1, 1, &mut out);
        out.iter().map(ToString::to_string).collect()
    }

    // The toy's dials: level (count 1..40), gain (real -2..2), heat (log 0..600), mode, push.

    #[test]
    fn every_form_decodes() {
        let kept = ["NaN", "NaN", "NaN", "NaN", "0"];
        assert_eq!(decode(Actions::Stops8(&[0; 5])), kept);
        assert_eq!(decode(Actions::Policy(&[f64::NAN; 5])), kept);
        let set = ["8", "-1", "60", "0", "1"];
        assert_eq!(decode(Actions::Stops8(&[3, 1, 2, 1, 1])), set);
        assert_eq!(decode(Actions::Stops32(&[3, 1, 2, 1, 1])), set);
        assert_eq!(decode(Actions::Stops64(&[3, 1, 2, 1, 1])), set);
        assert_eq!(decode(Actions::Dials(&[8.4, -1.0, 60.0, 0.5, 0.6])), set);
        let ends = ["40", "-2", "600", "NaN", "1"];
        assert_eq!(decode(Actions::Box32(&[1.0, -1.0, 1.0, 0.3, 0.1])), ends);
        assert_eq!(decode(Actions::Box64(&[1.0, -1.0, 1.0, 0.3, 0.1])), ends);
        // Half to even, and no negative zero.
        let settled = ["2", "0", "0", "1", "0"];
        assert_eq!(decode(Actions::Dials(&[2.5, -0.0, -0.0, 0.6, 0.5])), settled);
    }

    #[test]
    fn presses_are_released() {
        // Two lanes.
        let mut dials = [8.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];
        decoder().release(&mut dials, 2);
        assert_eq!(dials, [8.0, 9.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, 0.0]);
    }

    #[test]
    fn rows_become_lanes() {
        let rows = [3, 1, 2, 1, 1, 4, 2, 1, 2, 0, 1, 1, 1, 1, 0_i8];
        let mut out = vec![7.0; 5 * 4];
        decoder().decode(Actions::Stops8(&rows), 1..3, 4, &mut out);
        assert_eq!(out[..4], [16.0, 2.0, 7.0, 7.0], "levels of rows 1 and 2");
        assert_eq!(out[16..], [0.0, 0.0, 7.0, 7.0]);
    }

    #[test]
    fn bad_values_are_named() {
        let message = |actions| decoder().check(actions, 1).unwrap_err().to_string();
        for (found, expected) in [
            (
                message(Actions::Stops8(&[0, 0, 0, 3, 0])),
                "actions: row 0, mode = 3: expected an index in 0..=2",
            ),
            (
                message(Actions::Stops64(&[-1, 0, 0, 0, 0])),
                "actions: row 0, level = -1: expected an index in 0..=4",
            ),
            (
                message(Actions::Stops64(&[0, i64::MAX, 0, 0, 0])),
                "actions: row 0, gain = 9223372036854775807: expected an index in 0..=3",
            ),
            (
                message(Actions::Box32(&[0.0, 1.5, 0.0, 0.0, 0.0])),
                "actions: row 0, gain = 1.5: expected -1..=1",
            ),
            (
                message(Actions::Box64(&[0.0, 0.0, f64::NAN, 0.0, 0.0])),
                "actions: row 0, heat = NaN: expected -1..=1",
            ),
            (
                message(Actions::Dials(&[1.0, 0.0, 600.5, 0.0, 0.0])),
                "actions: row 0, heat = 600.5: expected 0..=600 s",
            ),
            (
                message(Actions::Dials(&[1.0, f64::NAN, 0.0, 0.0, 0.0])),
                "actions: row 0, gain = NaN: expected -2..=2",
            ),
            (
                message(Actions::Policy(&[1.0, f64::INFINITY, 0.0, 0.0, 0.0])),
                "actions: row 0, gain = inf: expected -2..=2, or NaN to keep",
            ),
            (message(Actions::Stops8(&[0; 4])), "actions: 4 values, expected 5 (1 rows of 5)"),
        ] {
            assert_eq!(found, expected);
        }
    }
}
