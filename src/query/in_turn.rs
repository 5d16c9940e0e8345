//! Sorted inputs that follow each other, read one after the other.
//!
//! What the newest records add to years of older ones begins where those end; merging would compare every row
//! of all of them. Or each is read from its end, the last of them first. Knows plans and order only.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{StreamExt as _, TryStreamExt as _};

use super::backwards::from_its_end;

/// Reads its inputs in turn. Each has one partition; a row of one never comes before a row of those before
/// it.
#[derive(Debug)]
pub(super) struct InTurnExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    order: LexOrdering,
    /// Whether each input is given out from its last row to its first.
    from_their_ends: bool,
    properties: Arc<PlanProperties>,
}

impl InTurnExec {
    /// `order`: what every input is sorted by.
    pub(super) fn try_new(inputs: Vec<Arc<dyn ExecutionPlan>>, order: LexOrdering) -> Result<Self> {
        Self::build(inputs, order, false)
    }

    /// Ascending inputs, the last of them first, each from its end. `order`: what comes out is sorted by.
    pub(super) fn from_their_ends(inputs: Vec<Arc<dyn ExecutionPlan>>, order: LexOrdering) -> Result<Self> {
        Self::build(inputs, order, true)
    }

    fn build(inputs: Vec<Arc<dyn ExecutionPlan>>, order: LexOrdering, from_their_ends: bool) -> Result<Self> {
        let Some(first) = inputs.first() else {
            return internal_err!("inputs that follow each other are at least one");
        };
        let schema = first.schema();
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(schema, [order.clone()]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            inputs,
            order,
            from_their_ends,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for InTurnExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "InTurnExec: inputs={}, from_their_ends={}",
            self.inputs.len(),
            self.from_their_ends
        )
    }
}

impl ExecutionPlan for InTurnExec {
    fn name(&self) -> &'static str {
        "InTurnExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![!self.from_their_ends; self.inputs.len()]
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
        Ok(Arc::new(Self::build(
            children,
            self.order.clone(),
            self.from_their_ends,
        )?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("inputs in turn are one partition, not {partition}");
        }
        let inputs = self.inputs.clone();
        // The next input is opened when the one before is over, so that only one is read at a time.
        if self.from_their_ends {
            let order = self.order.clone();
            let rows = futures::stream::iter(inputs)
                .flat_map(move |input| from_its_end(input, order.clone(), Arc::clone(&context)));
            return Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)));
        }
        let rows = futures::stream::iter(inputs)
            .map(move |input| input.execute(0, Arc::clone(&context)))
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}
