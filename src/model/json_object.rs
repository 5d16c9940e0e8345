//! JSON objects as they stand: their fields with the exact text of each value, and objects that are written
//! field by field.
//!
//! Keeping the text keeps every digit of a number whose type nobody declared. Knows nothing of what an object
//! describes.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::de::{Deserialize, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// One field of an object: its name, and its value as it was written.
#[derive(Clone, Debug)]
pub struct Field<'a> {
    pub name: Cow<'a, str>,
    pub raw: &'a str,
}

/// The fields of an object, in order, duplicates included. They are read from text that outlives them.
#[derive(Debug)]
pub struct ObjectFields<'a>(pub Vec<Field<'a>>);

impl<'de> Deserialize<'de> for ObjectFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = ObjectFields<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(name) = map.next_key_seed(NameSeed)? {
            let raw: &'de RawValue = map.next_value()?;
            fields.push(Field { name, raw: raw.get() });
        }
        Ok(ObjectFields(fields))
    }
}

/// Text that borrows where it can: `Cow`'s own implementation always copies.
#[derive(Clone, Copy, Debug)]
pub struct NameSeed;

impl<'de> DeserializeSeed<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for NameSeed {
    type Value = Cow<'de, str>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

/// The text of an object that is written field by field.
#[derive(Debug, Default)]
pub struct ObjectText(String);

impl ObjectText {
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self(String::with_capacity(bytes))
    }

    /// Begins a field. Its value, which is JSON, is then appended to what this returns.
    pub fn field(&mut self, name: &str) -> &mut String {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        append_string(name, &mut self.0);
        self.0.push(':');
        &mut self.0
    }

    /// The object, or `None` if it has no fields.
    #[must_use]
    pub fn unless_empty(mut self) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        self.0.push('}');
        Some(self.0)
    }

    /// The object.
    #[must_use]
    pub fn whole(self) -> String {
        self.unless_empty().unwrap_or_else(|| "{}".to_owned())
    }
}

/// Appends `text` to `output` as a JSON string. What is stored has this form, and is compared with what is
/// sent: `serde_json` writes two of the control characters otherwise.
pub fn append_string(text: &str, output: &mut String) {
    output.push('"');
    for character in text.chars() {
        match character {
            '"' => output.push_str("\\\""),
            '\\' => output.push_str("\\\\"),
            '\n' => output.push_str("\\n"),
            '\r' => output.push_str("\\r"),
            '\t' => output.push_str("\\t"),
            control if control < ' ' => {
                // Writing into a string cannot fail.
                let _ = write!(output, "\\u{:04x}", u32::from(control));
            }
            other => output.push(other),
        }
    }
    output.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_written_as_it_was_read() {
        for text in [
            "{}",
            r#"{"n":1.10,"m":[12345678901234567890123,"\u00e9"],"n":null}"#,
            r#"{"a\"b\\":-0,"\n\r\t\u0008\u000c\u001f/":{"b": [ 1 ]}}"#,
        ] {
            let ObjectFields(fields) = serde_json::from_str(text).unwrap();
            let mut written = ObjectText::default();
            for field in &fields {
                written.field(&field.name).push_str(field.raw);
            }
            assert_eq!(written.whole(), text);
        }
    }

    #[test]
    fn an_object_without_fields_is_none_where_only_others_count() {
        assert_eq!(ObjectText::with_capacity(10).unless_empty(), None);
        let mut one = ObjectText::default();
        one.field("a").push('1');
        assert_eq!(one.unless_empty().as_deref(), Some(r#"{"a":1}"#));
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in ["", "[]", "null", "1", r#"{"a":1} 2"#, r#"{"a"}"#] {
            assert!(serde_json::from_str::<ObjectFields<'_>>(text).is_err(), "{text}");
        }
    }
}
