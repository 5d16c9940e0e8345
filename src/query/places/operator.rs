//! What SQL cannot say well, as an operator of a plan.
//!
//! A `Step` turns streams of rows into one; `Operator` is everything that a plan wants to know besides. One
//! partition in, one out, everything streams.

use std::any::type_name;
use std::fmt::{self, Debug};
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties};
use futures::stream::BoxStream;

use datafusion::arrow::array::RecordBatch;

/// Turns rows into other rows. Plain data: running it twice on the same rows gives the same.
pub(super) trait Step: Clone + Debug + Send + Sync + 'static {
    /// The columns of what comes out.
    fn schema(&self) -> SchemaRef;

    /// The rows, made as they are asked for.
    fn run(self, inputs: Vec<SendableRecordBatchStream>) -> BoxStream<'static, Result<RecordBatch>>;
}

/// A step with its inputs.
#[derive(Debug)]
pub(super) struct Operator<S> {
    step: S,
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    properties: Arc<PlanProperties>,
}

impl<S: Step> Operator<S> {
    pub(super) fn new(step: S, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(step.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Self {
            step,
            inputs,
            properties: Arc::new(properties),
        }
    }
}

impl<S: Step> DisplayAs for Operator<S> {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl<S: Step> ExecutionPlan for Operator<S> {
    fn name(&self) -> &str {
        type_name::<S>().rsplit("::").next().unwrap_or("Step")
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
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
        Ok(Arc::new(Self::new(self.step.clone(), children)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("{} has one partition", self.name());
        }
        let inputs = self
            .inputs
            .iter()
            .map(|input| input.execute(0, Arc::clone(&context)))
            .collect::<Result<Vec<_>>>()?;
        let rows = self.step.clone().run(inputs);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.step.schema(), rows)))
    }
}
