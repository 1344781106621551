//! `oncall discovery`: the service-discovery control plane in simulation: `run`, `verify`, `fuzz`.
//!
//! `tune` searches the settings of the policies, `cross-table` plays each scenario's best setting in the
//! others, `anchors` measures the constants of the scores: all on the environment's scenarios (`oncall list`). `list`, `run` and `verify` know the
//! simulator's own:
//!
//! `run` plays a scenario and prints the verdict on each objective; with `--out DIR` it writes there
//! `seconds.csv` (one row a second), `timelines.csv` (one row a withdrawal or crash, seconds since the
//! start), `picture.svg` and `scenario.json`, which `run` takes instead of a name. `verify` plays the list
//! of R151 to R168. `fuzz` draws schedules, asserts every invariant, and shrinks what fails.
//!
//! `--json` prints one object. `run`: `schema_version`, `seed`, `scale`, `dials` (those that were set) and
//! `report`, as in `oncall_discovery_sim::report::Report`. `verify`: `schema_version`, `seed`, `scale`,
//! `checks` (a list of `requirement`, `name`, `passed`, `figure`). `fuzz`: `schema_version`, `seed` and
//! `campaign`.

mod anchors;
mod cross;
mod journal;
mod tune;

use crate::output::{Table, create, note, print, print_json, short};
use anyhow::{Context as _, anyhow, bail, ensure};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use oncall_discovery_sim::dials::Dials;
use oncall_discovery_sim::fuzz::{Campaign, campaign, draw_case, play};
use oncall_discovery_sim::picture::picture;
use oncall_discovery_sim::report::{Report, rows_csv, timelines_csv};
use oncall_discovery_sim::schedule::{SHIPPED, Scenario};
use oncall_discovery_sim::topology::Scale;
use oncall_discovery_sim::verify::{Check, verify};
use oncall_discovery_sim::world::{Setup, World};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Arguments of `oncall discovery`.
#[derive(Debug, Args)]
pub struct DiscoveryArgs {
    /// What to do.
    #[command(subcommand)]
    command: DiscoveryCommand,
}

#[derive(Debug, Subcommand)]
enum DiscoveryCommand {
    /// List the scenarios and the dials.
    List,
    /// Play a scenario and judge it.
    Run(RunArgs),
    /// Play the verification of R151 to R168.
    Verify(VerifyArgs),
    /// Draw schedules and look for broken invariants.
    Fuzz(FuzzArgs),
    /// Search the settings that ship with the policies of discovery.
    Tune(tune::TuneArgs),
    /// Play the best setting of each scenario in each other scenario.
    CrossTable(cross::CrossArgs),
    /// Measure what the policies with score 0 and 100 get.
    Anchors(anchors::AnchorArgs),
}

/// The nine scenarios of 4.5, N1 to N9.
const NINE: [&str; 9] = [
    "rolling-deploy",
    "crash-wave",
    "node-failures",
    "bad-health-check",
    "control-plane-outage",
    "reconnect-storm",
    "region-loss",
    "bad-relay",
    "leader-change",
];

/// N5.
const OUTAGE: &str = NINE[4];

/// The mixture for training.
const MIXTURE: &str = "mixed-discovery";

/// How large a fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScaleArg {
    /// 24 services, 480 instances, 48 proxies.
    Small,
    /// 200 services, 10,000 instances, 500 proxies.
    Tenth,
    /// 2,000 services, 100,000 instances, 5,000 proxies.
    Full,
}

