//! A scenario of the fleet: JSON to `Params`.

use crate::error::{Report, child, item, shorten};
use crate::files::Files;
use crate::node::{Node, plain, quoted};
use crate::object::{fields, flag, items, text, unknown};
use crate::series::{self, Scale};
use crate::{canonical, number, rules};
use oncall_core::{Dist, Generator, Sampled};
use oncall_fleet::Params;
use oncall_fleet::params::{Constants, Deploy, EVENTS_MAX, Field, Flush, Record, Surge, Target};

/// The section that may hold a series, and the numbers that a series replaces.
pub(crate) const DEMAND: &str = "demand";
pub(crate) const SERIES: &str = "series";
pub(crate) const REPLACED: [&str; 3] = ["base_rps", "daily_amplitude", "daily_rise_h"];

/// Fields of a scenario beside the header, the sections and the lists.
pub(crate) const FLAGS: [&str; 2] = ["generator", "hide_build_truth"];

/// The lists of events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Events {
    Surges,
    Deploys,
    Flushes,
}

impl Events {
    pub(crate) const ALL: [Self; 3] = [Self::Surges, Self::Deploys, Self::Flushes];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Surges => "surges",
            Self::Deploys => "deploys",
            Self::Flushes => "flushes",
        }
    }

    pub(crate) fn fields(self) -> &'static [Field] {
        match self {
            Self::Surges => Surge::FIELDS,
            Self::Deploys => Deploy::FIELDS,
            Self::Flushes => Flush::FIELDS,
        }
    }

    fn target(self, index: usize, field: usize) -> Target {
        match self {
            Self::Surges => Target::Surge(index, field),
            Self::Deploys => Target::Deploy(index, field),
            Self::Flushes => Target::Flush(index, field),
        }
    }

    fn push(self, params: &mut Params) {
        let numbers = &mut params.numbers;
        match self {
            Self::Surges => numbers.surges.push(Surge::defaults()),
            Self::Deploys => numbers.deploys.push(Deploy::defaults()),
            Self::Flushes => numbers.flushes.push(Flush::defaults()),
        }
    }
}

/// Names of all fields of a scenario beside the header.
pub(crate) fn known() -> Vec<&'static str> {
    let sections = Constants::SECTIONS.iter().map(|(name, _)| *name);
    FLAGS.into_iter().chain(sections).chain(Events::ALL.map(Events::name)).collect()
}

/// Where a number of this name belongs.
pub(crate) fn section_of(name: &str) -> Option<String> {
    let has = |fields: &[Field]| fields.iter().any(|field| field.name == name);
    let section = Constants::SECTIONS.iter().find(|(_, fields)| has(fields));
    let section = section.map(|(section, _)| format!("{section}.{name}"));
    section.or_else(|| {
        let events = Events::ALL.into_iter().find(|events| has(events.fields()))?;
        Some(format!("{}[..].{name}", events.name()))
    })
}

/// Reads the fields of a scenario that are not the header's. The result means something only if
/// nothing was reported.
pub(crate) fn read(
    report: &mut Report,
    entries: &[(&str, &Node)],
    name: &str,
    files: &dyn Files,
) -> Params {
    let mut reader = Reader { report, files, params: Params::defaults(name), failed: Vec::new() };
    for (key, node) in entries {
        reader.field(key, node);
    }
    let Reader { mut params, failed, .. } = reader;
    rules::check(report, &params, &failed);
    params.hash = canonical::hash(&params);
    params
}

struct Reader<'a> {
    report: &'a mut Report,
    files: &'a dyn Files,
    params: Params,
    /// Numbers that were reported; no rule is checked on them.
    failed: Vec<Target>,
}

