//! Three replicas without any clock: elections, heartbeats, losses, doubles, delays, restarts and
//! snapshots in every order, within small bounds.

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model, Property};

use super::{History, Letter, Member, logs_are_well};
use crate::config::Config;
use crate::durable::Durable;
use crate::message::Body;
use crate::mutation::Mutation;
use crate::output::Output;
use crate::replica::Replica;
use crate::types::{Fence, NodeId};

/// Every clock stands here for ever.
const NOW: u64 = 1_000;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    members: Vec<Member>,
    /// A message that is never delivered is lost.
    wire: BTreeSet<Letter>,
    history: History,
    proposals: u8,
    crashes: u8,
    doubles: u8,
    compactions: u8,
    beats: u8,
    truncated: bool,
    installed: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Elect(NodeId),
    Beat(NodeId),
    Deliver(Letter),
    Double(Letter),
    Propose(NodeId),
    Crash(NodeId),
    Compact(NodeId),
}

/// Bounds of the search.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    terms: u64,
    proposals: u8,
    crashes: u8,
    doubles: u8,
    compactions: u8,
    beats: u8,
    wire: usize,
    mutation: Option<Mutation>,
}

const NOTHING: Bounds = Bounds {
    terms: 2,
    proposals: 0,
    crashes: 0,
    doubles: 0,
    compactions: 0,
    beats: 0,
    wire: 6,
    mutation: None,
};

/// Takes every trace of time out of a replica: no promise holds, every quorum is fresh.
fn forget_time(member: &mut Member) {
    member.now = NOW;
    member.heard_at = None;
    member.deadline = NOW + 1;
    member.attempt = 0;
    member.campaign_at = NOW;
    for peer in &mut member.peers {
        peer.acked_at = None;
    }
}

fn timeless(mut letter: Letter) -> Letter {
    match &mut letter.body {
        Body::Append { sent_at, .. }
        | Body::Appended { sent_at, .. }
        | Body::Mismatch { sent_at, .. }
        | Body::Install { sent_at, .. } => *sent_at = 0,
        _ => {}
    }
    letter
}

impl Bounds {
    fn config(self, id: NodeId) -> Config {
        Config {
            election_timeout_min: 100,
            election_timeout_max: 200,
            heartbeat_interval: 50,
            lease_margin: 10,
            append_entries_max: 2,
            inflight_entries_max: 4,
            eager_commit: false,
            mutation: self.mutation,
            ..Config::new(id, 3, 7)
        }
    }

    fn give<T>(
        state: &mut State,
        id: NodeId,
        input: impl FnOnce(&mut Member, &mut Output<u8, u8>) -> T,
    ) -> T {
        let mut out = Output::new();
        let member = &mut state.members[usize::from(id)];
        let commit = member.commit_index();
        let result = input(member, &mut out);
        forget_time(member);
        if out.dirty.log_from.is_some_and(|from| from <= commit) {
            state.history.broken = Some("a committed entry was written again");
        }
        if let Some((first, last)) = out.committed {
            state.history.committed(member, first, last);
        }
        if out.elected.is_some() {
            state.history.elected(member);
        }
        state.truncated |= out.truncated.is_some();
        state.installed |= out.installed.is_some();
        state.wire.extend(out.messages.into_iter().map(timeless));
        if let Err(broken) = logs_are_well(&state.members, &state.history) {
            state.history.broken = Some(broken);
        }
        result
    }
}

impl Model for Bounds {
    type State = State;
    type Action = Step;

    fn init_states(&self) -> Vec<State> {
        let start = |id| {
            let mut member = Replica::new(self.config(id), NOW).unwrap();
            forget_time(&mut member);
            member
        };
        vec![State {
            members: (0..3).map(start).collect(),
            wire: BTreeSet::new(),
            history: History::default(),
            proposals: 0,
            crashes: 0,
            doubles: 0,
            compactions: 0,
            beats: 0,
            truncated: false,
            installed: false,
        }]
    }

