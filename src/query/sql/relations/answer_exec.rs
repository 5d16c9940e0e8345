//! The plan of a question as a leaf of a query's plan.
//!
//! Plans of this room are put together by hand, with orders that their operators rely on. The optimizer of
//! queries must not change them: it sees columns, an order and one partition, and nothing below. Knows plans
//! only.

use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{LexOrdering, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{
    ExecutionPlan, ExecutionPlanProperties as _, PlanProperties, SortOrderPushdownResult,
};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::operator::{Input, Operator, Plan, Step, Task, begins_with, one_partition, ordered};

/// The answer of a plan with some of its columns.
#[derive(Clone, Debug)]
pub(in crate::query) struct Answer {
    inner: Plan,
    schema: SchemaRef,
    /// The columns by which its rows are sorted, as far as they are wanted.
    sorted_by: Vec<String>,
    /// Whether the rows are in descending order.
    from_the_end: bool,
    is_own: bool,
    label: String,
}

/// The operator. The planner sees a leaf.
pub(in crate::query) type AnswerExec = Operator<Answer>;

impl AnswerExec {
    /// `schema`: the wanted columns, by name. `label`: what this is an answer of. `order`: the columns by
    /// which its rows are sorted, as far as they are wanted.
    pub(super) fn try_new(
        plan: Arc<dyn ExecutionPlan>,
        schema: &SchemaRef,
        limit: Option<usize>,
        label: String,
        order: &[&str],
    ) -> Result<Self> {
        let held = plan.schema();
        let mut columns = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let (place, found) = held.column_with_name(field.name()).ok_or_else(|| {
                datafusion::common::internal_datafusion_err!("an answer lacks {}", field.name())
            })?;
            if found.data_type() != field.data_type() {
                return internal_err!(
                    "{} is {}, not {}",
                    field.name(),
                    found.data_type(),
                    field.data_type()
                );
            }
            columns.push(ProjectionExpr {
                expr: Arc::new(Column::new(field.name(), place)),
                alias: field.name().clone(),
            });
        }
        let one: Arc<dyn ExecutionPlan> = match plan.output_partitioning().partition_count() {
            1 => plan,
            _ => Arc::new(CoalescePartitionsExec::new(plan)),
        };
        let limited: Arc<dyn ExecutionPlan> = match limit {
            Some(_) => Arc::new(GlobalLimitExec::new(one, 0, limit)),
            None => one,
        };
        let inner: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(columns, limited)?);
        let is_there = |name: &&&str| schema.index_of(name).is_ok();
        let step = Answer {
            inner,
            schema: Arc::clone(schema),
            sorted_by: order
                .iter()
                .take_while(is_there)
                .map(|name| (*name).to_owned())
                .collect(),
            from_the_end: false,
            is_own: true,
            label,
        };
        Ok(Self::over(step, Vec::new()))
    }

    /// The same for data that somebody else shares.
    pub(super) fn shared(self, is_shared: bool) -> Self {
        let step = Answer {
            is_own: !is_shared,
            ..self.step().clone()
        };
        Self::over(step, Vec::new())
    }

    /// Whether the reader may know everything that is read.
    pub(in crate::query) const fn is_own(&self) -> bool {
        self.step().is_own
    }

    /// The plan, which the optimizer does not see.
    pub(in crate::query) const fn inner(&self) -> &Plan {
        &self.step().inner
    }
}

impl Answer {
    fn order(&self, from_the_end: bool) -> Option<LexOrdering> {
        let sorted_by: Vec<&str> = self.sorted_by.iter().map(String::as_str).collect();
        ordered(&self.schema, &sorted_by, from_the_end)
    }
}

impl Step for Answer {
    const NAME: &'static str = "AnswerExec";
    const YIELDS_BY_ITSELF: bool = true;

    fn detail(&self) -> String {
        let columns: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let from_the_end = if self.from_the_end { ", from the end" } else { "" };
        format!("{}{from_the_end}, columns=[{}]", self.label, columns.join(", "))
    }

    fn gives(&self, _inputs: &[Plan]) -> PlanProperties {
        let order = self.order(self.from_the_end);
        // DataFusion puts an operator that yields above its leaves.
        one_partition(Arc::clone(&self.schema), order).with_scheduling_type(SchedulingType::NonCooperative)
    }

    fn statistics(&self) -> Option<Statistics> {
        let computed = StatisticsContext::new().compute(self.inner.as_ref(), &StatisticsArgs::new());
        computed.ok().map(Arc::unwrap_or_clone)
    }

    /// The same rows in descending order, where that is wanted and the plan can begin at the end.
    fn in_order(&self, order: &[PhysicalSortExpr]) -> Option<Self> {
        let from_the_end = !self.from_the_end;
        if !begins_with(&self.order(from_the_end)?, order) {
            return None;
        }
        match self.inner.try_pushdown_sort(order).ok()? {
            SortOrderPushdownResult::Exact { inner } => Some(Self {
                inner,
                from_the_end,
                ..self.clone()
            }),
            _ => None,
        }
    }

    fn run(self, _inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let rows = self.inner.execute(task.partition(), Arc::clone(task.context()))?;
        let shown = self.schema;
        let rows = rows.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().to_vec();
            Ok(RecordBatch::try_new_with_options(
                Arc::clone(&shown),
                columns,
                &options,
            )?)
        });
        Ok(rows.boxed())
    }
}
