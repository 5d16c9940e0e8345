//! Reads JSON text as it stands: the fields of an object with their exact text, text without blanks, and the
//! place of a mistake.
//!
//! Pure functions over borrowed text. Keeping the text keeps every digit of a number whose type nobody
//! declared. Knows JSON; knows nothing of records.

use std::borrow::Cow;
use std::fmt;
use std::ops::ControlFlow;

use serde::Deserializer as _;
use serde::de::{DeserializeSeed, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::model::json_object::{ObjectFields, ObjectText};
use crate::model::strict_json::{BEYOND_NUMBERS, OUT_OF_RANGE};

pub(super) use crate::model::json_object::{Field, NameSeed, append_string};

/// Why a text is not an object with readable fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mistake {
    /// The field of the outermost object that contains the mistake, where that is known.
    pub field: Option<String>,
    pub message: String,
    pub kind: MistakeKind,
}

/// The kind of a mistake, and at which byte it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MistakeKind {
    BreaksOff {
        at: usize,
    },
    /// The object has ended, but the text has not.
    MoreFollows {
        at: usize,
    },
    Malformed,
    /// The text is well formed, but one of its numbers is larger than any that can be kept.
    TooLarge,
}

/// The fields of the object in `json`, in order, duplicates included.
pub(super) fn fields(json: &[u8]) -> Result<Vec<Field<'_>>, Mistake> {
    serde_json::from_slice(json)
        .map(|ObjectFields(fields)| fields)
        .map_err(|error| explain(json, &error))
}

/// The elements of the array in `raw`, as they were written, or `None` if it is not an array.
pub(super) fn elements(raw: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// Hands the elements of the array in `raw` to `each`, one by one, until it has enough. Returns an error if
/// `raw` is not a complete array.
pub(super) fn each_element<'a>(
    raw: &'a str,
    each: impl FnMut(usize, &'a str) -> ControlFlow<()>,
) -> Result<(), serde_json::Error> {
    let mut enough = false;
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    let read = deserializer.deserialize_seq(ElementsVisitor {
        each,
        enough: &mut enough,
    });
    if enough {
        return Ok(());
    }
    read.and_then(|()| deserializer.end())
}

struct ElementsVisitor<'e, F> {
    each: F,
    enough: &'e mut bool,
}

impl<'de, F: FnMut(usize, &'de str) -> ControlFlow<()>> Visitor<'de> for ElementsVisitor<'_, F> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(element) = elements.next_element::<&'de RawValue>()? {
            if (self.each)(index, element.get()).is_break() {
                *self.enough = true;
                return Ok(());
            }
            index += 1;
        }
        Ok(())
    }
}

/// The text that the JSON string `raw` represents, or `None` if it is not a string.
pub(super) fn text(raw: &str) -> Option<Cow<'_, str>> {
    let mut deserializer = serde_json::Deserializer::from_str(raw);
    NameSeed.deserialize(&mut deserializer).ok()
}

/// Appends valid JSON to `output` without the blanks between its tokens, so that it fits on one line. Tokens
/// stay as they are.
pub(super) fn append_compact(raw: &str, output: &mut String) {
    let mut in_string = false;
    let mut escaped = false;
    let mut kept_from = 0;
    for (at, byte) in raw.bytes().enumerate() {
        if in_string {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => in_string = false,
                _ => {}
            }
        } else if byte == b'"' {
            in_string = true;
        } else if byte.is_ascii_whitespace() {
            output.push_str(raw.get(kept_from..at).unwrap_or_default());
            kept_from = at + 1;
        }
    }
    output.push_str(raw.get(kept_from..).unwrap_or_default());
}

/// The object with these members, whose values are JSON.
pub(super) fn object<'a>(members: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<u8> {
    let mut text = ObjectText::default();
    for (name, raw) in members {
        text.field(name).push_str(raw);
    }
    text.whole().into_bytes()
}

/// Explains why a text cannot be read as JSON, in terms of what a program may have meant.
pub(super) fn explain(json: &[u8], error: &serde_json::Error) -> Mistake {
    explain_from(0, json, error)
}

