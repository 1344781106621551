//! A world: the whole fleet with its control plane, driven by discrete events.
//!
//! One queue, one clock, noise by key. [`World::run_until`] plays; everything else looks.

mod age;
mod ahead;
mod bill;
mod check;
pub mod clocks;
mod control;
mod dials;
mod evidence;
mod failover;
mod faults;
mod fleet;
mod full;
mod gauges;
mod probing;
mod relays;
mod row;
mod share;
mod shared;
mod streams;
mod traffic;
mod waves;

pub use bill::{Bill, PLANNED_PACE_PER_S, PRICES, Price};
pub use clocks::{Clocks, Kind, Percentiles, Timeline};
pub use dials::{InForce, RELAYS_DELAY};
pub use fleet::{Instance, Truth, cell_name};
pub use full::{Full, RELAY_DELIVERIES_PER_S};
pub use gauges::{BINS, Counters, Gauges, Histogram, Levels, Rollout};
pub use row::Row;
pub use share::{Share, relays};
pub use shared::{Goals, HOP_PROXY, HOP_RELAY, Hop, REGION_US, Totals, Trace, Violation};

use crate::noise::Noise;
use crate::queue::{Micros, S, micros};
use crate::schedule::Scenario;
use crate::topology::{REGIONS, Scale, Shape, Topology};
use control::Control;
use faults::Memory;
use fleet::Fleet;
use gauges::Meters;
use oncall_consensus::Pages;
use oncall_core::{EpisodeKey, Generator, Split};
use oncall_discovery::catalog::{CatalogOut, CatalogShard, Command, Entry};
use oncall_discovery::dials::{DialError, Dials};
use oncall_discovery::distrib::{CellStore, Cursor};
use oncall_discovery::health::HealthRules;
use oncall_discovery::mutants::Mutants;
use oncall_discovery::types::{
    Directory, DirectoryError, InstanceId, Out, Reason, RegionId, ServiceId, ServiceKey, ShardId,
    Source, State, Term, Time, Transition,
};
use probing::Probing;
use serde::{Deserialize, Serialize};
use shared::{Event, Shared};
use std::sync::Arc;

/// What makes a world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Numbers of the fleet.
    pub shape: Shape,
    /// What happens.
    pub scenario: Scenario,
    /// The dials.
    pub dials: Dials,
    /// Seed of all noise.
    pub seed: u64,
    /// Set-level checks at every publication and delivery.
    pub verify: bool,
}

impl Setup {
    /// A shipped scenario with the default dials.
    pub fn shipped(name: &str, scale: Scale, seed: u64) -> Option<Self> {
        let shape = scale.shape();
        let scenario = Scenario::shipped(name, &shape)?;
        Some(Self { shape, scenario, dials: Dials::default(), seed, verify: false })
    }
}

/// Why a world cannot be made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SetupError {
    /// A dial is wrong.
    #[error("dials: {0}")]
    Dials(#[from] DialError),
    /// The services do not make a directory.
    #[error("services: {0}")]
    Directory(#[from] DirectoryError),
    /// A number of the fleet makes no sense.
    #[error("{field}: {value}; expected {expected}")]
    Shape {
        /// The field.
        field: &'static str,
        /// What was given.
        value: u64,
        /// What would do.
        expected: &'static str,
    },
    /// A saved state does not belong to this build.
    #[error("saved state: {0}")]
    Saved(String),
}

/// The fleet, its control plane, and what is known about both.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct World {
    pub(crate) scenario: Scenario,
    /// It never changes, so all copies of a world share it.
    pub(crate) topology: Arc<Topology>,
    /// Shard of each service.
    pub(crate) shards: Vec<u8>,
    pub(crate) shared: Shared,
    pub(crate) control: Control,
    pub(crate) fleet: Fleet,
    pub(crate) probing: Probing,
    pub(crate) plane: Full,
    pub(crate) memory: Vec<Memory>,
    /// Share and mean duration (s) of requests that may outlive a drain.
    pub(crate) long: (f64, f64),
    rows: Vec<Row>,
    taken: Totals,
    trail: Vec<[u8; 32]>,
}

/// Requests that may outlive a drain: one in a thousand, twenty seconds on average.
const LONG: (f64, f64) = (0.001, 20.0);

