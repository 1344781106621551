//! Scenario text to a ready world.

use crate::any::AnyWorld;
use oncall_scenario::{Files, ScenarioErrors, ShippedFiles};

/// A scenario, ready to play.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// Its name.
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

impl From<oncall_scenario::Scenario> for Scenario {
    fn from(loaded: oncall_scenario::Scenario) -> Self {
        Self {
            name: loaded.name,
            title: loaded.title,
            description: loaded.description,
            hash: loaded.hash,
            world: AnyWorld::Fleet(loaded.world),
        }
    }
}

/// Reads a scenario's JSON text; `files` supplies the texts that it names.
pub fn load(text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    oncall_scenario::load(text, files).map(Scenario::from)
}

/// As [`load`], with the name of the file in front of every problem.
pub fn load_named(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    oncall_scenario::load_named(file, text, files).map(Scenario::from)
}

/// Names of the shipped scenarios.
pub fn shipped_names() -> Vec<&'static str> {
    oncall_scenario::shipped().iter().map(|shipped| shipped.name).collect()
}

/// A shipped scenario.
///
/// # Panics
///
/// Never: that every shipped file loads is a test.
pub fn shipped(name: &str) -> Option<Scenario> {
    let text = oncall_scenario::shipped_text(name)?;
    Some(load(text, &ShippedFiles).expect("every shipped scenario loads"))
}
