//! What must hold after each minute; called in debug builds, by property tests, and on restored
//! states.

use crate::params::EVENTS_MAX;
use crate::signals;
use crate::state::Lane;

/// The first invariant that a lane breaks.
pub fn check(lane: &Lane) -> Result<(), String> {
    let constants = &lane.numbers.constants;
    let seen = &lane.seen;
    let total = lane.capacity.serving.saturating_add(
        lane.capacity.booting.iter().fold(0_u32, |sum, count| sum.saturating_add(*count)),
    );
    let ensure = |holds: bool, what: &str| if holds { Ok(()) } else { Err(what.to_owned()) };
    ensure(lane.capacity.serving >= 1, "an instance serves")?;
    ensure(f64::from(total) <= constants.fleet.instances_max, "the fleet is at most its maximum")?;
    let dials = lane.dials.values();
    let turned = dials.iter().zip(crate::dials::table()).all(|(x, dial)| dial.accepts(*x));
    ensure(turned, "dials lie in their ranges")?;
    ensure((0.0..=1.0).contains(&lane.warmth), "warmth is a share")?;
    for (share, name) in [
        (seen.cache_hit, "cache_hit is a share"),
        (seen.p_wait, "p_wait is a share"),
        (seen.utilization, "utilization is a share"),
        (seen.failed_share, "failed_share is a share"),
        (seen.error_rate, "error_rate is a share"),
        (seen.bad_build_truth, "bad_build_share is a share"),
        (lane.recommendations(), "recommendations is a share"),
    ] {
        ensure((0.0..=1.0).contains(&share), name)?;
    }
    ensure(lane.budget_left <= constants.opening.budget_left, "the budget never grows")?;
    let limit_ms = (constants.service.timeout_s + seen.service_ms / 1000.0 * 5.0) * 1000.0;
    ensure(seen.p99_ms <= limit_ms, "p99 is bounded by the timeout")?;
    let known = (1_u32 << EVENTS_MAX) - 1;
    ensure(lane.retired <= known && lane.rollback_of <= known, "only known deploys are retired")?;
    ensure(f64::from(lane.rollback_left_min) <= constants.service.rollback_min, "rollback left")?;
    ensure(f64::from(lane.warm_up_left_min) <= constants.cache.warm_up_min, "warm-up left")?;
    let mut values = [0.0; signals::COUNT];
    signals::write(lane, &mut values);
    ensure(values.iter().all(|value| value.is_finite()), "every signal is finite")
}
