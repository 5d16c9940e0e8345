//! JSON Schemas of records: made on first use, and all compiled into validators in the same way.

pub mod cost;
mod patterns;
pub mod weighed;

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};

use jsonschema::{Draft, Validator};
use serde_json::Value;

pub use patterns::{PATTERN_BYTES, linear_patterns, pattern_memory};

/// The JSON Schema (draft 2020-12) of one record.
#[derive(Clone, Debug)]
pub struct RecordSchema(Held);

#[derive(Clone, Debug)]
enum Held {
    /// Few of some two hundred built-in ones are ever used, so each is made on first use, and stays.
    Value(Arc<LazyLock<Value, Making>>),
    /// There may be many own types, and a value takes many times as much memory as its text, which is read
    /// again each time: few need it.
    Text(Arc<str>),
}

type Making = Box<dyn FnOnce() -> Value + Send + Sync>;

impl RecordSchema {
    /// The schema that `make` returns.
    pub fn made_by(make: impl FnOnce() -> Value + Send + Sync + 'static) -> Self {
        Self(Held::Value(Arc::new(LazyLock::new(Box::new(make)))))
    }

    /// `schema`, kept as text.
    #[must_use]
    pub fn as_text(schema: Value) -> Self {
        let text = schema.to_string();
        // What would be read as something else, because it is nested too deeply to be read, stays as it is.
        match serde_json::from_str::<Value>(&text) {
            Ok(read) if read == schema => Self(Held::Text(text.into())),
            _ => schema.into(),
        }
    }

    /// The schema itself.
    #[must_use]
    pub fn value(&self) -> Cow<'_, Value> {
        match &self.0 {
            Held::Value(value) => Cow::Borrowed(value),
            // It was read before it was kept.
            Held::Text(text) => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        }
    }

    /// The text, if the schema is kept as one.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.0 {
            Held::Value(_) => None,
            Held::Text(text) => Some(text),
        }
    }
}

impl From<Value> for RecordSchema {
    fn from(schema: Value) -> Self {
        Self::made_by(|| schema)
    }
}

impl PartialEq for RecordSchema {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Held::Text(one), Held::Text(other)) => one == other,
            (Held::Value(one), Held::Value(other)) if Arc::ptr_eq(one, other) => true,
            _ => self.value() == other.value(),
        }
    }
}

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable schema (draft 2020-12): {0}")]
pub struct SchemaError(String);

/// The validator of `schema`. Draft 2020-12; nothing is fetched; patterns run in linear time, because people
/// may bring their own; formats are not checked, because our own reader reads times, and accepts more forms
/// than the format does.
pub fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    jsonschema::draft202012::meta::validate(schema).map_err(|error| SchemaError(error.to_string()))?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(linear_patterns())
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| SchemaError(error.to_string()))
}
