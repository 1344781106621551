//! Active probes, exact, at full scale: a bucket of instances every ten milliseconds.
//!
//! What a result means is the decider's business. A success that would change nothing there is counted and
//! not played, so the loop over a bucket is a look at one word and one random word each; see [`Targets`].

mod targets;
#[cfg(test)]
mod tests;

use super::World;
use super::fleet::{Truth, cell_region};
use super::shared::{Answer, Event};
use crate::noise::{Draw, Noise, pair};
use crate::queue::{MS, Micros, S, micros};
use crate::topology::REGIONS;
use oncall_discovery::health::{HealthMessage, HealthRules, LocalAction, Opinion};
use oncall_discovery::types::{Generation, InstanceId, Out, ProberId, State, Time};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use targets::{CLOSER, FINE, Target, Targets, UNPROBED};

/// Time between two looks at the buckets of a large fleet, and of a small one.
const TICKS: [Micros; 2] = [10 * MS, 50 * MS];
/// Instances from which a fleet is large.
const LARGE: u32 = 20_000;
/// The longest interval that the dial allows, so that no tick plays less than one bucket.
const INTERVAL_MAX: Micros = 15 * S;
/// Probers of a region.
pub(crate) const PROBERS: u8 = 3;
/// Round trip of a probe that is answered.
const ROUND_TRIP: Micros = 2 * MS;

/// Probe bookkeeping that is not the decider's.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Probing {
    /// Instances by region and phase. An instance keeps its phase; the interval of its region says how fast the
    /// rounds pass.
    targets: Targets,
    /// Phases of a region.
    phases: usize,
    /// Rounds of each region since the start, in 2^-32.
    rounds: [u64; REGIONS],
    /// Time between two looks.
    tick: Micros,
    /// For the interval of each region, seconds, the part of a round that passes in a tick, in 2^-32.
    #[serde(skip)]
    paces: [(f64, u64); REGIONS],
    /// Successes by home that were not played, since the last time they were counted.
    quiet: Vec<u32>,
    bad_prober_until: Vec<Micros>,
    /// Loss of a zone's link to the probers, and until when.
    links: Vec<(f64, Micros)>,
    node_burst: Vec<Micros>,
    stopped: [Micros; REGIONS],
    burst_number: u64,
    /// Probes that are played; empty between two looks.
    #[serde(skip)]
    closer: Vec<(u32, u8, u64)>,
    /// Random words of a bucket.
    #[serde(skip)]
    words: Vec<u64>,
}

/// The prober at an instance's home, the first to look at it.
fn first_prober(id: u32) -> ProberId {
    ProberId((id % u32::from(PROBERS)) as u8)
}

impl Probing {
    pub(crate) fn new(groups: usize, nodes: usize, instances: u32) -> Self {
        let tick = TICKS[usize::from(instances < LARGE)];
        let phases = (INTERVAL_MAX / tick) as usize;
        Self {
            targets: Targets::new(REGIONS * phases),
            phases,
            rounds: [0; REGIONS],
            tick,
            paces: [(0.0, 0); REGIONS],
            quiet: vec![0; groups * usize::from(PROBERS)],
            bad_prober_until: vec![0; REGIONS * usize::from(PROBERS)],
            links: vec![(0.0, 0); REGIONS * 4],
            node_burst: vec![0; nodes],
            stopped: [0; REGIONS],
            burst_number: 0,
            closer: Vec::new(),
            words: Vec::new(),
        }
    }

    /// Gives an instance its phase and its prober.
    pub(crate) fn add(&mut self, id: u32, region: usize, group: u16, noise: Noise) {
        let phase = noise.below(Draw::ProbePhase, u64::from(id), 0, self.phases as u64);
        let home = (group as u8) * PROBERS + (id % u32::from(PROBERS)) as u8;
        self.targets.add(region * self.phases + phase as usize, id, home);
    }

    /// Part of a round that passes in a tick.
    fn pace(&mut self, region: usize, interval_s: f64) -> u64 {
        // A division that is the same for most of the time.
        let (known_s, pace) = &mut self.paces[region];
        if interval_s != *known_s {
            let interval = micros(interval_s).max(self.tick);
            (*known_s, *pace) = (interval_s, (self.tick << 32) / interval);
        }
        *pace
    }

