//! The pieces of the proxy by themselves, on hand-made cases.

use super::source::endpoint;
use crate::distrib::{Cursor, SnapshotHead, Step};
use crate::mutants::Mutants;
use crate::proxy::{
    AgeAction, AgeRule, AgeVerdict, BackOff, Breaker, BreakerRule, By, CellSub, EjectRule, Ejected,
    Ejector, Gate, Link, LinkState, Pool, ProxyDials, RefusedFor, RepairFor, RetryBudget, SubEvent,
    Tend, ejection_time, leaves_relay, may_eject, pick, pool,
};
use crate::types::{Incarnation, InstanceId, Revision, Span, Time};

fn off() -> Mutants {
    Mutants::default()
}

fn at(incarnation: u32, rev: u32) -> Cursor {
    Cursor::new(Incarnation(incarnation), Revision(rev))
}

fn step(from: u32, to: u32) -> Step {
    Step { incarnation: Incarnation(1), from: Revision(from), to: Revision(to) }
}

fn snapshot(cursor: Cursor) -> SnapshotHead {
    SnapshotHead { cursor, count: 3 }
}

const S1: Time = Time::from_s(1);
const S2: Time = Time::from_s(2);

#[test]
fn a_subscription_takes_its_first_set_and_its_deltas() {
    let mut sub = CellSub::default();
    assert!(sub.needs_repair() && sub.cursor().is_none());
    assert_eq!(sub.on_delta(step(0, 3), true, S1, off()), SubEvent::Nothing, "nothing to add to");
    assert_eq!(sub.on_head(at(1, 3), S1), SubEvent::Nothing);
    let first = SubEvent::Applied { by: By::Snapshot, repaired: false, first: true };
    assert_eq!(sub.on_snapshot(snapshot(at(1, 3)), true, S1, off()), first);
    assert_eq!((sub.cursor(), sub.needs_repair()), (Some(at(1, 3)), false));
    let plain = SubEvent::Applied { by: By::Delta, repaired: false, first: false };
    assert_eq!(sub.on_delta(step(3, 5), true, S2, off()), plain);
    assert_eq!(sub.on_delta(step(3, 5), true, S2, off()), SubEvent::Nothing, "repeated");
    assert_eq!((sub.cursor(), sub.confirmed()), (Some(at(1, 5)), S2));
    assert_eq!(sub.age(Time::from_s(9)), Span::from_s(7));
    assert_eq!(sub.on_head(at(1, 5), Time::from_s(8)), SubEvent::Confirmed);
    assert_eq!(sub.age(Time::from_s(9)), Span::from_s(1));
}

#[test]
fn a_gap_is_asked_about_once_and_closed_by_delta_or_snapshot() {
    for by in [By::Delta, By::Snapshot] {
        let mut sub = CellSub::at(at(1, 5), S1);
        assert_eq!(sub.on_delta(step(6, 7), true, S2, off()), SubEvent::Repair(RepairFor::Gap));
        assert_eq!(sub.on_delta(step(7, 9), true, S2, off()), SubEvent::Nothing, "is open");
        assert_eq!(sub.on_head(at(1, 10), S2), SubEvent::Nothing, "is open");
        assert_eq!(sub.told(), Some(Revision(10)));
        assert_eq!(sub.confirmed(), S1, "behind: not confirmed");
        let repaired = SubEvent::Applied { by, repaired: true, first: false };
        let event = match by {
            By::Delta => sub.on_delta(step(5, 10), true, S2, off()),
            By::Snapshot => sub.on_snapshot(snapshot(at(1, 10)), true, S2, off()),
        };
        assert_eq!(event, repaired);
        assert!(!sub.needs_repair());
        assert_eq!(sub.confirmed(), S2);
    }
    // Half way there is not there (I20).
    let mut sub = CellSub::at(at(1, 5), S1);
    assert_eq!(sub.on_head(at(1, 9), S2), SubEvent::Repair(RepairFor::HeadAhead));
    let half = SubEvent::Applied { by: By::Delta, repaired: false, first: false };
    assert_eq!(sub.on_delta(step(5, 8), true, S2, off()), half);
    assert!(sub.needs_repair());
    assert_eq!(sub.told(), Some(Revision(9)));
    // A new stream has told of nothing yet.
    sub.reconnected();
    assert!(!sub.needs_repair());
}

#[test]
fn far_behind_is_still_behind() {
    let mut sub = CellSub::at(at(1, 5), S1);
    sub.on_head(at(1, 1_000_000), S2);
    sub.on_delta(step(5, 60_000), true, S2, off());
    assert!(sub.needs_repair(), "the distance does not fit, and is not forgotten");
    sub.on_delta(step(60_000, 1_000_000), true, S2, off());
    assert!(!sub.needs_repair());
}

