//! A two-phase fuzzer: faults with safety asserted all the time, then quiet, and everything has to heal.
//!
//! Each case draws which kinds of fault are on at all (a swarm), the fleet's size, the dials and the
//! schedule. A case is a function of (seed, number), so two numbers reproduce it on the same build; what
//! was found is also given as a schedule, made smaller as long as it still fails.

use crate::noise::{Draw, Noise};
use crate::schedule::{Action, Planned, Scenario, Stops};
use crate::topology::Shape;
use crate::world::{Goals, Setup, SetupError, Violation, World};
use oncall_core::{EpisodeKey, Generator, Split};
use oncall_discovery::dials::Dials;
use serde::{Deserialize, Serialize};

/// Faults happen until then, seconds.
const FAULTS_S: f64 = 60.0;
/// Time to heal after the last fault ends, seconds: a lease, the longest back-off twice, restarts.
const HEAL_S: f64 = 150.0;
/// Kinds of fault.
const KINDS: usize = 17;

/// Something that broke.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Seed of the campaign.
    pub seed: u64,
    /// Number of the case.
    pub case: u64,
    /// The first broken invariant.
    pub violation: Violation,
    /// The smallest schedule found that still breaks that invariant.
    pub setup: Setup,
}

/// What a campaign did.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Campaign {
    /// Cases played.
    pub cases: u64,
    /// What was reached, summed up.
    pub goals: Goals,
    /// Simulated seconds.
    pub simulated_s: f64,
    /// What broke.
    pub findings: Vec<Finding>,
}

/// The case of that number.
pub fn draw_case(seed: u64, case: u64) -> Setup {
    let noise = Noise::new(EpisodeKey::new(seed, case, Split::Test, Generator::Pcg));
    let u = |entity: u64, index: u64| noise.uniform(Draw::Fuzz, entity, index);
    let pick = |entity: u64, from: &[f64]| {
        from[noise.below(Draw::Fuzz, entity, 0, from.len() as u64) as usize]
    };
    let services = 2 + noise.below(Draw::Fuzz, 1, 0, 10) as u16;
    let shape = Shape {
        services,
        instances: u32::from(services) * (6 + noise.below(Draw::Fuzz, 2, 0, 15) as u32),
        nodes: 6 + noise.below(Draw::Fuzz, 3, 0, 24) as u16,
        subscriptions: 1 + noise.below(Draw::Fuzz, 4, 0, 8) as u16,
        shards: 1 + noise.below(Draw::Fuzz, 5, 0, 3) as u8,
        replicas: if u(6, 0) < 0.7 { 3 } else { 5 },
        relay_share: 0.125,
        rollout: 10,
        target_load: if u(8, 0) < 0.5 { 0.6 } else { 0.0 },
        ..Shape::default()
    };
    let default = Dials::default();
    // Half of the cases keep the defaults, so that both are covered.
    let mut dials = if u(7, 0) < 0.5 {
        default
    } else {
        Dials {
            probe_interval_s: pick(10, &[2.0, 3.0, 5.0]),
            probe_timeout_s: pick(11, &[0.2, 0.5, 1.0]),
            failure_threshold: pick(12, &[1.0, 2.0, 3.0, 5.0]),
            confirming_probers: pick(13, &[1.0, 2.0, 3.0]),
            guard_share_pct: pick(14, &[5.0, 30.0, 100.0]),
            coalesce_removals_ms: pick(15, &[0.0, 100.0, 1_000.0]),
            coalesce_additions_ms: pick(16, &[0.0, 500.0, 5_000.0]),
            delta_retention_s: pick(17, &[10.0, 120.0]),
            admission_per_s: pick(18, &[20.0, 200.0]),
            reconnect_jitter_pct: pick(19, &[0.0, 50.0, 100.0]),
            head_heartbeat_s: pick(20, &[2.0, 10.0]),
            ejection_errors: pick(21, &[1.0, 3.0]),
            retries_max: pick(22, &[0.0, 1.0, 3.0]),
            drain_period_s: pick(23, &[0.0, 5.0, 30.0]),
            ..default
        }
    };
    let on: Vec<bool> = (0..KINDS as u64).map(|kind| u(30, kind) < 0.4).collect();
    let mut plan = Vec::new();
    let count = 2 + noise.below(Draw::Fuzz, 31, 0, 10);
    for number in 0..count {
        let kind = noise.below(Draw::Fuzz, 32, number, KINDS as u64) as usize;
        if on[kind] || number == 0 {
            let at_s = 2.0 + u(33, number) * (FAULTS_S - 4.0);
            plan.push(Planned { at_s, action: draw_action(noise, number, kind, &shape) });
        }
    }
    if u(34, 0) < CUT_AT_EXPIRY {
        plan.extend(cut_at_expiry(noise, &shape, &mut dials));
    }
    plan.sort_by(|a, b| a.at_s.total_cmp(&b.at_s));
    let mut scenario = Scenario {
        name: format!("fuzz-{seed}-{case}"),
        about: "drawn by the fuzzer".to_owned(),
        length_s: 0.0,
        plan,
    };
    scenario.length_s = scenario.quiet_after_s().max(FAULTS_S) + HEAL_S;
    Setup { shape, scenario, dials, seed: noise.word(Draw::Fuzz, 40, 0), verify: true }
}

