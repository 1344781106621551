//! Every scenario passes; the table says which has to fail without which safeguard. And what needs no scenario.

use super::scenarios::*;
use super::source::{cell, endpoint};
use super::world::{Setup, World, relay};
use crate::distrib::{ProxyPolicy, ServerConfig};
use crate::mutants::Mutant;
use crate::proxy::{AttemptResult, Outcome, ProxyDials, ProxyInput};
use crate::types::{Metric, Span, Time};

type Scenario = fn(Option<Mutant>);

#[test]
fn a_removal_while_disconnected_is_applied_by_delta() {
    removal_while_disconnected(None);
}

#[test]
fn up_to_date_and_empty_are_told_apart() {
    nothing_new_is_not_nothing_there(None);
}

#[test]
fn a_silent_loss_is_found_within_a_heartbeat() {
    silent_watch_loss(None);
}

#[test]
fn a_lagging_relay_is_left() {
    lagging_relay(None);
}

#[test]
fn a_forked_history_pulls_nobody_back() {
    incarnation_fork(None);
}

#[test]
fn a_full_sync_storm_stays_inside_the_budgets() {
    full_sync_storm(None);
}

#[test]
fn good_content_is_never_rejected() {
    no_false_mismatch(None);
}

#[test]
fn no_more_than_the_cap_is_ejected() {
    over_ejection(None);
}

#[test]
fn what_was_removed_is_not_routed_to() {
    removed_but_still_routed(None);
}

#[test]
fn bad_content_is_left_and_not_asked_for_again_and_again() {
    reject_loop(None);
}

#[test]
fn an_old_process_does_not_come_back() {
    zombie_in_the_proxy(None);
}

#[test]
fn an_outage_of_ten_minutes_is_survived_and_leaves_no_stampede() {
    outage(None);
}

#[test]
fn a_removal_takes_the_additions_along_in_time() {
    removals_do_not_wait(None);
}

#[test]
fn a_snapshot_replaces_the_whole_set() {
    snapshots_replace(None);
}

#[test]
fn each_service_has_its_own_rule_for_old_sets() {
    age_rules(None);
}

#[test]
fn dials_arrive_where_the_stream_is_open() {
    dials_travel(None);
}

#[test]
fn passive_errors_are_reported_and_change_nothing() {
    passive_reports(None);
}

#[test]
fn every_safeguard_is_missed() {
    let cases: [(Mutant, Scenario); 14] = [
        (Mutant::ResumeIgnoresRemovals, removal_while_disconnected),
        (Mutant::EmptySnapshotAccepted, nothing_new_is_not_nothing_there),
        (Mutant::NonContiguousDelta, silent_gap),
        (Mutant::NonAtomicSnapshot, snapshots_replace),
        (Mutant::RetentionByTimeOnly, outage),
        (Mutant::NoHeartbeat, silent_watch_loss),
        (Mutant::EjectionCapBefore, over_ejection),
        (Mutant::NoRelaySwitch, reject_loop),
        (Mutant::LowerIncarnationAccepted, incarnation_fork),
        (Mutant::RemovalWaitsForAdditions, removals_do_not_wait),
        (Mutant::ProxyWithoutFence, zombie_in_the_proxy),
        (Mutant::RejectWithoutBackOff, reject_loop),
        (Mutant::NoSnapshotBudget, full_sync_storm),
        (Mutant::HealthBeatsRemoval, removed_but_still_routed),
    ];
    for (mutant, scenario) in cases {
        scenario(None);
        let result = std::panic::catch_unwind(|| scenario(Some(mutant)));
        assert!(result.is_err(), "{mutant:?} goes unnoticed");
    }
}

#[test]
fn the_first_moment_is_no_special_case() {
    // Nobody has a set yet: a request ends at once and says why.
    let mut world = World::new(Setup::default());
    let outcome = world.request(0, cell(0), |_| AttemptResult::Served);
    assert_eq!(outcome, Outcome::NoBackend { attempts: 0 });
    world.run(Span::from_s(3));
    assert_eq!(world.now, Time::from_s(3));
    world.assert_converged();
    assert_eq!(world.proxies[0].view(cell(0)).unwrap().set().count(), 0, "known to be empty");
    silent_gap(None);
    assert!(!world.mutants().has(Mutant::NoHeartbeat));
}

