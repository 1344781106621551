//! The pieces of the distribution tier by themselves, on hand-made cases.

use super::*;
use crate::mutants::{Mutant, Mutants};
use crate::types::{
    Address, Cell, CellUpdate, Change, Endpoint, Generation, Incarnation, InstanceId, Labels,
    NodeId, Out, Peer, ProxyId, Reason, RegionId, Revision, ServiceId, ShardId, Span, Time, ZoneId,
};

const OFF: fn() -> Mutants = Mutants::default;

fn at(incarnation: u32, rev: u32) -> Cursor {
    Cursor::new(Incarnation(incarnation), Revision(rev))
}

fn step(incarnation: u32, from: u32, to: u32) -> Step {
    Step { incarnation: Incarnation(incarnation), from: Revision(from), to: Revision(to) }
}

fn cell() -> Cell {
    Cell { service: ServiceId(3), region: RegionId(0) }
}

fn endpoint(instance: u32, weight: u16) -> Endpoint {
    Endpoint {
        instance: InstanceId(instance),
        generation: Generation::first(1),
        address: Address { ip: instance, port: 80 },
        labels: Labels::NONE,
        node: NodeId(1),
        version: 1,
        weight,
        zone: ZoneId(0),
    }
}

/// A chain of updates over a set, as the catalog makes them.
fn updates(changes: &[Change]) -> Vec<CellUpdate> {
    let mut set: Vec<Endpoint> = Vec::new();
    let mut all = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        match *change {
            Change::Added(new) => set.push(new),
            Change::Removed(old) => set.retain(|kept| *kept != old),
            Change::Changed(old, new) => {
                set.iter_mut().filter(|kept| **kept == old).for_each(|kept| *kept = new);
            }
        }
        all.push(CellUpdate {
            cell: cell(),
            incarnation: Incarnation(1),
            from: Revision(index as u32),
            to: Revision(index as u32 + 1),
            change: *change,
            reason: Reason::Withdrawn,
            count: set.len() as u32,
            checksum: Endpoint::checksum(&set),
            accepted: Time::from_ms(index as u64),
        });
    }
    all
}

#[test]
fn a_delta_is_applied_only_where_it_starts() {
    let here = at(2, 10);
    let cases = [
        (step(2, 10, 12), true, DeltaVerdict::Apply),
        (step(2, 10, 12), false, DeltaVerdict::Corrupt),
        (step(2, 8, 10), true, DeltaVerdict::Have),
        (step(2, 8, 10), false, DeltaVerdict::Have),
        (step(2, 11, 12), true, DeltaVerdict::Gap),
        (step(2, 11, 12), false, DeltaVerdict::Gap),
        (step(2, 8, 12), true, DeltaVerdict::Gap), // overlaps: the part it has cannot be taken out
        (step(2, 12, 12), true, DeltaVerdict::Corrupt),
        (step(2, 12, 11), true, DeltaVerdict::Corrupt),
        (step(1, 10, 12), true, DeltaVerdict::OldIncarnation),
        (step(3, 10, 12), true, DeltaVerdict::NewIncarnation),
    ];
    for (delta, intact, expected) in cases {
        assert_eq!(judge_delta(here, delta, intact, OFF()), expected, "{delta:?} {intact}");
    }
}

#[test]
fn a_snapshot_is_taken_only_if_newer() {
    let head = |incarnation, rev, count| SnapshotHead { cursor: at(incarnation, rev), count };
    let here = Some(at(2, 10));
    let cases = [
        (here, head(2, 11, 5), true, SnapshotVerdict::Replace),
        (here, head(2, 11, 5), false, SnapshotVerdict::Corrupt),
        (here, head(2, 11, 0), true, SnapshotVerdict::Replace),
        (here, head(2, 10, 5), true, SnapshotVerdict::Have),
        (here, head(2, 9, 5), true, SnapshotVerdict::Have),
        (here, head(2, 10, 0), true, SnapshotVerdict::Have), // its own, and so empty too
        (here, head(2, 10, 0), false, SnapshotVerdict::Corrupt),
        (here, head(2, 0, 0), true, SnapshotVerdict::EmptyNotNewer),
        (here, head(1, 99, 5), true, SnapshotVerdict::OldIncarnation),
        (here, head(1, 99, 0), true, SnapshotVerdict::OldIncarnation),
        (here, head(3, 1, 5), true, SnapshotVerdict::Replace),
        (None, head(1, 0, 0), true, SnapshotVerdict::Replace),
        (None, head(1, 0, 0), false, SnapshotVerdict::Corrupt),
    ];
    for (local, snapshot, intact, expected) in cases {
        assert_eq!(judge_snapshot(local, snapshot, intact, OFF()), expected, "{snapshot:?}");
    }
}

