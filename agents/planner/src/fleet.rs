//! The cheapest sizes of the fleet over a shift, by dynamic programming.
//!
//! Apart from the fleet nothing that an operator sets binds one minute to the next, as long as the
//! warmth of the cache is what it is: a table says what each minute costs with each number of serving
//! instances, at the dials that are best for it. Instances go at once and for nothing; they come after
//! the boot delay, for which they are paid.

/// What each minute costs with each number of instances.
pub(crate) trait Costs {
    /// Dollars of minute `t` with `n` serving instances, theirs included.
    fn usd(&self, t: usize, n: usize) -> f64;
}

/// What binds the minutes.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// Minutes.
    pub(crate) minutes: usize,
    /// Most instances.
    pub(crate) most: usize,
    /// Instances that serve before the first minute.
    pub(crate) serving: usize,
    /// Instances that come without a new order, by minute.
    pub(crate) coming: Vec<usize>,
    /// Minutes from an order to service.
    pub(crate) boot_min: usize,
    /// Dollars of an instance in a minute.
    pub(crate) instance_usd: f64,
}

/// Serving instances by minute, and what they cost. A relaxation: it forgets that an instance cannot go
/// while others boot (the youngest go first), and that booting ones count towards the most.
pub(crate) fn cheapest(rules: &Rules, costs: &impl Costs) -> (Vec<usize>, f64) {
    let most = rules.most;
    let order_usd = rules.instance_usd * rules.boot_min as f64;
    let mut value = vec![f64::INFINITY; most + 1];
    value[rules.serving.min(most)] = 0.0;
    let mut from = vec![0_u8; rules.minutes * (most + 1)];
    for t in 0..rules.minutes {
        let before = std::mem::replace(&mut value, vec![f64::INFINITY; most + 1]);
        let free = rules.coming.get(t).copied().unwrap_or(0);
        // Best size before, of those that are at least as large: they shrink for nothing.
        let mut larger = (f64::INFINITY, 0);
        for n in (1..=most).rev() {
            if before[n] <= larger.0 {
                larger = (before[n], n);
            }
            let mut best = larger;
            for smaller in (1..n).rev() {
                let ordered = (n - smaller).saturating_sub(free);
                if ordered > 0 && t < rules.boot_min {
                    break;
                }
                let usd = before[smaller] + order_usd * ordered as f64;
                if usd < best.0 {
                    best = (usd, smaller);
                }
            }
            value[n] = best.0 + costs.usd(t, n);
            from[t * (most + 1) + n] = best.1 as u8;
        }
    }
    let mut n = (1..=most).min_by(|a, b| value[*a].total_cmp(&value[*b])).unwrap_or(1);
    let usd = value[n];
    let mut sizes = vec![0; rules.minutes];
    for t in (0..rules.minutes).rev() {
        sizes[t] = n;
        n = usize::from(from[t * (most + 1) + n]);
    }
    (sizes, usd)
}

/// The floor by minute that gives these sizes: as many as will serve within the boot delay.
pub(crate) fn floors(sizes: &[usize], boot_min: usize) -> Vec<usize> {
    let ahead = |t: usize| &sizes[t..sizes.len().min(t + boot_min + 1)];
    (0..sizes.len()).map(|t| ahead(t).iter().copied().max().unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each minute needs a number of instances; each one that lacks costs a dollar.
    struct Need(Vec<usize>);

    const USD: f64 = 0.01;

    impl Costs for Need {
        fn usd(&self, t: usize, n: usize) -> f64 {
            USD * n as f64 + self.0[t].saturating_sub(n) as f64
        }
    }

    fn rules(minutes: usize, serving: usize, boot_min: usize) -> Rules {
        Rules { minutes, most: 5, serving, coming: Vec::new(), boot_min, instance_usd: USD }
    }

    #[test]
    fn orders_in_time_and_holds_over_short_gaps() {
        let need = Need(vec![1, 1, 1, 1, 4, 1, 4, 1, 1, 1, 1, 4]);
        let (sizes, usd) = cheapest(&rules(12, 2, 3), &need);
        // Over one minute it is cheaper to hold than to boot for three; over four it is not.
        assert_eq!(sizes, [1, 1, 1, 1, 4, 4, 4, 1, 1, 1, 1, 4]);
        let serving: usize = sizes.iter().sum();
        assert!((usd - USD * (serving as f64 + 3.0 * 6.0)).abs() < 1e-12, "{usd}");
        assert_eq!(floors(&sizes, 3), [1, 4, 4, 4, 4, 4, 4, 1, 4, 4, 4, 4]);
    }

    #[test]
    fn nothing_comes_before_the_boot_delay_but_what_boots_already() {
        let need = Need(vec![5; 6]);
        assert_eq!(cheapest(&rules(6, 2, 3), &need).0, [2, 2, 2, 5, 5, 5]);
        let coming = Rules { coming: vec![0, 2], ..rules(6, 2, 3) };
        assert_eq!(cheapest(&coming, &need).0, [2, 4, 4, 5, 5, 5]);
    }

    /// Against all sequences of sizes.
    #[test]
    fn equals_brute_force() {
        let need = Need(vec![2, 3, 1, 5, 4, 2, 3]);
        let rules = rules(7, 3, 2);
        let mut best = f64::INFINITY;
        for code in 0..5_usize.pow(7) {
            let sizes: Vec<usize> = (0..7).map(|t| code / 5_usize.pow(t) % 5 + 1).collect();
            let (mut usd, mut before) = (0.0, rules.serving);
            for (t, &n) in sizes.iter().enumerate() {
                let ordered = n.saturating_sub(before);
                usd += if ordered > 0 && t < rules.boot_min { f64::INFINITY } else { 0.0 };
                usd += USD * 2.0 * ordered as f64 + need.usd(t, n);
                before = n;
            }
            best = f64::min(best, usd);
        }
        assert!((cheapest(&rules, &need).1 - best).abs() < 1e-12);
    }
}
