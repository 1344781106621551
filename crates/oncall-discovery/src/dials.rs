//! The dials: what an operator of the control plane can turn, with ranges, units and defaults.
//!
//! Values are in the unit that the name ends with. [`Dials::validate`] names the field, the value and what was
//! expected, and looks at the rules between fields as well.

use serde::{Deserialize, Serialize};

use crate::types::Span;

/// What kind of number a dial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Seconds.
    S,
    /// Milliseconds.
    Ms,
    /// A whole number of things.
    Count,
    /// Percent, 0 to 100.
    Percent,
    /// A rate, as the name says.
    Number,
    /// One of a few choices, numbered.
    Choice,
}

impl Kind {
    /// Whether only whole numbers make sense.
    pub const fn whole(self) -> bool {
        matches!(self, Self::Count | Self::Choice)
    }
}

/// One row of the table of dials.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DialRow {
    /// Name of the field, unit last.
    pub name: &'static str,
    /// Kind of number.
    pub kind: Kind,
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Default.
    pub default: f64,
    /// One sentence.
    pub help: &'static str,
}

/// Why a set of dials was refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DialError {
    /// Outside its range, or no number.
    #[error("{name}: {value}; expected {min} to {max}")]
    Range {
        /// The field.
        name: &'static str,
        /// What was given.
        value: f64,
        /// Smallest value.
        min: f64,
        /// Largest value.
        max: f64,
    },
    /// A fraction of something that cannot be divided.
    #[error("{name}: {value}; expected a whole number")]
    Whole {
        /// The field.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// A rule between two fields.
    #[error("{name}: {value}; expected {rule} ({other})")]
    Pair {
        /// The field.
        name: &'static str,
        /// What was given.
        value: f64,
        /// The rule.
        rule: &'static str,
        /// The other field's value.
        other: f64,
    },
    /// No such dial.
    #[error("dial `{0}`; expected one of the names of the table of dials")]
    Unknown(String),
}

macro_rules! dials {
    ($($name:ident: $kind:ident, $min:expr, $max:expr, $default:expr, $help:expr;)*) => {
        /// All dials, each in the unit that its name ends with.
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        pub struct Dials {
            $(#[doc = $help] pub $name: f64,)*
        }

        impl Default for Dials {
            fn default() -> Self {
                Self { $($name: $default,)* }
            }
        }

        impl Dials {
            /// The table, in the order of the fields.
            pub const TABLE: &'static [DialRow] = &[$(DialRow {
                name: stringify!($name),
                kind: Kind::$kind,
                min: $min,
                max: $max,
                default: $default,
                help: $help,
            },)*];

            /// The values in the order of the table.
            pub fn values(&self) -> [f64; Self::TABLE.len()] {
                [$(self.$name,)*]
            }

            /// A field by its place in the table.
            fn field(&mut self, index: usize) -> Option<&mut f64> {
                [$(&mut self.$name,)*].into_iter().nth(index)
            }
        }
    };
}

