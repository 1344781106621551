//! A group whose messages arrive at once, and what the public interface promises about it.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_consensus::{
    Body, CompactError, Config, ConfigError, Dirty, Durable, Entry, Fence, Message, MessageError,
    NodeId, Outcome, Output, Payload, ReadState, Refusal, Replica, RestartError, Role, StepDown,
};

type Member = Replica<u32, u64>;

struct Group {
    now: u64,
    members: Vec<Member>,
    /// Who is cut off from everyone.
    cut: Vec<NodeId>,
    out: Output<u32, u64>,
    /// Last message of each kind that matters, for tests that look.
    installs: usize,
}

impl Group {
    fn new(replicas: u8) -> Self {
        let start = |id| Replica::new(Config::new(id, replicas, 5), 0).unwrap();
        Self {
            now: 0,
            members: (0..replicas).map(start).collect(),
            cut: Vec::new(),
            out: Output::new(),
            installs: 0,
        }
    }

    /// A group that replica 0 leads.
    fn led(replicas: u8) -> Self {
        let mut group = Self::new(replicas);
        group.elect(0);
        group
    }

    fn elect(&mut self, id: NodeId) {
        let now = self.now;
        self.input(id, |member, out| member.campaign(now, out));
        assert!(self.at(id).is_leader());
    }

    fn at(&self, id: NodeId) -> &Member {
        &self.members[usize::from(id)]
    }

    fn input<T>(
        &mut self,
        id: NodeId,
        give: impl FnOnce(&mut Member, &mut Output<u32, u64>) -> T,
    ) -> T {
        let result = give(&mut self.members[usize::from(id)], &mut self.out);
        let mut post: Vec<_> = self.out.messages.drain(..).collect();
        while !post.is_empty() {
            for letter in std::mem::take(&mut post) {
                if self.cut.contains(&letter.from) || self.cut.contains(&letter.to) {
                    continue;
                }
                self.installs += usize::from(matches!(letter.body, Body::Install { .. }));
                let to = usize::from(letter.to);
                self.members[to].receive(self.now, letter, &mut self.out).unwrap();
                post.append(&mut self.out.messages);
            }
        }
        result
    }

    fn propose(&mut self, id: NodeId, command: u32) -> oncall_consensus::Proposal {
        let now = self.now;
        self.input(id, |member, out| member.propose(now, command, Fence::None, out)).unwrap()
    }

    fn pass(&mut self, ticks: u64) {
        for _ in 0..ticks {
            self.now += 1;
            let now = self.now;
            for id in 0..self.members.len() as NodeId {
                self.input(id, |member, out| member.tick(now, out));
            }
        }
    }

    fn commands(&self, id: NodeId) -> Vec<u32> {
        let member = self.at(id);
        member.entries(1, member.commit_index()).filter_map(Entry::command).copied().collect()
    }
}

#[test]
fn a_proposal_is_accepted_everywhere() {
    for replicas in [3, 5] {
        let mut group = Group::led(replicas);
        let receipt = group.propose(0, 41);
        let now = group.now;
        let batch = group
            .input(0, |member, out| member.propose_all(now, [42, 43], Fence::Term(1), out))
            .unwrap();
        assert_eq!((receipt.index, batch.index), (2, 4));
        for id in 0..replicas {
            assert_eq!(group.at(id).outcome(receipt), Outcome::Accepted);
            assert_eq!(group.commands(id), [41, 42, 43]);
            assert_eq!(group.at(id).leader(), Some(0));
        }
        assert_eq!(group.at(0).matched_index(1), Some(4));
        assert_eq!(group.at(0).matched_index(0), None);
        assert_eq!(group.at(1).matched_index(2), None);
    }
}

#[test]
fn without_eager_commit_followers_learn_with_the_next_heartbeat() {
    let mut group = Group::new(3);
    for (id, member) in group.members.iter_mut().enumerate() {
        let config = Config { eager_commit: false, ..Config::new(id as u8, 3, 5) };
        *member = Replica::new(config, 0).unwrap();
    }
    group.elect(0);
    group.propose(0, 7);
    assert_eq!((group.commands(0), group.commands(1)), (vec![7], vec![]));
    group.pass(200);
    assert_eq!(group.commands(1), [7]);
}

