//! A signal of all services of a block; the values are those of [`crate::signals`], bit for bit.

use super::FleetLanes;
use super::block::{Block, Column, LANES};
use super::minute::part;
use crate::params::{Record, Shift};
use crate::signals::{NO_DEPLOY_MIN, Sig};
use crate::state::RECENT_MIN;
use oncall_core::math::{self, from_whole};

/// Columns of [`crate::state::Seen`], in its order.
const SEEN: [Sig; super::block::SEEN] = [
    Sig::offered_rps,
    Sig::admitted_rps,
    Sig::serving,
    Sig::cache_hit,
    Sig::cache_warmth,
    Sig::db_utilization,
    Sig::query_ms,
    Sig::service_ms,
    Sig::p99_ms,
    Sig::offered_load,
    Sig::p_wait,
    Sig::utilization,
    Sig::failed_share,
    Sig::error_rate,
    Sig::burn,
    Sig::burn_5min,
    Sig::burn_1h,
    Sig::page,
    Sig::shed_traffic,
    Sig::cache_age_s,
    Sig::bad_build_share,
    Sig::bad_build_truth,
    Sig::surge_factor,
    Sig::fleet_usd_h,
];

/// Where a signal stands among the columns of the dashboard; `u8::MAX` if it does not.
const PLACES: [u8; crate::signals::COUNT] = {
    let mut places = [u8::MAX; crate::signals::COUNT];
    let mut place = 0;
    while place < SEEN.len() {
        places[SEEN[place] as usize] = place as u8;
        place += 1;
    }
    places
};

const OFFERED: usize = PLACES[Sig::offered_rps as usize] as usize;
const UTILIZATION: usize = PLACES[Sig::utilization as usize] as usize;
const ERROR_RATE: usize = PLACES[Sig::error_rate as usize] as usize;

/// A column of the block, if the signal is one.
#[inline(always)]
fn kept(block: &Block, signal: usize) -> Option<&Column> {
    const BUDGET: usize = Sig::budget_left as usize;
    const COST: usize = Sig::cost_usd as usize;
    const MIN_INSTANCES: usize = Sig::dial_min_instances as usize;
    const AUTOSCALE: usize = Sig::dial_autoscale as usize;
    const TARGET: usize = Sig::dial_target_utilization as usize;
    const TTL: usize = Sig::dial_cache_ttl_s as usize;
    const SHED: usize = Sig::dial_shed_share as usize;
    const FEATURE: usize = Sig::dial_feature as usize;
    const WARM_UP: usize = Sig::warm_up_left_min as usize;
    const ROLLBACK: usize = Sig::rollback_left_min as usize;
    let place = PLACES[signal] as usize;
    if place < SEEN.len() {
        return Some(&block.seen[place]);
    }
    Some(match signal {
        BUDGET => &block.budget_left,
        COST => &block.cost_usd,
        MIN_INSTANCES => &block.min_instances,
        AUTOSCALE => &block.autoscale,
        TARGET => &block.target_utilization,
        TTL => &block.cache_ttl_s,
        SHED => &block.shed_share,
        FEATURE => &block.feature,
        WARM_UP => &block.warm_up_left_min,
        ROLLBACK => &block.rollback_left_min,
        _ => return None,
    })
}

/// A signal of all lanes: a column of the block, or `out`, filled.
#[inline(always)]
pub(super) fn column<'a>(
    world: &FleetLanes,
    block: &'a Block,
    signal: usize,
    out: &'a mut [f64],
) -> &'a [f64] {
    if let Some(column) = kept(block, signal) {
        return column;
    }
    let out: &'a mut Column = (&mut out[..LANES]).try_into().expect("room for all lanes");
    derive(world, block, signal, 0, out);
    out
}

/// A signal of one lane.
#[inline]
pub(super) fn value(world: &FleetLanes, block: &Block, lane: usize, signal: usize) -> f64 {
    if let Some(column) = kept(block, signal) {
        return column[lane];
    }
    let mut out = [0.0];
    derive(world, block, signal, lane, &mut out);
    out[0]
}

