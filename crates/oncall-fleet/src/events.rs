//! Step 4: flushes and deploys.

use crate::params::{Deploy, Flush};

/// A set of deploys, one bit each, by index.
pub type DeploySet = u32;

/// Whether the cache is emptied in this minute.
pub fn flushed(flushes: &[Flush], minute: u32) -> bool {
    flushes.iter().any(|flush| flush.minute as u32 == minute)
}

/// Deploys whose minute has come.
pub fn begun(deploys: &[Deploy], minute: u32) -> DeploySet {
    deploys
        .iter()
        .enumerate()
        .filter(|(_, deploy)| deploy.minute <= f64::from(minute))
        .fold(0, |set, (index, _)| set | 1 << index)
}

/// Minutes since the last deploy began; `None` before the first.
pub fn since_deploy_min(deploys: &[Deploy], minute: u32) -> Option<f64> {
    let minute = f64::from(minute);
    deploys
        .iter()
        .filter(|deploy| deploy.minute <= minute)
        .map(|deploy| minute - deploy.minute)
        .reduce(f64::min)
}

/// What the builds do to the traffic of a minute.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Builds {
    /// Share of the traffic on builds that are not retired, good or bad.
    pub new_share: f64,
    /// Share of the traffic on bad builds.
    pub bad_share: f64,
    /// Errors that they add: share of the requests that would not have failed.
    pub error_rate: f64,
    /// CPU time that they add, as a share.
    pub extra_cpu: f64,
}

/// Shares of the builds in a minute. `deploys` are ordered by minute: a later one takes its share
/// `min(1, (t - d + 1) / rollout)` of the traffic from what was there before.
pub fn builds(deploys: &[Deploy], retired: DeploySet, minute: u32) -> Builds {
    let mut found = Builds::default();
    let mut rest = 1.0;
    for (index, deploy) in deploys.iter().enumerate().rev() {
        let age_min = f64::from(minute) - deploy.minute;
        if age_min < 0.0 || retired & (1 << index) != 0 {
            continue;
        }
        let share = rest * ((age_min + 1.0) / deploy.rollout_min).min(1.0);
        rest -= share;
        found.new_share += share;
        if deploy.bad > 0.5 {
            found.bad_share += share;
            found.error_rate += deploy.error_rate * share;
            found.extra_cpu += deploy.extra_cpu * share;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deploy(minute: f64, bad: f64) -> Deploy {
        Deploy { minute, bad, rollout_min: 5.0, error_rate: 0.05, extra_cpu: 0.25 }
    }

    #[test]
    fn the_rollout_is_linear() {
        let deploys = [deploy(10.0, 1.0)];
        let share = |minute| builds(&deploys, 0, minute).bad_share;
        assert_eq!([9, 10, 11, 14, 15, 99].map(share), [0.0, 0.2, 0.4, 1.0, 1.0, 1.0]);
        assert_eq!(builds(&deploys, 1, 14), Builds::default());
        assert_eq!(
            [9, 10, 12].map(|t| since_deploy_min(&deploys, t)),
            [None, Some(0.0), Some(2.0)]
        );
    }

    #[test]
    fn a_later_build_takes_traffic_from_an_earlier_one() {
        let deploys = [deploy(0.0, 1.0), deploy(12.0, 0.0)];
        let found = builds(&deploys, 0, 13);
        assert_eq!(found.new_share, 1.0);
        assert!((found.bad_share - 0.6).abs() < 1e-15);
        assert!((found.error_rate - 0.03).abs() < 1e-15 && (found.extra_cpu - 0.15).abs() < 1e-15);
        assert_eq!(builds(&deploys, 0, 20).bad_share, 0.0);
        // Retiring the good one brings the bad one back.
        assert_eq!(builds(&deploys, 0b10, 20).bad_share, 1.0);
        assert_eq!(begun(&deploys, 11), 0b01);
        assert_eq!(begun(&deploys, 12), 0b11);
    }

    #[test]
    fn a_flush_lasts_its_minute() {
        let flushes = [Flush { minute: 30.0 }, Flush { minute: 33.0 }];
        assert_eq!([29, 30, 31, 33].map(|t| flushed(&flushes, t)), [false, true, false, true]);
    }
}
