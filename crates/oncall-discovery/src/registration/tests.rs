use super::agent::{Agent, Shutdown, ShutdownStep};
use super::*;
use crate::auth::{
    Audience, AuthError, Claims, Gate, Issuer, Role, Subject, SymbolicAuthority, Token,
};
use crate::catalog::{CatalogOut, CatalogShard, Command, Entry, Registration};
use crate::dials::Dials;
use crate::distrib::WatchPolicy;
use crate::types::{
    Address, Cell, Directory, Generation, InstanceId, Label, Labels, NodeId, Out, Peer, Place,
    ProberId, ProxyId, Reason, RegionId, RelayId, ServiceId, ServiceKey, ShardId, Source, Span,
    State, Term, Time, Verdict, ZoneId,
};

const REGION: RegionId = RegionId(1);
const PLACE: Place = Place { region: REGION, zone: ZoneId(2) };

fn cell(service: u16) -> Cell {
    Cell { service: ServiceId(service), region: REGION }
}

fn registration(n: u32, start: u32) -> Registration {
    Registration {
        cell: cell(0),
        instance: InstanceId(n),
        generation: Generation::first(start),
        address: Address { ip: n / 10, port: 1_000 + n as u16 },
        place: PLACE,
        node: NodeId(n as u16 / 10),
        version: 1,
        weight: 1,
        labels: Labels::NONE,
        ready: false,
    }
}

fn shard() -> CatalogShard {
    let key = |n: u8| ServiceKey {
        namespace: "prod".into(),
        service: format!("s{n}"),
        port: "grpc".into(),
    };
    let directory = Directory::new(vec![key(0), key(1)], 1).unwrap();
    CatalogShard::new(&directory, REGION, ShardId(0), 64)
}

fn apply(shard: &mut CatalogShard, command: Command) -> Verdict {
    let entry = Entry { proposed: Time::ZERO, command };
    shard.apply(&entry, Term(1), Time::ZERO, &mut CatalogOut::default())
}

fn claims(role: Role) -> Claims {
    Claims {
        subject: Subject(1),
        role,
        audience: Audience::Catalog(REGION),
        issued: Time::ZERO,
        expires: Time::from_s(100),
    }
}

fn controller(region: u8) -> Role {
    Role::Controller { region: RegionId(region) }
}

fn agent(node: u16) -> Role {
    let services = vec![ServiceId(0)];
    Role::Agent { node: NodeId(node), place: PLACE, ip: node.into(), services }
}

fn workload(service: u16, n: u32) -> Role {
    let address = registration(n, 1).address;
    Role::Workload { cell: cell(service), instance: InstanceId(n), address }
}

fn proxy(services: &[u16]) -> Role {
    let services = services.iter().map(|&n| ServiceId(n)).collect();
    Role::Proxy { proxy: ProxyId(4), place: PLACE, services }
}

fn prober() -> Role {
    Role::Prober { region: REGION, prober: ProberId(0) }
}

fn relay() -> Role {
    Role::Relay { region: REGION, relay: RelayId(0) }
}

/// A shard with instance 11 of service 0, on node 1.
fn with_one() -> CatalogShard {
    let mut shard = shard();
    apply(&mut shard, Command::Register(registration(11, 1), Source::Controller));
    shard
}

#[test]
fn a_role_registers_no_further_than_its_own() {
    let shard = shard();
    let asks =
        |role: Role, asked: Registration| admit(&claims(role), &Request::Register(asked), &shard);
    let asked = registration(11, 1);
    let command = |source| Ok(Admitted::Command(Command::Register(asked, source)));
    assert_eq!(asks(controller(1), asked), command(Source::Controller));
    assert_eq!(asks(agent(1), asked), command(Source::Agent(NodeId(1))));
    assert_eq!(asks(workload(0, 11), asked), command(Source::Workload(InstanceId(11))));

    let stranger = Address { ip: 9, ..asked.address };
    let elsewhere = Place { zone: ZoneId(0), ..PLACE };
    for (role, asked) in [
        (controller(0), asked),
        (agent(2), asked),
        (agent(1), Registration { address: stranger, ..asked }),
        (agent(1), Registration { place: elsewhere, ..asked }),
        (agent(1), Registration { cell: cell(1), ..asked }),
        (workload(0, 11), Registration { address: stranger, ..asked }),
        (workload(1, 11), asked),
        (workload(0, 12), asked),
        (proxy(&[0]), asked),
        (prober(), asked),
        (relay(), asked),
    ] {
        let answer = asks(role.clone(), asked);
        assert!(matches!(answer, Err(AuthError::Forbidden(_))), "{role:?} {answer:?}");
    }
}

