//! The fleet in blocks of [`LANES`] services: what an engine steps.
//!
//! [`FleetLanes`] is [`FleetWorld`] with another layout of its state: the same scenarios, keys, saved
//! bytes, digests and trajectories, to the last bit, at some ten times the speed. The plain minute in
//! [`crate::step`] is the reference; this one calls the same functions of the phases.
//!
//! | file | |
//! |---|---|
//! | `block` | columns of state; to and from a [`Lane`](crate::Lane) |
//! | `scene` | what services share; where each finds its constants |
//! | `minute` | the minute of many services at once, and its order |
//! | `day`, `fleet`, `flow` | its phases |
//! | `observe` | a signal of many services at once |
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]
#![expect(
    clippy::needless_range_loop,
    reason = "loops over lanes, which become vector instructions"
)]
#![cfg_attr(not(test), expect(clippy::float_cmp, reason = "minutes, zeros and ends are exact"))]

mod block;
mod day;
mod fleet;
mod flow;
mod minute;
mod observe;
mod scene;

pub use block::{Block, LANES};

#[cfg(debug_assertions)]
use crate::invariants;
use crate::params::Params;
use crate::world::FleetWorld;
use crate::{Lane, step};
use minute::{Minute, Together, play_alone};
use oncall_core::{Digest, EpisodeKey, Generator, LoadError, Spec, World, isa, world::Saver};
use scene::{ConstantsAt, Own, Same, Scene};

/// A scenario, or a mixture of scenarios of which each episode draws one; [`LANES`] services a block.
#[derive(Debug, Clone)]
pub struct FleetLanes {
    fleet: FleetWorld,
    scene: Scene,
    /// A service of each scenario, to read saved ones into.
    fresh: Vec<Lane>,
}

impl FleetLanes {
    /// The same world in blocks.
    pub fn new(fleet: FleetWorld) -> Self {
        let scene = Scene::new(&fleet);
        let open = |(variant, params)| {
            step::open(params, variant as u32, EpisodeKey::default(), fleet.pinned())
        };
        let fresh = fleet.variants().iter().enumerate().map(open).collect();
        Self { fleet, scene, fresh }
    }

    /// The world whose episodes are played.
    pub fn fleet(&self) -> &FleetWorld {
        &self.fleet
    }

    fn params(&self, block: &Block, lane: usize) -> &Params {
        &self.fleet.variants()[block.variant[lane] as usize]
    }

    /// The service of a lane, as the plain minute knows it.
    pub fn lane(&self, block: &Block, lane: usize) -> Lane {
        block.take(lane, self.params(block, lane))
    }

    fn play<C: ConstantsAt>(minute: Minute<'_, C>) {
        match minute.alone {
            Some(lane) => play_alone(minute, lane),
            None => isa::run(Together(minute)),
        }
    }
}

impl World for FleetLanes {
    type Block = Block;

    const LANES: usize = LANES;

    const COLUMNS: bool = true;

    fn spec(&self) -> &Spec {
        self.fleet.spec()
    }

    fn params_hash(&self) -> u64 {
        self.fleet.params_hash()
    }

    fn generator(&self) -> Generator {
        self.fleet.generator()
    }

    fn new_block(&self) -> Block {
        Block::new(self.scene.room, &self.fleet.new_block())
    }

    fn reset(&self, block: &mut Block, lane: usize, key: EpisodeKey) {
        let mut fresh = self.fleet.new_block();
        self.fleet.reset(&mut fresh, 0, key);
        block.put(lane, &fresh);
    }

    fn scenario_of<'a>(&'a self, block: &'a Block, lane: usize) -> &'a str {
        &self.params(block, lane).name
    }

    fn length_min(&self, block: &Block, lane: usize) -> u32 {
        self.shift(block, lane).length_min as u32
    }

    fn step(
        &self,
        block: &mut Block,
        active: &[bool],
        dials: &[f64],
        terms: &mut [f64],
        terminated: &mut [bool],
    ) {
        let count = active.iter().filter(|&&active| active).count();
        if count == 0 {
            return;
        }
        // The budget never ends an episode; the engine truncates.
        terminated.iter_mut().zip(active).for_each(|(ends, active)| *ends &= !active);
        let alone = if count == 1 { active.iter().position(|&active| active) } else { None };
        let scene = &self.scene;
        if let Some(constants) = &scene.constants {
            let constants = Same(constants);
            Self::play(Minute { scene, constants, block, alone, active, dials, terms });
        } else if let Some(own) = block.constants.take() {
            let constants = Own(&own);
            Self::play(Minute { scene, constants, block, alone, active, dials, terms });
            block.constants = Some(own);
        }
        #[cfg(debug_assertions)]
        for lane in (0..LANES).filter(|&lane| active[lane]) {
            debug_assert_eq!(invariants::check(&self.lane(block, lane)), Ok(()));
        }
    }

    fn signals(&self, block: &Block, lane: usize, out: &mut [f64]) {
        for (signal, value) in out.iter_mut().enumerate() {
            *value = self.value(block, lane, signal);
        }
    }

    #[inline(always)]
    fn column<'a>(&'a self, block: &'a Block, signal: usize, out: &'a mut [f64]) -> &'a [f64] {
        observe::column(self, block, signal, out)
    }

    #[inline]
    fn value(&self, block: &Block, lane: usize, signal: usize) -> f64 {
        observe::value(self, block, lane, signal)
    }

    fn dials(&self, block: &Block, lane: usize, out: &mut [f64]) {
        let values = self.lane(block, lane).dials.values();
        out[..values.len()].copy_from_slice(&values);
    }

    fn pin_demand(&mut self, requests_per_s: Option<Vec<f64>>) -> bool {
        let pinned = self.fleet.pin_demand(requests_per_s);
        self.scene = Scene::new(&self.fleet);
        pinned
    }

    fn save(&self, block: &Block, lane: usize, out: &mut Vec<u8>) {
        self.lane(block, lane).visit(&mut Saver(out));
    }

    fn load(&self, block: &mut Block, lane: usize, bytes: &[u8]) -> Result<(), LoadError> {
        block.put(lane, &self.fleet.read(bytes, |variant| self.fresh[variant])?);
        Ok(())
    }

    fn copy_lane(&self, from: (&Block, usize), to: (&mut Block, usize)) {
        to.0.copy(to.1, from.0, from.1);
    }

    fn digest(&self, block: &Block, lane: usize, digest: &mut Digest) {
        self.fleet.digest(&self.lane(block, lane), 0, digest);
    }

    fn digest_drawn(&self, block: &Block, lane: usize, digest: &mut Digest) {
        self.fleet.digest_drawn(&self.lane(block, lane), 0, digest);
    }

    fn drawn(&self, block: &Block, lane: usize) -> Vec<(String, f64)> {
        self.fleet.drawn(&self.lane(block, lane), 0)
    }
}
