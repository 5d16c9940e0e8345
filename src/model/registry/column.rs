//! Derives the stored column of one property from its JSON Schema, and marks columns of ids and of JSON text
//! so that they are known as such. Knows nothing of the other properties of a record.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::datatypes::{DataType as ArrowType, Field, Fields, TimeUnit};
use serde_json::Value;

const EXTENSION_NAME: &str = "ARROW:extension:name";
const EXTENSION_METADATA: &str = "ARROW:extension:metadata";
const JSON_EXTENSION: &str = "arrow.json";
const UUID_EXTENSION: &str = "arrow.uuid";

/// Objects nested deeper than this are kept as JSON text.
pub(super) const DEEPEST_STRUCT: usize = 6;

/// A column of JSON text. Readers that know the extension type show it as JSON; so do our own JSON outputs.
#[must_use]
pub fn json_text(name: &str) -> Field {
    let metadata = HashMap::from([
        (EXTENSION_NAME.to_owned(), JSON_EXTENSION.to_owned()),
        (EXTENSION_METADATA.to_owned(), String::new()),
    ]);
    Field::new(name, ArrowType::Utf8, true).with_metadata(metadata)
}

/// Whether a column holds JSON text.
#[must_use]
pub fn is_json_text(field: &Field) -> bool {
    is_marked(field, JSON_EXTENSION)
}

/// A column of ids. Readers that know the extension type show them as such; so do our own outputs of text.
#[must_use]
pub fn uuid_field(name: &str) -> Field {
    let metadata = HashMap::from([(EXTENSION_NAME.to_owned(), UUID_EXTENSION.to_owned())]);
    Field::new(name, ArrowType::FixedSizeBinary(16), false).with_metadata(metadata)
}

/// Whether a column holds ids.
#[must_use]
pub fn is_uuid(field: &Field) -> bool {
    *field.data_type() == ArrowType::FixedSizeBinary(16) && is_marked(field, UUID_EXTENSION)
}

fn is_marked(field: &Field, extension: &str) -> bool {
    let name = field.metadata().get(EXTENSION_NAME);
    name.is_some_and(|name| name == extension)
}

/// The type of text columns with few distinct values.
#[must_use]
pub fn dictionary_text() -> ArrowType {
    ArrowType::Dictionary(Box::new(ArrowType::Int32), Box::new(ArrowType::Utf8))
}

/// The type of every time: microseconds in UTC.
#[must_use]
pub fn timestamp() -> ArrowType {
    ArrowType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
}

/// The stored column of one property. Always nullable: a required property may have been optional when older
/// records were written.
#[must_use]
pub(super) fn column(name: &str, property: &Value) -> Field {
    column_at(name, property, 0)
}

fn column_at(name: &str, property: &Value, depth: usize) -> Field {
    if is_flagged(property, "x-version") {
        return Field::new(name, dictionary_text(), true);
    }
    if is_flagged(property, "x-yes-no") {
        return Field::new(name, ArrowType::Boolean, true);
    }
    let structs = is_flagged(property, "x-structs");
    let Some(kind) = kind_of(property).or_else(|| object_choice(property).filter(|_| structs)) else {
        return json_text(name);
    };
    let is_dictionary = is_flagged(property, "x-dictionary");
    let format = kind.schema.get("format").and_then(Value::as_str);
    let data_type = match kind.name {
        "string" if format == Some("date-time") => timestamp(),
        "string" if is_dictionary => dictionary_text(),
        "string" => ArrowType::Utf8,
        "number" => ArrowType::Float64,
        "integer" => ArrowType::Int64,
        "boolean" => ArrowType::Boolean,
        "array" => {
            let items = kind.schema.get("items");
            let item = items.and_then(scalar).or_else(|| {
                items
                    .filter(|_| structs)
                    .and_then(|items| structure(items, depth))
            });
            match item {
                Some(item) => ArrowType::List(Arc::new(Field::new("item", item, true))),
                None => return json_text(name),
            }
        }
        "object" if depth < DEEPEST_STRUCT => {
            match kind.schema.get("properties").and_then(Value::as_object) {
                Some(members) if !members.is_empty() => ArrowType::Struct(
                    members
                        .iter()
                        .map(|(name, property)| Arc::new(column_at(name, property, depth + 1)))
                        .collect::<Fields>(),
                ),
                _ => return json_text(name),
            }
        }
        _ => return json_text(name),
    };
    Field::new(name, data_type, true)
}

/// The type of a list's items, if they are plain values.
fn scalar(items: &Value) -> Option<ArrowType> {
    let item = column_at("item", items, DEEPEST_STRUCT);
    let is_plain =
        !is_json_text(&item) && !matches!(item.data_type(), ArrowType::List(_) | ArrowType::Struct(_));
    is_plain.then(|| item.data_type().clone())
}

/// The type of a list's items, if they can be objects with known members.
fn structure(items: &Value, depth: usize) -> Option<ArrowType> {
    let item = column_at("item", object_choice(items)?.schema, depth + 1);
    matches!(item.data_type(), ArrowType::Struct(_)).then(|| item.data_type().clone())
}

/// The object that a schema admits, whatever else it admits.
pub(super) fn object_choice(property: &Value) -> Option<Kind<'_>> {
    let is_object = |schema: &&Value| kind_of(schema).is_some_and(|kind| kind.name == "object");
    let choices = ["anyOf", "oneOf"]
        .into_iter()
        .filter_map(|keyword| property.get(keyword)?.as_array());
    let schema = std::iter::once(property)
        .chain(choices.flatten())
        .find(is_object)?;
    kind_of(schema)
}

/// A schema that admits one JSON type, apart from null.
pub(super) struct Kind<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
}

pub(super) fn kind_of(property: &Value) -> Option<Kind<'_>> {
    if let Some(kind) = property.get("type") {
        let names: Vec<&str> = match kind {
            Value::String(name) => vec![name],
            Value::Array(names) => names
                .iter()
                .filter_map(Value::as_str)
                .filter(|name| *name != "null")
                .collect(),
            _ => vec![],
        };
        return match names.as_slice() {
            &[name] => Some(Kind {
                name,
                schema: property,
            }),
            _ => None,
        };
    }
    for keyword in ["anyOf", "oneOf"] {
        if let Some(choices) = property.get(keyword).and_then(Value::as_array) {
            let mut others = choices
                .iter()
                .filter(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
            return match (others.next(), others.next()) {
                (Some(only), None) => kind_of(only),
                _ => None,
            };
        }
    }
    let choices = property.get("enum").and_then(Value::as_array)?;
    let is_text = choices.iter().any(Value::is_string)
        && choices
            .iter()
            .all(|choice| choice.is_string() || choice.is_null());
    is_text.then_some(Kind {
        name: "string",
        schema: property,
    })
}

/// Whether a property carries an annotation of the product.
pub(super) fn is_flagged(property: &Value, annotation: &str) -> bool {
    property.get(annotation) == Some(&Value::Bool(true))
}
