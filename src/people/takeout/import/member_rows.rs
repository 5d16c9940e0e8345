//! Reads the rows of a member in batches as large as memory allows.
//!
//! A row group is compressed, and one text in it may stand for many rows, so its size on disk says little
//! about its size when read. The metadata about its texts does. Knows Parquet; knows nothing of what rows
//! mean.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Schema, SchemaRef};
use arrow::error::ArrowError;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};

use crate::people::takeout::archive::Region;

/// How many rows are decoded at once.
pub(super) const BATCH_ROWS: usize = 8_192;
/// A row group of at most this many bytes is decoded in full batches.
const LIGHT_BYTES: u64 = 64 << 20;
/// How many rows of a larger group are decoded at once. A text is hardly longer than a mebibyte, but all
/// other rows may be short, so the average size of a row bounds nothing.
const FEW_ROWS: usize = 64;

/// All rows of a member, in order.
pub(super) struct MemberRows {
    region: Region,
    metadata: ArrowReaderMetadata,
    /// The row group that is opened next.
    next: usize,
    open: Option<ParquetRecordBatchReader>,
}

impl MemberRows {
    pub(super) fn open(region: Region) -> Result<Self, ParquetError> {
        // What reads the description of the columns in Arrow's own form panics at what no writer says.
        let load = AssertUnwindSafe(|| ArrowReaderMetadata::load(&region, ArrowReaderOptions::default()));
        let metadata = catch_unwind(load).unwrap_or_else(|_| {
            let damaged = "the description of its columns cannot be read";
            Err(ParquetError::General(damaged.to_owned()))
        })?;
        Ok(Self {
            metadata,
            region,
            next: 0,
            open: None,
        })
    }

    pub(super) fn schema(&self) -> &SchemaRef {
        self.metadata.schema()
    }

    /// Opens the next row group alone: a batch across several could be as large as all of them.
    fn open_next(&mut self) -> Result<Option<ParquetRecordBatchReader>, ParquetError> {
        let Some(group) = self.metadata.metadata().row_groups().get(self.next) else {
            return Ok(None);
        };
        let rows = rows_at_once(group, self.metadata.schema());
        let reader =
            ParquetRecordBatchReaderBuilder::new_with_metadata(self.region.clone(), self.metadata.clone())
                .with_row_groups(vec![self.next])
                .with_batch_size(rows)
                .build()?;
        self.next += 1;
        Ok(Some(reader))
    }
}

impl Iterator for MemberRows {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(batch) = self.open.as_mut().and_then(Iterator::next) {
                return Some(batch);
            }
            match self.open_next() {
                Ok(Some(reader)) => self.open = Some(reader),
                Ok(None) => return None,
                Err(error) => return Some(Err(error.into())),
            }
        }
    }
}

fn rows_at_once(group: &RowGroupMetaData, schema: &Schema) -> usize {
    let bytes = group.columns().iter().fold(0_u64, |bytes, column| {
        bytes.saturating_add(read_bytes(column, schema))
    });
    if bytes <= LIGHT_BYTES {
        BATCH_ROWS
    } else {
        FEW_ROWS
    }
}

