//! What a user types, as clap parses it. Nothing here opens a file or knows a scenario.

use clap::{Args, Parser, Subcommand, ValueEnum, value_parser};
use oncall_core::Split;
use std::path::PathBuf;

/// Most minutes of a shift.
const MINUTES_MAX: i64 = oncall_env::EPISODE_MINUTES_MAX as i64;

/// The whole command line.
#[derive(Debug, Parser)]
#[command(
    name = "oncall",
    version,
    about = "An on-call gym: a web-service fleet, and the discovery of services",
    long_about = "An on-call gym: a web-service fleet, simulated minute by minute, and the control plane \
                  that services find each other by, ten seconds a step. Play a shift, hold \
                  policies against the shipped scenarios, and read every number.\n\nSCENARIO is \
                  everywhere the name of a shipped scenario (see `oncall list`) or the path of a \
                  .json file; CSV files that it names lie beside it.",
    after_help = "Examples:\n  oncall list\n  oncall describe spike\n  oncall run spike --policy \
                  runbook --seed 7 --out shift.csv\n  oncall eval --episodes 200\n  oncall report \
                  --out report.html\n\nExit codes: 0 done, 1 a check or a run failed, 2 wrong usage.",
    arg_required_else_help = true
)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the shipped scenarios and policies.
    List(ListArgs),
    /// Describe a scenario with its dials, readouts and prices, or the policies.
    Describe(DescribeArgs),
    /// Check a scenario file and report everything that is wrong with it.
    Check(CheckArgs),
    /// Play one episode and write it as CSV, one row a minute.
    Run(RunArgs),
    /// Compare policies on many episodes.
    Eval(crate::eval::EvalArgs),
    /// Search the parameters of a policy.
    Tune(crate::tune::TuneArgs),
    /// Write a page of HTML: scores with intervals, who beats whom, and one episode of each scenario.
    Report(ReportArgs),
    /// Show the planner's constants, which scores are relative to, or compute a sample of them again.
    Reference(crate::reference::ReferenceArgs),
    /// Measure how many steps a second the engine plays.
    Bench(BenchArgs),
    /// Simulate the service-discovery control plane: run, verify, fuzz.
    Discovery(crate::discovery::DiscoveryArgs),
}

/// Arguments of `oncall list`.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `oncall describe`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  oncall describe bad-build\n  oncall describe ./mine.json \
                        --json\n  oncall describe --policies")]
pub struct DescribeArgs {
    /// Name of a shipped scenario, or path of a .json file.
    #[arg(required_unless_present = "policies", conflicts_with = "policies")]
    pub scenario: Option<String>,
    /// How large the fleet is; of discovery only. As written in the scenario, if not given.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// Describe the policies and their parameters.
    #[arg(long)]
    pub policies: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `oncall check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// The scenario files.
    #[arg(value_name = "FILE.json", required = true)]
    pub files: Vec<PathBuf>,
}

/// Arguments of `oncall run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall run spike --policy runbook --seed 7 --out shift.csv\n  \
                        oncall run bad-build --dials mine.csv --demand rates.csv --minutes 180\n\n\
                        The CSV has one row a minute and the readouts by name; without --out it \
                        goes to standard output and the summary to standard error. A dials file \
                        has dial names as header (a subset will do) and one row a minute; its last \
                        row holds, but presses are not repeated. A demand file has one column \
                        requests_per_s, the exact rate of each minute without noise or surge; its \
                        last row holds."
)]
pub struct RunArgs {
    /// Name of a shipped scenario, or path of a .json file.
    pub scenario: String,
    /// How large the fleet is; of discovery only. As written in the scenario, if not given.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// Seed of the episode; drawn and shown if not given.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Who turns the dials: a policy, with parameters as in `hpa:target=0.5,min=6`.
    #[arg(long, value_name = "NAME", conflicts_with = "dials", default_value = "hold")]
    pub policy: String,
    /// Turn the dials as this CSV file says.
    #[arg(long, value_name = "FILE.csv")]
    pub dials: Option<PathBuf>,
    /// Offer exactly the demand of this CSV file.
    #[arg(long, value_name = "FILE.csv")]
    pub demand: Option<PathBuf>,
    /// Minutes to play; may exceed the scenario's length.
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=MINUTES_MAX))]
    pub minutes: Option<u32>,
    /// Which episodes: those for training or those held out for tests.
    #[arg(long, value_enum, default_value_t = SplitArg::Train)]
    pub split: SplitArg,
    /// Add columns `dial_NAME`: how each dial stands, in natural units, where one slides towards what was asked.
    #[arg(long)]
    pub with_dials: bool,
    /// Write the CSV here; `-` is standard output.
    #[arg(long, value_name = "FILE.csv")]
    pub out: Option<PathBuf>,
    /// Print the summary as JSON to standard output; the CSV then goes to --out or nowhere.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `oncall report`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall report\n  oncall report --scenarios spike-hard --policies \
                        hold,runbook,ppo --seed 3 --out spike.html\n  oncall report --curves \
                        runs/spike runs/mixed --episodes 5000\n\nThe page needs nothing else: no \
                        scripts, no network. --curves takes folders that hold training.csv as \
                        `oncall-ppo train` writes it, itself or in folders below, one a training; \
                        equal scenarios share a drawing."
)]
pub struct ReportArgs {
    /// Scenarios, names or paths, separated by commas.
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        default_value = "spike,bad-build,cache-flush"
    )]
    pub scenarios: Vec<String>,
    /// How large the fleet is; of discovery only. As written in the scenario, if not given.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// Policies, separated by commas; parameters as in `hpa:target=0.5,min=6`. At most eight; of each
    /// world a choice, if not given.
    #[arg(long, value_name = "A,B", value_parser = policy_list)]
    pub policies: Option<PolicyList>,
    /// Episodes of each policy on each scenario, for tables and profiles; 0 draws the shifts alone.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub episodes: usize,
    /// Seed of these episodes and of the intervals, as in `oncall eval --seed`.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub eval_seed: u64,
    /// Seed of the shift that is drawn, as in `oncall run --seed`.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Which episodes: those for training or those held out for tests.
    #[arg(long, value_enum, default_value_t = SplitArg::Test)]
    pub split: SplitArg,
    /// Folders with trainings, whose learning curves are drawn.
    #[arg(long, value_name = "DIR", num_args = 1..)]
    pub curves: Vec<PathBuf>,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Where the page goes; `-` is standard output.
    #[arg(long, value_name = "FILE.html", default_value = "report.html")]
    pub out: PathBuf,
}

