//! Settings of a replica, and the one place where they are checked.

use oncall_core::streams::scramble;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::mutation::Mutation;
use crate::types::{NodeId, Term, Time};

/// Settings of one replica. All replicas of a group share everything but `id`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Config {
    /// This replica: `0..replicas`.
    pub id: NodeId,
    /// Size of the group, 3 or 5; fixed.
    pub replicas: u8,
    /// Key of the election timeouts; groups with different keys do not hold elections in step.
    pub key: u64,
    /// Shortest wait for a leader before an election, in ticks. Also how long a follower that has
    /// heard from a leader refuses to help another one.
    pub election_timeout_min: Time,
    /// Longest wait, in ticks. A leader that no quorum has answered for so long steps down.
    pub election_timeout_max: Time,
    /// A leader sends at least this often, in ticks.
    pub heartbeat_interval: Time,
    /// How much shorter a lease is than `election_timeout_min`, in ticks: covers clocks that run at
    /// different rates.
    pub lease_margin: Time,
    /// A snapshot that was sent is sent again if nothing is heard of it for so long, in ticks.
    pub snapshot_retry: Time,
    /// Entries in one message, at most.
    pub append_entries_max: u32,
    /// Entries on their way to one follower, at most.
    pub inflight_entries_max: u32,
    /// Entries of a leader that wait for their commit, at most; more proposals are refused.
    pub uncommitted_entries_max: u32,
    /// Whether a leader tells followers at once what was committed, or with the next message.
    pub eager_commit: bool,
    /// A fault that is put in on purpose, to see whether the checks find it.
    #[cfg(any(test, feature = "mutation"))]
    #[serde(skip)]
    pub mutation: Option<Mutation>,
}

/// A setting that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{field} is {value}, expected {expected}")]
pub struct ConfigError {
    /// Name of the field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// What would be right.
    pub expected: &'static str,
}

impl Config {
    /// Settings for ticks of a millisecond: elections after 1 to 2 s, a heartbeat every 200 ms.
    pub fn new(id: NodeId, replicas: u8, key: u64) -> Self {
        Self {
            id,
            replicas,
            key,
            election_timeout_min: 1_000,
            election_timeout_max: 2_000,
            heartbeat_interval: 200,
            lease_margin: 100,
            snapshot_retry: 5_000,
            append_entries_max: 256,
            inflight_entries_max: 4_096,
            uncommitted_entries_max: 65_536,
            eager_commit: true,
            #[cfg(any(test, feature = "mutation"))]
            mutation: None,
        }
    }

    /// Checks every field.
    pub fn check(&self) -> Result<(), ConfigError> {
        let rules: [(bool, &'static str, u64, &'static str); 10] = [
            (matches!(self.replicas, 3 | 5), "replicas", self.replicas.into(), "3 or 5"),
            (self.id < self.replicas, "id", self.id.into(), "a number below `replicas`"),
            (self.heartbeat_interval > 0, "heartbeat_interval", self.heartbeat_interval, "above 0"),
            (
                self.election_timeout_min >= self.heartbeat_interval.saturating_mul(2),
                "election_timeout_min",
                self.election_timeout_min,
                "at least twice `heartbeat_interval`",
            ),
            (
                self.election_timeout_max > self.election_timeout_min,
                "election_timeout_max",
                self.election_timeout_max,
                "above `election_timeout_min`",
            ),
            (
                self.lease_margin < self.election_timeout_min,
                "lease_margin",
                self.lease_margin,
                "below `election_timeout_min`",
            ),
            (self.snapshot_retry > 0, "snapshot_retry", self.snapshot_retry, "above 0"),
            (
                self.append_entries_max > 0,
                "append_entries_max",
                self.append_entries_max.into(),
                "above 0",
            ),
            (
                self.inflight_entries_max >= self.append_entries_max,
                "inflight_entries_max",
                self.inflight_entries_max.into(),
                "at least `append_entries_max`",
            ),
            (
                self.uncommitted_entries_max > 0,
                "uncommitted_entries_max",
                self.uncommitted_entries_max.into(),
                "above 0",
            ),
        ];
        match rules.into_iter().find(|rule| !rule.0) {
            Some((_, field, value, expected)) => Err(ConfigError { field, value, expected }),
            None => Ok(()),
        }
    }

