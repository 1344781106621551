//! The trained weights that come with the project, one file a scenario. Those of the mixtures are
//! generalists; a world's first generalist ([`GENERALIST`] for the fleet) plays whatever has no weights
//! of its own.

use crate::file::{Weights, WeightsError};
use oncall_core::Spec;
use std::sync::Arc;

/// Weights as they are shipped.
#[derive(Debug)]
pub struct File {
    /// Name of the world.
    pub world: &'static str,
    /// Name of the scenario that they were trained on.
    pub scenario: &'static str,
    /// The file.
    pub bytes: &'static [u8],
}

impl File {
    /// The weights; refuses a spec that they do not fit.
    pub fn weights(&self, spec: &Spec) -> Result<Arc<Weights>, WeightsError> {
        Weights::from_bytes(self.bytes, spec).map(Arc::new)
    }
}

macro_rules! files {
    ($($world:literal: [$(($scenario:literal, $file:literal)),* $(,)?]),* $(,)?) => {
        &[$($(File {
            world: $world,
            scenario: $scenario,
            bytes: include_bytes!(concat!("../shipped/", $file, ".safetensors")),
        }),*),*]
    };
}

static FILES: &[File] = files![
    "fleet": [
        ("spike", "spike"),
        ("bad-build", "bad-build"),
        ("cache-flush", "cache-flush"),
        ("spike-hard", "spike-hard"),
        ("bad-build-hard", "bad-build-hard"),
        ("cache-flush-hard", "cache-flush-hard"),
        ("mixed", "mixed"),
        ("mixed-hard", "mixed-hard"),
        ("all", "all"),
    ],
    "discovery": [("mixed-discovery", "mixed-discovery")],
];

/// World, and the scenario whose weights play the world's others.
const GENERALISTS: &[(&str, &str)] = &[("fleet", GENERALIST), ("discovery", "mixed-discovery")];

/// Trained on `agents/ppo/all.json`, in which an episode is any of the shipped mornings of the fleet.
pub const GENERALIST: &str = "all";

/// All files.
pub fn files() -> &'static [File] {
    FILES
}

/// Scenarios of the fleet that have weights.
pub fn names() -> impl Iterator<Item = &'static str> {
    FILES.iter().filter(|file| file.world == "fleet").map(|file| file.scenario)
}

/// The file of a scenario.
pub fn file(world: &str, scenario: &str) -> Result<&'static File, WeightsError> {
    let of_world = || FILES.iter().filter(|file| file.world == world);
    of_world().find(|file| file.scenario == scenario).ok_or_else(|| {
        let known: Vec<&str> = of_world().map(|file| file.scenario).collect();
        let known = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
        WeightsError::new(format!(
            "weights: scenario = {scenario}: expected one of {world} that was trained on: {known}"
        ))
    })
}

/// The file of a scenario, else the one that plays all of the world.
pub fn file_or_generalist(world: &str, scenario: &str) -> Result<&'static File, WeightsError> {
    file(world, scenario).or_else(|error| {
        let generalist = GENERALISTS.iter().find(|(known, _)| *known == world);
        generalist.map_or(Err(error), |(_, generalist)| file(world, generalist))
    })
}

/// The weights of a scenario; refuses a scenario that has none, and a spec that they do not fit.
pub fn weights(scenario: &str, spec: &Spec) -> Result<Arc<Weights>, WeightsError> {
    file(spec.world, scenario)?.weights(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A scenario or a spec that changed leaves its weights behind: train them anew.
    #[test]
    fn every_file_fits_its_scenario() {
        for file in files() {
            let name = file.scenario;
            let scenario = if (file.world, name) == ("fleet", GENERALIST) {
                let text = include_str!("../../ppo/all.json");
                oncall_env::load_named(name, text, &oncall_env::ShippedFiles).unwrap()
            } else {
                oncall_env::shipped(name).unwrap()
            };
            let weights = weights(name, scenario.world.spec()).unwrap();
            let meta = weights.meta();
            assert_eq!((meta.world.as_str(), meta.scenario.as_str()), (file.world, name));
            assert_eq!(meta.scenario_hash, format!("{:016x}", scenario.hash), "{name}");
            let found = meta.evaluation.as_ref().unwrap();
            assert!(found.split == "train" && found.episodes >= 1000, "{name}: {found:?}");
        }
    }

    #[test]
    fn other_scenarios_have_none() {
        let spec = oncall_env::shipped("spike").unwrap().world.spec().clone();
        let error = weights("nowhere", &spec).unwrap_err().to_string();
        assert!(error.starts_with("weights: scenario = nowhere: expected one"), "{error}");
        let error = file_or_generalist("nowhere", "spike").unwrap_err().to_string();
        assert!(error.ends_with("of nowhere that was trained on: none yet"), "{error}");
        assert_eq!(file_or_generalist("fleet", "mine").unwrap().scenario, GENERALIST);
    }
}
