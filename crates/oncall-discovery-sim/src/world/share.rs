//! What a dial that is an absolute rate means in a smaller fleet.
//!
//! The ranges of the dials are those of the full fleet: 83 endpoints/s, 200 connections/s, 200 MB/s. A smaller world
//! takes the part of them that leaves the same relation between load and capacity, so that a setting which strains
//! the full fleet strains the small one too.

use crate::topology::{Scale, Shape};
use serde::{Deserialize, Serialize};

/// Parts of the full fleet's rates; all 1 at full scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Instances: rollout pace, churn, prober work, dollars.
    pub fleet: f64,
    /// Proxies: connections that relays admit.
    pub proxies: f64,
    /// Bytes of all views: the snapshot budget.
    pub views: f64,
    /// Deliveries of a spread rollout (pace times subscribers of a cell): what all relays together can send.
    pub deliveries: f64,
    /// Deliveries a second of one relay, as a part of the full fleet's: `deliveries` over the share of relays.
    pub relay: f64,
    /// What one relay costs, as a part of the full fleet's: `fleet` over the share of relays.
    pub machine: f64,
}

impl Share {
    /// The shares of a fleet.
    pub fn of(shape: &Shape) -> Self {
        let full = Scale::Full.shape();
        let fleet = f64::from(shape.instances) / f64::from(full.instances);
        let proxies = f64::from(shape.nodes) / f64::from(full.nodes);
        let follows = f64::from(shape.subscriptions.min(shape.services));
        let subscribers = |nodes: f64, follows: f64, services: u16| nodes * follows / f64::from(services);
        let of_cell = subscribers(f64::from(shape.nodes), follows, shape.services)
            / subscribers(f64::from(full.nodes), f64::from(full.subscriptions), full.services);
        let endpoints = |shape: &Shape| f64::from(shape.instances) / f64::from(shape.services);
        let views = proxies * follows / f64::from(full.subscriptions) * endpoints(shape)
            / endpoints(&full);
        let deliveries = fleet * of_cell;
        let relays = f64::from(relays(shape, full_relays())) / full_relays();
        Self { fleet, proxies, views, deliveries, relay: deliveries / relays, machine: fleet / relays }
    }
}

fn full_relays() -> f64 {
    16.0
}

/// Relays of a region for a value of the dial: the shape's share of it, at least two, so that a proxy always has
/// another one to go to.
pub fn relays(shape: &Shape, dial: f64) -> u16 {
    ((dial * shape.relay_share).round() as u16).max(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_fleet_takes_the_dials_as_they_are() {
        let one = Share { fleet: 1.0, proxies: 1.0, views: 1.0, deliveries: 1.0, relay: 1.0, machine: 1.0 };
        assert_eq!(Share::of(&Scale::Full.shape()), one);
        assert_eq!(relays(&Scale::Full.shape(), 16.0), 16);
    }

    /// A tenth of everything with a quarter of the relays, each of which is then four tenths of one.
    #[test]
    fn a_tenth_is_a_tenth() {
        let tenth = Share::of(&Scale::Tenth.shape());
        for part in [tenth.fleet, tenth.proxies, tenth.views, tenth.deliveries] {
            assert!((part - 0.1).abs() < 1e-12, "{tenth:?}");
        }
        assert!((tenth.relay - 0.4).abs() < 1e-12);
        assert_eq!(relays(&Scale::Tenth.shape(), 16.0), 4);
    }
}
