//! The binary as a user meets it: what it prints, where, and with which exit code.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn oncall(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_oncall")).args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Standard output of a command that must succeed.
fn stdout(args: &[&str]) -> String {
    let output = oncall(args);
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// Standard error of a command that must fail with a code.
fn stderr(args: &[&str], code: i32) -> String {
    let output = oncall(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", text(&output.stderr));
    assert!(output.stdout.is_empty(), "{args:?}: {}", text(&output.stdout));
    text(&output.stderr).to_owned()
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&stdout(args)).unwrap()
}

/// A file of a test; each test has names of its own.
fn file(name: &str, content: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A column of a CSV by name.
fn column(csv: &str, name: &str) -> Vec<f64> {
    let mut lines = csv.lines();
    let index = lines.next().unwrap().split(',').position(|found| found == name).unwrap();
    lines.map(|line| line.split(',').nth(index).unwrap().parse().unwrap()).collect()
}

#[test]
fn help_and_version_go_to_standard_output() {
    assert!(stdout(&["--version"]).starts_with("oncall "));
    let help = stdout(&["--help"]);
    let commands =
        ["list", "describe", "check", "run", "eval", "tune", "report", "reference", "bench"];
    assert!(help.contains("Examples:"));
    for command in commands {
        assert!(help.contains(&format!("\n  {command} ")), "{command}");
        assert!(stdout(&[command, "--help"]).contains("Usage: oncall"), "{command}");
    }
}

#[test]
fn wrong_usage_is_code_2() {
    for args in [
        &["run"][..],
        &["fly"],
        &["describe"],
        &["describe", "spike", "--policies"],
        &["run", "spike", "--minutes", "0"],
        &["run", "spike", "--minutes", "4000000000"],
        &["run", "spike", "--seed", "-1"],
        &["run", "spike", "--split", "half"],
        &["run", "spike", "--policy", "hold", "--dials", "x.csv"],
        &["bench", "--seconds", "0"],
        &["report", "--policies", "hold,"],
        &["reference", "--sample", "2"],
        &["reference", "--threads", "2"],
    ] {
        assert!(stderr(args, 2).starts_with("error: "), "{args:?}");
    }
}

#[test]
fn list_names_everything_that_comes_along() {
    let list = stdout(&["list"]);
    for name in ["spike", "bad-build", "cache-flush", "steady", "mixed", "spike-hard"] {
        assert!(
            list.lines().any(|line| line.trim_start().starts_with(&format!("{name} "))),
            "{name}"
        );
    }
    let list = json(&["list", "--json"]);
    assert_eq!(list["schema_version"], 1);
    let names = |key: &str| -> Vec<String> {
        let items = list[key].as_array().unwrap().iter();
        items.map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    };
    assert!(names("scenarios").contains(&"cache-flush-hard".to_owned()));
    for policy in ["hold", "hpa", "runbook", "random", "cheat-ttl-0"] {
        assert!(names("policies").contains(&policy.to_owned()), "{policy}");
    }
    assert!(
        list["scenarios"]
            .as_array()
            .unwrap()
            .iter()
            .all(|s| s["hash"].as_str().unwrap().len() == 16)
    );
}

#[test]
fn describe_tells_what_differs_and_the_tables() {
    let spike = stdout(&["describe", "spike"]);
    let line = |name: &str| {
        let found = spike.lines().find(|line| line.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("no line {name}")).to_owned()
    };
    assert!(line("surges[0].start_min").contains("uniform 20..160"));
    assert!(line("fleet.boot_delay_min").contains("  8 "));
    assert!(line("cache_ttl_s").contains("0..600"));
    assert!(line("budget_left").contains('+'));
    assert!(line("staleness_usd").contains("Staleness"));

    let flush = json(&["describe", "cache-flush", "--json"]);
    assert_eq!(
        (&flush["schema_version"], &flush["world"]),
        (&Value::from(1), &Value::from("fleet"))
    );
    let numbers = flush["variants"][0]["numbers"].as_array().unwrap();
    let number = |path: &str| numbers.iter().find(|number| number["path"] == path).unwrap();
    assert_eq!(number("opening.cache_ttl_s")["value"], 90.0);
    assert_eq!(number("opening.cache_ttl_s")["default"], 60.0);
    assert_eq!(number("flushes[0].minute")["value"], 30.0);
    assert_eq!(flush["dials"].as_array().unwrap().len(), 8);
    assert_eq!(flush["terms"].as_array().unwrap().len(), 6);

    let mixed = json(&["describe", "mixed", "--json"]);
    let variants = mixed["variants"].as_array().unwrap();
    let names: Vec<&str> = variants.iter().map(|v| v["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["spike", "bad-build", "cache-flush"]);
    let shares: f64 = variants.iter().map(|variant| variant["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-12);

    assert!(stdout(&["describe", "--policies"]).contains("tolerance"));
    let policies = json(&["describe", "--policies", "--json"]);
    assert!(policies["policies"].as_array().unwrap().iter().any(|p| p["name"] == "runbook"));
}

#[test]
fn check_reports_everything_at_once() {
    let good = file("good.json", r#"{"schema_version": 1, "world": "fleet", "name": "good"}"#);
    let bad = file(
        "bad.json",
        r#"{"schema_version": 1, "world": "fleet", "name": "bad",
            "demand": {"base_rsp": 5}, "fleet": {"boot_delay_min": 99}, "flushes": [{"minute": "soon"}]}"#,
    );
    let printed = stdout(&["check", &good]);
    assert!(printed.starts_with(&format!("{good}: ok (good, hash ")), "{printed}");
    let problems = stderr(&["check", &bad], 1);
    for word in ["base_rsp", "base_rps", "boot_delay_min", "99", "flushes[0].minute", "soon"] {
        assert!(problems.contains(word), "{word}: {problems}");
    }
    assert!(problems.contains("error: ") && problems.contains("is not a valid scenario"));
    let both = oncall(&["check", &good, &bad, "missing.json"]);
    assert_eq!(both.status.code(), Some(1));
    assert!(text(&both.stdout).contains(": ok ("));
    assert!(text(&both.stderr).contains("2 of 3 files"));
    assert!(text(&both.stderr).contains("cannot read missing.json: "));
}

#[test]
fn a_scenario_finds_the_files_beside_it() {
    file("load.csv", "requests_per_s\n10\n20\n30\n");
    let path = file(
        "series.json",
        r#"{"schema_version": 1, "world": "fleet", "name": "series", "shift": {"length_min": 3},
            "demand": {"series": {"csv": "load.csv"}, "noise": 0}}"#,
    );
    let csv = stdout(&["run", &path, "--seed", "1"]);
    assert_eq!(column(&csv, "offered_rps"), [10.0, 20.0, 30.0]);
    assert!(stdout(&["describe", &path]).contains("3 minutes, mean 20 req/s"));
    let mixture = file(
        "mixture.json",
        r#"{"schema_version": 1, "world": "fleet", "name": "both",
            "mixture": [{"scenario": "series", "weight": 3}, {"scenario": "steady"}]}"#,
    );
    let described = json(&["describe", &mixture, "--json"]);
    assert_eq!(described["variants"][0]["share"], 0.75);
    assert_eq!(described["variants"][0]["series_min"], 3);
}

#[test]
fn dials_are_written_where_asked_for() {
    let args = ["run", "spike", "--policy", "runbook", "--minutes", "30", "--seed", "1"];
    let plain = stdout(&args);
    assert!(!plain.contains("dial_"));
    let csv = stdout(&[&args[..], &["--with-dials"]].concat());
    let width = |csv: &str| csv.lines().next().unwrap().split(',').count();
    // Two of the eight are buttons, which have no place.
    assert_eq!(width(&csv), width(&plain) + 6);
    assert_eq!(column(&csv, "offered_rps"), column(&plain, "offered_rps"));
    let asked = column(&csv, "dial_min_instances");
    assert!(asked.iter().any(|dial| *dial != asked[0]), "{asked:?}");
}

#[test]
fn equal_seeds_make_equal_bytes() {
    let args = ["run", "spike-hard", "--policy", "random", "--minutes", "40"];
    let run = |seed: &str| stdout(&[&args[..], &["--seed", seed]].concat());
    let (first, other, again) = (run("11"), run("12"), run("11"));
    assert_eq!(first, again);
    assert_ne!(first, other);
    let test = stdout(&[&args[..], &["--seed", "11", "--split", "test"]].concat());
    assert_ne!(first, test);
    // Unseeded runs say which seed they drew, and that seed plays the same shift again.
    let unseeded = json(&["run", "spike-hard", "--json"]);
    let seed = unseeded["seed"].as_u64().unwrap().to_string();
    assert_eq!(json(&["run", "spike-hard", "--json", "--seed", &seed]), unseeded);
    assert_ne!(json(&["run", "spike-hard", "--json"])["seed"], unseeded["seed"]);
}

#[test]
fn the_summary_agrees_with_the_csv() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("summary.csv");
    let path = out.to_str().unwrap();
    let args = ["run", "bad-build", "--seed", "5", "--json", "--out", path];
    let summary = json(&args);
    let csv = std::fs::read_to_string(&out).unwrap();
    let rewards: f64 = column(&csv, "reward").iter().sum();
    assert!((summary["return"].as_f64().unwrap() - rewards).abs() < 1e-9);
    let budget: f64 = column(&csv, "budget_usd").iter().sum();
    assert!((summary["terms"]["budget_usd"].as_f64().unwrap() - budget).abs() < 1e-9);
    let left = column(&csv, "budget_left");
    let burned = 0.2 - left[left.len() - 1];
    assert!((summary["budget_burned"].as_f64().unwrap() - burned).abs() < 1e-12);
    let pages = column(&csv, "page");
    let edges = (0..pages.len()).filter(|&i| pages[i] > 0.5 && (i == 0 || pages[i - 1] < 0.5));
    assert_eq!(summary["pages"].as_u64().unwrap() as usize, edges.count());
    assert!(summary["pages"].as_u64() >= Some(1), "a bad build that nobody rolls back pages");
    assert_eq!(
        (&summary["minutes"], &summary["policy"]),
        (&Value::from(120), &Value::from("hold"))
    );
    // Without --json the same is told in words: beside a CSV on standard output to standard error.
    let piped = oncall(&["run", "bad-build", "--seed", "5"]);
    assert_eq!(text(&piped.stdout), csv);
    assert!(text(&piped.stderr).contains("seed 5, split train, policy hold"));
    let told = stdout(&["run", "bad-build", "--seed", "5", "--out", path]);
    assert!(told.contains(summary["digest"].as_str().unwrap()));
}

#[test]
fn minutes_may_exceed_the_shift_or_cut_it_short() {
    for minutes in ["7", "240", "500"] {
        let csv = stdout(&["run", "steady", "--seed", "3", "--minutes", minutes]);
        assert_eq!(column(&csv, "minute").len().to_string(), minutes);
    }
    assert_eq!(column(&stdout(&["run", "steady", "--seed", "3"]), "minute").len(), 240);
}

#[test]
fn the_last_row_of_dials_holds_and_presses_are_not_repeated() {
    let dials = file("dials.csv", "min_instances,warm_up,cache_ttl_s\n10,0,60\n12,1,30\n");
    let demand = file("demand.csv", "requests_per_s\n500\n700\n");
    let csv = stdout(&[
        "run",
        "steady",
        "--dials",
        &dials,
        "--demand",
        &demand,
        "--minutes",
        "20",
        "--seed",
        "1",
    ]);
    let offered = column(&csv, "offered_rps");
    assert_eq!((offered[0], &offered[1..]), (500.0, &[700.0; 19][..]));
    let age = column(&csv, "cache_age_s");
    assert_eq!((age[0], &age[1..]), (30.0, &[15.0; 19][..]));
    assert_eq!(column(&csv, "serving")[19], 12.0);
    // A warm-up loads the database by 600 queries a second for six minutes, and not again after that.
    let db = column(&csv, "db_utilization");
    let hit = column(&csv, "cache_hit");
    let extra: Vec<bool> = (0..20)
        .map(|i| (db[i] * 4000.0 - offered[i] * 3.0 * (1.0 - hit[i])).round() as i64 == 600)
        .collect();
    let pressed: Vec<usize> = (0..20).filter(|&i| extra[i]).collect();
    assert_eq!(pressed, [1, 2, 3, 4, 5, 6]);
}

#[test]
fn wrong_input_is_named_and_writes_nothing() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("never.csv");
    let _ = std::fs::remove_file(&out);
    let path = out.to_str().unwrap();
    let high = file("high.csv", "min_instances\n10\n41\n");
    let name = file("name.csv", "min_instance\n10\n");
    let negative = file("negative.csv", "requests_per_s\n10\n-1\n");
    let empty = file("empty.csv", "");
    let cases: &[(&[&str], &[&str])] = &[
        (&["spik"], &["\"spik\"", "cache-flush", ".json"]),
        (&["no/such.json"], &["cannot read no/such.json"]),
        (&["spike", "--policy", "hpa:min=0"], &["hpa", "min", "0", "1 to 40"]),
        (&["spike", "--policy", "nobody"], &["nobody", "runbook"]),
        (&["spike", "--dials", &high], &["high.csv", "line 3", "41", "40"]),
        (&["spike", "--dials", &name], &["name.csv", "min_instance", "min_instances"]),
        (&["spike", "--dials", "gone.csv"], &["cannot read gone.csv"]),
        (&["spike", "--demand", &negative], &["negative.csv", "line 3", "-1"]),
        (&["spike", "--demand", &empty], &["empty.csv"]),
    ];
    for (args, words) in cases {
        let message = stderr(&[&["run"], *args, &["--out", path]].concat(), 1);
        assert!(message.starts_with("error: "), "{message}");
        for word in *words {
            assert!(message.contains(word), "{word} in {message}");
        }
        assert!(!message.contains("RUST_BACKTRACE") && !message.contains("panicked"));
        assert!(!out.exists(), "{args:?}");
    }
    assert!(stderr(&["run", "spike", "--json", "--out", "-"], 1).contains("--out -"));
    let shared = file(
        "shared.json",
        r#"{"schema_version": 1, "world": "fleet", "name": "s", "generator": "mulberry32"}"#,
    );
    let message = stderr(&["run", &shared, "--seed", "4294967296", "--out", path], 1);
    assert!(message.contains("4294967296") && message.contains("mulberry32"), "{message}");
    assert!(!out.exists());
    let message = stderr(&["run", "spike", "--out", "no/such/folder.csv"], 1);
    assert!(message.contains("cannot write no/such/folder.csv"), "{message}");
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_oncall"))
        .args(["run", "steady", "--minutes", "20000", "--seed", "1"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""));
}

#[test]
fn bench_measures_every_pair() {
    let args = ["bench", "--batch", "1,33", "--threads", "1,2", "--seconds", "0.05"];
    let bench = json(&[&args[..], &["--json"]].concat());
    let results = bench["results"].as_array().unwrap();
    let pairs: Vec<(u64, u64)> = results
        .iter()
        .map(|result| (result["batch"].as_u64().unwrap(), result["threads"].as_u64().unwrap()))
        .collect();
    assert_eq!(pairs, [(1, 1), (1, 2), (33, 1), (33, 2)]);
    for result in results {
        let rate = |key: &str| result["minutes_per_s"][key].as_f64().unwrap();
        assert!(
            rate("min") > 0.0 && rate("min") <= rate("median") && rate("median") <= rate("max")
        );
    }
    assert!(stdout(&args).contains("minutes/s"));
    let message = stderr(&["bench", "--batch", "0"], 1);
    assert!(message.contains("num_envs"), "{message}");
}

/// Every element that opens closes, in the right order. Gives the number of elements by name.
fn elements(page: &str) -> std::collections::BTreeMap<String, usize> {
    let (mut open, mut counts) = (Vec::new(), std::collections::BTreeMap::new());
    for part in page.split('<').skip(1) {
        let tag = part.split('>').next().unwrap();
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop().as_deref(), Some(name), "{tag}");
        } else if !tag.starts_with('!') {
            *counts.entry(name.to_owned()).or_insert(0) += 1;
            if name != "meta" && !tag.ends_with('/') {
                open.push(name.to_owned());
            }
        }
    }
    assert!(open.is_empty(), "{open:?}");
    counts
}

