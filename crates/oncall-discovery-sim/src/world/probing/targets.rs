//! Instances as the probe loop sees them: a word each, those of a bucket side by side.
//!
//! The loop is over memory more than over anything else: at full scale 20,000 instances and more a simulated second.
//! So what it needs of an instance is packed into eight bytes, and a bucket is a slice of one long list, in which
//! neighbours can be looked at as one. A bucket that is full moves to the end of the list; once the holes that this
//! leaves are a quarter of it, all is packed.

use crate::noise::{Draw, Noise};
use oncall_consensus::Pages;
use oncall_core::isa;
use oncall_discovery::catalog::CatalogShard;
use oncall_discovery::types::InstanceId;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How the loop treats an instance: nothing to see.
pub(super) const FINE: u8 = 0;
/// Look closer.
pub(super) const CLOSER: u8 = 1;
/// Not probed.
pub(super) const UNPROBED: u8 = 2;

/// Instances of a bucket from which wide registers pay.
const WIDE: usize = 8;

/// An instance: its number (32 bits), its prober at home, how it is treated (8 each).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Target(u64);

/// A place for an instance to come.
const BLANK: Target = Target((UNPROBED as u64) << 40);

impl Target {
    fn byte(self, at: u32) -> u8 {
        (self.0 >> (32 + 8 * at)) as u8
    }

    fn set_byte(&mut self, at: u32, value: u8) {
        let shift = 32 + 8 * at;
        self.0 = self.0 & !(0xff << shift) | u64::from(value) << shift;
    }

    #[expect(clippy::inline_always, reason = "the loop is compiled for each set of instructions")]
    #[inline(always)]
    pub(super) fn id(self) -> u32 {
        self.0 as u32
    }

    /// Group times probers plus the prober at home.
    pub(super) fn home(self) -> u8 {
        self.byte(0)
    }

    pub(super) fn look(self) -> u8 {
        self.byte(1)
    }

    pub(super) fn set_look(&mut self, look: u8) {
        self.set_byte(1, look);
    }

    /// The random word of one probe.
    #[expect(clippy::inline_always, reason = "the loop is compiled for each set of instructions")]
    #[inline(always)]
    pub(super) fn word(self, noise: Noise, turn: u64, round: u64) -> u64 {
        noise.word(Draw::ProbeLoss, u64::from(self.id()) | turn << 40, round)
    }
}

/// Where a bucket lies.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct Span {
    first: u32,
    len: u32,
    room: u32,
}

/// All instances by bucket, and the place of each.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Targets {
    spans: Vec<Span>,
    list: Vec<Target>,
    /// By instance.
    sites: Pages<Site>,
    /// Places of the list that belong to no bucket.
    holes: u32,
}

/// Where something of an instance is found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Site {
    /// In the list.
    place: u32,
    /// Its row in the catalog.
    row: u32,
}

/// Nowhere.
const NOWHERE: u32 = u32::MAX;

impl Targets {
    pub(super) fn new(buckets: usize) -> Self {
        let spans = vec![Span::default(); buckets];
        Self { spans, list: Vec::new(), sites: Pages::default(), holes: 0 }
    }

    /// The instances of the first buckets of a range in the order in which they came, and the buckets that are left:
    /// as many as lie side by side. Between them are blank ones, which are not probed.
    #[inline]
    pub(super) fn first_of(&self, due: Range<usize>) -> (&[Target], Range<usize>) {
        let Some(span) = self.spans.get(due.start) else { return (&[], due.end..due.end) };
        let (mut end, mut next) = (span.first + span.room, due.start + 1);
        while next < due.end && self.spans[next].first == end {
            end += self.spans[next].room;
            next += 1;
        }
        (&self.list[span.first as usize..end as usize], next..due.end)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Target> {
        self.list.get_mut(self.sites.get(id as usize)?.place as usize)
    }

    /// The row of an instance in its catalog, where rows keep their numbers: nothing is swept here.
    #[inline]
    pub(super) fn row(&mut self, id: u32, catalog: &CatalogShard) -> Option<u32> {
        let known = self.sites.get(id as usize)?.row;
        if known != NOWHERE {
            return Some(known);
        }
        let row = catalog.row_of(InstanceId(id))?;
        self.sites[id as usize].row = row;
        Some(row)
    }

    /// A new instance, which is not probed yet.
    pub(super) fn add(&mut self, bucket: usize, id: u32, home: u8) {
        self.sites.fill_up(id as usize + 1, &Site { place: NOWHERE, row: NOWHERE });
        if self.spans[bucket].len == self.spans[bucket].room {
            if self.holes as usize > self.list.len() / 4 {
                self.pack(8);
            }
            self.grow(bucket);
        }
        let span = &mut self.spans[bucket];
        let at = span.first + span.len;
        span.len += 1;
        let mut target = Target(u64::from(id));
        target.set_byte(0, home);
        target.set_look(UNPROBED);
        self.list[at as usize] = target;
        self.sites[id as usize].place = at;
    }

    /// Makes room for one more.
    fn grow(&mut self, bucket: usize) {
        let old = self.spans[bucket];
        let room = old.len + old.len / 4 + 1;
        if old.room >= room {
            return;
        }
        let first = self.list.len() as u32;
        self.list.extend_from_within(old.first as usize..(old.first + old.len) as usize);
        self.list.resize((first + room) as usize, BLANK);
        self.settle(first, old.len);
        self.spans[bucket] = Span { first, len: old.len, room };
        self.holes += old.room;
    }

    /// Notes where the instances of a slice are now.
    fn settle(&mut self, first: u32, len: u32) {
        for at in first..first + len {
            self.sites[self.list[at as usize].id() as usize].place = at;
        }
    }

    /// Puts the buckets side by side again, each with room for one part in `spare` more; 0 for none.
    pub(super) fn pack(&mut self, spare: u32) {
        let mut list = Vec::with_capacity(self.list.len());
        for span in &mut self.spans {
            let first = list.len() as u32;
            list.extend_from_slice(&self.list[span.first as usize..][..span.len as usize]);
            let room = span.len + span.len.checked_div(spare).map_or(0, |more| more + 1);
            list.resize((first + room) as usize, BLANK);
            *span = Span { first, len: span.len, room };
        }
        self.list = list;
        self.holes = 0;
        for bucket in 0..self.spans.len() {
            let span = self.spans[bucket];
            self.settle(span.first, span.len);
        }
    }
}

/// The random words of a bucket's probes, those of each instance side by side; none where drawing them one by one
/// is as fast.
#[inline]
pub(super) fn draw<'a>(
    bucket: &[Target],
    noise: Noise,
    agreeing: u8,
    round: u64,
    words: &'a mut Vec<u64>,
) -> &'a [u64] {
    if bucket.len() < WIDE {
        return &[];
    }
    words.resize(bucket.len() * usize::from(agreeing), 0);
    isa::run(Draws { bucket, noise, agreeing: usize::from(agreeing), round, words });
    words
}

