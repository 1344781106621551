//! The accounts of one cell: published epochs, who is at which, and what that means per second.

use super::members::{CALLERS, Calls, Counts, Hits, Load, Members, Outcome, Pool, ZONES};
use super::misses::Curve;
use super::pairs::Private;
use super::tail::Tail;
use crate::queue::{Micros, S};
use serde::{Deserialize, Serialize};

/// A published set, as counts. The set itself is never stored: an endpoint belongs to epoch `v` if
/// one of its READY intervals has `add <= v < rem`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Epoch {
    pub(crate) seq: u32,
    pub(crate) members: Members,
    /// Traffic of subscriptions here that are accounted together, micro-requests/s by caller class.
    pub(crate) mass: [u64; CALLERS],
    /// The part of `mass` whose proxies are disconnected.
    pub(crate) offline: [u64; CALLERS],
    /// All subscriptions here.
    pub(crate) subs: u32,
    /// Deliveries under way that lead here.
    pub(crate) expected: u32,
    /// Expected outcome of one request by caller; absent while nothing is bad here.
    pub(crate) bad: Option<Box<[Outcome; CALLERS]>>,
}

/// One READY interval of an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slot {
    /// First epoch with it; [`Slot::NEVER`] before it was published.
    pub add: u32,
    /// First epoch without it; [`Slot::NEVER`] while it is in.
    pub rem: u32,
    /// Zone.
    pub zone: u8,
    /// Whether every request there fails.
    pub failing: bool,
    /// Whether the catalog no longer holds it READY.
    pub stale: bool,
    /// Whether its identity is revoked: whoever connects refuses it.
    pub refused: bool,
}

impl Slot {
    /// No epoch yet.
    pub const NEVER: u32 = u32::MAX;

    /// An interval that was accepted and not yet published.
    pub fn new(zone: u8) -> Self {
        Self {
            add: Self::NEVER,
            rem: Self::NEVER,
            zone,
            failing: false,
            stale: false,
            refused: false,
        }
    }

    /// Whether a request there fails, for whatever reason of the endpoint's own.
    #[inline]
    pub fn fails(&self) -> bool {
        self.failing || self.refused
    }

    /// Whether epoch `seq` holds it.
    #[inline]
    pub fn is_in(&self, seq: u32) -> bool {
        self.add <= seq && seq < self.rem
    }
}

/// The accounts of one cell.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct CellLedger {
    /// Ascending; the last one is the head.
    pub(crate) epochs: Vec<Epoch>,
    /// Subscriptions with ejections or failures that may become one.
    pub(crate) privates: Vec<Private>,
    pub(crate) tails: Vec<Tail>,
    /// Endpoints that fail and are in somebody's view, or were when last looked at.
    pub(crate) failing: Vec<u32>,
    /// Connected subscriptions.
    pub(crate) online: u32,
    /// Chances that a single attempt fails.
    pub(crate) load: Load,
    /// Attempts a second that one endpoint can take; 0 for any number.
    pub(crate) capacity: f64,
    /// Law of the wait for a false ejection.
    pub(crate) curve: Curve,
    /// Whether overload is possible as things stand, so that every change has to be weighed.
    pub(crate) tight: bool,
    /// Requests that policy refuses before they get here, micro-requests a second.
    pub(crate) refused: u64,
    pub(crate) rate: Counts,
    pub(crate) settled: Micros,
    pub(crate) counts: Counts,
}

impl CellLedger {
    /// Number of the head epoch.
    pub fn head(&self) -> u32 {
        self.epochs.last().map_or(0, |epoch| epoch.seq)
    }

    /// Number of the oldest epoch that a proxy still holds.
    pub fn oldest(&self) -> u32 {
        self.epochs.first().map_or(0, |epoch| epoch.seq)
    }

    /// Live epochs.
    pub fn live(&self) -> usize {
        self.epochs.len()
    }

    /// Subscriptions at the head.
    pub fn head_subs(&self) -> u32 {
        self.epochs.last().map_or(0, |epoch| epoch.subs)
    }

    /// Subscriptions whose set has less than `least` endpoints.
    pub fn thin_subs(&self, least: u32) -> u32 {
        let thin = self.epochs.iter().filter(|epoch| epoch.members.total().n < least);
        thin.map(|epoch| epoch.subs).sum()
    }

    /// Counts of the head's set.
    pub fn head_members(&self) -> Members {
        self.epochs.last().map_or(Members::default(), |epoch| epoch.members)
    }

    /// Tails whose clocks still run.
    pub fn open_tails(&self) -> usize {
        self.tails.len()
    }

