//! The list of all policies.

use crate::param::Param;
use crate::policies::{cheats, fixed, hpa, open_loop, random, trained};
use crate::runbook;
use crate::spec::{PolicyError, PolicySpec};
use crate::{Policy, tuned};
use std::sync::LazyLock;

/// A policy of the list.
#[derive(Debug)]
pub struct Description {
    /// Binding name.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// Its parameters; ranges are what a search may try.
    pub params: Vec<Param>,
    make: Make,
}

impl Description {
    /// Whether it plays weights from a training; the others are rules.
    pub fn is_trained(&self) -> bool {
        matches!(self.make, Make::Trained)
    }
}

/// How a policy is built.
#[derive(Debug)]
enum Make {
    /// From the values of its parameters.
    Rule(fn(&[f64]) -> Box<dyn Policy>),
    /// From the weights of the scenario.
    Trained,
}

static ALL: LazyLock<Vec<Description>> = LazyLock::new(|| {
    let entry = |name, doc, params, make| Description { name, doc, params, make: Make::Rule(make) };
    let mut all = vec![
        entry(
            "hold",
            "Keeps every dial where the shift began.",
            Vec::new(),
            (|_| Box::new(fixed::Hold)) as fn(&[f64]) -> Box<dyn Policy>,
        ),
        entry(
            "fixed",
            "One setting of the dials for the whole shift; dials that are not named are kept.",
            fixed::Setting::table(),
            |values| Box::new(fixed::Fixed::new(fixed::Setting::from_values(values))),
        ),
        entry(
            "best-fixed",
            "The best setting of the dials that a search found for the scenario.",
            fixed::full_table(),
            |values| Box::new(fixed::Fixed::new(fixed::Setting::from_values(values))),
        ),
        entry(
            "target-tracking",
            "The built-in autoscaler with a tuned floor, target and TTL.",
            fixed::Tracking::table(),
            |values| Box::new(fixed::TargetTracking::new(fixed::Tracking::from_values(values))),
        ),
        entry(
            "hpa",
            "The Kubernetes horizontal autoscaler on utilisation, in the place of the built-in one.",
            hpa::HpaParams::table(),
            |values| Box::new(hpa::Hpa::new(hpa::HpaParams::from_values(values))),
        ),
        entry(
            "runbook",
            "The reactive on-call rule: rolls back, degrades, warms up, and sizes the fleet.",
            runbook::Rules::table(),
            |values| Box::new(runbook::Runbook::new(runbook::Rules::from_values(values))),
        ),
        entry(
            "open-loop",
            "A schedule of the dials by blocks of ten minutes that looks at nothing but the clock.",
            open_loop::table(),
            |values| Box::new(open_loop::OpenLoop::new(values)),
        ),
        entry(
            "random",
            "Keeps most dials most of the time and else draws a stop.",
            random::RandomParams::table(),
            |values| Box::new(random::Random::new(random::RandomParams::from_values(values))),
        ),
    ];
    all.push(Description {
        name: trained::NAME,
        doc: "The agent trained by proximal policy optimisation: that of the scenario, else a generalist.",
        params: Vec::new(),
        make: Make::Trained,
    });
    all.extend(cheats::CHEATS.iter().map(|cheat| entry(cheat.0, cheat.1, Vec::new(), cheat.2)));
    all
});

/// Names of all policies, the honest ones first.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|description| description.name)
}

/// Names of the policies that each exploit one price; none may pay.
pub fn cheats() -> impl Iterator<Item = &'static str> {
    cheats::CHEATS.iter().map(|cheat| cheat.0)
}

/// The policy of that name.
pub fn describe(name: &str) -> Option<&'static Description> {
    ALL.iter().find(|description| description.name == name)
}

/// Builds a policy with its parameters tuned over all scenarios, where there are such, else with its
/// defaults. Given parameters win.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn Policy>, PolicyError> {
    build_for(spec, tuned::DEFAULT)
}

/// Builds a policy with the parameters tuned for a scenario; like [`build`] if the scenario is not
/// one of the shipped ones.
pub fn build_for(spec: &PolicySpec, scenario: &str) -> Result<Box<dyn Policy>, PolicyError> {
    let (description, values) = spec.values(&tuned::sets(&spec.name, scenario))?;
    match description.make {
        Make::Rule(make) => Ok(make(&values)),
        Make::Trained => trained::policy(scenario),
    }
}

/// The given policy with every parameter spelled out, as [`build_for`] would use it.
pub fn resolve(spec: &PolicySpec, scenario: &str) -> Result<PolicySpec, PolicyError> {
    let (description, values) = spec.values(&tuned::sets(&spec.name, scenario))?;
    Ok(PolicySpec::from_values(description, &values))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_parameters_make_sense() {
        assert_eq!(names().collect::<BTreeSet<_>>().len(), ALL.len());
        for description in ALL.iter() {
            let mut seen = BTreeSet::new();
            for param in &description.params {
                let at = format!("{}.{}", description.name, param.name);
                assert!(seen.insert(param.name.clone()), "{at}");
                assert!(param.low < param.high && !param.doc.is_empty(), "{at}");
                assert!(param.default.is_none_or(|value| param.accepts(value)), "{at}");
            }
        }
        assert!(cheats().all(|name| describe(name).is_some()));
        let trained: Vec<&str> =
            ALL.iter().filter(|policy| policy.is_trained()).map(|policy| policy.name).collect();
        assert_eq!(trained, [trained::NAME]);
    }
}
