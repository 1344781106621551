//! The committed JSON Schema is the one that the field tables make.

use oncall_scenario::schema_json;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schema/fleet.schema.json");

/// `UPDATE_SCHEMA=1 cargo test -p oncall-scenario --test schema` writes it.
#[test]
fn the_committed_schema_is_fresh() {
    if std::env::var_os("UPDATE_SCHEMA").is_some() {
        std::fs::write(PATH, schema_json()).expect("the schema can be written");
    }
    let committed = std::fs::read_to_string(PATH).unwrap_or_default();
    assert!(
        committed == schema_json(),
        "the schema is stale; set UPDATE_SCHEMA=1 and run this test"
    );
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
