//! Limits what checking one value against a schema may cost, computed from the schema alone.
//!
//! A schema of a few lines can refer to its own parts so that one value is checked 2^40 times, or contain
//! patterns that grow when they are compiled. So what people bring is measured before it is compiled: its
//! parts as written, its patterns, and the most checks that any one value meets with every reference
//! followed. Knows the keywords that apply schemas to values; everything else costs nothing.

use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use crate::model::excerpt::beginning;

/// The most schemas and listed values in one schema, as written.
const MOST_PARTS: usize = 10_000;
/// The most checks that one value may meet. A list of codes is the usual reason for thousands.
const MOST_CHECKS: u64 = 10_000;
/// The most patterns in one schema; each may take [`super::PATTERN_BYTES`].
const MOST_PATTERNS: usize = 100;
/// The longest chain of references.
const LONGEST_CHAIN: usize = 32;
/// `unevaluated…` keywords check again what stands beside them; this is the factor for that.
const CHECKED_AGAIN_FACTOR: u64 = 4;

/// Keywords whose value maps names to schemas.
const MAPS: [&str; 6] = [
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords that apply schemas to the value itself.
const IN_PLACE: [&str; 7] = ["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
/// Keywords that apply a schema to every member or item, regardless of other keywords.
const TO_ALL: [&str; 7] = [
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "items",
    "additionalItems",
    "unevaluatedItems",
    "contains",
];
/// Keywords whose value is data.
const DATA: [&str; 4] = ["enum", "const", "default", "examples"];
/// Keywords that change the meaning of a reference depending on where it occurs.
const MOVING_KEYWORDS: [&str; 5] = ["$id", "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveRef"];

/// Why a schema is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefusedSchema {
    #[error("it has more than {MOST_PARTS} parts")]
    Parts,
    #[error("it has more than {MOST_PATTERNS} patterns")]
    Patterns,
    #[error("one value would be checked more than {MOST_CHECKS} times; refer less, and list less")]
    Checks,
    #[error(
        "{:?} refers to itself, or through more than {LONGEST_CHAIN} others; write out what is meant",
        beginning(.0)
    )]
    Endless(String),
    #[error(
        "{:?} leads nowhere; references lead to a part of the schema itself, such as \"#/$defs/name\"",
        beginning(.0)
    )]
    Nowhere(String),
    #[error("{0:?} is not supported below the top; refer to a part of the schema, as by \"#/$defs/name\"")]
    Moving(&'static str),
}

/// The most checks that any one value meets against `schema`, which a person wrote.
pub fn checks(schema: &Value) -> Result<u64, RefusedSchema> {
    measured(schema, 1)
}

/// The most checks that any one value meets against the schema of whole records, which adds to what a person
/// wrote.
pub fn checks_of_records(schema: &Value) -> Result<u64, RefusedSchema> {
    measured(schema, 2)
}

/// The most patterns that any one value meets against the schema of whole records.
pub fn patterns_of_records(schema: &Value) -> Result<u64, RefusedSchema> {
    Reading::of(schema, 2, Counted::Patterns).checks(schema)
}

/// `room`: by which factor the limits may be exceeded.
fn measured(schema: &Value, room: u64) -> Result<u64, RefusedSchema> {
    let mut written = Written {
        parts: 0,
        patterns: 0,
        room: room as usize,
    };
    written.count(schema, true)?;
    Reading::of(schema, room, Counted::Checks).checks(schema)
}

/// A schema as written, without following references.
struct Written {
    parts: usize,
    patterns: usize,
    room: usize,
}

impl Written {
    fn count(&mut self, schema: &Value, is_top: bool) -> Result<(), RefusedSchema> {
        self.parts += 1;
        self.within()?;
        let Some(keywords) = schema.as_object() else {
            return Ok(());
        };
        self.patterns += usize::from(keywords.contains_key("pattern"));
        let moves = |keyword: &&str| keywords.get(*keyword).is_some_and(Value::is_string);
        let is_named_here = |keyword: &&&str| is_top && matches!(**keyword, "$id" | "$anchor");
        if let Some(keyword) = MOVING_KEYWORDS
            .iter()
            .filter(|keyword| moves(keyword))
            .find(|keyword| !is_named_here(keyword))
        {
            return Err(RefusedSchema::Moving(keyword));
        }
        for (keyword, value) in keywords {
            match value {
                Value::Object(named) if MAPS.contains(&keyword.as_str()) => {
                    if keyword == "patternProperties" {
                        self.patterns += named.len();
                    }
                    named.values().try_for_each(|schema| self.count(schema, false))?;
                }
                Value::Array(listed) if keyword == "enum" => self.parts += listed.len(),
                _ if DATA.contains(&keyword.as_str()) => {}
                Value::Object(_) => self.count(value, false)?,
                Value::Array(schemas) => schemas
                    .iter()
                    .filter(|schema| schema.is_object())
                    .try_for_each(|schema| self.count(schema, false))?,
                _ => {}
            }
        }
        self.within()
    }

