use super::*;
use crate::catalog::{CatalogOut, CatalogShard, Command, Entry, Registration};
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Cell, Directory, Generation, InstanceId, Labels, Metric, NodeId, Out, Place, Reason,
    RegionId, ServiceId, ServiceKey, ShardId, Source, Span, State, Term, Time, ZoneId,
};

pub(super) const TTL: Span = Span::from_s(30);

/// A shard and its leader's keeper, with the log between them.
pub(super) struct Bench {
    pub(super) shard: CatalogShard,
    pub(super) keeper: LeaseKeeper,
    pub(super) term: Term,
    pub(super) out: Out<LeaseMessage, LeaseTimer>,
}

pub(super) fn registration(n: u32, start: u32) -> Registration {
    let region = RegionId(0);
    Registration {
        cell: Cell { service: ServiceId(0), region },
        instance: InstanceId(n),
        generation: Generation::first(start),
        address: Address { ip: n, port: 80 },
        place: Place { region, zone: ZoneId(0) },
        node: NodeId(n as u16 / 10),
        version: 1,
        weight: 1,
        labels: Labels::NONE,
        ready: false,
    }
}

pub(super) fn shard() -> CatalogShard {
    let key = ServiceKey { namespace: "n".into(), service: "s".into(), port: "p".into() };
    let directory = Directory::new(vec![key], 1).unwrap();
    CatalogShard::new(&directory, RegionId(0), ShardId(0), 16)
}

impl Bench {
    fn new(mutants: Mutants) -> Self {
        let keeper = LeaseKeeper::new(TTL).with_mutants(mutants);
        let shard = shard().with_mutants(mutants);
        let mut bench = Self { shard, keeper, term: Term(0), out: Out::new() };
        bench.elect(Time::ZERO);
        bench
    }

    fn elect(&mut self, now: Time) {
        self.term = Term(self.term.0 + 1);
        self.apply(now, Command::Barrier);
        self.keeper.lead(now, self.term, &mut self.out);
    }

    fn apply(&mut self, now: Time, command: Command) -> bool {
        let mut said = CatalogOut::default();
        let entry = Entry { proposed: now, command };
        let verdict = self.shard.apply(&entry, self.term, now, &mut said);
        for transition in &said.transitions {
            self.keeper.observe(&self.shard, transition, &mut self.out);
        }
        verdict.accepted()
    }

    fn register(&mut self, now: Time, n: u32, start: u32) {
        let command = Command::Register(registration(n, start), Source::Controller);
        assert!(self.apply(now, command));
    }

    fn renew(&mut self, now: Time, node: u16, listed: &[(u32, u32)]) -> Vec<RenewalRefusal> {
        self.out.clear();
        let listed: Vec<_> =
            listed.iter().map(|&(n, start)| (InstanceId(n), Generation::first(start))).collect();
        self.keeper.renew(now, &self.shard, NodeId(node), &listed, &mut self.out);
        let refused = self.out.sends.iter().flat_map(|send| match &send.body {
            LeaseMessage::NotRenewed(refused) => refused.clone(),
            LeaseMessage::Propose(_) => panic!("a renewal proposes nothing"),
        });
        refused.map(|(_, _, why)| why).collect()
    }

    /// What the keeper proposes to expire.
    fn tick(&mut self, now: Time) -> Vec<Command> {
        self.out.clear();
        self.keeper.on_timer(now, &self.shard, &mut self.out);
        let proposals = self.out.sends.iter().map(|send| match send.body {
            LeaseMessage::Propose(command) => command,
            LeaseMessage::NotRenewed(_) => panic!("a timer refuses nothing"),
        });
        proposals.collect()
    }
}

#[test]
fn a_lease_runs_out_to_the_millisecond_and_once() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    assert_eq!(bench.keeper.next(), Time::from_s(30), "the end of the grace comes first");
    assert_eq!(bench.tick(Time::from_ms(129_999)), []);
    assert_eq!(bench.keeper.next(), Time::from_s(130));
    let due = bench.tick(Time::from_s(130));
    let (instance, generation) = (InstanceId(1), Generation::first(1));
    let expire = Command::Expire { instance, generation, decided: Term(1) };
    assert_eq!(due, [expire]);
    assert_eq!(bench.tick(Time::from_s(131)), [], "it is on its way");
    assert_eq!(bench.renew(Time::from_s(131), 0, &[(1, 1)]), [RenewalRefusal::Over]);
    assert!(bench.apply(Time::from_s(131), expire));
    assert_eq!(bench.shard.find(instance).unwrap().state, State::Expired);
    assert_eq!(bench.keeper.next(), Time::NEVER);
}