impl Reader<'_> {
    fn field(&mut self, key: &str, node: &Node) {
        let path = child("$", key);
        if let Some(section) = Constants::SECTIONS.iter().position(|(name, _)| *name == key) {
            return self.section(section, node, &path);
        }
        if let Some(events) = Events::ALL.into_iter().find(|events| events.name() == key) {
            return self.events(events, node, &path);
        }
        if key == "generator" {
            self.generator(node, &path);
        } else if key == "hide_build_truth" {
            self.params.hide_build_truth = flag(self.report, node, &path).unwrap_or_default();
        }
    }

    fn generator(&mut self, node: &Node, path: &str) {
        let names = Generator::ALL.map(|generator| quoted(generator.name())).join(" or ");
        let Some(found) = text(self.report, node, path, &names) else { return };
        match Generator::ALL.into_iter().find(|generator| generator.name() == found) {
            Some(generator) => self.params.generator = generator,
            None => self.report.add(path, node.shown(), names),
        }
    }

    fn section(&mut self, section: usize, node: &Node, path: &str) {
        let (name, known_fields) = Constants::SECTIONS[section];
        let entries = fields(self.report, node, path, "the fields of this section");
        let series = entries.iter().find(|(key, _)| name == DEMAND && *key == SERIES);
        for (key, node) in &entries {
            if let Some(field) = known_fields.iter().position(|field| field.name == *key) {
                if series.is_some() && REPLACED.contains(key) {
                    let expected =
                        format!("no `{key}` beside a `{SERIES}`, which replaces {REPLACED:?}");
                    self.report.add(child(path, key), node.shown(), expected);
                }
                self.number(Target::Constant(section, field), node, &child(path, key));
            } else if name == DEMAND && *key == SERIES {
                self.series(node, &child(path, key));
            } else {
                let extra = (name == DEMAND).then_some(SERIES);
                let names: Vec<&str> =
                    known_fields.iter().map(|field| field.name).chain(extra).collect();
                unknown(self.report, path, key, &names, section_of(key));
            }
        }
    }

    fn events(&mut self, events: Events, node: &Node, path: &str) {
        let known_fields = events.fields();
        let names: Vec<&str> = known_fields.iter().map(|field| field.name).collect();
        for (index, node) in
            items(self.report, node, path, EVENTS_MAX, events.name()).iter().enumerate()
        {
            let path = item(path, index);
            events.push(&mut self.params);
            let entries = fields(self.report, node, &path, &names.join(", "));
            for (key, node) in &entries {
                match names.iter().position(|name| name == key) {
                    Some(field) => {
                        self.number(events.target(index, field), node, &child(&path, key));
                    }
                    None => unknown(self.report, &path, key, &names, section_of(key)),
                }
            }
            let missing = |field: &&Field| {
                field.default.is_none() && !entries.iter().any(|(key, _)| *key == field.name)
            };
            // What is no object is reported already.
            let is_object = matches!(node, Node::Object(_));
            for field in known_fields.iter().filter(|field| is_object && missing(field)) {
                let expected = format!("{}, or a distribution", number::expectation(field));
                self.report.add(child(&path, field.name), "nothing", expected);
            }
        }
    }

    fn number(&mut self, target: Target, node: &Node, path: &str) {
        let field = target.field();
        match number::read(self.report, field, node, path) {
            Some(Sampled::Fixed(value)) => *self.params.numbers.slot(target) = value,
            Some(Sampled::Drawn(dist)) => {
                *self.params.numbers.slot(target) = middle(field, &dist);
                self.params.draws.push((target, dist));
            }
            None => self.failed.push(target),
        }
    }

    fn series(&mut self, node: &Node, series_path: &str) {
        let before = self.report.len();
        let known = ["csv", "mean_rps", "peak_rps"];
        let what = "`csv`, and `mean_rps` or `peak_rps`";
        let entries = fields(self.report, node, series_path, what);
        let (mut csv, mut scale) = (None, Scale::AsIs);
        for (key, node) in &entries {
            let path = child(series_path, key);
            match *key {
                "csv" => csv = text(self.report, node, &path, CSV_NAME),
                "mean_rps" | "peak_rps" if scale != Scale::AsIs => {
                    self.report.add(path, node.shown(), "either `mean_rps` or `peak_rps`");
                }
                "mean_rps" | "peak_rps" => {
                    scale = self.scale(key, node, path).unwrap_or(Scale::AsIs);
                }
                _ => unknown(self.report, series_path, key, &known, None),
            }
        }
        let csv_path = child(series_path, "csv");
        if matches!(node, Node::Object(_)) && !entries.iter().any(|(key, _)| *key == "csv") {
            self.report.add(&csv_path, "nothing", CSV_NAME);
        }
        let Some(name) = csv else { return };
        // With a mistake in the scale, any scale will do to look for mistakes in the file.
        let scale = if self.report.len() == before { scale } else { Scale::Peak(1.0) };
        match self.files.read(name) {
            Err(why) => {
                let value = format!("{:?}: {why}", shorten(name));
                self.report.add(csv_path, value, "a CSV file that can be read");
            }
            Ok(text) => match series::scaled(name, &text, scale) {
                Ok(rates) => self.params.series_rps = Some(rates),
                Err(errors) => self.report.extend(errors),
            },
        }
    }

    /// The mean or the peak to which a series is scaled.
    fn scale(&mut self, key: &str, node: &Node, path: String) -> Option<Scale> {
        match node {
            Node::Number(x) if *x > 0.0 && *x <= series::RPS_MAX => Some(Scale::of(key, *x)),
            _ => {
                let max = plain(series::RPS_MAX);
                let expected = format!("a number above 0, at most {max} (req/s)");
                self.report.add(path, node.shown(), expected);
                None
            }
        }
    }
}

const CSV_NAME: &str = "the name of a CSV file";

/// A value that stands for a distribution where none is drawn yet.
fn middle(field: &Field, dist: &Dist) -> f64 {
    let middle = match dist {
        Dist::Uniform { low, high } => 0.5 * (low + high),
        Dist::Exponential { mean } | Dist::Normal { mean, .. } => *mean,
        Dist::Choice { values, .. } => values.first().copied().unwrap_or(field.low),
    };
    if field.whole { middle.round_ties_even() } else { middle }
}
