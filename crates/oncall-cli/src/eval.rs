//! `oncall eval`: policies held against each other on the same mornings.
//!
//! The table goes to standard output, or to standard error where a file asked for is `-`. The shape of
//! the JSON is described at [`oncall_eval::report`], that of the CSV at [`oncall_eval::episodes`].

use crate::args::{PolicyList, ScaleArg, SplitArg, policy_list};
use crate::output::{count, create, note, print};
use crate::scenarios;
use anyhow::{Context as _, bail};
use clap::Args;
use indicatif::{HumanDuration, ProgressBar, ProgressStyle};
use oncall_core::Split;
use oncall_env::Scenario;
use oncall_eval::planned::{PlannedEpisodes, compare_to_planner, episodes_to_play};
use oncall_eval::{
    Contender, EvalError, Plan, Progress, Report, ScenarioEpisodes, episode_minutes, evaluate,
};
use oncall_planner::{PlannedScenario, RecedingPlanner, planner_reference};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `oncall eval`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall eval\n  oncall eval --scenarios spike-hard --policies \
                        runbook,hpa:target=0.5,min=6\n  oncall eval --scenarios mixed-discovery --scale \
                        tenth --episodes 100\n  oncall eval --json \
                        scores.json --csv episodes.csv\n\nEvery policy plays the same episodes, and \
                        the same numbers come out for any number of threads. Policies play with the \
                        parameters that were tuned for the scenario on training episodes; \
                        `planner-honest`, which plans on its own forecast, plays if it is named. How often a \
                        policy beats the planner is counted on the planner's own episodes, see \
                        `oncall reference`."
)]
pub struct EvalArgs {
    /// Scenarios, names or paths, separated by commas.
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        default_value = "spike,bad-build,cache-flush"
    )]
    pub scenarios: Vec<String>,
    /// How large the fleet is; of discovery only.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// Policies, separated by commas; parameters as in `hpa:target=0.5,min=6`. All honest ones of the
    /// scenarios' world, if not given.
    #[arg(long, value_name = "A,B", value_parser = policy_list)]
    pub policies: Option<PolicyList>,
    /// Episodes of each policy on each scenario.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub episodes: usize,
    /// Which episodes: those for training or those held out for tests.
    #[arg(long, value_enum, default_value_t = SplitArg::Test)]
    pub split: SplitArg,
    /// Seed of the evaluation.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Write the summary as JSON here; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write one row an episode as CSV here; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// Evaluates, prints the table, and writes the files.
pub fn run(args: EvalArgs) -> anyhow::Result<()> {
    let EvalArgs { scenarios, scale, policies, episodes, split, seed, threads, json, csv } = args;
    let plan =
        Plan { episodes, split: split.into(), seed, threads: threads.unwrap_or_else(processors) };
    let scenarios: Vec<Scenario> =
        scenarios.iter().map(|name| scenarios::open_at(name, scale)).collect::<Result<_, _>>()?;
    let world = scenarios.first().map_or("", |scenario| scenario.world.spec().world);
    let contenders = contenders(policies, world)?;
    let is_stdout = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdout(&json) && is_stdout(&csv) {
        bail!("--json and --csv = -: expected a file for one of them");
    }
    for path in [&json, &csv].into_iter().flatten() {
        check_folder(path)?;
    }
    let (report, played) = evaluate_all(&scenarios, &contenders, plan)?;
    if let Some(path) = &json {
        let write = || -> anyhow::Result<()> {
            let mut out = create(path)?;
            out.write_all(report.json().as_bytes())?;
            Ok(out.flush()?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    if let Some(path) = &csv {
        let spec = scenarios[0].world.spec();
        oncall_eval::episodes::write(create(path)?, spec, plan.split, &played)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    let table = oncall_eval::table::text(&report);
    if is_stdout(&json) || is_stdout(&csv) {
        note(table.trim_end());
        return Ok(());
    }
    print(&table)
}

/// Evaluates, holds the policies against the planner, and shows a bar meanwhile.
pub(crate) fn evaluate_all(
    scenarios: &[Scenario],
    contenders: &[Contender],
    plan: Plan,
) -> anyhow::Result<(Report, Vec<ScenarioEpisodes>)> {
    let planned = planned_episodes();
    let bar = bar(scenarios, contenders.len(), plan, &planned)?;
    let tell = |progress: Progress<'_>| tell(&bar, progress);
    let evaluated = || {
        let (mut report, played) = evaluate(scenarios, contenders, plan, &tell)?;
        let asked = (scenarios, contenders, plan);
        compare_to_planner(&mut report, asked, &played, &planned, &tell)?;
        Ok((report, played))
    };
    let evaluated = evaluated();
    bar.finish_and_clear();
    evaluated
}

/// The episodes of the planner's committed constants.
fn planned_episodes() -> Vec<PlannedEpisodes> {
    let reference = planner_reference();
    let Some(split) = Split::from_name(&reference.split) else { return Vec::new() };
    let planned = |known: &PlannedScenario| PlannedEpisodes {
        scenario: known.scenario.clone(),
        hash: known.hash.clone(),
        split,
        seed: reference.seed,
        returns: known.returns.clone(),
    };
    reference.scenarios.iter().map(planned).collect()
}

fn contenders(policies: Option<PolicyList>, world: &str) -> anyhow::Result<Vec<Contender>> {
    match policies {
        None => Ok(oncall_eval::default_contenders(world)),
        Some(list) => Ok(list.0.iter().map(|text| contender(text)).collect::<Result<_, _>>()?),
    }
}

/// A policy by name: a rule of the list, or the honest planner.
pub(crate) fn contender(text: &str) -> Result<Contender, EvalError> {
    RecedingPlanner::contender(text).map_or_else(|| Contender::parse(text), Ok)
}

/// Processors that this process may use.
pub(crate) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get)
}

/// Refuses a file in a folder that is not there, before minutes are spent on what goes into it.
pub(crate) fn check_folder(path: &Path) -> anyhow::Result<()> {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() && !folder.is_dir() => {
            bail!("cannot write {}: there is no folder {}", path.display(), folder.display())
        }
        _ if path.is_dir() => bail!("cannot write {}: it is a folder", path.display()),
        _ => Ok(()),
    }
}

/// A bar over all minutes that will be played; hidden where standard error is no terminal.
fn bar(
    scenarios: &[Scenario],
    policies: usize,
    plan: Plan,
    planned: &[PlannedEpisodes],
) -> anyhow::Result<ProgressBar> {
    let mut minutes = 0.0;
    for scenario in scenarios {
        let length = episode_minutes(scenario, plan.split, plan.seed)?;
        let episodes = plan.episodes + episodes_to_play(scenario, plan, planned);
        minutes += length * episodes as f64 * policies as f64;
    }
    let bar = ProgressBar::new(minutes as u64);
    let rate = |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{} steps/s", count(state.per_sec()));
    };
    let left = |state: &indicatif::ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}", HumanDuration(state.eta()));
    };
    let template = "  {msg:30} {bar:30} {percent:>3} %  {rate}  {left} left";
    bar.set_style(
        ProgressStyle::with_template(template)?.with_key("rate", rate).with_key("left", left),
    );
    Ok(bar)
}

