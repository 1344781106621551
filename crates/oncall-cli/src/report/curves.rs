//! Learning curves: what `oncall-ppo train` wrote, read and put side by side.
//!
//! A training is a folder with `training.csv`, of which the columns `steps` and `return_usd` count (and
//! `seconds`, where there is one). Which scenario it is of, and its seed, stand in the metadata of
//! `policy.safetensors` or `checkpoint.safetensors` beside it; without either, the nearest folder above
//! that is named after a shipped scenario, and the digits at the end of the folder's name.

use anyhow::{Context as _, anyhow, bail, ensure};
use serde_json::Value;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// File of a training's log.
const LOG: &str = "training.csv";

/// Folders below a given one in which trainings are looked for.
const DEPTH_MAX: usize = 3;

/// Most bytes of a safetensors header that are read.
const HEADER_MAX: u64 = 1 << 20;

/// Points of the mean curve.
const GRID: usize = 160;

/// Part of a training, at its end, over which its return is averaged.
const END: f64 = 0.1;

/// One training.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Training {
    pub(super) scenario: String,
    /// Hash of the scenario, where the metadata tell.
    pub(super) hash: Option<String>,
    /// Its seed, or the name of its folder.
    pub(super) seed: String,
    /// Environment steps and mean return of the episodes that ended, dollars; one point an update in which
    /// some ended, steps rising.
    pub(super) points: Vec<[f64; 2]>,
    /// Seconds that it took, where the log tells.
    pub(super) seconds: Option<f64>,
    /// Mean return of the finished policy on fresh training episodes, dollars, and how many; where the
    /// weights tell.
    pub(super) evaluation: Option<(f64, u64)>,
}

impl Training {
    /// Mean return over the last tenth of the training.
    pub(super) fn end(&self) -> f64 {
        let last = self.points.last().map_or(0.0, |point| point[0]);
        let late = self.points.iter().filter(|point| point[0] >= (1.0 - END) * last);
        let returns: Vec<f64> = late.map(|point| point[1]).collect();
        oncall_eval::stats::mean(&returns)
    }

    /// Return at a number of steps, between two points on the line that joins them.
    fn at(&self, steps: f64) -> f64 {
        let next = self.points.partition_point(|point| point[0] < steps);
        let above = self.points.get(next).or(self.points.last());
        let below = self.points.get(next.saturating_sub(1));
        match (below, above) {
            (Some(&[x, y]), Some(&[right, top])) if right > x => {
                y + (top - y) * ((steps - x) / (right - x)).clamp(0.0, 1.0)
            }
            (_, Some(point)) => point[1],
            _ => f64::NAN,
        }
    }
}

/// The trainings of a scenario, in the order of their seeds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Group {
    pub(super) scenario: String,
    pub(super) trainings: Vec<Training>,
}

/// Mean, and lowest and highest, of a group at a number of steps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Middle {
    pub(super) steps: f64,
    pub(super) mean: f64,
    pub(super) ends: [f64; 2],
}

impl Group {
    /// Over the steps that all trainings have.
    pub(super) fn middle(&self) -> Vec<Middle> {
        let ends = |end: fn(&[[f64; 2]]) -> Option<&[f64; 2]>| {
            self.trainings.iter().filter_map(move |t| end(&t.points)).map(|point| point[0])
        };
        let first = ends(<[_]>::first).fold(f64::NEG_INFINITY, f64::max);
        let last = ends(<[_]>::last).fold(f64::INFINITY, f64::min);
        if self.trainings.is_empty() || first > last {
            return Vec::new();
        }
        let middle = |i: usize| {
            let steps = first + (last - first) * i as f64 / (GRID - 1) as f64;
            let returns: Vec<f64> = self.trainings.iter().map(|t| t.at(steps)).collect();
            let low = returns.iter().copied().fold(f64::INFINITY, f64::min);
            let high = returns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            Middle { steps, mean: oncall_eval::stats::mean(&returns), ends: [low, high] }
        };
        (0..GRID).map(middle).collect()
    }
}

/// Reads all trainings below some folders, by scenario in the order in which they are found. Trainings
/// in which no episode has ended yet come second, by folder.
///
/// Refuses a folder that is none or that holds no training, and logs that cannot be read.
pub(super) fn read(folders: &[PathBuf]) -> anyhow::Result<(Vec<Group>, Vec<PathBuf>)> {
    let (mut groups, mut empty): (Vec<Group>, Vec<PathBuf>) = (Vec::new(), Vec::new());
    for folder in folders {
        let mut found = Vec::new();
        find(folder, DEPTH_MAX, &mut found)
            .with_context(|| format!("curves: cannot read {}", folder.display()))?;
        ensure!(!found.is_empty(), "curves: found no {LOG} in {}", folder.display());
        for folder in found {
            let training = training(&folder)?;
            if training.points.is_empty() {
                empty.push(folder);
                continue;
            }
            match groups.iter_mut().find(|group| group.scenario == training.scenario) {
                Some(group) => group.trainings.push(training),
                None => groups
                    .push(Group { scenario: training.scenario.clone(), trainings: vec![training] }),
            }
        }
    }
    for group in &mut groups {
        let number = |training: &Training| training.seed.parse::<u64>().unwrap_or(u64::MAX);
        group.trainings.sort_by(|a, b| (number(a), &a.seed).cmp(&(number(b), &b.seed)));
    }
    Ok((groups, empty))
}

