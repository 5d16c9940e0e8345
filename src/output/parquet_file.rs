//! Encodes Parquet, compressed with zstd at its fastest level.
//!
//! A row group has at most [`GROUP_ROWS`] rows and some [`GROUP_BYTES`] bytes, because the encoded columns
//! of a group are kept until it is complete. The file does not say where its rows come from; its only
//! metadata is the Arrow schema, from which readers restore zones and dictionaries. Pages carry no checksum,
//! because the library can check them but not write them; a truncated file is recognised by its missing
//! footer.

use arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::chunks::Chunks;
use super::encoder::{EncodeError, Encoder, Progress};
use super::portable::{Dictionaries, Portable};

const GROUP_ROWS: usize = 128 * 1024;
const GROUP_BYTES: usize = 16 << 20;

/// The encoder.
pub(super) struct ParquetFile {
    portable: Portable,
    /// `None` once the footer has been written.
    writer: Option<ArrowWriter<Vec<u8>>>,
}

impl ParquetFile {
    pub(super) fn new(schema: &SchemaRef) -> Result<Self, EncodeError> {
        if let Some(field) = schema.fields().iter().find(|field| holds_intervals(field)) {
            let column = field.name().clone();
            return Err(EncodeError::Interval { column });
        }
        let portable = Portable::new(schema, Dictionaries::AsTheyCome);
        let properties = properties(portable.schema())?;
        let writer = ArrowWriter::try_new(Vec::new(), portable.schema().clone(), Some(properties))?;
        Ok(Self {
            portable,
            writer: Some(writer),
        })
    }
}

/// Whether a column holds intervals of months, days and nanoseconds, also inside lists, maps and structures.
fn holds_intervals(field: &Field) -> bool {
    match field.data_type() {
        DataType::Interval(IntervalUnit::MonthDayNano) => true,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => holds_intervals(item),
        DataType::Struct(members) => members.iter().any(|member| holds_intervals(member)),
        _ => false,
    }
}

fn properties(schema: &Schema) -> Result<WriterProperties, EncodeError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1)?))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_max_row_group_bytes(Some(GROUP_BYTES))
        .set_statistics_enabled(EnabledStatistics::Chunk);
    for field in schema.fields() {
        // Ids differ in each row and times mostly do, so looking for repetitions in them would be wasted.
        let path = ColumnPath::from(field.name().as_str());
        match field.data_type() {
            DataType::Timestamp(..) => {
                properties = properties
                    .set_column_dictionary_enabled(path.clone(), false)
                    .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
            }
            DataType::Utf8 => properties = properties.set_column_dictionary_page_size_limit(path, 64 * 1024),
            _ => {}
        }
    }
    Ok(properties.build())
}

impl Encoder for ParquetFile {
    fn start(&mut self, _: &mut Chunks) -> Result<(), EncodeError> {
        Ok(())
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), EncodeError> {
        let batch = self.portable.apply(batch)?;
        if let Some(writer) = &mut self.writer {
            writer.write(&batch)?;
        }
        Ok(())
    }

    fn write(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        if let Some(writer) = &mut self.writer {
            // These are complete row groups; the writer counts offsets itself.
            out.push(std::mem::take(writer.inner_mut()).into());
        }
        Ok(Progress::Done)
    }

    fn finish(&mut self, out: &mut Chunks) -> Result<Progress, EncodeError> {
        if let Some(writer) = self.writer.take() {
            out.push(writer.into_inner()?.into());
        }
        Ok(Progress::Done)
    }
}
