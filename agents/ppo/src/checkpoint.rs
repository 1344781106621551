//! Everything that a training needs to go on, in one file.
//!
//! A safetensors file: parameters, moments and input scales as 32-bit floats, the return scale as 64-bit floats, the
//! rows as bytes, and the rest as JSON in its metadata. Random streams have no state: they follow from
//! the seed and the number of the update.

use crate::adam::Adam;
use crate::config::Config;
use anyhow::{Context, Result, bail, ensure};
use oncall_env::Scenario;
use oncall_rollout::{Affine, Moments, ReturnScale};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

/// Rises when the layout of the file changes.
const FORMAT: u32 = 2;
const KEY: &str = "oncall-ppo";

/// What is trained, from which seed and for how long.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, 16 hex digits.
    pub scenario_hash: String,
    /// Hash of the world's spec, 16 hex digits.
    pub spec_hash: String,
    /// Seed of everything.
    pub seed: u64,
    /// Updates from start to end; the learning rate falls over them.
    pub updates: u64,
    /// Hyper-parameters.
    pub config: Config,
}

impl Task {
    /// A training of at least `steps` environment steps.
    pub fn new(scenario: &Scenario, seed: u64, steps: u64, config: Config) -> Result<Self> {
        config.check()?;
        ensure!(steps > 0, "steps = 0: expected at least 1");
        Ok(Self {
            scenario: scenario.name.clone(),
            scenario_hash: oncall_core::hex(scenario.hash),
            spec_hash: oncall_core::hex(scenario.world.spec().hash()),
            seed,
            updates: steps.div_ceil(config.samples() as u64),
            config,
        })
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: u32,
    task: Task,
    update: u64,
    adam_steps: u64,
    seconds: f64,
}

/// A training between two updates.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// What is trained.
    pub task: Task,
    /// Updates done.
    pub update: u64,
    /// Seconds so far.
    pub seconds: f64,
    /// Parameters of the networks.
    pub params: Vec<f32>,
    /// The optimiser.
    pub adam: Adam,
    /// How observations become inputs.
    pub inputs: Affine,
    /// The reward scale.
    pub scale: ReturnScale,
    /// State of each row.
    pub rows: Vec<Vec<u8>>,
    /// What the rule that is played over remembers, as many numbers for each row; none without one.
    pub memories: Vec<f64>,
}

impl Checkpoint {
    /// The bytes of the file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let header = Header {
            format: FORMAT,
            task: self.task.clone(),
            update: self.update,
            adam_steps: self.adam.steps,
            seconds: self.seconds,
        };
        let singles = |values: &[f32]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let doubles = |values: &[f64]| values.iter().flat_map(|x| x.to_le_bytes()).collect();
        let moments = &self.scale.moments;
        let moments = [moments.count, moments.mean[0], moments.squares[0]];
        let ends: Vec<f64> = self
            .rows
            .iter()
            .scan(0, |end, row| {
                *end += row.len();
                Some(*end as f64)
            })
            .collect();
        let arrays: Vec<(&str, Dtype, usize, Vec<u8>)> = vec![
            ("params", Dtype::F32, self.params.len(), singles(&self.params)),
            ("adam.mean", Dtype::F32, self.adam.mean.len(), singles(&self.adam.mean)),
            ("adam.square", Dtype::F32, self.adam.square.len(), singles(&self.adam.square)),
            ("inputs.mean", Dtype::F32, self.inputs.mean.len(), singles(&self.inputs.mean)),
            ("inputs.factor", Dtype::F32, self.inputs.factor.len(), singles(&self.inputs.factor)),
            ("scale.moments", Dtype::F64, 3, doubles(&moments)),
            ("scale.sums", Dtype::F64, self.scale.sums.len(), doubles(&self.scale.sums)),
            ("rows.ends", Dtype::F64, ends.len(), doubles(&ends)),
            ("memories", Dtype::F64, self.memories.len(), doubles(&self.memories)),
            ("rows.states", Dtype::U8, self.rows.iter().map(Vec::len).sum(), self.rows.concat()),
        ];
        let views = arrays
            .iter()
            .map(|(name, dtype, len, bytes)| {
                Ok((*name, TensorView::new(*dtype, vec![*len], bytes)?))
            })
            .collect::<Result<Vec<_>>>()?;
        let entries = HashMap::from([(KEY.to_owned(), serde_json::to_string(&header)?)]);
        Ok(serialize(views, Some(entries))?)
    }

    /// Reads a file's bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (_, entries) = SafeTensors::read_metadata(bytes).context("not a safetensors file")?;
        let file = SafeTensors::deserialize(bytes).context("not a safetensors file")?;
        let text = entries.metadata().as_ref().and_then(|entries| entries.get(KEY));
        let text = text.with_context(|| format!("metadata `{KEY}` is missing"))?;
        let header: Header = serde_json::from_str(text).context("metadata")?;
        ensure!(header.format == FORMAT, "format = {}: expected {FORMAT}", header.format);
        header.task.config.check()?;
        let config = &header.task.config;
        let moments = doubles(&file, "scale.moments")?;
        let [count, mean, squares] = moments[..] else {
            bail!("scale.moments: {} numbers, expected 3", moments.len());
        };
        let mut scale = ReturnScale::new(config.rows, config.gamma, config.reward_clip);
        scale.moments = Moments { count, mean: vec![mean], squares: vec![squares] };
        scale.sums = doubles(&file, "scale.sums")?;
        let params = singles(&file, "params")?;
        let adam = Adam {
            mean: singles(&file, "adam.mean")?,
            square: singles(&file, "adam.square")?,
            steps: header.adam_steps,
        };
        let inputs = Affine {
            mean: singles(&file, "inputs.mean")?,
            factor: singles(&file, "inputs.factor")?,
        };
        let memories = doubles(&file, "memories")?;
        let states = array(&file, "rows.states", Dtype::U8)?;
        let ends = doubles(&file, "rows.ends")?;
        let mut start = 0;
        let mut rows = Vec::with_capacity(ends.len());
        for end in ends {
            let end = end as usize;
            rows.push(states.get(start..end).context("rows.ends: beyond rows.states")?.to_vec());
            start = end;
        }
        let lengths = [scale.sums.len(), rows.len()];
        ensure!(lengths == [config.rows; 2], "rows = {lengths:?}: expected {}", config.rows);
        let lengths = [adam.mean.len(), adam.square.len()];
        ensure!(lengths == [params.len(); 2], "adam = {lengths:?}: expected {}", params.len());
        let Header { task, update, seconds, .. } = header;
        Ok(Self { task, update, seconds, params, adam, inputs, scale, rows, memories })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = fs::read(path).with_context(|| path.display().to_string())?;
        Self::from_bytes(&bytes).with_context(|| format!("checkpoint {}", path.display()))
    }

    /// Writes a file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_atomically(path, &self.to_bytes()?)
    }
}

