//! Texts that people write, checked for length and characters.
//!
//! Each type rejects invalid values when it is read, and its schema states the same rules.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::model::nul::has_nul;
use crate::model::text::{self, TextError};

/// Most characters of a name.
const LONGEST_NAME: usize = 256;
/// Most characters of a description or a note.
const LONGEST_PROSE: usize = 10_000;

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
    /// A short text of any form, kept as it was sent.
    Verbatim,
    verbatim,
    0,
    LONGEST_NAME,
    r"^[^\u0000]*$"
);
text!(
    /// A text of several lines.
    Prose,
    prose,
    0,
    LONGEST_PROSE,
    r"^[^\u0000]*$"
);

fn named(text: &str) -> Result<String, TextError> {
    text::name(text, LONGEST_NAME)
}

fn line(text: &str) -> Result<String, TextError> {
    text::line(text, LONGEST_NAME)
}

fn verbatim(text: &str) -> Result<String, TextError> {
    as_sent(text, LONGEST_NAME)
}

fn prose(text: &str) -> Result<String, TextError> {
    as_sent(text, LONGEST_PROSE)
}

fn as_sent(text: &str, most: usize) -> Result<String, TextError> {
    text::within(text, most)?;
    if has_nul(text) {
        return Err(TextError::Nul);
    }
    Ok(text.to_owned())
}
