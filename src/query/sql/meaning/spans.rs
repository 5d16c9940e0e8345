//! Spans of time by their length.
//!
//! The difference of two times counts units of time. An interval that is written down has months, days and
//! nanoseconds, which the engine compares one after the other: to it a day is longer than 36 hours. In SQL a
//! span has one length, in which a month has 30 days and a day 24 hours, so spans are compared by that, and
//! what orders them otherwise is refused. Of a difference, the parts are its days and the time beside these.
//! Knows plans and expressions only.

pub(super) mod length;
mod written;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, ExprSchemable as _, LogicalPlan};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

use super::extract::{EXTRACTING_FUNCTION, Extract};
use super::moments::compares;
use length::length_of;
pub(in crate::query::sql) use written::WrittenSpans;
use written::as_interval;

/// Functions that return the first or the last of what they are given.
const CHOOSING_FUNCTIONS: [&str; 4] = ["min", "max", "least", "greatest"];

/// The plan, in which spans are compared by their length.
pub(in crate::query::sql) fn compare_by_length(plan: LogicalPlan) -> Result<LogicalPlan> {
    change_steps(plan, &mut |plan| {
        let schema = merge_schema(&plan.inputs());
        let measured = rewrite_keeping_names(plan, |expr| measured_expr(expr, &schema))?;
        Ok(measured.update_data(|plan| sorted(plan, &schema)))
    })
}

fn measured_expr(mut expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let is_measured = match &mut expr {
        // Chains grow on the left, and the right side alone tells nearly always that there is no span.
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if compares(*op) => {
            measure([right.as_mut(), left.as_mut()], schema)
        }
        Expr::Between(between) => measure(
            [between.expr.as_mut(), between.low.as_mut(), between.high.as_mut()],
            schema,
        ),
        Expr::InList(listed) => measure(
            std::iter::once(listed.expr.as_mut()).chain(listed.list.iter_mut()),
            schema,
        ),
        Expr::Case(case) => match &mut case.expr {
            Some(operand) => {
                let cases = case.when_then_expr.iter_mut().map(|(when, _)| when.as_mut());
                measure(std::iter::once(operand.as_mut()).chain(cases), schema)
            }
            None => false,
        },
        Expr::AggregateFunction(call) => {
            refuse_choosing(call.func.name(), &call.params.args, schema)?;
            false
        }
        Expr::WindowFunction(call) => {
            refuse_choosing(call.fun.name(), &call.params.args, schema)?;
            false
        }
        Expr::ScalarFunction(call) => {
            refuse_choosing(call.func.name(), &call.args, schema)?;
            let of_difference = match call.args.get(1) {
                Some(span)
                    if call.func.name() == EXTRACTING_FUNCTION
                        && kind(span, schema) == Some(Kind::Difference) =>
                {
                    Extract::part_of_difference(call)?
                }
                _ => None,
            };
            return Ok(match of_difference {
                Some(part) => Transformed::yes(part),
                None => Transformed::no(expr),
            });
        }
        _ => false,
    };
    Ok(if is_measured {
        Transformed::yes(expr)
    } else {
        Transformed::no(expr)
    })
}

/// What may be compared with a span.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Interval,
    Difference,
    Written,
    Null,
}

fn kind(expr: &Expr, schema: &DFSchema) -> Option<Kind> {
    let data_type = match expr {
        Expr::Literal(value, _) if value.data_type().is_string() => return Some(Kind::Written),
        Expr::Literal(value, _) => value.data_type(),
        // What cannot be typed is refused by whoever plans it.
        expr => expr.get_type(schema).ok()?,
    };
    match data_type {
        DataType::Interval(_) => Some(Kind::Interval),
        DataType::Duration(_) => Some(Kind::Difference),
        DataType::Null => Some(Kind::Null),
        _ => None,
    }
}

/// Replaces spans that are compared with each other by their lengths, and returns whether it did. Differences
/// are alike, and stay as they are among themselves.
fn measure<'a>(compared: impl IntoIterator<Item = &'a mut Expr>, schema: &DFSchema) -> bool {
    let mut spans: Vec<(&mut Expr, Kind)> = Vec::new();
    for expr in compared {
        let Some(kind) = kind(expr, schema) else {
            return false;
        };
        spans.push((expr, kind));
    }
    let has = |sought: Kind| spans.iter().any(|(_, kind)| *kind == sought);
    let is_measured = has(Kind::Interval) || (has(Kind::Difference) && has(Kind::Written));
    if !is_measured {
        return false;
    }
    for (span, kind) in spans {
        let value = std::mem::take(span);
        *span = length_of(match kind {
            Kind::Written => as_interval(value),
            _ => value,
        });
    }
    true
}

/// A step of a plan, which sorts intervals by their length if it sorts.
fn sorted(mut plan: LogicalPlan, schema: &DFSchema) -> LogicalPlan {
    if let LogicalPlan::Sort(sort) = &mut plan {
        for key in &mut sort.expr {
            if kind(&key.expr, schema) == Some(Kind::Interval) {
                key.expr = length_of(std::mem::take(&mut key.expr));
            }
        }
    }
    plan
}

/// Refuses to choose among intervals, of which the engine would choose another.
fn refuse_choosing(function: &str, values: &[Expr], schema: &DFSchema) -> Result<()> {
    if !CHOOSING_FUNCTIONS.contains(&function) {
        return Ok(());
    }
    let mut kinds = values.iter().map(|value| kind(value, schema));
    if kinds.any(|kind| kind == Some(Kind::Interval)) {
        return plan_err!(
            "'{function}' cannot be used on intervals; use it on differences of times, or on their seconds: \
             extract(epoch FROM …)"
        );
    }
    Ok(())
}
