//! The table of signals: names, units, ranges, transforms, and what each one shows.
//!
//! One row is one signal; the same row makes the `Spec`, the observation, the CSV column and the
//! value. Ranges are those of the observation, which clips at their ends; natural values may exceed
//! them.

use crate::events::since_deploy_min;
use crate::state::Lane;
use oncall_core::math;
use oncall_core::{Scale, Signal, View};

const LIN: Scale = Scale::Linear;
const fn log(knee: f64) -> Scale {
    Scale::Symlog { knee }
}

/// Shown as `since_deploy_min` before the first deploy: a day, the end of the range.
pub(crate) const NO_DEPLOY_MIN: f64 = 1440.0;

/// Hours of a day.
const DAY_H: f64 = 24.0;

/// Time of day at the end of a minute, of a shift that began at `start_h`.
#[inline]
pub(crate) fn clock_h(start_h: f64, minute: f64) -> f64 {
    let hours = start_h + minute / 60.0;
    // At the very end of a day rounding may step over it.
    math::max(hours - DAY_H * math::floor(hours / DAY_H), 0.0)
}

macro_rules! signals {
    ($($name:ident: $view:ident $column:literal, $label:literal, $unit:literal,
        $low:literal, $high:literal, $scale:expr, $doc:literal, |$lane:ident| $value:expr;)*) => {
        /// Indices of the signals.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(non_camel_case_types, missing_docs, reason = "the binding names, as the table says them")]
        #[repr(usize)]
        pub enum Sig { $($name,)* }

        /// The table of signals.
        pub fn table() -> Vec<Signal> {
            vec![$(Signal {
                name: stringify!($name),
                label: $label,
                unit: $unit,
                low: $low as f64,
                high: $high as f64,
                scale: $scale,
                view: View::$view,
                column: $column,
                doc: $doc,
            },)*]
        }

        /// Writes the natural values, in the order of the table.
        pub fn write(lane: &Lane, out: &mut [f64]) {
            $(out[Sig::$name as usize] = { let $lane = lane; $value };)*
        }

        /// Number of signals.
        pub const COUNT: usize = [$(Sig::$name,)*].len();
    };
}

