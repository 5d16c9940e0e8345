//! Which of some ids have a live row already, and what that row is.
//!
//! Asked before every commit, so the common answer, none, has to be cheap: the tail is asked by hash or
//! looked through, whichever is less, objects by their bloom filters, which stay in memory, bounded. Only
//! where a filter says "perhaps" the id column is read, and only where an id is found the whole row.

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use futures::TryStreamExt as _;
use moka::future::Cache;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::basic::Type as PhysicalType;
use parquet::data_type::FixedLenByteArray;
use parquet::file::statistics::Statistics;

use super::arrange::{ID, KeyColumns};
use super::encoding::ROW_GROUP_ROWS;
use super::errors::StoreError;
use super::files::{ObjectPlace, PieceFile, PieceFiles};
use super::filter::{Filter, HashedId};
use super::snapshot::{Content, Snapshot, SnapshotPiece, TailRows};
use super::wanted::WantedIds;
use crate::model::ids::{PieceId, RecordId};

/// Live rows of one piece. They stay together, as they were read: each in a batch of its own, they would cost
/// far more than to find them.
#[derive(Clone, Debug)]
pub struct FoundRows {
    pub piece: PieceId,
    /// One for each row.
    pub ids: Vec<RecordId>,
    /// Without columns that are null in all rows of the piece.
    pub rows: RecordBatch,
}

const ID_BYTES: i32 = 16;

/// Searches pieces by id. Cheap to clone; all clones share their filters. Lives as long as the process.
#[derive(Clone)]
pub struct Finder {
    files: PieceFiles,
    filters: Cache<(Arc<str>, usize), Arc<Filter>>,
}

impl Finder {
    /// `memory`: how many bytes of bloom filters to keep. One of a full row group takes half a megabyte.
    #[must_use]
    pub fn new(files: PieceFiles, memory: u64) -> Self {
        let weigh =
            |_: &(Arc<str>, usize), filter: &Arc<Filter>| u32::try_from(filter.memory()).unwrap_or(u32::MAX);
        Self {
            files,
            filters: Cache::builder().max_capacity(memory).weigher(weigh).build(),
        }
    }

    /// Holds nothing in memory any more, whosever it was.
    pub async fn forget_all(&self) {
        self.filters.invalidate_all();
        self.filters.run_pending_tasks().await;
    }

    /// The live rows of the partition that have one of `ids`.
    pub async fn predecessors(
        &self,
        snapshot: &Snapshot,
        ids: &[RecordId],
    ) -> Result<Vec<FoundRows>, StoreError> {
        let mut found = Vec::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let wanted = WantedIds::new(ids.to_vec());
        let mut hashed: Vec<HashedId> = wanted.iter().map(HashedId::new).collect();
        hashed.sort_unstable();
        for piece in &snapshot.pieces {
            match &piece.content {
                Content::Tail(rows) => found.extend(search_tail(piece, rows, &wanted)?),
                Content::Object(place) => self.search_object(piece, place, &hashed, &mut found).await?,
            }
        }
        Ok(found)
    }

    async fn search_object(
        &self,
        piece: &SnapshotPiece,
        place: &ObjectPlace,
        ids: &[HashedId],
        found: &mut Vec<FoundRows>,
    ) -> Result<(), StoreError> {
        let file = self.files.open(place).await?;
        for group in 0..file.metadata().num_row_groups() {
            let range = id_range(&file, group);
            let within = |id: RecordId| range.as_ref().is_none_or(|range| range.contains(&id));
            // Ids made in order of time mostly are not between the least and the greatest of older rows; then
            // the filter is not even read.
            if !ids.iter().any(|hashed| within(hashed.id)) {
                continue;
            }
            let filter = self.filter(&file, group).await?;
            let mut suspects = filter.suspects(ids);
            suspects.retain(|id| within(*id) && is_live(piece, *id));
            if suspects.is_empty() {
                continue;
            }
            let (rows, ids) = self.rows_of(&file, group, WantedIds::new(suspects)).await?;
            if rows.is_empty() {
                continue;
            }
            found.push(FoundRows {
                piece: piece.id,
                ids,
                rows: self.read_rows(&file, group, rows.into_iter()).await?,
            });
        }
        Ok(())
    }

