//! Ownership of single-writer data (R122): one region at a time, by a lease with an epoch.
//!
//! An owner that cannot renew stops writing before its lease ends on anybody's clock; only after that another
//! region may claim it, with the next epoch. Whoever stores the data refuses older epochs, so that a write that was
//! under way during the transfer does no harm.

use serde::{Deserialize, Serialize};

use crate::types::{RegionId, Span, Time};

/// Proof of ownership.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct OwnershipToken {
    /// Which turn.
    pub epoch: u64,
    /// Whose turn.
    pub region: RegionId,
    /// Until when the owner may write, on its own clock.
    pub until: Time,
}

/// Why ownership was not given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum OwnershipError {
    /// Another region may still be writing.
    #[error("ownership: region {} may write until {:?}", .0.region.0, .0.until)]
    Held(OwnershipToken),
    /// The token is of an older turn.
    #[error("token.epoch: {given}; the present one is {known}")]
    OldEpoch {
        /// The token's.
        given: u64,
        /// The present one.
        known: u64,
    },
    /// The token's lease is over; the region has to claim again.
    #[error("token.until: over")]
    Over,
}

/// The register of one service's ownership. Its owner is the global layer's consistency group: every call is one
/// entry of its log, and `now` is the entry's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ownership {
    epoch: u64,
    held: Option<OwnershipToken>,
    lease: Span,
    /// How far clocks may differ.
    skew: Span,
}

impl Ownership {
    /// Nobody's. Leases last `lease`; clocks differ by at most `skew`, which must be less.
    pub fn new(lease: Span, skew: Span) -> Self {
        Self { epoch: 0, held: None, lease, skew }
    }

    /// A region claims it: allowed if nobody has it, or if the owner's lease is over by every clock.
    pub fn claim(&mut self, now: Time, region: RegionId) -> Result<OwnershipToken, OwnershipError> {
        if let Some(held) = self.held.filter(|held| now <= held.until.after(self.skew)) {
            return Err(OwnershipError::Held(held));
        }
        self.epoch += 1;
        Ok(self.give(now, region))
    }

    /// The owner goes on.
    pub fn renew(
        &mut self,
        now: Time,
        token: OwnershipToken,
    ) -> Result<OwnershipToken, OwnershipError> {
        self.own(token)?;
        if self.held.is_none_or(|held| now > held.until) {
            return Err(OwnershipError::Over);
        }
        Ok(self.give(now, token.region))
    }

    /// The owner gives it back, having stopped writing.
    pub fn release(&mut self, token: OwnershipToken) -> Result<(), OwnershipError> {
        self.own(token)?;
        self.held = None;
        Ok(())
    }

    /// Who has it.
    pub fn held(&self) -> Option<OwnershipToken> {
        self.held
    }

    fn own(&self, token: OwnershipToken) -> Result<(), OwnershipError> {
        if token.epoch == self.epoch {
            return Ok(());
        }
        Err(OwnershipError::OldEpoch { given: token.epoch, known: self.epoch })
    }

    fn give(&mut self, now: Time, region: RegionId) -> OwnershipToken {
        let token = OwnershipToken { epoch: self.epoch, region, until: now.after(self.lease) };
        self.held = Some(token);
        token
    }
}

/// What a proxy knows of the owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OwnerView {
    token: Option<OwnershipToken>,
}

impl OwnerView {
    /// Learns of a token; an older turn teaches nothing. Returns whether it did.
    pub fn learn(&mut self, token: OwnershipToken) -> bool {
        let newer = self.token.is_none_or(|known| token > known);
        if newer {
            self.token = Some(token);
        }
        newer
    }

    /// The region to write to, as far as known. Its store has the last word, by the epoch.
    pub fn region(&self) -> Option<RegionId> {
        self.token.map(|token| token.region)
    }

    /// Epoch to send along with a write.
    pub fn epoch(&self) -> u64 {
        self.token.map_or(0, |token| token.epoch)
    }
}

/// At the store: the largest epoch seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct WriteFence {
    epoch: u64,
}

impl WriteFence {
    /// Whether a write with this epoch is taken.
    pub fn accepts(&mut self, epoch: u64) -> bool {
        let fresh = epoch >= self.epoch;
        self.epoch = self.epoch.max(epoch);
        fresh
    }
}

impl OwnershipToken {
    /// Whether the owner may write now, on its own clock.
    pub fn may_write(&self, now: Time) -> bool {
        now < self.until
    }
}
