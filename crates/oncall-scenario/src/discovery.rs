//! A scenario of discovery: JSON to its `Params`.

use crate::error::{Report, child, item};
use crate::node::{Node, plain, quoted};
use crate::object::{fields, items, text, unknown};
use crate::{canonical, number, rules};
use oncall_core::{Dist, Field, Sampled};
use oncall_discovery_env::params::{FAULTS_MAX, Fault, Kind, Params, Section, Target, common};
use oncall_discovery_env::{Scale, dials};

/// The field that says how large the fleet is.
pub(crate) const SCALE: &str = "scale";

/// Names of all fields of a scenario beside the header.
pub(crate) fn known() -> Vec<&'static str> {
    let sections = Section::ALL.iter().map(|section| section.name());
    let lists = Kind::ALL.iter().map(|kind| kind.name());
    [SCALE].into_iter().chain(sections).chain(lists).collect()
}

/// Where a number of this name belongs.
pub(crate) fn section_of(name: &str) -> Option<String> {
    let has = |fields: &[Field]| fields.iter().any(|field| field.name == name);
    let section = Section::ALL.iter().find(|section| has(section.fields()));
    let section = section.map(|section| format!("{}.{name}", section.name()));
    section.or_else(|| {
        let kind = Kind::ALL.iter().find(|kind| has(kind.fields()))?;
        Some(format!("{}[..].{name}", kind.name()))
    })
}

/// Reads the fields of a scenario that are not the header's. The result means something only if
/// nothing was reported.
pub(crate) fn read(report: &mut Report, entries: &[(&str, &Node)], name: &str) -> Params {
    let mut reader = Reader { report, params: Params::defaults(name), failed: Vec::new() };
    for (key, node) in entries {
        reader.field(key, node);
    }
    let Reader { report, mut params, failed } = reader;
    check(report, &params, &failed);
    params.text_hash = canonical::discovery_hash(&params);
    params
}

struct Reader<'a> {
    report: &'a mut Report,
    params: Params,
    /// Numbers that were reported; no rule is checked on them.
    failed: Vec<Target>,
}

