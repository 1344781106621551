//! The shard against a naive model: random commands, many of them late, repeated, forged or stale. The model keeps
//! plain maps and writes the rules down as the specification has them; after every command the two must agree on
//! what was accepted, on every record, and on what a reader that only followed the updates has.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRng, TestRunner};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest};

use super::tests::{REGION, cell, directory, registration};
use super::*;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Change, Endpoint, Generation, InstanceId, NodeId, Reason, Revision, ServiceId,
    ShardId, Source, State, Term, Time, Verdict,
};

const SERVICES: u16 = 2;
const INSTANCES: u32 = 4;

#[derive(Clone, Copy, Debug)]
enum Read {
    Nothing,
    Current,
    Before,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Barrier(u64),
    Configure(u32),
    Register { n: u32, generation: Generation, ip: u32, ready: bool, source: Source },
    Move { n: u32, generation: Generation, to: State, reason: Reason, source: Source, read: Read },
    Weigh { n: u32, generation: Generation, weight: u16 },
    Expire { n: u32, generation: Generation, decided: u64, term: u64 },
    Sweep(u32),
}

#[derive(Clone, Debug)]
struct Life {
    generation: Generation,
    state: State,
    started: bool,
    ip: u32,
    weight: u16,
    revision: u32,
}

/// Plain maps, no indexes, no lists, no running sums.
#[derive(Clone, Debug, Default)]
struct Naive {
    lives: BTreeMap<u32, Life>,
    /// The largest start that was ever registered at an address, and by whom.
    latest_at: BTreeMap<u32, (u32, u32)>,
    revisions: [u32; SERVICES as usize],
    term: u64,
    floor: u32,
    /// What the last command did.
    accepted: bool,
    command: Option<(Command, u64)>,
}

fn service_of(n: u32) -> u16 {
    n as u16 % SERVICES
}

impl Naive {
    fn step(&mut self, n: u32, change: impl FnOnce(&mut Life)) {
        let revision = &mut self.revisions[usize::from(service_of(n))];
        *revision += 1;
        let life = self.lives.get_mut(&n).unwrap();
        change(life);
        life.revision = *revision;
    }

    fn command(&self, op: Op) -> (Command, u64) {
        let term = self.term;
        match op {
            Op::Barrier(term) => (Command::Barrier, term),
            Op::Configure(version) => (Command::Configure { version }, 0),
            Op::Register { n, generation, ip, ready, source } => {
                let mut asked = registration(service_of(n), n, 0);
                (asked.generation, asked.address.ip, asked.ready) = (generation, ip, ready);
                (Command::Register(asked, source), term)
            }
            Op::Move { n, generation, to, reason, source, read } => {
                let known = self.lives.get(&n).map_or(0, |life| life.revision);
                let expected = match read {
                    Read::Nothing => None,
                    Read::Current => Some(Revision(known)),
                    Read::Before => Some(Revision(known.saturating_sub(1))),
                };
                let instance = InstanceId(n);
                (Command::Move { instance, generation, to, reason, source, expected }, term)
            }
            Op::Weigh { n, generation, weight } => {
                let (instance, source) = (InstanceId(n), Source::Controller);
                (Command::Weigh { instance, generation, weight, source }, term)
            }
            Op::Expire { n, generation, decided, term } => {
                let instance = InstanceId(n);
                (Command::Expire { instance, generation, decided: Term(decided) }, term)
            }
            Op::Sweep(start_before) => (Command::Sweep { start_before }, term),
        }
    }

    fn register(&mut self, n: u32, generation: Generation, ip: u32, ready: bool) -> bool {
        let known = self.lives.get(&n).cloned();
        // I7: nothing older, nothing twice, nothing back from the dead but by D10.
        match &known {
            None if generation.start < self.floor => return false,
            Some(life) if generation <= life.generation => return false,
            Some(life)
                if generation.start == life.generation.start && life.state != State::Expired =>
            {
                return false;
            }
            _ => {}
        }
        // I8: an address never goes back to an older process.
        if let Some(&(start, owner)) = self.latest_at.get(&ip) {
            if owner != n && start >= generation.start {
                return false;
            }
            let there = |life: &Life| life.ip == ip && live(life.state);
            if owner != n && self.lives.get(&owner).is_some_and(there) {
                self.step(owner, |life| life.state = State::Expired);
            }
        }
        if known.as_ref().is_some_and(|life| live(life.state)) {
            self.step(n, |life| life.state = State::Expired);
        }
        let same = known.filter(|life| life.generation.start == generation.start);
        let started = same.is_some_and(|life| life.started);
        let state = if started && ready { State::Ready } else { State::Starting };
        let life = Life { generation, state, started, ip, weight: 1, revision: 0 };
        self.lives.insert(n, life);
        self.step(n, |_| {});
        self.latest_at.insert(ip, (generation.start, n));
        true
    }