#[test]
fn a_role_changes_no_further_than_its_own() {
    use Reason as R;
    let shard = with_one();
    let asks = |role: Role, to, reason| {
        let (instance, generation) = (InstanceId(11), Generation::first(1));
        let request = Request::Move { instance, generation, to, reason, expected: None };
        admit(&claims(role), &request, &shard).is_ok()
    };
    let allowed = |role: Role| {
        R::ALL.into_iter().filter(|&reason| asks(role.clone(), State::Gone, reason)).collect()
    };
    let lists: [Vec<R>; 4] = [controller(1), agent(1), workload(0, 11), agent(2)].map(allowed);
    assert_eq!(lists[0], [R::Started, R::Withdrawn, R::Exited, R::DrainOver, R::Cleared]);
    assert_eq!(lists[1], [R::Withdrawn, R::Exited, R::DrainOver]);
    assert_eq!(lists[2], [R::Withdrawn, R::Exited]);
    assert_eq!(lists[3], []);
    for role in [controller(0), workload(0, 12), workload(1, 11), proxy(&[0]), prober(), relay()] {
        assert_eq!(allowed(role), []);
    }
    let weigh =
        Request::Weigh { instance: InstanceId(11), generation: Generation::first(1), weight: 9 };
    assert!(admit(&claims(controller(1)), &weigh, &shard).is_ok());
    for role in [agent(1), workload(0, 11), controller(0)] {
        assert!(admit(&claims(role), &weigh, &shard).is_err());
    }
}

#[test]
fn an_agent_takes_no_instance_from_another_node() {
    let mut shard = with_one();
    let moved = Registration {
        node: NodeId(2),
        address: Address { ip: 2, port: 9 },
        generation: Generation::first(2),
        ..registration(11, 2)
    };
    let ask = Request::Register(moved);
    let takes = |shard: &CatalogShard, role| admit(&claims(role), &ask, shard).is_ok();
    assert!(!takes(&shard, agent(2)));
    assert!(takes(&shard, controller(1)), "the orchestrator may move it");
    // Once the old life is over, the id is free.
    let (instance, generation) = (InstanceId(11), Generation::first(1));
    apply(&mut shard, Command::Barrier);
    apply(&mut shard, Command::Expire { instance, generation, decided: Term(1) });
    assert!(takes(&shard, agent(2)));
}

#[test]
fn labels_grant_nothing() {
    let shard = with_one();
    for role in [controller(1), agent(1), agent(2), workload(0, 11), workload(1, 11), prober()] {
        let plain = registration(11, 2);
        let expected = admit(&claims(role.clone()), &Request::Register(plain), &shard).err();
        for label in Label::ALL {
            for value in 1..=Label::VALUE_MAX {
                let labels = Labels::NONE.with(label, value).unwrap();
                let request = Request::Register(Registration { labels, ..plain });
                assert_eq!(admit(&claims(role.clone()), &request, &shard).err(), expected);
            }
        }
    }
}

#[test]
fn reads_and_reports_need_a_right_too() {
    let shard = with_one();
    let may = |role: Role, request: Request| admit(&claims(role), &request, &shard).is_ok();
    let reads =
        [proxy(&[0, 5]), proxy(&[1, 5]), relay(), controller(1), controller(0), workload(0, 11)];
    let expected = [true, false, true, true, false, true];
    assert_eq!(reads.map(|role| may(role, Request::Read(cell(0)))), expected);
    assert!(!may(workload(1, 11), Request::Read(cell(0))));
    assert!(!may(agent(1), Request::Read(cell(0))));
    let reports = [proxy(&[0, 5]), proxy(&[1]), prober(), agent(1), relay(), workload(0, 11)];
    let expected = [true, false, true, true, false, false];
    assert_eq!(reports.map(|role| may(role, Request::Report(InstanceId(11)))), expected);
    assert!(!may(agent(2), Request::Report(InstanceId(11))), "of another node");
    assert!(!may(prober(), Request::Report(InstanceId(12))), "nobody");
    let listed =
        vec![(InstanceId(11), Generation::first(1)), (InstanceId(12), Generation::first(1))];
    assert!(may(agent(1), Request::Renew(listed.clone())));
    assert!(!may(workload(0, 11), Request::Renew(listed.clone())));
    assert!(may(workload(0, 11), Request::Renew(listed[..1].to_vec())));
    assert!(!may(proxy(&[0]), Request::Renew(listed)));
}

