//! Every interleaving of renewals, elections, late proposals and deaths in a small world: one instance, two
//! replicas of which the deposed one may not know it, a TTL of two seconds.

use stateright::{Checker, Model, Property};

use super::tests::{registration, shard};
use super::{LeaseKeeper, LeaseMessage, LeaseTimer};
use crate::catalog::{CatalogOut, CatalogShard, Command, Entry};
use crate::mutants::{Mutant, Mutants};
use crate::types::{Generation, InstanceId, NodeId, Out, Source, Span, State, Term, Time, Verdict};

const TTL_S: u64 = 2;
const END_S: u64 = 6;
const TERMS: u64 = 3;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    now_s: u64,
    catalog: CatalogShard,
    keepers: [LeaseKeeper; 2],
    leader: usize,
    term: u64,
    alive: bool,
    /// Since when the present leader may count the instance as silent.
    heard_s: u64,
    /// Proposals on their way to the log.
    flying: Vec<Command>,
    /// An expiry was accepted of an instance that the present leader had heard within the TTL.
    wrong: bool,
    /// An expiry of another term's leader was refused.
    refused: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Step {
    Second,
    /// The agent renews, with the replica it takes for the leader.
    Renew(usize),
    Elect(usize),
    /// The deposed replica learns of it.
    Learn,
    /// A replica looks for leases that ran out.
    Look(usize),
    /// The log of the present term takes a proposal, from whomever.
    Commit(usize),
    Die,
}

struct Leases(Mutants);

impl Model for Leases {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let keeper = LeaseKeeper::new(Span::from_s(TTL_S)).with_mutants(self.0);
        let mut world = World {
            now_s: 0,
            catalog: shard().with_mutants(self.0),
            keepers: [keeper.clone(), keeper],
            leader: 0,
            term: 0,
            alive: true,
            heard_s: 0,
            flying: Vec::new(),
            wrong: false,
            refused: false,
        };
        world.elect(0);
        world.apply(Command::Register(registration(1, 1), Source::Controller));
        vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        if world.now_s < END_S {
            steps.push(Step::Second);
        }
        if world.alive {
            steps.extend([Step::Renew(0), Step::Renew(1), Step::Die]);
        }
        if world.term < TERMS {
            steps.push(Step::Elect(1 - world.leader));
        }
        steps.extend([Step::Learn, Step::Look(0), Step::Look(1)]);
        steps.extend((0..world.flying.len()).map(Step::Commit));
    }

    fn next_state(&self, before: &World, step: Step) -> Option<World> {
        let mut world = before.clone();
        let now = Time::from_s(world.now_s);
        let mut out = Out::<LeaseMessage, LeaseTimer>::new();
        match step {
            Step::Second => world.now_s += 1,
            Step::Renew(to) => {
                let listed = [(InstanceId(1), Generation::first(1))];
                let keeper = &mut world.keepers[to];
                keeper.renew(now, &world.catalog, NodeId(0), &listed, &mut out);
                if out.sends.is_empty() && to == world.leader {
                    world.heard_s = world.now_s;
                }
            }
            Step::Elect(replica) => world.elect(replica),
            Step::Learn => world.keepers[1 - world.leader].step_down(),
            Step::Look(replica) => {
                world.keepers[replica].on_timer(now, &world.catalog, &mut out);
                for send in out.sends {
                    if let LeaseMessage::Propose(command) = send.body {
                        world.flying.push(command);
                    }
                }
            }
            Step::Commit(which) => {
                let command = world.flying.remove(which);
                let in_time = world.now_s < world.heard_s + TTL_S;
                let verdict = world.apply(command);
                world.wrong |= verdict.accepted() && in_time;
                world.refused |= verdict == Verdict::StaleTerm;
            }
            Step::Die => world.alive = false,
        }
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("nobody expires within the TTL", |_, world: &World| !world.wrong),
            Property::sometimes("a dead instance expires", |_, world: &World| {
                let record = world.catalog.find(InstanceId(1));
                !world.alive && record.is_some_and(|record| record.state == State::Expired)
            }),
            Property::sometimes("an old leader is refused", |_, world: &World| world.refused),
        ]
    }
}

impl World {
    fn elect(&mut self, replica: usize) {
        self.leader = replica;
        self.term += 1;
        self.heard_s = self.now_s;
        self.apply(Command::Barrier);
        let now = Time::from_s(self.now_s);
        self.keepers[replica].lead(now, Term(self.term), &mut Out::new());
    }

    fn apply(&mut self, command: Command) -> Verdict {
        let now = Time::from_s(self.now_s);
        let entry = Entry { proposed: now, command };
        let mut said = CatalogOut::default();
        let verdict = self.catalog.apply(&entry, Term(self.term), now, &mut said);
        for transition in &said.transitions {
            for keeper in &mut self.keepers {
                keeper.observe(&self.catalog, transition, &mut Out::new());
            }
        }
        self.catalog = self.catalog.clone().without_audit();
        verdict
    }
}

#[test]
fn a_leader_change_expires_nobody_who_renews() {
    let checker = Leases(Mutants::default()).checker().spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.unique_state_count() > 1_000, "{}", checker.unique_state_count());
}

#[test]
fn each_safeguard_is_needed() {
    for mutant in [Mutant::OldLeaderExpiry, Mutant::NoGraceAfterLeaderChange] {
        let checker = Leases(Mutants::only(mutant)).checker().spawn_bfs().join();
        checker.assert_any_discovery("nobody expires within the TTL");
    }
}
