//! The minute, in the order of the specification. Order and switches live here; the files of the
//! phases hold plain functions.

use crate::budget::{self, ErrorWindow};
use crate::cache;
use crate::capacity::Capacity;
use crate::database;
use crate::demand;
use crate::dials::{Dials, Presses};
use crate::events::{self, Builds};
use crate::params::{BOOT_DELAY_MAX_MIN, Params};
use crate::queue::{self, Queue};
use crate::reward::{self, Bill, TERMS};
use crate::state::{Lane, RECENT_MIN, Recent, Seen};
use oncall_core::EpisodeKey;
use oncall_core::streams::Purpose;

/// Seconds in a minute.
const MINUTE_S: f64 = 60.0;

/// What flows through the service in a minute (steps 6 to 10).
struct Flow {
    admitted_rps: f64,
    cache_hit: f64,
    database: database::Load,
    service_s: f64,
    queue: Queue,
}

/// Opens a shift: the numbers are drawn, and the dashboard shows minute zero without noise and
/// without a bill.
pub fn open(params: &Params, variant: u32, key: EpisodeKey, pinned: Option<&[f64]>) -> Lane {
    let numbers = params.draw(key);
    let constants = &numbers.constants;
    let opening = &constants.opening;
    let serving = (opening.serving as u32).min(constants.fleet.instances_max as u32);
    let mut lane = Lane {
        key,
        variant,
        numbers,
        recovery: cache::recovery_share(&constants.cache),
        minute: 0,
        capacity: Capacity::serving(serving),
        booting_seen: [0; BOOT_DELAY_MAX_MIN],
        warmth: opening.cache_warmth,
        warm_up_left_min: 0,
        rollback_left_min: 0,
        rollback_of: 0,
        retired: 0,
        errors: ErrorWindow::filled(0.0),
        budget_left: opening.budget_left,
        cost_usd: 0.0,
        admitted_requests: 0.0,
        recommended_requests: 0.0,
        dials: Dials::opening(opening),
        seen: Seen::default(),
        recent: [Recent::default(); RECENT_MIN],
    };
    let offered_rps = match pinned {
        Some(rates) => held(rates, 0),
        None => mean_rps(params, &lane),
    };
    let warmth = if events::flushed(&numbers.flushes, 0) { 0.0 } else { lane.warmth };
    let builds = events::builds(&numbers.deploys, 0, 0);
    let flow = flow(&lane, offered_rps, warmth, &builds);
    let error_rate = error_rate(&flow, &builds);
    lane.errors = ErrorWindow::filled(error_rate);
    show(params, &mut lane, offered_rps, warmth, &builds, &flow, error_rate);
    let now = recent(&lane.seen);
    lane.recent = [now; RECENT_MIN];
    lane
}

/// Plays a minute. `action` holds settled dials, NaN keeps; returns the reward terms in dollars.
pub fn play(
    params: &Params,
    lane: &mut Lane,
    action: &[f64],
    pinned: Option<&[f64]>,
) -> [f64; TERMS] {
    let minute = lane.minute;
    lane.capacity.boot(); // 1
    let presses = lane.dials.turn(action);
    press(lane, presses); // 2
    let settings = lane.dials.settings();
    lane.capacity.hold_floor(&lane.numbers.constants.fleet, settings); // 3
    if events::flushed(&lane.numbers.flushes, minute) {
        lane.warmth = 0.0; // 4
    }
    let builds = events::builds(&lane.numbers.deploys, lane.retired, minute);
    let offered_rps = match pinned {
        Some(rates) => held(rates, minute),
        None => drawn_rps(params, lane), // 5
    };
    let flow = flow(lane, offered_rps, lane.warmth, &builds); // 6 to 10
    let error_rate = error_rate(&flow, &builds); // 11
    lane.errors.push(minute, error_rate);
    let slo = &lane.numbers.constants.slo;
    let burned = budget::burned(slo, budget::burn(slo, error_rate)); // 12
    lane.budget_left -= burned;
    let admitted_requests = flow.admitted_rps * MINUTE_S;
    lane.admitted_requests += admitted_requests;
    lane.recommended_requests += if lane.dials.feature { admitted_requests } else { 0.0 };
    show(params, lane, offered_rps, lane.warmth, &builds, &flow, error_rate);
    lane.recent[minute as usize % RECENT_MIN] = recent(&lane.seen);
    let terms = bill(lane, burned, &flow); // 13
    after(lane, &flow); // 14
    lane.minute += 1;
    terms
}