dials! {
    probe_interval_s: S, 1.0, 15.0, 5.0, "Time between two active probes of an instance.";
    probe_timeout_s: S, 0.1, 5.0, 1.0, "How long a probe waits for an answer; shorter than the interval.";
    failure_threshold: Count, 1.0, 6.0, 3.0, "Failed probes in a row that make an instance unhealthy.";
    recovery_threshold: Count, 1.0, 6.0, 2.0, "Successful probes in a row that bring it back.";
    probe_jitter_pct: Percent, 0.0, 50.0, 10.0, "Spread of the probe times, of the interval.";
    confirming_probers: Count, 1.0, 3.0, 1.0, "Probers that must agree before a removal.";
    dependency_mode: Choice, 0.0, 2.0, 1.0, "Dependencies that count in readiness: 0 none, 1 the critical ones, 2 all.";
    guard_share_pct: Percent, 5.0, 100.0, 30.0, "Share of a service's READY set that health may remove within 60 s.";
    lease_ttl_s: S, 10.0, 120.0, 30.0, "How long a lease lives without renewal.";
    renewal_interval_s: S, 3.0, 30.0, 10.0, "Time between two renewals; at most a third of the lease.";
    coalesce_removals_ms: Ms, 0.0, 1_000.0, 100.0, "How long a removal may wait for others of its cell.";
    coalesce_additions_ms: Ms, 0.0, 5_000.0, 500.0, "How long an addition may wait for others of its cell.";
    delta_retention_s: S, 10.0, 1_800.0, 120.0, "How far back a relay can bridge a gap by delta.";
    snapshot_budget_mb_s: Number, 10.0, 2_000.0, 200.0, "Bytes of snapshots that a region's relays may send, in MB/s.";
    admission_per_s: Number, 20.0, 2_000.0, 200.0, "Connections that a region's relays accept each second.";
    reconnect_base_s: S, 0.1, 10.0, 1.0, "First back-off of a proxy that lost its relay.";
    reconnect_cap_s: S, 5.0, 300.0, 30.0, "Largest back-off; at least the first.";
    reconnect_jitter_pct: Percent, 0.0, 100.0, 50.0, "Random part of the back-off.";
    head_heartbeat_s: S, 1.0, 60.0, 10.0, "Time between two heartbeats that name the heads of all cells.";
    ejection_errors: Count, 1.0, 10.0, 3.0, "Errors in a row after which a proxy ejects an endpoint.";
    ejection_base_s: S, 5.0, 300.0, 30.0, "First ejection time; it grows with each repetition.";
    ejected_share_max_pct: Percent, 0.0, 100.0, 30.0, "Share of a cell that a proxy may eject.";
    connect_timeout_ms: Ms, 50.0, 2_000.0, 250.0, "How long a proxy waits for a connection.";
    retries_max: Count, 0.0, 3.0, 1.0, "Retries of a request.";
    retry_budget_pct: Percent, 0.0, 50.0, 20.0, "Retries as a share of requests.";
    drain_period_s: S, 0.0, 300.0, 30.0, "How long a draining process waits for its work before it exits.";
    accept_grace_s: S, 0.0, 10.0, 3.0, "How long a process takes new work after it withdrew readiness.";
    failover_trigger_pct: Percent, 0.0, 100.0, 30.0, "Local READY share of the target below which reads fail over.";
    failover_cap_pct: Percent, 0.0, 100.0, 30.0, "Share of the declared remote spare that failover may use.";
    snapshot_age_max_ordinary_s: S, 660.0, 3_600.0, 1_800.0, "Oldest snapshot that an ordinary service may be routed by.";
    snapshot_age_max_strict_s: S, 60.0, 3_600.0, 600.0, "Oldest snapshot that a strict service may be routed by.";
    rollout_pace_per_s: Number, 10.0, 200.0, 83.0, "Endpoints that a rollout replaces each second.";
    relays_per_region: Count, 4.0, 64.0, 16.0, "Relays of a region; a change takes 2 minutes.";
}

impl Dials {
    /// From values in the order of the table; validated.
    pub fn from_values(values: &[f64; Self::TABLE.len()]) -> Result<Self, DialError> {
        let mut dials = Self::default();
        for (index, &value) in values.iter().enumerate() {
            if let Some(field) = dials.field(index) {
                *field = value;
            }
        }
        dials.validate()?;
        Ok(dials)
    }

    /// The same with one dial turned, by name; validated.
    pub fn with(&self, name: &str, value: f64) -> Result<Self, DialError> {
        let index = Self::TABLE.iter().position(|row| row.name == name);
        let mut dials = *self;
        let field = index.and_then(|index| dials.field(index));
        *field.ok_or_else(|| DialError::Unknown(name.to_owned()))? = value;
        dials.validate()?;
        Ok(dials)
    }

