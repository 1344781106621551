//! The naive oracle: copied endpoint sets, requests one by one. What the ledger is held against.
//!
//! It shares no arithmetic with the ledger: every subscription keeps its own list of endpoints, every
//! request is drawn, tried and retried, every failure counted. Slow, and plainly right.

mod load;
mod script;

pub use script::{Op, Script, Shape, figures};

use crate::ledger::{Calls, Counts, REMOTE};
use crate::noise::{Draw, Noise, pair};
use crate::queue::{Micros, S};

/// One subscription as a list.
#[derive(Debug, Clone)]
struct Client {
    zone: u8,
    online: bool,
    /// One attempt and no more.
    degraded: bool,
    lambda: f64,
    view: Vec<u32>,
    /// Consecutive failures and ejections by endpoint.
    failures: Vec<u32>,
    ejections: Vec<u32>,
    ejected_until: Vec<Micros>,
    next: Micros,
    requests: u64,
}

/// What came out of one run.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// All requests.
    pub counts: Counts,
    /// By withdrawn endpoint: seconds from the withdrawal to its last request, and whether there was one.
    pub last_s: Vec<f64>,
    /// Ejections.
    pub ejections: f64,
}

/// Plays a script and samples every request.
pub struct Oracle<'a> {
    script: &'a Script,
    calls: Calls,
    noise: Noise,
    clients: Vec<Client>,
    failing: Vec<bool>,
    refused: Vec<bool>,
    soft: f64,
    load: load::Load,
    draws: u64,
    stale_since: Vec<Option<Micros>>,
    last: Vec<Option<Micros>>,
    out: Outcome,
}

impl<'a> Oracle<'a> {
    /// A fresh run with its own requests.
    pub fn new(script: &'a Script, calls: Calls, noise: Noise) -> Self {
        let endpoints = script.zones.len();
        let client = |index: usize| Client {
            zone: script.subs[index].0,
            online: true,
            degraded: false,
            lambda: f64::from(script.subs[index].1) / 1e6,
            view: Vec::new(),
            failures: vec![0; endpoints],
            ejections: vec![0; endpoints],
            ejected_until: vec![0; endpoints],
            next: 0,
            requests: 0,
        };
        let mut oracle = Self {
            script,
            calls,
            noise,
            clients: (0..script.subs.len()).map(client).collect(),
            failing: vec![false; endpoints],
            refused: vec![false; endpoints],
            soft: 0.0,
            load: load::Load::default(),
            draws: 0,
            stale_since: vec![None; endpoints],
            last: vec![None; endpoints],
            out: Outcome::default(),
        };
        for index in 0..oracle.clients.len() {
            oracle.draw_next(index, 0);
        }
        oracle
    }

    /// Plays everything.
    pub fn run(mut self) -> Outcome {
        for (at, op) in &self.script.ops {
            self.requests_until(*at);
            self.play(op, *at);
        }
        self.requests_until(self.script.end);
        for (endpoint, since) in self.stale_since.iter().enumerate() {
            let Some(since) = *since else { continue };
            let last = self.last[endpoint].filter(|&at| at >= since).unwrap_or(since);
            self.out.last_s.push((last - since) as f64 / S as f64);
        }
        self.out
    }

    fn play(&mut self, op: &Op, now: Micros) {
        self.load.changed();
        match op {
            Op::Soft(soft) => self.soft = *soft,
            Op::Refused(endpoint, refused) => self.refused[*endpoint as usize] = *refused,
            Op::Degraded(sub, degraded) => self.clients[*sub].degraded = *degraded,
            Op::Publish { .. } => {}
            Op::Withdraw(endpoint) => {
                self.stale_since[*endpoint as usize] = Some(now);
                self.last[*endpoint as usize] = None;
            }
            Op::Apply { sub, seq } => {
                self.clients[*sub].view.clone_from(&self.script.sets[*seq as usize]);
                self.clients[*sub].online = true;
            }
            Op::Failing(endpoint, failing) => self.failing[*endpoint as usize] = *failing,
            Op::Online(sub, online) => self.clients[*sub].online = *online,
            Op::Lambda(sub, lambda) => {
                self.clients[*sub].lambda = f64::from(*lambda) / 1e6;
                self.draw_next(*sub, now);
            }
        }
    }

    fn draw_next(&mut self, index: usize, now: Micros) {
        let client = &mut self.clients[index];
        client.requests += 1;
        let gap = self.noise.exponential(Draw::Request, index as u64, client.requests);
        client.next = if client.lambda > 0.0 {
            now + (gap / client.lambda * S as f64) as Micros
        } else {
            Micros::MAX
        };
    }

