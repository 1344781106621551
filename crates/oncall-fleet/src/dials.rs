//! The operator's dials: their table, and how they stand.

use crate::capacity::Settings;
use crate::params::Opening;
use oncall_core::{Dial, DialKind, Words};

/// Indices of the dials in an action.
pub mod index {
    /// Floor of the fleet.
    pub const MIN_INSTANCES: usize = 0;
    /// Autoscaler on or off.
    pub const AUTOSCALE: usize = 1;
    /// Target of the autoscaler.
    pub const TARGET_UTILIZATION: usize = 2;
    /// Time to live of a cache entry.
    pub const CACHE_TTL_S: usize = 3;
    /// Starts a warm-up.
    pub const WARM_UP: usize = 4;
    /// Share of the low-priority traffic refused.
    pub const SHED_SHARE: usize = 5;
    /// Recommendations on or off.
    pub const FEATURE: usize = 6;
    /// Starts a rollback.
    pub const ROLLBACK: usize = 7;
    /// Number of dials.
    pub const COUNT: usize = 8;
}

const SWITCH: &[f64] = &[0.0, 1.0];
const PRESS: &[f64] = &[1.0];

/// The table of dials, in the order of an action.
pub fn table() -> Vec<Dial> {
    let dial = |name, label, unit, kind, (low, high), default, stops, doc| Dial {
        name,
        label,
        unit,
        kind,
        low,
        high,
        default,
        stops,
        doc,
    };
    vec![
        dial(
            "min_instances",
            "Minimum instances",
            "",
            DialKind::Count,
            (1.0, 40.0),
            10.0,
            &[4.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0],
            "Floor of the fleet; raising it boots the missing instances at once, and they still need the boot delay.",
        ),
        dial(
            "autoscale",
            "Autoscaler",
            "",
            DialKind::Switch,
            (0.0, 1.0),
            1.0,
            SWITCH,
            "Target tracking on utilisation; no new scale-out while any instance boots; off is exactly the minimum.",
        ),
        dial(
            "target_utilization",
            "Target utilisation",
            "",
            DialKind::Real,
            (0.30, 0.95),
            0.60,
            &[0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95],
            "Target of the autoscaler; lower is more headroom and more cost.",
        ),
        dial(
            "cache_ttl_s",
            "Cache TTL",
            "s",
            DialKind::Log,
            (0.0, 600.0),
            60.0,
            &[0.0, 5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 150.0, 300.0, 600.0],
            "Longer is more hits and older answers: their mean age is half of it.",
        ),
        dial(
            "warm_up",
            "Warm up the cache",
            "",
            DialKind::Press,
            (0.0, 1.0),
            0.0,
            PRESS,
            "Loads hot keys for some minutes at the price of database load; a press while it runs does nothing.",
        ),
        dial(
            "shed_share",
            "Shed low-priority traffic",
            "",
            DialKind::Real,
            (0.0, 1.0),
            0.0,
            &[0.0, 0.25, 0.5, 0.75, 1.0],
            "Share of the low-priority traffic that the load balancer refuses.",
        ),
        dial(
            "feature",
            "Recommendations",
            "",
            DialKind::Switch,
            (0.0, 1.0),
            1.0,
            SWITCH,
            "The recommendations cost CPU time and a query a request; off is graceful degradation.",
        ),
        dial(
            "rollback",
            "Roll back",
            "",
            DialKind::Press,
            (0.0, 1.0),
            0.0,
            PRESS,
            "Redeploys the last good build to a second fleet, then switches the traffic; a press while it runs starts over.",
        ),
    ]
}

/// The dials as they stand; presses have no standing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dials {
    /// Floor of the fleet.
    pub min_instances: u32,
    /// Autoscaler on.
    pub autoscale: bool,
    /// Target of the autoscaler.
    pub target_utilization: f64,
    /// Time to live of a cache entry.
    pub cache_ttl_s: f64,
    /// Share of the low-priority traffic refused.
    pub shed_share: f64,
    /// Recommendations on.
    pub feature: bool,
}

