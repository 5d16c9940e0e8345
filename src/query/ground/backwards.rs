//! Reads rows from the last to the first, without sorting all of them.
//!
//! Stored rows ascend. They are read in stretches of time, the last stretch first; each is held in memory and
//! given out from its end. Knows how many rows pieces have between which moments; knows nothing of what the
//! rows mean.

use std::cmp::Reverse;
use std::sync::Arc;

use datafusion::arrow::array::{RecordBatch, UInt32Array};
use datafusion::arrow::compute::take_record_batch;
use datafusion::common::{DataFusionError, Result, internal_datafusion_err};
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::ExecutionPlan as _;
use datafusion::physical_plan::sorts::sort::SortExec;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _, TryStreamExt as _};

use super::operator::Plan;
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

/// The approximate number of rows in a stretch.
const STRETCH_ROWS: i64 = 16_384;
/// The most rows that are held, however much memory there is: other questions need some too.
const MOST_HELD: usize = 8 * STRETCH_ROWS as usize;
/// The approximate resolution, in rows, at which starts are estimated, as if spread evenly over a piece's
/// time.
const PART_ROWS: i64 = 8_192;

/// Stretches that together cover all time, the last first, cut where many rows begin.
pub(in crate::query) fn stretches(snapshot: &Snapshot, windows: &[TimeRange]) -> Vec<TimeRange> {
    let first = windows.iter().map(|window| window.start()).min();
    let last = windows.iter().map(|window| window.end()).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let mut parts = Vec::new();
    for piece in &snapshot.pieces {
        let (from, to) = (piece.bounds.min_start.micros(), piece.bounds.max_start.micros());
        let count = piece
            .rows
            .max(1)
            .unsigned_abs()
            .div_ceil(PART_ROWS.unsigned_abs())
            .cast_signed();
        let starts = (0..count).map(|part| {
            i128::from(from) + (i128::from(to) - i128::from(from)) * i128::from(part) / i128::from(count)
        });
        // Never beyond the bounds of the piece.
        let starts = starts.filter_map(|start| i64::try_from(start).ok().map(Instant::from_micros));
        parts.extend(
            starts
                .filter(|start| *start > first && *start < last)
                .map(|start| (start, piece.rows / count)),
        );
    }
    parts.sort_unstable_by_key(|part| Reverse(*part));
    let mut stretches = Vec::new();
    let (mut rows, mut end) = (0, TimeRange::ALWAYS.end());
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

/// The rows of an ascending stretch from the last to the first, which is what `order` says. Reads nothing
/// until the first row is asked for.
pub(in crate::query) fn from_its_end(
    stretch: Plan,
    order: LexOrdering,
    context: Arc<TaskContext>,
) -> impl Stream<Item = Result<RecordBatch>> + Send {
    let rows = async move {
        let rows: Rows = match BufferedStretch::read(&stretch, &context).await? {
            Some(held) => held.given_out().boxed(),
            // Far more rows begin in it than estimated: sorting them takes longer, but can spill to disk.
            None => SortExec::new(order, stretch).execute(0, context)?.boxed(),
        };
        Ok::<_, DataFusionError>(rows)
    };
    futures::stream::once(rows).try_flatten()
}

type Rows = BoxStream<'static, Result<RecordBatch>>;

/// A stretch in memory.
struct BufferedStretch {
    batches: Vec<RecordBatch>,
    reservation: MemoryReservation,
}

impl BufferedStretch {
    /// `None` if it is too large to be held.
    async fn read(stretch: &Plan, context: &Arc<TaskContext>) -> Result<Option<Self>> {
        let reservation = MemoryConsumer::new("a stretch of rows").register(context.memory_pool());
        let mut rows = stretch.execute(0, Arc::clone(context))?;
        let (mut batches, mut held) = (Vec::new(), 0);
        while let Some(batch) = rows.try_next().await? {
            held += batch.num_rows();
            if held > MOST_HELD || reservation.try_grow(batch.get_array_memory_size()).is_err() {
                return Ok(None);
            }
            batches.push(batch);
        }
        Ok(Some(Self { batches, reservation }))
    }

    fn given_out(mut self) -> impl Stream<Item = Result<RecordBatch>> {
        futures::stream::iter(std::iter::from_fn(move || {
            let batch = self.batches.pop()?;
            self.reservation.shrink(batch.get_array_memory_size());
            Some(reversed(&batch))
        }))
    }
}

fn reversed(batch: &RecordBatch) -> Result<RecordBatch> {
    let rows =
        u32::try_from(batch.num_rows()).map_err(|_| internal_datafusion_err!("a batch has too many rows"))?;
    Ok(take_record_batch(
        batch,
        &UInt32Array::from_iter_values((0..rows).rev()),
    )?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{AsArray, Int64Array};
    use datafusion::arrow::compute::SortOptions;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::datasource::memory::MemorySourceConfig;
    use datafusion::physical_expr::PhysicalSortExpr;
    use datafusion::physical_expr::expressions::col;

    async fn backwards(rows: usize) -> Vec<i64> {
        let numbers: Vec<i64> = (0..rows as i64).collect();
        let batch = |numbers: &[i64]| {
            RecordBatch::try_from_iter([("number", Arc::new(Int64Array::from(numbers.to_vec())) as _)])
                .unwrap()
        };
        let batches: Vec<RecordBatch> = numbers.chunks(8_000).map(batch).collect();
        let schema = batch(&[]).schema();
        let options = SortOptions {
            descending: true,
            nulls_first: false,
        };
        let order =
            LexOrdering::new([PhysicalSortExpr::new(col("number", &schema).unwrap(), options)]).unwrap();
        let stretch = MemorySourceConfig::try_new_exec(&[batches], schema, None).unwrap();
        let rows: Vec<RecordBatch> = from_its_end(stretch, order, Arc::new(TaskContext::default()))
            .try_collect()
            .await
            .unwrap();
        let numbers = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        rows.iter().flat_map(numbers).collect()
    }

    #[tokio::test]
    async fn stretches_come_from_their_ends_however_large_they_are() {
        for rows in [0, 1, 20_001, MOST_HELD + 20_000] {
            let expected: Vec<i64> = (0..rows as i64).rev().collect();
            assert!(backwards(rows).await == expected, "{rows} rows");
        }
    }
}
