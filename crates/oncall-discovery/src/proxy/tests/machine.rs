//! Schedules of changes and faults as data: the real components against copied sets, first for safety, then, when
//! the faults are over, for liveness. A failing schedule shrinks.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use super::source::{cell, endpoint};
use super::world::{Setup, World, proxy, relay};
use crate::distrib::{Retention, ServerConfig, Windows};
use crate::mutants::Mutant;
use crate::proxy::{AttemptResult, Outcome};
use crate::types::{Endpoint, InstanceId, Metric, Peer, Span};

/// One step of a schedule.
#[derive(Clone, Debug)]
enum Op {
    Put {
        service: u16,
        instance: u32,
        weight: u16,
    },
    Replace {
        service: u16,
        instance: u32,
    },
    Remove {
        service: u16,
        instance: u32,
    },
    Silent {
        service: u16,
    },
    Wait {
        ms: u64,
    },
    Request {
        proxy: u16,
        service: u16,
        dead: u32,
    },
    Loss {
        pct: u64,
    },
    Repeat {
        pct: u64,
    },
    Reorder {
        on: bool,
    },
    NoDeltas {
        relay: Option<u16>,
    },
    Mute {
        relay: Option<u16>,
    },
    Corrupt {
        relay: Option<u16>,
        service: u16,
    },
    Apart {
        proxy: u16,
        relay: u16,
    },
    ApartFromCatalog {
        relay: u16,
    },
    Together,
    Cut {
        proxy: u16,
        relay: u16,
        noticed: bool,
    },
    RelayRestart {
        relay: u16,
        warm: bool,
    },
    RelayDown {
        relay: u16,
    },
    PublisherDown,
    PublisherUp,
    Restore {
        lost: usize,
    },
    /// One relay stays in the old life of the history, and then is the only one.
    Fork {
        relay: u16,
    },
    /// A catalog without a fence: an old process is in the set again.
    Zombie {
        service: u16,
        instance: u32,
    },
    /// New rules for proxies.
    Policy,
    Quorum {
        on: bool,
    },
}

/// What a schedule is about: how big the world is, and which faults there are.
#[derive(Clone, Debug)]
struct Shape {
    relays: u16,
    proxies: u16,
    retention: Retention,
    windows: Windows,
    snapshot_bytes_per_s: u64,
    connects_per_s: u64,
    /// One bit for each kind of fault.
    swarm: u16,
    /// Two levels of relays.
    chain: bool,
}

/// The naive model: a copy of each cell's set after every change.
#[derive(Clone, Debug)]
struct Naive {
    shape: Shape,
    starts: u32,
    sets: [Vec<BTreeMap<u32, Endpoint>>; 2],
}

impl Naive {
    fn set(&self, service: u16) -> &BTreeMap<u32, Endpoint> {
        self.sets[usize::from(service)].last().unwrap()
    }

    fn change(&mut self, service: u16, change: impl FnOnce(&mut BTreeMap<u32, Endpoint>)) {
        let mut set = self.set(service).clone();
        change(&mut set);
        if &set != self.set(service) {
            self.sets[usize::from(service)].push(set);
        }
    }

    /// The endpoint that an operation puts in; a new generation starts later than all before.
    fn endpoint(&self, op: &Op) -> Option<(u16, Endpoint)> {
        match *op {
            Op::Put { service, instance, weight } => {
                let start = self.set(service).get(&instance).map(|known| known.generation.start);
                let start = start.unwrap_or(self.starts);
                Some((service, Endpoint { weight, ..endpoint(instance, start) }))
            }
            Op::Replace { service, instance } => Some((service, endpoint(instance, self.starts))),
            Op::Zombie { service, instance } => Some((service, endpoint(instance, 0))),
            _ => None,
        }
    }
}

