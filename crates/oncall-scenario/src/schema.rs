//! The JSON Schema of a scenario file, made from the field tables.

use crate::discovery::SCALE;
use crate::fleet::{DEMAND, Events, SERIES};
use crate::load::{MIXTURE, MIXTURE_MAX, NAME_MAX, SCHEMA_VERSION};
use crate::node::{Node, plain};
use crate::number::{KINDS, WEIGHT_MAX, WEIGHTS, is_switch};
use crate::series::RPS_MAX;
use oncall_core::{Field, Generator};
use oncall_discovery_env::Scale;
use oncall_discovery_env::params::{FAULTS_MAX, KEY, Kind, Section};
use oncall_fleet::params::{Constants, EVENTS_MAX};

/// Where the shape of a distribution lies among the definitions.
const DISTRIBUTION: &str = "distribution";
/// Width of the text.
const WIDTH: usize = 120;

/// JSON Schema (draft 2020-12) of a scenario of the fleet: names, ranges, units, defaults and
/// meanings. What it cannot say, rules between numbers among it, only [`crate::load`] checks.
pub fn schema_json() -> String {
    let mut text = schema().pretty(WIDTH);
    text.push('\n');
    text
}

fn object<const N: usize>(entries: [(&str, Node); N]) -> Node {
    Node::Object(entries.map(|(key, node)| (key.to_owned(), node)).into())
}

fn text(text: &str) -> Node {
    Node::Text(text.to_owned())
}

fn texts<'a>(list: impl IntoIterator<Item = &'a str>) -> Node {
    Node::Array(list.into_iter().map(text).collect())
}

fn count(n: usize) -> Node {
    Node::Number(n as f64)
}

/// The same of a scenario of discovery.
pub fn discovery_schema_json() -> String {
    let mut text = discovery_schema().pretty(WIDTH);
    text.push('\n');
    text
}

fn header(world: &str) -> [(String, Node); 6] {
    [
        ("$schema".to_owned(), typed("string", "Where this schema lies.")),
        ("schema_version".to_owned(), object([("const", Node::Number(SCHEMA_VERSION))])),
        ("world".to_owned(), object([("const", text(world))])),
        ("name".to_owned(), name()),
        ("title".to_owned(), typed("string", "For people.")),
        ("description".to_owned(), typed("string", "What happens.")),
    ]
}

/// The schema of a file: its own fields, or a mixture.
fn file(world: &str, title: &str, about: &str, own: Vec<(String, Node)>) -> Node {
    let own_names: Vec<String> = own.iter().map(|(key, _)| key.clone()).collect();
    let mixture = [(MIXTURE.to_owned(), mixture())];
    let none_of_them =
        Node::Object(own_names.into_iter().map(|key| (key, Node::Bool(false))).collect());
    let properties = header(world).into_iter().chain(own).chain(mixture).collect();
    object([
        ("$schema", text("https://json-schema.org/draft/2020-12/schema")),
        ("title", text(title)),
        ("description", text(about)),
        ("type", text("object")),
        ("required", texts(["schema_version", "world", "name"])),
        ("additionalProperties", Node::Bool(false)),
        ("properties", Node::Object(properties)),
        // A mixture has no numbers of its own.
        ("dependentSchemas", object([(MIXTURE, object([("properties", none_of_them)]))])),
        ("$defs", object([(DISTRIBUTION, distribution())])),
    ])
}

fn discovery_schema() -> Node {
    let scale = object([
        ("description", text("Size of the fleet; whoever loads the file may choose another.")),
        ("enum", texts(Scale::ALL.map(Scale::name))),
        ("default", text(Scale::Small.name())),
    ]);
    let sections = Section::ALL
        .iter()
        .map(|section| (section.name().to_owned(), record(section.fields(), None)));
    let faults = Kind::ALL.iter().map(|kind| {
        let list = object([
            ("type", text("array")),
            ("maxItems", count(FAULTS_MAX)),
            ("items", record(kind.fields(), None)),
        ]);
        (kind.name().to_owned(), list)
    });
    let own = [(SCALE.to_owned(), scale)].into_iter().chain(sections).chain(faults).collect();
    file("discovery", "Scenario of discovery", ABOUT_DISCOVERY, own)
}

