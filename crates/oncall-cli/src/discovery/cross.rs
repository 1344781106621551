//! `oncall discovery cross-table`: the best setting of each scenario in each other scenario, and the
//! checks of 4.6 of the specification: that no single setting wins everywhere, that the safest setting is
//! dear, and that doing nothing does not win in a control-plane outage.
//!
//! `--csv` writes one row a setting and scenario, see [`Cross::write_csv`].

use super::tune::{OPS, read, setting_of, weight};
use super::{NINE, OUTAGE};
use crate::args::SplitArg;
use crate::eval::{check_folder, processors};
use crate::output::{Table, create, print};
use crate::scenarios;
use anyhow::{Context as _, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use oncall_env::Scenario;
use oncall_eval::cross::{COST_MIN, Cross, OPS_RATIO, Row, play};
use oncall_eval::race::Objective;
use oncall_eval::score::anchors;
use oncall_eval::stats::{mean, quantile};
use oncall_eval::{Contender, Plan};
use oncall_heuristics::tuned::{DEFAULT, Table as Tuneds};
use std::fmt::Write as _;
use std::path::PathBuf;

/// The scripted operator.
const OPERATOR: &str = "operator";

/// Settings that must fit their own scenario only.
const OWN_ONLY_MIN: usize = 6;

/// Arguments of `oncall discovery cross-table`.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  oncall discovery cross-table --episodes 100 --csv cross.csv")]
pub(super) struct CrossArgs {
    /// Scenarios; the nine, if not given.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    scenarios: Option<Vec<String>>,
    /// Episodes of each setting in each scenario.
    #[arg(long, value_name = "N", default_value_t = 60)]
    episodes: usize,
    /// Seed of the episodes.
    #[arg(long, value_name = "N", default_value_t = 46)]
    seed: u64,
    /// Which episodes: those for training or those held out for tests.
    #[arg(long, value_enum, default_value_t = SplitArg::Train)]
    split: SplitArg,
    /// Count as if a reward term's price were multiplied.
    #[arg(long, value_name = "TERM=FACTOR", value_parser = weight)]
    weight: Vec<(String, f64)>,
    /// A file of settings in the place of the shipped ones, as `oncall discovery tune --save` writes it.
    #[arg(long, value_name = "FILE.json")]
    tuned: Option<PathBuf>,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Write one row a setting and scenario here; `-` is standard output.
    #[arg(long, value_name = "FILE.csv")]
    csv: Option<PathBuf>,
    /// End with code 1 if a check fails.
    #[arg(long)]
    check: bool,
}

/// Plays and prints.
pub(super) fn run(args: &CrossArgs) -> anyhow::Result<()> {
    let names = args.scenarios.clone().unwrap_or_else(|| NINE.map(str::to_owned).to_vec());
    let scenarios: Vec<Scenario> =
        names.iter().map(|name| scenarios::open(name)).collect::<Result<_, _>>()?;
    for scenario in &scenarios {
        let world = scenario.world.spec().world;
        ensure!(world == "discovery", "scenarios = {}: expected one of discovery", scenario.name);
    }
    if let Some(path) = &args.csv {
        check_folder(path)?;
    }
    let plan = Plan {
        episodes: args.episodes,
        split: args.split.into(),
        seed: args.seed,
        threads: args.threads.unwrap_or_else(processors),
    };
    let rows = rows(&scenarios, &read(args.tuned.as_deref())?)?;
    let objective = Objective::default().with(&args.weight);
    let bar = ProgressBar::new((rows.len() * scenarios.len() * plan.episodes) as u64 * 360);
    bar.set_style(ProgressStyle::with_template("  {msg:40} {bar:30} {percent} %, {eta} left")?);
    let cross = play(&scenarios, &rows, (plan, OPS), &objective, &|progress| {
        if !bar.is_hidden() {
            bar.set_message(format!("{} in {}", progress.policy, progress.scenario));
        }
        bar.inc(progress.minutes);
    });
    bar.finish_and_clear();
    let cross = cross?;
    if let Some(path) = &args.csv {
        let cannot = || format!("cannot write {}", path.display());
        cross.write_csv(create(path)?).with_context(cannot)?;
    }
    let checks = checks(&cross);
    print(&format!("{}\n{}", table(&cross), verdicts(&checks)))?;
    let failed = checks.iter().filter(|check| !check.passed).count();
    ensure!(!args.check || failed == 0, "{failed} of {} checks failed", checks.len());
    Ok(())
}

/// The plain policy, each scenario's best setting, those that are for all of them, and the operator. Settings
/// are played as given ones: an oracle would play what it is told.
fn rows(scenarios: &[Scenario], tuned: &Tuneds) -> anyhow::Result<Vec<Row>> {
    let zero = anchors("discovery").zero;
    let named = |name: &str| -> anyhow::Result<Row> {
        Ok(Row { name: name.to_owned(), home: None, policy: Contender::parse(name)? })
    };
    let mut rows = vec![named(zero)?];
    for (index, scenario) in scenarios.iter().enumerate() {
        let plain = scenario.name.split('@').next().unwrap_or_default();
        let policy = setting_of(tuned, "oracle", plain)?;
        let name = format!("best of {plain}");
        rows.push(Row { name, home: Some(index), policy: Contender::parse(&policy.to_string())? });
    }
    for name in ["static", "safest"] {
        let policy = Contender::parse(&setting_of(tuned, name, DEFAULT)?.to_string())?;
        rows.push(Row { name: name.to_owned(), home: None, policy });
    }
    rows.push(named(OPERATOR)?);
    Ok(rows)
}

/// One check.
struct Check {
    what: String,
    passed: bool,
    found: String,
}

fn checks(cross: &Cross) -> Vec<Check> {
    let (own, all) = cross.own_only();
    let mut checks = vec![Check {
        what: format!(
            "settings that cost at least {:.0} % of the gap in the median other scenario: at least {OWN_ONLY_MIN}",
            100.0 * COST_MIN
        ),
        passed: own >= OWN_ONLY_MIN.min(all),
        found: format!("{own} of {all}"),
    }];
    // The operator is no setting.
    let settings = (0..cross.rows.len()).filter(|row| cross.rows[*row].0 != OPERATOR);
    let worst = settings
        .map(|row| (cross.costs_elsewhere(row).into_iter().fold(f64::NEG_INFINITY, f64::max), row));
    if let Some((cost, row)) = worst.min_by(|a, b| a.0.total_cmp(&b.0)) {
        checks.push(Check {
            what: format!(
                "every setting costs at least {:.0} % of the gap in some other scenario",
                100.0 * COST_MIN
            ),
            passed: cost >= COST_MIN,
            found: format!("{} at most {:.0} %", cross.rows[row].0, 100.0 * cost),
        });
    }
    let row = |name: &str| cross.rows.iter().position(|(known, _)| known == name);
    if let Some(safest) = row("safest") {
        let ratio = cross.ops_ratio(safest);
        checks.push(Check {
            what: format!(
                "running costs of the safest setting over the default's: {} to {}",
                OPS_RATIO[0], OPS_RATIO[1]
            ),
            passed: (OPS_RATIO[0]..=OPS_RATIO[1]).contains(&ratio),
            found: format!("{ratio:.2}"),
        });
    }
    let outage = cross.scenarios.iter().position(|name| name.starts_with(OUTAGE));
    if let Some(gap) = outage.and_then(|scenario| cross.gap(scenario)) {
        checks.push(Check {
            what: "doing nothing is worse than the best setting in the outage, usd".to_owned(),
            passed: gap.ci95[0] > 0.0,
            found: format!("{:.2} [{:.2}, {:.2}]", gap.value, gap.ci95[0], gap.ci95[1]),
        });
    }
    checks
}

fn verdicts(checks: &[Check]) -> String {
    let mut text = String::new();
    for Check { what, passed, found } in checks {
        let _ = writeln!(text, "{}  {what}: {found}", if *passed { "pass" } else { "FAIL" });
    }
    text
}

/// Costs in percent of the gap; the gap and the plain return in dollars; running costs over the default's.
fn table(cross: &Cross) -> String {
    let short = |name: &str| name.chars().take(9).collect::<String>();
    let mut head: Vec<String> = vec!["cost, % of the gap".to_owned()];
    head.extend(cross.scenarios.iter().map(|name| format!(">{}", short(name))));
    head.extend([">median else", ">20 % in", ">ops ratio"].map(str::to_owned));
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let mut table = Table::new(&head);
    let scenarios = 0..cross.scenarios.len();
    for (row, (name, _)) in cross.rows.iter().enumerate() {
        let costs = cross.costs_elsewhere(row);
        let mut cells = vec![name.clone()];
        cells.extend(scenarios.clone().map(|scenario| {
            cross.cost(row, scenario).map_or("-".to_owned(), |cost| format!("{:.0}", 100.0 * cost))
        }));
        let dear = costs.iter().filter(|cost| **cost >= COST_MIN).count();
        cells.push(format!("{:.0}", 100.0 * quantile(&costs, 0.5)));
        cells.push(format!("{dear} of {}", costs.len()));
        cells.push(format!("{:.2}", cross.ops_ratio(row)));
        table.row(cells);
    }
    let mut dollars = vec!["gap, usd".to_owned()];
    dollars.extend(scenarios.clone().map(|scenario| {
        cross.gap(scenario).map_or("-".to_owned(), |gap| format!("{:.1}", gap.value))
    }));
    table.row(dollars);
    let mut plain = vec!["default, usd".to_owned()];
    plain.extend(scenarios.map(|scenario| format!("{:.1}", mean(&cross.returns[0][scenario]))));
    table.row(plain);
    table.text()
}
