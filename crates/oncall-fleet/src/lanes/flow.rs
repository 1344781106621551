//! Steps 6 to 12 for many services: cache, database, queue, errors and budget.

use super::block::Block;
use super::minute::{
    BudgetLanes, BuildLanes, Clock, DayLanes, Fleet, FlowLanes, Lanes, Place, lanes,
};
use super::scene::ConstantsAt;
use crate::budget::{self, LONG_MIN, SHORT_MIN, Sum};
use crate::erlang::{self, Known};
use crate::{cache, database, queue};

impl<const W: usize, C: ConstantsAt> Place<'_, W, C> {
    /// Steps 6 to 10.
    #[inline(always)]
    pub(super) fn flow(&self, block: &Block, fleet: &Fleet<W>, day: &DayLanes<W>) -> FlowLanes<W> {
        let zero = [0.0; W];
        let (shed, ttl) = (self.see(&block.shed_share), self.see(&block.cache_ttl_s));
        let (feature, warmth) = (self.see(&block.feature), self.see(&block.warmth));
        let warm_up_left = self.see(&block.warm_up_left_min);
        let (mut admitted_rps, mut cache_hit) = (zero, zero);
        let (mut db_utilization, mut query_ms, mut service_s) = (zero, zero, zero);
        for i in 0..W {
            let constants = self.constants.at(self.first + i);
            let service = constants.service;
            let admitted =
                day.offered_rps[i] * (1.0 - constants.fleet.low_priority_share * shed[i]);
            let hit = cache::hit_share(&constants.cache, admitted, ttl[i], warmth[i]);
            let queries =
                service.queries + if feature[i] > 0.5 { service.feature_queries } else { 0.0 };
            let cpu_ms =
                service.cpu_ms + if feature[i] > 0.5 { service.feature_cpu_ms } else { 0.0 };
            let warm_up_qps = if warm_up_left[i] > 0.0 { constants.cache.warm_up_qps } else { 0.0 };
            let load = admitted * queries * (1.0 - hit) + warm_up_qps;
            let load = database::load(&constants.database, load);
            let cpu_ms = cpu_ms * (1.0 + day.builds.extra_cpu[i]);
            service_s[i] = (cpu_ms + (1.0 - hit) * queries * load.query_ms) * 0.001;
            (admitted_rps[i], cache_hit[i]) = (admitted, hit);
            (db_utilization[i], query_ms[i]) = (load.utilization, load.query_ms);
        }
        let per_instance =
            lanes!(i => self.constants.at(self.first + i).fleet.servers_per_instance);
        let servers = lanes!(i => per_instance[i] * fleet.serving[i]);
        let load = lanes!(i => admitted_rps[i] * service_s[i]);
        let (tail, scale, inverse) = erlang::look_up_all(&servers, &load);
        let mut flow = FlowLanes {
            admitted_rps,
            cache_hit,
            db_utilization,
            query_ms,
            service_s,
            offered_load: zero,
            p_wait: zero,
            utilization: zero,
            failed_share: zero,
            p99_s: zero,
        };
        for i in 0..W {
            let timeout_s = self.constants.at(self.first + i).service.timeout_s;
            let known = Known { tail: tail[i], scale: scale[i], inverse: inverse[i] };
            let queue =
                queue::solve(servers[i], known, flow.admitted_rps[i], flow.service_s[i], timeout_s);
            flow.offered_load[i] = queue.offered_load;
            flow.p_wait[i] = queue.p_wait;
            flow.utilization[i] = queue.utilization;
            flow.failed_share[i] = queue.failed_share;
            flow.p99_s[i] = queue.p99_s;
        }
        flow
    }

    /// Steps 11 and 12.
    #[inline(always)]
    pub(super) fn budget(
        &self,
        block: &mut Block,
        clock: &Clock<W>,
        flow: &FlowLanes<W>,
        builds: &BuildLanes<W>,
    ) -> BudgetLanes<W> {
        let zero = [0.0; W];
        let error_rate = lanes!(i => {
            let rate = budget::error_rate(flow.failed_share[i], builds.error_rate[i]);
            if flow.admitted_rps[i] > 0.0 { rate } else { 0.0 }
        });
        let [long, short] = self.window(block, clock, &error_rate);
        let left = self.see(&block.budget_left);
        let mut found = BudgetLanes {
            error_rate,
            burn: zero,
            burn_5min: zero,
            burn_1h: zero,
            page: zero,
            burned: zero,
            left: zero,
        };
        for i in 0..W {
            let slo = self.constants.at(self.first + i).slo;
            let burn = budget::burn(&slo, error_rate[i]);
            let burned = budget::burned(&slo, burn);
            (found.burn[i], found.burned[i], found.left[i]) = (burn, burned, left[i] - burned);
            let burn_1h = budget::burn(&slo, long[i]);
            let burn_5min = budget::burn(&slo, short[i]);
            (found.burn_1h[i], found.burn_5min[i]) = (burn_1h, burn_5min);
            found.page[i] = if budget::page(&slo, burn_1h, burn_5min) { 1.0 } else { 0.0 };
        }
        self.put(&mut block.budget_left, &found.left);
        found
    }

    /// Enters the minute's error rates and gives the means of the last hour and of five minutes.
    #[inline(always)]
    pub(super) fn window(
        &self,
        block: &mut Block,
        clock: &Clock<W>,
        rates: &Lanes<W>,
    ) -> [Lanes<W>; 2] {
        let slot = |minute: u32, back: usize| (minute as usize + LONG_MIN - back) % LONG_MIN;
        let mut leaving = [[0.0; W]; 2];
        if let Some(minute) = clock.common {
            leaving[0] = self.get(&block.rates[slot(minute, 0)]);
            leaving[1] = self.get(&block.rates[slot(minute, SHORT_MIN)]);
        } else {
            for i in 0..W {
                let (lane, minute) = (self.first + i, clock.minutes[i]);
                leaving[0][i] = block.rates[slot(minute, 0)][lane];
                leaving[1][i] = block.rates[slot(minute, SHORT_MIN)][lane];
            }
        }
        let mut means = [[0.0; W]; 2];
        let sums = [(&mut block.long, LONG_MIN), (&mut block.short, SHORT_MIN)];
        for (k, (columns, length)) in sums.into_iter().enumerate() {
            let (mut high, mut low) = (self.get(&columns[0]), self.get(&columns[1]));
            for i in 0..W {
                let entering = Sum::of(rates[i]);
                let sum = Sum { high: high[i], low: low[i] };
                let sum = sum.plus(entering).minus(Sum::of(leaving[k][i]));
                // The first minute fills the whole window.
                let is_first = clock.minute[i] == 0.0;
                let count = length as f64;
                high[i] = if is_first { entering.high * count } else { sum.high };
                low[i] = if is_first { entering.low * count } else { sum.low };
                means[k][i] = Sum { high: high[i], low: low[i] }.mean(length);
            }
            self.put(&mut columns[0], &high);
            self.put(&mut columns[1], &low);
        }
        match clock.common {
            Some(0) => block.rates.iter_mut().for_each(|column| self.put(column, rates)),
            Some(minute) => self.put(&mut block.rates[slot(minute, 0)], rates),
            None => {
                for i in (0..W).filter(|&i| self.mask.lanes[i]) {
                    let (lane, minute) = (self.first + i, clock.minutes[i]);
                    if minute == 0 {
                        block.rates.iter_mut().for_each(|column| column[lane] = rates[i]);
                    } else {
                        block.rates[slot(minute, 0)][lane] = rates[i];
                    }
                }
            }
        }
        means
    }
}
