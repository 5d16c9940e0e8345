//! Which of some ids have a live row already, and what that row is.
//!
//! Asked before every commit, so the common answer, none, has to be cheap: the tail is asked by hash, objects by their bloom filters, which stay in memory,
//! bounded. Only where a filter says "perhaps" the id column is read, and only where an id is found the whole row.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use arrow::array::{AsArray as _, RecordBatch};
use arrow::compute::concat_batches;
use futures::TryStreamExt as _;
use moka::future::Cache;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::basic::Type as PhysicalType;
use parquet::bloom_filter::Sbbf;
use parquet::data_type::FixedLenByteArray;
use parquet::file::statistics::Statistics;

use super::arrange::{ID, KeyColumns};
use super::errors::StoreError;
use super::files::{ObjectPlace, PieceFile, PieceFiles};
use super::snapshot::{Content, Snapshot, SnapshotPiece};
use crate::model::ids::{PieceId, RecordId};

/// A live row.
#[derive(Clone, Debug)]
pub struct Predecessor {
    pub piece: PieceId,
    /// The one row, without columns that are null in all rows of its piece.
    pub row: RecordBatch,
}

/// Searches pieces by id. Cheap to clone; all clones share their filters. Lives as long as the process.
#[derive(Clone)]
pub struct Finder {
    files: PieceFiles,
    filters: Cache<(Arc<str>, usize), Arc<Sbbf>>,
}

impl Finder {
    /// `memory`: how many bytes of bloom filters to keep. One of a full row group takes half a megabyte.
    #[must_use]
    pub fn new(files: PieceFiles, memory: u64) -> Self {
        let weigh = |_: &(Arc<str>, usize), filter: &Arc<Sbbf>| u32::try_from(filter.num_blocks() * 32).unwrap_or(u32::MAX);
        Self { files, filters: Cache::builder().max_capacity(memory).weigher(weigh).build() }
    }

    /// The live rows of the partition that have one of `ids`.
    pub async fn predecessors(&self, snapshot: &Snapshot, ids: &[RecordId]) -> Result<HashMap<RecordId, Predecessor>, StoreError> {
        let mut found = HashMap::new();
        if ids.is_empty() {
            return Ok(found);
        }
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        for piece in &snapshot.pieces {
            match &piece.content {
                Content::Tail(rows) => {
                    for id in &sorted {
                        if let Some(row) = rows.row_of(*id)?.filter(|_| is_live(piece, *id)) {
                            found.insert(*id, Predecessor { piece: piece.id, row: rows.batch().slice(row, 1) });
                        }
                    }
                }
                Content::Object(place) => self.search_object(piece, place, &sorted, &mut found).await?,
            }
        }
        Ok(found)
    }

    async fn search_object(
        &self,
        piece: &SnapshotPiece,
        place: &ObjectPlace,
        ids: &[RecordId],
        found: &mut HashMap<RecordId, Predecessor>,
    ) -> Result<(), StoreError> {
        let file = self.files.open(place).await?;
        for group in 0..file.metadata().num_row_groups() {
            let within = ids_within(&file, group, ids);
            if within.is_empty() {
                continue;
            }
            let filter = self.filter(&file, group).await?;
            let suspects: Vec<RecordId> = within.iter().copied().filter(|id| filter.check(id.as_bytes().as_slice()) && is_live(piece, *id)).collect();
            if suspects.is_empty() {
                continue;
            }
            let rows = self.rows_of(&file, group, &suspects).await?;
            if rows.is_empty() {
                continue;
            }
            let batch = self.read_rows(&file, group, rows.keys().copied()).await?;
            for (row, id) in rows.into_values().enumerate() {
                found.insert(id, Predecessor { piece: piece.id, row: batch.slice(row, 1) });
            }
        }
        Ok(())
    }

