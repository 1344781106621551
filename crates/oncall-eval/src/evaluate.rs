//! All policies on all scenarios.

use crate::error::EvalError;
use crate::report::{PolicyEpisodes, Report, ScenarioEpisodes};
use crate::runner::{EpisodeResult, Plan, run_made, run_policy};
use crate::score::{anchors, reference};
use oncall_env::Scenario;
use oncall_heuristics::{Policy, PolicySpec, registry};

/// Builds a policy of another room, which the list of the rules does not know, for a scenario.
pub type MakePolicy = fn(scenario: &str) -> Box<dyn Policy>;

/// A policy and the name under which it is reported.
#[derive(Debug, Clone)]
pub struct Contender {
    /// As it was asked for.
    pub name: String,
    /// What it is.
    pub policy: PolicySpec,
    /// How it is built, if the list of the rules does not know it.
    make: Option<Made>,
}

/// A policy that the list of the rules does not know.
#[derive(Debug, Clone, Copy)]
struct Made {
    make: MakePolicy,
    worlds: &'static [&'static str],
}

impl Contender {
    /// Parses a policy as people write it, and keeps their spelling as its name.
    pub fn parse(text: &str) -> Result<Self, EvalError> {
        let policy: PolicySpec = text.parse()?;
        Ok(Self { name: text.to_owned(), policy, make: None })
    }

    /// A policy of another room that plays some worlds, without parameters; it does not count as a rule.
    pub fn made(name: &str, worlds: &'static [&'static str], make: MakePolicy) -> Self {
        let make = Some(Made { make, worlds });
        Self { name: name.to_owned(), policy: PolicySpec::new(name), make }
    }

    /// Whether it is an honest rule: neither trained, nor a planner, nor a cheat or told the scenario.
    pub fn is_rule(&self) -> bool {
        self.make.is_none() && registry::is_rule(&self.policy.name)
    }

    /// Plays a scenario; see [`run_policy`].
    pub(crate) fn run(
        &self,
        scenario: &Scenario,
        plan: Plan,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<Vec<EpisodeResult>, EvalError> {
        match self.make {
            Some(Made { make, .. }) => {
                run_made(scenario, &|| Ok(make(&scenario.name)), plan, progress)
            }
            None => run_policy(scenario, &self.policy, plan, progress),
        }
    }
}

/// The policies that `oncall eval` compares in a world unless told otherwise: all that are honest and
/// need no parameters.
pub fn default_contenders(world: &str) -> Vec<Contender> {
    let cheats: Vec<&str> = registry::cheats().collect();
    let honest = oncall_heuristics::names_for(world).filter(|name| !cheats.contains(name));
    // Without parameters `fixed` is `hold`; so is whoever has score 0.
    let zero = anchors(world).zero;
    let named = honest.filter(|name| *name != "fixed" && (*name != "hold" || zero == "hold"));
    let contender =
        |name: &str| Contender { name: name.to_owned(), policy: PolicySpec::new(name), make: None };
    named.map(contender).collect()
}

/// Where an evaluation stands.
#[derive(Debug, Clone, Copy)]
pub struct Progress<'a> {
    /// Name of the scenario that is played.
    pub scenario: &'a str,
    /// Name of the policy that plays it.
    pub policy: &'a str,
    /// Minutes played since the last call.
    pub minutes: u64,
}

/// Plays every policy on the same episodes of every scenario.
///
/// Refuses an empty list, a name that stands twice, scenarios of different worlds, and whatever
/// [`run_policy`] refuses.
pub fn evaluate(
    scenarios: &[Scenario],
    contenders: &[Contender],
    plan: Plan,
    progress: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<(Report, Vec<ScenarioEpisodes>), EvalError> {
    check_names("scenarios", scenarios.iter().map(|scenario| scenario.name.as_str()))?;
    check_names("policies", contenders.iter().map(|contender| contender.name.as_str()))?;
    let spec = scenarios[0].world.spec();
    if let Some(other) = scenarios.iter().find(|s| s.world.spec().hash() != spec.hash()) {
        let expected = format!("a scenario of the world {}, as {}", spec.world, scenarios[0].name);
        return Err(EvalError::value("scenarios", &other.name, expected));
    }
    // All parameters first: a typing error must not cost the minutes of those before it.
    for contender in contenders {
        resolved(contender, &scenarios[0])?;
    }
    let mut all = Vec::new();
    for scenario in scenarios {
        let mut played = ScenarioEpisodes::new(scenario);
        for contender in contenders {
            let names = (scenario.name.as_str(), contender.name.as_str());
            let tell = |minutes| progress(Progress { scenario: names.0, policy: names.1, minutes });
            played.policies.push(PolicyEpisodes {
                name: contender.name.clone(),
                params: resolved(contender, scenario)?.params,
                is_rule: contender.is_rule(),
                episodes: contender.run(scenario, plan, &tell)?,
            });
        }
        all.push(played);
    }
    Ok((Report::new(spec, plan, &all, reference()), all))
}

/// The policy with every parameter that it plays a scenario with.
fn resolved(contender: &Contender, scenario: &Scenario) -> Result<PolicySpec, EvalError> {
    let world = scenario.world.spec().world;
    match contender.make {
        Some(Made { worlds, .. }) if !worlds.contains(&world) => {
            let plays = format!("a policy that plays {world}; it plays {}", worlds.join(" and "));
            Err(EvalError::value("policies", &contender.name, plays))
        }
        Some(_) => Ok(contender.policy.clone()),
        None => Ok(registry::resolve(&contender.policy, world, &scenario.name)?),
    }
}

fn check_names<'a>(argument: &str, names: impl Iterator<Item = &'a str>) -> Result<(), EvalError> {
    let names: Vec<&str> = names.collect();
    if names.is_empty() {
        return Err(EvalError::value(argument, "nothing", "at least one"));
    }
    match names.iter().enumerate().find(|(i, name)| names[..*i].contains(name)) {
        Some((_, name)) => Err(EvalError::value(argument, name, "each name once")),
        None => Ok(()),
    }
}
