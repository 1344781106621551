//! The verification of R151 to R168: each requirement a run, each run a figure.
//!
//! Nothing here multiplies settings (R168): a check plays its fault against the real components and
//! reads the timeline. Where a bound is stated it is the specification's, or named in the check.

use crate::report::Report;
use crate::schedule::{Action, Planned, Scenario, Stops};
use crate::topology::{REGIONS, Scale, Shape};
use crate::world::{Kind, Setup, SetupError, Timeline, World};
use oncall_discovery::dials::Dials;
use serde::Serialize;

/// A requirement that was checked.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// Requirement.
    pub requirement: &'static str,
    /// What was done.
    pub name: &'static str,
    /// Whether it holds.
    pub passed: bool,
    /// What was measured.
    pub figure: String,
}

/// Dials that meet the fifteen seconds: fast probes, a high threshold, a short timeout, and a guard that
/// lets a failed node go.
pub fn tuned() -> Dials {
    Dials {
        probe_interval_s: 2.0,
        failure_threshold: 5.0,
        probe_timeout_s: 0.5,
        guard_share_pct: 60.0,
        ..Dials::default()
    }
}

/// A world that is played through, and what it showed.
struct Played {
    world: World,
    report: Report,
}

struct Bench {
    shape: Shape,
    scale: Scale,
    seed: u64,
}

impl Bench {
    fn play(
        &self,
        length_s: f64,
        dials: &Dials,
        plan: &[(f64, Action)],
    ) -> Result<Played, SetupError> {
        let plan = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
        let scenario = Scenario { name: "verify".to_owned(), about: String::new(), length_s, plan };
        let setup = Setup {
            shape: self.shape,
            scenario,
            dials: *dials,
            seed: self.seed,
            verify: self.scale == Scale::Small,
        };
        let mut world = World::new(setup)?;
        world.run();
        world.check_healed();
        world.check_accounts();
        let report = Report::of(&world);
        Ok(Played { world, report })
    }

    fn share(&self, x: f64) -> u32 {
        ((f64::from(self.shape.instances) * x) as u32).max(4)
    }

    /// A rollout over services of which none is replaced as a whole.
    fn rollout(&self) -> Action {
        let least = 2 * self.shape.rollout * u32::from(self.shape.services) / self.shape.instances;
        let services = (self.shape.services / 10).max(least as u16);
        Action::Rollout { endpoints: self.shape.rollout, services, popular: false }
    }

    fn churn(&self, for_s: f64) -> (f64, Action) {
        let per_s = (f64::from(self.shape.instances) * 2e-5).max(0.25);
        (1.0, Action::Churn { per_s, for_s })
    }
}

impl Played {
    /// No invariant broken, everything healed.
    fn sound(&self) -> bool {
        self.report.violations == 0
    }

    fn share_later(&self, kind: Kind, limit_s: f64) -> f64 {
        let lines = self.world.clocks().timelines.iter().filter(|line| line.kind == kind);
        let seconds: Vec<f64> = lines.filter_map(Timeline::seconds).collect();
        let late = seconds.iter().filter(|&&s| s > limit_s).count();
        late as f64 / seconds.len().max(1) as f64
    }

    fn trouble(&self) -> String {
        match self.world.violations().first() {
            None => String::new(),
            Some(first) => format!("; {} at {} us: {}", first.invariant, first.at, first.what),
        }
    }
}

/// Largest share of user-visible failures at which calls "continue": one in a thousand.
const CONTINUES: f64 = 1e-3;

/// Runs the whole list; `done` sees each check as it is made.
pub fn verify(
    scale: Scale,
    seed: u64,
    mut done: impl FnMut(&Check),
) -> Result<Vec<Check>, SetupError> {
    let bench = Bench { shape: scale.shape(), scale, seed };
    let mut all = Vec::new();
    let mut run = |checks: Vec<Check>| {
        checks.iter().for_each(&mut done);
        all.extend(checks);
    };
    run(rolling(&bench)?);
    run(silent_kill(&bench)?);
    run(proxies_and_nodes(&bench)?);
    run(leaders(&bench)?);
    run(deltas_and_snapshots(&bench)?);
    run(outage(&bench)?);
    run(further_faults(&bench)?);
    run(recovery(&bench)?);
    run(determinism(&bench)?);
    Ok(all)
}

fn check(requirement: &'static str, name: &'static str, passed: bool, figure: String) -> Check {
    Check { requirement, name, passed, figure }
}

