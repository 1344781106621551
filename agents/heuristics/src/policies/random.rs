//! A random operator, as an untrained policy is one.

use super::fixed::keep;
use crate::board::Clock;
use crate::param::params;
use crate::{Policy, PolicyKey};
use oncall_core::streams::Purpose;
use oncall_core::{Dial, DialKind, EpisodeKey, Generator, Spec, Split};

params! {
    /// How restless the operator is; the defaults are those of `Spec`'s initial logits.
    RandomParams {
        keep: 0.9, 0 ..= 1, ""; "Probability of keeping a dial."
        press: 0.05, 0 ..= 1, ""; "Probability of pressing a button."
    }
}

/// Draws each dial of each step from the episode's stream.
pub(crate) struct Random {
    params: RandomParams,
    dials: Vec<Dial>,
    clock: Clock,
    key: EpisodeKey,
}

impl Random {
    pub(crate) fn new(spec: &Spec, params: RandomParams) -> Self {
        let (dials, clock) = (spec.dials.clone(), Clock::of(spec));
        Self { params, dials, clock, key: EpisodeKey::default() }
    }
}

impl Policy for Random {
    fn reset(&mut self, key: PolicyKey) {
        // The purpose keeps this stream apart from the world's, so the split does not matter.
        self.key = EpisodeKey::new(key.seed, key.episode, Split::Train, Generator::Pcg);
    }

    fn act(&mut self, signals: &[f64], action: &mut [f64]) {
        let mut stream = self.key.stream(Purpose::Policy, self.clock.step(signals));
        for (out, dial) in action.iter_mut().zip(&self.dials) {
            // Two numbers for every dial, used or not: a dial's draw never shifts another one's.
            let (first, second) = (stream.uniform(), stream.below(dial.stops.len()));
            let acts = match dial.kind {
                DialKind::Press => first < self.params.press,
                _ => first >= self.params.keep,
            };
            *out = if acts { dial.stops[second] } else { keep(dial) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::DIALS;
    use crate::policies::testing::{Row, act, policy};
    use oncall_fleet::dials::index;

    fn play(seed: u64, minutes: impl Iterator<Item = u32>) -> Vec<(u32, Vec<u64>)> {
        let mut random = policy("random");
        random.reset(PolicyKey { seed, episode: 2 });
        let mut played: Vec<(u32, Vec<u64>)> = minutes
            .map(|minute| {
                let action = act(&mut *random, &Row::quiet(minute));
                (minute, action.map(f64::to_bits).to_vec())
            })
            .collect();
        played.sort();
        played
    }

    #[test]
    fn a_seed_fixes_the_actions_whatever_the_order() {
        assert_eq!(play(3, 0..50), play(3, (0..50).rev()));
        assert_ne!(play(3, 0..50), play(4, 0..50));
    }

    #[test]
    fn defaults_are_the_initial_logits_of_the_spec() {
        let defaults: Vec<f64> = RandomParams::table().iter().map(|p| p.default.unwrap()).collect();
        for dial in DIALS.iter() {
            let zero = dial.initial_logit().exp();
            let zero = zero / (zero + dial.stops.len() as f64);
            let expected =
                if dial.kind == DialKind::Press { 1.0 - defaults[1] } else { defaults[0] };
            assert!((zero - expected).abs() < 1e-12, "{}", dial.name);
        }
    }

    #[test]
    fn shares_are_as_asked() {
        let mut random = policy("random:keep=0.7,press=0.2");
        let (mut kept, mut pressed) = (0, 0);
        for minute in 0..4000 {
            let action = act(&mut *random, &Row::quiet(minute));
            kept += i32::from(action[index::CACHE_TTL_S].is_nan());
            pressed += i32::from(action[index::ROLLBACK] > 0.5);
        }
        // Five standard deviations.
        assert!(
            (2655..=2945).contains(&kept) && (674..=926).contains(&pressed),
            "{kept} {pressed}"
        );
    }
}
