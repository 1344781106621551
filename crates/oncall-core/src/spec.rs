//! `Spec`: the names, units, ranges and meanings of everything that goes in or comes out.
//!
//! The single source for Gymnasium spaces, observation scaling, action decoding, CSV columns,
//! documentation and the tables of the command line. A change here is a change of the environment:
//! see CONTRIBUTING.md for when an id's `-vN` rises.

use crate::digest::fnv1a;
use crate::math;
use crate::scaler::Scaler;
use std::fmt::Write as _;

/// What a dial is, and how the box space of -1..1 maps onto it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialKind {
    /// A whole number (rounded half to even); linear in the box space.
    Count,
    /// A real number; linear in the box space.
    Real,
    /// A real number; `ln(1 + x)` is linear in the box space.
    Log,
    /// On or off; in the box space above 1/3 is on, below -1/3 is off, between keeps.
    Switch,
    /// A button; in the box space above 0 presses. It has no standing value.
    Press,
}

impl DialKind {
    /// `count`, `real`, `log`, `switch` or `press`.
    pub fn name(self) -> &'static str {
        match self {
            DialKind::Count => "count",
            DialKind::Real => "real",
            DialKind::Log => "log",
            DialKind::Switch => "switch",
            DialKind::Press => "press",
        }
    }
}

/// One dial of the operator.
#[derive(Debug, Clone, PartialEq)]
pub struct Dial {
    /// Binding name; unit last.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// Natural unit; empty for a share, a switch or a press.
    pub unit: &'static str,
    /// What it is.
    pub kind: DialKind,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Where it stands when a scenario says nothing else.
    pub default: f64,
    /// Values of the multi-discrete space after index 0, which keeps (or does not press).
    pub stops: &'static [f64],
    /// One sentence.
    pub doc: &'static str,
}

/// In the box space, the half-width of the band around zero in which a switch keeps.
pub const SWITCH_DEAD_BAND: f64 = 1.0 / 3.0;

impl Dial {
    /// Size of this dial's part of the multi-discrete space.
    pub fn choices(&self) -> usize {
        self.stops.len() + 1
    }

    /// Whether a natural value is one that this dial can take.
    #[inline]
    pub fn accepts(&self, value: f64) -> bool {
        value >= self.low && value <= self.high
    }

    /// What the world stores for a natural value in range: counts rounded half to even,
    /// switches and presses 1 above 0.5 and else 0.
    #[inline]
    pub fn settle(&self, value: f64) -> f64 {
        match self.kind {
            DialKind::Count => value.round_ties_even(),
            DialKind::Switch | DialKind::Press => f64::from(u8::from(value > 0.5)),
            DialKind::Real | DialKind::Log => math::canonical_zero(value),
        }
    }

    /// Natural value of a stop; NaN for index 0 (keep), 0 for a press's index 0; `None` beyond.
    #[inline]
    pub fn from_stop(&self, index: usize) -> Option<f64> {
        match index {
            0 if self.kind == DialKind::Press => Some(0.0),
            0 => Some(f64::NAN),
            _ => self.stops.get(index - 1).copied(),
        }
    }

    /// The index whose stop is nearest to a natural value (NaN: 0, keep; the lower one of two
    /// that are equally near).
    pub fn nearest_stop(&self, value: f64) -> usize {
        if value.is_nan() || (self.kind == DialKind::Press && value <= 0.5) {
            return 0;
        }
        let mut best = 0;
        for (index, stop) in self.stops.iter().enumerate() {
            if (stop - value).abs() < (self.stops[best] - value).abs() {
                best = index;
            }
        }
        best + 1
    }