#[test]
fn a_follower_refuses_and_names_the_leader() {
    let mut group = Group::led(3);
    let before = group.at(1).clone();
    let result = group.input(1, |member, out| member.propose(0, 1, Fence::None, out));
    assert_eq!(result, Err(Refusal::NotLeader { term: 1, leader: Some(0) }));
    assert_eq!(*group.at(1), before);
}

#[test]
fn a_leader_without_answers_refuses_and_then_steps_down() {
    let mut group = Group::led(3);
    group.cut = vec![0];
    group.pass(1_000);
    let lost = group.propose(0, 8);
    assert_eq!(group.at(0).outcome(lost), Outcome::Pending);
    group.pass(1);
    let now = group.now;
    let result = group.input(0, |member, out| member.propose(now, 9, Fence::None, out));
    assert_eq!(result, Err(Refusal::NoQuorum { confirmed_at: 0 }));
    assert_eq!(result.unwrap_err().to_string(), "the leader has not heard from a quorum since 0");
    assert!(group.at(0).is_leader());
    let mut down = None;
    while down.is_none() && group.now < 3_000 {
        group.now += 1;
        let now = group.now;
        down = group.input(0, |member, out| {
            member.tick(now, out);
            out.stepped_down
        });
    }
    assert_eq!(down, Some(StepDown::NoQuorum));
    assert_eq!(group.now, 2_200, "the heartbeat after the longest election timeout");
    assert_eq!(group.at(0).outcome(lost), Outcome::Unknown);

    // The others elect another, and its barrier takes the place of the lost proposal.
    group.pass(2_500);
    let leader = (1..3).find(|&id| group.at(id).is_leader()).unwrap();
    assert_eq!(group.at(leader).outcome(lost), Outcome::Superseded);
    group.cut.clear();
    group.pass(2_500);
    assert_eq!(group.at(0).role(), Role::Follower);
    assert_eq!(group.at(0).outcome(lost), Outcome::Superseded);
    assert_eq!(group.commands(0), []);
}

#[test]
fn fences_tie_a_proposal_to_a_term_and_its_barrier() {
    let mut group = Group::led(3);
    group.pass(1_000);
    let propose = |group: &mut Group, fence| {
        let now = group.now;
        group.input(0, |member, out| member.propose(now, 3, fence, out))
    };
    assert_eq!(propose(&mut group, Fence::Term(2)), Err(Refusal::OtherTerm { wanted: 2, term: 1 }));
    assert!(propose(&mut group, Fence::Barrier(1)).is_ok());
    // A new leader whose barrier cannot spread: votes arrive, entries do not.
    let now = group.now + 5_000;
    let mut out = Output::new();
    let mut fresh: Vec<Member> =
        (0..3).map(|id| Replica::new(Config::new(id, 3, 5), now).unwrap()).collect();
    fresh[0].campaign(now, &mut out);
    for _ in 0..2 {
        let ask = out.messages.iter().find(|letter| letter.to == 1).unwrap().clone();
        fresh[1].receive(now, ask, &mut out).unwrap();
        let answer = out.messages[0].clone();
        fresh[0].receive(now, answer, &mut out).unwrap();
    }
    assert_eq!((out.elected, out.barrier), (Some(1), None));
    let result = fresh[0].propose(now, 4, Fence::Barrier(1), &mut out);
    assert_eq!(result, Err(Refusal::BarrierPending { term: 1 }));
    assert!(fresh[0].propose(now, 4, Fence::Term(1), &mut out).is_ok());
    assert_eq!(fresh[0].lease_read(now), Err(Refusal::BarrierPending { term: 1 }));
}

#[test]
fn the_backlog_is_bounded() {
    let mut group = Group::led(3);
    let config = Config { uncommitted_entries_max: 2, ..*group.at(0).config() };
    let durable = group.at(0).durable().clone();
    group.members[0] = Replica::restart(config, durable, 0).unwrap();
    group.now = 5_000;
    group.elect(0);
    group.cut = vec![0];
    group.propose(0, 1);
    let all = group.input(0, |member, out| member.propose_all(5_000, [2, 3], Fence::None, out));
    assert_eq!(all, Err(Refusal::Backlog { uncommitted: 1, limit: 2 }));
    group.propose(0, 4);
    let one = group.input(0, |member, out| member.propose(5_000, 5, Fence::None, out));
    assert_eq!(one, Err(Refusal::Backlog { uncommitted: 2, limit: 2 }));
}

