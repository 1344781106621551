//! Parameters of the policies: the single listing that parsing, help texts and the search are made
//! from.

use oncall_core::{Dial, DialKind, math};
use std::borrow::Cow;

/// One parameter of a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Name; unit last.
    pub name: Cow<'static, str>,
    /// Natural unit; empty for a share, a count or a switch.
    pub unit: &'static str,
    /// Lowest value.
    pub low: f64,
    /// Highest value.
    pub high: f64,
    /// Value when nothing is said; `None` leaves a dial where it stands.
    pub default: Option<f64>,
    /// Whole numbers only.
    pub whole: bool,
    /// A search moves along `ln(1 + x)` instead of `x`.
    pub log: bool,
    /// One sentence.
    pub doc: &'static str,
}

impl Param {
    /// The parameter that sets a dial: its name, range and default.
    pub(crate) fn of(dial: &Dial) -> Self {
        Self {
            name: Cow::Borrowed(dial.name),
            unit: dial.unit,
            low: dial.low,
            high: dial.high,
            default: Some(dial.default),
            whole: !matches!(dial.kind, DialKind::Real | DialKind::Log),
            log: dial.kind == DialKind::Log,
            doc: dial.doc,
        }
    }

    /// Whether the parameter can take a value.
    pub fn accepts(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value) && (!self.whole || value.fract() == 0.0)
    }

    /// What a value must be, in words.
    pub fn expected(&self) -> String {
        let kind = if self.whole { "a whole number" } else { "a number" };
        let unit = if self.unit.is_empty() { String::new() } else { format!(" {}", self.unit) };
        format!("{kind} from {} to {}{unit}", self.low, self.high)
    }

    /// The value at a share 0..1 of the range; whole numbers are rounded.
    pub fn from_unit(&self, share: f64) -> f64 {
        let share = share.clamp(0.0, 1.0);
        let value = if self.log {
            let (low, high) = (math::ln_1p(self.low), math::ln_1p(self.high));
            math::exp_m1(low + (high - low) * share)
        } else {
            self.low + (self.high - self.low) * share
        };
        let value = if self.whole { value.round_ties_even() } else { value };
        value.clamp(self.low, self.high)
    }

    /// The share of the range at which a value lies; the inverse of [`Param::from_unit`].
    pub fn to_unit(&self, value: f64) -> f64 {
        let of = |x: f64| if self.log { math::ln_1p(x) } else { x };
        ((of(value) - of(self.low)) / (of(self.high) - of(self.low))).clamp(0.0, 1.0)
    }
}

macro_rules! whole {
    () => {
        false
    };
    (whole) => {
        true
    };
}
pub(crate) use whole;

/// A record of parameters with its table. A parameter is
/// `name: default, low ..= high, unit[, whole]; doc`; without a default (`_`) its dial is kept.
macro_rules! params {
    (@default _) => { None };
    (@default $value:literal) => { Some($value as f64) };
    ($(#[doc = $about:literal])* $Name:ident {
        $($field:ident: $default:tt, $low:literal ..= $high:literal, $unit:literal $(, $whole:ident)?; $doc:literal)*
    }) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub(crate) struct $Name {
            $(#[doc = $doc] pub(crate) $field: f64,)*
        }

        impl $Name {
            /// The table of parameters.
            pub(crate) fn table() -> Vec<$crate::param::Param> {
                vec![$($crate::param::Param {
                    name: std::borrow::Cow::Borrowed(stringify!($field)),
                    unit: $unit,
                    low: f64::from($low),
                    high: f64::from($high),
                    default: $crate::param::params!(@default $default),
                    whole: $crate::param::whole!($($whole)?),
                    log: false,
                    doc: $doc,
                },)*]
            }

            /// The record of a full row of values in the order of the table.
            pub(crate) fn from_values(values: &[f64]) -> Self {
                let mut values = values.iter().copied();
                Self { $($field: values.next().unwrap_or(f64::NAN),)* }
            }
        }
    };
}
pub(crate) use params;

#[cfg(test)]
mod tests {
    use super::Param;

    params! {
        /// Two.
        Pair {
            first: 3, 1 ..= 5, "min", whole; "One."
            second: _, 0.5 ..= 2, ""; "Two."
        }
    }

    #[test]
    fn the_table_is_the_record() {
        let table = Pair::table();
        assert_eq!(Pair::from_values(&[2.0, 0.7]), Pair { first: 2.0, second: 0.7 });
        assert_eq!((table[0].default, table[1].default), (Some(3.0), None));
        assert_eq!(table[0].expected(), "a whole number from 1 to 5 min");
        assert!(table[0].accepts(4.0) && !table[0].accepts(4.5) && !table[0].accepts(6.0));
        assert!(!table[1].accepts(f64::NAN) && !table[1].accepts(f64::INFINITY));
        assert_eq!([0.0, 0.3, 1.0, 9.0].map(|x| table[0].from_unit(x)), [1.0, 2.0, 5.0, 5.0]);
        assert_eq!(table[1].to_unit(table[1].from_unit(0.25)), 0.25);
        let log = Param { low: 10.0, high: 2000.0, log: true, ..table[1].clone() };
        assert!((log.from_unit(0.0) - 10.0).abs() + (log.from_unit(1.0) - 2000.0).abs() < 1e-9);
        let middle = log.from_unit(0.5);
        assert!((140.0..160.0).contains(&middle) && (log.to_unit(middle) - 0.5).abs() < 1e-12);
    }
}
