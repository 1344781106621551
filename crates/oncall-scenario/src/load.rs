//! From text to a world: one scenario, or a mixture of several.

use crate::error::{Report, ScenarioErrors, child, item, shorten};
use crate::files::Files;
use crate::node::{Node, plain, quoted};
use crate::number::WEIGHT_MAX;
use crate::object::{fields, items, text, unknown};
use crate::worlds::Reads;
use oncall_core::World;
use oncall_discovery_env::DiscoveryWorld;
use oncall_fleet::FleetWorld;

/// The version of the format that this room reads.
pub(crate) const SCHEMA_VERSION: f64 = 1.0;
/// What every file has, whatever it describes.
pub(crate) const HEADER: [&str; 6] =
    ["$schema", "schema_version", "world", "name", "title", "description"];
/// Makes a file a mixture.
pub(crate) const MIXTURE: &str = "mixture";
/// Most scenarios of a mixture.
pub(crate) const MIXTURE_MAX: usize = 64;
/// Longest name of a scenario.
pub(crate) const NAME_MAX: usize = 64;

/// A scenario, ready to be played; of the fleet, where nothing else is said.
#[derive(Debug, Clone)]
pub struct Scenario<W = FleetWorld> {
    /// Its name, for tables and file names.
    pub name: String,
    /// Its title, for people; the name where the file has none.
    pub title: String,
    /// What happens; empty where the file says nothing.
    pub description: String,
    /// Names and weights of the scenarios that a mixture draws from; empty for a single one.
    pub mixture: Vec<(String, f64)>,
    /// The world.
    pub world: W,
    /// Hash of everything that changes a trajectory; the same as the world's.
    pub hash: u64,
}

/// A scenario of whichever world its file names.
#[derive(Debug, Clone)]
pub enum AnyScenario {
    /// Of the fleet.
    Fleet(Scenario),
    /// Of discovery.
    Discovery(Scenario<DiscoveryWorld>),
}

/// Loads a scenario of any world; `file`, if there is one, stands in front of every problem.
///
/// # Errors
///
/// Every problem of the text and of the files that it names.
pub fn load_any(
    file: Option<&str>,
    text: &str,
    files: &dyn Files,
) -> Result<AnyScenario, ScenarioErrors> {
    let is_discovery = matches!(Node::parse(text), Ok(Node::Object(entries))
        if entries.iter().any(|(key, node)| key == "world"
            && matches!(node, Node::Text(world) if world == DiscoveryWorld::NAME)));
    if is_discovery {
        load_from(file, text, files).map(AnyScenario::Discovery)
    } else {
        load_from(file, text, files).map(AnyScenario::Fleet)
    }
}

/// Loads a scenario of the fleet from its JSON text. `files` supplies the CSV of a series and the scenarios of a
/// mixture.
///
/// # Errors
///
/// Every problem of the text and of the files that it names.
pub fn load(text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    load_from(None, text, files)
}

/// [`load`], with the name of the file in front of every problem.
///
/// # Errors
///
/// Every problem of the text and of the files that it names.
pub fn load_named(file: &str, text: &str, files: &dyn Files) -> Result<Scenario, ScenarioErrors> {
    load_from(Some(file), text, files)
}

fn load_from<W: Reads + World>(
    file: Option<&str>,
    text: &str,
    files: &dyn Files,
) -> Result<Scenario<W>, ScenarioErrors> {
    let mut report = Report::new(file);
    let root = match Node::parse(text) {
        Ok(root) => root,
        Err(why) => {
            report.add("$", format!("text that is not JSON ({why})"), "a JSON object");
            return Err(report.into_errors());
        }
    };
    let entries = fields(&mut report, &root, "$", "a scenario");
    if !matches!(root, Node::Object(_)) {
        return Err(report.into_errors());
    }
    let header = Header::read(&mut report, &entries, W::NAME);
    let (world, mixture) = match entries.iter().find(|(key, _)| *key == MIXTURE) {
        Some((_, node)) => {
            refuse_beside_mixture::<W>(&mut report, &entries);
            mixture::<W>(&mut report, node, files)
        }
        None => (Some(single::<W>(&mut report, &entries, &header.name, files)), Vec::new()),
    };
    match world {
        Some(world) => report.finish(Scenario {
            hash: world.params_hash(),
            name: header.name,
            title: header.title,
            description: header.description,
            mixture,
            world,
        }),
        None => Err(report.into_errors()),
    }
}

/// A file that is not a mixture.
fn single<W: Reads>(
    report: &mut Report,
    entries: &[(&str, &Node)],
    name: &str,
    files: &dyn Files,
) -> W {
    let own = W::known();
    let known: Vec<&str> = HEADER.into_iter().chain(own.iter().copied()).chain([MIXTURE]).collect();
    for (key, _) in entries {
        if !known.contains(key) {
            unknown(report, "$", key, &known, W::section_of(key));
        }
    }
    W::of_one(W::read(report, entries, name, files))
}

/// A mixture has no numbers of its own.
fn refuse_beside_mixture<W: Reads>(report: &mut Report, entries: &[(&str, &Node)]) {
    let known: Vec<&str> = HEADER.into_iter().chain([MIXTURE]).collect();
    for (key, node) in entries {
        if W::known().contains(key) {
            let expected =
                format!("no `{key}` beside a `{MIXTURE}`; it belongs into its scenarios");
            report.add(child("$", key), node.shown(), expected);
        } else if !known.contains(key) {
            unknown(report, "$", key, &known, None);
        }
    }
}

