//! The tail: small pieces that live in the catalogue as blobs until a flush turns them into objects.
//!
//! A blob is one batch of sorted rows as an Arrow IPC stream, compressed with ZSTD, without the columns that
//! are null in all its rows. Its CRC-32 is in the catalogue, and verified before anything is decoded.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array as _, ArrayData, RecordBatch, RecordBatchOptions, make_array};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamDecoder;
use arrow::ipc::writer::StreamWriter;
use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use super::arrange::{KeyColumns, sort_rows, without_null_columns};
use super::errors::StoreError;
use super::sealing::PersonKey;
use crate::catalog::records::{NewPiece, NewPlace};
use crate::model::ids::PieceId;

/// The first byte of a blob names its form, so that another form can be added.
const ZSTD_ARROW_STREAM: u8 = 1;
/// A form byte and the decompressed length, four bytes little-endian.
const HEADER_BYTES: usize = 5;
/// The fastest level that still finds repetitions; blobs are soon rewritten as Parquet.
const LEVEL: i32 = 1;

/// How many compressors are kept; more are made when needed.
const COMPRESSORS_KEPT: usize = 4;

/// A pool of compressors or decompressors: setting one up takes several times as long as processing a small
/// batch. Cheap to clone; all clones share the pool.
struct Idle<T>(Arc<Mutex<Vec<T>>>);

impl<T> Idle<T> {
    fn lend<R>(
        &self,
        make: impl FnOnce() -> std::io::Result<T>,
        work: impl FnOnce(&mut T) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let idle = self.kept().pop();
        let mut lent = match idle {
            Some(lent) => lent,
            None => make().map_err(StoreError::rows)?,
        };
        let result = work(&mut lent);
        let mut kept = self.kept();
        if kept.len() < COMPRESSORS_KEPT {
            kept.push(lent);
        }
        result
    }

    fn kept(&self) -> MutexGuard<'_, Vec<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Idle<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Clone for Idle<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// Makes tail pieces.
#[derive(Clone, Default)]
pub struct Packer(Idle<Compressor<'static>>);

/// Reads batches that [`encode`] made.
#[derive(Clone, Default)]
pub(super) struct Unpacker(Idle<Decompressor<'static>>);

impl fmt::Debug for Unpacker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Unpacker")
    }
}

impl Packer {
    /// The rows as a tail piece. Sorts them if necessary.
    pub fn piece(
        &self,
        id: PieceId,
        rows: &RecordBatch,
        layout_version: u32,
    ) -> Result<NewPiece, StoreError> {
        let rows = sort_rows(rows)?;
        let bounds = KeyColumns::of(&rows)?
            .bounds()
            .ok_or_else(|| StoreError::rows("a piece needs at least one row"))?;
        let (blob, checksum) = self.encode(&rows)?;
        let memory = memory_of(&blob);
        Ok(NewPiece {
            id,
            rows: rows.num_rows() as i64,
            bounds,
            layout_version,
            checksum,
            bytes: blob.len() as i64,
            place: NewPlace::Tail { blob, memory },
        })
    }