#[test]
fn a_failed_check_asks_for_a_snapshot_and_counts() {
    let mut sub = CellSub::at(at(1, 5), S1);
    let rejected = |tries| SubEvent::Rejected { tries };
    assert_eq!(sub.on_delta(step(5, 6), false, S2, off()), rejected(1));
    assert_eq!(sub.cursor(), Some(at(1, 5)), "I4");
    let cell = super::source::cell(0);
    assert!(sub.watch(cell).full, "R81: a snapshot");
    assert_eq!(sub.on_snapshot(snapshot(at(1, 6)), false, S2, off()), rejected(2));
    sub.reconnected();
    assert!(sub.watch(cell).full && sub.tries() == 2, "another relay starts from what is known");
    let event = sub.on_snapshot(snapshot(at(1, 6)), true, S2, off());
    assert_eq!(event, SubEvent::Applied { by: By::Snapshot, repaired: false, first: false });
    assert_eq!((sub.tries(), sub.watch(cell).full), (0, false));
    // A snapshot of the same place settles the doubt as well.
    sub.on_delta(step(6, 7), false, S2, off());
    assert_eq!(sub.on_snapshot(snapshot(at(1, 6)), true, S2, off()), SubEvent::Confirmed);
    assert!(!sub.watch(cell).full);
}

#[test]
fn every_second_failure_leads_to_another_relay() {
    let leaves: Vec<u8> = (0..=6).filter(|tries| leaves_relay(*tries, 3, off())).collect();
    assert_eq!(leaves, [2, 4, 6]);
    assert!(!leaves_relay(2, 1, off()), "there is no other");
}

#[test]
fn lives_of_a_history_only_go_up() {
    let mut sub = CellSub::at(at(2, 5), S1);
    let old = SubEvent::Refused(RefusedFor::OldIncarnation);
    assert_eq!(sub.on_delta(step(5, 6), true, S2, off()), old);
    assert_eq!(sub.on_snapshot(snapshot(at(1, 99)), true, S2, off()), old);
    assert_eq!(sub.on_head(at(1, 99), S2), old);
    let behind = SubEvent::Refused(RefusedFor::ServerBehind);
    assert_eq!(sub.on_head(at(2, 4), S2), behind);
    let empty = SnapshotHead { cursor: at(2, 4), count: 0 };
    let refused = SubEvent::Refused(RefusedFor::EmptyNotNewer);
    assert_eq!(sub.on_snapshot(empty, true, S2, off()), refused, "late, and nothing changes");
    assert_eq!(sub.on_head(at(3, 1), S2), SubEvent::Repair(RepairFor::NewIncarnation));
    assert_eq!(sub.told(), None);
    // A delta of the old life does not settle it; the snapshot of the new one does.
    let within = Step { incarnation: Incarnation(2), from: Revision(5), to: Revision(6) };
    sub.on_delta(within, true, S2, off());
    assert!(sub.needs_repair());
    let newer = SubEvent::Applied { by: By::Snapshot, repaired: true, first: false };
    assert_eq!(sub.on_snapshot(snapshot(at(3, 1)), true, S2, off()), newer);
    assert_eq!((sub.cursor(), sub.needs_repair()), (Some(at(3, 1)), false));
}

#[test]
fn back_off_doubles_up_to_its_cap_and_jitters_downwards() {
    let rule = BackOff { base: Span::from_s(1), cap: Span::from_s(30), jitter_pct: 50 };
    let none = BackOff { jitter_pct: 0, ..rule };
    let full = BackOff { jitter_pct: 100, ..rule };
    for (attempt, seconds) in [(0, 1), (1, 2), (2, 4), (4, 16), (5, 30), (200, 30)] {
        let d = Span::from_s(seconds);
        for uniform in [0, u32::MAX] {
            assert_eq!(none.delay(attempt, uniform), d);
        }
        assert_eq!(rule.delay(attempt, 0), Span(d.0 / 2));
        assert_eq!(full.delay(attempt, 0), Span::ZERO);
        assert_eq!(full.delay(attempt, 1 << 31), Span(d.0 / 2));
        assert!(rule.delay(attempt, u32::MAX).0 >= d.0 - 2 && rule.delay(attempt, u32::MAX) <= d);
    }
    let odd = BackOff { base: Span(u64::MAX), cap: Span(u64::MAX), jitter_pct: 255 };
    assert!(odd.delay(255, 7) <= Span(u64::MAX));
}

