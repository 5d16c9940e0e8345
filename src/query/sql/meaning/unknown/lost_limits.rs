//! Limits that the engine would leave out where a subquery is joined with the row around it. Knows nothing
//! but plans.

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Result, plan_err};
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::{Expr, FetchType, LogicalPlan, SkipType};

/// Refuses limits of `EXISTS` that matter and would be left out: of rows that depend on the row around them,
/// and of what comes after such rows. Returns whether there were any.
///
/// `any`: it only matters whether there is a row. `is_about_outer`: there were such rows before.
pub(super) fn refuse_lost_limits(rows: &LogicalPlan, any: bool, is_about_outer: bool) -> Result<bool> {
    match rows {
        // What stands beside LATERAL is joined otherwise.
        LogicalPlan::Subquery(_) => Ok(is_about_outer),
        LogicalPlan::Limit(limit) => {
            let is_harmless = any && matches!(limit.get_skip_type()?, SkipType::Literal(0));
            let is_about_outer = refuse_lost_limits(&limit.input, is_harmless, is_about_outer)?;
            // No rows at all stay none.
            let is_of_none = matches!(limit.get_fetch_type()?, FetchType::Literal(Some(0)));
            if is_about_outer && !is_harmless && !is_of_none {
                return plan_err!(
                    "a subquery that depends on the row around it has OFFSET, or LIMIT where more matters \
                     than whether there is a row; number its rows with row_number() in a query of its own, \
                     and join that"
                );
            }
            Ok(is_about_outer)
        }
        LogicalPlan::Filter(filter) => {
            let is_about_outer = refuse_lost_limits(&filter.input, false, is_about_outer)?;
            if is_about_outer {
                // These are joined with what is filtered.
                filter.predicate.apply(|part| {
                    if let Expr::Exists(Exists { subquery, .. })
                    | Expr::InSubquery(InSubquery { subquery, .. }) = part
                    {
                        refuse_lost_limits(&subquery.subquery, matches!(part, Expr::Exists(_)), true)?;
                    }
                    Ok(TreeNodeRecursion::Continue)
                })?;
            }
            Ok(is_about_outer || filter.predicate.contains_outer())
        }
        rows => {
            let any = any
                && match rows {
                    LogicalPlan::Projection(_)
                    | LogicalPlan::SubqueryAlias(_)
                    | LogicalPlan::Sort(_)
                    | LogicalPlan::Distinct(_)
                    | LogicalPlan::Window(_) => true,
                    LogicalPlan::Aggregate(aggregate) => !aggregate.group_expr.is_empty(),
                    _ => false,
                };
            let mut is_about_outer = is_about_outer;
            for input in rows.inputs() {
                is_about_outer = refuse_lost_limits(input, any, is_about_outer)?;
            }
            Ok(is_about_outer)
        }
    }
}
