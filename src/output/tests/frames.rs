//! One file per form, for readers in other languages (`tests/frames`).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array, ListArray, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow::datatypes::{DataType, Field, Fields, Float64Type, Int32Type, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;

use super::super::OutputMethod;
use super::encoded;

/// Where the files go, if somebody wants to read them.
const DIRECTORY: &str = "ALMANAC_FRAMES_DIR";

fn extension(name: &str) -> HashMap<String, String> {
    [
        ("ARROW:extension:name".to_owned(), name.to_owned()),
        ("ARROW:extension:metadata".to_owned(), String::new()),
    ]
    .into()
}

fn schema() -> SchemaRef {
    let word = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
    let zoned = |zone: &str| DataType::Timestamp(TimeUnit::Microsecond, Some(zone.into()));
    let device: Fields = vec![
        Field::new("name", word(), true),
        Field::new("model", word(), true),
    ]
    .into();
    Arc::new(Schema::new(vec![
        Field::new("uuid", DataType::FixedSizeBinary(16), false).with_metadata(extension("arrow.uuid")),
        Field::new("start_date", zoned("UTC"), false),
        Field::new("local", zoned("Asia/Kathmandu"), false),
        Field::new("value", DataType::Float64, true),
        Field::new("count", DataType::Int64, true),
        Field::new("unit", word(), true),
        Field::new("device", DataType::Struct(device), true),
        Field::new(
            "values",
            DataType::List(Arc::new(Field::new_list_field(DataType::Float64, true))),
            true,
        ),
        Field::new("extras", DataType::Utf8, true).with_metadata(extension("arrow.json")),
        Field::new("nothing", DataType::Null, true),
    ]))
}

/// Row `n` of the whole frame can be told from `n` alone; `tests/frames` says the same rules in its words.
fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
    let times = || {
        rows.clone()
            .map(|row| Some(1_706_054_400_000_000 + row * 1_500_000))
            .collect::<TimestampMicrosecondArray>()
    };
    let device: Fields = match schema().field_with_name("device").unwrap().data_type() {
        DataType::Struct(fields) => fields.clone(),
        _ => Fields::empty(),
    };
    // Each batch has other words in another order, so that the dictionaries differ.
    let words = |prefix: &str| -> DictionaryArray<Int32Type> {
        rows.clone()
            .map(|row| (row % 5 > 0).then(|| format!("{prefix} {}", row / 700 + row % 3)))
            .collect::<Vec<_>>()
            .iter()
            .map(Option::as_deref)
            .collect()
    };
    let devices: Vec<ArrayRef> = vec![Arc::new(words("watch")), Arc::new(words("model"))];
    let present = rows.clone().map(|row| row % 4 > 0).collect();
    let lists = rows.clone().map(|row| {
        (row % 6 > 0).then(|| {
            (0..row % 3)
                .map(|item| Some(item as f64 / 2.0))
                .collect::<Vec<_>>()
        })
    });
    let columns: Vec<ArrayRef> = vec![
        Arc::new(
            FixedSizeBinaryArray::try_from_iter(rows.clone().map(|row| u128::to_be_bytes(row as u128)))
                .unwrap(),
        ),
        Arc::new(times().with_timezone("UTC")),
        Arc::new(times().with_timezone("Asia/Kathmandu")),
        Arc::new(
            rows.clone()
                .map(|row| (row % 7 > 0).then_some(row as f64 / 8.0))
                .collect::<Float64Array>(),
        ),
        Arc::new(
            rows.clone()
                .map(|row| (row % 2 > 0).then_some(row))
                .collect::<Int64Array>(),
        ),
        Arc::new(words("unit")),
        Arc::new(StructArray::new(device, devices, Some(present))),
        Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(lists)),
        Arc::new(
            rows.clone()
                .map(|row| (row % 3 > 0).then(|| format!("{{\"row\":{row}}}")))
                .collect::<StringArray>(),
        ),
        Arc::new(arrow::array::NullArray::new((rows.end - rows.start) as usize)),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

#[test]
fn a_frame_is_written_in_every_form() {
    let temporary = tempfile::tempdir().unwrap();
    let directory = std::env::var_os(DIRECTORY).map_or_else(|| temporary.path().to_owned(), PathBuf::from);
    std::fs::create_dir_all(&directory).unwrap();
    let batches: Vec<RecordBatch> = [0..1000, 1000..1001, 1001..3000].into_iter().map(batch).collect();
    let empty = batches[0].slice(0, 0);
    for method in OutputMethod::ALL {
        for (name, batches) in [
            ("frame", batches.as_slice()),
            ("empty", &[][..]),
            ("no_rows", std::slice::from_ref(&empty)),
        ] {
            let bytes = encoded(method, &schema(), batches).unwrap();
            assert!(!bytes.is_empty() || method == OutputMethod::Ndjson);
            std::fs::write(directory.join(format!("{name}.{method}")), bytes).unwrap();
        }
    }
}