    fn shift(
        &mut self,
        (n, generation): (u32, Generation),
        (to, reason, source): (State, Reason, Source),
        expected: Option<Revision>,
    ) -> bool {
        use Reason as R;
        use State as S;
        let Some(life) = self.lives.get(&n) else { return false };
        let stale = expected.is_some_and(|read| read.0 != life.revision)
            || (source == Source::Health && expected.is_none());
        let row = |rows: &[(State, State)]| rows.contains(&(life.state, to));
        let listed = match reason {
            Reason::Started => row(&[(S::Starting, S::Ready)]),
            Reason::Withdrawn => row(&[
                (S::Ready, S::Draining),
                (S::Starting, S::Draining),
                (S::Unhealthy, S::Draining),
            ]),
            Reason::ReadinessReported | Reason::ProbesFailed | Reason::PassiveConfirmed => {
                row(&[(S::Ready, S::Unhealthy)])
            }
            Reason::Recovered => row(&[(S::Unhealthy, S::Ready)]),
            Reason::LeaseExpired => live(life.state) && to == S::Expired,
            Reason::Exited | Reason::DrainOver => row(&[(S::Draining, S::Gone)]),
            Reason::Cleared => row(&[(S::Expired, S::Gone)]),
            _ => false,
        };
        let may: &[Reason] = match source {
            Source::Controller => &[R::Started, R::Withdrawn, R::Exited, R::DrainOver, R::Cleared],
            Source::Agent(node) if u32::from(node.0) == n => {
                &[R::Withdrawn, R::Exited, R::DrainOver]
            }
            Source::Workload(own) if own.0 == n => &[R::Withdrawn, R::Exited],
            Source::Health => &[
                R::Started,
                R::ReadinessReported,
                R::ProbesFailed,
                R::PassiveConfirmed,
                R::Recovered,
            ],
            Source::Leases(_) => &[R::LeaseExpired],
            _ => &[],
        };
        let ok = generation == life.generation && !stale && listed && may.contains(&reason);
        if ok {
            self.step(n, |life| {
                life.state = to;
                life.started |= to == State::Ready;
            });
        }
        ok
    }

    fn play(&mut self, command: Command, term: u64) -> bool {
        match command {
            Command::Barrier => {
                self.term = self.term.max(term);
                true
            }
            Command::Configure { .. } => true,
            Command::Sweep { start_before } => {
                self.floor = self.floor.max(start_before);
                self.lives.retain(|_, life| {
                    life.state != State::Gone || life.generation.start >= start_before
                });
                true
            }
            Command::Register(asked, source) => {
                let n = asked.instance.0;
                let may = match source {
                    Source::Controller => true,
                    Source::Agent(node) => u32::from(node.0) == n,
                    Source::Workload(own) => own.0 == n,
                    _ => false,
                };
                may && self.register(n, asked.generation, asked.address.ip, asked.ready)
            }
            Command::Move { instance, generation, to, reason, source, expected } => {
                self.shift((instance.0, generation), (to, reason, source), expected)
            }
            Command::Expire { instance, generation, decided } => {
                let step = (State::Expired, Reason::LeaseExpired, Source::Leases(decided));
                (decided.0, term) == (self.term, self.term)
                    && self.shift((instance.0, generation), step, None)
            }
            Command::Weigh { instance, generation, weight, .. } => {
                let fits = |life: &Life| {
                    life.generation == generation
                        && live(life.state)
                        && weight > 0
                        && weight != life.weight
                };
                let ok = self.lives.get(&instance.0).is_some_and(fits);
                if ok {
                    self.step(instance.0, |life| life.weight = weight);
                }
                ok
            }
        }
    }

