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
use datafusion::physical_plan::execution_plan::SchedulingType;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::statistics::{StatisticsArgs, StatisticsContext};
use datafusion::physical_plan::{ExecutionPlan, PlanProperties, SortOrderPushdownResult};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::query::ground::partitions_in_turn::in_one_partition;
use crate::query::operator::{
    Input, Operator, Plan, Step, Task, begins_with, limited, one_partition, ordered,
};

/// The answer of a plan with some of its columns.
#[derive(Clone, Debug)]
pub(in crate::query) struct Answer {
    inner: Plan,
    schema: SchemaRef,
    /// What its rows are sorted by, as far as that is wanted.
    order: Option<LexOrdering>,
    /// Whether the plan begins at the end.
    from_the_end: bool,
    is_own: bool,
    label: String,
}

/// The planner sees a leaf.
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
        let one = in_one_partition(plan);
        let inner: Arc<dyn ExecutionPlan> = Arc::new(ProjectionExec::try_new(columns, limited(one, limit))?);
        let is_there = |name: &&&str| schema.index_of(name).is_ok();
        let sorted_by: Vec<&str> = order.iter().take_while(is_there).copied().collect();
        let step = Answer {
            inner,
            schema: Arc::clone(schema),
            order: ordered(schema, &sorted_by, false),
            from_the_end: false,
            is_own: true,
            label,
        };
        Ok(Self::over(step, Vec::new()))
    }

    /// This answer, which is about data that somebody else shares if `is_shared`.
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
    /// The order of the same rows when the plan begins at its other end.
    fn reversed(&self) -> Option<LexOrdering> {
        LexOrdering::new(self.order.as_ref()?.iter().map(PhysicalSortExpr::reverse))
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
        // DataFusion puts an operator that yields above its leaves.
        one_partition(Arc::clone(&self.schema), self.order.clone())
            .with_scheduling_type(SchedulingType::NonCooperative)
    }

    fn statistics(&self) -> Option<Statistics> {
        let computed = StatisticsContext::new().compute(self.inner.as_ref(), &StatisticsArgs::new());
        computed.ok().map(Arc::unwrap_or_clone)
    }

    /// This answer in descending order, where that is wanted and the plan can begin at the end. No row is
    /// without the columns by which they are sorted, so wherever nulls are wanted, there they are: operators
    /// above compare the order that they asked for word for word.
    fn in_order(&self, order: &[PhysicalSortExpr]) -> Option<Self> {
        let reversed = self.reversed()?;
        if !begins_with(&reversed, order) {
            return None;
        }
        let SortOrderPushdownResult::Exact { inner } = self.inner.try_pushdown_sort(order).ok()? else {
            return None;
        };
        let beyond = reversed.iter().skip(order.len());
        Some(Self {
            inner,
            order: LexOrdering::new(order.iter().chain(beyond).cloned()),
            from_the_end: !self.from_the_end,
            ..self.clone()
        })
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