    const fn within(&self) -> Result<(), RefusedSchema> {
        if self.parts > MOST_PARTS * self.room {
            Err(RefusedSchema::Parts)
        } else if self.patterns > MOST_PATTERNS * self.room {
            Err(RefusedSchema::Patterns)
        } else {
            Ok(())
        }
    }
}

/// What is counted of the checks that a value meets.
#[derive(Clone, Copy)]
enum Counted {
    Checks,
    /// Only those by a pattern.
    Patterns,
}

/// A schema with its references followed.
struct Reading<'s> {
    root: &'s Value,
    counted: Counted,
    /// The cost of the targets of references.
    known: HashMap<&'s str, u64>,
    /// The references that are being followed.
    open: Vec<&'s str>,
    /// The most checks that any value may meet.
    most: u64,
}

impl<'s> Reading<'s> {
    fn of(schema: &'s Value, room: u64, counted: Counted) -> Self {
        Self {
            root: schema,
            counted,
            known: HashMap::new(),
            open: Vec::new(),
            most: MOST_CHECKS * room,
        }
    }

    fn checks(&mut self, schema: &'s Value) -> Result<u64, RefusedSchema> {
        let Some(keywords) = schema.as_object() else {
            return Ok(match self.counted {
                Counted::Checks => 1,
                Counted::Patterns => 0,
            });
        };
        let listed = keywords.get("enum").and_then(Value::as_array).map_or(0, Vec::len) as u64;
        let mut here = match self.counted {
            Counted::Checks => 1 + listed,
            Counted::Patterns => u64::from(keywords.contains_key("pattern")),
        };
        if let Some(Value::String(reference)) = keywords.get("$ref") {
            here = here.saturating_add(self.behind(reference)?);
        }
        for keyword in IN_PLACE {
            here = here.saturating_add(self.all(keywords.get(keyword))?);
        }
        for keyword in ["dependentSchemas", "dependencies"] {
            here = here.saturating_add(self.all_of(keywords.get(keyword))?);
        }
        // A member is checked by the schema of its name and those of all patterns; an item by that of its
        // place.
        let mut below = self.all_of(keywords.get("patternProperties"))?;
        for keyword in TO_ALL {
            below = below.saturating_add(self.all(keywords.get(keyword))?);
        }
        let named = self.most(
            keywords
                .get("properties")
                .and_then(Value::as_object)
                .map(Map::values),
        )?;
        let placed = self.most(keywords.get("prefixItems").and_then(Value::as_array))?;
        below = below.saturating_add(named.max(placed));
        let looks_again = ["unevaluatedProperties", "unevaluatedItems"];
        let again = if looks_again.iter().any(|keyword| keywords.contains_key(*keyword)) {
            CHECKED_AGAIN_FACTOR
        } else {
            1
        };
        self.within(here.saturating_add(below).saturating_mul(again))
    }

    /// The sum over a schema, or a list of schemas.
    fn all(&mut self, value: Option<&'s Value>) -> Result<u64, RefusedSchema> {
        match value {
            None => Ok(0),
            Some(Value::Array(schemas)) => self.sum(schemas),
            Some(schema) => self.checks(schema),
        }
    }

    fn all_of(&mut self, value: Option<&'s Value>) -> Result<u64, RefusedSchema> {
        value
            .and_then(Value::as_object)
            .map_or(Ok(0), |named| self.sum(named.values()))
    }

    fn sum(&mut self, schemas: impl IntoIterator<Item = &'s Value>) -> Result<u64, RefusedSchema> {
        let mut sum: u64 = 0;
        for schema in schemas {
            let more = self.checks(schema)?;
            sum = self.within(sum.saturating_add(more))?;
        }
        Ok(sum)
    }

    fn most(&mut self, schemas: Option<impl IntoIterator<Item = &'s Value>>) -> Result<u64, RefusedSchema> {
        let mut most = 0;
        for schema in schemas.into_iter().flatten() {
            most = most.max(self.checks(schema)?);
        }
        Ok(most)
    }

    fn behind(&mut self, reference: &'s str) -> Result<u64, RefusedSchema> {
        if let Some(known) = self.known.get(reference) {
            return Ok(*known);
        }
        if self.open.contains(&reference) || self.open.len() >= LONGEST_CHAIN {
            return Err(RefusedSchema::Endless(reference.to_owned()));
        }
        let target = reference
            .strip_prefix('#')
            .and_then(|pointer| {
                self.root
                    .pointer(&percent_decode_str(pointer).decode_utf8_lossy())
            })
            .ok_or_else(|| RefusedSchema::Nowhere(reference.to_owned()))?;
        self.open.push(reference);
        let checks = self.checks(target)?;
        self.open.pop();
        self.known.insert(reference, checks);
        Ok(checks)
    }

