//! Hand-made cases.

use super::shard::NIL;
use super::*;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Cell, Change, Directory, Endpoint, Generation, Incarnation, InstanceId, Labels,
    Metric, NodeId, Place, Reason, RegionId, Revision, ServiceId, ServiceKey, ShardId, Source,
    State, Term, Time, Verdict, ZoneId,
};

pub(super) const REGION: RegionId = RegionId(1);

pub(super) fn directory(services: usize, shards: u8) -> Directory {
    let key = |n| ServiceKey {
        namespace: "prod".into(),
        service: format!("service-{n}"),
        port: "grpc".into(),
    };
    Directory::new((0..services).map(key).collect(), shards).unwrap()
}

pub(super) fn cell(service: u16) -> Cell {
    Cell { service: ServiceId(service), region: REGION }
}

/// Instance `n` of a service on node `n`, at an address of its own.
pub(super) fn registration(service: u16, n: u32, start: u32) -> Registration {
    Registration {
        cell: cell(service),
        instance: InstanceId(n),
        generation: Generation::first(start),
        address: Address { ip: 0x0a00_0000 + n, port: 8_080 },
        place: Place { region: REGION, zone: ZoneId(n as u8 % 3) },
        node: NodeId(n as u16),
        version: 1,
        weight: 1,
        labels: Labels::NONE,
        ready: false,
    }
}

/// A shard with a clock and a term, and everything it ever said.
pub(super) struct Bench {
    pub(super) shard: CatalogShard,
    pub(super) term: Term,
    pub(super) out: CatalogOut,
    now: Time,
}

impl Bench {
    pub(super) fn new(mutants: Mutants) -> Self {
        let shard = CatalogShard::new(&directory(4, 1), REGION, ShardId(0), 64);
        let shard = shard.with_mutants(mutants);
        let mut bench = Self { shard, term: Term(1), out: CatalogOut::default(), now: Time::ZERO };
        bench.apply(Command::Barrier);
        bench
    }

    pub(super) fn apply(&mut self, command: Command) -> Verdict {
        self.now = Time(self.now.0 + 1_000);
        let entry = Entry { proposed: self.now, command };
        self.shard.apply(&entry, self.term, self.now, &mut self.out)
    }

    pub(super) fn register(&mut self, registration: Registration) -> Verdict {
        self.apply(Command::Register(registration, Source::Controller))
    }

    pub(super) fn go(&mut self, n: u32, to: State, reason: Reason, source: Source) -> Verdict {
        let record = self.shard.find(InstanceId(n)).unwrap();
        let expected = Some(record.revision);
        let (instance, generation) = (record.instance, record.generation);
        self.apply(Command::Move { instance, generation, to, reason, source, expected })
    }

    /// Registers instance `n` and makes it READY.
    pub(super) fn ready(&mut self, service: u16, n: u32, start: u32) {
        assert_eq!(self.register(registration(service, n, start)), Verdict::Accepted);
        assert_eq!(self.go(n, State::Ready, Reason::Started, Source::Health), Verdict::Accepted);
    }

    pub(super) fn state(&self, n: u32) -> State {
        self.shard.find(InstanceId(n)).unwrap().state
    }

    fn expire(&mut self, n: u32, decided: u64) -> Verdict {
        let generation = self.shard.find(InstanceId(n)).unwrap().generation;
        let decided = Term(decided);
        self.apply(Command::Expire { instance: InstanceId(n), generation, decided })
    }
}

fn refused(bench: &mut Bench, command: Command, verdict: Verdict) {
    let (rows, cells) = (bench.shard.rows.clone(), bench.shard.cells.clone());
    let said = bench.out.clone();
    let counted = said.samples.len();
    let lines = bench.shard.audit().written();
    assert_eq!(bench.apply(command), verdict, "{command:?}");
    assert_eq!(bench.shard.rows, rows, "a refusal changes nothing");
    assert_eq!(bench.shard.cells, cells, "a refusal changes nothing");
    assert_eq!(bench.out.transitions, said.transitions, "a refusal says nothing");
    assert_eq!(bench.out.updates, said.updates, "a refusal says nothing");
    let samples = usize::from(verdict != Verdict::AlreadySo);
    assert_eq!(bench.out.samples.len(), counted + samples, "a refusal is counted");
    assert_eq!(bench.shard.audit().written(), lines + 1, "a refusal is audited");
    assert_eq!(bench.shard.audit().lines().last().unwrap().verdict, verdict);
}

