//! The plan of a question as a leaf of a query's plan.
//!
//! Plans of this room are put together by hand, in orders that their operators rely on. The optimizer of
//! queries takes them as they are: it sees columns, an order and one partition, and nothing below. Knows
//! plans only.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::limit::GlobalLimitExec;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties as _, PlanProperties,
};
use futures::StreamExt as _;

/// The answer of a plan with some of its columns.
#[derive(Debug)]
pub(in crate::query) struct AnswerExec {
    inner: Arc<dyn ExecutionPlan>,
    is_own: bool,
    label: String,
    properties: Arc<PlanProperties>,
}

impl AnswerExec {
    /// `schema`: the columns that are wanted, by their names. `label`: what this is an answer of. `order`:
    /// the columns by which its rows are sorted, as far as they are wanted.
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
        let mut equal = EquivalenceProperties::new(Arc::clone(schema));
        let ascending = SortOptions {
            descending: false,
            nulls_first: false,
        };
        let sorted = order
            .iter()
            .map_while(|name| Some(Column::new(name, schema.index_of(name).ok()?)))
            .map(|column| PhysicalSortExpr::new(Arc::new(column), ascending));
        equal.add_orderings([sorted.collect::<Vec<_>>()]);
        let properties = PlanProperties::new(
            equal,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            inner,
            is_own: true,
            label,
            properties: Arc::new(properties),
        })
    }

    /// The same of what somebody else shares.
    pub(super) fn shared(self, is_shared: bool) -> Self {
        Self {
            is_own: !is_shared,
            ..self
        }
    }

    /// Whether whoever asks may know all that is read.
    pub(in crate::query) const fn is_own(&self) -> bool {
        self.is_own
    }

    /// What the optimizer does not see.
    pub(in crate::query) const fn inner(&self) -> &Arc<dyn ExecutionPlan> {
        &self.inner
    }
}

impl DisplayAs for AnswerExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schema = self.properties.equivalence_properties().schema();
        let columns: Vec<&str> = schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(
            formatter,
            "AnswerExec: {}, columns=[{}]",
            self.label,
            columns.join(", ")
        )
    }
}

impl ExecutionPlan for AnswerExec {
    fn name(&self) -> &'static str {
        "AnswerExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if children.is_empty() {
            Ok(self)
        } else {
            internal_err!("an answer has no children")
        }
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("an answer is one partition, not {partition}");
        }
        let schema = self.schema();
        let shown = Arc::clone(&schema);
        let rows = self.inner.execute(0, context)?.map(move |batch| {
            let batch = batch?;
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = batch.columns().to_vec();
            Ok(RecordBatch::try_new_with_options(
                Arc::clone(&shown),
                columns,
                &options,
            )?)
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }
}