    const fn within(&self, checks: u64) -> Result<u64, RefusedSchema> {
        if checks > self.most {
            Err(RefusedSchema::Checks)
        } else {
            Ok(checks)
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `levels` definitions, each of which refers twice to the next.
    fn doubling(levels: usize) -> Value {
        let mut definitions = Map::new();
        for level in 0..levels {
            let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
            definitions.insert(format!("d{level}"), json!({"allOf": [next.clone(), next]}));
        }
        definitions.insert(format!("d{levels}"), json!({"type": "integer"}));
        json!({"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions})
    }

    #[test]
    fn references_count_as_often_as_they_are_followed() {
        let one = checks(&doubling(1)).unwrap();
        let two = checks(&doubling(2)).unwrap();
        assert!(two > 2 * one - 4, "{one} {two}");
        assert_eq!(checks(&doubling(20)), Err(RefusedSchema::Checks));
        assert_eq!(checks(&doubling(30)), Err(RefusedSchema::Checks));
        let long = checks(&doubling(40));
        assert!(matches!(long, Err(RefusedSchema::Endless(_))), "{long:?}");
    }

    #[test]
    fn nothing_refers_to_itself() {
        for schema in [
            json!({"properties": {"a": {"$ref": "#"}}}),
            json!({
                "$defs": {"tree": {"items": {"$ref": "#/$defs/tree"}}},
                "properties": {"a": {"$ref": "#/$defs/tree"}},
            }),
        ] {
            let found = checks(&schema);
            assert!(
                matches!(found, Err(RefusedSchema::Endless(_))),
                "{schema}: {found:?}"
            );
        }
    }

    #[test]
    fn references_lead_into_the_schema_by_its_structure() {
        let found = checks(&json!({"properties": {"a": {"$ref": "https://example.com/schema"}}}));
        assert!(matches!(found, Err(RefusedSchema::Nowhere(_))), "{found:?}");
        let found = checks(&json!({"$defs": {"a": {"$id": "other", "$ref": "#/b"}}}));
        assert_eq!(found, Err(RefusedSchema::Moving("$id")));
        let found = checks(
            &json!({"$defs": {"a b": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/a%20b"}}}),
        );
        assert_eq!(found, Ok(3));
        let signed =
            json!({"$defs": {"%+f": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/%+f"}}});
        assert_eq!(checks(&signed), Ok(3), "a sign is no digit");
        let beside = json!({"properties": {"a": {"type": "integer"}, "b": {"$ref": "#/properties/a"}}});
        assert!(checks(&beside).is_ok());
    }

    #[test]
    fn a_value_meets_the_schema_of_its_own_name_only() {
        let codes: Vec<String> = (0..200).map(|code| format!("code {code}")).collect();
        let properties: Map<String, Value> = (0..30)
            .map(|number| (format!("m{number}"), json!({"enum": codes})))
            .collect();
        assert_eq!(checks(&json!({"properties": properties})), Ok(202));
    }

    #[test]
    fn what_is_unevaluated_is_looked_for_again_at_every_level() {
        let mut schema = json!({"type": "object"});
        for _ in 0..10 {
            schema = json!({"allOf": [schema], "unevaluatedProperties": false});
        }
        assert_eq!(checks(&schema), Err(RefusedSchema::Checks));
    }

    #[test]
    fn members_called_like_keywords_are_members() {
        let schema = json!({
            "properties": {"$ref": {"type": "string"}, "enum": {"type": "string"}, "$id": {"type": "string"}},
        });
        assert_eq!(checks(&schema), Ok(2));
    }

    #[test]
    fn patterns_that_a_value_meets_are_counted_as_often_as_it_meets_them() {
        let pattern = json!({"pattern": "^a"});
        let twice = json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "enum": ["a", "b"]});
        let schema = json!({
            "$defs": {"a": pattern},
            "properties": {"one": pattern, "two": twice, "none": {"type": "string"}},
        });
        assert_eq!(patterns_of_records(&schema), Ok(2));
        assert_eq!(patterns_of_records(&json!({"type": "object"})), Ok(0));
    }

    #[test]
    fn patterns_and_parts_are_counted() {
        let patterns: Vec<Value> = (0..101)
            .map(|number| json!({"pattern": format!("^{number}$")}))
            .collect();
        assert_eq!(checks(&json!({"anyOf": patterns})), Err(RefusedSchema::Patterns));
        let parts = vec![json!({"type": "string"}); 10_001];
        assert_eq!(
            checks(&json!({"$defs": {"a": {"anyOf": parts}}})),
            Err(RefusedSchema::Parts)
        );
    }
}
