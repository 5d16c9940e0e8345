//! The JSON Schemas of annotations and measurements, generated from the types that read them.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The complete schema of `T`: whatever it refers to is included.
pub fn of<T: ToSchema>() -> Result<Value, serde_json::Error> {
    let mut named: Vec<(String, RefOr<Schema>)> = Vec::new();
    T::schemas(&mut named);
    let mut definitions = Map::new();
    for (name, schema) in named {
        definitions.insert(name, serde_json::to_value(schema)?);
    }
    let mut whole = json!({"$schema": DRAFT, "title": T::name()});
    if let (Some(members), Value::Object(own)) = (whole.as_object_mut(), serde_json::to_value(T::schema())?) {
        members.extend(own);
        members.insert("$defs".to_owned(), Value::Object(definitions));
    }
    point_inside(&mut whole);
    Ok(whole)
}

/// Turns references into the OpenAPI document into references within this schema.
fn point_inside(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS)
            {
                *reference = format!("{DEFINITIONS}{name}");
            }
            // A hint for readers of the OpenAPI document; its addresses point there.
            members.shift_remove("discriminator");
            members.values_mut().for_each(point_inside);
        }
        Value::Array(items) => items.iter_mut().for_each(point_inside),
        _ => {}
    }
}