    /// All requests before `limit`, in the order of their times: what one changes, the next one meets.
    fn requests_until(&mut self, limit: Micros) {
        loop {
            let next = (0..self.clients.len()).min_by_key(|&index| self.clients[index].next);
            let Some(index) = next.filter(|&index| self.clients[index].next < limit) else {
                return;
            };
            let now = self.clients[index].next;
            self.request(index, now);
            self.draw_next(index, now);
        }
    }

    fn chance(&mut self, chance: f64) -> bool {
        self.draws += 1;
        chance > 0.0 && self.noise.uniform(Draw::Pick, u64::MAX, self.draws) < chance
    }

    fn request(&mut self, index: usize, now: Micros) {
        self.out.counts.requests += 1.0;
        let over = self.overload(now);
        let mut tried: Vec<u32> = Vec::new();
        let mut last_refused = false;
        loop {
            let Some(endpoint) = self.pick(index, now, &tried) else {
                self.end(last_refused, true);
                return;
            };
            if !tried.is_empty() {
                self.out.counts.retries += 1.0;
            }
            let e = endpoint as usize;
            if self.stale_since[e].is_some() {
                self.out.counts.stale += 1.0;
            }
            if self.clients[index].online {
                self.last[e] = self.last[e].max(Some(now));
            }
            if self.clients[index].zone == REMOTE {
                self.out.counts.cross_region += 1.0;
            }
            last_refused = false;
            if self.failing[e] {
                self.out.counts.failures += 1.0;
                self.fail(index, e, now);
            } else if self.refused[e] {
                self.out.counts.failures += 1.0;
                last_refused = true;
            } else {
                self.out.counts.live += 1.0;
                let soft = self.soft;
                if self.chance(over) {
                    self.out.counts.overloaded += 1.0;
                } else if self.chance(soft) {
                    self.out.counts.soft += 1.0;
                } else {
                    self.out.counts.served += 1.0;
                    self.clients[index].failures[e] = 0;
                    return;
                }
                self.fail(index, e, now);
            }
            tried.push(endpoint);
            let retries = if self.clients[index].degraded { 0 } else { self.calls.retries };
            if tried.len() > usize::from(retries) {
                // Nothing left to try is another answer than a failure (D20).
                let none = self.pick(index, now, &tried).is_none();
                self.end(last_refused, none);
                return;
            }
        }
    }

    fn end(&mut self, refused: bool, none_left: bool) {
        if refused {
            self.out.counts.auth_refused += 1.0;
        } else if none_left {
            self.out.counts.no_backend += 1.0;
        } else {
            self.out.counts.failed += 1.0;
        }
    }

    fn fail(&mut self, index: usize, endpoint: usize, now: Micros) {
        let client = &mut self.clients[index];
        client.failures[endpoint] += 1;
        if client.failures[endpoint] < u32::from(self.calls.eject_after) {
            return;
        }
        let ejected =
            client.view.iter().filter(|&&other| client.ejected_until[other as usize] > now).count();
        let share = self.calls.eject_share * client.view.len() as f64;
        if (ejected + 1) as f64 <= share && client.ejected_until[endpoint] <= now {
            client.ejections[endpoint] += 1;
            client.ejected_until[endpoint] =
                now + self.calls.eject_base_us * u64::from(client.ejections[endpoint]);
            client.failures[endpoint] = 0;
            self.out.ejections += 1.0;
            self.load.changed();
        }
    }

    /// Candidates of the next attempt.
    fn pool(&self, index: usize, now: Micros, tried: &[u32]) -> Vec<u32> {
        let client = &self.clients[index];
        let open = |endpoint: &&u32| {
            !tried.contains(endpoint) && client.ejected_until[**endpoint as usize] <= now
        };
        let near = |endpoint: &&u32| self.script.zones[**endpoint as usize] == client.zone;
        let mut pool: Vec<u32> = client.view.iter().filter(open).filter(near).copied().collect();
        if pool.is_empty() {
            pool = client.view.iter().filter(open).copied().collect();
        }
        pool
    }

    fn pick(&self, index: usize, now: Micros, tried: &[u32]) -> Option<u32> {
        let client = &self.clients[index];
        let pool = self.pool(index, now, tried);
        let draw = pair(index as u32, tried.len() as u32);
        let at = self.noise.below(Draw::Pick, draw, client.requests, pool.len() as u64);
        pool.get(at as usize).copied()
    }
}
