//! `oncall reference`: the planner's constants, and a sample of them computed again.

use crate::eval::processors;
use crate::output::{Table, print};
use crate::scenarios;
use anyhow::{bail, ensure};
use clap::Args;
use indicatif::{ProgressBar, ProgressStyle};
use oncall_env::Scenario;
use oncall_eval::hex;
use oncall_eval::score::{Constants, reference};
use oncall_eval::stats::Bootstrap;
use oncall_planner::{PlannedScenario, ReferenceCheck, planner_reference, reference_check};
use std::fmt::Write as _;

/// Episodes of a scenario that are planned again unless told otherwise.
const SAMPLE: usize = 5;

/// Seed of the intervals; any would do.
const INTERVAL_SEED: u64 = 0;

/// Arguments of `oncall reference`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  oncall reference\n  oncall reference --check --scenarios spike \
                  --sample 20\n\nThe constants are a planner's score, not a proven bound: a search \
                  with a copy of the world on the very episode, which knows the morning in advance. \
                  A check plans a sample of the episodes again, spread evenly, and ends with code 1 \
                  where a return differs by more than half a percent. Any number of threads finds \
                  the same."
)]
pub struct ReferenceArgs {
    /// Scenarios, names or paths, separated by commas; all that have constants, if not given.
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub scenarios: Option<Vec<String>>,
    /// Compute a sample of the constants again.
    #[arg(long)]
    pub check: bool,
    /// Episodes of each scenario that a check plans again; 5, if not given.
    #[arg(long, value_name = "N", requires = "check")]
    pub sample: Option<usize>,
    /// Threads of a check; as many as there are processors, if not given.
    #[arg(long, value_name = "N", requires = "check")]
    pub threads: Option<usize>,
}

/// Prints the constants, or checks them.
pub fn run(args: &ReferenceArgs) -> anyhow::Result<()> {
    let names = match &args.scenarios {
        Some(names) => names.clone(),
        None => planner_reference().scenarios.iter().map(|known| known.scenario.clone()).collect(),
    };
    let scenarios: Vec<Scenario> =
        names.iter().map(|name| scenarios::open(name)).collect::<Result<_, _>>()?;
    // All names first: a typing error must not cost the minutes of those before it.
    let known: Vec<&PlannedScenario> = scenarios.iter().map(known).collect::<Result<_, _>>()?;
    if !args.check {
        return print(&constants(&known));
    }
    let sample = args.sample.unwrap_or(SAMPLE);
    for known in known {
        let most = known.returns.len();
        ensure!((1..=most).contains(&sample), "sample = {sample}: expected 1..={most}");
    }
    let checks = check(&scenarios, sample, args.threads.unwrap_or_else(processors))?;
    print(&verdicts(&checks))?;
    verdict(&checks)
}

/// An error that names the scenarios whose constants are wrong.
fn verdict(checks: &[ReferenceCheck]) -> anyhow::Result<()> {
    let wrong: Vec<&str> = (checks.iter().filter(|check| !check.agrees()))
        .map(|check| check.committed.scenario.as_str())
        .collect();
    if !wrong.is_empty() {
        bail!("the constants of {} do not come out again", wrong.join(", "));
    }
    Ok(())
}

/// The committed constants of a scenario.
fn known(scenario: &Scenario) -> anyhow::Result<&'static PlannedScenario> {
    let all = &planner_reference().scenarios;
    let Some(known) = all.iter().find(|known| known.scenario == scenario.name) else {
        let names: Vec<&str> = all.iter().map(|known| known.scenario.as_str()).collect();
        bail!("scenarios = {}: expected some of {}", scenario.name, names.join(", "));
    };
    let hash = hex(scenario.hash);
    ensure!(
        known.hash == hash,
        "scenarios = {} with hash {hash}: expected {}, that of the constants",
        scenario.name,
        known.hash
    );
    Ok(known)
}

fn constants(all: &[&PlannedScenario]) -> String {
    let planner = planner_reference();
    let mut table =
        Table::new(&["scenario", ">planner", ">95 %", ">best rule", ">hold", ">gap", "hash"]);
    let mut hold = None;
    for known in all {
        let constants = reference().scenarios.iter().find(|c| c.scenario == known.scenario);
        let constants = constants.map(|Constants { zero, .. }| zero);
        hold = hold.or(constants);
        let [low, high] = Bootstrap::new(INTERVAL_SEED).mean(&[&known.returns]).ci95;
        let held = |text: &dyn Fn(f64) -> f64| {
            constants.map_or("–".to_owned(), |hold| format!("{:.2}", text(hold.mean)))
        };
        table.row(vec![
            known.scenario.clone(),
            format!("{:.2}", known.mean),
            format!("[{low:.2}, {high:.2}]"),
            format!("{:.2}", known.best_rule_mean),
            held(&|hold| hold),
            held(&|hold| known.mean - hold),
            known.hash.clone(),
        ]);
    }
    let episodes = all.first().map_or(0, |known| known.returns.len());
    let hold = hold.map_or(String::new(), |hold| {
        format!(
            "hold: mean return over {} {} episodes of seed {}, score 0.\n",
            hold.episodes, hold.split, hold.seed
        )
    });
    format!(
        "The planner's score, not a proven bound\n\n{}\n\
         planner: mean return, dollars, over {episodes} {} episodes of seed {}, score 100; a search of\n\
         version {} that knows the morning, {} minutes of the world an episode, search seed {}.\n\
         95 %: bootstrap interval of its mean. best rule: mean of the best rule of each episode, where the\n\
         search begins. {hold}gap: what 100 points of score are in dollars.\n",
        table.text(),
        planner.split,
        planner.seed,
        planner.planner_version,
        planner.budget_min,
        planner.search_seed,
    )
}

