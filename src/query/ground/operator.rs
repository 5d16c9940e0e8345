//! The framework of operators of our own, for what SQL cannot express well.
//!
//! A `Step` states what it requires of its inputs, the schema and order of what it returns, and how to
//! compute that. `Operator` wraps a step as an `ExecutionPlan` and adds the rest: properties, requirements
//! that DataFusion's sanity check verifies, children, text, metrics, memory, and yielding to other tasks.
//! Knows plans and batches; knows nothing of what they are about.

mod known_order;
mod needs;
mod plan;
mod running;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug};
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{Distribution, OrderingRequirements, PhysicalExpr, PhysicalSortExpr};
use datafusion::physical_plan::coop::CooperativeStream;
use datafusion::physical_plan::execution_plan::{InvariantLevel, check_default_invariants};
use datafusion::physical_plan::metrics::{ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties, SortOrderPushdownResult,
};
use futures::stream::BoxStream;

pub(in crate::query) use known_order::{KnownOrderExec, known_order};
pub(in crate::query) use needs::{Needs, ascending, begins_with, ordered};
pub(in crate::query) use plan::{Plan, first_columns, is_sound, like, limited, one_partition};
pub(in crate::query) use running::{ChosenPlan, Input, Task, only};

use running::{Nanoseconds, OutputRows};

/// Turns rows into other rows. Plain data: running it twice on the same rows gives the same.
pub(in crate::query) trait Step: Clone + Debug + Send + Sync + 'static {
    /// Its name in a plan.
    const NAME: &'static str;
    /// Whether it yields to other tasks by itself, or passes on the rows of something that does. `Operator`
    /// must not yield at every level of a deep plan: the task's budget would be spent on the way down.
    const YIELDS_BY_ITSELF: bool = false;
    /// Whether rows come out in the order in which they go in.
    const KEEPS_ORDER: bool = false;

    /// What the text of a plan says about it after its name.
    fn detail(&self) -> String {
        String::new()
    }

    /// What it requires of each of its inputs.
    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::one_partition(); inputs.len()]
    }

    /// The columns of its output, and their order: see [`one_partition`].
    fn gives(&self, inputs: &[Plan]) -> PlanProperties;

    /// The size of the output, where it is known without running.
    fn statistics(&self) -> Option<Statistics> {
        None
    }

    /// A step that gives the same rows in another order, where that is as quick.
    fn in_order(&self, _order: &[PhysicalSortExpr]) -> Option<Self> {
        None
    }

    /// The rows, computed on demand.
    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>>;
}

/// A step with its inputs.
#[derive(Clone, Debug)]
pub(in crate::query) struct Operator<S> {
    step: S,
    inputs: Vec<Plan>,
    needs: Vec<Needs>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl<S: Step> Operator<S> {
    pub(in crate::query) fn over(step: S, inputs: Vec<Plan>) -> Self {
        Self {
            needs: step.needs(&inputs),
            properties: Arc::new(step.gives(&inputs)),
            step,
            inputs,
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    pub(in crate::query) const fn step(&self) -> &S {
        &self.step
    }

    pub(in crate::query) fn inputs(&self) -> &[Plan] {
        &self.inputs
    }
}

impl<S: Step> DisplayAs for Operator<S> {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(S::NAME)?;
        let detail = self.step.detail();
        if detail.is_empty() {
            Ok(())
        } else {
            write!(formatter, ": {detail}")
        }
    }
}

impl<S: Step> ExecutionPlan for Operator<S> {
    fn name(&self) -> &str {
        S::NAME
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    /// As by default, by way of what all plans are: or else it is compiled anew for each step.
    fn check_invariants(&self, check: InvariantLevel) -> Result<()> {
        let plan: &dyn ExecutionPlan = self;
        check_default_invariants(plan, check)
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        let distribution = |needs: &Needs| {
            if needs.is_one {
                Distribution::SinglePartition
            } else {
                Distribution::UnspecifiedDistribution
            }
        };
        self.needs.iter().map(distribution).collect()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let order = |needs: &Needs| needs.order.clone().map(OrderingRequirements::from);
        self.needs.iter().map(order).collect()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![S::KEEPS_ORDER; self.inputs.len()]
    }

    fn children(&self) -> Vec<&Plan> {
        self.inputs.iter().collect()
    }

    fn apply_expressions(
        &self,
        _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Plan>) -> Result<Plan> {
        if children.len() != self.inputs.len() {
            return internal_err!(
                "{} has {} inputs, not {}",
                S::NAME,
                self.inputs.len(),
                children.len()
            );
        }
        Ok(Arc::new(Self::over(self.step.clone(), children)))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.partitioning.partition_count();
        if partition >= partitions {
            return internal_err!("{} has {partitions} partitions, not {}", S::NAME, partition + 1);
        }
        let taken = Arc::new(Nanoseconds::default());
        let input = |plan: &Plan| Input {
            plan: Arc::clone(plan),
            partition,
            context: Arc::clone(&context),
            taken: Arc::clone(&taken),
        };
        let inputs = self.inputs.iter().map(input).collect();
        let task = Task {
            context,
            partition,
            schema: self.schema(),
        };
        let rows = OutputRows {
            inner: self.step.clone().run(inputs, &task)?,
            schema: task.schema,
            taken,
            rows: MetricBuilder::new(&self.metrics).output_rows(partition),
            time: MetricBuilder::new(&self.metrics).elapsed_compute(partition),
        };
        if S::YIELDS_BY_ITSELF {
            Ok(Box::pin(rows))
        } else {
            Ok(Box::pin(CooperativeStream::new(rows)))
        }
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(
        &self,
        _inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        let known = self.step.statistics();
        Ok(Arc::new(
            known.unwrap_or_else(|| Statistics::new_unknown(&self.schema())),
        ))
    }

    fn try_pushdown_sort(&self, order: &[PhysicalSortExpr]) -> Result<SortOrderPushdownResult<Plan>> {
        Ok(match self.step.in_order(order) {
            Some(step) => SortOrderPushdownResult::Exact {
                inner: Arc::new(Self::over(step, self.inputs.clone())),
            },
            None => SortOrderPushdownResult::Unsupported,
        })
    }
}