#[test]
fn two_levels_of_relays_are_as_good_as_one() {
    // Proxies read relays 1 and 2, those read relay 0, that one the publisher (R85).
    let mut world = filled(Setup { relays: 3, chain: true, ..Setup::default() }, 5);
    assert!(world.proxies.iter().all(|node| node.relay() != Some(relay(0))));
    assert_eq!(world.publisher.as_ref().unwrap().server().streams(), 1);
    world.remove(cell(0), 2);
    world.run(Span::from_ms(100 + 3 * 80));
    world.assert_converged();
    let top = world.relay_down(0).unwrap();
    world.remove(cell(0), 3);
    world.run(Span::from_s(4));
    world.relay_up_warm(0, top);
    world.run(Span::from_s(30));
    world.assert_converged();
    assert_eq!(world.edge(Metric::SnapshotFallbacks) + world.tier(Metric::SnapshotFallbacks), 0);
}

#[test]
fn a_lost_policy_is_found_by_the_heartbeat() {
    let mut world = filled(setup(None), 1);
    world.faults.loss_pct = 100;
    world.next_policy();
    world.run(Span::from_s(1));
    assert!(world.proxies.iter().all(|node| node.policy_version() == 1));
    world.faults.loss_pct = 0;
    world.run(Span::from_s(3));
    world.assert_converged();
}

#[test]
fn nonsense_in_the_setup_neither_hangs_nor_panics() {
    let dials = ProxyDials { heartbeat: Span::ZERO, ..Setup::default().dials };
    let server = ServerConfig { heartbeat: Span::ZERO, ..Setup::default().server };
    let mut world = World::new(Setup { server, dials, ..Setup::default() });
    world.run(Span::from_ms(50));
    let mut alone = World::new(Setup { relays: 1, chain: true, proxies: 0, ..Setup::default() });
    alone.run(Span::from_s(1));
    let config = crate::proxy::ProxyConfig {
        id: crate::types::ProxyId(0),
        place: crate::types::Place::default(),
        relays: Vec::new(),
        home: 9,
        proof: 0,
        control_plane: 0,
        mutants: crate::mutants::Mutants::default(),
    };
    let policy = ProxyPolicy { version: 1, dials: ProxyDials::default() };
    let mut node = crate::proxy::Proxy::new(config, &[cell(0), cell(0)], policy);
    let mut out = crate::types::Out::new();
    node.on_event(Time::ZERO, ProxyInput::Start, 0, &mut out);
    assert_eq!(out.sends, [], "nobody to talk to");
    assert!(out.timers.iter().all(|timer| timer.at > Time::ZERO), "and no busy waiting");
    assert_eq!(node.cells().count(), 1);
}

#[test]
fn a_relay_that_cannot_prove_itself_is_left() {
    // R125: relay 0 does not belong to the control plane.
    let mut world = World::new(Setup { proxies: 2, ..Setup::default() });
    let config = ServerConfig { proof: 666, ..world.server };
    world.relays[0].as_mut().unwrap().configure(world.now, config);
    world.put(cell(0), endpoint(1, 10));
    world.run(Span::from_s(20));
    world.assert_converged();
    assert!(world.proxies.iter().all(|node| node.relay() == Some(relay(1))));
    assert!(world.edge(Metric::AuthRefused) >= 1);
    assert!(world.snapshots.iter().any(|(_, from, _)| *from == relay(0)), "it did try");
}

#[test]
fn lags_and_ages_are_measured() {
    // R93, R140, R141.
    let mut world = filled(setup(None), 3);
    world.lags.clear();
    let before = world.edge(Metric::WatchLagMs);
    world.remove(cell(0), 1);
    world.run(Span::from_s(1));
    assert_eq!(world.lags.len(), 3, "one in each proxy");
    // The window, and two hops of 20 to 80 ms.
    assert!(world.lags.iter().all(|lag_ms| (140..=260).contains(lag_ms)), "{:?}", world.lags);
    assert_eq!(world.edge(Metric::WatchLagMs) - before, world.lags.iter().sum::<u64>());
    let calm = world.proxies[0].age_max(world.now);
    assert!(calm <= Span::from_s(4), "two heartbeats: {calm:?}");
    world.quorum = false;
    world.run(Span::from_s(100));
    let age = world.proxies[0].age_max(world.now);
    assert!(age >= Span::from_s(99) && age <= Span::from_s(104), "{age:?}");
    let heard = world.now.since(world.proxies[0].link().last_contact());
    assert!(heard <= Span::from_s(3), "the relay still talks; what it says is old");
    assert!(world.edge(Metric::SnapshotAgeMs) > 0);
    assert_eq!(world.edge(Metric::SnapshotAgeAlerts), 3 * 2, "each set of each proxy, once");
}
