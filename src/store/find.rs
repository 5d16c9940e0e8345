//! Which of some ids have a live row already, and what that row is.
//!
//! Asked before every commit, so the common answer, none, has to be cheap: the tail is asked by hash or
//! looked through, whichever is less, objects by their bloom filters, which stay in memory, bounded. Only
//! where a filter says "perhaps" the id column is read, and only where an id is found the whole row.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow::array::{Array, AsArray as _, FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use futures::TryStreamExt as _;
use moka::future::Cache;
use moka::policy::EvictionPolicy;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::basic::Type as PhysicalType;
use parquet::data_type::FixedLenByteArray;
use parquet::file::statistics::Statistics;

use super::arrange::{ID, KeyColumns};
use super::constant::Constant;
use super::encoding::ROW_GROUP_ROWS;
use super::errors::StoreError;
use super::files::{ObjectPlace, PieceFile, PieceFiles};
use super::filter::{Filter, HashedId, SecondLook};
use super::snapshot::{Content, Snapshot, SnapshotPiece, TailRows};
use super::wanted::{WantedIds, all_ids};
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
/// What is remembered of ids that filters were wrong about takes this part of the memory of filters, in
/// addition.
const SECOND_LOOKS: u64 = 4;

/// And so much of that memory, in addition, ids that were read: an export that is sent again names thousands
/// of ids of the same row group, body after body.
const READ_IDS: u64 = 8;

/// A row group of an object.
type Group = (Arc<str>, usize);

/// Searches pieces by id. Cheap to clone, as every request does; all clones share their filters. Lives as
/// long as the process.
#[derive(Clone)]
pub struct Finder(Arc<Shared>);

struct Shared {
    files: PieceFiles,
    filters: Cache<Group, Arc<Filter>>,
    /// Of row groups that were read for ids that are not there.
    second_looks: Cache<Group, Arc<SecondLook>>,
    /// The ids of row groups that were read last.
    read_ids: Cache<Group, Arc<Vec<FixedSizeBinaryArray>>>,
}

impl fmt::Debug for Finder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Finder({} filters)", self.0.filters.entry_count())
    }
}

impl Finder {
    /// `memory`: how many bytes of bloom filters to keep. One of a full row group takes half a megabyte.
    #[must_use]
    pub fn new(files: PieceFiles, memory: u64) -> Self {
        let weigh = |_: &Group, filter: &Arc<Filter>| u32::try_from(filter.memory()).unwrap_or(u32::MAX);
        let weigh_look = |_: &Group, look: &Arc<SecondLook>| u32::try_from(look.memory()).unwrap_or(u32::MAX);
        let weigh_ids = |_: &Group, ids: &Arc<Vec<FixedSizeBinaryArray>>| {
            let bytes: usize = ids.iter().map(Array::get_array_memory_size).sum();
            u32::try_from(bytes).unwrap_or(u32::MAX)
        };
        Self(Arc::new(Shared {
            files,
            filters: Cache::builder().max_capacity(memory).weigher(weigh).build(),
            second_looks: Cache::builder()
                .max_capacity(memory / SECOND_LOOKS)
                .weigher(weigh_look)
                .build(),
            read_ids: Cache::builder()
                .max_capacity(memory / READ_IDS)
                .weigher(weigh_ids)
                .eviction_policy(EvictionPolicy::lru())
                .build(),
        }))
    }

    /// What it reads by.
    #[must_use]
    pub fn files(&self) -> &PieceFiles {
        &self.0.files
    }

    /// Holds nothing in memory any more, whosever it was.
    pub async fn forget_all(&self) {
        self.0.filters.invalidate_all();
        self.0.filters.run_pending_tasks().await;
        self.0.second_looks.invalidate_all();
        self.0.second_looks.run_pending_tasks().await;
        self.0.read_ids.invalidate_all();
        self.0.read_ids.run_pending_tasks().await;
    }

