//! Instances as they really are, next to what the catalog believes.

use super::World;
use super::clocks::Kind;
use super::shared::{Event, Life, Trace};
use crate::ledger::Clock;
use crate::noise::Draw;
use crate::queue::{MS, Micros, S, micros};
use crate::topology::{REGIONS, Topology};
use oncall_consensus::Pages;
use oncall_discovery::auth::Revocations;
use oncall_discovery::catalog::{Command, Registration};
use oncall_discovery::health::PassiveRule;
use oncall_discovery::types::{
    Address, Cell, Generation, InstanceId, Labels, NodeId, Out, Place, Reason, RegionId, ServiceId,
    Source, State, Time, Transition, ZoneId,
};
use serde::{Deserialize, Serialize};

/// What a process is really doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Truth {
    /// Not up yet.
    Booting,
    /// Takes and serves requests.
    Serving,
    /// Asked to leave; takes new work until it refuses.
    Leaving,
    /// Refuses new work, finishes old.
    Refusing,
    /// Answers nothing.
    Frozen,
    /// No process at the address: connections are refused.
    Gone,
}

impl Truth {
    /// Whether every new request there fails.
    pub fn fails(self) -> bool {
        !matches!(self, Self::Serving | Self::Leaving)
    }

    /// Whether there is a process that answers probes.
    pub fn answers(self) -> bool {
        matches!(self, Self::Serving | Self::Leaving | Self::Refusing)
    }
}

/// One instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Instance {
    /// Cell.
    pub cell: u32,
    /// Node.
    pub node: u16,
    /// Zone.
    pub zone: u8,
    /// What it is really doing.
    pub truth: Truth,
    /// State in the catalog.
    pub state: State,
    /// Whether its readiness fails through a dependency.
    pub dependency_bad: bool,
    /// Whether that dependency is slow, and fails nothing yet.
    pub dependency_slow: bool,
    /// When one of its probes failed last.
    pub probe_failed: Micros,
    /// Generation of the life before.
    pub before: Generation,
    /// When its identity was issued.
    pub issued: Time,
    /// Which life; events of another one are void.
    pub life: u32,
    /// Generation of this life.
    pub generation: Generation,
    /// Its running timeline; `u32::MAX` without one.
    pub clock: u32,
    /// The instance that leaves once this one is READY; `u32::MAX` without one.
    pub replaces: u32,
}

/// All instances.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Fleet {
    pub(crate) instances: Pages<Instance>,
    /// Instances by node.
    pub(crate) on_node: Pages<Vec<u32>>,
    /// Until when nodes are away; 0 if they are there.
    pub(crate) node_away: Vec<Micros>,
    /// Identities that callers refuse: independent of the catalog and its distribution.
    pub(crate) revocations: Revocations,
    /// Whose identity a fault has revoked, and in which life.
    pub(crate) revoked: Vec<(u32, Generation)>,
}

/// Time from start to ready: base and mean of the rest, seconds.
const BOOT_S: (f64, f64) = (3.0, 2.0);
/// After a death, the orchestrator starts the process again.
const RESTART_S: (f64, f64) = (40.0, 20.0);

impl Fleet {
    /// The instances of a drawn world, all up.
    pub(crate) fn new(topology: &Topology) -> Self {
        let instance = |placed: &crate::topology::Placed| Instance {
            cell: placed.cell,
            node: placed.node,
            zone: topology.nodes[usize::from(placed.node)].zone,
            truth: Truth::Serving,
            state: State::Ready,
            dependency_bad: false,
            dependency_slow: false,
            probe_failed: 0,
            before: Generation::first(0),
            issued: Time(0),
            life: 0,
            generation: Generation::first(0),
            clock: u32::MAX,
            replaces: u32::MAX,
        };
        let instances: Pages<Instance> = topology.instances.iter().map(instance).collect();
        let mut on_node: Pages<Vec<u32>> = topology.nodes.iter().map(|_| Vec::new()).collect();
        for (id, instance) in instances.iter().enumerate() {
            on_node[usize::from(instance.node)].push(id as u32);
        }
        let (revocations, revoked) = (Revocations::default(), Vec::new());
        let node_away = vec![0; topology.nodes.len()];
        Self { instances, on_node, node_away, revocations, revoked }
    }

    pub(crate) fn registration(&self, id: u32, topology: &Topology) -> Registration {
        let instance = &self.instances[id as usize];
        Registration {
            cell: cell_name(instance.cell),
            instance: InstanceId(id),
            generation: instance.generation,
            // A pod's own address: it stays with the instance, across restarts of its process.
            address: Address { ip: 0x0a00_0000 + id, port: 8080 },
            place: Place {
                region: RegionId(topology.nodes[usize::from(instance.node)].region),
                zone: ZoneId(instance.zone),
            },
            node: NodeId(instance.node),
            version: 1,
            weight: 1,
            labels: Labels::default(),
            ready: false,
        }
    }
}

