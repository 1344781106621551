//! From the numbers of an episode to a schedule of the simulator, and what the calendar and the truths
//! say about it.

use crate::params::{FAULTS_MAX, Fault, Kind, Numbers, common};
use oncall_core::streams::Purpose;
use oncall_core::{EpisodeKey, fnv1a};
use oncall_discovery_sim::schedule::{Action, Planned, Scenario, Stops};
use oncall_discovery_sim::topology::{REGIONS, Shape};
use serde::{Deserialize, Serialize};

/// Seconds that the simulator plays before an episode begins: one calm minute to scrape.
pub const WARM_UP_S: f64 = 60.0;

/// When what does not happen is planned: after the end of every episode.
const NEVER_S: f64 = 1e9;

/// Places of a schedule before those of the faults: churn, and two kinds of death.
const BACKGROUND: usize = 3;

/// One fault as it will happen, on the clock of the episode.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its place in the schedule.
    pub plan: u16,
    /// When it begins, minutes.
    pub from_min: f64,
    /// When it ends, minutes.
    pub to_min: f64,
    /// Region whose control plane it stops, by bits.
    pub stops: u8,
    /// Endpoints over the fleet and services over all, of a rollout.
    pub rollout: Option<(f64, f64)>,
}

/// A schedule, and what it means to the environment.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// For the simulator.
    pub scenario: Scenario,
    /// The faults that happen.
    pub windows: Vec<Window>,
}

/// The schedule of an episode. The places of faults follow from their kinds and keys, so that a fault more
/// or less moves no other, and with it nothing that is drawn by its place.
pub fn schedule(numbers: &Numbers, shape: &Shape, key: EpisodeKey) -> Plan {
    let never = Planned { at_s: NEVER_S, action: Action::Churn { per_s: 0.0, for_s: 0.0 } };
    let mut plan = vec![never; BACKGROUND + Kind::ALL.len() * FAULTS_MAX];
    background(numbers, shape, &mut plan);
    let mut windows = Vec::new();
    for fault in &numbers.faults {
        let place = BACKGROUND
            + fault.kind as usize * FAULTS_MAX
            + (fault.values[common::KEY] as usize).min(FAULTS_MAX - 1);
        let chance = fault.values[common::CHANCE];
        if chance < 1.0 {
            let name = format!("{}[{}]?", fault.kind.name(), fault.values[common::KEY]);
            let mut stream = key.stream(Purpose::Scenario, fnv1a(name.as_bytes()));
            if stream.uniform() >= chance {
                continue;
            }
        }
        let at_min = numbers.at_min(fault);
        let at_s = WARM_UP_S + 60.0 * at_min;
        let action = action(fault, shape);
        plan[place] = Planned { at_s, action };
        precursor(fault, at_s, &mut plan);
        let stops = match action {
            Action::Outage { region: None, .. } => (1 << REGIONS) - 1,
            Action::Outage { region: Some(region), .. } => 1 << region,
            _ => 0,
        };
        let rollout = match action {
            Action::Rollout { endpoints, services, .. } => Some((
                f64::from(endpoints) / f64::from(shape.instances),
                f64::from(services) / f64::from(shape.services),
            )),
            _ => None,
        };
        let to_min = at_min + action.lasts_s() / 60.0;
        windows.push(Window { plan: place as u16, from_min: at_min, to_min, stops, rollout });
    }
    let scenario = Scenario {
        name: String::new(),
        about: String::new(),
        length_s: WARM_UP_S + 60.0 * numbers.length_min(),
        plan,
    };
    Plan { scenario, windows }
}

