//! Weights with their metadata, as safetensors.
//!
//! Tensors are `actor.0.weight` as `[outputs][inputs]`, `actor.0.bias`, `actor.1.weight` and so on, all
//! 32-bit floats, and the same for `critic`, which may be missing. The file's metadata has one entry,
//! [`META_KEY`], whose value is [`Meta`] as JSON: what they were trained on and how well they do.

use crate::heads::{Grid, Heads};
use crate::network::Mlp;
use crate::policy::Mode;
use oncall_core::{Spec, View};
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Key of the metadata entry. One entry, because several would be written in any order.
pub const META_KEY: &str = "oncall";

/// Rises when the layout of the file changes.
pub const FORMAT: u32 = 1;

/// Ticks that a decision may stand.
const INTERVALS: std::ops::RangeInclusive<u32> = 1..=60;

/// Why weights cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WeightsError(String);

impl WeightsError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }

    /// `name = found: expected expected`.
    fn value(name: &str, found: impl std::fmt::Display, expected: impl std::fmt::Display) -> Self {
        Self(format!("weights: {name} = {found}: expected {expected}"))
    }
}

/// What weights were trained on, and how well they do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// [`FORMAT`].
    pub format: u32,
    /// Name of the world.
    pub world: String,
    /// Hash of its spec, 16 hex digits. Another spec has other inputs or other dials.
    pub spec_hash: String,
    /// Name of the scenario.
    pub scenario: String,
    /// Its hash, 16 hex digits.
    pub scenario_hash: String,
    /// View of the observation, `operator` or `full`.
    pub view: String,
    /// Ticks of the world that a decision stands; minutes of the fleet.
    pub decision_interval_min: u32,
    /// Seed of the training.
    pub seed: u64,
    /// Environment steps of the training.
    pub steps: u64,
    /// What can be chosen; without it the stops.
    #[serde(default, skip_serializing_if = "Grid::is_default")]
    pub grid: Grid,
    /// The rule whose decision is the first choice of every dial, as `oncall eval` takes it; without it the first
    /// choice is that of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub over: Option<String>,
    /// How choices are to be taken from the distributions.
    pub mode: Mode,
    /// How well they do in that mode; `None` if it was not measured.
    pub evaluation: Option<Evaluation>,
}

impl Meta {
    /// The choices of the policy; refuses a grid that does not fit.
    pub fn heads(&self, spec: &Spec) -> Result<Heads, WeightsError> {
        Heads::on(spec, &self.grid, self.over.is_some())
    }
}

/// A measured return.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evaluation {
    /// Mean return, dollars.
    pub return_usd: f64,
    /// Its standard error.
    pub return_se_usd: f64,
    /// Normalised score, where the scenario has its constants.
    pub score: Option<f64>,
    /// Episodes.
    pub episodes: u64,
    /// Seed of the episodes.
    pub seed: u64,
    /// `train` or `test`.
    pub split: String,
}

/// One named array.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Name in the file.
    pub name: String,
    /// Sizes, outermost first.
    pub shape: Vec<usize>,
    /// The numbers, row-major.
    pub values: Vec<f32>,
}

/// A trained policy, checked against the spec of the world that it plays.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    meta: Meta,
    tensors: Vec<Tensor>,
    actor: Mlp,
    critic: Option<Mlp>,
}

impl Weights {
    /// From arrays in memory.
    ///
    /// Refuses another spec, arrays that are missing, too many or of the wrong size, and numbers that
    /// are not finite.
    pub fn new(meta: Meta, tensors: Vec<Tensor>, spec: &Spec) -> Result<Self, WeightsError> {
        check_meta(&meta, spec)?;
        for tensor in &tensors {
            if let Some(value) = tensor.values.iter().find(|value| !value.is_finite()) {
                return Err(WeightsError::value(&tensor.name, value, "finite numbers"));
            }
        }
        let view = View::from_name(&meta.view)
            .ok_or_else(|| WeightsError::value("view", &meta.view, "operator or full"))?;
        let inputs = spec.columns_of(view).len();
        let actor = network(&tensors, "actor", inputs, meta.heads(spec)?.logits())?
            .ok_or_else(|| WeightsError::new("weights: `actor.0.weight` is missing"))?;
        let critic = network(&tensors, "critic", inputs, 1)?;
        let used = 2 * (actor.depth() + critic.as_ref().map_or(0, Mlp::depth));
        if used != tensors.len() {
            let expected = format!("the {used} of the layers actor.N and critic.N");
            return Err(WeightsError::value("number of arrays", tensors.len(), expected));
        }
        Ok(Self { meta, tensors, actor, critic })
    }

