//! `oncall tune`: the search for a policy's parameters, on training episodes.
//!
//! The shape of the JSON is described at [`oncall_eval::tune`].

use crate::args::ScaleArg;
use crate::eval::{check_folder, processors};
use crate::output::{create, note, print};
use crate::scenarios;
use anyhow::Context as _;
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use oncall_eval::tune::{Effort, Step, Tuned, tune};
use oncall_heuristics::PolicySpec;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Arguments of `oncall tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  oncall tune spike-hard --policy hpa --episodes 300 --out \
                        hpa.json\n  oncall tune ./mine.json --policy runbook --rounds 4\n\nThe search \
                        sees training episodes only. It begins with the tuned parameters, or with \
                        those that --policy gives. The result can be given to --policies as it \
                        is printed.")]
pub struct TuneArgs {
    /// Name of a shipped scenario, or path of a .json file.
    pub scenario: String,
    /// How large the fleet is; of discovery only.
    #[arg(long, value_enum)]
    pub scale: Option<ScaleArg>,
    /// The policy; parameters as in `hpa:target=0.5,min=6` are where the search begins.
    #[arg(long, value_name = "NAME")]
    pub policy: String,
    /// Training episodes that score a candidate.
    #[arg(long, value_name = "N", default_value_t = 200)]
    pub episodes: usize,
    /// Seed of the episodes and of the search.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Rounds of the search; as many as the policy's kind needs, if not given.
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Threads; as many as there are processors, if not given.
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Write the result as JSON here; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Searches, prints what was found, and writes the file.
pub fn run(args: TuneArgs) -> anyhow::Result<()> {
    let TuneArgs { scenario, scale, policy, episodes, seed, rounds, threads, out } = args;
    let effort = Effort { episodes, seed, rounds, threads: threads.unwrap_or_else(processors) };
    let scenario = scenarios::open_at(&scenario, scale)?;
    let policy: PolicySpec = policy.parse()?;
    if let Some(path) = &out {
        check_folder(path)?;
    }
    let bar = ProgressBar::new(0);
    let template = "  {bar:40} {pos}/{len} candidates, best {msg}, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    let tuned = tune(&scenario, &policy, effort, &mut |Step { candidates, of, best_usd }| {
        bar.set_length(of as u64);
        bar.set_message(format!("{best_usd:.2}"));
        bar.set_position(candidates as u64);
    });
    bar.finish_and_clear();
    let tuned = tuned?;
    if let Some(path) = &out {
        let write = || -> anyhow::Result<()> {
            let mut out = create(path)?;
            out.write_all(tuned.json().as_bytes())?;
            Ok(out.flush()?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))?;
    }
    let text = text(&tuned);
    if out.as_deref() == Some(Path::new("-")) {
        note(text.trim_end());
        return Ok(());
    }
    print(&text)
}

fn text(tuned: &Tuned) -> String {
    format!(
        "{} on {} ({}): {} candidates on {} training episodes, seed {}\n  \
         mean return on these episodes   {:9.2}  (began at {:.2})\n  \
         mean return on as many others   {:9.2}  (began at {:.2})\n\n{}\n",
        tuned.policy,
        tuned.scenario,
        tuned.scenario_hash,
        tuned.candidates,
        tuned.episodes,
        tuned.seed,
        tuned.return_usd,
        tuned.start_usd,
        tuned.fresh_usd,
        tuned.fresh_start_usd,
        tuned.text
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::{Cli, Command};
    use clap::Parser as _;

    fn run_oncall(args: &[&str]) -> anyhow::Result<()> {
        match Cli::try_parse_from(["oncall", "tune"].iter().chain(args))?.command {
            Command::Tune(args) => run(args),
            other => anyhow::bail!("parsed as {other:?}"),
        }
    }

    #[test]
    fn the_file_has_what_was_found() {
        let path = std::env::temp_dir().join(format!("oncall-tune-{}.json", std::process::id()));
        let common = ["steady", "--policy", "target-tracking", "--episodes", "2", "--rounds", "1"];
        run_oncall(&[&common[..], &["--out", path.to_str().unwrap()]].concat()).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        std::fs::remove_file(&path).unwrap();
        assert_eq!((&json["scenario"], &json["split"]), (&"steady".into(), &"train".into()));
        let text = json["text"].as_str().unwrap();
        assert!(text.starts_with("target-tracking:"));
        text.parse::<PolicySpec>().unwrap();
        assert!(json["return_usd"].as_f64().unwrap() >= json["start_usd"].as_f64().unwrap());
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let error = |args: &[&str]| format!("{:#}", run_oncall(args).unwrap_err());
        assert!(error(&["spik", "--policy", "hpa"]).contains("\"spik\""));
        assert!(error(&["spike", "--policy", "hpb"]).contains("`hpb`"));
        assert!(error(&["spike", "--policy", "hold"]).contains("`hold`"));
        assert!(error(&["spike", "--policy", "hpa", "--rounds", "0"]).contains("rounds = 0"));
        assert!(error(&["spike"]).contains("--policy"));
    }
}
