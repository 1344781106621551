//! The fault classes of public reports that belong to distribution and proxies, one scenario each.
//!
//! A scenario takes the safeguard that is out, or none. With none it must pass.

use super::source::{cell, endpoint};
use super::world::{CATALOG, Setup, World, proxy, relay};
use crate::distrib::{Cursor, Down, ProxyPolicy, Retention, ServerConfig, Snapshot, SnapshotHead};
use crate::mutants::Mutant;
use crate::proxy::{AgeAction, AgeRule, AttemptResult, EjectRule, Outcome, ProxyDials, ProxyInput};
use crate::types::{Incarnation, InstanceId, Metric, Revision, Span};

pub(super) fn setup(mutant: Option<Mutant>) -> Setup {
    Setup { mutant, ..Setup::default() }
}

/// Both cells with the endpoints 1 to `count`.
pub(super) fn filled(setup: Setup, count: u32) -> World {
    let mut world = setup.start();
    for instance in 1..=count {
        world.put(cell(0), endpoint(instance, 10));
        world.put(cell(1), endpoint(100 + instance, 10));
    }
    world.run(Span::from_s(3));
    world.assert_converged();
    world
}

/// A proxy hears nothing for a while and does not notice.
pub(super) fn silence(world: &mut World, at: u16) {
    for id in 0..world.relays.len() as u16 {
        world.faults.apart.insert((relay(id).min(proxy(at)), relay(id).max(proxy(at))));
    }
}

/// istio#41494, kmesh#415, envoy#22418.
pub(super) fn removal_while_disconnected(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 5);
    silence(&mut world, 0);
    world.run(Span::from_s(1));
    world.remove(cell(0), 3);
    world.put(cell(0), endpoint(6, 20));
    world.run(Span::from_s(20));
    assert!(!world.proxies[0].connected());
    let old = world.proxies[0].view(cell(0)).unwrap().set();
    assert!(old.get(InstanceId(3)).is_some(), "cut off: the old set is still in use");
    world.heal();
    world.run(Span::from_s(30));
    world.assert_converged();
    let new = world.proxies[0].view(cell(0)).unwrap().set();
    assert!(new.get(InstanceId(3)).is_none() && new.get(InstanceId(6)).is_some());
    assert_eq!(world.edge(Metric::SnapshotFallbacks), 0, "the log reached back");
}

/// consul#7128, nacos#4470, #5163, #10209: "up to date" and "empty" are different answers.
pub(super) fn nothing_new_is_not_nothing_there(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    let before = world.source.set(cell(0));
    // A reconnect without a change: no snapshot, no delta.
    let deltas = world.tier(Metric::DeltasSent);
    world.cut(relay(0), proxy(0), true);
    world.run(Span::from_s(10));
    assert_eq!(world.edge(Metric::SnapshotFallbacks), 0);
    assert_eq!(world.tier(Metric::DeltasSent), deltas);
    // The whole tier restarts cold while the catalog is away: it knows nothing, and says so.
    world.publisher_down();
    for at in 0..2 {
        world.relay_down(at);
        world.relay_up(at);
    }
    world.run(Span::from_s(60));
    assert!(world.proxies.iter().all(crate::proxy::Proxy::connected));
    for node in &world.proxies {
        assert_eq!(node.view(cell(0)).unwrap().set().endpoints(), before, "kept");
    }
    // A relay that pushes an empty set at the place where everybody stands.
    let head = world.source.head(cell(0));
    for cursor in [head, Cursor::new(head.incarnation, Revision(head.rev.0 - 1))] {
        let head = SnapshotHead { cursor, count: 0 };
        let (endpoints, as_of) = (Vec::new(), world.now);
        let empty = Snapshot { cell: cell(0), head, checksum: 0, endpoints, as_of };
        let from = world.proxies[0].relay().unwrap();
        world.proxy_event(0, ProxyInput::Message(from, Down::Snapshot(empty)));
        let kept = world.proxies[0].view(cell(0)).unwrap().set().endpoints();
        assert_eq!(kept, before, "an empty set that is not newer wipes nothing");
    }
    assert_eq!(
        world.edge(Metric::ChecksumRejects),
        1,
        "two sets at one place cannot both be right"
    );
    assert_eq!(world.edge(Metric::EmptySnapshotsRefused), 1, "the older one is merely late");
    // A cell that really is empty now is newer, and is believed.
    world.heal();
    for instance in 1..=3 {
        world.remove(cell(0), instance);
    }
    world.run(Span::from_s(30));
    world.assert_converged();
    assert_eq!(world.proxies[0].view(cell(0)).unwrap().set().count(), 0);
}