/// Plans the samples again, with a bar over the episodes.
fn check(
    scenarios: &[Scenario],
    sample: usize,
    threads: usize,
) -> anyhow::Result<Vec<ReferenceCheck>> {
    let bar = ProgressBar::new((scenarios.len() * sample) as u64);
    let template = "  planning {msg:20} {bar:30} {pos}/{len} episodes, {eta} left";
    bar.set_style(ProgressStyle::with_template(template)?);
    bar.enable_steady_tick(std::time::Duration::from_millis(500));
    let mut checks = Vec::new();
    for scenario in scenarios {
        bar.set_message(scenario.name.clone());
        checks.push(reference_check(scenario, sample, threads, &|| bar.inc(1)));
    }
    bar.finish_and_clear();
    Ok(checks.into_iter().collect::<Result<_, _>>()?)
}

fn verdicts(checks: &[ReferenceCheck]) -> String {
    let head = ["scenario", ">episodes", ">committed", ">found", ">worst difference", "verdict"];
    let mut table = Table::new(&head);
    let mut wrong = String::new();
    for check in checks {
        let episodes = &check.episodes;
        let mean = |value: &dyn Fn(usize) -> f64| {
            (0..episodes.len()).map(value).sum::<f64>() / episodes.len() as f64
        };
        table.row(vec![
            check.committed.scenario.clone(),
            episodes.len().to_string(),
            format!("{:.4}", mean(&|i| episodes[i].committed)),
            format!("{:.4}", mean(&|i| episodes[i].found)),
            format!("{:.4}", check.worst_usd()),
            if check.agrees() { "agrees" } else { "differs" }.to_owned(),
        ]);
        for episode in episodes.iter().filter(|episode| !episode.agrees()) {
            let _ = writeln!(
                wrong,
                "{}: episode {} (seed {}) was {:.4}, is {:.4}",
                check.committed.scenario,
                episode.index,
                episode.seed,
                episode.committed,
                episode.found
            );
        }
    }
    let separator = if wrong.is_empty() { "" } else { "\n" };
    format!(
        "The planner's score, a sample computed again (returns in dollars an episode)\n\n{}{separator}{wrong}",
        table.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_constants_are_named_for_what_they_are() {
        let all: Vec<&PlannedScenario> = planner_reference().scenarios.iter().collect();
        let text = constants(&all);
        assert!(text.starts_with("The planner's score, not a proven bound"));
        for known in all {
            let line = text.lines().find(|line| line.contains(&known.hash)).unwrap();
            assert!(line.contains(&known.scenario) && line.contains(&format!("{:.2}", known.mean)));
            let hold = reference().scenarios.iter().find(|c| c.scenario == known.scenario).unwrap();
            assert!(line.contains(&format!("{:.2}", known.mean - hold.zero.mean)), "{line}");
        }
        for word in
            ["100 test episodes of seed 1", "1500000 minutes", "search seed 1", "10000 train"]
        {
            assert!(text.contains(word), "{word} in {text}");
        }
    }

    #[test]
    fn a_return_that_does_not_come_out_again_is_named() {
        let committed = &planner_reference().scenarios[0];
        let planned = |index: usize, found: f64| oncall_planner::Recomputed {
            index,
            seed: 7,
            committed: committed.returns[index],
            found,
        };
        let episodes = vec![planned(0, committed.returns[0]), planned(50, -99.0)];
        let wrong = [ReferenceCheck { committed, episodes }];
        let text = verdicts(&wrong);
        assert!(text.contains("differs") && !text.contains("agrees"), "{text}");
        assert!(text.contains("spike: episode 50 (seed 7) was -"), "{text}");
        assert!(text.contains("is -99.0000\n"), "{text}");
        assert!(!text.contains("episode 0 "), "{text}");
        let failed = verdict(&wrong).unwrap_err().to_string();
        assert_eq!(failed, "the constants of spike do not come out again");
        let episodes = vec![planned(0, committed.returns[0])];
        let good = [ReferenceCheck { committed, episodes }];
        assert!(verdict(&good).is_ok() && verdicts(&good).contains("agrees"));
    }

    #[test]
    fn only_what_has_constants_is_checked() {
        let steady = oncall_env::shipped("steady").unwrap();
        assert_eq!(known(&steady).unwrap().scenario, "steady");
        let mine = Scenario { name: "mine".to_owned(), ..steady.clone() };
        let error = known(&mine).unwrap_err().to_string();
        assert!(error.starts_with("scenarios = mine: expected some of spike, "), "{error}");
        let changed = Scenario { hash: 1, ..steady };
        let error = known(&changed).unwrap_err().to_string();
        assert!(error.contains("with hash 0000000000000001: expected "), "{error}");
    }
}
