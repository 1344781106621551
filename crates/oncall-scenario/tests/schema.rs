//! The committed JSON Schema is the one that the field tables make.

use oncall_discovery_env::params::{KEY, Kind, Section};
use oncall_scenario::{discovery_schema_json, schema_json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schema/");

/// `UPDATE_SCHEMA=1 cargo test -p oncall-scenario --test schema` writes them.
#[test]
fn the_committed_schemas_are_fresh() {
    for (world, schema) in [("fleet", schema_json()), ("discovery", discovery_schema_json())] {
        let path = format!("{FOLDER}{world}.schema.json");
        if std::env::var_os("UPDATE_SCHEMA").is_some() {
            std::fs::write(&path, &schema).expect("the schema can be written");
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == schema,
            "the schema of {world} is stale; set UPDATE_SCHEMA=1 and run this test"
        );
    }
}

#[test]
fn the_schema_of_discovery_names_every_field() {
    let schema: serde_json::Value = serde_json::from_str(&discovery_schema_json()).expect("JSON");
    let sections = Section::ALL
        .iter()
        .map(|section| (section.name(), section.fields(), &schema["properties"][section.name()]));
    let faults = Kind::ALL
        .iter()
        .map(|kind| (kind.name(), kind.fields(), &schema["properties"][kind.name()]["items"]));
    for (list, fields, found) in sections.chain(faults) {
        assert_eq!(found["additionalProperties"], false, "{list}");
        assert!(found["required"].is_null(), "{list}: everything has a default");
        for field in fields {
            let found = &found["properties"][field.name];
            assert_eq!(found["anyOf"][0]["minimum"].as_f64(), Some(field.low), "{}", field.name);
            assert_eq!(found["anyOf"][0]["maximum"].as_f64(), Some(field.high), "{}", field.name);
            assert_eq!(found["default"].as_f64(), field.default, "{}", field.name);
            assert!(found["description"].as_str().is_some_and(|doc| doc.starts_with(field.doc)));
            // A key names draws, so it is not drawn.
            assert_eq!(found["anyOf"].as_array().map(Vec::len) == Some(1), field.name == KEY);
        }
    }
}

#[test]
fn the_schema_names_every_field() {
    let schema: serde_json::Value = serde_json::from_str(&schema_json()).expect("JSON");
    for (section, fields) in oncall_fleet::params::Constants::SECTIONS {
        let section_schema = &schema["properties"][section];
        assert_eq!(section_schema["additionalProperties"], false, "{section}");
        for field in *fields {
            let found = &section_schema["properties"][field.name];
            assert_eq!(found["anyOf"][0]["minimum"].as_f64(), Some(field.low), "{}", field.name);
            assert_eq!(found["anyOf"][0]["maximum"].as_f64(), Some(field.high), "{}", field.name);
            assert_eq!(found["default"].as_f64(), field.default, "{}", field.name);
            assert!(found["description"].as_str().is_some_and(|doc| doc.starts_with(field.doc)));
        }
    }
    assert_eq!(
        schema["properties"]["surges"]["items"]["required"],
        serde_json::json!(["start_min", "size"])
    );
}