/// synapse PR#287, linkerd2#11480, envoy#9800, #21107, consul#10563: a stream that stays open and tells nothing.
pub(super) fn silent_watch_loss(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    world.faults.no_deltas = Some(0);
    world.remove(cell(0), 2);
    world.run(Span::from_ms(500));
    world.faults.no_deltas = None;
    // Nothing follows that could show the gap, but the next heartbeat tells the head (I20).
    world.run(Span::from_s(2) /* heartbeat */);
    world.run(Span::from_ms(500) /* repair */);
    world.assert_converged();
    assert!(world.edge(Metric::HeadsAhead) >= 1);
    assert!(world.edge(Metric::DeltaRepairs) >= 1, "D21: by delta");
    assert_eq!(world.edge(Metric::SnapshotFallbacks), 0);
    // A relay that sends nothing at all is left after two and a half heartbeats.
    world.faults.mute = Some(0);
    world.remove(cell(0), 1);
    world.run(Span::from_s(60));
    world.assert_converged();
    assert!(world.edge(Metric::SilentStreams) >= 1);
    assert!(world.proxies.iter().all(|node| node.relay() == Some(relay(1))));
}

/// A relay that has lost its own source without noticing, while others go on.
pub(super) fn lagging_relay(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    world.faults.apart.insert((CATALOG.min(relay(1)), CATALOG.max(relay(1))));
    world.remove(cell(0), 2);
    world.run(Span::from_s(1));
    // Proxy 0 has seen the newer head at relay 0 and now gets to relay 1.
    world.relay_down(0);
    world.run(Span::from_s(15));
    let place = world.proxies[0].sub(cell(0)).unwrap().cursor();
    assert_eq!(place, Some(world.source.head(cell(0))), "never back");
    world.relay_up(0);
    world.run(Span::from_s(60));
    assert_eq!(world.proxies[0].relay(), Some(relay(0)), "left the one that lags");
    assert!(world.edge(Metric::RelaySwitches) >= 1);
    world.heal();
    world.run(Span::from_s(40));
    world.assert_converged();
}

/// consul#8354, #20642, envoy#8718: a restored history uses its revisions again, with other content.
pub(super) fn incarnation_fork(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 4);
    // Relay 1 stays behind in the old life of the history.
    world.faults.apart.insert((CATALOG.min(relay(1)), CATALOG.max(relay(1))));
    world.publisher_down();
    world.source.restore(2);
    world.publisher_up();
    world.put(cell(0), endpoint(50, 30));
    world.put(cell(0), endpoint(51, 30));
    world.run(Span::from_s(20));
    let new = world.source.head(cell(0));
    assert_eq!(new.incarnation, Incarnation(2));
    assert_eq!(world.proxies[0].sub(cell(0)).unwrap().cursor(), Some(new));
    // Now that proxy meets the old life: nothing there can pull it back.
    world.relay_down(0);
    world.run(Span::from_s(15));
    assert_eq!(world.proxies[0].relay(), Some(relay(1)));
    assert_eq!(world.proxies[0].sub(cell(0)).unwrap().cursor(), Some(new));
    // Even if it pushes.
    let old = Cursor::new(Incarnation(1), Revision(4));
    let endpoints = world.source.at(cell(0), old).unwrap().to_vec();
    let snapshot = Snapshot {
        cell: cell(0),
        head: SnapshotHead { cursor: old, count: endpoints.len() as u32 },
        checksum: crate::types::Endpoint::checksum(&endpoints),
        endpoints,
        as_of: world.now,
    };
    let refused = world.edge(Metric::ForksRefused);
    world.proxies[0].relay().unwrap();
    world.proxy_event(0, ProxyInput::Message(relay(1), Down::Snapshot(snapshot)));
    assert_eq!(world.proxies[0].sub(cell(0)).unwrap().cursor(), Some(new));
    assert!(world.edge(Metric::ForksRefused) > refused || !world.proxies[0].connected());
    world.heal();
    world.run(Span::from_s(60));
    world.assert_converged();
}

