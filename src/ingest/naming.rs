//! Adds sources that a record does not name where its type has them: the definition to whose address it was
//! sent, and the name that its writer gives itself as `source` or `source_name`. Each is put where the type
//! has it.
//!
//! Works on the text, so that later steps see nothing unusual. Knows JSON and plans.

use std::borrow::Cow;

use serde_json::Value;

use super::json::{self, Field};
use super::plan::Plan;

const SOURCES: &str = "sources";
const SOURCE_PROPERTIES: &str = "source_properties";
/// The members in which a writer may name itself; the first takes precedence.
const NAMES: [&str; 2] = ["source", "source_name"];
/// How both names begin as members.
const BEGINNING: &str = "\"source";

/// The record with `source` before its other sources. A record that cannot be read stays as it is: the
/// decoder reports better what is wrong with it.
pub(super) fn with_source<'a>(record: &'a [u8], source: &str) -> Cow<'a, [u8]> {
    named(record, source).map_or(Cow::Borrowed(record), Cow::Owned)
}

fn named(record: &[u8], source: &str) -> Option<Vec<u8>> {
    let fields = json::fields(record).ok()?;
    let mut given = fields.iter().filter(|field| field.name == SOURCES);
    let mut sources: Vec<Value> = match (given.next(), given.next()) {
        (None, _) => Vec::new(),
        (Some(field), None) => serde_json::from_str::<Option<_>>(field.raw)
            .ok()?
            .unwrap_or_default(),
        (Some(_), Some(_)) => return None,
    };
    if sources.iter().any(|other| other == source) {
        return None;
    }
    sources.insert(0, Value::from(source));
    let others = fields.iter().filter(|field| field.name != SOURCES);
    let others = others.map(|field| (field.name.as_ref(), field.raw));
    let sources = Value::Array(sources).to_string();
    Some(json::object(others.chain([(SOURCES, sources.as_str())])))
}

/// The record with its writer's name where the type has it: in `source_properties`, or among `sources`.
/// `None` if it has no such name, the type has a field of that name, or the record gives another source.
pub(super) fn with_named_source(record: &[u8], plan: &Plan) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(record).ok()?;
    let is_mentioned = |(at, _): (usize, &str)| {
        let rest = text.get(at + 1..).unwrap_or_default();
        NAMES
            .iter()
            .any(|name| rest.strip_prefix(name).is_some_and(|rest| rest.starts_with('"')))
    };
    if !text.match_indices(BEGINNING).any(is_mentioned) {
        return None;
    }
    let fields = json::fields(record).ok()?;
    let (name, given) = NAMES.iter().find_map(|name| {
        let given = only(&fields, name).filter(|_| plan.field(name).is_none())?;
        json::text(given.raw)
            .filter(|name| !name.is_empty())
            .map(|name| (name, given.raw))
    })?;
    let is_given = |name: &str| {
        fields
            .iter()
            .any(|field| field.name == name && field.raw != "null")
    };
    let [properties, _, sources] = plan.source_columns;
    let (column, value) = if properties.is_some() {
        if is_given(SOURCE_PROPERTIES) || is_given(SOURCES) {
            return None;
        }
        (SOURCE_PROPERTIES, json::object([("name", given)]))
    } else {
        sources?;
        let mut sources: Vec<Value> = if is_given(SOURCES) {
            serde_json::from_str(only(&fields, SOURCES)?.raw).ok()?
        } else {
            Vec::new()
        };
        if !sources.iter().any(|source| *source == *name) {
            sources.push(Value::from(name));
        }
        (SOURCES, Value::Array(sources).to_string().into_bytes())
    };
    let says_so = |field: &&Field<'_>| NAMES.contains(&field.name.as_ref()) && field.raw == given;
    let others = fields
        .iter()
        .filter(|field| !says_so(field) && field.name != column);
    let others = others.map(|field| (field.name.as_ref(), field.raw));
    let value = String::from_utf8(value).ok()?;
    Some(json::object(others.chain([(column, value.as_str())])))
}

/// The field of that name, if there is exactly one.
fn only<'f, 'a>(fields: &'f [Field<'a>], name: &str) -> Option<&'f Field<'a>> {
    let mut named = fields.iter().filter(|field| field.name == name);
    named.next().filter(|_| named.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_given_its_definition_once_and_first() {
        let cases = [
            ("{}", r#"{"sources":["d"]}"#),
            (r#"{"note":"a\"b" }"#, r#"{"note":"a\"b","sources":["d"]}"#),
            (
                r#"{"sources":null,"value":1.50}"#,
                r#"{"value":1.50,"sources":["d"]}"#,
            ),
            (
                r#"{"sources":["app"],"value":1}"#,
                r#"{"value":1,"sources":["d","app"]}"#,
            ),
            (r#"{"sources": ["app", "d"]}"#, r#"{"sources": ["app", "d"]}"#),
        ];
        for (record, expected) in cases {
            assert_eq!(
                with_source(record.as_bytes(), "d"),
                expected.as_bytes(),
                "{record}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_left_to_the_decoder() {
        for record in [
            "",
            "[]",
            "{",
            r#"{"sources":5}"#,
            r#"{"sources":[],"sources":["x"]}"#,
        ] {
            assert_eq!(with_source(record.as_bytes(), "d"), record.as_bytes(), "{record}");
        }
    }
}