/// A cell's number as its name.
pub fn cell_name(cell: u32) -> Cell {
    Cell {
        service: ServiceId((cell / REGIONS as u32) as u16),
        region: RegionId((cell % REGIONS as u32) as u8),
    }
}

/// Region of a cell.
#[inline]
pub(crate) fn cell_region(cell: u32) -> usize {
    cell as usize % REGIONS
}

/// A cell's name as its number.
pub(crate) fn cell_number(cell: Cell) -> u32 {
    u32::from(cell.service.0) * REGIONS as u32 + u32::from(cell.region.0)
}

impl World {
    pub(crate) fn group_of(&self, cell: u32) -> u16 {
        let name = cell_name(cell);
        let shard = self.shards[name.service.index()];
        u16::from(name.region.0) * u16::from(self.topology.shape.shards) + u16::from(shard)
    }

    pub(crate) fn ask_move(&mut self, id: u32, to: State, reason: Reason, source: Source) {
        let instance = self.fleet.instances[id as usize];
        let command = Command::Move {
            instance: InstanceId(id),
            generation: instance.generation,
            to,
            reason,
            source,
            expected: None,
        };
        let group = self.group_of(instance.cell);
        self.control.ask(group, command, true, &mut self.shared);
    }

    /// A new process: registers, boots.
    pub(crate) fn start_process(&mut self, id: u32) {
        let now = self.shared.now();
        let instance = self.fleet.instances[id as usize];
        // Whoever runs is not started again, whatever its readiness says (I15).
        self.shared.assert(!instance.truth.answers(), "I15", || {
            format!("instance {id} restarts, and it is {:?}", instance.truth)
        });
        let down = self.dependency_down(instance.cell);
        let instance = &mut self.fleet.instances[id as usize];
        instance.truth = Truth::Booting;
        instance.life += 1;
        instance.before = instance.generation;
        instance.generation = Generation::first((now / MS) as u32 + 1);
        (instance.dependency_bad, instance.issued) = (down, Time(now));
        let (life, cell, node) = (instance.life, instance.cell, instance.node);
        let registration = self.fleet.registration(id, &self.topology);
        let command = Command::Register(registration, Source::Agent(NodeId(node)));
        let group = self.group_of(cell);
        self.control.ask(group, command, true, &mut self.shared);
        self.refuse_or_admit(id);
        let boot = self.shared.noise.exponential(Draw::Boot, u64::from(id), u64::from(life));
        let at = now + micros(BOOT_S.0 + BOOT_S.1 * boot);
        self.shared.push(at, Event::Life { instance: id, life, what: Life::Booted });
    }

    /// A new instance of a cell on a node that is there.
    pub(crate) fn start_instance(&mut self, cell: u32, number: u64) -> u32 {
        let region = (cell % REGIONS as u32) as u8;
        let noise = self.shared.noise;
        let mut node = self.topology.place(noise, region, number);
        for attempt in 1..20 {
            if self.fleet.node_away[usize::from(node)] == 0 {
                break;
            }
            node = self.topology.place(noise, region, number + (attempt << 40));
        }
        let id = self.fleet.instances.len() as u32;
        self.fleet.instances.push(Instance {
            cell,
            node,
            zone: self.topology.nodes[usize::from(node)].zone,
            truth: Truth::Booting,
            state: State::Gone,
            dependency_bad: false,
            dependency_slow: false,
            probe_failed: 0,
            before: Generation::first(0),
            issued: Time(0),
            life: 0,
            generation: Generation::first(0),
            clock: u32::MAX,
            replaces: u32::MAX,
        });
        self.fleet.on_node[usize::from(node)].push(id);
        let group = self.group_of(cell);
        self.probing.add(id, usize::from(region), group, self.shared.noise);
        self.start_process(id);
        id
    }

    /// Takes an instance out of service deliberately.
    pub(crate) fn withdraw(&mut self, id: u32) {
        let instance = &mut self.fleet.instances[id as usize];
        if instance.truth != Truth::Serving || instance.clock != u32::MAX {
            return;
        }
        let now = self.shared.now();
        instance.truth = Truth::Leaving;
        instance.clock = self.shared.clocks.begin(Kind::Withdrawal, id, instance.cell, now);
        if let Some(line) = self.shared.clocks.get_mut(instance.clock) {
            line.detected = Some(now);
        }
        let source = Source::Agent(NodeId(instance.node));
        self.ask_move(id, State::Draining, Reason::Withdrawn, source);
    }

