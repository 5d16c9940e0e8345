//! Finds which of some ids already have a live row, and that row.
//!
//! This runs before every commit, so the common answer, none, must be cheap: the tail is searched by hash or
//! row by row, whichever takes less, and objects by the index of ids that they carry. Ids are read only where
//! that says "perhaps", and whole rows only where an id is found.

mod finder;
mod suspects;

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array as _, AsArray as _, FixedSizeBinaryArray, RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use futures::TryStreamExt as _;
use parquet::arrow::arrow_reader::RowSelection;
use parquet::arrow::async_reader::ParquetRecordBatchStream;
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};

use super::arrange::KeyColumns;
use super::constant::KnownColumns;
use super::encoding::ROW_GROUP_ROWS;
use super::errors::StoreError;
use super::files::{PieceFile, PieceReader, merge};
use super::outline::ObjectPlace;
use super::snapshot::{PieceContent, Snapshot, SnapshotPiece, TailRows};
use super::wanted_ids::WantedIds;
use crate::model::columns::ID;
use crate::model::ids::{PieceId, RecordId};
use finder::is_live;
use suspects::Suspects;

pub use finder::Finder;

/// Live rows of one piece. They stay together, as they were read: separate batches would cost far more than
/// finding them.
#[derive(Clone, Debug)]
pub struct FoundRows {
    pub piece: PieceId,
    /// The id of each row.
    pub ids: Vec<RecordId>,
    /// Without the columns that are null in all rows of the piece.
    pub rows: RecordBatch,
}

const ID_BYTES: i32 = 16;

impl Finder {
    /// The live rows of the partition that have one of `ids`.
    pub async fn live_rows_of(
        &self,
        snapshot: &Snapshot,
        ids: &[RecordId],
    ) -> Result<Vec<FoundRows>, StoreError> {
        let mut found = Vec::new();
        if ids.is_empty() || snapshot.pieces.is_empty() {
            return Ok(found);
        }
        let wanted = WantedIds::new(ids.to_vec());
        let mut room = self.room();
        for piece in &snapshot.pieces {
            match &piece.content {
                PieceContent::Tail(rows) => found.extend(search_tail(piece, rows, &wanted)?),
                PieceContent::Object(place) => {
                    let keeps = room.take(piece);
                    let suspects = self.suspects(piece, place, &wanted, keeps).await?;
                    found.extend(self.search_object(piece, place, suspects).await?);
                }
            }
        }
        Ok(found)
    }

    async fn search_object(
        &self,
        piece: &SnapshotPiece,
        place: &ObjectPlace,
        suspects: Suspects,
    ) -> Result<Option<FoundRows>, StoreError> {
        if suspects.ids.is_empty() || suspects.rows.is_empty() {
            return Ok(None);
        }
        let file = self.0.files.open(place).await?;
        let rows = self.rows_of(&file, suspects).await?;
        if rows.is_empty() {
            return Ok(None);
        }
        let (rows, ids): (Vec<usize>, Vec<RecordId>) = rows.into_iter().unzip();
        Ok(Some(FoundRows {
            piece: piece.id,
            ids,
            rows: self.read_rows(&file, &rows).await?,
        }))
    }

    /// The rows that have one of the suspected ids, by number and in order, with these ids.
    async fn rows_of(
        &self,
        file: &PieceFile,
        suspects: Suspects,
    ) -> Result<Vec<(usize, RecordId)>, StoreError> {
        let wanted = WantedIds::new(suspects.ids);
        let stretches = Stretches::of(&suspects.rows);
        let mask = ProjectionMask::columns(file.metadata().file_metadata().schema_descr(), [ID]);
        let mut stream = self.stream(file, &stretches, mask, ROW_GROUP_ROWS)?;
        let mut found = Vec::new();
        let mut passed = 0;
        let reading = |error| StoreError::reading(&file.place().path, &error);
        while let Some(batch) = stream.try_next().await.map_err(reading)? {
            let among = wanted.among(&id_column(file, &batch)?).into_iter();
            found.extend(among.filter_map(|(row, id)| Some((stretches.row(passed + row)?, id))));
            passed += batch.num_rows();
        }
        Ok(found)
    }

    /// Whole rows, by number and in order.
    async fn read_rows(&self, file: &PieceFile, rows: &[usize]) -> Result<RecordBatch, StoreError> {
        // Columns whose value the footer gives for all rows need not be decoded.
        let columns = KnownColumns::of(file);
        let each: Vec<_> = rows.iter().map(|row| *row..row + 1).collect();
        let stretches = Stretches::of(&each);
        let stream = self.stream(file, &stretches, columns.others(), rows.len())?;
        let read = Arc::clone(stream.schema());
        let batches: Vec<RecordBatch> = stream
            .try_collect()
            .await
            .map_err(|error| StoreError::reading(&file.place().path, &error))?;
        let batch = concat_batches(&read, &batches)?;
        if batch.num_rows() == rows.len() && KeyColumns::of(&batch).is_ok() {
            Ok(columns.put_back(&batch)?)
        } else {
            Err(StoreError::corrupt(format!(
                "object {}: rows are missing",
                file.place().path
            )))
        }
    }

    /// Some columns of stretches of rows, in order.
    fn stream(
        &self,
        file: &PieceFile,
        stretches: &Stretches,
        columns: ProjectionMask,
        batch_rows: usize,
    ) -> Result<ParquetRecordBatchStream<PieceReader>, StoreError> {
        let rows = file.metadata().file_metadata().num_rows();
        let selection = RowSelection::from_consecutive_ranges(stretches.list.iter().cloned(), rows as usize);
        ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.0.files.reader(file.place()),
            file.parquet().clone(),
        )
        .with_projection(columns)
        .with_row_selection(selection)
        .with_batch_size(batch_rows)
        .build()
        .map_err(|error| StoreError::reading(&file.place().path, &error))
    }
}

/// Rows of an object as stretches.
struct Stretches {
    /// In order; none touches the next.
    list: Vec<Range<usize>>,
    /// How many rows come before each.
    before: Vec<usize>,
}

impl Stretches {
    fn of(rows: &[Range<usize>]) -> Self {
        let list = merge(rows);
        let before = list.iter().scan(0, |rows, stretch| {
            let before = *rows;
            *rows += stretch.len();
            Some(before)
        });
        Self {
            before: before.collect(),
            list,
        }
    }

    /// The number of a row in the object, from its number among these.
    fn row(&self, number: usize) -> Option<usize> {
        let stretch = self
            .before
            .partition_point(|before| *before <= number)
            .checked_sub(1)?;
        Some(self.list.get(stretch)?.start + number - self.before.get(stretch)?)
    }
}

/// The rows of a tail piece that have one of `ids`, if there are any.
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

fn id_column(file: &PieceFile, batch: &RecordBatch) -> Result<FixedSizeBinaryArray, StoreError> {
    let column = batch.column(0).as_fixed_size_binary_opt();
    let column = column.filter(|column| column.null_count() == 0 && column.value_length() == ID_BYTES);
    column
        .cloned()
        .ok_or_else(|| StoreError::corrupt(format!("object {}: ids are no ids", file.place().path)))
}
