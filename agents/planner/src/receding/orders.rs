//! What was ordered and has not come: the dashboard shows how many instances boot, not since when.

use oncall_fleet::params::BOOT_DELAY_MAX_MIN;

/// Orders, and the boot delay as far as it is known.
#[derive(Debug, Clone)]
pub(super) struct Orders {
    /// Minute of the order and count, oldest first.
    booting: Vec<(u32, u32)>,
    /// Assumed, until an order was seen to come.
    boot_min: u32,
    known: bool,
}

impl Orders {
    pub(super) fn new(boot_min: u32) -> Self {
        Self { booting: Vec::new(), boot_min, known: false }
    }

    pub(super) fn boot_min(&self) -> u32 {
        self.boot_min
    }

    /// Takes in how many still booted in the minute before `now`.
    pub(super) fn read(&mut self, now: u32, booting: u32) {
        let mut listed = self.listed();
        while listed > booting {
            let Some((minute, count)) = self.booting.first_mut() else { break };
            let came = (listed - booting).min(*count);
            *count -= came;
            listed -= came;
            // They served for the first time in the minute that was just played.
            self.boot_min = (now.saturating_sub(1 + *minute)).clamp(1, BOOT_DELAY_MAX_MIN as u32);
            self.known = true;
            if *count == 0 {
                self.booting.remove(0);
            }
        }
        if listed < booting {
            // Somebody else's: the autoscaler's, before this policy took over.
            self.booting.push((now.saturating_sub(1), booting - listed));
        }
        if let Some((minute, _)) = self.booting.first().filter(|_| !self.known) {
            // Overdue: nobody counts on them for the very next minute.
            let least = (now + 1).saturating_sub(*minute);
            if now > *minute + self.boot_min {
                self.boot_min = least.clamp(1, BOOT_DELAY_MAX_MIN as u32);
            }
        }
    }

    fn listed(&self) -> u32 {
        self.booting.iter().map(|(_, count)| count).sum()
    }

    /// Instances by the minutes until they serve: the first entry serves in minute `now`.
    pub(super) fn coming(&self, now: u32) -> [u32; BOOT_DELAY_MAX_MIN] {
        let mut coming = [0; BOOT_DELAY_MAX_MIN];
        for (minute, count) in &self.booting {
            let left = (minute + self.boot_min).saturating_sub(now) as usize;
            coming[left.min(BOOT_DELAY_MAX_MIN - 1)] += count;
        }
        coming
    }

    /// Notes what a floor does in minute `now` with the autoscaler off: orders what is missing, or
    /// cancels the youngest.
    pub(super) fn set_floor(&mut self, now: u32, serving: u32, floor: u32) {
        let have = serving + self.listed();
        if floor > have {
            self.booting.push((now, floor - have));
        }
        let mut surplus = have.saturating_sub(floor);
        while surplus > 0 {
            let Some((minute, count)) = self.booting.pop() else { break };
            if count > surplus {
                self.booting.push((minute, count - surplus));
            }
            surplus = surplus.saturating_sub(count);
        }
        // What is due serves in this minute, whether it shows or not.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn learns_a_longer_boot_delay_and_says_when_they_come() {
        let mut orders = Orders::new(3);
        orders.set_floor(0, 10, 14);
        assert_eq!(orders.coming(1)[..4], [0, 0, 4, 0]);
        for now in 1..=3 {
            orders.read(now, 4);
        }
        assert_eq!((orders.boot_min(), &orders.coming(3)[..2]), (3, &[4, 0][..]));
        // In minute 3 they still booted: not before minute 5, as far as anybody dares to say.
        orders.read(4, 4);
        assert_eq!((orders.boot_min(), &orders.coming(4)[..3]), (5, &[0, 4, 0][..]));
        orders.read(5, 4);
        // With a delay of five they serve in minute 5, which shows at 6.
        orders.read(6, 0);
        assert_eq!(orders.boot_min(), 5);
        orders.set_floor(6, 14, 20);
        orders.read(7, 6);
        assert_eq!(orders.coming(7)[..6], [0, 0, 0, 0, 6, 0]);
    }

    #[test]
    fn learns_a_shorter_boot_delay() {
        let mut orders = Orders::new(8);
        orders.set_floor(2, 10, 12);
        (3..=6).for_each(|now| orders.read(now, 2));
        orders.read(7, 0);
        assert_eq!(orders.boot_min(), 4);
    }

    #[test]
    fn cancels_the_youngest_first_and_lists_the_orders_of_others() {
        let mut orders = Orders::new(3);
        orders.read(1, 2);
        orders.set_floor(1, 10, 15);
        orders.set_floor(2, 10, 16);
        assert_eq!(orders.coming(2)[..4], [0, 2, 3, 1]);
        orders.set_floor(2, 10, 14);
        assert_eq!(orders.coming(2)[..4], [0, 2, 2, 0]);
        orders.set_floor(2, 10, 11);
        assert_eq!(orders.coming(2)[..4], [0, 1, 0, 0]);
        orders.set_floor(2, 10, 4);
        assert_eq!(orders.listed(), 0);
    }
}