#[test]
fn one_message_renews_all_instances_of_a_node_and_no_others() {
    let mut bench = Bench::new(Mutants::default());
    for n in [10, 11, 12, 20] {
        bench.register(Time::from_s(100), n, 1);
    }
    bench.register(Time::from_s(100), 12, 2);
    let listed = [(10, 1), (11, 1), (12, 1), (20, 1), (99, 1)];
    let refused = bench.renew(Time::from_s(120), 1, &listed);
    let expected =
        [RenewalRefusal::OtherGeneration, RenewalRefusal::OtherNode, RenewalRefusal::Unknown];
    assert_eq!(refused, expected);
    assert_eq!(bench.out.total(Metric::Renewals), 2);
    assert_eq!(bench.out.total(Metric::RenewalMessages), 1);
    let record = |n| bench.keeper.record(&bench.shard, InstanceId(n)).unwrap().lease_expiry;
    assert_eq!([10, 11, 12, 20].map(record), [150, 150, 130, 130].map(Time::from_s));
    assert_eq!(bench.tick(Time::from_s(130)).len(), 2);
}

#[test]
fn a_new_leader_gives_every_lease_a_full_ttl() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    bench.register(Time::from_s(100), 2, 1);
    // The old leader heard a renewal at 125; the new one, of 128, knows nothing of it.
    bench.renew(Time::from_s(125), 0, &[(1, 1)]);
    bench.elect(Time::from_s(128));
    assert_eq!(bench.tick(Time::from_ms(157_999)), []);
    bench.renew(Time::from_s(150), 0, &[(1, 1)]);
    assert_eq!(bench.tick(Time::from_s(158)).len(), 1, "the one that nobody renewed");
    assert_eq!(bench.keeper.expiry(0), Time::from_s(180));
}

#[test]
fn without_the_grace_a_new_leader_expires_what_was_renewed() {
    let mut bench = Bench::new(Mutants::only(Mutant::NoGraceAfterLeaderChange));
    bench.register(Time::from_s(100), 1, 1);
    bench.renew(Time::from_s(125), 0, &[(1, 1)]);
    bench.elect(Time::from_s(128));
    assert_eq!(bench.tick(Time::from_s(128)).len(), 1, "the mutant does the damage");
}

#[test]
fn a_replica_that_does_not_lead_neither_renews_nor_expires() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    bench.keeper.step_down();
    assert_eq!(bench.renew(Time::from_s(101), 0, &[(1, 1)]), [RenewalRefusal::NotLeading]);
    assert_eq!(bench.tick(Time::from_s(500)), []);
    assert_eq!(bench.keeper.expiry(0), Time::NEVER);
}

#[test]
fn a_refused_proposal_leaves_the_lease_open_for_a_renewal() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    assert_eq!(bench.tick(Time::from_s(130)).len(), 1);
    bench.keeper.not_proposed(Time::from_s(130), 0, Span::from_s(1), &mut bench.out);
    assert_eq!(bench.renew(Time::from_ms(130_500), 0, &[(1, 1)]), []);
    assert_eq!(bench.tick(Time::from_s(131)), []);
    assert_eq!(bench.tick(Time::from_ms(160_500)).len(), 1);
}

#[test]
fn a_cover_stands_for_renewals_that_are_not_played() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    bench.keeper.cover(0);
    assert_eq!(bench.tick(Time::from_s(1_000)), []);
    bench.elect(Time::from_s(1_000));
    assert_eq!(bench.tick(Time::from_s(1_100)), []);
    bench.out.clear();
    bench.keeper.uncover(0, Time::from_s(1_095), &mut bench.out);
    assert_eq!(bench.out.timers[0].at, Time::from_s(1_125));
    assert_eq!(bench.tick(Time::from_s(1_124)), []);
    assert_eq!(bench.tick(Time::from_s(1_125)).len(), 1);
}

#[test]
fn a_new_life_gets_a_new_lease_and_a_swept_one_keeps_none() {
    let mut bench = Bench::new(Mutants::default());
    bench.register(Time::from_s(100), 1, 1);
    bench.register(Time::from_s(110), 2, 2);
    bench.register(Time::from_s(115), 1, 5);
    assert_eq!(bench.keeper.expiry(0), Time::from_s(145));
    for (to, reason) in [(State::Draining, Reason::Withdrawn), (State::Gone, Reason::Exited)] {
        let (instance, generation) = (InstanceId(1), Generation::first(5));
        let source = Source::Controller;
        let step = Command::Move { instance, generation, to, reason, source, expected: None };
        assert!(bench.apply(Time::from_s(116), step));
    }
    let entry = Entry { proposed: Time::ZERO, command: Command::Sweep { start_before: 9 } };
    let mut said = CatalogOut::default();
    bench.shard.apply(&entry, bench.term, Time::from_s(117), &mut said);
    bench.keeper.renumber(&said.moved.unwrap());
    assert_eq!(bench.shard.row_of(InstanceId(2)), Some(0));
    assert_eq!(bench.keeper.expiry(0), Time::from_s(140));
    assert_eq!(bench.tick(Time::from_s(140)).len(), 1);
}