#[test]
fn a_life_from_registration_to_exit() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 7, 100);
    let withdrawn =
        bench.go(7, State::Draining, Reason::Withdrawn, Source::Workload(InstanceId(7)));
    assert_eq!(withdrawn, Verdict::Accepted);
    assert_eq!(
        bench.go(7, State::Gone, Reason::Exited, Source::Agent(NodeId(7))),
        Verdict::Accepted
    );

    let seen: Vec<_> =
        bench.out.transitions.iter().map(|t| (t.from, t.to, t.reason, t.revision.0)).collect();
    let expected = [
        (None, State::Starting, Reason::Registered, 1),
        (Some(State::Starting), State::Ready, Reason::Started, 2),
        (Some(State::Ready), State::Draining, Reason::Withdrawn, 3),
        (Some(State::Draining), State::Gone, Reason::Exited, 4),
    ];
    assert_eq!(seen, expected);
    // Only what touched the routable set is published, and the heads chain.
    let updates: Vec<_> = bench.out.updates.iter().map(|u| (u.from.0, u.to.0, u.count)).collect();
    assert_eq!(updates, [(0, 2, 1), (2, 3, 0)]);
    assert_eq!(bench.out.updates[1].checksum, 0, "the empty set");
    assert!(bench.out.updates[1].reason.deliberate());
    let Change::Removed(endpoint) = bench.out.updates[1].change else { panic!() };
    assert_eq!(bench.out.updates[0].checksum, endpoint.fingerprint());
    let metrics: Vec<_> = bench.out.samples.iter().map(|sample| sample.metric).collect();
    assert_eq!(metrics, [Metric::Registrations], "and nothing was refused");
    assert_eq!(bench.shard.view(cell(0)).unwrap().count(State::Gone), 1);
    assert_eq!(bench.shard.view(cell(0)).unwrap().records().count(), 0);
}

#[test]
fn a_starting_instance_is_in_no_routable_set() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(registration(0, 1, 100));
    let view = bench.shard.view(cell(0)).unwrap();
    assert_eq!((view.endpoints().count(), view.head().count), (0, 0));
    assert_eq!((view.head().revision, view.revision()), (Revision(0), Revision(1)));
    assert!(bench.out.updates.is_empty());
}

#[test]
fn a_query_belongs_to_the_revision_it_names() {
    let mut bench = Bench::new(Mutants::default());
    for n in 0..5 {
        bench.ready(0, n, 100);
    }
    bench.ready(1, 9, 100);
    let view = bench.shard.view(cell(0)).unwrap();
    let endpoints: Vec<Endpoint> = view.endpoints().collect();
    assert_eq!(view.head().count, 5);
    assert_eq!(view.head().checksum, Endpoint::checksum(&endpoints));
    assert_eq!(view.head().revision, bench.out.updates[4].to);
    assert!(bench.shard.view(Cell { service: ServiceId(0), region: RegionId(0) }).is_none());
}

#[test]
fn the_table_is_d13_and_the_three_rows_of_the_decision() {
    use Reason as R;
    use State as S;
    let rows = [
        (S::Starting, S::Ready, vec![R::Started]),
        (S::Starting, S::Draining, vec![R::Withdrawn]),
        (S::Ready, S::Draining, vec![R::Withdrawn]),
        (S::Unhealthy, S::Draining, vec![R::Withdrawn]),
        (S::Ready, S::Unhealthy, vec![R::ReadinessReported, R::ProbesFailed, R::PassiveConfirmed]),
        (S::Unhealthy, S::Ready, vec![R::Recovered]),
        (S::Starting, S::Expired, vec![R::LeaseExpired, R::Replaced]),
        (S::Ready, S::Expired, vec![R::LeaseExpired, R::Replaced]),
        (S::Draining, S::Expired, vec![R::LeaseExpired, R::Replaced]),
        (S::Unhealthy, S::Expired, vec![R::LeaseExpired, R::Replaced]),
        (S::Draining, S::Gone, vec![R::Exited, R::DrainOver]),
        (S::Expired, S::Gone, vec![R::Cleared]),
    ];
    for from in S::ALL {
        for to in S::ALL {
            for reason in R::ALL {
                let listed =
                    rows.iter().any(|(f, t, why)| (*f, *t) == (from, to) && why.contains(&reason));
                assert_eq!(legal(from, to, reason), listed, "{from:?} {to:?} {reason:?}");
            }
        }
    }
}