/// The same for `part`, which stands in `json` as it was sent: where the mistake is, is counted from there.
pub(super) fn explain_part(json: &[u8], part: &str, error: &serde_json::Error) -> Mistake {
    let begins = part.as_ptr().addr().saturating_sub(json.as_ptr().addr());
    explain_from(begins, part.as_bytes(), error)
}

/// `begins`: the number of the first byte of `json`.
fn explain_from(begins: usize, json: &[u8], error: &serde_json::Error) -> Mistake {
    let at = offset(json, error);
    let field = field_at(json, at);
    let mut reason = error.to_string();
    if let Some(cut) = reason.rfind(" at line ") {
        reason.truncate(cut);
    }
    let more_follows = reason == "trailing characters";
    let token = not_a_number_at(json, at).filter(|_| !more_follows);
    let at = begins + at;
    let mut kind = MistakeKind::Malformed;
    let message = match token {
        Some(token) => format!("{token} is not JSON; send null, or leave the field out"),
        None if error.is_eof() => {
            kind = MistakeKind::BreaksOff {
                at: begins + json.len(),
            };
            "malformed JSON: the text breaks off".to_owned()
        }
        None => {
            if more_follows {
                kind = MistakeKind::MoreFollows { at };
            }
            match reason.as_str() {
                "recursion limit exceeded" => "nested deeper than 127 levels".to_owned(),
                OUT_OF_RANGE => {
                    kind = MistakeKind::TooLarge;
                    BEYOND_NUMBERS.to_owned()
                }
                reason => format!("malformed JSON at byte {at}: {reason}"),
            }
        }
    };
    Mistake { field, message, kind }
}

/// The byte offset at which the parser stopped.
fn offset(json: &[u8], error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let start: usize = json
        .split_inclusive(|byte| *byte == b'\n')
        .take(lines_before)
        .map(<[u8]>::len)
        .sum();
    start
        .saturating_add(error.column())
        .saturating_sub(1)
        .min(json.len())
}

/// The token such as `NaN` in which the parser stopped, if it did.
fn not_a_number_at(json: &[u8], at: usize) -> Option<&'static str> {
    // The parser stops at the first letter that it cannot use: `N`, `I`, the `I` after a minus, or one later
    // where it looked ahead.
    (at.saturating_sub(2)..=at).find_map(|start| {
        let rest = json.get(start..)?;
        ["NaN", "-NaN", "Infinity", "-Infinity", "nan", "inf", "-inf"]
            .into_iter()
            .find(|token| rest.starts_with(token.as_bytes()))
    })
}

/// The field of the outermost object that contains byte `end`, found without assuming that the text is JSON.
fn field_at(json: &[u8], end: usize) -> Option<String> {
    let mut depth = 0_usize;
    let mut name: Option<&[u8]> = None;
    let mut expects_name = false;
    let mut at = 0;
    while at < end.min(json.len()) {
        match json.get(at)? {
            b'"' => {
                let close = string_end(json, at)?;
                if depth == 1 && expects_name {
                    name = json.get(at..=close);
                    expects_name = false;
                }
                at = close;
            }
            b'{' | b'[' => {
                depth += 1;
                expects_name = depth == 1;
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    // What follows the object is in none of its fields.
                    name = None;
                }
            }
            b',' if depth == 1 => {
                name = None;
                expects_name = true;
            }
            _ => {}
        }
        at += 1;
    }
    serde_json::from_slice(name?).ok()
}