/// The kinds of faults, each behind its bit of the swarm.
fn faults(shape: &Shape) -> [BoxedStrategy<Op>; 15] {
    let (service, instance) = (0..2_u16, 1..7_u32);
    let zombie = (service.clone(), instance);
    let (proxies, relays) = (0..shape.proxies, 0..shape.relays);
    let some_relay = proptest::option::of(relays.clone());
    [
            (0..60_u64).prop_map(|pct| Op::Loss { pct }).boxed(),
            (0..40_u64).prop_map(|pct| Op::Repeat { pct }).boxed(),
            any::<bool>().prop_map(|on| Op::Reorder { on }).boxed(),
            some_relay.clone().prop_map(|relay| Op::NoDeltas { relay }).boxed(),
            some_relay.clone().prop_map(|relay| Op::Mute { relay }).boxed(),
            (some_relay, service).prop_map(|(relay, service)| Op::Corrupt { relay, service }).boxed(),
            prop_oneof![
                (proxies.clone(), relays.clone()).prop_map(|(proxy, relay)| Op::Apart { proxy, relay }),
                Just(Op::Together),
            ].boxed(),
            prop_oneof![
                relays.clone().prop_map(|relay| Op::ApartFromCatalog { relay }),
                Just(Op::Together),
            ].boxed(),
            (proxies, relays.clone(), any::<bool>())
                .prop_map(|(proxy, relay, noticed)| Op::Cut { proxy, relay, noticed }).boxed(),
            prop_oneof![
                2 => (relays.clone(), any::<bool>()).prop_map(|(relay, warm)| Op::RelayRestart { relay, warm }),
                1 => relays.prop_map(|relay| Op::RelayDown { relay }),
            ].boxed(),
            prop_oneof![Just(Op::PublisherDown), Just(Op::PublisherUp)].boxed(),
            (0..4_usize).prop_map(|lost| Op::Restore { lost }).boxed(),
            any::<bool>().prop_map(|on| Op::Quorum { on }).boxed(),
            (0..shape.relays).prop_map(|relay| Op::Fork { relay }).boxed(),
            zombie.prop_map(|(service, instance)| Op::Zombie { service, instance }).boxed(),
        ]
}

impl ReferenceStateMachine for Naive {
    type State = Self;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Self> {
        let retention = prop_oneof![
            Just(Retention::default()),
            Just(Retention { age: Span::from_s(1), min_entries: 2, max_entries: 4 }),
            Just(Retention { age: Span::ZERO, min_entries: 0, max_entries: 1 }),
        ];
        let windows = (0..300_u64, 0..900_u64)
            .prop_map(|(r, a)| Windows { removals: Span::from_ms(r), additions: Span::from_ms(a) });
        let budget = prop_oneof![Just(3_000_u64), Just(1_000_000)];
        (1..4_u16, 1..5_u16, retention, windows, budget, 2..20_u64, any::<u16>(), any::<bool>())
            .prop_map(|(relays, proxies, retention, windows, bytes, connects, swarm, chain)| Self {
                shape: Shape {
                    relays,
                    proxies,
                    retention,
                    windows,
                    snapshot_bytes_per_s: bytes,
                    connects_per_s: connects,
                    swarm,
                    chain: chain && relays > 1,
                },
                starts: 1,
                sets: [vec![BTreeMap::new()], vec![BTreeMap::new()]],
            })
            .boxed()
    }

    fn transitions(state: &Self) -> BoxedStrategy<Op> {
        let (service, instance) = (0..2_u16, 1..7_u32);
        let proxies = 0..state.shape.proxies;
        let mut all: Vec<(u32, BoxedStrategy<Op>)> = vec![
            (
                6,
                (service.clone(), instance.clone(), 1..4_u16)
                    .prop_map(|(service, instance, weight)| Op::Put { service, instance, weight })
                    .boxed(),
            ),
            (
                3,
                (service.clone(), instance.clone())
                    .prop_map(|(service, instance)| Op::Replace { service, instance })
                    .boxed(),
            ),
            (
                6,
                (service.clone(), instance)
                    .prop_map(|(service, instance)| Op::Remove { service, instance })
                    .boxed(),
            ),
            (1, service.clone().prop_map(|service| Op::Silent { service }).boxed()),
            (1, Just(Op::Policy).boxed()),
            (8, prop_oneof![10..400_u64, 400..5_000_u64].prop_map(|ms| Op::Wait { ms }).boxed()),
            (
                3,
                (proxies, service, 0..7_u32)
                    .prop_map(|(proxy, service, dead)| Op::Request { proxy, service, dead })
                    .boxed(),
            ),
        ];
        for (kind, fault) in faults(&state.shape).into_iter().enumerate() {
            if state.shape.swarm >> kind & 1 == 1 {
                all.push((3, fault));
            }
        }
        proptest::strategy::Union::new_weighted(all).boxed()
    }

