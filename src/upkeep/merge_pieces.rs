//! Merges many sorted inputs into one, without the dead rows of each.
//!
//! Keeps one batch per input in memory, and one of output, however long the inputs are.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use arrow::datatypes::SchemaRef;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::sorted_rows::{BATCH_ROWS, Key, SortedRows, owned};
use crate::model::ids::RecordId;
use crate::store::StoreError;
use crate::store::arrange::{KeyColumns, sort_rows, united, with_columns};
use crate::store::files::PieceFiles;
use crate::store::snapshot::{PieceContent, Snapshot, SnapshotPiece};

/// How many bytes of used-up batches are held for the rows that are about to be returned.
const SPENT_BYTES: usize = 4 << 20;
/// Where runs of one input are shorter than this, inputs are taken by turns.
const SHORTEST_RUN: usize = 64;

/// Inputs being merged.
pub struct Merge {
    schema: SchemaRef,
    inputs: Vec<Cursor>,
    /// Inputs whose rows are not needed yet, in the order of their first starts.
    waiting: VecDeque<SnapshotPiece>,
    /// Opens those inputs.
    files: Option<PieceFiles>,
    /// Rows of the next output, in parts.
    taken: Vec<RecordBatch>,
    /// How many rows these are.
    rows: usize,
    /// Whether the parts follow each other, so that they need not be sorted.
    in_order: bool,
    /// The bytes of batches that rows were taken from and that no input uses any more.
    spent: usize,
    read: i64,
}

struct Cursor {
    batches: BoxStream<'static, Result<RecordBatch, StoreError>>,
    dead: Arc<[RecordId]>,
    /// The batch with the next row.
    batch: RecordBatch,
    row: usize,
    keys: KeyColumns,
}

impl Cursor {
    fn key(&self, row: usize) -> Key {
        owned(self.keys.key(row))
    }

    /// How many of the rows from the next one on, up to `most`, do not come after `limit`.
    fn reaches(&self, limit: Key, most: usize) -> usize {
        let (mut least, mut beyond) = (0, most.min(self.keys.len() - self.row));
        while least < beyond {
            let middle = usize::midpoint(least, beyond);
            if self.key(self.row + middle) <= limit {
                least = middle + 1;
            } else {
                beyond = middle;
            }
        }
        least
    }

    fn take(&mut self, rows: usize) -> RecordBatch {
        let taken = self.batch.slice(self.row, rows);
        self.row += rows;
        taken
    }
}

impl Merge {
    pub async fn begin(sources: Vec<SortedRows>) -> Result<Self, StoreError> {
        let schema = united(sources.iter().map(|source| &source.schema))?;
        let mut merge = Self::of_columns(schema);
        for source in sources {
            merge.add(source).await?;
        }
        Ok(merge)
    }

    /// All rows of a partition. Pieces are opened when they are needed and closed when they are used up, so
    /// that only overlapping pieces are held.
    pub async fn of_snapshot(files: &PieceFiles, snapshot: &Snapshot) -> Result<Self, StoreError> {
        let mut schemas = Vec::with_capacity(snapshot.pieces.len());
        for piece in &snapshot.pieces {
            schemas.push(match &piece.content {
                PieceContent::Object(place) => Arc::clone(files.open(place).await?.schema()),
                PieceContent::Tail(rows) => rows.batch().schema(),
            });
        }
        let mut merge = Self::of_columns(united(&schemas)?);
        merge.waiting = snapshot.pieces.iter().cloned().collect();
        merge.files = Some(files.clone());
        Ok(merge)
    }

    fn of_columns(schema: SchemaRef) -> Self {
        Self {
            schema,
            inputs: Vec::new(),
            waiting: VecDeque::new(),
            files: None,
            taken: Vec::new(),
            rows: 0,
            in_order: true,
            spent: 0,
            read: 0,
        }
    }

    async fn add(&mut self, source: SortedRows) -> Result<(), StoreError> {
        let SortedRows { batches, dead, .. } = source;
        self.push(batches, dead).await
    }

    /// Makes an input of what has a further live row.
    async fn push(
        &mut self,
        mut batches: BoxStream<'static, Result<RecordBatch, StoreError>>,
        dead: Arc<[RecordId]>,
    ) -> Result<(), StoreError> {
        if let Some((batch, keys)) = self.load(&mut batches, &dead).await? {
            self.inputs.push(Cursor {
                batches,
                dead,
                batch,
                row: 0,
                keys,
            });
        }
        Ok(())
    }