    /// Votes that make a majority.
    #[inline]
    pub fn quorum(&self) -> usize {
        usize::from(self.replicas) / 2 + 1
    }

    /// The other replicas.
    #[inline]
    pub fn peers(&self) -> impl Iterator<Item = NodeId> + use<> {
        let id = self.id;
        (0..self.replicas).filter(move |&peer| peer != id)
    }

    /// Wait before the given attempt at an election, in ticks: a function of (key, replica, term,
    /// attempt), so that a replica carries no generator.
    pub fn election_timeout(&self, term: Term, attempt: u64) -> Time {
        let replica = scramble(self.key ^ (u64::from(self.id) + 1).rotate_left(32));
        let drawn = scramble(scramble(replica ^ term).wrapping_add(attempt));
        let span = self.election_timeout_max - self.election_timeout_min + 1;
        self.election_timeout_min + drawn % span
    }

    /// Whether a fault was put in on purpose.
    #[inline]
    #[cfg(any(test, feature = "mutation"))]
    pub(crate) fn mutated(&self, mutation: Mutation) -> bool {
        self.mutation == Some(mutation)
    }

    /// Without the switch there are no such faults, and the compiler drops the branches.
    #[inline]
    #[cfg(not(any(test, feature = "mutation")))]
    #[expect(clippy::unused_self, reason = "the same call with and without the switch")]
    pub(crate) fn mutated(&self, _: Mutation) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Spoil = fn(&mut Config);

    #[test]
    fn every_field_is_checked() {
        let good = Config::new(1, 3, 7);
        assert_eq!(good.check(), Ok(()));
        assert_eq!(Config::new(4, 5, 7).check(), Ok(()));
        let bad: [(&str, Spoil); 10] = [
            ("replicas", |c| c.replicas = 4),
            ("id", |c| c.id = 3),
            ("heartbeat_interval", |c| c.heartbeat_interval = 0),
            ("election_timeout_min", |c| c.election_timeout_min = 399),
            ("election_timeout_max", |c| c.election_timeout_max = 1_000),
            ("lease_margin", |c| c.lease_margin = 1_000),
            ("snapshot_retry", |c| c.snapshot_retry = 0),
            ("append_entries_max", |c| c.append_entries_max = 0),
            ("inflight_entries_max", |c| c.inflight_entries_max = 255),
            ("uncommitted_entries_max", |c| c.uncommitted_entries_max = 0),
        ];
        for (field, spoil) in bad {
            let mut config = good;
            spoil(&mut config);
            assert_eq!(config.check().map_err(|error| error.field), Err(field));
        }
        let error = Config { replicas: 4, ..good }.check().unwrap_err();
        assert_eq!(error.to_string(), "replicas is 4, expected 3 or 5");
    }

    #[test]
    fn timeouts_are_keyed_and_spread() {
        let of = |id, key, term, attempt| Config::new(id, 5, key).election_timeout(term, attempt);
        assert_eq!(of(1, 2, 3, 4), of(1, 2, 3, 4));
        let base = of(1, 2, 3, 4);
        assert!(
            [of(0, 2, 3, 4), of(1, 0, 3, 4), of(1, 2, 0, 4), of(1, 2, 3, 0)]
                .iter()
                .all(|&other| other != base)
        );
        let mut quarters = [0_u32; 4];
        for attempt in 0..4_000 {
            let timeout = of(0, 9, 1, attempt);
            assert!((1_000..=2_000).contains(&timeout));
            quarters[((timeout - 1_000) / 251) as usize] += 1;
        }
        assert!(quarters.iter().all(|&n| (850..1_150).contains(&n)), "{quarters:?}");
    }
}
