//! `DiscoveryWorld`: discovery behind the contract of `oncall-core`.

use crate::dials::{self, Mechanics};
use crate::lane::Episode;
use crate::params::Params;
use crate::{TICK_S, reward, spec};
use oncall_core::{Digest, EpisodeKey, Generator, LoadError, Spec, World, fnv1a, mixture};
use oncall_discovery_sim::topology::Scale;

/// Begins every saved state.
const MAGIC: u64 = 0x6469_7363_2d65_6e76;

/// A scenario, or a mixture of scenarios of which each episode draws one.
#[derive(Debug, Clone)]
pub struct DiscoveryWorld {
    variants: Vec<Params>,
    /// Running sums of the weights.
    cumulative: Vec<f64>,
    spec: Spec,
    mechanics: Mechanics,
    hash: u64,
}

/// Why variants do not make a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MixtureError {
    /// No variant, or a weight that is not positive and finite.
    Weights,
    /// Variants of different scales.
    Scales,
}

/// One environment; empty before its first reset.
#[derive(Debug, Clone, Default)]
pub struct Lane(Option<Box<Episode>>);

#[cfg(test)]
impl Lane {
    /// Invariants that broke.
    pub(crate) fn violations(&self) -> &[oncall_discovery_sim::world::Violation] {
        self.0.as_ref().map_or(&[], |episode| episode.world.violations())
    }

    /// Looks whether the traffic's accounts add up.
    pub(crate) fn check_accounts(&mut self) {
        if let Some(episode) = &mut self.0 {
            episode.world.check_accounts();
        }
    }
}

impl DiscoveryWorld {
    /// A world of one scenario.
    pub fn single(params: Params) -> Self {
        let hash = params.hash();
        let (spec, mechanics) = (spec(), Mechanics::default());
        Self { variants: vec![params], cumulative: vec![1.0], spec, mechanics, hash }
    }

    /// A world that draws one of several scenarios each episode.
    pub fn mixture(variants: Vec<(Params, f64)>) -> Result<Self, MixtureError> {
        let (mut total, mut cumulative) = (0.0, Vec::new());
        for (params, weight) in &variants {
            if !(weight.is_finite() && *weight > 0.0) {
                return Err(MixtureError::Weights);
            }
            if params.scale != variants[0].0.scale {
                return Err(MixtureError::Scales);
            }
            total += weight;
            cumulative.push(total);
        }
        if variants.is_empty() {
            return Err(MixtureError::Weights);
        }
        let variants: Vec<Params> = variants.into_iter().map(|(params, _)| params).collect();
        let hash = mixture_hash(&variants, &cumulative);
        Ok(Self { variants, cumulative, spec: spec(), mechanics: Mechanics::default(), hash })
    }

    /// The same scenarios with a fleet of another size.
    #[must_use]
    pub fn with_scale(mut self, scale: Scale) -> Self {
        for params in &mut self.variants {
            params.scale = scale;
        }
        self.hash = match self.variants.as_slice() {
            [single] => single.hash(),
            variants => mixture_hash(variants, &self.cumulative),
        };
        self
    }

    /// Size of the fleet.
    pub fn scale(&self) -> Scale {
        self.variants[0].scale
    }

    /// The scenarios of this world; one unless it is a mixture.
    pub fn variants(&self) -> &[Params] {
        &self.variants
    }

    /// Share of the episodes that play each of [`DiscoveryWorld::variants`]; they sum to 1.
    pub fn shares(&self) -> Vec<f64> {
        mixture::shares(&self.cumulative)
    }

    fn params(&self, episode: &Episode) -> &Params {
        &self.variants[episode.variant as usize]
    }

    /// Whether a loaded episode is one that this world can go on with.
    fn check(&self, episode: &Episode) -> Result<(), LoadError> {
        let Some(params) = self.variants.get(episode.variant as usize) else {
            return Err(LoadError(format!(
                "the state plays scenario {} of a mixture that has {}",
                episode.variant,
                self.variants.len()
            )));
        };
        if EpisodeKey::from_bits(episode.key).is_none() {
            return Err(LoadError(format!("the state has no key: {:?}", episode.key)));
        }
        if episode.drawn.len() != params.draws.len() {
            return Err(LoadError(format!(
                "the state has {} drawn numbers: expected {}",
                episode.drawn.len(),
                params.draws.len()
            )));
        }
        Ok(())
    }
}

fn mixture_hash(variants: &[Params], cumulative: &[f64]) -> u64 {
    let mut bytes = Vec::new();
    for (params, sum) in variants.iter().zip(cumulative) {
        bytes.extend_from_slice(&params.hash().to_le_bytes());
        bytes.extend_from_slice(&sum.to_bits().to_le_bytes());
    }
    fnv1a(&bytes)
}

impl World for DiscoveryWorld {
    type Block = Lane;

    const LANES: usize = 1;

