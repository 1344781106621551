//! What a training leaves for people: a CSV, an event file for `TensorBoard`, and a picture.

use crate::checkpoint::write_atomically;
use crate::curve::{Bounds, Curve};
use crate::log::{Line, Log, columns};
use crate::versus::{bar, bar_name};
use anyhow::{Context, Result};
use oncall_env::Scenario;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::events::Events;

/// Names of the files in a training's folder. A resumed training writes the event file again from the
/// CSV's lines, so its name holds no time.
const LOG: &str = "training.csv";
const EVENTS: &str = "events.out.tfevents.0.oncall-ppo";
const CURVE: &str = "curve.svg";

/// Updates over which a return must hold to count as passed.
pub const PASSED_UPDATES: usize = 10;

/// All records of a training.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
    title: String,
    bounds: Option<Bounds>,
    /// Name and mean return of the rule to beat, dollars.
    bar: Option<(&'static str, f64)>,
    log: Log,
    events: Events,
    tags: Vec<String>,
    /// When the training would have begun had it run without a break, seconds since 1970.
    began: f64,
    columns: Vec<String>,
    lines: Vec<Vec<f64>>,
}

impl Records {
    /// Begins the records of a training, or goes on after its first `updates` lines.
    pub fn open(folder: &Path, updates: u64, scenario: &Scenario, seed: u64) -> Result<Self> {
        let dials: Vec<&str> = scenario.world.spec().dials.iter().map(|dial| dial.name).collect();
        let (log, lines) = Log::open(&folder.join(LOG), updates, &dials)?;
        let now =
            SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let began = now - lines.last().map_or(0.0, |line| line[place("seconds")]);
        let columns = columns(&dials);
        let mut records = Self {
            folder: folder.to_owned(),
            title: format!("{}, seed {seed}", scenario.name),
            bounds: Bounds::of(scenario),
            bar: bar(scenario).map(|usd| (bar_name(scenario.world.spec().world), usd)),
            log,
            events: Events::create(&folder.join(EVENTS), began)?,
            tags: columns.iter().map(|column| tag(column)).collect(),
            began,
            columns,
            lines: Vec::new(),
        };
        for line in lines {
            records.add(line)?;
        }
        Ok(records)
    }

    /// Writes a line through to the files.
    pub fn write(&mut self, line: &Line) -> Result<()> {
        self.log.write(line)?;
        self.add(line.values())
    }

    fn add(&mut self, line: Vec<f64>) -> Result<()> {
        let time = self.began + line[place("seconds")];
        let scalars = self.tags.iter().map(String::as_str).zip(line.iter().copied());
        let scalars = scalars.filter(|(tag, _)| !tag.is_empty());
        self.events.write((time, line[place("steps")] as u64), scalars)?;
        self.lines.push(line);
        Ok(())
    }

    /// Draws the learning curve; `final_usd` is the finished policy's mean return, where it is known.
    pub fn draw(&self, final_usd: Option<f64>) -> Result<()> {
        let curve = Curve {
            title: &self.title,
            columns: &self.columns,
            lines: &self.lines,
            bounds: self.bounds,
            bar: self.bar,
            final_usd,
        };
        write_atomically(&self.folder.join(CURVE), curve.svg().as_bytes())
    }
}

/// When a training passed a return.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Passed {
    /// Environment steps until then.
    pub steps: f64,
    /// Seconds of training until then.
    pub seconds: f64,
}

/// When the mean return of a folder's training first reached `usd` over [`PASSED_UPDATES`] updates in
/// which episodes ended; `None` if it never did. They are played by a policy that still explores, so
/// the finished one may do better.
pub fn passed(folder: &Path, usd: f64) -> Result<Option<Passed>> {
    let path = folder.join(LOG);
    let mut reader = csv::Reader::from_path(&path).with_context(|| path.display().to_string())?;
    let mut last = VecDeque::new();
    for line in reader.deserialize::<Vec<f64>>() {
        let line = line.with_context(|| path.display().to_string())?;
        let return_usd = line[place("return_usd")];
        if return_usd.is_nan() {
            continue;
        }
        last.push_back(return_usd);
        if last.len() > PASSED_UPDATES {
            last.pop_front();
        }
        let mean = last.iter().sum::<f64>() / last.len() as f64;
        if last.len() == PASSED_UPDATES && mean >= usd {
            let [steps, seconds] = ["steps", "seconds"].map(|name| line[place(name)]);
            return Ok(Some(Passed { steps, seconds }));
        }
    }
    Ok(None)
}