/// Ordinary churn and deaths: every second one freezes.
fn background(numbers: &Numbers, shape: &Shape, plan: &mut [Planned]) {
    let (churn_per_h, crashes_per_h) = numbers.churn_and_crashes_per_h();
    let instances = f64::from(shape.instances);
    let for_s = 60.0 * numbers.length_min() + WARM_UP_S;
    if churn_per_h > 0.0 {
        let per_s = churn_per_h * instances / 3600.0;
        plan[0] = Planned { at_s: 1.0, action: Action::Churn { per_s, for_s } };
    }
    let deaths = crashes_per_h * instances * for_s / 3600.0;
    for (at, freeze) in [(1, false), (2, true)] {
        // The two kinds alternate: half a gap lies between their first deaths.
        let count = (0.5 * deaths).round();
        if count > 0.0 {
            let gap_s = for_s / count;
            let action = Action::Crashes { instances: count as u32, over_s: for_s, freeze };
            plan[at] = Planned { at_s: 1.0 + 0.5 * gap_s * (at - 1) as f64, action };
        }
    }
}

/// Slower writes and lagging followers before an outage: half as much first, then all of it.
fn precursor(fault: &Fault, at_s: f64, plan: &mut Vec<Planned>) {
    if fault.kind != Kind::Outage {
        return;
    }
    let (before_s, lag_s) = (60.0 * fault.own(3), fault.own(4));
    if before_s <= 0.0 || lag_s <= 0.0 {
        return;
    }
    let half_s = 0.5 * before_s;
    for region in 0..REGIONS as u8 {
        if fault.own(0) < 0.0 || fault.own(0) as u8 == region {
            for (from_s, lag_s) in [(at_s - before_s, 0.5 * lag_s), (at_s - half_s, lag_s)] {
                let action = Action::LagFollowers { region, lag_s, for_s: half_s };
                plan.push(Planned { at_s: from_s, action });
            }
        }
    }
}

/// A count from a share, at least one.
fn some(share: f64, of: f64) -> f64 {
    (share * of).round().max(1.0)
}