impl World {
    /// A world at time zero: everything is up, every view at its head.
    pub fn new(setup: Setup) -> Result<Self, SetupError> {
        let key = EpisodeKey::new(setup.seed, 0, Split::Train, Generator::Pcg);
        Self::keyed(setup, key)
    }

    /// The same with the noise of an episode; the seed of the setup is not used.
    pub fn keyed(setup: Setup, key: EpisodeKey) -> Result<Self, SetupError> {
        setup.dials.validate()?;
        check_shape(&setup.shape)?;
        let noise = Noise::new(key);
        let topology = Arc::new(Topology::draw(setup.shape, noise));
        let share = Share::of(&setup.shape);
        let mut shared = Shared::new(noise, &setup.dials, setup.verify, share);
        shared.meters = Meters::new(topology.cells(), topology.instances.iter().map(|i| i.cell));
        let fleet = Fleet::new(&topology);
        let directory = directory(&topology)?;
        let shards: Vec<u8> = (0..topology.services.len())
            .map(|service| directory.shard(ServiceId(service as u16)).map_or(0, |shard| shard.0))
            .collect();
        let mut births = Vec::new();
        let catalogs = catalogs(&directory, &topology, (&fleet, &shards), &mut births, &mut shared);
        let heads = heads(&catalogs, &topology, &shards);

        let plane = Full::new(&topology, &heads, LONG, &mut shared);
        let rules = HealthRules::new(&setup.dials, probing::PROBERS);
        let control = Control::new(catalogs, setup.shape.replicas, rules, &mut shared);
        let groups = REGIONS * usize::from(setup.shape.shards);
        let probing = Probing::new(groups, topology.nodes.len(), setup.shape.instances);
        let memory = vec![Memory::default(); setup.scenario.plan.len()];
        let mut world = Self {
            scenario: setup.scenario,
            topology,
            shards,
            shared,
            control,
            fleet,
            probing,
            plane,
            memory,
            long: LONG,
            rows: Vec::new(),
            taken: Totals::default(),
            trail: Vec::new(),
        };
        for id in 0..world.fleet.instances.len() as u32 {
            let cell = world.fleet.instances[id as usize].cell;
            let group = world.group_of(cell);
            world.probing.add(id, fleet::cell_region(cell), group, noise);
        }
        world.probing.pack();
        for (group, transition) in births {
            let group = &mut world.control.groups[group];
            group.decider.observe(&group.catalog, &transition, &mut Out::new());
        }
        for group in &mut world.control.groups {
            group.decider.lead(&group.catalog, &mut Out::new());
        }
        world.start_traffic();
        world.shared.books.declare(world.plane.traffic.spare());
        world.cover_all();
        world.prime_probes();
        world.look_at_all();
        world.shared.push(0, Event::Probes);
        world.shared.push(S, Event::Second);
        for plan in 0..world.scenario.plan.len() {
            let at = micros(world.scenario.plan[plan].at_s);
            world.shared.push(at, Event::Begin { plan: plan as u16 });
        }
        Ok(world)
    }

    /// All renewals arrive, so they are not played.
    fn cover_all(&mut self) {
        for group in &mut self.control.groups {
            for row in 0..group.catalog.rows() {
                group.leases.cover(row);
            }
        }
    }

    /// The same with safeguards taken out, for tests that want to see the damage.
    #[must_use]
    pub fn with_mutants(mut self, mutants: Mutants) -> Self {
        self.shared.mutants = mutants;
        self.fleet.revocations = self.fleet.revocations.with_mutants(mutants);
        for group in &mut self.control.groups {
            group.set_mutants(mutants);
        }
        self
    }

    /// Plays until a time, microseconds; events at that time are played.
    pub fn run_until(&mut self, limit: Micros) {
        while let Some((_, event)) = self.shared.queue.pop_until(limit) {
            self.shared.totals.events += 1;
            if self.shared.queue.is_fresh() {
                self.fetch_ahead();
            }
            self.play(event);
            if !self.control.effects.is_empty() {
                self.settle();
            }
            if !self.plane.traffic.complaints.is_empty() {
                self.send_complaints();
            }
            if !self.plane.stopped.is_empty() {
                self.stop_clocks();
            }
        }
    }

    /// Plays the whole scenario.
    pub fn run(&mut self) {
        self.run_until(micros(self.scenario.length_s));
    }