    async fn filter(&self, file: &PieceFile, group: usize) -> Result<Arc<Sbbf>, StoreError> {
        let key = (Arc::clone(&file.place().path), group);
        if let Some(filter) = self.filters.get(&key).await {
            return Ok(filter);
        }
        let damaged = |detail: &dyn std::fmt::Display| StoreError::corrupt(format!("object {}: bloom filter: {detail}", file.place().path));
        let column = id_column(file).and_then(|column| file.metadata().row_groups().get(group)?.columns().get(column));
        let location = column.and_then(|column| {
            let offset = u64::try_from(column.bloom_filter_offset()?).ok()?;
            Some(offset..offset + u64::try_from(column.bloom_filter_length()?).ok()?)
        });
        let location = location.ok_or_else(|| damaged(&"there is none"))?;
        let bytes = self.files.read(file, std::slice::from_ref(&location)).await?;
        let filter = bytes.first().ok_or_else(|| damaged(&"it was not read"))?;
        let filter = Arc::new(Sbbf::from_bytes(filter).map_err(|error| damaged(&error))?);
        self.filters.insert(key, Arc::clone(&filter)).await;
        Ok(filter)
    }

    /// The rows of a row group that have one of `ids`, by number.
    async fn rows_of(&self, file: &PieceFile, group: usize, ids: &[RecordId]) -> Result<BTreeMap<usize, RecordId>, StoreError> {
        let mut rows = BTreeMap::new();
        let mask = ProjectionMask::columns(file.metadata().file_metadata().schema_descr(), [ID]);
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(self.files.reader(file.place()), file.parquet().clone())
            .with_row_groups(vec![group])
            .with_projection(mask)
            .build()
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let mut base = 0;
        for batch in batches {
            let column = batch.column(0).as_fixed_size_binary_opt();
            let column = column.ok_or_else(|| StoreError::corrupt(format!("object {}: ids are no ids", file.place().path)))?;
            for (row, bytes) in column.iter().enumerate() {
                let Some(id) = bytes.and_then(RecordId::from_slice) else { continue };
                if ids.binary_search(&id).is_ok() {
                    rows.insert(base + row, id);
                }
            }
            base += batch.num_rows();
        }
        Ok(rows)
    }

    /// Whole rows of a row group, by number, in order.
    async fn read_rows(&self, file: &PieceFile, group: usize, rows: impl Iterator<Item = usize>) -> Result<RecordBatch, StoreError> {
        let mut selectors = Vec::new();
        let mut next = 0;
        let mut wanted = 0;
        for row in rows {
            selectors.push(RowSelector::skip(row - next));
            selectors.push(RowSelector::select(1));
            next = row + 1;
            wanted += 1;
        }
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(self.files.reader(file.place()), file.parquet().clone())
            .with_row_groups(vec![group])
            .with_row_selection(RowSelection::from(selectors))
            .with_batch_size(wanted)
            .build()
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let schema = Arc::clone(file.schema());
        let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batch = concat_batches(&schema, &batches)?;
        if batch.num_rows() == wanted && KeyColumns::of(&batch).is_ok() {
            Ok(batch)
        } else {
            Err(StoreError::corrupt(format!("object {}: rows are missing", file.place().path)))
        }
    }
}

fn is_live(piece: &SnapshotPiece, id: RecordId) -> bool {
    piece.dead.binary_search(&id).is_err()
}

fn id_column(file: &PieceFile) -> Option<usize> {
    let columns = file.metadata().file_metadata().schema_descr().columns();
    columns.iter().position(|column| column.name() == ID && column.path().parts().len() == 1 && column.physical_type() == PhysicalType::FIXED_LEN_BYTE_ARRAY)
}

/// Those of the sorted `ids` that lie between the least and the greatest of a row group. Ids made in order of time mostly do not.
fn ids_within<'i>(file: &PieceFile, group: usize, ids: &'i [RecordId]) -> &'i [RecordId] {
    let statistics = id_column(file).and_then(|column| file.metadata().row_groups().get(group)?.columns().get(column)?.statistics());
    let Some(Statistics::FixedLenByteArray(statistics)) = statistics else { return ids };
    let id = |bytes: Option<&FixedLenByteArray>| bytes.and_then(|bytes| RecordId::from_slice(bytes.data()));
    let (Some(least), Some(greatest)) = (id(statistics.min_opt()), id(statistics.max_opt())) else { return ids };
    let (from, to) = (ids.partition_point(|id| *id < least), ids.partition_point(|id| *id <= greatest));
    ids.get(from..to).unwrap_or(ids)
}
