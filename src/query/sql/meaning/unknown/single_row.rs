//! The one row that aggregates, without `GROUP BY`, what is found for the row around a subquery. It is there
//! where nothing is found, too. Knows plans; knows nothing of what it is compared with.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode as _, TreeNodeRecursion};
use datafusion::common::{DFSchema, Result, plan_err};
use datafusion::logical_expr::{
    Distinct, Expr, FetchType, Filter, Limit, LogicalPlan, Projection, SkipType, Sort, SubqueryAlias,
    scalar_subquery,
};

use super::subqueries::is_subquery;

/// The row of a subquery that aggregates, without `GROUP BY`, what it finds for the row around it.
pub(super) struct SingleRow {
    aggregate: LogicalPlan,
    /// What the subquery makes of the columns of the aggregate.
    pub(super) columns: Vec<Expr>,
    /// Conditions on the columns of the aggregate, under which there is the row.
    pub(super) conditions: Vec<Expr>,
    /// Whether the engine finds, where it joins the row as a value, what its columns are if nothing is found.
    pub(super) is_known: bool,
}

impl SingleRow {
    pub(super) fn of(rows: &LogicalPlan) -> Result<Option<Self>> {
        let input = match rows {
            LogicalPlan::Aggregate(aggregate) if is_grouped_by_the_engine(rows)? => {
                refuse_single_rows(&aggregate.input)?;
                let columns = aggregate.schema.columns();
                return Ok(Some(Self {
                    aggregate: rows.clone(),
                    columns: columns.into_iter().map(Expr::Column).collect(),
                    conditions: Vec::new(),
                    is_known: true,
                }));
            }
            LogicalPlan::Projection(Projection { input, .. })
            | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
            | LogicalPlan::Filter(Filter { input, .. })
            | LogicalPlan::Sort(Sort { input, .. })
            | LogicalPlan::Distinct(Distinct::All(input)) => input,
            LogicalPlan::Limit(limit) if leaves_the_first(limit)? => &limit.input,
            _ => return Ok(None),
        };
        let Some(mut row) = Self::of(input)? else {
            return Ok(None);
        };
        match rows {
            LogicalPlan::Projection(selected) => {
                for column in &selected.expr {
                    row.is_known &= is_only_made_of_columns(column)?;
                }
                let columns = selected.expr.iter();
                row.columns = columns
                    .map(|column| row.of_aggregate(column.clone(), input.schema()))
                    .collect::<Result<_>>()?;
            }
            LogicalPlan::Filter(kept) => {
                let condition = row.of_aggregate(kept.predicate.clone(), input.schema())?;
                row.conditions.push(condition);
                row.is_known = false;
            }
            // The engine confuses what it adds with columns of a name that stands between.
            _ => row.is_known = false,
        }
        Ok(Some(row))
    }

    /// An expression on columns that are made of the row, written as one on the columns of the aggregate.
    fn of_aggregate(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let written = expr.transform_down(|expr| match expr {
            Expr::Column(column) => {
                let made = self.columns.get(schema.index_of_column(&column)?).cloned();
                let made = made.unwrap_or(Expr::Column(column));
                Ok(Transformed::new(made, true, TreeNodeRecursion::Jump))
            }
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(written.data.unalias())
    }

    /// An expression on the columns of the aggregate, as it is written beside the subquery.
    pub(super) fn beside(&self, expr: Expr, schema: &DFSchema) -> Result<Expr> {
        let written = expr.transform_down(|expr| match expr {
            Expr::Column(column) => {
                let value =
                    Projection::try_new(vec![Expr::Column(column)], Arc::new(self.aggregate.clone()))?;
                let value = scalar_subquery(Arc::new(LogicalPlan::Projection(value)));
                Ok(Transformed::new(value, true, TreeNodeRecursion::Jump))
            }
            Expr::OuterReferenceColumn(_, column) if schema.has_column(&column) => {
                Ok(Transformed::yes(Expr::Column(column)))
            }
            Expr::ScalarSubquery(value) if value.outer_ref_columns.is_empty() => {
                Ok(Transformed::no(Expr::ScalarSubquery(value)))
            }
            expr if is_subquery(&expr) => plan_err!(
                "an aggregate of what is found for the row around it is compared with a subquery; give that \
                 subquery GROUP BY, or name the other in a query of its own"
            ),
            expr => Ok(Transformed::no(expr)),
        })?;
        Ok(written.data)
    }
}

/// Whether the engine finds what an expression is where nothing is found: it replaces its columns, and leaves
/// out one that has none.
fn is_only_made_of_columns(expr: &Expr) -> Result<bool> {
    let has_others =
        expr.exists(|part| Ok(is_subquery(part) || matches!(part, Expr::OuterReferenceColumn(..))))?;
    Ok(!has_others && expr.any_column_refs())
}

/// Whether a limit leaves the first row if there is one.
fn leaves_the_first(limit: &Limit) -> Result<bool> {
    let is_from_the_first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
    let is_for_one = match limit.get_fetch_type()? {
        FetchType::Literal(most) => most != Some(0),
        FetchType::UnsupportedExpr => false,
    };
    Ok(is_from_the_first && is_for_one)
}

/// Whether an aggregate of all rows becomes one of the rows that belong to each row around the subquery.
fn is_grouped_by_the_engine(plan: &LogicalPlan) -> Result<bool> {
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return Ok(false);
    };
    if !aggregate.group_expr.is_empty() {
        return Ok(false);
    }
    let mut refers_outside = false;
    aggregate.input.apply(|plan| {
        // What stands beside LATERAL refers to its neighbours.
        if matches!(plan, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        refers_outside |= plan.contains_outer_reference();
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(refers_outside)
}

/// Refuses such rows where more is made of them: there, it matters that the row is missing.
pub(super) fn refuse_single_rows(rows: &LogicalPlan) -> Result<()> {
    rows.apply(|plan| {
        if matches!(plan, LogicalPlan::Subquery(_)) {
            return Ok(TreeNodeRecursion::Jump);
        }
        if is_grouped_by_the_engine(plan)? {
            return plan_err!(
                "a subquery joins, skips or aggregates what it has aggregated for the row around it; ask for \
                 the aggregate itself, as in n = (SELECT max(...) ...), or name the aggregates in a query of \
                 their own, with GROUP BY, and join that"
            );
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}
