//! The annotations with which built-in schemas tell the product what a property is, and how they are taken
//! out of the schemas that people bring: there they would change what is stored and answered.
//!
//! Pure. Knows schemas; knows nothing of definitions.

use serde_json::Value;

/// Definitions that are stored may have it in a property of the record, where it was not taken out before.
/// Their types keep the column that follows from it.
const KEPT_WHERE_STORED: &str = "x-version";
const ANNOTATIONS: [&str; 13] = [
    "x-role",
    "x-aliases",
    "x-hidden",
    "x-span",
    "x-dictionary",
    "x-structs",
    "x-longitude",
    "x-private",
    "x-names-owner",
    "x-throughout",
    "x-unknown",
    "x-yes-no",
    KEPT_WHERE_STORED,
];

/// A property of a stored definition, as it was understood when records came.
pub(super) fn as_understood(property: &Value) -> Value {
    let mut property = property.clone();
    if let Some(keywords) = property.as_object_mut() {
        keywords.retain(|keyword, _| !is_annotation(keyword) || keyword == KEPT_WHERE_STORED);
    }
    property
}

/// Takes the annotations out of a schema that is brought, wherever the product would see them: in members,
/// items and choices. What the same part of the schema said `before` stays, because columns follow from it.
pub(super) fn take_out(schema: &mut Value, before: Option<&Value>) {
    let Some(keywords) = schema.as_object_mut() else {
        return;
    };
    let said = |keyword: &str| before.and_then(|before| before.get(keyword));
    keywords.retain(|keyword, value| !is_annotation(keyword) || said(keyword) == Some(&*value));
    for (keyword, value) in keywords {
        let before = said(keyword);
        match (keyword.as_str(), value) {
            ("properties", Value::Object(members)) => {
                for (name, member) in members {
                    take_out(member, before.and_then(|before| before.get(name)));
                }
            }
            ("items", items) => take_out(items, before),
            ("anyOf" | "oneOf", Value::Array(choices)) => {
                for (place, choice) in choices.iter_mut().enumerate() {
                    take_out(choice, before.and_then(|before| before.get(place)));
                }
            }
            _ => {}
        }
    }
}

fn is_annotation(keyword: &str) -> bool {
    ANNOTATIONS.contains(&keyword)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn annotations_are_taken_out_of_what_is_new_and_stay_where_they_were() {
        let number = |annotation: &str| json!({"type": "number", annotation: true});
        let schema = |member: Value| {
            json!({"properties": {"o": {"type": "object", "properties": {"n": member.clone()}},
                "l": {"items": member.clone()}, "c": {"anyOf": [{"type": "null"}, member]}}})
        };
        let mut brought = schema(number("x-longitude"));
        take_out(&mut brought, None);
        assert_eq!(brought, schema(json!({"type": "number"})));

        let (stored, other) = (schema(number("x-longitude")), schema(number("x-yes-no")));
        for (sent, before, left) in [
            (&stored, &stored, &stored),
            (&other, &stored, &schema(json!({"type": "number"}))),
        ] {
            let mut sent = sent.clone();
            take_out(&mut sent, Some(before));
            assert_eq!(sent, *left);
        }
    }

    #[test]
    fn members_that_are_called_like_an_annotation_and_what_is_data_stay() {
        let schema = json!({"properties": {
            "x-role": {"type": "string", "enum": ["x-role"]}, "e": {"const": {"x-role": "id"}},
            "k": {"x-of-ours": true},
        }});
        let mut brought = schema.clone();
        take_out(&mut brought, None);
        assert_eq!(brought, schema);
    }
}
