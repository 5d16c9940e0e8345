//! Joins that keep to the deadline.
//!
//! They make many rows of few. What never waits for a row lets nobody in between, and never sees that its time is over;
//! so joins yield, and one that compares every row with every other asks for the time with each comparison of many.
//! Knows plans and time only.

use std::sync::Arc;
use std::time::Instant as Moment;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode as _};
use datafusion::common::{Result, ScalarValue};
use datafusion::config::ConfigOptions;
use datafusion::logical_expr::{
    ColumnarValue, Operator, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::expressions::BinaryExpr;
use datafusion::physical_expr::{PhysicalExpr, ScalarFunctionExpr};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;

use crate::query::engine::late;

/// The plan with joins that end by `until`, or fail.
pub(super) fn in_time(plan: Arc<dyn ExecutionPlan>, until: Moment) -> Result<Arc<dyn ExecutionPlan>> {
    let rewritten = plan.transform_up(|plan| {
        let makes_many = plan.name().ends_with("JoinExec") || plan.name() == "UnnestExec";
        if !makes_many {
            return Ok(Transformed::no(plan));
        }
        let plan = match plan.downcast_ref::<NestedLoopJoinExec>() {
            Some(join) => asking(join, until)?.unwrap_or(plan),
            None => plan,
        };
        let yielding: Arc<dyn ExecutionPlan> = Arc::new(CooperativeExec::new(plan));
        Ok(Transformed::yes(yielding))
    })?;
    Ok(rewritten.data)
}

/// The join with a condition that fails when time is over, if it has conditions.
fn asking(join: &NestedLoopJoinExec, until: Moment) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    let Some(filter) = join.filter() else {
        return Ok(None);
    };
    let function = Arc::new(ScalarUDF::new_from_impl(InTime::new(until)));
    let options = Arc::new(ConfigOptions::default());
    let asks = ScalarFunctionExpr::try_new(function, Vec::new(), filter.schema(), options)?;
    let asks: Arc<dyn PhysicalExpr> = Arc::new(asks);
    let both = BinaryExpr::new(asks, Operator::And, Arc::clone(filter.expression()));
    let filter = JoinFilter::new(
        Arc::new(both),
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    );
    let projection = join.projection().as_ref().map(|columns| columns.to_vec());
    let join = NestedLoopJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        Some(filter),
        join.join_type(),
        projection,
    )?;
    Ok(Some(Arc::new(join)))
}

/// `in_time()`: true, until it is too late.
#[derive(Debug, PartialEq, Eq, Hash)]
struct InTime {
    until: Moment,
    signature: Signature,
}

impl InTime {
    fn new(until: Moment) -> Self {
        Self {
            until,
            signature: Signature::nullary(Volatility::Volatile),
        }
    }
}

impl ScalarUDFImpl for InTime {
    fn name(&self) -> &'static str {
        "in_time"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _given: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, _arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if Moment::now() > self.until {
            return late();
        }
        Ok(ColumnarValue::Scalar(ScalarValue::Boolean(Some(true))))
    }
}
