//! Refuses subqueries about the row around them that would mean something else once they are joined with it.
//!
//! The engine takes the conditions that refer outside out of a subquery, joins what is left of it with the
//! rows around it, and compares then. So what stands above such a condition sees what is found for all rows
//! around it and not for one: it numbers or matches rows that are meant for others. Behind `LATERAL`, a
//! row is kept where the subquery aggregates, also if a step above the aggregate leaves it out. And of two
//! queries around a subquery, only the inner one is joined with it. Where nothing else says the same, such
//! subqueries are refused, and so are those that the engine could not join. Knows plans and expressions only.

use datafusion::common::tree_node::{TreeNode as _, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result, plan_err};
use datafusion::logical_expr::utils::{merge_schema, split_conjunction};
use datafusion::logical_expr::{Expr, Join, JoinType, LogicalPlan, Subquery, Window};

/// Refuses a plan of which a subquery would lose its meaning.
pub(in crate::query::sql) fn refuse_lost(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|step| {
        if let LogicalPlan::Subquery(lateral) = step {
            refuse_mixed_rows(&lateral.subquery)?;
            refuse_kept_rows(&lateral.subquery, true, false)?;
        }
        step.apply_expressions(|expr| {
            expr.apply(|part| {
                if let Some(Subquery { subquery, .. }) = subquery_of(part) {
                    refuse_far_names(subquery, &merge_schema(&step.inputs()))?;
                    refuse_mixed_rows(subquery)?;
                    refuse_lost(subquery)?;
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

/// Refuses a plan that is optimized and has a subquery about the row around it all the same: it cannot be
/// run.
pub(in crate::query::sql) fn refuse_unjoined(plan: &LogicalPlan) -> Result<()> {
    plan.apply(|step| {
        if matches!(step, LogicalPlan::Subquery(_)) {
            return plan_err!(
                "this LATERAL subquery cannot be joined with the row beside it: it may name that row only in \
                 conditions of WHERE that can hold, and has no LIMIT; compute with that row around it, \
                 unnest its lists in SELECT, and number rows in a query of their own by row_number() OVER \
                 (PARTITION BY what is compared with it)"
            );
        }
        step.apply_expressions(|expr| {
            expr.apply(|part| {
                let Some(subquery) = subquery_of(part) else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                if let Some(Expr::OuterReferenceColumn(_, column)) = subquery.outer_ref_columns.first() {
                    return plan_err!(
                        "a subquery names {} of the row around it where it cannot be joined with that row: \
                         the value of a subquery may depend on it by = alone, and stands in SELECT or WHERE \
                         outside of aggregates; else write LEFT JOIN … ON the condition, and GROUP BY the \
                         columns of that row",
                        column.flat_name()
                    );
                }
                refuse_unjoined(&subquery.subquery)?;
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(())
}

const fn subquery_of(expr: &Expr) -> Option<&Subquery> {
    match expr {
        Expr::Exists(exists) => Some(&exists.subquery),
        Expr::InSubquery(within) => Some(&within.subquery),
        Expr::SetComparison(compared) => Some(&compared.subquery),
        Expr::ScalarSubquery(subquery) => Some(subquery),
        _ => None,
    }
}

/// Visits each step of a subquery but those behind `LATERAL`, which refer to what stands beside them.
fn each_step(rows: &LogicalPlan, mut visit: impl FnMut(&LogicalPlan) -> Result<()>) -> Result<()> {
    rows.apply(|step| {
        if matches!(step, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        visit(step)?;
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

fn refers_outside(rows: &LogicalPlan) -> Result<bool> {
    let mut refers = false;
    each_step(rows, |step| {
        refers |= step.contains_outer_reference();
        Ok(())
    })?;
    Ok(refers)
}

/// Refuses names that the query directly around a subquery does not have.
fn refuse_far_names(rows: &LogicalPlan, around: &DFSchema) -> Result<()> {
    each_step(rows, |step| {
        step.apply_expressions(|expr| {
            expr.apply(|part| match part {
                Expr::OuterReferenceColumn(_, column) if !around.has_column(column) => plan_err!(
                    "a subquery names {}, which is not a column of the query directly around it but of one \
                     further out; compare with it in the query between them, or join these two",
                    column.flat_name()
                ),
                _ => Ok(TreeNodeRecursion::Continue),
            })
        })?;
        Ok(())
    })
}

/// Refuses steps that would see rows that are meant for others.
fn refuse_mixed_rows(rows: &LogicalPlan) -> Result<()> {
    each_step(rows, |step| match step {
        LogicalPlan::Window(window) if !is_of_whole_partitions(window)? => plan_err!(
            "a window function is in a subquery, or behind LATERAL, over rows that depend on the row around \
             it; compute it in a query of its own, PARTITION BY what is compared with that row, and join that"
        ),
        LogicalPlan::Join(join) if does_padded_side_refer(join)? => plan_err!(
            "a subquery, or LATERAL, refers to the row around it on a side of LEFT, RIGHT or FULL JOIN, \
             EXCEPT or INTERSECT of which not all rows are kept; refer to it in WHERE beside that, or join \
             in a query of its own"
        ),
        _ => Ok(()),
    })
}

/// Whether conditions that refer outside leave a window with whole partitions, or there are none. Looks for
/// them directly below it: further down, columns have other names.
fn is_of_whole_partitions(window: &Window) -> Result<bool> {
    let mut rows = window.input.as_ref();
    loop {
        match rows {
            LogicalPlan::Filter(filter) if keeps_partitions(&filter.predicate, window)? => {
                rows = &filter.input;
            }
            LogicalPlan::Window(below) => rows = &below.input,
            rows => return Ok(!refers_outside(rows)?),
        }
    }
}

/// Whether what a condition says with a name from outside is the same for all rows of a partition.
fn keeps_partitions(condition: &Expr, window: &Window) -> Result<bool> {
    for part in split_conjunction(condition) {
        if !part.contains_outer() {
            continue;
        }
        let differs = part.exists(|part| {
            Ok(match part {
                Expr::Column(column) => !is_partitioned_by(window, column),
                part => subquery_of(part).is_some() || part.is_volatile_node(),
            })
        })?;
        if differs {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_partitioned_by(window: &Window, column: &Column) -> bool {
    window.window_expr.iter().all(|expr| {
        let expr = match expr {
            Expr::Alias(named) => named.expr.as_ref(),
            expr => expr,
        };
        let Expr::WindowFunction(function) = expr else {
            return false;
        };
        let mut by = function.params.partition_by.iter();
        by.any(|by| matches!(by, Expr::Column(by) if by == column))
    })
}

/// Whether a name from outside is on a side of a join whose rows do not all remain as they are.
fn does_padded_side_refer(join: &Join) -> Result<bool> {
    match join.join_type {
        JoinType::Inner => Ok(false),
        JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
            refers_outside(&join.right)
        }
        JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => {
            refers_outside(&join.left)
        }
        JoinType::Full => Ok(refers_outside(&join.left)? || refers_outside(&join.right)?),
    }
}

/// Refuses aggregates behind `LATERAL` above which rows are left out, which the engine would keep, and
/// columns that it would take for null where nothing is found. Returns whether a name from outside came
/// before.
///
/// `is_last`: above it are only columns. `refers`: a name from outside came before.
fn refuse_kept_rows(rows: &LogicalPlan, is_last: bool, refers: bool) -> Result<bool> {
    let is_of_columns = match rows {
        // What stands beside LATERAL in here has names from outside of its own.
        LogicalPlan::Subquery(_) => return Ok(refers),
        LogicalPlan::Projection(selected) => selected.expr.iter().all(Expr::any_column_refs),
        rows => matches!(rows, LogicalPlan::SubqueryAlias(_)),
    };
    let mut refers = refers;
    for input in rows.inputs() {
        refers = refuse_kept_rows(input, is_last && is_of_columns, refers)?;
    }
    if let LogicalPlan::Aggregate(aggregate) = rows
        && aggregate.group_expr.is_empty()
        && refers
        && !is_last
    {
        return plan_err!(
            "what LATERAL aggregates for the row around it is filtered, joined or aggregated there, or is \
             beside a constant; select nothing but the aggregates and put the rest around it, or give it \
             GROUP BY what is compared with that row"
        );
    }
    Ok(refers || rows.contains_outer_reference())
}