    fn routable(&self, service: u16) -> Vec<Endpoint> {
        let ready = |(n, life): (&u32, &Life)| {
            (service_of(*n) == service && life.state == State::Ready).then(|| {
                let asked = registration(service, *n, 0);
                Endpoint {
                    instance: asked.instance,
                    generation: life.generation,
                    address: Address { ip: life.ip, port: asked.address.port },
                    labels: asked.labels,
                    node: asked.node,
                    version: asked.version,
                    weight: life.weight,
                    zone: asked.place.zone,
                }
            })
        };
        self.lives.iter().filter_map(ready).collect()
    }
}

fn live(state: State) -> bool {
    matches!(state, State::Starting | State::Ready | State::Draining | State::Unhealthy)
}

fn ops() -> BoxedStrategy<Op> {
    use Reason as R;
    use State as S;
    let n = 0..INSTANCES;
    let generation =
        (0..6_u32, 0..3_u32).prop_map(|(start, sequence)| Generation { start, sequence });
    let source = prop_oneof![
        4 => Just(Source::Controller),
        4 => Just(Source::Health),
        1 => (0..INSTANCES as u16).prop_map(|n| Source::Agent(NodeId(n))),
        1 => (0..INSTANCES).prop_map(|n| Source::Workload(InstanceId(n))),
        1 => Just(Source::Leases(Term(1))),
    ];
    let likely = [
        (S::Ready, R::Started),
        (S::Ready, R::Recovered),
        (S::Draining, R::Withdrawn),
        (S::Unhealthy, R::ProbesFailed),
        (S::Unhealthy, R::ReadinessReported),
        (S::Gone, R::Exited),
        (S::Gone, R::Cleared),
    ];
    let anything = (prop::sample::select(S::ALL.to_vec()), prop::sample::select(R::ALL.to_vec()));
    let step = prop_oneof![6 => prop::sample::select(likely.to_vec()), 1 => anything];
    let read = prop_oneof![
        1 => Just(Read::Nothing),
        6 => Just(Read::Current),
        2 => Just(Read::Before),
    ];
    let of = |(n, generation)| (n, generation);
    let who = (n, generation).prop_map(of);
    prop_oneof![
        1 => (0..4_u64).prop_map(Op::Barrier),
        1 => (0..4_u32).prop_map(Op::Configure),
        6 => (who.clone(), 0..3_u32, any::<bool>(), source.clone()).prop_map(
            |((n, generation), ip, ready, source)| Op::Register { n, generation, ip, ready, source },
        ),
        20 => (who.clone(), step, source, read).prop_map(
            |((n, generation), (to, reason), source, read)| Op::Move {
                n, generation, to, reason, source, read,
            },
        ),
        1 => (who.clone(), 0..3_u16).prop_map(
            |((n, generation), weight)| Op::Weigh { n, generation, weight },
        ),
        3 => (who, 0..4_u64, 0..4_u64).prop_map(
            |((n, generation), decided, term)| Op::Expire { n, generation, decided, term },
        ),
        1 => (0..4_u32).prop_map(Op::Sweep),
    ]
    .boxed()
}

/// A step that the table has for a state, for some luck.
fn listed(state: State, luck: u8) -> (State, Reason) {
    use Reason as R;
    use State as S;
    let rows: &[(State, Reason)] = match state {
        S::Starting => &[(S::Ready, R::Started)],
        S::Ready => &[
            (S::Unhealthy, R::ProbesFailed),
            (S::Unhealthy, R::ReadinessReported),
            (S::Unhealthy, R::PassiveConfirmed),
            (S::Draining, R::Withdrawn),
        ],
        S::Unhealthy => {
            &[(S::Ready, R::Recovered), (S::Ready, R::Recovered), (S::Draining, R::Withdrawn)]
        }
        S::Draining => &[(S::Gone, R::Exited), (S::Gone, R::DrainOver)],
        S::Expired => &[(S::Gone, R::Cleared)],
        S::Gone => &[(S::Ready, R::Recovered)],
    };
    rows[usize::from(luck) % rows.len()]
}

