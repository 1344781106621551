//! The `World` trait: what an engine may ask of a simulation.

use crate::digest::Digest;
use crate::spec::Spec;
use crate::streams::EpisodeKey;

/// A validated scenario together with its dynamics; immutable, shared by all blocks and threads.
///
/// The state lives in *blocks* of [`World::LANES`] lanes, one environment a lane. A world that steps
/// lanes together chooses a wide block; one that steps them one by one has `LANES = 1`. A lane's
/// trajectory depends on its key and its dials only, never on the lane, the block or the other lanes.
///
/// The engine guarantees: slices have the stated lengths; a lane is reset before it is stepped; dials
/// are finite and inside their ranges, or NaN for "keep". The world guarantees: lanes that are not
/// selected keep every bit; nothing panics. The fleet allocates nothing in `step` or `signals`; a world
/// of discrete events may.
pub trait World: Send + Sync + 'static {
    /// State of `LANES` environments.
    type Block: Clone + Send + Sync;

    /// Environments in a block.
    const LANES: usize;

    /// How much dearer a tick is than to write its signals: what makes a batch worth several threads.
    const WORK: usize = 1;

    /// Whether the world has [`World::column`] and [`World::value`].
    const COLUMNS: bool = false;

    /// What goes in and comes out. Equal for all scenarios of a world, so that one policy fits all.
    fn spec(&self) -> &Spec;

    /// Hash of the parameters: a state fits the world that saved it, and no other.
    fn params_hash(&self) -> u64;

    /// The generator that episode keys of this world are made for.
    fn generator(&self) -> crate::streams::Generator;

    /// A block with all its memory; every lane must be reset before it is used.
    fn new_block(&self) -> Self::Block;

    /// Draws a new episode for one lane and opens its shift: minute zero, no noise, nothing paid.
    fn reset(&self, block: &mut Self::Block, lane: usize, key: EpisodeKey);

    /// Name of the scenario that a lane plays: of a mixture, the one that was drawn.
    fn scenario_of<'a>(&'a self, block: &'a Self::Block, lane: usize) -> &'a str {
        let _ = (block, lane);
        self.spec().world
    }

    /// Ticks until the engine truncates this lane's episode.
    fn length_min(&self, block: &Self::Block, lane: usize) -> u32;

    /// Plays one tick, `Spec::tick_s` seconds, in the lanes where `active` is true.
    ///
    /// * `active`: `LANES` flags.
    /// * `dials`: `spec.dials.len() * LANES`, by dial and lane, natural units, NaN keeps.
    /// * `terms`: `spec.terms.len() * LANES`, by term and lane, dollars; written for active lanes only.
    /// * `terminated`: `LANES` flags; written for active lanes only.
    fn step(
        &self,
        block: &mut Self::Block,
        active: &[bool],
        dials: &[f64],
        terms: &mut [f64],
        terminated: &mut [bool],
    );

    /// Writes one lane's signals in natural units, in the order of `spec.signals`: the minute as it
    /// was played, or the opening minute after a reset.
    fn signals(&self, block: &Self::Block, lane: usize, out: &mut [f64]);

    /// One signal of all lanes in natural units: a part of the block, or of `out`, which has room for
    /// `LANES` numbers. The bits are those of [`World::signals`]; lanes never reset hold anything.
    /// Called only of worlds that say [`World::COLUMNS`].
    fn column<'a>(
        &'a self,
        block: &'a Self::Block,
        signal: usize,
        out: &'a mut [f64],
    ) -> &'a [f64] {
        let _ = (block, signal);
        out
    }

    /// One signal of one lane; otherwise as [`World::column`].
    fn value(&self, block: &Self::Block, lane: usize, signal: usize) -> f64 {
        let _ = (block, lane, signal);
        f64::NAN
    }

    /// Writes the dials as they stand, in natural units; 0 for presses.
    fn dials(&self, block: &Self::Block, lane: usize, out: &mut [f64]);

    /// Replaces the drawn demand of an episode by exact rates, `requests_per_s[minute]`, the last
    /// value held; no noise, no surge. `None` goes back to the drawn demand. `false` if the world
    /// has no such thing.
    fn pin_demand(&mut self, requests_per_s: Option<Vec<f64>>) -> bool;

    /// Appends one lane's state, bit for bit.
    fn save(&self, block: &Self::Block, lane: usize, out: &mut Vec<u8>);

    /// Restores what [`World::save`] wrote. On an error the lane is unchanged.
    fn load(&self, block: &mut Self::Block, lane: usize, bytes: &[u8]) -> Result<(), LoadError>;

    /// Copies a lane from one block to another.
    fn copy_lane(&self, from: (&Self::Block, usize), to: (&mut Self::Block, usize));

    /// Feeds every bit of state that the future depends on.
    fn digest(&self, block: &Self::Block, lane: usize, digest: &mut Digest);

    /// Feeds what was drawn for this episode, apart from any state.
    fn digest_drawn(&self, block: &Self::Block, lane: usize, digest: &mut Digest);

    /// What was drawn for this episode, as (name, value) pairs for reports; truths included.
    fn drawn(&self, block: &Self::Block, lane: usize) -> Vec<(String, f64)>;
}

/// Why bytes are not a state of this world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadError(pub String);

impl std::fmt::Display for LoadError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LoadError {}

/// A walk over the words of a state. One listing of the fields serves saving, loading and digests.
pub trait Words {
    /// Visits one word; a loader replaces it.
    fn word(&mut self, word: &mut u64);

    /// Visits a double by its bits.
    fn f64(&mut self, x: &mut f64) {
        let mut word = x.to_bits();
        self.word(&mut word);
        *x = f64::from_bits(word);
    }

    /// Visits a count. A loaded value that does not fit becomes `u32::MAX`, which no state holds.
    fn u32(&mut self, x: &mut u32) {
        let mut word = u64::from(*x);
        self.word(&mut word);
        *x = u32::try_from(word).unwrap_or(u32::MAX);
    }

    /// Visits a flag.
    fn bool(&mut self, x: &mut bool) {
        let mut word = u64::from(*x);
        self.word(&mut word);
        *x = word != 0;
    }
}

impl Words for Digest {
    fn word(&mut self, word: &mut u64) {
        Digest::word(self, *word);
    }
}

/// Appends words to bytes, little-endian.
#[derive(Debug)]
pub struct Saver<'a>(pub &'a mut Vec<u8>);

impl Words for Saver<'_> {
    fn word(&mut self, word: &mut u64) {
        self.0.extend_from_slice(&word.to_le_bytes());
    }
}

/// Reads words from bytes; too few bytes are remembered, not fatal.
#[derive(Debug)]
pub struct Loader<'a> {
    bytes: &'a [u8],
    short: bool,
}

impl<'a> Loader<'a> {
    /// Reads from the start of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, short: false }
    }

    /// Whether exactly all bytes were read.
    pub fn finished(&self) -> bool {
        self.bytes.is_empty() && !self.short
    }
}

impl Words for Loader<'_> {
    fn word(&mut self, word: &mut u64) {
        if let Some((head, tail)) = self.bytes.split_first_chunk::<8>() {
            *word = u64::from_le_bytes(*head);
            self.bytes = tail;
        } else {
            self.short = true;
        }
    }
}
