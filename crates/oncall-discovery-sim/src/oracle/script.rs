//! Random trajectories of one cell that both the ledger and the oracle can play.

use super::{Calls, Outcome};
use crate::ledger::{Clock, Counts, Ejection, Ledger, REMOTE, Setup, Sub, ZONES};
use crate::noise::{Draw, Noise};
use crate::queue::{Micros, Queue, S};

/// One thing that happens to the cell.
#[derive(Debug, Clone, PartialEq)]
pub enum Op {
    /// A set is published.
    Publish {
        /// New endpoints.
        added: Vec<u32>,
        /// Endpoints that leave.
        removed: Vec<u32>,
    },
    /// The catalog accepts that an endpoint leaves READY.
    Withdraw(u32),
    /// A subscription applies an epoch.
    Apply {
        /// Which.
        sub: usize,
        /// Epoch.
        seq: u32,
    },
    /// An endpoint starts or stops to fail.
    Failing(u32, bool),
    /// A stream breaks or stands again.
    Online(usize, bool),
    /// A subscription's traffic changes, micro-requests/s.
    Lambda(usize, u32),
    /// A dependency fails that share of the attempts from now on.
    Soft(f64),
    /// The identity of an endpoint is revoked, or given again.
    Refused(u32, bool),
    /// A subscription's view is too old to retry on, or is no longer.
    Degraded(usize, bool),
}

/// What kind of trajectory to draw.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Subscriptions.
    pub subs: usize,
    /// Endpoints at the start.
    pub endpoints: u32,
    /// Publications.
    pub publications: u32,
    /// Seconds between publications, on average.
    pub gap_s: f64,
    /// Chance of a crash (and of a recovery) at each publication.
    pub crash: f64,
    /// Chance that a delivery is late by tens of seconds: the stream is broken.
    pub offline: f64,
    /// Load of the endpoints at the start, of what they can take; 0 if they can take everything.
    pub load: f64,
    /// Chance at each publication that a dependency goes bad for some seconds.
    pub soft: f64,
    /// Chance at each publication that an identity is revoked, and that a view grows too old.
    pub refuse: f64,
}

/// A trajectory.
#[derive(Debug, Clone)]
pub struct Script {
    /// Zone of each endpoint that ever is.
    pub zones: Vec<u8>,
    /// Caller class and traffic of each subscription.
    pub subs: Vec<(u8, u32)>,
    /// What happens.
    pub ops: Vec<(Micros, Op)>,
    /// The published sets by epoch.
    pub sets: Vec<Vec<u32>>,
    /// When it ends.
    pub end: Micros,
    /// Attempts a second that one endpoint can take; 0 for any number.
    pub capacity: f64,
}

