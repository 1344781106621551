//! When the last new request reached an endpoint that was withdrawn or crashed (D15).
//!
//! Requests of proxies that still hold the endpoint are a Poisson stream whose rate falls with each
//! delivery. The last point of such a stream lies before `t` with probability `exp(-area after t)`,
//! so one uniform number and a walk back along the rate give the exact law.

use super::members::ZONES;
use crate::queue::{Micros, S};
use oncall_core::math;
use serde::{Deserialize, Serialize};

/// A clock that runs from an acceptance or a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Whose; the driver's name for it.
    pub key: u32,
    /// The endpoint.
    pub instance: u32,
    /// When it started.
    pub start: Micros,
    /// Zone of the endpoint.
    pub zone: u8,
}

/// Rate at one endpoint of each zone, from the publication of its removal until no connected proxy
/// holds it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Tail {
    /// Epochs before this one hold the endpoints.
    pub before: u32,
    /// A single endpoint that fails or failed, and that some proxies may have ejected; without it,
    /// endpoints that serve.
    pub instance: Option<u32>,
    /// Whether that endpoint fails.
    pub failing: bool,
    /// When the removal was published; before that the tail cannot end.
    pub published: Option<Micros>,
    /// Connected subscriptions that still hold it.
    pub waiting: u32,
    /// A request that is known for sure: the failure at which a proxy ejected the endpoint.
    pub sure: Micros,
    /// Requests a second at one endpoint, now.
    pub rate: [f64; ZONES],
    /// (time, rates from then on); the first is the publication, or the crash.
    pub points: Vec<(Micros, [f32; ZONES])>,
    /// Whose clocks run.
    pub clocks: Vec<Clock>,
}

/// A clock that ran out.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stopped {
    /// Whose.
    pub clock: Clock,
    /// When the removal was published.
    pub published: Micros,
    /// When the last connected proxy applied it.
    pub last_apply: Micros,
    /// The last new request; `None` if there was none after the start.
    pub last_request: Option<Micros>,
    /// Expected long requests in flight at the endpoint at `last_apply`.
    pub in_flight: f64,
}

impl Tail {
    /// Notes the present rate.
    #[inline]
    pub fn note(&mut self, now: Micros) {
        let rate = self.rate.map(|rate| rate.max(0.0) as f32);
        match self.points.last_mut() {
            Some(last) if last.0 == now => last.1 = rate,
            _ => self.points.push((now, rate)),
        }
    }

    /// Stops all clocks at `end`. `uniform(key)` gives each its one draw; long requests are the share
    /// and the mean duration in seconds of those that outlive a drain.
    pub fn stop(
        &self,
        end: Micros,
        uniform: impl Fn(u32) -> f64,
        long: (f64, f64),
        out: &mut Vec<Stopped>,
    ) {
        let published = self.published.unwrap_or(end);
        let mut in_flight = [None; ZONES];
        for &clock in &self.clocks {
            let zone = usize::from(clock.zone);
            let area = -math::ln(1.0 - uniform(clock.key));
            let drawn = self.walk_back(zone, area, end).max((self.sure > 0).then_some(self.sure));
            let last_request = drawn.filter(|&at| at >= clock.start);
            let in_flight = *in_flight[zone].get_or_insert_with(|| self.in_flight(zone, end, long));
            out.push(Stopped { clock, published, last_apply: end, last_request, in_flight });
        }
    }

    /// The time with `area` after it; before the publication the first rate held.
    fn walk_back(&self, zone: usize, mut area: f64, end: Micros) -> Option<Micros> {
        let mut until = end;
        for (from, rate) in self.points.iter().rev() {
            let rate = f64::from(rate[zone]);
            let here = rate * (until - from) as f64 / S as f64;
            if here >= area && rate > 0.0 {
                return Some(until - (area / rate * S as f64) as Micros);
            }
            area -= here;
            until = *from;
        }
        let first = self.points.first().map_or(0.0, |point| f64::from(point.1[zone]));
        let back = if first > 0.0 { area / first * S as f64 } else { return None };
        (back <= until as f64).then(|| until - back as Micros)
    }

    /// Long requests in flight at `end`: exponential durations, started at the rate of the curve.
    fn in_flight(&self, zone: usize, end: Micros, (share, mean_s): (f64, f64)) -> f64 {
        let left = |from: Micros| math::exp(-((end - from) as f64 / S as f64) / mean_s);
        let (mut load, mut left_until) = (0.0, 1.0);
        for (from, rate) in self.points.iter().rev() {
            let left_from = left(*from);
            load += f64::from(rate[zone]) * (left_until - left_from);
            left_until = left_from;
        }
        // Before the publication the first rate had held for long.
        load += self.points.first().map_or(0.0, |point| f64::from(point.1[zone])) * left_until;
        load * mean_s * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tail() -> Tail {
        Tail {
            points: vec![
                (10 * S, [2.0, 0.0, 0.0]),
                (11 * S, [1.0, 0.0, 0.0]),
                (12 * S, [0.0, 0.0, 0.0]),
            ],
            clocks: vec![Clock { key: 0, instance: 0, start: 9 * S, zone: 0 }],
            ..Tail::default()
        }
    }

    /// Against the definition: P(last request <= t) = exp(-area after t), at a few points.
    #[test]
    fn the_law_is_that_of_the_definition() {
        let last = |p: f64| {
            let mut out = Vec::new();
            // The draw is 1 - p, as `stop` takes the logarithm of its complement.
            tail().stop(13 * S, |_| 1.0 - p, (0.1, 10.0), &mut out);
            out[0].last_request
        };
        let at = |seconds: f64| (seconds * S as f64) as Micros;
        let near = |p: f64, seconds: f64| {
            assert!(last(math::exp(-p)).unwrap().abs_diff(at(seconds)) <= 1, "{p}");
        };
        near(0.25, 11.75);
        near(1.0, 11.0);
        near(2.0, 10.5);
        near(4.0, 9.5); // the first rate held before
        assert_eq!(last(math::exp(-5.1)), None, "nothing after the clock's start");
    }

    #[test]
    fn work_in_flight_is_that_of_a_constant_rate() {
        // One request a second for ever, 10 % of them long, mean 10 s: one in flight.
        let mut tail = tail();
        tail.points = vec![(10 * S, [1.0; 3]), (30 * S, [1.0; 3])];
        assert!((tail.in_flight(0, 40 * S, (0.1, 10.0)) - 1.0).abs() < 1e-12);
        // And e^-1 of it ten seconds after the requests end.
        tail.points.push((40 * S, [0.0; 3]));
        assert!((tail.in_flight(0, 50 * S, (0.1, 10.0)) - math::exp(-1.0)).abs() < 1e-12);
    }
}
