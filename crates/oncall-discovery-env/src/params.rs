//! `Params`: a validated scenario of discovery. Sizes are shares of the fleet, so that one scenario is
//! played at every scale.
//!
//! The tables below are the single listing of the numbers: names, units, ranges, defaults and meanings.
//! Scenario files, their JSON Schema and the documentation are made from them.

use crate::dials;
use oncall_core::digest::fnv1a;
use oncall_core::streams::Purpose;
use oncall_core::{Dist, EpisodeKey, Field};
use oncall_discovery::dials::Dials;
use oncall_discovery_sim::topology::{Loss, Scale};

/// Highest number of faults of a kind.
pub const FAULTS_MAX: usize = 8;

macro_rules! whole {
    () => {
        false
    };
    (whole) => {
        true
    };
}

macro_rules! fields {
    ($($name:ident: $default:expr, $low:literal ..= $high:literal, $unit:literal $(, $whole:ident)?; $doc:literal)*) => {
        &[$(Field {
            name: stringify!($name),
            default: $default,
            low: $low as f64,
            high: $high as f64,
            unit: $unit,
            whole: whole!($($whole)?),
            doc: $doc,
        },)*]
    };
}

macro_rules! faults {
    ($($kind:ident $name:literal { $($rest:tt)* })*) => {
        /// What can go wrong, in the order of the lists of a file.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        #[expect(missing_docs, reason = "the table says what each one is")]
        pub enum Kind { $($kind,)* }

        impl Kind {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)*];

            /// Name of its list in a file.
            pub fn name(self) -> &'static str {
                match self { $(Self::$kind => $name,)* }
            }

            /// Its numbers.
            pub fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$kind => const { fields! {
                        at_min: Some(0.0), 0 ..= 600, "min"; "When it begins, after `shift.onset_min`."
                        chance: Some(1.0), 0 ..= 1, ""; "Probability that it happens in an episode."
                        key: None, 0 ..= 7, "", whole; "Names its draws; its place in the list if left out."
                        $($rest)*
                    } },)*
                }
            }
        }
    };
}

/// Name of the number that names a fault's draws.
pub const KEY: &str = "key";

/// Places of the numbers that every fault has.
pub mod common {
    /// When it begins, minutes after the onset.
    pub const AT: usize = 0;
    /// Probability.
    pub const CHANCE: usize = 1;
    /// Name of its draws.
    pub const KEY: usize = 2;
    /// First number of its own.
    pub const OWN: usize = 3;
}

