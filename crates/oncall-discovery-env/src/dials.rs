//! The operator's dials: the run-time dials of the control plane as the engine knows them, how fast they
//! may be turned, and how rules between them are kept.

use oncall_core::{Dial, DialKind};
use oncall_discovery::dials::{Dials, Kind};

/// Number of dials.
pub const COUNT: usize = Dials::TABLE.len();

/// Most that a dial moves in a tick of 10 s, in its coordinate of the box space, which is 2 wide.
pub const STEP_MAX: f64 = 0.5;

/// Share of the interval between probes that a probe may wait at most.
const TIMEOUT_SHARE_MAX: f64 = 0.9;

/// A little less than a third, so that three of it never exceed the whole by rounding.
const THIRD: f64 = 0.333_333;

const PERCENT: &[f64] = &[0.0, 25.0, 50.0, 75.0, 100.0];

/// Label, unit, kind and stops of each dial, in the order of [`Dials::TABLE`].
const FACES: [(&str, &str, DialKind, &[f64]); COUNT] = [
    ("Probe interval", "s", DialKind::Log, &[1.0, 2.0, 3.0, 4.0, 5.0, 7.5, 10.0, 15.0]),
    ("Probe timeout", "s", DialKind::Log, &[0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0]),
    ("Failure threshold", "", DialKind::Count, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ("Recovery threshold", "", DialKind::Count, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    ("Probe jitter", "%", DialKind::Real, &[0.0, 5.0, 10.0, 20.0, 30.0, 50.0]),
    ("Confirming probers", "", DialKind::Count, &[1.0, 2.0, 3.0]),
    ("Dependencies in readiness", "", DialKind::Count, &[0.0, 1.0, 2.0]),
    ("Capacity guard", "%", DialKind::Real, &[5.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0]),
    ("Lease", "s", DialKind::Log, &[10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0]),
    ("Renewal interval", "s", DialKind::Log, &[3.0, 5.0, 7.5, 10.0, 15.0, 20.0, 30.0]),
    (
        "Coalescing of removals",
        "ms",
        DialKind::Log,
        &[0.0, 10.0, 50.0, 100.0, 200.0, 350.0, 500.0, 1000.0],
    ),
    (
        "Coalescing of additions",
        "ms",
        DialKind::Log,
        &[0.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 5000.0],
    ),
    (
        "Delta retention",
        "s",
        DialKind::Log,
        &[10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0],
    ),
    (
        "Snapshot budget",
        "MB/s",
        DialKind::Log,
        &[10.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0],
    ),
    (
        "Reconnect admission",
        "1/s",
        DialKind::Log,
        &[20.0, 50.0, 100.0, 200.0, 400.0, 800.0, 2000.0],
    ),
    ("Reconnect base", "s", DialKind::Log, &[0.1, 0.25, 0.5, 1.0, 2.0, 5.0, 10.0]),
    ("Reconnect cap", "s", DialKind::Log, &[5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0]),
    ("Reconnect jitter", "%", DialKind::Real, PERCENT),
    ("Head heartbeat", "s", DialKind::Log, &[1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0]),
    ("Errors to eject", "", DialKind::Count, &[1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0]),
    ("Ejection time", "s", DialKind::Log, &[5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0]),
    ("Ejected share", "%", DialKind::Real, &[0.0, 10.0, 20.0, 30.0, 50.0, 75.0, 100.0]),
    ("Connect timeout", "ms", DialKind::Log, &[50.0, 100.0, 250.0, 500.0, 1000.0, 2000.0]),
    ("Retries", "", DialKind::Count, &[0.0, 1.0, 2.0, 3.0]),
    ("Retry budget", "%", DialKind::Real, &[0.0, 5.0, 10.0, 20.0, 35.0, 50.0]),
    ("Drain period", "s", DialKind::Log, &[0.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0]),
    ("Accept grace", "s", DialKind::Real, &[0.0, 1.0, 2.0, 3.0, 5.0, 10.0]),
    ("Failover trigger", "%", DialKind::Real, &[0.0, 15.0, 30.0, 50.0, 70.0, 85.0, 100.0]),
    ("Failover cap", "%", DialKind::Real, &[0.0, 15.0, 30.0, 50.0, 75.0, 100.0]),
    (
        "Oldest snapshot, ordinary",
        "s",
        DialKind::Log,
        &[660.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0],
    ),
    ("Oldest snapshot, strict", "s", DialKind::Log, &[60.0, 300.0, 600.0, 900.0, 1800.0, 3600.0]),
    ("Rollout pace", "1/s", DialKind::Log, &[10.0, 20.0, 40.0, 60.0, 83.0, 120.0, 200.0]),
    ("Relays a region", "", DialKind::Count, &[4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0]),
];

/// The table of dials, in the order of [`Dials::TABLE`]: names, ranges and defaults are its own.
pub fn table() -> Vec<Dial> {
    let faces = Dials::TABLE.iter().zip(FACES);
    faces
        .map(|(row, (label, unit, kind, stops))| Dial {
            name: row.name,
            label,
            unit,
            kind,
            low: row.min,
            high: row.max,
            default: row.default,
            stops,
            doc: row.help,
        })
        .collect()
}

/// How fast a dial moves: categories and counts of a few jump, the others slide.
#[derive(Debug, Clone)]
pub struct Mechanics {
    table: Vec<Dial>,
}

impl Default for Mechanics {
    fn default() -> Self {
        Self { table: table() }
    }
}

impl Mechanics {
    /// Turns the wish towards an action (natural units, in range; NaN keeps), as far as a tick allows, and
    /// keeps the rules between dials. Every result is valid.
    pub fn turn(&self, wish: &[f64; COUNT], action: &[f64]) -> [f64; COUNT] {
        let mut turned = *wish;
        for (index, dial) in self.table.iter().enumerate() {
            let wanted = action[index];
            if !wanted.is_nan() {
                turned[index] = toward(dial, Dials::TABLE[index].kind, wish[index], wanted);
            }
        }
        repair(&mut turned);
        turned
    }
}

/// One dial, moved towards what is wanted.
fn toward(dial: &Dial, kind: Kind, from: f64, wanted: f64) -> f64 {
    let wanted = dial.settle(wanted);
    if kind == Kind::Choice || from == wanted {
        return wanted;
    }
    let (at, goal) = (dial.to_box(from), dial.to_box(wanted));
    if (goal - at).abs() <= STEP_MAX {
        return wanted;
    }
    let next = dial.from_box(at + STEP_MAX.copysign(goal - at));
    // A count whose whole range is short still moves by one.
    if next == from { from + (wanted - from).signum() } else { next }
}

/// Keeps the rules between dials by moving the dependent one: a probe's timeout below its interval, a
/// renewal at most a third of the lease, the first back-off at most the largest.
pub fn repair(values: &mut [f64; COUNT]) {
    const INTERVAL: usize = index("probe_interval_s");
    const TIMEOUT: usize = index("probe_timeout_s");
    const LEASE: usize = index("lease_ttl_s");
    const RENEWAL: usize = index("renewal_interval_s");
    const BASE: usize = index("reconnect_base_s");
    const CAP: usize = index("reconnect_cap_s");
    values[TIMEOUT] = values[TIMEOUT].min(TIMEOUT_SHARE_MAX * values[INTERVAL]);
    if values[RENEWAL] * 3.0 > values[LEASE] {
        values[RENEWAL] = THIRD * values[LEASE];
    }
    values[BASE] = values[BASE].min(values[CAP]);
}

/// Place of a dial of this name; a name that is not in the table does not compile.
pub const fn index(name: &str) -> usize {
    let mut at = 0;
    while at < COUNT {
        if same(Dials::TABLE[at].name, name) {
            return at;
        }
        at += 1;
    }
    panic!("no dial has this name")
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len() != b.len() {
        return false;
    }
    let mut at = 0;
    while at < a.len() {
        if a[at] != b[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults() -> [f64; COUNT] {
        Dials::default().values()
    }

    #[test]
    fn faces_fit_the_table() {
        for dial in table() {
            assert!(dial.accepts(dial.default), "{}", dial.name);
            assert!(dial.stops.contains(&dial.default), "{}: the default is a stop", dial.name);
            assert!(dial.stops.windows(2).all(|pair| pair[0] < pair[1]), "{}", dial.name);
            assert!(dial.stops.iter().all(|&stop| dial.accepts(stop)), "{}", dial.name);
            assert!((3..=8).contains(&dial.stops.len()), "{}", dial.name);
            // The unit stands last in the name as well.
            let short = match dial.unit {
                "%" => "pct",
                "MB/s" => "mb_s",
                "1/s" => "per_s",
                other => other,
            };
            assert!(dial.name.ends_with(short), "{} in {}", dial.name, dial.unit);
        }
    }

    #[test]
    fn a_dial_gets_there_in_four_ticks_and_no_sooner() {
        let mechanics = Mechanics::default();
        let table = table();
        for (at, dial) in table.iter().enumerate() {
            let mut wish = defaults();
            wish[at] = dial.low;
            repair(&mut wish);
            let mut action = [f64::NAN; COUNT];
            action[at] = dial.high;
            let mut seen = vec![wish[at]];
            // What depends on another dial is held by it.
            let mut goal = wish;
            goal[at] = dial.high;
            repair(&mut goal);
            while seen.len() < 8 && wish[at] != goal[at] {
                wish = mechanics.turn(&wish, &action);
                assert!(Dials::from_values(&wish).is_ok(), "{}: {wish:?}", dial.name);
                seen.push(wish[at]);
            }
            assert_eq!(wish[at], goal[at], "{} {seen:?}", dial.name);
            assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{} {seen:?}", dial.name);
            let moved = seen.windows(2).map(|pair| dial.to_box(pair[1]) - dial.to_box(pair[0]));
            let is_category = Dials::TABLE[at].kind == Kind::Choice;
            // Rounding to a whole number may add half of one.
            let whole = 1.0 / (dial.high - dial.low);
            for step in moved {
                assert!(
                    is_category || step <= STEP_MAX.max(whole) + whole,
                    "{} {seen:?}",
                    dial.name
                );
            }
        }
    }

    #[test]
    fn nothing_moves_that_is_kept() {
        let wish = defaults();
        assert_eq!(Mechanics::default().turn(&wish, &[f64::NAN; COUNT]), wish);
    }

    #[test]
    fn the_dependent_dial_gives_way() {
        let mut values = defaults();
        values[index("probe_interval_s")] = 1.0;
        values[index("lease_ttl_s")] = 10.0;
        values[index("reconnect_base_s")] = 10.0;
        values[index("reconnect_cap_s")] = 5.0;
        repair(&mut values);
        assert_eq!(values[index("probe_timeout_s")], 0.9);
        assert!(values[index("renewal_interval_s")] <= 10.0 / 3.0);
        assert_eq!(values[index("reconnect_base_s")], 5.0);
        assert!(Dials::from_values(&values).is_ok());
        // Every corner of the ranges can be repaired.
        for corner in 0..64_u32 {
            let mut values = defaults();
            let names = [
                "probe_interval_s",
                "probe_timeout_s",
                "lease_ttl_s",
                "renewal_interval_s",
                "reconnect_base_s",
                "reconnect_cap_s",
            ];
            for (bit, name) in names.iter().enumerate() {
                let row = Dials::TABLE[index(name)];
                values[index(name)] = if corner >> bit & 1 == 1 { row.max } else { row.min };
            }
            repair(&mut values);
            assert!(Dials::from_values(&values).is_ok(), "{corner}");
        }
    }
}
