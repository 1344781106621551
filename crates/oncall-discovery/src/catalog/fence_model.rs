//! Every order in which the messages of two lives of one instance, and of a third party at the same address, can
//! arrive: any of them any number of times, and as late as it likes.

use stateright::{Checker, Model, Property};

use super::tests::{REGION, directory, registration};
use super::*;
use crate::mutants::{Mutant, Mutants};
use crate::types::{Generation, InstanceId, Reason, ShardId, Source, State, Term, Time};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    shard: CatalogShard,
    /// How far each process has come: how many of its messages are on the network.
    sent: Vec<u8>,
    /// The largest generation of instance 1 that was ever on record, and whether that life is over.
    latest: Generation,
    over: bool,
    wrong: Option<&'static str>,
    /// A late message was refused.
    refused: bool,
}

struct Fence(Mutants);

/// What the processes say, in the order in which each of them sends it. The second one is the same instance after
/// a restart, the third another instance that is given the first one's address still later.
fn scripts() -> Vec<Vec<Command>> {
    let life = |n: u32, start: u32| {
        let mut asked = registration(0, n, start);
        asked.address = registration(0, 1, 1).address;
        let go = |to, reason| Command::Move {
            instance: InstanceId(n),
            generation: Generation::first(start),
            to,
            reason,
            source: Source::Controller,
            expected: None,
        };
        vec![
            Command::Register(asked, Source::Controller),
            go(State::Ready, Reason::Started),
            go(State::Draining, Reason::Withdrawn),
            go(State::Gone, Reason::Exited),
        ]
    };
    vec![life(1, 1), life(1, 2), life(2, 3)]
}

impl Model for Fence {
    type State = World;
    type Action = (usize, usize);

    fn init_states(&self) -> Vec<World> {
        let shard = CatalogShard::new(&directory(1, 1), REGION, ShardId(0), 0);
        vec![World {
            shard: shard.with_mutants(self.0).without_audit(),
            sent: vec![0; 3],
            latest: Generation::default(),
            over: false,
            wrong: None,
            refused: false,
        }]
    }

    /// Deliver a message that is on the network, or the next one of a process whose predecessor is over.
    fn actions(&self, world: &World, deliveries: &mut Vec<(usize, usize)>) {
        for (process, script) in scripts().iter().enumerate() {
            let next = usize::from(world.sent[process]);
            let begun = process == 0 || world.sent[process - 1] > 0;
            let reach = if begun { (next + 1).min(script.len()) } else { next };
            deliveries.extend((0..reach).map(|message| (process, message)));
        }
    }

    fn next_state(&self, before: &World, (process, message): (usize, usize)) -> Option<World> {
        let mut world = before.clone();
        world.sent[process] = world.sent[process].max(message as u8 + 1);
        let command = scripts()[process][message];
        let entry = Entry { proposed: Time::ZERO, command };
        let mut said = CatalogOut::default();
        let verdict = world.shard.apply(&entry, Term(0), Time::ZERO, &mut said);
        world.shard = world.shard.without_audit();
        world.refused |= !verdict.accepted();
        world.judge();
        (world != *before).then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("no life comes back", |_, world: &World| world.wrong.is_none()),
            Property::sometimes("a late message is refused", |_, world: &World| world.refused),
            Property::sometimes("the second life serves", |_, world: &World| {
                let record = world.shard.find(InstanceId(1));
                record.is_some_and(|r| r.state == State::Ready && r.generation.start == 2)
            }),
            Property::sometimes("the third party serves", |_, world: &World| {
                world.shard.find(InstanceId(2)).is_some_and(|r| r.state == State::Ready)
            }),
        ]
    }
}

impl World {
    fn judge(&mut self) {
        if let Some(record) = self.shard.find(InstanceId(1)) {
            if record.generation < self.latest {
                self.wrong = Some("an older generation is on record again");
            }
            let live = record.state.leased();
            if record.generation == self.latest && self.over && live {
                self.wrong = Some("a life that was over is live again");
            }
            self.over = record.generation >= self.latest && !live;
            self.latest = self.latest.max(record.generation);
        }
        let serving = self.shard.views().map(|view| view.head().count).sum::<u32>();
        if serving > 1 {
            self.wrong = Some("one address serves twice");
        }
        let newer = self.shard.find(InstanceId(2)).is_some();
        let older = self.shard.find(InstanceId(1));
        if newer && older.is_some_and(|record| record.state == State::Ready) {
            self.wrong = Some("an older process serves at a newer one's address");
        }
    }
}

#[test]
fn no_order_of_messages_brings_a_life_back() {
    let checker = Fence(Mutants::default()).checker().spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.unique_state_count() > 100, "{}", checker.unique_state_count());
}

#[test]
fn the_generation_and_the_address_fence_are_needed() {
    for mutant in [Mutant::ZombieResurrection, Mutant::SharedAddress] {
        let checker = Fence(Mutants::only(mutant)).checker().spawn_bfs().join();
        checker.assert_any_discovery("no life comes back");
    }
}
