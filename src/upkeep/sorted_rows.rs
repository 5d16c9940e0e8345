//! Reads the rows of one piece in their order, in batches that fit into memory.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use futures::stream::BoxStream;
use futures::{StreamExt as _, TryStreamExt as _};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::metadata::ParquetMetaData;

use crate::model::ids::RecordId;
use crate::store::StoreError;
use crate::store::constant::KnownColumns;
use crate::store::files::PieceFiles;
use crate::store::outline::ObjectPlace;
use crate::store::snapshot::{PieceContent, SnapshotPiece};

/// The rows of a batch, read or made.
pub(super) const BATCH_ROWS: usize = 8_192;
/// The fewest rows of a batch that is read, however long they are.
const LEAST_ROWS: usize = 4;
/// The bytes of a batch that is read, if its rows are about equally long; fewer rows are read where they are
/// long.
const BATCH_BYTES: usize = 1 << 20;
/// The bytes of a value in a column of fixed width, generously rounded.
const FIXED_BYTES: usize = 16;
/// The bytes that decoding a column takes: a decompressor, and a page.
const DECODING_BYTES: usize = 160 << 10;

/// What rows are sorted by: their start, their end and their id.
pub(super) type Key = (i64, i64, [u8; 16]);

/// The rows of one piece, in order.
pub struct SortedRows {
    pub schema: SchemaRef,
    pub batches: BoxStream<'static, Result<RecordBatch, StoreError>>,
    /// The most bytes that one batch may take.
    pub batch_memory: usize,
    /// The most bytes that one batch may take, including what its reader holds to make it.
    pub memory: usize,
    /// Ids whose rows in this piece are left out. Sorted.
    pub dead: Arc<[RecordId]>,
}

impl SortedRows {
    /// The rows of an object, verified against its checksums. Columns whose value the footer gives for all
    /// rows are not read.
    pub async fn of_object(
        files: &PieceFiles,
        place: &ObjectPlace,
        dead: Arc<[RecordId]>,
    ) -> Result<Self, StoreError> {
        let file = files.open(place).await?;
        let path = Arc::clone(&place.path);
        let schema = Arc::clone(file.schema());
        let columns = KnownColumns::of(&file);
        let BatchSize {
            rows,
            batch_memory,
            memory,
        } = batch_size(file.metadata(), &columns.others());
        let stream =
            ParquetRecordBatchStreamBuilder::new_with_metadata(files.reader(place), file.parquet().clone())
                .with_projection(columns.others())
                .with_batch_size(rows)
                .build()
                .map_err(|error| StoreError::reading(&path, &error))?;
        let batches = stream
            .map_err(move |error| StoreError::reading(&path, &error))
            .and_then(move |read| std::future::ready(columns.put_back(&read).map_err(StoreError::from)))
            .boxed();
        Ok(Self {
            schema,
            batches,
            batch_memory,
            memory,
            dead,
        })
    }

    /// The rows of a piece of a snapshot.
    pub(super) async fn of_piece(files: &PieceFiles, piece: &SnapshotPiece) -> Result<Self, StoreError> {
        let dead = Arc::clone(&piece.dead);
        match &piece.content {
            PieceContent::Object(place) => Self::of_object(files, place, dead).await,
            PieceContent::Tail(rows) => {
                let batch = rows.batch().clone();
                let memory = batch.get_array_memory_size();
                Ok(Self {
                    schema: batch.schema(),
                    batch_memory: memory,
                    memory,
                    batches: futures::stream::once(async { Ok(batch) }).boxed(),
                    dead,
                })
            }
        }
    }
}

/// How many rows of an object are read at once, and the most bytes that they take, alone and with what their
/// reader holds.
struct BatchSize {
    rows: usize,
    batch_memory: usize,
    memory: usize,
}

/// A row group is fetched whole, one page of each column is decoded, and all its long texts may be in a few
/// adjacent rows.
fn batch_size(metadata: &ParquetMetaData, read: &ProjectionMask) -> BatchSize {
    let (mut rows, mut text, mut longest, mut largest) = (0, 0, 0, 0);
    for group in metadata.row_groups() {
        let columns = group.columns().iter().enumerate();
        let columns = columns.filter(|(leaf, _)| read.leaf_included(*leaf));
        let (mut texts, mut fetched) = (0_usize, 0_usize);
        for (_, column) in columns {
            let bytes = |bytes: i64| usize::try_from(bytes).unwrap_or(0);
            texts += column.unencoded_byte_array_data_bytes().map_or(0, bytes);
            fetched += bytes(column.compressed_size());
        }
        rows += usize::try_from(group.num_rows()).unwrap_or(0);
        text += texts;
        longest = longest.max(texts);
        largest = largest.max(fetched);
    }
    let leaves = metadata.file_metadata().schema_descr().num_columns();
    let leaves = (0..leaves).filter(|leaf| read.leaf_included(*leaf)).count();
    let fixed = leaves * FIXED_BYTES;
    let width = fixed + text / rows.max(1);
    let batch = (BATCH_BYTES / width.max(1)).clamp(LEAST_ROWS, BATCH_ROWS);
    let batch_memory = batch * fixed + longest;
    BatchSize {
        rows: batch,
        batch_memory,
        memory: batch_memory + largest + leaves * DECODING_BYTES,
    }
}

/// A key that outlives the columns it was read from.
pub(super) fn owned((start, end, record): (i64, i64, &[u8])) -> Key {
    let mut id = [0; 16];
    id.copy_from_slice(record);
    (start, end, id)
}
