//! What the rule decides about the fleet and the degradation, given the outlook of the next minute.

use super::model::{Level, Outlook};
use super::{Reading, Runbook};
use crate::board::Board;
use oncall_fleet::Sig;

/// Shares that are tried when shedding.
const SHED_STEPS: u32 = 10;
/// Most instances that are added in case of a flush.
const GUARD_SPARE_MAX: u32 = 8;
/// Minutes for which a guard stands before it is looked at again: demand is noisy, and an instance that
/// goes needs a boot delay to come back.
const GUARD_REVIEW_MIN: f64 = 10.0;
/// A level is worth taking for more than this.
const WORTH_USD: f64 = 0.001;

impl Runbook {
    /// The stance in which nothing is degraded, but for what the guard sheds.
    fn stance(&self) -> Level {
        Level { shed: self.memory.guard.0, feature: true, ttl_s: self.rules.ttl_s }
    }

    /// Shed share and spare instances with which to wait for an incident: what costs least if the
    /// cache may be emptied in the next minute.
    fn plan_guard(&self, next: &Outlook, budget_left: f64) -> (f64, f64) {
        let (rules, memory) = (&self.rules, &self.memory);
        if memory.incident || memory.incident_seen && rules.guard_always < 0.5 {
            return (0.0, 0.0);
        }
        let spare = rules.guard_spare;
        if rules.flush_hazard == 0.0 {
            return (0.0, spare);
        }
        let normal = Level { shed: 0.0, feature: true, ttl_s: rules.ttl_s };
        let flushed = Outlook { warmth: 0.0, ..*next };
        let instance_usd = self.model.prices.instance_usd_h / 60.0;
        let mut best = (f64::INFINITY, 0.0, spare);
        for step in 0..=SHED_STEPS {
            let level = Level { shed: f64::from(step) / f64::from(SHED_STEPS), ..normal };
            let needed = self.model.instances(next, &level, rules.headroom);
            for more in 0..=GUARD_SPARE_MAX {
                let instances = needed + spare + f64::from(more);
                let usd = |outlook: &Outlook| {
                    self.model.minute_usd(outlook, &level, instances, rules.noise, budget_left)
                };
                let total =
                    usd(next).1 + instance_usd * instances + rules.flush_hazard * usd(&flushed).0;
                if total < best.0 {
                    best = (total, level.shed, spare + f64::from(more));
                }
            }
        }
        (best.1, best.2)
    }

    /// Looks at the guard anew every few minutes, and at once when an incident begins or ends.
    pub(super) fn review_guard(&mut self, now_min: f64, next: &Outlook, budget_left: f64) {
        let due = now_min >= self.memory.review_min;
        if due || self.memory.incident != self.memory.guard_incident {
            self.memory.guard = self.plan_guard(next, budget_left);
            self.memory.guard_incident = self.memory.incident;
            self.memory.review_min = now_min + GUARD_REVIEW_MIN;
        }
    }

    /// The outlook some minutes ahead, from the one of the next minute on.
    fn ahead(&self, reading: &Reading, next: &Outlook, warm_up_min: f64, minutes: f64) -> Outlook {
        let stance = Level { feature: false, ..self.stance() };
        let mut outlook = *next;
        for minute in 1..minutes as u32 {
            outlook.warm_up = f64::from(minute) <= warm_up_min;
            outlook.warmth = self.model.warmed(&outlook, &stance);
        }
        outlook.warm_up = minutes <= warm_up_min;
        if reading.rolled_back && reading.rollback_left_min < minutes {
            outlook.cpu_factor = 1.0;
        }
        outlook
    }

    /// Instances to have, serving or booting.
    pub(super) fn size(
        &self,
        board: Board,
        reading: &Reading,
        next: &Outlook,
        warm_up_min: f64,
    ) -> f64 {
        let (rules, memory) = (&self.rules, &self.memory);
        let (stance, spare) = (self.stance(), memory.guard.1);
        let needed = |outlook: &Outlook| self.model.instances(outlook, &stance, rules.headroom);
        let lead_min = memory.orders.boot_min();
        let rising = memory.demand.rising();
        let later_rps = if rising {
            memory.demand.grown_rps(rules.surge_lead_min)
        } else {
            memory.demand.ahead_rps(lead_min)
        };
        let later =
            Outlook { offered_rps: later_rps, ..self.ahead(reading, next, warm_up_min, lead_min) };
        let warm = Outlook { warmth: 1.0, warm_up: false, ..later };
        let when_warm = needed(&warm);
        let order = needed(&later).min(when_warm + rules.cold_spare);
        let order = if rising { order.max(rules.surge_floor) } else { order + spare };
        // What serves is kept while the next minute needs it, and costs little.
        let kept = board.get(Sig::serving).min(needed(next) + spare);
        order.max(kept).clamp(1.0, self.model.fleet.instances_max)
    }

    /// The cheapest level of the next minute; never milder than the stance.
    pub(super) fn level(&self, reading: &Reading, next: &Outlook, serving: f64) -> Level {
        let stance = self.stance();
        let cost = |level: &Level| {
            let (noise, left) = (self.rules.noise, reading.budget_left);
            let (damage, price) = self.model.minute_usd(next, level, serving, noise, left);
            (damage, damage + price)
        };
        let (damage, total) = cost(&stance);
        if damage < WORTH_USD {
            return stance;
        }
        let (mut best, mut best_usd) = (stance, total);
        let stress_s = self.rules.ttl_stress_s.max(self.rules.ttl_s);
        for feature in [true, false] {
            for ttl_s in [self.rules.ttl_s, stress_s] {
                for step in 0..=SHED_STEPS {
                    let shed = (f64::from(step) / f64::from(SHED_STEPS)).max(stance.shed);
                    let level = Level { shed, feature, ttl_s };
                    let usd = cost(&level).1;
                    if usd < best_usd - WORTH_USD {
                        (best, best_usd) = (level, usd);
                    }
                }
            }
        }
        best
    }

    /// Steps back to a milder level only after some minutes.
    pub(super) fn with_patience(&mut self, now_min: f64, wanted: Level) -> Level {
        let milder = |held: Level| {
            wanted.shed < held.shed || wanted.feature && !held.feature || wanted.ttl_s < held.ttl_s
        };
        let memory = &mut self.memory;
        let level = match memory.level {
            Some(held) if milder(held) && now_min < memory.milder_from_min => Level {
                shed: wanted.shed.max(held.shed),
                feature: wanted.feature && held.feature,
                ttl_s: wanted.ttl_s.max(held.ttl_s),
            },
            _ => {
                memory.milder_from_min = now_min + self.rules.calm_min;
                wanted
            }
        };
        memory.level = Some(level);
        level
    }
}
