//! Who is where: services, instances, nodes with their proxies, subscriptions, traffic.

use crate::ledger::{REMOTE, Sub, ZONES};
use crate::noise::{Draw, Noise};
use oncall_core::math;
use serde::{Deserialize, Serialize};

/// Regions of the fleet.
pub const REGIONS: usize = 3;

/// A size of world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scale {
    /// 24 services, 480 instances, 48 proxies: every request can be sampled.
    Small,
    /// 200 services, 10,000 instances, 500 proxies.
    Tenth,
    /// 2,000 services, 100,000 instances, 5,000 proxies (R1, R16).
    Full,
}

impl Scale {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Small, Self::Tenth, Self::Full];

    /// `small`, `tenth` or `full`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Small => "small",
            Self::Tenth => "tenth",
            Self::Full => "full",
        }
    }

    /// The scale of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scale| scale.name() == name)
    }

    /// Its numbers.
    pub fn shape(self) -> Shape {
        let full = Shape {
            services: 2_000,
            instances: 100_000,
            nodes: 5_000,
            subscriptions: 40,
            shards: 8,
            replicas: 3,
            relay_share: 1.0,
            rollout: 10_000,
            pace_share: 1.0,
            admission_share: 1.0,
            snapshot_share: 1.0,
            relay_deliveries_per_s: 3_000.0,
            loss: Loss::default(),
            target_load: 0.6,
        };
        match self {
            Self::Full => full,
            Self::Tenth => Shape {
                services: 200,
                instances: 10_000,
                nodes: 500,
                shards: 2,
                relay_share: 0.25,
                rollout: 1_000,
                ..full
            },
            Self::Small => Shape {
                services: 24,
                instances: 480,
                nodes: 48,
                subscriptions: 10,
                shards: 1,
                relay_share: 0.125,
                rollout: 48,
                ..full
            },
        }
    }

    /// The numbers of the environment of this scale. What is counted for the whole fleet (the pace of a
    /// rollout, admissions, bytes of snapshots, deliveries of a relay) shrinks with it, so that the same dials
    /// bind in the same way: a rollout in one service needs more deliveries than the relays can make, one that
    /// is spread over many a part of them, and the removals of nodes that vanish are through in seconds. Not all
    /// of that shrinks alike, since more proxies follow a service in a larger fleet; the tenth lies between the others.
    pub fn env_shape(self) -> Shape {
        let shape = self.shape();
        match self {
            Self::Full => shape,
            Self::Tenth => Shape {
                pace_share: 0.4,
                admission_share: 0.1,
                snapshot_share: 0.1,
                relay_deliveries_per_s: 800.0,
                ..shape
            },
            Self::Small => Shape {
                services: 20,
                instances: 1_000,
                nodes: 50,
                subscriptions: 6,
                relay_share: 0.25,
                rollout: 100,
                pace_share: 0.05,
                admission_share: 0.05,
                snapshot_share: 0.0005,
                relay_deliveries_per_s: 10.0,
                ..shape
            },
        }
    }
}

/// Numbers of a world (R11: parameters, not constants).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Logical services.
    pub services: u16,
    /// Instances at the start.
    pub instances: u32,
    /// Nodes; each has a proxy.
    pub nodes: u16,
    /// Services that a proxy follows.
    pub subscriptions: u16,
    /// Consistency groups of a region.
    pub shards: u8,
    /// Replicas of a group, 3 or 5.
    pub replicas: u8,
    /// Relays of a region, as a share of the dial `relays_per_region`.
    pub relay_share: f64,
    /// Endpoints of the large rollout.
    pub rollout: u32,
    /// Share of the dial `rollout_pace_per_s` that a fleet of this size turns over.
    pub pace_share: f64,
    /// Share of the dial `admission_per_s` that a region of this size admits.
    pub admission_share: f64,
    /// Share of the dial `snapshot_budget_mb_s` that a region of this size may send.
    pub snapshot_share: f64,
    /// Deliveries that a relay makes in a second.
    pub relay_deliveries_per_s: f64,
    /// How the network loses probes.
    pub loss: Loss,
    /// Attempts at the start, of what the instances of a cell can take; 0 if they can take everything.
    pub target_load: f64,
}

/// How the network loses probes: hardly ever on a healthy path, nearly always while a node's channel is in a
/// burst (Gilbert and Elliott).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// Share lost on a healthy path.
    pub calm: f64,
    /// Share lost within a burst.
    pub burst: f64,
    /// Mean length of a burst, seconds.
    pub burst_s: f64,
    /// Mean time between two bursts of a node, seconds.
    pub between_s: f64,
}

impl Default for Loss {
    fn default() -> Self {
        Self { calm: 0.000_5, burst: 0.9, burst_s: 3.0, between_s: 7_200.0 }
    }
}

impl Loss {
    /// Share of all probes that is lost.
    pub fn mean(&self) -> f64 {
        let bursting = self.burst_s / (self.burst_s + self.between_s);
        self.calm + (self.burst - self.calm) * bursting
    }
}

impl Default for Shape {
    fn default() -> Self {
        Scale::Small.shape()
    }
}

