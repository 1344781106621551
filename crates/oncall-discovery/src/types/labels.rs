//! Capability labels: a fixed list of dimensions with small values (R47). They select, and grant nothing (R126).

use serde::{Deserialize, Serialize};

/// The dimensions that exist. Whatever is not here does not belong in the discovery plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[repr(u8)]
pub enum Label {
    /// Release track: 1 stable, 2 canary.
    Track = 0,
    /// Data shard, 1 to 63.
    DataShard = 1,
    /// Wire protocol revision, 1 to 63.
    Protocol = 2,
    /// Hardware class, 1 to 63.
    Hardware = 3,
}

impl Label {
    /// All dimensions, in the order in which they are stored.
    pub const ALL: [Self; 4] = [Self::Track, Self::DataShard, Self::Protocol, Self::Hardware];

    /// Largest value of every dimension: what keeps the cardinality low.
    pub const VALUE_MAX: u8 = 63;

    /// Name as written in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Track => "track",
            Self::DataShard => "data_shard",
            Self::Protocol => "protocol",
            Self::Hardware => "hardware",
        }
    }

    /// The dimension of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.name() == name)
    }
}

/// Why labels were refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// No such dimension.
    #[error("labels: `{0}`; expected one of track, data_shard, protocol, hardware")]
    Unknown(String),
    /// Value out of range.
    #[error("labels.{name}: {value}; expected 1 to {max}", max = Label::VALUE_MAX)]
    Range {
        /// The dimension.
        name: &'static str,
        /// What was given.
        value: u8,
    },
}

/// One small value for each dimension; zero is "not set".
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Labels([u8; 4]);

impl Labels {
    /// No labels.
    pub const NONE: Self = Self([0; 4]);

    /// The value of a dimension, if set.
    pub fn get(self, label: Label) -> Option<u8> {
        Some(self.0[label as usize]).filter(|&value| value != 0)
    }

    /// With a dimension set.
    pub fn with(mut self, label: Label, value: u8) -> Result<Self, LabelError> {
        if value == 0 || value > Label::VALUE_MAX {
            return Err(LabelError::Range { name: label.name(), value });
        }
        self.0[label as usize] = value;
        Ok(self)
    }

    /// From names and values as a file has them.
    pub fn from_pairs<'a>(
        pairs: impl IntoIterator<Item = (&'a str, u8)>,
    ) -> Result<Self, LabelError> {
        pairs.into_iter().try_fold(Self::NONE, |labels, (name, value)| {
            let label =
                Label::from_name(name).ok_or_else(|| LabelError::Unknown(name.to_owned()))?;
            labels.with(label, value)
        })
    }

    /// The four values as one word, for hashes.
    pub fn bits(self) -> u32 {
        u32::from_le_bytes(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_fixed_dimensions_with_small_values_exist() {
        let labels = Labels::from_pairs([("track", 2), ("data_shard", 17)]).unwrap();
        assert_eq!(labels.get(Label::Track), Some(2));
        assert_eq!(labels.get(Label::DataShard), Some(17));
        assert_eq!(labels.get(Label::Hardware), None);
        let unknown = Labels::from_pairs([("pod_name", 1)]).unwrap_err();
        assert!(unknown.to_string().contains("`pod_name`"), "{unknown}");
        for value in [0, 64, 255] {
            let error = Labels::from_pairs([("protocol", value)]).unwrap_err();
            assert_eq!(error, LabelError::Range { name: "protocol", value });
        }
    }
}
