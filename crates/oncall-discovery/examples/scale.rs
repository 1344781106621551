//! What the control plane's state costs at full scale: 2,000 services, 100,000 instances, 3 regions of 8 shards.
//!
//! `cargo run --release -p oncall-discovery --example scale`

use std::hint::black_box;
use std::time::Instant;

use oncall_discovery::catalog::{CatalogOut, CatalogShard, Command, Entry, Registration};
use oncall_discovery::dials::Dials;
use oncall_discovery::health::{Decider, HealthRules};
use oncall_discovery::lease::LeaseKeeper;
use oncall_discovery::types::{
    Address, Cell, Directory, Generation, InstanceId, Labels, NodeId, Out, Place, ProberId, Reason,
    RegionId, ServiceId, ServiceKey, ShardId, Source, Span, State, Term, Time, Verdict, ZoneId,
};

const SERVICES: u16 = 2_000;
const REGIONS: u8 = 3;
const SHARDS: u8 = 8;
const INSTANCES: u32 = 100_000;

#[derive(Clone)]
struct Shard {
    catalog: CatalogShard,
    keeper: LeaseKeeper,
    decider: Decider,
}

fn registration(n: u32) -> Registration {
    let place = Place { region: RegionId((n % 3) as u8), zone: ZoneId((n / 3 % 3) as u8) };
    Registration {
        cell: Cell {
            service: ServiceId((n / 3 % u32::from(SERVICES)) as u16),
            region: place.region,
        },
        instance: InstanceId(n),
        generation: Generation::first(1),
        address: Address { ip: n / 20, port: 8_000 + (n % 20) as u16 },
        place,
        node: NodeId((n / 20) as u16),
        version: 1,
        weight: 1,
        labels: Labels::NONE,
        ready: false,
    }
}

fn go(n: u32, to: State, reason: Reason) -> Command {
    Command::Move {
        instance: InstanceId(n),
        generation: Generation::first(1),
        to,
        reason,
        source: Source::Controller,
        expected: None,
    }
}

/// Applies a command and lets the keeper and the decider see what came of it.
fn apply(shard: &mut Shard, command: Command, said: &mut CatalogOut) {
    said.clear();
    let entry = Entry { proposed: Time::ZERO, command };
    let verdict = shard.catalog.apply(&entry, Term(0), Time::ZERO, said);
    assert_eq!(verdict, Verdict::Accepted);
    for transition in &said.transitions {
        shard.keeper.observe(&shard.catalog, transition, &mut Out::new());
        shard.decider.observe(&shard.catalog, transition, &mut Out::new());
    }
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Empty shards of all regions.
fn shards(directory: &Directory) -> Vec<Shard> {
    let rules = HealthRules::new(&Dials::default(), 1);
    let places = (0..REGIONS).flat_map(|region| (0..SHARDS).map(move |shard| (region, shard)));
    places
        .map(|(region, shard)| {
            let catalog = CatalogShard::new(directory, RegionId(region), ShardId(shard), 256);
            let mut decider = Decider::new(rules);
            decider.lead(&catalog, &mut Out::new());
            Shard { catalog, keeper: LeaseKeeper::new(Span::from_s(30)), decider }
        })
        .collect()
}

/// The shard that keeps an instance.
fn home(directory: &Directory, n: u32) -> usize {
    let cell = registration(n).cell;
    let shard = directory.shard(cell.service).expect("a service of the directory");
    cell.region.index() * usize::from(SHARDS) + shard.index()
}

/// Nanoseconds a command: everybody registers and becomes READY.
fn fill(world: &mut [Shard], directory: &Directory) -> f64 {
    let mut said = CatalogOut::default();
    let begin = Instant::now();
    for n in 0..INSTANCES {
        let shard = &mut world[home(directory, n)];
        apply(shard, Command::Register(registration(n), Source::Controller), &mut said);
        apply(shard, go(n, State::Ready, Reason::Started), &mut said);
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(2 * INSTANCES)
}

/// Nanoseconds a command: a tenth withdraws, exits, and comes back as new processes.
fn replace(world: &mut [Shard], directory: &Directory) -> f64 {
    let mut said = CatalogOut::default();
    let begin = Instant::now();
    for n in (0..INSTANCES).step_by(10) {
        let shard = &mut world[home(directory, n)];
        apply(shard, go(n, State::Draining, Reason::Withdrawn), &mut said);
        apply(shard, go(n, State::Gone, Reason::Exited), &mut said);
        let fresh = Registration { generation: Generation::first(2), ..registration(n) };
        apply(shard, Command::Register(fresh, Source::Controller), &mut said);
    }
    begin.elapsed().as_secs_f64() * 1e9 / f64::from(3 * INSTANCES / 10)
}

/// Milliseconds of a clone, and of a copy of as many plain bytes, interleaved: the machine's own pace.
fn copies(world: &[Shard], bytes: usize) -> (f64, f64) {
    let plain = vec![1_u8; bytes];
    let (mut clones, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        let begin = Instant::now();
        let copy = black_box(world.to_vec());
        clones.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(copy);
        let begin = Instant::now();
        let copy = black_box(plain.clone());
        copies.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(copy);
    }
    (median(clones), median(copies))
}

/// Nanoseconds a probe that changes no opinion.
fn probes(world: &mut [Shard]) -> f64 {
    let mut out = Out::new();
    let mut rounds = Vec::new();
    for round in 0..11_u64 {
        let now = Time::from_s(10 + round);
        let begin = Instant::now();
        for shard in &mut *world {
            for row in 0..shard.catalog.rows() {
                let catalog = &shard.catalog;
                shard.decider.on_probe_of_row(now, row, ProberId(0), true, catalog, &mut out);
            }
            out.clear();
        }
        rounds.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(INSTANCES));
    }
    median(rounds)
}

fn main() {
    let key = |n| ServiceKey {
        namespace: "prod".into(),
        service: format!("service-{n}"),
        port: "grpc".into(),
    };
    let directory = Directory::new((0..SERVICES).map(key).collect(), SHARDS).expect("unique keys");
    let mut world = shards(&directory);
    println!("apply and observe: {:.0} ns a command", fill(&mut world, &directory));
    let bytes: usize = world.iter().map(|shard| shard.catalog.heap_bytes()).sum();
    let each = bytes as f64 / f64::from(INSTANCES);
    println!("catalog: {:.1} MB, {each:.0} B an instance", bytes as f64 / 1e6);
    let (clone_ms, copy_ms) = copies(&world, bytes);
    println!("clone of catalogs, leases and deciders: {clone_ms:.2} ms (median of 21)");
    println!("a copy of as many bytes: {copy_ms:.2} ms (median of 21)");
    println!("replaced: {:.0} ns a command", replace(&mut world, &directory));
    let begin = Instant::now();
    let digests: Vec<u64> = world.iter().map(|shard| shard.catalog.digest()).collect();
    println!("digest of all catalogs: {:.2} ms", begin.elapsed().as_secs_f64() * 1e3);
    black_box(digests);
    println!("a probe that changes nothing: {:.1} ns (median of 11 rounds)", probes(&mut world));
}
