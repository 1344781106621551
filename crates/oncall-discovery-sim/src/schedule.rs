//! Scenarios and faults as data: what happens, when, to whom. Everything random about them is keyed.

use serde::{Deserialize, Serialize};

/// Which parts of the control plane an outage stops (D18).
#[expect(clippy::struct_excessive_bools, reason = "four independent yes-or-no facts of a schedule")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stops {
    /// Catalog replicas: no writes, no elections.
    pub catalog: bool,
    /// Relays: all streams break.
    pub relays: bool,
    /// Probers.
    pub probers: bool,
    /// Whether relays come back without their delta logs.
    pub cold: bool,
}

impl Stops {
    /// Everything, and relays come back with their logs.
    pub const WARM: Self = Self { catalog: true, relays: true, probers: true, cold: false };
    /// Everything, and relays come back with nothing.
    pub const COLD: Self = Self { cold: true, ..Self::WARM };
}

/// One thing that a schedule does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Action {
    /// Replaces endpoints at the pace of the dial, spread over the most popular, or over random services.
    Rollout {
        /// Endpoints to replace.
        endpoints: u32,
        /// Services over which they are spread.
        services: u16,
        /// Whether these are the most popular ones.
        popular: bool,
    },
    /// Instances die without notice, spread evenly over a time (R107).
    Crashes {
        /// How many.
        instances: u32,
        /// Over so many seconds.
        over_s: f64,
        /// Whether the process freezes (probes time out) or is gone (connections are refused).
        freeze: bool,
    },
    /// Ordinary churn: instances are moved to other nodes.
    Churn {
        /// Moves a second.
        per_s: f64,
        /// For so long.
        for_s: f64,
    },
    /// Whole nodes vanish (R156).
    Nodes {
        /// How many.
        nodes: u16,
        /// They come back after so long, with the same addresses and newer generations; never if 0.
        back_s: f64,
    },
    /// The readiness of services fails through a shared dependency, although most of their requests, or all,
    /// can be served (R115).
    BadDependency {
        /// How many services.
        services: u16,
        /// Region in which they depend on it, and then services come first whose reads may go elsewhere; all
        /// regions and any services if `None`.
        #[serde(default)]
        region: Option<u8>,
        /// For so long, the lead-in included.
        for_s: f64,
        /// Share of the attempts that fail there, each on its own.
        #[serde(default)]
        fails: f64,
        /// Before anything fails the dependency is slow for so long: probes take longer and longer, and those
        /// whose timeout is long enough still pass.
        #[serde(default)]
        slow_s: f64,
    },
    /// Identities of instances are revoked: whoever connects refuses them, whatever its view says (R41).
    Revoke {
        /// How many instances.
        instances: u32,
        /// Until they are given new ones.
        for_s: f64,
    },
    /// The leaders of a region's groups are cut off from their followers, and go on until they notice.
    LeaderCut {
        /// Region.
        region: u8,
        /// For so long.
        for_s: f64,
    },
    /// One prober of a region sees every probe fail.
    BadProber {
        /// Region.
        region: u8,
        /// For so long.
        for_s: f64,
    },
    /// The link of a zone to the probers loses packets in bursts.
    BadZoneLink {
        /// Region.
        region: u8,
        /// Zone.
        zone: u8,
        /// Share of probes lost while a burst lasts.
        loss: f64,
        /// For so long.
        for_s: f64,
    },
    /// The control plane of a region stops (R162).
    Outage {
        /// Region; all of them if `None`.
        region: Option<u8>,
        /// For so long.
        for_s: f64,
        /// What stops.
        stops: Stops,
    },
    /// Relays restart at once: their streams drop (R163).
    RelayRestart {
        /// Share of the relays.
        share: f64,
        /// Whether their delta logs are lost.
        cold: bool,
    },
    /// Proxies lose the network to the control plane (R155).
    ProxyCut {
        /// How many.
        proxies: u16,
        /// For so long.
        for_s: f64,
    },
    /// A region's groups lose their quorum: all replicas but one stop (R159).
    QuorumLoss {
        /// Region.
        region: u8,
        /// For so long.
        for_s: f64,
    },
    /// A region is cut off from the others; within it everything works.
    Partition {
        /// Region.
        region: u8,
        /// For so long.
        for_s: f64,
    },
    /// A relay drops deliveries (R160).
    DropDeltas {
        /// Relay within region 0.
        relay: u16,
        /// Share dropped.
        share: f64,
        /// For so long.
        for_s: f64,
    },
    /// A relay serves bytes whose checksum does not match (R161).
    Corrupt {
        /// Relay within region 0.
        relay: u16,
        /// Share of its deltas and snapshots.
        share: f64,
        /// For so long.
        for_s: f64,
    },
    /// A relay keeps its streams open and sends nothing.
    Silent {
        /// Relay within region 0.
        relay: u16,
        /// For so long.
        for_s: f64,
    },
    /// Followers, and with them publication, lag (R157).
    LagFollowers {
        /// Region.
        region: u8,
        /// By so much.
        lag_s: f64,
        /// For so long.
        for_s: f64,
    },
    /// The leaders of a region's groups crash and come back (R158).
    LeaderCrash {
        /// Region.
        region: u8,
        /// Back after so long.
        back_s: f64,
    },
}