/// Most commands are about the life that is there; the rest is late, early or about nobody.
fn ops_about(state: &Naive) -> BoxedStrategy<Op> {
    let lives: Vec<(u32, Generation, State)> =
        state.lives.iter().map(|(&n, life)| (n, life.generation, life.state)).collect();
    if lives.is_empty() {
        return ops();
    }
    let present_term = state.term;
    (ops(), prop::sample::select(lives), 0..20_u8)
        .prop_map(move |(mut op, (known, present, state), luck)| {
            match &mut op {
                Op::Move { n, generation, to, reason, source, .. } if luck < 16 => {
                    (*n, *generation) = (known, present);
                    if luck < 12 {
                        (*to, *reason) = listed(state, luck);
                        let health = matches!(
                            reason,
                            Reason::Started
                                | Reason::ProbesFailed
                                | Reason::ReadinessReported
                                | Reason::PassiveConfirmed
                                | Reason::Recovered
                        );
                        *source = if health { Source::Health } else { Source::Controller };
                    }
                }
                Op::Weigh { n, generation, .. } if luck < 14 => {
                    (*n, *generation) = (known, present);
                }
                Op::Expire { n, generation, decided, term } if luck < 14 => {
                    (*n, *generation) = (known, present);
                    if luck < 4 {
                        (*decided, *term) = (present_term, present_term);
                    }
                }
                Op::Register { n, generation, .. } if luck < 10 => {
                    (*n, *generation) = (known, present.again());
                }
                _ => {}
            }
            op
        })
        .boxed()
}

struct Reference;

impl ReferenceStateMachine for Reference {
    type State = Naive;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Naive> {
        Just(Naive::default()).boxed()
    }

    fn transitions(state: &Naive) -> BoxedStrategy<Op> {
        ops_about(state)
    }

    fn apply(mut state: Naive, op: &Op) -> Naive {
        let (command, term) = state.command(*op);
        state.accepted = state.play(command, term);
        state.command = Some((command, term));
        state
    }
}

/// The shard, and a reader that has only its updates.
struct Machine<const MUTANT: u8> {
    shard: CatalogShard,
    readers: Vec<(Revision, Vec<Endpoint>)>,
    lines: u64,
}

const NONE: u8 = u8::MAX;

impl<const MUTANT: u8> Machine<MUTANT> {
    fn follow(&mut self, said: &CatalogOut) {
        for update in &said.updates {
            let (at, set) = &mut self.readers[update.cell.service.index()];
            assert_eq!(update.from, *at, "updates chain");
            assert!(update.to > update.from, "revisions rise");
            *at = update.to;
            match update.change {
                Change::Added(endpoint) => set.push(endpoint),
                Change::Removed(endpoint) => {
                    let place = set.iter().position(|other| *other == endpoint);
                    set.remove(place.expect("what is removed was there"));
                }
                Change::Changed(before, after) => {
                    let place = set.iter().position(|other| *other == before);
                    set[place.expect("what is changed was there")] = after;
                }
            }
            assert_eq!(update.count as usize, set.len());
            assert_eq!(update.checksum, Endpoint::checksum(set.iter()));
            let mut addresses: Vec<Address> = set.iter().map(|e| e.address).collect();
            addresses.sort_unstable();
            addresses.dedup();
            assert_eq!(addresses.len(), set.len(), "an address is routable once in a cell");
        }
    }
}

impl<const MUTANT: u8> StateMachineTest for Machine<MUTANT> {
    type SystemUnderTest = Self;
    type Reference = Reference;

    fn init_test(_: &Naive) -> Self {
        let shard = CatalogShard::new(&directory(usize::from(SERVICES), 1), REGION, ShardId(0), 4);
        let all = [
            Mutant::ZombieResurrection,
            Mutant::OldLeaderExpiry,
            Mutant::StaleCompareAndSet,
            Mutant::SharedAddress,
        ];
        let mutant = all.get(usize::from(MUTANT)).copied();
        let shard = shard.with_mutants(mutant.map_or(Mutants::default(), Mutants::only));
        let readers = vec![(Revision(0), Vec::new()); usize::from(SERVICES)];
        Self { shard, readers, lines: 0 }
    }

    fn apply(mut machine: Self, model: &Naive, _: Op) -> Self {
        let (command, term) = model.command.unwrap();
        let mut said = CatalogOut::default();
        let entry = Entry { proposed: Time::ZERO, command };
        let verdict = machine.shard.apply(&entry, Term(term), Time::ZERO, &mut said);
        assert_eq!(verdict == Verdict::Accepted, model.accepted, "{command:?}: {verdict:?}");
        tally(format!("{verdict:?}"));
        for transition in &said.transitions {
            tally(format!("{:?}", transition.reason));
        }
        let audited = !matches!(
            command,
            Command::Barrier | Command::Sweep { .. } | Command::Configure { .. }
        );
        let lines = said.transitions.len().max(usize::from(audited)) as u64;
        machine.lines += lines;
        assert_eq!(
            machine.shard.audit().written(),
            machine.lines,
            "a line for each transition or refusal"
        );
        machine.follow(&said);
        machine
    }

