//! From the last row to the first, without sorting all of them.
//!
//! Stored rows ascend. Read in stretches of time from the last, each held and given out from its end, they descend, and what is in memory is one stretch.
//! Knows how many rows pieces have between which moments; knows nothing of what the rows mean.

use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Result, internal_datafusion_err, internal_err};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use futures::{Stream, StreamExt as _, TryStreamExt as _};

use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

/// About how many rows a stretch has.
const STRETCH_ROWS: i64 = 16_384;
/// About how finely it is known where in a piece rows begin: as if they were spread evenly over its time.
const PART_ROWS: i64 = 8_192;

/// Stretches that together are all time, the last first, cut where many rows begin.
pub(super) fn stretches(snapshot: &Snapshot, windows: &[TimeRange]) -> Vec<TimeRange> {
    let first = windows.iter().map(|window| window.start()).min();
    let last = windows.iter().map(|window| window.end()).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for piece in snapshot.pieces.iter() {
        let (from, to) = (piece.bounds.min_start.micros(), piece.bounds.max_start.micros());
        let count = piece.rows.max(1).unsigned_abs().div_ceil(PART_ROWS.unsigned_abs()).cast_signed();
        let starts = (0..count).map(|part| i128::from(from) + (i128::from(to) - i128::from(from)) * i128::from(part) / i128::from(count));
        // Never beyond the moments that it lies between.
        let starts = starts.filter_map(|start| i64::try_from(start).ok().map(Instant::from_micros));
        parts.extend(
            starts
                .filter(|start| *start > first && *start < last)
                .map(|start| (start, piece.rows / count)),
        );
    }
    parts.sort_unstable_by_key(|part| Reverse(*part));
    let mut stretches = Vec::new();
    let (mut rows, mut end) = (0, Instant::MAX);
    for (start, more) in parts {
        rows += more;
        if rows >= STRETCH_ROWS && start < end {
            stretches.push(TimeRange::between(start, end));
            (rows, end) = (0, start);
        }
    }
    stretches.push(TimeRange::between(Instant::MIN, end));
    stretches
}

/// Reads its inputs in turn and each from its end. Every input ascends and has one partition; no row of one comes after a row of those before it.
#[derive(Debug)]
pub(super) struct BackwardsExec {
    stretches: Vec<Arc<dyn ExecutionPlan>>,
    order: LexOrdering,
    properties: Arc<PlanProperties>,
}

impl BackwardsExec {
    /// `order`: what the rows that come out are sorted by.
    pub fn try_new(stretches: Vec<Arc<dyn ExecutionPlan>>, order: LexOrdering) -> Result<Self> {
        let Some(first) = stretches.first() else {
            return internal_err!("there is at least one stretch");
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new_with_orderings(first.schema(), [order.clone()]),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self {
            stretches,
            order,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for BackwardsExec {
    fn fmt_as(&self, _form: DisplayFormatType, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "BackwardsExec: stretches={}", self.stretches.len())
    }
}

impl ExecutionPlan for BackwardsExec {
    fn name(&self) -> &'static str {
        "BackwardsExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.stretches.iter().collect()
    }

    fn apply_expressions(&self, _visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Self::try_new(children, self.order.clone())?))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition != 0 {
            return internal_err!("rows from the last to the first are one partition, not {partition}");
        }
        let stretches = self.stretches.clone();
        let rows = futures::stream::iter(stretches)
            .then(move |stretch| Held::read(stretch, Arc::clone(&context)))
            .map_ok(Held::from_its_end)
            .try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// A stretch in memory.
struct Held {
    batches: Vec<RecordBatch>,
    reservation: MemoryReservation,
}

impl Held {
    async fn read(stretch: Arc<dyn ExecutionPlan>, context: Arc<TaskContext>) -> Result<Self> {
        let reservation = MemoryConsumer::new("a stretch of rows").register(context.memory_pool());
        let mut rows = stretch.execute(0, context)?;
        let mut batches = Vec::new();
        while let Some(batch) = rows.try_next().await? {
            reservation.try_grow(batch.get_array_memory_size())?;
            batches.push(batch);
        }
        Ok(Self { batches, reservation })
    }

    fn from_its_end(mut self) -> impl Stream<Item = Result<RecordBatch>> {
        futures::stream::iter(std::iter::from_fn(move || {
            let batch = self.batches.pop()?;
            self.reservation.shrink(batch.get_array_memory_size());
            Some(reversed(&batch))
        }))
    }
}

fn reversed(batch: &RecordBatch) -> Result<RecordBatch> {
    let rows = u32::try_from(batch.num_rows()).map_err(|_| internal_datafusion_err!("a batch has too many rows"))?;
    Ok(take_record_batch(batch, &UInt32Array::from_iter_values((0..rows).rev()))?)
}
