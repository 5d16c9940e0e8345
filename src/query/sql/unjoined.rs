//! Refuses subqueries that depend on the row around them and could not be joined with it.
//!
//! The engine answers such subqueries by joins, and knows none for some. It says so only while it makes a
//! plan to run, in its own words. Knows plans, and places in the text.

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Location, Result, Span};
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::tokenizer;

use super::errors::SqlError;
use super::text::QueryText;

const UNJOINED: &str = "a subquery here depends on the row around it in a way that cannot be answered; compare \
                        its rows with that row by = alone and leave LIMIT out, or join its tables";

/// Why an optimized plan cannot run, if there is such a subquery in it.
pub(super) fn refusal(plan: &LogicalPlan, text: &QueryText) -> Result<Option<SqlError>> {
    let Some(left) = left_over(plan)? else {
        return Ok(None);
    };
    // What it selects stands behind the word that it begins with.
    let place = first_column(&left)?.and_then(|Location { line, column }| {
        text.word_before(tokenizer::Location { line, column }, "SELECT")
    });
    Ok(Some(SqlError {
        place,
        message: UNJOINED.to_owned(),
    }))
}

fn left_over(plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let mut left = None;
    plan.apply_with_subqueries(|plan| {
        if let LogicalPlan::Subquery(subquery) = plan {
            left = Some(subquery.subquery.as_ref().clone());
            return Ok(TreeNodeRecursion::Stop);
        }
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                let subquery = match part {
                    Expr::Exists(exists) => &exists.subquery,
                    Expr::InSubquery(within) => &within.subquery,
                    Expr::SetComparison(compared) => &compared.subquery,
                    Expr::ScalarSubquery(value) if !value.outer_ref_columns.is_empty() => value,
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                left = Some(subquery.subquery.as_ref().clone());
                Ok(TreeNodeRecursion::Stop)
            })
        })
    })?;
    Ok(left)
}

/// The first place of a column in a query, but not in those that it reads from.
fn first_column(query: &LogicalPlan) -> Result<Option<Location>> {
    let mut first: Option<Span> = None;
    query.apply(|plan| {
        if matches!(plan, LogicalPlan::SubqueryAlias(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        plan.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Expr::Column(column) = part {
                    let places = column.spans().iter().copied();
                    first = first.into_iter().chain(places).min_by_key(|span| span.start);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(first.map(|span| span.start))
}