/// kubernetes#85342, #86483, eureka#60, istio#35263: everybody comes back at once.
pub(super) fn full_sync_storm(mutant: Option<Mutant>) {
    let server = ServerConfig {
        snapshot_bytes_per_s: 20_000,
        snapshot_bytes_burst: 8_000,
        connects_per_s: 8,
        connects_burst: 4,
        ..Setup::default().server
    };
    let mut world = filled(Setup { proxies: 30, server, ..setup(mutant) }, 8);
    // The relays restart and keep their logs, while a change goes on: nobody needs a snapshot.
    for at in 0..2 {
        let known = world.relay_down(at).unwrap();
        world.put(cell(0), endpoint(60 + u32::from(at), 30));
        world.run(Span::from_ms(300));
        world.relay_up_warm(at, known);
    }
    world.run(Span::from_s(60));
    world.assert_converged();
    assert_eq!(world.edge(Metric::SnapshotFallbacks), 0);
    // They restart without: readers who stand at the head are confirmed, and those who don't get snapshots within
    // the budget.
    for at in 0..2 {
        world.relay_down(at);
    }
    world.put(cell(0), endpoint(70, 30));
    world.run(Span::from_s(1));
    for at in 0..2 {
        world.relay_up(at);
    }
    world.run(Span::from_s(120));
    world.assert_converged();
    assert!(world.edge(Metric::SnapshotFallbacks) >= 20);
    world.check_budgets();
    assert!(world.tier(Metric::SnapshotsDeferred) >= 1, "the budget did bite");
    assert!(world.tier(Metric::ConnectsRefused) >= 1, "admission did bite");
    // The publisher restarts out of the replicated log: the relays resume.
    let fallbacks = world.tier(Metric::SnapshotFallbacks);
    world.publisher_down();
    world.run(Span::from_s(3));
    world.publisher_up();
    world.run(Span::from_s(20));
    assert_eq!(world.tier(Metric::SnapshotFallbacks), fallbacks);
}

/// eureka#1120, #1528: a checksum over something else than the revision says rejects good content for ever.
pub(super) fn no_false_mismatch(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 5);
    for round in 0..200_u32 {
        let instance = 1 + round * 7 % 11;
        if round % 3 == 0 {
            world.remove(cell(0), instance);
        } else {
            let weight = 1 + (round % 4) as u16;
            world.put(cell(0), crate::types::Endpoint { weight, ..endpoint(instance, 10 + round) });
        }
        if round % 5 == 0 {
            world.source.silent(cell(0));
        }
        if round % 40 == 0 {
            world.cut(relay(0), proxy(0), true);
        }
        world.run(Span::from_ms(u64::from(round % 9) * 60));
    }
    world.run(Span::from_s(20));
    world.assert_converged();
    assert_eq!(world.edge(Metric::ChecksumRejects) + world.tier(Metric::ChecksumRejects), 0);
    assert_eq!(world.edge(Metric::SnapshotFallbacks), 0);
}

/// envoy#27066, istio#20135, envoy#17504: too much was ejected.
pub(super) fn over_ejection(mutant: Option<Mutant>) {
    for count in 1..=10_u32 {
        let mut world = filled(setup(mutant), count);
        for _ in 0..60 {
            world.request(0, cell(0), |_| AttemptResult::ConnectRefused);
            let out = world.proxies[0].ejected(world.now, cell(0));
            assert!(out * 100 <= 30 * count, "{out} of {count} ejected with a cap of 30 %");
            world.run(Span::from_ms(100));
        }
        assert_eq!(world.proxies[0].ejected(world.now, cell(0)), count * 30 / 100, "of {count}");
    }
}

/// envoy#440, #11527, kubernetes#128479: what the registry removed was routed to, because local health kept it.
pub(super) fn removed_but_still_routed(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 4);
    while world.proxies[0].ejected(world.now, cell(0)) == 0 {
        world.request(0, cell(0), |chosen| match chosen.instance.0 {
            2 => AttemptResult::ConnectRefused,
            _ => AttemptResult::Served,
        });
        world.request(0, cell(0), |_| AttemptResult::ConnectRefused);
    }
    let victim = world.source.set(cell(0)).iter().map(|e| e.instance.0).collect::<Vec<_>>();
    for instance in victim {
        world.remove(cell(0), instance);
    }
    world.put(cell(0), endpoint(10, 40)); // in another zone than the proxy
    world.run(Span::from_s(2));
    for _ in 0..40 {
        let outcome = world.request(0, cell(0), |chosen| {
            assert_eq!(
                chosen.instance,
                InstanceId(10),
                "removed, and local health does not matter"
            );
            AttemptResult::Served
        });
        assert!(matches!(outcome, Outcome::Served(_)));
        world.run(Span::from_s(20));
    }
}

