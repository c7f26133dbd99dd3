//! The file's JSON Schema, for editors.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use tidegate::{Algorithm, MAX_LOG_LIMIT};

use super::leaf::{Leaf, Name};
use super::limits::shape;
use super::raw::{RawConfig, RawFigures, RawLimit};
use super::reader::Field;

/// The JSON Schema (draft 2020-12) of the configuration file, as pretty JSON.
///
/// What it accepts may still be refused for reasons a schema cannot say, such as two limits of one name.
pub fn json_schema() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(on_one_line));
    let schema = settings.into_generator().into_root_schema_for::<RawConfig>();
    format!("{:#}\n", schema.to_value())
}

/// Descriptions come from comments, broken where the source's lines end.
fn on_one_line(schema: &mut Schema) {
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = text.replace('\n', " ");
    }
}

impl<T: Leaf> JsonSchema for Field<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::EXPECTED.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

impl JsonSchema for RawLimit {
    fn schema_name() -> Cow<'static, str> {
        "Limit".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let figures = RawFigures::json_schema(generator);
        let figures = figures.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let alternatives: Vec<Value> = Algorithm::ALL.iter().map(|a| alternative(*a, &figures)).collect();
        json_schema!({
            "description": "One limit: an algorithm with its figures.",
            "type": "object",
            "required": ["algorithm"],
            "oneOf": alternatives,
        })
    }
}

/// A limit of one algorithm: its own figures and no others.
fn alternative(algorithm: Algorithm, figures: &Map<String, Value>) -> Value {
    let shape = shape(algorithm);
    let mut properties = Map::new();
    let mut name = Name::schema();
    name.insert("description".into(), "The limit's name; the algorithm's unless given.".into());
    properties.insert("name".into(), name.to_value());
    properties.insert("algorithm".into(), json!({ "const": algorithm.name() }));
    for figure in shape.figures() {
        properties.insert(figure.into(), figures.get(figure).cloned().unwrap_or_default());
    }
    if algorithm == Algorithm::SlidingWindowLog {
        for bounded in [shape.size, "debt"] {
            properties[bounded]["maximum"] = MAX_LOG_LIMIT.into();
        }
    }
    json!({
        "title": algorithm.name(),
        "properties": properties,
        "required": ["algorithm", shape.size, shape.pace],
        "additionalProperties": false,
    })
}
