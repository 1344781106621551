//! Discovery as an environment on the command line: the commands of the fleet, and its own ones.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn oncall(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_oncall")).args(args).output().unwrap()
}

fn stdout(args: &[&str]) -> String {
    let output = oncall(args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

fn stderr(args: &[&str]) -> String {
    let output = oncall(args);
    assert_eq!(output.status.code(), Some(1), "{args:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

fn path(name: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().unwrap().to_owned()
}

#[test]
fn scenarios_are_listed_and_described_at_every_scale() {
    let list = json(&["list", "--json"]);
    let of = |key: &str, name: &str| -> Value {
        let items = list[key].as_array().unwrap();
        items.iter().find(|item| item["name"] == name).unwrap().clone()
    };
    assert_eq!(of("scenarios", "crash-wave")["world"], "discovery");
    assert_eq!(of("scenarios", "spike")["world"], "fleet");
    assert_eq!(of("policies", "operator")["worlds"], serde_json::json!(["discovery"]));
    assert_eq!(of("policies", "planner-honest")["worlds"], serde_json::json!(["fleet"]));
    let text = stdout(&["describe", "control-plane-outage"]);
    for word in ["scale small", "outages[0].for_min", "probe_interval_s", "a tick of 10 s"] {
        assert!(text.contains(word), "{word}: {text}");
    }
    let mixed = json(&["describe", "mixed-discovery", "--scale", "tenth", "--json"]);
    assert_eq!((&mixed["name"], &mixed["tick_s"]), (&"mixed-discovery@tenth".into(), &10.into()));
    assert!(mixed["variants"].as_array().unwrap().len() > 10);
    assert_eq!(mixed["variants"][0]["scale"], "tenth");
    assert_ne!(mixed["hash"], json(&["describe", "mixed-discovery", "--json"])["hash"]);
    let error = stderr(&["describe", "spike", "--scale", "tenth"]);
    assert!(error.contains("only scenarios of discovery have one"), "{error}");
    assert!(stdout(&["describe", "--policies"]).contains("planner-honest (fleet)"));
}

#[test]
fn an_episode_is_written_and_its_policy_must_know_the_world() {
    let common = ["run", "crash-wave", "--seed", "3", "--minutes", "10"];
    let csv = stdout(&[&common[..], &["--policy", "operator"]].concat());
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert!(head.contains(&"ops_usd") && head.contains(&"ready_share_r0"), "{head:?}");
    assert_eq!(lines.count(), 60, "ten minutes of ten-second steps");
    let summary = json(&[&common[..], &["--policy", "default", "--json"]].concat());
    assert!(summary["metrics"]["removal_s_p99_max"].is_number(), "{summary}");
    assert!(summary.get("pages").is_none() && summary["terms"]["ops_usd"].is_number());
    let again = json(&[&common[..], &["--policy", "hold", "--json"]].concat());
    assert_eq!(again["digest"], summary["digest"], "the default is to keep the dials");
    let error = stderr(&[&common[..], &["--policy", "runbook"]].concat());
    assert!(
        error.contains("policy `runbook` plays fleet, found a scenario of discovery"),
        "{error}"
    );
    let error = stderr(&["run", "spike", "--policy", "oracle"]);
    assert!(
        error.contains("policy `oracle` plays discovery, found a scenario of fleet"),
        "{error}"
    );
    let error = stderr(&["eval", "--scenarios", "calm", "--policies", "planner-honest"]);
    assert!(error.contains("planner-honest") && error.contains("it plays fleet"), "{error}");
}

#[test]
fn policies_are_compared_and_drawn() {
    let csv = path("discovery-eval.csv");
    let args =
        ["eval", "--scenarios", "crash-wave", "--policies", "default,static,operator,oracle"];
    let rest = ["--episodes", "2", "--json", "-", "--csv", &csv];
    let report = json(&[&args[..], &rest].concat());
    assert_eq!(report["world"], "discovery");
    let policies = report["scenarios"][0]["policies"].as_array().unwrap();
    assert_eq!(policies.len(), 4);
    for policy in policies {
        assert!(policy["metrics"]["removal_late_share_max"].is_number(), "{policy}");
        assert!(policy.get("pages").is_none());
    }
    // The oracle is told what nobody is told, so it is no rule to be beaten.
    assert_ne!(report["scenarios"][0]["best_rule"], "oracle");
    let head = std::fs::read_to_string(&csv).unwrap();
    let head = head.lines().next().unwrap();
    assert!(head.ends_with("snapshot_age_s_max") && !head.contains("pages"), "{head}");
    let table = stdout(&[&args[..], &["--episodes", "2"]].concat());
    assert!(table.contains("0 = default, 100 = oracle"), "{table}");
    let page = stdout(&["report", "--scenarios", "calm", "--episodes", "2", "--out", "-"]);
    for word in ["READY instances of region 0", "r p99 s", "the oracle, which is told", ">static<"]
    {
        assert!(page.contains(word), "{word}");
    }
    assert!(!page.contains("NaN") && !page.contains("<th>pages"));
}

#[test]
fn settings_are_searched_and_crossed() {
    let (tuned, folder, csv) = (path("tuned.json"), path("journals"), path("cross.csv"));
    let _ = (std::fs::remove_file(&tuned), std::fs::remove_dir_all(&folder));
    let common = ["discovery", "tune", "oracle", "--scenarios", "crash-wave", "--block", "2"];
    let few = ["--blocks", "1", "--wild", "1", "--sweeps", "0", "--steps", "2"];
    let files = ["--journal", &folder, "--save", &tuned];
    let found = stdout(&[&common[..], &few, &files].concat());
    assert!(found.starts_with("oracle crash-wave: "), "{found}");
    let text = std::fs::read_to_string(&tuned).unwrap();
    let table: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(table["oracle"]["crash-wave"]["episodes"], 2);
    // All is in the journal: nothing is played again, and the same is found.
    let journal = Path::new(&folder).join("oracle-crash-wave.jsonl");
    let played = std::fs::read_to_string(&journal).unwrap();
    std::fs::remove_file(&tuned).unwrap();
    assert_eq!(stdout(&[&common[..], &few, &files].concat()), found);
    assert_eq!(std::fs::read_to_string(&journal).unwrap(), played);
    let other = stderr(&[&common[..], &few, &files, &["--seed", "5"]].concat());
    assert!(other.contains("a journal of another search"), "{other}");
    let cross = ["discovery", "cross-table", "--scenarios", "crash-wave,calm", "--episodes", "2"];
    let table = stdout(&[&cross[..], &["--tuned", &tuned, "--csv", &csv]].concat());
    assert!(table.contains("best of crash-wave") && table.contains("ops ratio"), "{table}");
    let rows = std::fs::read_to_string(&csv).unwrap();
    assert_eq!(rows.lines().count(), 1 + 2 * 6, "{rows}");
    assert!(stderr(&["discovery", "cross-table", "--scenarios", "spike"]).contains("of discovery"));
    let error = stderr(&[&common[..], &few, &["--weight", "nothing=2"]].concat());
    assert!(error.contains("term = nothing: expected one of ops_usd, "), "{error}");
}

#[test]
fn steps_a_second_are_measured() {
    let args = ["bench", "--scenario", "calm,calm@tenth", "--threads", "1", "--seconds", "0.5"];
    let text = stdout(&args);
    assert!(text.contains("calm@tenth (hash") && text.contains("steps/s"), "{text}");
    let both = json(&[&args[..], &["--json"]].concat());
    assert_eq!(both[1]["scenario"], "calm@tenth");
    assert!(both[0]["results"][0]["minutes_per_s"]["median"].as_f64().unwrap() > 0.0);
}
