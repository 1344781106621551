//! The table of requirements against the tree: every number once, every path there, every named test in its file.

use std::fs;
use std::path::{Path, PathBuf};

/// Requirements of the specification.
const REQUIREMENTS: usize = 196;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A place of the table as a path of the tree.
fn path(place: &str) -> PathBuf {
    let crates = root().join("crates");
    match place.split_once(':') {
        Some(("docs", rest)) => root().join("docs").join(rest),
        Some(("consensus", rest)) => crates.join("oncall-consensus").join(rest),
        Some(("sim", rest)) => crates.join("oncall-discovery-sim").join(rest),
        Some((other, _)) => panic!("unknown prefix `{other}` in `{place}`"),
        None if place == "sim" => crates.join("oncall-discovery-sim"),
        None if place == "consensus" => crates.join("oncall-consensus"),
        None => crates.join("oncall-discovery/src").join(place),
    }
}

fn check_test(row: usize, place: &str) {
    let Some((file, test)) = place.rsplit_once("::") else {
        assert!(place.starts_with("docs:"), "R{row}: `{place}` is neither a test nor a document");
        assert!(path(place).is_file(), "R{row}: no document `{place}`");
        return;
    };
    let text =
        fs::read_to_string(path(file)).unwrap_or_else(|_| panic!("R{row}: no file `{file}`"));
    // A test has its attribute on the line before, or further up behind other attributes.
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let named = format!("fn {test}(");
    let at = lines.iter().position(|line| line.starts_with(&named));
    let at = at.unwrap_or_else(|| panic!("R{row}: no test `{test}` in `{file}`"));
    let attributes = lines[..at].iter().rev().take_while(|line| line.starts_with(['#', '/']));
    let is_test = attributes.clone().any(|line| line.contains("test]"));
    let is_property = text.contains("proptest! {");
    assert!(is_test || is_property, "R{row}: `{test}` in `{file}` is no test");
}

#[test]
fn every_requirement_has_a_row_that_is_true() {
    let text = fs::read_to_string(root().join("docs/discovery/traceability.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| R"));
    let mut numbers = Vec::new();
    for line in rows {
        let columns: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [number, what, place, shown] = columns[..] else { panic!("four columns: {line}") };
        let row: usize = number.parse().unwrap();
        numbers.push(row);
        assert!(!what.is_empty(), "R{row} has no words");
        let place = place.trim_matches('`');
        let file = path(place);
        let there = file.exists() || file.with_extension("rs").exists();
        assert!(there, "R{row}: no `{place}`");
        for shown in shown.split(", ") {
            check_test(row, shown.trim_matches('`'));
        }
    }
    assert_eq!(numbers, (1..=REQUIREMENTS).collect::<Vec<_>>(), "each number once, in order");
}
