//! `CartPole` as a world of this engine: the like-for-like line beside engines that are measured with it.
//!
//! Physics and limits are those of Gymnasium's `CartPole-v1` (Barto, Sutton and Anderson 1983; Euler
//! steps of 20 ms; 500 steps), in double precision. It is never shipped: the list of worlds knows it
//! only with the feature `bench-worlds` of `oncall-env`, which is off unless somebody measures.

use oncall_core::isa::{self, Kernel};
use oncall_core::streams::Purpose;
use oncall_core::world::{Loader, Saver};
use oncall_core::{
    Dial, DialKind, Digest, EpisodeKey, Generator, LoadError, Scale, Signal, Spec, Term, View,
    Words, World, math,
};

const LANES: usize = 32;
/// Lanes that are stepped if the others have nothing to play.
const FEW: usize = 8;
/// Position, speed, angle, angular speed.
const STATE: usize = 4;
/// A column for the spec's cost signal, which stays 0.
const SIGNALS: usize = STATE + 1;

const GRAVITY: f64 = 9.8;
const POLE_MASS: f64 = 0.1;
const TOTAL_MASS: f64 = 1.1;
const HALF_LENGTH: f64 = 0.5;
const POLE_MOMENT: f64 = POLE_MASS * HALF_LENGTH;
const FORCE: f64 = 10.0;
const STEP_S: f64 = 0.02;
const X_MAX: f64 = 2.4;
const ANGLE_MAX: f64 = 12.0 * std::f64::consts::TAU / 360.0;
const STEPS_MAX: u32 = 500;

/// A cart that a push to the left or to the right keeps under its pole.
#[derive(Debug, Clone)]
pub struct CartPole {
    spec: Spec,
}

/// A column for each part of the state, and for the zero.
#[derive(Debug, Clone)]
pub struct Block {
    state: [[f64; LANES]; SIGNALS],
}

struct Step<'a> {
    block: &'a mut Block,
    active: &'a [bool],
    push: &'a [f64],
    reward: &'a mut [f64],
    ends: &'a mut [bool],
}

impl Step<'_> {
    /// The first `N` lanes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn lanes<const N: usize>(self) {
        let [xs, speeds, angles, turns, _] = &mut self.block.state;
        let (active, push) = (&self.active[..N], &self.push[..N]);
        let (reward, ends) = (&mut self.reward[..N], &mut self.ends[..N]);
        let mut next = [[0.0; N]; STATE];
        for i in 0..N {
            let force = if push[i] > 0.5 { FORCE } else { -FORCE };
            let (sin, cos) = math::sin_cos_normal(angles[i]);
            let pulled = (force + POLE_MOMENT * turns[i] * turns[i] * sin) * (1.0 / TOTAL_MASS);
            let turning = (GRAVITY * sin - cos * pulled)
                / (HALF_LENGTH * (4.0 / 3.0 - POLE_MASS * cos * cos * (1.0 / TOTAL_MASS)));
            let speeding = pulled - POLE_MOMENT * turning * cos * (1.0 / TOTAL_MASS);
            next[0][i] = xs[i] + STEP_S * speeds[i];
            next[1][i] = speeds[i] + STEP_S * speeding;
            next[2][i] = angles[i] + STEP_S * turns[i];
            next[3][i] = turns[i] + STEP_S * turning;
        }
        for i in 0..N {
            let plays = active[i];
            xs[i] = if plays { next[0][i] } else { xs[i] };
            speeds[i] = if plays { next[1][i] } else { speeds[i] };
            angles[i] = if plays { next[2][i] } else { angles[i] };
            turns[i] = if plays { next[3][i] } else { turns[i] };
        }
        for i in 0..N {
            let falls = (xs[i].abs() > X_MAX) | (angles[i].abs() > ANGLE_MAX);
            // The engine's rewards are minus the sum of the terms.
            reward[i] = if active[i] { -1.0 } else { reward[i] };
            ends[i] = if active[i] { falls } else { ends[i] };
        }
    }
}

impl Kernel for Step<'_> {
    type Out = ();

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "the body must be compiled for each set")]
    fn run(self) {
        // A vector of the widest set is enough for a batch of one. Looked at without a way out of the
        // loop, which is a few instructions.
        let mut are_many = false;
        for &active in &self.active[FEW..LANES] {
            are_many |= active;
        }
        if are_many {
            self.lanes::<LANES>();
        } else {
            self.lanes::<FEW>();
        }
    }
}

impl Default for CartPole {
    fn default() -> Self {
        Self::new()
    }
}