    /// The live rows of the partition that have one of `ids`.
    pub async fn predecessors(
        &self,
        snapshot: &Snapshot,
        ids: &[RecordId],
    ) -> Result<Vec<FoundRows>, StoreError> {
        let mut found = Vec::new();
        if ids.is_empty() || snapshot.pieces.is_empty() {
            return Ok(found);
        }
        let wanted = WantedIds::new(ids.to_vec());
        for piece in &snapshot.pieces {
            match &piece.content {
                Content::Tail(rows) => found.extend(search_tail(piece, rows, &wanted)?),
                Content::Object(place) => self.search_object(piece, place, &wanted, &mut found).await?,
            }
        }
        Ok(found)
    }

    async fn search_object(
        &self,
        piece: &SnapshotPiece,
        place: &ObjectPlace,
        ids: &WantedIds,
        found: &mut Vec<FoundRows>,
    ) -> Result<(), StoreError> {
        let file = self.0.files.open(place).await?;
        for group in 0..file.metadata().num_row_groups() {
            let range = id_range(&file, group);
            // Ids made in order of time mostly are not between the least and the greatest of older rows; then
            // the filter is not even read.
            let within = range.as_ref().map_or(ids.all(), |range| ids.within(range));
            if within.is_empty() {
                continue;
            }
            let filter = self.filter(&file, group).await?;
            // Where nearly all are, they are hashed and sorted once for all row groups.
            let hashed = if within.len() < ids.len() / 2 {
                Cow::Owned(HashedId::all(within))
            } else {
                Cow::Borrowed(ids.hashed())
            };
            let is_within = |id: &RecordId| range.as_ref().is_none_or(|range| range.contains(id));
            let mut suspects = filter.suspects(&hashed);
            suspects.retain(|id| is_within(id) && is_live(piece, *id));
            let rows = self.rows_of(&file, group, suspects).await?;
            if rows.is_empty() {
                continue;
            }
            let (rows, ids): (Vec<usize>, Vec<RecordId>) = rows.into_iter().unzip();
            found.push(FoundRows {
                piece: piece.id,
                ids,
                rows: self.read_rows(&file, group, &rows).await?,
            });
        }
        Ok(())
    }

    async fn filter(&self, file: &PieceFile, group: usize) -> Result<Arc<Filter>, StoreError> {
        let key = (Arc::clone(&file.place().path), group);
        if let Some(filter) = self.0.filters.get(&key).await {
            return Ok(filter);
        }
        let damaged = |detail: &dyn fmt::Display| {
            StoreError::corrupt(format!("object {}: bloom filter: {detail}", file.place().path))
        };
        let column =
            id_column(file).and_then(|column| file.metadata().row_groups().get(group)?.columns().get(column));
        let location = column.and_then(|column| {
            let offset = u64::try_from(column.bloom_filter_offset()?).ok()?;
            Some(offset..offset + u64::try_from(column.bloom_filter_length()?).ok()?)
        });
        let location = location.ok_or_else(|| damaged(&"there is none"))?;
        let bytes = self.0.files.read(file, std::slice::from_ref(&location)).await?;
        let filter = bytes.first().ok_or_else(|| damaged(&"it was not read"))?;
        let filter = Arc::new(Filter::from_bytes(filter).map_err(|error| damaged(&error))?);
        self.0.filters.insert(key, Arc::clone(&filter)).await;
        Ok(filter)
    }

