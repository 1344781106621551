//! The CSV of a training, one line an update.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::path::Path;

macro_rules! line {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// What an update came to.
        #[derive(Debug, Clone, PartialEq, Default)]
        pub struct Line {
            $($(#[doc = $doc])* pub $name: f64,)*
            /// Entropy of each dial's choice, nats; columns `entropy_` and the dial's name.
            pub dial_entropies: Vec<f64>,
        }

        impl Line {
            /// Names of the columns before those of the dials.
            pub const NAMES: &[&str] = &[$(stringify!($name),)*];

            /// The values, in the order of the columns.
            pub fn values(&self) -> Vec<f64> {
                let mut values = vec![$(self.$name,)*];
                values.extend_from_slice(&self.dial_entropies);
                values
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
    /// Seconds of the roll-out: `environment_s` and `forward_s`.
    rollout_s,
    /// Seconds of the update: advantages, gradients, optimiser.
    update_s,
    /// Score of `return_usd`, where the scenario has its constants; else NaN. Of episodes that were
    /// drawn from a policy that still explores: the finished one does better.
    score,
    /// Seconds of the roll-out in the environment, mean of the threads.
    environment_s,
    /// Seconds of the roll-out elsewhere: networks, draws, records.
    forward_s,
}

/// Names of all columns, for a world with these dials.
pub fn columns(dials: &[&str]) -> Vec<String> {
    let base = Line::NAMES.iter().map(|&name| name.to_owned());
    base.chain(dials.iter().map(|dial| format!("entropy_{dial}"))).collect()
}

/// A CSV that grows.
#[derive(Debug)]
pub struct Log {
    writer: csv::Writer<File>,
}

impl Log {
    /// Begins a file; or goes on with one, after its first `updates` lines, dropping what an
    /// interrupted run wrote beyond its last checkpoint. Gives the lines that were kept as well.
    ///
    /// Refuses to go on with a file that has other columns.
    pub fn open(path: &Path, updates: u64, dials: &[&str]) -> Result<(Self, Vec<Vec<f64>>)> {
        let context = || format!("{}", path.display());
        let columns = columns(dials);
        let mut kept: Vec<Vec<f64>> = Vec::new();
        if updates > 0 && path.exists() {
            let mut reader = csv::Reader::from_path(path).with_context(context)?;
            let found: Vec<String> =
                reader.headers().with_context(context)?.iter().map(str::to_owned).collect();
            ensure!(
                found == columns,
                "{}: columns {}: expected {}; move the file away to go on without its lines",
                path.display(),
                found.join(","),
                columns.join(",")
            );
            // A last line that was cut short is no record; those before it are.
            let whole = reader.deserialize::<Vec<f64>>().map_while(Result::ok);
            kept = whole.take(updates as usize).collect();
        }
        let mut writer = csv::Writer::from_path(path).with_context(context)?;
        writer.write_record(&columns)?;
        let mut log = Self { writer };
        for values in &kept {
            log.values(values)?;
        }
        log.writer.flush()?;
        Ok((log, kept))
    }

    /// Writes a line through to the file.
    pub fn write(&mut self, line: &Line) -> Result<()> {
        self.values(&line.values())?;
        Ok(self.writer.flush()?)
    }

    /// As text that reads back as the same numbers.
    fn values(&mut self, values: &[f64]) -> Result<()> {
        Ok(self.writer.write_record(values.iter().map(ToString::to_string))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIALS: &[&str] = &["cache_ttl_s", "feature"];

    fn line(update: f64) -> Line {
        Line { update, dial_entropies: vec![0.25, 0.5], ..Line::default() }
    }

    #[test]
    fn a_resumed_log_has_each_update_once() {
        let path = std::env::temp_dir().join(format!("oncall-ppo-log-{}.csv", std::process::id()));
        let (mut log, kept) = Log::open(&path, 0, DIALS).unwrap();
        assert!(kept.is_empty());
        for update in 1..=5 {
            log.write(&line(f64::from(update))).unwrap();
        }
        let error = Log::open(&path, 3, &DIALS[..1]).unwrap_err().to_string();
        assert!(error.contains("entropy_feature: expected update,steps"), "{error}");
        let (mut log, kept) = Log::open(&path, 3, DIALS).unwrap();
        assert_eq!(kept.iter().map(|line| line[0]).collect::<Vec<_>>(), [1.0, 2.0, 3.0]);
        log.write(&Line { return_usd: -1.5, ..line(4.0) }).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        let first: Vec<&str> = text.lines().map(|line| line.split(',').next().unwrap()).collect();
        assert_eq!(first, ["update", "1", "2", "3", "4"]);
        let last = text.lines().last().unwrap();
        assert!(last.contains("-1.5") && last.ends_with(",0.25,0.5"), "{last}");
        assert!(text.lines().next().unwrap().ends_with(",entropy_cache_ttl_s,entropy_feature"));
        assert_eq!(Line::NAMES.len(), Line::default().values().len());
    }
}