impl CartPole {
    /// The world; there is one scenario of it.
    pub fn new() -> Self {
        let signal = |name, high: f64| Signal {
            name,
            label: name,
            unit: "",
            low: -high,
            high,
            scale: Scale::Linear,
            view: View::Operator,
            column: true,
            doc: "",
        };
        let push = Dial {
            name: "push",
            label: "push",
            unit: "",
            kind: DialKind::Switch,
            low: 0.0,
            high: 1.0,
            default: 0.0,
            stops: &[0.0, 1.0],
            doc: "",
        };
        let mut spec = Spec {
            world: "cartpole",
            version: 0,
            tick_s: 60,
            dials: vec![push],
            signals: vec![
                signal("x", 4.8),
                signal("speed", 10.0),
                signal("angle", 2.0 * ANGLE_MAX),
                signal("turn", 10.0),
                signal("nothing", 1.0),
            ],
            terms: vec![Term { name: "alive_usd", label: "alive", doc: "" }],
            cost: "nothing",
        };
        spec.signals[STATE].view = View::Record;
        Self { spec }
    }

    fn words(block: &mut Block, lane: usize, words: &mut impl Words) {
        block.state[..STATE].iter_mut().for_each(|column| words.f64(&mut column[lane]));
    }
}

impl World for CartPole {
    type Block = Block;
    const LANES: usize = LANES;
    const COLUMNS: bool = true;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn params_hash(&self) -> u64 {
        1
    }

    fn generator(&self) -> Generator {
        Generator::Pcg
    }

    fn new_block(&self) -> Block {
        Block { state: [[0.0; LANES]; SIGNALS] }
    }

    fn reset(&self, block: &mut Block, lane: usize, key: EpisodeKey) {
        let mut stream = key.stream(Purpose::Scenario, 0);
        for column in &mut block.state[..STATE] {
            column[lane] = 0.1 * stream.uniform() - 0.05;
        }
    }

    fn length_min(&self, _: &Block, _: usize) -> u32 {
        STEPS_MAX
    }

    fn step(
        &self,
        block: &mut Block,
        active: &[bool],
        push: &[f64],
        reward: &mut [f64],
        ends: &mut [bool],
    ) {
        isa::run(Step { block, active, push, reward, ends });
    }

    fn signals(&self, block: &Block, lane: usize, out: &mut [f64]) {
        out.iter_mut().zip(&block.state).for_each(|(x, column)| *x = column[lane]);
    }

