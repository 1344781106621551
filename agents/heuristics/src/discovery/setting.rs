//! One setting of all dials for the whole episode.

use super::SPEC;
use crate::param::Param;
use crate::{Policy, PolicyKey, tuned};

/// All dials as parameters: names, ranges and defaults are those of the dials.
pub(crate) fn table() -> Vec<Param> {
    SPEC.dials.iter().map(Param::of).collect()
}

/// The dials' defaults.
pub(crate) fn defaults() -> Vec<f64> {
    SPEC.dials.iter().map(|dial| dial.default).collect()
}

/// The setting of a tuned set over the defaults; the bare defaults where there is no such set.
pub(crate) fn tuned_for(policy: &str, scenario: &str) -> Vec<f64> {
    let mut values = defaults();
    for (name, value) in tuned::sets(policy, scenario).into_iter().flatten() {
        if let Some(index) = SPEC.dial(name) {
            values[index] = *value;
        }
    }
    values
}

/// Sets the dials and holds them.
pub(crate) struct Setting(Vec<f64>);

impl Setting {
    /// The setting of a full row of values in the order of the table.
    pub(crate) fn new(values: &[f64]) -> Self {
        Self(values.to_vec())
    }
}

impl Policy for Setting {
    fn reset(&mut self, _key: PolicyKey) {}

    fn memory(&self) -> Option<Vec<f64>> {
        Some(Vec::new())
    }

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        // Said every step: a dial takes several to arrive where it is to stand.
        action[..self.0.len()].copy_from_slice(&self.0);
    }
}

/// Name of the policy that is told which scenario it plays.
pub(crate) const ORACLE: &str = "oracle";

/// The best setting for the scenario, which it is told: also for the one that a mixture has drawn.
pub(crate) struct Oracle {
    /// For what it has not been told.
    given: Vec<f64>,
    now: Vec<f64>,
}

impl Oracle {
    /// Plays `values` until it is told of a scenario that has a setting of its own.
    pub(crate) fn new(values: &[f64]) -> Self {
        Self { given: values.to_vec(), now: values.to_vec() }
    }
}

impl Policy for Oracle {
    fn reset(&mut self, _key: PolicyKey) {
        self.now.clone_from(&self.given);
    }

    fn told(&mut self, scenario: &str) {
        if tuned::has(ORACLE, scenario) {
            self.now = tuned_for(ORACLE, scenario);
        }
    }

    fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
        action[..self.now.len()].copy_from_slice(&self.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicySpec, build_for};

    fn first(policy: &mut dyn Policy) -> Vec<f64> {
        let signals = vec![0.0; SPEC.signals.len()];
        let mut action = vec![f64::NAN; SPEC.dials.len()];
        policy.act(&signals, &mut action);
        action
    }

    #[test]
    fn settings_say_every_dial() {
        let build = |text: &str| build_for(&text.parse().unwrap(), &SPEC, "mine").unwrap();
        assert_eq!(first(&mut *build("default")), defaults());
        let given = first(&mut *build("default:lease_ttl_s=60,retries_max=3"));
        assert_eq!(given[SPEC.dial("lease_ttl_s").unwrap()], 60.0);
        assert_eq!(given.iter().zip(defaults()).filter(|(a, b)| *a != b).count(), 2);
        assert_eq!(first(&mut *build("static")), tuned_for("static", "mine"));
        let error = "default:lease_ttl_s=600".parse::<PolicySpec>().unwrap_err().to_string();
        assert!(
            error.contains("`lease_ttl_s` is 600, expected a number from 10 to 120 s"),
            "{error}"
        );
    }
}