faults! {
    Rollout "rollouts" {
        share: Some(0.1), 0 ..= 1, ""; "Endpoints that are replaced, over the fleet."
        services_share: Some(0.1), 0 ..= 1, ""; "Services over which they are spread, over all; at least one."
        popular: Some(0.0), 0 ..= 1, "", whole; "1 takes the most popular services, 0 random ones."
    }
    CrashWave "crash_waves" {
        share: Some(0.01), 0 ..= 0.5, ""; "Instances that die without notice, over the fleet."
        over_min: Some(2.0), 0.1 ..= 60, "min"; "Time over which they die."
        freeze: Some(0.0), 0 ..= 1, "", whole; "1 freezes the processes (probes time out), 0 ends them (connections are refused)."
    }
    NodeFailure "node_failures" {
        share: Some(0.005), 0 ..= 0.5, ""; "Nodes that vanish, over all; at least one."
        back_s: Some(75.0), 0 ..= 3600, "s"; "They return after this, with the same addresses; 0 never."
    }
    BadDependency "bad_dependencies" {
        services_share: Some(0.02), 0 ..= 1, ""; "Services whose readiness fails although they can serve, over all; at least one."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long, the slow lead-in included."
        fails_share: Some(0.15), 0 ..= 1, ""; "Share of the attempts that fail there."
        slow_min: Some(1.0), 0 ..= 30, "min"; "Before anything fails the dependency is slow for so long: probes take longer and longer."
        region: Some(-1.0), -1 ..= 2, "", whole; "Region in which the services depend on it, and then those come first whose reads may go elsewhere; -1 is all, and any service."
    }
    BadProber "bad_probers" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region in which one prober sees every probe fail."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long."
    }
    BadZoneLink "bad_zone_links" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region."
        zone: Some(0.0), 0 ..= 2, "", whole; "Zone whose link to the probers loses packets."
        loss: Some(0.9), 0 ..= 1, ""; "Share of the probes lost."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long."
    }
    Outage "outages" {
        region: Some(-1.0), -1 ..= 2, "", whole; "Region whose control plane stops; -1 is all."
        for_min: Some(10.0), 0.5 ..= 60, "min"; "How long."
        cold: Some(0.0), 0 ..= 1, "", whole; "1 lets the relays return without their logs."
        precursor_min: Some(4.0), 0 ..= 5, "min"; "Minutes before, in which writes slow down and followers lag; 0 for none."
        precursor_lag_s: Some(0.5), 0 ..= 30, "s"; "How far followers lag just before it."
    }
    RelayRestart "relay_restarts" {
        share: Some(1.0), 0 ..= 1, ""; "Relays that restart, over all."
        cold: Some(0.0), 0 ..= 1, "", whole; "1 loses their logs."
    }
    ProxyCut "proxy_cuts" {
        share: Some(0.1), 0 ..= 1, ""; "Proxies that lose the control plane, over all; at least one."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long."
    }
    QuorumLoss "quorum_losses" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region whose catalog cannot write."
        for_min: Some(10.0), 0.5 ..= 60, "min"; "How long."
    }
    Partition "partitions" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region that is cut off from the others."
        for_min: Some(10.0), 0.5 ..= 60, "min"; "How long."
    }
    DeltaDrop "delta_drops" {
        relay: Some(0.0), 0 ..= 63, "", whole; "Relay of region 0, counted round."
        share: Some(0.3), 0 ..= 1, ""; "Share of its deliveries that is lost."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long."
    }
    Corruption "corruptions" {
        relay: Some(0.0), 0 ..= 63, "", whole; "Relay of region 0, counted round."
        share: Some(0.5), 0 ..= 1, ""; "Share of its deltas and snapshots whose checksum does not match."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long."
    }
    Silence "silences" {
        relay: Some(0.0), 0 ..= 63, "", whole; "Relay of region 0, counted round."
        for_min: Some(5.0), 0.5 ..= 60, "min"; "How long it keeps its streams open and sends nothing."
    }
    FollowerLag "follower_lags" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region."
        lag_s: Some(1.0), 0 ..= 60, "s"; "How far followers, and with them publication, lag."
        for_min: Some(2.0), 0.1 ..= 60, "min"; "How long."
    }
    LeaderCrash "leader_crashes" {
        region: Some(0.0), 0 ..= 2, "", whole; "Region whose leaders crash."
        back_s: Some(10.0), 0.1 ..= 3600, "s"; "They return after this."
    }
}

/// Length of the episode.
pub const SHIFT: &[Field] = fields! {
    length_min: Some(60.0), 1 ..= 600, "min", whole; "Minutes until the episode is truncated."
    onset_min: Some(5.0), 5 ..= 600, "min"; "From here on faults count their `at_min`; before, all is calm."
};

/// What always happens.
pub const BACKGROUND: &[Field] = fields! {
    churn_per_h: Some(0.072), 0 ..= 1, "1/h"; "Instances that move to another node, over the fleet."
    crashes_per_h: Some(0.0144), 0 ..= 1, "1/h"; "Instances that die without notice, over the fleet; every second one freezes."
    loss: Some(0.0005), 0 ..= 0.2, ""; "Share of the probes lost on a healthy path."
    burst_loss: Some(0.9), 0 ..= 1, ""; "Share of the probes lost while a node's channel is in a burst."
    burst_s: Some(3.0), 0.1 ..= 120, "s"; "Mean length of a burst."
    burst_between_s: Some(7200.0), 60 ..= 1_000_000, "s"; "Mean time between two bursts of a node."
};

/// Places of the numbers of [`BACKGROUND`].
mod background {
    pub(super) const CHURN: usize = 0;
    pub(super) const CRASHES: usize = 1;
    pub(super) const LOSS: usize = 2;
    pub(super) const BURST_LOSS: usize = 3;
    pub(super) const BURST: usize = 4;
    pub(super) const BETWEEN: usize = 5;
}

/// A section of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    /// The episode.
    Shift,
    /// What always happens.
    Background,
    /// How the dials stand at the start.
    Opening,
}

/// The dials as numbers of a scenario.
static OPENING: [Field; dials::COUNT] = opening();

