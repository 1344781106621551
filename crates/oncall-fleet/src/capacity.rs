//! Steps 1, 3 and 14: boots, the floor, the autoscaler.

use crate::params::{BOOT_DELAY_MAX_MIN, Fleet};

/// A product this close above a whole number counts as it: `10 x 0.6 / 0.6` is ten instances.
pub(crate) const CEIL_TOLERANCE: f64 = 1e-9;

/// The instances, and how long the autoscaler has found them too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Instances that serve.
    pub serving: u32,
    /// Booting instances: `booting[k]` serve after `k + 1` more minutes.
    pub booting: [u32; BOOT_DELAY_MAX_MIN],
    /// Quiet minutes in a row.
    pub quiet_min: u32,
}

/// What the operator set for the fleet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// The floor.
    pub min_instances: u32,
    /// Whether the autoscaler is on.
    pub autoscale: bool,
    /// Its target.
    pub target_utilization: f64,
}

impl Capacity {
    /// A fleet in which nothing boots.
    pub fn serving(serving: u32) -> Self {
        Self { serving, booting: [0; BOOT_DELAY_MAX_MIN], quiet_min: 0 }
    }

    /// All booting instances.
    pub fn booting_total(&self) -> u32 {
        self.booting.iter().sum()
    }

    /// Step 1: a minute has passed.
    pub fn boot(&mut self) {
        self.serving += self.booting[0];
        self.booting.rotate_left(1);
        self.booting[BOOT_DELAY_MAX_MIN - 1] = 0;
    }

    /// Orders instances; they serve after the boot delay, from the next minute at the earliest.
    fn order(&mut self, fleet: &Fleet, count: u32) {
        let delay = (fleet.boot_delay_min as usize).clamp(1, BOOT_DELAY_MAX_MIN);
        self.booting[delay - 1] += count;
    }

    /// Step 3: boots what the floor misses; without autoscaling removes what is above it at once,
    /// the youngest booting instances first.
    pub fn hold_floor(&mut self, fleet: &Fleet, settings: Settings) {
        let floor = settings.min_instances.min(fleet.instances_max as u32);
        let have = self.serving + self.booting_total();
        if have < floor {
            self.order(fleet, floor - have);
        } else if !settings.autoscale {
            let mut surplus = have - floor;
            for booting in self.booting.iter_mut().rev() {
                let removed = surplus.min(*booting);
                *booting -= removed;
                surplus -= removed;
            }
            self.serving -= surplus;
        }
    }

    /// Instances that the autoscaler wants at the utilisation of the minute.
    pub fn desired(&self, fleet: &Fleet, settings: Settings, utilization: f64) -> u32 {
        let wanted = f64::from(self.serving) * utilization / settings.target_utilization;
        let max = fleet.instances_max as u32;
        ((wanted - CEIL_TOLERANCE).ceil().max(0.0) as u32)
            .clamp(settings.min_instances.min(max), max)
    }

    /// Step 14: target tracking. Scales out when nothing boots; removes a part of the surplus after
    /// enough quiet minutes in a row.
    pub fn autoscale(&mut self, fleet: &Fleet, settings: Settings, utilization: f64) {
        if !settings.autoscale {
            self.quiet_min = 0;
            return;
        }
        let desired = self.desired(fleet, settings, utilization);
        let idle = self.booting_total() == 0;
        if desired >= self.serving || !idle {
            self.quiet_min = 0;
            if idle {
                self.order(fleet, desired - self.serving);
            }
            return;
        }
        self.quiet_min += 1;
        if self.quiet_min >= fleet.scale_in_quiet_min as u32 {
            let share = (fleet.scale_in_share_max * f64::from(self.serving)).floor() as u32;
            self.serving -= (self.serving - desired).min(share.max(1));
            self.quiet_min = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;

    const ON: Settings = Settings { min_instances: 4, autoscale: true, target_utilization: 0.6 };

    #[test]
    fn an_order_serves_after_the_delay() {
        for (delay, minutes) in [(0.0, 1), (1.0, 1), (3.0, 3), (15.0, 15)] {
            let fleet = Fleet { boot_delay_min: delay, ..Fleet::defaults() };
            let mut capacity = Capacity::serving(4);
            capacity.hold_floor(&fleet, Settings { min_instances: 9, ..ON });
            for minute in 1..=minutes {
                assert_eq!((capacity.serving, capacity.booting_total()), (4, 5), "{delay}");
                capacity.boot();
                assert_eq!(capacity.serving, if minute == minutes { 9 } else { 4 });
            }
        }
    }

    #[test]
    fn without_autoscaling_the_youngest_go_first() {
        let fleet = Fleet::defaults();
        let mut capacity = Capacity::serving(6);
        (capacity.booting[0], capacity.booting[2]) = (2, 3);
        let off = |min_instances| Settings { min_instances, autoscale: false, ..ON };
        capacity.hold_floor(&fleet, off(9));
        assert_eq!((capacity.serving, &capacity.booting[..3]), (6, &[2, 0, 1][..]));
        capacity.hold_floor(&fleet, off(7));
        assert_eq!((capacity.serving, &capacity.booting[..3]), (6, &[1, 0, 0][..]));
        capacity.hold_floor(&fleet, off(2));
        assert_eq!((capacity.serving, capacity.booting_total()), (2, 0));
    }

    #[test]
    fn a_product_just_above_a_whole_number_counts_as_it() {
        let fleet = Fleet::defaults();
        let at = |utilization| Capacity::serving(10).desired(&fleet, ON, utilization);
        assert_eq!(at(0.6), 10);
        assert_eq!(at(0.6 * (1.0 + 0.9e-10)), 10);
        assert_eq!(at(0.6 * (1.0 + 2e-10)), 11);
        assert_eq!((at(0.0), at(1.0)), (4, 17));
        // 14 x 0.3 / 0.6 is 7.000000000000001 in floating point for some roundings.
        assert_eq!(Capacity::serving(14).desired(&fleet, ON, 0.3), 7);
    }

    #[test]
    fn scales_out_only_when_nothing_boots() {
        let fleet = Fleet::defaults();
        let mut capacity = Capacity::serving(10);
        capacity.autoscale(&fleet, ON, 1.0);
        assert_eq!(capacity.booting_total(), 7);
        capacity.autoscale(&fleet, ON, 1.0);
        assert_eq!(capacity.booting_total(), 7);
    }

    #[test]
    fn scales_in_a_fifth_after_ten_quiet_minutes() {
        let fleet = Fleet::defaults();
        let mut capacity = Capacity::serving(20);
        let mut sizes = Vec::new();
        for _ in 0..30 {
            capacity.autoscale(&fleet, ON, 0.1);
            sizes.push(capacity.serving);
        }
        assert_eq!([sizes[8], sizes[9], sizes[18], sizes[19], sizes[29]], [20, 16, 16, 13, 11]);
        // A minute that is not quiet starts the count anew.
        capacity.quiet_min = 9;
        capacity.autoscale(&fleet, ON, 0.6);
        assert_eq!((capacity.quiet_min, capacity.serving), (0, 11));
        // At three instances a fifth is none, so one goes.
        let mut small = Capacity { quiet_min: 9, ..Capacity::serving(5) };
        small.autoscale(&fleet, Settings { min_instances: 1, ..ON }, 0.1);
        assert_eq!(small.serving, 4);
    }
}