    #[inline]
    fn column<'a>(&'a self, block: &'a Block, signal: usize, _: &'a mut [f64]) -> &'a [f64] {
        &block.state[signal]
    }

    #[inline]
    fn value(&self, block: &Block, lane: usize, signal: usize) -> f64 {
        block.state[signal][lane]
    }

    fn dials(&self, _: &Block, _: usize, out: &mut [f64]) {
        out.fill(0.0);
    }

    fn pin_demand(&mut self, _: Option<Vec<f64>>) -> bool {
        false
    }

    fn save(&self, block: &Block, lane: usize, out: &mut Vec<u8>) {
        Self::words(&mut block.clone(), lane, &mut Saver(out));
    }

    fn load(&self, block: &mut Block, lane: usize, bytes: &[u8]) -> Result<(), LoadError> {
        let mut loader = Loader::new(bytes);
        Self::words(block, lane, &mut loader);
        if loader.finished() { Ok(()) } else { Err(LoadError("not its length".to_owned())) }
    }

    fn copy_lane(&self, from: (&Block, usize), to: (&mut Block, usize)) {
        for (to_column, column) in to.0.state.iter_mut().zip(&from.0.state) {
            to_column[to.1] = column[from.1];
        }
    }

    fn digest(&self, block: &Block, lane: usize, digest: &mut Digest) {
        Self::words(&mut block.clone(), lane, digest);
    }

    fn digest_drawn(&self, block: &Block, lane: usize, digest: &mut Digest) {
        self.digest(block, lane, digest);
    }

    fn drawn(&self, _: &Block, _: usize) -> Vec<(String, f64)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::Split;
    use oncall_vec::{Actions, Autoreset, Options, Seeds, VecEnv};
    use std::sync::Arc;

    /// The first steps of `CartPole-v1` in Gymnasium 1.4 from the state (0.01, -0.02, 0.03, 0.04),
    /// pushed right, right, left.
    #[test]
    fn steps_are_gymnasiums() {
        let world = CartPole::new();
        let mut block = world.new_block();
        for (column, x) in block.state.iter_mut().zip([0.01, -0.02, 0.03, 0.04]) {
            column[5] = x;
        }
        let mut active = [false; LANES];
        active[5] = true;
        for (push, expected) in [1.0, 1.0, 0.0].into_iter().zip(EXPECTED) {
            let (mut reward, mut ends) = ([0.0; LANES], [true; LANES]);
            world.step(&mut block, &active, &[push; LANES], &mut reward, &mut ends);
            for (column, x) in block.state.iter().zip(expected) {
                assert!((column[5] - x).abs() < 1e-12, "{} {x}", column[5]);
            }
            assert_eq!((reward[5], ends[5], reward[4], ends[4]), (-1.0, false, 0.0, true));
        }
    }
    /// A block whose lanes have each a state of its own.
    fn drawn(world: &CartPole) -> Block {
        let mut block = world.new_block();
        for lane in 0..LANES {
            let key = EpisodeKey::new(lane as u64, 0, Split::Train, Generator::Pcg);
            world.reset(&mut block, lane, key);
        }
        block
    }

    /// Few lanes are stepped by code of their own.
    #[test]
    fn a_lane_does_not_depend_on_the_others() {
        let world = CartPole::new();
        let push: [f64; LANES] = std::array::from_fn(|lane| f64::from(lane as u32 % 2));
        let step = |block: &mut Block, active: [bool; LANES]| {
            let (mut reward, mut ends) = ([0.0; LANES], [true; LANES]);
            world.step(block, &active, &push, &mut reward, &mut ends);
            (reward, ends)
        };
        let (mut all, mut few) = (drawn(&world), drawn(&world));
        for _ in 0..40 {
            let before = few.clone();
            let (rewards, ends) = step(&mut all, [true; LANES]);
            let (few_rewards, few_ends) = step(&mut few, std::array::from_fn(|lane| lane < FEW));
            assert_eq!(rewards[..FEW], few_rewards[..FEW]);
            assert_eq!(ends[..FEW], few_ends[..FEW]);
            assert!(few_rewards[FEW..].iter().all(|&reward| reward == 0.0));
            for ((all, few), before) in all.state.iter().zip(&few.state).zip(&before.state) {
                assert_eq!(all[..FEW], few[..FEW]);
                assert_eq!(before[FEW..], few[FEW..]);
            }
        }
    }

    /// Through the engine: a cart that is pushed one way falls and begins anew, one that is balanced
    /// is taken away after 500 steps with a return of 500.
    #[test]
    fn episodes_end_as_gymnasiums() {
        let options = Options { autoreset: Autoreset::SameStep, ..Options::default() };
        let mut env = VecEnv::new(Arc::new(CartPole::new()), 2, options).unwrap();
        let mut out = env.columns();
        env.reset(Seeds::Root(1), None, &mut out.borrow_reset()).unwrap();
        let mut falls = Vec::new();
        for step in 1..=STEPS_MAX {
            let balance = {
                let [x, speed, angle, turn] = [5, 6, 7, 8].map(|signal| out.signals[signal]);
                angle + 0.5 * turn + 0.05 * x + 0.1 * speed > 0.0
            };
            let actions = [2, 1 + i8::from(balance)];
            env.step(Actions::Stops8(&actions), &mut out.borrow()).unwrap();
            if out.terminated[0] {
                falls.push(step);
                let from_rest = &out.signals[..STATE];
                assert!(from_rest.iter().all(|x| x.abs() <= 0.05), "{from_rest:?}");
            }
            assert!(!out.terminated[1], "{step}");
            assert_eq!(out.truncated, [false, step == STEPS_MAX]);
            assert_eq!(out.rewards, [1.0; 2]);
        }
        // A push to one side brings the pole down in 8 to 10 steps.
        let lengths = falls.windows(2).map(|pair| pair[1] - pair[0]);
        assert!(falls.len() > 40 && lengths.clone().all(|n| (8..=11).contains(&n)), "{falls:?}");
        assert_eq!(env.episode_stats(1).return_, 500.0);
    }

    const EXPECTED: [[f64; STATE]; 3] = [
        [
            0.009_600_000_000_000_001,
            0.174_679_195_747_555_25,
            0.030_799_999_999_999_998,
            -0.243_068_717_960_008_1,
        ],
        [
            0.013_093_583_914_951_107,
            0.369_347_976_057_955_6,
            0.025_938_625_640_799_837,
            -0.525_879_628_050_148_3,
        ],
        [
            0.020_480_543_436_110_22,
            0.173_870_812_604_815_96,
            0.015_421_033_079_796_87,
            -0.225_137_416_092_374_64,
        ],
    ];
}