#[test]
fn a_link_notices_silence_and_leaves_dead_relays() {
    let (heartbeat, back_off) = (Span::from_s(10), BackOff { jitter_pct: 0, ..BackOff::default() });
    let mut link = Link::new(1);
    assert_eq!(link.tend(Time::ZERO, heartbeat), Tend::Connect);
    let session = link.connect(Time::ZERO, heartbeat);
    assert!(!link.welcomed(S1, session + 1, heartbeat), "another stream's");
    assert!(link.welcomed(S1, session, heartbeat));
    assert!(!link.welcomed(S1, session, heartbeat), "repeated");
    link.heard(Time::from_s(20));
    assert_eq!(link.tend(Time::from_s(27), heartbeat), Tend::Nothing);
    assert_eq!(link.due(), Time::from_s(45), "two and a half heartbeats after the last message");
    assert_eq!(link.tend(Time::from_s(45), heartbeat), Tend::Silent);
    link.lost(Time::from_s(45), back_off, Span::ZERO, 4, 77);
    assert_eq!((link.state(), link.relay()), (LinkState::Down, 1), "once more to the same");
    assert_eq!(link.due(), Time::from_s(46));
    assert_eq!(link.tend(Time::from_s(46), heartbeat), Tend::Connect);
    link.connect(Time::from_s(46), heartbeat);
    assert_eq!(link.tend(Time::from_s(56), heartbeat), Tend::NoAnswer);
    link.lost(Time::from_s(56), back_off, Span::from_s(7), 4, 77);
    assert_ne!(link.relay(), 1, "then to another");
    assert_eq!(link.due(), Time::from_s(63), "not before what the relay asked for");
    // All readers of a dead relay spread over the others.
    let mut reached = [0; 4];
    for uniform in 0..300_u32 {
        let mut reader = link;
        reader.leave(S1, Span::ZERO, 4, uniform);
        reached[usize::from(reader.relay())] += 1;
    }
    let here = usize::from(link.relay());
    assert_eq!(reached[here], 0);
    assert!(reached.iter().enumerate().all(|(id, n)| id == here || *n > 60), "{reached:?}");
    // A relay that lags for three heartbeats; a good one in between starts the count again.
    assert_eq!(
        [true, true, false, true, true, true].map(|b| link.lags(b))[3..],
        [false, false, true]
    );
}

#[test]
fn the_ejection_cap_holds_after_the_ejection() {
    let cases = [
        (0, 1, 30, false),
        (0, 2, 30, false),
        (0, 2, 50, true),
        (1, 2, 50, false),
        (0, 1, 100, true),
        (0, 3, 30, false),
        (0, 4, 30, true),
        (1, 4, 30, false),
        (2, 10, 30, true),
        (3, 10, 30, false),
        (0, 10, 0, false),
        (0, 0, 100, false),
    ];
    for (already, candidates, share, expected) in cases {
        assert_eq!(
            may_eject(already, candidates, share, off()),
            expected,
            "{already} {candidates}"
        );
    }
    let rule = EjectRule::default();
    let times: Vec<u64> = [0, 1, 2, 9, 50].iter().map(|n| ejection_time(rule, *n).ms()).collect();
    assert_eq!(times, [30_000, 60_000, 90_000, 300_000, 300_000]);
}

#[test]
fn ejection_counts_errors_in_a_row_and_grows() {
    let rule = EjectRule { share_max_pct: 50, ..EjectRule::default() };
    let (a, b) = (endpoint(1, 10), endpoint(2, 10));
    let mut local = Ejector::default();
    let error = |local: &mut Ejector, at| local.on_error(at, &a, 4, rule, off());
    assert_eq!(error(&mut local, S1), Ejected::Counted);
    assert_eq!(error(&mut local, S1), Ejected::Counted);
    local.on_success(S1, &a, rule);
    assert!(local.is_empty(), "a success starts the count again");
    for _ in 0..2 {
        assert_eq!(error(&mut local, S1), Ejected::Counted);
    }
    assert_eq!(error(&mut local, S1), Ejected::Until(Time::from_s(31)));
    assert!(local.is_out(Time::from_s(30), &a) && !local.is_out(Time::from_s(31), &a));
    assert!(!local.is_out(S1, &b) && local.out(S1) == 1);
    for _ in 0..9 {
        assert_eq!(error(&mut local, S2), Ejected::Counted, "late answers change nothing");
    }
    // It comes back and fails again: longer. A success right after is not yet forgiveness.
    local.on_success(Time::from_s(32), &a, rule);
    for expected in [Ejected::Counted, Ejected::Counted, Ejected::Until(Time::from_s(92))] {
        assert_eq!(error(&mut local, Time::from_s(32)), expected);
    }
    local.on_success(Time::from_s(93), &a, rule);
    assert!(!local.is_empty());
    local.on_success(Time::from_s(152), &a, rule);
    assert!(local.is_empty(), "quiet for as long as the last ejection");
}