#[test]
fn a_follower_that_is_far_behind_gets_a_snapshot() {
    let mut group = Group::led(3);
    group.cut = vec![2];
    for command in 0..20 {
        group.propose(0, command);
    }
    let refuse =
        |group: &mut Group, index| group.input(0, |member, out| member.compact(index, 0, 0, out));
    assert_eq!(refuse(&mut group, 22), Err(CompactError::NotCommitted { index: 22, commit: 21 }));
    assert_eq!(refuse(&mut group, 0), Err(CompactError::NotNewer { index: 0, snapshot_index: 0 }));
    group.input(0, |member, out| member.compact(15, 777, 3, out)).unwrap();
    assert_eq!(
        refuse(&mut group, 15),
        Err(CompactError::NotNewer { index: 15, snapshot_index: 15 })
    );
    assert_eq!(group.at(0).durable().log.base_index(), 12);
    group.cut.clear();
    group.pass(200);
    assert_eq!(group.installs, 1);
    let late = group.at(2);
    assert_eq!((late.snapshot().unwrap().state, late.commit_index()), (777, 21));
    assert_eq!(group.commands(2), [14, 15, 16, 17, 18, 19]);
    // Within the kept entries no snapshot is needed.
    let mut group = Group::led(3);
    group.cut = vec![2];
    for command in 0..20 {
        group.propose(0, command);
    }
    group.input(0, |member, out| member.compact(21, 777, 21, out)).unwrap();
    group.cut.clear();
    group.pass(200);
    assert_eq!((group.installs, group.commands(2).len()), (0, 20));
}

#[test]
fn a_restart_finds_what_was_durable() {
    let mut group = Group::led(3);
    for command in 0..5 {
        group.propose(0, command);
    }
    group.input(1, |member, out| member.compact(3, 5, 0, out)).unwrap();
    let config = *group.at(1).config();
    let durable = group.at(1).clone().into_durable();
    let back = Member::restart(config, durable.clone(), 77).unwrap();
    assert_eq!((back.term(), back.commit_index(), back.last_index()), (1, 3, 6));
    assert_eq!((back.role(), back.leader()), (Role::Follower, None));
    assert_eq!(back.durable(), &durable);
    group.members[1] = back;
    group.pass(200);
    assert_eq!(group.at(1).commit_index(), 6);

    let bad = Config { replicas: 2, ..config };
    let error = Member::restart(bad, durable.clone(), 0).unwrap_err();
    assert_eq!(
        error,
        RestartError::Config(ConfigError { field: "replicas", value: 2, expected: "3 or 5" })
    );
    let error = Member::restart(config, Durable { term: 0, ..durable.clone() }, 0).unwrap_err();
    assert_eq!(error.to_string(), "the last entry has term 1, above the durable term 0");
    let error = Member::restart(config, Durable { snapshot: None, ..durable.clone() }, 0);
    assert!(error.unwrap_err().to_string().starts_with("the log begins after 3"));
    let error = Member::restart(config, Durable { voted_for: Some(9), ..durable }, 0);
    assert!(error.unwrap_err().to_string().starts_with("voted_for is 9"));
}

#[test]
fn reads_see_what_was_accepted() {
    let mut group = Group::led(3);
    group.propose(0, 1);
    assert_eq!(group.members[0].lease_read(0), Ok(2));
    assert!(matches!(group.members[1].lease_read(0), Err(Refusal::NotLeader { .. })));
    let ticket = group.members[0].begin_read(0).unwrap();
    assert_eq!(group.at(0).read_state(ticket), ReadState::Pending);
    group.pass(200);
    assert_eq!(group.at(0).read_state(ticket), ReadState::Ready(2));
    assert_eq!(group.at(1).read_state(ticket), ReadState::Lost);
    // The lease is shorter than the shortest election timeout.
    group.cut = vec![0];
    assert_eq!(group.members[0].lease_read(group.now + 899), Ok(2));
    let error = group.members[0].lease_read(group.now + 900).unwrap_err();
    assert_eq!(error, Refusal::NoQuorum { confirmed_at: 200 });
    let ticket = group.members[0].begin_read(group.now + 900).unwrap();
    group.pass(900);
    assert_eq!(group.at(0).read_state(ticket), ReadState::Pending);
}

