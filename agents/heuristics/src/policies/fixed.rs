//! Rules that set the dials once.

use crate::board::{DIALS, Turn};
use crate::param::{Param, params};
use crate::{Policy, PolicyKey};
use oncall_core::{Dial, DialKind, Spec};
use oncall_fleet::dials::index;

/// Hands off.
pub(crate) struct Hold(Vec<f64>);

impl Hold {
    /// For the dials of a world.
    pub(crate) fn new(spec: &Spec) -> Self {
        Self(spec.dials.iter().map(keep).collect())
    }
}

/// What leaves a dial alone.
pub(crate) fn keep(dial: &Dial) -> f64 {
    if dial.kind == DialKind::Press { 0.0 } else { f64::NAN }
}

impl Policy for Hold {
    fn reset(&mut self, _key: PolicyKey) {}

    fn memory(&self) -> Option<Vec<f64>> {
        Some(Vec::new())
    }

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        action[..self.0.len()].copy_from_slice(&self.0);
    }
}

params! {
    /// A setting of the dials.
    Setting {
        min_instances: _, 1 ..= 40, "", whole; "Floor of the fleet."
        autoscale: _, 0 ..= 1, "", whole; "1 switches the built-in autoscaler on; 0 is exactly the floor."
        target_utilization: _, 0.3 ..= 0.95, ""; "Target of the autoscaler."
        cache_ttl_s: _, 0 ..= 600, "s"; "Time to live of a cache entry."
        shed_share: _, 0 ..= 1, ""; "Share of the low-priority traffic refused."
        feature: _, 0 ..= 1, "", whole; "1 keeps the recommendations on."
    }
}

/// The table of a setting that says every dial: a search begins where a shift begins.
pub(crate) fn full_table() -> Vec<Param> {
    let mut table = Setting::table();
    for param in &mut table {
        param.default = DIALS.iter().find(|dial| dial.name == param.name).map(|dial| dial.default);
    }
    table
}

/// Sets the dials and holds them.
pub(crate) struct Fixed(Setting);

impl Fixed {
    pub(crate) fn new(setting: Setting) -> Self {
        Self(setting)
    }
}

impl Policy for Fixed {
    fn reset(&mut self, _key: PolicyKey) {}

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        let setting = &self.0;
        Turn::keep_all(action)
            .set(index::MIN_INSTANCES, setting.min_instances)
            .set(index::AUTOSCALE, setting.autoscale)
            .set(index::TARGET_UTILIZATION, setting.target_utilization)
            .set(index::CACHE_TTL_S, setting.cache_ttl_s)
            .set(index::SHED_SHARE, setting.shed_share)
            .set(index::FEATURE, setting.feature);
    }
}

params! {
    /// The built-in autoscaler's.
    Tracking {
        min: 10, 1 ..= 40, "", whole; "Floor of the fleet."
        target: 0.6, 0.3 ..= 0.95, ""; "Utilisation that the autoscaler aims at."
        ttl_s: 60, 0 ..= 600, "s"; "Time to live of a cache entry."
    }
}

/// Leaves the fleet to the built-in autoscaler.
pub(crate) struct TargetTracking(Tracking);

impl TargetTracking {
    pub(crate) fn new(params: Tracking) -> Self {
        Self(params)
    }
}

impl Policy for TargetTracking {
    fn reset(&mut self, _key: PolicyKey) {}

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        // Said every minute, which is the same as said once: nobody else turns the dials.
        Turn::keep_all(action)
            .set(index::MIN_INSTANCES, self.0.min)
            .switch(index::AUTOSCALE, true)
            .set(index::TARGET_UTILIZATION, self.0.target)
            .set(index::CACHE_TTL_S, self.0.ttl_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::testing::{Row, act, policy};

    #[test]
    fn settings_have_the_ranges_of_their_dials() {
        for param in full_table() {
            let dial = DIALS.iter().find(|dial| dial.name == param.name).unwrap();
            assert_eq!((param.low, param.high), (dial.low, dial.high), "{}", dial.name);
            assert_eq!(param.default, Some(dial.default));
        }
    }

    #[test]
    fn hold_keeps_and_fixed_sets_what_it_names() {
        let kept = act(&mut *policy("hold"), &Row::quiet(0));
        assert!(kept.iter().enumerate().all(|(dial, value)| {
            if [index::WARM_UP, index::ROLLBACK].contains(&dial) {
                *value == 0.0
            } else {
                value.is_nan()
            }
        }));
        let fixed = act(&mut *policy("fixed-20:shed_share=0.5"), &Row::quiet(0));
        assert_eq!((fixed[index::MIN_INSTANCES], fixed[index::AUTOSCALE]), (20.0, 0.0));
        assert_eq!(fixed[index::SHED_SHARE], 0.5);
        assert!(fixed[index::CACHE_TTL_S].is_nan() && fixed[index::FEATURE].is_nan());
    }

    #[test]
    fn target_tracking_leaves_the_fleet_to_the_autoscaler() {
        let action = act(&mut *policy("target-tracking:min=7,target=0.8,ttl_s=90"), &Row::quiet(0));
        assert_eq!(action[..4], [7.0, 1.0, 0.8, 90.0]);
        assert!(action[index::SHED_SHARE].is_nan());
    }
}
