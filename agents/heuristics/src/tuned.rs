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

/// The files: one for each world, whose policies have names of their own.
const FILES: [&str; 2] = [include_str!("../tuned.json"), include_str!("../tuned_discovery.json")];

// A test reads the files, so a broken one never leaves the house.
static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let read = |text: &str| serde_json::from_str::<Table>(text).unwrap_or_default();
    FILES.into_iter().flat_map(read).collect()
});

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

/// A scenario's name without its scale: `crash-wave` for `crash-wave@tenth`.
fn plain(scenario: &str) -> &str {
    scenario.split_once('@').map_or(scenario, |(name, _)| name)
}

/// The one set that applies to a policy in a scenario, whatever its scale: the scenario's own, else the
/// one for all; none for a policy that is not tuned.
pub fn sets(policy: &str, scenario: &str) -> Vec<&'static [(String, f64)]> {
    let Some(sets) = SETS.get(policy) else { return Vec::new() };
    let own = sets.get(plain(scenario));
    own.or_else(|| sets.get(DEFAULT)).map(Vec::as_slice).into_iter().collect()
}

/// Whether a policy has a set for this very scenario.
pub fn has(policy: &str, scenario: &str) -> bool {
    SETS.get(policy).is_some_and(|sets| sets.contains_key(plain(scenario)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{describe, tuned};

    #[test]
    fn the_shipped_file_fits_the_tables() {
        let tables = FILES.map(|text| serde_json::from_str::<Table>(text).unwrap());
        assert!(tables[0].contains_key("runbook"));
        // A name in both would lose one of them.
        assert_eq!(tables.iter().map(BTreeMap::len).sum::<usize>(), table().len());
        for (policy, sets) in tables.iter().flatten() {
            let description = describe(policy).expect("a known policy");
            for (scenario, set) in sets {
                assert!(set.episodes >= 16 && set.return_usd.is_finite(), "{policy} {scenario}");
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
        assert_eq!(tuned::sets("runbook", "spike"), tuned::sets("runbook", "spike@tenth"));
        assert!(tuned::has("runbook", "spike@full") && !tuned::has("runbook", "my-file"));
    }
}
