//! `FleetWorld`: the fleet behind the contract of `oncall-core`.

use crate::params::Params;
use crate::reward::TERMS;
use crate::state::Lane;
use crate::{dials, invariants, signals, step};
use oncall_core::digest::fnv1a;
use oncall_core::streams::Purpose;
use oncall_core::world::{Loader, Saver};
use oncall_core::{Digest, EpisodeKey, Generator, LoadError, Spec, Term, World, mixture};

/// Rises with any change of a space or a trajectory; see CONTRIBUTING.md.
const VERSION: u32 = 0;

/// The spec of the fleet, the same for all scenarios.
pub fn spec() -> Spec {
    let term = |name, label, doc| Term { name, label, doc };
    Spec {
        world: "fleet",
        version: VERSION,
        tick_s: 60,
        dials: dials::table(),
        signals: signals::table(),
        terms: vec![
            term(
                "fleet_usd",
                "Fleet",
                "Instances, serving and booting, and a rollback's second fleet.",
            ),
            term(
                "budget_usd",
                "Error budget",
                "Share of the month's error budget burned, dearer when overdrawn.",
            ),
            term("shed_usd", "Shed", "Requests refused at the load balancer."),
            term(
                "recommendations_usd",
                "No recommendations",
                "Requests admitted while the recommendations were off.",
            ),
            term("latency_usd", "Latency", "Requests admitted while p99 was above the free part."),
            term("staleness_usd", "Staleness", "Answers from the cache, by their age."),
        ],
        cost: "budget_left",
    }
}

/// A scenario, or a mixture of scenarios of which each episode draws one.
#[derive(Debug, Clone)]
pub struct FleetWorld {
    variants: Vec<Params>,
    /// Running sums of the weights.
    cumulative: Vec<f64>,
    spec: Spec,
    hash: u64,
    pinned_rps: Option<Vec<f64>>,
}

/// Why variants do not make a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixtureError {
    /// No variant, or a weight that is not positive and finite.
    Weights,
    /// Variants with different generators.
    Generators,
}

impl FleetWorld {
    /// A world of one scenario.
    pub fn single(params: Params) -> Self {
        let hash = params.hash;
        Self { variants: vec![params], cumulative: vec![1.0], spec: spec(), hash, pinned_rps: None }
    }

    /// A world that draws one of several scenarios each episode.
    pub fn mixture(variants: Vec<(Params, f64)>) -> Result<Self, MixtureError> {
        let mut bytes = Vec::new();
        let (mut total, mut cumulative) = (0.0, Vec::new());
        for (params, weight) in &variants {
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(MixtureError::Weights);
            }
            if params.generator != variants[0].0.generator {
                return Err(MixtureError::Generators);
            }
            total += weight;
            cumulative.push(total);
            bytes.extend_from_slice(&params.hash.to_le_bytes());
            bytes.extend_from_slice(&weight.to_bits().to_le_bytes());
        }
        if variants.is_empty() {
            return Err(MixtureError::Weights);
        }
        Ok(Self {
            variants: variants.into_iter().map(|(params, _)| params).collect(),
            cumulative,
            spec: spec(),
            hash: fnv1a(&bytes),
            pinned_rps: None,
        })
    }

    /// The scenarios of this world; one unless it is a mixture.
    pub fn variants(&self) -> &[Params] {
        &self.variants
    }

    /// Share of the episodes that play each of [`FleetWorld::variants`]; they sum to 1.
    pub fn shares(&self) -> Vec<f64> {
        mixture::shares(&self.cumulative)
    }

    /// The service that [`World::save`] wrote; `fresh` gives one that plays a scenario.
    pub(crate) fn read(
        &self,
        bytes: &[u8],
        fresh: impl Fn(usize) -> Lane,
    ) -> Result<Lane, LoadError> {
        let Some(variant) = bytes.get(16..24).and_then(|word| word.try_into().ok()) else {
            return Err(LoadError("the state is cut short".to_owned()));
        };
        let variant = u64::from_le_bytes(variant) as usize;
        if variant >= self.variants.len() {
            return Err(LoadError(format!(
                "the state plays scenario {variant} of a mixture that has {}",
                self.variants.len()
            )));
        }
        // A fresh lane of that scenario has its lists of events at their right lengths.
        let mut lane = fresh(variant);
        let mut loader = Loader::new(bytes);
        lane.visit(&mut loader);
        if !loader.finished() {
            return Err(LoadError(format!(
                "the state has {} bytes, which is not its length",
                bytes.len()
            )));
        }
        invariants::check(&lane)
            .map_err(|broken| LoadError(format!("the state breaks a rule: {broken}")))?;
        Ok(lane)
    }

    pub(crate) fn pinned(&self) -> Option<&[f64]> {
        self.pinned_rps.as_deref()
    }
}