/// Share of the cases in which a leader is cut off while leases run out.
const CUT_AT_EXPIRY: f64 = 0.04;
/// Between two renewals in these cases, seconds.
const RENEWAL_S: f64 = 3.0;

/// Half of the nodes vanish for so long that their leases run out, and meanwhile a leader is cut off. Chance alone
/// hardly ever meets what this is for: leases run out within one renewal of each other, the old leader notices after a
/// second or two, and of what it writes until then the first entry is overwritten by its successor's barrier. The ones
/// after it, whose places in the log nobody fills, are asked of the successor, which refuses them. So leases have to
/// run out close together, and not long before or after the cut.
fn cut_at_expiry(noise: Noise, shape: &Shape, dials: &mut Dials) -> [Planned; 2] {
    let u = |index: u64| noise.uniform(Draw::Fuzz, 35, index);
    dials.renewal_interval_s = RENEWAL_S;
    let died_s = 2.0 + 15.0 * u(0);
    let cut_s = died_s + dials.lease_ttl_s - RENEWAL_S * u(1);
    let nodes = Action::Nodes { nodes: shape.nodes / 2, back_s: dials.lease_ttl_s + 10.0 };
    let region = noise.below(Draw::Fuzz, 36, 0, 3) as u8;
    let cut = Action::LeaderCut { region, for_s: 5.0 + 10.0 * u(2) };
    [Planned { at_s: died_s, action: nodes }, Planned { at_s: cut_s, action: cut }]
}

fn draw_action(noise: Noise, number: u64, kind: usize, shape: &Shape) -> Action {
    let u = |index: u64| noise.uniform(Draw::Fuzz, 100 + number, index);
    let below = |index: u64, count: u64| noise.below(Draw::Fuzz, 100 + number, index, count);
    let for_s = 1.0 + 30.0 * u(0);
    let region = below(1, 3) as u8;
    let relay = below(2, 4) as u16;
    match kind {
        0 => Action::Rollout {
            endpoints: 1 + below(3, 30) as u32,
            services: 1 + below(4, 5) as u16,
            popular: u(5) < 0.5,
        },
        1 => {
            Action::Crashes { instances: 1 + below(3, 8) as u32, over_s: for_s, freeze: u(4) < 0.5 }
        }
        2 => Action::Churn { per_s: 0.2 + 2.0 * u(3), for_s },
        3 => Action::Nodes { nodes: 1 + below(3, 3) as u16, back_s: 5.0 + for_s },
        4 => Action::BadDependency {
            services: 1 + below(3, u64::from(shape.services)) as u16,
            // Every fourth one is of one region, and may fail everything.
            region: (u(6) < 0.25).then_some(region),
            for_s,
            fails: if u(6) < 0.25 { u(4) } else { 0.3 * u(4) },
            slow_s: if u(5) < 0.5 { 0.5 * for_s } else { 0.0 },
        },
        5 => Action::BadProber { region, for_s },
        6 => Action::BadZoneLink { region, zone: below(3, 3) as u8, loss: 0.3 + 0.7 * u(4), for_s },
        7 => Action::Outage {
            region: (u(3) < 0.5).then_some(region),
            for_s,
            stops: Stops {
                catalog: u(4) < 0.7,
                relays: u(5) < 0.7,
                probers: u(6) < 0.5,
                cold: u(7) < 0.5,
            },
        },
        8 => Action::RelayRestart { share: u(3), cold: u(4) < 0.5 },
        9 => Action::ProxyCut { proxies: 1 + below(3, 6) as u16, for_s },
        10 => Action::QuorumLoss { region, for_s },
        11 => Action::DropDeltas { relay, share: u(3), for_s },
        12 => Action::Corrupt { relay, share: u(3), for_s },
        13 => match below(3, 3) {
            0 => Action::Silent { relay, for_s },
            1 => Action::Partition { region, for_s },
            _ => Action::LagFollowers { region, lag_s: 0.2 + 3.0 * u(4), for_s },
        },
        14 => Action::LeaderCrash { region, back_s: for_s },
        15 => Action::Revoke { instances: 1 + below(3, 6) as u32, for_s },
        _ => Action::LeaderCut { region, for_s },
    }
}