    fn apply(mut state: Self, op: &Op) -> Self {
        if let Some((service, new)) = state.endpoint(op) {
            state.starts += 1;
            state.change(service, |set| {
                set.insert(new.instance.0, new);
            });
        }
        match *op {
            Op::Remove { service, instance } => {
                state.change(service, |set| {
                    set.remove(&instance);
                });
            }
            Op::Restore { .. } | Op::Fork { .. } => {
                let lost = if let Op::Restore { lost } = *op { lost } else { 1 };
                for sets in &mut state.sets {
                    let keep = sets.len().saturating_sub(lost).max(1);
                    let last = sets[keep - 1].clone();
                    *sets = vec![last];
                }
            }
            _ => {}
        }
        state
    }
}

thread_local! {
    static MUTANT: RefCell<Option<Mutant>> = const { RefCell::new(None) };
    static SEEN: RefCell<BTreeMap<Metric, u64>> = const { RefCell::new(BTreeMap::new()) };
}

struct Schedules;

fn apart(world: &mut World, a: Peer, b: Peer) {
    world.faults.apart.insert((a.min(b), a.max(b)));
}

fn restore(world: &mut World, lost: usize) {
    let running = world.publisher.is_some();
    world.publisher_down();
    world.source.restore(lost);
    if running {
        world.publisher_up();
    }
}

fn fault(world: &mut World, op: &Op) {
    match *op {
        Op::Loss { pct } => world.faults.loss_pct = pct,
        Op::Repeat { pct } => world.faults.repeat_pct = pct,
        Op::Reorder { on } => world.faults.reorder = on,
        Op::NoDeltas { relay } => world.faults.no_deltas = relay,
        Op::Mute { relay } => world.faults.mute = relay,
        Op::Corrupt { relay, service } => {
            world.faults.corrupt = relay.map(|relay| (relay, cell(service)));
        }
        Op::Apart { proxy: p, relay: r } => apart(world, proxy(p), relay(r)),
        Op::ApartFromCatalog { relay: r } => apart(world, world.upstream(r), relay(r)),
        Op::Together => world.faults.apart.clear(),
        Op::Cut { proxy: p, relay: r, noticed } => world.cut(proxy(p), relay(r), noticed),
        Op::RelayRestart { relay, warm } => match world.relay_down(relay) {
            Some(known) if warm => world.relay_up_warm(relay, known),
            _ => world.relay_up(relay),
        },
        Op::RelayDown { relay } => drop(world.relay_down(relay)),
        Op::PublisherDown => world.publisher_down(),
        Op::PublisherUp if world.publisher.is_none() => world.publisher_up(),
        Op::Restore { lost } => restore(world, lost),
        Op::Fork { relay: left } => {
            apart(world, world.upstream(left), relay(left));
            restore(world, 1);
            world.run(Span::from_s(4));
            for other in (0..world.relays.len() as u16).filter(|other| *other != left) {
                world.relay_down(other);
            }
        }
        Op::Quorum { on } => world.quorum = on,
        _ => {}
    }
}

impl StateMachineTest for Schedules {
    type SystemUnderTest = World;
    type Reference = Naive;

    fn init_test(state: &Naive) -> World {
        let shape = &state.shape;
        let base = Setup::default();
        let server = ServerConfig {
            retention: shape.retention,
            snapshot_bytes_per_s: shape.snapshot_bytes_per_s,
            snapshot_bytes_burst: shape.snapshot_bytes_per_s,
            connects_per_s: shape.connects_per_s,
            connects_burst: shape.connects_per_s,
            ..base.server
        };
        let mutant = MUTANT.with_borrow(|mutant| *mutant);
        let (relays, proxies, windows) = (shape.relays, shape.proxies, shape.windows);
        let chain = shape.chain;
        World::new(Setup { relays, proxies, server, windows, mutant, chain, ..base })
    }

