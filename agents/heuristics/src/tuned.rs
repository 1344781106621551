//! The shipped parameters, found on training seeds only.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Name of the set that fits all scenarios.
pub const DEFAULT: &str = "default";

/// Parameters of one policy for one scenario, and how they were found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tuned {
    /// Root seed of the training episodes.
    pub seed: u64,
    /// Number of training episodes.
    pub episodes: u32,
    /// Mean return over them.
    pub return_usd: f64,
    /// The parameters that differ from the defaults.
    pub params: BTreeMap<String, f64>,
}

/// By policy, then by scenario.
pub type Table = BTreeMap<String, BTreeMap<String, Tuned>>;

/// A policy's parameters as (name, value) pairs, by scenario.
type Sets = BTreeMap<String, BTreeMap<String, Vec<(String, f64)>>>;

static TABLE: LazyLock<Table> =
    // A test reads the file, so a broken one never leaves the house.
    LazyLock::new(|| serde_json::from_str(include_str!("../tuned.json")).unwrap_or_default());

static SETS: LazyLock<Sets> = LazyLock::new(|| {
    let pairs =
        |tuned: &Tuned| tuned.params.iter().map(|(name, value)| (name.clone(), *value)).collect();
    let scenarios = |sets: &BTreeMap<String, Tuned>| {
        sets.iter().map(|(name, tuned)| (name.clone(), pairs(tuned))).collect()
    };
    TABLE.iter().map(|(policy, sets)| (policy.clone(), scenarios(sets))).collect()
});

/// All shipped sets.
pub fn table() -> &'static Table {
    &TABLE
}

/// The one set that applies to a policy in a scenario: the scenario's own, else the one for all; none
/// for a policy that is not tuned.
pub fn sets(policy: &str, scenario: &str) -> Vec<&'static [(String, f64)]> {
    let Some(sets) = SETS.get(policy) else { return Vec::new() };
    sets.get(scenario).or_else(|| sets.get(DEFAULT)).map(Vec::as_slice).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{describe, tuned};

    #[test]
    fn the_shipped_file_fits_the_tables() {
        let table: Table = serde_json::from_str(include_str!("../tuned.json")).unwrap();
        assert!(table.contains_key("runbook"));
        for (policy, sets) in &table {
            let description = describe(policy).expect("a known policy");
            for (scenario, set) in sets {
                assert!(set.episodes >= 100 && set.return_usd.is_finite(), "{policy} {scenario}");
                for (name, value) in &set.params {
                    let param = description.params.iter().find(|param| param.name == *name);
                    let param = param.unwrap_or_else(|| panic!("{policy} {scenario} {name}"));
                    assert!(param.accepts(*value), "{policy} {scenario} {name} = {value}");
                }
            }
        }
    }

    #[test]
    fn a_scenario_without_its_own_set_takes_the_one_for_all() {
        assert!(tuned::sets("hold", "spike").is_empty());
        assert_eq!(tuned::sets("runbook", "my-file"), tuned::sets("runbook", DEFAULT));
        assert_ne!(tuned::sets("runbook", "spike"), tuned::sets("runbook", "cache-flush"));
    }
}