impl From<ScaleArg> for Scale {
    fn from(scale: ScaleArg) -> Self {
        match scale {
            ScaleArg::Small => Self::Small,
            ScaleArg::Tenth => Self::Tenth,
            ScaleArg::Full => Self::Full,
        }
    }
}

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall discovery list\n  oncall discovery run rollout --scale full \
                        --out rollout\n  oncall discovery run crash-wave --set probe_interval_s=2 --set \
                        failure_threshold=5 --set probe_timeout_s=0.5"
)]
struct RunArgs {
    /// Name of a scenario (see `oncall discovery list`), or path of a .json file.
    scenario: String,
    /// Seed of all noise.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Turn a dial.
    #[arg(long, value_name = "DIAL=VALUE")]
    set: Vec<String>,
    /// How large a fleet.
    #[arg(long, value_enum, default_value_t = ScaleArg::Tenth)]
    scale: ScaleArg,
    /// Assert set-level invariants at every publication and delivery; slow.
    #[arg(long)]
    verify: bool,
    /// Write timelines and a picture here.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
struct VerifyArgs {
    /// How large a fleet.
    #[arg(long, value_enum, default_value_t = ScaleArg::Small)]
    scale: ScaleArg,
    /// Seed of all noise.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "A finding is reproduced, on the same build, by its two numbers:\n  oncall \
                        discovery fuzz --seed S --case N"
)]
struct FuzzArgs {
    /// Minutes to go on.
    #[arg(long, value_name = "M", default_value_t = 1.0, value_parser = minutes)]
    minutes: f64,
    /// Seed of the campaign.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Play this one case only.
    #[arg(long, value_name = "N")]
    case: Option<u64>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// A time to go on: longer than nothing, at most a day.
fn minutes(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 1440.0 => Ok(value),
        _ => Err("expected minutes above 0, at most 1440".to_owned()),
    }
}

/// Runs `oncall discovery`.
pub fn run(args: &DiscoveryArgs) -> anyhow::Result<()> {
    match &args.command {
        DiscoveryCommand::List => list(),
        DiscoveryCommand::Run(args) => run_scenario(args),
        DiscoveryCommand::Verify(args) => run_verify(args),
        DiscoveryCommand::Fuzz(args) => run_fuzz(args),
        DiscoveryCommand::Tune(args) => tune::run(args),
        DiscoveryCommand::CrossTable(args) => cross::run(args),
        DiscoveryCommand::Anchors(args) => anchors::run(args),
    }
}

fn list() -> anyhow::Result<()> {
    let mut scenarios = Table::new(&["scenario", "what happens"]);
    for (name, about) in SHIPPED {
        scenarios.row(vec![(*name).to_owned(), (*about).to_owned()]);
    }
    let mut dials = Table::new(&["dial", ">lowest", ">highest", ">default", "meaning"]);
    for row in Dials::TABLE {
        let number = |value: f64| short(value, 2);
        dials.row(vec![
            row.name.to_owned(),
            number(row.min),
            number(row.max),
            number(row.default),
            row.help.to_owned(),
        ]);
    }
    print(&format!("{}\n{}", scenarios.text(), dials.text()))
}

/// A shipped scenario, or a file.
fn scenario(name: &str, scale: Scale) -> anyhow::Result<Scenario> {
    let is_file = Path::new(name).extension().is_some_and(|ext| ext.eq_ignore_ascii_case("json"));
    if is_file {
        let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
        return serde_json::from_str(&text).with_context(|| format!("{name} is no scenario"));
    }
    Scenario::shipped(name, &scale.shape()).ok_or_else(|| {
        let known: Vec<&str> = SHIPPED.iter().map(|(name, _)| *name).collect();
        anyhow!("scenario {name}: expected a .json file or one of {}", known.join(", "))
    })
}

/// The defaults with some dials turned.
fn dials(set: &[String]) -> anyhow::Result<Dials> {
    // All are set before the rules between dials are looked at, so that their order plays no part.
    let mut values = Dials::default().values();
    for text in set {
        let (name, value) =
            text.split_once('=').ok_or_else(|| anyhow!("--set {text}: expected DIAL=VALUE"))?;
        let at = Dials::TABLE.iter().position(|row| row.name == name);
        let at =
            at.ok_or_else(|| anyhow!("--set {name}: no such dial; see `oncall discovery list`"))?;
        values[at] = value.parse().map_err(|_| anyhow!("--set {name}: {value} is no number"))?;
    }
    Dials::from_values(&values).map_err(|error| anyhow!("--set {error}"))
}

