//! A rule that shows the way: at first its decisions are played, and the actor learns to repeat them.
//!
//! A policy that starts from nothing settles early for what is safe (the autoscaler on, for example)
//! and does not find what needs several dials at once. One that starts from a rule goes on from there.

use crate::rules::Rules;
use anyhow::Result;
use oncall_env::AnyVecEnv;
use oncall_weights::Heads;

/// The rule of each row of a worker, and what it wishes.
#[derive(Debug)]
pub struct Teachers {
    rules: Rules,
    dials: Vec<f64>,
}

impl Teachers {
    /// See [`Rules::new`].
    pub fn new(rule: &str, scenario: Option<&str>, env: &AnyVecEnv) -> Result<Self> {
        let rules = Rules::new(("teacher", rule), scenario, env)?;
        Ok(Self { rules, dials: vec![0.0; env.spec().dials.len()] })
    }

    /// What the rule does in a row now, as near as the actor's choices come to it.
    pub fn decide(
        &mut self,
        env: &AnyVecEnv,
        row: usize,
        heads: &Heads,
        stops: &mut [i8],
    ) -> Result<()> {
        self.rules.act(env, row, &mut self.dials)?;
        heads.encode(&self.dials, stops);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::key;
    use oncall_env::{Options, Seeds};
    use oncall_planner::{RECEDING_NAME, build_policy};

    #[test]
    fn teachers_decide_as_they_do_alone() {
        let scenario = oncall_env::shipped("cache-flush").unwrap();
        let mut env = AnyVecEnv::new(scenario.world, 2, Options::default()).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(3), None, &mut columns.borrow_reset()).unwrap();
        let heads = Heads::of(env.spec());
        let mut seen = Vec::new();
        for rule in ["runbook", RECEDING_NAME] {
            let mut teachers = Teachers::new(rule, Some("cache-flush"), &env).unwrap();
            let mut alone = build_policy(rule, env.spec(), "cache-flush").unwrap();
            alone.reset(key(&env, 1));
            let mut signals = vec![0.0; env.spec().signals.len()];
            env.signals(1, &mut signals).unwrap();
            let mut dials = vec![0.0; env.spec().dials.len()];
            alone.act(&signals, &mut dials);
            let (mut expected, mut found) = (vec![0; heads.count()], vec![0; heads.count()]);
            heads.encode(&dials, &mut expected);
            teachers.decide(&env, 1, &heads, &mut found).unwrap();
            assert_eq!(found, expected, "{rule}");
            seen.push(found);
        }
        assert_ne!(seen[0], seen[1], "two teachers, two opinions");
        let error = Teachers::new("nobody", Some("cache-flush"), &env).unwrap_err();
        assert!(format!("{error:#}").contains("nobody"), "{error:#}");
    }

    /// Rows of a mixture, each with the policy of its own scenario, also after the next morning began.
    #[test]
    fn told_teachers_follow_the_scenario_of_their_row() {
        let scenario = oncall_env::shipped("mixed").unwrap();
        let options = Options { max_minutes: Some(5), ..Options::default() };
        let mut env = AnyVecEnv::new(scenario.world, 6, options).unwrap();
        let mut columns = env.columns();
        env.reset(Seeds::Root(3), None, &mut columns.borrow_reset()).unwrap();
        let heads = Heads::of(env.spec());
        let mut told = Teachers::new("ppo", None, &env).unwrap();
        let mut played = std::collections::BTreeSet::new();
        let keep = vec![f64::NAN; 6 * env.spec().dials.len()];
        for _ in 0..12 {
            for row in 0..6 {
                let drawn = env.scenario_of(row).to_owned();
                let mut alone = build_policy("ppo", env.spec(), &drawn).unwrap();
                alone.reset(key(&env, row));
                let mut signals = vec![0.0; env.spec().signals.len()];
                env.signals(row, &mut signals).unwrap();
                let mut dials = vec![0.0; env.spec().dials.len()];
                alone.act(&signals, &mut dials);
                let (mut expected, mut found) = (vec![0; heads.count()], vec![0; heads.count()]);
                heads.encode(&dials, &mut expected);
                told.decide(&env, row, &heads, &mut found).unwrap();
                // A drawing policy's stream goes on, so the first decision of a morning is compared.
                if env.row(row).minute == 0 {
                    assert_eq!(found, expected, "{drawn}");
                    played.insert(drawn);
                }
            }
            env.step(oncall_env::Actions::Policy(&keep), &mut columns.borrow()).unwrap();
        }
        assert_eq!(played.len(), 3, "{played:?}");
    }
}