fn array<'a>(file: &SafeTensors<'a>, name: &str, dtype: Dtype) -> Result<&'a [u8]> {
    let view = file.tensor(name)?;
    ensure!(view.dtype() == dtype, "{name} = {:?}: expected {dtype:?}", view.dtype());
    Ok(view.data())
}

fn singles(file: &SafeTensors<'_>, name: &str) -> Result<Vec<f32>> {
    let words = array(file, name, Dtype::F32)?.as_chunks::<4>().0;
    Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
}

fn doubles(file: &SafeTensors<'_>, name: &str) -> Result<Vec<f64>> {
    let words = array(file, name, Dtype::F64)?.as_chunks::<8>().0;
    Ok(words.iter().map(|word| f64::from_le_bytes(*word)).collect())
}

/// Writes beside the file, through to the disk, and then takes its place: who is killed in between
/// leaves the old file.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<()> {
    let context = || format!("{}", path.display());
    let mut name = path.file_name().context("a file name")?.to_owned();
    name.push(".new");
    let staged = path.with_file_name(name);
    let mut file = File::create(&staged).with_context(context)?;
    file.write_all(bytes).with_context(context)?;
    file.sync_all().with_context(context)?;
    fs::rename(&staged, path).with_context(context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoint() -> Checkpoint {
        let scenario = oncall_env::shipped("spike").unwrap();
        let config = Config { rows: 3, horizon: 2, minibatch: 6, gamma: 0.9, ..Config::default() };
        let mut scale = ReturnScale::new(3, 0.9, 10.0);
        let rewards = [0.1, -0.2, 0.7, 1.0 / 3.0, 5.0, 6.0];
        scale.observe(2, &rewards, &[oncall_rollout::End::Going; 6]);
        let adam = Adam { mean: vec![0.5, -0.0], square: vec![1e-30, 2.0], steps: 77 };
        Checkpoint {
            task: Task::new(&scenario, u64::MAX, 100, config).unwrap(),
            update: 5,
            seconds: 0.1,
            params: vec![1.0, f32::MIN_POSITIVE],
            adam,
            inputs: Affine { mean: vec![0.25, -1.0], factor: vec![3.0, 1e9] },
            scale,
            rows: vec![vec![1, 2, 3], vec![], vec![255; 10]],
            memories: vec![0.5, f64::NEG_INFINITY, -3.0],
        }
    }

    #[test]
    fn a_file_reads_back_the_same() {
        let checkpoint = checkpoint();
        assert_eq!(checkpoint.task.updates, 17);
        let bytes = checkpoint.to_bytes().unwrap();
        let read = Checkpoint::from_bytes(&bytes).unwrap();
        assert_eq!(read, checkpoint);
        assert_eq!(read.to_bytes().unwrap(), bytes);
        let path = std::env::temp_dir().join(format!("oncall-ppo-{}.ckpt", std::process::id()));
        checkpoint.write(&path).unwrap();
        assert_eq!(Checkpoint::read(&path).unwrap(), checkpoint);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn broken_files_are_refused() {
        let bytes = checkpoint().to_bytes().unwrap();
        for cut in [0, 8, 50, bytes.len() / 2, bytes.len() - 1] {
            assert!(Checkpoint::from_bytes(&bytes[..cut]).is_err());
        }
        let error = |change: &dyn Fn(&mut Checkpoint)| {
            let mut checkpoint = checkpoint();
            change(&mut checkpoint);
            let bytes = checkpoint.to_bytes().unwrap();
            format!("{:#}", Checkpoint::from_bytes(&bytes).unwrap_err())
        };
        assert_eq!(error(&|c| c.rows.truncate(2)), "rows = [3, 2]: expected 3");
        assert_eq!(error(&|c| c.adam.mean.truncate(1)), "adam = [1, 2]: expected 2");
        assert!(error(&|c| c.task.config.clip = -1.0).contains("clip = -1: expected 0..=1"));
    }

    #[test]
    fn empty_trainings_are_refused() {
        let scenario = oncall_env::shipped("spike").unwrap();
        let error = Task::new(&scenario, 1, 0, Config::default()).unwrap_err();
        assert_eq!(error.to_string(), "steps = 0: expected at least 1");
    }
}
