//! Noise by key: every draw is a function of (episode, what it is for, whose it is, which one).
//!
//! Nothing is drawn from a running generator, so removing one fault from a schedule shifts no other
//! draw, and a replay needs no generator state.

use oncall_core::math;
use oncall_core::streams::{EpisodeKey, Purpose, mix};
use serde::{Deserialize, Serialize};

/// What a draw is for. The numbers are part of the format: never reuse or reorder them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub enum Draw {
    /// Placement of instances, subscriptions, traffic.
    Topology = 1,
    /// First hop, consensus leader to relay.
    HopRelay = 2,
    /// Second hop, relay to proxy.
    HopProxy = 3,
    /// Loss of one probe.
    ProbeLoss = 4,
    /// Jitter of one probe.
    ProbeJitter = 5,
    /// Phase of an instance's probes.
    ProbePhase = 6,
    /// State changes of a bursty channel.
    Burst = 7,
    /// The k-th consecutive failure of a (proxy, endpoint) pair.
    Ejection = 8,
    /// Last new request of a withdrawal.
    LastRequest = 9,
    /// Back-off of a reconnecting proxy.
    Backoff = 10,
    /// Election timeouts.
    Election = 11,
    /// Delay of a message between replicas.
    Replica = 12,
    /// What a fault hits.
    Fault = 13,
    /// Order and times of a rollout.
    Rollout = 14,
    /// Start and boot times of new instances.
    Boot = 15,
    /// Ordinary churn.
    Churn = 16,
    /// Requests, one by one.
    Request = 17,
    /// Choice of an endpoint for a request.
    Pick = 18,
    /// Durations of requests.
    Duration = 19,
    /// A wave's permutation.
    Wave = 20,
    /// Schedules of the fuzzer.
    Fuzz = 21,
    /// Renewals of leases.
    Renewal = 22,
}

/// The noise of one episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noise(u64);

const INV_2_53: f64 = 1.0 / 9_007_199_254_740_992.0;

impl Noise {
    /// The network noise of an episode.
    pub fn new(key: EpisodeKey) -> Self {
        Self(mix(key.bits().0, Purpose::Network as u64))
    }

    /// 64 random bits.
    #[expect(
        clippy::inline_always,
        reason = "loops over it are compiled for each set of instructions"
    )]
    #[inline(always)]
    pub fn word(self, draw: Draw, entity: u64, index: u64) -> u64 {
        mix(mix(self.0 ^ (draw as u64) << 56, entity), index)
    }

    /// The words of one entity: [`Noise::word`] for many indices.
    #[inline]
    pub(crate) fn words(self, draw: Draw, entity: u64) -> impl Fn(u64) -> u64 {
        let entity = mix(self.0 ^ (draw as u64) << 56, entity);
        move |index| mix(entity, index)
    }

    /// Uniform in [0, 1).
    #[inline]
    pub fn uniform(self, draw: Draw, entity: u64, index: u64) -> f64 {
        (self.word(draw, entity, index) >> 11) as f64 * INV_2_53
    }

    /// A whole number below `count`; 0 if `count` is 0.
    #[inline]
    pub fn below(self, draw: Draw, entity: u64, index: u64, count: u64) -> u64 {
        ((u128::from(self.word(draw, entity, index)) * u128::from(count)) >> 64) as u64
    }

    /// Exponential with mean 1.
    #[inline]
    pub fn exponential(self, draw: Draw, entity: u64, index: u64) -> f64 {
        -math::ln(1.0 - self.uniform(draw, entity, index))
    }

    /// Sum of `shape` exponentials of mean 1 (Erlang).
    pub fn erlang(self, draw: Draw, entity: u64, index: u64, shape: u32) -> f64 {
        let mut product = 1.0;
        for part in 0..u64::from(shape) {
            product *= 1.0 - self.uniform(draw, entity, index.wrapping_mul(16).wrapping_add(part));
        }
        -math::ln(product)
    }
}

/// Two indices as one entity.
#[inline]
pub fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::{Generator, Split};

    fn noise() -> Noise {
        Noise::new(EpisodeKey::new(3, 0, Split::Train, Generator::Pcg))
    }

    #[test]
    fn moments_are_right() {
        let n = 40_000;
        let mean = |draw: &dyn Fn(u64) -> f64| (0..n).map(draw).sum::<f64>() / n as f64;
        let noise = noise();
        assert!((mean(&|i| noise.uniform(Draw::Fault, 1, i)) - 0.5).abs() < 5.0 * 0.00145);
        assert!((mean(&|i| noise.exponential(Draw::Fault, i, 1)) - 1.0).abs() < 5.0 * 0.005);
        let erlang = mean(&|i| noise.erlang(Draw::Ejection, i, 0, 3));
        assert!((erlang - 3.0).abs() < 5.0 * 0.0087, "{erlang}");
        let tenth = mean(&|i| f64::from(u8::from(noise.below(Draw::Fault, 2, i, 10) == 9)));
        assert!((tenth - 0.1).abs() < 5.0 * 0.0015);
        assert_eq!(noise.below(Draw::Fault, 0, 0, 0), 0);
    }

    #[test]
    fn every_part_of_the_key_counts() {
        let noise = noise();
        let other = Noise::new(EpisodeKey::new(4, 0, Split::Train, Generator::Pcg));
        let word = noise.word(Draw::Fault, 5, 6);
        assert_ne!(word, noise.word(Draw::Boot, 5, 6));
        assert_ne!(word, noise.word(Draw::Fault, 6, 5));
        assert_ne!(word, noise.word(Draw::Fault, 5, 7));
        assert_ne!(word, other.word(Draw::Fault, 5, 6));
        assert_eq!(word, noise.word(Draw::Fault, 5, 6));
    }
}
