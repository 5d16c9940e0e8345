//! JSON Schemas of records: turned into validators in one way, wherever they come from.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable schema (draft 2020-12): {0}")]
pub struct SchemaError(String);

/// The validator of `schema`. Draft 2020-12; nothing is fetched; patterns run in linear time, because people
/// may bring their own; formats are not checked here, because times are read by our own reader, which takes
/// more forms than the format does.
pub fn compile(schema: &Value) -> Result<Validator, SchemaError> {
    jsonschema::draft202012::meta::validate(schema).map_err(|error| SchemaError(error.to_string()))?;
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(PatternOptions::regex())
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| SchemaError(error.to_string()))
}