    /// Reads a file's bytes.
    pub fn from_bytes(bytes: &[u8], spec: &Spec) -> Result<Self, WeightsError> {
        let broken = |error: &dyn std::fmt::Display| {
            WeightsError::new(format!("weights: not a safetensors file: {error}"))
        };
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(|error| broken(&error))?;
        let file = SafeTensors::deserialize(bytes).map_err(|error| broken(&error))?;
        let text = header.metadata().as_ref().and_then(|entries| entries.get(META_KEY));
        let text = text.ok_or_else(|| {
            WeightsError::new(format!("weights: metadata `{META_KEY}` is missing"))
        })?;
        let meta: Meta = serde_json::from_str(text)
            .map_err(|error| WeightsError::new(format!("weights: metadata: {error}")))?;
        // Before the arrays: those of another spec have other sizes, which says less.
        check_meta(&meta, spec)?;
        let mut tensors =
            file.iter().map(|(name, view)| tensor(name, &view)).collect::<Result<Vec<_>, _>>()?;
        tensors.sort_by(|a, b| a.name.cmp(&b.name));
        Self::new(meta, tensors, spec)
    }

    /// The bytes of a file. The same weights give the same bytes.
    ///
    /// # Panics
    ///
    /// Never: what was checked can be written.
    pub fn to_bytes(&self) -> Vec<u8> {
        let meta = serde_json::to_string(&self.meta).expect("plain fields become JSON");
        let data: Vec<(&str, &[usize], Vec<u8>)> = self
            .tensors
            .iter()
            .map(|tensor| {
                let bytes = tensor.values.iter().flat_map(|value| value.to_le_bytes()).collect();
                (tensor.name.as_str(), tensor.shape.as_slice(), bytes)
            })
            .collect();
        let views = data.iter().map(|(name, shape, bytes)| {
            let view = TensorView::new(Dtype::F32, shape.to_vec(), bytes);
            (*name, view.expect("as many numbers as the shape says"))
        });
        let entries = HashMap::from([(META_KEY.to_owned(), meta)]);
        serialize(views, Some(entries)).expect("names and sizes are plain")
    }

    /// Refuses a spec other than the one that they were trained with.
    pub fn check_spec(&self, spec: &Spec) -> Result<(), WeightsError> {
        check_meta(&self.meta, spec)
    }

    /// What they were trained on.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The arrays, by name.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// From an observation to the logits of the dials.
    pub fn actor(&self) -> &Mlp {
        &self.actor
    }

    /// From an observation to its value, in the training's scale.
    pub fn critic(&self) -> Option<&Mlp> {
        self.critic.as_ref()
    }
}

fn check_meta(meta: &Meta, spec: &Spec) -> Result<(), WeightsError> {
    if meta.format != FORMAT {
        return Err(WeightsError::value("format", meta.format, FORMAT));
    }
    let hash = oncall_core::hex(spec.hash());
    if meta.world != spec.world || meta.spec_hash != hash {
        let found = format!("{} {}", meta.world, meta.spec_hash);
        let expected = format!(
            "{} {hash}; they were trained with other signals or dials and must be trained anew",
            spec.world
        );
        return Err(WeightsError::value("spec", found, expected));
    }
    if !INTERVALS.contains(&meta.decision_interval_min) {
        let expected = format!("{}..={}", INTERVALS.start(), INTERVALS.end());
        let found = meta.decision_interval_min;
        return Err(WeightsError::value("decision_interval_min", found, expected));
    }
    Ok(())
}

/// One array of a file.
fn tensor(name: &str, view: &TensorView<'_>) -> Result<Tensor, WeightsError> {
    if view.dtype() != Dtype::F32 {
        return Err(WeightsError::value(name, format!("{:?}", view.dtype()), "F32"));
    }
    let words = view.data().chunks_exact(4);
    let values = words.map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    Ok(Tensor { name: name.to_owned(), shape: view.shape().to_vec(), values: values.collect() })
}