impl Shape {
    /// Every number, for hashes of what changes a trajectory.
    pub fn numbers(&self) -> [f64; 17] {
        // Named one by one, so that a new number cannot be forgotten.
        let Self {
            services,
            instances,
            nodes,
            subscriptions,
            shards,
            replicas,
            relay_share,
            rollout,
            pace_share,
            admission_share,
            snapshot_share,
            relay_deliveries_per_s,
            loss: Loss { calm, burst, burst_s, between_s },
            target_load,
        } = *self;
        [
            services.into(),
            instances.into(),
            nodes.into(),
            subscriptions.into(),
            shards.into(),
            replicas.into(),
            relay_share,
            rollout.into(),
            pace_share,
            admission_share,
            snapshot_share,
            relay_deliveries_per_s,
            calm,
            burst,
            burst_s,
            between_s,
            target_load,
        ]
    }
}

/// What a service declares (R120), as far as the traffic goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Service {
    /// Whether stateless reads may go to other regions.
    pub cross_region: bool,
    /// Whether an old snapshot is refused.
    pub strict: bool,
    /// Instances at the start.
    pub size: u32,
}

/// One node and its proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Node {
    /// Region.
    pub region: u8,
    /// Zone within the region.
    pub zone: u8,
}

/// Where an instance starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Placed {
    /// Cell: service times regions plus region.
    pub cell: u32,
    /// Node.
    pub node: u16,
}

/// A drawn world.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// Its numbers.
    pub shape: Shape,
    /// The services, most popular first.
    pub services: Vec<Service>,
    /// The nodes.
    pub nodes: Vec<Node>,
    /// Nodes by region.
    pub by_region: Vec<Vec<u16>>,
    /// Instances at the start.
    pub instances: Vec<Placed>,
}

/// Number of a cell.
pub fn cell_of(service: u16, region: u8) -> u32 {
    u32::from(service) * REGIONS as u32 + u32::from(region)
}

impl Topology {
    /// Draws a world.
    pub fn draw(shape: Shape, noise: Noise) -> Self {
        let nodes: Vec<Node> = (0..shape.nodes)
            .map(|id| Node {
                region: (usize::from(id) % REGIONS) as u8,
                zone: (usize::from(id) / REGIONS % ZONES) as u8,
            })
            .collect();
        let mut by_region = vec![Vec::new(); REGIONS];
        for (id, node) in nodes.iter().enumerate() {
            by_region[usize::from(node.region)].push(id as u16);
        }
        let sizes = sizes(shape);
        let services: Vec<Service> = sizes
            .iter()
            .enumerate()
            .map(|(id, &size)| {
                let u = noise.uniform(Draw::Topology, 1, id as u64);
                Service { cross_region: u < 0.2, strict: (0.2..0.25).contains(&u), size }
            })
            .collect();
        let mut instances = Vec::with_capacity(shape.instances as usize);
        for (service, &size) in sizes.iter().enumerate() {
            for i in 0..size {
                let region = ((service as u32 + i) % REGIONS as u32) as u8;
                let node = place(noise, &by_region, region, instances.len() as u64);
                instances.push(Placed { cell: cell_of(service as u16, region), node });
            }
        }
        Self { shape, services, nodes, by_region, instances }
    }

    /// Cells.
    pub fn cells(&self) -> usize {
        self.services.len() * REGIONS
    }

    /// A node for a new instance of a region.
    pub fn place(&self, noise: Noise, region: u8, number: u64) -> u16 {
        place(noise, &self.by_region, region, number)
    }

    /// Subscriptions by cell: every proxy follows its own services locally, and the other regions of
    /// those that may fail over (D16), without traffic there.
    pub fn subscriptions(&self, noise: Noise) -> Vec<Vec<Sub>> {
        let mut cells = vec![Vec::new(); self.cells()];
        let weights = zipf(self.services.len(), 0.8);
        let mut wanted = Vec::new();
        for (proxy, node) in self.nodes.iter().enumerate() {
            self.choose(noise, proxy as u64, &weights, &mut wanted);
            for &service in &wanted {
                let index = proxy as u64 * 65_536 + u64::from(service);
                let rate = noise.exponential(Draw::Topology, 3, index);
                let lambda = (rate.min(50.0) * 1e6) as u32;
                let local = cell_of(service, node.region);
                cells[local as usize].push(Sub::new(proxy as u16, node.zone, lambda));
                if self.services[usize::from(service)].cross_region {
                    for region in (0..REGIONS as u8).filter(|&region| region != node.region) {
                        let remote = cell_of(service, region) as usize;
                        cells[remote].push(Sub::new(proxy as u16, REMOTE, 0));
                    }
                }
            }
        }
        cells
    }