#[test]
fn the_report_is_one_page_that_needs_nothing_else() {
    let args = [
        "report",
        "--scenarios",
        "spike,cache-flush",
        "--policies",
        "hold,fixed-20,runbook,ppo",
        "--episodes",
        "30",
        "--out",
        "-",
    ];
    let page = stdout(&args);
    assert_eq!(page, stdout(&[&args[..], &["--threads", "1"]].concat()));
    let elements = elements(&page);
    // Two scenarios: three profiles, two timelines; small bars: one a policy and score.
    assert_eq!(page.matches("<svg class=\"micro\"").count(), 4 * (2 + 4));
    assert_eq!(elements["svg"], 3 + 2 + 4 * (2 + 4));
    // Scores and timeline tables of each scenario, all together, pairs: each scenario, all twice.
    assert_eq!(elements["table"], 2 * 2 + 1 + 2 + 2);
    for word in [
        "A link goes viral",
        "fixed-20",
        "cache flushed",
        "Dollars so far",
        "Errors, share of the admitted requests",
        "seed 1",
        "prefers-color-scheme: dark",
        "not a proven bound",
        "best rule",
        "Performance profiles",
        "all 2 scenarios, unpaired",
        "spike, paired",
        "optimality gap",
    ] {
        assert!(page.contains(word), "{word}");
    }
    for word in ["<script", "http", "<link", "@import", "url(", "NaN", ">inf", "inf<", "inf,"] {
        assert!(!page.contains(word), "{word}");
    }
    // The numbers are those of the evaluation.
    let eval = ["eval", "--scenarios", "spike", "--policies", "runbook", "--episodes", "30"];
    let eval = json(&[&eval[..], &["--json", "-"]].concat());
    let score = eval["scenarios"][0]["policies"][0]["score"]["mean"].as_f64().unwrap();
    assert!(page.contains(&format!("<td>{score:.1}<small>")), "{score}");
    let many = ["fixed-1"; 9].join(",");
    assert!(stderr(&["report", "--policies", &many], 1).contains("at most 8"));
    assert!(stderr(&["report", "--policies", "runbok"], 1).contains("`runbok`"));
}

