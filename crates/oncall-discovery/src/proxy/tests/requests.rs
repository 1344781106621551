//! The request half: retries, budgets, breakers, zones, and the ways in which a request may end (I12).

use std::cell::RefCell;

use super::source::{cell, endpoint};
use super::world::{Setup, World};
use crate::distrib::Wire;
use crate::proxy::{AgeAction, AgeRule};
use crate::proxy::{
    AttemptResult, BackOff, BreakerRule, EjectRule, Outcome, Plan, ProxyDials, Request, Step,
};
use crate::types::{Endpoint, InstanceId, Metric, Out, RegionId, Span, ZoneId};

fn world(dials: ProxyDials, count: u32) -> World {
    let mut world = Setup { dials, ..Setup::default() }.start();
    for instance in 1..=count {
        world.put(cell(0), endpoint(instance, 10));
    }
    world.run(Span::from_s(3));
    world.assert_converged();
    world
}

fn dials() -> ProxyDials {
    Setup::default().dials
}

/// Plays a request and returns its end and the endpoints that were tried.
fn play(
    world: &mut World,
    idempotent: bool,
    answer: impl Fn(&Endpoint) -> AttemptResult,
) -> (Outcome, Vec<InstanceId>) {
    let tried = RefCell::new(Vec::new());
    let age = AgeRule { max: Span::from_s(1_800), action: AgeAction::Degrade };
    let outcome = world.request_by(0, cell(0), idempotent, age, |chosen| {
        tried.borrow_mut().push(chosen.instance);
        answer(chosen)
    });
    (outcome, tried.into_inner())
}

#[test]
fn only_what_was_not_sent_or_does_no_harm_is_retried() {
    let mut world = world(ProxyDials { retries_max: 2, ..dials() }, 9);
    let cases = [
        (AttemptResult::ConnectRefused, false, 3),
        (AttemptResult::ConnectTimeout, false, 3),
        (AttemptResult::FailedAfterSend, false, 1),
        (AttemptResult::FailedAfterSend, true, 3),
    ];
    for (result, idempotent, attempts) in cases {
        let (outcome, tried) = play(&mut world, idempotent, |_| result);
        assert_eq!(outcome, Outcome::Failed { attempts }, "{result:?} {idempotent}");
        let mut distinct = tried.clone();
        distinct.sort_unstable();
        distinct.dedup();
        assert_eq!(distinct.len(), tried.len(), "each at another endpoint");
    }
    assert_eq!(world.edge(Metric::Retries), 6);
}

#[test]
fn the_retry_budget_stops_a_storm() {
    let calm = BreakerRule { failures: 255, ..BreakerRule::default() };
    let spare = EjectRule { errors: 10, share_max_pct: 0, ..EjectRule::default() };
    let rules = ProxyDials { retry_budget_pct: 10, breaker: calm, eject: spare, ..dials() };
    let mut world = world(rules, 20);
    for _ in 0..200 {
        play(&mut world, true, |_| AttemptResult::ConnectRefused);
    }
    let retries = world.edge(Metric::Retries);
    assert!((28..=31).contains(&retries), "10 of reserve and 10 % of 200: {retries}");
    assert_eq!(world.edge(Metric::RetriesDenied), 200 - retries);
}