fn tell(bar: &ProgressBar, progress: Progress<'_>) {
    // A hidden bar still counts; only its text is not worth making.
    if !bar.is_hidden() {
        let text = format!("{}, {}", progress.scenario, progress.policy);
        if bar.message() != text {
            bar.set_message(text);
        }
    }
    bar.inc(progress.minutes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::Parser as _;

    fn run_oncall(args: &[&str]) -> anyhow::Result<()> {
        let cli = Cli::try_parse_from(["oncall", "eval"].iter().chain(args))?;
        match cli.command {
            crate::args::Command::Eval(args) => run(args),
            other => bail!("parsed as {other:?}"),
        }
    }

    fn error(args: &[&str]) -> String {
        format!("{:#}", run_oncall(args).unwrap_err())
    }

    #[test]
    fn errors_name_what_is_wrong() {
        assert!(error(&["--episodes", "0"]).contains("episodes = 0: expected 1..="));
        assert!(error(&["--threads", "0"]).contains("threads = 0: expected 1..="));
        assert!(error(&["--scenarios", "spik"]).contains("\"spik\""));
        assert!(
            error(&["--scenarios", "spike,spike"]).contains("scenarios = spike: expected each")
        );
        assert!(
            error(&["--policies", "hold,hold"]).contains("policies = hold: expected each name")
        );
        assert!(error(&["--policies", "runbok"]).contains("`runbok`"));
        let error = error(&["--episodes", "1", "--json", "no/such/folder/x.json"]);
        assert!(error.contains("there is no folder no/such/folder"), "{error}");
    }

    #[test]
    fn files_are_written_and_agree() {
        let folder = std::env::temp_dir().join(format!("oncall-eval-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [json, csv] = ["scores.json", "episodes.csv"].map(|name| folder.join(name));
        let paths = [json.to_str().unwrap(), csv.to_str().unwrap()];
        let common = ["--scenarios", "steady", "--policies", "hold,fixed-12", "--episodes", "5"];
        run_oncall(&[&common[..], &["--json", paths[0], "--csv", paths[1]]].concat()).unwrap();
        let report: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let mut rows = csv::Reader::from_path(&csv).unwrap();
        let header = rows.headers().unwrap().clone();
        let place = header.iter().position(|name| name == "return_usd").unwrap();
        let returns: Vec<f64> =
            rows.records().map(|row| row.unwrap()[place].parse().unwrap()).collect();
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(returns.len(), 10);
        assert_eq!(report["episodes"], 5);
        for (policy, returns) in returns.chunks(5).enumerate() {
            let mean = returns.iter().sum::<f64>() / 5.0;
            let found = &report["scenarios"][0]["policies"][policy]["return"]["mean"];
            assert!((found.as_f64().unwrap() - mean).abs() < 1e-12, "{policy}");
        }
    }

    /// The search starts from the rules on the very episode, so a tuned rule cannot be above it: if the
    /// mornings were not the same ones, every other episode would be.
    #[test]
    fn the_honest_planner_is_no_rule() {
        assert!(contender("runbook").unwrap().is_rule());
        let planner = contender("planner-honest").unwrap();
        assert!(!planner.is_rule() && planner.name == "planner-honest");
        assert!(contender("planner-dishonest").is_err());
    }

    #[test]
    fn the_planner_is_compared_on_its_own_mornings() {
        let scenarios = ["spike", "steady", "mixed"].map(|name| scenarios::open(name).unwrap());
        let contenders = ["runbook", "target-tracking"].map(|text| Contender::parse(text).unwrap());
        let plan = Plan { episodes: 2, split: Split::Train, seed: 9, threads: 2 };
        let (report, _) = evaluate_all(&scenarios, &contenders, plan).unwrap();
        for policy in report.scenarios.iter().flat_map(|scenario| &scenario.policies) {
            let beats = policy.beats_planner.unwrap();
            assert_eq!((beats.episodes, beats.share), (100, 0.0), "{}", policy.name);
        }
    }
}