    /// Distinct services, popular ones more often.
    fn choose(&self, noise: Noise, proxy: u64, weights: &[f64], wanted: &mut Vec<u16>) {
        wanted.clear();
        let total = weights.last().copied().unwrap_or(0.0);
        let want = usize::from(self.shape.subscriptions).min(self.services.len());
        let mut draw = 0;
        while wanted.len() < want {
            let point = noise.uniform(Draw::Topology, 1_000 + proxy, draw) * total;
            draw += 1;
            let service =
                weights.partition_point(|&sum| sum <= point).min(weights.len() - 1) as u16;
            // After many draws of the same popular ones, take what comes next.
            let service = if draw < 40 * want as u64 {
                service
            } else {
                (0..self.services.len() as u16)
                    .find(|service| !wanted.contains(service))
                    .unwrap_or(service)
            };
            if !wanted.contains(&service) {
                wanted.push(service);
            }
        }
        wanted.sort_unstable();
    }
}

fn place(noise: Noise, by_region: &[Vec<u16>], region: u8, number: u64) -> u16 {
    let nodes = &by_region[usize::from(region)];
    nodes[noise.below(Draw::Topology, 2, number, nodes.len() as u64) as usize]
}

/// Running sums of rank to the power of minus `exponent`.
fn zipf(count: usize, exponent: f64) -> Vec<f64> {
    let mut sum = 0.0;
    let weight = |rank: usize| math::exp(-exponent * math::ln(rank as f64 + 1.0));
    (0..count)
        .map(|rank| {
            sum += weight(rank);
            sum
        })
        .collect()
}

/// Sizes of the services (Zipf 0.6), at least two a region, in all exactly the number of instances.
fn sizes(shape: Shape) -> Vec<u32> {
    let count = usize::from(shape.services);
    let least = 2 * REGIONS as u32;
    let sums = zipf(count, 0.6);
    let spread = f64::from(shape.instances.saturating_sub(least * count as u32));
    let total = sums.last().copied().unwrap_or(1.0);
    let (mut sizes, mut given) = (Vec::with_capacity(count), 0);
    for sum in sums {
        let upto = (sum / total * spread).round() as u32;
        sizes.push(least + upto - given);
        given = upto;
    }
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::{EpisodeKey, Generator, Split};

    /// What the relays of a fleet of the environment have to deliver, over what they can, at the default dials:
    /// while a rollout goes on in one service that every proxy follows, while one is spread over all services, and
    /// (seconds) after 6 % of the nodes vanish, where the changes of a service come together and each further one
    /// costs a twentieth.
    fn strains(scale: Scale) -> [f64; 3] {
        let shape = scale.env_shape();
        let relays = REGIONS as f64 * f64::from(crate::world::relays(&shape, 16.0));
        let capacity = relays * shape.relay_deliveries_per_s;
        let pairs = f64::from(shape.nodes) * f64::from(shape.subscriptions);
        let pace = 83.0 * shape.pace_share;
        let gone = 0.06 * f64::from(shape.instances) / f64::from(shape.services);
        [
            pace * f64::from(shape.nodes) / capacity,
            pace * pairs / f64::from(shape.services) / capacity,
            pairs * (1.0 + 0.05 * (gone - 1.0)) / capacity,
        ]
    }

    #[test]
    fn dials_bind_at_every_scale() {
        let [small, tenth, full] = Scale::ALL.map(strains);
        for (strain, what) in ["one service", "spread", "vanished"].into_iter().enumerate() {
            let (a, b) = (small[strain].min(full[strain]), small[strain].max(full[strain]));
            assert!(
                (a * 0.99..=b).contains(&tenth[strain]),
                "{what}: {small:?} {tenth:?} {full:?}"
            );
        }
        for [one_service, spread, vanished_s] in [small, tenth, full] {
            assert!(one_service > 1.5 && spread < 0.6 && vanished_s < 3.0);
        }
    }

    #[test]
    fn the_full_fleet_has_the_numbers_of_the_brief() {
        let noise = Noise::new(EpisodeKey::new(1, 0, Split::Train, Generator::Pcg));
        let topology = Topology::draw(Scale::Full.shape(), noise);
        assert_eq!(topology.instances.len(), 100_000);
        assert_eq!(Scale::Full.shape().rollout, 10_000);
        assert_eq!((topology.services.len(), topology.nodes.len()), (2_000, 5_000));
        let subs = topology.subscriptions(noise);
        let local: usize = subs.iter().flatten().filter(|sub| sub.caller != REMOTE).count();
        assert_eq!(local, 200_000, "40 services each");
        let remote = subs.iter().flatten().count() - local;
        assert!((50_000..150_000).contains(&remote), "{remote} remote subscriptions");
        let traffic: f64 = subs.iter().flatten().map(|sub| f64::from(sub.lambda) / 1e6).sum();
        assert!((traffic / 200_000.0 - 1.0).abs() < 0.02, "one request a second and pair");
        assert!(subs[0].len() > 1_000, "the most popular service is followed nearly everywhere");
        assert!(topology.services.iter().all(|service| service.size >= 6));
    }

    #[test]
    fn a_proxy_follows_a_cell_once() {
        let noise = Noise::new(EpisodeKey::new(2, 0, Split::Train, Generator::Pcg));
        let topology = Topology::draw(Scale::Small.shape(), noise);
        for subs in topology.subscriptions(noise) {
            assert!(subs.windows(2).all(|pair| pair[0].proxy < pair[1].proxy));
        }
    }
}