    /// Place of an epoch that somebody holds or a delivery leads to.
    #[inline]
    pub(crate) fn at(&self, seq: u32) -> usize {
        // Live epochs are few, and most look-ups ask for the newest.
        let found = self.epochs.iter().rposition(|epoch| epoch.seq == seq);
        debug_assert!(found.is_some(), "epoch {seq} is not live");
        found.unwrap_or(0)
    }

    /// Counts up to `now`.
    #[inline]
    pub(crate) fn settle(&mut self, now: Micros) {
        if now > self.settled {
            self.counts.add(&self.rate, (now - self.settled) as f64 / S as f64);
            self.settled = now;
        }
    }

    /// Adds up the rates again from what they consist of, which also ends any drift.
    pub(crate) fn sum_rates(&mut self) {
        let mut rate = Counts::default();
        for epoch in &self.epochs {
            for caller in (0..CALLERS).filter(|&caller| epoch.mass[caller] > 0) {
                epoch.add_rate(&mut rate, caller as u8, epoch.mass[caller] as f64);
            }
        }
        for private in self.privates.iter().filter(|private| private.is_apart()) {
            rate.add(&private.outcome.counts, private.lambda as f64 / 1e6);
        }
        let refused = self.refused as f64 / 1e6;
        rate.requests += refused;
        rate.policy_refused += refused;
        self.rate = rate;
    }

    /// Removes epochs that nobody holds and no delivery leads to, except the head.
    pub(crate) fn prune(&mut self) {
        if self.epochs.len() < 2 {
            return;
        }
        let head = self.head();
        let before = self.epochs.len();
        self.epochs.retain(|epoch| epoch.subs + epoch.expected > 0 || epoch.seq == head);
        if self.epochs.len() != before && self.epochs.len() == 1 {
            self.sum_rates();
        }
    }

    /// Mass conservation and consistent counts (I16); `total` is the traffic of all subscriptions.
    pub fn check(&self, total: u64, subs: u32) -> Result<(), String> {
        let mass: u64 = self.epochs.iter().flat_map(|epoch| epoch.mass).sum();
        let apart: u64 = self.privates.iter().filter(|p| p.is_apart()).map(|p| p.lambda).sum();
        if mass + apart != total {
            return Err(format!("traffic {mass} + {apart} apart; expected {total}"));
        }
        let held: u32 = self.epochs.iter().map(|epoch| epoch.subs).sum();
        if held != subs {
            return Err(format!("{held} subscriptions at live epochs; expected {subs}"));
        }
        for epoch in &self.epochs {
            if !epoch.members.0.iter().all(|pool| pool.is_consistent()) {
                return Err(format!("epoch {}: {:?}", epoch.seq, epoch.members));
            }
        }
        let idle = |p: &Private| p.pairs.is_empty() && !p.degraded && p.miss.is_none();
        if self.privates.iter().any(idle) {
            return Err("a private record without pairs".to_owned());
        }
        Ok(())
    }
}

impl Epoch {
    pub(crate) fn new(seq: u32, members: Members) -> Self {
        Self { seq, members, mass: [0; 4], offline: [0; 4], subs: 0, expected: 0, bad: None }
    }

    /// Works out the outcomes again after the members changed.
    pub(crate) fn refresh(&mut self, calls: &Calls, load: Load) {
        if self.members.is_clean() && load == Load::NONE {
            self.bad = None;
        } else {
            let outcomes =
                std::array::from_fn(|caller| self.members.outcome(caller as u8, calls, load));
            self.bad = Some(Box::new(outcomes));
        }
    }

    /// Expected outcome of one request.
    #[inline]
    pub(crate) fn outcome(&self, caller: u8) -> Outcome {
        match &self.bad {
            None => self.members.clean_outcome(caller),
            Some(bad) => bad[usize::from(caller)],
        }
    }

    /// Where the attempts of one request go.
    #[inline]
    pub(crate) fn hits(&self, caller: u8) -> Hits {
        match &self.bad {
            None => self.members.clean_hits(caller),
            Some(bad) => bad[usize::from(caller)].hits,
        }
    }

    /// Adds the rate of `mass` micro-requests/s (negative to take it away).
    #[inline]
    pub(crate) fn add_rate(&self, rate: &mut Counts, caller: u8, mass: f64) {
        match &self.bad {
            None => rate.add_clean(caller, mass / 1e6),
            Some(bad) => rate.add(&bad[usize::from(caller)].counts, mass / 1e6),
        }
    }

    pub(crate) fn pool(&mut self, zone: u8) -> &mut Pool {
        &mut self.members.0[usize::from(zone) % ZONES]
    }
}
