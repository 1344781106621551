//! A rule that shows the way: at first its decisions are played, and the actor learns to repeat them.
//!
//! A policy that starts from nothing settles early for what is safe (the autoscaler on, for example)
//! and does not find what needs several dials at once. One that starts from a rule goes on from there.

use anyhow::{Context, Result};
use oncall_env::AnyVecEnv;
use oncall_heuristics::{Policy, PolicyKey, PolicySpec, build_for};
use oncall_weights::Heads;

/// One copy of the rule for each row of a worker.
pub struct Teachers {
    policies: Vec<Box<dyn Policy>>,
    signals: Vec<f64>,
    dials: Vec<f64>,
}

impl std::fmt::Debug for Teachers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Teachers").field("rows", &self.policies.len()).finish_non_exhaustive()
    }
}

impl Teachers {
    /// A rule as `oncall eval` takes it, with the parameters tuned for the scenario.
    pub fn new(rule: &str, scenario: &str, env: &AnyVecEnv) -> Result<Self> {
        let spec: PolicySpec = rule.parse().with_context(|| format!("teacher = {rule}"))?;
        let mut policies = (0..env.num_envs())
            .map(|_| Ok(build_for(&spec, scenario)?))
            .collect::<Result<Vec<_>>>()?;
        for (row, policy) in policies.iter_mut().enumerate() {
            policy.reset(key(env, row));
        }
        Ok(Self {
            policies,
            signals: vec![0.0; env.spec().signals.len()],
            dials: vec![0.0; env.spec().dials.len()],
        })
    }

    /// What the rule does in a row now, as near as the actor's choices come to it.
    pub fn decide(
        &mut self,
        env: &AnyVecEnv,
        row: usize,
        heads: &Heads,
        stops: &mut [i8],
    ) -> Result<()> {
        let policy = &mut self.policies[row];
        if env.row(row).minute == 0 {
            policy.reset(key(env, row));
        }
        env.signals(row, &mut self.signals)?;
        policy.act(&self.signals, &mut self.dials);
        heads.encode(&self.dials, stops);
        Ok(())
    }
}

fn key(env: &AnyVecEnv, row: usize) -> PolicyKey {
    let row = env.row(row);
    PolicyKey { seed: row.seed, episode: row.episode }
}