    /// The rows of a row group that have one of the ids that its filter takes for its own, by number and in
    /// order, and these ids.
    async fn rows_of(
        &self,
        file: &PieceFile,
        group: usize,
        mut suspects: Vec<RecordId>,
    ) -> Result<Vec<(usize, RecordId)>, StoreError> {
        if suspects.is_empty() {
            return Ok(Vec::new());
        }
        let key = (Arc::clone(&file.place().path), group);
        let look = self.0.second_looks.get(&key).await;
        if let Some(look) = &look {
            suspects.retain(|id| look.may_hold(*id));
            if suspects.is_empty() {
                return Ok(Vec::new());
            }
        }
        let suspects = WantedIds::new(suspects);
        let columns = if let Some(columns) = self.0.read_ids.get(&key).await {
            columns
        } else {
            let columns = Arc::new(self.id_columns(file, group).await?);
            self.0.read_ids.insert(key.clone(), Arc::clone(&columns)).await;
            columns
        };
        let mut rows = Vec::new();
        let mut base = 0;
        for column in columns.iter() {
            rows.extend(
                suspects
                    .among(column)
                    .into_iter()
                    .map(|(row, id)| (base + row, id)),
            );
            base += column.len();
        }
        if look.is_none() && rows.len() < suspects.len() {
            let ids: Vec<RecordId> = columns.iter().flat_map(all_ids).collect();
            self.0
                .second_looks
                .insert(key, Arc::new(SecondLook::of(&ids)))
                .await;
        }
        Ok(rows)
    }

    /// The ids of a row group, in the order of its rows.
    async fn id_columns(
        &self,
        file: &PieceFile,
        group: usize,
    ) -> Result<Vec<FixedSizeBinaryArray>, StoreError> {
        let mask = ProjectionMask::columns(file.metadata().file_metadata().schema_descr(), [ID]);
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.0.files.reader(file.place()),
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
        let columns = batches.iter().map(|batch| {
            let column = batch.column(0).as_fixed_size_binary_opt();
            let column =
                column.filter(|column| column.null_count() == 0 && column.value_length() == ID_BYTES);
            column
                .cloned()
                .ok_or_else(|| StoreError::corrupt(format!("object {}: ids are no ids", file.place().path)))
        });
        columns.collect()
    }

    /// Whole rows of a row group, by number, in order.
    async fn read_rows(
        &self,
        file: &PieceFile,
        group: usize,
        rows: &[usize],
    ) -> Result<RecordBatch, StoreError> {
        let mut selectors = Vec::new();
        let mut next = 0;
        for row in rows {
            selectors.push(RowSelector::skip(row - next));
            selectors.push(RowSelector::select(1));
            next = row + 1;
        }
        // What the footer tells of all rows need not be decoded.
        let schema = file.schema();
        let constants = schema.fields().iter().map(|field| Constant::of(file, field));
        let constants: Vec<Option<Constant>> = constants.collect();
        let read = (0..constants.len()).filter(|column| constants[*column].is_none());
        let mask = ProjectionMask::roots(file.metadata().file_metadata().schema_descr(), read);
        let stream = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.0.files.reader(file.place()),
            file.parquet().clone(),
        )
        .with_row_groups(vec![group])
        .with_projection(mask)
        .with_row_selection(RowSelection::from(selectors))
        .with_batch_size(rows.len())
        .build()
        .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let read = Arc::clone(stream.schema());
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batch = concat_batches(&read, &batches)?;
        if batch.num_rows() == rows.len() && KeyColumns::of(&batch).is_ok() {
            Ok(with_constants(schema, &batch, &constants)?)
        } else {
            Err(StoreError::corrupt(format!(
                "object {}: rows are missing",
                file.place().path
            )))
        }
    }
}

/// Rows with what each of them holds beside the columns that were read.
fn with_constants(
    schema: &SchemaRef,
    read: &RecordBatch,
    constants: &[Option<Constant>],
) -> Result<RecordBatch, ArrowError> {
    let mut columns = read.columns().iter();
    let all = schema.fields().iter().zip(constants).map(|(field, constant)| {
        let rows = read.num_rows();
        match constant {
            Some(constant) => constant.rows(field.data_type(), rows),
            None => columns
                .next()
                .cloned()
                .ok_or_else(|| ArrowError::SchemaError(format!("column {} was not read", field.name()))),
        }
    });
    RecordBatch::try_new(Arc::clone(schema), all.collect::<Result<_, _>>()?)
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
