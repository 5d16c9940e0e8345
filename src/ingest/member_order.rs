//! JSON texts with the members of their objects in one order, so that texts which say the same are equal.
//!
//! An object is the same however its members are ordered, and what a type does not declare is stored as text.
//! Numbers remain as they were written. Pure; nothing that it returns is ever stored.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListArray, StringArray, StructArray};
use arrow::datatypes::{DataType, Field};
use arrow::error::ArrowError;

use super::json;
use crate::model::registry::is_json_text;

/// No text that was accepted is nested deeper. What is, is compared as it stands.
const DEEPEST_NESTING: usize = 128;

/// Whether two texts say the same.
pub(super) fn say_the_same(left: &str, right: &str) -> bool {
    if left == right {
        return true;
    }
    // Only an escaped character can be written in more than one length.
    if left.len() != right.len() && !left.contains('\\') && !right.contains('\\') {
        return false;
    }
    matches!((in_order(left), in_order(right)), (Some(left), Some(right)) if left == right)
}

/// Whether a column holds JSON texts, at any depth.
pub(super) fn holds_json(field: &Field) -> bool {
    is_json_text(field)
        || match field.data_type() {
            DataType::Struct(members) => members.iter().any(|member| holds_json(member)),
            DataType::List(item) => holds_json(item),
            _ => false,
        }
}

/// The column with each of its JSON texts in order. A column of another type than that of `field` stays as it
/// is.
pub(super) fn ordered(field: &Field, column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    if !holds_json(field) {
        return Ok(Arc::clone(column));
    }
    if let (DataType::Struct(members), Some(held)) = (field.data_type(), column.as_struct_opt()) {
        let columns = members.iter().zip(held.columns());
        let columns: Vec<ArrayRef> = columns
            .map(|(member, column)| ordered(member, column))
            .collect::<Result<_, _>>()?;
        let nulls = held.nulls().cloned();
        return Ok(Arc::new(StructArray::try_new(members.clone(), columns, nulls)?));
    }
    if let (DataType::List(item), Some(lists)) = (field.data_type(), column.as_list_opt::<i32>()) {
        let items = ordered(item, lists.values())?;
        let (offsets, nulls) = (lists.offsets().clone(), lists.nulls().cloned());
        let lists = ListArray::try_new(Arc::clone(item), offsets, items, nulls)?;
        return Ok(Arc::new(lists));
    }
    let Some(texts) = column.as_string_opt::<i32>() else {
        return Ok(Arc::clone(column));
    };
    let texts = texts.iter().map(|text| {
        let text = text?;
        Some(in_order(text).map_or(Cow::Borrowed(text), Cow::Owned))
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

/// The text with the members of all its objects in the order of their names, or `None` if it is not JSON
/// without blanks. Members of the same name keep their order.
fn in_order(text: &str) -> Option<String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(0)?;
    if reader.at < text.len() {
        return None;
    }
    let mut written = String::with_capacity(text.len());
    value.write(&mut written);
    Some(written)
}

enum Value<'a> {
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
    Array(Vec<Value<'a>>),
    Text(Cow<'a, str>),
    /// A number, a truth value or null, as it was written.
    Plain(&'a str),
}

impl Value<'_> {
    fn write(&self, output: &mut String) {
        match self {
            Self::Object(members) => {
                output.push('{');
                for (place, (name, value)) in members.iter().enumerate() {
                    if place > 0 {
                        output.push(',');
                    }
                    json::append_string(name, output);
                    output.push(':');
                    value.write(output);
                }
                output.push('}');
            }
            Self::Array(elements) => {
                output.push('[');
                for (place, element) in elements.iter().enumerate() {
                    if place > 0 {
                        output.push(',');
                    }
                    element.write(output);
                }
                output.push(']');
            }
            Self::Text(text) => json::append_string(text, output),
            Self::Plain(text) => output.push_str(text),
        }
    }
}

/// Reads each byte once: reading the text of each member again for its own members would take the square of
/// the depth.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Value<'a>> {
        if depth > DEEPEST_NESTING {
            return None;
        }
        match self.text.as_bytes().get(self.at)? {
            b'{' => {
                let mut members = Vec::new();
                self.each(b'}', |reader| {
                    let name = reader.string()?;
                    reader.takes(b':').then_some(())?;
                    members.push((name, reader.value(depth + 1)?));
                    Some(())
                })?;
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                Some(Value::Object(members))
            }
            b'[' => {
                let mut elements = Vec::new();
                self.each(b']', |reader| {
                    elements.push(reader.value(depth + 1)?);
                    Some(())
                })?;
                Some(Value::Array(elements))
            }
            b'"' => self.string().map(Value::Text),
            _ => {
                let rest = self.text.get(self.at..)?;
                let length = rest.find([',', ']', '}']).unwrap_or(rest.len());
                self.at += length;
                Some(Value::Plain(rest.get(..length)?))
            }
        }
    }

    /// Reads what stands between the bracket at this place and `close`, part by part.
    fn each(&mut self, close: u8, mut part: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        if self.takes(close) {
            return Some(());
        }
        loop {
            part(self)?;
            if self.takes(close) {
                return Some(());
            }
            self.takes(b',').then_some(())?;
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        let end = json::string_end(self.text.as_bytes(), self.at)?;
        let raw = self.text.get(self.at..=end)?;
        self.at = end + 1;
        json::text(raw)
    }

    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.text.as_bytes().get(self.at) == Some(&byte);
        self.at += usize::from(is_next);
        is_next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_does_not_matter_and_everything_else_does() {
        for (left, right, expected) in [
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1}"#, true),
            (
                r#"{"a":[{"x":null,"y":{"p":1.50,"q":"s"}}],"b":{}}"#,
                r#"{"b":{},"a":[{"y":{"q":"s","p":1.50},"x":null}]}"#,
                true,
            ),
            (r#"{"A":"x/y"}"#, r#"{"\u0041":"x\/y"}"#, true),
            (r#"{"a":"}\",","b":[]}"#, r#"{"b":[],"a":"}\","}"#, true),
            (r#"{"a":1,"b":2}"#, r#"{"b":1,"a":2}"#, false),
            (r#"{"a":[1,2],"b":2}"#, r#"{"b":2,"a":[2,1]}"#, false),
            (r#"{"a":1.0,"b":2}"#, r#"{"b":2,"a":1.00}"#, false),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":"1"}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#, false),
            (r#"{"a":1,"b":2}"#, r#"{"b":2,"a":1},"#, false),
            ("[1,2]", "[1,2", false),
            ("\"a\\n\"", "\"a\\u000a\"", true),
        ] {
            assert_eq!(say_the_same(left, right), expected, "{left} {right}");
            assert_eq!(say_the_same(right, left), expected, "{right} {left}");
            assert!(say_the_same(left, left));
        }
    }

    #[test]
    fn what_is_nested_too_deep_is_compared_as_it_stands() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        let (one, other) = (deep(r#"{"a":1,"b":2}"#), deep(r#"{"b":2,"a":1}"#));
        assert!(say_the_same(&one, &one));
        assert!(!say_the_same(&one, &other));
    }
}
