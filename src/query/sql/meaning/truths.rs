//! What is true, false or unknown, in the words in which it is computed.
//!
//! The engine knows that `x IS TRUE` is never null, but computes it as `x IS NOT DISTINCT FROM true`, of
//! which it does not. Where such a value is a column that rows are grouped or summed by, it finds that the
//! column is not what was planned, and gives up. So both are called the same from the beginning. Knows
//! expressions only.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result};
use datafusion::logical_expr::expr::BinaryExpr;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, Union, lit};
use datafusion::optimizer::AnalyzerRule;

use crate::query::sql::keep_names::rewrite_keeping_names;
use crate::query::sql::walking::change_steps;

/// Replaces questions about truth once they are about truth values.
#[derive(Debug)]
pub(in crate::query::sql) struct Truths;

impl AnalyzerRule for Truths {
    fn name(&self) -> &'static str {
        "truths"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        // Whether a column may be null is written down in all that reads it.
        let mut may_differ = false;
        change_steps(plan, &mut |plan| {
            let plan = rewrite_keeping_names(plan, |expr| Ok(computed(expr)))?;
            may_differ |= plan.transformed;
            if may_differ {
                Ok(Transformed::yes(with_nulls_of_inputs(plan.data)?))
            } else {
                Ok(plan)
            }
        })
    }
}

/// The plan, which knows which of its columns may be null.
fn with_nulls_of_inputs(plan: LogicalPlan) -> Result<LogicalPlan> {
    let LogicalPlan::Union(Union { inputs, schema }) = plan else {
        return plan.recompute_schema();
    };
    let fields = schema.iter().enumerate().map(|(index, (table, field))| {
        let mut columns = inputs
            .iter()
            .filter_map(|input| input.schema().fields().get(index));
        let is_nullable = field.is_nullable() || columns.any(|column| column.is_nullable());
        let field = field.as_ref().clone().with_nullable(is_nullable);
        (table.cloned(), Arc::new(field))
    });
    let schema = DFSchema::new_with_metadata(fields.collect(), schema.metadata().clone())?;
    let schema = Arc::new(schema);
    Ok(LogicalPlan::Union(Union { inputs, schema }))
}

fn computed(expr: Expr) -> Transformed<Expr> {
    let (value, op, truth) = match expr {
        Expr::IsTrue(value) => (value, Operator::IsNotDistinctFrom, true),
        Expr::IsNotTrue(value) => (value, Operator::IsDistinctFrom, true),
        Expr::IsFalse(value) => (value, Operator::IsNotDistinctFrom, false),
        Expr::IsNotFalse(value) => (value, Operator::IsDistinctFrom, false),
        Expr::IsUnknown(value) => return Transformed::yes(Expr::IsNull(value)),
        Expr::IsNotUnknown(value) => return Transformed::yes(Expr::IsNotNull(value)),
        expr => return Transformed::no(expr),
    };
    Transformed::yes(Expr::BinaryExpr(BinaryExpr::new(value, op, Box::new(lit(truth)))))
}
