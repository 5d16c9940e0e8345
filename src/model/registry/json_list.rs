//! Which fields hold lists that are kept as JSON text, and of what. Knows schemas; knows no value.

use serde_json::{Map, Value};

use super::column::kind_of;

/// What a list holds that no column of plain values or of structures can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JsonList {
    /// Objects or lists, and nothing else.
    OfStructures,
    /// Anything, some of it perhaps texts, numbers or truth values.
    OfAnything,
}

impl JsonList {
    /// `None` unless the schema of a field says that it is a list.
    #[must_use]
    pub fn declared_by(property: &Value) -> Option<Self> {
        let list = kind_of(property).filter(|kind| kind.name == "array")?;
        let item = list.schema.get("items").and_then(kind_of);
        let is_structure = item.is_some_and(|item| matches!(item.name, "object" | "array"));
        Some(if is_structure {
            Self::OfStructures
        } else {
            Self::OfAnything
        })
    }
}

/// The schemas of the members of an object.
#[must_use]
pub fn members_of(property: &Value) -> Option<&Map<String, Value>> {
    kind_of(property)?.schema.get("properties")?.as_object()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_list_of_objects_alone_holds_nothing_to_compare() {
        let (list, object) = (json!({"type": "array"}), json!({"type": "object"}));
        for (property, expected) in [
            (
                json!({"type": ["array", "null"], "items": object}),
                Some(JsonList::OfStructures),
            ),
            (
                json!({"type": "array", "items": list}),
                Some(JsonList::OfStructures),
            ),
            (
                json!({"type": "array", "items": {"type": ["object", "string", "null"]}}),
                Some(JsonList::OfAnything),
            ),
            (
                json!({"anyOf": [list, {"type": "null"}]}),
                Some(JsonList::OfAnything),
            ),
            (list.clone(), Some(JsonList::OfAnything)),
            (object.clone(), None),
            (json!({"type": ["array", "string"]}), None),
            (json!({}), None),
        ] {
            assert_eq!(JsonList::declared_by(&property), expected, "{property}");
        }
    }
}