    fn encode(&self, batch: &RecordBatch) -> Result<(Bytes, u32), StoreError> {
        self.0
            .lend(|| Compressor::new(LEVEL), |compressor| encoded(batch, compressor))
    }
}

/// The rows as a tail piece, for callers that make few.
pub fn piece(id: PieceId, rows: &RecordBatch, layout_version: u32) -> Result<NewPiece, StoreError> {
    Packer::default().piece(id, rows, layout_version)
}

/// The batch as a blob, and its CRC-32.
pub fn encode(batch: &RecordBatch) -> Result<(Bytes, u32), StoreError> {
    Packer::default().encode(batch)
}

fn encoded(batch: &RecordBatch, compressor: &mut Compressor<'static>) -> Result<(Bytes, u32), StoreError> {
    let batch = without_null_columns(batch)?;
    let mut stream = Vec::with_capacity(2048 + batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    let length = u32::try_from(stream.len())
        .map_err(|_| StoreError::rows("more than 4 GB in one batch; write it as an object"))?;
    let mut blob = vec![0; HEADER_BYTES + zstd::zstd_safe::compress_bound(stream.len())];
    let (header, body) = blob.split_at_mut(HEADER_BYTES);
    header[0] = ZSTD_ARROW_STREAM;
    header[1..].copy_from_slice(&length.to_le_bytes());
    let compressed = compressor
        .compress_to_buffer(&stream, body)
        .map_err(StoreError::rows)?;
    blob.truncate(HEADER_BYTES + compressed);
    blob.shrink_to_fit();
    let checksum = crc32fast::hash(&blob);
    Ok((blob.into(), checksum))
}

/// How many bytes the rows of a blob take when decoded, according to its header.
fn memory_of(blob: &[u8]) -> u32 {
    let header = blob.first_chunk::<HEADER_BYTES>();
    header.map_or(0, |[_, length @ ..]| u32::from_le_bytes(*length))
}

/// The rows of a tail piece, sealed or not.
pub fn open(
    piece: PieceId,
    blob: &[u8],
    checksum: u32,
    key: Option<&PersonKey>,
) -> Result<RecordBatch, StoreError> {
    if !PersonKey::is_sealed(blob) {
        return decode(blob, checksum);
    }
    if crc32fast::hash(blob) != checksum {
        return Err(StoreError::corrupt(
            "a sealed blob of the tail: it differs from what was written",
        ));
    }
    let key = key.ok_or_else(|| StoreError::Unavailable {
        detail: "rows of the tail are encrypted, and there is no key".to_owned(),
    })?;
    let blob = key.open_blob(piece.0.as_bytes(), blob)?;
    decode(&blob, crc32fast::hash(&blob))
}

/// Decodes the batch that `encode` made into `blob`, without the columns that were null in all its rows.
pub fn decode(blob: &[u8], checksum: u32) -> Result<RecordBatch, StoreError> {
    Unpacker::default().decode(blob, checksum)
}

impl Unpacker {
    /// Decodes the batch that `encode` made into `blob`, as the function [`decode`] does: for callers that
    /// decode many.
    pub(super) fn decode(&self, blob: &[u8], checksum: u32) -> Result<RecordBatch, StoreError> {
        self.0.lend(Decompressor::new, |decompressor| {
            decoded(blob, checksum, decompressor)
        })
    }
}

fn decoded(
    blob: &[u8],
    checksum: u32,
    decompressor: &mut Decompressor<'static>,
) -> Result<RecordBatch, StoreError> {
    let damaged = |detail: &dyn fmt::Display| StoreError::corrupt(format!("a blob of the tail: {detail}"));
    if crc32fast::hash(blob) != checksum {
        return Err(damaged(&"it differs from what was written"));
    }
    let Some(([ZSTD_ARROW_STREAM, length @ ..], body)) = blob.split_first_chunk::<HEADER_BYTES>() else {
        return Err(damaged(&"its form is unknown"));
    };
    let length = u32::from_le_bytes(*length) as usize;
    let stream = decompressor
        .decompress(body, length)
        .map_err(|error| damaged(&error))?;
    let mut buffer = Buffer::from_vec(stream);
    let rows = StreamDecoder::new()
        .decode(&mut buffer)
        .map_err(|error| damaged(&error))?
        .ok_or_else(|| damaged(&"it holds no rows"))?;
    let columns = rows
        .columns()
        .iter()
        .map(|column| apart(&column.to_data()).map(make_array));
    let columns = columns
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| damaged(&error))?;
    let count = RecordBatchOptions::new().with_row_count(Some(rows.num_rows()));
    Ok(RecordBatch::try_new_with_options(rows.schema(), columns, &count)?)
}

/// The same values in memory of their own. Decoded columns share one stretch of memory. It would be counted
/// anew for each of their buffers, and all of it would stay for as long as any column does.
fn apart(values: &ArrayData) -> Result<ArrayData, ArrowError> {
    let copied = |buffer: &Buffer| Buffer::from(buffer.as_slice());
    let nulls = values.nulls().map(|nulls| {
        let bits = BooleanBuffer::new(copied(nulls.buffer()), nulls.offset(), nulls.len());
        NullBuffer::new(bits)
    });
    let inside = values.child_data().iter().map(apart);
    ArrayData::builder(values.data_type().clone())
        .len(values.len())
        .offset(values.offset())
        .nulls(nulls)
        .buffers(values.buffers().iter().map(copied).collect())
        .child_data(inside.collect::<Result<_, _>>()?)
        .build()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{
        ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array, ListArray,
        StringArray, StructArray,
    };
    use arrow::datatypes::{DataType, Field, Int32Type, Int64Type};

    use super::*;

    #[test]
    fn a_decoded_blob_is_what_was_encoded_and_no_column_holds_the_memory_of_another() {
        let rows = 10_000;
        let words = StringArray::from(vec!["watch", "phone"]);
        let keys: Int32Array = (0..rows).map(|row| (row % 7 > 0).then_some(row % 2)).collect();
        let made_by: DictionaryArray<Int32Type> = DictionaryArray::try_new(keys, Arc::new(words)).unwrap();
        let member = Field::new("number", DataType::Int64, true);
        let numbers: Int64Array = (0..i64::from(rows))
            .map(|row| (row % 3 > 0).then_some(row))
            .collect();
        let members: ArrayRef = Arc::new(numbers);
        let is_odd: BooleanArray = (0..rows).map(|row| Some(row % 2 == 1)).collect();
        let lists = (0..rows).map(|row| (row % 5 > 0).then(|| vec![Some(i64::from(row)); row as usize % 3]));
        let texts = (0..rows).map(|row| format!("text {row}"));
        let columns: Vec<(&str, ArrayRef)> = vec![
            (
                "value",
                Arc::new(Float64Array::from_iter_values((0..rows).map(f64::from))),
            ),
            ("is_odd", Arc::new(is_odd)),
            ("source", Arc::new(made_by)),
            (
                "device",
                Arc::new(StructArray::from(vec![(Arc::new(member), members)])),
            ),
            (
                "parts",
                Arc::new(ListArray::from_iter_primitive::<Int64Type, _, _>(lists)),
            ),
            ("note", Arc::new(StringArray::from_iter_values(texts))),
        ];
        let given = RecordBatch::try_from_iter(columns).unwrap();
        let (blob, checksum) = encode(&given).unwrap();
        let decoded = decode(&blob, checksum).unwrap();
        assert_eq!(decoded, given);
        let (took, takes) = (given.get_array_memory_size(), decoded.get_array_memory_size());
        assert!(takes < took + took / 2, "{takes} bytes of rows that had {took}");
    }
}
