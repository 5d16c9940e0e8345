//! Many sorted inputs as one, without the dead rows of each.
//!
//! Keeps one batch per input in memory, and one of output, however long the inputs are.

use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{filter_record_batch, interleave_record_batch};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use parquet::arrow::ParquetRecordBatchStreamBuilder;
use parquet::file::metadata::ParquetMetaData;

use crate::model::ids::RecordId;
use crate::store::StoreError;
use crate::store::arrange::{KeyColumns, with_columns};
use crate::store::files::{ObjectPlace, PieceFiles};
use crate::store::snapshot::{Content, Snapshot, SnapshotPiece};

/// Rows of a batch, read and made.
const BATCH_ROWS: usize = 8_192;
/// Rows of a batch that is read, however long they are.
const LEAST_ROWS: usize = 4;
/// Bytes of a batch that is read, where its rows are about equally long; fewer rows are read where they are
/// long.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes of batches that are used up and held only for the rows that are about to be given out.
const SPENT_BYTES: usize = 4 << 20;
/// Bytes for a column whose values are all equally long, on the generous side.
const FIXED_BYTES: usize = 16;

/// The rows of one piece, in order.
pub struct Sorted {
    pub schema: SchemaRef,
    pub batches: BoxStream<'static, Result<RecordBatch, StoreError>>,
    /// The most bytes that one batch may come to.
    pub memory: usize,
    /// Ids whose rows in this piece are left out. Sorted.
    pub dead: Arc<[RecordId]>,
}

impl Sorted {
    /// The rows of an object, every byte held against its checksum.
    pub async fn of_object(
        files: &PieceFiles,
        place: &ObjectPlace,
        dead: Arc<[RecordId]>,
    ) -> Result<Self, StoreError> {
        let file = files.open(place).await?;
        let path = Arc::clone(&place.path);
        let schema = Arc::clone(file.schema());
        let (rows, memory) = batch_size(file.metadata());
        let stream =
            ParquetRecordBatchStreamBuilder::new_with_metadata(files.reader(place), file.parquet().clone())
                .with_batch_size(rows)
                .build()
                .map_err(|error| StoreError::reading(&path, &error))?;
        let batches = stream
            .map_err(move |error| StoreError::reading(&path, &error))
            .boxed();
        Ok(Self {
            schema,
            batches,
            memory,
            dead,
        })
    }
}

impl Sorted {
    /// The rows of a piece of a snapshot.
    async fn of_piece(files: &PieceFiles, piece: &SnapshotPiece) -> Result<Self, StoreError> {
        let dead = Arc::clone(&piece.dead);
        match &piece.content {
            Content::Object(place) => Self::of_object(files, place, dead).await,
            Content::Tail(rows) => {
                let batch = rows.batch().clone();
                Ok(Self {
                    schema: batch.schema(),
                    memory: batch.get_array_memory_size(),
                    batches: futures::stream::once(async { Ok(batch) }).boxed(),
                    dead,
                })
            }
        }
    }
}

/// How many rows of an object to read at once, and how many bytes these come to at the most: a row group may
/// have all its long texts in a few neighbouring rows.
fn batch_size(metadata: &ParquetMetaData) -> (usize, usize) {
    let (mut rows, mut text, mut longest) = (0, 0, 0);
    for group in metadata.row_groups() {
        let texts = group.columns().iter().map(|column| {
            column
                .unencoded_byte_array_data_bytes()
                .map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0))
        });
        let texts: usize = texts.sum();
        rows += usize::try_from(group.num_rows()).unwrap_or(0);
        text += texts;
        longest = longest.max(texts);
    }
    let columns = metadata.file_metadata().schema_descr().num_columns();
    let fixed = columns * FIXED_BYTES;
    let width = fixed + text / rows.max(1);
    let batch = (BATCH_BYTES / width.max(1)).clamp(LEAST_ROWS, BATCH_ROWS);
    (batch, batch * fixed + longest)
}

/// Inputs being merged.
pub struct Merge {
    schema: SchemaRef,
    inputs: Vec<Cursor>,
    /// Inputs whose rows are not wanted yet, in the order of their first starts.
    waiting: VecDeque<SnapshotPiece>,
    /// Where those are.
    files: Option<PieceFiles>,
    /// Batches that rows are taken from.
    held: Vec<RecordBatch>,
    /// Bytes of those of them that no input is in any more.
    spent: usize,
    /// Rows of the next output: which of `held`, which row.
    taken: Vec<(usize, usize)>,
    read: i64,
}

struct Cursor {
    batches: BoxStream<'static, Result<RecordBatch, StoreError>>,
    dead: Arc<[RecordId]>,
    /// Which of `held` the next row is in.
    batch: usize,
    row: usize,
    keys: KeyColumns,
}

impl Merge {
    pub async fn begin(sources: Vec<Sorted>) -> Result<Self, StoreError> {
        let schema = united(sources.iter().map(|source| &source.schema))?;
        let mut merge = Self::of_columns(schema);
        for source in sources {
            merge.add(source).await?;
        }
        Ok(merge)
    }

    /// All rows of a partition. Pieces are opened when their time comes and closed when it is over, so that
    /// what is held is what overlaps.
    pub async fn of_snapshot(files: &PieceFiles, snapshot: &Snapshot) -> Result<Self, StoreError> {
        let mut schemas = Vec::with_capacity(snapshot.pieces.len());
        for piece in &snapshot.pieces {
            schemas.push(match &piece.content {
                Content::Object(place) => Arc::clone(files.open(place).await?.schema()),
                Content::Tail(rows) => rows.batch().schema(),
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
            held: Vec::new(),
            spent: 0,
            taken: Vec::with_capacity(BATCH_ROWS),
            read: 0,
        }
    }

    async fn add(&mut self, source: Sorted) -> Result<(), StoreError> {
        let Sorted {
            mut batches, dead, ..
        } = source;
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
                self.add(Sorted::of_piece(&files, &piece).await?).await?;
            }
        }
        Ok(())
    }

