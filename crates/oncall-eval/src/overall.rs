//! What an evaluation says beyond the [`Report`]: performance profiles, and pairs of policies over all
//! scenarios. They are drawn, not printed, and cost more than the rest.

use crate::report::{ScenarioEpisodes, scored};
use crate::score::{Reference, Score};
use crate::stats::{Bootstrap, Figure, Profile, wins};

/// The profiles of all policies over some scenarios.
#[derive(Debug, Clone, PartialEq)]
pub struct Profiles {
    /// Names of the scenarios, whose episodes count alike.
    pub scenarios: Vec<String>,
    /// Share of the episodes with a score above each threshold, one entry a policy.
    pub policies: Vec<(String, Profile)>,
}

/// The performance profiles of each scenario that has a reference, and, of two or more, of all of them
/// together: that one last. The score of an episode is that of its return.
pub fn profiles(
    scenarios: &[ScenarioEpisodes],
    reference: &Reference,
    taus: &[f64],
    bootstrap: Bootstrap,
) -> Vec<Profiles> {
    let scored = scored(scenarios, reference);
    let of = |part: &[(&ScenarioEpisodes, Score)]| {
        let policies = part[0].0.policies.iter().enumerate().map(|(i, policy)| {
            let strata: Vec<Vec<f64>> =
                part.iter().map(|(scenario, score)| scenario.policies[i].scores(*score)).collect();
            (policy.name.clone(), bootstrap.profile(&borrow(&strata), taus))
        });
        Profiles {
            scenarios: part.iter().map(|(scenario, _)| scenario.name.clone()).collect(),
            policies: policies.collect(),
        }
    };
    let mut all: Vec<Profiles> = scored.chunks(1).map(of).collect();
    if scored.len() > 1 {
        all.push(of(&scored));
    }
    all
}

/// A pair of policies over all scenarios.
#[derive(Debug, Clone, PartialEq)]
pub struct Duel {
    /// Name of the first policy.
    pub a: String,
    /// Name of the second.
    pub b: String,
    /// Share of the mornings on which `a` gets more than `b`, half of the ties included.
    pub paired: Figure,
    /// Share of all pairs of episodes of the same scenario, one of `a` and one of `b`, in which `a`
    /// gets more; the mean over the scenarios, as rliable reports it.
    pub unpaired: Figure,
}

/// All pairs of policies, each once, in the order of the policies.
pub fn duels(scenarios: &[ScenarioEpisodes], bootstrap: Bootstrap) -> Vec<Duel> {
    let policies = scenarios.first().map_or(0, |scenario| scenario.policies.len());
    let returns = |policy: usize| -> Vec<Vec<f64>> {
        scenarios.iter().map(|scenario| scenario.policies[policy].returns()).collect()
    };
    let returns: Vec<Vec<Vec<f64>>> = (0..policies).map(returns).collect();
    let name = |i: usize| scenarios[0].policies[i].name.clone();
    let mut duels = Vec::new();
    for i in 0..policies {
        for j in i + 1..policies {
            let won: Vec<Vec<f64>> =
                returns[i].iter().zip(&returns[j]).map(|(a, b)| wins(a, b)).collect();
            duels.push(Duel {
                a: name(i),
                b: name(j),
                paired: bootstrap.mean(&borrow(&won)),
                unpaired: bootstrap.improvement(&borrow(&returns[i]), &borrow(&returns[j])),
            });
        }
    }
    duels
}

fn borrow(strata: &[Vec<f64>]) -> Vec<&[f64]> {
    strata.iter().map(Vec::as_slice).collect()
}