/// The value of a minute; the last one holds.
fn held(series: &[f64], minute: u32) -> f64 {
    series.get(minute as usize).or(series.last()).copied().unwrap_or(0.0)
}

/// Step 2.
fn press(lane: &mut Lane, presses: Presses) {
    let constants = &lane.numbers.constants;
    if presses.warm_up && lane.warm_up_left_min == 0 {
        lane.warm_up_left_min = constants.cache.warm_up_min as u32;
    }
    if presses.rollback {
        lane.rollback_left_min = constants.service.rollback_min as u32;
        lane.rollback_of = events::begun(&lane.numbers.deploys, lane.minute) & !lane.retired;
    }
}

/// Step 5 without noise: the mean rate of the minute.
fn mean_rps(params: &Params, lane: &Lane) -> f64 {
    let constants = &lane.numbers.constants;
    let usual = if let Some(series) = &params.series_rps {
        held(series, lane.minute)
    } else {
        let clock_start_h = constants.shift.clock_start_h;
        constants.demand.base_rps
            * demand::daily_factor(&constants.demand, clock_start_h, f64::from(lane.minute))
    };
    usual * demand::surge_factor(&lane.numbers.surges, lane.minute)
}

/// Step 5.
fn drawn_rps(params: &Params, lane: &Lane) -> f64 {
    let mean = mean_rps(params, lane);
    let demand = &lane.numbers.constants.demand;
    if demand.noise < 0.5 {
        return mean;
    }
    let mut stream = lane.key.stream(Purpose::Demand, u64::from(lane.minute));
    demand::noisy_count(MINUTE_S * mean, demand.noise_std, &mut stream) * (1.0 / MINUTE_S)
}

/// Steps 6 to 10.
fn flow(lane: &Lane, offered_rps: f64, warmth: f64, builds: &Builds) -> Flow {
    let constants = &lane.numbers.constants;
    let (dials, service) = (&lane.dials, &constants.service);
    let admitted_rps = offered_rps * (1.0 - constants.fleet.low_priority_share * dials.shed_share);
    let cache_hit = cache::hit_share(&constants.cache, admitted_rps, dials.cache_ttl_s, warmth);
    let with_feature = |base: f64, extra: f64| if dials.feature { base + extra } else { base };
    let queries = with_feature(service.queries, service.feature_queries);
    let warm_up_qps = if lane.warm_up_left_min > 0 { constants.cache.warm_up_qps } else { 0.0 };
    let queries_per_s = admitted_rps * queries * (1.0 - cache_hit) + warm_up_qps;
    let database = database::load(&constants.database, queries_per_s);
    let cpu_ms = with_feature(service.cpu_ms, service.feature_cpu_ms) * (1.0 + builds.extra_cpu);
    let service_s = (cpu_ms + (1.0 - cache_hit) * queries * database.query_ms) * 0.001;
    let servers = constants.fleet.servers_per_instance * f64::from(lane.capacity.serving);
    let queue = queue::queue(servers, admitted_rps, service_s, service.timeout_s);
    Flow { admitted_rps, cache_hit, database, service_s, queue }
}

/// Step 11. Without traffic there are no errors.
fn error_rate(flow: &Flow, builds: &Builds) -> f64 {
    if flow.admitted_rps > 0.0 {
        budget::error_rate(flow.queue.failed_share, builds.error_rate)
    } else {
        0.0
    }
}