    /// Natural value of a number of the box space, -1..1; NaN keeps.
    #[inline]
    pub fn from_box(&self, x: f64) -> f64 {
        let share = 0.5 * (x + 1.0);
        match self.kind {
            DialKind::Switch if x > SWITCH_DEAD_BAND => 1.0,
            DialKind::Switch if x < -SWITCH_DEAD_BAND => 0.0,
            DialKind::Switch => f64::NAN,
            DialKind::Press => f64::from(u8::from(x > 0.0)),
            DialKind::Count => (self.low + (self.high - self.low) * share).round_ties_even(),
            // At the ends rounding may step over the range by one unit in the last place.
            DialKind::Real => {
                (self.low + (self.high - self.low) * share).clamp(self.low, self.high)
            }
            DialKind::Log => {
                let (low, high) = (math::ln_1p(self.low), math::ln_1p(self.high));
                math::exp_m1(low + (high - low) * share).clamp(self.low, self.high)
            }
        }
    }

    /// The number of the box space for a natural value; the inverse of [`Dial::from_box`] up to
    /// rounding. NaN (keep) becomes 0 for a switch; other kinds cannot keep and stay NaN.
    pub fn to_box(&self, value: f64) -> f64 {
        let linear =
            |low: f64, high: f64, x: f64| (2.0 * (x - low) / (high - low) - 1.0).clamp(-1.0, 1.0);
        match self.kind {
            DialKind::Switch if value.is_nan() => 0.0,
            DialKind::Switch | DialKind::Press => {
                if value > 0.5 {
                    1.0
                } else {
                    -1.0
                }
            }
            DialKind::Count | DialKind::Real => linear(self.low, self.high, value),
            DialKind::Log => {
                linear(math::ln_1p(self.low), math::ln_1p(self.high), math::ln_1p(value))
            }
        }
    }

    /// Logit of index 0 against zero for the others: an untrained policy then keeps with 90 % and
    /// presses with 5 %. A uniform one presses and flips every minute.
    pub fn initial_logit(&self) -> f64 {
        match self.kind {
            DialKind::Press => math::ln(0.95 / 0.05),
            _ => math::ln(0.90 / 0.10 * self.stops.len() as f64),
        }
    }
}

/// How a signal becomes a number of order one. Invertible between the ends, clipped at them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scale {
    /// `low..high` onto 0..1; where low is negative, `-high..high` onto -1..1 (then `low == -high`).
    Linear,
    /// `ln(x / low) / ln(high / low)`, onto 0..1; `low` is positive.
    Log,
    /// `sign(x) ln(1 + |x| / knee) / ln(1 + high / knee)`: linear near zero, logarithmic far from it.
    /// Onto 0..1, or onto -1..1 where low is negative (then `low == -high`).
    Symlog {
        /// Where the logarithm begins to bend.
        knee: f64,
    },
}

impl Scale {
    /// `linear`, `log` or `symlog`.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Linear => "linear",
            Scale::Log => "log",
            Scale::Symlog { .. } => "symlog",
        }
    }
}

/// Who sees a signal in the observation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum View {
    /// In both views: what the dashboard shows.
    Operator,
    /// In the full view only: state and truths that no operator has.
    Full,
    /// In neither; a column of the episode's record.
    Record,
}

impl View {
    /// `operator` or `full`; a record is not a view that one can ask for.
    pub fn name(self) -> &'static str {
        match self {
            View::Operator => "operator",
            View::Full => "full",
            View::Record => "record",
        }
    }

    /// The view of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        [View::Operator, View::Full].into_iter().find(|view| view.name() == name)
    }
}

/// One thing that can be seen.
#[derive(Debug, Clone, PartialEq)]
pub struct Signal {
    /// Binding name; unit last.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// Natural unit; empty for a share or a switch.
    pub unit: &'static str,
    /// Lower end of the observation's range; not a bound of the natural value.
    pub low: f64,
    /// Upper end of the observation's range; not a bound of the natural value.
    pub high: f64,
    /// How it is scaled.
    pub scale: Scale,
    /// Who sees it.
    pub view: View,
    /// Whether it is a column of an episode's CSV.
    pub column: bool,
    /// One sentence.
    pub doc: &'static str,
}

impl Signal {
    /// Ends of the scaled range: 0..1 or -1..1.
    pub fn scaled_range(&self) -> (f32, f32) {
        (if self.low < 0.0 { -1.0 } else { 0.0 }, 1.0)
    }

