//! Merges sorted inputs that overlap.
//!
//! New rows may lie anywhere among years of older ones. Rows of one input with no other input's rows between
//! them are passed on as they came, neither compared one by one nor copied; only where inputs alternate are
//! rows copied into new batches. Knows plans and the key; knows nothing of what rows mean.

#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, FixedSizeBinaryArray, RecordBatch};
use datafusion::arrow::buffer::ScalarBuffer;
use datafusion::arrow::compute::interleave_record_batch;
use datafusion::common::Result;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryReservation;
use datafusion::physical_expr::LexOrdering;
use datafusion::physical_plan::PlanProperties;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::model::columns::{END, ID, START};

use super::operator::{Input, Needs, Operator, Plan, Step, Task, first_columns, one_partition};
use super::row_sizes::bytes_of_rows;
use super::row_times::micros_of;

/// A run of at least this many rows is passed on as it is: reading a batch of its own costs a consumer about
/// as much as copying this many rows.
const STRETCH: usize = 2_048;
/// The same of bytes, where rows are long: copying these costs more than another batch does.
const STRETCH_BYTES: usize = 256 << 10;
/// Rows that are put together are given out, however few there are, when they are more than this, or when the
/// batches are that nothing but these rows keeps in memory.
const MOST_MIXED: usize = 16 << 20;

/// Merges its inputs, which are sorted by the key and have one partition each. Of rows with the same key, the
/// one of the earlier input comes first.
#[derive(Clone, Debug)]
pub(in crate::query) struct MergeSorted {
    order: LexOrdering,
}

pub(in crate::query) type MergeSortedExec = Operator<MergeSorted>;

impl MergeSortedExec {
    /// `order`: the key order, as far as its columns are there.
    pub(in crate::query) fn new(inputs: Vec<Plan>, order: LexOrdering) -> Self {
        Self::over(MergeSorted { order }, inputs)
    }
}

impl MergeSorted {
    pub(in crate::query) const fn order(&self) -> &LexOrdering {
        &self.order
    }
}

impl Step for MergeSorted {
    const NAME: &'static str = "MergeSortedExec";

    fn detail(&self) -> String {
        format!("by [{}]", self.order)
    }

    fn needs(&self, inputs: &[Plan]) -> Vec<Needs> {
        vec![Needs::sorted(Some(self.order.clone())); inputs.len()]
    }

    fn gives(&self, inputs: &[Plan]) -> PlanProperties {
        one_partition(first_columns(inputs), [self.order.clone()])
    }

    fn run(self, inputs: Vec<Input>, task: &Task) -> Result<BoxStream<'static, Result<RecordBatch>>> {
        let sides = inputs.iter().map(|input| Ok(Side::of(input.open()?)));
        let merge = Merge {
            sides: sides.collect::<Result<_>>()?,
            mixed: Mixed::new(task.memory("merge")),
            at_a_time: task.context().session_config().batch_size(),
            next: None,
        };
        let rows = futures::stream::try_unfold(merge, |mut merge: Merge| async move {
            let rows = merge.rows().await?;
            Ok(rows.map(|rows| (rows, merge)))
        });
        Ok(rows.boxed())
    }
}

/// An input, and its rows that were read but not passed on.
struct Side {
    rows: SendableRecordBatchStream,
    held: Option<CurrentBatch>,
    is_over: bool,
}

/// A batch with its keys, and the index of its first row that was not passed on. There is always one.
struct CurrentBatch {
    batch: Arc<RecordBatch>,
    starts: ScalarBuffer<i64>,
    ends: ScalarBuffer<i64>,
    ids: Option<FixedSizeBinaryArray>,
    /// About how many bytes a row has.
    row_bytes: usize,
    next: usize,
}

/// Consecutive rows of a batch.
struct Stretch {
    batch: Arc<RecordBatch>,
    rows: Range<usize>,
    bytes: usize,
    /// Whether they are the last of it.
    ends_batch: bool,
}