#[test]
fn a_stream_needs_the_peers_own_token_and_ends_with_it() {
    let authority = SymbolicAuthority(1);
    let mut gate = Gate::new(authority, Audience::Distribution(REGION), Span::from_s(1_000));
    let token = |role, subject| -> Token {
        let audience = Audience::Distribution(REGION);
        authority.issue(Claims { audience, subject: Subject(subject), ..claims(role) })
    };
    let mut grants = WatchGrants::default();
    let peer = Peer::Proxy(ProxyId(4));
    assert!(!grants.may_connect(peer, 0));
    let thief = grants.grant(Time::ZERO, Peer::Proxy(ProxyId(5)), &token(proxy(&[1]), 1), &gate);
    assert!(matches!(thief, Err(AuthError::Forbidden(_))), "{thief:?}");
    let proof = grants.grant(Time::ZERO, peer, &token(proxy(&[1]), 1), &gate).unwrap();
    assert!(grants.may_connect(peer, proof) && !grants.may_connect(peer, proof + 1));
    assert!(grants.may_watch(peer, cell(1)) && !grants.may_watch(peer, cell(0)));
    let home = Peer::Relay(REGION, RelayId(0));
    grants.grant(Time::ZERO, home, &token(relay(), 2), &gate).unwrap();
    assert!(grants.may_watch(home, cell(0)));

    assert_eq!(grants.review(Time::from_s(1), &mut gate), []);
    gate.revocations().revoke(Subject(1), Time::from_s(1));
    assert_eq!(grants.review(Time::from_s(2), &mut gate), [peer]);
    assert!(!grants.may_watch(peer, cell(1)));
    assert_eq!(grants.review(Time::from_s(100), &mut gate), [home], "expired");
}

#[test]
fn an_agent_renews_by_shard_and_early_by_its_own_jitter() {
    let mut agent = Agent::new(NodeId(1));
    for (shard, n) in [(0, 1), (1, 2), (0, 3)] {
        agent.started(ShardId(shard), InstanceId(n), Generation::first(5));
    }
    agent.stopped(ShardId(1), InstanceId(2));
    let messages: Vec<_> = agent.renewals().collect();
    let listed = [1, 3].map(|n| (InstanceId(n), Generation::first(5)));
    assert_eq!(messages, [(ShardId(0), listed.to_vec())]);
    let next = |uniform| Agent::next_renewal(Time::ZERO, Span::from_s(10), uniform);
    assert_eq!(next(0), Time::from_s(10));
    assert_eq!(next(u32::MAX / 2 + 1), Time::from_ms(9_500));
    assert!(next(u32::MAX) > Time::from_s(9));
}

#[test]
fn a_shutdown_keeps_its_order() {
    let dials = Dials { accept_grace_s: 3.0, drain_period_s: 30.0, ..Dials::default() };
    let mut shutdown = Shutdown::new(Time::from_s(100), &dials);
    assert_eq!(shutdown.step(Time::from_s(100), 5), ShutdownStep::Wait(Time::from_s(103)));
    shutdown.accepted(Time::from_s(101));
    assert!(shutdown.accepting());
    // No work, but the grace is not over: a proxy may not have heard yet.
    assert_eq!(shutdown.step(Time::from_s(102), 0), ShutdownStep::Wait(Time::from_s(103)));
    assert_eq!(shutdown.step(Time::from_s(103), 5), ShutdownStep::StopAccepting);
    assert!(!shutdown.accepting());
    assert_eq!(shutdown.step(Time::from_s(104), 5), ShutdownStep::Wait(Time::from_s(131)));
    let mut idle = shutdown;
    assert_eq!(idle.step(Time::from_s(110), 0), ShutdownStep::Exit { forced: 0 });
    assert_eq!(shutdown.step(Time::from_s(131), 2), ShutdownStep::Exit { forced: 2 });

    // The catalog is down: the process waits for the whole period and goes.
    let mut unheard = Shutdown::new(Time::from_s(100), &dials);
    assert_eq!(unheard.step(Time::from_s(103), 0), ShutdownStep::StopAccepting);
    assert_eq!(unheard.step(Time::from_s(104), 0), ShutdownStep::Wait(Time::from_s(130)));
    assert_eq!(unheard.step(Time::from_s(130), 0), ShutdownStep::Exit { forced: 0 });
    // No drain period at all.
    let none = Dials { drain_period_s: 0.0, ..dials };
    let mut hasty = Shutdown::new(Time::from_s(100), &none);
    assert_eq!(hasty.step(Time::from_s(100), 7), ShutdownStep::Exit { forced: 7 });
}