impl Reader<'_> {
    fn field(&mut self, key: &str, node: &Node) {
        let path = child("$", key);
        if let Some(&section) = Section::ALL.iter().find(|section| section.name() == key) {
            self.section(section, node, &path);
        } else if let Some(&kind) = Kind::ALL.iter().find(|kind| kind.name() == key) {
            self.faults(kind, node, &path);
        } else if key == SCALE {
            self.scale(node, &path);
        }
    }

    fn scale(&mut self, node: &Node, path: &str) {
        let names = Scale::ALL.map(|scale| quoted(scale.name())).join(" or ");
        let Some(found) = text(self.report, node, path, &names) else { return };
        match Scale::from_name(found) {
            Some(scale) => self.params.scale = scale,
            None => self.report.add(path, node.shown(), names),
        }
    }

    fn section(&mut self, section: Section, node: &Node, path: &str) {
        let known = section.fields();
        for (key, node) in fields(self.report, node, path, "the fields of this section") {
            if let Some(field) = known.iter().position(|field| field.name == key) {
                self.number(Target::Section(section, field), node, &child(path, key));
            } else {
                let names: Vec<&str> = known.iter().map(|field| field.name).collect();
                unknown(self.report, path, key, &names, section_of(key));
            }
        }
    }

    fn faults(&mut self, kind: Kind, node: &Node, path: &str) {
        let known = kind.fields();
        let names: Vec<&str> = known.iter().map(|field| field.name).collect();
        let list = items(self.report, node, path, FAULTS_MAX, kind.name());
        for (place, node) in list.iter().enumerate() {
            let path = item(path, place);
            let fault = self.params.numbers.faults.len();
            self.params.numbers.faults.push(Fault::defaults(kind, place));
            let entries = fields(self.report, node, &path, &names.join(", "));
            for (key, node) in &entries {
                let here = child(&path, key);
                match names.iter().position(|name| name == key) {
                    Some(common::KEY) => self.key(fault, node, &here),
                    Some(field) => self.number(Target::Fault(fault, field), node, &here),
                    None => unknown(self.report, &path, key, &names, section_of(key)),
                }
            }
        }
        self.distinct(kind, path);
    }

    /// The key of a fault names its draws, so it is not drawn itself.
    fn key(&mut self, fault: usize, node: &Node, path: &str) {
        let field = &self.params.numbers.faults[fault].kind.fields()[common::KEY];
        match number::read(self.report, field, node, path) {
            Some(Sampled::Fixed(key)) => {
                self.params.numbers.faults[fault].values[common::KEY] = key;
            }
            Some(Sampled::Drawn(_)) => {
                self.report.add(path, node.shown(), number::expectation(field));
            }
            None => {}
        }
    }

    /// Two faults of a kind with one key would draw the same.
    fn distinct(&mut self, kind: Kind, path: &str) {
        let faults = self.params.numbers.faults.iter().filter(|fault| fault.kind == kind);
        let keys: Vec<f64> = faults.map(|fault| fault.values[common::KEY]).collect();
        for (place, key) in keys.iter().enumerate() {
            if let Some(first) = keys[..place].iter().position(|before| before == key) {
                let path = child(&item(path, place), "key");
                let expected = format!("another key than that of `{}[{first}]`", kind.name());
                self.report.add(path, plain(*key), expected);
            }
        }
    }

    fn number(&mut self, target: Target, node: &Node, path: &str) {
        let field = self.params.numbers.field(target);
        match number::read(self.report, field, node, path) {
            Some(Sampled::Fixed(value)) => *self.params.numbers.slot(target) = value,
            Some(Sampled::Drawn(dist)) => {
                *self.params.numbers.slot(target) = middle(field, &dist);
                self.params.draws.push((target, dist));
            }
            None => self.failed.push(target),
        }
    }
}

/// A value that stands for a distribution where none is drawn yet.
fn middle(field: &Field, dist: &Dist) -> f64 {
    field.settle(match dist {
        Dist::Uniform { low, high } => 0.5 * (low + high),
        Dist::Exponential { mean } | Dist::Normal { mean, .. } => *mean,
        Dist::Choice { values, .. } => values.first().copied().unwrap_or(field.low),
    })
}

/// Rules between dials of the opening: name, factor, name, words.
const RULES: [(&str, f64, &str, &str); 3] = [
    ("probe_timeout_s", 1.0, "probe_interval_s", "less than"),
    ("renewal_interval_s", 3.0, "lease_ttl_s", "at most a third of"),
    ("reconnect_base_s", 1.0, "reconnect_cap_s", "at most"),
];

/// Reports every rule that is broken, or that a draw could break; numbers that `failed` are left out.
fn check(report: &mut Report, params: &Params, failed: &[Target]) {
    for (low, factor, high, words) in RULES {
        let target = |name| Target::Section(Section::Opening, dials::index(name));
        let (low, high) = (target(low), target(high));
        if failed.contains(&low) || failed.contains(&high) {
            continue;
        }
        let (most, least) = (span(params, low).1, span(params, high).0);
        let holds = if words == "less than" { most < least } else { most * factor <= least };
        if !holds {
            let path = format!("$.{}", params.numbers.path(low));
            let other = params.numbers.path(high);
            let expected = format!("{words} `{other}`, which can be {}", plain(least));
            report.add(path, plain(most), expected);
        }
    }
}

/// The lowest and the highest value that a number can take.
fn span(params: &Params, target: Target) -> (f64, f64) {
    if let Some((_, dist)) = params.draws.iter().find(|(drawn, _)| *drawn == target) {
        return rules::ends(params.numbers.field(target), dist);
    }
    let mut numbers = params.numbers.clone();
    let value = *numbers.slot(target);
    (value, value)
}
