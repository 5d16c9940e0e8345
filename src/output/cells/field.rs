//! Writes cells as fields of CSV.

use super::super::numbers::{write_double, write_integer, write_single, write_unsigned};
use super::super::text::{write_field, write_hex, write_quoted};
use super::json::write_uuid;
use super::{Cells, Values};

/// When a field is quoted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum FieldStyle {
    /// Where the text would otherwise be read differently; null is an empty field, empty text is `""`.
    QuoteWhereNeeded,
    /// Always; null is `""` too.
    QuoteAlways,
    /// As `QuoteWhereNeeded` and `QuoteAlways`, with an apostrophe before text that a spreadsheet would run
    /// as a formula.
    DefuseWhereNeeded,
    DefuseAlways,
}

/// The characters that a formula begins with, in one spreadsheet or another.
const BEGINNINGS: [u8; 6] = [b'=', b'+', b'-', b'@', b'\t', b'\r'];

impl FieldStyle {
    pub(in super::super) fn write(self, text: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::QuoteWhereNeeded => write_field(text, out),
            Self::QuoteAlways => write_quoted(text, out),
            Self::DefuseWhereNeeded | Self::DefuseAlways => {
                let plain = if self == Self::DefuseAlways {
                    Self::QuoteAlways
                } else {
                    Self::QuoteWhereNeeded
                };
                if text.first().is_some_and(|first| BEGINNINGS.contains(first)) {
                    plain.write(&[b"'", text].concat(), out);
                } else {
                    plain.write(text, out);
                }
            }
        }
    }

    /// Writes text that has nothing to escape.
    fn write_plain(self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        match self {
            Self::QuoteWhereNeeded | Self::DefuseWhereNeeded => write(out),
            Self::QuoteAlways | Self::DefuseAlways => {
                out.push(b'"');
                write(out);
                out.push(b'"');
            }
        }
    }

    pub(in super::super) const fn null(self) -> &'static [u8] {
        match self {
            Self::QuoteWhereNeeded | Self::DefuseWhereNeeded => b"",
            Self::QuoteAlways | Self::DefuseAlways => b"\"\"",
        }
    }
}

impl Cells {
    /// Writes the cell of a row. Lists and structs are JSON text; a float that is not finite is null.
    /// `scratch` is a reusable buffer; its content does not matter.
    pub(in super::super) fn write_field(
        &mut self,
        row: usize,
        style: FieldStyle,
        scratch: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            out.extend_from_slice(style.null());
            return;
        }
        match &mut self.values {
            Values::Null => out.extend_from_slice(style.null()),
            Values::Boolean(values) => {
                let text: &[u8] = if values.value(row) { b"true" } else { b"false" };
                style.write_plain(out, |out| out.extend_from_slice(text));
            }
            Values::Integer(values) => style.write_plain(out, |out| write_integer(values.value(row), out)),
            Values::Unsigned(values) => style.write_plain(out, |out| write_unsigned(values.value(row), out)),
            // If nothing is written, the style that always quotes yields `""` and the other an empty field:
            // both are null.
            Values::Single(values) => style.write_plain(out, |out| _ = write_single(values.value(row), out)),
            Values::Double(values) => style.write_plain(out, |out| _ = write_double(values.value(row), out)),
            Values::Json(text) if text.value(row).is_empty() => out.extend_from_slice(style.null()),
            Values::Text(text) | Values::Json(text) => style.write(text.value(row).as_bytes(), out),
            Values::Printed(text) => {
                style.write_plain(out, |out| out.extend_from_slice(text.value(row).as_bytes()));
            }
            Values::Uuid(values) => style.write_plain(out, |out| write_uuid(values.value(row), out)),
            Values::Bytes(values) if values.value(row).is_empty() => out.extend_from_slice(b"\"\""),
            Values::Bytes(values) => style.write_plain(out, |out| write_hex(values.value(row), out)),
            Values::Instant { values, text, .. } => {
                style.write_plain(out, |out| text.write(values[row], out));
            }
            Values::Day { values, text } => {
                style.write_plain(out, |out| {
                    out.extend_from_slice(text.text(i64::from(values[row])));
                });
            }
            Values::Dictionary(dictionary) => dictionary.write(row, out, style.null()),
            // The structure was made for this style.
            Values::Structure(structure) => structure.write(row, out),
            Values::List { .. } => {
                scratch.clear();
                self.write_json(row, scratch);
                style.write(scratch, out);
            }
        }
    }
}
