//! Values that must be among none of the rows of a subquery, as columns.
//!
//! The engine joins the rows around a subquery with those that it finds, and takes null into account where a
//! column that is compared may be null. It does not see that what is computed of columns may be null where
//! they are not, and once it has made a constant of it, there is no column left to join by: then it finds
//! null among no rows. So whatever is computed becomes a column before it is sought. Knows plans and
//! expressions only.

use std::sync::Arc;

use datafusion::common::{Column, Result};
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Expr, Filter, LogicalPlan, Projection};

/// The rows for which a condition holds.
pub(super) fn rows_where(condition: Expr, rows: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    if !split_conjunction(&condition).into_iter().any(seeks_computed) {
        return filtered(Some(condition), rows);
    }
    let columns: Vec<Expr> = rows.schema().columns().into_iter().map(Expr::Column).collect();
    let mut with_values = columns.clone();
    let (mut seeking, others): (Vec<Expr>, Vec<Expr>) = split_conjunction_owned(condition)
        .into_iter()
        .partition(seeks_computed);
    for (place, condition) in seeking.iter_mut().enumerate() {
        if let Expr::InSubquery(within) = condition {
            // A name that nobody else has.
            let name = format!("__sought_{place}");
            let column = Expr::Column(Column::new_unqualified(name.as_str()));
            with_values.push(std::mem::replace(within.expr.as_mut(), column).alias(name));
        }
    }
    let rows = LogicalPlan::Projection(Projection::try_new(with_values, rows)?);
    let rows = filtered(conjunction(seeking), Arc::new(rows))?;
    let rows = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(rows))?);
    // Other rules look for conditions about the row around a subquery, and find them on top.
    filtered(conjunction(others), Arc::new(rows))
}

fn filtered(condition: Option<Expr>, rows: Arc<LogicalPlan>) -> Result<LogicalPlan> {
    match condition {
        Some(condition) => Ok(LogicalPlan::Filter(Filter::try_new(condition, rows)?)),
        None => Ok(Arc::unwrap_or_clone(rows)),
    }
}

/// Whether a condition is that something other than a column is in no row of a subquery.
fn seeks_computed(condition: &Expr) -> bool {
    match condition {
        Expr::InSubquery(within) => within.negated && !matches!(within.expr.as_ref(), Expr::Column(_)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    use datafusion::logical_expr::{LogicalPlanBuilder, col, in_subquery, lit, not_in_subquery, table_scan};

    use super::*;

    fn table(name: &str) -> LogicalPlan {
        let schema = Schema::new(vec![Field::new("n", DataType::Int64, false)]);
        let table = table_scan(Some(name), &schema, None).unwrap();
        table.build().unwrap()
    }

    #[test]
    fn what_is_computed_is_a_column_where_it_is_sought_in_vain() {
        let (rows, within) = (table("t"), Arc::new(table("s")));
        let others = col("t.n")
            .gt(lit(1_i64))
            .and(in_subquery(col("t.n") + lit(1_i64), Arc::clone(&within)));
        let computed = || col("t.n") * lit(2_i64);
        let condition = not_in_subquery(computed(), Arc::clone(&within)).and(others.clone());
        let found = rows_where(condition, Arc::new(rows.clone())).unwrap();
        let expected = LogicalPlanBuilder::from(rows.clone())
            .project([col("t.n"), computed().alias("__sought_0")])
            .and_then(|rows| rows.filter(not_in_subquery(col("__sought_0"), within)))
            .and_then(|rows| rows.project([col("t.n")]))
            .and_then(|rows| rows.filter(others))
            .and_then(LogicalPlanBuilder::build)
            .unwrap();
        assert_eq!(
            found.display_indent().to_string(),
            expected.display_indent().to_string()
        );
        assert_eq!(found.schema(), rows.schema());
    }

    #[test]
    fn a_column_is_sought_as_it_is() {
        let condition = not_in_subquery(col("t.n"), Arc::new(table("s"))).and(col("t.n").gt(lit(1_i64)));
        let found = rows_where(condition.clone(), Arc::new(table("t"))).unwrap();
        let expected = filtered(Some(condition), Arc::new(table("t"))).unwrap();
        assert_eq!(found, expected);
    }
}