#[test]
fn what_the_table_lacks_is_refused_and_audited() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let ask = |to, reason| Command::Move {
        instance: InstanceId(1),
        generation: Generation::first(100),
        to,
        reason,
        source: Source::Controller,
        expected: None,
    };
    refused(&mut bench, ask(State::Gone, Reason::Exited), Verdict::IllegalTransition);
    refused(&mut bench, ask(State::Starting, Reason::Started), Verdict::IllegalTransition);
    refused(&mut bench, ask(State::Ready, Reason::Started), Verdict::AlreadySo);
    refused(&mut bench, ask(State::Unhealthy, Reason::ProbesFailed), Verdict::WrongSource);
    refused(&mut bench, ask(State::Expired, Reason::LeaseExpired), Verdict::WrongSource);
    bench.go(1, State::Draining, Reason::Withdrawn, Source::Controller);
    refused(&mut bench, ask(State::Ready, Reason::Started), Verdict::IllegalTransition);
    let unknown = Command::Weigh {
        instance: InstanceId(2),
        generation: Generation::first(1),
        weight: 2,
        source: Source::Controller,
    };
    refused(&mut bench, unknown, Verdict::UnknownInstance);
}

#[test]
fn sources_reach_no_further_than_their_own() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let stranger = [Source::Agent(NodeId(2)), Source::Workload(InstanceId(2)), Source::Health];
    for source in stranger {
        let asked = registration(0, 3, 100);
        refused(&mut bench, Command::Register(asked, source), Verdict::WrongSource);
        let withdraw = Command::Move {
            instance: InstanceId(1),
            generation: Generation::first(100),
            to: State::Draining,
            reason: Reason::Withdrawn,
            source,
            expected: None,
        };
        refused(&mut bench, withdraw, Verdict::WrongSource);
    }
}

#[test]
fn an_old_generation_changes_nothing() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    bench.ready(0, 1, 200);
    let old = Generation::first(100);
    let late = |to, reason, source| Command::Move {
        instance: InstanceId(1),
        generation: old,
        to,
        reason,
        source,
        expected: None,
    };
    let agent = Source::Agent(NodeId(1));
    refused(&mut bench, late(State::Draining, Reason::Withdrawn, agent), Verdict::OldGeneration);
    refused(&mut bench, late(State::Gone, Reason::Exited, agent), Verdict::OldGeneration);
    let again = Command::Register(registration(0, 1, 100), agent);
    refused(&mut bench, again, Verdict::OldGeneration);
    let mut twice = registration(0, 1, 200);
    refused(&mut bench, Command::Register(twice, agent), Verdict::AlreadySo);
    twice.generation = twice.generation.again();
    refused(&mut bench, Command::Register(twice, agent), Verdict::IllegalTransition);
    let early = Command::Move {
        instance: InstanceId(1),
        generation: Generation::first(300),
        to: State::Draining,
        reason: Reason::Withdrawn,
        source: agent,
        expected: None,
    };
    refused(&mut bench, early, Verdict::UnknownGeneration);
    assert_eq!(bench.state(1), State::Ready);
}

#[test]
fn a_replaced_process_leaves_the_routable_set_before_its_successor_starts() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    bench.out.clear();
    bench.register(registration(0, 1, 200));
    let seen: Vec<_> = bench
        .out
        .transitions
        .iter()
        .map(|t| (t.generation.start, t.from, t.to, t.reason))
        .collect();
    let expected = [
        (100, Some(State::Ready), State::Expired, Reason::Replaced),
        (200, None, State::Starting, Reason::Registered),
    ];
    assert_eq!(seen, expected);
    assert_eq!(bench.shard.view(cell(0)).unwrap().head().count, 0);
    assert_eq!(bench.shard.audit().written(), 4, "both transitions are audited");
}