/// The layers of that name; `None` if there is not one.
fn network(
    tensors: &[Tensor],
    name: &str,
    inputs: usize,
    outputs: usize,
) -> Result<Option<Mlp>, WeightsError> {
    let find = |name: String| tensors.iter().find(|tensor| tensor.name == name);
    let mut layers: Vec<(&Tensor, &Tensor)> = Vec::new();
    while let Some(weight) = find(format!("{name}.{}.weight", layers.len())) {
        let bias = format!("{name}.{}.bias", layers.len());
        let bias = find(bias.clone())
            .ok_or_else(|| WeightsError::new(format!("weights: `{bias}` is missing")))?;
        let width = layers.last().map_or(inputs, |(weight, _)| weight.shape[0]);
        let fits = matches!(weight.shape[..], [rows, columns] if rows > 0 && columns == width);
        if !fits || weight.values.len() != weight.shape[0] * width {
            let expected = format!("some rows of {width}");
            return Err(WeightsError::value(&weight.name, format!("{:?}", weight.shape), expected));
        }
        if bias.shape != [weight.shape[0]] || bias.values.len() != weight.shape[0] {
            let (found, expected) = (format!("{:?}", bias.shape), format!("[{}]", weight.shape[0]));
            return Err(WeightsError::value(&bias.name, found, expected));
        }
        layers.push((weight, bias));
    }
    let Some((last, _)) = layers.last() else { return Ok(None) };
    if last.shape[0] != outputs {
        return Err(WeightsError::value(&last.name, last.shape[0], format!("{outputs} rows")));
    }
    let layers: Vec<(&[f32], &[f32])> =
        layers.iter().map(|(weight, bias)| (&weight.values[..], &bias.values[..])).collect();
    Ok(Some(Mlp::new(&layers)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::testing::{meta, spec, tensors};

    #[test]
    fn a_file_reads_back_the_same() {
        let mut meta = meta();
        meta.seed = u64::MAX;
        meta.evaluation = Some(Evaluation {
            return_usd: -0.1 - 0.2,
            return_se_usd: 0.5,
            score: Some(71.25),
            episodes: 1000,
            seed: 1,
            split: "train".to_owned(),
        });
        let weights = Weights::new(meta, tensors(7), &spec()).unwrap();
        let bytes = weights.to_bytes();
        let read = Weights::from_bytes(&bytes, &spec()).unwrap();
        assert_eq!(read.meta(), weights.meta());
        assert_eq!(read.actor(), weights.actor());
        assert_eq!(read.critic(), weights.critic());
        assert_eq!(read.to_bytes(), bytes);
    }

    #[test]
    fn weights_of_another_spec_are_refused() {
        let bytes = Weights::new(meta(), tensors(7), &spec()).unwrap().to_bytes();
        let mut other = spec();
        other.version += 1;
        let error = Weights::from_bytes(&bytes, &other).unwrap_err().to_string();
        let (found, expected) = (spec().hash(), other.hash());
        assert_eq!(
            error,
            format!(
                "weights: spec = fleet {found:016x}: expected fleet {expected:016x}; they were \
                 trained with other signals or dials and must be trained anew"
            )
        );
    }

    #[test]
    fn what_is_wrong_is_named() {
        let of = |change: &dyn Fn(&mut Meta, &mut Vec<Tensor>)| {
            let (mut meta, mut tensors) = (meta(), tensors(7));
            change(&mut meta, &mut tensors);
            Weights::new(meta, tensors, &spec()).unwrap_err().to_string()
        };
        let contains = |found: String, part: &str| assert!(found.contains(part), "{found}");
        contains(of(&|meta, _| meta.format = 9), "format = 9: expected 1");
        let interval = of(&|meta, _| meta.decision_interval_min = 0);
        contains(interval, "decision_interval_min = 0: expected 1..=60");
        contains(of(&|meta, _| meta.view = "record".to_owned()), "view = record: expected oper");
        contains(of(&|_, tensors| tensors.clear()), "`actor.0.weight` is missing");
        contains(of(&|_, tensors| tensors[0].values[3] = f32::NAN), "NaN: expected finite");
        contains(of(&|_, tensors| drop(tensors.remove(1))), "`actor.0.bias` is missing");
        contains(of(&|_, tensors| tensors[0].shape.reverse()), "expected some rows of");
        contains(of(&|_, tensors| tensors[1].shape = vec![1, 16]), "[1, 16]: expected [16]");
        contains(of(&|_, tensors| tensors[2].values.truncate(5)), "expected some rows of");
        contains(of(&|_, tensors| tensors.truncate(2)), "actor.0.weight = 16: expected 78 rows");
        let extra = |tensors: &mut Vec<Tensor>| {
            let name = "extra".to_owned();
            tensors.push(Tensor { name, shape: vec![1], values: vec![0.0] });
        };
        contains(of(&|_, tensors| extra(tensors)), "number of arrays = 9: expected the 8");
    }

    #[test]
    fn broken_bytes_are_refused() {
        let bytes = Weights::new(meta(), tensors(7), &spec()).unwrap().to_bytes();
        for cut in [0, 7, 100, bytes.len() - 1] {
            let error = Weights::from_bytes(&bytes[..cut], &spec()).unwrap_err().to_string();
            assert!(error.starts_with("weights: not a safetensors file"), "{error}");
        }
        let plain = serialize(Vec::<(&str, TensorView<'_>)>::new(), None).unwrap();
        let error = Weights::from_bytes(&plain, &spec()).unwrap_err().to_string();
        assert_eq!(error, "weights: metadata `oncall` is missing");
        let entries = HashMap::from([(META_KEY.to_owned(), "{}".to_owned())]);
        let empty = serialize(Vec::<(&str, TensorView<'_>)>::new(), Some(entries)).unwrap();
        let error = Weights::from_bytes(&empty, &spec()).unwrap_err().to_string();
        assert!(error.starts_with("weights: metadata: missing field"), "{error}");
    }
}