/// R151, R152, R153, R165: the rolling replacement.
fn rolling(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let played = bench.play(300.0, &Dials::default(), &[(20.0, bench.rollout())])?;
    let report = &played.report;
    let clocks = played.world.clocks();
    let of = |f: &dyn Fn(&Timeline) -> Option<u64>| {
        clocks.percentiles(Kind::Withdrawal, |l| f(l).map(|t| (t - l.began.min(t)) as f64 / 1e6))
    };
    let (accept, publish) = (of(&|l| l.accepted), of(&|l| l.published));
    let (apply, last, exit) = (of(&|l| l.last_apply), of(&|l| l.last_request), of(&|l| l.exited));
    let timeline = format!(
        "since t_withdraw, p50/p99 s: accept {:.3}/{:.3}, publish {:.3}/{:.3}, last apply {:.3}/{:.3}, \
         last new request {:.3}/{:.3}, exit {:.1}/{:.1}",
        accept.p50,
        accept.p99,
        publish.p50,
        publish.p99,
        apply.p50,
        apply.p99,
        last.p50,
        last.p99,
        exit.p50,
        exit.p99
    );
    let ordered =
        clocks.timelines.iter().filter(|line| line.kind == Kind::Withdrawal).all(|line| {
            let steps =
                [Some(line.began), line.accepted, line.published, line.last_apply, line.exited];
            let known: Vec<u64> = steps.into_iter().flatten().collect();
            known.windows(2).all(|pair| pair[0] <= pair[1])
        });
    let complete =
        report.withdrawal.count + report.withdrawal.open >= u64::from(bench.shape.rollout) * 9 / 10;
    let late = played.share_later(Kind::Withdrawal, 3.0);
    let forced = report.totals.forced / report.totals.traffic.requests;
    Ok(vec![
        check(
            "R151",
            "rolling replacement, the whole timeline",
            ordered && complete && played.sound(),
            timeline + &played.trouble(),
        ),
        check(
            "R152",
            "the new instance enters only after startup and readiness",
            report.totals.starting_in_view == 0,
            format!(
                "{} sets checked, {} with one that is not READY",
                report.totals.flushes, report.totals.starting_in_view
            ),
        ),
        check(
            "R153",
            "withdrawal p99 < 3 s",
            report.withdrawal.p99 < 3.0,
            format!(
                "p99 {:.3} s, max {:.3} s of {}; by the last apply p99 {:.3} s",
                report.withdrawal.p99,
                report.withdrawal.max,
                report.withdrawal.count,
                report.withdrawal_applied.p99
            ),
        ),
        check(
            "R153",
            "in-flight work completes",
            forced < 1e-4,
            format!("{:.2} requests cut, {:.5} % of all", report.totals.forced, 100.0 * forced),
        ),
        check(
            "R165",
            "no new request 3 s after an accepted withdrawal",
            late <= 0.01,
            format!("{:.3} % later", 100.0 * late),
        ),
    ])
}

/// R154, R165, R168: processes that die without a word.
fn silent_kill(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let crashes = |freeze| Action::Crashes { instances: bench.share(0.005), over_s: 120.0, freeze };
    let plan = [(20.0, crashes(false)), (20.0, crashes(true))];
    let default = bench.play(240.0, &Dials::default(), &plan)?;
    let tuned = bench.play(240.0, &tuned(), &plan)?;
    let (d, t) = (&default.report, &tuned.report);
    let worst = Dials::default().detection_worst().as_s();
    let late = tuned.share_later(Kind::Crash, 15.0);
    Ok(vec![
        check(
            "R154",
            "silent kill, tuned dials: p99 <= 15 s",
            t.crash.p99 <= 15.0 && tuned.sound(),
            format!(
                "p50 {:.2} s, p99 {:.2} s, max {:.2} s of {}{}",
                t.crash.p50,
                t.crash.p99,
                t.crash.max,
                t.crash.count,
                tuned.trouble()
            ),
        ),
        check(
            "R154",
            "silent kill, default dials: the true figure",
            default.sound(),
            format!(
                "p50 {:.2} s, p99 {:.2} s, max {:.2} s of {} (objective {}){}",
                d.crash.p50,
                d.crash.p99,
                d.crash.max,
                d.crash.count,
                if d.crash.p99 <= 15.0 { "met" } else { "missed, as derived" },
                default.trouble()
            ),
        ),
        check(
            "R165",
            "a crashed endpoint is out within 15 s, tuned",
            late <= 0.01,
            format!("{:.3} % later", 100.0 * late),
        ),
        check(
            "R168",
            "measured from the crash to the last new route",
            d.crash.count > 0,
            format!(
                "detection p99 {:.2} s, last apply p99 {:.2} s, last new route p99 {:.2} s; the settings' product says {worst:.1} s",
                d.crash_detected.p99, d.crash_applied.p99, d.crash.p99
            ),
        ),
    ])
}