    async fn filter(&self, file: &PieceFile, group: usize) -> Result<Arc<Filter>, StoreError> {
        let key = (Arc::clone(&file.place().path), group);
        if let Some(filter) = self.filters.get(&key).await {
            return Ok(filter);
        }
        let damaged = |detail: &dyn std::fmt::Display| {
            StoreError::corrupt(format!("object {}: bloom filter: {detail}", file.place().path))
        };
        let column =
            id_column(file).and_then(|column| file.metadata().row_groups().get(group)?.columns().get(column));
        let location = column.and_then(|column| {
            let offset = u64::try_from(column.bloom_filter_offset()?).ok()?;
            Some(offset..offset + u64::try_from(column.bloom_filter_length()?).ok()?)
        });
        let location = location.ok_or_else(|| damaged(&"there is none"))?;
        let bytes = self.files.read(file, std::slice::from_ref(&location)).await?;
        let filter = bytes.first().ok_or_else(|| damaged(&"it was not read"))?;
        let filter = Arc::new(Filter::from_bytes(filter).map_err(|error| damaged(&error))?);
        self.filters.insert(key, Arc::clone(&filter)).await;
        Ok(filter)
    }

    /// The rows of a row group that have one of `ids`, by number and in order, and their ids.
    async fn rows_of(
        &self,
        file: &PieceFile,
        group: usize,
        ids: WantedIds,
    ) -> Result<(Vec<usize>, Vec<RecordId>), StoreError> {
        let mask = ProjectionMask::columns(file.metadata().file_metadata().schema_descr(), [ID]);
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.files.reader(file.place()),
            file.parquet().clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_batch_size(ROW_GROUP_ROWS)
        .build()
        .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let mut found = (Vec::new(), Vec::new());
        let mut base = 0;
        for batch in batches {
            let column = batch.column(0).as_fixed_size_binary_opt();
            let column =
                column.filter(|column| column.null_count() == 0 && column.value_length() == ID_BYTES);
            let column = column.ok_or_else(|| {
                StoreError::corrupt(format!("object {}: ids are no ids", file.place().path))
            })?;
            found.extend(ids.among(column).map(|(row, id)| (base + row, id)));
            base += batch.num_rows();
        }
        Ok(found)
    }

    /// Whole rows of a row group, by number, in order.
    async fn read_rows(
        &self,
        file: &PieceFile,
        group: usize,
        rows: impl Iterator<Item = usize>,
    ) -> Result<RecordBatch, StoreError> {
        let mut selectors = Vec::new();
        let mut next = 0;
        let mut wanted = 0;
        for row in rows {
            selectors.push(RowSelector::skip(row - next));
            selectors.push(RowSelector::select(1));
            next = row + 1;
            wanted += 1;
        }
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.files.reader(file.place()),
            file.parquet().clone(),
        )
        .with_row_groups(vec![group])
        .with_row_selection(RowSelection::from(selectors))
        .with_batch_size(wanted)
        .build()
        .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let schema = Arc::clone(file.schema());
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batch = concat_batches(&schema, &batches)?;
        if batch.num_rows() == wanted && KeyColumns::of(&batch).is_ok() {
            Ok(batch)
        } else {
            Err(StoreError::corrupt(format!(
                "object {}: rows are missing",
                file.place().path
            )))
        }
    }
}

/// The rows of a piece of the tail that have one of `ids`, unless there is none.
fn search_tail(
    piece: &SnapshotPiece,
    rows: &TailRows,
    ids: &WantedIds,
) -> Result<Option<FoundRows>, StoreError> {
    let mut found = rows.rows_of(ids);
    found.retain(|(_, id)| is_live(piece, *id));
    let (Some((first, _)), Some((last, _))) = (found.first(), found.last()) else {
        return Ok(None);
    };
    let are_neighbours = last - first + 1 == found.len();
    let batch = if are_neighbours {
        rows.batch().slice(*first, found.len())
    } else {
        let numbers = UInt32Array::from_iter_values(found.iter().map(|(row, _)| *row as u32));
        take_record_batch(rows.batch(), &numbers)?
    };
    Ok(Some(FoundRows {
        piece: piece.id,
        ids: found.into_iter().map(|(_, id)| id).collect(),
        rows: batch,
    }))
}

fn is_live(piece: &SnapshotPiece, id: RecordId) -> bool {
    piece.dead.binary_search(&id).is_err()
}

fn id_column(file: &PieceFile) -> Option<usize> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    columns.iter().position(|column| {
        column.name() == ID
            && column.path().parts().len() == 1
            && column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY
    })
}

/// From the least to the greatest id of a row group, if the file says so.
fn id_range(file: &PieceFile, group: usize) -> Option<RangeInclusive<RecordId>> {
    let statistics = file
        .metadata()
        .row_groups()
        .get(group)?
        .columns()
        .get(id_column(file)?)?
        .statistics()?;
    let Statistics::FixedLenByteArray(statistics) = statistics else {
        return None;
    };
    let id = |bytes: Option<&FixedLenByteArray>| bytes.and_then(|bytes| RecordId::from_slice(bytes.data()));
    Some(id(statistics.min_opt())?..=id(statistics.max_opt())?)
}
