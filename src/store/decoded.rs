//! Caches recently decoded rows of objects, stretch by stretch and column by column.
//!
//! A small question wants some hundred rows, for which whole pages of every column are decoded, and the next
//! question usually wants rows of the same pages. Decoded columns stay in memory, bounded. An object never
//! changes, so they are never out of date. Knows objects; knows nothing of questions, nor of which rows are
//! dead.

use std::fmt;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, FieldRef, Schema, SchemaRef};
use futures::TryStreamExt as _;
use parquet::arrow::arrow_reader::{RowSelection, RowSelector};
use parquet::arrow::{ParquetRecordBatchStreamBuilder, ProjectionMask};
use parquet::file::page_index::column_index::{ColumnIndexMetaData, PrimitiveColumnIndex};
use parquet::file::page_index::offset_index::PageLocation;

use super::encoding::{PAGE_ROWS, ROW_GROUP_ROWS};
use super::errors::StoreError;
use super::files::{PieceFile, PieceFiles};
use super::outline::ObjectPlace;
use crate::model::cache::Cache;
use crate::model::columns::{END, START};
use crate::model::meters::CacheMeters;

/// Larger stretches are not kept.
const STRETCH_BYTES: i64 = 4 << 20;
/// The size of a column with long texts.
const LARGE_COLUMN_BYTES: u64 = 512 << 10;
const _: () = assert!(
    ROW_GROUP_ROWS.is_multiple_of(PAGE_ROWS),
    "the pages of a group are stretches"
);

/// Rows of an object that are decoded together: those of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    group: usize,
    /// Its number among the stretches of the group.
    number: usize,
}

/// A column of a stretch. The field says which members of a structure are decoded.
#[derive(Clone, PartialEq, Eq, Hash)]
struct ColumnOfStretch {
    path: Arc<str>,
    stretch: Stretch,
    field: FieldRef,
}

/// Decodes stretches. Cheap to clone; all clones share the cache. Lives as long as the process.
#[derive(Clone)]
pub struct RowDecoder {
    files: PieceFiles,
    known: Cache<ColumnOfStretch, ArrayRef>,
}

impl fmt::Debug for RowDecoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("RowDecoder")
    }
}

impl RowDecoder {
    /// `memory`: how many bytes of decoded columns to keep.
    #[must_use]
    pub fn new(files: PieceFiles, memory: u64) -> Self {
        let weigh = |kept: &ColumnOfStretch, column: &ArrayRef| {
            column.get_array_memory_size() + kept.path.len() + size_of::<ColumnOfStretch>()
        };
        let known = Cache::of_bytes(memory, LARGE_COLUMN_BYTES, weigh);
        let kept = known.clone();
        files.on_replaced(move |replaced| {
            kept.retain(|kept: &ColumnOfStretch| !replaced.contains(&kept.path));
        });
        Self { files, known }
    }

    /// Lets `meters` show how much is held.
    pub fn watched_by(&self, meters: &CacheMeters) {
        meters.watch("decoded", &self.known);
    }

    /// Drops everything from memory.
    pub fn forget_all(&self) {
        self.known.clear();
    }

    pub async fn open(&self, place: &ObjectPlace) -> Result<Arc<PieceFile>, StoreError> {
        self.files.open(place).await
    }

    /// The rows of a stretch with those columns of `schema` that the object has; [`can_be_kept`] approved of
    /// all.
    pub async fn read(
        &self,
        file: &PieceFile,
        stretch: Stretch,
        schema: &SchemaRef,
    ) -> Result<RecordBatch, StoreError> {
        let is_stored = |field: &&FieldRef| file.schema().column_with_name(field.name()).is_some();
        let fields: Vec<FieldRef> = schema.fields().iter().filter(is_stored).cloned().collect();
        let known = fields
            .iter()
            .map(|field| self.known.get(&kept(file, stretch, field)));
        let mut columns: Vec<Option<ArrayRef>> = known.collect();
        let missing = fields.iter().zip(&columns).filter(|(_, column)| column.is_none());
        let missing: Vec<FieldRef> = missing.map(|(field, _)| Arc::clone(field)).collect();
        if !missing.is_empty() {
            let decoded = self.decode(file, stretch, &missing).await?;
            for (field, column) in fields.iter().zip(&mut columns) {
                if column.is_none()
                    && let Some(found) = decoded.column_by_name(field.name())
                {
                    self.known.insert(kept(file, stretch, field), Arc::clone(found));
                    *column = Some(Arc::clone(found));
                }
            }
        }
        let columns: Option<Vec<ArrayRef>> = columns.into_iter().collect();
        let columns = columns.ok_or_else(|| missing_rows(file))?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows_of(file, stretch)));
        Ok(RecordBatch::try_new_with_options(
            Arc::new(Schema::new(fields)),
            columns,
            &options,
        )?)
    }

    async fn decode(
        &self,
        file: &PieceFile,
        stretch: Stretch,
        fields: &[FieldRef],
    ) -> Result<RecordBatch, StoreError> {
        let reading = |error| StoreError::reading(&file.place().path, &error);
        let parquet = file.metadata().file_metadata().schema_descr();
        let leaves = parquet.columns().iter().enumerate().filter(|(_, leaf)| {
            let mut path = leaf.path().parts().iter();
            let field = path
                .next()
                .and_then(|root| fields.iter().find(|field| field.name() == root));
            field.is_some_and(|field| match (field.data_type(), path.next()) {
                (DataType::Struct(members), Some(member)) => {
                    members.iter().any(|wanted| wanted.name() == member)
                }
                _ => true,
            })
        });
        let mask = ProjectionMask::leaves(parquet, leaves.map(|(leaf, _)| leaf));
        let rows = rows_of(file, stretch);
        let selection = RowSelection::from(vec![
            RowSelector::skip(stretch.number * PAGE_ROWS),
            RowSelector::select(rows),
        ]);
        let batches: Vec<RecordBatch> = ParquetRecordBatchStreamBuilder::new_with_metadata(
            self.files.reader(file.place()),
            file.parquet().clone(),
        )
        .with_row_groups(vec![stretch.group])
        .with_projection(mask)
        .with_row_selection(selection)
        .with_batch_size(rows)
        .build()
        .map_err(reading)?
        .try_collect()
        .await
        .map_err(reading)?;
        let batch = match batches.as_slice() {
            [one] => one.clone(),
            [first, ..] => concat_batches(first.schema_ref(), &batches)?,
            [] => return Err(missing_rows(file)),
        };
        if batch.num_rows() == rows {
            Ok(batch)
        } else {
            Err(missing_rows(file))
        }
    }
}