    /// The columns of every batch.
    #[must_use]
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows read so far, dead ones included.
    #[must_use]
    pub fn read(&self) -> i64 {
        self.read
    }

    /// The next rows; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, StoreError> {
        while self.taken.len() < BATCH_ROWS && self.spent < SPENT_BYTES {
            self.open_due().await?;
            let Some(least) = self.take_run() else { break };
            let exhausted = self
                .inputs
                .get(least)
                .is_some_and(|cursor| cursor.row >= cursor.keys.len());
            if exhausted {
                self.advance(least).await?;
            }
        }
        if self.taken.is_empty() {
            return Ok(None);
        }
        self.emit().map(Some)
    }

    /// Takes rows of the input that comes first, as long as it does; returns which one it was.
    fn take_run(&mut self) -> Option<usize> {
        let key = |cursor: &Cursor| cursor.keys.key(cursor.row).map_owned();
        let least = (0..self.inputs.len()).min_by_key(|index| self.inputs.get(*index).map(key))?;
        let limit = self
            .inputs
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != least)
            .map(|(_, cursor)| key(cursor))
            .chain(self.waiting.front().map(before))
            .min();
        let room = BATCH_ROWS - self.taken.len();
        let cursor = self.inputs.get_mut(least)?;
        let end = cursor.keys.len().min(cursor.row + room);
        while cursor.row < end && limit.is_none_or(|limit| cursor.keys.key(cursor.row).map_owned() <= limit) {
            self.taken.push((cursor.batch, cursor.row));
            cursor.row += 1;
        }
        Some(least)
    }

    /// Moves an input whose batch is used up to its next one, or drops it.
    async fn advance(&mut self, index: usize) -> Result<(), StoreError> {
        let Cursor {
            mut batches,
            dead,
            batch,
            ..
        } = self.inputs.swap_remove(index);
        let spent = self.held.get(batch).map_or(0, RecordBatch::get_array_memory_size);
        self.spent = self.spent.saturating_add(spent);
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

    /// The next batch with a living row.
    async fn load(
        &mut self,
        batches: &mut BoxStream<'static, Result<RecordBatch, StoreError>>,
        dead: &[RecordId],
    ) -> Result<Option<(usize, KeyColumns)>, StoreError> {
        while let Some(batch) = batches.next().await {
            let batch = batch?;
            self.read += batch.num_rows() as i64;
            let rows = living(&with_columns(&batch, &self.schema)?, dead)?;
            if rows.num_rows() > 0 {
                let keys = KeyColumns::of(&rows)?;
                self.held.push(rows);
                return Ok(Some((self.held.len() - 1, keys)));
            }
        }
        Ok(None)
    }

    fn emit(&mut self) -> Result<RecordBatch, StoreError> {
        let batch = match (self.taken.first(), self.taken.last()) {
            (Some(&(first, from)), Some(&(last, to)))
                if first == last && to - from + 1 == self.taken.len() =>
            {
                self.held
                    .get(first)
                    .map(|batch| batch.slice(from, self.taken.len()))
            }
            _ => None,
        };
        let batch = match batch {
            Some(batch) => batch,
            None => interleave_record_batch(&self.held.iter().collect::<Vec<_>>(), &self.taken)?,
        };
        self.taken.clear();
        self.let_go();
        Ok(batch)
    }

    /// Forgets batches that no input is in any more.
    fn let_go(&mut self) {
        let used: BTreeSet<usize> = self.inputs.iter().map(|cursor| cursor.batch).collect();
        let mut place = 0;
        let mut kept = Vec::with_capacity(used.len());
        for (index, batch) in std::mem::take(&mut self.held).into_iter().enumerate() {
            if !used.contains(&index) {
                continue;
            }
            for cursor in self.inputs.iter_mut().filter(|cursor| cursor.batch == index) {
                // Places only move down, and in order, so none is taken for another.
                cursor.batch = place;
            }
            kept.push(batch);
            place += 1;
        }
        self.spent = 0;
        self.held = kept;
    }
}

/// A key before all rows of a piece.
fn before(piece: &SnapshotPiece) -> (i64, i64, [u8; 16]) {
    (piece.bounds.min_start.micros(), i64::MIN, [0; 16])
}

/// A key that outlives the columns it was read from.
trait MapOwned {
    fn map_owned(self) -> (i64, i64, [u8; 16]);
}

impl MapOwned for (i64, i64, &[u8]) {
    fn map_owned(self) -> (i64, i64, [u8; 16]) {
        let mut id = [0; 16];
        id.copy_from_slice(self.2);
        (self.0, self.1, id)
    }
}

/// `rows` without those that are dead.
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

/// All columns of some schemas, each once. What a type's columns are called and hold never changes, so a
/// column that differs was damaged.
pub fn united<'s>(schemas: impl IntoIterator<Item = &'s SchemaRef>) -> Result<SchemaRef, StoreError> {
    let mut fields: Vec<FieldRef> = Vec::new();
    for field in schemas.into_iter().flat_map(|schema| schema.fields()) {
        match fields.iter().find(|known| known.name() == field.name()) {
            None => fields.push(Arc::clone(field)),
            Some(known) if known.data_type() == field.data_type() => {}
            Some(known) => {
                return Err(StoreError::corrupt(format!(
                    "column {} is {} in one piece and {} in another",
                    known.name(),
                    known.data_type(),
                    field.data_type()
                )));
            }
        }
    }
    Ok(Arc::new(Schema::new(fields)))
}
