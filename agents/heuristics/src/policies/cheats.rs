//! Rules that each exploit one price. None may pay: a test holds them against the tuned rules.

use crate::board::Turn;
use crate::{Policy, PolicyKey};
use oncall_fleet::dials::index;

/// Holds one dial, or presses one button every minute, whatever happens.
struct Cheat {
    dial: usize,
    value: f64,
}

impl Policy for Cheat {
    fn reset(&mut self, _key: PolicyKey) {}

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        let mut turn = Turn::keep_all(action);
        turn.set(self.dial, self.value);
        if self.dial == index::MIN_INSTANCES {
            turn.switch(index::AUTOSCALE, false);
        }
    }
}

type Entry = (&'static str, &'static str, fn(&[f64]) -> Box<dyn Policy>);

/// Name, description and maker of each.
pub(crate) const CHEATS: &[Entry] = &[
    ("cheat-shed-all", "Refuses all low-priority traffic for ever.", |_| {
        Box::new(Cheat { dial: index::SHED_SHARE, value: 1.0 })
    }),
    ("cheat-feature-off", "Never shows the recommendations.", |_| {
        Box::new(Cheat { dial: index::FEATURE, value: 0.0 })
    }),
    ("cheat-minimum", "Runs the smallest fleet, one instance.", |_| {
        Box::new(Cheat { dial: index::MIN_INSTANCES, value: 1.0 })
    }),
    ("cheat-rollback-every-minute", "Presses rollback every minute.", |_| {
        Box::new(Cheat { dial: index::ROLLBACK, value: 1.0 })
    }),
    ("cheat-ttl-0", "Caches nothing.", |_| {
        Box::new(Cheat { dial: index::CACHE_TTL_S, value: 0.0 })
    }),
    ("cheat-ttl-600", "Serves answers up to ten minutes old.", |_| {
        Box::new(Cheat { dial: index::CACHE_TTL_S, value: 600.0 })
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::testing::{Row, act, policy};

    #[test]
    fn cheats_do_what_they_say() {
        for (name, dial, value) in [
            ("cheat-shed-all", index::SHED_SHARE, 1.0),
            ("cheat-feature-off", index::FEATURE, 0.0),
            ("cheat-minimum", index::MIN_INSTANCES, 1.0),
            ("cheat-rollback-every-minute", index::ROLLBACK, 1.0),
            ("cheat-ttl-0", index::CACHE_TTL_S, 0.0),
            ("cheat-ttl-600", index::CACHE_TTL_S, 600.0),
        ] {
            let mut cheat = policy(name);
            for minute in 0..3 {
                let action = act(&mut *cheat, &Row::quiet(minute));
                assert_eq!(action[dial], value, "{name}");
                for (other, value) in action.iter().enumerate() {
                    let with_it = dial == index::MIN_INSTANCES && other == index::AUTOSCALE;
                    let quiet = value.is_nan() || *value == 0.0;
                    assert!(other == dial || quiet || with_it, "{name} {other}");
                }
            }
        }
        assert_eq!(act(&mut *policy("cheat-minimum"), &Row::quiet(0))[index::AUTOSCALE], 0.0);
    }
}