    /// Whether every dial is in its range and the rules between dials hold; the first that does not is named.
    pub fn validate(&self) -> Result<(), DialError> {
        for (row, value) in Self::TABLE.iter().zip(self.values()) {
            if !(row.min..=row.max).contains(&value) {
                let (min, max) = (row.min, row.max);
                return Err(DialError::Range { name: row.name, value, min, max });
            }
            if row.kind.whole() && value.fract() != 0.0 {
                return Err(DialError::Whole { name: row.name, value });
            }
        }
        let pair = |name, value, rule, other| Err(DialError::Pair { name, value, rule, other });
        if self.probe_timeout_s >= self.probe_interval_s {
            let rule = "less than probe_interval_s";
            return pair("probe_timeout_s", self.probe_timeout_s, rule, self.probe_interval_s);
        }
        if self.renewal_interval_s * 3.0 > self.lease_ttl_s {
            let rule = "at most a third of lease_ttl_s";
            return pair("renewal_interval_s", self.renewal_interval_s, rule, self.lease_ttl_s);
        }
        if self.reconnect_base_s > self.reconnect_cap_s {
            let rule = "at most reconnect_cap_s";
            return pair("reconnect_base_s", self.reconnect_base_s, rule, self.reconnect_cap_s);
        }
        Ok(())
    }

    /// A dial in seconds as a span, rounded to the microsecond.
    pub fn span_s(value_s: f64) -> Span {
        Span((value_s * 1e6).round() as u64)
    }

    /// A dial in milliseconds as a span, rounded to the microsecond.
    pub fn span_ms(value_ms: f64) -> Span {
        Span((value_ms * 1e3).round() as u64)
    }

    /// Time from a crash until the last of the failed probes is known, at worst: an instance that died right after
    /// a probe passes `n` intervals, each late by the jitter, and the last probe's timeout (R108, R133).
    /// Propagation comes on top.
    pub fn detection_worst(&self) -> Span {
        let interval_s = self.probe_interval_s * (1.0 + self.probe_jitter_pct / 100.0);
        Self::span_s(interval_s * self.failure_threshold + self.probe_timeout_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_in_the_table() {
        let dials = Dials::default();
        assert_eq!(dials.validate(), Ok(()));
        assert_eq!(Dials::TABLE.len(), 33);
        assert_eq!(Dials::from_values(&dials.values()), Ok(dials));
        for (row, value) in Dials::TABLE.iter().zip(dials.values()) {
            assert_eq!(row.default.to_bits(), value.to_bits(), "{}", row.name);
        }
    }

    #[test]
    fn every_dial_is_checked_and_named() {
        for row in Dials::TABLE {
            for bad in [row.min - 0.5, row.max + 0.5, f64::NAN, f64::INFINITY] {
                let error = Dials::default().with(row.name, bad).unwrap_err();
                assert!(error.to_string().starts_with(row.name), "{error}");
            }
            if row.kind.whole() && row.max > row.min {
                let error = Dials::default().with(row.name, row.min + 0.5).unwrap_err();
                assert!(matches!(error, DialError::Whole { name, .. } if name == row.name));
            }
        }
        let error = Dials::default().with("probe_interval", 5.0).unwrap_err();
        assert_eq!(error, DialError::Unknown("probe_interval".into()));
    }

    #[test]
    fn rules_between_dials_are_checked() {
        let default = Dials::default();
        let error = default.with("probe_interval_s", 1.0).unwrap_err().to_string();
        assert_eq!(error, "probe_timeout_s: 1; expected less than probe_interval_s (1)");
        let error = default.with("lease_ttl_s", 20.0).unwrap_err().to_string();
        assert_eq!(error, "renewal_interval_s: 10; expected at most a third of lease_ttl_s (20)");
        let slow = Dials { reconnect_base_s: 10.0, reconnect_cap_s: 5.0, ..default };
        let error = slow.validate().unwrap_err().to_string();
        assert_eq!(error, "reconnect_base_s: 10; expected at most reconnect_cap_s (5)");
    }

    #[test]
    fn the_default_probes_miss_their_own_objective() {
        // Conclusion 2 of the specification: 5 s x 3 with a timeout of 1 s cannot meet 15 s at worst.
        let without_jitter = Dials { probe_jitter_pct: 0.0, ..Dials::default() };
        assert_eq!(without_jitter.detection_worst(), Span::from_s(16));
        assert!(Dials::default().detection_worst() > Span::from_s(16));
        let tuned = Dials {
            probe_interval_s: 2.0,
            failure_threshold: 5.0,
            probe_timeout_s: 0.5,
            ..Dials::default()
        };
        assert_eq!(tuned.detection_worst(), Span::from_ms(11_500));
    }
}
