//! What holds of the pieces for any input, against the simplest code that says the same.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{
    Bucket, CellStore, Coalescer, Cursor, DeltaVerdict, EndpointSet, Kind, Retention, ServiceLane,
    Windows, delta_of, net,
};
use crate::mutants::Mutants;
use crate::types::{
    Cell, CellUpdate, Change, Endpoint, Generation, Incarnation, InstanceId, Reason, Revision,
    Span, Time,
};

fn endpoint(instance: u32, weight: u16, start: u32) -> Endpoint {
    let generation = Generation::first(start);
    Endpoint { instance: InstanceId(instance), generation, weight, ..Endpoint::default() }
}

/// An instance, the weight and the start that it shall have (or leave), and milliseconds since the wish before.
type Wish = (u32, Option<(u16, u32)>, u32);

/// Random wishes, turned into a chain of updates by a map; an update for each wish that changes something.
fn chain(wishes: &[Wish]) -> Vec<(CellUpdate, Vec<Endpoint>)> {
    let mut set: BTreeMap<InstanceId, Endpoint> = BTreeMap::new();
    let mut updates = Vec::new();
    let (mut head, mut at_ms) = (0, 0);
    for &(instance, wish, later_ms) in wishes {
        at_ms += later_ms;
        let id = InstanceId(instance);
        let new = wish.map(|(weight, start)| endpoint(instance, weight, start));
        let change = match (set.get(&id).copied(), new) {
            (None, Some(new)) => Change::Added(new),
            (Some(old), None) => Change::Removed(old),
            (Some(old), Some(new)) if old != new => Change::Changed(old, new),
            _ => continue,
        };
        match new {
            Some(new) => set.insert(id, new),
            None => set.remove(&id),
        };
        let from = Revision(head);
        head += 1 + later_ms % 3; // some revisions do not touch the set
        let update = CellUpdate {
            cell: Cell::default(),
            incarnation: Incarnation(1),
            from,
            to: Revision(head),
            change,
            reason: Reason::Withdrawn,
            count: set.len() as u32,
            checksum: Endpoint::checksum(set.values()),
            accepted: Time::from_ms(u64::from(at_ms)),
        };
        updates.push((update, set.values().copied().collect()));
    }
    updates
}

