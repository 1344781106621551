//! A small world with the features an engine can get wrong: draws once per episode and per minute,
//! actions that change the course, presses, terminations, lengths that differ from row to row, and a
//! number of lanes to choose. The dynamics do not depend on the lanes.
#![allow(dead_code, reason = "each test file uses a part")]
#![allow(unreachable_pub, reason = "shared by unit tests and integration tests")]

use oncall_core::streams::Purpose;
use oncall_core::world::{Loader, Saver};
use oncall_core::{
    Dial, DialKind, Digest, EpisodeKey, Generator, LoadError, Scale, Signal, Spec, Term, View,
    Words, World, fnv1a,
};

/// State of one lane.
#[derive(Debug, Clone, Copy, Default)]
struct Lane {
    key: EpisodeKey,
    length_min: u32,
    minute: u32,
    presses: u32,
    slope: f64,
    x: f64,
    budget: f64,
    dials: [f64; DIALS],
    terms: [f64; TERMS],
}

const DIALS: usize = 5;
const TERMS: usize = 3;
const PUSH: usize = 4;

/// Signals of the toy, by index.
pub const X: usize = 0;
pub const BUDGET: usize = 2;
pub const PRESSES: usize = 3;
pub const MINUTE: usize = 4;
pub const LEVEL: usize = 6;

/// Dials of a shift without an incident, all set.
pub const CALM: [f64; DIALS] = [8.0, 0.0, 60.0, 1.0, 0.0];

pub struct Toy<const L: usize> {
    pub spec: Spec,
    pub generator: Generator,
    /// Episodes end when |x| passes this.
    pub wall: f64,
    /// Shortest episode; they last up to eight minutes longer.
    pub length_min: u32,
}

pub struct Block<const L: usize>([Lane; L]);

impl<const L: usize> Clone for Block<L> {
    fn clone(&self) -> Self {
        Self(self.0)
    }
}

impl<const L: usize> Toy<L> {
    pub fn new() -> Self {
        Self { spec: spec(), generator: Generator::Pcg, wall: 9.0, length_min: 12 }
    }
}

fn spec() -> Spec {
    let dial = |name, kind, low, high, stops, unit| Dial {
        name,
        label: name,
        unit,
        kind,
        low,
        high,
        default: low,
        stops,
        doc: "",
    };
    let signal = |name, low, high, scale, view| Signal {
        name,
        label: name,
        unit: "",
        low,
        high,
        scale,
        view,
        column: true,
        doc: "",
    };
    let term = |name| Term { name, label: name, doc: "" };
    Spec {
        world: "toy",
        version: 1,
        tick_s: 60,
        dials: vec![
            dial("level", DialKind::Count, 1.0, 40.0, &[2.0, 4.0, 8.0, 16.0], ""),
            dial("gain", DialKind::Real, -2.0, 2.0, &[-1.0, 0.0, 1.0], ""),
            dial("heat", DialKind::Log, 0.0, 600.0, &[0.0, 60.0, 600.0], "s"),
            dial("mode", DialKind::Switch, 0.0, 1.0, &[0.0, 1.0], ""),
            dial("push", DialKind::Press, 0.0, 1.0, &[1.0], ""),
        ],
        signals: vec![
            signal("x", -20.0, 20.0, Scale::Symlog { knee: 0.5 }, View::Operator),
            signal("slope", -1.0, 1.0, Scale::Linear, View::Full),
            signal("budget_left", -1.0, 1.0, Scale::Linear, View::Operator),
            signal("presses", 0.0, 50.0, Scale::Linear, View::Operator),
            signal("minute", 1.0, 100.0, Scale::Log, View::Operator),
            signal("gain_now", -2.0, 2.0, Scale::Linear, View::Full),
            signal("level_now", 0.0, 40.0, Scale::Linear, View::Operator),
            signal("heat_now", 0.0, 600.0, Scale::Symlog { knee: 5.0 }, View::Record),
        ],
        terms: vec![term("drift_usd"), term("level_usd"), term("push_usd")],
        cost: "budget_left",
    }
}

impl Lane {
    fn words(&mut self, to: &mut impl Words) {
        let (mut hash, mut generator) = self.key.bits();
        to.word(&mut hash);
        to.word(&mut generator);
        self.key = EpisodeKey::from_bits((hash, generator)).unwrap_or_default();
        to.u32(&mut self.length_min);
        to.u32(&mut self.minute);
        to.u32(&mut self.presses);
        for x in [&mut self.slope, &mut self.x, &mut self.budget] {
            to.f64(x);
        }
        self.dials.iter_mut().chain(&mut self.terms).for_each(|x| to.f64(x));
    }