/// Reads the list of a mixture and loads its scenarios. No world where something is wrong with them.
fn mixture<W: Reads + World>(
    report: &mut Report,
    node: &Node,
    files: &dyn Files,
) -> (Option<W>, Vec<(String, f64)>) {
    let before = report.len();
    let path = child("$", MIXTURE);
    let list = items(report, node, &path, MIXTURE_MAX, "scenarios");
    if matches!(node, Node::Array(items) if items.is_empty()) {
        report.add(&path, node.shown(), "at least one scenario");
    }
    let mut variants: Vec<(W::Params, f64)> = Vec::new();
    for (index, node) in list.iter().enumerate() {
        let path = item(&path, index);
        let Some((params, weight)) = variant::<W>(report, node, &path, files) else { continue };
        if let Some((first, _)) = variants.first()
            && let Some((value, expected)) = W::conflict(first, &params)
        {
            report.add(child(&path, "scenario"), value, expected);
        }
        variants.push((params, weight));
    }
    if report.len() > before {
        return (None, Vec::new());
    }
    let named = |(params, weight): &(W::Params, f64)| (W::name_of(params).to_owned(), *weight);
    let names = variants.iter().map(named).collect();
    match W::of_many(variants) {
        Ok(world) => (Some(world), names),
        // Cannot happen: both reasons are checked above.
        Err(why) => {
            report.add(&path, why, "scenarios that go together, with positive weights");
            (None, Vec::new())
        }
    }
}

/// One entry of a mixture.
fn variant<W: Reads + World>(
    report: &mut Report,
    node: &Node,
    path: &str,
    files: &dyn Files,
) -> Option<(W::Params, f64)> {
    let (mut name, mut weight) = (None, Some(1.0));
    let entries = fields(report, node, path, "`scenario` and `weight`");
    for (key, node) in &entries {
        match *key {
            "scenario" => {
                name = text(report, node, &child(path, key), "the name of a scenario");
            }
            "weight" => {
                weight = match node {
                    Node::Number(x) if *x > 0.0 && *x <= WEIGHT_MAX => Some(*x),
                    _ => {
                        let expected = format!("a number above 0, at most {}", plain(WEIGHT_MAX));
                        report.add(child(path, key), node.shown(), expected);
                        None
                    }
                }
            }
            _ => unknown(report, path, key, &["scenario", "weight"], None),
        }
    }
    let path = child(path, "scenario");
    if matches!(node, Node::Object(_)) && !entries.iter().any(|(key, _)| *key == "scenario") {
        report.add(&path, "nothing", "the name of a scenario");
    }
    let name = name?;
    let scenario = match files.read(name) {
        Err(why) => {
            report.add(&path, format!("{:?}: {why}", shorten(name)), "a scenario that can be read");
            return None;
        }
        Ok(text) => load_part::<W>(report, &path, name, &text, files)?,
    };
    let params = scenario.world.first()?.clone();
    weight.map(|weight| (params, weight))
}

/// Loads a scenario of a mixture. A mixture is refused before anything of it is read, so that files
/// that name one another cannot go round in circles.
fn load_part<W: Reads + World>(
    report: &mut Report,
    path: &str,
    name: &str,
    text: &str,
    files: &dyn Files,
) -> Option<Scenario<W>> {
    let is_mixture = matches!(Node::parse(text), Ok(Node::Object(entries))
        if entries.iter().any(|(key, _)| key == MIXTURE));
    if is_mixture {
        let value = format!("{:?}, which is a mixture itself", shorten(name));
        report.add(path, value, "a single scenario");
        return None;
    }
    match load_from(Some(name), text, files) {
        Ok(scenario) => Some(scenario),
        Err(errors) => {
            report.extend(errors);
            None
        }
    }
}

/// What every file has.
struct Header {
    name: String,
    title: String,
    description: String,
}

impl Header {
    fn read(report: &mut Report, entries: &[(&str, &Node)], world_name: &str) -> Self {
        let field = |key: &str| entries.iter().find(|(known, _)| *known == key).map(|(_, n)| *n);
        let version = field("schema_version");
        if version != Some(&Node::Number(SCHEMA_VERSION)) {
            let expected = format!("the version of the format, {}", plain(SCHEMA_VERSION));
            report.add("$.schema_version", shown(version), expected);
        }
        let world = field("world");
        if !matches!(world, Some(Node::Text(text)) if text == world_name) {
            report.add("$.world", shown(world), quoted(world_name));
        }
        let name_node = field("name");
        let name = match name_node {
            Some(Node::Text(text)) if is_name(text) => text.clone(),
            _ => {
                let expected = format!(
                    "a name of 1 to {NAME_MAX} letters, digits, `-`, `_` or `.`, the first a letter or a digit"
                );
                report.add("$.name", shown(name_node), expected);
                String::new()
            }
        };
        let mut sentence = |key: &str| {
            let found = field(key).and_then(|node| text(report, node, &child("$", key), "a text"));
            found.map(str::to_owned)
        };
        sentence("$schema");
        let title = sentence("title").unwrap_or_else(|| name.clone());
        Self { title, description: sentence("description").unwrap_or_default(), name }
    }
}

fn shown(node: Option<&Node>) -> String {
    node.map_or_else(|| "nothing".to_owned(), Node::shown)
}

fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    text.len() <= NAME_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(fits)
}