    /// After the first instances.
    pub(crate) fn pack(&mut self) {
        self.targets.pack(0);
    }

    pub(crate) fn stop(&mut self, region: usize, until: Micros) {
        self.stopped[region] = self.stopped[region].max(until);
    }

    pub(crate) fn is_stopped(&self, region: usize, now: Micros) -> bool {
        self.stopped[region] > now
    }

    pub(crate) fn spoil_prober(&mut self, region: usize, until: Micros) {
        self.bad_prober_until[region * usize::from(PROBERS)] = until;
    }

    pub(crate) fn spoil_link(&mut self, region: usize, zone: usize, loss: f64, until: Micros) {
        self.links[region * 4 + zone] = (loss, until);
    }
}

impl World {
    /// The rules of a region's deciders.
    pub(crate) fn health_rules(&self, region: usize) -> HealthRules {
        HealthRules::new(self.shared.led(region), PROBERS)
    }

    /// Tells the deciders what the first probes of a healthy fleet would.
    pub(crate) fn prime_probes(&mut self) {
        let dials = *self.shared.led(0);
        let enough = dials.recovery_threshold as u8;
        let mut out = Out::new();
        for id in 0..self.fleet.instances.len() as u32 {
            let group = usize::from(self.group_of(self.fleet.instances[id as usize].cell));
            let group = &mut self.control.groups[group];
            let Some(row) = self.probing.targets.row(id, &group.catalog) else { continue };
            let first = (id % u32::from(PROBERS)) as u8;
            for prober in 0..dials.confirming_probers as u8 {
                let prober = ProberId((first + prober) % PROBERS);
                for _ in 0..enough {
                    let now = Time::ZERO;
                    group.decider.on_probe_of_row(now, row, prober, true, &group.catalog, &mut out);
                }
            }
        }
    }

    /// What the probe loop has to know about an instance.
    pub(crate) fn look_again(&mut self, id: u32) {
        let Some(instance) = self.fleet.instances.get(id as usize) else { return };
        let node = usize::from(instance.node);
        let region = cell_region(instance.cell);
        let now = self.shared.now();
        let (_, link_until) = self.probing.links[region * 4 + usize::from(instance.zone)];
        let group = &self.control.groups[usize::from(self.group_of(instance.cell))];
        let targets = &mut self.probing.targets;
        let mut settled = || {
            let row = targets.row(id, &group.catalog);
            row.is_some_and(|row| group.decider.settled(Time(now), row, first_prober(id)))
        };
        let look = match instance.state {
            State::Ready
                if instance.truth.answers()
                    && !instance.dependency_bad
                    && !instance.dependency_slow
                    && self.probing.node_burst[node] <= now
                    && link_until <= now
                    && settled() =>
            {
                FINE
            }
            State::Starting | State::Ready | State::Unhealthy => CLOSER,
            _ => UNPROBED,
        };
        if let Some(target) = targets.get_mut(id) {
            target.set_look(look);
        }
    }

    /// Everything anew, after something that concerns many.
    pub(crate) fn look_at_all(&mut self) {
        for id in 0..self.fleet.instances.len() as u32 {
            self.look_again(id);
        }
    }

    /// The probes that are due within a tick.
    pub(crate) fn on_probes(&mut self) {
        let now = self.shared.now();
        let any_bad = self.probing.bad_prober_until.iter().any(|&until| until > now)
            || self.probing.stopped.iter().any(|&until| until > now);
        for region in 0..REGIONS {
            let phases = self.probing.phases as u64;
            let place = |rounds: u64| ((u128::from(rounds) * u128::from(phases)) >> 32) as u64;
            let from = self.probing.rounds[region];
            let to = from + self.probing.pace(region, self.shared.led(region).probe_interval_s);
            self.probing.rounds[region] = to;
            self.probe_buckets(region, place(from)..place(to), any_bad);
        }
        self.shared.push(now + self.probing.tick, Event::Probes);
        if now.is_multiple_of(100 * MS) {
            self.count_quiet();
        }
    }