    /// Clocks that ran out: their timelines, and what they mean for the objectives.
    fn stop_clocks(&mut self) {
        let mut stopped = std::mem::take(&mut self.plane.stopped);
        for stopped in stopped.drain(..) {
            let Some((line, forced)) = self.shared.clocks.stop(&stopped, self.long.1) else {
                continue;
            };
            let region = fleet::cell_region(line.cell);
            let meters = &mut self.shared.meters;
            let blind = meters.blind[region];
            let counters = &mut meters.regions[region];
            counters.forced += forced;
            self.shared.totals.forced += forced;
            counters.in_flight += line.in_flight;
            let (start, last) = (line.start(), line.last_request.unwrap_or(line.start()));
            let took = last.saturating_sub(start);
            match line.kind {
                Kind::Withdrawal => {
                    counters.withdrawal.add(took, 1);
                    counters.withdrawals_late += u64::from(took > 3 * S);
                }
                Kind::Crash if blind >= start => counters.crashes_in_outage += 1,
                Kind::Crash => {
                    counters.crashes += 1;
                    counters.crash.add(took, 1);
                    counters.crashes_late += u64::from(took > 15 * S);
                }
                Kind::False => {}
            }
        }
        self.plane.stopped = stopped;
    }

    fn play(&mut self, event: Event) {
        let shared = &mut self.shared;
        match event {
            Event::RaftTick { group, replica } => self.control.on_tick(group, replica, shared),
            Event::Raft { group, slot } => self.control.on_message(group, slot, shared),
            Event::Ask { slot } => self.control.on_ask(slot, shared),
            Event::Life { instance, life, what } => {
                self.on_life(instance, life, what);
                self.look_again(instance);
            }
            Event::Lease { group } => {
                self.control.on_lease_timer(usize::from(group), shared);
            }
            Event::Probes => self.on_probes(),
            Event::Probe { instance, life, prober, answer } => {
                self.on_probe(instance, life, prober, answer);
            }
            Event::Review { group } => self.on_review(usize::from(group)),
            Event::Begin { plan } => self.on_begin(plan),
            Event::Step { plan, step } => self.on_step(plan, step),
            Event::End { plan } => self.on_end(plan),
            Event::Flush { cell } => {
                self.plane.on_flush(shared, cell);
                if self.shared.verify {
                    self.check_cell(cell);
                }
            }
            Event::Deliver(delivery) => self.plane.deliver(shared, delivery),
            Event::Wave { slot, tick } => self.plane.on_wave(shared, slot, tick),
            Event::Repair { sub, session } => self.plane.on_repair(shared, sub, session),
            Event::Snapshots { relay } => self.plane.drain(shared, relay),
            Event::Tend { proxy } => self.plane.on_tend(shared, proxy),
            Event::Hello { proxy, session } => self.plane.on_hello(shared, proxy, session),
            Event::Welcome { proxy, session } => self.plane.on_welcome(shared, proxy, session),
            Event::Busy { proxy, session, after } => {
                self.plane.on_busy(shared, proxy, session, after);
            }
            Event::Policy { relay } => self.plane.on_policy(shared, relay),
            Event::Adopt { proxy, session, version } => {
                self.plane.on_adopt(shared, proxy, session, version);
            }
            Event::Relays { region, count } => {
                self.plane.set_relays(shared, usize::from(region), count);
            }
            Event::Move { proxy, place } => self.plane.on_move(shared, proxy, place),
            Event::Heartbeat { proxy, session, beat } => {
                let region = self.topology.nodes[usize::from(proxy)].region;
                let confirmed = self.confirmed(region);
                self.plane.on_heartbeat(&mut self.shared, proxy, (session, beat), confirmed);
                if self.shared.verify {
                    self.check_told(proxy);
                }
            }
            Event::Pair { cell, pair } => self.plane.on_pair(shared, cell, pair),
            Event::Complaint { sub, instance } => self.on_complaint(sub, instance),
            Event::Second => {
                self.on_second();
                self.tend_traffic();
            }
            Event::Wire { .. } | Event::Timer { .. } | Event::Call { .. } => {}
        }
    }

