//! Cells and rows, one after the other in the order of time.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};

use super::cells::fitted;
use super::cut::Cut;

/// What answers for a stretch of time.
#[derive(Clone, Debug)]
pub(super) enum Patch {
    Cells(RecordBatch),
    Rows {
        plan: Arc<dyn ExecutionPlan>,
        time: Range<i64>,
        cut: Cut,
    },
}

/// Gives out the patches in turn.
#[derive(Clone, Debug)]
pub(super) struct PatchworkExec {
    patches: Vec<Patch>,
    properties: Arc<PlanProperties>,
}

impl PatchworkExec {
    /// `patches` in the order of time, with what can be made to fit `schema`.
    pub(super) fn new(patches: Vec<Patch>, schema: SchemaRef) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            patches,
            properties: Arc::new(properties),
        }
    }
}

impl DisplayAs for PatchworkExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cells = self
            .patches
            .iter()
            .filter(|patch| matches!(patch, Patch::Cells(_)))
            .count();
        write!(
            formatter,
            "PatchworkExec: patches={}, of cells={cells}",
            self.patches.len()
        )
    }
}

impl ExecutionPlan for PatchworkExec {
    fn name(&self) -> &'static str {
        "PatchworkExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        let rows = self.patches.iter().filter_map(|patch| match patch {
            Patch::Rows { plan, .. } => Some(plan),
            Patch::Cells(_) => None,
        });
        rows.collect()
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
        let mut children = children.into_iter();
        let mut patches = self.patches.clone();
        for patch in &mut patches {
            if let Patch::Rows { plan, .. } = patch {
                let Some(child) = children.next() else {
                    return internal_err!("a patch of rows without its plan");
                };
                *plan = child;
            }
        }
        Ok(Arc::new(Self::new(patches, self.schema())))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("a patchwork has one partition, not {partition}");
        }
        let schema = self.schema();
        let of_rows = Arc::clone(&schema);
        // The next patch is opened when the one before is over, so that only one is read at a time.
        let batches = futures::stream::iter(self.patches.clone())
            .map(move |patch| -> Result<BoxStream<'static, Result<RecordBatch>>> {
                match patch {
                    Patch::Cells(cells) => Ok(futures::stream::iter([Ok(cells)]).boxed()),
                    Patch::Rows { plan, time, cut } => {
                        let schema = Arc::clone(&of_rows);
                        let rows = plan.execute(0, Arc::clone(&context))?.map(move |batch| {
                            let (rows, long) = cut.apply(&batch?, &time)?;
                            fitted(
                                &rows,
                                &schema,
                                long.map(|long| Arc::new(long) as ArrayRef).as_ref(),
                            )
                        });
                        Ok(rows.boxed())
                    }
                }
            })
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, batches)))
    }
}
