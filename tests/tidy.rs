//! What is enforced about the tree itself: who may use whom, sizes, paths in documents, stray words.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crate, and the crates of this workspace that it may use (also in its tests).
const MAY_USE: &[(&str, &[&str])] = &[
    ("oncall-core", &[]),
    ("oncall-fleet", &["oncall-core"]),
    ("oncall-consensus", &["oncall-core"]),
    ("oncall-discovery", &["oncall-core", "oncall-consensus"]),
    ("oncall-discovery-sim", &["oncall-core", "oncall-consensus", "oncall-discovery"]),
    ("oncall-discovery-env", &["oncall-core", "oncall-discovery", "oncall-discovery-sim"]),
    ("oncall-scenario", &["oncall-core", "oncall-discovery-env", "oncall-fleet"]),
    ("oncall-vec", &["oncall-core"]),
    ("oncall-cartpole", &["oncall-core", "oncall-vec"]),
    (
        "oncall-env",
        // CartPole only with the feature `bench-worlds`, which nothing shipped turns on.
        &[
            "oncall-cartpole",
            "oncall-core",
            "oncall-discovery-env",
            "oncall-fleet",
            "oncall-scenario",
            "oncall-vec",
        ],
    ),
    (
        "oncall-heuristics",
        &[
            "oncall-core",
            "oncall-discovery-env",
            "oncall-fleet",
            "oncall-env",
            "oncall-scenario",
            "oncall-weights",
        ],
    ),
    ("oncall-eval", &["oncall-core", "oncall-fleet", "oncall-env", "oncall-heuristics"]),
    (
        "oncall-cli",
        &[
            "oncall-core",
            "oncall-discovery",
            "oncall-discovery-env",
            "oncall-discovery-sim",
            "oncall-fleet",
            "oncall-env",
            "oncall-eval",
            "oncall-heuristics",
            "oncall-planner",
        ],
    ),
    (
        "oncall-py",
        &[
            "oncall-core",
            "oncall-fleet",
            "oncall-env",
            "oncall-eval",
            "oncall-heuristics",
            "oncall-planner",
            "oncall-cli",
        ],
    ),
    (
        "oncall-planner",
        &["oncall-core", "oncall-fleet", "oncall-env", "oncall-heuristics", "oncall-eval"],
    ),
    ("oncall-rollout", &["oncall-core", "oncall-env"]),
    ("oncall-weights", &["oncall-core", "oncall-env", "oncall-fleet", "oncall-heuristics"]),
    (
        "oncall-ppo",
        &[
            "oncall-core",
            "oncall-env",
            "oncall-eval",
            "oncall-heuristics",
            "oncall-planner",
            "oncall-rollout",
            "oncall-weights",
        ],
    ),
    (
        "oncall-bench",
        &["oncall-cartpole", "oncall-core", "oncall-env", "oncall-fleet", "oncall-vec"],
    ),
    ("oncall-tests", &["oncall-core", "oncall-fleet", "oncall-env"]),
];

/// Third-party crates that only some rooms may use.
const RESERVED: &[(&str, &[&str])] = &[
    (
        "serde",
        &[
            "oncall-consensus",
            "oncall-discovery",
            "oncall-discovery-sim",
            "oncall-discovery-env",
            "oncall-scenario",
            "oncall-eval",
            "oncall-cli",
            "oncall-heuristics",
            "oncall-planner",
            "oncall-weights",
            "oncall-ppo",
            "oncall-bench",
        ],
    ),
    ("pyo3", &["oncall-py"]),
    ("numpy", &["oncall-py"]),
    ("clap", &["oncall-cli", "oncall-ppo"]),
    ("indicatif", &["oncall-cli", "oncall-ppo"]),
    ("anyhow", &["oncall-cli", "oncall-ppo"]),
    ("libm", &["oncall-core"]),
    ("rand", &["oncall-core", "oncall-cli", "oncall-eval"]),
    ("rand_pcg", &["oncall-core", "oncall-eval"]),
    ("tch", &["oncall-ppo"]),
    ("torch-sys", &["oncall-ppo"]),
    ("safetensors", &["oncall-weights", "oncall-ppo"]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn metadata() -> serde_json::Value {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn rooms_use_only_what_they_may() {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert_eq!(packages.len(), MAY_USE.len(), "every crate stands in the table");
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let (_, may) = MAY_USE.iter().find(|(crate_, _)| *crate_ == name).unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let used = dependency["name"].as_str().unwrap();
            if used.starts_with("oncall-") {
                assert!(may.contains(&used), "{name} must not use {used}");
            }
            let reserved = RESERVED.iter().find(|(crate_, _)| *crate_ == used);
            let test_only = dependency["kind"].as_str() == Some("dev");
            if let Some((_, rooms)) = reserved.filter(|_| !test_only) {
                assert!(rooms.contains(&name), "{name} must not use {used}");
            }
        }
    }
}

/// Worlds that are only measured stay out of what is shipped and tested: the feature that adds them is
/// in no default, no dependency asks for it, and the package does not build with it.
#[test]
fn bench_worlds_are_asked_for_by_nobody() {
    const FEATURE: &str = "bench-worlds";
    let metadata = metadata();
    let mut with_it = Vec::new();
    for package in metadata["packages"].as_array().unwrap() {
        let (name, features) = (&package["name"], &package["features"]);
        if features.get(FEATURE).is_some() {
            with_it.push(name.as_str().unwrap());
        }
        assert!(features.get("default").is_none(), "{name} has default features");
        for dependency in package["dependencies"].as_array().unwrap() {
            let asked = dependency["features"].as_array().unwrap();
            assert!(!asked.iter().any(|feature| feature == FEATURE), "{name} asks for it");
            let is_cartpole = dependency["name"] == "oncall-cartpole";
            let may = name == "oncall-bench" || dependency["optional"] == true;
            assert!(!is_cartpole || may, "{name} always has CartPole");
        }
    }
    assert_eq!(with_it, ["oncall-env", "oncall-py"]);
    assert!(!text(Path::new("pyproject.toml")).contains(FEATURE));
}

/// Files of the repository that git knows or would take.
fn files() -> Vec<PathBuf> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "the tree is a git repository");
    let listed = String::from_utf8(output.stdout).unwrap();
    listed.lines().map(PathBuf::from).filter(|file| root().join(file).is_file()).collect()
}

