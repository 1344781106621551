//! The minute of `W` services of a block at once: the order of [`crate::step`], phase by phase.
//!
//! A phase is a loop over lanes around the very functions that the plain minute calls, none of which
//! branches; the compiler turns it into vector instructions. What seldom happens to a service (an
//! order, a rollback, a Poisson count) is done lane by lane, behind a test whether it happens to any.
//! Services that do not play compute as well and commit nothing.
//!
//! `W` is all lanes of the block, or 1 for a block of which one service plays. Tests hold both to the
//! plain minute, bit for bit.

use super::block::{Block, Column, LANES};
use super::scene::{ConstantsAt, Scene};
use crate::cache;
use crate::dials::index;
use crate::params::{BOOT_DELAY_MAX_MIN, Deploy, Record};
use crate::reward::{self, Bill, TERMS};
use crate::state::RECENT_MIN;
use oncall_core::isa;
use oncall_core::math::{self, from_whole};

pub(super) const MINUTE_S: f64 = 60.0;

/// A number of each of `W` services.
pub(super) type Lanes<const W: usize> = [f64; W];

/// An array of what an expression gives for each lane.
macro_rules! lanes {
    ($lane:ident => $value:expr) => {{
        let mut out = [0.0; W];
        for $lane in 0..W {
            out[$lane] = $value;
        }
        out
    }};
}

/// Which of the services play.
#[derive(Clone, Copy)]
pub(super) struct Mask<const W: usize> {
    pub(super) lanes: [bool; W],
    pub(super) all: bool,
}

/// `W` lanes of a column.
#[inline(always)]
pub(super) fn part<const W: usize, T>(column: &[T], first: usize) -> &[T; W] {
    (&column[first..first + W]).try_into().expect("lanes of the block")
}

/// As [`part`].
#[inline(always)]
pub(super) fn part_mut<const W: usize, T>(column: &mut [T; LANES], first: usize) -> &mut [T; W] {
    (&mut column[first..first + W]).try_into().expect("lanes of the block")
}

/// Whether a number is not zero.
#[inline(always)]
pub(super) fn any<const W: usize>(numbers: &Lanes<W>) -> bool {
    let mut any = false;
    for number in numbers {
        any |= *number != 0.0;
    }
    any
}

/// Writes the lanes that play.
#[inline(always)]
pub(super) fn commit<const W: usize, T: Copy>(to: &mut [T; W], mask: &Mask<W>, values: &[T; W]) {
    if mask.all {
        *to = *values;
    } else {
        for i in 0..W {
            to[i] = if mask.lanes[i] { values[i] } else { to[i] };
        }
    }
}

pub(super) use lanes;

/// What [`play`] works on.
pub(crate) struct Minute<'a, C> {
    pub(crate) scene: &'a Scene,
    pub(crate) constants: C,
    pub(crate) block: &'a mut Block,
    /// The lane that plays alone, if one does.
    pub(crate) alone: Option<usize>,
    /// Flags of all lanes.
    pub(crate) active: &'a [bool],
    /// Settled dials, by dial and lane.
    pub(crate) dials: &'a [f64],
    /// Dollars, by term and lane.
    pub(crate) terms: &'a mut [f64],
}

/// A minute of all lanes, compiled for each set of instructions.
pub(crate) struct Together<'a, C>(pub(crate) Minute<'a, C>);

impl<C: ConstantsAt> isa::Kernel for Together<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        play::<LANES, C>(self.0, 0);
    }
}

/// A minute of one lane; no vector instructions, so one set will do.
pub(crate) fn play_alone<C: ConstantsAt>(minute: Minute<'_, C>, lane: usize) {
    play::<1, C>(minute, lane);
}

/// The clock of each service.
pub(super) struct Clock<const W: usize> {
    pub(super) minutes: [u32; W],
    pub(super) minute: Lanes<W>,
    /// The minute of all, where it is the same.
    pub(super) common: Option<u32>,
}

/// The fleet after the floor was held (steps 1 and 3).
pub(super) struct Fleet<const W: usize> {
    pub(super) serving: Lanes<W>,
    pub(super) booting: [[u8; W]; BOOT_DELAY_MAX_MIN],
    pub(super) total: Lanes<W>,
}

/// What [`crate::events::Builds`] holds, by lane.
pub(super) struct BuildLanes<const W: usize> {
    pub(super) new_share: Lanes<W>,
    pub(super) bad_share: Lanes<W>,
    pub(super) error_rate: Lanes<W>,
    pub(super) extra_cpu: Lanes<W>,
}

