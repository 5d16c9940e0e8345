//! Texts that people write, checked for length and characters. Names are stored in Unicode's composed form
//! (NFC), so that names that look the same are the same.
//!
//! Each type rejects invalid values when it is read, and its schema states the same rules.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization as _;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// Most characters of a name.
const LONGEST_NAME: usize = 256;
/// Most characters of a description or a note.
const LONGEST_PROSE: usize = 10_000;

/// Why a text cannot be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextError {
    #[error("expected at least one character")]
    Empty,
    #[error("expected at most {most} characters, found {found}")]
    TooLong { most: usize, found: usize },
    #[error("control characters are not allowed")]
    Control,
    #[error("the character U+0000 cannot be stored")]
    Nul,
    #[error("blanks at the start or end are not allowed")]
    Blanks,
}

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $check:expr, $least:expr, $most:expr, $pattern:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String")]
        pub struct $name(String);

        impl $name {
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = TextError;

            fn try_from(text: String) -> Result<Self, TextError> {
                $check(&text).map(Self)
            }
        }

        impl From<$name> for String {
            fn from(text: $name) -> Self {
                text.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(&self.0)
            }
        }

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                ObjectBuilder::new()
                    .schema_type(Type::String)
                    .min_length(Some($least))
                    .max_length(Some($most))
                    .pattern(Some($pattern))
                    .into()
            }
        }

        impl ToSchema for $name {
            fn name() -> Cow<'static, str> {
                Cow::Borrowed(stringify!($name))
            }
        }
    };
}

text!(
    /// A name: a line of text without surrounding blanks.
    Name,
    named,
    1,
    LONGEST_NAME,
    r"^[^\s\u0000-\u001f\u007f-\u009f]([^\u0000-\u001f\u007f-\u009f]*[^\s\u0000-\u001f\u007f-\u009f])?$"
);
text!(
    /// A line of text that may be empty.
    Line,
    line,
    0,
    LONGEST_NAME,
    r"^[^\u0000-\u001f\u007f-\u009f]*$"
);
text!(
    /// A text of several lines.
    Prose,
    prose,
    0,
    LONGEST_PROSE,
    r"^[^\u0000]*$"
);

fn within(text: &str, most: usize) -> Result<(), TextError> {
    // A character has at least one byte, so texts of at most `most` bytes need not be counted.
    let found = if text.len() <= most {
        0
    } else {
        text.chars().count()
    };
    if found > most {
        return Err(TextError::TooLong { most, found });
    }
    Ok(())
}

fn named(text: &str) -> Result<String, TextError> {
    if text.is_empty() {
        return Err(TextError::Empty);
    }
    if text.trim().len() != text.len() {
        return Err(TextError::Blanks);
    }
    line(text)
}

fn line(text: &str) -> Result<String, TextError> {
    within(text, LONGEST_NAME)?;
    if text.chars().any(char::is_control) {
        return Err(TextError::Control);
    }
    Ok(text.nfc().collect())
}

fn prose(text: &str) -> Result<String, TextError> {
    within(text, LONGEST_PROSE)?;
    if text.contains('\0') {
        return Err(TextError::Nul);
    }
    Ok(text.to_owned())
}
