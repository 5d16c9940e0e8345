//! The framework of operators of our own, for what SQL cannot express well.
//!
//! A `Step` states what it requires of its inputs, the schema and order of what it returns, and how to
//! compute that. `Operator` wraps a step as an `ExecutionPlan` and adds the rest: properties, requirements
//! that DataFusion's sanity check verifies, children, text, metrics, memory, and yielding to other tasks.
//! Knows plans and batches; knows nothing of what they are about.

mod known_order;
#[cfg(test)]
mod tests;

use std::fmt::{self, Debug};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Moment};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, Statistics, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    Distribution, EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
};
use datafusion::physical_optimizer::PhysicalOptimizerRule as _;
use datafusion::physical_optimizer::sanity_checker::SanityCheckPlan;
use datafusion::physical_plan::coop::CooperativeStream;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType, SchedulingType};
use datafusion::physical_plan::metrics::{Count, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet, Time};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SortOrderPushdownResult,
};
use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _};

use crate::model::columns::START;

pub(in crate::query) use known_order::{KnownOrderExec, known_order};

/// A part of a plan.
pub(in crate::query) type Plan = Arc<dyn ExecutionPlan>;

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

/// What a step requires of an input.
#[derive(Clone, Debug)]
pub(in crate::query) struct Needs {
    is_one: bool,
    order: Option<LexOrdering>,
}

impl Needs {
    /// No requirements.
    pub(in crate::query) const fn nothing() -> Self {
        Self {
            is_one: false,
            order: None,
        }
    }

    pub(in crate::query) const fn one_partition() -> Self {
        Self {
            is_one: true,
            order: None,
        }
    }

    /// Of each input: one partition, sorted by those of the columns `names` that exist.
    pub(in crate::query) fn sorted_by(inputs: &[Plan], names: &[&str]) -> Vec<Self> {
        let sorted = |input: &Plan| Self::sorted(ascending(&input.schema(), names));
        inputs.iter().map(sorted).collect()
    }

    /// Of each input: one partition, sorted by the start of its rows.
    pub(in crate::query) fn by_start(inputs: &[Plan]) -> Vec<Self> {
        Self::sorted_by(inputs, &[START])
    }

    /// One partition, sorted.
    pub(in crate::query) const fn sorted(order: Option<LexOrdering>) -> Self {
        Self { is_one: true, order }
    }
}

/// The ascending order by those of the columns `names` that exist.
pub(in crate::query) fn ascending(schema: &Schema, names: &[&str]) -> Option<LexOrdering> {
    ordered(schema, names, false)
}

/// The order by those of the columns `names` that exist.
pub(in crate::query) fn ordered(schema: &Schema, names: &[&str], descending: bool) -> Option<LexOrdering> {
    let options = SortOptions {
        descending,
        nulls_first: false,
    };
    let keys = names
        .iter()
        .filter_map(|name| Some((name, schema.index_of(name).ok()?)))
        .map(|(name, index)| PhysicalSortExpr::new(Arc::new(Column::new(name, index)), options));
    LexOrdering::new(keys)
}

/// Whether rows in the order `known` are also in the order `wanted`. Nulls are ignored: the columns by which
/// our rows are sorted have none.
pub(in crate::query) fn begins_with(known: &LexOrdering, wanted: &[PhysicalSortExpr]) -> bool {
    let same = |(known, wanted): (&PhysicalSortExpr, &PhysicalSortExpr)| {
        known.expr.eq(&wanted.expr) && known.options.descending == wanted.options.descending
    };
    wanted.len() <= known.len() && known.iter().zip(wanted).all(same)
}

/// The properties of rows in one partition: their columns and the orders that they are in.
pub(in crate::query) fn one_partition(
    schema: SchemaRef,
    orders: impl IntoIterator<Item = LexOrdering>,
) -> PlanProperties {
    PlanProperties::new(
        EquivalenceProperties::new_with_orderings(schema, orders),
        Partitioning::UnknownPartitioning(1),
        EmissionType::Incremental,
        Boundedness::Bounded,
    )
    .with_scheduling_type(SchedulingType::Cooperative)
}

/// The properties of the only input.
pub(in crate::query) fn like(inputs: &[Plan]) -> PlanProperties {
    match inputs {
        [input] => PlanProperties::clone(input.properties()),
        _ => one_partition(Arc::new(Schema::empty()), None),
    }
}

