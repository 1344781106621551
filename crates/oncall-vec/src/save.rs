//! A row as bytes, independent of its position in the batch.
//!
//! ```text
//! magic  version  length  spec hash  params hash  split  interval      stamp
//! status  episode that runs  its terms  last episode  its terms       row
//! the world's bytes
//! checksum of all of the above
//! ```
//!
//! Everything but the world's part is in little-endian words of eight bytes.

use crate::autoreset::Status;
use crate::error::{VecError, check_len};
use crate::row::{Row, Tally};
use crate::snapshot::{Snapshot, Stamp};
use crate::vec_env::VecEnv;
use oncall_core::world::Saver;
use oncall_core::{Digest, Split, Words, World};

const MAGIC: [u8; 8] = *b"oncall-r";

/// Rises when the layout below or the checksum changes.
const VERSION: u64 = 2;

/// Magic, version, length.
const HEAD: usize = 24;
const CHECKSUM: usize = 8;
/// Room for a state, so that it seldom has to grow.
const STATE_BYTES: usize = 4096;

/// Digests that a checksum is made of: a digest waits for its last word, four take turns.
const STRANDS: usize = 4;

/// Word `i` goes to digest `i % STRANDS`; the checksum is the digest of their values.
fn checksum(bytes: &[u8]) -> u64 {
    let mut strands = [Digest::new(); STRANDS];
    let mut rows = bytes.chunks_exact(8 * STRANDS);
    for row in &mut rows {
        for (strand, word) in strands.iter_mut().zip(row.chunks_exact(8)) {
            strand.word(word_of(word));
        }
    }
    for (strand, word) in strands.iter_mut().zip(rows.remainder().chunks(8)) {
        strand.word(word_of(word));
    }
    let mut whole = Digest::new();
    for strand in strands {
        whole.word(strand.value());
    }
    whole.value()
}

/// A word of up to eight bytes; what is missing is zero.
fn word_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}

fn tally_words(tally: &mut Tally, to: &mut impl Words) {
    to.word(&mut tally.seed);
    to.word(&mut tally.episode);
    to.f64(&mut tally.return_);
    to.f64(&mut tally.cost);
    to.u32(&mut tally.steps);
    to.u32(&mut tally.minutes);
}

/// Reads words from the front of bytes; `short` says that there were too few.
struct Reader<'a> {
    bytes: &'a [u8],
    short: bool,
}

impl Words for Reader<'_> {
    fn word(&mut self, word: &mut u64) {
        if let Some((head, tail)) = self.bytes.split_first_chunk::<8>() {
            *word = u64::from_le_bytes(*head);
            self.bytes = tail;
        } else {
            self.short = true;
        }
    }
}

impl Reader<'_> {
    fn next(&mut self) -> u64 {
        let mut word = 0;
        self.word(&mut word);
        word
    }
}

/// What the engine's part of a state says.
struct Record<'a> {
    row: Row,
    terms: Vec<f64>,
    last_terms: Vec<f64>,
    world: &'a [u8],
}

/// Checks magic, version, length and checksum; gives what lies between.
fn open(bytes: &[u8]) -> Result<&[u8], VecError> {
    if !bytes.starts_with(&MAGIC) {
        let found = String::from_utf8_lossy(&bytes[..bytes.len().min(MAGIC.len())]).into_owned();
        let message = format!("first bytes = {found:?}: expected {:?}", "oncall-r");
        return Err(VecError::state(message));
    }
    let mut head = Reader { bytes: &bytes[MAGIC.len()..], short: false };
    let (version, length) = (head.next(), head.next());
    if head.short || bytes.len() < HEAD + CHECKSUM {
        let message = format!("length = {} bytes: expected more, it is cut short", bytes.len());
        return Err(VecError::state(message));
    }
    if version != VERSION {
        return Err(VecError::state(format!("format version = {version}: expected {VERSION}")));
    }
    if bytes.len() as u64 != length {
        let fault = if (bytes.len() as u64) < length { "cut short" } else { "followed by more" };
        return Err(VecError::state(format!(
            "length = {} bytes: expected {length}, it is {fault}",
            bytes.len()
        )));
    }
    let (body, tail) = bytes.split_at(bytes.len() - CHECKSUM);
    if tail != checksum(body).to_le_bytes() {
        return Err(VecError::state(
            "checksum: it does not match, the bytes are corrupt".to_owned(),
        ));
    }
    Ok(&body[HEAD..])
}

