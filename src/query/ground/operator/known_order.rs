//! Declares an order of rows that their plan does not show, because it follows from where the rows come from.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::{ExecutionPlanProperties as _, PlanProperties};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::{Input, Needs, Operator, Plan, Step, Task, like, only};

/// `plan`, whose rows are known to be sorted by `order`. It stays as it is where its own properties say so.
pub(in crate::query) fn known_order(plan: Plan, order: LexOrdering) -> Result<Plan> {
    if plan.equivalence_properties().ordering_satisfy(order.clone())? {
        return Ok(plan);
    }
    Ok(Arc::new(Operator::over(KnownOrder { order }, vec![plan])))
}

#[derive(Clone, Debug)]
pub(in crate::query) struct KnownOrder {
    order: LexOrdering,
}

pub(in crate::query) type KnownOrderExec = Operator<KnownOrder>;

impl Step for KnownOrder {
    const NAME: &'static str = "KnownOrderExec";
    const YIELDS_BY_ITSELF: bool = true;
    const KEEPS_ORDER: bool = true;

    fn detail(&self) -> String {
        format!("by [{}]", self.order)
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let known = like(inputs);
        let mut equal = known.equivalence_properties().clone();
        equal.add_ordering(self.order.clone());
        known.with_eq_properties(equal)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        Ok(only(inputs)?.open()?.boxed())
    }
}