/// A controller and a shard, with a log that can be down.
struct Orchestra {
    controller: Controller,
    shard: CatalogShard,
    sent: Vec<Command>,
}

impl Orchestra {
    fn new(rate: u64) -> Self {
        let controller = Controller::new(Time::ZERO, REGION, rate);
        Self { controller, shard: shard(), sent: Vec::new() }
    }

    fn want(&mut self, n: u32, start: u32, wish: Wish) {
        self.controller.want(Desired { registration: registration(n, start), wish });
    }

    fn pump(&mut self, now: Time, up: bool) -> usize {
        let mut out = Out::new();
        self.controller.pump(now, |_| &self.shard, &mut out);
        for send in &out.sends {
            self.sent.push(send.body);
            let outcome = if up {
                Outcome::Applied(apply(&mut self.shard, send.body))
            } else {
                Outcome::NotTaken
            };
            let (Command::Move { instance, .. }
            | Command::Register(Registration { instance, .. }, _)) = send.body
            else {
                panic!("{send:?}")
            };
            self.controller.ended(instance, outcome);
        }
        out.sends.len()
    }

    fn settle(&mut self, now: Time) {
        while self.pump(now, true) > 0 {}
    }

    fn state(&self, n: u32) -> Option<State> {
        self.shard.find(InstanceId(n)).map(|record| record.state)
    }
}

#[test]
fn a_controller_brings_the_catalog_to_its_wishes() {
    let mut world = Orchestra::new(1_000);
    world.want(1, 5, Wish::Running { started: false });
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Starting));
    world.want(1, 5, Wish::Running { started: true });
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Ready));
    // Its lease ran out in a partition that it lived through: the same process, registered once more.
    let (instance, generation) = (InstanceId(1), Generation::first(5));
    apply(&mut world.shard, Command::Expire { instance, generation, decided: Term(0) });
    apply(&mut world.shard, Command::Barrier);
    apply(&mut world.shard, Command::Expire { instance, generation, decided: Term(1) });
    assert_eq!(world.state(1), Some(State::Expired));
    world.controller.look_at(instance);
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Expired), "it may just as well be dead");
    world.controller.lives_on(instance, generation);
    world.controller.lives_on(instance, Generation::first(4));
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Ready));
    assert_eq!(world.shard.find(instance).unwrap().generation, generation.again());
    // A process that is gone without a word is drained first, in two steps.
    world.want(1, 5, Wish::Gone);
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Gone));
    assert_eq!(world.controller.backlog(), 0);
    // A wish about an old process does not touch the new one.
    world.want(1, 9, Wish::Running { started: false });
    world.settle(Time::ZERO);
    world.want(1, 5, Wish::Gone);
    world.settle(Time::ZERO);
    assert_eq!(world.state(1), Some(State::Starting));
}

#[test]
fn a_backlog_is_written_at_a_limited_rate_with_removals_first() {
    let mut world = Orchestra::new(10);
    for n in 0..10 {
        world.want(n, 5, Wish::Running { started: true });
    }
    for second in 0..5 {
        world.settle(Time::from_s(second));
    }
    // The catalog is down while half of them leave and twenty come.
    world.sent.clear();
    for n in (0..5).chain(10..30) {
        let wish = if n < 10 { Wish::Draining } else { Wish::Running { started: false } };
        world.want(n, 5, wish);
    }
    assert_eq!(world.controller.backlog(), 25);
    assert_eq!(world.pump(Time::from_s(10), false), 10, "no more than the rate");
    assert_eq!(world.controller.backlog(), 25, "nothing is lost");
    world.sent.clear();
    let written: Vec<usize> = (11..15).map(|s| world.pump(Time::from_s(s), true)).collect();
    assert_eq!(written, [10, 10, 5, 0]);
    let removals = world.sent.iter().take_while(|c| matches!(c, Command::Move { .. })).count();
    assert_eq!(removals, 5);
}

#[test]
fn a_refusal_on_principle_is_not_repeated() {
    let mut world = Orchestra::new(1_000);
    let mut newer = registration(1, 9);
    newer.address = registration(2, 5).address;
    world.controller.want(Desired { registration: newer, wish: Wish::Running { started: false } });
    world.want(2, 5, Wish::Running { started: false });
    world.settle(Time::ZERO);
    assert_eq!(
        world.sent.len(),
        2,
        "the address is a newer process's, and asking again won't help"
    );
    assert_eq!(world.state(2), None);
}
