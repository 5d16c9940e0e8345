//! The tail: small pieces that live in the catalogue as blobs until a flush turns them into objects.
//!
//! A blob is one batch of sorted rows as a compressed Arrow IPC stream, without the columns that are null in
//! all its rows. Its CRC-32 is in the catalogue, and verified before anything is decoded.

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
use super::blob_forms::{SNAPPY_ARROW_STREAM, ZSTD_ARROW_STREAM};
use super::errors::StoreError;
use super::sealing::PersonKey;
use crate::catalog::records::{NewPiece, NewPlace, Piece};
use crate::model::ids::PieceId;

/// A form byte and the decompressed length, four bytes little-endian.
const HEADER_BYTES: usize = 5;
/// The fastest level that still finds repetitions; blobs are soon rewritten as Parquet.
const LEVEL: i32 = 1;
/// Streams of up to so many bytes are compressed with Snappy. Of a single row, ZSTD takes nearly five times
/// as many instructions, most of them for tables of which hardly anything is used.
const SHORT_STREAM: usize = 16 << 10;

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
pub struct Packer {
    of_short: Idle<snap::raw::Encoder>,
    of_long: Idle<Compressor<'static>>,
}

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

    /// The batch as a blob, and its CRC-32.
    fn encode(&self, batch: &RecordBatch) -> Result<(Bytes, u32), StoreError> {
        let stream = stream_of(batch)?;
        let length = u32::try_from(stream.len())
            .map_err(|_| StoreError::rows("more than 4 GB in one batch; write it as an object"))?;
        let (form, mut blob) = if stream.len() <= SHORT_STREAM {
            let make = || Ok(snap::raw::Encoder::new());
            let most = snap::raw::max_compress_len(stream.len());
            let compress = |with: &mut snap::raw::Encoder, room: &mut [u8]| with.compress(&stream, room);
            (SNAPPY_ARROW_STREAM, packed(&self.of_short, make, most, compress)?)
        } else {
            let make = || Compressor::new(LEVEL);
            let most = zstd::zstd_safe::compress_bound(stream.len());
            let compress =
                |with: &mut Compressor<'_>, room: &mut [u8]| with.compress_to_buffer(&stream, room);
            (ZSTD_ARROW_STREAM, packed(&self.of_long, make, most, compress)?)
        };
        blob[0] = form;
        blob[1..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        blob.shrink_to_fit();
        let checksum = crc32fast::hash(&blob);
        Ok((blob.into(), checksum))
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

/// Room for a header, and behind it what `compress` wrote there, which is `most` bytes at the most.
fn packed<T, E: ToString>(
    idle: &Idle<T>,
    make: impl FnOnce() -> std::io::Result<T>,
    most: usize,
    compress: impl FnOnce(&mut T, &mut [u8]) -> Result<usize, E>,
) -> Result<Vec<u8>, StoreError> {
    let mut blob = vec![0; HEADER_BYTES + most];
    let written = idle.lend(make, |compressor| {
        compress(compressor, &mut blob[HEADER_BYTES..]).map_err(StoreError::rows)
    })?;
    blob.truncate(HEADER_BYTES + written);
    Ok(blob)
}

fn stream_of(batch: &RecordBatch) -> Result<Vec<u8>, StoreError> {
    let batch = without_null_columns(batch)?;
    let mut stream = Vec::with_capacity(2048 + batch.get_array_memory_size());
    let mut writer = StreamWriter::try_new(&mut stream, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    drop(writer);
    Ok(stream)
}

/// How many bytes the rows of a blob take when decoded, according to its header.
fn memory_of(blob: &[u8]) -> u32 {
    let header = blob.first_chunk::<HEADER_BYTES>();
    header.map_or(0, |[_, length @ ..]| u32::from_le_bytes(*length))
}

/// The rows of a tail piece, sealed or not: as many as were written.
pub fn open(piece: &Piece, blob: &[u8], key: Option<&PersonKey>) -> Result<RecordBatch, StoreError> {
    let rows = if PersonKey::is_sealed(blob) {
        unsealed(piece, blob, key)?
    } else {
        decode(blob, piece.checksum)?
    };
    if rows.num_rows() as i64 != piece.rows {
        return Err(StoreError::corrupt(format!(
            "tail piece {} has another number of rows than was written",
            piece.id
        )));
    }
    Ok(rows)
}

/// The rows of a sealed tail piece.
fn unsealed(piece: &Piece, blob: &[u8], key: Option<&PersonKey>) -> Result<RecordBatch, StoreError> {
    if crc32fast::hash(blob) != piece.checksum {
        return Err(StoreError::corrupt(
            "a sealed blob of the tail: it differs from what was written",
        ));
    }
    let key = key.ok_or_else(|| StoreError::Unavailable {
        detail: "rows of the tail are encrypted, and there is no key".to_owned(),
    })?;
    let blob = key.open_blob(piece.id.0.as_bytes(), blob)?;
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
    let Some(([form, length @ ..], body)) = blob.split_first_chunk::<HEADER_BYTES>() else {
        return Err(damaged(&"its form is unknown"));
    };
    let length = u32::from_le_bytes(*length) as usize;
    let stream = match *form {
        SNAPPY_ARROW_STREAM => uncompressed(body, length).map_err(|error| damaged(&error))?,
        ZSTD_ARROW_STREAM => {
            let stream = decompressor.decompress(body, length);
            stream.map_err(|error| damaged(&error))?
        }
        _ => return Err(damaged(&"its form is unknown")),
    };
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

/// What Snappy made of `length` bytes.
fn uncompressed(body: &[u8], length: usize) -> Result<Vec<u8>, snap::Error> {
    let mut stream = vec![0; length];
    let written = snap::raw::Decoder::new().decompress(body, &mut stream)?;
    stream.truncate(written);
    Ok(stream)
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
    use uuid::Uuid;

    use super::*;
    use crate::catalog::records::{Bounds, Place};
    use crate::model::time::Instant;

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

    fn whole_numbers(rows: i64) -> RecordBatch {
        let values: ArrayRef = Arc::new(Int64Array::from_iter_values(0..rows));
        RecordBatch::try_from_iter([("value", values)]).unwrap()
    }

    #[test]
    fn few_rows_have_a_form_of_their_own_and_both_forms_are_read() {
        for (rows, form) in [(1, SNAPPY_ARROW_STREAM), (100_000, ZSTD_ARROW_STREAM)] {
            let given = whole_numbers(rows);
            let (blob, checksum) = encode(&given).unwrap();
            assert_eq!(blob[0], form, "of {rows} rows");
            assert_eq!(decode(&blob, checksum).unwrap(), given, "of {rows} rows");
        }
    }

    #[test]
    fn a_piece_has_as_many_rows_as_were_written_or_is_damaged() {
        let given = whole_numbers(3);
        let (blob, checksum) = encode(&given).unwrap();
        let zero = Instant::from_micros(0);
        let mut piece = Piece {
            id: PieceId(Uuid::from_u128(1)),
            sequence: 1,
            rows: 3,
            bytes: blob.len() as i64,
            bounds: Bounds {
                min_start: zero,
                max_start: zero,
                max_end: zero,
            },
            layout_version: 1,
            checksum,
            place: Place::Tail { blob: None },
            dead: Arc::default(),
            created_at: zero,
        };
        assert_eq!(open(&piece, &blob, None).unwrap(), given);
        piece.rows = 4;
        let opened = open(&piece, &blob, None);
        assert!(matches!(opened, Err(StoreError::Corrupt { .. })), "{opened:?}");
    }

    #[test]
    fn a_blob_that_cannot_be_decompressed_is_damage() {
        for rows in [1, 100_000] {
            let (blob, _) = encode(&whole_numbers(rows)).unwrap();
            for cut in [0, 1, HEADER_BYTES, HEADER_BYTES + 1, blob.len() - 1] {
                let cut = &blob[..cut];
                let decoded = decode(cut, crc32fast::hash(cut));
                assert!(
                    matches!(decoded, Err(StoreError::Corrupt { .. })),
                    "{} bytes of {} are {decoded:?}",
                    cut.len(),
                    blob.len()
                );
            }
            let mut unknown = blob.to_vec();
            unknown[0] = 9;
            let decoded = decode(&unknown, crc32fast::hash(&unknown));
            assert!(matches!(decoded, Err(StoreError::Corrupt { .. })), "{decoded:?}");
        }
    }
}
