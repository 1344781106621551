//! What the hot functions of distribution and proxies cost, and how a reconnect storm ends.
//!
//! `cargo run --release -p oncall-discovery --example distrib_timing`

use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::Instant;

use oncall_core::streams::scramble;
use oncall_discovery::distrib::{
    Bucket, Coalescer, Cursor, DeltaLog, Retention, Step, Watch, Windows, answer,
};
use oncall_discovery::mutants::Mutants;
use oncall_discovery::proxy::{BackOff, CellSub, EjectRule, Ejector, Link};
use oncall_discovery::types::{
    Cell, CellUpdate, Change, Endpoint, Incarnation, InstanceId, Reason, Revision, Span, Time,
};

/// Median nanoseconds of one call over some rounds.
fn time(name: &str, calls: u32, mut round: impl FnMut(u32)) {
    let mut nanos: Vec<f64> = (0..9)
        .map(|_| {
            let start = Instant::now();
            for call in 0..calls {
                round(call);
            }
            start.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
        })
        .collect();
    nanos.sort_by(f64::total_cmp);
    println!("{name:<48} {:>9.1} ns", nanos[4]);
}

fn step(from: u32) -> Step {
    Step { incarnation: Incarnation(1), from: Revision(from), to: Revision(from + 1) }
}

fn cursor(rev: u32) -> Cursor {
    Cursor::new(Incarnation(1), Revision(rev))
}

fn hot_functions() {
    let off = Mutants::default();
    let mut subs = vec![CellSub::at(cursor(0), Time::ZERO); 200_000];
    let mut places: Vec<u32> =
        (0..200_000_u32).map(|at| scramble(u64::from(at)) as u32 % 200_000).collect();
    places.sort_unstable_by_key(|at| scramble(u64::from(*at) ^ 0x4d));
    let mut rev = 0;
    time("CellSub::on_delta, 200,000 in random order", 200_000, |call| {
        if call == 0 {
            rev += 1;
        }
        let sub = &mut subs[places[call as usize] as usize];
        let from = sub.cursor().map_or(0, |at| at.rev.0);
        black_box(sub.on_delta(step(from), true, Time::from_s(1), off));
    });
    time("CellSub::on_head (heartbeat), in order", 200_000, |call| {
        let sub = &mut subs[call as usize];
        let here = sub.cursor().unwrap_or_default();
        black_box(sub.on_head(here, Time::from_s(2)));
    });
    time("clone of 200,000 CellSub, for each", 1, |_| {
        black_box(subs.clone());
    });

    let rule = Retention::default();
    let mut log = DeltaLog::new(cursor(0));
    let mut at = Time::ZERO;
    time("DeltaLog::push and trim", 100_000, |_| {
        at = at.after(Span::from_ms(100));
        let next = log.head().rev.next();
        log.push(at, next, 7_u32);
        log.trim(at, rule, off);
    });
    let head = log.head();
    let mut asked = 0_u64;
    time("answer, with a log of 1,200 entries", 100_000, |call| {
        let rev = Revision(head.rev.0 - call % 1_300);
        let place = Cursor::new(head.incarnation, rev);
        let watch = Watch { cell: Cell::default(), cursor: Some(place), full: false };
        asked += u64::from(answer(head, watch, |rev| log.bridges(rev)) != black_box(answer_none()));
    });
    black_box(asked);

    let endpoint = Endpoint { instance: InstanceId(1), weight: 1, ..Endpoint::default() };
    let mut pending = Coalescer::new(cursor(0), 0, 0);
    time("Coalescer::note, and flush at every tenth", 100_000, |call| {
        let from = pending.accepted().rev;
        let update = CellUpdate {
            cell: Cell::default(),
            incarnation: Incarnation(1),
            from,
            to: from.next(),
            change: Change::Removed(endpoint),
            reason: Reason::Withdrawn,
            count: 1,
            checksum: 1,
            accepted: Time::ZERO,
        };
        let _ = black_box(pending.note(Time::ZERO, &update, Windows::default(), off));
        if call % 10 == 9 {
            black_box(pending.flush_now());
        }
    });

    let mut bucket = Bucket::new(Time::ZERO, 1_000_000, 1_000);
    time("Bucket::take", 100_000, |call| {
        let _ = black_box(bucket.take(Time(u64::from(call)), 1));
    });

    let rule = EjectRule { share_max_pct: 100, ..EjectRule::default() };
    let mut local = Ejector::default();
    time("Ejector::on_error, 50 endpoints", 100_000, |call| {
        let victim = Endpoint { instance: InstanceId(call % 50), ..endpoint };
        black_box(local.on_error(Time::from_s(1), &victim, 50, rule, off));
    });
}

fn answer_none() -> oncall_discovery::distrib::Answer {
    oncall_discovery::distrib::Answer::ServerBehind
}

/// 5,000 proxies lose their streams in one instant and come back through admission.
fn storm(admission_per_s: u64, base: Span, cap: Span, jitter_pct: u8) {
    let back_off = BackOff { base, cap, jitter_pct };
    let start = Time::from_s(100);
    let mut admission = Bucket::new(start, admission_per_s, (admission_per_s / 10).max(1));
    let mut links = vec![Link::new(0); 5_000];
    let mut queue = BTreeSet::new();
    let mut drawn = 0_u64;
    let mut uniform = || {
        drawn += 1;
        scramble(drawn) as u32
    };
    for (id, link) in links.iter_mut().enumerate() {
        link.lost(start, back_off, Span::ZERO, 1, uniform());
        queue.insert((link.due(), id));
    }
    let (mut attempts, mut per_s) = (0_u32, Vec::<u32>::new());
    let mut end = start;
    while let Some((now, id)) = queue.pop_first() {
        let link = &mut links[id];
        link.connect(now, Span::from_s(10));
        attempts += 1;
        let second = (now.since(start).0 / 1_000_000) as usize;
        per_s.resize(per_s.len().max(second + 1), 0);
        per_s[second] += 1;
        if admission.take(now, 1).is_ok() {
            end = now;
        } else {
            link.lost(now, back_off, Span::ZERO, 1, uniform());
            queue.insert((link.due(), id));
        }
    }
    println!(
        "admission {admission_per_s:>5}/s, {:>4} s to {:>3} s, jitter {jitter_pct:>3} %: back after {:>6.1} s, {attempts:>6} attempts, at most {:>5} in a second",
        base.as_s(),
        cap.as_s(),
        end.since(start).as_s(),
        per_s.iter().max().copied().unwrap_or(0),
    );
}

fn main() {
    hot_functions();
    println!();
    let (base, cap) = (Span::from_s(1), Span::from_s(30));
    for jitter_pct in [0, 50, 100] {
        storm(600, base, cap, jitter_pct);
    }
    storm(100, base, cap, 100);
    storm(2_000, Span::from_ms(200), Span::from_s(5), 50);
}