fn text(file: &Path) -> String {
    String::from_utf8_lossy(&fs::read(root().join(file)).unwrap()).into_owned()
}

fn has_ext(file: &Path, wanted: &[&str]) -> bool {
    file.extension().and_then(|ext| ext.to_str()).is_some_and(|ext| wanted.contains(&ext))
}

/// Where libtorch is missing, a header says which one to get; it must be the one that is fetched.
#[test]
fn one_version_of_libtorch() {
    let script = text(Path::new("scripts/get_libtorch.py"));
    let (_, rest) = script.split_once("\nVERSION = \"").unwrap();
    let version = rest.split('"').next().unwrap();
    let header = text(Path::new("agents/ppo/no-libtorch/torch/torch.h"));
    assert!(header.contains(&format!("libtorch {version} is missing: run `make libtorch`")));
    let config = text(Path::new(".cargo/config.toml"));
    assert!(config.contains("agents/ppo/no-libtorch"), "the compiler looks there");
    let python = text(Path::new("tests/ecosystem/requirements.txt"));
    assert!(python.lines().any(|line| line == format!("torch=={version}")));
}

#[test]
fn no_file_grows_without_bound() {
    for file in files().iter().filter(|file| has_ext(file, &["rs", "py"])) {
        let lines = text(file).lines().count();
        assert!(lines <= 700, "{} has {lines} lines: split it", file.display());
    }
}

#[test]
fn no_marks_of_unfinished_work() {
    // Written in two halves, so that this file does not find itself.
    let words =
        [concat!("FIX", "ME"), concat!("X", "XX"), concat!("TO", "DO"), concat!("todo", "!(")];
    for file in files().iter().filter(|file| has_ext(file, &["rs", "py", "md", "toml", "json"])) {
        let text = text(file);
        for word in words {
            assert!(!text.contains(word), "{} says {word}", file.display());
        }
    }
}

#[test]
fn paths_in_documents_exist() {
    let mut checked = 0;
    for file in files().iter().filter(|file| has_ext(file, &["md"])) {
        for span in text(file).split('`').skip(1).step_by(2) {
            let looks_like_path = span.contains('/')
                && !span.contains(['*', ' ', '<', '{', ':', '(', '$'])
                && span.split('/').all(|part| !part.is_empty() || span.ends_with('/'));
            let first = span.split('/').next().unwrap_or_default();
            if looks_like_path && root().join(first).is_dir() && !["out", "target"].contains(&first)
            {
                assert!(root().join(span).exists(), "{}: no `{span}`", file.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "only {checked} paths found: the search is broken");
}

#[test]
fn unsafe_code_stays_in_its_rooms() {
    // The worker pool, a counting allocator for a test, and the choice of code by the CPU's features.
    let rooms = [
        "crates/oncall-core/src/isa.rs",
        "crates/oncall-vec/src/pool.rs",
        "crates/oncall-vec/tests/",
        "agents/weights/src/network.rs",
    ];
    let word = concat!("uns", "afe ");
    for file in files().iter().filter(|file| has_ext(file, &["rs"])) {
        let code = text(file);
        let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        let used = lines.clone().any(|line| line.contains(word));
        let here = file.to_string_lossy();
        assert!(!used || rooms.iter().any(|room| here.starts_with(room)), "{here} has it");
    }
}