/// Instances billed: serving, booting, and the second fleet while a rollback prepares.
fn billed_instances(lane: &Lane) -> f64 {
    let serving = f64::from(lane.capacity.serving);
    let second = if lane.rollback_left_min > 0 { serving } else { 0.0 };
    serving + f64::from(lane.capacity.booting_total()) + second
}

/// Writes the dashboard of the minute. The error window holds the minute already.
fn show(
    params: &Params,
    lane: &mut Lane,
    offered_rps: f64,
    warmth: f64,
    builds: &Builds,
    flow: &Flow,
    error_rate: f64,
) {
    let constants = &lane.numbers.constants;
    let per_budget = |rate: f64| budget::burn(&constants.slo, rate);
    let burn_1h = per_budget(lane.errors.mean_long());
    let burn_5min = per_budget(lane.errors.mean_short(lane.minute));
    let shown_share = if params.hide_build_truth { builds.new_share } else { builds.bad_share };
    lane.booting_seen = lane.capacity.booting;
    lane.seen = Seen {
        offered_rps,
        admitted_rps: flow.admitted_rps,
        serving: f64::from(lane.capacity.serving),
        cache_hit: flow.cache_hit,
        cache_warmth: warmth,
        db_utilization: flow.database.utilization,
        query_ms: flow.database.query_ms,
        service_ms: flow.service_s * 1000.0,
        p99_ms: flow.queue.p99_s * 1000.0,
        offered_load: flow.queue.offered_load,
        p_wait: flow.queue.p_wait,
        utilization: flow.queue.utilization,
        failed_share: flow.queue.failed_share,
        error_rate,
        burn: per_budget(error_rate),
        burn_5min,
        burn_1h,
        page: f64::from(u8::from(budget::page(&constants.slo, burn_1h, burn_5min))),
        shed_traffic: constants.fleet.low_priority_share * lane.dials.shed_share,
        cache_age_s: lane.dials.cache_ttl_s / 2.0,
        bad_build_share: shown_share,
        bad_build_truth: builds.bad_share,
        surge_factor: demand::surge_factor(&lane.numbers.surges, lane.minute),
        fleet_usd_h: reward::fleet_usd_h(&constants.prices, billed_instances(lane)),
    };
}

/// The part of the dashboard that changes are taken of.
fn recent(seen: &Seen) -> Recent {
    Recent {
        offered_rps: seen.offered_rps,
        utilization: seen.utilization,
        error_rate: seen.error_rate,
    }
}

/// Step 13 and the reward.
fn bill(lane: &mut Lane, burned: f64, flow: &Flow) -> [f64; TERMS] {
    let admitted_requests = flow.admitted_rps * MINUTE_S;
    let terms = reward::terms(
        &lane.numbers.constants.prices,
        &Bill {
            instances: billed_instances(lane),
            burned,
            budget_left: lane.budget_left,
            shed_requests: lane.seen.offered_rps * lane.seen.shed_traffic * MINUTE_S,
            admitted_requests,
            feature: lane.dials.feature,
            p99_s: flow.queue.p99_s,
            cache_answers: admitted_requests * flow.cache_hit,
            cache_age_s: lane.seen.cache_age_s,
        },
    );
    lane.cost_usd += terms[0];
    terms
}

/// Step 14: what happens after the minute shows in the next one.
fn after(lane: &mut Lane, flow: &Flow) {
    let constants = &lane.numbers.constants;
    let warm_up = lane.warm_up_left_min > 0;
    let load = flow.database.utilization;
    lane.warmth = cache::warmed(&constants.cache, lane.warmth, lane.recovery, load, warm_up);
    lane.warm_up_left_min = lane.warm_up_left_min.saturating_sub(1);
    if lane.rollback_left_min > 0 {
        lane.rollback_left_min -= 1;
        if lane.rollback_left_min == 0 {
            lane.retired |= lane.rollback_of;
            lane.rollback_of = 0;
        }
    }
    let settings = lane.dials.settings();
    lane.capacity.autoscale(&constants.fleet, settings, flow.queue.utilization);
}
