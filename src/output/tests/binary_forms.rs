//! Arrow and Parquet, read back with Arrow's and Parquet's own readers.

use std::io::Cursor;
use std::sync::Arc;

use arrow::array::{Array as _, ArrayRef, AsArray as _, DictionaryArray, MapArray, StringArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Int32Type, IntervalUnit, Schema};
use arrow::ipc::reader::{FileReader, StreamReader};
use arrow::record_batch::RecordBatch;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::file::metadata::RowGroupMetaData;
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::sample::{Row, batches, expected, rows, schema};
use super::{EncodeError, OutputMethod, encoded, text};

/// The rows of what was read, as JSON. JSON text has become text.
fn values(batches: &[RecordBatch], schema: &Schema) -> Vec<Map<String, Value>> {
    let lines = text(OutputMethod::Ndjson, &schema.clone().into(), batches);
    let mut rows: Vec<Map<String, Value>> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for row in &mut rows {
        if let Some(Value::String(json)) = row.get("extras") {
            row["extras"] = serde_json::from_str(json).unwrap();
        }
    }
    rows
}

fn read(method: OutputMethod, bytes: Vec<u8>) -> (Schema, Vec<RecordBatch>) {
    match method {
        OutputMethod::Arrow => {
            let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
            (
                reader.schema().as_ref().clone(),
                reader.map(Result::unwrap).collect(),
            )
        }
        OutputMethod::Arrowraw => {
            let reader = StreamReader::try_new(Cursor::new(bytes), None).unwrap();
            (
                reader.schema().as_ref().clone(),
                reader.map(Result::unwrap).collect(),
            )
        }
        _ => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
            let schema = builder.schema().as_ref().clone();
            (schema, builder.build().unwrap().map(Result::unwrap).collect())
        }
    }
}

fn read_back(method: OutputMethod, rows: &[Row], length: usize) -> (Schema, Vec<RecordBatch>) {
    read(
        method,
        encoded(method, &schema(), &batches(rows, length)).unwrap(),
    )
}

const BINARY: [OutputMethod; 3] = [OutputMethod::Arrow, OutputMethod::Arrowraw, OutputMethod::Parquet];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn binary_forms_read_back((rows, length) in rows()) {
        for method in BINARY {
            let (read_schema, read) = read_back(method, &rows, length);
            prop_assert_eq!(values(&read, &read_schema), expected(&rows), "{}", method);
            // Types stay, apart from ids and views, and our metadata is gone.
            prop_assert!(read_schema.metadata().is_empty());
            for (field, original) in read_schema.fields().iter().zip(schema().fields()) {
                prop_assert!(field.metadata().is_empty());
                match original.name().as_str() {
                    "id" | "view" => prop_assert_eq!(field.data_type(), &DataType::Utf8),
                    "narrow" => prop_assert!(matches!(field.data_type(), DataType::Dictionary(..))),
                    _ => prop_assert_eq!(field.data_type(), original.data_type()),
                }
            }
        }
    }
}

#[test]
fn the_bytes_of_a_parquet_answer_tell_nothing_of_the_inside() {
    let bytes = encoded(OutputMethod::Parquet, &schema(), &[]).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    let keys: Vec<&String> = builder
        .metadata()
        .file_metadata()
        .key_value_metadata()
        .unwrap()
        .iter()
        .map(|entry| &entry.key)
        .collect();
    assert_eq!(keys, ["ARROW:schema"]);
}

#[test]
fn a_map_reads_back_with_what_repeats_in_it() {
    let keys: ArrayRef = Arc::new(StringArray::from(vec!["a", "b"]));
    let units: DictionaryArray<Int32Type> = ["bpm", "km"].into_iter().collect();
    let units: ArrayRef = Arc::new(units);
    let entries = StructArray::from(vec![
        (Arc::new(Field::new("key", DataType::Utf8, false)), keys),
        (
            Arc::new(Field::new("value", units.data_type().clone(), true)),
            units,
        ),
    ]);
    let field = Field::new("entries", entries.data_type().clone(), false);
    let offsets = OffsetBuffer::from_lengths([1, 1]);
    let maps = MapArray::new(Arc::new(field), offsets, entries, None, false);
    let batch = RecordBatch::try_from_iter([("map", Arc::new(maps) as ArrayRef)]).unwrap();
    for method in BINARY {
        let bytes = encoded(method, &batch.schema(), &[batch.clone(), batch.clone()]).unwrap();
        let (_, found) = read(method, bytes);
        let units = found.iter().flat_map(|batch| {
            let values = cast(batch.column(0).as_map().values(), &DataType::Utf8).unwrap();
            let values = values
                .as_string::<i32>()
                .iter()
                .map(|unit| unit.map(str::to_owned));
            values.collect::<Vec<_>>()
        });
        let expected = ["bpm", "km", "bpm", "km"].map(|unit| Some(unit.to_owned()));
        assert_eq!(units.collect::<Vec<_>>(), expected, "{method}");
    }
}

/// Texts of 16 KiB that cannot be compressed much: 16 MiB of them.
fn long_texts(seed: u64) -> RecordBatch {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut state = seed;
    let mut letter = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        char::from(LETTERS[(state >> 58) as usize])
    };
    let texts = (0..1024).map(|_| (0..16 * 1024).map(|_| letter()).collect::<String>());
    let texts = StringArray::from_iter_values(texts);
    RecordBatch::try_from_iter([("note", Arc::new(texts) as ArrayRef)]).unwrap()
}

#[test]
fn a_row_group_of_parquet_has_as_many_rows_as_memory_allows() {
    let batches = [1, 2, 3].map(long_texts);
    let bytes = encoded(OutputMethod::Parquet, &batches[0].schema(), &batches).unwrap();
    let builder = ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(bytes)).unwrap();
    let groups = builder.metadata().row_groups();
    assert!(groups.len() > 1);
    assert!(groups.iter().all(|group| group.compressed_size() < 24 << 20));
    let rows: i64 = groups.iter().map(RowGroupMetaData::num_rows).sum();
    assert_eq!(rows, 3 * 1024);
}

#[test]
fn an_answer_without_its_end_does_not_read_as_a_whole_one() {
    let rows: Vec<Row> = {
        use proptest::strategy::ValueTree;
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        (0..50)
            .map(|_| super::sample::row().new_tree(&mut runner).unwrap().current())
            .collect()
    };
    for method in [OutputMethod::Arrow, OutputMethod::Parquet] {
        let bytes = encoded(method, &schema(), &batches(&rows, 20)).unwrap();
        for end in [bytes.len() - 1, bytes.len() / 2, 100] {
            let cut = bytes[..end].to_vec();
            let refused = match method {
                OutputMethod::Arrow => FileReader::try_new(Cursor::new(cut), None).is_err(),
                _ => ParquetRecordBatchReaderBuilder::try_new(bytes::Bytes::from(cut)).is_err(),
            };
            assert!(refused, "{method} cut at {end}");
        }
    }
}

#[test]
fn intervals_in_a_map_are_told_by_the_name_of_their_column() {
    let spans = Field::new("value", DataType::Interval(IntervalUnit::MonthDayNano), true);
    let entry = DataType::Struct(vec![Field::new("key", DataType::Utf8, false), spans].into());
    let map = DataType::Map(Arc::new(Field::new("entries", entry, false)), false);
    let schema = Arc::new(Schema::new(vec![Field::new("spans", map, true)]));
    let refused = encoded(OutputMethod::Parquet, &schema, &[]).unwrap_err();
    assert!(
        matches!(&refused, EncodeError::Interval { column } if column == "spans"),
        "{refused}"
    );
}
