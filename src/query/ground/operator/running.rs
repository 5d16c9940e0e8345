//! What a step has while it runs: its inputs, memory, and the time that is its own.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant as Moment};

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{RecordBatchStream, SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::metrics::{Count, Time};
use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _, TryStreamExt as _};

use super::plan::Plan;

/// The environment of a running step.
#[derive(Debug)]
pub(in crate::query) struct Task {
    pub(super) context: Arc<TaskContext>,
    pub(super) partition: usize,
    pub(super) schema: SchemaRef,
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
    pub(super) plan: Plan,
    pub(super) partition: usize,
    pub(super) context: Arc<TaskContext>,
    pub(super) taken: Arc<Nanoseconds>,
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
        self.opened(self.partition, context)
    }

    /// Opens another partition of the input than the step's.
    pub(in crate::query) fn open_partition(&self, partition: usize) -> Result<SendableRecordBatchStream> {
        self.opened(partition, Arc::clone(&self.context))
    }

    fn opened(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        Ok(Box::pin(InputRows {
            inner: self.plan.execute(partition, context)?,
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

/// The time that the inputs of a step took.
#[derive(Debug, Default)]
pub(super) struct Nanoseconds(AtomicU64);

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
pub(super) struct OutputRows {
    pub(super) inner: BoxStream<'static, Result<RecordBatch>>,
    pub(super) schema: SchemaRef,
    pub(super) taken: Arc<Nanoseconds>,
    pub(super) rows: Count,
    pub(super) time: Time,
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