    fn apply(mut world: World, state: &Naive, op: Op) -> World {
        match op {
            Op::Put { service, instance, .. }
            | Op::Replace { service, instance }
            | Op::Zombie { service, instance } => {
                let new = state.set(service)[&instance];
                world.put(cell(service), new);
            }
            Op::Remove { service, instance } => world.remove(cell(service), instance),
            Op::Silent { service } => world.source.silent(cell(service)),
            Op::Policy => world.next_policy(),
            Op::Wait { ms } => world.run(Span::from_ms(ms)),
            Op::Request { proxy, service, dead } => {
                let outcome = world.request(proxy, cell(service), |chosen| {
                    let up = chosen.instance != InstanceId(dead);
                    if up { AttemptResult::Served } else { AttemptResult::ConnectRefused }
                });
                assert!(!matches!(outcome, Outcome::TooOld | Outcome::PolicyRefused), "I17");
            }
            _ => fault(&mut world, &op),
        }
        world
    }

    fn check_invariants(world: &World, state: &Naive) {
        for service in 0..2 {
            let naive: Vec<Endpoint> = state.set(service).values().copied().collect();
            assert_eq!(world.source.set(cell(service)), naive);
        }
    }

    fn teardown(mut world: World, _: Naive) {
        world.heal();
        world.run(Span::from_s(90));
        world.assert_converged();
        world.check_budgets();
        SEEN.with_borrow_mut(|seen| {
            for (metric, n) in world.edge.iter().chain(&world.tier) {
                *seen.entry(*metric).or_default() += n;
            }
        });
    }
}

/// Plays schedules; returns how a failing one ends, after shrinking.
fn play(cases: u32, seed: u8, mutant: Option<Mutant>) -> Result<(), String> {
    MUTANT.with_borrow_mut(|slot| *slot = mutant);
    let config = Config {
        cases,
        failure_persistence: None,
        max_shrink_iters: if mutant.is_some() { 20 } else { 2_000 },
        ..Config::default()
    };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let schedules = Naive::sequential_strategy(1..90);
    let run = runner.run(&schedules, |(initial, ops, seen)| {
        Schedules::test_sequential(config.clone(), initial, ops, seen);
        Ok(())
    });
    MUTANT.with_borrow_mut(|slot| *slot = None);
    run.map_err(|error| error.to_string())
}

/// How many schedules; `ONCALL_SCHEDULES` asks for more, `ONCALL_SEED` for others.
fn from_environment(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn schedules_of_faults_find_nothing() {
    let cases = from_environment("ONCALL_SCHEDULES", 500);
    let seed = from_environment("ONCALL_SEED", 1) as u8;
    if let Err(error) = play(cases, seed, None) {
        panic!("seed {seed}: {error}");
    }
    // They did go where it hurts, or their silence would mean little.
    let seen = SEEN.with_borrow(Clone::clone);
    for goal in [
        Metric::RevisionGaps,
        Metric::DeltaRepairs,
        Metric::SnapshotFallbacks,
        Metric::ChecksumRejects,
        Metric::ForksRefused,
        Metric::HeadsAhead,
        Metric::RelaySwitches,
        Metric::SilentStreams,
        Metric::ConnectsRefused,
        Metric::SnapshotsDeferred,
        Metric::FencedEndpoints,
        Metric::NoBackend,
        Metric::Retries,
    ] {
        assert!(seen.get(&goal).is_some_and(|n| *n > 0), "{goal:?} never happened in {cases}");
    }
}

#[test]
fn schedules_find_the_missing_safeguards() {
    for mutant in [
        Mutant::ResumeIgnoresRemovals,
        Mutant::NonContiguousDelta,
        Mutant::NonAtomicSnapshot,
        Mutant::NoSnapshotBudget,
        Mutant::ProxyWithoutFence,
    ] {
        assert!(play(300, 1, Some(mutant)).is_err(), "{mutant:?} goes unnoticed");
    }
}