/// An action at a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// Seconds from the start.
    pub at_s: f64,
    /// What.
    pub action: Action,
}

/// A scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Name.
    pub name: String,
    /// One sentence.
    pub about: String,
    /// Length, seconds.
    pub length_s: f64,
    /// What happens.
    pub plan: Vec<Planned>,
}

/// Names of the shipped scenarios and what they are.
pub const SHIPPED: &[(&str, &str)] = &[
    ("calm", "ordinary churn, no fault"),
    ("rollout", "N1: a large deployment replaces a tenth of the fleet, over 200 services"),
    ("rollout-hot", "N1: the same, all in the most popular service"),
    ("crash-wave", "N2: 1 % of the instances freeze or die over two minutes"),
    ("nodes", "N3: nodes vanish with all their instances, and return"),
    ("bad-dependency", "N4: a shared dependency fails the readiness of services that can serve"),
    ("revoked", "the identities of 1 % of the instances are revoked; views still hold them"),
    ("bad-prober", "N4: one prober sees every probe fail"),
    ("bad-zone-link", "N4: the link of one zone loses probes in bursts"),
    ("outage", "N5: the control plane stops for ten minutes and returns warm, under churn"),
    ("outage-cold", "N5: the same, and the relays return without their logs"),
    ("reconnect-storm", "N6: all relays restart at once, warm"),
    ("reconnect-storm-cold", "N6: all relays restart at once, without their logs"),
    ("quorum-loss", "N7: a region's catalog cannot write for five minutes"),
    ("bad-relay", "N8: one relay serves bad bytes, drops deltas, then goes silent"),
    ("leader-change", "N9: leaders crash during a rollout while followers lag"),
];

impl Scenario {
    /// A shipped scenario, sized for a fleet.
    pub fn shipped(name: &str, shape: &crate::topology::Shape) -> Option<Self> {
        let about = SHIPPED.iter().find(|(known, _)| *known == name)?.1;
        let share = |x: f64| ((f64::from(shape.instances) * x) as u32).max(2);
        let some = |x: f64, n: u16| ((f64::from(n) * x) as u16).max(1);
        let churn = |for_s: f64| {
            (1.0, Action::Churn { per_s: (f64::from(shape.instances) * 2e-5).max(0.25), for_s })
        };
        let spread = Action::Rollout {
            endpoints: shape.rollout,
            // Never so few that whole services are replaced at once.
            services: some(0.1, shape.services)
                .max((2 * shape.rollout * u32::from(shape.services) / shape.instances) as u16),
            popular: false,
        };
        let hot = Action::Rollout { endpoints: shape.rollout, services: 1, popular: true };
        let crashes = |freeze| Action::Crashes { instances: share(0.005), over_s: 120.0, freeze };
        let deaths = Action::Crashes { instances: share(0.01), over_s: 590.0, freeze: false };
        let outage = |stops| Action::Outage { region: None, for_s: 600.0, stops };
        let (length_s, plan): (f64, Vec<(f64, Action)>) = match name {
            "calm" => (120.0, vec![churn(100.0)]),
            "rollout" => (300.0, vec![(20.0, spread)]),
            "rollout-hot" => (300.0, vec![(20.0, hot)]),
            "crash-wave" => (240.0, vec![(20.0, crashes(true)), (20.0, crashes(false))]),
            "nodes" => (
                300.0,
                vec![(20.0, Action::Nodes { nodes: some(0.005, shape.nodes), back_s: 75.0 })],
            ),
            "bad-dependency" => (
                300.0,
                vec![(
                    20.0,
                    Action::BadDependency {
                        services: some(0.02, shape.services),
                        region: None,
                        for_s: 120.0,
                        fails: 0.15,
                        slow_s: 20.0,
                    },
                )],
            ),
            "revoked" => {
                (120.0, vec![(20.0, Action::Revoke { instances: share(0.01), for_s: 60.0 })])
            }
            "bad-prober" => (200.0, vec![(20.0, Action::BadProber { region: 0, for_s: 90.0 })]),
            "bad-zone-link" => (
                200.0,
                vec![(20.0, Action::BadZoneLink { region: 0, zone: 1, loss: 0.9, for_s: 90.0 })],
            ),
            "outage" => (900.0, vec![churn(800.0), (60.0, outage(Stops::WARM)), (65.0, deaths)]),
            "outage-cold" => {
                (900.0, vec![churn(800.0), (60.0, outage(Stops::COLD)), (65.0, deaths)])
            }
            "reconnect-storm" => (
                240.0,
                vec![churn(200.0), (30.0, Action::RelayRestart { share: 1.0, cold: false })],
            ),
            "reconnect-storm-cold" => {
                (400.0, vec![churn(300.0), (30.0, Action::RelayRestart { share: 1.0, cold: true })])
            }
            "quorum-loss" => {
                (500.0, vec![churn(400.0), (30.0, Action::QuorumLoss { region: 0, for_s: 300.0 })])
            }
            "bad-relay" => (
                300.0,
                vec![
                    churn(250.0),
                    (20.0, Action::Corrupt { relay: 0, share: 0.5, for_s: 60.0 }),
                    (20.0, Action::DropDeltas { relay: 1, share: 0.3, for_s: 60.0 }),
                    (90.0, Action::Silent { relay: 0, for_s: 60.0 }),
                ],
            ),
            "leader-change" => (
                300.0,
                vec![
                    (20.0, spread),
                    (30.0, Action::LagFollowers { region: 0, lag_s: 1.0, for_s: 60.0 }),
                    (60.0, Action::LeaderCrash { region: 0, back_s: 10.0 }),
                ],
            ),
            _ => return None,
        };
        let plan = plan.into_iter().map(|(at_s, action)| Planned { at_s, action }).collect();
        Some(Self { name: name.to_owned(), about: about.to_owned(), length_s, plan })
    }