    /// Carries out what the catalogs accepted and what reached the publishers.
    fn settle(&mut self) {
        while !self.control.effects.is_empty() {
            let mut transitions = std::mem::take(&mut self.control.effects.transitions);
            for (transition, asked) in transitions.drain(..) {
                self.on_transition(&transition, asked);
                self.look_again(transition.instance.0);
            }
            give_back(&mut self.control.effects.transitions, transitions);
            let mut updates = std::mem::take(&mut self.control.effects.updates);
            for update in updates.drain(..) {
                self.plane.on_update(&mut self.shared, &update);
            }
            give_back(&mut self.control.effects.updates, updates);
            for (region, version) in std::mem::take(&mut self.control.effects.configured) {
                self.on_configured(region, version);
            }
            for (region, version) in std::mem::take(&mut self.control.effects.policies) {
                self.plane.publish_policy(&mut self.shared, region, version);
            }
            for number in std::mem::take(&mut self.control.effects.fresh) {
                self.look_at_group(number);
            }
            let mut health = std::mem::take(&mut self.control.effects.health);
            for (number, out) in health.drain(..) {
                self.health_out(number, out);
            }
            give_back(&mut self.control.effects.health, health);
        }
    }

    /// Until when a region's catalogs were known to be right, the worst of its groups.
    fn confirmed(&self, region: u8) -> Micros {
        let shards = usize::from(self.topology.shape.shards);
        let groups = &self.control.groups[usize::from(region) * shards..][..shards];
        groups.iter().map(|group| group.confirmed).min().unwrap_or(0)
    }

    /// From now on rows, hashes and finished timelines are not kept, so that memory stays flat over a long run;
    /// those that there are go. Everything else is the same to the last bit.
    pub fn quiet(&mut self) {
        self.shared.record = false;
        self.shared.clocks.quiet();
        (self.rows, self.trail, self.taken) = (Vec::new(), Vec::new(), Totals::default());
    }

    /// The scenario.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// The drawn fleet.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Timelines of all withdrawals and crashes.
    pub fn clocks(&self) -> &Clocks {
        &self.shared.clocks
    }

    /// Counters since the start.
    pub fn totals(&self) -> &Totals {
        &self.shared.totals
    }

    /// What was reached.
    pub fn goals(&self) -> &Goals {
        &self.shared.goals
    }

    /// Broken invariants.
    pub fn violations(&self) -> &[Violation] {
        &self.shared.violations
    }

    /// The data plane.
    pub fn plane(&self) -> &Full {
        &self.plane
    }

    /// The instances.
    pub fn instances(&self) -> &Pages<Instance> {
        &self.fleet.instances
    }

    /// One row a second.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Hashes of the state, one every ten seconds (I22).
    pub fn trail(&self) -> &[[u8; 32]] {
        &self.trail
    }

    /// The dials that the operator wants; see [`World::in_force`] for what acts where.
    pub fn dials(&self) -> &Dials {
        &self.shared.dials
    }

    /// Shard of each service.
    pub fn shards(&self) -> &[u8] {
        &self.shards
    }

    /// The noise of this world.
    pub fn noise(&self) -> Noise {
        self.shared.noise
    }

    /// The cells as they stand in the catalogs, for publishers to start from.
    pub fn bases(&self) -> Vec<CellStore> {
        let views = self.control.groups.iter().flat_map(|group| group.catalog.views());
        views
            .map(|view| {
                let head = view.head();
                let mut endpoints: Vec<_> = view.endpoints().collect();
                endpoints.sort_unstable_by_key(|endpoint| endpoint.instance);
                let cursor = Cursor::new(head.incarnation, head.revision);
                CellStore::at(view.cell(), cursor, endpoints)
            })
            .collect()
    }

    /// Records the course from now on.
    pub fn record(&mut self) {
        self.shared.course = Some(Vec::new());
    }

    /// The course since [`World::record`].
    pub fn take_course(&mut self) -> Vec<(Micros, Trace)> {
        self.shared.course.take().unwrap_or_default()
    }

    /// Hash of the whole state.
    pub fn digest(&self) -> Result<[u8; 32], SetupError> {
        Ok(*blake3::hash(&self.save()?).as_bytes())
    }

    /// The state as bytes.
    pub fn save(&self) -> Result<Vec<u8>, SetupError> {
        postcard::to_stdvec(self).map_err(|error| SetupError::Saved(error.to_string()))
    }

