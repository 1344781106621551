//! Trained weights against rules, on the same episodes: the table of `oncall eval` for a file.

use crate::evaluate::EVALUATION_SEED;
use anyhow::{Context, Result, ensure};
use oncall_core::Split;
use oncall_env::{AnyWorld, Scenario};
use oncall_eval::score::reference;
use oncall_eval::{
    Contender, EvalError, Plan, PolicyEpisodes, Report, ScenarioEpisodes, episode_minutes,
    run_made, run_policy,
};
use oncall_heuristics::{Policy, player};
use oncall_weights::file::META_KEY;
use oncall_weights::{Meta, Weights};
use safetensors::SafeTensors;
use std::path::Path;
use std::sync::Arc;

/// Under which name weights stand in the table.
pub const NAME: &str = "trained";

/// Reads weights for a scenario's world.
pub fn read(path: &Path, scenario: &Scenario) -> Result<Weights> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let weights = Weights::from_bytes(&bytes, scenario.world.spec());
    weights.with_context(|| path.display().to_string())
}

/// The rule that a training is to beat in a world.
pub fn bar_name(world: &str) -> &'static str {
    if world == "discovery" { "static" } else { "runbook" }
}

/// Mean return of [`bar_name`] on training episodes that no training plays, dollars; `None` where the
/// world has no such rule. Some seconds of a core at most, but for a scenario of a large fleet.
pub fn bar(scenario: &Scenario) -> Option<f64> {
    // An episode of discovery takes a thousand times as long.
    let episodes = if matches!(scenario.world, AnyWorld::Fleet(_)) { 1000 } else { 64 };
    let plan = Plan { episodes, split: Split::Train, seed: EVALUATION_SEED, threads: 1 };
    let rule = Contender::parse(bar_name(scenario.world.spec().world)).ok()?;
    let episodes = run_policy(scenario, &rule.policy, plan, &|_| ()).ok()?;
    Some(episodes.iter().map(|episode| episode.return_).sum::<f64>() / episodes.len() as f64)
}

/// The scenario that weights were trained on, from the file's head.
pub fn trained_on(path: &Path) -> Result<String> {
    let name = || path.display().to_string();
    let bytes = std::fs::read(path).with_context(name)?;
    let (_, head) = SafeTensors::read_metadata(&bytes).with_context(name)?;
    let text = head.metadata().as_ref().and_then(|entries| entries.get(META_KEY));
    let text = text.with_context(|| format!("{}: metadata `{META_KEY}` is missing", name()))?;
    Ok(serde_json::from_str::<Meta>(text).with_context(name)?.scenario)
}

/// Rules in a list as `oncall eval` takes it: a comma also separates the parameters of one rule, and a
/// piece with `=` but without `:` goes on with those of the rule before it. Refuses unknown rules.
pub fn rules(list: &str) -> Result<Vec<Contender>> {
    let mut texts: Vec<String> = Vec::new();
    for piece in list.split(',').map(str::trim) {
        match texts.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ => texts.push(piece.to_owned()),
        }
    }
    texts.iter().map(|text| Ok(Contender::parse(text)?)).collect()
}

/// Minutes that will be played, for a progress bar.
pub fn minutes(scenario: &Scenario, rules: usize, plan: Plan) -> Result<f64> {
    let length = episode_minutes(scenario, plan.split, plan.seed)?;
    Ok(length * plan.episodes as f64 * (1.0 + rules as f64))
}

