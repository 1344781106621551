//! Time: whole microseconds since the world began. Nobody here reads a clock; the driver says what time it is.

use serde::{Deserialize, Serialize};

/// A moment, in microseconds since the world began.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Time(pub u64);

/// A length of time, in microseconds.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Span(pub u64);

impl Time {
    /// The beginning.
    pub const ZERO: Self = Self(0);
    /// Later than everything that happens: "never".
    pub const NEVER: Self = Self(u64::MAX);

    /// So many whole milliseconds after the beginning.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// So many whole seconds after the beginning.
    pub const fn from_s(s: u64) -> Self {
        Self(s * 1_000_000)
    }

    /// Whole milliseconds since the beginning, rounded down, as tables keep them (49 days fit).
    pub const fn ms(self) -> u32 {
        let ms = self.0 / 1_000;
        if ms > u32::MAX as u64 { u32::MAX } else { ms as u32 }
    }

    /// Seconds since the beginning, for people and figures.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The later moment; saturates at [`Time::NEVER`].
    #[must_use]
    pub const fn after(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// The earlier moment; saturates at the beginning.
    #[must_use]
    pub const fn before(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }

    /// How long ago `earlier` was; zero if it lies ahead.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many milliseconds.
    pub const fn from_ms(ms: u64) -> Self {
        Self(ms * 1_000)
    }

    /// So many whole seconds.
    pub const fn from_s(s: u64) -> Self {
        Self(s * 1_000_000)
    }

    /// Whole milliseconds, rounded down.
    pub const fn ms(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds, for people and figures.
    pub fn as_s(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_and_rounds_down() {
        assert_eq!(Time::from_s(2).after(Span::from_ms(1)).ms(), 2_001);
        assert_eq!(Time::from_ms(1).before(Span::from_s(1)), Time::ZERO);
        assert_eq!(Time::from_ms(1).since(Time::from_ms(3)), Span::ZERO);
        assert_eq!(Time::NEVER.after(Span::from_s(1)), Time::NEVER);
        assert_eq!(Time::NEVER.ms(), u32::MAX);
        assert_eq!(Time(1_999).ms(), 1);
    }
}
