//! The texts that a scenario names, out of a mapping of Python's.

use oncall_env::Files;
use pyo3::prelude::*;

/// A mapping of names to texts; it may read files as they are asked for.
pub(crate) struct Mapping<'a, 'py>(pub(crate) Option<&'a Bound<'py, PyAny>>);

impl Files for Mapping<'_, '_> {
    fn read(&self, name: &str) -> Result<String, String> {
        let Some(mapping) = self.0 else { return Err("no files were given".to_owned()) };
        let text = mapping.get_item(name).and_then(|text| text.extract::<String>());
        text.map_err(|error| error.value(mapping.py()).to_string())
    }
}
