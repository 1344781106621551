//! A trained policy as a rule: from the dashboard to the dials.

use crate::file::{Weights, WeightsError};
use crate::heads::Heads;
use crate::network::Scratch;
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, Generator, Policy, PolicyKey, Scaler, Spec, Split, View};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// How a choice is taken from the distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Drawn, from a stream that follows from the episode and the number of the decision. What the
    /// training optimises: a policy may hedge by acting with some probability each minute, and
    /// without chance such a one never acts.
    #[default]
    Sample,
    /// Without chance: keeps a dial, or turns it to the median of its other choices, whichever has
    /// more of the probability; see [`Heads::greedy`].
    Greedy,
}

/// Signals that tell the minute of the episode, of which every world has one.
const CLOCKS: [&str; 2] = ["shift_min", "episode_min"];

/// Minutes are sums of ticks; no tick is as short.
const ROUNDING_MIN: f64 = 1e-6;

/// A trained policy that plays one row.
pub struct PpoPolicy {
    weights: Arc<Weights>,
    heads: Heads,
    /// Whose decisions it deviates from.
    over: Option<Box<dyn Policy>>,
    /// Where each input stands in a row of signals, and how it is scaled.
    columns: Vec<(usize, Scaler)>,
    mode: Mode,
    key: EpisodeKey,
    decisions: u64,
    /// The signal that tells the minute, for those that do not decide at every tick, and the minute of the next
    /// decision.
    clock: Option<usize>,
    due_min: f64,
    /// Minutes that a decision stands.
    stands_min: f64,
    observation: Vec<f32>,
    stops: Vec<i8>,
    memory: Vec<f32>,
    scratch: Scratch,
}

impl std::fmt::Debug for PpoPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meta = self.weights.meta();
        f.debug_struct("PpoPolicy")
            .field("meta", meta)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

impl PpoPolicy {
    /// A policy for the world of `spec`, which must be the one that the weights were checked against;
    /// `mode` is [`Meta::mode`](crate::Meta::mode) for what was measured. `over` is the rule that
    /// [`Meta::over`](crate::Meta::over) names.
    pub fn new(
        weights: Arc<Weights>,
        spec: &Spec,
        mode: Mode,
        over: Option<Box<dyn Policy>>,
    ) -> Result<Self, WeightsError> {
        weights.check_spec(spec)?;
        if weights.meta().over.is_some() != over.is_some() {
            return Err(WeightsError::new(format!(
                "weights: over = {:?}: expected {} to decide first",
                weights.meta().over,
                if over.is_some() { "no rule" } else { "this rule" }
            )));
        }
        let view = View::from_name(&weights.meta().view).unwrap_or(View::Operator);
        let columns: Vec<(usize, Scaler)> = spec
            .columns_of(view)
            .into_iter()
            .map(|index| (index, spec.signals[index].scaler()))
            .collect();
        Ok(Self {
            heads: weights.meta().heads(spec)?,
            over,
            observation: vec![0.0; columns.len()],
            columns,
            mode,
            key: EpisodeKey::default(),
            decisions: 0,
            clock: (weights.meta().decision_interval_min > 1)
                .then(|| CLOCKS.iter().find_map(|name| spec.signal(name)))
                .flatten(),
            due_min: f64::NEG_INFINITY,
            stands_min: f64::from(weights.meta().decision_interval_min) * f64::from(spec.tick_s)
                / 60.0,
            stops: vec![0; spec.dials.len()],
            memory: Vec::new(),
            scratch: Scratch::default(),
            weights,
        })
    }

    /// What they were trained on, and how well they do.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl Policy for PpoPolicy {
    fn reset(&mut self, key: PolicyKey) {
        // The purpose keeps this stream apart from the world's, so the split does not matter.
        self.key = EpisodeKey::new(key.seed, key.episode, Split::Train, Generator::Pcg);
        self.decisions = 0;
        self.due_min = f64::NEG_INFINITY;
        if let Some(rule) = &mut self.over {
            rule.reset(key);
        }
    }

    fn told(&mut self, scenario: &str) {
        if let Some(rule) = &mut self.over {
            rule.told(scenario);
        }
    }

    /// A decision stands as long as it did in the training, by the world's clock, however often this is called; the
    /// rule below it, if there is one, decides at every call.
    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let now_min = self.clock.map_or(f64::INFINITY, |clock| signals[clock]);
        let is_due = now_min >= self.due_min - ROUNDING_MIN;
        if is_due {
            self.choose(signals, now_min);
        }
        if let Some(rule) = &mut self.over {
            rule.act(signals, action);
        }
        self.heads.decode(&self.stops, action);
        if !is_due {
            self.heads.release(&self.stops, action);
        }
    }
}

