//! What must hold of the test world: at every moment, over every interval, and once the faults are over.

use super::world::{Faults, World, relay};
use crate::mutants::Mutants;
use crate::types::{Metric, Peer, Time};

impl World {
    /// What must hold of a proxy at every moment.
    pub(super) fn check(&mut self, at: u16) {
        let node = &self.proxies[usize::from(at)];
        for &cell in &self.cells {
            let Some(place) = node.sub(cell).unwrap().cursor() else { continue };
            let before = self.places.insert((at, cell), place);
            assert!(before.is_none_or(|before| before <= place), "I2: {before:?} to {place:?}");
            let published = self.source.at(cell, place).expect("no head that never was");
            let set = node.view(cell).unwrap().set().endpoints();
            assert_eq!(set, published, "I4 and I5: proxy {at}, {cell:?} at {place:?}");
            let (out, share) = (node.ejected(self.now, cell), node.dials().eject.share_max_pct);
            assert!(out * 100 <= u32::from(share) * set.len() as u32, "{out} of {} out", set.len());
            for endpoint in set {
                let seen = self.seen.entry((at, cell, endpoint.instance)).or_default();
                *seen = endpoint.generation.max(*seen);
            }
        }
        if node.connected() {
            assert!(node.repairs_are_scheduled(), "I3: an open repair that nothing will repeat");
        }
    }

    /// Snapshots and streams of each relay stay inside its budgets, in every interval (I18).
    pub(crate) fn check_budgets(&self) {
        let ids: Vec<Peer> = (0..self.relays.len() as u16).map(relay).collect();
        for id in ids {
            let of = |(at, from, n): &(Time, Peer, u64)| (*from == id).then_some((*at, *n));
            let sent: Vec<(Time, u64)> = self.snapshots.iter().filter_map(of).collect();
            let (rate, burst) =
                (self.server.snapshot_bytes_per_s, self.server.snapshot_bytes_burst);
            within(&sent, rate, burst, "snapshot bytes");
            let of = |(at, from): &(Time, Peer)| (*from == id).then_some((*at, 1));
            let opened: Vec<(Time, u64)> = self.welcomes.iter().filter_map(of).collect();
            within(&opened, self.server.connects_per_s, self.server.connects_burst, "connects");
        }
    }

    /// Faults are over and everything is up: whoever is behind catches up within a bound (I19, I20).
    pub(crate) fn heal(&mut self) {
        self.faults = Faults::default();
        self.quorum = true;
        if self.publisher.is_none() {
            self.publisher_up();
        }
        for at in 0..self.relays.len() as u16 {
            if self.relays[usize::from(at)].is_none() {
                self.relay_up(at);
            }
        }
    }

    pub(crate) fn assert_converged(&self) {
        for (at, node) in self.proxies.iter().enumerate() {
            assert!(node.connected(), "I19: proxy {at} has no stream: {:?}", node.link());
            assert_eq!(node.open_repairs(), 0, "I19: proxy {at} has open repairs");
            assert_eq!(node.policy_version(), self.policy.version, "proxy {at}");
            for &cell in &self.cells {
                let place = node.sub(cell).unwrap().cursor();
                assert_eq!(place, Some(self.source.head(cell)), "I19: proxy {at}, {cell:?}");
                let view = node.view(cell).unwrap();
                assert_eq!(view.set().endpoints(), self.source.set(cell), "I19: proxy {at}");
                // Fenced off is only who was there in a newer generation; the newest of all is routable.
                for endpoint in view.set().endpoints() {
                    let newest = self.source.newest(cell, endpoint.instance);
                    let routable = view.routable().any(|other| other == endpoint);
                    assert!(routable || Some(endpoint.generation) < newest, "{endpoint:?}");
                }
            }
        }
    }

    pub(crate) fn edge(&self, metric: Metric) -> u64 {
        self.edge.get(&metric).copied().unwrap_or(0)
    }

    pub(crate) fn tier(&self, metric: Metric) -> u64 {
        self.tier.get(&metric).copied().unwrap_or(0)
    }

    pub(crate) fn mutants(&self) -> Mutants {
        self.mutants
    }
}

fn within(sent: &[(Time, u64)], rate_per_s: u64, burst: u64, what: &str) {
    let largest = sent.iter().map(|(_, n)| *n).max().unwrap_or(0);
    let allowed_burst = burst + largest.saturating_sub(burst);
    for (from, &(start, _)) in sent.iter().enumerate() {
        let mut sum = 0;
        for &(at, n) in &sent[from..] {
            sum += n;
            let earned = u128::from(rate_per_s) * u128::from(at.since(start).0) / 1_000_000;
            assert!(
                u128::from(sum) <= u128::from(allowed_burst) + earned + 1,
                "I18: {what}: {sum}"
            );
        }
    }
}
