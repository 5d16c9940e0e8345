//! Writes constants on the right of what they are compared with, in the conditions of joins.
//!
//! The optimizer derives conditions on one side of a join from those on the other, and takes `2 = n` and
//! `n = 2` for conditions that exclude each other. It brings all others into one form itself. Knows plans and
//! expressions only.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::query::sql::meaning::moments::compares;
use crate::query::sql::walking::change_steps;

/// The plan, with constants on the right in the conditions of its joins.
pub(in crate::query::sql) fn write_constants_last(plan: LogicalPlan) -> Result<LogicalPlan> {
    change_steps(plan, &mut |plan| {
        let LogicalPlan::Join(mut join) = plan else {
            return Ok(Transformed::no(plan));
        };
        if let Some(condition) = join.filter.take() {
            join.filter = Some(condition.transform_up(|expr| Ok(turned(expr)))?.data);
        }
        Ok(Transformed::yes(LogicalPlan::Join(join)))
    })
}

fn turned(expr: Expr) -> Transformed<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expr else {
        return Transformed::no(expr);
    };
    let is_constant = |expr: &Expr| expr.column_refs().is_empty();
    match op.swap() {
        Some(turned) if compares(op) && is_constant(&left) && !is_constant(&right) => {
            Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(right, turned, left)))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}