#[test]
fn a_report_shows_shifts_alone_or_how_a_policy_learned() {
    let shifts = ["report", "--scenarios", "steady", "--policies", "hold", "--episodes", "0"];
    let shifts = [&shifts[..], &["--out", "-"]].concat();
    let page = stdout(&shifts);
    assert_eq!(elements(&page)["svg"], 1);
    assert!(!page.contains("id=\"scores\"") && !page.contains("id=\"learning\""));

    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("curves");
    for (seed, end) in [(1, -30), (2, -26)] {
        let folder = root.join(format!("spike/seed-{seed}"));
        std::fs::create_dir_all(&folder).unwrap();
        let log = format!("update,steps,seconds,return_usd\n1,1000000,5,-90\n2,2000000,9,{end}\n");
        std::fs::write(folder.join("training.csv"), log).unwrap();
    }
    let root = root.to_str().unwrap();
    let page = stdout(&[&shifts[..], &["--curves", root]].concat());
    assert_eq!(elements(&page)["svg"], 2);
    assert_eq!(page.matches("learned thin").count(), 2);
    for word in ["spike, 2 trainings", "2.00 M", "−26.00", ">planner</text>"] {
        assert!(page.contains(word), "{word}");
    }
    let message = stderr(&[&shifts[..], &["--curves", "no/such"]].concat(), 1);
    assert!(message.contains("curves: cannot read no/such"), "{message}");
}