/// The buttons pressed in a minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Presses {
    /// Warm-up.
    pub warm_up: bool,
    /// Rollback.
    pub rollback: bool,
}

impl Dials {
    /// Where the dials stand when the shift begins.
    pub fn opening(opening: &Opening) -> Self {
        Self {
            min_instances: opening.min_instances as u32,
            autoscale: opening.autoscale > 0.5,
            target_utilization: opening.target_utilization,
            cache_ttl_s: opening.cache_ttl_s,
            shed_share: opening.shed_share,
            feature: opening.feature > 0.5,
        }
    }

    /// Turns the dials to a settled action (see `Dial::settle`); NaN keeps.
    #[inline]
    pub fn turn(&mut self, action: &[f64]) -> Presses {
        let keep = |old: f64, new: f64| if new.is_nan() { old } else { new };
        let switch = |old: bool, new: f64| if new.is_nan() { old } else { new > 0.5 };
        self.min_instances =
            keep(f64::from(self.min_instances), action[index::MIN_INSTANCES]) as u32;
        self.autoscale = switch(self.autoscale, action[index::AUTOSCALE]);
        self.target_utilization = keep(self.target_utilization, action[index::TARGET_UTILIZATION]);
        self.cache_ttl_s = keep(self.cache_ttl_s, action[index::CACHE_TTL_S]);
        self.shed_share = keep(self.shed_share, action[index::SHED_SHARE]);
        self.feature = switch(self.feature, action[index::FEATURE]);
        Presses { warm_up: action[index::WARM_UP] > 0.5, rollback: action[index::ROLLBACK] > 0.5 }
    }

    /// Natural values in the order of the table; 0 for the presses.
    pub fn values(&self) -> [f64; index::COUNT] {
        [
            f64::from(self.min_instances),
            f64::from(u8::from(self.autoscale)),
            self.target_utilization,
            self.cache_ttl_s,
            0.0,
            self.shed_share,
            f64::from(u8::from(self.feature)),
            0.0,
        ]
    }

    /// The part that the fleet listens to.
    pub fn settings(&self) -> Settings {
        Settings {
            min_instances: self.min_instances,
            autoscale: self.autoscale,
            target_utilization: self.target_utilization,
        }
    }

    /// Visits every dial.
    pub fn visit(&mut self, words: &mut impl Words) {
        words.u32(&mut self.min_instances);
        words.bool(&mut self.autoscale);
        words.f64(&mut self.target_utilization);
        words.f64(&mut self.cache_ttl_s);
        words.f64(&mut self.shed_share);
        words.bool(&mut self.feature);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    #[test]
    fn the_multi_discrete_space_is_the_specified_one() {
        let sizes: Vec<usize> = table().iter().map(Dial::choices).collect();
        assert_eq!(sizes, [14, 3, 8, 13, 2, 6, 3, 2]);
        for dial in table() {
            assert!(
                dial.accepts(dial.default) && dial.stops.iter().all(|&stop| dial.accepts(stop))
            );
        }
        let names: Vec<&str> = table().iter().map(|dial| dial.name).collect();
        assert_eq!(names[index::CACHE_TTL_S], "cache_ttl_s");
        assert_eq!(names[index::ROLLBACK], "rollback");
        assert_eq!(names.len(), index::COUNT);
    }

    #[test]
    fn defaults_are_the_opening() {
        let opening = Dials::opening(&Opening::defaults()).values();
        for (value, dial) in opening.iter().zip(table()) {
            assert_eq!(*value, dial.default, "{}", dial.name);
        }
    }

    #[test]
    fn nan_keeps() {
        let mut dials = Dials::opening(&Opening::defaults());
        let before = dials;
        let presses = dials.turn(&[f64::NAN; index::COUNT]);
        assert_eq!((dials, presses), (before, Presses { warm_up: false, rollback: false }));
        let mut action = [f64::NAN; index::COUNT];
        (action[index::CACHE_TTL_S], action[index::ROLLBACK]) = (90.0, 1.0);
        assert!(dials.turn(&action).rollback);
        assert_eq!(dials, Dials { cache_ttl_s: 90.0, ..before });
    }
}