#[test]
fn the_answer_says_which_of_three_it_is() {
    let head = at(2, 10);
    let reach = |rev: Revision| rev.0 >= 7;
    let ask = |cursor, full| answer(head, Watch { cell: cell(), cursor, full }, reach);
    assert_eq!(ask(None, false), Answer::Snapshot(SnapshotCause::First));
    assert_eq!(ask(Some(at(2, 10)), false), Answer::Resumed);
    assert_eq!(ask(Some(at(2, 10)), true), Answer::Snapshot(SnapshotCause::Asked));
    assert_eq!(ask(Some(at(2, 7)), false), Answer::Bridge { from: Revision(7) });
    assert_eq!(ask(Some(at(2, 6)), false), Answer::Snapshot(SnapshotCause::RetentionOver));
    assert_eq!(ask(Some(at(1, 99)), false), Answer::Snapshot(SnapshotCause::NewIncarnation));
    for ahead in [at(2, 11), at(3, 1)] {
        assert_eq!(ask(Some(ahead), false), Answer::ServerBehind);
        assert_eq!(ask(Some(ahead), true), Answer::ServerBehind, "never backwards");
    }
}

#[test]
fn coalescing_has_two_windows_and_one_chain() {
    let windows = Windows { removals: Span::from_ms(100), additions: Span::from_ms(500) };
    let (a, b) = (endpoint(1, 1), endpoint(2, 1));
    let all = updates(&[Change::Added(a), Change::Added(b), Change::Removed(a)]);
    let mut pending = Coalescer::new(at(1, 0), 0, 0);
    let ms = Time::from_ms;
    assert_eq!(pending.flush(ms(0)), None);
    assert_eq!(pending.note(ms(10), &all[0], windows, OFF()), Ok(Some(ms(510))));
    assert_eq!(pending.note(ms(20), &all[1], windows, OFF()), Ok(None), "the first one's deadline");
    // D12: the removal is due before the additions, and takes them along.
    assert_eq!(pending.note(ms(30), &all[2], windows, OFF()), Ok(Some(ms(130))));
    assert_eq!(pending.flush(ms(129)), None);
    let flush = pending.flush(ms(130)).unwrap();
    assert_eq!(flush.step, step(1, 0, 3));
    assert_eq!((flush.removed, flush.added, flush.count), (1, 2, 1));
    assert_eq!(flush.checksum, b.fingerprint());
    assert_eq!(flush.accepted, ms(0), "the oldest");
    assert_eq!((pending.due(), pending.published()), (Time::NEVER, at(1, 3)));
    // What does not continue the chain is refused, and nothing changes.
    let copy = pending;
    assert_eq!(pending.note(ms(200), &all[1], windows, OFF()), Err(at(1, 3)));
    assert_eq!(pending, copy);
    // An addition after a removal does not move the removal's deadline.
    let mut other = Coalescer::new(at(1, 2), 2, 0);
    assert_eq!(other.note(ms(0), &all[2], windows, OFF()), Ok(Some(ms(100))));
    let mut more = updates(&[Change::Added(a), Change::Added(b), Change::Removed(a)])[0];
    more.from = Revision(3);
    more.to = Revision(4);
    assert_eq!(other.note(ms(50), &more, windows, OFF()), Ok(None));
    assert_eq!(other.flush(ms(100)).unwrap().step, step(1, 2, 4));
}

