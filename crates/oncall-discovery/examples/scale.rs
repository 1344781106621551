//! What the control plane's state costs at full scale: 2,000 services, 100,000 instances, 3 regions of 8 shards.
//!
//! `cargo run --release -p oncall-discovery --example scale`
#![expect(clippy::disallowed_methods, reason = "it measures")]

use std::hint::black_box;
use std::time::Instant;

use oncall_discovery::catalog::{AuditLog, CatalogOut, CatalogShard, Command, Entry, Registration};
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

fn ready(n: u32) -> Command {
    Command::Move {
        instance: InstanceId(n),
        generation: Generation::first(1),
        to: State::Ready,
        reason: Reason::Started,
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

fn main() {
    let key = |n| ServiceKey {
        namespace: "prod".into(),
        service: format!("service-{n}"),
        port: "grpc".into(),
    };
    let directory = Directory::new((0..SERVICES).map(key).collect(), SHARDS).expect("unique keys");
    let rules = HealthRules::new(&Dials::default(), 1);
    let mut world: Vec<Shard> = Vec::new();
    for region in 0..REGIONS {
        for shard in 0..SHARDS {
            let catalog = CatalogShard::new(&directory, RegionId(region), ShardId(shard), 256);
            let mut decider = Decider::new(rules);
            decider.lead(&catalog, &mut Out::new());
            world.push(Shard { catalog, keeper: LeaseKeeper::new(Span::from_s(30)), decider });
        }
    }
    let home = |n: u32| {
        let cell = registration(n).cell;
        let shard = directory.shard(cell.service).expect("a service of the directory");
        cell.region.index() * usize::from(SHARDS) + shard.index()
    };
    let mut said = CatalogOut::default();
    let begin = Instant::now();
    for n in 0..INSTANCES {
        let shard = &mut world[home(n)];
        apply(shard, Command::Register(registration(n), Source::Controller), &mut said);
        apply(shard, ready(n), &mut said);
    }
    let each_ns = begin.elapsed().as_secs_f64() * 1e9 / f64::from(2 * INSTANCES);

    let bytes: usize = world.iter().map(|shard| shard.catalog.heap_bytes()).sum();
    // Interleaved with copies of as many plain bytes: the machine's own pace.
    let plain = vec![1_u8; bytes];
    let (mut clones, mut copies) = (Vec::new(), Vec::new());
    for _ in 0..21 {
        let begin = Instant::now();
        let copy = black_box(world.clone());
        clones.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(copy);
        let begin = Instant::now();
        let copy = black_box(plain.clone());
        copies.push(begin.elapsed().as_secs_f64() * 1e3);
        drop(copy);
    }
    // A rollout: each instance withdraws, exits, and comes back as a new process.
    let begin = Instant::now();
    for n in (0..INSTANCES).step_by(10) {
        let shard = &mut world[home(n)];
        let go = |to, reason| Command::Move {
            instance: InstanceId(n),
            generation: Generation::first(1),
            to,
            reason,
            source: Source::Controller,
            expected: None,
        };
        apply(shard, go(State::Draining, Reason::Withdrawn), &mut said);
        apply(shard, go(State::Gone, Reason::Exited), &mut said);
        let fresh = Registration { generation: Generation::first(2), ..registration(n) };
        apply(shard, Command::Register(fresh, Source::Controller), &mut said);
    }
    let replace_ns = begin.elapsed().as_secs_f64() * 1e9 / f64::from(3 * INSTANCES / 10);
    let line = world[0].catalog.audit().lines().next().copied().expect("a full log");
    let begin = Instant::now();
    let chain = (0..30_000).fold([0; 24], |chain, _| AuditLog::link(&chain, black_box(&line)));
    let audit_ns = begin.elapsed().as_secs_f64() * 1e9 / 30_000.0;
    black_box(chain);
    let begin = Instant::now();
    let digests: Vec<u64> = world.iter().map(|shard| shard.catalog.digest()).collect();
    let digest_ms = begin.elapsed().as_secs_f64() * 1e3;
    black_box(digests);

    let mut out = Out::new();
    let mut probes = Vec::new();
    for round in 0..11_u64 {
        let begin = Instant::now();
        for shard in &mut world {
            for row in 0..shard.catalog.rows() {
                let now = Time::from_s(10 + round);
                shard.decider.on_probe_of_row(
                    now,
                    row,
                    ProberId(0),
                    true,
                    &shard.catalog,
                    &mut out,
                );
            }
            out.clear();
        }
        probes.push(begin.elapsed().as_secs_f64() * 1e9 / f64::from(INSTANCES));
    }
    println!(
        "catalog: {:.1} MB, {:.0} B an instance",
        bytes as f64 / 1e6,
        bytes as f64 / f64::from(INSTANCES)
    );
    println!("apply and observe: {each_ns:.0} ns a command");
    println!(
        "replaced: {replace_ns:.0} ns a command, {audit_ns:.0} ns of it for the audit line's hash"
    );
    println!(
        "clone of catalogs, leases and deciders: {:.2} ms; a copy of as many bytes: {:.2} ms (medians of 21)",
        median(clones),
        median(copies)
    );
    println!("digest of all catalogs: {digest_ms:.2} ms");
    println!("a probe that changes nothing: {:.1} ns (median of 11 rounds)", median(probes));
}
