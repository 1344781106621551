//! What the services of a world share, and where each finds its constants.

use super::block::{Column, LANES, Room};
use crate::params::{Constants, Params, Target};
use crate::world::FleetWorld;
use oncall_core::{EpisodeKey, Generator};

/// Where a lane finds its constants.
pub(crate) trait ConstantsAt: Copy {
    /// The constants of a lane. Of the copy only what is used is ever read.
    fn at(&self, lane: usize) -> Constants;
}

/// The same for all.
#[derive(Clone, Copy)]
pub(crate) struct Same<'a>(pub(crate) &'a Constants);

impl ConstantsAt for Same<'_> {
    #[inline(always)]
    fn at(&self, _lane: usize) -> Constants {
        *self.0
    }
}

/// A column for each.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a>(pub(crate) &'a [Column; Constants::COUNT]);

impl ConstantsAt for Own<'_> {
    #[inline(always)]
    fn at(&self, lane: usize) -> Constants {
        // In range already; this way the compiler knows.
        Constants::gather(self.0, lane % LANES)
    }
}

/// What the services of a world share.
#[derive(Debug, Clone)]
pub(crate) struct Scene {
    /// Of each scenario: whether it hides the truth about builds, and its series of demand.
    variants: Vec<(bool, Option<Vec<f64>>)>,
    pub(crate) hides_truth: bool,
    pub(crate) has_series: bool,
    pub(crate) generator: Generator,
    pub(crate) pinned_rps: Option<Vec<f64>>,
    /// The constants, if they are the same for all services.
    pub(crate) constants: Option<Constants>,
    pub(crate) room: Room,
}

fn held(series: &[f64], minute: u32) -> f64 {
    series.get(minute as usize).or(series.last()).copied().unwrap_or(0.0)
}

impl Scene {
    pub(crate) fn new(fleet: &FleetWorld) -> Self {
        let all = fleet.variants();
        let draws_constants = |params: &Params| {
            params.draws.iter().any(|(target, _)| matches!(target, Target::Constant(..)))
        };
        let differs = all.len() > 1 || all.iter().any(draws_constants);
        let most = |count: fn(&Params) -> usize| all.iter().map(count).max().unwrap_or(0);
        Self {
            variants: all.iter().map(|p| (p.hide_build_truth, p.series_rps.clone())).collect(),
            hides_truth: all.iter().any(|params| params.hide_build_truth),
            has_series: all.iter().any(|params| params.series_rps.is_some()),
            generator: all[0].generator,
            pinned_rps: fleet.pinned().map(<[f64]>::to_vec),
            constants: (!differs).then(|| all[0].numbers.constants),
            room: Room {
                surges: most(|params| params.numbers.surges.len()),
                deploys: most(|params| params.numbers.deploys.len()),
                flushes: most(|params| params.numbers.flushes.len()),
                constants: differs,
            },
        }
    }

    /// Whether a scenario hides the truth about its builds.
    pub(crate) fn hides(&self, variant: usize) -> bool {
        self.variants[variant].0
    }

    /// Demand of a scenario's series in a minute, if it has one.
    pub(crate) fn series(&self, variant: usize, minute: u32) -> Option<f64> {
        self.variants[variant].1.as_deref().map(|series| held(series, minute))
    }

    /// Pinned demand of a minute.
    pub(crate) fn pinned(&self, minute: u32) -> f64 {
        self.pinned_rps.as_deref().map_or(0.0, |rates| held(rates, minute))
    }

    /// A key of the default generator.
    #[inline(always)]
    pub(crate) fn pcg_key(hash: u64) -> EpisodeKey {
        EpisodeKey::pcg(hash)
    }
}