#[test]
fn a_campaign_does_nothing_to_a_group_that_is_well() {
    let mut group = Group::led(5);
    group.pass(300);
    group.input(3, |member, out| member.campaign(300, out));
    assert_eq!(group.at(3).role(), Role::Follower, "it has promised to wait");
    // Long after, it may ask, and the others say no.
    let mut out = Output::new();
    let before = group.at(3).clone();
    group.members[3].campaign(1_500, &mut out);
    assert_eq!(group.at(3).role(), Role::PreCandidate);
    let ask = out.messages.iter().find(|letter| letter.to == 1).unwrap().clone();
    group.members[1].receive(300, ask, &mut out).unwrap();
    assert_eq!(
        out.messages[0].body,
        Body::PreVoteReply { asked_in: 1, attempt: 1, granted: false }
    );
    group.members[3] = before;
    group.pass(200);
    assert!((0..5).all(|id| group.at(id).term() == 1 && group.at(id).leader() == Some(0)));
}

#[test]
fn impossible_messages_are_errors_and_change_nothing() {
    let mut group = Group::led(3);
    group.propose(0, 1);
    let entry = |index, term| Entry { term, index, payload: Payload::Command(9) };
    let append =
        |entries| Body::Append { prev_index: 2, prev_term: 1, entries, commit: 0, sent_at: 0 };
    let snapshot = oncall_consensus::Snapshot { index: 9, term: 8, state: 1 };
    let cases: [(NodeId, NodeId, Body<u32, u64>, MessageError); 8] = [
        (0, 2, append(vec![]), MessageError::To { to: 2, id: 1 }),
        (1, 1, append(vec![]), MessageError::From { from: 1, replicas: 3 }),
        (3, 1, append(vec![]), MessageError::From { from: 3, replicas: 3 }),
        (0, 1, append(vec![entry(4, 1)]), MessageError::Entries { prev_index: 2 }),
        (0, 1, append(vec![entry(3, 1), entry(4, 0)]), MessageError::Entries { prev_index: 2 }),
        (0, 1, append(vec![entry(3, 2)]), MessageError::Entries { prev_index: 2 }),
        (
            0,
            1,
            Body::Append {
                prev_index: 1,
                prev_term: 1,
                entries: vec![entry(2, 2)],
                commit: 0,
                sent_at: 0,
            },
            MessageError::Committed { index: 2, entry_term: 2, term: 1 },
        ),
        (
            0,
            1,
            Body::Install { snapshot, sent_at: 0 },
            MessageError::Snapshot { index: 9, entry_term: 8, term: 1 },
        ),
    ];
    for (from, to, body, expected) in cases {
        let before = group.at(1).clone();
        // The contradiction comes from a newer leader, the others from the current one.
        let term = if matches!(expected, MessageError::Committed { .. }) { 2 } else { 1 };
        let letter = Message { from, to, term, body };
        let mut out = Output::new();
        assert_eq!(group.members[1].receive(0, letter, &mut out), Err(expected));
        assert_eq!(*group.at(1), before);
        assert!(out.messages.is_empty() && out.dirty == Dirty::default());
    }
}

#[test]
fn a_clone_goes_its_own_way() {
    let mut group = Group::led(3);
    group.propose(0, 1);
    let mut other = Group {
        now: group.now,
        members: group.members.clone(),
        cut: Vec::new(),
        out: Output::new(),
        installs: 0,
    };
    group.propose(0, 2);
    other.propose(0, 3);
    assert_eq!((group.commands(1), other.commands(1)), (vec![1, 2], vec![1, 3]));
    group.pass(50);
    let (mut again, until) = (other.members.clone(), other.now + 50);
    other.pass(50);
    let mut out = Output::new();
    for member in &mut again {
        member.tick(until, &mut out);
    }
    assert_eq!(again, other.members, "ticks before the deadline can be left out");
}

#[test]
fn a_saved_group_plays_on_alike() {
    let mut group = Group::led(5);
    group.cut = vec![4];
    for command in 0..30 {
        group.propose(0, command);
    }
    group.input(0, |member, out| member.compact(20, 5, 0, out)).unwrap();
    group.cut.clear();
    let bytes = postcard::to_stdvec(&group.members).unwrap();
    let members: Vec<Member> = postcard::from_bytes(&bytes).unwrap();
    assert_eq!(members, group.members);
    let mut other =
        Group { now: group.now, members, cut: Vec::new(), out: Output::new(), installs: 0 };
    for it in [&mut group, &mut other] {
        it.pass(1_000);
        it.propose(0, 77);
        it.cut = vec![0];
        it.pass(5_000);
    }
    assert_eq!(other.members, group.members);
    assert!((1..5).any(|id| group.at(id).is_leader()));
}