    /// The transform, with what does not depend on the value worked out.
    pub fn scaler(&self) -> Scaler {
        Scaler::new(self)
    }

    /// The observation of a natural value. Always inside [`Signal::scaled_range`].
    pub fn scale(&self, x: f64) -> f32 {
        self.scaler().apply(x)
    }

    /// The natural value of an observation; the inverse of [`Signal::scale`] between the ends.
    pub fn unscale(&self, y: f32) -> f64 {
        let y = f64::from(y);
        match self.scale {
            Scale::Linear if self.low < 0.0 => y * self.high,
            Scale::Linear => self.low + y * (self.high - self.low),
            Scale::Log => self.low * math::exp(y * math::ln(self.high / self.low)),
            Scale::Symlog { knee } => {
                let size = knee * math::exp_m1(y.abs() * math::ln_1p(self.high / knee));
                if y < 0.0 { -size } else { size }
            }
        }
    }
}

/// One part of the reward, in dollars; the reward is minus the sum of all.
#[derive(Debug, Clone, PartialEq)]
pub struct Term {
    /// Binding name; ends in `_usd`.
    pub name: &'static str,
    /// For people.
    pub label: &'static str,
    /// One sentence.
    pub doc: &'static str,
}

/// Everything that goes into a world or comes out of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Name of the world.
    pub world: &'static str,
    /// Rises with any change of a space or a trajectory.
    pub version: u32,
    /// Seconds of a tick, the shortest decision: 60 for a world that is played minute by minute.
    pub tick_s: u32,
    /// The action.
    pub dials: Vec<Dial>,
    /// What can be seen, in the order in which worlds write it.
    pub signals: Vec<Signal>,
    /// The reward's parts, in the order in which worlds write them.
    pub terms: Vec<Term>,
    /// The signal that safe-RL users constrain: share of the error budget burned in a step.
    pub cost: &'static str,
}

impl Spec {
    /// Indices into `signals` of an observation's columns: first what the operator sees, then, in
    /// the full view, the rest. [`View::Record`] gives all.
    pub fn columns_of(&self, view: View) -> Vec<usize> {
        let of = |wanted: View| {
            self.signals.iter().enumerate().filter(move |(_, s)| s.view == wanted).map(|(i, _)| i)
        };
        match view {
            View::Operator => of(View::Operator).collect(),
            View::Full => of(View::Operator).chain(of(View::Full)).collect(),
            View::Record => (0..self.signals.len()).collect(),
        }
    }

    /// Index of a signal.
    pub fn signal(&self, name: &str) -> Option<usize> {
        self.signals.iter().position(|signal| signal.name == name)
    }

    /// Index of a dial.
    pub fn dial(&self, name: &str) -> Option<usize> {
        self.dials.iter().position(|dial| dial.name == name)
    }

    /// Index of a reward term.
    pub fn term(&self, name: &str) -> Option<usize> {
        self.terms.iter().position(|term| term.name == name)
    }