/// envoy#4718: bad content is asked for again at once, for ever.
pub(super) fn reject_loop(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    world.faults.corrupt = Some((0, cell(0)));
    world.remove(cell(0), 2);
    world.run(Span::from_s(60));
    world.assert_converged();
    assert!(world.edge(Metric::ChecksumRejects) >= 2, "I4: rejected and nothing mixed");
    assert!(world.proxies.iter().all(|node| node.relay() == Some(relay(1))), "left it");
    // With no other relay to go to it backs off instead.
    let mut world = filled(Setup { relays: 1, ..setup(mutant) }, 3);
    world.faults.corrupt = Some((0, cell(0)));
    let before = world.source.set(cell(0));
    world.remove(cell(0), 2);
    world.run(Span::from_s(600));
    let rejects = world.edge(Metric::ChecksumRejects);
    assert!(rejects >= 3, "goes on trying");
    assert!(rejects <= 3 * (600 / 4 + 10), "{rejects} rejects of 3 proxies in 600 s");
    assert_eq!(world.proxies[0].view(cell(0)).unwrap().set().endpoints(), before, "old but whole");
    assert!(matches!(world.request(0, cell(0), |_| AttemptResult::Served), Outcome::Served(_)));
    world.heal();
    world.run(Span::from_s(60));
    world.assert_converged();
}

/// eureka#98, dubbo PR#5135, consul#3703: an old process's message brings it back.
pub(super) fn zombie_in_the_proxy(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 1);
    world.put(cell(0), endpoint(1, 50));
    world.run(Span::from_s(2));
    world.remove(cell(0), 1);
    world.run(Span::from_s(2));
    // A catalog without a fence would publish this; the proxy has its own.
    world.put(cell(0), endpoint(1, 10));
    world.run(Span::from_s(2));
    assert_eq!(
        world.proxies[0].view(cell(0)).unwrap().set().count(),
        1,
        "the checksum still holds"
    );
    let outcome = world.request(0, cell(0), |_| AttemptResult::Served);
    assert_eq!(outcome, Outcome::NoBackend { attempts: 0 }, "but nobody is sent there");
    assert_eq!(world.edge(Metric::ChecksumRejects), 0, "and nobody asks for it again and again");
    assert_eq!(world.edge(Metric::FencedEndpoints), 3, "one in each proxy");
    // The same generation may come back (health recovered), and a newer one may.
    world.put(cell(0), endpoint(1, 50));
    world.run(Span::from_s(2));
    assert!(matches!(world.request(0, cell(0), |_| AttemptResult::Served), Outcome::Served(_)));
    world.put(cell(0), endpoint(1, 60));
    world.run(Span::from_s(2));
    assert!(matches!(world.request(0, cell(0), |_| AttemptResult::Served), Outcome::Served(_)));
}

/// R8, R94, D18: ten minutes without the control plane.
pub(super) fn outage(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 6);
    silence(&mut world, 0);
    world.run(Span::from_ms(100));
    world.remove(cell(0), 5);
    world.run(Span::from_s(2));
    // Proxy 0 missed the last change before the outage.
    world.quorum = false;
    world.publisher_down();
    world.run(Span::from_s(600));
    for at in 0..3 {
        let outcome = world.request(at, cell(0), |_| AttemptResult::Served);
        assert!(matches!(outcome, Outcome::Served(_)), "existing calls go on");
        assert!(world.proxies[usize::from(at)].age_max(world.now) >= Span::from_s(595));
    }
    assert!(world.edge(Metric::SnapshotAgeAlerts) >= 3, "and it is seen");
    let fallbacks = world.edge(Metric::SnapshotFallbacks);
    world.quorum = true;
    world.publisher_up();
    world.run(Span::from_s(10));
    world.put(cell(0), endpoint(8, 700));
    world.run(Span::from_s(5));
    // Only now proxy 0 comes back, two changes behind.
    world.heal();
    world.run(Span::from_s(60));
    world.assert_converged();
    assert_eq!(
        world.edge(Metric::SnapshotFallbacks),
        fallbacks,
        "the outage did not empty the logs"
    );
    assert!(world.proxies[0].age_max(world.now) <= Span::from_s(5));
    world.check_budgets();
}

/// R86, D12: a removal does not wait for an addition, and takes it along.
pub(super) fn removals_do_not_wait(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    world.put(cell(0), endpoint(7, 20));
    world.run(Span::from_ms(50));
    world.remove(cell(0), 2);
    // 100 ms window, two hops of at most 80 ms.
    world.run(Span::from_ms(270));
    for node in &world.proxies {
        let set = node.view(cell(0)).unwrap().set();
        assert!(set.get(InstanceId(2)).is_none(), "gone in time");
        assert!(set.get(InstanceId(7)).is_some(), "with the addition before it");
    }
    assert_eq!(world.edge(Metric::RevisionGaps), 0, "one chain");
}