    /// A tick of the smallest fleet takes about as long as 200,000 signals.
    const WORK: usize = 1000;

    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn params_hash(&self) -> u64 {
        self.hash
    }

    fn generator(&self) -> Generator {
        Generator::Pcg
    }

    fn new_block(&self) -> Lane {
        Lane(None)
    }

    fn reset(&self, block: &mut Lane, _lane: usize, key: EpisodeKey) {
        let variant = mixture::draw(&self.cumulative, key);
        let opened = Episode::open(&self.variants[variant], variant, key);
        debug_assert!(opened.is_ok(), "a validated scenario opens: {:?}", opened.err());
        block.0 = opened.ok().map(Box::new);
    }

    fn scenario_of<'a>(&'a self, block: &'a Lane, _lane: usize) -> &'a str {
        block.0.as_ref().map_or(self.spec.world, |episode| &self.params(episode).name)
    }

    fn length_min(&self, block: &Lane, _lane: usize) -> u32 {
        let minutes = block.0.as_ref().map_or(1.0, |episode| episode.length_min());
        minutes as u32 * (60 / TICK_S)
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
        if let Some(episode) = &mut block.0 {
            let wish = self.mechanics.turn(&episode.wish, dials);
            terms[..reward::TERMS].copy_from_slice(&episode.play(&wish));
        }
        terminated[0] = false; // No budget ends an episode; the engine truncates.
    }

    fn signals(&self, block: &Lane, _lane: usize, out: &mut [f64]) {
        match &block.0 {
            Some(episode) => episode.signals(out),
            None => out.fill(0.0),
        }
    }

    fn dials(&self, block: &Lane, _lane: usize, out: &mut [f64]) {
        match &block.0 {
            Some(episode) => out[..dials::COUNT].copy_from_slice(&episode.wish),
            None => out.fill(0.0),
        }
    }

    fn pin_demand(&mut self, _requests_per_s: Option<Vec<f64>>) -> bool {
        false
    }

    fn save(&self, block: &Lane, _lane: usize, out: &mut Vec<u8>) {
        let Some(episode) = &block.0 else { return };
        let bytes = postcard::to_stdvec(episode);
        debug_assert!(bytes.is_ok(), "a state can be written: {:?}", bytes.as_ref().err());
        let bytes = bytes.unwrap_or_default();
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out.extend_from_slice(&checksum(&bytes).to_le_bytes());
        out.extend_from_slice(&bytes);
    }

    fn load(&self, block: &mut Lane, _lane: usize, bytes: &[u8]) -> Result<(), LoadError> {
        let short = || LoadError("the state is cut short".to_owned());
        let (magic, rest) = bytes.split_first_chunk::<8>().ok_or_else(short)?;
        let (sum, body) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        if u64::from_le_bytes(*magic) != MAGIC {
            return Err(LoadError("the bytes are no state of discovery".to_owned()));
        }
        // The simulator believes what it loads, so nothing gets there that was not written by it.
        if u64::from_le_bytes(*sum) != checksum(body) {
            return Err(LoadError("the state is damaged: its checksum does not match".to_owned()));
        }
        let mut episode: Episode = postcard::from_bytes(body)
            .map_err(|why| LoadError(format!("the state cannot be read: {why}")))?;
        self.check(&episode)?;
        episode.revive();
        block.0 = Some(Box::new(episode));
        Ok(())
    }

    fn copy_lane(&self, from: (&Lane, usize), to: (&mut Lane, usize)) {
        to.0.0.clone_from(&from.0.0);
    }

    fn digest(&self, block: &Lane, lane: usize, digest: &mut Digest) {
        let mut bytes = Vec::new();
        self.save(block, lane, &mut bytes);
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            digest.word(u64::from_le_bytes(word));
        }
    }

    fn digest_drawn(&self, block: &Lane, _lane: usize, digest: &mut Digest) {
        let Some(episode) = &block.0 else { return };
        digest.word(u64::from(episode.variant));
        episode.drawn.iter().for_each(|&x| digest.f64(x));
        for window in episode.windows() {
            digest.word(u64::from(window.plan));
        }
        // The numbers alone may be the same for two keys; the noise of the network never is.
        digest.word(episode.noise_bits());
    }

    fn drawn(&self, block: &Lane, _lane: usize) -> Vec<(String, f64)> {
        let Some(episode) = &block.0 else { return Vec::new() };
        let params = self.params(episode);
        let path = |target| params.numbers.path(target);
        let drawn = params.draws.iter().zip(&episode.drawn);
        drawn.map(|((target, _), &value)| (path(*target), value)).collect()
    }
}

/// Hash of the bytes of a state, eight at a time.
fn checksum(bytes: &[u8]) -> u64 {
    let mut sum = bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = oncall_core::streams::mix(sum, u64::from_le_bytes(word));
    }
    sum
}