/// R155, R156.
fn proxies_and_nodes(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let proxies = (bench.shape.nodes / 10).max(2);
    let cut = Action::ProxyCut { proxies, for_s: 60.0 };
    let cut = bench.play(300.0, &Dials::default(), &[(20.0, bench.rollout()), (30.0, cut)])?;
    let nodes = (bench.shape.nodes / 100).max(1);
    let plan = [(20.0, Action::Nodes { nodes, back_s: 75.0 })];
    let fail = bench.play(300.0, &tuned(), &plan)?;
    let (c, n) = (&cut.report, &fail.report);
    let healed = c.converged_after_s;
    let came_back = fail.world.instances().iter().filter(|i| i.generation.start > 0).count();
    Ok(vec![
        check(
            "R155",
            "proxy network fault",
            cut.sound() && healed.is_some(),
            format!(
                "{proxies} proxies cut for 60 s in a rollout: {} deliveries lost, {} resumed, {} bridged; {:.4} % of requests failed{}",
                c.totals.lost_deliveries,
                c.totals.resumed,
                c.totals.bridged,
                100.0 * c.failed_share(),
                cut.trouble()
            ),
        ),
        check(
            "R156",
            "whole-node failure",
            fail.sound() && n.crash.p99 <= 15.0 && came_back > 0,
            format!(
                "{nodes} nodes with their instances: last new route p99 {:.2} s, {} removed by probes, {} by lease; {came_back} came back with newer generations{}",
                n.crash.p99,
                n.totals.removals_by_probe,
                n.totals.removals_by_lease,
                fail.trouble()
            ),
        ),
    ])
}

/// R157, R158, R159, R166.
fn leaders(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let lag = Action::LagFollowers { region: 0, lag_s: 1.0, for_s: 100.0 };
    let lag = bench.play(300.0, &Dials::default(), &[(20.0, bench.rollout()), (25.0, lag)])?;
    let crash = Action::LeaderCrash { region: 0, back_s: 10.0 };
    let change = bench.play(300.0, &Dials::default(), &[(20.0, bench.rollout()), (60.0, crash)])?;
    let loss = Action::QuorumLoss { region: 0, for_s: 120.0 };
    let loss = bench.play(400.0, &Dials::default(), &[bench.churn(300.0), (30.0, loss)])?;
    let part = Action::Partition { region: 0, for_s: 60.0 };
    let part = bench.play(240.0, &Dials::default(), &[bench.churn(200.0), (30.0, part)])?;
    let (l, c, q, p) = (&lag.report, &change.report, &loss.report, &part.report);
    Ok(vec![
        check(
            "R157",
            "lagging catalog followers",
            lag.sound() && l.withdrawal.p99 <= 3.0,
            format!(
                "publication 1 s behind: withdrawal p99 {:.3} s{}",
                l.withdrawal.p99,
                lag.trouble()
            ),
        ),
        check(
            "R158",
            "leader change",
            change.sound() && c.totals.leader_changes > 0,
            format!(
                "{} changes; {} commands found no leader and came again; withdrawal from asking p99 {:.2} s, from acceptance {:.3} s{}",
                c.totals.leader_changes,
                c.totals.refused_no_leader,
                c.withdrawal_observed.p99,
                c.withdrawal.p99,
                change.trouble()
            ),
        ),
        check(
            "R159",
            "regional quorum loss",
            loss.sound(),
            format!(
                "nothing accepted for 120 s in region 0, {} commands refused; {:.4} % of requests failed{}",
                q.totals.refused_no_leader,
                100.0 * q.failed_share(),
                loss.trouble()
            ),
        ),
        check(
            "R166",
            "traffic goes on through a leader change and a partition",
            c.failed_share().max(p.failed_share()) < CONTINUES && part.sound(),
            format!(
                "{:.4} % and {:.4} % of requests failed, writes that wait for a token ({:.4} %) included{}",
                100.0 * c.failed_share(),
                100.0 * p.failed_share(),
                100.0 * p.totals.traffic.policy_refused / p.totals.traffic.requests.max(1.0),
                part.trouble()
            ),
        ),
    ])
}