fn run_scenario(args: &RunArgs) -> anyhow::Result<()> {
    let scale = Scale::from(args.scale);
    let scenario = scenario(&args.scenario, scale)?;
    let length_s = scenario.length_s;
    ensure!(
        length_s > 0.0 && length_s <= 86_400.0,
        "length_s: {length_s}; expected more than 0, at most 86400"
    );
    let setup = Setup {
        shape: scale.shape(),
        scenario: scenario.clone(),
        dials: dials(&args.set)?,
        seed: args.seed,
        verify: args.verify,
    };
    let begin = Instant::now();
    let mut world = World::new(setup)?;
    let bar = ProgressBar::new(length_s as u64);
    if let Ok(style) = ProgressStyle::with_template("  {bar:30} {pos}/{len} s  {msg}") {
        bar.set_style(style);
    }
    for second in 1..=length_s as u64 {
        world.run_until(second * 1_000_000);
        bar.set_position(second);
        if let Some(row) = world.rows().last() {
            bar.set_message(format!(
                "{:.1} % connected, {} READY, {:.1} stale/s, {:.2} failed/s",
                100.0 * row.connected,
                row.ready,
                row.traffic.stale,
                row.traffic.user_visible()
            ));
        }
    }
    bar.finish_and_clear();
    world.check_accounts();
    let spent = begin.elapsed();
    let report = Report::of(&world);
    if let Some(dir) = &args.out {
        write_files(dir, &scenario, &world)?;
    }
    if args.json {
        let set: Map<String, Value> = Dials::TABLE
            .iter()
            .zip(world.dials().values())
            .filter(|(row, value)| row.default != *value)
            .map(|(row, value)| (row.name.to_owned(), json!(value)))
            .collect();
        return print_json(&json!({
            "schema_version": 1,
            "seed": args.seed,
            "scale": scale.name(),
            "dials": set,
            "report": report,
        }));
    }
    let head = format!(
        "{} at scale {}, seed {}, digest {}: {length_s:.0} s in {:.1} s\n",
        scenario.name,
        scale.name(),
        args.seed,
        report.digest,
        spent.as_secs_f64()
    );
    print(&(head + &verdicts(&report) + &broken(&world)))
}

fn verdicts(report: &Report) -> String {
    let mut table = Table::new(&["objective", "", "measured"]);
    for verdict in report.verdicts() {
        let mark = match verdict.met {
            Some(true) => "met",
            Some(false) => "MISSED",
            None => "",
        };
        table.row(vec![verdict.objective.to_owned(), mark.to_owned(), verdict.figure]);
    }
    table.text()
}

fn broken(world: &World) -> String {
    let lines = world.violations().iter().take(10).map(|violation| {
        format!(
            "{} at {:.3} s: {}\n",
            violation.invariant,
            violation.at as f64 / 1e6,
            violation.what
        )
    });
    lines.collect()
}

fn write_files(dir: &Path, scenario: &Scenario, world: &World) -> anyhow::Result<()> {
    std::fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
    let title = format!("{}: {}", scenario.name, scenario.about);
    let files = [
        ("seconds.csv", rows_csv(world.rows())),
        ("timelines.csv", timelines_csv(world)),
        ("picture.svg", picture(&title, world.rows())),
        ("scenario.json", serde_json::to_string_pretty(scenario)? + "\n"),
    ];
    for (name, text) in files {
        let path = dir.join(name);
        let cannot = || format!("cannot write {}", path.display());
        let mut file = create(&path)?;
        file.write_all(text.as_bytes()).with_context(cannot)?;
        file.flush().with_context(cannot)?;
    }
    note(&format!(
        "wrote seconds.csv, timelines.csv, picture.svg, scenario.json to {}",
        dir.display()
    ));
    Ok(())
}