#[test]
fn retention_counts_time_and_revisions() {
    let rule = Retention { age: Span::from_s(120), min_entries: 3, max_entries: 6 };
    let mut log = DeltaLog::new(at(1, 4));
    assert!(log.bridges(Revision(4)) && !log.bridges(Revision(3)));
    assert!(!log.push(Time::ZERO, Revision(4), 0), "not ahead");
    for index in 0..5_u32 {
        assert!(log.push(Time::from_s(u64::from(index)), Revision(6 + 2 * index), index));
    }
    assert_eq!(log.trim(Time::from_s(60), rule, OFF()), 0);
    assert_eq!(log.since(Revision(4)).unwrap().count(), 5);
    assert_eq!(log.since(Revision(8)).unwrap().copied().collect::<Vec<_>>(), [2, 3, 4]);
    assert!(log.since(Revision(7)).is_none(), "no head was there");
    assert!(log.since(Revision(14)).unwrap().next().is_none());
    assert_eq!(log.coverage(Time::from_s(60)), Span::from_s(60));
    // Ten minutes of silence: old, but the newest three stay (D18).
    let mut emptied = log.clone();
    assert_eq!(log.trim(Time::from_s(700), rule, OFF()), 2);
    assert_eq!((log.floor(), log.len()), (Revision(8), 3));
    assert!(log.bridges(Revision(8)) && !log.bridges(Revision(6)));
    assert_eq!(
        emptied.trim(Time::from_s(700), rule, Mutants::only(Mutant::RetentionByTimeOnly)),
        5
    );
    // Memory has an end whatever the age.
    for index in 0..9_u32 {
        log.push(Time::from_s(700), Revision(20 + index), index);
    }
    assert_eq!(log.trim(Time::from_s(700), rule, OFF()), 6);
    assert_eq!(log.len(), 6);
    assert_eq!(log.head(), at(1, 28));
}

#[test]
fn opposite_changes_cancel_and_sets_check_themselves() {
    let (a, b, heavier) = (endpoint(1, 1), endpoint(2, 1), endpoint(2, 5));
    let folded =
        net(&[Change::Added(b), Change::Added(a), Change::Removed(a), Change::Changed(b, heavier)]);
    assert_eq!(folded, [Change::Added(heavier)]);
    assert_eq!(net(&[Change::Removed(a), Change::Added(a)]), []);
    let mut set = EndpointSet::default();
    assert!(set.apply(&[Change::Added(a), Change::Added(b)], 2, Endpoint::checksum([&a, &b])));
    let copy = set.clone();
    assert!(!set.apply(&[Change::Removed(a)], 2, b.fingerprint()), "count");
    assert!(!set.apply(&[Change::Removed(a)], 1, a.fingerprint()), "checksum");
    let twice = [Change::Removed(a), Change::Removed(a)];
    assert!(!set.apply(&twice, 0, 0u64.wrapping_sub(a.fingerprint())), "one instance twice");
    assert_eq!(set, copy, "nothing has changed");
    assert_eq!(set.diff(&[heavier]), [Change::Removed(a), Change::Changed(b, heavier)]);
    assert!(set.apply(&set.diff(&[heavier]), 1, heavier.fingerprint()));
    assert_eq!(set.endpoints(), [heavier]);
    assert!(!EndpointSet::intact(&[b, a], 2, Endpoint::checksum([&a, &b])), "order");
}

#[test]
fn a_bridge_leads_to_the_same_set_as_the_steps() {
    let (a, b, c) = (endpoint(1, 1), endpoint(2, 1), endpoint(3, 1));
    let all = updates(&[
        Change::Added(a),
        Change::Added(b),
        Change::Removed(a),
        Change::Added(c),
        Change::Removed(b),
        Change::Added(a),
    ]);
    let mut store = CellStore::new(cell(), at(1, 0));
    let mut sets = vec![EndpointSet::default()];
    for update in &all {
        assert_eq!(store.apply(update.accepted, &delta_of(update)), DeltaVerdict::Apply);
        sets.push(store.set().clone());
    }
    for (from, mut set) in sets.into_iter().enumerate() {
        let bridge = store.bridge(Revision(from as u32), Time::ZERO, OFF()).unwrap();
        assert_eq!(bridge.step, step(1, from as u32, 6));
        assert!(set.apply(&bridge.changes, bridge.count, bridge.checksum), "from {from}");
        assert_eq!(&set, store.set());
    }
    // A snapshot of the same life becomes an entry of the log: readers of this store get a delta.
    let mut behind = CellStore::new(cell(), at(1, 0));
    behind.apply(Time::ZERO, &delta_of(&all[0]));
    assert_eq!(behind.replace(Time::ZERO, store.snapshot(Time::ZERO)), SnapshotVerdict::Replace);
    assert_eq!(behind.set(), store.set());
    let bridge = behind.bridge(Revision(1), Time::ZERO, OFF()).unwrap();
    assert_eq!(bridge.changes, [Change::Added(c)], "from {{a}} to {{a, c}}");
    assert!(behind.bridges(Revision(0)) && !behind.bridges(Revision(3)));
}

