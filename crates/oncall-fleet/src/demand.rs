//! Step 5: what the users ask for.

use crate::params::{Demand, Surge};
use oncall_core::draw::{normal_pair, poisson};
use oncall_core::{Stream, math};
use std::f64::consts::TAU;

/// Below this mean count a normal number would often be negative, so the count is Poisson.
const POISSON_BELOW: f64 = 30.0;

/// Factor of the time of day: `1 + amplitude sin(2 pi (h - rise) / 24)`.
pub fn daily_factor(demand: &Demand, clock_start_h: f64, minute: u32) -> f64 {
    let clock_h = f64::from(minute) / 60.0 + clock_start_h;
    1.0 + demand.daily_amplitude * math::sin(TAU * (clock_h - demand.daily_rise_h) / 24.0)
}

/// Extra demand of one surge, as a multiple of the usual: rises linearly, then decays.
pub fn surge_extra(surge: &Surge, minute: u32) -> f64 {
    let x = f64::from(minute) - surge.start_min;
    if x < 0.0 {
        0.0
    } else if x < surge.rise_min {
        surge.size * (x / surge.rise_min)
    } else {
        surge.size * math::exp(-(x - surge.rise_min) / surge.decay_min)
    }
}

/// Factor of all surges together; they add up.
pub fn surge_factor(surges: &[Surge], minute: u32) -> f64 {
    1.0 + surges.iter().map(|surge| surge_extra(surge, minute)).sum::<f64>()
}

/// Requests of a minute around a mean count: normal with the Poisson's standard deviation (Poisson
/// itself for small means), times a normal factor, rounded, never negative.
///
/// One Box-Muller pair a minute: the first value for the count, the second for the factor. A Poisson
/// count takes its uniform numbers after the pair and leaves the first value unused.
pub fn noisy_count(mean_count: f64, noise_std: f64, stream: &mut Stream) -> f64 {
    let (first, second) = normal_pair(stream);
    let count = if mean_count < POISSON_BELOW {
        poisson(stream, mean_count)
    } else {
        mean_count + math::sqrt(mean_count) * first
    };
    (count * (1.0 + noise_std * second)).round().max(0.0)
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
        assert_eq!(daily_factor(&demand, 8.0, 0), 1.125);
        assert_eq!(daily_factor(&demand, 12.0, 0), 1.25);
        assert!((daily_factor(&demand, 8.0, 240) - 1.25).abs() < 1e-15);
    }

    #[test]
    fn a_surge_rises_then_decays() {
        let surge = Surge { start_min: 20.5, size: 2.0, rise_min: 4.0, decay_min: 45.0 };
        assert_eq!(surge_extra(&surge, 20), 0.0);
        assert_eq!(surge_extra(&surge, 21), 0.25);
        assert_eq!(surge_extra(&surge, 24), 1.75);
        assert!((surge_extra(&surge, 25) - 2.0 * (-0.5_f64 / 45.0).exp()).abs() < 1e-15);
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
