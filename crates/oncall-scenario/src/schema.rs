//! The JSON Schema of a scenario file, made from the field tables.

use crate::fleet::{DEMAND, Events, SERIES};
use crate::load::{MIXTURE, MIXTURE_MAX, NAME_MAX, SCHEMA_VERSION, WORLD};
use crate::node::{Node, plain};
use crate::number::{KINDS, WEIGHT_MAX, WEIGHTS, is_switch};
use crate::series::RPS_MAX;
use oncall_core::Generator;
use oncall_fleet::params::{Constants, EVENTS_MAX, Field};

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

fn schema() -> Node {
    let header = [
        ("$schema".to_owned(), typed("string", "Where this schema lies.")),
        ("schema_version".to_owned(), object([("const", Node::Number(SCHEMA_VERSION))])),
        ("world".to_owned(), object([("const", text(WORLD))])),
        ("name".to_owned(), name()),
        ("title".to_owned(), typed("string", "For people.")),
        ("description".to_owned(), typed("string", "What happens.")),
    ];
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
    let own_names: Vec<String> = own.iter().map(|(key, _)| key.clone()).collect();
    let mixture = [(MIXTURE.to_owned(), mixture())];
    let none_of_them =
        Node::Object(own_names.into_iter().map(|key| (key, Node::Bool(false))).collect());
    let properties = header.into_iter().chain(own).chain(mixture).collect();
    object([
        ("$schema", text("https://json-schema.org/draft/2020-12/schema")),
        ("title", text("Scenario of the fleet")),
        ("description", text(ABOUT)),
        ("type", text("object")),
        ("required", texts(["schema_version", "world", "name"])),
        ("additionalProperties", Node::Bool(false)),
        ("properties", Node::Object(properties)),
        // A mixture has no numbers of its own.
        ("dependentSchemas", object([(MIXTURE, object([("properties", none_of_them)]))])),
        ("$defs", object([(DISTRIBUTION, distribution())])),
    ])
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

fn record(fields: &[Field], extra: Option<(String, Node)>) -> Node {
    let required: Vec<&str> =
        fields.iter().filter(|field| field.default.is_none()).map(|field| field.name).collect();
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
    kinds.push(drawn(field, one));
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
