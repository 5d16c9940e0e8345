//! Subqueries that are values, and may find no row: null, whatever their column holds. The engine takes them
//! for null only where the column may be. Knows plans and expressions only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, exec_datafusion_err, plan_datafusion_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, Projection, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Sort, Subquery, SubqueryAlias, Volatility,
};

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

/// The plan, in which the values of subqueries that may find no row may be null; and whether there are any.
pub(super) fn with_nulls_for_missing_rows(plan: LogicalPlan) -> Result<(LogicalPlan, bool)> {
    let or_null = Arc::new(ScalarUDF::new_from_impl(OrNull::new()));
    let mut are_any = false;
    let rewritten = change_steps(plan, &mut |plan| {
        rewrite_keeping_names(plan, |expr| match expr {
            Expr::ScalarSubquery(subquery) if may_be_missing(&subquery) => {
                are_any = true;
                Ok(Transformed::yes(
                    or_null.call(vec![Expr::ScalarSubquery(subquery)]),
                ))
            }
            expr => Ok(Transformed::no(expr)),
        })
    })?;
    Ok((rewritten, are_any))
}

/// Whether there may be no row of a column that is not null in any.
fn may_be_missing(subquery: &Subquery) -> bool {
    let mut columns = subquery.subquery.schema().fields().iter();
    !columns.any(|column| column.is_nullable()) && !always_has_a_row(&subquery.subquery)
}

fn always_has_a_row(rows: &LogicalPlan) -> bool {
    match rows {
        LogicalPlan::Projection(Projection { input, .. })
        | LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. })
        | LogicalPlan::Sort(Sort { input, .. }) => always_has_a_row(input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(rows) => rows.produce_one_row,
        _ => false,
    }
}

/// Returns its argument and declares it nullable.
#[derive(Debug, PartialEq, Eq, Hash)]
struct OrNull {
    signature: Signature,
}

impl OrNull {
    fn new() -> Self {
        Self {
            signature: Signature::any(1, Volatility::Immutable),
        }
    }
}

impl ScalarUDFImpl for OrNull {
    fn name(&self) -> &'static str {
        "or_null"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let given = given.first().cloned();
        given.ok_or_else(|| plan_datafusion_err!("or_null takes a value"))
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let given = given.arg_fields.first();
        let given = given.ok_or_else(|| plan_datafusion_err!("or_null takes a value"))?;
        Ok(Arc::new(given.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let given = arguments.args.into_iter().next();
        given.ok_or_else(|| exec_datafusion_err!("or_null takes a value"))
    }
}
