//! The trained policy among the rules: weights that come with the project, played without libtorch.

use crate::spec::PolicyError;
use crate::{Policy, PolicySpec, build_for};
use oncall_core::Spec;
use oncall_weights::{PpoPolicy, Weights, shipped};
use std::sync::{Arc, LazyLock, OnceLock};

/// Its name in the list.
pub(crate) const NAME: &str = "ppo";

/// Weights of a file, once they were read.
type Read = OnceLock<Result<Arc<Weights>, PolicyError>>;

/// A place for the weights of each shipped file: a batch builds a policy for each of its rows.
static ALL: LazyLock<Vec<(&'static shipped::File, Read)>> =
    LazyLock::new(|| shipped::files().iter().map(|file| (file, Read::new())).collect());

/// The policy that was trained on a scenario of a world, else the world's generalist, in the mode it
/// was measured in.
pub(crate) fn policy(spec: &Spec, scenario: &str) -> Result<Box<dyn Policy>, PolicyError> {
    let failed = |error: &dyn std::fmt::Display| {
        PolicyError::new(format!("policy `{NAME}`: {scenario}: {error}"))
    };
    let file = shipped::file_or_generalist(spec.world, scenario).map_err(|error| failed(&error))?;
    let known = ALL.iter().find(|(known, _)| std::ptr::eq(*known, file));
    let read = || file.weights(spec).map_err(|error| failed(&error));
    let weights = match known {
        Some((_, place)) => place.get_or_init(read).clone()?,
        None => read()?,
    };
    Ok(Box::new(player(weights, spec).map_err(|error| failed(&error))?))
}

/// A policy that plays weights in the mode that they were measured in, over the rule that they were trained over,
/// if there is one: with the parameters tuned for the scenario of the training, whichever is played.
pub fn player(weights: Arc<Weights>, spec: &Spec) -> Result<PpoPolicy, PolicyError> {
    let meta = weights.meta();
    let rule = |text: &String| build_for(&text.parse::<PolicySpec>()?, spec, &meta.scenario);
    let (mode, over) = (meta.mode, meta.over.as_ref().map(rule).transpose()?);
    PpoPolicy::new(weights, spec, mode, over).map_err(|error| PolicyError::new(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyKey, build};
    use oncall_fleet::{dials, signals};
    use oncall_weights::shipped::GENERALIST;

    fn first(policy: &mut dyn Policy) -> Vec<u64> {
        policy.reset(PolicyKey { seed: 1, episode: 0 });
        let row: Vec<f64> = signals::table().iter().map(|signal| signal.high / 7.0).collect();
        let mut actions = Vec::new();
        for _ in 0..30 {
            let mut action = [0.0; dials::index::COUNT];
            policy.act(&row, &mut action);
            actions.extend(action.map(f64::to_bits));
        }
        actions
    }

    #[test]
    fn a_scenario_without_weights_gets_the_generalist() {
        let spec = PolicySpec::new(NAME);
        let world = oncall_fleet::world::spec();
        let of = |scenario: &str| first(&mut *build_for(&spec, &world, scenario).unwrap());
        assert_eq!(of("my-file"), of(GENERALIST));
        assert_eq!(of("my-file"), first(&mut *build(&spec).unwrap()));
        assert_ne!(of("my-file"), of("spike"));
    }
}
