//! Views that are too old (R94, R101): the service's policy degrades or refuses, once a second.

use super::World;
use crate::queue::{Micros, S};
use oncall_discovery::dials::Dials;

/// In an outage of this length no ordinary service may be refused for its age (R8, I17).
const OUTAGE_US: Micros = 600 * S;

impl World {
    /// Judges the views of all proxies, if one is old enough to matter.
    pub(crate) fn tend_ages(&mut self) {
        let now = self.shared.now();
        let oldest = self.plane.age_max(now);
        let any = self.plane.traffic.aged.iter().any(|&aged| aged != 0);
        let least = (0..crate::topology::REGIONS)
            .map(|region| {
                let dials = self.proxies_dials(region);
                dials.snapshot_age_max_ordinary_s.min(dials.snapshot_age_max_strict_s)
            })
            .fold(f64::MAX, f64::min);
        if !any && oldest <= Dials::span_s(least).0 {
            return;
        }
        for id in 0..self.plane.proxies.len() {
            let proxy = &self.plane.proxies[id];
            let age = now.saturating_sub(proxy.confirmed);
            let dials = self.proxies_dials(usize::from(proxy.region));
            let over = |max_s: f64| proxy.is_there() && age > Dials::span_s(max_s).0;
            let aged = u8::from(over(dials.snapshot_age_max_strict_s))
                | u8::from(over(dials.snapshot_age_max_ordinary_s)) << 1;
            self.shared.assert(aged & 2 == 0 || age > OUTAGE_US, "I17", || {
                format!("proxy {id}: ordinary services refused at an age of {} s", age / S)
            });
            if self.plane.traffic.aged[id] != aged {
                self.plane.traffic.aged[id] = aged;
                self.plane.retraffic_proxy(&mut self.shared, id);
            }
        }
    }
}