impl Script {
    /// Draws a trajectory.
    pub fn draw(shape: Shape, noise: Noise) -> Self {
        let u = |entity: u64, index: u64| noise.uniform(Draw::Topology, entity, index);
        let zone = |id: u32| (noise.word(Draw::Topology, 1, u64::from(id)) % ZONES as u64) as u8;
        let subs: Vec<(u8, u32)> = (0..shape.subs as u64)
            .map(|i| ((noise.word(Draw::Topology, 2, i) % 4) as u8, (u(3, i) * 2e6) as u32 + 1))
            .map(|(caller, lambda)| (caller.min(REMOTE), lambda))
            .collect();
        let mut queue = Queue::new();
        let first: Vec<u32> = (0..shape.endpoints).collect();
        let mut drawn = Drawn {
            noise,
            born: Vec::new(),
            set: Vec::new(),
            sets: vec![vec![]],
            next: shape.endpoints,
        };
        drawn.publish(&mut queue, &shape, 0, first, Vec::new());
        let (mut now, mut last_published) = (S, 0);
        for step in 0..u64::from(shape.publications) {
            now += (noise.exponential(Draw::Topology, 4, step) * shape.gap_s * S as f64) as Micros;
            let pick = |k: u64, drawn: &Drawn| {
                let at = noise.below(Draw::Topology, 5 + k, step, drawn.set.len() as u64);
                let endpoint = drawn.set.get(at as usize).copied();
                endpoint.filter(|&endpoint| drawn.born[endpoint as usize] < now)
            };
            if u(20, step) < shape.crash
                && let Some(endpoint) = pick(1, &drawn)
            {
                queue.push(now, Op::Failing(endpoint, true));
                if u(21, step) < 0.4 {
                    queue.push(now + (u(22, step) * 40e6) as Micros, Op::Failing(endpoint, false));
                }
            }
            let mut removed: Vec<u32> = pick(2, &drawn).into_iter().collect();
            if u(23, step) < 0.5 {
                removed.extend(pick(3, &drawn).filter(|e| !removed.contains(e)));
            }
            for &endpoint in &removed {
                queue.push(now, Op::Withdraw(endpoint));
                if u(24, u64::from(endpoint)) < 0.7 {
                    // The accept grace ends while some proxies still hold it.
                    queue.push(now + (u(25, step) * 2e6) as Micros, Op::Failing(endpoint, true));
                }
            }
            if u(27, step) < shape.soft {
                queue.push(now, Op::Soft(0.5 * u(28, step)));
                queue.push(now + (u(29, step) * 8e6) as Micros, Op::Soft(0.0));
            }
            if u(30, step) < shape.refuse
                && let Some(endpoint) = pick(7, &drawn)
            {
                queue.push(now, Op::Refused(endpoint, true));
                queue.push(now + (u(31, step) * 20e6) as Micros, Op::Refused(endpoint, false));
                let sub = noise.below(Draw::Topology, 32, step, shape.subs as u64) as usize;
                queue.push(now, Op::Degraded(sub, true));
                queue.push(now + (u(33, step) * 20e6) as Micros, Op::Degraded(sub, false));
            }
            let added: Vec<u32> = (0..removed.len() as u32).map(|i| drawn.next + i).collect();
            drawn.next += added.len() as u32;
            // Publications keep their order.
            last_published = (now + (u(26, step) * 4e5) as Micros).max(last_published + 1);
            drawn.publish(&mut queue, &shape, last_published, added, removed);
        }
        let mut ops = Vec::new();
        while let Some(next) = queue.pop_until(Micros::MAX / 4) {
            ops.push(next);
        }
        let end = ops.last().map_or(0, |last| last.0) + 20 * S;
        let zones = (0..drawn.next).map(zone).collect();
        let traffic: f64 = subs.iter().map(|&(_, lambda)| f64::from(lambda) / 1e6).sum();
        let capacity =
            if shape.load > 0.0 { traffic / f64::from(shape.endpoints) / shape.load } else { 0.0 };
        let mut script = Self { zones, subs, ops, sets: drawn.sets, end, capacity };
        script.keep_streams_in_order();
        script
    }

    /// Deliveries to one subscription never overtake; a broken stream stands with its next delivery.
    fn keep_streams_in_order(&mut self) {
        let mut at = vec![0; self.subs.len()];
        self.ops.retain(|(_, op)| match op {
            Op::Apply { sub, seq } if *seq <= at[*sub] => false,
            Op::Apply { sub, seq } => {
                at[*sub] = *seq;
                true
            }
            _ => true,
        });
    }

    /// Plays the trajectory on the ledger.
    pub fn account(&self, calls: Calls, noise: Noise) -> (Outcome, Ledger) {
        let subs = self.subs.iter().map(|&(caller, lambda)| Sub::new(0, caller, lambda)).collect();
        let mut ledger = Ledger::new(Setup {
            subs: vec![subs],
            instances: self.zones.len(),
            calls,
            long: (0.0, 1.0),
            noise,
            may_eject: None,
        });
        ledger.set_capacity(0, 0, self.capacity);
        let (mut pairs, mut out) = (Queue::new(), Outcome::default());
        let mut clocks = vec![None; self.zones.len()];
        for (at, op) in &self.ops {
            play_pairs(&mut ledger, &mut pairs, *at, &mut out);
            self.play(&mut ledger, *at, op, &mut clocks);
            debug_assert_eq!(ledger.check(0), Ok(()));
        }
        play_pairs(&mut ledger, &mut pairs, self.end, &mut out);
        out.counts = ledger.take(self.end, 0);
        let mut last = vec![0.0; self.zones.len()];
        for stopped in &ledger.stopped {
            let from = stopped.clock.start;
            last[stopped.clock.key as usize] =
                (stopped.last_request.unwrap_or(from) - from) as f64 / S as f64;
        }
        let withdrawn = |i: &usize| clocks[*i].is_some();
        out.last_s = (0..last.len()).filter(withdrawn).map(|i| last[i]).collect();
        (out, ledger)
    }

