//! Active probes, exact, at full scale: a bucket of instances every ten milliseconds.
//!
//! A probe that is answered well by an instance in good standing changes nothing and makes no event, so
//! the loop over a bucket is a look at one byte and one random word each.

use super::World;
use super::fleet::Truth;
use super::shared::{Answer, Event};
use crate::noise::{Draw, Noise, pair};
use crate::queue::{MS, Micros, S, micros};
use crate::topology::REGIONS;
use oncall_discovery::types::{Reason, Source, State};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Width of a bucket.
const BUCKET: Micros = 10 * MS;
/// Probers of a region.
pub(crate) const PROBERS: u8 = 3;
/// Loss of a probe on a healthy path.
const LOSS: f64 = 0.000_5;
/// Loss within a burst of a node's channel, its mean length (s), and the time between two (s).
const BURST: (f64, f64, f64) = (0.9, 3.0, 7_200.0);

/// A byte for the probe loop.
const FINE: u8 = 0;
/// Look closer.
const CLOSER: u8 = 1;
/// Not probed.
const UNPROBED: u8 = 2;

/// What a prober has seen lately.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
struct Prober {
    probes: u32,
    failures: u32,
    window: Micros,
    quarantined_until: Micros,
    bad_until: Micros,
}

/// Probe bookkeeping.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Probing {
    buckets: Vec<Vec<u32>>,
    look: Vec<u8>,
    fails: Vec<u8>,
    passes: Vec<u8>,
    asked: Vec<bool>,
    probers: Vec<Prober>,
    /// Loss of a zone's link to the probers, and until when.
    links: Vec<(f64, Micros)>,
    node_burst: Vec<Micros>,
    stopped: [Micros; REGIONS],
    /// Times of removals by cell, for the capacity guard.
    removals: Vec<VecDeque<Micros>>,
    round: u64,
    burst_number: u64,
}

impl Probing {
    pub(crate) fn new(cells: usize, nodes: usize, interval_s: f64) -> Self {
        Self {
            buckets: vec![Vec::new(); buckets(interval_s)],
            look: Vec::new(),
            fails: Vec::new(),
            passes: Vec::new(),
            asked: Vec::new(),
            probers: vec![Prober::default(); REGIONS * usize::from(PROBERS)],
            links: vec![(0.0, 0); REGIONS * 4],
            node_burst: vec![0; nodes],
            stopped: [0; REGIONS],
            removals: vec![VecDeque::new(); cells],
            round: 0,
            burst_number: 0,
        }
    }

    /// Gives an instance its phase.
    pub(crate) fn add(&mut self, id: u32, noise: Noise) {
        let count = self.buckets.len() as u64;
        let phase = noise.below(Draw::ProbePhase, u64::from(id), 0, count);
        self.buckets[phase as usize].push(id);
        let at = id as usize + 1;
        self.look.resize(at.max(self.look.len()), UNPROBED);
        self.fails.resize(at.max(self.fails.len()), 0);
        self.passes.resize(at.max(self.passes.len()), 0);
        self.asked.resize(at.max(self.asked.len()), false);
    }

    /// Another interval: all instances get their phases anew.
    pub(crate) fn set_interval(&mut self, interval_s: f64, noise: Noise) {
        let count = buckets(interval_s);
        if count == self.buckets.len() {
            return;
        }
        let mut ids: Vec<u32> = self.buckets.iter().flatten().copied().collect();
        ids.sort_unstable();
        self.buckets = vec![Vec::new(); count];
        for id in ids {
            self.add(id, noise);
        }
    }

    pub(crate) fn stop(&mut self, region: usize, until: Micros) {
        self.stopped[region] = until;
    }

    pub(crate) fn spoil_prober(&mut self, region: usize, until: Micros) {
        self.probers[region * usize::from(PROBERS)].bad_until = until;
    }

    pub(crate) fn spoil_link(&mut self, region: usize, zone: usize, loss: f64, until: Micros) {
        self.links[region * 4 + zone] = (loss, until);
    }
}

fn buckets(interval_s: f64) -> usize {
    ((micros(interval_s) / BUCKET) as usize).max(1)
}

impl World {
    /// What the probe loop has to know about an instance.
    pub(crate) fn look_again(&mut self, id: u32) {
        let instance = &self.fleet.instances[id as usize];
        let node = usize::from(instance.node);
        let region = usize::from(self.topology.nodes[node].region);
        let now = self.shared.now();
        let (_, link_until) = self.probing.links[region * 4 + usize::from(instance.zone)];
        let look = match instance.state {
            State::Ready
                if instance.truth.answers()
                    && !instance.dependency_bad
                    && self.probing.node_burst[node] <= now
                    && link_until <= now
                    && self.probing.fails[id as usize] == 0 =>
            {
                FINE
            }
            State::Ready | State::Unhealthy => CLOSER,
            _ => UNPROBED,
        };
        self.probing.look[id as usize] = look;
    }

