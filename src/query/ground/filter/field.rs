//! Where a named field is stored and what it holds, as answers show it: a condition that speaks of what is
//! stored would find nothing of what its reader sees. Knows layouts; knows no condition.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType as ArrowType, Field, Fields};
use datafusion::common::{Column, ScalarValue};
use datafusion::functions::core::expr_ext::FieldAccessor;
use datafusion::logical_expr::{Expr, col, lit};
use serde_json::{Map, Value};

use crate::model::columns::{END, EXTRAS, ID, SOURCE, SOURCE_CLASS, START};
use crate::model::registry::{DataType, JsonList, ReadFrom, is_json_text, members_of};
use crate::query::ground::json_items::{json_items, list_of_texts};
use crate::query::ground::version_numbers::{list_of_numbers, version_numbers};

use super::errors::FilterError;

/// Columns that the store keeps for its own use: the source in short form. No record has fields of these
/// names.
const INTERNAL_COLUMNS: [&str; 2] = [SOURCE, SOURCE_CLASS];

/// A field of a record: the expression over stored columns that yields it, and what it holds.
#[derive(Clone, Debug)]
pub struct StoredField {
    pub expression: Expr,
    /// Of a list that is kept as JSON text and holds structures alone: a list of these, though the expression
    /// has no members of them.
    pub holds: ArrowType,
    /// The text is JSON of any shape.
    pub is_json: bool,
}

/// Finds the field called `name` among what records of `data_type` show and store. Dots reach into structs,
/// except where they are part of a field's own name.
#[must_use]
pub fn field_of(name: &str, data_type: &DataType) -> Option<StoredField> {
    prefixes(name).find_map(|(first, rest)| {
        let field = within(top_level(first, data_type)?, rest)?;
        Some(if is_version(first, rest, data_type) {
            StoredField {
                expression: version_numbers(field.expression),
                holds: list_of_numbers(),
                is_json: false,
            }
        } else if field.is_json {
            let schema = data_type.schema.value();
            let declared = schema.get("properties").and_then(Value::as_object);
            let property = declared.and_then(|declared| property_of(declared, first, rest));
            with_items(field, property)
        } else {
            field
        })
    })
}

/// Whether the member called `member` of a field is a version, which is shown as the list of its numbers.
fn is_version(field: &str, member: Option<&str>, data_type: &DataType) -> bool {
    let mut shown = data_type.layout.read.iter();
    shown.any(|column| match (&column.from, member) {
        (ReadFrom::Versions { members, .. }, Some(member)) => {
            column.name == field && members.iter().any(|version| version == member)
        }
        _ => false,
    })
}

/// Refuses fields that only the owner may see, for questions of somebody else.
pub fn refuse_private<'a, 'b, Types: Iterator<Item = &'a DataType>>(
    fields: impl IntoIterator<Item = &'b String>,
    types: impl Fn() -> Types,
) -> Result<(), FilterError> {
    for field in fields {
        if let Some(data_type) = types().find(|data_type| data_type.layout.is_private(field)) {
            return Err(FilterError::Private {
                field: field.clone(),
                data_type: data_type.id.as_str().to_owned(),
            });
        }
    }
    Ok(())
}

/// The error for a field that none of several types has, which are read together: it names the type that was
/// asked for, and the fields that there are.
#[must_use]
pub fn unknown_field(field: &str, types: &[&DataType]) -> FilterError {
    let asked: Vec<&str> = match types {
        [data_type] => vec![data_type.id.as_str()],
        types => distinct(types.iter().map(|data_type| data_type.id.base())),
    };
    let columns = types.iter().flat_map(|data_type| &data_type.layout.read);
    FilterError::UnknownField {
        field: field.to_owned(),
        data_type: asked.join(", "),
        known: distinct(columns.map(|column| column.name.as_str())).join(", "),
    }
}

/// Each of the words where it is first.
fn distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = HashSet::new();
    words.filter(|word| seen.insert(*word)).collect()
}

