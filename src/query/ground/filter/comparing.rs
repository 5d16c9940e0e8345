//! One field compared with the value of a text, which has to be of the kind that the field holds.
//!
//! Knows Arrow types, and a condition only to name it in errors; does not know where the field is stored.

use datafusion::arrow::datatypes::{DataType as ArrowType, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::functions_nested::expr_fn::array_has;
use datafusion::logical_expr::{Expr, Operator, binary_expr, cast, lit};
use uuid::Uuid;

use crate::model::time::parse_instant_in_query;

use super::condition::Condition;
use super::errors::FilterError;
use super::field::StoredField;
use super::whole::Whole;

/// Whether a field relates like this to the value of a text. A field without a value does not.
pub(super) fn compared(
    condition: &Condition,
    field: StoredField,
    operator: Operator,
    text: &str,
) -> Result<Expr, FilterError> {
    if field.holds.is_signed_integer() {
        return Ok(read_whole(condition, text)?.compared(field.expression, operator));
    }
    let value = literal(condition, &field.holds, text)?;
    let value_of_field = plain_text(field.expression, &field.holds);
    Ok(binary_expr(value_of_field, operator, lit(value)))
}

/// Whether a list has the value of a text.
pub(super) fn list_has(
    condition: &Condition,
    list: Expr,
    item: &ArrowType,
    text: &str,
) -> Result<Expr, FilterError> {
    if item.is_signed_integer() {
        return Ok(match read_whole(condition, text)? {
            Whole::At(number) => array_has(list, lit(number)),
            Whole::After(_) => lit(false),
        });
    }
    Ok(match literal(condition, item, text)? {
        // Lists keep the sign of a zero, which does not make it another number.
        ScalarValue::Float64(Some(0.0)) => array_has(list.clone(), lit(0.0)).or(array_has(list, lit(-0.0))),
        value => array_has(list, lit(value)),
    })
}

pub(super) const fn is_text(holds: &ArrowType) -> bool {
    matches!(
        holds,
        ArrowType::Utf8 | ArrowType::Utf8View | ArrowType::LargeUtf8 | ArrowType::Dictionary(_, _)
    )
}

/// Converts to plain strings, on which all comparisons of text run.
pub(super) fn plain_text(expression: Expr, holds: &ArrowType) -> Expr {
    if matches!(holds, ArrowType::Dictionary(_, _)) {
        cast(expression, ArrowType::Utf8)
    } else {
        expression
    }
}

pub(super) fn wrong_operator(condition: &Condition, holds: &'static str) -> FilterError {
    FilterError::WrongOperator {
        field: condition.field.clone(),
        operator: condition.operator.symbol(),
        holds,
    }
}

/// A whole number may be compared with any decimal one: `value>=2.5`.
fn read_whole(condition: &Condition, text: &str) -> Result<Whole, FilterError> {
    Whole::read(text).ok_or_else(|| wrong_type(condition, text, "number"))
}

fn literal(condition: &Condition, holds: &ArrowType, text: &str) -> Result<ScalarValue, FilterError> {
    let wrong = |expected| wrong_type(condition, text, expected);
    match holds {
        ArrowType::Float64 => match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(ScalarValue::Float64(Some(number))),
            _ => Err(wrong("number")),
        },
        ArrowType::Boolean => match text {
            "true" | "True" | "1" => Ok(ScalarValue::Boolean(Some(true))),
            "false" | "False" | "0" => Ok(ScalarValue::Boolean(Some(false))),
            _ => Err(wrong("boolean")),
        },
        ArrowType::Timestamp(TimeUnit::Microsecond, zone) => parse_instant_in_query(text)
            .map(|instant| ScalarValue::TimestampMicrosecond(Some(instant.micros()), zone.clone()))
            .map_err(|_| wrong("date-time")),
        ArrowType::FixedSizeBinary(16) => Uuid::parse_str(text)
            .map(|id| ScalarValue::FixedSizeBinary(16, Some(id.as_bytes().to_vec())))
            .map_err(|_| wrong("uuid")),
        _ => Ok(ScalarValue::Utf8(Some(text.to_owned()))),
    }
}

fn wrong_type(condition: &Condition, text: &str, expected: &'static str) -> FilterError {
    FilterError::WrongType {
        field: condition.field.clone(),
        value: text.to_owned(),
        expected,
    }
}