#[test]
fn the_reference_is_shown_and_checked() {
    let shown = stdout(&["reference"]);
    assert!(shown.contains("The planner's score, not a proven bound"), "{shown}");
    for name in ["spike", "bad-build-hard", "mixed"] {
        assert!(shown.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}");
    }
    let one = stdout(&["reference", "--scenarios", "steady"]);
    assert!(one.contains("  steady ") && !one.contains("  spike "), "{one}");
    let check = ["reference", "--check", "--scenarios", "bad-build,steady", "--sample", "1"];
    let checked = stdout(&check);
    for name in ["bad-build", "steady"] {
        let line = checked.lines().find(|line| line.contains(&format!("  {name} "))).unwrap();
        assert!(line.ends_with("agrees"), "{line}");
    }
    // Any number of threads finds the same.
    assert_eq!(stdout(&[&check[..], &["--threads", "1"]].concat()), checked);
    let message = stderr(&["reference", "--check", "--sample", "101"], 1);
    assert!(message.contains("sample = 101: expected 1..=100"), "{message}");
    let message = stderr(&["reference", "--check", "--sample", "1", "--threads", "0"], 1);
    assert!(message.contains("threads = 0"), "{message}");
    assert!(stderr(&["reference", "--scenarios", "spik"], 1).contains("\"spik\""));
}