/// The sort key of a row.
type Key<'r> = (i64, i64, &'r [u8]);

impl Side {
    const fn of(rows: SendableRecordBatchStream) -> Self {
        Self {
            rows,
            held: None,
            is_over: false,
        }
    }

    /// Waits for the next rows, if there are more.
    async fn hold(&mut self) -> Result<()> {
        while self.held.is_none() && !self.is_over {
            match self.rows.next().await.transpose()? {
                Some(batch) if batch.num_rows() > 0 => self.held = Some(CurrentBatch::of(batch)?),
                Some(_) => {}
                None => self.is_over = true,
            }
        }
        Ok(())
    }

    /// Takes the next `count` of the held rows.
    fn take(&mut self, count: usize) -> Option<Stretch> {
        let mut held = self.held.take()?;
        let rows = held.next..held.next + count;
        let batch = Arc::clone(&held.batch);
        let bytes = held.row_bytes.saturating_mul(count);
        let ends_batch = rows.end >= batch.num_rows();
        if !ends_batch {
            held.next = rows.end;
            self.held = Some(held);
        }
        Some(Stretch {
            batch,
            rows,
            bytes,
            ends_batch,
        })
    }
}

impl Stretch {
    const fn is_long(&self) -> bool {
        self.rows.end - self.rows.start >= STRETCH || self.bytes >= STRETCH_BYTES
    }

    /// A whole batch as it came: consumers that cache by array recognise columns that are the same arrays
    /// again.
    fn batch(&self) -> RecordBatch {
        if self.rows.len() == self.batch.num_rows() {
            return RecordBatch::clone(&self.batch);
        }
        self.batch.slice(self.rows.start, self.rows.len())
    }
}

impl CurrentBatch {
    fn of(batch: RecordBatch) -> Result<Self> {
        let ids = batch
            .column_by_name(ID)
            .and_then(|ids| ids.as_fixed_size_binary_opt().cloned());
        Ok(Self {
            starts: micros_of(&batch, START)?.clone(),
            ends: micros_of(&batch, END)?.clone(),
            ids,
            row_bytes: bytes_of_rows(&batch) / batch.num_rows().max(1),
            next: 0,
            batch: Arc::new(batch),
        })
    }

    fn key(&self, row: usize) -> Key<'_> {
        let id = self.ids.as_ref().map_or(&[][..], |ids| ids.value(row));
        (self.starts[row], self.ends[row], id)
    }

    /// How many of the remaining rows satisfy `is_before`. The first of them does.
    fn before(&self, is_before: impl Fn(Key<'_>) -> bool) -> usize {
        let left = self.batch.num_rows() - self.next;
        // Gallops, each leap twice as long as the last, then bisects the last leap: usually it is either very
        // few rows or all.
        let mut known = 1;
        let mut leap = 1;
        while known + leap < left && is_before(self.key(self.next + known + leap - 1)) {
            known += leap;
            leap *= 2;
        }
        let mut beyond = left.min(known + leap);
        while known < beyond {
            let middle = usize::midpoint(known, beyond);
            if is_before(self.key(self.next + middle)) {
                known = middle + 1;
            } else {
                beyond = middle;
            }
        }
        known
    }
}

struct Merge {
    sides: Vec<Side>,
    mixed: Mixed,
    /// About how many rows are put together at a time.
    at_a_time: usize,
    /// A stretch that follows the mixed rows.
    next: Option<RecordBatch>,
}

impl Merge {
    async fn rows(&mut self) -> Result<Option<RecordBatch>> {
        if let Some(next) = self.next.take() {
            return Ok(Some(next));
        }
        while let Some(stretch) = self.stretch().await? {
            if !stretch.is_long() {
                let before = self.mixed.add(stretch)?;
                if before.is_some() {
                    return Ok(before);
                }
                if self.mixed.rows.len() >= self.at_a_time || self.mixed.is_much() {
                    return self.mixed.take();
                }
                continue;
            }
            let Some(mixed) = self.mixed.take()? else {
                return Ok(Some(stretch.batch()));
            };
            self.next = Some(stretch.batch());
            return Ok(Some(mixed));
        }
        self.mixed.take()
    }