    /// The state that [`World::save`] wrote.
    pub fn load(bytes: &[u8]) -> Result<Self, SetupError> {
        let mut world: Self =
            postcard::from_bytes(bytes).map_err(|error| SetupError::Saved(error.to_string()))?;
        world.revive();
        Ok(world)
    }

    /// Puts back what no saved state holds; for worlds that were read as a part of something else.
    pub fn revive(&mut self) {
        self.plane.ledger.set_may_eject(full::may_eject);
    }
}

/// Gives an emptied list back, so that its memory is used again.
fn give_back<T>(place: &mut Vec<T>, empty: Vec<T>) {
    if place.capacity() == 0 {
        *place = empty;
    }
}

fn check_shape(shape: &Shape) -> Result<(), SetupError> {
    let rules: [(bool, &'static str, u64, &'static str); 5] = [
        (shape.services >= 1, "services", shape.services.into(), "at least 1"),
        (
            usize::from(shape.nodes) >= 2 * REGIONS,
            "nodes",
            shape.nodes.into(),
            "at least two a region",
        ),
        (
            shape.instances >= u32::from(shape.services) * 2 * REGIONS as u32,
            "instances",
            shape.instances.into(),
            "at least six a service",
        ),
        (shape.shards >= 1, "shards", shape.shards.into(), "at least 1"),
        (matches!(shape.replicas, 3 | 5), "replicas", shape.replicas.into(), "3 or 5"),
    ];
    match rules.into_iter().find(|rule| !rule.0) {
        Some((_, field, value, expected)) => Err(SetupError::Shape { field, value, expected }),
        None => Ok(()),
    }
}

fn directory(topology: &Topology) -> Result<Directory, DirectoryError> {
    let key = |service: usize| ServiceKey {
        namespace: "prod".to_owned(),
        service: format!("service-{service:04}"),
        port: "grpc".to_owned(),
    };
    Directory::new((0..topology.services.len()).map(key).collect(), topology.shape.shards)
}

/// The catalogs with all instances READY: registered and started through the usual commands.
fn catalogs(
    directory: &Directory,
    topology: &Topology,
    (fleet, shards): (&Fleet, &[u8]),
    births: &mut Vec<(usize, Transition)>,
    shared: &mut Shared,
) -> Vec<(u8, CatalogShard)> {
    let count = topology.shape.shards;
    let mut catalogs: Vec<(u8, CatalogShard)> = (0..REGIONS as u8)
        .flat_map(|region| (0..count).map(move |shard| (region, shard)))
        .map(|(region, shard)| {
            (region, CatalogShard::new(directory, RegionId(region), ShardId(shard), 256))
        })
        .collect();
    let mut out = CatalogOut::default();
    for (id, placed) in topology.instances.iter().enumerate() {
        let cell = cell_name(placed.cell);
        let shard = usize::from(shards[cell.service.index()]);
        let group = usize::from(cell.region.0) * usize::from(count) + shard;
        let registration = fleet.registration(id as u32, topology);
        let register = Command::Register(registration, Source::Controller);
        let start = Command::Move {
            instance: InstanceId(id as u32),
            generation: registration.generation,
            to: State::Ready,
            reason: Reason::Started,
            source: Source::Controller,
            expected: None,
        };
        for command in [register, start] {
            out.clear();
            let entry = Entry { proposed: Time::ZERO, command };
            let verdict = catalogs[group].1.apply(&entry, Term(0), Time::ZERO, &mut out);
            shared.assert(verdict.accepted(), "I6", || format!("{command:?}: {verdict}"));
            births.extend(out.transitions.drain(..).map(|transition| (group, transition)));
        }
    }
    catalogs
}

fn heads(
    catalogs: &[(u8, CatalogShard)],
    topology: &Topology,
    shards: &[u8],
) -> Vec<(Cursor, u32, u64)> {
    (0..topology.cells() as u32)
        .map(|cell| {
            let name = cell_name(cell);
            let shard = usize::from(shards[name.service.index()]);
            let group = usize::from(name.region.0) * usize::from(topology.shape.shards) + shard;
            let head = catalogs[group].1.view(name).map(oncall_discovery::catalog::CellView::head);
            head.map_or(
                (Cursor::new(full::FIRST, oncall_discovery::types::Revision(0)), 0, 0),
                |head| (Cursor::new(head.incarnation, head.revision), head.count, head.checksum),
            )
        })
        .collect()
}
