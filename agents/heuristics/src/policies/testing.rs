//! Hand-made dashboards for the tests of the rules.

use crate::{Policy, PolicyKey, PolicySpec, build, describe};
use oncall_fleet::Sig;
use oncall_fleet::dials::index;
use oncall_fleet::signals::COUNT;

/// Builds a policy from its text, reset. What the text does not give is the table's default, whatever
/// is tuned.
pub(crate) fn policy(text: &str) -> Box<dyn Policy> {
    let mut spec: PolicySpec = text.parse().unwrap();
    for param in &describe(&spec.name).unwrap().params {
        let given = spec.params.iter().any(|(name, _)| *name == param.name);
        if let Some(default) = param.default.filter(|_| !given) {
            spec.params.push((param.name.to_string(), default));
        }
    }
    let mut policy = build(&spec).unwrap();
    policy.reset(PolicyKey { seed: 1, episode: 0 });
    policy
}

/// A quiet minute of the opening fleet.
#[derive(Clone)]
pub(crate) struct Row(pub(crate) Vec<f64>);

impl Row {
    pub(crate) fn quiet(minute: u32) -> Self {
        let mut row = Self(vec![f64::NAN; COUNT]);
        for signal in [
            Sig::booting,
            Sig::failed_share,
            Sig::error_rate,
            Sig::burn,
            Sig::burn_5min,
            Sig::burn_1h,
            Sig::page,
            Sig::shed_traffic,
            Sig::bad_build_share,
            Sig::dial_shed_share,
            Sig::warm_up_left_min,
            Sig::rollback_left_min,
            Sig::p_wait,
            Sig::offered_rps_change_1min,
            Sig::offered_rps_change_5min,
            Sig::utilization_change_1min,
            Sig::utilization_change_5min,
            Sig::error_rate_change_1min,
            Sig::error_rate_change_5min,
        ] {
            row = row.with(signal, 0.0);
        }
        let minute = f64::from(minute);
        row.with(Sig::offered_rps, 1125.0)
            .with(Sig::admitted_rps, 1125.0)
            .with(Sig::serving, 10.0)
            .with(Sig::cache_hit, 1125.0 * 60.0 / (20_000.0 + 1125.0 * 60.0))
            .with(Sig::db_utilization, 0.192_857)
            .with(Sig::query_ms, 6.194_69)
            .with(Sig::service_ms, 74.2478)
            .with(Sig::p99_ms, 341.9)
            .with(Sig::offered_load, 83.5288)
            .with(Sig::utilization, 0.522_055)
            .with(Sig::budget_left, 1.0)
            .with(Sig::cache_age_s, 30.0)
            .with(Sig::recommendations, 1.0)
            .with(Sig::fleet_usd_h, 4.0)
            .with(Sig::dial_min_instances, 10.0)
            .with(Sig::dial_autoscale, 1.0)
            .with(Sig::dial_target_utilization, 0.6)
            .with(Sig::dial_cache_ttl_s, 60.0)
            .with(Sig::dial_feature, 1.0)
            .with(Sig::since_deploy_min, 1440.0)
            .with(Sig::time_of_day_h, 8.0 + minute / 60.0)
            .with(Sig::shift_min, minute)
            .with(Sig::shift_left_min, 240.0 - minute)
    }

    pub(crate) fn with(mut self, signal: Sig, value: f64) -> Self {
        self.0[signal as usize] = value;
        self
    }
}

/// What a policy does with a row.
pub(crate) fn act(policy: &mut dyn Policy, row: &Row) -> [f64; index::COUNT] {
    let mut action = [f64::INFINITY; index::COUNT];
    policy.act(&row.0, &mut action);
    action
}
