//! Reads rows from the last to the first, without sorting all of them.
//!
//! Stored rows ascend. They are read in stretches of time, the last stretch first; each is held in memory and
//! given out from its end. Knows how many rows pieces have between which moments; knows nothing of what the
//! rows mean.

use std::cmp::Reverse;
use std::ops::Range;
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

use super::estimated_starts::starts_of_parts;
use super::operator::Plan;
use crate::model::time::{Instant, TimeRange};
use crate::store::snapshot::Snapshot;

/// The approximate number of rows in a stretch.
const STRETCH_ROWS: i64 = 16_384;
/// How many times as many parts of pieces as the stretch before may begin in a stretch. The first has one: to
/// open a piece takes time however few rows it has, and most readers want a few of the last rows. Those who
/// want all of them open the pieces in a few stretches.
const GROWTH: usize = 4;
/// The most rows that are held, however much memory there is: other questions need some too.
const MOST_HELD: usize = 8 * STRETCH_ROWS as usize;
/// The approximate resolution, in rows, at which starts are estimated.
const PART_ROWS: i64 = 8_192;
/// The same in stored bytes, where rows are long: they are several times as many in memory.
const PART_BYTES: i64 = 1 << 20;
/// About so many stored bytes are enough for a stretch, however few rows have them.
const STRETCH_BYTES: i64 = 2 * PART_BYTES;

/// Divides a plan into its rows of an earlier and of a later time. `None` where there is no time between
/// them.
pub(super) type Halving = fn(&Plan) -> Option<[Plan; 2]>;

/// Stretches that together cover all time, the last first, cut where many rows or pieces begin within the
/// `touched` time: from it, only rows are wanted that begin before its end.
pub(in crate::query) fn stretches(snapshot: &Snapshot, touched: &Range<i64>) -> Vec<TimeRange> {
    let mut parts = Vec::new();
    for piece in snapshot.pieces.iter().filter(|piece| !piece.is_dead()) {
        let count = parts_of(piece.rows, PART_ROWS).max(parts_of(piece.bytes, PART_BYTES));
        let share = (piece.rows / count, piece.bytes / count);
        let starts = starts_of_parts(piece, count, touched);
        parts.extend(starts.map(|start| (Instant::from_micros(start), share)));
    }
    parts.sort_unstable_by_key(|part| Reverse(*part));
    // Little or nothing begins before the earliest: no stretch is cut there.
    let earliest = parts.last().map(|(start, _)| *start);
    let mut stretches = Vec::new();
    let (mut rows, mut bytes, mut opened) = (0, 0, 0_usize);
    let (mut most_opened, mut end) = (1, TimeRange::ALWAYS.end());
    for (start, (more_rows, more_bytes)) in parts {
        (rows, bytes, opened) = (rows + more_rows, bytes + more_bytes, opened + 1);
        let is_enough = rows >= STRETCH_ROWS || bytes >= STRETCH_BYTES || opened >= most_opened;
        if is_enough && start < end && Some(start) != earliest {
            stretches.push(TimeRange::between(start, end));
            (rows, bytes, opened, end) = (0, 0, 0, start);
            most_opened = GROWTH.saturating_mul(most_opened);
        }
    }
    stretches.push(TimeRange::between(Instant::MIN, end));
    stretches
}

/// How many parts of this size there are; one at least.
const fn parts_of(all: i64, part: i64) -> i64 {
    if all > part {
        all / part + (all % part != 0) as i64
    } else {
        1
    }
}

/// Divides the time in which rows may begin, in the middle of when stored ones do. `None` where these have no
/// time between them. What another reader sees of a row may begin after all that is stored, so both halves
/// reach to the ends of the whole.
pub(super) fn halves(begins: TimeRange, stored: TimeRange) -> Option<[TimeRange; 2]> {
    let within = begins.overlap(stored)?;
    let (first, end) = (within.start().micros(), within.end().micros());
    // Not `i64::midpoint`, which rounds up before 1970.
    let middle = first.saturating_add(end.saturating_sub(first) / 2);
    (middle > first).then(|| {
        let middle = Instant::from_micros(middle);
        [
            TimeRange::between(begins.start(), middle),
            TimeRange::between(middle, begins.end()),
        ]
    })
}

/// The rows of an ascending stretch from the last to the first, which is what `order` says. Reads nothing
/// until the first row is asked for.
pub(super) fn from_its_end(
    stretch: Plan,
    halved: Halving,
    order: LexOrdering,
    context: Arc<TaskContext>,
) -> Rows {
    let rows = async move {
        if let Some(held) = BufferedStretch::read(&stretch, &context).await? {
            return Ok(held.given_out().boxed());
        }
        // Far more begins in it than estimated.
        let Some([earlier, later]) = halved(&stretch) else {
            // All of it at the same moment. Sorting takes longer, but can spill to disk.
            return Ok(SortExec::new(order, stretch).execute(0, context)?.boxed());
        };
        let later = from_its_end(later, halved, order.clone(), Arc::clone(&context));
        let earlier = from_its_end(earlier, halved, order, context);
        Ok::<Rows, DataFusionError>(later.chain(earlier).boxed())
    };
    futures::stream::once(rows).try_flatten().boxed()
}