/// Where a column of [`Line::NAMES`] stands.
fn place(name: &str) -> usize {
    Line::NAMES.iter().position(|&column| column == name).expect("a column of every log")
}

/// A column's name in `TensorBoard`, by what it is about; empty for what is an axis there.
fn tag(column: &str) -> String {
    let group = match column {
        "update" | "steps" | "seconds" => return String::new(),
        "episodes" | "return_usd" | "score" | "explained_variance" => "progress",
        "entropy" | "kl" | "clip_fraction" => "policy",
        "policy_loss" | "value_loss" | "gradient_norm" => "loss",
        "learning_rate" | "reward_scale" => "schedule",
        "steps_per_s" => "speed",
        _ => match column.strip_prefix("entropy_") {
            Some(dial) => return format!("entropy/{dial}"),
            None => "speed",
        },
    };
    format!("{group}/{column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_those_of_an_uninterrupted_training() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let folder = std::env::temp_dir().join(format!("oncall-records-{}", std::process::id()));
        let [whole, broken] = ["whole", "broken"].map(|name| folder.join(name));
        let line = |update: f64| Line {
            update,
            steps: 1000.0 * update,
            return_usd: -100.0 / update,
            dial_entropies: vec![update; 8],
            ..Line::default()
        };
        let mut known = None;
        for folder in [&whole, &broken] {
            std::fs::create_dir_all(folder).unwrap();
            let mut records = Records::open(folder, 0, &scenario, 3).unwrap();
            for update in 1..=6 {
                records.write(&line(f64::from(update))).unwrap();
            }
            if folder == &broken {
                // Two lines beyond the last checkpoint, played again.
                records = Records::open(folder, 4, &scenario, 3).unwrap();
                records.write(&line(5.0)).unwrap();
                records.write(&line(6.0)).unwrap();
            }
            records.draw(Some(-20.0)).unwrap();
            let read = |name| std::fs::read(folder.join(name)).unwrap();
            // The event file holds times, but nothing else that differs.
            let found = (read(LOG), read(CURVE), read(EVENTS).len());
            assert_eq!(known.get_or_insert(found.clone()), &found);
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Returns -12, none, -11, -10 ...: ten of them have a mean of -5.5 or more when the last is -1.
    #[test]
    fn a_return_is_passed_when_ten_updates_hold_it() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let folder = std::env::temp_dir().join(format!("oncall-passed-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut records = Records::open(&folder, 0, &scenario, 3).unwrap();
        let returns = [-12.0, f64::NAN].into_iter().chain((-11..=0).map(f64::from));
        for (number, return_usd) in returns.enumerate() {
            let number = number as f64;
            let dial_entropies = vec![0.0; 8];
            let line = Line { steps: number, seconds: 2.0 * number, return_usd, ..Line::default() };
            records.write(&Line { dial_entropies, ..line }).unwrap();
        }
        assert_eq!(passed(&folder, -5.5).unwrap(), Some(Passed { steps: 12.0, seconds: 24.0 }));
        assert_eq!(passed(&folder, -100.0).unwrap().unwrap().steps, 10.0);
        assert_eq!(passed(&folder, -1.0).unwrap(), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn tags_are_grouped() {
        assert_eq!(tag("steps"), "");
        assert_eq!(tag("return_usd"), "progress/return_usd");
        assert_eq!(tag("entropy"), "policy/entropy");
        assert_eq!(tag("entropy_feature"), "entropy/feature");
        assert_eq!(tag("forward_s"), "speed/forward_s");
    }
}