#[test]
fn expired_comes_back_only_by_a_new_registration() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    assert_eq!(bench.expire(1, 1), Verdict::Accepted);
    let mut asked = registration(0, 1, 100);
    refused(&mut bench, Command::Register(asked, Source::Controller), Verdict::OldGeneration);
    asked.generation = asked.generation.again();
    asked.ready = true;
    assert_eq!(bench.register(asked), Verdict::Accepted);
    assert_eq!(bench.state(1), State::Ready, "it had been through startup");
    let last = bench.out.transitions.last().unwrap();
    assert_eq!((last.from, last.reason), (Some(State::Expired), Reason::Reregistered));

    // A process that never was READY does not skip startup by saying so.
    bench.register(registration(0, 2, 100));
    assert_eq!(bench.expire(2, 1), Verdict::Accepted);
    let mut asked = Registration { ready: true, ..registration(0, 2, 100) };
    asked.generation = asked.generation.again();
    assert_eq!(bench.register(asked), Verdict::Accepted);
    assert_eq!(bench.state(2), State::Starting);
    // Nor does a new process inherit it.
    let fresh = Registration { ready: true, ..registration(0, 1, 300) };
    assert_eq!(bench.register(fresh), Verdict::Accepted);
    assert_eq!(bench.state(1), State::Starting);
}

#[test]
fn what_left_stays_away() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    bench.go(1, State::Draining, Reason::Withdrawn, Source::Controller);
    bench.go(1, State::Gone, Reason::DrainOver, Source::Controller);
    let mut late = registration(0, 1, 100);
    refused(&mut bench, Command::Register(late, Source::Controller), Verdict::OldGeneration);
    late.generation = late.generation.again();
    refused(&mut bench, Command::Register(late, Source::Controller), Verdict::OldGeneration);
    assert_eq!(bench.register(registration(0, 1, 101)), Verdict::Accepted);
}

#[test]
fn an_address_has_one_live_owner() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let mut newer = registration(1, 2, 200);
    newer.address = registration(0, 1, 100).address;
    assert_eq!(bench.register(newer), Verdict::Accepted);
    // Already before the newer one is READY: the requests would reach it.
    assert_eq!(bench.state(1), State::Expired);
    assert_eq!(bench.out.updates.last().unwrap().count, 0);
    let mut back = registration(0, 1, 100);
    back.generation = back.generation.again();
    refused(&mut bench, Command::Register(back, Source::Controller), Verdict::AddressTaken);
    // Not even when the newer one has left and was forgotten.
    bench.go(2, State::Draining, Reason::Withdrawn, Source::Controller);
    bench.go(2, State::Gone, Reason::Exited, Source::Controller);
    refused(&mut bench, Command::Register(back, Source::Controller), Verdict::AddressTaken);
    bench.apply(Command::Sweep { start_before: 1_000 });
    assert_eq!(bench.shard.rows(), 1);
    refused(&mut bench, Command::Register(back, Source::Controller), Verdict::AddressTaken);
}

#[test]
fn a_sweep_forgets_what_left_and_keeps_the_fence() {
    let mut bench = Bench::new(Mutants::default());
    for n in 0..10 {
        bench.ready(n % 2, u32::from(n), 100 + u32::from(n));
    }
    for n in [0, 3, 4, 9] {
        bench.go(n, State::Draining, Reason::Withdrawn, Source::Controller);
        bench.go(n, State::Gone, Reason::Exited, Source::Controller);
    }
    let heads: Vec<_> = bench.shard.views().map(CellView::head).collect();
    bench.apply(Command::Sweep { start_before: 109 });
    let moved = bench.out.moved.take().unwrap();
    assert_eq!(moved, [NIL, 0, 1, NIL, NIL, 2, 3, 4, 5, 6], "9 started too late to be forgotten");
    assert_eq!(bench.shard.views().map(CellView::head).collect::<Vec<_>>(), heads);
    for view in bench.shard.views() {
        let endpoints: Vec<_> = view.endpoints().collect();
        assert_eq!(view.head().checksum, Endpoint::checksum(&endpoints));
    }
    for n in [1, 2, 5, 6, 7, 8] {
        assert_eq!(bench.state(n), State::Ready);
    }
    let ghost = registration(0, 4, 104);
    refused(&mut bench, Command::Register(ghost, Source::Controller), Verdict::BelowFloor);
    assert_eq!(bench.register(registration(0, 4, 109)), Verdict::Accepted);
}