    /// The buckets of a region that are due, counted through all rounds.
    fn probe_buckets(&mut self, region: usize, due: Range<u64>, any_bad: bool) {
        let noise = self.shared.noise;
        let agreeing = self.shared.led(region).confirming_probers as u8;
        let lost = (self.topology.shape.loss.calm * 4_294_967_296.0) as u64;
        let Probing { targets, quiet: counts, words, closer, phases, .. } = &mut self.probing;
        let (mut probes, mut quiet) = (0, 0);
        // What has to be looked at closer is set aside, so that the loop itself is about a few bytes.
        let mut see = |target: Target, turn: u8, word: u64| {
            if target.look() == FINE && !any_bad && word >> 32 >= lost {
                counts[usize::from(target.home())] += 1;
                quiet += 1;
            } else {
                closer.push((target.id(), turn, word));
            }
        };
        let mut due = due;
        while !due.is_empty() {
            // Those of one round: the last phase of one and the first of the next are no neighbours.
            let (round, phase) = (due.start / *phases as u64, due.start as usize % *phases);
            let count = ((due.end - due.start) as usize).min(*phases - phase);
            due.start += count as u64;
            let first = region * *phases + phase;
            let mut buckets = first..first + count;
            while !buckets.is_empty() {
                let (side_by_side, rest) = targets.first_of(buckets);
                buckets = rest;
                let words = targets::draw(side_by_side, noise, agreeing, round, words);
                for (at, &target) in side_by_side.iter().enumerate() {
                    if target.look() == UNPROBED {
                        continue;
                    }
                    probes += u64::from(agreeing);
                    for turn in 0..agreeing {
                        let word = words.get(at * usize::from(agreeing) + usize::from(turn));
                        let draw = || target.word(noise, turn.into(), round);
                        see(target, turn, word.copied().unwrap_or_else(draw));
                    }
                }
            }
        }
        self.shared.totals.probes += probes;
        let counters = &mut self.shared.meters.regions[region];
        counters.probes += probes;
        counters.probe_latency.add(ROUND_TRIP, quiet);
        if !self.probing.closer.is_empty() {
            let mut closer = std::mem::take(&mut self.probing.closer);
            for (id, turn, word) in closer.drain(..) {
                self.probe(id, turn, word);
            }
            self.probing.closer = closer;
        }
    }

    /// Counts the successes that were not played for the probers' checks of themselves.
    fn count_quiet(&mut self) {
        let now = self.shared.time();
        for home in 0..self.probing.quiet.len() {
            let count = std::mem::take(&mut self.probing.quiet[home]);
            if count > 0 {
                let (group, prober) = (home / usize::from(PROBERS), home % usize::from(PROBERS));
                let decider = &mut self.control.groups[group].decider;
                decider.settled_probes(now, ProberId(prober as u8), count);
            }
        }
    }

    /// One probe in full, by the instance's first, second or third prober.
    fn probe(&mut self, id: u32, turn: u8, word: u64) {
        let now = self.shared.now();
        let instance = &self.fleet.instances[id as usize];
        let region = cell_region(instance.cell);
        if self.probing.stopped[region] > now {
            return;
        }
        let group = usize::from(self.group_of(instance.cell));
        let (decider, catalog) =
            (&self.control.groups[group].decider, &self.control.groups[group].catalog);
        let looks = |turn: u8| decider.looks(Time(now), first_prober(id), turn).0;
        let prober = looks(turn);
        // Whoever stood in and found it down looks until it is up again, or that opinion would stay.
        let row = self.probing.targets.row(id, catalog);
        let agreeing = decider.rules().confirming;
        let down =
            |p: u8| row.is_some_and(|row| decider.opinion(row, ProberId(p)) == Opinion::Down);
        let others: [bool; PROBERS as usize] = std::array::from_fn(|p| {
            let p = p as u8;
            turn == 0 && down(p) && (0..agreeing).all(|turn| looks(turn) != p)
        });
        self.send_probe(id, prober, word);
        for (other, looks) in others.into_iter().enumerate() {
            if looks {
                let noise = self.shared.noise;
                let entity = u64::from(id) | (other as u64 + 1) << 48;
                let word = noise.word(Draw::ProbeLoss, entity, now);
                self.shared.totals.probes += 1;
                self.shared.meters.regions[region].probes += 1;
                self.send_probe(id, other as u8, word);
            }
        }
    }