    /// The next rows that come from one input, as far as they are held.
    async fn stretch(&mut self) -> Result<Option<Stretch>> {
        for side in &mut self.sides {
            side.hold().await?;
        }
        let turn = self.turn();
        Ok(turn.and_then(|(place, count)| self.sides.get_mut(place)?.take(count)))
    }

    /// Which input is next, and for how many rows.
    fn turn(&self) -> Option<(usize, usize)> {
        let mut first: Option<((Key<'_>, usize), &CurrentBatch)> = None;
        let mut second: Option<(Key<'_>, usize)> = None;
        for (place, side) in self.sides.iter().enumerate() {
            let Some(held) = &side.held else { continue };
            let this = (held.key(held.next), place);
            if first.is_none_or(|(first, _)| this < first) {
                second = first.map(|(before, _)| before);
                first = Some((this, held));
            } else if second.is_none_or(|second| this < second) {
                second = Some(this);
            }
        }
        let ((_, place), held) = first?;
        let count = match second {
            Some(second) => held.before(|key| (key, place) < second),
            None => held.batch.num_rows() - held.next,
        };
        Some((place, count))
    }
}

/// Rows collected from short stretches.
struct Mixed {
    batches: Vec<Arc<RecordBatch>>,
    /// Each by its batch and its index in it.
    rows: Vec<(usize, usize)>,
    /// About how many bytes the rows have.
    bytes: usize,
    /// The size of the batches of which no row is left to be passed on.
    ended: usize,
    /// Of all batches.
    memory: MemoryReservation,
}

impl Mixed {
    const fn new(memory: MemoryReservation) -> Self {
        Self {
            batches: Vec::new(),
            rows: Vec::new(),
            bytes: 0,
            ended: 0,
            memory,
        }
    }

    const fn is_much(&self) -> bool {
        self.bytes > MOST_MIXED || self.ended > MOST_MIXED
    }

    /// Adds rows. If there is no memory for their batch beside those before, these are returned.
    fn add(&mut self, stretch: Stretch) -> Result<Option<RecordBatch>> {
        let is_same = |batch: &Arc<RecordBatch>| Arc::ptr_eq(batch, &stretch.batch);
        let known = self.batches.iter().rposition(is_same);
        let (of, before) = match known {
            Some(of) => (of, None),
            None => self.hold(&stretch.batch)?,
        };
        self.bytes = self.bytes.saturating_add(stretch.bytes);
        if stretch.ends_batch {
            self.ended = self.ended.saturating_add(stretch.batch.get_array_memory_size());
        }
        self.rows.extend(stretch.rows.map(|row| (of, row)));
        Ok(before)
    }

    /// Holds another batch and returns its index, and what had to be given out for it.
    fn hold(&mut self, batch: &Arc<RecordBatch>) -> Result<(usize, Option<RecordBatch>)> {
        let size = batch.get_array_memory_size();
        let mut before = None;
        if self.memory.try_grow(size).is_err() {
            before = self.take()?;
            self.memory.try_grow(size)?;
        }
        self.batches.push(Arc::clone(batch));
        Ok((self.batches.len() - 1, before))
    }

    fn take(&mut self) -> Result<Option<RecordBatch>> {
        let batches = std::mem::take(&mut self.batches);
        let rows = std::mem::take(&mut self.rows);
        (self.bytes, self.ended) = (0, 0);
        self.memory.free();
        if rows.is_empty() {
            return Ok(None);
        }
        let batches: Vec<&RecordBatch> = batches.iter().map(AsRef::as_ref).collect();
        Ok(Some(interleave_record_batch(&batches, &rows)?))
    }
}