fn kept(file: &PieceFile, stretch: Stretch, field: &FieldRef) -> ColumnOfStretch {
    ColumnOfStretch {
        path: Arc::clone(&file.place().path),
        stretch,
        field: Arc::clone(field),
    }
}

fn missing_rows(file: &PieceFile) -> StoreError {
    StoreError::corrupt(format!("object {}: rows are missing", file.place().path))
}

fn rows_of(file: &PieceFile, stretch: Stretch) -> usize {
    let group = file.metadata().row_groups().get(stretch.group);
    let rows = group.map_or(0, |group| usize::try_from(group.num_rows()).unwrap_or(0));
    rows.saturating_sub(stretch.number * PAGE_ROWS).min(PAGE_ROWS)
}

/// Whether the columns of `schema` have the types that are decoded from an object, or are missing there. A
/// column whose type has changed since is for readers who convert.
#[must_use]
pub fn can_be_kept(file: &PieceFile, schema: &Schema) -> bool {
    schema.fields().iter().all(|wanted| {
        let stored = file.schema().column_with_name(wanted.name());
        stored.map_or(wanted.is_nullable(), |(_, stored)| {
            is_part(wanted.data_type(), stored.data_type())
        })
    })
}

/// Whether `wanted` is `stored`, or a structure with some of its members.
pub(super) fn is_part(wanted: &DataType, stored: &DataType) -> bool {
    let (DataType::Struct(some), DataType::Struct(all)) = (wanted, stored) else {
        return wanted == stored;
    };
    let named = all
        .iter()
        .filter(|member| some.iter().any(|wanted| wanted.name() == member.name()));
    some.iter().eq(named)
}

/// The stretches with all rows that start before `before` and do not end before `from`, in order. `None`:
/// there are more than `most`, or the object does not say where its rows are.
#[must_use]
pub fn stretches(file: &PieceFile, from: i64, before: i64, most: usize) -> Option<Vec<Stretch>> {
    let metadata = file.metadata();
    let mut found = Vec::new();
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let rows = usize::try_from(group.num_rows()).ok().filter(|rows| *rows > 0)?;
        // The rows are in the order of their starts: from the first row that reaches far enough, all rows are
        // wanted up to the first that starts too late.
        let starts = TimesOfPages::of(file, number, START)?;
        let ends = TimesOfPages::of(file, number, END)?;
        let first = ends.first_page(rows, |times, page| Some(times.max_value(page)? >= &from))?;
        let after = starts.first_page(rows, |times, page| Some(times.min_value(page)? >= &before))?;
        if first >= after {
            continue;
        }
        let numbers = first / PAGE_ROWS..after.div_ceil(PAGE_ROWS);
        let bytes = group.total_byte_size() / group.num_rows().max(1) * PAGE_ROWS as i64;
        if found.len() + numbers.len() > most || bytes > STRETCH_BYTES {
            return None;
        }
        found.extend(numbers.map(|stretch| Stretch {
            group: number,
            number: stretch,
        }));
    }
    Some(found)
}

/// The least and the greatest time of each page of a row group.
struct TimesOfPages<'f> {
    times: &'f PrimitiveColumnIndex<i64>,
    pages: &'f [PageLocation],
}

impl<'f> TimesOfPages<'f> {
    fn of(file: &'f PieceFile, group: usize, name: &str) -> Option<Self> {
        let metadata = file.metadata();
        let columns = metadata.file_metadata().schema_descr().columns();
        let column = columns.iter().position(|column| column.path().string() == name)?;
        let ColumnIndexMetaData::INT64(times) = metadata.column_index()?.get(group)?.get(column)? else {
            return None;
        };
        let pages = metadata.offset_index()?.get(group)?.get(column)?.page_locations();
        (usize::try_from(times.num_pages()).ok()? == pages.len()).then_some(Self { times, pages })
    }

    /// The first row of the first page for which `holds` is true, or `otherwise`. `None`: a page does not
    /// say.
    fn first_page(
        &self,
        otherwise: usize,
        holds: impl Fn(&PrimitiveColumnIndex<i64>, usize) -> Option<bool>,
    ) -> Option<usize> {
        for (number, page) in self.pages.iter().enumerate() {
            if holds(self.times, number)? {
                return usize::try_from(page.first_row_index).ok();
            }
        }
        Some(otherwise)
    }
}
