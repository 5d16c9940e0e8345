//! A text beside a span of time that it is compared with, which is one as well.
//!
//! The planner asks for the type of what a query selects before the plan is there, and finds none for a span
//! beside a text. So the text becomes an interval where the comparison is planned. Knows expressions only.

use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::Cast;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::sqlparser::ast::BinaryOperator;
use datafusion::logical_expr::{Expr, ExprSchemable as _};

/// Plans comparisons of spans with texts.
#[derive(Debug)]
pub(in crate::query::sql) struct WrittenSpans;

impl ExprPlanner for WrittenSpans {
    fn plan_binary_op(
        &self,
        mut planned: RawBinaryExpr,
        schema: &DFSchema,
    ) -> Result<PlannerResult<RawBinaryExpr>> {
        if compares(&planned.op) {
            if is_written(&planned.left) && is_span(&planned.right, schema) {
                planned.left = as_interval(planned.left);
            } else if is_written(&planned.right) && is_span(&planned.left, schema) {
                planned.right = as_interval(planned.right);
            }
        }
        Ok(PlannerResult::Original(planned))
    }
}

/// A text as an interval.
pub(super) fn as_interval(text: Expr) -> Expr {
    Expr::Cast(Cast::new(
        Box::new(text),
        DataType::Interval(IntervalUnit::MonthDayNano),
    ))
}

const fn compares(operator: &BinaryOperator) -> bool {
    matches!(
        operator,
        BinaryOperator::Eq
            | BinaryOperator::NotEq
            | BinaryOperator::Lt
            | BinaryOperator::LtEq
            | BinaryOperator::Gt
            | BinaryOperator::GtEq
    )
}

fn is_written(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal(value, _) if value.data_type().is_string())
}

/// What cannot be typed is refused by whoever plans it.
fn is_span(expr: &Expr, schema: &DFSchema) -> bool {
    matches!(
        expr.get_type(schema),
        Ok(DataType::Interval(_) | DataType::Duration(_))
    )
}