/// Folders with a log, sorted.
fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    if folder.join(LOG).is_file() {
        found.push(folder.to_owned());
    }
    let mut inside = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<std::io::Result<Vec<PathBuf>>>()?;
    inside.sort();
    for path in inside.iter().filter(|path| depth > 0 && path.is_dir()) {
        find(path, depth - 1, found)?;
    }
    Ok(())
}

fn training(folder: &Path) -> anyhow::Result<Training> {
    let log = folder.join(LOG);
    let (points, seconds) = points(&log).with_context(|| format!("curves: {}", log.display()))?;
    let weights = header(&folder.join("policy.safetensors"), "oncall");
    let checkpoint = header(&folder.join("checkpoint.safetensors"), "oncall-ppo");
    let meta = weights.clone().or_else(|| Some(checkpoint?.get("task")?.clone()));
    let text = |key: &str| Some(meta.as_ref()?.get(key)?.as_str()?.to_owned());
    let scenario = text("scenario").or_else(|| named(folder)).with_context(|| {
        format!(
            "curves: {}: of which scenario? Expected policy.safetensors or checkpoint.safetensors \
             beside the log, or a folder above it named after a shipped scenario",
            log.display()
        )
    })?;
    let seed = meta.as_ref().and_then(|meta| Some(meta.get("seed")?.as_u64()?.to_string()));
    let evaluation = weights.and_then(|weights| {
        let evaluation = weights.get("evaluation")?;
        Some((evaluation.get("return_usd")?.as_f64()?, evaluation.get("episodes")?.as_u64()?))
    });
    let seed = seed.unwrap_or_else(|| seed_of(folder));
    Ok(Training { scenario, hash: text("scenario_hash"), seed, points, seconds, evaluation })
}

/// Points and seconds of a log. A last line that was cut short is none.
fn points(log: &Path) -> anyhow::Result<(Vec<[f64; 2]>, Option<f64>)> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(log)?;
    let head = reader.headers()?.clone();
    let column = |name: &str| head.iter().position(|known| known == name);
    let needed = |name: &str| column(name).with_context(|| format!("expected a column {name}"));
    let (steps, return_) = (needed("steps")?, needed("return_usd")?);
    let seconds = column("seconds");
    let (mut points, mut last): (Vec<[f64; 2]>, _) = (Vec::new(), None);
    for record in reader.records() {
        let record = record?;
        if record.len() < head.len() {
            continue;
        }
        let number = |column: usize| -> anyhow::Result<f64> {
            let text = record[column].trim();
            let line = record.position().map_or(0, csv::Position::line);
            let name = &head[column];
            text.parse().map_err(|_| anyhow!("line {line}: {name} = {text}: expected a number"))
        };
        let point = [number(steps)?, number(return_)?];
        last = seconds.map(number).transpose()?.or(last);
        // No episode ended in that update.
        if !point[1].is_finite() {
            continue;
        }
        if points.last().is_some_and(|last| last[0] >= point[0]) || !point[0].is_finite() {
            let line = record.position().map_or(0, csv::Position::line);
            bail!("line {line}: steps = {}: expected more than before", point[0]);
        }
        points.push(point);
    }
    Ok((points, last))
}

/// An entry of a safetensors file's metadata: eight bytes of length, then JSON. `None` where the file
/// is missing or is something else: then the folder's name has to tell.
fn header(path: &Path, key: &str) -> Option<Value> {
    let mut file = File::open(path).ok()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).ok()?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_MAX {
        return None;
    }
    let mut text = Vec::new();
    file.take(length).read_to_end(&mut text).ok()?;
    let header: Value = serde_json::from_slice(&text).ok()?;
    serde_json::from_str(header.get("__metadata__")?.get(key)?.as_str()?).ok()
}

/// The nearest folder, from the training's own up, that is named after a shipped scenario.
fn named(folder: &Path) -> Option<String> {
    let names = folder.ancestors().filter_map(|path| path.file_name()?.to_str());
    let mut shipped = names.filter(|name| oncall_env::shipped(name).is_some());
    shipped.next().map(str::to_owned)
}