/// About how many bytes a column of a row group takes when all of it is read.
fn read_bytes(column: &ColumnChunkMetaData, schema: &Schema) -> u64 {
    let packed = u64::try_from(column.uncompressed_size()).unwrap_or(u64::MAX);
    let root = column.column_path().parts().first();
    let field = root.and_then(|root| schema.field_with_name(root).ok());
    let stays_a_dictionary = field.is_some_and(|field| matches!(field.data_type(), DataType::Dictionary(..)));
    if column.column_type() != Type::BYTE_ARRAY || stays_a_dictionary {
        return packed;
    }
    match column.unencoded_byte_array_data_bytes() {
        Some(bytes) => packed.max(u64::try_from(bytes).unwrap_or(u64::MAX)),
        // The metadata do not say how many rows each text stands for.
        None if column.dictionary_page_offset().is_some() => u64::MAX,
        None => packed,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::sync::Arc;

    use arrow::array::{ArrayRef, AsArray as _, Int64Array, StringArray};
    use arrow::datatypes::Field;
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use parquet::arrow::arrow_writer::ArrowWriterOptions;
    use parquet::arrow::{ARROW_SCHEMA_META_KEY, ArrowWriter, encode_arrow_schema};
    use parquet::file::metadata::KeyValue;
    use parquet::file::properties::WriterProperties;

    use super::*;

    /// The batches of a member with these notes, with `of_group` rows in each row group.
    fn batches(notes: &[&str], of_group: usize) -> Vec<RecordBatch> {
        let schema = Arc::new(Schema::new(vec![
            Field::new("number", DataType::Int64, false),
            Field::new("note", DataType::Utf8, true),
        ]));
        let properties = WriterProperties::builder().set_max_row_group_row_count(Some(of_group));
        let mut writer =
            ArrowWriter::try_new(Vec::new(), Arc::clone(&schema), Some(properties.build())).unwrap();
        for (number, some) in notes.chunks(100).enumerate() {
            let numbers = (0..some.len() as i64).map(|row| number as i64 * 100 + row);
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from_iter_values(numbers)),
                Arc::new(StringArray::from(some.to_vec())),
            ];
            writer
                .write(&RecordBatch::try_new(Arc::clone(&schema), columns).unwrap())
                .unwrap();
        }
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&writer.into_inner().unwrap()).unwrap();
        let rows = MemberRows::open(Region::of_file(file.reopen().unwrap()).unwrap()).unwrap();
        rows.collect::<Result<_, _>>().unwrap()
    }

    fn are_whole(batches: &[RecordBatch], notes: &[&str]) {
        let mut found = 0;
        for batch in batches {
            let texts = batch.column(1).as_string::<i32>();
            for (number, text) in batch
                .column(0)
                .as_primitive::<arrow::datatypes::Int64Type>()
                .values()
                .iter()
                .zip(texts)
            {
                assert_eq!((*number as usize, text), (found, Some(notes[found])));
                found += 1;
            }
        }
        assert_eq!(found, notes.len());
    }

    #[test]
    fn what_a_member_says_of_its_columns_may_be_anything() {
        let schema = Arc::new(Schema::new(vec![Field::new("note", DataType::Utf8, true)]));
        let said = STANDARD.decode(encode_arrow_schema(&schema)).unwrap();
        let mut refused = 0;
        for place in 0..said.len() {
            let mut said = said.clone();
            said[place] ^= 0xff;
            let said = KeyValue::new(ARROW_SCHEMA_META_KEY.to_owned(), STANDARD.encode(said));
            let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![said]));
            let options = ArrowWriterOptions::new()
                .with_properties(properties.build())
                .with_skip_arrow_metadata(true);
            let writer = ArrowWriter::try_new_with_options(Vec::new(), Arc::clone(&schema), options).unwrap();
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&writer.into_inner().unwrap()).unwrap();
            let region = Region::of_file(file.reopen().unwrap()).unwrap();
            refused += usize::from(MemberRows::open(region).is_err());
        }
        assert!(refused > 0);
    }

    #[test]
    fn short_rows_are_read_many_at_once() {
        let notes = vec!["short"; 20_000];
        let batches = batches(&notes, 100_000);
        are_whole(&batches, &notes);
        assert_eq!(batches.len(), 3);
    }

    #[test]
    fn long_rows_are_read_few_at_once_also_where_they_are_all_the_same() {
        let long = "x".repeat(900_000);
        let notes = vec![long.as_str(); 200];
        let batches = batches(&notes, 100_000);
        are_whole(&batches, &notes);
        assert!(batches.iter().all(|batch| batch.num_rows() <= FEW_ROWS));
    }

    #[test]
    fn a_few_long_rows_among_many_short_ones_do_not_come_all_at_once() {
        let long = "x".repeat(900_000);
        let mut notes = vec!["short"; 10_000];
        notes[5_000..5_100].fill(&long);
        let batches = batches(&notes, 100_000);
        are_whole(&batches, &notes);
        let heaviest = batches.iter().map(RecordBatch::get_array_memory_size).max();
        assert!(heaviest.unwrap() < 128 << 20, "{heaviest:?}");
    }

    #[test]
    fn no_batch_reaches_from_one_row_group_into_the_next() {
        let notes = vec!["short"; 1_000];
        let batches = batches(&notes, 300);
        are_whole(&batches, &notes);
        let rows: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
        assert_eq!(rows, [300, 300, 300, 100]);
    }
}
