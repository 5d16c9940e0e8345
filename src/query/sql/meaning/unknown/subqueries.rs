//! Which expressions are or contain subqueries.

use datafusion::common::tree_node::TreeNode as _;
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::Expr;

pub(super) const fn is_subquery(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) | Expr::ScalarSubquery(_)
    )
}

pub(super) fn has_subqueries(expr: &Expr) -> Result<bool> {
    expr.exists(|part| {
        Ok(matches!(
            part,
            Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_)
        ))
    })
}

/// Refuses what can only be a condition on rows.
pub(super) fn refuse_subqueries(expr: &Expr) -> Result<()> {
    if has_subqueries(expr)? {
        return plan_err!(
            "EXISTS, IN, ANY and ALL with a query belong in WHERE, HAVING, or the ON of an inner join; \
             join the query, or count its rows, to have it as a value"
        );
    }
    Ok(())
}