    /// A process or its node dies without notice.
    pub(crate) fn die(&mut self, id: u32, freeze: bool, restart: bool) {
        let now = self.shared.now();
        let instance = &mut self.fleet.instances[id as usize];
        if matches!(instance.truth, Truth::Frozen | Truth::Gone) {
            return;
        }
        let was_serving = instance.truth == Truth::Serving;
        instance.truth = if freeze { Truth::Frozen } else { Truth::Gone };
        instance.life += 1;
        let (life, cell) = (instance.life, instance.cell);
        let began = was_serving && instance.state == State::Ready && instance.clock == u32::MAX;
        if began {
            instance.clock = self.shared.clocks.begin(Kind::Crash, id, cell, now);
            self.shared.trace(Trace::Died(id));
        }
        self.plane.set_failing(&mut self.shared, id, cell, true);
        let instance = self.fleet.instances[id as usize];
        if began {
            let clock =
                Clock { key: instance.clock, instance: id, start: now, zone: instance.zone };
            self.plane.begin_crash(&mut self.shared, cell, clock);
        }
        // The agent stops to list it: the last renewal was up to one interval ago.
        let interval = micros(self.shared.led(cell_region(cell)).renewal_interval_s);
        let ago = self.shared.noise.below(Draw::Renewal, u64::from(id), u64::from(life), interval);
        let group = usize::from(self.group_of(cell));
        self.control.uncover(group, InstanceId(id), now.saturating_sub(ago), &mut self.shared);
        if restart {
            let wait = self.shared.noise.exponential(Draw::Boot, u64::from(id) | 1 << 40, now);
            let at = now + micros(RESTART_S.0 + RESTART_S.1 * wait);
            self.shared.push(at, Event::Life { instance: id, life, what: Life::Return });
        }
    }

    pub(crate) fn on_life(&mut self, id: u32, life: u32, what: Life) {
        let Some(instance) = self.fleet.instances.get(id as usize).copied() else { return };
        if instance.life != life {
            return;
        }
        match what {
            Life::Booted => {
                self.fleet.instances[id as usize].truth = Truth::Serving;
                self.plane.set_failing(&mut self.shared, id, instance.cell, false);
                self.report(id);
            }
            Life::Report => self.report(id),
            Life::Withdraw => self.withdraw(id),
            Life::Refuse => {
                self.fleet.instances[id as usize].truth = Truth::Refusing;
                self.plane.set_failing(&mut self.shared, id, instance.cell, true);
            }
            Life::Exit => {
                self.fleet.instances[id as usize].truth = Truth::Gone;
                self.plane.set_failing(&mut self.shared, id, instance.cell, true);
                let now = self.shared.now();
                let forced = self.shared.clocks.exit(instance.clock, now, self.long.1);
                self.shared.totals.forced += forced;
                let region = cell_region(instance.cell);
                self.shared.meters.regions[region].forced += forced;
                let source = Source::Agent(NodeId(instance.node));
                self.ask_move(id, State::Gone, Reason::Exited, source);
            }
            Life::Die { freeze } => self.die(id, freeze, true),
            Life::Return => {
                let away = self.fleet.node_away[usize::from(instance.node)];
                if away > 0 {
                    return;
                }
                self.fleet.instances[id as usize].clock = u32::MAX;
                self.start_process(id);
                // What the old process sent last was on its way for long.
                let life = self.fleet.instances[id as usize].life;
                let event = Event::Life { instance: id, life, what: Life::LateRenewal };
                self.shared.push(self.shared.now() + S, event);
            }
            Life::LateRenewal => self.late_renewal(id),
        }
    }

    /// The catalog accepted a transition: what that means for the process, the clocks, the traffic.
    pub(crate) fn on_transition(&mut self, transition: &Transition, asked: Micros) {
        let id = transition.instance.0;
        let now = self.shared.now();
        let Some(instance) = self.fleet.instances.get_mut(id as usize) else { return };
        instance.state = transition.to;
        self.shared.meters.moved(instance.cell, transition);
        let (cell, truth, zone) = (instance.cell, instance.truth, instance.zone);
        let current = instance.generation == transition.generation;
        if transition.from == Some(State::Ready) {
            self.leave_ready(transition, truth, asked);
        }
        match transition.to {
            State::Ready => {
                self.plane.enter_ready(&mut self.shared, id, cell, zone, truth.fails());
                let replaces = self.fleet.instances[id as usize].replaces;
                if replaces != u32::MAX {
                    self.fleet.instances[id as usize].replaces = u32::MAX;
                    self.withdraw(replaces);
                }
            }
            // Booted before its registration was accepted: the agent repeats what it had said.
            State::Starting if current && truth == Truth::Serving => self.report(id),
            State::Draining if current => {
                let life = self.fleet.instances[id as usize].life;
                let grace = micros(self.shared.led(cell_region(cell)).accept_grace_s);
                let drain = micros(self.shared.led(cell_region(cell)).drain_period_s);
                if matches!(truth, Truth::Serving | Truth::Leaving) {
                    self.fleet.instances[id as usize].truth = Truth::Leaving;
                    let event = |what| Event::Life { instance: id, life, what };
                    self.shared.push(now + grace.min(drain), event(Life::Refuse));
                    self.shared.push(now + drain, event(Life::Exit));
                }
            }
            _ => {}
        }
    }

