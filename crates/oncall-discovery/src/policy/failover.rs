//! When calls go to another region, and how many.

use serde::{Deserialize, Serialize};

use super::ownership::OwnerView;
use super::service::{Access, Operation, REGIONS_MAX, ServicePolicy, Targets};
use crate::dials::Dials;
use crate::mutants::{Mutant, Mutants};
use crate::types::RegionId;

/// The dials of failover.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailoverRule {
    /// Below this share of the target at home, in percent, reads go elsewhere.
    pub trigger_pct: f64,
    /// Share of the declared spare that may be used, in percent.
    pub cap_pct: f64,
}

impl From<&Dials> for FailoverRule {
    fn from(dials: &Dials) -> Self {
        Self { trigger_pct: dials.failover_trigger_pct, cap_pct: dials.failover_cap_pct }
    }
}

/// Failover ends only this many points above the trigger, so that it does not flap.
const HYSTERESIS_PCT: f64 = 10.0;

/// Whether a service fails over, in one region of callers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Failover {
    active: bool,
}

/// Which part of a region's calls goes where.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Share by region, home included. They add up to 1.
    pub by_region: [f64; REGIONS_MAX],
}

impl Failover {
    /// Whether it is on.
    pub fn active(self) -> bool {
        self.active
    }

    /// What the callers of a region see READY there. Returns whether the state changed.
    pub fn update(&mut self, ready: u32, target: u32, rule: FailoverRule) -> bool {
        let share_pct = 100.0 * f64::from(ready) / f64::from(target.max(1));
        let off_pct = (rule.trigger_pct + HYSTERESIS_PCT).min(100.0);
        let limit_pct = if self.active { off_pct } else { rule.trigger_pct };
        let before = self.active;
        self.active = share_pct < limit_pct;
        self.active != before
    }

    /// Where the reads of the callers of `home` go, given what they see READY in each region.
    ///
    /// What is missing at home, in instances, is taken up in the declared order. A target gives each of the other
    /// regions the same part of its capped spare: they cannot see each other's failover, and together they stay
    /// within the cap. What nobody may take up stays at home, where overload or an explicit no-backend answers.
    pub fn shares(
        self,
        policy: &ServicePolicy,
        home: RegionId,
        regions: usize,
        ready: &[u32; REGIONS_MAX],
        rule: FailoverRule,
        mutants: Mutants,
    ) -> Shares {
        let mut shares = Shares::default();
        let target = policy.target[home.index()];
        let mut missing = f64::from(target.saturating_sub(ready[home.index()]));
        shares.by_region[home.index()] = 1.0;
        if !self.active || target == 0 || regions < 2 {
            return shares;
        }
        let nobody = OwnerView::default();
        for &region in &policy.order {
            let may = region != home && policy.permits(home, region, Operation::Read, &nobody);
            if !may || ready[region.index()] == 0 {
                continue;
            }
            let spare = f64::from(policy.spare[region.index()]) * rule.cap_pct / 100.0;
            let limit = if mutants.has(Mutant::FailoverUncapped) {
                missing
            } else {
                spare / (regions - 1) as f64
            };
            let taken = missing.min(limit);
            missing -= taken;
            shares.by_region[region.index()] = taken / f64::from(target);
            shares.by_region[home.index()] -= taken / f64::from(target);
        }
        shares
    }

    /// The targets of one call. `uniform` is a fresh uniform 32-bit number that picks the region by its share. The
    /// call stays in that region: trying the next one would go round the cap.
    #[expect(
        clippy::too_many_arguments,
        reason = "what a decision rests on, and each is another's"
    )]
    pub fn targets(
        self,
        policy: &ServicePolicy,
        (home, operation): (RegionId, Operation),
        regions: usize,
        ready: &[u32; REGIONS_MAX],
        owner: &OwnerView,
        rule: FailoverRule,
        uniform: u32,
        mutants: Mutants,
    ) -> Targets {
        if operation == Operation::Write && policy.access == Access::SingleWriter {
            return policy.write_targets(home, owner, ready, mutants);
        }
        let mut targets = Targets::default();
        if !policy.permits(home, home, operation, owner) {
            return targets;
        }
        let shares = self.shares(policy, home, regions, ready, rule, mutants);
        targets.push(shares.pick(home, uniform));
        targets
    }
}

impl Shares {
    /// A region by its share; what rounding leaves over goes home.
    fn pick(&self, home: RegionId, uniform: u32) -> RegionId {
        let mut left = f64::from(uniform) / (f64::from(u32::MAX) + 1.0);
        for (region, &share) in self.by_region.iter().enumerate() {
            if left < share {
                return RegionId(region as u8);
            }
            left -= share;
        }
        home
    }
}