impl World for FleetWorld {
    type Block = Lane;

    const LANES: usize = 1;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn params_hash(&self) -> u64 {
        self.hash
    }

    fn generator(&self) -> Generator {
        self.variants[0].generator
    }

    fn new_block(&self) -> Lane {
        step::open(&self.variants[0], 0, EpisodeKey::default(), self.pinned())
    }

    fn reset(&self, block: &mut Lane, _lane: usize, key: EpisodeKey) {
        let variant = mixture::draw(&self.cumulative, key);
        *block = step::open(&self.variants[variant], variant as u32, key, self.pinned());
    }

    fn scenario_of<'a>(&'a self, block: &'a Lane, _lane: usize) -> &'a str {
        &self.variants[block.variant as usize].name
    }

    fn length_min(&self, block: &Lane, _lane: usize) -> u32 {
        block.numbers.constants.shift.length_min as u32
    }

    fn step(
        &self,
        block: &mut Lane,
        active: &[bool],
        dials: &[f64],
        terms: &mut [f64],
        terminated: &mut [bool],
    ) {
        if !active[0] {
            return;
        }
        let params = &self.variants[block.variant as usize];
        let minute_terms = step::play(params, block, dials, self.pinned());
        terms[..TERMS].copy_from_slice(&minute_terms);
        terminated[0] = false; // The budget never ends an episode; the engine truncates.
        debug_assert_eq!(invariants::check(block), Ok(()));
    }

    fn signals(&self, block: &Lane, _lane: usize, out: &mut [f64]) {
        signals::write(block, out);
    }

    fn dials(&self, block: &Lane, _lane: usize, out: &mut [f64]) {
        out[..dials::index::COUNT].copy_from_slice(&block.dials.values());
    }

    fn pin_demand(&mut self, requests_per_s: Option<Vec<f64>>) -> bool {
        self.pinned_rps = requests_per_s;
        true
    }

    fn save(&self, block: &Lane, _lane: usize, out: &mut Vec<u8>) {
        let mut lane = *block;
        lane.visit(&mut Saver(out));
    }

    fn load(&self, block: &mut Lane, _lane: usize, bytes: &[u8]) -> Result<(), LoadError> {
        *block = self.read(bytes, |variant| {
            step::open(
                &self.variants[variant],
                variant as u32,
                EpisodeKey::default(),
                self.pinned(),
            )
        })?;
        Ok(())
    }

    fn copy_lane(&self, from: (&Lane, usize), to: (&mut Lane, usize)) {
        *to.0 = *from.0;
    }

    fn digest(&self, block: &Lane, _lane: usize, digest: &mut Digest) {
        let mut lane = *block;
        lane.visit(digest);
    }

    fn digest_drawn(&self, block: &Lane, _lane: usize, digest: &mut Digest) {
        // The numbers alone may be the same for two keys; the demand of the shift never is.
        digest.word(u64::from(block.variant));
        let mut numbers = block.numbers;
        numbers.visit(digest);
        for minute in 0..block.numbers.constants.shift.length_min as u64 {
            digest.f64(block.key.stream(Purpose::Demand, minute).uniform());
        }
    }

    fn drawn(&self, block: &Lane, _lane: usize) -> Vec<(String, f64)> {
        let params = &self.variants[block.variant as usize];
        let mut numbers = params.draw_in_order(block.key);
        params.draws.iter().map(|(target, _)| (target.path(), *numbers.slot(*target))).collect()
    }
}
