//! The operator's own list of what was ordered: the dashboard shows how many instances boot, not when
//! they will serve.

use std::collections::VecDeque;

/// Orders that still boot.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    /// Minute of the order and count, oldest first.
    booting: VecDeque<(f64, f64)>,
    serving: f64,
    /// Boot delay: assumed, then seen.
    boot_min: f64,
}

impl Orders {
    pub(super) fn new(boot_min: f64) -> Self {
        Self { booting: VecDeque::new(), serving: 0.0, boot_min }
    }

    /// Boot delay, as far as is known.
    pub(super) fn boot_min(&self) -> f64 {
        self.boot_min
    }

    /// Takes in the dashboard after a minute: what no longer boots now serves.
    pub(super) fn read(&mut self, now_min: f64, serving: f64, booting: f64) {
        let mut listed: f64 = self.booting.iter().map(|(_, count)| count).sum();
        while listed > booting {
            let Some((minute, count)) = self.booting.pop_front() else { break };
            listed -= count;
            // It served in the minute before `now`, so its boot delay is that of the last order.
            self.boot_min = (now_min - 1.0 - minute).clamp(1.0, 15.0);
        }
        if listed < booting {
            // Somebody else's order: the autoscaler's, before this rule took over.
            self.booting.push_back((now_min - 1.0, booting - listed));
        }
        self.serving = serving;
    }

    /// Orders or cancels up to a number of instances, the youngest first; returns how many will serve
    /// in the next minute.
    pub(super) fn order(&mut self, now_min: f64, instances: f64) -> f64 {
        let listed: f64 = self.booting.iter().map(|(_, count)| count).sum();
        let missing = instances - self.serving - listed;
        if missing > 0.0 {
            self.booting.push_back((now_min, missing));
        }
        let mut surplus = -missing;
        while surplus > 0.0 {
            let Some((minute, count)) = self.booting.pop_back() else { break };
            if count > surplus {
                self.booting.push_back((minute, count - surplus));
            }
            surplus -= count;
        }
        let ready = self.booting.iter().filter(|(minute, _)| now_min - minute >= self.boot_min);
        let arriving: f64 = ready.map(|(_, count)| count).sum();
        (self.serving + arriving).min(instances)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_the_boot_delay_and_expects_arrivals() {
        let mut orders = Orders::new(3.0);
        orders.read(0.0, 10.0, 0.0);
        assert_eq!(orders.order(0.0, 14.0), 10.0);
        // With a delay of five, the order of minute 0 serves in minute 5, which shows at 6.
        for now in 1..=5 {
            orders.read(f64::from(now), 10.0, 4.0);
            orders.order(f64::from(now), 14.0);
        }
        orders.read(6.0, 14.0, 0.0);
        assert_eq!(orders.boot_min(), 5.0);
        assert_eq!(orders.order(6.0, 20.0), 14.0);
        for now in 7..=10 {
            orders.read(f64::from(now), 14.0, 6.0);
            assert_eq!(orders.order(f64::from(now), 20.0), 14.0);
        }
        orders.read(11.0, 14.0, 6.0);
        assert_eq!(orders.order(11.0, 20.0), 20.0);
    }

    #[test]
    fn cancels_the_youngest_first() {
        let mut orders = Orders::new(3.0);
        orders.read(0.0, 10.0, 0.0);
        orders.order(0.0, 12.0);
        orders.read(1.0, 10.0, 2.0);
        orders.order(1.0, 15.0);
        orders.read(2.0, 10.0, 5.0);
        orders.order(2.0, 13.0);
        assert_eq!(orders.booting, [(0.0, 2.0), (1.0, 1.0)]);
        orders.read(3.0, 10.0, 3.0);
        assert_eq!(orders.order(3.0, 8.0), 8.0);
        assert!(orders.booting.is_empty());
    }
}
