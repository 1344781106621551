//! Three replicas with one clock, real timers and pre-votes: leases, and a leader without a quorum.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::{History, Letter, Member, logs_are_well};
use crate::config::Config;
use crate::mutation::Mutation;
use crate::output::{Output, StepDown};
use crate::replica::Replica;
use crate::types::{Fence, NodeId, Refusal};

/// A step of the clock; all timers are looked at after it.
const STEP: u64 = 50;
const TIMEOUT_MIN: u64 = 100;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    now: u64,
    members: Vec<Member>,
    wire: BTreeSet<Letter>,
    history: History,
    proposals: u8,
    crashes: u8,
    campaigns: u8,
    refused: bool,
    stepped_down: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    /// The clock moves on; messages under way stay there.
    Pass,
    /// The clock moves on, and everything under way is lost.
    Lose,
    Deliver(Letter),
    Propose(NodeId),
    Crash(NodeId),
    /// An election out of turn.
    Campaign(NodeId),
}

/// Which links are dead from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cut {
    Nothing,
    /// The first leader can reach nobody, and nobody it.
    Leader,
    /// The first leader and replica 2 do not reach each other.
    Link,
}

impl Cut {
    fn hits(self, letter: &Letter) -> bool {
        let with_leader = letter.from == 0 || letter.to == 0;
        match self {
            Cut::Nothing => false,
            Cut::Leader => with_leader,
            Cut::Link => with_leader && (letter.from == 2 || letter.to == 2),
        }
    }
}

/// Bounds of the search.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    key: u64,
    until: u64,
    proposals: u8,
    crashes: u8,
    campaigns: u8,
    wire: usize,
    cut: Cut,
    mutation: Option<Mutation>,
}

impl Bounds {
    fn config(self, id: NodeId) -> Config {
        Config {
            election_timeout_min: TIMEOUT_MIN,
            election_timeout_max: TIMEOUT_MIN + 50,
            heartbeat_interval: 50,
            lease_margin: 0,
            eager_commit: false,
            mutation: self.mutation,
            ..Config::new(id, 3, self.key)
        }
    }

    fn give<T>(
        self,
        state: &mut State,
        id: NodeId,
        input: impl FnOnce(&mut Member, u64, &mut Output<u8, u8>) -> T,
    ) -> T {
        let mut out = Output::new();
        let member = &mut state.members[usize::from(id)];
        let result = input(member, state.now, &mut out);
        if let Some((first, last)) = out.committed {
            state.history.committed(member, first, last);
            if self.cut == Cut::Leader && id == 0 {
                state.history.broken = Some("committed without a quorum");
            }
        }
        if out.elected.is_some() {
            state.history.elected(member);
        }
        state.stepped_down |= out.stepped_down == Some(StepDown::NoQuorum);
        state.wire.extend(out.messages.into_iter().filter(|letter| !self.cut.hits(letter)));
        Self::look(state);
        result
    }

    fn look(state: &mut State) {
        if let Err(broken) = logs_are_well(&state.members, &state.history) {
            state.history.broken = Some(broken);
        }
        let known = state.history.committed.len() as u64;
        for member in &state.members {
            let read =
                if member.is_leader() { member.clone().lease_read(state.now).ok() } else { None };
            if read.is_some_and(|index| index < known) {
                state.history.broken = Some("a lease read missed an accepted entry");
            }
        }
    }

    fn pass(self, state: &mut State) {
        state.now += STEP;
        for id in 0..3 {
            self.give(state, id, Replica::tick);
        }
    }