#[test]
fn only_the_present_term_expires() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    bench.term = Term(3);
    bench.apply(Command::Barrier);
    let expire = |decided| Command::Expire {
        instance: InstanceId(1),
        generation: Generation::first(100),
        decided: Term(decided),
    };
    // Decided by the leader of term 1, handed to the leader of term 3.
    refused(&mut bench, expire(1), Verdict::StaleTerm);
    refused(&mut bench, expire(4), Verdict::StaleTerm);
    // An entry of term 1 that stands behind the barrier of term 3.
    bench.term = Term(1);
    refused(&mut bench, expire(1), Verdict::StaleTerm);
    bench.term = Term(3);
    assert_eq!(bench.apply(expire(3)), Verdict::Accepted);
}

#[test]
fn a_decision_on_an_old_read_is_refused() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let read = bench.shard.find(InstanceId(1)).unwrap();
    // In between the instance failed, recovered, and the decider did not see it.
    bench.go(1, State::Unhealthy, Reason::ProbesFailed, Source::Health);
    bench.go(1, State::Ready, Reason::Recovered, Source::Health);
    let stale = |expected| Command::Move {
        instance: InstanceId(1),
        generation: read.generation,
        to: State::Unhealthy,
        reason: Reason::ProbesFailed,
        source: Source::Health,
        expected,
    };
    refused(&mut bench, stale(Some(read.revision)), Verdict::StaleRead);
    refused(&mut bench, stale(None), Verdict::StaleRead);
}

#[test]
fn a_weight_is_published_as_a_change() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let weigh = |weight, source| Command::Weigh {
        instance: InstanceId(1),
        generation: Generation::first(100),
        weight,
        source,
    };
    assert_eq!(bench.apply(weigh(5, Source::Controller)), Verdict::Accepted);
    let update = *bench.out.updates.last().unwrap();
    let Change::Changed(before, after) = update.change else { panic!("{update:?}") };
    assert_eq!((before.weight, after.weight), (1, 5));
    assert_eq!((update.from, update.to), (Revision(2), Revision(3)));
    assert_eq!(update.checksum, after.fingerprint());
    refused(&mut bench, weigh(5, Source::Controller), Verdict::AlreadySo);
    refused(&mut bench, weigh(0, Source::Controller), Verdict::ZeroWeight);
    refused(&mut bench, weigh(6, Source::Agent(NodeId(1))), Verdict::WrongSource);
}

#[test]
fn a_shard_keeps_its_own_cells_only() {
    let directory = directory(50, 4);
    let mut kept = 0;
    for shard in 0..4 {
        let shard = ShardId(shard);
        let catalog = CatalogShard::new(&directory, REGION, shard, 8);
        for view in catalog.views() {
            assert_eq!(directory.shard(view.cell().service), Some(shard));
            kept += 1;
        }
        assert!(catalog.views().count() > 4, "the hash spreads");
    }
    assert_eq!(kept, 50);
    let mut bench = Bench::new(Mutants::default());
    for asked in [
        Registration { cell: Cell { region: RegionId(0), ..cell(0) }, ..registration(0, 1, 1) },
        Registration { cell: cell(40), ..registration(0, 1, 1) },
        Registration {
            place: Place { region: RegionId(2), zone: ZoneId(0) },
            ..registration(0, 1, 1)
        },
    ] {
        refused(&mut bench, Command::Register(asked, Source::Controller), Verdict::WrongCell);
    }
    bench.ready(0, 1, 1);
    let moved = Registration { cell: cell(1), ..registration(0, 1, 2) };
    refused(&mut bench, Command::Register(moved, Source::Controller), Verdict::WrongCell);
}