/// Plays a setup: the first broken invariant, if any, and the world as it ended.
pub fn play(setup: &Setup) -> Result<(Option<Violation>, World), SetupError> {
    let mut world = World::new(setup.clone())?;
    world.run();
    world.check_healed();
    world.check_accounts();
    Ok((world.violations().first().cloned(), world))
}

/// Makes a failing setup smaller as long as it breaks the same invariant: fewer actions, shorter ones,
/// the default dials.
pub fn shrink(setup: &Setup, invariant: &str) -> Result<Setup, SetupError> {
    let mut best = setup.clone();
    let fails = |candidate: &Setup| -> Result<bool, SetupError> {
        Ok(play(candidate)?.0.is_some_and(|violation| violation.invariant == invariant))
    };
    let mut progress = true;
    while progress {
        progress = false;
        for at in (0..best.scenario.plan.len()).rev() {
            let mut candidate = best.clone();
            candidate.scenario.plan.remove(at);
            if fails(&candidate)? {
                (best, progress) = (candidate, true);
            }
        }
    }
    let plain = Setup { dials: Dials::default(), ..best.clone() };
    if plain.dials != best.dials && fails(&plain)? {
        best = plain;
    }
    for at in 0..best.scenario.plan.len() {
        let mut candidate = best.clone();
        candidate.scenario.plan[at].action = halved(candidate.scenario.plan[at].action);
        if candidate != best && fails(&candidate)? {
            best = candidate;
        }
    }
    Ok(best)
}

/// The same for half as long, or half as many.
fn halved(action: Action) -> Action {
    let mut action = action;
    match &mut action {
        Action::Churn { for_s, .. }
        | Action::BadDependency { for_s, .. }
        | Action::Revoke { for_s, .. }
        | Action::LeaderCut { for_s, .. }
        | Action::BadProber { for_s, .. }
        | Action::BadZoneLink { for_s, .. }
        | Action::Outage { for_s, .. }
        | Action::ProxyCut { for_s, .. }
        | Action::QuorumLoss { for_s, .. }
        | Action::Partition { for_s, .. }
        | Action::DropDeltas { for_s, .. }
        | Action::Corrupt { for_s, .. }
        | Action::Silent { for_s, .. }
        | Action::LagFollowers { for_s, .. } => *for_s /= 2.0,
        Action::Nodes { back_s, .. } | Action::LeaderCrash { back_s, .. } => *back_s /= 2.0,
        Action::Rollout { endpoints, .. } => *endpoints = (*endpoints / 2).max(1),
        Action::Crashes { instances, .. } => *instances = (*instances / 2).max(1),
        Action::RelayRestart { share, .. } => *share /= 2.0,
    }
    action
}

/// Plays the cases from `first` on while `go_on` says so, and shrinks what fails.
pub fn campaign(
    seed: u64,
    first: u64,
    mut go_on: impl FnMut(&Campaign) -> bool,
) -> Result<Campaign, SetupError> {
    let mut campaign = Campaign::default();
    while go_on(&campaign) {
        let case = first + campaign.cases;
        let setup = draw_case(seed, case);
        let (violation, world) = play(&setup)?;
        campaign.cases += 1;
        campaign.goals.add(world.goals());
        campaign.simulated_s += setup.scenario.length_s;
        if let Some(violation) = violation {
            let setup = shrink(&setup, &violation.invariant)?;
            campaign.findings.push(Finding { seed, case, violation, setup });
        }
    }
    Ok(campaign)
}