    fn propose(self, state: &mut State, id: NodeId) {
        let command = state.proposals;
        state.proposals += 1;
        let result =
            self.give(state, id, |member, now, out| member.propose(now, command, Fence::None, out));
        match result {
            Ok(_) if self.cut == Cut::Leader && id == 0 && state.now > TIMEOUT_MIN => {
                state.history.broken = Some("a proposal was taken without a quorum");
            }
            Err(Refusal::NoQuorum { .. }) => state.refused = true,
            _ => {}
        }
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Step;

    /// Replica 0 leads, and everyone has its barrier.
    fn init_states(&self) -> Vec<State> {
        let open = Bounds { cut: Cut::Nothing, ..*self };
        let start = |id| Replica::new(self.config(id), 0).unwrap();
        let mut state = State {
            now: 0,
            members: (0..3).map(start).collect(),
            wire: BTreeSet::new(),
            history: History::default(),
            proposals: 0,
            crashes: 0,
            campaigns: 0,
            refused: false,
            stepped_down: false,
        };
        open.give(&mut state, 0, Replica::campaign);
        while let Some(letter) = state.wire.pop_first() {
            open.give(&mut state, letter.to, |member, now, out| member.receive(now, letter, out))
                .unwrap();
        }
        assert!(state.members[0].barrier_committed().is_some());
        vec![state]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        if state.now < self.until {
            steps.push(Step::Pass);
            if !state.wire.is_empty() {
                steps.push(Step::Lose);
            }
        }
        steps.extend(state.wire.iter().cloned().map(Step::Deliver));
        for member in &state.members {
            if member.is_leader() && state.proposals < self.proposals {
                steps.push(Step::Propose(member.id()));
            }
            if state.crashes < self.crashes && !member.is_leader() {
                steps.push(Step::Crash(member.id()));
            }
            if state.campaigns < self.campaigns && !member.is_leader() {
                steps.push(Step::Campaign(member.id()));
            }
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            Step::Pass => self.pass(&mut next),
            Step::Lose => {
                next.wire.clear();
                self.pass(&mut next);
            }
            Step::Deliver(letter) => {
                next.wire.remove(&letter);
                self.give(&mut next, letter.to, |member, now, out| {
                    member.receive(now, letter, out)
                })
                .unwrap();
            }
            Step::Propose(id) => self.propose(&mut next, id),
            Step::Campaign(id) => {
                next.campaigns += 1;
                self.give(&mut next, id, Replica::campaign);
            }
            Step::Crash(id) => {
                next.crashes += 1;
                let durable = next.members[usize::from(id)].durable().clone();
                next.members[usize::from(id)] =
                    Replica::restart(self.config(id), durable, next.now).unwrap();
            }
        }
        (next != *state).then_some(next)
    }

    fn within_boundary(&self, state: &State) -> bool {
        state.wire.len() <= self.wire
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("safe", |_, state: &State| state.history.broken.is_none()),
            Property::sometimes("two terms are led", |_, state: &State| {
                state.history.terms_led() >= 2
            }),
            Property::sometimes("accepted", |bounds: &Self, state: &State| {
                bounds.proposals == 0 || state.history.was_accepted()
            }),
            Property::sometimes("refused", |bounds: &Self, state: &State| {
                bounds.cut != Cut::Leader || state.refused
            }),
            Property::sometimes("stepped down", |bounds: &Self, state: &State| {
                bounds.cut != Cut::Leader || state.stepped_down
            }),
        ]
    }
}

const LEASES: Bounds = Bounds {
    key: 3,
    until: 250,
    proposals: 0,
    crashes: 0,
    campaigns: 0,
    wire: 5,
    cut: Cut::Nothing,
    mutation: None,
};

/// Searches to a depth; whether it is safe. Everything that should be possible must have been seen.
fn is_safe(bounds: Bounds, depth: usize) -> bool {
    let checker = bounds
        .checker()
        .target_max_depth(depth)
        .finish_when(HasDiscoveries::AnyFailures)
        .spawn_bfs()
        .join();
    let found = checker.discoveries();
    println!("{bounds:?}: {} states, found {:?}", checker.unique_state_count(), found.keys());
    if found.contains_key("safe") {
        return false;
    }
    for possible in ["two terms are led", "accepted", "refused", "stepped down"] {
        assert!(found.contains_key(possible), "never seen: {possible}");
    }
    true
}

#[test]
fn leases_hold_through_leader_changes() {
    assert!(is_safe(LEASES, 13));
    assert!(is_safe(Bounds { crashes: 1, ..LEASES }, 11));
    assert!(is_safe(Bounds { campaigns: 2, cut: Cut::Link, ..LEASES }, 12));
    assert!(is_safe(Bounds { crashes: 1, cut: Cut::Link, ..LEASES }, 13));
}

#[test]
fn a_leader_without_a_quorum_refuses_and_steps_down() {
    assert!(is_safe(Bounds { until: 400, proposals: 2, wire: 6, cut: Cut::Leader, ..LEASES }, 14));
}

#[test]
fn faults_about_time_are_found() {
    for (mutation, crashes, cut, depth) in [
        (Mutation::VoteDespiteLeader, 0, Cut::Nothing, 14),
        (Mutation::LeaseFromArrival, 0, Cut::Nothing, 14),
        (Mutation::RestartForgetsLease, 1, Cut::Link, 15),
        (Mutation::CampaignDespitePromise, 0, Cut::Link, 13),
        (Mutation::NoCheckQuorum, 0, Cut::Leader, 14),
    ] {
        let campaigns = u8::from(mutation == Mutation::CampaignDespitePromise);
        let mutation = Some(mutation);
        let bounds = Bounds {
            campaigns,
            proposals: u8::from(cut == Cut::Leader),
            crashes,
            cut,
            mutation,
            ..LEASES
        };
        assert!(!is_safe(bounds, depth), "{mutation:?}");
    }
}