/// R160, R161.
fn deltas_and_snapshots(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let drop = Action::DropDeltas { relay: 1, share: 0.3, for_s: 120.0 };
    let drop = bench.play(300.0, &Dials::default(), &[(20.0, bench.rollout()), (20.0, drop)])?;
    let spoil = Action::Corrupt { relay: 0, share: 0.5, for_s: 120.0 };
    let cold = Action::RelayRestart { share: 1.0, cold: true };
    let plan = [(20.0, bench.rollout()), (20.0, spoil), (60.0, cold)];
    let spoil = bench.play(300.0, &Dials::default(), &plan)?;
    let (d, s) = (&drop.report, &spoil.report);
    Ok(vec![
        check(
            "R160",
            "delta gap",
            drop.sound() && d.totals.gaps > 0 && d.totals.delta_repairs > 0,
            format!(
                "{} gaps, {} found by a heartbeat, {} repaired by a delta, {} by a snapshot{}",
                d.totals.gaps,
                d.totals.heads_ahead,
                d.totals.delta_repairs,
                d.totals.snapshot_fallbacks,
                drop.trouble()
            ),
        ),
        check(
            "R161",
            "corrupted snapshots and deltas",
            spoil.sound() && s.totals.checksum_rejects > 0,
            format!(
                "{} rejected by checksum, {} relay switches, {} snapshots{}",
                s.totals.checksum_rejects,
                s.totals.relay_switches,
                s.totals.snapshots,
                spoil.trouble()
            ),
        ),
    ])
}

/// R162, R166.
fn outage(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let out = Action::Outage { region: None, for_s: 600.0, stops: Stops::WARM };
    // One in a hundred dies meanwhile, as instances do.
    let die = Action::Crashes { instances: bench.share(0.01), over_s: 590.0, freeze: false };
    let plan = [bench.churn(850.0), (60.0, out), (65.0, die)];
    let played = bench.play(900.0, &Dials::default(), &plan)?;
    let report = &played.report;
    let during = played.world.rows().iter().filter(|row| (60.0..660.0).contains(&row.t_s));
    // A strict service refuses by a set older than it allows itself; that is its policy and no failure.
    let (failed, refused, requests) =
        during.fold((0.0, 0.0, 0.0), |(failed, refused, all), row| {
            let traffic = &row.traffic;
            (failed + traffic.broken(), refused + traffic.policy_refused, all + traffic.requests)
        });
    let share = failed / f64::max(requests, 1.0);
    let converged = report.converged_after_s;
    let figure = format!(
        "{requests:.0} requests in the 600 s, {:.4} % failed, {:.4} % refused as too old by the services' policy; views up to {:.0} s old; converged {} after it",
        100.0 * share,
        100.0 * refused / f64::max(requests, 1.0),
        report.peaks.snapshot_age_s,
        converged.map_or("never".to_owned(), |s| format!("{s:.0} s"))
    );
    Ok(vec![
        check(
            "R162",
            "ten-minute control-plane outage",
            played.sound(),
            figure.clone() + &played.trouble(),
        ),
        check("R166", "existing traffic goes on through it", share < CONTINUES, figure),
    ])
}

/// R163: rollouts are everywhere above; broken watches, reconnect storms, bad probes here.
fn further_faults(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let plan = |action| [(20.0, bench.rollout()), (30.0, action)];
    let silent = Action::Silent { relay: 0, for_s: 90.0 };
    let silent = bench.play(300.0, &Dials::default(), &plan(silent))?;
    let storm = Action::RelayRestart { share: 1.0, cold: false };
    let storm = bench.play(300.0, &Dials::default(), &plan(storm))?;
    let prober = Action::BadProber { region: 0, for_s: 90.0 };
    let prober = bench.play(240.0, &Dials::default(), &[(20.0, prober)])?;
    let services = (bench.shape.services / 50).max(1);
    let dependency =
        Action::BadDependency { services, region: None, for_s: 90.0, fails: 0.0, slow_s: 0.0 };
    let dependency = bench.play(300.0, &Dials::default(), &[(20.0, dependency)])?;
    let (s, r, p, d) = (&silent.report, &storm.report, &prober.report, &dependency.report);
    Ok(vec![
        check(
            "R163",
            "broken watch: a relay goes silent",
            silent.sound(),
            format!(
                "{} deliveries lost, {} gaps, {} connects; withdrawal p99 {:.2} s with the deaf in it{}",
                s.totals.lost_deliveries,
                s.totals.gaps,
                s.totals.connects,
                s.withdrawal.p99,
                silent.trouble()
            ),
        ),
        check(
            "R163",
            "reconnect storm during a rollout",
            storm.sound() && r.converged_after_s.is_some(),
            format!(
                "{} connects, {} refused, peak {}/s; converged{}",
                r.totals.connects,
                r.totals.connects_refused,
                r.peaks.connects_per_s,
                storm.trouble()
            ),
        ),
        check(
            "R163",
            "bad probes: one prober sees everything fail",
            prober.sound()
                && p.totals.false_removals as f64 <= 0.01 * f64::from(bench.shape.instances),
            format!(
                "{} verdicts not believed, {} instances removed wrongly{}",
                p.totals.probes_quarantined,
                p.totals.false_removals,
                prober.trouble()
            ),
        ),
        check(
            "R163",
            "bad probes: a shared dependency",
            dependency.sound() && d.totals.guard_held > 0 && d.totals.traffic.no_backend < 1.0,
            format!(
                "guard held {} removals, {} instances out, {:.1} no-backend{}",
                d.totals.guard_held,
                d.totals.false_removals,
                d.totals.traffic.no_backend,
                dependency.trouble()
            ),
        ),
    ])
}