    fn play(&self, ledger: &mut Ledger, now: Micros, op: &Op, clocks: &mut [Option<Micros>]) {
        match op {
            Op::Publish { added, removed } => {
                for &endpoint in added {
                    ledger.open(now, 0, endpoint, self.zones[endpoint as usize]);
                }
                let clock = |&endpoint: &u32| {
                    let zone = self.zones[endpoint as usize];
                    let start = clocks[endpoint as usize].unwrap_or(now);
                    (endpoint, Some(Clock { key: endpoint, instance: endpoint, start, zone }))
                };
                let removed: Vec<_> = removed.iter().map(clock).collect();
                let seq = ledger.publish(now, 0, added, &removed);
                let leads =
                    |(_, op): &&(Micros, Op)| matches!(op, Op::Apply { seq: s, .. } if *s == seq);
                ledger.expect(0, seq, self.ops.iter().filter(leads).count() as u32);
            }
            Op::Withdraw(endpoint) => {
                clocks[*endpoint as usize] = Some(now);
                ledger.set_stale(now, 0, *endpoint, true);
            }
            Op::Apply { sub, seq } => ledger.apply(now, 0, *sub, *seq),
            Op::Failing(endpoint, failing) => ledger.set_failing(now, 0, *endpoint, *failing),
            Op::Online(sub, online) => ledger.set_online(now, 0, *sub, *online),
            Op::Lambda(sub, lambda) => ledger.set_lambda(now, 0, *sub, *lambda),
            Op::Soft(soft) => ledger.set_soft(now, 0, *soft),
            Op::Refused(endpoint, refused) => ledger.set_refused(now, 0, *endpoint, *refused),
            Op::Degraded(sub, degraded) => ledger.set_degraded(now, 0, *sub, *degraded),
        }
    }
}

struct Drawn {
    noise: Noise,
    /// When each endpoint was published.
    born: Vec<Micros>,
    set: Vec<u32>,
    sets: Vec<Vec<u32>>,
    next: u32,
}

impl Drawn {
    fn publish(
        &mut self,
        queue: &mut Queue<Op>,
        shape: &Shape,
        now: Micros,
        added: Vec<u32>,
        removed: Vec<u32>,
    ) {
        self.set.retain(|endpoint| !removed.contains(endpoint));
        self.set.extend(&added);
        self.born.resize(self.born.len() + added.len(), now);
        let seq = self.sets.len() as u32;
        self.sets.push(self.set.clone());
        queue.push(now, Op::Publish { added, removed });
        for sub in 0..shape.subs {
            let key = u64::from(seq) << 32 | sub as u64;
            let mut delay = 0.02 + 0.3 * self.noise.exponential(Draw::HopProxy, key, 0);
            if self.noise.uniform(Draw::HopProxy, key, 1) < shape.offline {
                queue.push(now + (delay * 1e5) as Micros, Op::Online(sub, false));
                delay += 20.0 * self.noise.uniform(Draw::HopProxy, key, 2);
            }
            if self.noise.uniform(Draw::HopProxy, key, 3) < 0.02 {
                let lambda = (self.noise.uniform(Draw::HopProxy, key, 4) * 2e6) as u32;
                queue.push(now + 10_000, Op::Lambda(sub, lambda));
            }
            queue.push(now + (delay * S as f64) as Micros, Op::Apply { sub, seq });
        }
    }
}

fn play_pairs(
    ledger: &mut Ledger,
    pairs: &mut Queue<crate::ledger::PairEvent>,
    limit: Micros,
    out: &mut Outcome,
) {
    loop {
        for (at, event) in std::mem::take(&mut ledger.events) {
            pairs.push(at, event);
        }
        let Some((now, event)) = pairs.pop_until(limit) else { return };
        if ledger.pair_event(now, 0, event) == Ejection::Done {
            out.ejections += 1.0;
        }
    }
}

/// Names and values of what is compared.
pub fn figures(counts: &Counts) -> [(&'static str, f64); 12] {
    [
        ("requests", counts.requests),
        ("stale", counts.stale),
        ("failures", counts.failures),
        ("failed", counts.failed),
        ("no_backend", counts.no_backend),
        ("retries", counts.retries),
        ("served", counts.served),
        ("live", counts.live),
        ("soft", counts.soft),
        ("overloaded", counts.overloaded),
        ("auth_refused", counts.auth_refused),
        ("cross_region", counts.cross_region),
    ]
}
