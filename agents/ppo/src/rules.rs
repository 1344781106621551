//! A rule beside the actor: one copy for each row.

use anyhow::{Context, Result, ensure};
use oncall_env::AnyVecEnv;
use oncall_heuristics::{Policy, PolicyKey};
use oncall_planner::build_policy;

/// One copy of the rule for each row of a worker.
pub struct Rules {
    /// The field that names it, for errors.
    field: &'static str,
    rule: String,
    /// Whether each row's rule is that of the scenario it plays.
    told: bool,
    policies: Vec<Box<dyn Policy>>,
    signals: Vec<f64>,
}

fn policy((field, rule): (&str, &str), env: &AnyVecEnv, scenario: &str) -> Result<Box<dyn Policy>> {
    build_policy(rule, env.spec(), scenario).with_context(|| format!("{field} = {rule}"))
}

impl std::fmt::Debug for Rules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rules").field("rows", &self.policies.len()).finish_non_exhaustive()
    }
}

impl Rules {
    /// A rule as `oncall eval` takes it, with the parameters tuned for the scenario, or the honest
    /// planner. Without a scenario each row's rule is that of the one that the row plays, of a mixture the
    /// one that was drawn: then it knows more than who learns from it.
    /// `field` names the rule in errors: `over`, for example.
    pub fn new(
        (field, rule): (&'static str, &str),
        scenario: Option<&str>,
        env: &AnyVecEnv,
    ) -> Result<Self> {
        let of = |row| policy((field, rule), env, scenario.unwrap_or_else(|| env.scenario_of(row)));
        let mut policies = (0..env.num_envs()).map(of).collect::<Result<Vec<Box<dyn Policy>>>>()?;
        for (row, policy) in policies.iter_mut().enumerate() {
            policy.reset(key(env, row));
            policy.told(env.scenario_of(row));
        }
        Ok(Self {
            field,
            rule: rule.to_owned(),
            told: scenario.is_none(),
            policies,
            signals: vec![0.0; env.spec().signals.len()],
        })
    }

    /// What the rule does in a row now, in natural units. Once for each decision: it remembers what it saw.
    pub fn act(&mut self, env: &AnyVecEnv, row: usize, dials: &mut [f64]) -> Result<()> {
        let own = &mut self.policies[row];
        if env.row(row).minute == 0 {
            if self.told {
                *own = policy((self.field, &self.rule), env, env.scenario_of(row))?;
            }
            own.reset(key(env, row));
            own.told(env.scenario_of(row));
        }
        env.signals(row, &mut self.signals)?;
        own.act(&self.signals, dials);
        Ok(())
    }

    /// What is remembered of each row; refuses a rule that cannot tell.
    pub fn memories(&self) -> Result<Vec<f64>> {
        let mut all = Vec::new();
        for policy in &self.policies {
            let memory = policy.memory();
            all.extend(memory.with_context(|| {
                format!(
                    "{} = {}: expected one that can save what it remembers",
                    self.field, self.rule
                )
            })?);
        }
        Ok(all)
    }

    /// Goes on from what was remembered of each row, as many numbers for each.
    pub fn recall(&mut self, memories: &[f64]) -> Result<()> {
        let expected = self.memories()?.len();
        ensure!(memories.len() == expected, "memories = {}: expected {expected}", memories.len());
        let each = expected / self.policies.len();
        for (row, policy) in self.policies.iter_mut().enumerate() {
            policy.recall(&memories[row * each..][..each]);
        }
        Ok(())
    }
}

/// How a decision that stands for some ticks is played: ticks that the environment holds the dials, and how often
/// they are set anew. Over a rule, which decides at every tick, the environment holds nothing.
pub(crate) fn pace(is_over: bool, decision_interval: u32) -> (u32, u32) {
    if is_over { (1, decision_interval) } else { (decision_interval, 1) }
}

pub(crate) fn key(env: &AnyVecEnv, row: usize) -> PolicyKey {
    let row = env.row(row);
    PolicyKey { seed: row.seed, episode: row.episode }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_env::{Actions, Options, Seeds};

    #[test]
    fn a_rule_that_cannot_be_saved_is_named() {
        let world = oncall_env::shipped("spike").unwrap().world;
        let mut env = AnyVecEnv::new(world, 2, Options::default()).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(3), None, &mut columns.borrow_reset()).unwrap();
        let error = |rule: &str| {
            Rules::new(("over", rule), Some("spike"), &env)
                .unwrap()
                .memories()
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            error("runbook"),
            "over = runbook: expected one that can save what it remembers"
        );
        let hold = Rules::new(("over", "hold"), Some("spike"), &env).unwrap();
        assert_eq!(hold.memories().unwrap(), [0.0; 0]);
    }

    /// In the middle of an outage, where the operator lives on what it remembers.
    #[test]
    fn a_recalled_rule_decides_as_the_one_that_was_there() {
        let scenario = oncall_env::shipped("control-plane-outage").unwrap();
        let options = Options { decision_interval_min: 3, ..Options::default() };
        let mut env = AnyVecEnv::new(scenario.world, 2, options).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(5), None, &mut columns.borrow_reset()).unwrap();
        let dials = env.spec().dials.len();
        let mut was_there = Rules::new(("over", "operator"), Some(&scenario.name), &env).unwrap();
        let fresh = was_there.memories().unwrap();
        let mut actions = vec![0.0; 2 * dials];
        let mut differed = 0;
        for _ in 0..110 {
            let saved = was_there.memories().unwrap();
            let mut recalled =
                Rules::new(("over", "operator"), Some(&scenario.name), &env).unwrap();
            let mut forgetful =
                Rules::new(("over", "operator"), Some(&scenario.name), &env).unwrap();
            recalled.recall(&saved).unwrap();
            for (row, action) in actions.chunks_exact_mut(dials).enumerate() {
                let mut other = vec![0.0; dials];
                was_there.act(&env, row, action).unwrap();
                recalled.act(&env, row, &mut other).unwrap();
                assert_eq!(other, action);
                forgetful.act(&env, row, &mut other).unwrap();
                differed += u32::from(other != action);
            }
            env.step(Actions::Policy(&actions), &mut columns.borrow()).unwrap();
        }
        assert!(differed > 0, "nothing was remembered");
        assert_ne!(was_there.memories().unwrap(), fresh);
        let error = was_there.recall(&fresh[1..]).unwrap_err().to_string();
        assert_eq!(error, "memories = 29: expected 30");
    }
}