    /// All instances on a zone's link, or everywhere.
    pub(crate) fn look_at_all(&mut self) {
        for id in 0..self.fleet.instances.len() as u32 {
            self.look_again(id);
        }
    }

    /// One bucket of probes.
    pub(crate) fn on_probes(&mut self) {
        let now = self.shared.now();
        let count = self.probing.buckets.len() as u64;
        let slot = (now / BUCKET % count) as usize;
        let round = now / BUCKET / count;
        self.probing.round = round;
        let noise = self.shared.noise;
        let bucket = std::mem::take(&mut self.probing.buckets[slot]);
        let any_bad = self.probing.probers.iter().any(|prober| prober.bad_until > now)
            || self.probing.stopped.iter().any(|&until| until > now);
        let lost = (LOSS * 4_294_967_296.0) as u64;
        let mut probes = 0;
        for &id in &bucket {
            let look = self.probing.look[id as usize];
            if look == UNPROBED {
                continue;
            }
            probes += 1;
            let word = noise.word(Draw::ProbeLoss, u64::from(id), round);
            if look == FINE && !any_bad && word >> 32 >= lost {
                continue;
            }
            self.probe(id, word);
        }
        self.shared.totals.probes += probes;
        self.probing.buckets[slot] = bucket;
        self.shared.push(now + BUCKET, Event::Probes);
    }

    /// One probe in full.
    fn probe(&mut self, id: u32, word: u64) {
        let now = self.shared.now();
        let instance = self.fleet.instances[id as usize];
        let node = usize::from(instance.node);
        let region = usize::from(self.topology.nodes[node].region);
        if self.probing.stopped[region] > now {
            return;
        }
        let prober = self.prober_for(id, region);
        self.send_probe(id, prober, word, 0);
    }

    /// The prober of an instance: a fixed one, or the next that is not in quarantine.
    fn prober_for(&self, id: u32, region: usize) -> u8 {
        let now = self.shared.now();
        let first = (id % u32::from(PROBERS)) as u8;
        (0..PROBERS)
            .map(|hop| (first + hop) % PROBERS)
            .find(|&p| {
                let at = region * usize::from(PROBERS) + usize::from(p);
                self.probing.probers[at].quarantined_until <= now
            })
            .unwrap_or(first)
    }

    fn send_probe(&mut self, id: u32, prober: u8, word: u64, extra: Micros) {
        let now = self.shared.now();
        let instance = self.fleet.instances[id as usize];
        let node = usize::from(instance.node);
        let region = usize::from(self.topology.nodes[node].region);
        let at = region * usize::from(PROBERS) + usize::from(prober);
        let (link_loss, link_until) = self.probing.links[region * 4 + usize::from(instance.zone)];
        let mut loss = LOSS;
        if self.probing.node_burst[node] > now {
            loss = BURST.0;
        }
        if link_until > now {
            loss = loss.max(link_loss);
        }
        let lost = (word >> 32) as f64 / 4_294_967_296.0 < loss
            || self.probing.probers[at].bad_until > now;
        let answers = instance.truth.answers() || instance.truth == Truth::Booting;
        let ok = !lost && instance.truth.answers() && !self.dependency_fails(id);
        // A refusal, or a bad answer, comes at once; silence lasts until the timeout.
        let silent = lost || instance.truth == Truth::Frozen || self.node_is_away(node);
        let spread = micros(self.shared.dials.probe_interval_s)
            * (self.shared.dials.probe_jitter_pct as u64)
            / 100;
        let jitter = (u64::from(word as u32) * spread) >> 32;
        let wait = if silent && !(answers && !lost) {
            micros(self.shared.dials.probe_timeout_s)
        } else {
            2 * MS
        };
        if ok && self.probing.fails[id as usize] == 0 && instance.state == State::Ready {
            self.note_probe(at, true);
            return;
        }
        let answer = if ok { Answer::Ok } else { Answer::Failed };
        let life = instance.life;
        self.shared
            .push(now + jitter + wait + extra, Event::Probe { instance: id, life, prober, answer });
    }

    fn node_is_away(&self, node: usize) -> bool {
        self.fleet.node_away[node] > 0
    }

    fn dependency_fails(&self, id: u32) -> bool {
        self.shared.dials.dependency_mode >= 1.0 && self.fleet.instances[id as usize].dependency_bad
    }

