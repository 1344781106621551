//! The scenarios that come along, in the binary itself.

use crate::files::Files;

/// One of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its JSON text.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal,)*) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../scenarios/fleet/", $name, ".json")),
        },)*]
    };
}

const SHIPPED: &[Shipped] = shipped![
    "spike",
    "bad-build",
    "cache-flush",
    "steady",
    "mixed",
    "spike-hard",
    "bad-build-hard",
    "cache-flush-hard",
    "mixed-hard",
];

/// The shipped scenarios: first those that a person learns on, then their hard variants.
pub fn shipped() -> &'static [Shipped] {
    SHIPPED
}

/// The text of a shipped scenario.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|shipped| shipped.name == name).map(|shipped| shipped.text)
}

/// The shipped scenarios as [`Files`], by their names: what a shipped mixture needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShippedFiles;

impl Files for ShippedFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        shipped_text(name).map(str::to_owned).ok_or_else(|| {
            let names: Vec<&str> = SHIPPED.iter().map(|shipped| shipped.name).collect();
            let near = crate::suggest::nearest(name, names.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            format!("no shipped scenario has this name{near} (there are {})", names.join(", "))
        })
    }
}
