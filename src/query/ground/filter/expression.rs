//! One condition as an expression over the rows of one type. Knows no other condition.

use datafusion::arrow::datatypes::DataType as ArrowType;
use datafusion::logical_expr::{Expr, Operator, lit};
use datafusion::prelude::not;

use crate::model::registry::{DataType, respelt};

use super::comparing::{compared, is_text, list_has, plain_text, wrong_operator};
use super::condition::{Comparand, Comparison, Condition};
use super::errors::FilterError;
use super::field::{StoredField, field_of, unknown_field};
use super::label;

/// The expression that is true for rows that meet the condition; an error if it does not fit the type.
pub(super) fn bind_one(condition: &Condition, data_type: &DataType) -> Result<Expr, FilterError> {
    let canonical = match &condition.value {
        Comparand::Text(text) if data_type.holds_uuids(&condition.field) => respelt(text),
        _ => None,
    };
    let (Some(canonical), Some(is_equal)) = (canonical, condition.operator.requires_equality()) else {
        return expression_of(condition, data_type);
    };
    // Ids are stored in one spelling; older rows may still have the spelling of the request.
    let respelt = Condition {
        value: Comparand::Text(canonical),
        ..condition.clone()
    };
    let (one, other) = (
        expression_of(&respelt, data_type)?,
        expression_of(condition, data_type)?,
    );
    Ok(if is_equal { one.or(other) } else { one.and(other) })
}

/// The expression of a condition for its value just as it was asked.
fn expression_of(condition: &Condition, data_type: &DataType) -> Result<Expr, FilterError> {
    let field =
        field_of(&condition.field, data_type).ok_or_else(|| unknown_field(&condition.field, &[data_type]))?;
    let text = match (&condition.value, condition.operator) {
        (Comparand::Null, Comparison::NotEqual) => return Ok(field.expression.is_not_null()),
        (Comparand::Null, _) => return Ok(field.expression.is_null()),
        (Comparand::Text(text), _) => text,
    };
    match (&field.holds, condition.operator) {
        (_, Comparison::Label(comparison)) => label::bind(condition, comparison, field, text),
        (ArrowType::List(item), _) if item.data_type().is_nested() => Err(wrong_operator(
            condition,
            "a list of structures; only null can be looked for",
        )),
        (ArrowType::List(item), _) => membership(condition, field.expression, item.data_type(), text),
        (ArrowType::Struct(_), _) => Err(wrong_operator(
            condition,
            "a structure; name one of its fields after a dot",
        )),
        (_, Comparison::Contains) => contains(condition, field, text),
        (_, Comparison::Equal | Comparison::Belongs) => compared(condition, field, Operator::Eq, text),
        (_, Comparison::NotEqual) => compared(condition, field, Operator::NotEq, text),
        (_, Comparison::LessOrEqual) => compared(condition, field, Operator::LtEq, text),
        (_, Comparison::GreaterOrEqual) => compared(condition, field, Operator::GtEq, text),
        (_, Comparison::Less) => compared(condition, field, Operator::Lt, text),
        (_, Comparison::Greater) => compared(condition, field, Operator::Gt, text),
    }
}

/// Whether a list has the value of a text, or has not.
fn membership(condition: &Condition, list: Expr, item: &ArrowType, text: &str) -> Result<Expr, FilterError> {
    let holds = list_has(condition, list.clone(), item, text)?;
    match condition.operator {
        Comparison::Equal => Ok(holds),
        Comparison::NotEqual => Ok(not(holds).or(list.is_null())),
        _ => Err(wrong_operator(condition, "a list; use = or !=")),
    }
}

/// Whether a text has another one in it, ignoring case.
fn contains(condition: &Condition, field: StoredField, text: &str) -> Result<Expr, FilterError> {
    if !is_text(&field.holds) {
        return Err(wrong_operator(condition, "no text"));
    }
    // Escaped by hand and matched with an explicit escape, so that `%` and `_` in the request stand for
    // themselves.
    let pattern = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Ok(plain_text(field.expression, &field.holds).ilike(lit(format!("%{pattern}%"))))
}