    /// Plays a minute; whether the episode ends.
    fn play(&mut self, dials: &[f64], wall: f64) -> bool {
        for (mine, &dial) in self.dials.iter_mut().zip(dials) {
            if !dial.is_nan() {
                *mine = dial;
            }
        }
        let mut stream = self.key.stream(Purpose::Demand, u64::from(self.minute));
        let pressed = self.dials[PUSH] > 0.5;
        self.dials[PUSH] = 0.0;
        self.presses += u32::from(pressed);
        let push = if pressed { -0.5 * self.x } else { 0.0 };
        let noise = stream.uniform() - 0.5;
        self.x += self.slope + self.dials[1] * 0.3 + noise * (1.0 + self.dials[2] / 300.0) + push;
        if self.dials[3] > 0.5 {
            self.x *= 0.97;
        }
        self.budget -= self.x.abs() * 0.003;
        self.minute += 1;
        // A small drift and the lowest level cost nothing.
        let drift = if self.x.abs() < 0.3 { 0.0 } else { self.x.abs() * 0.1 };
        self.terms = [drift, (self.dials[0] - 1.0) * 0.01, f64::from(u8::from(pressed))];
        self.x.abs() > wall
    }
}

impl<const L: usize> World for Toy<L> {
    type Block = Block<L>;
    const LANES: usize = L;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn params_hash(&self) -> u64 {
        let numbers = (self.wall.to_bits(), self.length_min, self.generator);
        fnv1a(format!("{numbers:?}").as_bytes())
    }

    fn generator(&self) -> Generator {
        self.generator
    }

    fn new_block(&self) -> Block<L> {
        Block([Lane::default(); L])
    }

    fn reset(&self, block: &mut Block<L>, lane: usize, key: EpisodeKey) {
        let mut stream = key.stream(Purpose::Scenario, 0);
        block.0[lane] = Lane {
            key,
            length_min: self.length_min + stream.below(9) as u32,
            slope: stream.uniform() - 0.5,
            x: stream.uniform() - 0.5,
            budget: 1.0,
            dials: [10.0, 0.0, 60.0, 1.0, 0.0],
            ..Lane::default()
        };
    }

    fn length_min(&self, block: &Block<L>, lane: usize) -> u32 {
        block.0[lane].length_min
    }

    fn step(
        &self,
        block: &mut Block<L>,
        active: &[bool],
        dials: &[f64],
        terms: &mut [f64],
        terminated: &mut [bool],
    ) {
        assert_eq!((active.len(), dials.len()), (L, L * DIALS));
        assert_eq!((terms.len(), terminated.len()), (L * TERMS, L));
        for lane in 0..L {
            let row: [f64; DIALS] = std::array::from_fn(|dial| dials[dial * L + lane]);
            for (dial, value) in self.spec.dials.iter().zip(&row) {
                assert!(value.is_nan() || dial.accepts(*value), "{} = {value}", dial.name);
            }
            // As a world in step would: all lanes compute, and only the active ones commit.
            let mut next = block.0[lane];
            let ends = next.play(&row, self.wall);
            if active[lane] {
                let column = terms[lane..].iter_mut().step_by(L);
                column.zip(next.terms).for_each(|(out, usd)| *out = usd);
                terminated[lane] = ends;
                block.0[lane] = next;
            }
        }
    }

    fn signals(&self, block: &Block<L>, lane: usize, out: &mut [f64]) {
        let lane = &block.0[lane];
        out.copy_from_slice(&[
            lane.x,
            lane.slope,
            lane.budget,
            f64::from(lane.presses),
            f64::from(lane.minute),
            lane.dials[1],
            lane.dials[0],
            lane.dials[2],
        ]);
    }

    fn dials(&self, block: &Block<L>, lane: usize, out: &mut [f64]) {
        out.copy_from_slice(&block.0[lane].dials);
    }

    fn pin_demand(&mut self, _: Option<Vec<f64>>) -> bool {
        false
    }

    fn save(&self, block: &Block<L>, lane: usize, out: &mut Vec<u8>) {
        let mut lane = block.0[lane];
        lane.words(&mut Saver(out));
    }

    fn load(&self, block: &mut Block<L>, lane: usize, bytes: &[u8]) -> Result<(), LoadError> {
        let (mut loaded, mut loader) = (Lane::default(), Loader::new(bytes));
        loaded.words(&mut loader);
        if !loader.finished() {
            return Err(LoadError("wrong number of bytes".to_owned()));
        }
        if !loaded.x.is_finite() {
            return Err(LoadError(format!("x = {}: expected a finite number", loaded.x)));
        }
        block.0[lane] = loaded;
        Ok(())
    }

    fn copy_lane(&self, from: (&Block<L>, usize), to: (&mut Block<L>, usize)) {
        to.0.0[to.1] = from.0.0[from.1];
    }

    fn digest(&self, block: &Block<L>, lane: usize, digest: &mut Digest) {
        let mut lane = block.0[lane];
        lane.words(digest);
    }

    fn digest_drawn(&self, block: &Block<L>, lane: usize, digest: &mut Digest) {
        digest.word(u64::from(block.0[lane].length_min));
        digest.f64(block.0[lane].slope);
    }

    fn drawn(&self, block: &Block<L>, lane: usize) -> Vec<(String, f64)> {
        vec![("slope".to_owned(), block.0[lane].slope)]
    }
}
