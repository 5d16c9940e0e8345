//! Records that were sent to the address of a definition: each is given the definition as one of its sources, unless
//! it has it. Works on the text, so that what follows sees nothing unusual. Knows JSON only.

use std::borrow::Cow;

use serde_json::Value;

use super::json;

const SOURCES: &str = "sources";

/// The record with `source` before its other sources. What cannot be read stays as it is: the decoder says better
/// what is wrong with it.
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
    let mut text = vec![b'{'];
    for field in fields.iter().filter(|field| field.name != SOURCES) {
        text.extend_from_slice(Value::from(field.name.as_ref()).to_string().as_bytes());
        text.push(b':');
        text.extend_from_slice(field.raw.as_bytes());
        text.push(b',');
    }
    text.extend_from_slice(format!("\"{SOURCES}\":{}}}", Value::Array(sources)).as_bytes());
    Some(text)
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
