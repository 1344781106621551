//! The trained policy among the rules: weights that come with the project, played without libtorch.

use crate::Policy;
use crate::spec::PolicyError;
use oncall_weights::shipped::GENERALIST;
use oncall_weights::{PpoPolicy, Weights, shipped};
use std::sync::{Arc, LazyLock};

/// Its name in the list.
pub(crate) const NAME: &str = "ppo";

/// Weights by scenario.
type Shipped = Vec<(&'static str, Arc<Weights>)>;

/// All shipped weights, read once: a batch builds a policy for each of its rows.
static ALL: LazyLock<Result<Shipped, PolicyError>> = LazyLock::new(|| {
    let spec = oncall_fleet::world::spec();
    let read = |name| match shipped::weights(name, &spec) {
        Ok(weights) => Ok((name, weights)),
        Err(error) => Err(PolicyError::new(format!("policy `{NAME}`: {name}: {error}"))),
    };
    shipped::names().map(read).collect()
});

/// The policy that was trained on a scenario, else the generalist, in the mode it was measured in.
pub(crate) fn policy(scenario: &str) -> Result<Box<dyn Policy>, PolicyError> {
    let all = ALL.as_ref().map_err(Clone::clone)?;
    let of = |wanted: &str| all.iter().find(|(name, _)| *name == wanted);
    let (_, weights) = of(scenario).or_else(|| of(GENERALIST)).ok_or_else(|| {
        PolicyError::new(format!("policy `{NAME}`: no weights for `{scenario}`, and no generalist"))
    })?;
    let mode = weights.meta().mode;
    let policy = PpoPolicy::new(Arc::clone(weights), &oncall_fleet::world::spec(), mode)
        .map_err(|error| PolicyError::new(format!("policy `{NAME}`: {error}")))?;
    Ok(Box::new(policy))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyKey, PolicySpec, build, build_for};
    use oncall_fleet::{dials, signals};

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
        let of = |scenario: &str| first(&mut *build_for(&spec, scenario).unwrap());
        assert_eq!(of("my-file"), of(GENERALIST));
        assert_eq!(of("my-file"), first(&mut *build(&spec).unwrap()));
        assert_ne!(of("my-file"), of("spike"));
    }
}
