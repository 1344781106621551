//! The trained weights that come with the project, one file a scenario. Those of the mixtures are
//! generalists; those of [`GENERALIST`] play any morning.

use crate::file::{Weights, WeightsError};
use crate::policy::PpoPolicy;
use oncall_core::Spec;
use std::sync::Arc;

macro_rules! files {
    ($($scenario:literal),* $(,)?) => {
        &[$(($scenario, include_bytes!(concat!("../shipped/", $scenario, ".safetensors")))),*]
    };
}

/// Scenario and bytes of each file.
static FILES: &[(&str, &[u8])] = files![
    "spike",
    "bad-build",
    "cache-flush",
    "spike-hard",
    "bad-build-hard",
    "cache-flush-hard",
    "mixed",
    "mixed-hard",
    "all",
];

/// Trained on `agents/ppo/all.json`, in which an episode is any of the shipped mornings.
pub const GENERALIST: &str = "all";

/// Scenarios that have weights.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(scenario, _)| *scenario)
}

/// The file of a scenario.
pub fn bytes(scenario: &str) -> Option<&'static [u8]> {
    FILES.iter().find(|(name, _)| *name == scenario).map(|(_, bytes)| *bytes)
}

/// The weights of a scenario; refuses a scenario that has none, and a spec that they do not fit.
pub fn weights(scenario: &str, spec: &Spec) -> Result<Arc<Weights>, WeightsError> {
    let bytes = bytes(scenario).ok_or_else(|| {
        let known: Vec<&str> = names().collect();
        WeightsError::new(format!(
            "weights: scenario = {scenario}: expected one that was trained on: {}",
            known.join(", ")
        ))
    })?;
    Weights::from_bytes(bytes, spec).map(Arc::new)
}

/// The policy of a scenario, in the mode in which it was measured. To play many rows, take the
/// [`weights`] once and build a policy of each clone.
pub fn policy(scenario: &str, spec: &Spec) -> Result<PpoPolicy, WeightsError> {
    let weights = weights(scenario, spec)?;
    let mode = weights.meta().mode;
    PpoPolicy::new(weights, spec, mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scenario or a spec that changed leaves its weights behind: train them anew.
    #[test]
    fn every_file_fits_its_scenario() {
        for name in names() {
            let scenario = if name == GENERALIST {
                let text = include_str!("../../ppo/all.json");
                oncall_env::load_named(name, text, &oncall_env::ShippedFiles).unwrap()
            } else {
                oncall_env::shipped(name).unwrap()
            };
            let weights = weights(name, scenario.world.spec()).unwrap();
            let meta = weights.meta();
            assert_eq!(meta.scenario, name);
            assert_eq!(meta.scenario_hash, format!("{:016x}", scenario.hash), "{name}");
            let found = meta.evaluation.as_ref().unwrap();
            assert!(found.split == "train" && found.episodes >= 1000, "{name}: {found:?}");
            assert_eq!(policy(name, scenario.world.spec()).unwrap().weights().meta(), meta);
        }
    }

    #[test]
    fn other_scenarios_have_none() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let error = weights("nowhere", &spec).unwrap_err().to_string();
        assert!(error.starts_with("weights: scenario = nowhere: expected one"), "{error}");
    }
}
