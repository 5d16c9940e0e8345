//! The JSON Schemas of annotations and measurements, from the types by which they are read.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

const COMPONENTS: &str = "#/components/schemas/";
const DEFINITIONS: &str = "#/$defs/";
const DRAFT: &str = "https://json-schema.org/draft/2020-12/schema";

/// The schema of `T`, whole: whatever it refers to is in it.
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

/// Turns references into a document of the interface into references into this schema.
fn point_inside(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get_mut("$ref")
                && let Some(name) = reference.strip_prefix(COMPONENTS)
            {
                *reference = format!("{DEFINITIONS}{name}");
            }
            // A hint for readers of the interface's document; its addresses lead there.
            members.shift_remove("discriminator");
            members.values_mut().for_each(point_inside);
        }
        Value::Array(items) => items.iter_mut().for_each(point_inside),
        _ => {}
    }
}