    /// Opens the inputs that may have the next row.
    async fn open_due(&mut self) -> Result<(), StoreError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let Some(files) = self.files.clone() else {
            return Ok(());
        };
        while let Some(first) = self.waiting.front() {
            let start = first.bounds.min_start.micros();
            let next = self
                .inputs
                .iter()
                .map(|cursor| cursor.keys.starts.value(cursor.row))
                .min();
            if next.is_some_and(|next| next < start) {
                return Ok(());
            }
            if let Some(piece) = self.waiting.pop_front() {
                self.add(SortedRows::of_piece(&files, &piece).await?).await?;
            }
        }
        Ok(())
    }

    /// The columns of every batch.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// How many rows were read so far, dead ones included.
    #[must_use]
    pub fn read(&self) -> i64 {
        self.read
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        while self.rows < BATCH_ROWS && self.spent < SPENT_BYTES {
            self.open_due().await?;
            if !self.take_run() {
                break;
            }
            while let Some(used_up) = self.used_up() {
                self.advance(used_up).await?;
            }
        }
        if self.taken.is_empty() {
            return Ok(None);
        }
        self.emit().map(Some)
    }

    /// An input whose batch has no further row.
    fn used_up(&self) -> Option<usize> {
        let is_used_up = |cursor: &Cursor| cursor.row >= cursor.keys.len();
        self.inputs.iter().position(is_used_up)
    }

    /// Takes rows of the input that comes first, for as long as it does; where inputs alternate, takes rows
    /// of all of them, up to where one must be read on. `false` if there are none.
    fn take_run(&mut self) -> bool {
        let next = |cursor: &Cursor| cursor.key(cursor.row);
        let Some(least) = (0..self.inputs.len()).min_by_key(|index| self.inputs.get(*index).map(next)) else {
            return false;
        };
        let others = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != least);
        let closed = self.waiting.front().map(before);
        let limit = others.map(|(_, cursor)| next(cursor)).chain(closed).min();
        let room = BATCH_ROWS - self.rows;
        let Some(cursor) = self.inputs.get_mut(least) else {
            return false;
        };
        let left = cursor.keys.len() - cursor.row;
        let run = limit.map_or(left.min(room), |limit| cursor.reaches(limit, room));
        if run >= SHORTEST_RUN.min(left).min(room) || self.inputs.len() < 2 {
            // An input that begins when an unopened piece does has no row before that piece.
            let run = run.max(1);
            let part = self.inputs.get_mut(least).map(|cursor| cursor.take(run));
            self.rows += run;
            self.taken.extend(part);
        } else {
            self.take_by_turns(closed, room);
        }
        true
    }

    /// Takes about as many rows as there is room for: from each input those up to a key before which no input
    /// has rows beyond its share.
    fn take_by_turns(&mut self, closed: Option<Key>, room: usize) {
        let share = (room / self.inputs.len()).max(SHORTEST_RUN);
        let ends = self.inputs.iter().map(|cursor| {
            let last = (cursor.row + share).min(cursor.keys.len()) - 1;
            cursor.key(last)
        });
        let Some(limit) = ends.chain(closed).min() else {
            return;
        };
        self.in_order = false;
        for cursor in &mut self.inputs {
            let run = cursor.reaches(limit, usize::MAX);
            if run > 0 {
                self.taken.push(cursor.take(run));
                self.rows += run;
            }
        }
    }

    /// Moves an input whose batch is used up to its next one, or drops it.
    async fn advance(&mut self, index: usize) -> Result<(), StoreError> {
        let Cursor {
            batches, dead, batch, ..
        } = self.inputs.swap_remove(index);
        self.spent = self.spent.saturating_add(batch.get_array_memory_size());
        self.push(batches, dead).await
    }

    /// The next batch with a live row.
    async fn load(
        &mut self,
        batches: &mut BoxStream<'static, Result<RecordBatch, StoreError>>,
        dead: &[RecordId],
    ) -> Result<Option<(RecordBatch, KeyColumns)>, StoreError> {
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            self.read += batch.num_rows() as i64;
            let rows = living(&with_columns(&batch, &self.schema)?, dead)?;
            if rows.num_rows() > 0 {
                let keys = KeyColumns::of(&rows)?;
                return Ok(Some((rows, keys)));
            }
        }
        Ok(None)
    }

    fn emit(&mut self) -> Result<RecordBatch, StoreError> {
        let parts = std::mem::take(&mut self.taken);
        let batch = match parts.as_slice() {
            [one] => one.clone(),
            // Concatenated and then sorted: picking row by row from many costs ten times as much.
            several => concat_batches(&self.schema, several)?,
        };
        let batch = if self.in_order { batch } else { sort_rows(&batch)? };
        self.rows = 0;
        self.spent = 0;
        self.in_order = true;
        Ok(batch)
    }
}

/// A key before all rows of a piece.
fn before(piece: &SnapshotPiece) -> Key {
    (piece.bounds.min_start.micros(), i64::MIN, [0; 16])
}

/// `rows` without the dead ones.
pub fn living(rows: &RecordBatch, dead: &[RecordId]) -> Result<RecordBatch, StoreError> {
    if dead.is_empty() {
        return Ok(rows.clone());
    }
    let keys = KeyColumns::of(rows)?;
    let keep: BooleanArray = (0..keys.len())
        .map(|row| Some(dead.binary_search(&keys.id(row)).is_err()))
        .collect();
    Ok(filter_record_batch(rows, &keep)?)
}
