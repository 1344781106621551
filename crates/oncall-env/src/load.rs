//! Scenario text to a ready world.

use crate::any::AnyWorld;
use oncall_core::World as _;
use oncall_discovery_env::Scale;
use oncall_scenario::{AnyScenario, Files, ScenarioErrors, ShippedFiles};

/// A scenario, ready to play.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name; of a fleet that is not of the usual size with `@` and the scale.
    pub name: String,
    /// One line.
    pub title: String,
    /// A paragraph.
    pub description: String,
    /// Hash of what changes a trajectory.
    pub hash: u64,
    /// The world that plays it.
    pub world: AnyWorld,
}

/// Why a scenario has no such scale.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScaleError(String);

impl std::fmt::Display for ScaleError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ScaleError {}

impl Scenario {
    /// The same scenario with a fleet of another size: `small`, `tenth` or `full`.
    pub fn with_scale(mut self, scale: &str) -> Result<Self, ScaleError> {
        let AnyWorld::Discovery(world) = self.world else {
            let why = "no scale: only scenarios of discovery have one";
            return Err(ScaleError(format!("scale = {scale:?}: expected {why}")));
        };
        let Some(found) = Scale::from_name(scale) else {
            let names = Scale::ALL.map(Scale::name).join(", ");
            return Err(ScaleError(format!("scale = {scale:?}: expected one of {names}")));
        };
        let world = world.with_scale(found);
        let base = self.name.split('@').next().unwrap_or_default();
        self.name = match found {
            Scale::Small => base.to_owned(),
            other => format!("{base}@{}", other.name()),
        };
        self.hash = world.params_hash();
        self.world = AnyWorld::Discovery(world);
        Ok(self)
    }
}

impl From<AnyScenario> for Scenario {
    fn from(loaded: AnyScenario) -> Self {
        match loaded {
            AnyScenario::Fleet(loaded) => Self {
                name: loaded.name,
                title: loaded.title,
                description: loaded.description,
                hash: loaded.hash,
                world: AnyWorld::Fleet(loaded.world),
            },
            AnyScenario::Discovery(loaded) => Self {
                name: loaded.name,
                title: loaded.title,
                description: loaded.description,
                hash: loaded.hash,
                world: AnyWorld::Discovery(loaded.world),
            },
        }
    }
}

/// Reads a scenario's JSON text; `files` supplies the texts that it names.
pub fn load(text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    oncall_scenario::load_any(None, text, files).map(Scenario::from)
}

/// As [`load`], with the name of the file in front of every problem.
pub fn load_named(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    oncall_scenario::load_any(Some(file), text, files).map(Scenario::from)
}

/// Names of the shipped scenarios of the fleet.
pub fn shipped_names() -> Vec<&'static str> {
    oncall_scenario::shipped().iter().map(|shipped| shipped.name).collect()
}

/// Names of the shipped scenarios of discovery; each may be followed by `@tenth` or `@full`.
pub fn discovery_names() -> Vec<&'static str> {
    oncall_scenario::shipped_discovery().iter().map(|shipped| shipped.name).collect()
}

/// A shipped scenario of any world, by its name or, of discovery, by `name@scale`.
///
/// # Panics
///
/// Never: that every shipped file loads is a test.
pub fn shipped(name: &str) -> Option<Scenario> {
    let (base, scale) = match name.split_once('@') {
        Some((base, scale)) => (base, Some(scale)),
        None => (name, None),
    };
    let text = oncall_scenario::shipped_text(base)?;
    let scenario = load(text, &ShippedFiles).expect("every shipped scenario loads");
    match scale {
        Some(scale) => scenario.with_scale(scale).ok(),
        None => Some(scenario),
    }
}