    /// Hash of every name, range, stop and transform: weights and saved states carry it.
    pub fn hash(&self) -> u64 {
        let mut text = format!("{} {} {}\n", self.world, self.version, self.cost);
        for d in &self.dials {
            let _ = writeln!(text, "{} {:?} {} {} {:?}", d.name, d.kind, d.low, d.high, d.stops);
        }
        for s in &self.signals {
            let _ = writeln!(
                text,
                "{} {:?} {} {} {:?} {}",
                s.name, s.scale, s.low, s.high, s.view, s.column
            );
        }
        for t in &self.terms {
            let _ = writeln!(text, "{}", t.name);
        }
        fnv1a(text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signal(low: f64, high: f64, scale: Scale) -> Signal {
        Signal {
            name: "x",
            label: "",
            unit: "",
            low,
            high,
            scale,
            view: View::Operator,
            column: true,
            doc: "",
        }
    }

    fn dial(kind: DialKind, low: f64, high: f64, stops: &'static [f64]) -> Dial {
        Dial { name: "d", label: "", unit: "", kind, low, high, default: low, stops, doc: "" }
    }

    #[test]
    fn scales_invert_and_clip() {
        for (low, high, scale) in [
            (0.0, 40.0, Scale::Linear),
            (-1.0, 1.0, Scale::Linear),
            (1.0, 1e5, Scale::Log),
            (0.0, 1e5, Scale::Symlog { knee: 100.0 }),
            (-1e3, 1e3, Scale::Symlog { knee: 0.1 }),
        ] {
            let s = signal(low, high, scale);
            let ends = s.scaled_range();
            for step in 0..=100 {
                let x = low + (high - low) * f64::from(step) / 100.0;
                let y = s.scale(x);
                assert!(y >= ends.0 && y <= ends.1);
                let back = s.unscale(y);
                assert!((back - x).abs() <= 2e-6 * (high - low), "{scale:?} {x} {back}");
            }
            assert_eq!(s.scale(f64::MAX), ends.1);
            assert_eq!(s.scale(-f64::MAX), ends.0);
            assert_eq!((s.scale(low), s.scale(high)), ends);
        }
    }

    #[test]
    fn box_maps_onto_the_range_and_back() {
        let ttl = dial(DialKind::Log, 0.0, 600.0, &[]);
        assert_eq!((ttl.from_box(-1.0), ttl.from_box(1.0)), (0.0, 600.0));
        let count = dial(DialKind::Count, 1.0, 40.0, &[]);
        assert_eq!((count.from_box(-1.0), count.from_box(1.0)), (1.0, 40.0));
        let share = dial(DialKind::Real, 0.3, 0.95, &[]);
        assert_eq!((share.from_box(-1.0), share.from_box(1.0)), (0.3, 0.95));
        for d in [&ttl, &share] {
            for step in 0..=50 {
                let x = f64::from(step) / 25.0 - 1.0;
                assert!((d.to_box(d.from_box(x)) - x).abs() < 1e-12);
            }
        }
        let switch = dial(DialKind::Switch, 0.0, 1.0, &[0.0, 1.0]);
        assert!(switch.from_box(0.3).is_nan());
        assert_eq!((switch.from_box(0.4), switch.from_box(-0.4)), (1.0, 0.0));
        let press = dial(DialKind::Press, 0.0, 1.0, &[1.0]);
        assert_eq!((press.from_box(0.0), press.from_box(0.1)), (0.0, 1.0));
    }

    #[test]
    fn stops_keep_at_zero() {
        let count = dial(DialKind::Count, 1.0, 40.0, &[4.0, 6.0, 8.0]);
        assert!(count.from_stop(0).is_some_and(f64::is_nan));
        assert_eq!(count.from_stop(3), Some(8.0));
        assert_eq!(count.from_stop(4), None);
        assert_eq!([f64::NAN, 1.0, 5.0, 5.1, 99.0].map(|x| count.nearest_stop(x)), [0, 1, 1, 2, 3]);
        let press = dial(DialKind::Press, 0.0, 1.0, &[1.0]);
        assert_eq!((press.from_stop(0), press.from_stop(1)), (Some(0.0), Some(1.0)));
        assert_eq!((press.nearest_stop(0.0), press.nearest_stop(1.0)), (0, 1));
    }

    #[test]
    fn counts_round_half_to_even() {
        let count = dial(DialKind::Count, 1.0, 40.0, &[]);
        assert_eq!([2.5, 3.5, 10.4].map(|x| count.settle(x)), [2.0, 4.0, 10.0]);
        let switch = dial(DialKind::Switch, 0.0, 1.0, &[]);
        assert_eq!([0.5, 0.51].map(|x| switch.settle(x)), [0.0, 1.0]);
    }

    #[test]
    fn initial_logits_keep_nine_times_in_ten() {
        let p =
            |d: Dial| d.initial_logit().exp() / (d.initial_logit().exp() + d.stops.len() as f64);
        assert!((p(dial(DialKind::Count, 1.0, 40.0, &[4.0, 6.0, 8.0])) - 0.90).abs() < 1e-12);
        assert!((p(dial(DialKind::Press, 0.0, 1.0, &[1.0])) - 0.95).abs() < 1e-12);
    }
}