fn wishes() -> impl Strategy<Value = Vec<Wish>> {
    let wish = (0..6_u32, proptest::option::of((1..3_u16, 1..4_u32)), 0..400_u32);
    proptest::collection::vec(wish, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// From every place that the log still reaches, one bridge leads to the set at the head.
    #[test]
    fn every_bridge_leads_to_the_head(
        wishes in wishes(),
        (age_ms, min_entries, max_entries) in (0..3_000_u64, 0..6_u32, 1..30_u32),
    ) {
        let start = Cursor::new(Incarnation(1), Revision(0));
        let mut store = CellStore::new(Cell::default(), start);
        let mut places = vec![(Revision(0), Vec::new())];
        let rule = Retention { age: Span::from_ms(age_ms), min_entries, max_entries };
        let mut now = Time::ZERO;
        for (update, set) in chain(&wishes) {
            now = update.accepted;
            prop_assert_eq!(store.apply(now, &delta_of(&update)), DeltaVerdict::Apply);
            prop_assert_eq!(store.endpoints(), &set[..]);
            places.push((update.to, set));
        }
        store.trim(now, rule, Mutants::default());
        prop_assert!(store.logged() <= max_entries as usize);
        prop_assert!(store.logged() >= (places.len() - 1).min(min_entries.min(max_entries) as usize));
        let mut reached = 0;
        for (rev, set) in places {
            let bridge = store.bridge(rev, now, Mutants::default());
            prop_assert_eq!(bridge.is_some(), store.bridges(rev));
            let Some(bridge) = bridge else { continue };
            reached += 1;
            let mut reader = EndpointSet::default();
            reader.replace(set, Mutants::default());
            prop_assert!(reader.apply(&bridge.changes, bridge.count, bridge.checksum));
            prop_assert_eq!(&reader, store.set());
            // The same as the difference of the two sets, so nothing is in it twice or in vain.
            let steps = net(&bridge.changes);
            prop_assert_eq!(steps, bridge.changes);
        }
        prop_assert_eq!(reached, store.logged() + 1);
    }

    /// Deltas chain, nothing waits longer than its window, and a removal never longer than its own.
    #[test]
    fn nothing_waits_longer_than_its_window(
        wishes in wishes(),
        (removals_ms, additions_ms) in (0..300_u64, 0..900_u64),
    ) {
        let windows =
            Windows { removals: Span::from_ms(removals_ms), additions: Span::from_ms(additions_ms) };
        let mut pending = Coalescer::new(Cursor::new(Incarnation(1), Revision(0)), 0, 0);
        let mut waiting: Vec<(Time, Kind)> = Vec::new();
        let mut head = Revision(0);
        let all = chain(&wishes);
        let last = all.last().map(|(update, _)| *update);
        let ends = all.iter().map(|(update, _)| Some(*update)).chain([None]);
        for update in ends {
            // The timer, up to the moment of the next update or to the end of time.
            let until = update.map_or(Time::from_s(10_000), |update| update.accepted);
            while pending.due() <= until {
                let due = pending.due();
                let flush = pending.flush(due).unwrap();
                prop_assert_eq!(flush.step.from, head, "chained");
                head = flush.step.to;
                let removals = waiting.iter().filter(|(_, kind)| *kind == Kind::Removal).count();
                prop_assert_eq!(flush.removed as usize, removals);
                prop_assert_eq!((flush.removed + flush.added) as usize, waiting.len());
                for (since, kind) in waiting.drain(..) {
                    let window = match kind {
                        Kind::Removal => windows.removals,
                        Kind::Addition => windows.additions,
                    };
                    prop_assert!(due <= since.after(window), "{kind:?}");
                }
            }
            let Some(update) = update else { break };
            pending.note(update.accepted, &update, windows, Mutants::default()).unwrap();
            waiting.push((update.accepted, Kind::from(&update.change)));
        }
        prop_assert_eq!(pending.due(), Time::NEVER);
        if let Some(last) = last {
            prop_assert_eq!(head, last.to, "all of it came out");
        }
    }

    /// In no interval more than burst and rate, and the excess of the largest; and what is refused is refused
    /// until exactly the time that was named.
    #[test]
    fn a_bucket_keeps_its_word(
        (rate, burst) in (1..2_000_u64, 1..500_u64),
        asked in proptest::collection::vec((0..400_000_u64, 1..700_u64), 1..60),
    ) {
        let mut bucket = Bucket::new(Time::ZERO, rate, burst);
        let mut now = Time::ZERO;
        let mut taken: Vec<(Time, u64)> = Vec::new();
        for (later, amount) in asked {
            now = now.after(Span(later));
            if let Err(at) = bucket.take(now, amount) {
                prop_assert!(at > now);
                let mut early = bucket;
                prop_assert!(early.take(at.before(Span(1)), amount).is_err());
                prop_assert!(bucket.take(at, amount).is_ok());
                now = at;
            }
            taken.push((now, amount));
        }
        let excess = taken.iter().map(|(_, n)| n.saturating_sub(burst)).max().unwrap_or(0);
        for (first, &(start, _)) in taken.iter().enumerate() {
            let mut sum = 0;
            for &(at, amount) in &taken[first..] {
                sum += amount;
                let earned = rate as u128 * u128::from(at.since(start).0) / 1_000_000;
                prop_assert!(u128::from(sum) <= u128::from(burst + excess) + earned + 1);
            }
        }
    }

    /// Urgent work is never later than without its lane; all work is done at last at the same time.
    #[test]
    fn urgent_work_gains(
        work in proptest::collection::vec((0..30_u64, 1..20_u64, any::<bool>()), 1..60),
    ) {
        let (mut fifo, mut lanes) = (ServiceLane::new(false), ServiceLane::new(true));
        let mut now = Time::ZERO;
        for (later, service, urgent) in work {
            now = now.after(Span::from_ms(later));
            let plain = fifo.enter(now, Span::from_ms(service), urgent);
            let quick = lanes.enter(now, Span::from_ms(service), urgent);
            prop_assert!(quick <= plain && quick >= now.after(Span::from_ms(service)));
            prop_assert!(urgent || quick == plain);
            prop_assert_eq!(fifo.delay(now), lanes.delay(now));
        }
    }
}
