//! Reading the discovery world's signals by name.

use super::SPEC;
use std::sync::LazyLock;

/// Regions of the world.
pub(crate) const REGIONS: usize = 3;

macro_rules! places {
    (total: $($total:ident)*; regions: $($region:ident)*) => {
        /// Where the signals that a policy reads stand in a row.
        pub(crate) struct Places {
            $(pub(crate) $total: usize,)*
            $(pub(crate) $region: [usize; REGIONS],)*
        }

        impl Places {
            fn new() -> Self {
                // A name that the world does not have reads as nothing: a test holds that there is none.
                let place = |name: &str| SPEC.signal(name).unwrap_or(usize::MAX);
                Self {
                    $($total: place(stringify!($total)),)*
                    $($region: [0, 1, 2].map(|r| place(&format!("{}_r{r}", stringify!($region)))),)*
                }
            }

            /// All of them, for a test.
            #[cfg(test)]
            fn all(&self) -> Vec<usize> {
                let mut all = vec![$(self.$total),*];
                $(all.extend(self.$region);)*
                all
            }
        }
    };
}

places! {
    total:
        episode_min
        term_changes_10min
        unhealthy_share
        probe_failures_by_node
        probe_failures_by_zone
        probe_failures_by_service
        prober_disagreement
        revision_gaps_per_s
        convergence_s
        rollout_running
        rollout_next_min
        rollout_next_services_share;
    regions:
        catalog_seen
        write_latency_ms_p99
        follower_lag_s_max
        quorum
        ready_share
        probe_failure_share
        connected_share
        failed_share
}

/// The places, found once.
pub(crate) static PLACES: LazyLock<Places> = LazyLock::new(Places::new);

/// One row of signals in natural units.
#[derive(Clone, Copy)]
pub(crate) struct Desk<'a>(pub(crate) &'a [f64]);

impl Desk<'_> {
    /// One value; 0 where a row has none.
    pub(crate) fn get(self, place: usize) -> f64 {
        self.0.get(place).copied().unwrap_or(0.0)
    }

    /// The largest of the regions.
    pub(crate) fn most(self, places: [usize; REGIONS]) -> f64 {
        places.into_iter().map(|place| self.get(place)).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The smallest of the regions.
    pub(crate) fn least(self, places: [usize; REGIONS]) -> f64 {
        places.into_iter().map(|place| self.get(place)).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::View;

    #[test]
    fn the_signals_are_those_of_the_world_and_of_its_operator() {
        let all = PLACES.all();
        assert!(all.len() > 25);
        for place in all {
            let signal = SPEC.signals.get(place).expect("a name of the world");
            assert_eq!(signal.view, View::Operator, "{}", signal.name);
        }
        let row: Vec<f64> = (0..SPEC.signals.len()).map(|index| index as f64).collect();
        let [first, _, last] = PLACES.quorum;
        let desk = Desk(&row);
        assert_eq!(
            (desk.least(PLACES.quorum), desk.most(PLACES.quorum)),
            (first as f64, last as f64)
        );
        assert_eq!(desk.get(usize::MAX), 0.0);
    }
}
