//! Sorts what an aggregate takes by each value once.
//!
//! A value that rows are sorted by already decides nothing any more. The engine leaves such keys out where it
//! sorts, but `first_value` and `last_value` expect them in what is known of a group, and so `DISTINCT ON` is
//! refused, which is made of these. Knows plans and expressions only.

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::expr::Sort;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::sql::keep_names::rewrite_keeping_names;

/// Leaves repeated keys out once the optimizer has brought equal ones into one form.
#[derive(Debug)]
pub(in crate::query::sql) struct SortedOnce;

impl OptimizerRule for SortedOnce {
    fn name(&self) -> &'static str {
        "sorted_once"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if !matches!(plan, LogicalPlan::Aggregate(_)) {
            return Ok(Transformed::no(plan));
        }
        rewrite_keeping_names(plan, |expr| Ok(once(expr)))
    }
}

fn once(expr: Expr) -> Transformed<Expr> {
    let Expr::AggregateFunction(mut call) = expr else {
        return Transformed::no(expr);
    };
    let given = std::mem::take(&mut call.params.order_by);
    let count = given.len();
    let mut keys: Vec<Sort> = Vec::with_capacity(count);
    for key in given {
        if keys.iter().all(|earlier| earlier.expr != key.expr) {
            keys.push(key);
        }
    }
    let differs = keys.len() < count;
    call.params.order_by = keys;
    Transformed::new_transformed(Expr::AggregateFunction(call), differs)
}