/// What a fault is in the simulator.
fn action(fault: &Fault, shape: &Shape) -> Action {
    let own = |index: usize| fault.own(index);
    let for_s = |index: usize| 60.0 * fault.own(index);
    let (instances, nodes) = (f64::from(shape.instances), f64::from(shape.nodes));
    let services = f64::from(shape.services);
    let region = own(0).max(0.0) as u8;
    // Relays of a region at the default of their dial.
    let relays = (16.0 * shape.relay_share).round().max(2.0) as u16;
    let relay = own(0).max(0.0) as u16 % relays;
    match fault.kind {
        Kind::Rollout => Action::Rollout {
            endpoints: some(own(0), instances) as u32,
            services: some(own(1), services) as u16,
            popular: own(2) > 0.5,
        },
        Kind::CrashWave => Action::Crashes {
            instances: some(own(0), instances) as u32,
            over_s: for_s(1),
            freeze: own(2) > 0.5,
        },
        Kind::NodeFailure => Action::Nodes { nodes: some(own(0), nodes) as u16, back_s: own(1) },
        Kind::BadDependency => Action::BadDependency {
            services: some(own(0), services) as u16,
            region: (own(4) >= 0.0).then_some(own(4) as u8),
            for_s: for_s(1),
            fails: own(2),
            slow_s: for_s(3).min(0.5 * for_s(1)),
        },
        Kind::BadProber => Action::BadProber { region, for_s: for_s(1) },
        Kind::BadZoneLink => {
            Action::BadZoneLink { region, zone: own(1) as u8, loss: own(2), for_s: for_s(3) }
        }
        Kind::Outage => Action::Outage {
            region: (own(0) >= 0.0).then_some(region),
            for_s: for_s(1),
            stops: if own(2) > 0.5 { Stops::COLD } else { Stops::WARM },
        },
        Kind::RelayRestart => Action::RelayRestart { share: own(0), cold: own(1) > 0.5 },
        Kind::ProxyCut => Action::ProxyCut { proxies: some(own(0), nodes) as u16, for_s: for_s(1) },
        Kind::QuorumLoss => Action::QuorumLoss { region, for_s: for_s(1) },
        Kind::Partition => Action::Partition { region, for_s: for_s(1) },
        Kind::DeltaDrop => Action::DropDeltas { relay, share: own(1), for_s: for_s(2) },
        Kind::Corruption => Action::Corrupt { relay, share: own(1), for_s: for_s(2) },
        Kind::Silence => Action::Silent { relay, for_s: for_s(1) },
        Kind::FollowerLag => Action::LagFollowers { region, lag_s: own(1), for_s: for_s(2) },
        Kind::LeaderCrash => Action::LeaderCrash { region, back_s: own(1) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::Params;
    use oncall_core::{Generator, Split};
    use oncall_discovery_sim::topology::Scale;

    fn key() -> EpisodeKey {
        EpisodeKey::new(1, 0, Split::Train, Generator::Pcg)
    }

    /// One fault of every kind, with its defaults.
    fn all() -> Numbers {
        let mut numbers = Params::defaults("test").numbers;
        for (at, &kind) in Kind::ALL.iter().enumerate() {
            let mut fault = Fault::defaults(kind, at % FAULTS_MAX);
            fault.values[common::AT] = 5.0 + at as f64;
            numbers.faults.push(fault);
        }
        numbers
    }

    #[test]
    fn every_kind_becomes_its_action() {
        let plan = schedule(&all(), &Scale::Small.env_shape(), key());
        assert_eq!(plan.windows.len(), Kind::ALL.len());
        let actions: Vec<Action> = (plan.windows.iter())
            .map(|window| plan.scenario.plan[usize::from(window.plan)].action)
            .collect();
        assert!(matches!(
            actions[0],
            Action::Rollout { endpoints: 100, services: 2, popular: false }
        ));
        assert!(matches!(
            actions[1],
            Action::Crashes { instances: 10, over_s: 120.0, freeze: false }
        ));
        assert!(matches!(actions[2], Action::Nodes { nodes: 1, back_s: 75.0 }));
        assert!(matches!(actions[6], Action::Outage { region: None, for_s: 600.0, .. }));
        assert!(matches!(actions[15], Action::LeaderCrash { region: 0, back_s: 10.0 }));
        let kinds: std::collections::BTreeSet<String> = (actions.iter())
            .map(|action| format!("{action:?}").split(' ').next().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(kinds.len(), Kind::ALL.len(), "{kinds:?}");
        for (at, window) in plan.windows.iter().enumerate() {
            let planned = plan.scenario.plan[usize::from(window.plan)];
            assert_eq!(planned.at_s, WARM_UP_S + 600.0 + 60.0 * at as f64);
        }
        assert_eq!(plan.windows[6].stops, 0b111);
    }

    #[test]
    fn an_outage_is_announced_by_its_precursor() {
        let plan = schedule(&all(), &Scale::Small.env_shape(), key());
        let at_s = WARM_UP_S + 60.0 * 16.0;
        let lags: Vec<(f64, f64)> = (plan.scenario.plan.iter())
            .filter_map(|planned| match planned.action {
                Action::LagFollowers { region: 2, lag_s, for_s: 120.0 } => {
                    Some((planned.at_s, lag_s))
                }
                _ => None,
            })
            .collect();
        assert_eq!(lags, [(at_s - 240.0, 0.25), (at_s - 120.0, 0.5)]);
    }

    #[test]
    fn a_fault_less_moves_no_other() {
        let mut fewer = all();
        fewer.faults.remove(1);
        let shape = Scale::Tenth.env_shape();
        let (all, fewer) = (schedule(&all(), &shape, key()), schedule(&fewer, &shape, key()));
        let places = |plan: &Plan| plan.windows.iter().map(|w| w.plan).collect::<Vec<_>>();
        let mut expected = places(&all);
        expected.remove(1);
        assert_eq!(places(&fewer), expected);
    }

    #[test]
    fn chance_decides_by_its_own_stream() {
        let mut numbers = all();
        for fault in &mut numbers.faults {
            fault.values[common::CHANCE] = 0.5;
        }
        let shape = Scale::Small.env_shape();
        let mut happened = 0;
        for seed in 0..40 {
            let key = EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg);
            happened += schedule(&numbers, &shape, key).windows.len();
        }
        // 640 coins: five standard deviations are 63.
        assert!((257..=383).contains(&happened), "{happened}");
    }
}