const fn opening() -> [Field; dials::COUNT] {
    let blank =
        Field { name: "", default: None, low: 0.0, high: 0.0, unit: "", whole: false, doc: "" };
    let mut fields = [blank; dials::COUNT];
    let mut at = 0;
    while at < dials::COUNT {
        let row = &Dials::TABLE[at];
        fields[at] = Field {
            name: row.name,
            default: Some(row.default),
            low: row.min,
            high: row.max,
            unit: "",
            whole: row.kind.whole(),
            doc: row.help,
        };
        at += 1;
    }
    fields
}

impl Section {
    /// All of them, in the order of a file.
    pub const ALL: [Self; 3] = [Self::Shift, Self::Background, Self::Opening];

    /// Its name in a file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shift => "shift",
            Self::Background => "background",
            Self::Opening => "opening",
        }
    }

    /// Its numbers.
    pub fn fields(self) -> &'static [Field] {
        match self {
            Self::Shift => SHIFT,
            Self::Background => BACKGROUND,
            Self::Opening => &OPENING,
        }
    }
}

/// One fault of a scenario: its numbers in the order of [`Kind::fields`].
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// What.
    pub kind: Kind,
    /// Its numbers.
    pub values: Vec<f64>,
}

impl Fault {
    /// A fault with defaults, the `place`-th of its list; NaN where the file must say it.
    pub fn defaults(kind: Kind, place: usize) -> Self {
        let default = |field: &Field| field.default.unwrap_or(f64::NAN);
        let mut values: Vec<f64> = kind.fields().iter().map(default).collect();
        values[common::KEY] = place as f64;
        Self { kind, values }
    }

    /// One of its own numbers, counted from the first that not every fault has.
    pub fn own(&self, index: usize) -> f64 {
        self.values[common::OWN + index]
    }
}

/// Which number a distribution draws.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// Section and field.
    Section(Section, usize),
    /// Fault, counted over all lists, and field.
    Fault(usize, usize),
}

/// The numbers of a scenario, or of one episode.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// The sections, in the order of [`Section::ALL`].
    pub sections: [Vec<f64>; 3],
    /// The faults, in the order of the file.
    pub faults: Vec<Fault>,
}

impl Numbers {
    /// All defaults, no faults.
    pub fn defaults() -> Self {
        let values = |section: Section| {
            section.fields().iter().map(|field| field.default.unwrap_or(f64::NAN)).collect()
        };
        Self { sections: Section::ALL.map(values), faults: Vec::new() }
    }

    /// The number that a distribution draws.
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn slot(&mut self, target: Target) -> &mut f64 {
        match target {
            Target::Section(section, field) => &mut self.sections[section as usize][field],
            Target::Fault(fault, field) => &mut self.faults[fault].values[field],
        }
    }

    /// The field of a number.
    pub fn field(&self, target: Target) -> &'static Field {
        match target {
            Target::Section(section, field) => &section.fields()[field],
            Target::Fault(fault, field) => &self.faults[fault].kind.fields()[field],
        }
    }

    /// Path of the number in reports, such as `rollouts[0].share`, by the key of a fault.
    pub fn path(&self, target: Target) -> String {
        let name = self.field(target).name;
        match target {
            Target::Section(section, _) => format!("{}.{name}", section.name()),
            Target::Fault(fault, _) => {
                let fault = &self.faults[fault];
                format!("{}[{}].{name}", fault.kind.name(), fault.values[common::KEY])
            }
        }
    }

    /// Minutes of the episode.
    pub fn length_min(&self) -> f64 {
        self.sections[Section::Shift as usize][0]
    }

    /// When a fault begins, minutes.
    pub fn at_min(&self, fault: &Fault) -> f64 {
        self.sections[Section::Shift as usize][1] + fault.values[common::AT]
    }

    /// Moves and silent deaths in an hour, over the fleet.
    pub fn churn_and_crashes_per_h(&self) -> (f64, f64) {
        let values = &self.sections[Section::Background as usize];
        (values[background::CHURN], values[background::CRASHES])
    }

    /// How the network loses probes.
    pub fn loss(&self) -> Loss {
        let values = &self.sections[Section::Background as usize];
        Loss {
            calm: values[background::LOSS],
            burst: values[background::BURST_LOSS],
            burst_s: values[background::BURST],
            between_s: values[background::BETWEEN],
        }
    }

    /// The dials at the start; rules between them are kept.
    pub fn opening(&self) -> [f64; dials::COUNT] {
        let mut values = Dials::default().values();
        values.copy_from_slice(&self.sections[Section::Opening as usize]);
        dials::repair(&mut values);
        values
    }
}

