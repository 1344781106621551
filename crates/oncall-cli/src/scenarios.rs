//! Scenarios by name or path. This is where files are opened; the parser only sees texts.

use crate::args::ScaleArg;
use anyhow::{Context as _, anyhow, bail};
use oncall_env::{Files, Scenario, ShippedOr};
use std::path::{Path, PathBuf};

/// Files beside a scenario, by their path relative to its folder.
#[derive(Debug)]
struct Folder(PathBuf);

impl Files for Folder {
    fn read(&self, name: &str) -> Result<String, String> {
        let path = self.0.join(name);
        // A mixture may name a scenario beside it with or without the ending.
        let with_ending = self.0.join(format!("{name}.json"));
        let path = if !path.is_file() && with_ending.is_file() { with_ending } else { path };
        std::fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}", path.display()))
    }
}

/// The scenario that a user means: a shipped name, or else a path.
pub(crate) fn open(name: &str) -> anyhow::Result<Scenario> {
    if let Some(scenario) = oncall_env::shipped(name) {
        return Ok(scenario);
    }
    let path = Path::new(name);
    let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if is_json || path.is_file() {
        return read(path);
    }
    bail!(
        "scenario: found {name:?}, expected one of {}, {} (each also with @tenth or @full), or the path \
         of a .json file",
        oncall_env::shipped_names().join(", "),
        oncall_env::discovery_names().join(", ")
    )
}

/// As [`open`], at a scale; what has none refuses one.
pub(crate) fn open_at(name: &str, scale: Option<ScaleArg>) -> anyhow::Result<Scenario> {
    let scenario = open(name)?;
    match scale {
        Some(scale) => Ok(scenario.with_scale(scale.name()).with_context(|| name.to_owned())?),
        None => Ok(scenario),
    }
}

/// The scenario of a file.
pub(crate) fn read(path: &Path) -> anyhow::Result<Scenario> {
    let text = read_text(path)?;
    let folder = path.parent().unwrap_or(Path::new("")).to_owned();
    oncall_env::load_named(&path.display().to_string(), &text, &ShippedOr(Folder(folder)))
        .map_err(|errors| anyhow!("{errors}"))
}

/// A text file.
pub(crate) fn read_text(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_before_paths() {
        assert_eq!(open("spike").unwrap().name, "spike");
        let tenth = open_at("crash-wave", Some(ScaleArg::Tenth)).unwrap();
        assert_eq!(tenth.name, "crash-wave@tenth");
        assert_eq!(tenth.hash, open("crash-wave@tenth").unwrap().hash);
        assert_ne!(tenth.hash, open("crash-wave").unwrap().hash);
        let error = format!("{:#}", open_at("spike", Some(ScaleArg::Full)).unwrap_err());
        assert!(error.contains("only scenarios of discovery have one"), "{error}");
        let error = open("spik").unwrap_err().to_string();
        assert!(error.contains("\"spik\"") && error.contains("cache-flush"), "{error}");
        let error = format!("{:#}", open("no/such.json").unwrap_err());
        assert!(error.starts_with("cannot read no/such.json: "), "{error}");
    }
}
