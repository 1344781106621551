//! Whatever arrives: no panic, and an error changes nothing.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use oncall_consensus::{Body, Config, Durable, Entry, Message, Output, Payload, Replica, Snapshot};
use proptest::prelude::*;

type Letter = Message<u8, u8>;

fn body() -> impl Strategy<Value = Body<u8, u8>> {
    let (index, term, time) = (0_u64..12, 0_u64..6, 0_u64..5_000);
    let place = (index.clone(), term.clone());
    let entries = (0_u64..10, prop::collection::vec((0_u64..3, any::<bool>(), any::<u8>()), 0..6));
    prop_oneof![
        (0_u64..4, place.clone()).prop_map(|(attempt, (last_index, last_term))| Body::PreVote {
            attempt,
            last_index,
            last_term
        }),
        (term.clone(), 0_u64..4, any::<bool>()).prop_map(|(asked_in, attempt, granted)| {
            Body::PreVoteReply { asked_in, attempt, granted }
        }),
        place.clone().prop_map(|(last_index, last_term)| Body::Vote { last_index, last_term }),
        any::<bool>().prop_map(|granted| Body::VoteReply { granted }),
        (entries, term.clone(), index.clone(), time.clone()).prop_map(
            |((prev_index, drawn), prev_term, commit, sent_at)| {
                // Mostly contiguous, terms mostly grow.
                let mut term = prev_term;
                let entries = drawn
                    .into_iter()
                    .enumerate()
                    .map(|(n, (step, odd, command))| {
                        term =
                            if odd && step == 2 { term.saturating_sub(1) } else { term + step / 2 };
                        let index = prev_index + 1 + n as u64;
                        Entry { term, index, payload: Payload::Command(command) }
                    })
                    .collect();
                Body::Append { prev_index, prev_term, entries, commit, sent_at }
            }
        ),
        (index.clone(), time.clone())
            .prop_map(|(matched, sent_at)| Body::Appended { matched, sent_at }),
        (index.clone(), place.clone(), time.clone()).prop_map(
            |(prev_index, (hint_index, hint_term), sent_at)| Body::Mismatch {
                prev_index,
                hint_index,
                hint_term,
                sent_at,
            }
        ),
        (place.clone(), any::<u8>(), time).prop_map(|((index, term), state, sent_at)| {
            Body::Install { snapshot: Snapshot { index, term, state }, sent_at }
        }),
        place.prop_map(|(index, entry_term)| Body::Commit { index, entry_term }),
    ]
}

fn letter() -> impl Strategy<Value = Letter> {
    (0_u8..4, 0_u8..6, 0_u64..6, body()).prop_map(|(from, to, term, body)| {
        // Five of six are for replica 0.
        Message { from, to: u8::from(to == 5), term, body }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Messages of liars may break any promise but these: nothing panics, an error changes nothing,
    /// what is durable stays sound, and `dirty` names everything that has changed.
    #[test]
    fn nothing_panics(letters in prop::collection::vec((letter(), 0_u64..900), 1..80)) {
        let mut replica = Replica::<u8, u8>::new(Config::new(0, 3, 1), 0).unwrap();
        let mut disk = Durable::default();
        let mut out = Output::new();
        let mut now = 0;
        for (n, (letter, wait)) in letters.into_iter().enumerate() {
            now += wait;
            replica.tick(now, &mut out);
            disk.write(replica.durable(), out.dirty);
            let before = replica.clone();
            if replica.receive(now, letter, &mut out).is_err() {
                prop_assert_eq!(&replica, &before);
            }
            disk.write(replica.durable(), out.dirty);
            if n % 3 == 0 {
                let _ = replica.propose(now, 1, oncall_consensus::Fence::None, &mut out);
                disk.write(replica.durable(), out.dirty);
            }
            if n % 7 == 0 {
                let _ = replica.compact(replica.commit_index(), 1, 1, &mut out);
                disk.write(replica.durable(), out.dirty);
            }
            prop_assert_eq!(replica.durable(), &disk);
            prop_assert!(replica.durable().check().is_ok(), "{:?}", replica.durable().check());
            prop_assert!(replica.commit_index() <= replica.last_index());
            let back = Replica::restart(*replica.config(), disk.clone(), now);
            prop_assert!(back.is_ok());
        }
    }
}
