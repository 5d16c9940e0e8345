//! JSON Schemas of records: made on first use, and all compiled into validators in the same way.

pub mod cost;

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// The JSON Schema (draft 2020-12) of one record. Few of some two hundred built-in ones are ever used, so
/// each is made on first use.
#[derive(Clone, Debug)]
pub struct RecordSchema(Arc<LazyLock<Value, Making>>);

type Making = Box<dyn FnOnce() -> Value + Send + Sync>;

impl RecordSchema {
    /// The schema that `make` returns.
    pub fn made_by(make: impl FnOnce() -> Value + Send + Sync + 'static) -> Self {
        Self(Arc::new(LazyLock::new(Box::new(make))))
    }
}

impl From<Value> for RecordSchema {
    fn from(schema: Value) -> Self {
        Self::made_by(|| schema)
    }
}

impl PartialEq for RecordSchema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || **self == **other
    }
}

impl Deref for RecordSchema {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

/// The most bytes that one compiled pattern may take. A pattern with nested repetitions takes more.
pub const PATTERN_BYTES: usize = 1 << 18;

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

/// Patterns that run in linear time, and stay small.
#[must_use]
pub fn linear_patterns() -> PatternOptions<jsonschema::Regex> {
    PatternOptions::regex()
        .size_limit(PATTERN_BYTES)
        .dfa_size_limit(PATTERN_BYTES)
}
