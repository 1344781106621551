//! The list of all policies.

use crate::discovery::{operator, setting};
use crate::param::Param;
use crate::policies::{cheats, fixed, hpa, open_loop, random, trained};
use crate::runbook;
use crate::spec::{PolicyError, PolicySpec};
use crate::{Policy, tuned};
use oncall_core::Spec;
use std::sync::LazyLock;

/// A policy of the list.
#[derive(Debug)]
pub struct Description {
    /// Binding name.
    pub name: &'static str,
    /// One sentence.
    pub doc: &'static str,
    /// The worlds that it plays, by name.
    pub worlds: &'static [&'static str],
    /// Its parameters; ranges are what a search may try.
    pub params: Vec<Param>,
    make: Make,
}

/// The fleet alone.
const FLEET: &[&str] = &["fleet"];
/// Discovery alone.
const DISCOVERY: &[&str] = &["discovery"];
/// Every world: such a policy knows no dial and no signal by name.
const ANY: &[&str] = &["fleet", "discovery"];

impl Description {
    /// A policy without parameters that another room builds; it is not in this list.
    pub fn elsewhere(
        name: &'static str,
        doc: &'static str,
        worlds: &'static [&'static str],
    ) -> Self {
        Self { name, doc, worlds, params: Vec::new(), make: Make::Elsewhere }
    }

    /// Whether it plays a world.
    pub fn plays(&self, world: &str) -> bool {
        self.worlds.contains(&world)
    }

    /// Refuses a world that it does not play.
    pub fn check_world(&self, world: &str) -> Result<(), PolicyError> {
        if self.plays(world) {
            return Ok(());
        }
        let known: Vec<&str> = names_for(world).collect();
        Err(PolicyError::new(format!(
            "policy `{}` plays {}, found a scenario of {world}, expected one of {}",
            self.name,
            self.worlds.join(" and "),
            known.join(", ")
        )))
    }

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
    /// From what its world has, and the values of its parameters.
    Any(fn(&Spec, &[f64]) -> Box<dyn Policy>),
    /// From the weights of the scenario.
    Trained,
    /// By another room.
    Elsewhere,
}

static ALL: LazyLock<Vec<Description>> = LazyLock::new(|| {
    let entry = |name, doc, params, make| {
        let make = Make::Rule(make);
        Description { name, doc, worlds: FLEET, params, make }
    };
    let any = |name, doc, params, make| {
        let make = Make::Any(make);
        Description { name, doc, worlds: ANY, params, make }
    };
    let mut all = vec![
        any(
            "hold",
            "Keeps every dial where the shift began.",
            Vec::new(),
            (|spec, _| Box::new(fixed::Hold::new(spec))) as fn(&Spec, &[f64]) -> Box<dyn Policy>,
        ),
        entry(
            "fixed",
            "One setting of the dials for the whole shift; dials that are not named are kept.",
            fixed::Setting::table(),
            (|values| Box::new(fixed::Fixed::new(fixed::Setting::from_values(values))))
                as fn(&[f64]) -> Box<dyn Policy>,
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
        any(
            "random",
            "Keeps most dials most of the time and else draws a stop.",
            random::RandomParams::table(),
            |spec, values| {
                Box::new(random::Random::new(spec, random::RandomParams::from_values(values)))
            },
        ),
    ];
    all.extend(discovery_rules());
    all.push(Description {
        name: trained::NAME,
        doc: "The agent trained by proximal policy optimisation: that of the scenario, else a generalist.",
        worlds: ANY,
        params: Vec::new(),
        make: Make::Trained,
    });
    all.extend(cheats::CHEATS.iter().map(|cheat| entry(cheat.0, cheat.1, Vec::new(), cheat.2)));
    all
});

/// The policies of discovery. The oracle is told what nobody is told, so it is no rule to be beaten.
fn discovery_rules() -> Vec<Description> {
    let entry = |name, doc, params, make| {
        let make = Make::Rule(make);
        Description { name, doc, worlds: DISCOVERY, params, make }
    };
    vec![
        entry(
            "default",
            "The dials at their defaults, never turned; score 0.",
            setting::table(),
            (|values| Box::new(setting::Setting::new(values))) as fn(&[f64]) -> Box<dyn Policy>,
        ),
        entry(
            "static",
            "The best setting of the dials that a search found for the training mixture.",
            setting::table(),
            |values| Box::new(setting::Setting::new(values)),
        ),
        entry(
            "safest",
            "The best setting for the training mixture if running cost nothing: how dear safety is.",
            setting::table(),
            |values| Box::new(setting::Setting::new(values)),
        ),
        entry(
            "operator",
            "The scripted operator: between incidents the setting of static, else by the pattern of the symptoms.",
            operator::Rules::table(),
            |values| Box::new(operator::Operator::new(&operator::Rules::from_values(values))),
        ),
        entry(
            setting::ORACLE,
            "Is told the scenario and plays the best setting that a search found for it; score 100.",
            setting::table(),
            |values| Box::new(setting::Oracle::new(values)),
        ),
    ]
}

/// Names of all policies, the honest ones first.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|description| description.name)
}