/// Arguments of `oncall bench`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  oncall bench --scenario spike --batch 1,1024 --threads 1,2 \
                        --seconds 10\n  oncall bench --scenario \
                        mixed-discovery,mixed-discovery@tenth,mixed-discovery@full --threads 1")]
pub struct BenchArgs {
    /// Scenarios, names or paths, separated by commas.
    #[arg(long, value_name = "A,B", value_delimiter = ',', default_value = "spike")]
    pub scenario: Vec<String>,
    /// How large the fleet is; of discovery only. As written in the scenario, if not given.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// Environments in a batch, one or several; 1, 32, 1024 and 8192, of discovery 1, if not given.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub batch: Vec<usize>,
    /// Threads, one or several; one, and as many as there are processors, if not given.
    #[arg(long, value_name = "N,N", value_delimiter = ',')]
    pub threads: Vec<usize>,
    /// Seconds to measure each pair of batch and threads.
    #[arg(long, value_name = "S", default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// How large the fleet of a scenario of discovery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ScaleArg {
    /// For training and tuning.
    Small,
    /// A tenth of the full fleet.
    Tenth,
    /// 2,000 services, 100,000 instances, 5,000 proxies.
    Full,
}

impl ScaleArg {
    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            ScaleArg::Small => "small",
            ScaleArg::Tenth => "tenth",
            ScaleArg::Full => "full",
        }
    }
}

/// Which episodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SplitArg {
    /// For training and tuning.
    Train,
    /// Held out for evaluation.
    Test,
}

impl From<SplitArg> for Split {
    fn from(split: SplitArg) -> Self {
        match split {
            SplitArg::Train => Split::Train,
            SplitArg::Test => Split::Test,
        }
    }
}

/// Policies as typed, split at the right commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyList(pub Vec<String>);

/// Splits a list of policies. A comma also separates the parameters of one policy: a piece with `=`
/// but without `:` goes on with the parameters of the piece before it.
pub fn policy_list(text: &str) -> Result<PolicyList, String> {
    let mut policies: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim) {
        let is_parameter = piece.contains('=') && !piece.contains(':');
        match policies.last_mut() {
            _ if piece.is_empty() => return Err("an empty name between commas".to_owned()),
            Some(last) if is_parameter && last.contains(':') => {
                last.push(',');
                last.push_str(piece);
            }
            _ if is_parameter => {
                return Err(format!("{piece} belongs to no policy: expected name:{piece}"));
            }
            _ => policies.push(piece.to_owned()),
        }
    }
    Ok(PolicyList(policies))
}

/// A time to measure: longer than nothing, at most an hour.
fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 3600.0 => Ok(value),
        _ => Err("expected seconds above 0, at most 3600".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_parameters_do_not_part_policies() {
        let of = |text| policy_list(text).map(|list| list.0);
        assert_eq!(of("hold,hpa").unwrap(), ["hold", "hpa"]);
        assert_eq!(
            of("hpa:target=0.5,min=6,runbook, fixed-20").unwrap(),
            ["hpa:target=0.5,min=6", "runbook", "fixed-20"]
        );
        assert!(of("hold,").unwrap_err().contains("empty name"));
        assert!(of("min=6").unwrap_err().contains("belongs to no policy"));
        assert!(of("hold,min=6").unwrap_err().contains("belongs to no policy"));
    }

    #[test]
    fn times_are_positive() {
        assert_eq!(seconds("0.5"), Ok(0.5));
        for bad in ["0", "-1", "NaN", "inf", "x", "3601"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