#[test]
fn a_bucket_never_gives_more_than_rate_and_burst() {
    let mut bucket = Bucket::new(Time::ZERO, 10, 5);
    for _ in 0..5 {
        assert_eq!(bucket.take(Time::ZERO, 1), Ok(()));
    }
    assert_eq!(bucket.take(Time::ZERO, 1), Err(Time::from_ms(100)));
    assert_eq!(bucket.take(Time::from_ms(99), 1), Err(Time::from_ms(100)), "exact");
    assert_eq!(bucket.take(Time::from_ms(100), 1), Ok(()));
    assert_eq!(bucket.available(Time::from_s(100)), 5, "no more than the burst");
    // More than the burst: waits for a full bucket, and leaves a debt.
    assert_eq!(bucket.take(Time::from_s(100), 25), Ok(()));
    assert_eq!(bucket.available(Time::from_s(101)), 0);
    assert_eq!(bucket.take(Time::from_s(101), 1), Err(Time(102_100_000)));
    bucket.set(Time::from_s(103), 0, 5);
    assert_eq!(bucket.take(Time::from_s(103), 5), Ok(()));
    assert_eq!(bucket.take(Time::from_s(999), 1), Err(Time::NEVER), "rate zero");
    assert_eq!(Bucket::empty(Time::ZERO, 10, 5).take(Time::ZERO, 1), Err(Time::from_ms(100)));
    let mut shrunk = Bucket::new(Time::ZERO, 10, 100);
    shrunk.set(Time::ZERO, 10, 3);
    assert_eq!(shrunk.available(Time::ZERO), 3, "what is above the new burst is lost");
    // A clock that stands still or steps back gives nothing.
    assert_eq!(shrunk.take(Time::ZERO, 3), Ok(()));
    assert!(shrunk.take(Time::ZERO, 1).is_err());
}

#[test]
fn urgent_work_may_go_first() {
    let service = Span::from_ms(10);
    let mut fifo = ServiceLane::new(false);
    let mut lanes = ServiceLane::new(true);
    for lane in [&mut fifo, &mut lanes] {
        for _ in 0..5 {
            lane.enter(Time::ZERO, service, false);
        }
    }
    assert_eq!(fifo.enter(Time::ZERO, service, true), Time::from_ms(60));
    assert_eq!(lanes.enter(Time::ZERO, service, true), Time::from_ms(10));
    assert_eq!(lanes.enter(Time::ZERO, service, false), Time::from_ms(70), "and takes its time");
    assert_eq!(lanes.delay(Time::from_ms(20)), Span::from_ms(50));
    assert_eq!(lanes.enter(Time::from_s(1), service, false), Time::from_ms(1_010));
}

fn publisher(changes: &[Change], now: Time) -> Publisher {
    let bases = vec![CellStore::new(cell(), at(1, 0))];
    let config = ServerConfig::default();
    let history = updates(changes);
    Publisher::rebuild(now, bases, Incarnation(1), Windows::default(), config, history).unwrap()
}

#[test]
fn a_rebuilt_publisher_bridges_from_any_revision() {
    let changes: Vec<Change> = (1..=6).map(|i| Change::Added(endpoint(i, 1))).collect();
    let mut rebuilt = publisher(&changes, Time::ZERO);
    assert_eq!(rebuilt.heads(cell()), Some((at(1, 6), at(1, 6))));
    let reader = Peer::Proxy(ProxyId(1));
    for rev in 0..=6 {
        let mut out = Out::new();
        let watch = Watch { cell: cell(), cursor: Some(at(1, rev)), full: false };
        let hello = Up::Hello { session: rev + 1, proof: 0, watches: vec![watch], policy: 0 };
        let input = PublisherInput::Message(reader, hello);
        rebuilt.on_event(Time::from_s(60), input, &OpenToAll, &mut out).unwrap();
        let answer = &out.sends.last().unwrap().body;
        match answer {
            Wire::Down(Down::Resumed(head)) => assert_eq!((rev, head.cursor), (6, at(1, 6))),
            Wire::Down(Down::Delta(delta)) => assert_eq!(delta.step, step(1, rev, 6)),
            other => panic!("{other:?}"),
        }
    }
    // A gap in the log is an error with the numbers in it, and changes nothing.
    let mut gap = updates(&changes)[2];
    gap.from = Revision(9);
    gap.to = Revision(10);
    let copy = rebuilt.clone();
    let mut out = Out::new();
    let missed = rebuilt.on_event(Time::ZERO, PublisherInput::Update(gap), &OpenToAll, &mut out);
    assert_eq!(missed, Err(Missed { cell: cell(), from: Revision(9), expected: at(1, 6) }));
    assert!(missed.unwrap_err().to_string().contains("expected"));
    assert_eq!(rebuilt, copy);
}