pub(super) type Rows = BoxStream<'static, Result<RecordBatch>>;

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
    use datafusion::physical_plan::limit::GlobalLimitExec;
    use uuid::Uuid;

    use crate::catalog::records::{Bounds, Stamp};
    use crate::model::ids::{PersonId, PieceId};
    use crate::model::registry::TypeId;
    use crate::store::outline::ObjectPlace;
    use crate::store::snapshot::{PieceContent, SnapshotPiece};

    /// Pieces of some rows each, of which one begins a hundred microseconds after the other.
    fn in_pieces(pieces: i64, rows: i64) -> Snapshot {
        let piece = |number: i64| SnapshotPiece {
            id: PieceId(Uuid::from_u128(number.unsigned_abs().into())),
            rows,
            bytes: rows,
            bounds: Bounds {
                min_start: Instant::from_micros(number * 100),
                max_start: Instant::from_micros(number * 100 + 50),
                max_end: Instant::from_micros(number * 100 + 50),
            },
            layout_version: 1,
            checksum: 0,
            dead: Arc::new([]),
            content: PieceContent::Object(ObjectPlace {
                path: "".into(),
                bytes: 1,
                footer_bytes: 1,
                footer_checksum: 0,
            }),
        };
        Snapshot {
            person: PersonId(Uuid::from_u128(1)),
            data_type: TypeId::new("HeartRate"),
            stamp: Stamp::default(),
            records: pieces * rows,
            pieces: (0..pieces).map(piece).collect(),
        }
    }

    /// How many pieces begin in each stretch.
    fn beginning(snapshot: &Snapshot, touched: &Range<i64>) -> Vec<usize> {
        let stretches = stretches(snapshot, touched);
        let begins = |stretch: &TimeRange| {
            let starts = snapshot.pieces.iter().map(|piece| piece.bounds.min_start);
            starts
                .filter(|start| stretch.start() <= *start && *start < stretch.end())
                .count()
        };
        stretches.iter().map(begins).collect()
    }

    #[test]
    fn few_pieces_begin_in_the_first_stretches() {
        let always = i64::MIN..i64::MAX;
        assert_eq!(beginning(&in_pieces(300, 24), &always), [1, 4, 16, 64, 215]);
        // However few pieces have them, so many rows are enough.
        assert_eq!(beginning(&in_pieces(9, 8_192), &always), [1, 2, 2, 2, 2]);
        assert_eq!(beginning(&in_pieces(1, 24), &always), [1]);
        assert_eq!(beginning(&in_pieces(0, 0), &always), [0]);
    }

    #[test]
    fn few_rows_that_are_long_are_enough() {
        let mut long = in_pieces(4, 240);
        let heavy = long.pieces.iter().cloned().map(|piece| SnapshotPiece {
            bytes: STRETCH_BYTES,
            ..piece
        });
        long.pieces = heavy.collect();
        // Each piece is as much as two parts, of which the first alone is in the first stretch.
        let always = i64::MIN..i64::MAX;
        assert_eq!(stretches(&in_pieces(4, 240), &always).len(), 2);
        assert_eq!(stretches(&long, &always).len(), 5);
    }

    #[test]
    fn stretches_are_counted_from_the_end_of_what_is_touched() {
        // Before it ends 101 of the 300 pieces begin. The others lie in the first stretch and do not count.
        let found = beginning(&in_pieces(300, 24), &(i64::MIN..10_001));
        assert_eq!(found, [200, 4, 16, 64, 16]);
    }

    #[test]
    fn halves_meet_amid_what_is_stored_and_reach_to_the_ends() {
        let range = |start, end| TimeRange::between(Instant::from_micros(start), Instant::from_micros(end));
        let year = range(-1_000_000, 1_000_000);
        assert_eq!(
            halves(year, range(100, 201)),
            Some([range(-1_000_000, 150), range(150, 1_000_000)])
        );
        // What is stored elsewhere does not count.
        assert_eq!(
            halves(range(0, 10), range(-500, 500)),
            Some([range(0, 5), range(5, 10)])
        );
        for moment in [-3, -1, 0, 1] {
            assert_eq!(halves(year, range(moment, moment + 1)), None, "at {moment}");
            let apart = Some([range(-1_000_000, moment + 1), range(moment + 1, 1_000_000)]);
            assert_eq!(halves(year, range(moment, moment + 2)), apart, "at {moment}");
        }
        // Only parts of rows that began before.
        assert_eq!(halves(range(0, 10), range(-500, -400)), None);
    }

    /// Numbers from their end, of a stretch that can be halved so often.
    async fn backwards(rows: usize, halved: Halving) -> Vec<i64> {
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
        let rows: Vec<RecordBatch> = from_its_end(stretch, halved, order, Arc::new(TaskContext::default()))
            .try_collect()
            .await
            .unwrap();
        let numbers = |batch: &RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        rows.iter().flat_map(numbers).collect()
    }

    /// As many rows of a plan as can be held, and all others.
    #[expect(clippy::unnecessary_wraps, reason = "others cannot be halved")]
    fn in_halves(plan: &Plan) -> Option<[Plan; 2]> {
        let half = MOST_HELD / 2;
        let limited = |skip, fetch| -> Plan { Arc::new(GlobalLimitExec::new(Arc::clone(plan), skip, fetch)) };
        Some([limited(0, Some(half)), limited(half, None)])
    }

    #[tokio::test]
    async fn stretches_come_from_their_ends_however_large_they_are() {
        for rows in [0, 1, 20_001, MOST_HELD + 20_000] {
            let expected: Vec<i64> = (0..rows as i64).rev().collect();
            assert!(backwards(rows, |_| None).await == expected, "{rows} rows");
            assert!(backwards(rows, in_halves).await == expected, "{rows} rows");
        }
    }
}
