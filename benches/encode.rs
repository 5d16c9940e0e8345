//! How much processor time each output method takes for a year of heart rate, a hundred thousand rows at a
//! time.
//!
//! Times are of the encoding thread's processor, where the system tells it, so that a busy machine does not
//! change them. Bytes are dropped where a server would send them.

#![expect(
    clippy::unwrap_used,
    reason = "a benchmark that cannot make its data should stop"
)]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use almanac::output::{EncodeError, OutputMethod, encode};
use almanac::query::spill_files::SpillFiles;
use arrow::array::{
    ArrayRef, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int64Array, StringArray, StructArray,
    TimestampMicrosecondArray, new_null_array,
};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, Fields, Int32Type, Schema, SchemaRef, TimeUnit};
use arrow::record_batch::RecordBatch;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use futures::executor::block_on;
use futures::stream::{self, StreamExt};

const BATCH_ROWS: i64 = 8_192;
const BATCHES: i64 = 12;

/// How much of a sample is there.
#[derive(Clone, Copy)]
enum Detail {
    /// Ids as text; nobody says where the samples come from.
    Plain,
    /// Ids as they are stored; every sample names its source.
    Sourced,
    /// The same, and one watch has measured all of them.
    OfOneWatch,
}

fn word() -> DataType {
    DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
}

fn words(names: [&str; 5]) -> Fields {
    names
        .map(|name| Field::new(name, word(), true))
        .into_iter()
        .collect()
}

fn schema(detail: Detail) -> SchemaRef {
    let time = || DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into()));
    let uuid = match detail {
        Detail::Plain => Field::new("uuid", DataType::Utf8, false),
        Detail::Sourced | Detail::OfOneWatch => Field::new("uuid", DataType::FixedSizeBinary(16), false)
            .with_metadata([("ARROW:extension:name".to_owned(), "arrow.uuid".to_owned())].into()),
    };
    let extras = Field::new("extras", DataType::Utf8, true)
        .with_metadata([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())].into());
    let source = words([
        "name",
        "version",
        "productType",
        "operatingSystemVersion",
        "sourceBundleIdentifier",
    ]);
    let device = words([
        "name",
        "model",
        "manufacturer",
        "hardwareVersion",
        "softwareVersion",
    ]);
    Arc::new(Schema::new(vec![
        uuid,
        Field::new("start_date", time(), false),
        Field::new("end_date", time(), false),
        Field::new("value", DataType::Float64, true),
        Field::new("unit", word(), true),
        Field::new("count", DataType::Int64, true),
        Field::new("has_undetermined_duration", DataType::Boolean, true),
        extras,
        Field::new("source_properties", DataType::Struct(source), true),
        Field::new("device_properties", DataType::Struct(device), true),
    ]))
}

fn dictionary(value: impl Fn(i64) -> &'static str, rows: std::ops::Range<i64>) -> ArrayRef {
    Arc::new(
        rows.map(|row| Some(value(row)))
            .collect::<DictionaryArray<Int32Type>>(),
    )
}

/// An id that looks like any other.
fn id(row: i64) -> uuid::Uuid {
    uuid::Uuid::from_u128((row as u128).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835))
}

fn batch(detail: Detail, number: i64) -> RecordBatch {
    let rows = || number * BATCH_ROWS..(number + 1) * BATCH_ROWS;
    let schema = schema(detail);
    let starts = || {
        rows()
            .map(|row| 1_704_067_200_000_000 + row * 7_900_000)
            .collect::<Vec<_>>()
    };
    let times = || Arc::new(TimestampMicrosecondArray::from(starts()).with_timezone("UTC")) as ArrayRef;
    let values = rows().map(|row| {
        if row % 3 == 0 {
            48.0 + (row % 90) as f64
        } else {
            48.0 + (row * 7 % 1_000) as f64 / 10.0
        }
    });
    let ids: ArrayRef = match detail {
        Detail::Plain => Arc::new(
            rows()
                .map(|row| Some(id(row).to_string()))
                .collect::<StringArray>(),
        ),
        Detail::Sourced | Detail::OfOneWatch => {
            Arc::new(FixedSizeBinaryArray::try_from_iter(rows().map(|row| id(row).into_bytes())).unwrap())
        }
    };
    let source = match detail {
        Detail::Plain => new_null_array(schema.field(8).data_type(), BATCH_ROWS as usize),
        Detail::Sourced | Detail::OfOneWatch => {
            let is_phone = move |row: i64| matches!(detail, Detail::Sourced) && row % 40 > 30;
            let of =
                |texts: [&'static str; 2]| dictionary(move |row| texts[usize::from(is_phone(row))], rows());
            let columns = vec![
                of(["Watch of Ada", "Phone of Ada"]),
                of(["10.4", "17.4.1"]),
                of(["Watch6,2", "iPhone14,5"]),
                of(["10.4.0", "17.4.1"]),
                of(["com.example.health.0E5A", "com.example.health.77B1"]),
            ];
            let nulls: NullBuffer = rows().map(|_| true).collect();
            match schema.field(8).data_type() {
                DataType::Struct(fields) => Arc::new(StructArray::new(fields.clone(), columns, Some(nulls))),
                other => new_null_array(other, BATCH_ROWS as usize),
            }
        }
    };
    let columns = vec![
        ids,
        times(),
        times(),
        Arc::new(values.collect::<Float64Array>()),
        dictionary(|_| "count/min", rows()),
        Arc::new(
            rows()
                .map(|row| (row % 4 == 0).then_some(row % 9))
                .collect::<Int64Array>(),
        ),
        new_null_array(&DataType::Boolean, BATCH_ROWS as usize),
        new_null_array(&DataType::Utf8, BATCH_ROWS as usize),
        source,
        new_null_array(schema.field(9).data_type(), BATCH_ROWS as usize),
    ];
    RecordBatch::try_new(schema, columns).unwrap()
}

fn run(method: OutputMethod, batches: &[RecordBatch]) -> usize {
    let schema = batches[0].schema();
    let source = stream::iter(batches.iter().cloned().map(Ok::<_, EncodeError>));
    block_on(
        encode(method, schema, SpillFiles::default(), source).fold(0, |sum, chunk| async move {
            sum + black_box(chunk.unwrap()).len()
        }),
    )
}

/// What this thread has spent, or the time of day where the system does not tell.
fn spent(since: Instant) -> Duration {
    let nanoseconds = std::fs::read_to_string("/proc/thread-self/schedstat")
        .ok()
        .and_then(|text| text.split(' ').next()?.parse().ok());
    nanoseconds.map_or_else(|| since.elapsed(), Duration::from_nanos)
}

fn methods(criterion: &mut Criterion) {
    for (name, detail) in [
        ("plain", Detail::Plain),
        ("sourced", Detail::Sourced),
        ("of one watch", Detail::OfOneWatch),
    ] {
        let batches: Vec<RecordBatch> = (0..BATCHES).map(|number| batch(detail, number)).collect();
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements((BATCHES * BATCH_ROWS) as u64));
        group
            .sample_size(10)
            .warm_up_time(Duration::from_millis(300))
            .measurement_time(Duration::from_secs(2));
        for method in OutputMethod::ALL {
            group.bench_function(method.name(), |bencher| {
                bencher.iter_custom(|times| {
                    let begin = Instant::now();
                    let before = spent(begin);
                    for _ in 0..times {
                        black_box(run(method, &batches));
                    }
                    spent(begin).saturating_sub(before)
                });
            });
        }
        group.finish();
    }
}

criterion_group!(encode_all, methods);
criterion_main!(encode_all);
