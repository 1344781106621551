//! From episodes to a [`Report`].

use super::{
    Aggregate, Difference, Improvement, IncidentReport, Mitigation, Played, PolicyEpisodes,
    PolicyReport, Report, SCHEMA_VERSION, ScenarioEpisodes, ScenarioReport, Stat,
};
use crate::hex;
use crate::metrics::{Metric, Outcome, table};
use crate::runner::{EpisodeResult, Plan};
use crate::score::{Reference, Score};
use crate::stats::{Bootstrap, Figure, mean, quantile, wins};
use oncall_core::Spec;
use std::collections::BTreeMap;

impl Report {
    /// Sums up. The bootstrap's stream follows from the plan's seed, so equal episodes make an equal
    /// report.
    pub fn new(
        spec: &Spec,
        plan: Plan,
        scenarios: &[ScenarioEpisodes],
        reference: &Reference,
    ) -> Self {
        let bootstrap = Bootstrap::new(plan.seed);
        let summary = |scenario| ScenarioReport::new(spec, scenario, reference, bootstrap);
        Self {
            schema_version: SCHEMA_VERSION,
            world: spec.world.to_owned(),
            spec_hash: hex(spec.hash()),
            split: plan.split.name().to_owned(),
            seed: plan.seed,
            episodes: plan.episodes,
            scenarios: scenarios.iter().map(summary).collect(),
            improvement: scenarios.iter().flat_map(|s| improvement(s, bootstrap)).collect(),
            aggregate: aggregate(scenarios, reference, bootstrap),
        }
    }
}

impl ScenarioReport {
    fn new(
        spec: &Spec,
        scenario: &ScenarioEpisodes,
        reference: &Reference,
        bootstrap: Bootstrap,
    ) -> Self {
        let score = reference.score(&scenario.name, scenario.hash);
        let best_rule = best_rule(scenario);
        let summary = |policy: &PolicyEpisodes| {
            let estimate = bootstrap.estimate(&[&policy.returns()]);
            let scored = score.map(|score| score.of_estimate(estimate).into());
            let rule = best_rule.filter(|rule| rule.name != policy.name);
            let against = rule.map(|rule| difference(policy, rule, score, bootstrap));
            policy.summary(spec, bootstrap, (estimate.into(), scored), against)
        };
        Self {
            name: scenario.name.clone(),
            hash: hex(scenario.hash),
            best_rule: best_rule.map(|rule| rule.name.clone()),
            policies: scenario.policies.iter().map(summary).collect(),
        }
    }
}

/// The rule with the highest mean return. It is chosen on the very episodes on which the others are held
/// against it, which favours the rule.
fn best_rule(scenario: &ScenarioEpisodes) -> Option<&PolicyEpisodes> {
    let rules = scenario.policies.iter().filter(|policy| policy.is_rule);
    rules.max_by(|a, b| mean(&a.returns()).total_cmp(&mean(&b.returns())))
}

/// How much better a policy is than a rule on the same mornings.
fn difference(
    policy: &PolicyEpisodes,
    rule: &PolicyEpisodes,
    score: Option<Score>,
    bootstrap: Bootstrap,
) -> Difference {
    let rule = rule.returns();
    let pairs: Vec<f64> = policy.returns().iter().zip(&rule).map(|(a, b)| a - b).collect();
    let usd = bootstrap.mean(&[&pairs]);
    let gap = score.map(|score| score.hundred() - mean(&rule));
    let gap_closed = gap.filter(|&gap| gap > 0.0).map(|gap| usd.scaled(1.0 / gap));
    Difference { usd, gap_closed }
}

impl PolicyEpisodes {
    pub(crate) fn returns(&self) -> Vec<f64> {
        self.of(|episode| episode.return_)
    }

    pub(crate) fn scores(&self, score: Score) -> Vec<f64> {
        self.of(|episode| score.of(episode.return_))
    }

    fn of(&self, value: impl Fn(&EpisodeResult) -> f64) -> Vec<f64> {
        self.episodes.iter().map(value).collect()
    }

    fn summary(
        &self,
        spec: &Spec,
        bootstrap: Bootstrap,
        (return_, score): (Stat, Option<Stat>),
        against_best_rule: Option<Difference>,
    ) -> PolicyReport {
        let terms = spec.terms.iter().enumerate();
        PolicyReport {
            name: self.name.clone(),
            params: self.params.clone(),
            return_,
            score,
            against_best_rule,
            beats_planner: None,
            budget_burned: mean(&self.of(|e| e.budget_burned)),
            terms: terms
                .map(|(i, t)| (t.name.to_owned(), mean(&self.of(|e| e.terms[i]))))
                .collect(),
            incident: self.incident(),
            metrics: self.metrics(spec),
            played: self.played(bootstrap),
        }
    }