/// Only proxies may connect, and only with their own number as proof; nobody may follow service 9.
struct Strict;

impl WatchPolicy for Strict {
    fn may_connect(&self, peer: Peer, proof: u64) -> bool {
        matches!(peer, Peer::Proxy(id) if u64::from(id.0) == proof)
    }

    fn may_watch(&self, _: Peer, cell: Cell) -> bool {
        cell.service != ServiceId(9)
    }
}

#[test]
fn a_stream_needs_identity_permission_and_admission() {
    let config = ServerConfig { connects_per_s: 1, connects_burst: 2, ..ServerConfig::default() };
    let secret = Cell { service: ServiceId(9), ..cell() };
    let mut server = Server::new(Time::ZERO, config);
    for known in [cell(), secret] {
        server.install(known, CellStore::at(known, at(1, 5), vec![endpoint(1, 1)]));
    }
    let mut ask = |peer: u16, session: u32, proof: u64, followed: Cell| {
        let mut out: Out<Wire, ServerTimer> = Out::new();
        let watch = Watch { cell: followed, cursor: None, full: false };
        let hello = Up::Hello { session, proof, watches: vec![watch], policy: 0 };
        server.on_message(Time::from_s(9), Peer::Proxy(ProxyId(peer)), hello, &Strict, &mut out);
        let bodies = out.sends.into_iter().map(|message| match message.body {
            Wire::Down(down) => down,
            other => panic!("{other:?}"),
        });
        (bodies.collect::<Vec<_>>(), server.streams())
    };
    let (answers, open) = ask(1, 1, 99, cell());
    assert_eq!((answers, open), (vec![Down::Denied { session: 1 }], 0));
    let (answers, open) = ask(1, 2, 1, secret);
    assert_eq!(answers[1..], [Down::WatchDenied { cell: secret }]);
    assert_eq!(open, 1);
    let (answers, _) = ask(2, 1, 2, cell());
    assert!(matches!(answers[..], [Down::Welcome { session: 1, .. }, Down::Snapshot(_)]));
    let (answers, open) = ask(3, 1, 3, cell());
    let busy = Down::Busy { session: 1, retry_after: Span::from_s(1) };
    assert_eq!((answers, open), (vec![busy], 2));
    let (answers, _) = ask(2, 1, 2, cell());
    assert_eq!(answers, [], "a repeated hello opens nothing");
}

#[test]
fn snapshots_wait_for_the_budget_and_nobody_waits_twice() {
    let bytes = snapshot_bytes(2);
    let config = ServerConfig {
        snapshot_bytes_per_s: bytes,
        snapshot_bytes_burst: bytes,
        connects_burst: 10,
        ..ServerConfig::default()
    };
    // Started long ago: its buckets have filled up since.
    let mut server = Server::new(Time::ZERO, config);
    let start = Time::from_s(10);
    let set = vec![endpoint(1, 1), endpoint(2, 1)];
    server.install(cell(), CellStore::at(cell(), at(1, 5), set));
    let watch = Watch { cell: cell(), cursor: None, full: false };
    let mut out: Out<Wire, ServerTimer> = Out::new();
    for id in 0..3 {
        let hello = Up::Hello { session: 1, proof: 0, watches: vec![watch], policy: 0 };
        server.on_message(start, Peer::Proxy(ProxyId(id)), hello, &OpenToAll, &mut out);
        let again = Up::Watch(watch);
        server.on_message(start, Peer::Proxy(ProxyId(id)), again, &OpenToAll, &mut out);
    }
    let sent = |out: &Out<Wire, ServerTimer>| {
        let is = |body: &Wire| matches!(body, Wire::Down(Down::Snapshot(_)));
        out.sends.iter().filter(|message| is(&message.body)).count()
    };
    // The first reader asked twice, and got its answer before it asked again: two are waiting for it and others.
    assert_eq!((sent(&out), server.snapshots_waiting()), (1, 3));
    for second in 1..=3 {
        out.clear();
        server.on_timer(start.after(Span::from_s(second)), ServerTimer::Snapshots, &mut out);
        assert_eq!(sent(&out), 1);
    }
    assert_eq!(server.snapshots_waiting(), 0);
    // A reader that leaves gives its place up.
    let full = Watch { full: true, cursor: Some(at(1, 5)), ..watch };
    for id in 0..3 {
        let up = Up::Watch(full);
        server.on_message(
            start.after(Span::from_s(3)),
            Peer::Proxy(ProxyId(id)),
            up,
            &OpenToAll,
            &mut out,
        );
    }
    assert_eq!(server.snapshots_waiting(), 3);
    server.close(Peer::Proxy(ProxyId(1)));
    assert_eq!((server.snapshots_waiting(), server.streams()), (2, 2));
}

