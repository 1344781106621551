//! Steps 4 and 5 for many services: events and demand; see [`crate::events`] and [`crate::demand`].

use super::block::Block;
use super::minute::{BuildLanes, Clock, DayLanes, Lanes, MINUTE_S, Place, lanes, part};
use super::scene::{ConstantsAt, Scene};
use crate::demand::{self, POISSON_BELOW};
use crate::params::{Deploy, Record, Surge};
use oncall_core::Generator;
use oncall_core::draw::box_muller;
use oncall_core::math;
use oncall_core::streams::Purpose;

impl<const W: usize, C: ConstantsAt> Place<'_, W, C> {
    /// Steps 4 and 5.
    #[inline(always)]
    pub(super) fn day(&self, block: &mut Block, clock: &Clock<W>) -> DayLanes<W> {
        for flush in 0..block.flushes.len() {
            let minute = self.get(&block.flushes[flush][0]);
            let warmth = self.get(&block.warmth);
            let flushed = lanes!(i => if minute[i] == clock.minute[i] { 0.0 } else { warmth[i] });
            self.put(&mut block.warmth, &flushed);
        }
        let mut extra = [0.0; W];
        for surge in &block.surges {
            let columns = self.event(surge);
            extra = lanes!(i => {
                extra[i] + demand::surge_extra(&Surge::gather(&columns, i), clock.minute[i])
            });
        }
        let surge_factor = lanes!(i => 1.0 + extra[i]);
        let offered_rps = if self.scene.pinned_rps.is_some() {
            lanes!(i => self.scene.pinned(clock.minutes[i]))
        } else {
            self.offered(block, clock, &surge_factor)
        };
        DayLanes { surge_factor, offered_rps, builds: self.builds(block, clock) }
    }

    /// Step 5 where demand is drawn.
    #[inline(always)]
    pub(super) fn offered(
        &self,
        block: &Block,
        clock: &Clock<W>,
        surge_factor: &Lanes<W>,
    ) -> Lanes<W> {
        let mut usual = lanes!(i => {
            let constants = self.constants.at(self.first + i);
            let (start_h, demand) = (constants.shift.clock_start_h, constants.demand);
            demand.base_rps * demand::daily_factor(&demand, start_h, clock.minute[i])
        });
        if self.scene.has_series {
            for i in 0..W {
                let variant = block.variant[self.first + i] as usize;
                usual[i] = self.scene.series(variant, clock.minutes[i]).unwrap_or(usual[i]);
            }
        }
        let mean = lanes!(i => usual[i] * surge_factor[i]);
        let noise = lanes!(i => self.constants.at(self.first + i).demand.noise);
        let mut any_noise = false;
        for i in 0..W {
            any_noise |= noise[i] >= 0.5;
        }
        if !any_noise {
            return mean;
        }
        let (mut first, mut second) = ([0.0; W], [0.0; W]);
        if self.scene.generator == Generator::Pcg {
            let keys: [u64; W] = *part(&block.key, self.first);
            for i in 0..W {
                let minute = u64::from(clock.minutes[i]);
                (first[i], second[i]) = Scene::pcg_key(keys[i]).pcg_pair(Purpose::Demand, minute);
            }
        } else {
            for i in 0..W {
                let key = block.key(self.first + i, self.scene.generator);
                let mut stream = key.stream(Purpose::Demand, u64::from(clock.minutes[i]));
                (first[i], second[i]) = (stream.uniform(), stream.uniform());
            }
        }
        let (mut a, mut b) = ([0.0; W], [0.0; W]);
        for i in 0..W {
            (a[i], b[i]) = box_muller(first[i], second[i]);
        }
        let mut offered = lanes!(i => {
            let std = self.constants.at(self.first + i).demand.noise_std;
            let count = demand::normal_count(MINUTE_S * mean[i], std, (a[i], b[i]));
            if noise[i] < 0.5 { mean[i] } else { count * (1.0 / MINUTE_S) }
        });
        let mut any_small = false;
        for i in 0..W {
            any_small |= MINUTE_S * mean[i] < POISSON_BELOW;
        }
        if any_small {
            for i in 0..W {
                if MINUTE_S * mean[i] < POISSON_BELOW && noise[i] >= 0.5 {
                    let key = block.key(self.first + i, self.scene.generator);
                    let mut stream = key.stream(Purpose::Demand, u64::from(clock.minutes[i]));
                    let std = self.constants.at(self.first + i).demand.noise_std;
                    let count = demand::noisy_count(MINUTE_S * mean[i], std, &mut stream);
                    offered[i] = count * (1.0 / MINUTE_S);
                }
            }
        }
        offered
    }

    /// Shares of the builds; see [`crate::events::builds`].
    #[inline(always)]
    pub(super) fn builds(&self, block: &Block, clock: &Clock<W>) -> BuildLanes<W> {
        let zero = [0.0; W];
        let mut found =
            BuildLanes { new_share: zero, bad_share: zero, error_rate: zero, extra_cpu: zero };
        let retired: [u32; W] = *part(&block.retired, self.first);
        let mut rest = [1.0; W];
        for (bit, deploy) in block.deploys.iter().enumerate().rev() {
            let columns = self.event(deploy);
            for i in 0..W {
                let deploy = Deploy::gather(&columns, i);
                let age_min = clock.minute[i] - deploy.minute;
                let share = rest[i] * math::min((age_min + 1.0) / deploy.rollout_min, 1.0);
                let share = if age_min < 0.0 { 0.0 } else { share };
                let share = if retired[i] & (1 << bit) == 0 { share } else { 0.0 };
                rest[i] -= share;
                found.new_share[i] += share;
                let bad = if deploy.bad > 0.5 { share } else { 0.0 };
                found.bad_share[i] += bad;
                found.error_rate[i] += deploy.error_rate * bad;
                found.extra_cpu[i] += deploy.extra_cpu * bad;
            }
        }
        found
    }
}