/// R82: old and new parts are never mixed.
pub(super) fn snapshots_replace(mutant: Option<Mutant>) {
    // No log to speak of: each reconnect after a change needs a snapshot.
    let retention = Retention { age: Span::ZERO, min_entries: 0, max_entries: 0 };
    let server = ServerConfig { retention, ..Setup::default().server };
    let mut world = filled(Setup { server, ..setup(mutant) }, 4);
    silence(&mut world, 0);
    world.run(Span::from_s(1));
    for instance in 1..=4 {
        world.remove(cell(0), instance);
        world.put(cell(0), endpoint(20 + instance, 30));
    }
    world.run(Span::from_s(10));
    world.heal();
    world.run(Span::from_s(30));
    world.assert_converged();
    assert!(world.edge(Metric::SnapshotFallbacks) >= 1, "retention was over");
}

/// R101: each service has its own rule for a set that is too old.
pub(super) fn age_rules(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    let rule = |action| AgeRule { max: Span::from_s(60), action };
    world.quorum = false;
    world.run(Span::from_s(30));
    let served = |world: &mut World, action| {
        world.request_by(0, cell(0), true, rule(action), |_| AttemptResult::Served)
    };
    let Outcome::Served(fresh) = served(&mut world, AgeAction::Reject) else { panic!("young") };
    assert!(!fresh.attempt.degraded);
    world.run(Span::from_s(60));
    assert_eq!(served(&mut world, AgeAction::Reject), Outcome::TooOld);
    let Outcome::Served(old) = served(&mut world, AgeAction::Degrade) else { panic!("degraded") };
    assert!(old.attempt.degraded);
    let failed = world
        .request_by(0, cell(0), true, rule(AgeAction::Degrade), |_| AttemptResult::ConnectRefused);
    assert_eq!(failed, Outcome::Failed { attempts: 1 }, "degraded: not retried");
    world.quorum = true;
    world.run(Span::from_s(5));
    assert!(matches!(served(&mut world, AgeAction::Reject), Outcome::Served(_)));
}

/// 4.1: dials for proxies travel through the tier, and do not arrive where the stream is down.
pub(super) fn dials_travel(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 3);
    silence(&mut world, 0);
    world.run(Span::from_s(10));
    let eject = EjectRule { errors: 9, ..EjectRule::default() };
    let dials = ProxyDials { eject, ..Setup::default().dials };
    world.policy(ProxyPolicy { version: 2, dials });
    world.run(Span::from_s(3));
    let versions = |world: &World| -> Vec<u32> {
        world.proxies.iter().map(crate::proxy::Proxy::policy_version).collect()
    };
    assert_eq!(versions(&world), [1, 2, 2]);
    assert_eq!(world.proxies[1].dials().eject.errors, 9);
    world.heal();
    world.run(Span::from_s(30));
    assert_eq!(versions(&world), [2, 2, 2], "caught up with the hello");
    world.policy(ProxyPolicy { version: 1, dials: Setup::default().dials });
    world.run(Span::from_s(3));
    assert_eq!(versions(&world), [2, 2, 2], "an older one changes nothing");
}

/// I13, R98: what proxies notice is reported and nothing more.
pub(super) fn passive_reports(mutant: Option<Mutant>) {
    let mut world = filled(setup(mutant), 4);
    let head = world.source.head(cell(0));
    for at in 0..3 {
        for _ in 0..40 {
            world.request(at, cell(0), |_| AttemptResult::ConnectRefused);
        }
    }
    world.run(Span::from_s(2));
    assert!(!world.reports.is_empty());
    assert!(world.reports.iter().all(|report| report.cell == cell(0)));
    let heads = world.publisher.as_ref().unwrap().heads(cell(0)).unwrap();
    assert_eq!(heads, (head, head), "the catalog has not moved");
    world.assert_converged();
}

/// A delta is lost and another follows: a gap that the proxy sees by itself (R80, R81, D21).
pub(super) fn silent_gap(mutant: Option<Mutant>) {
    // Heartbeats far apart, or one would tell first.
    let (base, heartbeat) = (setup(mutant), Span::from_s(60));
    let server = ServerConfig { heartbeat, ..base.server };
    let dials = ProxyDials { heartbeat, ..base.dials };
    let mut world = filled(Setup { relays: 1, server, dials, ..base }, 3);
    world.faults.no_deltas = Some(0);
    world.remove(cell(0), 2);
    world.run(Span::from_ms(400));
    world.faults.no_deltas = None;
    world.put(cell(0), endpoint(9, 20));
    world.run(Span::from_ms(900));
    world.assert_converged();
    assert!(world.edge(Metric::RevisionGaps) >= 1);
    assert!(world.edge(Metric::DeltaRepairs) >= 1);
}