impl<'a> Record<'a> {
    /// Reads and checks the engine's part for an engine with the stamp `engine`.
    fn read(bytes: &'a [u8], engine: Stamp, terms: usize) -> Result<Self, VecError> {
        let mut from = Reader { bytes: open(bytes)?, short: false };
        let stamp = Stamp {
            spec_hash: from.next(),
            params_hash: from.next(),
            split: match from.next() {
                0 => Split::Train,
                1 => Split::Test,
                other => return Err(VecError::state(format!("split = {other}: expected 0 or 1"))),
            },
            decision_interval_min: u32::try_from(from.next()).unwrap_or(u32::MAX),
            tick_s: engine.tick_s,
        };
        // Before the rest is read: its length depends on the spec.
        stamp.check(engine)?;
        let status = match from.next() {
            1 => Status::Running,
            2 => Status::Over,
            other => return Err(VecError::state(format!("status = {other}: expected 1 or 2"))),
        };
        let mut row = Row { status, ..Row::default() };
        let mut sums = [vec![0.0; terms], vec![0.0; terms]];
        for (tally, sums) in [&mut row.current, &mut row.last].into_iter().zip(&mut sums) {
            tally_words(tally, &mut from);
            for sum in sums {
                from.f64(sum);
            }
            if tally.steps > tally.minutes {
                let (steps, minutes) = (tally.steps, tally.minutes);
                let message = format!("steps = {steps}: expected at most the {minutes} minutes");
                return Err(VecError::state(message));
            }
        }
        if from.short {
            let message = format!("length = {} bytes: expected more", bytes.len());
            return Err(VecError::state(message));
        }
        let [terms, last_terms] = sums;
        Ok(Self { row, terms, last_terms, world: from.bytes })
    }
}

impl<W: World> VecEnv<W> {
    /// One row as bytes: its state in whatever status, its sums, and the statistics of its last
    /// episode.
    ///
    /// Refuses a row beyond the batch, and one that was never reset.
    pub fn save(&self, row: usize) -> Result<Vec<u8>, VecError> {
        self.check_rows("row", &[row])?;
        self.check_seeded(&[row])?;
        let stamp = Stamp::of(&self.engine);
        let mut bytes = Vec::with_capacity(STATE_BYTES);
        bytes.extend_from_slice(&MAGIC);
        let mut to = Saver(&mut bytes);
        let state = self.table.row(row);
        for mut word in [
            VERSION,
            0,
            stamp.spec_hash,
            stamp.params_hash,
            u64::from(stamp.split == Split::Test),
            u64::from(stamp.decision_interval_min),
            if state.status == Status::Over { 2 } else { 1 },
        ] {
            to.word(&mut word);
        }
        let (mut current, mut last) = (state.current, state.last);
        tally_words(&mut current, &mut to);
        self.table.terms(row).for_each(|mut sum| to.f64(&mut sum));
        tally_words(&mut last, &mut to);
        self.table.last_terms(row).iter().for_each(|&sum| to.f64(&mut { sum }));
        let (block, lane) = self.lane(row);
        self.engine.world.save(block, lane, &mut bytes);
        let length = (bytes.len() + CHECKSUM) as u64;
        bytes[HEAD - 8..HEAD].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    /// Restores what [`VecEnv::save`] wrote, `states[k]` into row `rows[k]`, all of them or none.
    ///
    /// A state fits the scenario, split and decision interval that it was saved under, in any row of
    /// a batch of any size and any autoreset mode; an over row of a state that meets
    /// [`Autoreset::SameStep`](crate::Autoreset::SameStep) begins anew with the next step. The rows
    /// are no longer shown as ended or begun in the last call.
    ///
    /// Refuses rows beyond the batch or named twice, bytes that are no such state, cut short, too
    /// long, corrupt, or of another world, scenario, split or interval, and a running episode that
    /// would be over under this engine's `max_minutes`.
    pub fn load(&mut self, rows: &[usize], states: &[&[u8]]) -> Result<(), VecError> {
        self.check_rows("rows", rows)?;
        self.check_distinct("rows", rows)?;
        check_len("states", states.len(), rows.len(), 1)?;
        let mut staged = Snapshot::with_rows(&self.engine, rows.len());
        for (k, state) in states.iter().enumerate() {
            self.stage(&mut staged, k, state).map_err(|error| {
                VecError::new(error.kind(), format!("states[{k}] for row {}: {error}", rows[k]))
            })?;
        }
        self.put(&staged, rows);
        Ok(())
    }

    /// Reads a state into row `k` of a snapshot.
    fn stage(&self, staged: &mut Snapshot<W>, k: usize, bytes: &[u8]) -> Result<(), VecError> {
        let (engine, width) = (&self.engine, self.engine.widths.terms);
        let mut record = Record::read(bytes, staged.stamp, width)?;
        let (block, lane) = (&mut staged.blocks[k / W::LANES], k % W::LANES);
        engine
            .world
            .load(block, lane, record.world)
            .map_err(|error| VecError::state(format!("state of the world: {error}")))?;
        self.check_length(&record.row, (block, lane))?;
        record.row.level = engine.observer.level_of(&*engine.world, block, lane);
        staged.rows[k] = record.row;
        staged.terms[k * width..][..width].copy_from_slice(&record.terms);
        staged.last_terms[k * width..][..width].copy_from_slice(&record.last_terms);
        Ok(())
    }
}
