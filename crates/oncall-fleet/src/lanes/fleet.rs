//! Steps 1, 3 and 14 for many services: boots, the floor, the autoscaler; see [`crate::capacity`].

use super::block::Block;
use super::minute::{Fleet, Lanes, Place, any, lanes, part};
use super::scene::ConstantsAt;
use crate::capacity::CEIL_TOLERANCE;
use crate::params::BOOT_DELAY_MAX_MIN;
use oncall_core::math::{self, from_whole, to_whole};

impl<const W: usize, C: ConstantsAt> Place<'_, W, C> {
    /// Step 1: a minute has passed.
    #[inline(always)]
    pub(super) fn boot(&self, block: &Block) -> Fleet<W> {
        let mut booting = [[0; W]; BOOT_DELAY_MAX_MIN];
        let mut total = [0_u8; W];
        for k in 1..BOOT_DELAY_MAX_MIN {
            booting[k - 1] = *part(&block.booting[k], self.first);
            for i in 0..W {
                total[i] += booting[k - 1][i];
            }
        }
        let arrived: [u8; W] = *part(&block.booting[0], self.first);
        let before = self.see(&block.serving);
        Fleet {
            serving: lanes!(i => before[i] + from_whole(u64::from(arrived[i]))),
            booting,
            total: lanes!(i => from_whole(u64::from(total[i]))),
        }
    }

    /// Orders instances in one lane.
    #[inline(always)]
    pub(super) fn order(&self, fleet: &mut Fleet<W>, i: usize, count: f64) {
        let delay = self.constants.at(self.first + i).fleet.boot_delay_min;
        let delay = (delay as usize).clamp(1, BOOT_DELAY_MAX_MIN);
        fleet.booting[delay - 1][i] += to_whole(count) as u8;
        fleet.total[i] += count;
    }

    /// Step 3.
    #[inline(always)]
    pub(super) fn hold_floor(&self, block: &Block, fleet: &mut Fleet<W>) {
        let (floor, autoscale) = (self.see(&block.min_instances), self.see(&block.autoscale));
        let max = lanes!(i => self.constants.at(self.first + i).fleet.instances_max);
        let missing =
            lanes!(i => math::min(floor[i], max[i]) - (fleet.serving[i] + fleet.total[i]));
        // Below the floor always; above it without autoscaling.
        let wrong = lanes!(i => {
            let surplus = if autoscale[i] > 0.5 { 0.0 } else { missing[i] };
            if missing[i] > 0.0 { missing[i] } else { surplus }
        });
        if !any(&wrong) {
            return;
        }
        for i in 0..W {
            if wrong[i] > 0.0 {
                self.order(fleet, i, wrong[i]);
            } else if wrong[i] < 0.0 {
                let mut surplus = to_whole(-wrong[i]) as u8;
                fleet.total[i] = 0.0;
                for k in (0..BOOT_DELAY_MAX_MIN).rev() {
                    let removed = surplus.min(fleet.booting[k][i]);
                    fleet.booting[k][i] -= removed;
                    surplus -= removed;
                    fleet.total[i] += from_whole(u64::from(fleet.booting[k][i]));
                }
                fleet.serving[i] -= from_whole(u64::from(surplus));
            }
        }
    }

    /// Target tracking; see [`crate::capacity::Capacity::autoscale`].
    #[inline(always)]
    pub(super) fn autoscale(
        &self,
        block: &mut Block,
        fleet: &mut Fleet<W>,
        utilization: &Lanes<W>,
    ) {
        let (floor, autoscale) = (self.see(&block.min_instances), self.see(&block.autoscale));
        let (target, quiet) = (self.see(&block.target_utilization), self.see(&block.quiet_min));
        let (mut ordered, mut next_quiet) = ([0.0; W], [0.0; W]);
        for i in 0..W {
            let constants = self.constants.at(self.first + i).fleet;
            let serving = fleet.serving[i];
            let wanted = math::ceil(serving * utilization[i] / target[i] - CEIL_TOLERANCE);
            let max = constants.instances_max;
            let desired = math::min(math::max(wanted, math::min(floor[i], max)), max);
            let is_on = autoscale[i] > 0.5;
            let is_idle = fleet.total[i] == 0.0;
            let more = if desired > serving { desired - serving } else { 0.0 };
            let more = if is_idle { more } else { 0.0 };
            ordered[i] = if is_on { more } else { 0.0 };
            let waits = is_on & is_idle;
            let minutes = if desired < serving { quiet[i] + 1.0 } else { 0.0 };
            let minutes = if waits { minutes } else { 0.0 };
            let goes = minutes >= constants.scale_in_quiet_min;
            let share = math::max(math::floor(constants.scale_in_share_max * serving), 1.0);
            let removed = math::min(serving - desired, share);
            fleet.serving[i] = serving - if goes { removed } else { 0.0 };
            next_quiet[i] = if goes { 0.0 } else { minutes };
        }
        self.put(&mut block.quiet_min, &next_quiet);
        if any(&ordered) {
            for i in 0..W {
                if ordered[i] > 0.0 {
                    self.order(fleet, i, ordered[i]);
                }
            }
        }
    }
}