/// R164, R167: everything restarts with nothing.
fn recovery(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    // The catalogs go on and a rollout with them, so that every view is old when the relays return.
    let stops = Stops { catalog: false, relays: true, probers: false, cold: true };
    let out = Action::Outage { region: None, for_s: 300.0, stops };
    let plan = [bench.churn(600.0), (60.0, out), (70.0, bench.rollout())];
    let played = bench.play(700.0, &Dials::default(), &plan)?;
    let report = &played.report;
    let dials = Dials::default();
    let regions = REGIONS as f64;
    let relays = (dials.relays_per_region * bench.shape.relay_share).round().max(2.0);
    // A relay's share is rounded up, its bucket may be full, and one snapshot may exceed it.
    let bytes = regions * (dials.snapshot_budget_mb_s * 1e6 * 1.1 + relays * 2e6);
    let connects = regions * (dials.admission_per_s * 2.0 + relays * 2.0);
    let after: Vec<_> = played.world.rows().iter().filter(|row| row.t_s > 360.0).collect();
    let admitted =
        after.windows(2).map(|w| (w[1].connected - w[0].connected) * f64::from(bench.shape.nodes));
    let admitted = admitted.fold(0.0, f64::max);
    let peak = after.iter().map(|row| row.snapshot_bytes).max().unwrap_or(0) as f64;
    let converged = report.converged_after_s;
    let text =
        converged.map_or("not converged".to_owned(), |s| format!("converged {s:.0} s after it"));
    Ok(vec![
        check(
            "R164",
            "recovery without a snapshot stampede",
            peak <= bytes && played.sound(),
            format!(
                "peak {:.2} MB/s of snapshots of {:.0} MB/s allowed, {} snapshots in all{}",
                peak / 1e6,
                bytes / 1e6,
                report.totals.snapshots,
                played.trouble()
            ),
        ),
        check(
            "R167",
            "proxies reconnect with jitter, fill gaps, converge",
            converged.is_some() && admitted <= connects,
            format!(
                "{text}; at most {admitted:.0} streams opened in a second of {connects:.0} allowed; {} resumed, {} bridged, {} by snapshot",
                report.totals.resumed, report.totals.bridged, report.totals.snapshots
            ),
        ),
    ])
}

/// I22: the same build, seed and schedule give the same trail; a saved world goes on alike.
fn determinism(bench: &Bench) -> Result<Vec<Check>, SetupError> {
    let plan = [
        (5.0, bench.rollout()),
        (10.0, Action::LeaderCrash { region: 1, back_s: 5.0 }),
        (15.0, Action::RelayRestart { share: 0.5, cold: true }),
    ];
    let one = bench.play(60.0, &Dials::default(), &plan)?;
    let plan: Vec<Planned> = plan.iter().map(|&(at_s, action)| Planned { at_s, action }).collect();
    let scenario =
        Scenario { name: "verify".to_owned(), about: String::new(), length_s: 60.0, plan };
    let setup = Setup {
        shape: bench.shape,
        scenario,
        dials: Dials::default(),
        seed: bench.seed,
        verify: bench.scale == Scale::Small,
    };
    let mut two = World::new(setup)?;
    two.run_until(30_000_000);
    let mut two = World::load(&two.save()?)?;
    two.run();
    // The first went on a little to let things heal.
    let same = one.world.trail().starts_with(two.trail()) && !two.trail().is_empty();
    Ok(vec![check(
        "I22",
        "two runs of one seed, one of them saved and restored",
        same,
        format!("{} hashes of the trail are equal", two.trail().len()),
    )])
}
