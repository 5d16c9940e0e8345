//! What columns weigh that say the same in every row, or nothing.

use std::sync::Arc;

use arrow::array::{
    Array as _, ArrayRef, DictionaryArray, Float64Array, Int32Array, StringArray, StructArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;

use super::{OutputMethod, encoded};
use crate::output::{BufferCompression, Packing};

const ROWS: usize = 8192;
const BATCHES: usize = 12;

fn constant(text: &str) -> ArrayRef {
    let values: ArrayRef = Arc::new(StringArray::from(vec![text]));
    Arc::new(DictionaryArray::new(Int32Array::from(vec![0; ROWS]), values))
}

/// A start and a value in each row, and beside them what most samples have: constants and nothing.
fn batch(place: usize, light: bool) -> RecordBatch {
    let mut state = place as u64 + 1;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64
    };
    let starts = (0..ROWS).map(|row| (place * ROWS + row) as i64 * 5_000_000);
    let starts = TimestampMicrosecondArray::from_iter_values(starts).with_timezone("UTC");
    let values: Float64Array = (0..ROWS).map(|_| Some(50.0 + random() % 120.0)).collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("start_date", Arc::new(starts) as ArrayRef),
        ("value", Arc::new(values) as ArrayRef),
    ];
    if !light {
        let name = Arc::new(Field::new("name", constant("").data_type().clone(), true));
        let version = Arc::new(Field::new("version", constant("").data_type().clone(), true));
        let source = StructArray::from(vec![(name, constant("Watch")), (version, constant("10.5"))]);
        columns.extend([
            ("unit", constant("bpm")),
            ("count", new_null_array(&DataType::Int64, ROWS)),
            (
                "has_undetermined_duration",
                new_null_array(&DataType::Boolean, ROWS),
            ),
            ("extras", new_null_array(&DataType::Utf8, ROWS)),
            ("source_properties", Arc::new(source) as ArrayRef),
        ]);
    }
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, column)| (name, column, true)))
        .unwrap()
}

/// Bytes a row of the columns that say nothing new, and of the two that do.
fn weights(packing: Packing) -> (f64, f64) {
    let length = |light: bool| {
        let batches: Vec<RecordBatch> = (0..BATCHES).map(|place| batch(place, light)).collect();
        let schema: Arc<Schema> = batches[0].schema();
        encoded(packing, &schema, &batches).unwrap().len() as f64
    };
    let rows = (ROWS * BATCHES) as f64;
    let two = length(true);
    ((length(false) - two) / rows, two / rows)
}

#[test]
fn what_says_nothing_new_weighs_nothing_where_frames_are_compressed() {
    let packed = |method, buffers| weights(Packing { method, buffers });
    for (packing, most) in [
        (packed(OutputMethod::Arrow, BufferCompression::Zstd), 0.2),
        (packed(OutputMethod::Arrow, BufferCompression::Lz4), 0.4),
        (packed(OutputMethod::Arrowraw, BufferCompression::Zstd), 0.2),
        (packed(OutputMethod::Parquet, BufferCompression::None), 0.1),
    ] {
        let (nothing_new, two) = packing;
        assert!(nothing_new < most, "{nothing_new} bytes a row, beside {two}");
    }
    // As it is, a constant takes the keys of a dictionary, and nothing the room of what it might be.
    let (plain, two) = packed(OutputMethod::Arrow, BufferCompression::None);
    assert!(plain < 30.0 && two < 17.0, "{plain} bytes a row, beside {two}");
}
