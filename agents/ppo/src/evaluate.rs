//! Mean return of a policy on training episodes that were not trained on.

use crate::collect::{act, row_seeds};
use crate::rules::{Rules, pace};
use anyhow::Result;
use oncall_core::Split;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator};
use oncall_env::{Actions, AnyVecEnv, Autoreset, Options, Scenario, Seeds};
use oncall_weights::{Grid, Heads, Mlp, Mode, Scratch};

/// Seed of the episodes. Rows of a training draw theirs from `row_seed(seed, row)`, those of an
/// evaluation from `row_seed(EVALUATION_SEED, row)`, the same mornings as
/// `oncall eval --split train --seed 4242`.
pub const EVALUATION_SEED: u64 = 4242;

/// Shifts that play at the same time: a row of some worlds has megabytes.
const ROWS_MAX: usize = 256;

/// Who plays.
#[derive(Debug, Clone, Copy)]
pub struct Player<'a> {
    /// From an observation to the logits of the dials.
    pub actor: &'a Mlp,
    /// What can be chosen.
    pub grid: &'a Grid,
    /// The rule whose decision is the first choice, and the scenario whose parameters it has.
    pub over: Option<(&'a str, &'a str)>,
    /// Ticks of the world that a decision stands; the rule decides at each of them.
    pub decision_interval: u32,
}

/// Returns of `episodes` shifts, each its own row. The held-out test episodes are not touched.
pub fn returns(
    scenario: &Scenario,
    player: Player<'_>,
    mode: Mode,
    episodes: usize,
    threads: usize,
) -> Result<Vec<f64>> {
    let (held, ticks) = pace(player.over.is_some(), player.decision_interval);
    let options = Options {
        autoreset: Autoreset::Disabled,
        split: Split::Train,
        threads,
        decision_interval_min: held,
        ..Options::default()
    };
    let mut all = Vec::with_capacity(episodes);
    for first in (0..episodes).step_by(ROWS_MAX) {
        let rows = first..episodes.min(first + ROWS_MAX);
        all.extend(play(scenario, (player, ticks), mode, rows, &options)?);
    }
    Ok(all)
}

/// Returns of some of the shifts, which all play at the same time.
fn play(
    scenario: &Scenario,
    (player, ticks): (Player<'_>, u32),
    mode: Mode,
    rows: std::ops::Range<usize>,
    options: &Options,
) -> Result<Vec<f64>> {
    let episodes = rows.len();
    let mut env = AnyVecEnv::new(scenario.world.clone(), episodes, options.clone())?;
    let (actor, heads) = (player.actor, Heads::on(env.spec(), player.grid, player.over.is_some())?);
    let dials = heads.count();
    let mut columns = env.columns();
    let seeds = row_seeds(&env, EVALUATION_SEED, rows);
    env.reset(Seeds::Rows(&seeds), None, &mut columns.borrow_reset())?;
    let mut over = player
        .over
        .map(|(rule, scenario)| Rules::new(("over", rule), Some(scenario), &env))
        .transpose()?;
    let (mut stops, mut actions) = (vec![0_i8; episodes * dials], vec![0.0; episodes * dials]);
    let (mut scratch, mut weights) = (Scratch::default(), Vec::new());
    let mut returns = vec![None; episodes];
    let mut decision = 0;
    while returns.contains(&None) {
        let logits = actor.forward(&columns.observations, &mut scratch);
        let rows = logits.chunks_exact(actor.stride()).zip(stops.chunks_exact_mut(dials));
        for (row, (logits, stops)) in rows.enumerate() {
            match mode {
                Mode::Greedy => heads.greedy(logits, &mut weights, stops),
                Mode::Sample => {
                    let seed = env.row(row).seed;
                    let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
                    let mut stream = key.stream(Purpose::Policy, decision);
                    heads.sample(logits, &mut stream, &mut weights, stops);
                }
            }
        }
        for tick in 0..ticks {
            act(over.as_mut(), &env, &heads, (&stops, tick), &mut actions)?;
            env.step(Actions::Policy(&actions), &mut columns.borrow())?;
            let ended = env.ended().to_vec();
            for row in (0..episodes).filter(|&row| ended[row]) {
                returns[row].get_or_insert(env.episode_stats(row).return_);
            }
            // Shifts of a mixture differ in length: a row that is done plays on, unseen.
            if ended.contains(&true) && returns.contains(&None) {
                env.reset(Seeds::Keep, Some(&ended), &mut columns.borrow_reset())?;
            }
        }
        decision += 1;
    }
    Ok(returns.into_iter().flatten().collect())
}

/// Mean and its standard error.
pub fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    (mean, (squares / (count - 1.0).max(1.0) / count).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FIRST_SHARE;
    use crate::params::Layout;
    use oncall_core::View;
    use oncall_eval::{Plan, run_policy};

    /// A network that always keeps is `hold`, which `oncall eval` can play too.
    #[test]
    fn episodes_are_those_of_oncall_eval() {
        for name in ["spike", "mixed"] {
            let scenario = oncall_env::shipped(name).unwrap();
            let spec = scenario.world.spec();
            let inputs = spec.columns_of(View::Operator).len();
            let layout = Layout::new((inputs, 0), 8, Heads::of(spec).logits());
            let networks = layout.networks(&layout.start((spec, &Heads::of(spec)), FIRST_SHARE, 1));
            let player = Player {
                actor: &networks.actor,
                grid: &Grid::Stops,
                over: None,
                decision_interval: 1,
            };
            let found = returns(&scenario, player, Mode::Greedy, 20, 2).unwrap();
            let plan =
                Plan { episodes: 20, split: Split::Train, seed: EVALUATION_SEED, threads: 1 };
            let hold = "hold".parse().unwrap();
            let known = run_policy(&scenario, &hold, plan, &|_| ()).unwrap();
            let known: Vec<f64> = known.iter().map(|episode| episode.return_).collect();
            assert_eq!(found, known);
            let sampled = returns(&scenario, player, Mode::Sample, 20, 1).unwrap();
            assert!(sampled.iter().zip(&known).all(|(sampled, hold)| sampled != hold));
        }
    }

    #[test]
    fn errors_of_means() {
        assert_eq!(mean_and_error(&[1.0, 3.0]), (2.0, 1.0));
        assert_eq!(mean_and_error(&[5.0]), (5.0, 0.0));
    }
}
