//! Values with several spellings that are stored in one: ids, so that they can be compared wherever they
//! occur, and the meridian that has two names.
//!
//! Derived from a property's schema and the column it is stored in; the same for built-in types and those a
//! person defines. Knows no value.

use arrow::datatypes::{DataType as ArrowType, Field};
use serde_json::Value;
use uuid::Uuid;

use super::column::is_json_text;
use super::data_type::DataType;

/// The deepest nesting of choices in a schema that is followed.
const DEEPEST_CHOICE: usize = 32;

/// The part of a stored value that is kept in one spelling.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Canonical {
    /// None: the value is kept as it was sent.
    #[default]
    AsSent,
    /// A uuid, in lower case and with hyphens.
    Uuid,
    /// Degrees of longitude: 180 degrees east and west are the same, and kept as -180.
    Longitude,
    /// Each item of a list.
    Items(Box<Self>),
    /// The members of an object, in the order of the column's.
    Members(Vec<Self>),
}

impl Canonical {
    /// The part of a value of `property` that is kept in one spelling in `column`.
    #[must_use]
    pub fn of(property: &Value, column: &Field) -> Self {
        if is_json_text(column) {
            return Self::AsSent;
        }
        Self::of_type(property, column.data_type())
    }

    fn of_type(property: &Value, stored: &ArrowType) -> Self {
        let mut choices = Vec::new();
        gather(property, DEEPEST_CHOICE, &mut choices);
        match stored {
            ArrowType::Utf8 | ArrowType::Dictionary(..)
                if choices.iter().any(|choice| says(choice, "format", "uuid")) =>
            {
                Self::Uuid
            }
            ArrowType::Float64 if property.get("x-longitude") == Some(&Value::Bool(true)) => Self::Longitude,
            ArrowType::List(item) => match choices.iter().find_map(|choice| choice.get("items")) {
                Some(items) => match Self::of_type(items, item.data_type()) {
                    Self::AsSent => Self::AsSent,
                    of_item => Self::Items(Box::new(of_item)),
                },
                None => Self::AsSent,
            },
            ArrowType::Struct(members) => {
                let declared = choices.iter().find_map(|choice| choice.get("properties"));
                let of_member = |member: &std::sync::Arc<Field>| {
                    declared
                        .and_then(|declared| declared.get(member.name()))
                        .map_or(Self::AsSent, |property| Self::of(property, member))
                };
                let of_members: Vec<Self> = members.iter().map(of_member).collect();
                if of_members.iter().all(|member| *member == Self::AsSent) {
                    Self::AsSent
                } else {
                    Self::Members(of_members)
                }
            }
            _ => Self::AsSent,
        }
    }
}

impl DataType {
    /// Whether the field `name` (dots reach into objects) holds uuids, alone or in a list.
    #[must_use]
    pub fn holds_uuids(&self, name: &str) -> bool {
        let mut parts = name.split('.');
        let top = parts.next().and_then(|top| {
            let column = self.layout.storage.field_with_name(top).ok()?;
            let schema = self.schema.value();
            let property = schema.get("properties")?.get(top)?;
            Some((Canonical::of(property, column), column.data_type()))
        });
        let Some((mut canonical, mut stored)) = top else {
            return false;
        };
        for part in parts {
            let (Canonical::Members(members), ArrowType::Struct(fields)) = (&canonical, stored) else {
                return false;
            };
            let Some((position, field)) = fields.find(part) else {
                return false;
            };
            stored = field.data_type();
            canonical = members.get(position).cloned().unwrap_or_default();
        }
        match canonical {
            Canonical::Uuid => true,
            Canonical::Items(item) => *item == Canonical::Uuid,
            _ => false,
        }
    }
}

/// The canonical spelling of the uuid in `text`, if that is a uuid and spelt otherwise.
#[must_use]
pub fn respelt(text: &str) -> Option<String> {
    let canonical = Uuid::try_parse(text).ok()?.to_string();
    (canonical != text).then_some(canonical)
}

/// Collects a schema and its choices.
fn gather<'a>(schema: &'a Value, levels: usize, into: &mut Vec<&'a Value>) {
    into.push(schema);
    if levels == 0 {
        return;
    }
    for keyword in ["anyOf", "oneOf"] {
        for choice in schema
            .get(keyword)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            gather(choice, levels - 1, into);
        }
    }
}

fn says(schema: &Value, keyword: &str, value: &str) -> bool {
    schema.get(keyword).and_then(Value::as_str) == Some(value)
}