    /// When the last fault ends, seconds: from here on the system has to heal.
    pub fn quiet_after_s(&self) -> f64 {
        self.plan.iter().map(|planned| planned.at_s + planned.action.lasts_s()).fold(0.0, f64::max)
    }

    /// When the last disturbance of the control plane ends, seconds; churn, rollouts and deaths are none.
    pub fn disturbed_until_s(&self) -> f64 {
        let disturbs = |action: &Action| {
            !matches!(
                action,
                Action::Churn { .. } | Action::Rollout { .. } | Action::Crashes { .. }
            )
        };
        let plan = self.plan.iter().filter(|planned| disturbs(&planned.action));
        plan.map(|planned| planned.at_s + planned.action.lasts_s()).fold(0.0, f64::max)
    }
}

impl Action {
    /// How long it lasts, seconds, as far as the schedule says.
    pub fn lasts_s(&self) -> f64 {
        match *self {
            Self::Rollout { .. } | Self::RelayRestart { .. } => 0.0,
            Self::Crashes { over_s, .. } => over_s,
            Self::Nodes { back_s, .. } | Self::LeaderCrash { back_s, .. } => back_s,
            Self::Churn { for_s, .. }
            | Self::BadDependency { for_s, .. }
            | Self::Revoke { for_s, .. }
            | Self::LeaderCut { for_s, .. }
            | Self::BadProber { for_s, .. }
            | Self::BadZoneLink { for_s, .. }
            | Self::Outage { for_s, .. }
            | Self::ProxyCut { for_s, .. }
            | Self::QuorumLoss { for_s, .. }
            | Self::Partition { for_s, .. }
            | Self::DropDeltas { for_s, .. }
            | Self::Corrupt { for_s, .. }
            | Self::Silent { for_s, .. }
            | Self::LagFollowers { for_s, .. } => for_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Scale;

    #[test]
    fn every_shipped_scenario_exists_and_ends_before_it_is_over() {
        for scale in Scale::ALL {
            for (name, _) in SHIPPED {
                let scenario = Scenario::shipped(name, &scale.shape()).unwrap();
                assert!(scenario.quiet_after_s() < scenario.length_s, "{name}");
                let text = serde_json::to_string(&scenario).unwrap();
                assert_eq!(serde_json::from_str::<Scenario>(&text).unwrap(), scenario);
            }
        }
        assert!(Scenario::shipped("unknown", &Scale::Full.shape()).is_none());
    }
}