/// The member called `rest` of a struct, or the field itself without `rest`.
fn within(field: StoredField, rest: Option<&str>) -> Option<StoredField> {
    let Some(rest) = rest else { return Some(field) };
    let ArrowType::Struct(members) = &field.holds else {
        return None;
    };
    prefixes(rest).find_map(|(first, rest)| {
        let member = members.iter().find(|member| member.name() == first)?;
        let found = StoredField {
            expression: field.expression.clone().field(first),
            holds: member.data_type().clone(),
            is_json: is_json_text(member),
        };
        within(found, rest)
    })
}

/// The schema of a field, or of the member called `rest` in it.
fn property_of<'a>(declared: &'a Map<String, Value>, first: &str, rest: Option<&str>) -> Option<&'a Value> {
    let property = declared.get(first)?;
    let Some(rest) = rest else { return Some(property) };
    let members = members_of(property)?;
    prefixes(rest).find_map(|(first, rest)| property_of(members, first, rest))
}

/// A field of JSON text with the items of its list, if its schema says that it holds one.
fn with_items(field: StoredField, property: Option<&Value>) -> StoredField {
    let holds = match property.and_then(JsonList::declared_by) {
        None => return field,
        Some(JsonList::OfAnything) => list_of_texts(),
        Some(JsonList::OfStructures) => {
            let structure = ArrowType::Struct(Fields::empty());
            ArrowType::List(Arc::new(Field::new("item", structure, true)))
        }
    };
    StoredField {
        expression: json_items(field.expression),
        holds,
        is_json: false,
    }
}

/// The whole name, then each split of it at a dot, the longest first part first.
fn prefixes(name: &str) -> impl Iterator<Item = (&str, Option<&str>)> {
    let parts = name
        .rmatch_indices('.')
        .filter_map(|(dot, _)| Some((name.get(..dot)?, name.get(dot + 1..))));
    std::iter::once((name, None)).chain(parts)
}

fn top_level(name: &str, data_type: &DataType) -> Option<StoredField> {
    let storage = &data_type.layout.storage;
    let shown = data_type
        .layout
        .read
        .iter()
        .find(|column| column.name == name)
        .map(|column| &column.from);
    let stored = match shown {
        Some(ReadFrom::Id) => ID,
        Some(ReadFrom::Start) => START,
        Some(ReadFrom::End) => END,
        Some(ReadFrom::Span) => START,
        Some(ReadFrom::Column(column) | ReadFrom::Versions { column, .. }) => column,
        Some(ReadFrom::Extras { .. }) => EXTRAS,
        Some(ReadFrom::Constant(text)) => {
            return Some(StoredField {
                expression: lit(text.clone()),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        Some(ReadFrom::Null) => {
            return Some(StoredField {
                expression: lit(ScalarValue::Utf8(None)),
                holds: ArrowType::Utf8,
                is_json: false,
            });
        }
        None => name,
    };
    if shown.is_none() && INTERNAL_COLUMNS.contains(&name) {
        return None;
    }
    let field: &Field = storage.field_with_name(stored).ok()?;
    Some(StoredField {
        expression: column(stored),
        holds: field.data_type().clone(),
        is_json: is_json_text(field),
    })
}

fn column(name: &str) -> Expr {
    col(Column::new_unqualified(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::registry::Registry;

    #[test]
    fn rule_5_4_a_field_holds_what_answers_show() {
        let registry = Registry::builtin().unwrap();
        let field = |data_type: &str, name: &str| field_of(name, registry.get(data_type).unwrap()).unwrap();
        for data_type in ["HeartRate", "PlatformLocationUpdate"] {
            let version = field(data_type, "source_properties.operatingSystemVersion");
            assert_eq!(version.holds, list_of_numbers(), "{data_type}");
        }
        let name = field("HeartRate", "source_properties.name").holds;
        assert!(!matches!(name, ArrowType::List(_)), "{name}");
        assert_eq!(field("PeopleAnnotation", "people").holds, list_of_texts());
        let events = field("PlatformWorkout", "workout_events").holds;
        assert!(matches!(events, ArrowType::List(event) if event.data_type().is_nested()));
        assert!(field("PeopleAnnotation", "extras").is_json);
    }

    #[test]
    fn rule_5_4_a_dot_is_part_of_a_name_before_it_reaches_into_a_structure() {
        let all: Vec<_> = prefixes("a.b.c").collect();
        assert_eq!(all, [("a.b.c", None), ("a.b", Some("c")), ("a", Some("b.c"))]);
    }
}
