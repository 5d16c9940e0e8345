//! Describes how a record violates its schema, in words and with the place.
//!
//! Pure functions from the validator's findings to `Fault`s. Knows JSON Schema; knows nothing of records.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::LocationSegment;
use serde_json::Value;

use crate::model::faults::{Fault, LocPart};

/// More than this many faults of one record help nobody.
pub(super) const MOST_FAULTS_OF_A_RECORD: usize = 100;

/// Adds the faults for one finding; `at` is the place of the document that was validated.
pub(super) fn from_schema(error: &ValidationError<'_>, at: &[LocPart], faults: &mut Vec<Fault>) {
    let mut loc = at.to_vec();
    loc.extend(error.instance_path().into_iter().map(|segment| match segment {
        LocationSegment::Property(name) => LocPart::Name(name.to_string()),
        LocationSegment::Index(index) => LocPart::Index(index),
    }));
    let instance = error.instance();
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            loc.push(LocPart::Name(name.to_owned()));
            faults.push(Fault::new(loc, "missing", format!("{name} is missing")));
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            match closest(context, error.instance_path().as_str()) {
                Some(errors) => errors.iter().for_each(|error| from_schema(error, at, faults)),
                None => faults.push(shown(
                    Fault::new(loc, keyword(error.kind()), message(error)),
                    instance,
                )),
            }
        }
        kind => faults.push(shown(Fault::new(loc, keyword(kind), message(error)), instance)),
    }
}

/// Of several alternatives for a value, the only one that it came close to: the others require another type
/// of value.
fn closest<'e>(
    ways: &'e [Vec<ValidationError<'static>>],
    place: &str,
) -> Option<&'e [ValidationError<'static>]> {
    let wants_another_type = |errors: &[ValidationError<'static>]| {
        errors.iter().any(|error| {
            matches!(error.kind(), ValidationErrorKind::Type { .. })
                && error.instance_path().as_str() == place
        })
    };
    let mut tried = ways
        .iter()
        .map(Vec::as_slice)
        .filter(|errors| !wants_another_type(errors));
    match (tried.next(), tried.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

fn shown(fault: Fault, value: &Value) -> Fault {
    match value {
        Value::Array(_) | Value::Object(_) => fault,
        single => fault.with_value(single.clone()),
    }
}

fn message(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(name) => name.to_string(),
                TypeKind::Multiple(names) => names
                    .iter()
                    .map(|name| name.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            format!("expected {expected}, found {}", type_name(error.instance()))
        }
        ValidationErrorKind::Format { format } if format == "date-time" => {
            "not a date and time; send it like 2024-01-24T00:00:00Z or 2024-01-24T00:00:00+01:00".to_owned()
        }
        ValidationErrorKind::Format { format } => format!("not a valid {format}"),
        _ => error.masked().to_string(),
    }
}

pub(super) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

const fn keyword(kind: &ValidationErrorKind) -> &'static str {
    match kind {
        ValidationErrorKind::Required { .. } => "missing",
        ValidationErrorKind::Type { .. } => "type",
        ValidationErrorKind::Format { .. } => "format",
        ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => "enum",
        ValidationErrorKind::Minimum { .. } | ValidationErrorKind::ExclusiveMinimum { .. } => "minimum",
        ValidationErrorKind::Maximum { .. } | ValidationErrorKind::ExclusiveMaximum { .. } => "maximum",
        ValidationErrorKind::MinLength { .. } | ValidationErrorKind::MaxLength { .. } => "length",
        ValidationErrorKind::MinItems { .. } | ValidationErrorKind::MaxItems { .. } => "items",
        ValidationErrorKind::Pattern { .. } => "pattern",
        ValidationErrorKind::AdditionalProperties { .. }
        | ValidationErrorKind::UnevaluatedProperties { .. } => "undeclared",
        ValidationErrorKind::AnyOf { .. }
        | ValidationErrorKind::OneOfNotValid { .. }
        | ValidationErrorKind::OneOfMultipleValid { .. } => "any_of",
        _ => "schema",
    }
}