fn run_verify(args: &VerifyArgs) -> anyhow::Result<()> {
    let scale = Scale::from(args.scale);
    let tell = |check: &Check| {
        if !args.json {
            let mark = if check.passed { "pass" } else { "FAIL" };
            let line = format!("{mark}  {}  {}: {}\n", check.requirement, check.name, check.figure);
            // A reader that has left is met again, and told, at the end.
            let _ = print(&line);
        }
    };
    let checks = verify(scale, args.seed, tell)?;
    let failed = checks.iter().filter(|check| !check.passed).count();
    if args.json {
        print_json(&json!({
            "schema_version": 1,
            "seed": args.seed,
            "scale": scale.name(),
            "checks": checks,
        }))?;
    } else {
        print(&format!("{} checks, {failed} failed\n", checks.len()))?;
    }
    ensure!(failed == 0, "{failed} of {} checks failed", checks.len());
    Ok(())
}

fn run_fuzz(args: &FuzzArgs) -> anyhow::Result<()> {
    if let Some(case) = args.case {
        return run_case(args.seed, case);
    }
    let (begin, time) = (Instant::now(), Duration::from_secs_f64(args.minutes * 60.0));
    let bar = ProgressBar::new_spinner();
    let done = campaign(args.seed, 0, |campaign: &Campaign| {
        if campaign.cases.is_multiple_of(10) {
            bar.set_message(format!(
                "{} cases, {:.0} simulated hours, {} findings",
                campaign.cases,
                campaign.simulated_s / 3600.0,
                campaign.findings.len()
            ));
            bar.tick();
        }
        begin.elapsed() < time && campaign.findings.len() < 5
    })?;
    bar.finish_and_clear();
    if args.json {
        print_json(&json!({ "schema_version": 1, "seed": args.seed, "campaign": done }))?;
    } else {
        print(&as_text(&done))?;
    }
    ensure!(done.findings.is_empty(), "{} schedules broke an invariant", done.findings.len());
    Ok(())
}

fn as_text(done: &Campaign) -> String {
    let mut text = format!(
        "{} cases, {:.1} simulated hours, {} findings\n",
        done.cases,
        done.simulated_s / 3600.0,
        done.findings.len()
    );
    for (goal, count) in done.goals.list() {
        let _ = writeln!(text, "  {goal}: {count}");
    }
    for finding in &done.findings {
        let _ = writeln!(
            text,
            "{} at {:.3} s: {}\n  reproduce: oncall discovery fuzz --seed {} --case {}\n  smallest plan: {}",
            finding.violation.invariant,
            finding.violation.at as f64 / 1e6,
            finding.violation.what,
            finding.seed,
            finding.case,
            serde_json::to_string(&finding.setup.scenario.plan).unwrap_or_default()
        );
    }
    text
}

fn run_case(seed: u64, case: u64) -> anyhow::Result<()> {
    let setup = draw_case(seed, case);
    let (violation, world) = play(&setup)?;
    print(&format!(
        "{}\n{}{}",
        serde_json::to_string_pretty(&setup)?,
        verdicts(&Report::of(&world)),
        broken(&world)
    ))?;
    if let Some(violation) = violation {
        bail!("{}: {}", violation.invariant, violation.what);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dials_are_set_together_and_mistakes_are_named() {
        let text = |set: &[&str]| {
            let set: Vec<String> = set.iter().map(|text| (*text).to_owned()).collect();
            dials(&set).map_err(|error| error.to_string())
        };
        // Alone the interval would break the rule that the timeout is shorter; together they are fine.
        let both = text(&["probe_interval_s=1", "probe_timeout_s=0.2"]).unwrap();
        assert_eq!((both.probe_interval_s, both.probe_timeout_s), (1.0, 0.2));
        assert!(text(&["probe_interval_s=99"]).unwrap_err().contains("probe_interval_s: 99"));
        assert!(text(&["speed=1"]).unwrap_err().contains("no such dial"));
        assert!(text(&["probe_interval_s"]).unwrap_err().contains("DIAL=VALUE"));
        assert!(text(&["probe_interval_s=x"]).unwrap_err().contains("no number"));
    }

    #[test]
    fn unknown_scenarios_are_told_what_there_is() {
        let error = scenario("sunshine", Scale::Small).unwrap_err().to_string();
        assert!(error.contains("sunshine") && error.contains("rollout-hot"), "{error}");
        assert!(scenario("rollout", Scale::Small).is_ok());
    }
}