impl PpoPolicy {
    /// The next decision.
    fn choose(&mut self, signals: &[f64], now_min: f64) {
        self.due_min = now_min + self.stands_min;
        for ((index, scaler), out) in self.columns.iter().zip(&mut self.observation) {
            *out = scaler.apply(signals[*index]);
        }
        let logits = self.weights.actor().forward(&self.observation, &mut self.scratch);
        match self.mode {
            Mode::Greedy => self.heads.greedy(logits, &mut self.memory, &mut self.stops),
            Mode::Sample => {
                let mut stream = self.key.stream(Purpose::Policy, self.decisions);
                self.heads.sample(logits, &mut stream, &mut self.memory, &mut self.stops);
            }
        }
        self.decisions += 1;
    }
}

/// A small network of the fleet's sizes, for the tests of this crate.
#[cfg(test)]
pub(crate) mod testing {
    use super::Mode;
    use crate::file::{FORMAT, Meta, Tensor};
    use crate::heads::Heads;
    use oncall_core::streams::{EpisodeKey, Generator, Purpose, Split};
    use oncall_core::{Spec, View};

    pub(crate) fn spec() -> Spec {
        oncall_env::shipped("spike").unwrap().world.spec().clone()
    }

    pub(crate) fn meta() -> Meta {
        let scenario = oncall_env::shipped("spike").unwrap();
        Meta {
            format: FORMAT,
            world: "fleet".to_owned(),
            spec_hash: format!("{:016x}", spec().hash()),
            scenario: scenario.name,
            scenario_hash: format!("{:016x}", scenario.hash),
            view: "operator".to_owned(),
            decision_interval_min: 1,
            seed: 1,
            steps: 0,
            grid: crate::heads::Grid::Stops,
            over: None,
            mode: Mode::Greedy,
            evaluation: None,
        }
    }

    /// `[inputs, 16, logits]` and `[inputs, 16, 1]`.
    pub(crate) fn tensors(seed: u64) -> Vec<Tensor> {
        tensors_for(seed, Heads::of(&spec()).logits())
    }

