//! The CSV of a training, one line an update.

use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;

macro_rules! line {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What an update came to.
        #[derive(Debug, Clone, Copy, PartialEq, Default)]
        pub struct Line {
            $($(#[doc = $doc])* pub $name: f64,)*
        }

        impl Line {
            /// Names of the columns.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// The values, in the order of the names.
            pub fn values(&self) -> Vec<f64> {
                vec![$(self.$name,)*]
            }
        }
    };
}

line! {
    /// Number of the update, from 1.
    update,
    /// Environment steps so far.
    steps,
    /// Seconds of training so far, of this and earlier runs.
    seconds,
    /// Environment steps a second, in this update.
    steps_per_s,
    /// Episodes that ended in the roll-out.
    episodes,
    /// Their mean return, dollars; NaN if none ended.
    return_usd,
    /// Entropy of a decision, summed over the dials, nats.
    entropy,
    /// How far the update moved the policy from the one that played, nats.
    kl,
    /// Share of the samples whose ratio left the clip range.
    clip_fraction,
    /// Policy part of the loss.
    policy_loss,
    /// Mean squared error of the critic.
    value_loss,
    /// Share of the returns' variance that the critic explains.
    explained_variance,
    /// Mean norm of the gradients before they were shortened.
    gradient_norm,
    /// Learning rate.
    learning_rate,
    /// What rewards are multiplied by.
    reward_scale,
    /// Seconds of the roll-out, environment and forward pass.
    rollout_s,
    /// Seconds of the update.
    update_s,
}

/// A CSV that grows.
#[derive(Debug)]
pub struct Log {
    writer: csv::Writer<File>,
}

impl Log {
    /// Begins a file; or goes on with one, after its first `updates` lines, dropping what an
    /// interrupted run wrote beyond its last checkpoint.
    pub fn open(path: &Path, updates: u64) -> Result<Self> {
        let context = || format!("{}", path.display());
        let mut kept = Vec::new();
        if updates > 0 && path.exists() {
            let mut reader = csv::Reader::from_path(path).with_context(context)?;
            // A last line that was cut short is no record; those before it are.
            kept = reader.records().map_while(Result::ok).take(updates as usize).collect();
        }
        let mut writer = csv::Writer::from_path(path).with_context(context)?;
        writer.write_record(Line::NAMES)?;
        for record in &kept {
            writer.write_record(record)?;
        }
        writer.flush()?;
        Ok(Self { writer })
    }

    /// Writes a line through to the file.
    pub fn write(&mut self, line: &Line) -> Result<()> {
        self.writer.write_record(line.values().iter().map(ToString::to_string))?;
        self.writer.flush()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_log_has_each_update_once() {
        let path = std::env::temp_dir().join(format!("oncall-ppo-log-{}.csv", std::process::id()));
        let mut log = Log::open(&path, 0).unwrap();
        for update in 1..=5 {
            log.write(&Line { update: f64::from(update), ..Line::default() }).unwrap();
        }
        let mut log = Log::open(&path, 3).unwrap();
        log.write(&Line { update: 4.0, return_usd: -1.5, ..Line::default() }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let first: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(first, ["update", "1", "2", "3", "4"]);
        assert!(text.lines().last().unwrap().contains("-1.5"));
        assert_eq!(Line::NAMES.len(), Line::default().values().len());
    }
}
