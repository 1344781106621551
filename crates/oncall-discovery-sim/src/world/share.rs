//! What a dial that is an absolute rate means in a smaller fleet.
//!
//! The ranges of the dials are those of the full fleet: 83 endpoints/s, 200 connections/s, 200 MB/s. A smaller world
//! takes the parts of them that its shape names, so that a setting which strains the full fleet strains the small
//! one too. Everything that turns a dial into a rate goes through here.

use crate::topology::{Scale, Shape};
use serde::{Deserialize, Serialize};

/// Parts of the full fleet's rates; all 1 at full scale.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Instances: what the fleet costs, and the size of its logs.
    pub fleet: f64,
    /// The pace of rollouts.
    pub pace: f64,
    /// Connections that relays admit.
    pub admission: f64,
    /// The snapshot budget.
    pub snapshots: f64,
    /// Deliveries a second of one relay; a number, not a part.
    pub relay_deliveries_per_s: f64,
    /// What one relay costs, as a part of the full fleet's: `fleet` over the share of relays, so that a value of the
    /// dial costs a small fleet its part of what it costs the full one.
    pub machine: f64,
}

/// Value of the dial `relays_per_region` at which shares are compared.
const RELAYS: f64 = 16.0;

impl Share {
    /// The shares of a fleet.
    pub fn of(shape: &Shape) -> Self {
        let fleet = f64::from(shape.instances) / f64::from(Scale::Full.shape().instances);
        Self {
            fleet,
            pace: shape.pace_share,
            admission: shape.admission_share,
            snapshots: shape.snapshot_share,
            relay_deliveries_per_s: shape.relay_deliveries_per_s,
            machine: fleet / (f64::from(relays(shape, RELAYS)) / RELAYS),
        }
    }
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
        let share = Share::of(&Scale::Full.shape());
        let parts = [share.fleet, share.pace, share.admission, share.snapshots, share.machine];
        assert_eq!(parts.map(|part| part * 1e6), [1e6; 5]);
        assert_eq!(relays(&Scale::Full.shape(), 16.0), 16);
    }

    /// A tenth of the instances with a quarter of the relays: each costs four tenths.
    #[test]
    fn relays_of_a_tenth_cost_a_tenth() {
        let share = Share::of(&Scale::Tenth.shape());
        assert!((share.fleet - 0.1).abs() < 1e-12);
        assert!((share.machine - 0.4).abs() < 1e-12);
        assert_eq!(relays(&Scale::Tenth.shape(), 16.0), 4);
        assert_eq!(relays(&Scale::Small.shape(), 4.0), 2);
    }
}
