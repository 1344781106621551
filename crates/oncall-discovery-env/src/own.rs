//! What the operator's console knows without a scrape, and the truths of the full view.

use crate::dials;
use oncall_discovery_sim::topology::REGIONS;
use serde::{Deserialize, Serialize};

/// Known without delay.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Own {
    /// Shares of the month's budgets left: failed requests, late withdrawals, late removals.
    pub budgets: [f64; 3],
    /// Running costs so far, dollars.
    pub cost_usd: f64,
    /// Share of each region's proxies that have the dials as wished.
    pub proxies_in_force: [f64; REGIONS],
    /// 1 where the catalog acts on the dials as wished.
    pub catalog_in_force: [f64; REGIONS],
    /// 1 while a rollout is under way.
    pub rollout_running: f64,
    /// Endpoints that rollouts under way still have to replace, over the fleet.
    pub rollout_left: f64,
    /// Minutes to the next rollout.
    pub rollout_next_min: f64,
    /// Its endpoints over the fleet.
    pub rollout_next_share: f64,
    /// Its services over all.
    pub rollout_next_services: f64,
    /// Minutes played.
    pub played_min: f64,
    /// Minutes left.
    pub left_min: f64,
    /// The dials as wished.
    #[serde(with = "array")]
    pub dials: [f64; dials::COUNT],
    /// Truths.
    pub truth: Truth,
}

/// What no operator has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Number of the scenario of a mixture.
    pub scenario: f64,
    /// Dead instances that are READY in the catalog, over the target.
    pub dead_ready: [f64; REGIONS],
    /// Instances that could serve and are UNHEALTHY or EXPIRED, over the target.
    pub alive_out: [f64; REGIONS],
    /// Minutes to the first fault.
    pub to_onset_min: f64,
    /// Faults under way.
    pub faults: f64,
    /// Mean loss of probes in this episode's regime.
    pub probe_loss: f64,
    /// Broken invariants.
    pub violations: f64,
}

impl Default for Own {
    fn default() -> Self {
        Self {
            budgets: [1.0; 3],
            cost_usd: 0.0,
            proxies_in_force: [1.0; REGIONS],
            catalog_in_force: [1.0; REGIONS],
            rollout_running: 0.0,
            rollout_left: 0.0,
            rollout_next_min: 60.0,
            rollout_next_share: 0.0,
            rollout_next_services: 0.0,
            played_min: 0.0,
            left_min: 0.0,
            dials: oncall_discovery::dials::Dials::default().values(),
            truth: Truth::default(),
        }
    }
}

/// Arrays longer than serde's own.
pub(crate) mod array {
    use serde::de::{Error, SeqAccess, Visitor};
    use serde::ser::SerializeTuple;
    use serde::{Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer, const N: usize>(
        values: &[f64; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let mut tuple = serializer.serialize_tuple(N)?;
        for value in values {
            tuple.serialize_element(value)?;
        }
        tuple.end()
    }

    struct Elements<const N: usize>;

    impl<'de, const N: usize> Visitor<'de> for Elements<N> {
        type Value = [f64; N];

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            write!(f, "{N} numbers")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<[f64; N], A::Error> {
            let mut values = [0.0; N];
            for (at, value) in values.iter_mut().enumerate() {
                *value = seq.next_element()?.ok_or_else(|| A::Error::invalid_length(at, &self))?;
            }
            Ok(values)
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[f64; N], D::Error> {
        deserializer.deserialize_tuple(N, Elements::<N>)
    }
}
