//! Members of lists that are computed for each row.
//!
//! To find out whether a list is the same for all rows, the engine computes it for no rows, and takes a
//! member for a constant whose value is not a column there. That of a `CASE` may be none: without rows it is
//! one of its constants, whatever its condition is. So such members are given to a function whose value is a
//! column. Knows expressions only.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Result, internal_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use crate::query::sql::keep_names::rewrite_keeping_names;

/// Has the members of lists computed for each row that the optimizer has not made constants of.
///
/// It makes lists itself, of `array_has` for one.
#[derive(Debug)]
pub(in crate::query::sql) struct MembersByRow {
    function: Arc<ScalarUDF>,
}

impl MembersByRow {
    pub(in crate::query::sql) fn new() -> Self {
        let function = ByRow {
            signature: Signature::any(1, Volatility::Immutable),
        };
        Self {
            function: Arc::new(ScalarUDF::new_from_impl(function)),
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
        Expr::ScalarFunction(call) => call.func.name() == ByRow::NAME,
        _ => false,
    }
}

/// Returns its argument as a column.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ByRow {
    signature: Signature,
}

impl ByRow {
    /// As plans show it.
    const NAME: &'static str = "by_row";
}

impl ScalarUDFImpl for ByRow {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    /// The name of a column: that of the value.
    fn schema_name(&self, given: &[Expr]) -> Result<String> {
        let [value] = given else {
            return internal_err!("{} takes one value", Self::NAME);
        };
        Ok(value.schema_name().to_string())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        let data_type = given.first().cloned();
        data_type.map_or_else(|| internal_err!("{} takes a value", Self::NAME), Ok)
    }

    fn return_field_from_args(&self, given: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let Some(field) = given.arg_fields.first() else {
            return internal_err!("{} takes a value", Self::NAME);
        };
        Ok(Arc::new(field.as_ref().clone().with_name(Self::NAME)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value] = arguments.args.as_slice() else {
            return internal_err!("{} takes one value", Self::NAME);
        };
        Ok(ColumnarValue::Array(value.to_array(arguments.number_rows)?))
    }
}