#[test]
fn the_set_rules_over_local_health() {
    let rule = EjectRule { share_max_pct: 50, errors: 1, ..EjectRule::default() };
    let set: Vec<_> = (1..=6).map(|instance| endpoint(instance, 10)).collect();
    let mut local = Ejector::default();
    for (at, victim) in set.iter().take(3).enumerate() {
        let now = Time::from_s(at as u64);
        assert!(matches!(local.on_error(now, victim, 6, rule, off()), Ejected::Until(_)));
    }
    assert_eq!(local.on_error(S2, &set[3], 6, rule, off()), Ejected::Capped);
    // Instance 2 leaves: forgotten. Four are left of which two may be out.
    let smaller: Vec<_> =
        set.iter().filter(|e| e.instance != InstanceId(2)).take(4).copied().collect();
    local.on_set(S2, &smaller, rule);
    assert!(!local.is_out(S2, &set[1]));
    assert_eq!(local.out(S2), 2);
    // Three are left of which one may be out: the one that would be back first is let go.
    local.on_set(S2, &smaller[..3], rule);
    assert_eq!((local.out(S2), local.is_out(S2, &set[0])), (1, false));
    assert!(local.is_out(S2, &set[2]));
    // Another generation starts clean.
    let renewed = endpoint(3, 99);
    assert!(!local.is_out(S2, &renewed));
    local.on_set(S2, &[set[0], renewed, set[3]], rule);
    assert_eq!(local.out(S2), 0);
}

#[test]
fn retries_are_a_share_of_requests() {
    let mut budget = RetryBudget::default();
    assert_eq!(budget.available(), 10);
    let mut made = 0;
    for _ in 0..1_000 {
        budget.deposit(20);
        made += u32::from(budget.take(20));
    }
    assert_eq!(made, 209, "20 % of 1,000, and the reserve of ten less what does not fit into it");
    assert!(!RetryBudget::default().take(0), "no share, no retries");
}

#[test]
fn a_breaker_opens_and_lets_one_trial_through() {
    let rule = BreakerRule { failures: 3, open: Span::from_s(5) };
    let mut breaker = Breaker::default();
    assert_eq!([breaker.failed(S1, rule), breaker.failed(S1, rule)], [false, false]);
    breaker.served();
    assert_eq!([1, 2, 3].map(|_| breaker.failed(S1, rule)), [false, false, true]);
    assert_eq!(breaker.gate(S2, rule), Gate::Fail);
    assert_eq!(breaker.gate(Time::from_s(6), rule), Gate::Trial);
    assert_eq!(breaker.gate(Time::from_s(6), rule), Gate::Fail, "one only");
    assert!(breaker.failed(Time::from_s(7), rule), "the trial failed");
    assert_eq!(breaker.gate(Time::from_s(11), rule), Gate::Fail);
    assert_eq!(breaker.gate(Time::from_s(12), rule), Gate::Trial);
    breaker.served();
    assert!(!breaker.open());
    assert_eq!(breaker.gate(Time::from_s(12), rule), Gate::Pass);
}

#[test]
fn zones_come_first_while_they_have_somebody() {
    assert_eq!(pool(0, 0), Pool::Empty);
    assert_eq!(pool(0, 5), Pool::Cell);
    assert_eq!(pool(1, 5), Pool::Zone);
}

#[test]
fn weights_share_the_choice() {
    let weights = [1_u16, 0, 3];
    let mut counts = [0; 3];
    for uniform in 0..4_000_u64 {
        let place = pick(weights.into_iter(), (uniform << 32 >> 12) as u32 + 500).unwrap();
        counts[place] += 1;
    }
    let spread: Vec<usize> =
        (0..4_u64).map(|q| pick(weights.into_iter(), (q << 30) as u32).unwrap()).collect();
    assert_eq!(spread, [0, 2, 2, 2]);
    assert_eq!(counts[1], 0);
    assert_eq!(pick([0, 0].into_iter(), 7), None);
    assert_eq!(pick([5].into_iter(), u32::MAX), Some(0));
}

#[test]
fn a_service_says_what_old_means() {
    let rule = |action| AgeRule { max: Span::from_s(60), action };
    for action in [AgeAction::Degrade, AgeAction::Reject] {
        assert_eq!(rule(action).judge(Span::from_s(60)), AgeVerdict::Fresh);
    }
    assert_eq!(rule(AgeAction::Degrade).judge(Span::from_s(61)), AgeVerdict::Degraded);
    assert_eq!(rule(AgeAction::Reject).judge(Span::from_s(61)), AgeVerdict::Rejected);
}

#[test]
fn the_table_of_sizes_holds() {
    assert_eq!(size_of::<CellSub>(), 16, "200,000 of them");
    assert!(size_of::<Link>() + size_of::<RetryBudget>() <= 64, "5,000 of them");
    assert_eq!(size_of::<Breaker>(), 8);
    assert_eq!(ProxyDials::default().heartbeat, Span::from_s(10));
}