/// Steps 6 to 10, by lane.
pub(super) struct FlowLanes<const W: usize> {
    pub(super) admitted_rps: Lanes<W>,
    pub(super) cache_hit: Lanes<W>,
    pub(super) db_utilization: Lanes<W>,
    pub(super) query_ms: Lanes<W>,
    pub(super) service_s: Lanes<W>,
    pub(super) offered_load: Lanes<W>,
    pub(super) p_wait: Lanes<W>,
    pub(super) utilization: Lanes<W>,
    pub(super) failed_share: Lanes<W>,
    pub(super) p99_s: Lanes<W>,
}

/// Steps 11 and 12, by lane.
pub(super) struct BudgetLanes<const W: usize> {
    pub(super) error_rate: Lanes<W>,
    pub(super) burn: Lanes<W>,
    pub(super) burn_5min: Lanes<W>,
    pub(super) burn_1h: Lanes<W>,
    pub(super) page: Lanes<W>,
    pub(super) burned: Lanes<W>,
    pub(super) left: Lanes<W>,
}

/// Steps 4 and 5, by lane.
pub(super) struct DayLanes<const W: usize> {
    pub(super) surge_factor: Lanes<W>,
    pub(super) offered_rps: Lanes<W>,
    pub(super) builds: BuildLanes<W>,
}

#[inline(always)]
fn play<const W: usize, C: ConstantsAt>(minute: Minute<'_, C>, first: usize) {
    let Minute { scene, constants, block, active, dials, terms, .. } = minute;
    let mut mask = Mask::<W> { lanes: *part(active, first), all: true };
    for i in 0..W {
        mask.all &= active[first + i];
    }
    let at = Place { scene, constants, first, mask };
    let clock = at.clock(block);
    let mut fleet = at.boot(block); // 1
    at.turn(block, dials, &clock); // 2
    at.hold_floor(block, &mut fleet); // 3
    let day = at.day(block, &clock); // 4 and 5
    let flow = at.flow(block, &fleet, &day); // 6 to 10
    let budget = at.budget(block, &clock, &flow, &day.builds); // 11 and 12
    let billed = at.billed(block, &fleet);
    at.show(block, &fleet, &day, &flow, &budget, &billed);
    at.remember(block, &clock, &day.offered_rps, &flow.utilization, &budget.error_rate);
    at.bill(block, &day, &flow, &budget, (&billed, terms)); // 13
    at.after(block, &mut fleet, &flow); // 14
    let mut next = clock.minutes;
    for minute in &mut next {
        *minute += 1;
    }
    commit(part_mut(&mut block.minute, first), &mask, &next);
}

/// Where a minute is played: these lanes, these constants.
pub(super) struct Place<'a, const W: usize, C> {
    pub(super) scene: &'a Scene,
    pub(super) constants: C,
    pub(super) first: usize,
    pub(super) mask: Mask<W>,
}