    /// By the scenario that the episode drew, in the order of the names; nothing where all played the same.
    fn played(&self, bootstrap: Bootstrap) -> Vec<Played> {
        let mut returns: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for episode in &self.episodes {
            returns.entry(&episode.played).or_default().push(episode.return_);
        }
        if returns.len() < 2 {
            return Vec::new();
        }
        let part = |(scenario, returns): (&str, Vec<f64>)| Played {
            scenario: scenario.to_owned(),
            episodes: returns.len(),
            return_: bootstrap.mean(&[&returns]),
        };
        returns.into_iter().map(part).collect()
    }

    /// Means over the episodes that have a value.
    fn metrics(&self, spec: &Spec) -> Vec<(String, f64)> {
        let of = |(i, metric): (usize, &Metric)| {
            let values = self.episodes.iter().filter_map(|e| e.metrics.get(i).copied());
            let values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
            (metric.name.to_owned(), mean(&values))
        };
        table(spec.world).iter().enumerate().map(of).collect()
    }

    /// `None` in a world without a pager.
    fn incident(&self) -> Option<IncidentReport> {
        let outcomes: Vec<Outcome> =
            self.episodes.iter().map(|e| e.incident).collect::<Option<_>>()?;
        let minutes: Vec<f64> =
            outcomes.iter().filter_map(|o| o.minutes_to_mitigate).map(f64::from).collect();
        let mean_of = |value: &dyn Fn(&Outcome) -> f64| {
            mean(&outcomes.iter().map(value).collect::<Vec<f64>>())
        };
        Some(IncidentReport {
            pages: mean_of(&|o| f64::from(o.pages)),
            minutes_to_mitigate: Mitigation {
                median: (!minutes.is_empty()).then(|| quantile(&minutes, 0.5)),
                share_burned: minutes.len() as f64 / self.episodes.len() as f64,
                share_unmitigated: mean_of(&|o| f64::from(u8::from(o.unmitigated))),
            },
        })
    }
}

/// All pairs of policies, each once.
fn improvement(scenario: &ScenarioEpisodes, bootstrap: Bootstrap) -> Vec<Improvement> {
    let returns: Vec<Vec<f64>> = scenario.policies.iter().map(PolicyEpisodes::returns).collect();
    let mut pairs = Vec::new();
    for (i, a) in scenario.policies.iter().enumerate() {
        for (j, b) in scenario.policies.iter().enumerate().skip(i + 1) {
            let Figure { value: p, ci95 } = bootstrap.mean(&[&wins(&returns[i], &returns[j])]);
            let (a, b) = (a.name.clone(), b.name.clone());
            pairs.push(Improvement { scenario: scenario.name.clone(), a, b, p, ci95 });
        }
    }
    pairs
}

/// The scenarios that have a reference.
pub(crate) fn scored<'a>(
    scenarios: &'a [ScenarioEpisodes],
    reference: &Reference,
) -> Vec<(&'a ScenarioEpisodes, Score)> {
    scenarios.iter().filter_map(|s| Some((s, reference.score(&s.name, s.hash)?))).collect()
}

/// Scores over the scenarios that have a reference; nothing for fewer than two of them.
fn aggregate(
    scenarios: &[ScenarioEpisodes],
    reference: &Reference,
    bootstrap: Bootstrap,
) -> Vec<Aggregate> {
    let scored: Vec<(&ScenarioEpisodes, Score)> = scored(scenarios, reference);
    if scored.len() < 2 {
        return Vec::new();
    }
    let of_policy = |(i, policy): (usize, &PolicyEpisodes)| {
        let strata: Vec<Vec<f64>> =
            scored.iter().map(|(scenario, score)| scenario.policies[i].scores(*score)).collect();
        let strata: Vec<&[f64]> = strata.iter().map(Vec::as_slice).collect();
        Aggregate {
            policy: policy.name.clone(),
            scenarios: scored.iter().map(|(scenario, _)| scenario.name.clone()).collect(),
            score: bootstrap.estimate(&strata).into(),
            median_of_means: bootstrap.median_of_means(&strata),
            optimality_gap: bootstrap.optimality_gap(&strata, 100.0),
        }
    };
    scored[0].0.policies.iter().enumerate().map(of_policy).collect()
}