signals! {
    offered_rps: Operator true, "Demand", "req/s", 0, 100_000, log(200.0), "Requests that the users send.", |l| l.seen.offered_rps;
    admitted_rps: Operator true, "Admitted", "req/s", 0, 100_000, log(200.0), "Requests that the load balancer lets in.", |l| l.seen.admitted_rps;
    serving: Operator true, "Serving instances", "", 0, 40, LIN, "Instances that serve.", |l| l.seen.serving;
    booting: Operator true, "Booting instances", "", 0, 40, LIN, "Instances that boot.", |l| f64::from(l.booting_seen.iter().sum::<u32>());
    cache_hit: Operator true, "Cache hits", "", 0, 1, LIN, "Share of the requests that the cache answers.", |l| l.seen.cache_hit;
    cache_warmth: Full true, "Cache warmth", "", 0, 1, LIN, "Share of the cache that is filled; state, not on the dashboard.", |l| l.seen.cache_warmth;
    db_utilization: Operator true, "Database utilisation", "", 0, 50, log(0.5), "Database load over capacity; may exceed 1.", |l| l.seen.db_utilization;
    query_ms: Operator true, "Query time", "ms", 0, 1000, log(5.0), "Mean time of a database query.", |l| l.seen.query_ms;
    service_ms: Operator true, "Service time", "ms", 0, 5000, log(50.0), "Mean time that a request holds a server.", |l| l.seen.service_ms;
    p99_ms: Operator true, "Latency p99", "ms", 0, 20_000, log(300.0), "99 % quantile of the latency (an approximation: the sum of two quantiles).", |l| l.seen.p99_ms;
    offered_load: Operator true, "Offered load", "erlangs", 0, 100_000, log(50.0), "Servers that the demand would keep busy.", |l| l.seen.offered_load;
    p_wait: Operator true, "Probability of waiting", "", 0, 1, LIN, "Erlang C.", |l| l.seen.p_wait;
    utilization: Operator true, "Utilisation", "", 0, 1, LIN, "Share of the servers that is busy.", |l| l.seen.utilization;
    failed_share: Operator true, "Failed in the queue", "", 0, 1, log(0.001), "Share of the admitted requests that time out or find no server.", |l| l.seen.failed_share;
    error_rate: Operator true, "Errors", "", 0, 1, log(0.001), "Share of the admitted requests that fail.", |l| l.seen.error_rate;
    burn: Operator true, "Burn, this minute", "x", 0, 1000, log(1.0), "Error rate over the rate that the budget allows.", |l| l.seen.burn;
    burn_5min: Operator true, "Burn, 5 min", "x", 0, 1000, log(1.0), "Burn of the last 5 minutes.", |l| l.seen.burn_5min;
    burn_1h: Operator true, "Burn, 1 h", "x", 0, 1000, log(1.0), "Burn of the last 60 minutes.", |l| l.seen.burn_1h;
    page: Operator true, "Page", "", 0, 1, LIN, "1 while the pager rings.", |l| l.seen.page;
    budget_left: Operator true, "Error budget left", "", -10, 10, log(0.1), "Share of the month's error budget; may be negative.", |l| l.budget_left;
    shed_traffic: Operator true, "Shed traffic", "", 0, 1, LIN, "Share of all traffic that is refused.", |l| l.seen.shed_traffic;
    cache_age_s: Operator true, "Age of cached answers", "s", 0, 300, log(10.0), "Mean age of an answer from the cache.", |l| l.seen.cache_age_s;
    bad_build_share: Operator true, "Traffic on the bad build", "", 0, 1, LIN, "Share of the traffic on bad builds; where the scenario hides the truth, on new builds, good or bad.", |l| l.seen.bad_build_share;
    recommendations: Operator true, "Recommendations", "", 0, 1, LIN, "Share of the admitted requests of the shift so far that got them; 1 before any.", |l| l.recommendations();
    fleet_usd_h: Operator true, "Fleet", "usd/h", 0, 1000, log(4.0), "Dollars of the fleet in an hour.", |l| l.seen.fleet_usd_h;
    cost_usd: Record true, "Fleet so far", "usd", 0, 10_000, log(10.0), "Dollars of the fleet since the shift began.", |l| l.cost_usd;
    offered_rps_change_1min: Operator false, "Change of demand, 1 min", "req/s", -100_000, 100_000, log(50.0), "Demand less demand a minute before.", |l| l.seen.offered_rps - l.before(1).offered_rps;
    offered_rps_change_5min: Operator false, "Change of demand, 5 min", "req/s", -100_000, 100_000, log(50.0), "Demand less demand five minutes before.", |l| l.seen.offered_rps - l.before(5).offered_rps;
    utilization_change_1min: Operator false, "Change of utilisation, 1 min", "", -1, 1, LIN, "Utilisation less utilisation a minute before.", |l| l.seen.utilization - l.before(1).utilization;
    utilization_change_5min: Operator false, "Change of utilisation, 5 min", "", -1, 1, LIN, "Utilisation less utilisation five minutes before.", |l| l.seen.utilization - l.before(5).utilization;
    error_rate_change_1min: Operator false, "Change of errors, 1 min", "", -1, 1, log(0.001), "Error rate less error rate a minute before.", |l| l.seen.error_rate - l.before(1).error_rate;
    error_rate_change_5min: Operator false, "Change of errors, 5 min", "", -1, 1, log(0.001), "Error rate less error rate five minutes before.", |l| l.seen.error_rate - l.before(5).error_rate;
    dial_min_instances: Operator false, "Dial: minimum instances", "", 0, 40, LIN, "The dial as it stands.", |l| f64::from(l.dials.min_instances);
    dial_autoscale: Operator false, "Dial: autoscaler", "", 0, 1, LIN, "The dial as it stands.", |l| f64::from(u8::from(l.dials.autoscale));
    dial_target_utilization: Operator false, "Dial: target utilisation", "", 0, 1, LIN, "The dial as it stands.", |l| l.dials.target_utilization;
    dial_cache_ttl_s: Operator false, "Dial: cache TTL", "s", 0, 600, log(10.0), "The dial as it stands.", |l| l.dials.cache_ttl_s;
    dial_shed_share: Operator false, "Dial: shed share", "", 0, 1, LIN, "The dial as it stands.", |l| l.dials.shed_share;
    dial_feature: Operator false, "Dial: recommendations", "", 0, 1, LIN, "The dial as it stands.", |l| f64::from(u8::from(l.dials.feature));
    warm_up_left_min: Operator false, "Warm-up left", "min", 0, 60, log(5.0), "Minutes that a warm-up still runs.", |l| f64::from(l.warm_up_left_min);
    rollback_left_min: Operator false, "Rollback left", "min", 0, 60, log(5.0), "Minutes until a rollback switches the traffic.", |l| f64::from(l.rollback_left_min);
    since_deploy_min: Operator false, "Since the last deploy", "min", 0, 1440, log(10.0), "Minutes since the last deploy began; a day before the first.", |l| since_deploy_min(&l.numbers.deploys, l.minute_seen()).unwrap_or(NO_DEPLOY_MIN);
    time_of_day_h: Operator false, "Time of day", "h", 0, 24, LIN, "Clock at the end of the minute.", |l| clock_h(l.numbers.constants.shift.clock_start_h, f64::from(l.minute));
    shift_min: Operator false, "Shift so far", "min", 0, 480, LIN, "Minutes played.", |l| f64::from(l.minute);
    shift_left_min: Operator false, "Shift left", "min", 0, 480, LIN, "Minutes until the scenario's shift ends.", |l| (l.numbers.constants.shift.length_min - f64::from(l.minute)).max(0.0);
    boot_in_1_min: Full false, "Boots in 1 min", "", 0, 40, LIN, "Instances that serve from the minute after this one.", |l| f64::from(l.booting_seen[0]);
    boot_in_2_min: Full false, "Boots in 2 min", "", 0, 40, LIN, "Instances that serve after 2 more minutes.", |l| f64::from(l.booting_seen[1]);
    boot_in_3_min: Full false, "Boots in 3 min", "", 0, 40, LIN, "Instances that serve after 3 more minutes.", |l| f64::from(l.booting_seen[2]);
    boot_in_4_min: Full false, "Boots in 4 min", "", 0, 40, LIN, "Instances that serve after 4 more minutes.", |l| f64::from(l.booting_seen[3]);
    boot_in_5_min: Full false, "Boots in 5 min", "", 0, 40, LIN, "Instances that serve after 5 more minutes.", |l| f64::from(l.booting_seen[4]);
    boot_in_6_min: Full false, "Boots in 6 min", "", 0, 40, LIN, "Instances that serve after 6 more minutes.", |l| f64::from(l.booting_seen[5]);
    boot_in_7_min: Full false, "Boots in 7 min", "", 0, 40, LIN, "Instances that serve after 7 more minutes.", |l| f64::from(l.booting_seen[6]);
    boot_in_8_min: Full false, "Boots in 8 min", "", 0, 40, LIN, "Instances that serve after 8 more minutes.", |l| f64::from(l.booting_seen[7]);
    boot_in_9_min: Full false, "Boots in 9 min", "", 0, 40, LIN, "Instances that serve after 9 more minutes.", |l| f64::from(l.booting_seen[8]);
    boot_in_10_min: Full false, "Boots in 10 min", "", 0, 40, LIN, "Instances that serve after 10 more minutes.", |l| f64::from(l.booting_seen[9]);
    boot_in_11_min: Full false, "Boots in 11 min", "", 0, 40, LIN, "Instances that serve after 11 more minutes.", |l| f64::from(l.booting_seen[10]);
    boot_in_12_min: Full false, "Boots in 12 min", "", 0, 40, LIN, "Instances that serve after 12 more minutes.", |l| f64::from(l.booting_seen[11]);
    boot_in_13_min: Full false, "Boots in 13 min", "", 0, 40, LIN, "Instances that serve after 13 more minutes.", |l| f64::from(l.booting_seen[12]);
    boot_in_14_min: Full false, "Boots in 14 min", "", 0, 40, LIN, "Instances that serve after 14 more minutes.", |l| f64::from(l.booting_seen[13]);
    boot_in_15_min: Full false, "Boots in 15 min", "", 0, 40, LIN, "Instances that serve after 15 more minutes.", |l| f64::from(l.booting_seen[14]);
    surge_factor: Full false, "Surge", "x", 0, 200, log(1.0), "Factor of all surges on the demand; a truth.", |l| l.seen.surge_factor;
    bad_build_truth: Full false, "Traffic on bad builds", "", 0, 1, LIN, "Share of the traffic on bad builds, hidden or not; a truth.", |l| l.seen.bad_build_truth;
}