    fn send_probe(&mut self, id: u32, prober: u8, word: u64) {
        let now = self.shared.now();
        let instance = &self.fleet.instances[id as usize];
        let node = usize::from(instance.node);
        let region = cell_region(instance.cell);
        let at = region * usize::from(PROBERS) + usize::from(prober);
        let (link_loss, link_until) = self.probing.links[region * 4 + usize::from(instance.zone)];
        let regime = self.topology.shape.loss;
        let mut loss = if self.probing.node_burst[node] > now { regime.burst } else { regime.calm };
        if link_until > now {
            loss = loss.max(link_loss);
        }
        let lost =
            (word >> 32) as f64 / 4_294_967_296.0 < loss || self.probing.bad_prober_until[at] > now;
        let dials = self.shared.led(region);
        let looks = dials.dependency_mode >= 1.0;
        let depends = looks && instance.dependency_bad;
        let timeout = micros(dials.probe_timeout_s);
        let answers_after = if looks && instance.dependency_slow && instance.truth.answers() {
            ROUND_TRIP + self.slowness(id)
        } else {
            ROUND_TRIP
        };
        let in_time = answers_after <= timeout;
        let ok = !lost && instance.truth.answers() && !depends && in_time;
        // A refusal, or a bad answer, comes at once; silence lasts until the timeout.
        let silent =
            lost || !in_time || instance.truth == Truth::Frozen || self.fleet.node_away[node] > 0;
        let wait = if silent && !ok { timeout } else { answers_after };
        let spread = dials.probe_interval_s * dials.probe_jitter_pct / 100.0;
        let jitter = (u64::from(word as u32) * micros(spread)) >> 32;
        let answer = if ok { Answer::Ok } else { Answer::Failed };
        self.shared.meters.regions[region].probe_latency.add(wait, 1);
        let event = Event::Probe { instance: id, life: instance.life, prober, answer };
        self.shared.push(now + jitter + wait, event);
    }

    /// A probe's end is known.
    pub(crate) fn on_probe(&mut self, id: u32, life: u32, prober: u8, answer: Answer) {
        let now = self.shared.time();
        let instance = self.fleet.instances[id as usize];
        let region = cell_region(instance.cell);
        // Its answer was that of an earlier process.
        if instance.life != life && instance.truth.answers() {
            return;
        }
        let number = usize::from(self.group_of(instance.cell));
        if self.probing.stopped[region] > now.0
            || self.control.groups[number].live_leader().is_none()
        {
            return;
        }
        let ok = answer == Answer::Ok;
        self.shared.totals.probe_failures += u64::from(!ok);
        if !ok {
            self.fleet.instances[id as usize].probe_failed = now.0;
            let place = (instance.node, instance.zone);
            self.shared.meters.probe_failed(instance.cell, place, prober);
        }
        let group = &mut self.control.groups[number];
        let quarantined = group.decider.quarantined(now, ProberId(prober));
        let mut out = Out::new();
        if let Some(row) = self.probing.targets.row(id, &group.catalog) {
            let prober = ProberId(prober);
            group.decider.on_probe_of_row(now, row, prober, ok, &group.catalog, &mut out);
        }
        if !quarantined && group.decider.quarantined(now, ProberId(prober)) {
            self.look_at_group(number);
        }
        self.shared.totals.probes_quarantined += u64::from(quarantined);
        self.shared.meters.regions[region].probes_quarantined += u64::from(quarantined);
        self.health_out(number, out);
        self.look_again(id);
    }

    /// A decider forgot what probers had told it, or other probers look: see what has to be told again.
    pub(crate) fn look_at_group(&mut self, number: usize) {
        for id in 0..self.fleet.instances.len() as u32 {
            if usize::from(self.group_of(self.fleet.instances[id as usize].cell)) == number {
                self.look_again(id);
            }
        }
    }

