//! What a subquery names of the row around it. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::subqueries::is_subquery;
use crate::query::sql::walking::change_steps;

/// A value of the query around a subquery, as it is named inside.
pub(super) fn as_outer(value: Expr, schema: &DFSchema) -> Result<Expr> {
    let outer = value.transform_up(|expr| match expr {
        Expr::Column(column) => {
            let field = schema.qualified_field_from_column(&column)?.1;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(
                Arc::clone(field),
                column,
            )))
        }
        expr if is_subquery(&expr) => {
            plan_err!("a subquery is compared with another one; name the first in a query of its own")
        }
        expr => Ok(Transformed::no(expr)),
    })?;
    Ok(outer.data)
}

/// The plan, in which whatever a subquery names of the row around it may be null. What is planned later
/// looks at columns again, but not at what subqueries once took them for.
pub(super) fn with_nulls(plan: LogicalPlan) -> Result<LogicalPlan> {
    change_steps(plan, &mut |plan| {
        plan.map_expressions(|expr| {
            expr.transform_up(|expr| match expr {
                Expr::OuterReferenceColumn(field, column) if !field.is_nullable() => {
                    let field = Arc::new(field.as_ref().clone().with_nullable(true));
                    Ok(Transformed::yes(Expr::OuterReferenceColumn(field, column)))
                }
                expr => Ok(Transformed::no(expr)),
            })
        })
    })
}