struct Draws<'a> {
    bucket: &'a [Target],
    noise: Noise,
    agreeing: usize,
    round: u64,
    words: &'a mut [u64],
}

impl isa::Kernel for Draws<'_> {
    type Out = ();

    #[expect(
        clippy::inline_always,
        reason = "the body must be compiled for each set of instructions"
    )]
    #[inline(always)]
    fn run(self) {
        if self.agreeing == 1 {
            for (out, target) in self.words.iter_mut().zip(self.bucket) {
                *out = target.word(self.noise, 0, self.round);
            }
            return;
        }
        for (out, target) in self.words.chunks_exact_mut(self.agreeing).zip(self.bucket) {
            for (turn, out) in out.iter_mut().enumerate() {
                *out = target.word(self.noise, turn as u64, self.round);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::{EpisodeKey, Generator, Split};
    use proptest::prelude::*;

    /// The probed ones of some buckets.
    fn members(targets: &Targets, mut due: Range<usize>) -> Vec<Target> {
        let mut found = Vec::new();
        while !due.is_empty() {
            let (slice, rest) = targets.first_of(due);
            found.extend(slice.iter().filter(|target| target.look() != UNPROBED));
            due = rest;
        }
        found
    }

    proptest! {
        /// Against plain lists: members, their order and how each is treated.
        #[test]
        fn buckets_are_those_of_plain_lists(first in prop::collection::vec(0_usize..7, 0..80), later in prop::collection::vec(0_usize..7, 0..400)) {
            let mut targets = Targets::new(7);
            let mut plain = vec![Vec::new(); 7];
            let all = first.iter().chain(&later);
            for (id, &bucket) in all.enumerate() {
                if id == first.len() {
                    targets.pack(0);
                }
                targets.add(bucket, id as u32, bucket as u8);
                plain[bucket].push(id as u32);
                let target = targets.get_mut(id as u32).unwrap();
                assert_eq!(target.look(), UNPROBED);
                target.set_look(if id % 2 == 0 { FINE } else { CLOSER });
                prop_assert!(targets.get_mut(id as u32 + 1).is_none());
            }
            for (bucket, plain) in plain.iter().enumerate() {
                let found: Vec<Target> = members(&targets, bucket..bucket + 1);
                prop_assert_eq!(found.len(), plain.len());
                for (target, &id) in found.iter().zip(plain) {
                    prop_assert_eq!((target.id(), target.home()), (id, bucket as u8));
                    prop_assert_eq!(target.look(), if id % 2 == 0 { FINE } else { CLOSER });
                }
            }
            let all: Vec<u32> = members(&targets, 0..7).into_iter().map(Target::id).collect();
            prop_assert_eq!(all, plain.concat());
            prop_assert!(targets.list.len() <= 2 * (first.len() + later.len()) + 16);
        }
    }

    /// Wide or not, the words are those that were drawn one by one.
    #[test]
    fn words_are_the_same_in_every_width() {
        let noise = Noise::new(EpisodeKey::new(3, 1, Split::Train, Generator::Pcg));
        let mut targets = Targets::new(1);
        (0..50).for_each(|id| targets.add(0, id * 7, 3));
        targets.pack(0);
        let (bucket, _) = targets.first_of(0..1);
        for (count, agreeing) in [(50, 1), (50, 3), (8, 2), (7, 1)] {
            let mut words = vec![0; 500];
            let words = draw(&bucket[..count], noise, agreeing, 9, &mut words);
            assert_eq!(words.len(), if count < WIDE { 0 } else { count * usize::from(agreeing) });
            for (target, words) in bucket.iter().zip(words.chunks(usize::from(agreeing))) {
                for (turn, &word) in words.iter().enumerate() {
                    let entity = u64::from(target.id()) | (turn as u64) << 40;
                    assert_eq!(word, noise.word(Draw::ProbeLoss, entity, 9));
                }
            }
        }
    }
}
