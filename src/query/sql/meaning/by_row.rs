//! Members of lists that are computed for each row.
//!
//! To find out whether a list is the same for all rows, the engine computes it for no rows, and takes a
//! member for a constant whose value is not a column there. That of a `CASE` may be none: without rows it is
//! one of its constants, whatever its condition is. So such members are given to a function whose value is a
//! column. Knows expressions only.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{ColumnarValue, Expr, LogicalPlan, ScalarUDF};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::sql::keep_names::rewrite_keeping_names;

use super::same_value::SameValue;

/// The function that returns its argument as a column.
const BY_ROW: &str = "by_row";

/// Has the members of lists computed for each row that the optimizer has not made constants of.
///
/// It makes lists itself, of `array_has` for one.
#[derive(Debug)]
pub(in crate::query::sql) struct MembersByRow {
    function: Arc<ScalarUDF>,
}

impl MembersByRow {
    pub(in crate::query::sql) fn new() -> Self {
        Self {
            function: Arc::new(SameValue::function(BY_ROW, as_column)),
        }
    }

    fn expression(&self, expr: Expr) -> Transformed<Expr> {
        let Expr::InList(mut list) = expr else {
            return Transformed::no(expr);
        };
        let mut given = false;
        for member in &mut list.list {
            if !is_certain(member) {
                *member = self.function.call(vec![std::mem::take(member)]);
                given = true;
            }
        }
        Transformed::new_transformed(Expr::InList(list), given)
    }
}

impl OptimizerRule for MembersByRow {
    fn name(&self) -> &'static str {
        "members_by_row"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        rewrite_keeping_names(plan, |expr| Ok(self.expression(expr)))
    }
}

/// Whether the engine sees by itself that a member is a constant, or a column.
fn is_certain(member: &Expr) -> bool {
    match member {
        Expr::Literal(..) | Expr::Column(_) => true,
        Expr::ScalarFunction(call) => call.func.name() == BY_ROW,
        _ => false,
    }
}

/// A value as a column.
fn as_column(value: &ColumnarValue, rows: usize) -> Result<ColumnarValue> {
    Ok(ColumnarValue::Array(value.to_array(rows)?))
}