    /// What the node's agent says of an instance.
    pub(crate) fn report(&mut self, id: u32) {
        let instance = self.fleet.instances[id as usize];
        let started = instance.truth.answers();
        let ready = match self.local_check(id) {
            Some(LocalAction::Report { ready, .. }) => ready,
            Some(LocalAction::Restart) => return self.restart(id),
            None => return,
        };
        let number = usize::from(self.group_of(instance.cell));
        let group = &mut self.control.groups[number];
        if self.fleet.node_away[usize::from(instance.node)] > 0 {
            return;
        }
        if group.live_leader().is_none() {
            // Nobody listens: the agent repeats it.
            let wait = micros(1.0 + (id % 16) as f64 / 16.0);
            let life = instance.life;
            let what = super::shared::Life::Report;
            self.shared.push(self.shared.now() + wait, Event::Life { instance: id, life, what });
            return;
        }
        let mut out = Out::new();
        group.decider.on_report(
            self.shared.time(),
            (InstanceId(id), instance.generation),
            (started, ready),
            &group.catalog,
            &mut out,
        );
        self.health_out(number, out);
    }

    /// Carries out what a decider wants.
    pub(crate) fn health_out(
        &mut self,
        number: usize,
        out: Out<HealthMessage, oncall_discovery::health::HealthTimer>,
    ) {
        use oncall_discovery::types::Metric;
        let held = out.total(Metric::GuardHeld);
        self.shared.totals.guard_held += held;
        let region = usize::from(self.control.groups[number].region);
        self.shared.meters.regions[region].guard_held += held;
        self.shared.goals.guard_held_a_removal += held;
        for timer in out.timers {
            let review_at = &mut self.control.groups[number].review_at;
            if timer.at.0 < *review_at {
                *review_at = timer.at.0;
                self.shared.push(timer.at.0, Event::Review { group: number as u16 });
            }
        }
        for message in out.sends {
            match message.body {
                HealthMessage::Propose(command) => {
                    self.note_detection(&command);
                    self.control.ask(number as u16, command, false, &mut self.shared);
                }
                HealthMessage::ProbeNow(instance, generation) => {
                    self.probe_now(instance, generation);
                }
                HealthMessage::ReportNow(instance, _) => {
                    let id = instance.0;
                    let life = self.fleet.instances[id as usize].life;
                    let index = self.shared.next();
                    let hop = self.shared.hop(
                        super::shared::HOP_ASK,
                        Draw::Replica,
                        u64::from(id) | 1 << 41,
                        index,
                    );
                    let what = super::shared::Life::Report;
                    let at = self.shared.now() + hop;
                    self.shared.push(at, Event::Life { instance: id, life, what });
                }
            }
        }
    }

    /// Notes when a removal was decided: the end of the detection part of the fifteen seconds.
    fn note_detection(&mut self, command: &oncall_discovery::catalog::Command) {
        use oncall_discovery::catalog::Command;
        if let Command::Move { instance, to: State::Unhealthy, .. } = command {
            let now = self.shared.now();
            let clock = self.fleet.instances[instance.index()].clock;
            if let Some(line) = self.shared.clocks.get_mut(clock) {
                line.detected.get_or_insert(now);
            }
        }
    }

    /// All probers look at an instance at once.
    fn probe_now(&mut self, instance: InstanceId, generation: Generation) {
        let id = instance.0;
        if self.fleet.instances[id as usize].generation != generation {
            return;
        }
        for prober in 0..PROBERS {
            let number = self.shared.next();
            let word = self.shared.noise.word(Draw::ProbeLoss, pair(id, 1), number);
            self.send_probe(id, prober, word);
        }
    }

    /// The decider looks again at what it held back.
    pub(crate) fn on_review(&mut self, number: usize) {
        let group = &mut self.control.groups[number];
        if group.review_at != self.shared.now() {
            return;
        }
        group.review_at = Micros::MAX;
        let mut out = Out::new();
        if group.live_leader().is_some() {
            group.decider.on_timer(self.shared.time(), &group.catalog, &mut out);
        }
        self.health_out(number, out);
    }

    /// Draws the bursts that begin within this second.
    pub(crate) fn draw_bursts(&mut self) {
        let now = self.shared.now();
        let nodes = self.fleet.node_away.len() as u64;
        let noise = self.shared.noise;
        let regime = self.topology.shape.loss;
        let mut left = nodes as f64 / regime.between_s;
        while left > 0.0 {
            self.probing.burst_number += 1;
            let number = self.probing.burst_number;
            if noise.uniform(Draw::Burst, 0, number) < left {
                let node = noise.below(Draw::Burst, 1, number, nodes) as usize;
                let length = noise.exponential(Draw::Burst, 2, number) * regime.burst_s;
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
