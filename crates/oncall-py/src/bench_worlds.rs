//! Worlds that are only measured, under the feature `bench-worlds`: the scenario `{"world": "cartpole"}`.
//!
//! From here on a step of them takes the same way as one of the fleet.

use crate::describe::About;
use crate::errors::{Class, engine_error};
use crate::keywords::Checked;
use oncall_env::AnyVecEnv;
use pyo3::prelude::*;

/// Whether a scenario's text asks for `CartPole`, which has nothing to describe beyond its name.
pub(crate) fn is_cartpole(scenario_json: &str) -> bool {
    scenario_json.split_whitespace().collect::<String>() == r#"{"world":"cartpole"}"#
}

/// Its engine. It takes none of the keywords that change a scenario, of which `given` is one that the
/// caller used.
pub(crate) fn cartpole(
    py: Python<'_>,
    checked: &Checked,
    given: Option<&str>,
) -> PyResult<(AnyVecEnv, About)> {
    if let Some(name) = given {
        let message = format!("{name}: cartpole has none: expected it to be left out");
        return Err(Class::Option.err(py, message));
    }
    let build = |rows, options| {
        AnyVecEnv::cartpole(rows, options).map_err(|error| engine_error(py, &error, Class::Option))
    };
    let mut options = checked.options.clone();
    let one = build(1, options.clone())?;
    options.decision_interval_min = checked.interval.ticks(py, one.spec())?;
    let engine = build(checked.rows, options)?;
    let about = About {
        name: "cartpole".to_owned(),
        title: "CartPole-v1".to_owned(),
        description: String::new(),
        scenario_hash: engine.params_hash(),
        params_hash: engine.params_hash(),
        generator: engine.generator().name(),
    };
    Ok((engine, about))
}