/// The position at which the string that opens at `open` closes.
pub(super) fn string_end(json: &[u8], open: usize) -> Option<usize> {
    let mut escaped = false;
    for (distance, byte) in json.get(open + 1..)?.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(open + 1 + distance),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn mistake(json: &str) -> Mistake {
        fields(json.as_bytes()).map(|_| ()).unwrap_err()
    }

    #[test]
    fn malformed_json_names_the_field_it_stands_in() {
        assert_eq!(
            mistake(r#"{"value": 1, "unit": bpm}"#).field.as_deref(),
            Some("unit")
        );
        assert_eq!(
            mistake(r#"{"value": 1, "unit" "bpm"}"#).field.as_deref(),
            Some("unit")
        );
        assert_eq!(
            mistake(r#"{"a": {"b": [1, }, "c": 2}"#).field.as_deref(),
            Some("a")
        );
        assert_eq!(mistake("{").field, None);
        assert!(mistake(r#"{"value": 72"#).message.contains("breaks off"));
    }

    #[test]
    fn what_follows_the_object_is_in_no_field() {
        let object = r#"{"value": 1, "unit": {"a": [2]}}"#;
        for rest in [r#"{"value": 2}"#, ",", "\0", "]", " NaN"] {
            let found = mistake(&format!("{object}{rest}"));
            let at = object.len() + rest.len() - rest.trim_start().len();
            let expected = (None, MistakeKind::MoreFollows { at });
            assert_eq!((found.field, found.kind), expected, "{rest:?}");
        }
    }

    #[test]
    fn a_mistake_in_a_part_is_counted_from_the_beginning_of_the_whole() {
        let json = r#"{"a": 1, "text": "b\ud800"}"#;
        let found = fields(json.as_bytes()).unwrap();
        let part = found[1].raw;
        let error = serde_json::from_str::<serde_json::Value>(part).unwrap_err();
        let at = |mistake: Mistake| -> usize {
            let rest = mistake.message.strip_prefix("malformed JSON at byte ").unwrap();
            rest.split(':').next().unwrap().parse().unwrap()
        };
        let within = at(explain(part.as_bytes(), &error));
        let begins = json.find(part).unwrap();
        assert_eq!(at(explain_part(json.as_bytes(), part, &error)), begins + within);
    }

    #[test]
    fn nan_and_infinity_are_named_with_their_field() {
        for token in ["NaN", "Infinity", "-Infinity", "nan"] {
            let found = mistake(&format!(r#"{{"id": "x", "value": {token}, "unit": "bpm"}}"#));
            assert_eq!(found.field.as_deref(), Some("value"), "{token}");
            assert!(
                found.message.starts_with(token) || token == "nan",
                "{}",
                found.message
            );
        }
    }

    #[test]
    fn compact_text_keeps_every_token() {
        let mut compact = String::new();
        append_compact(
            "{ \"a b\" : [1.10, 1e2 ,\n 12345678901234567890123],\r\n\"\\\" \" :null }",
            &mut compact,
        );
        assert_eq!(
            compact,
            "{\"a b\":[1.10,1e2,12345678901234567890123],\"\\\" \":null}"
        );
    }

    #[test]
    fn fields_come_in_order_with_duplicates() {
        let found = fields(br#"{"a":1,"b":[ 1 ],"a":"x","c\u0041":1.50}"#).unwrap();
        let found: Vec<_> = found
            .iter()
            .map(|field| (field.name.as_ref(), field.raw))
            .collect();
        assert_eq!(
            found,
            [("a", "1"), ("b", "[ 1 ]"), ("a", "\"x\""), ("cA", "1.50")]
        );
    }

    proptest! {
        /// Any bytes yield fields or a mistake.
        #[test]
        fn arbitrary_bytes_do_not_panic(
            json in proptest::collection::vec(
                prop_oneof![
                    Just(b'{'), Just(b'}'), Just(b'"'), Just(b':'), Just(b','), Just(b'\\'), Just(b'\n'),
                    Just(b'N'), any::<u8>(),
                ],
                0..60,
            )
        ) {
            if let Err(found) = fields(&json) {
                prop_assert!(!found.message.is_empty());
            }
        }

        /// A string written is the string read.
        #[test]
        fn strings_survive(text in any::<String>()) {
            let mut json = String::new();
            append_string(&text, &mut json);
            prop_assert_eq!(super::text(&json).unwrap(), text.as_str());
        }
    }
}
