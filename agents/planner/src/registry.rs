//! All policies that there are: the rules of `oncall-heuristics`, and the honest planner.

use crate::receding::{RECEDING_NAME, RecedingPlanner};
use oncall_core::Spec;
use oncall_heuristics::spec::PolicyError;
use oncall_heuristics::{Description, Policy, PolicySpec, build_for, describe, names};
use std::sync::LazyLock;

/// The worlds that the honest planner has a model of.
pub(crate) const WORLDS: &[&str] = &["fleet"];

static HONEST: LazyLock<Description> = LazyLock::new(|| {
    let doc = "Plans the next minutes on its own forecast, every minute anew; knows the dashboard and \
               the scenario's description.";
    Description::elsewhere(RECEDING_NAME, doc, WORLDS)
});

/// Every policy, the honest planner last.
pub fn policies() -> impl Iterator<Item = &'static Description> {
    names().filter_map(describe).chain(std::iter::once(&*HONEST))
}

/// Builds a policy as people write it, with the parameters tuned for the scenario.
pub fn build_policy(
    text: &str,
    world: &Spec,
    scenario: &str,
) -> Result<Box<dyn Policy>, PolicyError> {
    if text.trim() == RECEDING_NAME {
        HONEST.check_world(world.world)?;
        return Ok(Box::new(RecedingPlanner::new(scenario)));
    }
    build_for(&text.parse::<PolicySpec>()?, world, scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_built_for_its_world() {
        let fleet = oncall_fleet::world::spec();
        let names: Vec<&str> = policies().map(|policy| policy.name).collect();
        assert_eq!(names.iter().filter(|name| **name == RECEDING_NAME).count(), 1);
        for policy in policies().filter(|policy| policy.plays("fleet")) {
            build_policy(policy.name, &fleet, "spike").unwrap();
        }
        let mut other = fleet;
        other.world = "elsewhere";
        let error = build_policy(RECEDING_NAME, &other, "spike").err().unwrap().to_string();
        assert!(error.starts_with("policy `planner-honest` plays fleet, found"), "{error}");
        assert!(build_policy("nobody", &other, "spike").is_err());
    }
}