    /// The self-check of a prober: if many of its targets fail at once, it is the one that is bad.
    fn note_probe(&mut self, at: usize, ok: bool) {
        let now = self.shared.now();
        let window = micros(self.shared.dials.probe_interval_s);
        // Successes of healthy instances are not played one by one; a fifth of the targets is many.
        let targets = self.fleet.instances.len() / self.probing.probers.len();
        let prober = &mut self.probing.probers[at];
        if now >= prober.window + window {
            (prober.probes, prober.failures, prober.window) = (0, 0, now);
        }
        prober.probes += 1;
        prober.failures += u32::from(!ok);
        if f64::from(prober.failures) > 0.2 * targets as f64 && prober.failures > 5 {
            prober.quarantined_until = now + 30 * S;
        }
    }

    /// A probe's end is known.
    pub(crate) fn on_probe(&mut self, id: u32, life: u32, prober: u8, answer: Answer) {
        let now = self.shared.now();
        let instance = self.fleet.instances[id as usize];
        let region = usize::from(self.topology.nodes[usize::from(instance.node)].region);
        let at = region * usize::from(PROBERS) + usize::from(prober);
        self.note_probe(at, answer == Answer::Ok);
        if self.probing.stopped[region] > now {
            return;
        }
        if self.probing.probers[at].quarantined_until > now {
            self.shared.totals.probes_quarantined += 1;
            return;
        }
        let _ = life; // a restarted process is judged by the same prober, from where it stood
        let at = id as usize;
        match answer {
            Answer::Ok => {
                self.probing.fails[at] = 0;
                self.probing.passes[at] = self.probing.passes[at].saturating_add(1);
                self.recover(id);
            }
            Answer::Failed => {
                self.shared.totals.probe_failures += 1;
                self.probing.passes[at] = 0;
                self.probing.fails[at] = self.probing.fails[at].saturating_add(1);
                self.judge(id);
            }
        }
        self.look_again(id);
    }

    fn recover(&mut self, id: u32) {
        let instance = self.fleet.instances[id as usize];
        let enough =
            f64::from(self.probing.passes[id as usize]) >= self.shared.dials.recovery_threshold;
        if instance.state == State::Unhealthy && enough {
            self.ask_move(id, State::Ready, Reason::Recovered, Source::Health);
        }
    }

    fn judge(&mut self, id: u32) {
        let at = id as usize;
        let instance = self.fleet.instances[at];
        if f64::from(self.probing.fails[at]) < self.shared.dials.failure_threshold
            || instance.state != State::Ready
        {
            return;
        }
        let needed = self.shared.dials.confirming_probers as u64 - 1;
        let threshold = self.shared.dials.failure_threshold as u8;
        let extra = u64::from(self.probing.fails[at] - threshold);
        if extra < needed {
            // Another prober looks at once; its failure counts towards the agreement.
            let region = usize::from(self.topology.nodes[usize::from(instance.node)].region);
            let other = (self.prober_for(id, region) + 1 + extra as u8) % PROBERS;
            let number = self.shared.next();
            let word = self.shared.noise.word(Draw::ProbeLoss, pair(id, 1), number);
            self.send_probe(id, other, word, 0);
            return;
        }
        if self.guard_allows(instance.cell) {
            let now = self.shared.now();
            if let Some(line) = self.shared.clocks.get_mut(instance.clock) {
                line.detected.get_or_insert(now);
            }
            self.ask_move(id, State::Unhealthy, Reason::ProbesFailed, Source::Health);
        } else {
            self.shared.totals.guard_held += 1;
            self.shared.goals.guard_held_a_removal += 1;
        }
    }

    /// The capacity guard: health may remove so much of a cell within a minute, and always one.
    fn guard_allows(&mut self, cell: u32) -> bool {
        let now = self.shared.now();
        let ready = self.ready_in(cell);
        let removals = &mut self.probing.removals[cell as usize];
        while removals.front().is_some_and(|&at| at + 60 * S <= now) {
            removals.pop_front();
        }
        let share = self.shared.dials.guard_share_pct / 100.0;
        let allowed = ((share * (ready as f64 + removals.len() as f64)) as usize).max(1);
        if removals.len() >= allowed {
            return false;
        }
        removals.push_back(now);
        true
    }

    /// Draws the bursts that begin within this second.
    pub(crate) fn draw_bursts(&mut self) {
        let now = self.shared.now();
        let nodes = self.fleet.node_away.len() as u64;
        let noise = self.shared.noise;
        let expected = nodes as f64 / BURST.2;
        let mut left = expected;
        while left > 0.0 {
            self.probing.burst_number += 1;
            let number = self.probing.burst_number;
            if noise.uniform(Draw::Burst, 0, number) < left {
                let node = noise.below(Draw::Burst, 1, number, nodes) as usize;
                let length = noise.exponential(Draw::Burst, 2, number) * BURST.1;
                self.probing.node_burst[node] = now + micros(length);
                for at in 0..self.fleet.on_node[node].len() {
                    let id = self.fleet.on_node[node][at];
                    self.look_again(id);
                }
            }
            left -= 1.0;
        }
    }
}
