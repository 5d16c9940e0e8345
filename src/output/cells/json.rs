//! Writes cells as JSON.

use super::super::encoder::LARGEST_ROW;
use super::super::numbers::{write_double, write_integer, write_single, write_unsigned};
use super::super::text::{write_hex, write_json_string};
use super::{Cells, Values};
use crate::model::uuid_text::write_hyphenated;

impl Cells {
    /// Writes the cell of a row. What has no JSON form (null, a float that is not finite) is `null`.
    pub(in super::super) fn write_json(&mut self, row: usize, out: &mut Vec<u8>) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(b"null");
            return;
        }
        match &mut self.values {
            Values::Null => out.extend_from_slice(b"null"),
            Values::Boolean(values) => {
                out.extend_from_slice(if values.value(row) { b"true" } else { b"false" });
            }
            Values::Integer(values) => write_integer(values.value(row), out),
            Values::Unsigned(values) => write_unsigned(values.value(row), out),
            Values::Single(values) => or_null(write_single(values.value(row), out), out),
            Values::Double(values) => or_null(write_double(values.value(row), out), out),
            Values::Text(text) | Values::Printed(text) => write_json_string(text.value(row), out),
            Values::Json(text) => write_raw(text.value(row), out),
            Values::Uuid(values) => {
                out.push(b'"');
                write_uuid(values.value(row), out);
                out.push(b'"');
            }
            Values::Bytes(values) => {
                out.push(b'"');
                write_hex(values.value(row), out);
                out.push(b'"');
            }
            Values::Instant { values, text, .. } => {
                out.push(b'"');
                text.write(values[row], out);
                out.push(b'"');
            }
            Values::Day { values, text } => {
                out.push(b'"');
                out.extend_from_slice(text.text(i64::from(values[row])));
                out.push(b'"');
            }
            Values::Dictionary(dictionary) => dictionary.write(row, out, b"null"),
            Values::List { offsets, items } => {
                out.push(b'[');
                for item in offsets[row]..offsets[row + 1] {
                    // The caller refuses a row of this length.
                    if out.len() > LARGEST_ROW {
                        break;
                    }
                    if item > offsets[row] {
                        out.push(b',');
                    }
                    items.write_json(item as usize, out);
                }
                out.push(b']');
            }
            Values::Structure(structure) => structure.write(row, out),
        }
    }
}

fn or_null(written: bool, out: &mut Vec<u8>) {
    if !written {
        out.extend_from_slice(b"null");
    }
}

/// Copies stored JSON text as it is. It is one line, since it was written without blanks.
fn write_raw(json: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(if json.is_empty() { b"null" } else { json.as_bytes() });
}

/// Sixteen bytes as the text of a UUID; other lengths, which the type rules out, as hex.
pub(super) fn write_uuid(bytes: &[u8], out: &mut Vec<u8>) {
    match <[u8; 16]>::try_from(bytes) {
        Ok(bytes) => write_hyphenated(bytes, out),
        Err(_) => write_hex(bytes, out),
    }
}
