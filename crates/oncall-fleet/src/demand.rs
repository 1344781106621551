//! Step 5: what the users ask for.
#![expect(clippy::inline_always, reason = "the body must be compiled for each set of instructions")]

use crate::params::{Demand, Surge};
use oncall_core::draw::{box_muller, poisson};
use oncall_core::{Stream, math};
use std::f64::consts::TAU;

/// Below this mean count a normal number would often be negative, so the count is Poisson.
pub const POISSON_BELOW: f64 = 30.0;

/// Factor of the time of day: `1 + amplitude sin(2 pi (h - rise) / 24)`.
#[inline(always)]
pub fn daily_factor(demand: &Demand, clock_start_h: f64, minute: f64) -> f64 {
    let clock_h = minute * (1.0 / 60.0) + clock_start_h;
    // No shift is so long that the angle would leave the range of the function.
    let (sin, _) = math::sin_cos_normal((clock_h - demand.daily_rise_h) * (TAU / 24.0));
    1.0 + demand.daily_amplitude * sin
}

/// Extra demand of one surge, as a multiple of the usual: rises linearly, then decays.
#[inline(always)]
pub fn surge_extra(surge: &Surge, minute: f64) -> f64 {
    let x = minute - surge.start_min;
    let rising = surge.size * (x / surge.rise_min);
    let falling = surge.size * math::exp((surge.rise_min - x) / surge.decay_min);
    let begun = if x < surge.rise_min { rising } else { falling };
    if x < 0.0 { 0.0 } else { begun }
}

/// Factor of all surges together; they add up.
pub fn surge_factor(surges: &[Surge], minute: u32) -> f64 {
    let minute = f64::from(minute);
    1.0 + surges.iter().fold(0.0, |sum, surge| sum + surge_extra(surge, minute))
}

/// Requests of a minute around a mean count of 30 or more: normal with the Poisson's standard
/// deviation, times a normal factor, rounded, never negative.
#[inline(always)]
pub fn normal_count(mean_count: f64, noise_std: f64, (first, second): (f64, f64)) -> f64 {
    math::round((mean_count + math::sqrt(mean_count) * first) * (1.0 + noise_std * second))
}

/// Requests of a minute around a mean count: [`normal_count`], or Poisson itself for small means.
///
/// One Box-Muller pair a minute: the first value for the count, the second for the factor. A Poisson
/// count takes its uniform numbers after the pair and leaves the first value unused.
pub fn noisy_count(mean_count: f64, noise_std: f64, stream: &mut Stream) -> f64 {
    let first = stream.uniform();
    let pair = box_muller(first, stream.uniform());
    if mean_count < POISSON_BELOW {
        math::round(poisson(stream, mean_count) * (1.0 + noise_std * pair.1))
    } else {
        normal_count(mean_count, noise_std, pair)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Record;
    use oncall_core::streams::Purpose;
    use oncall_core::{EpisodeKey, Generator, Split};

    #[test]
    fn the_day_peaks_at_noon() {
        let demand = Demand::defaults();
        assert_eq!(daily_factor(&demand, 8.0, 0.0), 1.125);
        assert_eq!(daily_factor(&demand, 12.0, 0.0), 1.25);
        assert!((daily_factor(&demand, 8.0, 240.0) - 1.25).abs() < 1e-15);
    }

    #[test]
    fn a_surge_rises_then_decays() {
        let surge = Surge { start_min: 20.5, size: 2.0, rise_min: 4.0, decay_min: 45.0 };
        assert_eq!(surge_extra(&surge, 20.0), 0.0);
        assert_eq!(surge_extra(&surge, 21.0), 0.25);
        assert_eq!(surge_extra(&surge, 24.0), 1.75);
        assert!((surge_extra(&surge, 25.0) - 2.0 * (-0.5_f64 / 45.0).exp()).abs() < 1e-15);
        let jump = Surge { start_min: 3.0, size: 1.0, rise_min: 0.0, decay_min: 45.0 };
        assert_eq!(surge_factor(&[jump, surge], 3), 2.0);
    }

    fn counts(mean: f64, noise_std: f64) -> (f64, f64) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for minute in 0..20_000 {
            let key = EpisodeKey::new(5, 0, Split::Train, Generator::Pcg);
            let x = noisy_count(mean, noise_std, &mut key.stream(Purpose::Demand, minute));
            assert!(x >= 0.0 && x.fract() == 0.0);
            sum += x;
            squares += x * x;
        }
        let found = sum / 20_000.0;
        (found, squares / 20_000.0 - found * found)
    }

    #[test]
    fn counts_have_the_right_moments() {
        // Large mean: variance = mean + (0.02 mean)^2; small mean: Poisson.
        let (mean, variance) = counts(60_000.0, 0.02);
        assert!((mean / 60_000.0 - 1.0).abs() < 1e-3);
        assert!((variance / (60_000.0 + 1200.0 * 1200.0) - 1.0).abs() < 0.05, "{variance}");
        let (mean, variance) = counts(3.0, 0.0);
        assert!((mean - 3.0).abs() < 0.07 && (variance - 3.0).abs() < 0.2, "{mean} {variance}");
        assert_eq!(counts(0.0, 0.02), (0.0, 0.0));
    }
}