/// Names of the policies that each exploit one price; none may pay.
pub fn cheats() -> impl Iterator<Item = &'static str> {
    cheats::CHEATS.iter().map(|cheat| cheat.0)
}

/// Whether that is an honest rule: neither trained, nor a cheat, nor one that is told what nobody is.
pub fn is_rule(name: &str) -> bool {
    let is_trained = describe(name).is_some_and(Description::is_trained);
    !is_trained && name != setting::ORACLE && cheats().all(|cheat| cheat != name)
}

/// The policy of that name.
pub fn describe(name: &str) -> Option<&'static Description> {
    ALL.iter().find(|description| description.name == name)
}

/// Names of the policies that play a world, the honest ones first.
pub fn names_for(world: &str) -> impl Iterator<Item = &'static str> {
    ALL.iter().filter(move |description| description.plays(world)).map(|known| known.name)
}

/// Builds a policy of the fleet with its parameters tuned over all scenarios, where there are such,
/// else with its defaults. Given parameters win.
pub fn build(spec: &PolicySpec) -> Result<Box<dyn Policy>, PolicyError> {
    build_for(spec, &FLEET_SPEC, tuned::DEFAULT)
}

static FLEET_SPEC: LazyLock<Spec> = LazyLock::new(oncall_fleet::world::spec);

/// Builds a policy for a world, with the parameters tuned for a scenario, or for all of them if the
/// scenario is not one of the shipped ones. Refuses a policy that does not play that world.
pub fn build_for(
    policy: &PolicySpec,
    world: &Spec,
    scenario: &str,
) -> Result<Box<dyn Policy>, PolicyError> {
    let (description, values) = values(policy, world.world, scenario)?;
    match description.make {
        Make::Rule(make) => Ok(make(&values)),
        Make::Any(make) => Ok(make(world, &values)),
        Make::Trained => trained::policy(world, scenario),
        Make::Elsewhere => Err(PolicyError::new(format!(
            "policy `{}` is built by another room, expected one of {}",
            description.name,
            names_for(world.world).collect::<Vec<_>>().join(", ")
        ))),
    }
}

/// The given policy with every parameter spelled out, as [`build_for`] would use it.
pub fn resolve(
    policy: &PolicySpec,
    world: &str,
    scenario: &str,
) -> Result<PolicySpec, PolicyError> {
    let (description, values) = values(policy, world, scenario)?;
    Ok(PolicySpec::from_values(description, &values))
}

fn values(
    policy: &PolicySpec,
    world: &str,
    scenario: &str,
) -> Result<(&'static Description, Vec<f64>), PolicyError> {
    policy.check()?.check_world(world)?;
    policy.values(&tuned::sets(&policy.name, scenario))
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

    #[test]
    fn a_policy_of_another_world_is_refused() {
        let other = oncall_discovery_env::spec();
        let error = |name: &str| match build_for(&PolicySpec::new(name), &other, "x") {
            Ok(_) => panic!("{name} was built"),
            Err(error) => error.to_string(),
        };
        let runbook = error("runbook");
        let start =
            "policy `runbook` plays fleet, found a scenario of discovery, expected one of hold, ";
        assert!(runbook.starts_with(start), "{runbook}");
        for name in names() {
            let description = describe(name).unwrap();
            assert!(!description.worlds.is_empty());
            assert_eq!(names_for("fleet").any(|known| known == name), description.plays("fleet"));
            if !description.plays("discovery") {
                assert!(error(name).contains(name));
            }
        }
        assert!(names_for("nowhere").next().is_none());
    }
}