#[test]
fn no_backend_is_said_aloud() {
    // D20: everybody tried, although retries would be left.
    let mut world = world(ProxyDials { retries_max: 3, ..dials() }, 2);
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::ConnectRefused);
    assert_eq!((outcome, tried.len()), (Outcome::NoBackend { attempts: 2 }, 2));
    // Everybody ejected or tried, where the cap leaves some in.
    let eject = EjectRule { errors: 1, share_max_pct: 50, ..EjectRule::default() };
    let mut world = self::world(ProxyDials { retries_max: 3, eject, ..dials() }, 4);
    for _ in 0..4 {
        play(&mut world, true, |_| AttemptResult::ConnectRefused);
    }
    assert_eq!(world.proxies[0].ejected(world.now, cell(0)), 2);
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::ConnectRefused);
    assert_eq!((outcome, tried.len()), (Outcome::NoBackend { attempts: 2 }, 2), "not the ejected");
    // Everybody ejected.
    let eject = EjectRule { errors: 1, share_max_pct: 100, ..EjectRule::default() };
    let mut world = self::world(ProxyDials { eject, ..dials() }, 1);
    play(&mut world, true, |_| AttemptResult::ConnectRefused);
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::Served);
    assert_eq!((outcome, tried), (Outcome::NoBackend { attempts: 0 }, vec![]));
    world.run(Span::from_s(31));
    let (outcome, _) = play(&mut world, true, |_| AttemptResult::Served);
    assert!(matches!(outcome, Outcome::Served(_)), "ejection ends");
    // Nobody there at all.
    let mut world = self::world(dials(), 0);
    let (outcome, _) = play(&mut world, true, |_| AttemptResult::Served);
    assert_eq!(outcome, Outcome::NoBackend { attempts: 0 });
    assert!(world.edge(Metric::NoBackend) >= 1);
}

#[test]
fn policy_and_identity_are_refused_explicitly() {
    let mut world = world(dials(), 3);
    let mut out = Out::new();
    let age = AgeRule { max: Span::from_s(60), action: AgeAction::Reject };
    let nowhere = Plan { regions: &[], age };
    let mut request = Request::new(cell(0).service, true);
    let now = world.now;
    let step = world.proxies[0].begin(now, &mut request, &nowhere, 1, &mut out);
    assert_eq!(step, Step::Done(Outcome::PolicyRefused));
    // A region that policy allows and the proxy does not follow gives nobody; it does not open another way.
    let elsewhere = Plan { regions: &[RegionId(2)], age };
    let step = world.proxies[0].begin(now, &mut request, &elsewhere, 1, &mut out);
    assert_eq!(step, Step::Done(Outcome::NoBackend { attempts: 0 }));
    // I21: revoked endpoints are refused at the connection whatever the set says, and another may serve.
    let revoked = |chosen: &Endpoint| match chosen.instance.0 {
        3 => AttemptResult::IdentityRefused, // in the proxy's zone: tried first
        _ => AttemptResult::Served,
    };
    let (outcome, tried) = play(&mut world, true, revoked);
    assert!(matches!(outcome, Outcome::Served(served) if served.attempts == 2), "{outcome:?}");
    assert_eq!(tried[0], InstanceId(3));
    let (outcome, _) = play(&mut world, false, |_| AttemptResult::IdentityRefused);
    assert_eq!(outcome, Outcome::AuthRefused);
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::CallerRefused);
    assert_eq!((outcome, tried.len()), (Outcome::AuthRefused, 1), "final");
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::Terminated);
    assert_eq!((outcome, tried.len()), (Outcome::ForciblyTerminated, 1));
    assert_eq!(world.proxies[0].ejected(now, cell(0)), 0, "none of it is a matter of health");
}

#[test]
fn the_own_zone_comes_first_and_the_region_next() {
    let mut world = world(ProxyDials { retries_max: 1, ..dials() }, 9);
    for _ in 0..30 {
        let (_, tried) = play(&mut world, true, |chosen| {
            assert_eq!(chosen.zone, ZoneId(0));
            AttemptResult::Served
        });
        assert_eq!(tried.len(), 1);
    }
    for instance in [3, 6, 9] {
        world.remove(cell(0), instance);
    }
    world.run(Span::from_s(1));
    let mut zones = [0; 3];
    for _ in 0..60 {
        let (outcome, _) = play(&mut world, true, |_| AttemptResult::Served);
        let Outcome::Served(served) = outcome else { panic!("{outcome:?}") };
        zones[usize::from(served.attempt.endpoint.zone.0)] += 1;
    }
    assert!(zones[0] == 0 && zones[1] > 15 && zones[2] > 15, "{zones:?}");
    assert_eq!(world.edge(Metric::CrossRegion), 0);
}