const ABOUT_DISCOVERY: &str = "Made from the field tables; do not edit. Sizes are shares of the fleet, so one file \
    is played at every scale. Any number but a key may be a distribution, drawn once an episode: uniform between two \
    ends, exponential with a mean, normal with a mean and a standard deviation (both cut at the ends of the field's \
    range), or a choice of values, with weights if they differ. Drawn whole numbers are rounded half to even. Each \
    draw has its own stream, named by kind, key and field, so that a fault more or less shifts no other.";

fn schema() -> Node {
    let generators = texts(Generator::ALL.map(Generator::name));
    let flags = [
        (
            "generator".to_owned(),
            object([
                (
                    "description",
                    text("Generator of the episodes; mulberry32 takes seeds of 32 bits."),
                ),
                ("enum", generators),
                ("default", text(Generator::default().name())),
            ]),
        ),
        (
            "hide_build_truth".to_owned(),
            object([
                (
                    "description",
                    text(
                        "The dashboard shows the share of new builds, good or bad, as `bad_build_share`.",
                    ),
                ),
                ("type", text("boolean")),
                ("default", Node::Bool(false)),
            ]),
        ),
    ];
    let sections = Constants::SECTIONS.iter().map(|(section, fields)| {
        let extra = (*section == DEMAND).then(|| (SERIES.to_owned(), series()));
        ((*section).to_owned(), record(fields, extra))
    });
    let events = Events::ALL.map(|events| {
        let list = object([
            ("type", text("array")),
            ("maxItems", count(EVENTS_MAX)),
            ("items", record(events.fields(), None)),
        ]);
        (events.name().to_owned(), list)
    });
    let own: Vec<(String, Node)> = flags.into_iter().chain(sections).chain(events).collect();
    file("fleet", "Scenario of the fleet", ABOUT, own)
}

const ABOUT: &str = "Made from the field tables; do not edit. Any number may be a distribution, drawn once an episode \
    in the order of the file: uniform between two ends, exponential with a mean, normal with a mean and a standard \
    deviation (both cut at the ends of the field's range), or a choice of values, with weights if they differ. \
    Drawn whole numbers are rounded half to even.";

fn typed(kind: &str, doc: &str) -> Node {
    object([("description", text(doc)), ("type", text(kind))])
}

fn name() -> Node {
    object([
        ("description", text("For tables and file names.")),
        ("type", text("string")),
        ("pattern", text("^[A-Za-z0-9][A-Za-z0-9._-]*$")),
        ("maxLength", count(NAME_MAX)),
    ])
}

fn mixture() -> Node {
    let weight = object([
        ("description", text("How often it is drawn, beside the others.")),
        ("type", text("number")),
        ("exclusiveMinimum", Node::Number(0.0)),
        ("maximum", Node::Number(WEIGHT_MAX)),
        ("default", Node::Number(1.0)),
    ]);
    let scenario = typed("string", "Name of a shipped scenario, or a file.");
    object([
        ("description", text("Each episode plays one of these scenarios.")),
        ("type", text("array")),
        ("minItems", count(1)),
        ("maxItems", count(MIXTURE_MAX)),
        (
            "items",
            object([
                ("type", text("object")),
                ("required", texts(["scenario"])),
                ("additionalProperties", Node::Bool(false)),
                ("properties", object([("scenario", scenario), ("weight", weight)])),
            ]),
        ),
    ])
}

fn series() -> Node {
    let rps = |doc: &str| {
        object([
            ("description", text(doc)),
            ("type", text("number")),
            ("exclusiveMinimum", Node::Number(0.0)),
            ("maximum", Node::Number(RPS_MAX)),
        ])
    };
    let properties = object([
        (
            "csv",
            typed(
                "string",
                "A file with `timestamp,count` at a regular spacing, or `requests_per_s` by minute.",
            ),
        ),
        ("mean_rps", rps("Scales the whole series to this mean. (req/s)")),
        ("peak_rps", rps("Scales the whole series to this peak. (req/s)")),
    ]);
    object([
        (
            "description",
            text(
                "Mean demand by minute, in the place of `base_rps` and the daily curve; its last minute holds.",
            ),
        ),
        ("type", text("object")),
        ("required", texts(["csv"])),
        ("additionalProperties", Node::Bool(false)),
        ("properties", properties),
        ("not", object([("required", texts(["mean_rps", "peak_rps"]))])),
    ])
}

/// Whether a file must say it; the key of a fault is its place where the file says nothing.
fn is_required(field: &Field) -> bool {
    field.default.is_none() && field.name != KEY
}

