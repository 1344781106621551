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
    ($folder:literal: $($name:literal,)*) => {
        &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $folder, "/", $name, ".json")),
        },)*]
    };
}

const SHIPPED: &[Shipped] = shipped![
    "fleet":
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

const DISCOVERY: &[Shipped] = shipped![
    "discovery":
    "calm",
    "rolling-deploy",
    "crash-wave",
    "node-failures",
    "bad-health-check",
    "control-plane-outage",
    "reconnect-storm",
    "region-loss",
    "bad-relay",
    "leader-change",
    "pair-deploy-leader-change",
    "pair-check-crash",
    "pair-outage-reconnect",
    "pair-region-crash",
    "pair-reconnect-deploy",
    "mixed-discovery",
    "heldout-size",
    "heldout-vantage-point",
    "heldout-region-reconnect",
    "heldout-bursts",
    "mixed-discovery-heldout",
];

/// The shipped scenarios of discovery: an ordinary hour, the nine, the pairs, the mixture for training,
/// and what is held out. No name is also one of the fleet.
pub fn shipped_discovery() -> &'static [Shipped] {
    DISCOVERY
}

/// The shipped scenarios of the fleet: first those that a person learns on, then their hard variants.
pub fn shipped() -> &'static [Shipped] {
    SHIPPED
}

/// The text of a shipped scenario of any world.
pub fn shipped_text(name: &str) -> Option<&'static str> {
    let mut all = SHIPPED.iter().chain(DISCOVERY);
    all.find(|shipped| shipped.name == name).map(|shipped| shipped.text)
}

/// The shipped scenarios as [`Files`], by their names: what a shipped mixture needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct ShippedFiles;

impl Files for ShippedFiles {
    fn read(&self, name: &str) -> Result<String, String> {
        shipped_text(name).map(str::to_owned).ok_or_else(|| {
            let all = SHIPPED.iter().chain(DISCOVERY);
            let names: Vec<&str> = all.map(|shipped| shipped.name).collect();
            let near = crate::suggest::nearest(name, names.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            format!("no shipped scenario has this name{near} (there are {})", names.join(", "))
        })
    }
}