impl<const W: usize, C: ConstantsAt> Place<'_, W, C> {
    #[inline(always)]
    pub(super) fn get(&self, column: &Column) -> Lanes<W> {
        *part(column, self.first)
    }

    /// As [`Place::get`], where the column does not change before it was read.
    #[inline(always)]
    pub(super) fn see<'b>(&self, column: &'b Column) -> &'b Lanes<W> {
        part(column, self.first)
    }

    #[inline(always)]
    pub(super) fn put(&self, column: &mut Column, values: &Lanes<W>) {
        commit(part_mut(column, self.first), &self.mask, values);
    }

    #[inline(always)]
    fn clock(&self, block: &Block) -> Clock<W> {
        let minutes: [u32; W] = *part(&block.minute, self.first);
        let minute = lanes!(i => from_whole(u64::from(minutes[i])));
        let mut differ = 0;
        for i in 0..W {
            differ |= minutes[i] ^ minutes[0];
        }
        let common = if differ == 0 { Some(minutes[0]) } else { None };
        Clock { minutes, minute, common }
    }

    /// A dial of every lane.
    #[inline(always)]
    fn dial(&self, dials: &[f64], dial: usize) -> Lanes<W> {
        let column = &dials[dial * LANES + self.first..][..W];
        column.try_into().expect("a dial of every lane")
    }

    #[inline(always)]
    fn keep(&self, column: &mut Column, new: &Lanes<W>) {
        let kept: &mut Lanes<W> = part_mut(column, self.first);
        for i in 0..W {
            let plays = self.mask.all | self.mask.lanes[i];
            let turned = plays & !new[i].is_nan();
            kept[i] = if turned { new[i] } else { kept[i] };
        }
    }

    #[inline(always)]
    fn switch(&self, column: &mut Column, new: &Lanes<W>) {
        let kept: &mut Lanes<W> = part_mut(column, self.first);
        for i in 0..W {
            let plays = self.mask.all | self.mask.lanes[i];
            let turned = plays & !new[i].is_nan();
            let on = if new[i] > 0.5 { 1.0 } else { 0.0 };
            kept[i] = if turned { on } else { kept[i] };
        }
    }

    /// The columns of an event.
    #[inline(always)]
    pub(super) fn event<const F: usize>(&self, event: &[Column; F]) -> [Lanes<W>; F] {
        let mut columns = [[0.0; W]; F];
        for field in 0..F {
            columns[field] = self.get(&event[field]);
        }
        columns
    }

    /// Turns the dials and presses the buttons; NaN keeps.
    #[inline(always)]
    fn turn(&self, block: &mut Block, dials: &[f64], clock: &Clock<W>) {
        self.keep(&mut block.min_instances, &self.dial(dials, index::MIN_INSTANCES));
        self.keep(&mut block.target_utilization, &self.dial(dials, index::TARGET_UTILIZATION));
        self.keep(&mut block.cache_ttl_s, &self.dial(dials, index::CACHE_TTL_S));
        self.keep(&mut block.shed_share, &self.dial(dials, index::SHED_SHARE));
        self.switch(&mut block.autoscale, &self.dial(dials, index::AUTOSCALE));
        self.switch(&mut block.feature, &self.dial(dials, index::FEATURE));
        let pressed = self.dial(dials, index::WARM_UP);
        let left = self.get(&block.warm_up_left_min);
        let all = lanes!(i => self.constants.at(self.first + i).cache.warm_up_min);
        let starts = lanes!(i => if left[i] == 0.0 { all[i] } else { left[i] });
        let left = lanes!(i => if pressed[i] > 0.5 { starts[i] } else { left[i] });
        self.put(&mut block.warm_up_left_min, &left);
        let pressed = self.dial(dials, index::ROLLBACK);
        for i in 0..W {
            if pressed[i] > 0.5 && self.mask.lanes[i] {
                let lane = self.first + i;
                let minutes = self.constants.at(lane).service.rollback_min;
                block.rollback_left_min[lane] = minutes;
                let begun = block.deploys.iter().enumerate().fold(0, |set, (bit, columns)| {
                    set | u32::from(Deploy::gather(columns, lane).minute <= clock.minute[i]) << bit
                });
                block.rollback_of[lane] = begun & !block.retired[lane];
            }
        }
    }

    /// Instances billed: serving, booting, and the second fleet while a rollback prepares.
    #[inline(always)]
    fn billed(&self, block: &Block, fleet: &Fleet<W>) -> Lanes<W> {
        let rollback = self.see(&block.rollback_left_min);
        lanes!(i => {
            let second = if rollback[i] > 0.0 { fleet.serving[i] } else { 0.0 };
            fleet.serving[i] + fleet.total[i] + second
        })
    }

    /// Writes the dashboard of the minute; columns in the order of [`crate::state::Seen`].
    #[inline(always)]
    fn show(
        &self,
        block: &mut Block,
        fleet: &Fleet<W>,
        day: &DayLanes<W>,
        flow: &FlowLanes<W>,
        budget: &BudgetLanes<W>,
        billed: &Lanes<W>,
    ) {
        let (shed, ttl) = (self.see(&block.shed_share), self.see(&block.cache_ttl_s));
        let (mut shed_traffic, mut fleet_usd_h) = ([0.0; W], [0.0; W]);
        for i in 0..W {
            let constants = self.constants.at(self.first + i);
            shed_traffic[i] = constants.fleet.low_priority_share * shed[i];
            fleet_usd_h[i] = reward::fleet_usd_h(&constants.prices, billed[i]);
        }
        let mut shown_share = day.builds.bad_share;
        if self.scene.hides_truth {
            for i in 0..W {
                if self.scene.hides(block.variant[self.first + i] as usize) {
                    shown_share[i] = day.builds.new_share[i];
                }
            }
        }
        let columns: [&Lanes<W>; super::block::SEEN] = [
            &day.offered_rps,
            &flow.admitted_rps,
            &fleet.serving,
            &flow.cache_hit,
            &self.get(&block.warmth),
            &flow.db_utilization,
            &flow.query_ms,
            &lanes!(i => flow.service_s[i] * 1000.0),
            &lanes!(i => flow.p99_s[i] * 1000.0),
            &flow.offered_load,
            &flow.p_wait,
            &flow.utilization,
            &flow.failed_share,
            &budget.error_rate,
            &budget.burn,
            &budget.burn_5min,
            &budget.burn_1h,
            &budget.page,
            &shed_traffic,
            &lanes!(i => ttl[i] / 2.0),
            &shown_share,
            &day.builds.bad_share,
            &day.surge_factor,
            &fleet_usd_h,
        ];
        for (column, values) in block.seen.iter_mut().zip(columns) {
            self.put(column, values);
        }
        for (column, values) in block.booting_seen.iter_mut().zip(&fleet.booting) {
            commit(part_mut(column, self.first), &self.mask, values);
        }
    }

    /// Enters what changes over time are taken of.
    #[inline(always)]
    fn remember(
        &self,
        block: &mut Block,
        clock: &Clock<W>,
        offered_rps: &Lanes<W>,
        utilization: &Lanes<W>,
        error_rate: &Lanes<W>,
    ) {
        let values = [offered_rps, utilization, error_rate];
        if let Some(minute) = clock.common {
            let columns = &mut block.recent[minute as usize % RECENT_MIN];
            for (column, values) in columns.iter_mut().zip(values) {
                self.put(column, values);
            }
            return;
        }
        for i in (0..W).filter(|&i| self.mask.lanes[i]) {
            let columns = &mut block.recent[clock.minutes[i] as usize % RECENT_MIN];
            for (column, values) in columns.iter_mut().zip(values) {
                column[self.first + i] = values[i];
            }
        }
    }

    /// Step 13 and the reward.
    #[inline(always)]
    fn bill(
        &self,
        block: &mut Block,
        day: &DayLanes<W>,
        flow: &FlowLanes<W>,
        budget: &BudgetLanes<W>,
        (billed, terms): (&Lanes<W>, &mut [f64]),
    ) {
        let (shed, ttl) = (self.see(&block.shed_share), self.see(&block.cache_ttl_s));
        let feature = self.see(&block.feature);
        let cost = self.see(&block.cost_usd);
        let admitted = self.see(&block.admitted_requests);
        let recommended = self.see(&block.recommended_requests);
        let mut dollars = [[0.0; W]; TERMS];
        let mut sums = [[0.0; W]; 3];
        for i in 0..W {
            let constants = self.constants.at(self.first + i);
            let requests = flow.admitted_rps[i] * MINUTE_S;
            let shed_traffic = constants.fleet.low_priority_share * shed[i];
            let bill = Bill {
                instances: billed[i],
                burned: budget.burned[i],
                budget_left: budget.left[i],
                shed_requests: day.offered_rps[i] * shed_traffic * MINUTE_S,
                admitted_requests: requests,
                feature: feature[i] > 0.5,
                p99_s: flow.p99_s[i],
                cache_answers: requests * flow.cache_hit[i],
                cache_age_s: ttl[i] / 2.0,
            };
            let paid = reward::terms(&constants.prices, &bill);
            for term in 0..TERMS {
                dollars[term][i] = paid[term];
            }
            sums[0][i] = cost[i] + paid[0];
            sums[1][i] = admitted[i] + requests;
            sums[2][i] = recommended[i] + if feature[i] > 0.5 { requests } else { 0.0 };
        }
        self.put(&mut block.cost_usd, &sums[0]);
        self.put(&mut block.admitted_requests, &sums[1]);
        self.put(&mut block.recommended_requests, &sums[2]);
        let columns: &mut [Column] = terms.as_chunks_mut::<LANES>().0;
        for (column, values) in columns.iter_mut().zip(&dollars) {
            self.put(column, values);
        }
    }

    /// Step 14: what happens after the minute shows in the next one.
    #[inline(always)]
    fn after(&self, block: &mut Block, fleet: &mut Fleet<W>, flow: &FlowLanes<W>) {
        let (warmth, recovery) = (self.see(&block.warmth), self.see(&block.recovery));
        let warm_up = self.see(&block.warm_up_left_min);
        let warmed = lanes!(i => {
            let cache = self.constants.at(self.first + i).cache;
            let load = flow.db_utilization[i];
            cache::warmed(&cache, warmth[i], recovery[i], load, warm_up[i] > 0.0)
        });
        self.put(&mut block.warmth, &warmed);
        let left = lanes!(i => math::max(warm_up[i] - 1.0, 0.0));
        self.put(&mut block.warm_up_left_min, &left);
        let rollback = self.get(&block.rollback_left_min);
        if any(&rollback) {
            self.put(&mut block.rollback_left_min, &lanes!(i => math::max(rollback[i] - 1.0, 0.0)));
            for i in 0..W {
                if rollback[i] == 1.0 && self.mask.lanes[i] {
                    let lane = self.first + i;
                    block.retired[lane] |= block.rollback_of[lane];
                    block.rollback_of[lane] = 0;
                }
            }
        }
        self.autoscale(block, fleet, &flow.utilization);
        self.put(&mut block.serving, &fleet.serving);
        for (column, values) in block.booting.iter_mut().zip(&fleet.booting) {
            commit(part_mut(column, self.first), &self.mask, values);
        }
    }
}