    fn actions(&self, state: &State, steps: &mut Vec<Step>) {
        for member in &state.members {
            let id = member.id();
            if member.is_leader() {
                if state.proposals < self.proposals {
                    steps.push(Step::Propose(id));
                }
                if state.beats < self.beats {
                    steps.push(Step::Beat(id));
                }
            } else if member.term() < self.terms {
                steps.push(Step::Elect(id));
            }
            if state.crashes < self.crashes && member.durable() != &Durable::default() {
                steps.push(Step::Crash(id));
            }
            let fresh = member.commit_index() > member.durable().snapshot_index();
            if state.compactions < self.compactions && fresh {
                steps.push(Step::Compact(id));
            }
        }
        for letter in &state.wire {
            steps.push(Step::Deliver(letter.clone()));
            if state.doubles < self.doubles {
                steps.push(Step::Double(letter.clone()));
            }
        }
    }

    fn next_state(&self, state: &State, step: Step) -> Option<State> {
        let mut next = state.clone();
        match step {
            // Pre-votes only forbid elections; without clocks every election may happen.
            Step::Elect(id) => Self::give(&mut next, id, Replica::run_for_leader),
            Step::Beat(id) => {
                next.beats += 1;
                Self::give(&mut next, id, Replica::heartbeat);
            }
            Step::Deliver(letter) => {
                next.wire.remove(&letter);
                Self::give(&mut next, letter.to, |member, out| member.receive(NOW, letter, out))
                    .unwrap();
            }
            Step::Double(letter) => {
                next.doubles += 1;
                Self::give(&mut next, letter.to, |member, out| member.receive(NOW, letter, out))
                    .unwrap();
            }
            Step::Propose(id) => {
                let command = next.proposals;
                next.proposals += 1;
                Self::give(&mut next, id, |member, out| {
                    member.propose(NOW, command, Fence::None, out)
                })
                .unwrap();
            }
            Step::Crash(id) => {
                next.crashes += 1;
                let member = &mut next.members[usize::from(id)];
                let durable = member.durable().clone();
                *member = Replica::restart(self.config(id), durable, NOW).unwrap();
                forget_time(member);
            }
            Step::Compact(id) => {
                next.compactions += 1;
                Self::give(&mut next, id, |member, out| {
                    member.compact(member.commit_index(), 0, 0, out)
                })
                .unwrap();
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
            Property::sometimes("truncated", |bounds: &Self, state: &State| {
                bounds.terms < 3 || state.truncated
            }),
            Property::sometimes("installed", |bounds: &Self, state: &State| {
                bounds.compactions == 0 || state.installed
            }),
        ]
    }
}

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
    for possible in ["two terms are led", "accepted", "truncated", "installed"] {
        assert!(found.contains_key(possible), "never seen: {possible}");
    }
    true
}

#[test]
fn three_elections() {
    assert!(is_safe(Bounds { terms: 3, ..NOTHING }, 12));
}

#[test]
fn two_elections_with_a_restart_and_a_doubled_message() {
    assert!(is_safe(Bounds { crashes: 1, doubles: 1, ..NOTHING }, 10));
}

#[test]
fn two_elections_with_a_proposal() {
    assert!(is_safe(Bounds { proposals: 1, ..NOTHING }, 13));
}

#[test]
fn two_elections_with_a_snapshot() {
    assert!(is_safe(Bounds { compactions: 1, beats: 1, wire: 5, ..NOTHING }, 13));
}

#[test]
fn faults_are_found() {
    let three = Bounds { terms: 3, ..NOTHING };
    for (mutation, bounds, depth) in [
        (Mutation::VoteWithoutLogCheck, NOTHING, 14),
        (Mutation::VoteNotPersisted, Bounds { crashes: 1, ..NOTHING }, 10),
        (Mutation::TermNotPersisted, Bounds { crashes: 1, ..NOTHING }, 10),
        (Mutation::NoTruncation, NOTHING, 14),
        (Mutation::AcceptWithoutQuorum, Bounds { proposals: 1, ..NOTHING }, 10),
        (Mutation::StaleLeaderAccepted, NOTHING, 14),
        (Mutation::StaleVoteCounted, three, 12),
    ] {
        assert!(!is_safe(Bounds { mutation: Some(mutation), ..bounds }, depth), "{mutation:?}");
    }
}
