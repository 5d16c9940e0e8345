//! Writes records of one type as Parquet that any reader understands: the rows as they are stored, in their
//! order, with ids as text.
//!
//! A member ends before it becomes so large that readers would have trouble with it; the next one continues.
//! Knows stored rows; knows nothing of how an archive is put together.

use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, FixedSizeBinaryArray, RecordBatch, StringArray};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::error::ArrowError;
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use uuid::Uuid;

use super::content::Archive;
use super::export::ExportError;
use super::format::records_member;
use super::zip::Packing;
use crate::model::columns::ID;
use crate::model::registry::TypeId;
use crate::store::StoreError;
use crate::store::blocking::run_blocking;
use crate::store::encoding::{ROW_GROUP_BYTES, ROW_GROUP_ROWS};
use crate::upkeep::merge_pieces::Merge;

/// After this many bytes, a type continues in another member.
const MEMBER_BYTES: u64 = 1 << 30;
/// A member stays below this: it exceeds `MEMBER_BYTES` by one row group at most.
const MOST_BYTES: u64 = 3 << 30;

impl Archive<'_, '_> {
    /// Writes the records of a type, as they are at one moment.
    pub(super) async fn records(&mut self, data_type: &TypeId) -> Result<(), ExportError> {
        let stores = &self.exports.stores;
        let mut snapshots = stores
            .snapshots
            .get(self.person, std::slice::from_ref(data_type))
            .await?;
        let Some(snapshot) = snapshots.pop().filter(|snapshot| snapshot.records > 0) else {
            return Ok(());
        };
        let mut rows = Box::pin(Merge::of_snapshot(&stores.files, &snapshot)).await?;
        let schema = shown(rows.schema());
        let mut found: i64 = 0;
        let mut table: Option<Table> = None;
        let mut number = 0;
        while let Some(batch) = Box::pin(rows.next()).await? {
            found += batch.num_rows() as i64;
            let begun = if let Some(table) = table.take() {
                table
            } else {
                number += 1;
                let name = records_member(data_type, number);
                self.begin(&name, Packing::Stored, MOST_BYTES).await?;
                Table::begin(&schema)?
            };
            let (begun, ready) = begun.write(batch).await?;
            self.add(ready).await?;
            if begun.bytes >= MEMBER_BYTES {
                self.end_table(begun, data_type).await?;
            } else {
                table = Some(begun);
            }
        }
        if let Some(table) = table {
            self.end_table(table, data_type).await?;
        }
        if found != snapshot.records {
            let what = format!("{data_type} has {found} records, not {}", snapshot.records);
            return Err(StoreError::corrupt(what).into());
        }
        self.counts.types += 1;
        self.counts.records += found.unsigned_abs();
        Ok(())
    }

    async fn end_table(&mut self, table: Table, data_type: &TypeId) -> Result<(), ExportError> {
        let rows = table.rows;
        self.add(table.end().await?).await?;
        self.end_member(Some(data_type.as_str()), Some(rows)).await
    }
}

/// A Parquet file being written.
struct Table {
    writer: ArrowWriter<Vec<u8>>,
    schema: SchemaRef,
    rows: u64,
    /// How many bytes were handed out.
    bytes: u64,
}

impl Table {
    fn begin(schema: &SchemaRef) -> Result<Self, StoreError> {
        let level = ZstdLevel::try_new(3).map_err(broken)?;
        let properties = WriterProperties::builder()
            .set_created_by("almanac".to_owned())
            .set_compression(Compression::ZSTD(level))
            .set_max_row_group_row_count(Some(ROW_GROUP_ROWS))
            .build();
        let writer =
            ArrowWriter::try_new(Vec::new(), Arc::clone(schema), Some(properties)).map_err(broken)?;
        Ok(Self {
            writer,
            schema: Arc::clone(schema),
            rows: 0,
            bytes: 0,
        })
    }

    /// Writes rows and returns the bytes that are ready; runs on a blocking thread, so that requests do not
    /// wait.
    async fn write(mut self, batch: RecordBatch) -> Result<(Self, Bytes), StoreError> {
        run_blocking(move || {
            let batch = with_text_ids(&batch, &self.schema)?;
            self.rows += batch.num_rows() as u64;
            self.writer.write(&batch).map_err(broken)?;
            if self.writer.in_progress_size() >= ROW_GROUP_BYTES {
                self.writer.flush().map_err(broken)?;
            }
            self.writer.sync().map_err(|error| broken(error.into()))?;
            let ready = std::mem::take(self.writer.inner_mut());
            self.bytes += ready.len() as u64;
            Ok((self, ready.into()))
        })
        .await
    }

    async fn end(mut self) -> Result<Bytes, StoreError> {
        run_blocking(move || {
            self.writer.finish().map_err(broken)?;
            Ok(std::mem::take(self.writer.inner_mut()).into())
        })
        .await
    }
}

/// The columns of stored rows in the form of an archive: ids are text there, and bytes in storage.
fn shown(stored: &SchemaRef) -> SchemaRef {
    let fields = stored.fields().iter().map(|field| {
        if field.name() == ID {
            Arc::new(Field::new(ID, DataType::Utf8, false))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn with_text_ids(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, StoreError> {
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| {
            if field.name() == ID {
                text_ids(column)
            } else {
                Ok(Arc::clone(column))
            }
        });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn text_ids(column: &ArrayRef) -> Result<ArrayRef, StoreError> {
    let ids = column.as_any().downcast_ref::<FixedSizeBinaryArray>();
    let ids = ids.ok_or_else(|| StoreError::corrupt("ids of records are no ids"))?;
    let mut buffer = Uuid::encode_buffer();
    let mut texts = Vec::with_capacity(ids.len() * buffer.len());
    let mut lengths = Vec::with_capacity(ids.len());
    for id in ids.iter().flatten() {
        let id = Uuid::from_slice(id).map_err(|error| StoreError::corrupt(error.to_string()))?;
        let text = id.hyphenated().encode_lower(&mut buffer);
        texts.extend_from_slice(text.as_bytes());
        lengths.push(text.len());
    }
    let offsets = arrow::buffer::OffsetBuffer::from_lengths(lengths);
    let texts = StringArray::try_new(offsets, arrow::buffer::Buffer::from_vec(texts), None)?;
    Ok(Arc::new(texts))
}

/// The ids of an archive in their stored form.
pub(super) fn stored_ids(column: &ArrayRef) -> Result<ArrayRef, ArrowError> {
    let no_id = |what: &str| ArrowError::ParseError(format!("{what:?} is not the id of a record"));
    let texts = arrow::compute::cast(column, &DataType::Utf8)?;
    let texts = texts.as_any().downcast_ref::<StringArray>();
    let texts = texts.ok_or_else(|| no_id("a column"))?;
    let mut ids = Vec::with_capacity(texts.len() * 16);
    for text in texts {
        let text = text.ok_or_else(|| no_id(""))?;
        let id = Uuid::try_parse(text).map_err(|_| no_id(text))?;
        ids.extend_from_slice(id.as_bytes());
    }
    let ids = FixedSizeBinaryArray::try_new(16, arrow::buffer::Buffer::from_vec(ids), None)?;
    Ok(Arc::new(ids))
}

#[expect(clippy::needless_pass_by_value, reason = "it is what `map_err` hands over")]
fn broken(error: ParquetError) -> StoreError {
    StoreError::Rows {
        detail: error.to_string(),
    }
}
