//! Moments of all years in queries.
//!
//! The engine compares a moment with a text or a date in nanoseconds, and takes `TIMESTAMP` for nanoseconds
//! too, which begin in 1677 and end in 2262: `start_date < '9999-12-31'` would be refused. So texts and dates
//! are brought to the type of what they are compared with, or stand beside in a `CASE`, and `TIMESTAMP` has
//! the microseconds of all other moments. Seconds of moments are exact. Knows expressions only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, TimeUnit};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ExprSchema, Result};
use datafusion::logical_expr::expr::{BinaryExpr, Cast};
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::sqlparser::ast;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan, Operator};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::extract::Extract;

/// Takes `TIMESTAMP` without a precision for microseconds.
#[derive(Debug)]
pub(in crate::query::sql) struct Microseconds;

impl TypePlanner for Microseconds {
    fn plan_type_field(&self, asked: &ast::DataType) -> Result<Option<FieldRef>> {
        let zone = match asked {
            ast::DataType::Timestamp(None, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone) => {
                None
            }
            ast::DataType::Timestamp(None, _) => Some("UTC".into()),
            _ => return Ok(None),
        };
        let moments = DataType::Timestamp(TimeUnit::Microsecond, zone);
        Ok(Some(Arc::new(Field::new("", moments, true))))
    }
}

/// The plan, in which texts and dates have the type of the moments that they are beside.
pub(in crate::query::sql) fn bring_to_moments(plan: LogicalPlan) -> Result<LogicalPlan> {
    change_steps(plan, &mut |plan| {
        let schema = merge_schema(&plan.inputs());
        rewrite_keeping_names(plan, |expr| Ok(with_moments(expr, &schema)))
    })
}

fn with_moments(expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
    match expr {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(op) => {
            let types = (type_of(&left, schema), type_of(&right, schema));
            let left = brought_to(types.1.as_ref(), *left, schema);
            let right = brought_to(types.0.as_ref(), *right, schema);
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(
                Box::new(left),
                op,
                Box::new(right),
            )))
        }
        Expr::Between(mut between) => {
            let moments = type_of(&between.expr, schema);
            *between.low = brought_to(moments.as_ref(), *between.low, schema);
            *between.high = brought_to(moments.as_ref(), *between.high, schema);
            Transformed::yes(Expr::Between(between))
        }
        Expr::InList(mut listed) => {
            let moments = type_of(&listed.expr, schema);
            let list = std::mem::take(&mut listed.list).into_iter();
            listed.list = list
                .map(|expr| brought_to(moments.as_ref(), expr, schema))
                .collect();
            Transformed::yes(Expr::InList(listed))
        }
        Expr::Case(mut case) => {
            let compared = case.expr.iter_mut();
            let compared = compared.chain(case.when_then_expr.iter_mut().map(|(when, _)| when));
            brought_together(compared.map(Box::as_mut).collect(), schema);
            let chosen = case.when_then_expr.iter_mut().map(|(_, then)| then);
            let chosen = chosen.chain(case.else_expr.iter_mut());
            brought_together(chosen.map(Box::as_mut).collect(), schema);
            Transformed::yes(Expr::Case(case))
        }
        Expr::ScalarFunction(call) => match Extract::epoch(&call) {
            Some(exact) => Transformed::yes(exact),
            None => Transformed::no(Expr::ScalarFunction(call)),
        },
        other => Transformed::no(other),
    }
}

/// Whether an operator compares two values.
pub(in crate::query::sql) const fn compares(operator: Operator) -> bool {
    matches!(
        operator,
        Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq
            | Operator::IsDistinctFrom
            | Operator::IsNotDistinctFrom
    )
}

/// What cannot be typed is refused by whoever plans it.
fn type_of(expr: &Expr, schema: &dyn ExprSchema) -> Option<DataType> {
    expr.get_type(schema).ok()
}

/// Brings values to the type of the first moments among them.
fn brought_together(values: Vec<&mut Expr>, schema: &dyn ExprSchema) {
    let are_moments = |data_type: &DataType| matches!(data_type, DataType::Timestamp(..));
    let moments = values
        .iter()
        .find_map(|value| type_of(value, schema).filter(are_moments));
    for value in values {
        *value = brought_to(moments.as_ref(), std::mem::take(value), schema);
    }
}

/// A text that is written down, or any date, as one of `moments`, if these are some.
fn brought_to(moments: Option<&DataType>, expr: Expr, schema: &dyn ExprSchema) -> Expr {
    let Some(moments @ DataType::Timestamp(..)) = moments else {
        return expr;
    };
    let is_written = matches!(&expr, Expr::Literal(value, _) if value.data_type().is_string());
    if is_written || matches!(type_of(&expr, schema), Some(DataType::Date32)) {
        Expr::Cast(Cast::new(Box::new(expr), moments.clone()))
    } else {
        expr
    }
}
