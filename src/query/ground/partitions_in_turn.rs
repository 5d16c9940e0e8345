//! Gives out the partitions of a plan one after the other, or merged by an order.
//!
//! The engine's own way is to run all of them at once and to take whatever comes first, of equal rows too:
//! then the order of the rows is chance, and with it what a limit leaves, the last digit of a sum, and which
//! error is told. Knows plans only.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{ExecutionPlanProperties as _, Partitioning, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::operator::{Input, Needs, Operator, Plan, Step, Task, first_columns, one_partition, only};

/// Opens each partition of its input when those before it have been given out.
#[derive(Clone, Copy, Debug)]
pub(in crate::query) struct PartitionsInTurn;

pub(in crate::query) type PartitionsInTurnExec = Operator<PartitionsInTurn>;

/// The rows of `plan` in one partition.
pub(in crate::query) fn in_one_partition(plan: Plan) -> Plan {
    if plan.output_partitioning().partition_count() == 1 {
        return plan;
    }
    Arc::new(PartitionsInTurnExec::over(PartitionsInTurn, vec![plan]))
}

/// Merges the sorted partitions of `plan`. Rows that are equal in this order always come in the order of
/// their partitions, or a page could not continue where another ended.
pub(in crate::query) fn merged(order: LexOrdering, plan: Plan) -> SortPreservingMergeExec {
    #[expect(clippy::disallowed_methods, reason = "here it is told not to")]
    SortPreservingMergeExec::new(order, plan).with_round_robin_repartition(false)
}

impl Step for PartitionsInTurn {
    const NAME: &'static str = "PartitionsInTurnExec";

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::nothing(); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        let [input] = inputs else {
            return one_partition(first_columns(inputs), None);
        };
        let mut equal = input.equivalence_properties().clone();
        equal.clear_orderings();
        equal.clear_per_partition_constants();
        let partitions = Partitioning::UnknownPartitioning(1);
        PlanProperties::new(equal, partitions, input.pipeline_behavior(), input.boundedness())
            .with_scheduling_type(SchedulingType::Cooperative)
    }

    fn run(self, inputs: Vec<Input>, _task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let input = only(inputs)?;
        let partitions = input.plan().output_partitioning().partition_count();
        let rows = futures::stream::iter(0..partitions).map(move |partition| input.open_partition(partition));
        Ok(rows.try_flatten().boxed())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{ArrayRef, AsArray as _, Int64Array};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_plan::union::UnionExec;
    use datafusion::prelude::SessionContext;

    use super::*;

    fn values(values: &[i64]) -> Plan {
        let values: ArrayRef = Arc::new(Int64Array::from(values.to_vec()));
        let batch = RecordBatch::try_from_iter([("n", values)]).unwrap();
        MemorySourceConfig::try_new_exec(&[vec![batch.clone(), batch.clone()]], batch.schema(), None).unwrap()
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn rows_come_in_the_order_of_their_partitions() {
        let union = UnionExec::try_new(vec![values(&[3, 1]), values(&[]), values(&[2])]).unwrap();
        let plan = in_one_partition(union);
        assert_eq!(plan.output_partitioning().partition_count(), 1);
        for _ in 0..50 {
            let rows = plan.execute(0, SessionContext::new().task_ctx()).unwrap();
            let rows: Vec<RecordBatch> = rows.try_collect().await.unwrap();
            let found = rows
                .iter()
                .flat_map(|batch| batch.column(0).as_primitive::<Int64Type>().values().to_vec());
            assert_eq!(found.collect::<Vec<i64>>(), [3, 1, 3, 1, 2, 2]);
        }
    }

    #[test]
    fn what_is_in_one_partition_stays_as_it_is() {
        let plan = values(&[1]);
        assert!(Arc::ptr_eq(&in_one_partition(Arc::clone(&plan)), &plan));
    }
}