    /// A renewal of the life before arrives: the new one has the name, and nothing is renewed (I7).
    fn late_renewal(&mut self, id: u32) {
        let instance = self.fleet.instances[id as usize];
        let now = self.shared.time();
        let group = usize::from(self.group_of(instance.cell));
        let group = &mut self.control.groups[group];
        let registered = group.catalog.find(InstanceId(id)).map(|record| record.generation);
        if registered != Some(instance.generation) {
            // Nobody could register in the meantime.
            return;
        }
        let mut out = Out::new();
        let listed = [(InstanceId(id), instance.before)];
        group.leases.renew(now, &group.catalog, NodeId(instance.node), &listed, &mut out);
        let refused = !out.sends.is_empty();
        self.shared.goals.old_generation_refused += u64::from(refused);
        self.shared.assert(refused, "I7", || {
            format!("instance {id}: {:?} renewed, it is {:?}", instance.before, instance.generation)
        });
    }

    fn leave_ready(&mut self, transition: &Transition, truth: Truth, asked: Micros) {
        let id = transition.instance.0;
        let now = self.shared.now();
        let instance = &mut self.fleet.instances[id as usize];
        let dead = matches!(truth, Truth::Frozen | Truth::Gone | Truth::Booting);
        if instance.clock == u32::MAX {
            let kind = if transition.reason.deliberate() { Kind::Withdrawal } else { Kind::False };
            instance.clock = self.shared.clocks.begin(kind, id, instance.cell, now);
        }
        if transition.reason == Reason::PassiveConfirmed {
            // A failed probe has to bear the complaints out (I13).
            let failed = instance.probe_failed;
            let agrees = failed > 0 && now.saturating_sub(failed) < PassiveRule::default().window.0;
            self.shared.assert(agrees, "I13", || {
                format!("instance {id}: complaints alone; its last failed probe was at {failed}")
            });
        }
        match transition.reason {
            Reason::ProbesFailed | Reason::PassiveConfirmed => {
                self.shared.totals.removals_by_probe += 1;
            }
            Reason::LeaseExpired => self.shared.totals.removals_by_lease += 1,
            _ => {}
        }
        let deliberate = transition.reason.deliberate() || transition.reason == Reason::Replaced;
        if !dead && !deliberate {
            self.shared.totals.false_removals += 1;
            let region = cell_region(instance.cell);
            self.shared.meters.regions[region].false_removals += 1;
        }
        let (clock, cell, zone) = (instance.clock, instance.cell, instance.zone);
        if let Some(line) = self.shared.clocks.get_mut(clock) {
            line.accepted = Some(now);
            line.reason = Some(transition.reason);
            line.detected.get_or_insert(asked);
            let start = line.start();
            let region = cell_region(cell);
            let deliberate = line.kind == Kind::Withdrawal;
            self.shared.meters.regions[region].withdrawals += u64::from(deliberate);
            self.plane.leave_ready(&mut self.shared, id, cell, (clock, start, zone));
        }
        // One that lives on may come back READY and leave again, with a timeline of its own.
        if matches!(transition.to, State::Unhealthy | State::Expired) && !dead {
            self.fleet.instances[id as usize].clock = u32::MAX;
        }
    }

    /// Instances that serve, in an order that depends on `index` only.
    pub(crate) fn some_serving(
        &self,
        count: usize,
        index: u64,
        only: impl Fn(&Instance) -> bool,
    ) -> Vec<u32> {
        let mut found: Vec<(u64, u32)> = self
            .fleet
            .instances
            .iter()
            .enumerate()
            .filter(|(_, i)| i.truth == Truth::Serving && i.state == State::Ready && only(i))
            .map(|(id, _)| (self.shared.noise.word(Draw::Fault, index, id as u64), id as u32))
            .collect();
        let count = count.min(found.len());
        if count < found.len() && count > 0 {
            found.select_nth_unstable(count - 1);
        }
        found.truncate(count);
        found.sort_unstable();
        found.into_iter().map(|(_, id)| id).collect()
    }

    /// Seconds until now, for reports.
    pub fn now_s(&self) -> f64 {
        self.shared.now() as f64 / S as f64
    }
}