#[test]
fn a_relay_asks_only_for_what_is_asked_of_it() {
    let config = RelayConfig {
        proof: 0,
        upstream_proof: 0,
        shards: vec![ShardId(0), ShardId(1), ShardId(0), ShardId(1)],
        parent: None,
        back_off: crate::proxy::BackOff::default(),
        server: ServerConfig::default(),
    };
    let reader = Peer::Proxy(ProxyId(0));
    let watch = Watch { cell: cell(), cursor: None, full: false };
    let hello = Up::Hello { session: 1, proof: 0, watches: vec![watch], policy: 0 };
    for (parent, expected) in [
        (None, Peer::Catalog(RegionId(0), ShardId(1))),
        (
            Some(Peer::Relay(RegionId(0), crate::types::RelayId(9))),
            Peer::Relay(RegionId(0), crate::types::RelayId(9)),
        ),
    ] {
        let mut relay = Relay::new(Time::ZERO, RelayConfig { parent, ..config.clone() });
        let mut out = Out::new();
        let input = RelayInput::Message(reader, hello.clone());
        relay.on_event(Time::from_s(1), input, 0, &OpenToAll, &mut out);
        let up: Vec<_> = out.sends.iter().filter(|message| message.to != reader).collect();
        assert_eq!(up.len(), 1);
        assert_eq!(up[0].to, expected);
        let Wire::Up(Up::Hello { watches, .. }) = &up[0].body else { panic!("{up:?}") };
        assert_eq!(watches, &[watch]);
        let is_not_ready = |body: &Wire| matches!(body, Wire::Down(Down::NotReady { .. }));
        assert!(out.sends.iter().any(|message| is_not_ready(&message.body)), "not: empty");
    }
}

#[test]
fn compact_things_are_compact() {
    assert_eq!(size_of::<Cursor>(), 8);
    assert_eq!(size_of::<ServiceLane>(), 24);
    assert!(size_of::<Coalescer>() <= 64);
    assert!(size_of::<Bucket>() <= 40);
}

#[test]
fn the_arithmetic_of_the_brief_holds() {
    // R131: 256 B × 100,000 ≈ 24.4 MiB; a subscribed snapshot of 40 × 50 is about 500 KiB.
    let mib = |bytes: u64| bytes as f64 / (1024.0 * 1024.0);
    assert!((mib(snapshot_bytes(100_000)) - 24.4).abs() < 0.05);
    let subscribed = 40 * snapshot_bytes(50);
    assert!((mib(subscribed) * 1024.0 - 500.0).abs() < 5.0);
    assert!((mib(5_000 * subscribed) / 1024.0 - 2.4).abs() < 0.05, "all proxies at once");
    // R129, R130: 167 changes a second to 100 subscribers each, and to everybody.
    let changes = 10_000.0 / 120.0 * 2.0;
    assert_eq!((changes * 100.0_f64).round(), 16_667.0);
    assert_eq!((changes * 5_000.0_f64).round(), 833_333.0);
    let heads = Head { cell: cell(), cursor: at(1, 1), as_of: Time::ZERO };
    let heartbeat = Down::Heartbeat { heads: vec![heads; 40], policy: 0 };
    assert_eq!(heartbeat.bytes(), HEADER_BYTES + 40 * HEAD_BYTES);
}