/// One scenario, validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    /// Its name.
    pub name: String,
    /// Size of the fleet.
    pub scale: Scale,
    /// Every number; those that are drawn hold any value of their range.
    pub numbers: Numbers,
    /// The distributions, in the order of the file.
    pub draws: Vec<(Target, Dist)>,
    /// Hash of the resolved scenario's text, without the scale.
    pub text_hash: u64,
    /// Whether the simulator checks whole sets at every publication and delivery; slow, and for tests. It
    /// changes no trajectory.
    pub verify: bool,
}

impl Params {
    /// All defaults: an hour without faults.
    pub fn defaults(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            scale: Scale::Small,
            numbers: Numbers::defaults(),
            draws: Vec::new(),
            text_hash: 0,
            verify: false,
        }
    }

    /// Hash of everything that changes a trajectory.
    pub fn hash(&self) -> u64 {
        let shape = self.scale.env_shape().numbers();
        let shape = shape.map(|number| format!("{:016x}", number.to_bits())).join(" ");
        fnv1a(format!("discovery {:016x} {} {shape}", self.text_hash, self.scale.name()).as_bytes())
    }

    /// The numbers of an episode. Every number has a stream of its own, named by the kind and the key of its
    /// fault and by its field: a fault more or less shifts no other draw.
    pub fn draw(&self, key: EpisodeKey) -> Numbers {
        let mut numbers = self.numbers.clone();
        for (target, dist) in &self.draws {
            let path = self.numbers.path(*target);
            let mut stream = key.stream(Purpose::Scenario, fnv1a(path.as_bytes()));
            let field = self.numbers.field(*target);
            *numbers.slot(*target) = field.settle(dist.draw(&mut stream));
        }
        numbers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oncall_core::{Generator, Split};

    fn key(seed: u64) -> EpisodeKey {
        EpisodeKey::new(seed, 0, Split::Train, Generator::Pcg)
    }

    #[test]
    fn defaults_lie_in_their_ranges() {
        let faults = Kind::ALL.iter().map(|kind| (kind.name(), kind.fields()));
        let sections = Section::ALL.iter().map(|section| (section.name(), section.fields()));
        for (list, fields) in sections.chain(faults) {
            for field in fields {
                assert!(field.low < field.high, "{list}.{}", field.name);
                let Some(default) = field.default else { continue };
                assert!((field.low..=field.high).contains(&default), "{list}.{}", field.name);
                assert!(!field.whole || default.fract() == 0.0, "{list}.{}", field.name);
            }
        }
        assert_eq!(Numbers::defaults().loss(), Loss::default());
    }

    fn two_waves() -> Params {
        let mut params = Params::defaults("test");
        for place in 0..2 {
            params.numbers.faults.push(Fault::defaults(Kind::CrashWave, place));
            let at = Target::Fault(place, common::AT);
            params.draws.push((at, Dist::Uniform { low: 5.0, high: 45.0 }));
        }
        params
    }

    #[test]
    fn a_fault_less_shifts_no_other_draw() {
        let both = two_waves();
        let mut second = both.clone();
        second.numbers.faults.remove(0);
        second.draws = vec![(Target::Fault(0, common::AT), both.draws[1].1.clone())];
        let drawn = |params: &Params, fault: usize, seed| {
            params.draw(key(seed)).faults[fault].values[common::AT]
        };
        for seed in 0..20 {
            assert_eq!(drawn(&both, 1, seed), drawn(&second, 0, seed));
            assert_ne!(drawn(&both, 0, seed), drawn(&both, 1, seed));
        }
    }

    #[test]
    fn a_scale_is_another_scenario() {
        let small = Params::defaults("test");
        let tenth = Params { scale: Scale::Tenth, ..small.clone() };
        assert_ne!(small.hash(), tenth.hash());
        // But what is drawn is the same.
        assert_eq!(
            two_waves().draw(key(3)),
            Params { scale: Scale::Full, ..two_waves() }.draw(key(3))
        );
    }
}
