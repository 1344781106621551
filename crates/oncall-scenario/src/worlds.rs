//! What the loader asks of a world: which fields its files have, and how scenarios become a world.

use crate::error::Report;
use crate::files::Files;
use crate::node::Node;
use crate::{discovery, fleet};
use oncall_discovery_env::DiscoveryWorld;
use oncall_fleet::FleetWorld;

/// A world whose scenarios can be read.
pub(crate) trait Reads: Sized {
    /// One scenario, validated.
    type Params: Clone;

    /// The world's name in a file.
    const NAME: &'static str;

    /// Names of all fields of a scenario beside the header.
    fn known() -> Vec<&'static str>;
    /// Where a number of this name belongs.
    fn section_of(name: &str) -> Option<String>;
    /// Reads the fields that are not the header's; the result means something only if nothing was
    /// reported.
    fn read(
        report: &mut Report,
        entries: &[(&str, &Node)],
        name: &str,
        files: &dyn Files,
    ) -> Self::Params;
    /// Name of a scenario.
    fn name_of(params: &Self::Params) -> &str;
    /// Why two scenarios cannot be parts of one mixture: what the second one has, and what it should.
    fn conflict(first: &Self::Params, second: &Self::Params) -> Option<(String, String)>;
    /// A world of one scenario.
    fn of_one(params: Self::Params) -> Self;
    /// A world of several, with their weights.
    fn of_many(variants: Vec<(Self::Params, f64)>) -> Result<Self, String>;
    /// The first scenario of a world.
    fn first(&self) -> Option<&Self::Params>;
}

impl Reads for FleetWorld {
    type Params = oncall_fleet::Params;

    const NAME: &'static str = "fleet";

    fn known() -> Vec<&'static str> {
        fleet::known()
    }

    fn section_of(name: &str) -> Option<String> {
        fleet::section_of(name)
    }

    fn read(
        report: &mut Report,
        entries: &[(&str, &Node)],
        name: &str,
        files: &dyn Files,
    ) -> Self::Params {
        fleet::read(report, entries, name, files)
    }

    fn name_of(params: &Self::Params) -> &str {
        &params.name
    }

    fn conflict(first: &Self::Params, second: &Self::Params) -> Option<(String, String)> {
        (first.generator != second.generator).then(|| {
            let value = format!("{:?} with generator {}", second.name, second.generator.name());
            (value, format!("that of {:?}, {}", first.name, first.generator.name()))
        })
    }

    fn of_one(params: Self::Params) -> Self {
        Self::single(params)
    }

    fn of_many(variants: Vec<(Self::Params, f64)>) -> Result<Self, String> {
        Self::mixture(variants).map_err(|why| format!("{why:?}"))
    }

    fn first(&self) -> Option<&Self::Params> {
        self.variants().first()
    }
}

impl Reads for DiscoveryWorld {
    type Params = oncall_discovery_env::Params;

    const NAME: &'static str = "discovery";

    fn known() -> Vec<&'static str> {
        discovery::known()
    }

    fn section_of(name: &str) -> Option<String> {
        discovery::section_of(name)
    }

    fn read(
        report: &mut Report,
        entries: &[(&str, &Node)],
        name: &str,
        _files: &dyn Files,
    ) -> Self::Params {
        discovery::read(report, entries, name)
    }

    fn name_of(params: &Self::Params) -> &str {
        &params.name
    }

    fn conflict(first: &Self::Params, second: &Self::Params) -> Option<(String, String)> {
        (first.scale != second.scale).then(|| {
            let value = format!("{:?} at scale {}", second.name, second.scale.name());
            (value, format!("that of {:?}, {}", first.name, first.scale.name()))
        })
    }

    fn of_one(params: Self::Params) -> Self {
        Self::single(params)
    }

    fn of_many(variants: Vec<(Self::Params, f64)>) -> Result<Self, String> {
        Self::mixture(variants).map_err(|why| format!("{why:?}"))
    }

    fn first(&self) -> Option<&Self::Params> {
        self.variants().first()
    }
}
