//! What overload fails, from copied sets: every order of attempts written out, and one equation solved.

use super::Oracle;
use crate::queue::Micros;

/// The share that overload fails, as long as nothing changes.
#[derive(Debug, Clone, Default)]
pub(super) struct Load {
    over: f64,
    /// Until when it holds; 0 asks for it anew.
    until: Micros,
}

impl Load {
    /// Something changed.
    pub(super) fn changed(&mut self) {
        self.until = 0;
    }
}

impl Oracle<'_> {
    /// The share of attempts at endpoints that serve which fails for want of capacity.
    pub(super) fn overload(&mut self, now: Micros) -> f64 {
        if self.script.capacity <= 0.0 {
            return 0.0;
        }
        if now >= self.load.until {
            // It holds until an ejection ends.
            let ends = self.clients.iter().flat_map(|client| client.ejected_until.iter().copied());
            self.load.until = ends.filter(|&end| end > now).min().unwrap_or(Micros::MAX);
            self.load.over = self.solve(now);
        }
        self.load.over
    }

    fn solve(&self, now: Micros) -> f64 {
        let (mut by_misses, mut live, mut traffic) = ([0.0; 5], 0.0, 0.0);
        for (index, client) in self.clients.iter().enumerate() {
            let serves = |e: &u32| client.ejected_until[*e as usize] <= now && self.serves(*e);
            let good = client.view.iter().filter(|e| serves(e)).count();
            live += client.lambda * good as f64;
            traffic += client.lambda;
            let retries = if client.degraded { 0 } else { usize::from(self.calls.retries) };
            self.attempts(index, now, &mut Vec::new(), (client.lambda, 0, retries), &mut by_misses);
        }
        if traffic <= 0.0 || live <= 0.0 {
            return 0.0;
        }
        let room = self.script.capacity * live / traffic;
        let excess = |over: f64| {
            let misses = over + (1.0 - over) * self.soft;
            let attempts = by_misses.iter().rev().fold(0.0, |sum, rate| sum * misses + rate);
            attempts * (1.0 - over) - room
        };
        if excess(0.0) <= 0.0 {
            return 0.0;
        }
        let (mut low, mut high) = (0.0, 1.0);
        while high - low > 1e-9 {
            let middle = 0.5 * (low + high);
            if excess(middle) > 0.0 { low = middle } else { high = middle }
        }
        low
    }

    fn serves(&self, endpoint: u32) -> bool {
        !self.failing[endpoint as usize] && !self.refused[endpoint as usize]
    }

    /// Attempts at endpoints that serve, by how many of those before them missed: coefficients of a
    /// polynomial in the chance of a miss.
    fn attempts(
        &self,
        index: usize,
        now: Micros,
        tried: &mut Vec<u32>,
        (weight, misses, retries): (f64, usize, usize),
        out: &mut [f64; 5],
    ) {
        let pool = self.pool(index, now, tried);
        let each = weight / pool.len() as f64;
        for endpoint in pool {
            let good = self.serves(endpoint);
            if good {
                out[misses] += each;
            }
            if tried.len() < retries {
                tried.push(endpoint);
                let next = (each, misses + usize::from(good), retries);
                self.attempts(index, now, tried, next, out);
                tried.pop();
            }
        }
    }
}