/// Plays the weights, in the mode that they were measured in, and the rules on the same episodes.
///
/// Refuses names that stand twice.
pub fn evaluate(
    scenario: &Scenario,
    weights: &Weights,
    rules: &[Contender],
    plan: Plan,
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Report> {
    let spec = scenario.world.spec();
    for (index, rule) in rules.iter().enumerate() {
        let is_new = rules[..index].iter().all(|other| other.name != rule.name);
        ensure!(is_new, "policies = {}: expected each name once", rule.name);
    }
    let weights = Arc::new(weights.clone());
    let make =
        || -> Result<Box<dyn Policy>, EvalError> { Ok(Box::new(player(weights.clone(), spec)?)) };
    let mut played = ScenarioEpisodes::new(scenario);
    played.policies.push(PolicyEpisodes {
        name: NAME.to_owned(),
        params: Vec::new(),
        is_rule: false,
        episodes: run_made(scenario, &make, plan, progress)?,
    });
    for rule in rules {
        let resolved =
            oncall_heuristics::registry::resolve(&rule.policy, spec.world, &scenario.name)?;
        played.policies.push(PolicyEpisodes {
            name: rule.name.clone(),
            params: resolved.params,
            is_rule: rule.is_rule(),
            episodes: run_policy(scenario, &rule.policy, plan, progress)?,
        });
    }
    Ok(Report::new(spec, plan, &[played], reference()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FIRST_SHARE;
    use crate::evaluate::{Player, returns};
    use crate::params::Layout;
    use oncall_core::View;
    use oncall_weights::file::FORMAT;
    use oncall_weights::{Grid, Heads, Mode};

    /// More than one, so that holding a decision is compared too.
    const INTERVAL: u32 = 3;

    fn weights(scenario: &Scenario) -> Weights {
        let spec = scenario.world.spec();
        let inputs = spec.columns_of(View::Operator).len();
        let layout = Layout::new((inputs, 0), 8, Heads::of(spec).logits());
        let meta = Meta {
            format: FORMAT,
            world: spec.world.to_owned(),
            spec_hash: oncall_core::hex(spec.hash()),
            scenario: scenario.name.clone(),
            scenario_hash: oncall_core::hex(scenario.hash),
            view: View::Operator.name().to_owned(),
            decision_interval_min: INTERVAL,
            seed: 1,
            steps: 0,
            grid: Grid::Stops,
            over: None,
            mode: Mode::Sample,
            evaluation: None,
        };
        Weights::new(
            meta,
            layout.tensors(&layout.start((spec, &Heads::of(spec)), FIRST_SHARE, 1)),
            spec,
        )
        .unwrap()
    }

    const PLAN: Plan =
        Plan { episodes: 12, split: Split::Train, seed: EVALUATION_SEED, threads: 2 };

    /// What the training's own evaluation finds for the same weights; and `oncall eval`'s figures for
    /// the rules.
    #[test]
    fn all_play_the_same_episodes() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let weights = weights(&scenario);
        let rules = rules("hold,runbook").unwrap();
        let report = evaluate(&scenario, &weights, &rules, PLAN, &|_| ()).unwrap();
        let policies = &report.scenarios[0].policies;
        let names: Vec<&str> = policies.iter().map(|policy| policy.name.as_str()).collect();
        assert_eq!(names, [NAME, "hold", "runbook"]);
        let player = Player {
            actor: weights.actor(),
            grid: &Grid::Stops,
            over: None,
            decision_interval: INTERVAL,
        };
        let own = returns(&scenario, player, Mode::Sample, PLAN.episodes, 1).unwrap();
        let own = own.iter().sum::<f64>() / own.len() as f64;
        assert!((policies[0].return_.mean - own).abs() < 1e-9, "{own}");
        let known = oncall_eval::evaluate(&[scenario], &rules, PLAN, &|_| ()).unwrap().0;
        for (found, known) in policies[1..].iter().zip(&known.scenarios[0].policies) {
            assert_eq!(found.return_.mean, known.return_.mean);
        }
    }

    /// A policy that never deviates is its rule, which decides at every tick; and either is what the training's own
    /// evaluation finds.
    #[test]
    fn over_a_rule_the_same_episodes_are_played() {
        let scenario = oncall_env::shipped("control-plane-outage").unwrap();
        let spec = scenario.world.spec();
        let heads = Heads::on(spec, &Grid::Stops, true).unwrap();
        let layout = Layout::new((spec.columns_of(View::Operator).len(), 0), 8, heads.logits());
        let plan = Plan { episodes: 3, ..PLAN };
        let mut found = Vec::new();
        for (first_share, mode) in [(0.9, Mode::Greedy), (0.995, Mode::Sample)] {
            let meta = Meta {
                world: spec.world.to_owned(),
                spec_hash: oncall_core::hex(spec.hash()),
                over: Some("operator".to_owned()),
                mode,
                ..weights(&oncall_env::shipped("spike").unwrap()).meta().clone()
            };
            let params = layout.start((spec, &heads), first_share, 1);
            let weights = Weights::new(meta, layout.tensors(&params), spec).unwrap();
            let rules = rules("operator").unwrap();
            let report = evaluate(&scenario, &weights, &rules, plan, &|_| ()).unwrap();
            let player = Player {
                actor: weights.actor(),
                grid: &Grid::Stops,
                over: Some(("operator", "spike")),
                decision_interval: INTERVAL,
            };
            let own = returns(&scenario, player, mode, plan.episodes, 1).unwrap();
            let own = own.iter().sum::<f64>() / own.len() as f64;
            let of_table = |place: usize| report.scenarios[0].policies[place].return_.mean;
            assert!((of_table(0) - own).abs() < 1e-9, "{own} {}", of_table(0));
            assert_eq!(of_table(0) == of_table(1), mode == Mode::Greedy, "{}", of_table(1));
            found.push(own);
        }
        assert_ne!(found[0], found[1]);
    }

    #[test]
    fn the_bar_is_the_rules_mean() {
        let scenario = oncall_env::shipped("bad-build").unwrap();
        let plan = Plan { episodes: 1000, threads: 2, ..PLAN };
        let known = oncall_eval::evaluate(
            std::slice::from_ref(&scenario),
            &rules(bar_name("fleet")).unwrap(),
            plan,
            &|_| (),
        );
        let known = known.unwrap().0.scenarios[0].policies[0].return_.mean;
        assert!((bar(&scenario).unwrap() - known).abs() < 1e-9);
    }

    #[test]
    fn wrong_rules_and_files_are_refused() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let weights = weights(&scenario);
        let error = |list: &str| {
            let rules = rules(list).unwrap();
            evaluate(&scenario, &weights, &rules, PLAN, &|_| ()).unwrap_err().to_string()
        };
        assert_eq!(error("hold,hold"), "policies = hold: expected each name once");
        let unknown = rules("hold,runbok").unwrap_err().to_string();
        assert!(unknown.contains("`runbok` is not known"), "{unknown}");
        let path = std::env::temp_dir().join(format!("oncall-versus-{}", std::process::id()));
        std::fs::write(&path, weights.to_bytes()).unwrap();
        assert!(read(&path, &scenario).unwrap().actor() == weights.actor());
        assert_eq!(trained_on(&path).unwrap(), "spike");
        std::fs::write(&path, "no weights").unwrap();
        let error = format!("{:#}", read(&path, &scenario).unwrap_err());
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("not a safetensors file"), "{error}");
    }

    #[test]
    fn lists_are_split_as_oncall_eval_does() {
        let names = |list| -> Vec<String> {
            rules(list).unwrap().into_iter().map(|rule| rule.name).collect()
        };
        let known = ["hpa:target=0.5,min=6", "runbook", "fixed-20"];
        assert_eq!(names("hpa:target=0.5,min=6,runbook, fixed-20"), known);
        assert!(rules("hold,,runbook").is_err());
    }
}