/// Signals that follow from several columns, of `W` lanes from `first` on.
#[inline(always)]
fn derive<const W: usize>(
    world: &FleetLanes,
    block: &Block,
    signal: usize,
    first: usize,
    out: &mut [f64; W],
) {
    const BOOTING: usize = Sig::booting as usize;
    const RECOMMENDATIONS: usize = Sig::recommendations as usize;
    const OFFERED_1: usize = Sig::offered_rps_change_1min as usize;
    const OFFERED_5: usize = Sig::offered_rps_change_5min as usize;
    const UTILIZATION_1: usize = Sig::utilization_change_1min as usize;
    const UTILIZATION_5: usize = Sig::utilization_change_5min as usize;
    const ERRORS_1: usize = Sig::error_rate_change_1min as usize;
    const ERRORS_5: usize = Sig::error_rate_change_5min as usize;
    const DEPLOY: usize = Sig::since_deploy_min as usize;
    const SHIFT: usize = Sig::shift_min as usize;
    const SHIFT_LEFT: usize = Sig::shift_left_min as usize;
    const TIME: usize = Sig::time_of_day_h as usize;
    const BOOTS: usize = Sig::boot_in_1_min as usize;
    match signal {
        BOOTING => {
            let mut total = [0_u8; W];
            for counts in &block.booting_seen {
                let counts: &[u8; W] = part(counts, first);
                for i in 0..W {
                    total[i] += counts[i];
                }
            }
            for i in 0..W {
                out[i] = from_whole(u64::from(total[i]));
            }
        }
        RECOMMENDATIONS => {
            let all: &[f64; W] = part(&block.admitted_requests, first);
            let got: &[f64; W] = part(&block.recommended_requests, first);
            for i in 0..W {
                out[i] = if all[i] > 0.0 { got[i] / all[i] } else { 1.0 };
            }
        }
        OFFERED_1 => change(block, OFFERED, (0, 1), first, out),
        OFFERED_5 => change(block, OFFERED, (0, 5), first, out),
        UTILIZATION_1 => change(block, UTILIZATION, (1, 1), first, out),
        UTILIZATION_5 => change(block, UTILIZATION, (1, 5), first, out),
        ERRORS_1 => change(block, ERROR_RATE, (2, 1), first, out),
        ERRORS_5 => change(block, ERROR_RATE, (2, 5), first, out),
        DEPLOY => since_deploy(block, first, out),
        SHIFT | SHIFT_LEFT | TIME => {
            for i in 0..W {
                let minute = from_whole(u64::from(block.minute[first + i]));
                let shift = world.shift(block, first + i);
                out[i] = match signal {
                    SHIFT => minute,
                    SHIFT_LEFT => math::max(shift.length_min - minute, 0.0),
                    _ => crate::signals::clock_h(shift.clock_start_h, minute),
                };
            }
        }
        boot => {
            let counts: &[u8; W] = part(&block.booting_seen[boot - BOOTS], first);
            for i in 0..W {
                out[i] = from_whole(u64::from(counts[i]));
            }
        }
    }
}

/// A number of the dashboard less what it was some minutes before.
#[inline(always)]
fn change<const W: usize>(
    block: &Block,
    place: usize,
    (recent, minutes): (usize, usize),
    first: usize,
    out: &mut [f64; W],
) {
    let now: &[f64; W] = part(&block.seen[place], first);
    let played: &[u32; W] = part(&block.minute, first);
    // As `Lane::before`: the minute shown is the one played last, 0 for the opening.
    let slot =
        |played: u32| (played.saturating_sub(1) as usize + RECENT_MIN - minutes) % RECENT_MIN;
    let mut differ = 0;
    for i in 0..W {
        differ |= played[i] ^ played[0];
    }
    if differ == 0 {
        let before: &[f64; W] = part(&block.recent[slot(played[0])][recent], first);
        for i in 0..W {
            out[i] = now[i] - before[i];
        }
        return;
    }
    for i in 0..W {
        out[i] = now[i] - block.recent[slot(played[i])][recent][first + i];
    }
}

/// Minutes since the last deploy began.
#[inline(always)]
fn since_deploy<const W: usize>(block: &Block, first: usize, out: &mut [f64; W]) {
    *out = [f64::MAX; W];
    for deploy in &block.deploys {
        let begun: &[f64; W] = part(&deploy[0], first);
        for i in 0..W {
            let minute = from_whole(u64::from(block.minute[first + i].saturating_sub(1)));
            let since = if begun[i] <= minute { minute - begun[i] } else { f64::MAX };
            out[i] = math::min(since, out[i]);
        }
    }
    for i in 0..W {
        out[i] = if out[i] == f64::MAX { NO_DEPLOY_MIN } else { out[i] };
    }
}

impl FleetLanes {
    /// What a lane's scenario says of its shift.
    #[inline(always)]
    pub(super) fn shift(&self, block: &Block, lane: usize) -> Shift {
        match (&self.scene.constants, &block.constants) {
            (Some(constants), _) => constants.shift,
            (None, Some(columns)) => Shift::gather(&columns[..], lane),
            (None, None) => self.params(block, lane).numbers.constants.shift,
        }
    }
}