/// Whether every operator of a plan gets what it requires, as DataFusion checks it.
pub(in crate::query) fn is_sound(plan: &Plan) -> bool {
    let check = SanityCheckPlan::new();
    check
        .optimize(Arc::clone(plan), &ConfigOptions::default())
        .is_ok()
}

/// The environment of a running step.
#[derive(Debug)]
pub(in crate::query) struct Task {
    context: Arc<TaskContext>,
    partition: usize,
    schema: SchemaRef,
}

impl Task {
    /// A reservation in the memory shared by all questions, grown as needed.
    pub(in crate::query) fn memory(&self, of: &'static str) -> MemoryReservation {
        MemoryConsumer::new(of).register(self.context.memory_pool())
    }

    pub(in crate::query) const fn context(&self) -> &Arc<TaskContext> {
        &self.context
    }

    pub(in crate::query) const fn partition(&self) -> usize {
        self.partition
    }

    /// The columns of the output.
    pub(in crate::query) fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The plan that a leaf chose when it ran, kept so that EXPLAIN ANALYZE can show it.
#[derive(Clone, Debug, Default)]
pub(in crate::query) struct ChosenPlan(Arc<OnceLock<Plan>>);

impl ChosenPlan {
    pub(in crate::query) fn plan(&self) -> Option<Plan> {
        self.0.get().map(Arc::clone)
    }

    /// The rows of a plan that is chosen now.
    pub(in crate::query) fn rows(
        self,
        plan: impl Future<Output = Result<Plan>> + Send + 'static,
        task: &Task,
    ) -> BoxStream<'static, Result<RecordBatch>> {
        let context = Arc::clone(task.context());
        let rows = async move {
            let plan = plan.await?;
            // Of several runs, the first is kept.
            let _first = self.0.set(Arc::clone(&plan));
            plan.execute(0, context)
        };
        rows.into_stream().try_flatten().boxed()
    }
}

/// An input of a running step. It is opened when its rows are needed.
#[derive(Debug)]
pub(in crate::query) struct Input {
    plan: Plan,
    partition: usize,
    context: Arc<TaskContext>,
    taken: Arc<Nanoseconds>,
}

impl Input {
    pub(in crate::query) fn open(&self) -> Result<SendableRecordBatchStream> {
        self.open_within(Arc::clone(&self.context))
    }

    /// Opens the input under other settings than the step's.
    pub(in crate::query) fn open_within(
        &self,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(InputRows {
            inner: self.plan.execute(self.partition, context)?,
            taken: Arc::clone(&self.taken),
        }))
    }

    pub(in crate::query) const fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(in crate::query) fn schema(&self) -> SchemaRef {
        self.plan.schema()
    }
}

/// The input of a step that has exactly one.
pub(in crate::query) fn only(inputs: Vec<Input>) -> Result<Input> {
    let Ok([input]) = <[_; 1]>::try_from(inputs) else {
        return internal_err!("this step has one input");
    };
    Ok(input)
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

/// The time that the inputs of a step took.
#[derive(Debug, Default)]
struct Nanoseconds(AtomicU64);

impl Nanoseconds {
    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, took: Duration) {
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(took, Ordering::Relaxed);
    }
}

/// The rows of an input. Its time does not count as the step's.
struct InputRows {
    inner: SendableRecordBatchStream,
    taken: Arc<Nanoseconds>,
}

impl Stream for InputRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let begun = Moment::now();
        let polled = self.inner.poll_next_unpin(context);
        self.taken.add(begun.elapsed());
        polled
    }
}

impl RecordBatchStream for InputRows {
    fn schema(&self) -> SchemaRef {
        self.inner.schema()
    }
}

/// The rows of a step; counts them and the time that the step itself takes.
struct OutputRows {
    inner: BoxStream<'static, Result<RecordBatch>>,
    schema: SchemaRef,
    taken: Arc<Nanoseconds>,
    rows: Count,
    time: Time,
}

impl Stream for OutputRows {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let (begun, before) = (Moment::now(), self.taken.get());
        let polled = self.inner.poll_next_unpin(context);
        let below = Duration::from_nanos(self.taken.get().saturating_sub(before));
        self.time.add_duration(begun.elapsed().saturating_sub(below));
        if let Poll::Ready(Some(Ok(batch))) = &polled {
            self.rows.add(batch.num_rows());
        }
        polled
    }
}

impl RecordBatchStream for OutputRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
