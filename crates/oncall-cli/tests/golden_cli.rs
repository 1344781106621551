//! The fifteen golden episodes through the command line: demand and dials as CSV in, readouts as CSV
//! out. They agree to 1e-9 relative or 1e-12 absolute, counts exactly.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde_json::Value;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// Readouts that must agree to the bit.
const COUNTS: [&str; 3] = ["serving", "booting", "page"];

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

/// A CSV of named columns.
fn csv(columns: &[(&str, Vec<f64>)]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.0).collect();
    let mut text = names.join(",") + "\n";
    for row in 0..columns[0].1.len() {
        let cells: Vec<String> =
            columns.iter().map(|column| format!("{:?}", column.1[row])).collect();
        let _ = writeln!(text, "{}", cells.join(","));
    }
    text
}

fn oncall(args: &[&str]) -> i32 {
    oncall_cli::run(["oncall"].iter().chain(args).map(OsString::from))
}

/// Plays a golden episode through files and returns how many values agree.
fn check_episode(golden: &Value, folder: &Path) -> usize {
    let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let demand = numbers(&golden["demand_rps"]);
    let minutes = demand.len();
    std::fs::write(path("demand.csv"), csv(&[("requests_per_s", demand)])).unwrap();
    let dials = golden["dials"].as_object().unwrap();
    let dials: Vec<(&str, Vec<f64>)> =
        dials.iter().map(|(name, row)| (name.as_str(), numbers(row))).collect();
    std::fs::write(path("dials.csv"), csv(&dials)).unwrap();
    let scenario = golden["scenario"].as_str().unwrap();
    let (dials, demand, out) = (path("dials.csv"), path("demand.csv"), path("out.csv"));
    let length = minutes.to_string();
    let code = oncall(&[
        "run",
        scenario,
        "--dials",
        &dials,
        "--demand",
        &demand,
        "--minutes",
        &length,
        "--out",
        &out,
        "--seed",
        "1",
    ]);
    assert_eq!(code, 0);

    let text = std::fs::read_to_string(&out).unwrap();
    let mut lines = text.lines();
    let head: Vec<&str> = lines.next().unwrap().split(',').collect();
    let rows: Vec<Vec<f64>> =
        lines.map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), minutes);
    let mut compared = 0;
    for (name, expected) in golden["expect"].as_object().unwrap() {
        let column = head.iter().position(|found| found == name);
        let column = column.unwrap_or_else(|| panic!("no column {name}"));
        for (minute, (row, &expected)) in rows.iter().zip(&numbers(expected)).enumerate() {
            let found = row[column];
            let near = (found - expected).abs() <= (1e-9 * expected.abs()).max(1e-12);
            let same = found.to_bits() == expected.to_bits();
            let agrees = if COUNTS.contains(&name.as_str()) { same } else { near };
            assert!(agrees, "minute {minute}, {name}: found {found}, expected {expected}");
            compared += 1;
        }
    }
    assert_eq!(head[..2], ["seed", "minute"]);
    assert_eq!(
        rows.iter().map(|row| row[1]).collect::<Vec<_>>(),
        (0..minutes).map(|m| m as f64).collect::<Vec<_>>()
    );
    assert!(rows.iter().all(|row| row[0].to_bits() == rows[0][0].to_bits()), "one seed a file");
    compared
}

#[test]
fn all_fifteen_episodes_agree_through_files() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/fleet");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(golden).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 15);
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("golden_cli");
    std::fs::create_dir_all(&folder).unwrap();
    for file in files {
        let golden = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(check_episode(&golden, &folder), 180 * 33, "{}", file.display());
    }
}