fn record(fields: &[Field], extra: Option<(String, Node)>) -> Node {
    let required: Vec<&str> =
        fields.iter().filter(|field| is_required(field)).map(|field| field.name).collect();
    let properties = fields.iter().map(|field| (field.name.to_owned(), number(field)));
    let properties = Node::Object(properties.chain(extra).collect());
    let mut entries = vec![("type".to_owned(), text("object"))];
    if !required.is_empty() {
        entries.push(("required".to_owned(), texts(required)));
    }
    entries.push(("additionalProperties".to_owned(), Node::Bool(false)));
    entries.push(("properties".to_owned(), properties));
    Node::Object(entries)
}

fn number(field: &Field) -> Node {
    let unit = if field.unit.is_empty() { String::new() } else { format!(", {}", field.unit) };
    let range = format!("{}..{}{unit}", plain(field.low), plain(field.high));
    let doc = format!("{} ({range})", field.doc);
    let mut entries = vec![("description".to_owned(), text(&doc))];
    if let Some(default) = field.default {
        entries.push(("default".to_owned(), Node::Number(default)));
    }
    let fixed = value(field, field.whole);
    let mut kinds = vec![fixed.clone()];
    if is_switch(field) {
        kinds.push(object([("type", text("boolean"))]));
    }
    let one =
        if kinds.len() == 1 { fixed } else { object([("anyOf", Node::Array(kinds.clone()))]) };
    if field.name != KEY {
        kinds.push(drawn(field, one));
    }
    entries.push(("anyOf".to_owned(), Node::Array(kinds)));
    Node::Object(entries)
}

/// One number in the range of a field.
fn value(field: &Field, whole: bool) -> Node {
    object([
        ("type", text(if whole { "integer" } else { "number" })),
        ("minimum", Node::Number(field.low)),
        ("maximum", Node::Number(field.high)),
    ])
}

/// A distribution in the range of a field; `one` is the schema of a value of a choice.
fn drawn(field: &Field, one: Node) -> Node {
    let range =
        object([("minimum", Node::Number(field.low)), ("maximum", Node::Number(field.high))]);
    let each = |schema: Node| object([("items", schema)]);
    let ranges = object([
        ("uniform", each(range.clone())),
        ("exponential", range.clone()),
        ("normal", object([("prefixItems", Node::Array(vec![range]))])),
        ("choice", each(one)),
    ]);
    object([("$ref", text(&format!("#/$defs/{DISTRIBUTION}"))), ("properties", ranges)])
}

/// The shape of a distribution, whatever the range.
fn distribution() -> Node {
    let number = || object([("type", text("number"))]);
    let above_zero = || object([("type", text("number")), ("exclusiveMinimum", Node::Number(0.0))]);
    let pair = |doc: &str, second: Node| {
        object([
            ("description", text(doc)),
            ("type", text("array")),
            ("prefixItems", Node::Array(vec![number(), second])),
            ("minItems", count(2)),
            ("maxItems", count(2)),
        ])
    };
    let list = |doc: &str, items: Option<Node>| {
        let mut entries = vec![
            ("description".to_owned(), text(doc)),
            ("type".to_owned(), text("array")),
            ("minItems".to_owned(), count(1)),
        ];
        entries.extend(items.map(|items| ("items".to_owned(), items)));
        Node::Object(entries)
    };
    let weight = object([
        ("type", text("number")),
        ("minimum", Node::Number(0.0)),
        ("maximum", Node::Number(WEIGHT_MAX)),
    ]);
    let mean = object([
        ("description", text("Mean.")),
        ("type", text("number")),
        ("exclusiveMinimum", Node::Number(0.0)),
    ]);
    let kinds = KINDS.map(|kind| object([("required", texts([kind]))]));
    object([
        ("type", text("object")),
        ("oneOf", Node::Array(kinds.into())),
        ("dependentRequired", object([(WEIGHTS, texts(["choice"]))])),
        ("additionalProperties", Node::Bool(false)),
        (
            "properties",
            object([
                ("uniform", pair("[low, high]", number())),
                ("exponential", mean),
                ("normal", pair("[mean, standard deviation]", above_zero())),
                ("choice", list("Values.", None)),
                (WEIGHTS, list("One for each value of the choice.", Some(weight))),
            ]),
        ),
    ])
}