/// The digits at the end of a folder's name, else the name.
fn seed_of(folder: &Path) -> String {
    let name = folder.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
    let start = name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    if start < name.len() { name[start..].to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn training(points: &[[f64; 2]]) -> Training {
        Training {
            scenario: "spike".to_owned(),
            hash: None,
            seed: "1".to_owned(),
            points: points.to_vec(),
            seconds: None,
            evaluation: None,
        }
    }

    /// A folder of its own for each test.
    fn folder(name: &str) -> PathBuf {
        let path =
            std::env::temp_dir().join(format!("oncall-curves-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn write(folder: &Path, log: &str) {
        std::fs::create_dir_all(folder).unwrap();
        std::fs::write(folder.join(LOG), log).unwrap();
    }

    fn safetensors(meta: &str, key: &str) -> Vec<u8> {
        let header = serde_json::json!({"__metadata__": {key: meta}}).to_string();
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[1, 2, 3]].concat()
    }

    #[test]
    fn the_mean_is_over_the_steps_that_all_have() {
        let a = training(&[[0.0, -100.0], [100.0, -50.0], [300.0, -10.0]]);
        let b = training(&[[50.0, -60.0], [250.0, -20.0]]);
        assert_eq!(
            [0.0, 50.0, 100.0, 200.0, 300.0, 900.0].map(|x| a.at(x)),
            [-100.0, -75.0, -50.0, -30.0, -10.0, -10.0]
        );
        let group = Group { scenario: "spike".to_owned(), trainings: vec![a, b] };
        let middle = group.middle();
        assert_eq!(middle.len(), GRID);
        let first = Middle { steps: 50.0, mean: -67.5, ends: [-75.0, -60.0] };
        let last = Middle { steps: 250.0, mean: -20.0, ends: [-20.0, -20.0] };
        assert_eq!((middle[0], middle[GRID - 1]), (first, last));
        // Nothing in common, nothing to average.
        let far = training(&[[400.0, -1.0]]);
        let group = Group { trainings: vec![group.trainings[0].clone(), far], ..group };
        assert!(group.middle().is_empty());
    }

    #[test]
    fn the_end_is_the_last_tenth() {
        let points: Vec<[f64; 2]> = (1..=20).map(|i| [f64::from(i), f64::from(-i)]).collect();
        assert_eq!(training(&points).end(), -19.0);
    }

    #[test]
    fn logs_are_found_and_grouped() {
        let root = folder("found");
        let log =
            "update,steps,seconds,return_usd\n1,10,0.5,NaN\n2,20,1.5,-30\n3,30,2.5,-20.5\n4,40";
        write(&root.join("spike/seed-10"), log);
        write(&root.join("spike/seed-9"), log);
        write(&root.join("other/b"), log);
        write(&root.join("other/a"), "steps,return_usd\n5,NaN\n");
        let meta = r#"{"scenario":"mixed","scenario_hash":"0a","seed":7,
                       "evaluation":{"return_usd":-18.5,"episodes":1000}}"#;
        std::fs::write(root.join("other/b/policy.safetensors"), safetensors(meta, "oncall"))
            .unwrap();
        let task = r#"{"format":1,"task":{"scenario":"steady","scenario_hash":"0b","seed":3}}"#;
        let file = root.join("other/a/checkpoint.safetensors");
        std::fs::write(file, safetensors(task, "oncall-ppo")).unwrap();
        let (groups, empty) = read(std::slice::from_ref(&root)).unwrap();
        assert_eq!(empty, [root.join("other/a")]);
        let names: Vec<&str> = groups.iter().map(|group| group.scenario.as_str()).collect();
        assert_eq!(names, ["mixed", "spike"]);
        let mixed = &groups[0].trainings[0];
        assert_eq!((mixed.seed.as_str(), mixed.evaluation), ("7", Some((-18.5, 1000))));
        assert_eq!(mixed.hash.as_deref(), Some("0a"));
        // The update without an end and the line that was cut short are no points.
        assert_eq!(
            (mixed.points.clone(), mixed.seconds),
            (vec![[20.0, -30.0], [30.0, -20.5]], Some(2.5))
        );
        let seeds: Vec<&str> = groups[1].trainings.iter().map(|t| t.seed.as_str()).collect();
        assert_eq!(seeds, ["9", "10"]);
        assert_eq!(groups[1].trainings[0].hash, None);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let root = folder("wrong");
        let error = |folder: &Path| format!("{:#}", read(&[folder.to_owned()]).unwrap_err());
        assert!(error(&root).contains("found no training.csv in "), "{}", error(&root));
        assert!(error(&root.join("gone")).contains("cannot read "));
        for (log, word) in [
            ("update,steps\n1,2\n", "expected a column return_usd"),
            ("steps,return_usd\n1,-2\n2,x\n", "line 3: return_usd = x: expected a number"),
            ("steps,return_usd\n2,-2\n1,-2\n", "line 3: steps = 1: expected more than before"),
            ("steps,return_usd\n1,-2\n", "of which scenario?"),
        ] {
            write(&root.join("mine"), log);
            let found = error(&root);
            assert!(found.contains(word) && found.contains("training.csv"), "{found}");
        }
        // Bytes that are no safetensors file say nothing, whatever their length claims.
        for bytes in [&b"short"[..], &[255; 64], &[8, 0, 0, 0, 0, 0, 0, 0, b'{']] {
            std::fs::write(root.join("mine/policy.safetensors"), bytes).unwrap();
            assert!(error(&root).contains("of which scenario?"));
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
