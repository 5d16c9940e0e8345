//! Rewrites expressions of a plan under the names that their columns had before.
//!
//! A column that has no alias is named by what computes it, and the steps above find it by that name. So what
//! is computed in another way has to keep it. Knows plans and expressions; knows nothing of what is rewritten
//! or why.

use datafusion::common::Result;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{Expr, LogicalPlan};

/// One step of a plan, in which `rewrite` was given each expression after the expressions inside it.
pub(super) fn rewrite_keeping_names(
    plan: LogicalPlan,
    mut rewrite: impl FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    keeping_names(plan, &mut rewrite)
}

/// The same; it is compiled once, and not anew for whatever rewrites.
fn keeping_names(
    plan: LogicalPlan,
    rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let rewritten = expr.transform_up(&mut *rewrite)?;
        Ok(rewritten.update_data(|expr| name.restore(expr)))
    })
}