    fn check_invariants(machine: &Self, model: &Naive) {
        for n in 0..INSTANCES {
            let seen = machine.shard.find(InstanceId(n));
            let seen = seen.map(|record| {
                (
                    record.generation,
                    record.state,
                    record.revision.0,
                    record.weight,
                    record.address.ip,
                )
            });
            let expected = model
                .lives
                .get(&n)
                .map(|life| (life.generation, life.state, life.revision, life.weight, life.ip));
            assert_eq!(seen, expected, "instance {n}");
        }
        for service in 0..SERVICES {
            let view = machine.shard.view(cell(service)).unwrap();
            let expected = model.routable(service);
            let mut seen: Vec<Endpoint> = view.endpoints().collect();
            seen.sort_unstable();
            assert_eq!(seen, expected);
            assert_eq!(view.head().checksum, Endpoint::checksum(&expected));
            assert_eq!(view.revision().0, model.revisions[usize::from(service)]);
            let (at, set) = &machine.readers[ServiceId(service).index()];
            let mut set = set.clone();
            set.sort_unstable();
            assert_eq!((view.head().revision, seen), (*at, set), "the reader has it all");
            for state in State::ALL {
                let counted = model
                    .lives
                    .iter()
                    .filter(|(n, life)| service_of(**n) == service && life.state == state)
                    .count();
                assert_eq!(view.count(state) as usize, counted, "{state:?}");
            }
        }
    }
}

thread_local! {
    /// What happened in a run, so that it cannot pass for want of events.
    static SEEN: RefCell<BTreeMap<String, u32>> = const { RefCell::new(BTreeMap::new()) };
}

fn tally(what: String) {
    SEEN.with_borrow_mut(|seen| *seen.entry(what).or_default() += 1);
}

fn run<const MUTANT: u8>(cases: u32) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    SEEN.with_borrow_mut(BTreeMap::clear);
    let result = runner.run(&Reference::sequential_strategy(1..80), |(model, ops, seen)| {
        Machine::<MUTANT>::test_sequential(config.clone(), model, ops, seen);
        Ok(())
    });
    assert!(result.is_ok(), "{}", result.unwrap_err());
}

/// Whether taking a safeguard out is noticed in some of the cases.
fn missed<const MUTANT: u8>(cases: u32) -> bool {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(config.rng_algorithm);
    let mut runner = TestRunner::new_with_rng(config.clone(), rng);
    let strategy = Reference::sequential_strategy(1..80);
    (0..cases).any(|_| {
        let (model, ops, seen) = strategy.new_tree(&mut runner).unwrap().current();
        let case = || Machine::<MUTANT>::test_sequential(config.clone(), model, ops, seen);
        std::panic::catch_unwind(AssertUnwindSafe(case)).is_err()
    })
}

#[test]
fn the_shard_does_what_the_naive_model_does() {
    run::<NONE>(600);
    // Everything happened, and not once or twice only: every verdict but WrongCell, and
    // every reason that a transition can have.
    SEEN.with_borrow(|seen| {
        use Verdict as V;
        for verdict in [
            V::Accepted,
            V::AlreadySo,
            V::OldGeneration,
            V::UnknownGeneration,
            V::UnknownInstance,
            V::BelowFloor,
            V::StaleRead,
            V::StaleTerm,
            V::IllegalTransition,
            V::WrongSource,
            V::AddressTaken,
            V::ZeroWeight,
        ] {
            let count = seen.get(&format!("{verdict:?}")).copied().unwrap_or_default();
            assert!(count >= 5, "{verdict:?}: {seen:?}");
        }
        for reason in Reason::ALL.into_iter().filter(|reason| *reason != Reason::Reweighted) {
            let count = seen.get(&format!("{reason:?}")).copied().unwrap_or_default();
            assert!(count >= 5, "{reason:?}: {seen:?}");
        }
    });
}

#[test]
fn each_safeguard_of_the_shard_is_missed_when_it_is_out() {
    assert!(missed::<0>(600), "zombies");
    assert!(missed::<1>(600), "expiry of an old leader");
    assert!(missed::<2>(600), "stale reads");
    assert!(missed::<3>(600), "shared addresses");
}