#[test]
fn a_restored_copy_starts_a_new_life() {
    let mut bench = Bench::new(Mutants::default());
    bench.ready(0, 1, 100);
    let copy = bench.shard.clone();
    bench.ready(0, 2, 100);
    let error = copy.clone().restored(Incarnation(3), Incarnation(3)).unwrap_err();
    assert_eq!((error.given, error.known), (3, 3));
    let restored = copy.restored(Incarnation(3), Incarnation(4)).unwrap();
    assert_eq!(restored.view(cell(0)).unwrap().head().incarnation, Incarnation(4));
}

#[test]
fn the_audit_ring_is_bounded_and_its_digest_is_not() {
    let mut log = AuditLog::new(3);
    let mut bench = Bench::new(Mutants::default());
    for n in 0..5 {
        bench.register(registration(0, n, 100));
    }
    let lines: Vec<_> = bench.shard.audit().lines().copied().collect();
    let mut chain = [0; 24];
    for line in &lines {
        log.write(*line);
        chain = AuditLog::link(&chain, line);
    }
    let kept: Vec<_> = log.lines().map(|line| line.sequence).collect();
    assert_eq!((log.written(), kept), (5, vec![2, 3, 4]));
    assert_eq!(log.digest(), chain);
    let mut forged = lines[1];
    forged.source = Source::Workload(InstanceId(1));
    assert_ne!(AuditLog::link(&[0; 24], &forged), AuditLog::link(&[0; 24], &lines[1]));
}

/// The replicas of a shard that apply the same entries are equal, whatever their clocks say.
#[test]
fn replicas_agree_whatever_their_clocks_say() {
    let mut bench = Bench::new(Mutants::default());
    let mut other = bench.shard.clone();
    let commands = [
        Command::Register(registration(0, 1, 5), Source::Controller),
        Command::Register(registration(0, 1, 4), Source::Controller),
        Command::Sweep { start_before: 3 },
    ];
    let mut out = CatalogOut::default();
    for command in commands {
        bench.apply(command);
        let entry = Entry { proposed: bench.now, command };
        other.apply(&entry, bench.term, Time::from_s(77), &mut out);
    }
    assert_eq!(other, bench.shard);
    assert_eq!(other.digest(), bench.shard.digest());
}

mod mutants_are_caught {
    use super::*;

    fn panics(mutant: Mutant, test: impl Fn(Bench) + std::panic::UnwindSafe) {
        let result = std::panic::catch_unwind(move || test(Bench::new(Mutants::only(mutant))));
        assert!(result.is_err(), "{mutant:?} went unnoticed");
    }

    #[test]
    fn zombie() {
        panics(Mutant::ZombieResurrection, |mut bench| {
            bench.ready(0, 1, 100);
            bench.ready(0, 1, 200);
            let late = Command::Register(registration(0, 1, 100), Source::Controller);
            refused(&mut bench, late, Verdict::OldGeneration);
        });
    }

    #[test]
    fn old_leader() {
        panics(Mutant::OldLeaderExpiry, |mut bench| {
            bench.ready(0, 1, 100);
            bench.term = Term(3);
            bench.apply(Command::Barrier);
            assert_eq!(bench.expire(1, 1), Verdict::StaleTerm);
        });
    }

    #[test]
    fn stale_read() {
        panics(Mutant::StaleCompareAndSet, |mut bench| {
            bench.ready(0, 1, 100);
            let ask = Command::Move {
                instance: InstanceId(1),
                generation: Generation::first(100),
                to: State::Unhealthy,
                reason: Reason::ProbesFailed,
                source: Source::Health,
                expected: Some(Revision(1)),
            };
            refused(&mut bench, ask, Verdict::StaleRead);
        });
    }

    #[test]
    fn shared_address() {
        panics(Mutant::SharedAddress, |mut bench| {
            bench.ready(0, 1, 100);
            let address = registration(0, 1, 100).address;
            bench.register(Registration { address, ..registration(1, 2, 200) });
            assert_eq!(bench.state(1), State::Expired);
        });
    }
}