    /// The same for other choices.
    pub(crate) fn tensors_for(seed: u64, logits: usize) -> Vec<Tensor> {
        let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
        let mut stream = key.stream(Purpose::Policy, 0);
        let inputs = spec().columns_of(View::Operator).len();
        let mut tensors = Vec::new();
        for (network, outputs) in [("actor", logits), ("critic", 1)] {
            for (layer, (inputs, outputs)) in [(inputs, 16), (16, outputs)].into_iter().enumerate()
            {
                for (kind, shape) in [("weight", vec![outputs, inputs]), ("bias", vec![outputs])] {
                    let len = shape.iter().product();
                    let values = (0..len).map(|_| (2.0 * stream.uniform() - 1.0) as f32).collect();
                    tensors.push(Tensor {
                        name: format!("{network}.{layer}.{kind}"),
                        shape,
                        values,
                    });
                }
            }
        }
        tensors
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{meta, spec, tensors, tensors_for};
    use super::*;
    use crate::file::Meta;
    use oncall_env::{Actions, AnyVecEnv, Autoreset, Options, Seeds};

    fn policy(mode: Mode) -> PpoPolicy {
        let weights = Weights::new(meta(), tensors(7), &spec()).unwrap();
        PpoPolicy::new(Arc::new(weights), &spec(), mode, None).unwrap()
    }

    fn env(rows: usize) -> AnyVecEnv {
        let world = oncall_env::shipped("spike").unwrap().world;
        let options = Options { autoreset: Autoreset::Disabled, ..Options::default() };
        AnyVecEnv::new(world, rows, options).unwrap()
    }

    /// A whole shift: row by row through the policy, and as one batch on the engine's observations.
    #[test]
    fn rows_play_as_the_batch_does() {
        for mode in [Mode::Greedy, Mode::Sample] {
            let rows = 5;
            let (mut alone, mut batch) = (env(rows), env(rows));
            let (mut out, mut other) = (alone.columns(), batch.columns());
            alone.reset(Seeds::Root(3), None, &mut out.borrow_reset()).unwrap();
            batch.reset(Seeds::Root(3), None, &mut other.borrow_reset()).unwrap();
            let mut policies: Vec<PpoPolicy> = (0..rows).map(|_| policy(mode)).collect();
            for (row, policy) in policies.iter_mut().enumerate() {
                policy.reset(PolicyKey { seed: row as u64, episode: 1 });
            }
            let (heads, weights) = (Heads::of(&spec()), policies[0].weights.clone());
            let (mut actions, mut stops) = (vec![0.0; rows * 8], vec![0_i8; rows * 8]);
            let (mut scratch, mut memory) = (Scratch::default(), Vec::new());
            for minute in 0..240 {
                let width = out.signals.len() / rows;
                let signals = out.signals.chunks_exact(width);
                for ((policy, signals), action) in
                    policies.iter_mut().zip(signals).zip(actions.chunks_exact_mut(8))
                {
                    policy.act(signals, action);
                }
                let logits = weights.actor().forward(&other.observations, &mut scratch);
                let logits = logits.chunks_exact(weights.actor().stride());
                for (row, (logits, stops)) in logits.zip(stops.chunks_exact_mut(8)).enumerate() {
                    let key = EpisodeKey::new(row as u64, 1, Split::Train, Generator::Pcg);
                    let mut stream = key.stream(Purpose::Policy, minute);
                    match mode {
                        Mode::Greedy => heads.greedy(logits, &mut memory, stops),
                        Mode::Sample => {
                            heads.sample(logits, &mut stream, &mut memory, stops);
                        }
                    }
                }
                alone.step(Actions::Policy(&actions), &mut out.borrow()).unwrap();
                for (stops, dials) in stops.chunks_exact(8).zip(actions.chunks_exact_mut(8)) {
                    heads.decode(stops, dials);
                }
                batch.step(Actions::Policy(&actions), &mut other.borrow()).unwrap();
                for row in 0..rows {
                    assert_eq!(alone.digest(row), batch.digest(row), "minute {minute} row {row}");
                }
            }
            assert!(out.truncated.iter().all(|&over| over));
        }
    }

    #[test]
    fn draws_follow_from_the_episode_and_the_decision() {
        let signals: Vec<f64> = spec().signals.iter().map(|signal| signal.high / 3.0).collect();
        let play = |key: PolicyKey| {
            let mut policy = policy(Mode::Sample);
            policy.act(&signals, &mut [0.0; 8]);
            policy.reset(key);
            let mut played = Vec::new();
            for _ in 0..20 {
                let mut action = [0.0; 8];
                policy.act(&signals, &mut action);
                played.extend(action.map(f64::to_bits));
            }
            played
        };
        let key = PolicyKey { seed: 4, episode: 2 };
        assert_eq!(play(key), play(key));
        assert_ne!(play(key), play(PolicyKey { episode: 3, ..key }));
        assert_ne!(play(key)[..8], play(key)[8..16]);
    }

    #[test]
    fn another_world_is_refused() {
        let mut other = spec();
        other.world = "discovery";
        let weights = Arc::new(Weights::new(meta(), tensors(7), &spec()).unwrap());
        let error = PpoPolicy::new(weights, &other, Mode::Greedy, None).unwrap_err().to_string();
        assert!(error.contains("expected discovery"), "{error}");
    }

    /// Turns the first dial to the number of times that it was asked.
    #[derive(Default)]
    struct Counter(f64);

    impl Policy for Counter {
        fn reset(&mut self, _key: PolicyKey) {
            self.0 = 0.0;
        }

        fn act(&mut self, _signals: &[f64], action: &mut [f64]) {
            self.0 += 1.0;
            action.fill(f64::NAN);
            action[0] = self.0;
        }
    }

    #[test]
    fn a_rule_decides_first_and_at_every_call() {
        let of = |over: Option<&str>| {
            let menu = [("cache_ttl_s".to_owned(), vec![30.0])];
            let grid = crate::heads::Grid::Menu(menu.into());
            let over = over.map(str::to_owned);
            let meta = Meta { grid, over, decision_interval_min: 2, ..meta() };
            let logits = meta.heads(&spec()).unwrap().logits();
            // All logits are 0 but that of the menu's only value beyond the rule's.
            let mut tensors = tensors_for(7, logits);
            tensors[2].values.fill(0.0);
            tensors[3].values.fill(0.0);
            tensors[3].values[logits - 5] = 9.0;
            Arc::new(Weights::new(meta, tensors, &spec()).unwrap())
        };
        let build = |weights: Arc<Weights>, rule: bool| {
            let rule: Option<Box<dyn Policy>> =
                if rule { Some(Box::<Counter>::default()) } else { None };
            PpoPolicy::new(weights, &spec(), Mode::Greedy, rule)
        };
        let mut policy = build(of(Some("counter")), true).unwrap();
        let clock = spec().signal("shift_min").unwrap();
        let mut signals = vec![0.0; spec().signals.len()];
        for time in 0..2 {
            policy.reset(PolicyKey { seed: 1, episode: time });
            for minute in 0..6 {
                signals[clock] = f64::from(minute);
                let mut action = [7.0; 8];
                policy.act(&signals, &mut action);
                assert_eq!([action[0], action[3]], [f64::from(minute + 1), 30.0]);
                assert!([1, 2, 5, 6].iter().all(|&dial: &usize| action[dial].is_nan()));
            }
        }
        let error = build(of(Some("counter")), false).unwrap_err().to_string();
        assert_eq!(error, "weights: over = Some(\"counter\"): expected this rule to decide first");
        let error = build(of(None), true).unwrap_err().to_string();
        assert_eq!(error, "weights: over = None: expected no rule to decide first");
    }
}
