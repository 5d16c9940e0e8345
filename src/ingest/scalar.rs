//! Implements the part of JSON Schema that can be checked on a token, without the document around it.
//!
//! If a schema requires more than this, there is no rule, and the whole record is validated. Pure functions.

use serde_json::Value;

use crate::model::floats::EXACT_BELOW;

/// The JSON types that a schema can name. A whole number is of both number types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Null,
    Bool,
    Integer,
    Number,
    Text,
}

impl Token {
    const fn bit(self) -> u8 {
        match self {
            Self::Null => 1,
            Self::Bool => 2,
            Self::Integer => 4,
            Self::Number => 8,
            Self::Text => 16,
        }
    }
}

/// The constraints on a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ScalarRule {
    tokens: u8,
    /// Inclusive bounds.
    minimum: f64,
    maximum: f64,
    /// Exclusive bounds.
    above: f64,
    below: f64,
    /// Whether a text must be a time or a UUID: for times and ids the column implies it, for all else the
    /// schema has to check it.
    pub formatted: bool,
}

impl ScalarRule {
    pub(super) const ANYTHING: Self = Self {
        tokens: u8::MAX,
        minimum: f64::NEG_INFINITY,
        maximum: f64::INFINITY,
        above: f64::NEG_INFINITY,
        below: f64::INFINITY,
        formatted: false,
    };

    pub(super) const fn allows(&self, token: Token) -> bool {
        self.tokens & token.bit() != 0
    }

    pub(super) fn allows_number(&self, value: f64) -> bool {
        self.minimum <= value && value <= self.maximum && self.above < value && value < self.below
    }
}

/// A bound that a float holds exactly, so that comparing floats compares numbers.
fn bound(value: &Value) -> Option<f64> {
    value.as_f64().filter(|bound| bound.abs() < EXACT_BELOW)
}

/// Keywords that require nothing of a record.
fn is_remark(keyword: &str) -> bool {
    keyword.starts_with("x-")
        || matches!(
            keyword,
            "$schema"
                | "$id"
                | "$comment"
                | "$defs"
                | "title"
                | "description"
                | "examples"
                | "default"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
        )
}

/// Whether every field of a record can be checked by itself.
pub(super) fn fields_are_independent(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => value == "object",
        "properties" | "required" | "additionalProperties" => true,
        other => is_remark(other),
    })
}

/// Whether a record may have members that its schema does not name, whatever their values.
pub(super) fn admits_undeclared(schema: &Value) -> bool {
    schema
        .get("additionalProperties")
        .is_none_or(|admits| *admits == true)
}

/// Whether a field's schema admits every object.
pub(super) fn admits_every_object(schema: &Value) -> bool {
    let Some(keywords) = schema.as_object() else {
        return false;
    };
    keywords.iter().all(|(keyword, value)| match keyword.as_str() {
        "type" => match value {
            Value::Array(names) => names.iter().any(|name| name == "object"),
            name => name == "object",
        },
        "additionalProperties" => *value == true,
        other => is_remark(other),
    })
}

/// The rule that a field's schema amounts to, if it requires nothing else.
pub(super) fn rule(schema: &Value) -> Option<ScalarRule> {
    let keywords = schema.as_object()?;
    let mut rule = ScalarRule::ANYTHING;
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "type" => rule.tokens = tokens(value)?,
            // These constrain only objects and lists, which no rule here checks.
            "properties" | "required" | "additionalProperties" | "items" => {}
            "format" if value == "date-time" || value == "uuid" => rule.formatted = true,
            "minimum" => rule.minimum = bound(value)?,
            "maximum" => rule.maximum = bound(value)?,
            "exclusiveMinimum" => rule.above = bound(value)?,
            "exclusiveMaximum" => rule.below = bound(value)?,
            other if is_remark(other) => {}
            _ => return None,
        }
    }
    Some(rule)
}

fn tokens(names: &Value) -> Option<u8> {
    let one = |name: &Value| match name.as_str()? {
        "null" => Some(Token::Null.bit()),
        "boolean" => Some(Token::Bool.bit()),
        "integer" => Some(Token::Integer.bit()),
        "number" => Some(Token::Integer.bit() | Token::Number.bit()),
        "string" => Some(Token::Text.bit()),
        "object" | "array" => Some(0),
        _ => None,
    };
    match names {
        Value::Array(names) => names.iter().try_fold(0, |bits, name| Some(bits | one(name)?)),
        name => one(name),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_and_bounds_are_rules() {
        let found = rule(&json!({
            "type": ["number", "null"], "minimum": 0, "exclusiveMaximum": 10, "description": "x",
            "x-role": "y",
        }))
        .unwrap();
        assert!(
            found.allows(Token::Null)
                && found.allows(Token::Integer)
                && found.allows(Token::Number)
                && !found.allows(Token::Text)
        );
        assert!(found.allows_number(0.0) && !found.allows_number(-0.1) && !found.allows_number(10.0));
        let object = rule(&json!({"type": ["object", "null"], "properties": {"a": {"enum": [1]}}})).unwrap();
        assert!(object.allows(Token::Null) && !object.allows(Token::Text));
        let whole = rule(&json!({"type": "integer"})).unwrap();
        assert!(whole.allows(Token::Integer) && !whole.allows(Token::Number));
    }

    #[test]
    fn objects_are_admitted_where_nothing_is_asked_of_them() {
        for (schema, expected) in [
            (json!({"type": ["object", "null"], "description": "x"}), true),
            (json!({"type": "object", "additionalProperties": true}), true),
            (
                json!({"type": "object", "additionalProperties": {"type": "string"}}),
                false,
            ),
            (json!({"type": "object", "required": ["a"]}), false),
            (json!({"type": "string"}), false),
            (json!(true), false),
        ] {
            assert_eq!(admits_every_object(&schema), expected, "{schema}");
        }
        assert!(admits_undeclared(&json!({})) && admits_undeclared(&json!({"additionalProperties": true})));
        assert!(!admits_undeclared(&json!({"additionalProperties": false})));
        assert!(!admits_undeclared(&json!({"additionalProperties": {}})));
    }

    #[test]
    fn anything_more_is_left_to_the_schema() {
        for schema in [
            json!({"enum": [1]}),
            json!({"anyOf": []}),
            json!({"type": "string", "format": "email"}),
            json!({"pattern": "x"}),
            json!(true),
        ] {
            assert_eq!(rule(&schema), None, "{schema}");
        }
        assert!(fields_are_independent(
            &json!({"type": "object", "properties": {}, "required": ["a"], "additionalProperties": true})
        ));
        assert!(!fields_are_independent(
            &json!({"type": "object", "dependentRequired": {}})
        ));
    }
}