#[test]
fn a_breaker_fails_fast_and_heals() {
    let breaker = BreakerRule { failures: 4, open: Span::from_s(5) };
    let spare = EjectRule { share_max_pct: 0, ..EjectRule::default() };
    let mut world = world(ProxyDials { breaker, eject: spare, retries_max: 0, ..dials() }, 6);
    for _ in 0..4 {
        play(&mut world, true, |_| AttemptResult::ConnectTimeout);
    }
    assert_eq!(world.edge(Metric::BreakersOpened), 1);
    let (outcome, tried) = play(&mut world, true, |_| AttemptResult::Served);
    assert_eq!(
        (outcome, tried.len()),
        (Outcome::Failed { attempts: 0 }, 0),
        "not: no backend (I17)"
    );
    world.run(Span::from_s(5));
    let (outcome, _) = play(&mut world, true, |_| AttemptResult::Served);
    assert!(matches!(outcome, Outcome::Served(_)), "the trial");
    let (outcome, _) = play(&mut world, true, |_| AttemptResult::Served);
    assert!(matches!(outcome, Outcome::Served(_)), "closed");
}

#[test]
fn a_finish_without_an_attempt_is_an_end_and_no_panic() {
    let mut world = world(dials(), 3);
    let age = AgeRule { max: Span::from_s(60), action: AgeAction::Reject };
    let plan = Plan { regions: &[RegionId(0)], age };
    let mut out = Out::new();
    let mut request = Request::new(cell(0).service, true);
    let now = world.now;
    let result = AttemptResult::Served;
    let step = world.proxies[0].finish(now, &mut request, result, &plan, 0, &mut out);
    assert_eq!(step, Step::Done(Outcome::Failed { attempts: 0 }));
    assert_eq!(BackOff::default().delay(0, 0), Span::from_ms(500));
}

#[test]
fn errors_of_removed_endpoints_are_counted_as_stale() {
    let mut world = world(dials(), 1);
    let age = AgeRule { max: Span::from_s(60), action: AgeAction::Reject };
    let plan = Plan { regions: &[RegionId(0)], age };
    let mut out = Out::new();
    let mut request = Request::new(cell(0).service, true);
    let now = world.now;
    let Step::Try(_) = world.proxies[0].begin(now, &mut request, &plan, 5, &mut out) else {
        panic!("there is one")
    };
    world.remove(cell(0), 1);
    world.run(Span::from_s(1));
    let now = world.now;
    let result = AttemptResult::ConnectRefused;
    let step = world.proxies[0].finish(now, &mut request, result, &plan, 5, &mut out);
    assert_eq!(step, Step::Done(Outcome::NoBackend { attempts: 1 }));
    assert_eq!(out.total(Metric::StaleConnectFailures), 1);
    assert_eq!(out.total(Metric::Ejections), 0, "nobody to eject any more");
}

#[test]
fn a_request_asks_nobody() {
    // R23, R70: whatever happens, no message but a report of an ejection, and that after the fact.
    let mut world = world(dials(), 6);
    let age = AgeRule { max: Span::from_s(60), action: AgeAction::Reject };
    let plan = Plan { regions: &[RegionId(0)], age };
    let mut out = Out::new();
    for round in 0..60_u32 {
        let mut request = Request::new(cell(0).service, true);
        let now = world.now;
        let node = &mut world.proxies[0];
        let mut step = node.begin(now, &mut request, &plan, round << 26, &mut out);
        while let Step::Try(_) = step {
            let result = AttemptResult::ConnectTimeout;
            step = node.finish(now, &mut request, result, &plan, round << 25, &mut out);
        }
    }
    assert!(out.timers.is_empty());
    assert!(out.sends.len() <= 120 / 3, "one in three errors at most: {}", out.sends.len());
    assert!(out.sends.iter().all(|message| matches!(message.body, Wire::Report(_))));
    assert!(!out.sends.is_empty());
}
