//! Series without HTTP or storage: samples in, bins out.

mod brute;
mod golden;
mod laws;
mod turns;
mod twin;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, AsArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int8Array, Int32Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{
    DataType, Field, Float64Type, Int64Type, Schema, SchemaRef, TimestampMicrosecondType,
};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::collect;
use uuid::Uuid;

use crate::catalog::records::KnownSource;
use crate::model::grid::Grid;
use crate::model::permit::Windows;
use crate::model::registry::{dictionary_text, timestamp};
use crate::model::time::{Instant, TimeRange, parse_instant};
use crate::model::zone::Zone;
use crate::people::preferences::{SourceOrder, SourcesByRecency};

use super::{Calculation, Counting, Gaps, Measure, Ranking, SeriesExec, SeriesSpec};

/// A stored sample.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sample {
    start: i64,
    end: i64,
    value: f64,
    source: usize,
    class: i8,
}

const KEYS: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

/// All sources were added at once, so that the order of the ids decides between equals: alpha before beta.
fn known_sources() -> Arc<SourcesByRecency> {
    let source = |(place, key): (usize, &&str)| KnownSource {
        id: Uuid::from_u128(place as u128),
        key: (*key).to_owned(),
        name: None,
        added_at: Instant::from_micros(0),
    };
    Arc::new(SourcesByRecency::new(
        KEYS.iter().enumerate().map(source).collect(),
    ))
}

fn range(start: i64, end: i64) -> TimeRange {
    TimeRange::new(Instant::from_micros(start), Instant::from_micros(end)).unwrap()
}

fn micros(text: &str) -> i64 {
    parse_instant(text).unwrap().micros()
}

fn spec(measure: Measure, grid: Grid) -> SeriesSpec {
    SeriesSpec {
        column: "value".to_owned(),
        grid,
        zone: Zone::UTC,
        measure,
        calculations: Vec::new(),
        gaps: Gaps::default(),
        chosen_sources: Vec::new(),
    }
}

fn calculating(calculations: &[&str], spec: SeriesSpec) -> SeriesSpec {
    let calculations = calculations
        .iter()
        .map(|name| name.parse::<Calculation>().unwrap())
        .collect();
    SeriesSpec { calculations, ..spec }
}

fn stored_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        Field::new("id", DataType::FixedSizeBinary(16), false),
        Field::new("start_time", timestamp(), false),
        Field::new("end_time", timestamp(), false),
        Field::new("value", DataType::Float64, true),
        Field::new("source", dictionary_text(), true),
        Field::new("source_class", DataType::Int8, true),
    ]))
}

/// The samples as they are stored: sorted, ids in the order in which they were given.
fn stored(samples: &[Sample]) -> RecordBatch {
    let mut rows: Vec<(usize, Sample)> = samples.iter().copied().enumerate().collect();
    rows.sort_by_key(|(id, sample)| (sample.start, sample.end, *id));
    let ids = rows
        .iter()
        .map(|(id, _)| Uuid::from_u128(*id as u128).into_bytes());
    let times = |time: fn(&Sample) -> i64| {
        let times: Vec<i64> = rows.iter().map(|(_, sample)| time(sample)).collect();
        Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
    };
    let keys: Int32Array = rows
        .iter()
        .map(|(_, sample)| Some(sample.source as i32))
        .collect();
    let sources = DictionaryArray::new(keys, Arc::new(StringArray::from(KEYS.to_vec())));
    RecordBatch::try_new(
        stored_schema(),
        vec![
            Arc::new(
                FixedSizeBinaryArray::try_from_iter(ids)
                    .unwrap_or_else(|_| FixedSizeBinaryArray::new_null(16, 0)),
            ),
            times(|sample| sample.start),
            times(|sample| sample.end),
            Arc::new(
                rows.iter()
                    .map(|(_, sample)| Some(sample.value))
                    .collect::<Float64Array>(),
            ),
            Arc::new(sources),
            Arc::new(
                rows.iter()
                    .map(|(_, sample)| Some(sample.class))
                    .collect::<Int8Array>(),
            ),
        ],
    )
    .unwrap()
}

/// The series in batches, from rows that come `step` at a time.
async fn batches(
    samples: &[Sample],
    spec: &SeriesSpec,
    windows: &[TimeRange],
    step: usize,
) -> Vec<RecordBatch> {
    let rows = stored(samples);
    let parts = (0..rows.num_rows())
        .step_by(step)
        .map(|from| rows.slice(from, step.min(rows.num_rows() - from)));
    let input = MemorySourceConfig::try_new_exec(&[parts.collect()], stored_schema(), None).unwrap();
    let ranking = Arc::new(Ranking::new(SourceOrder::new(
        known_sources(),
        &spec.chosen_sources,
    )));
    let plan = SeriesExec::new(
        input,
        Arc::new(spec.clone()),
        Windows::new(windows.iter().copied()),
        ranking,
    );
    collect(Arc::new(plan), Arc::new(TaskContext::default()))
        .await
        .unwrap()
}

async fn series(samples: &[Sample], spec: &SeriesSpec, windows: &[TimeRange], step: usize) -> RecordBatch {
    concat_batches(&spec.schema(), &batches(samples, spec, windows, step).await).unwrap()
}

fn times(batch: &RecordBatch) -> Vec<i64> {
    batch
        .column(0)
        .as_primitive::<TimestampMicrosecondType>()
        .values()
        .to_vec()
}

/// A column of numbers, whole or not.
fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    let column = batch.column_by_name(name).unwrap();
    match column.as_primitive_opt::<Float64Type>() {
        Some(numbers) => numbers.iter().collect(),
        None => column
            .as_primitive::<Int64Type>()
            .iter()
            .map(|count| count.map(|count| count as f64))
            .collect(),
    }
}

fn lists(batch: &RecordBatch, name: &str) -> Vec<Option<Vec<f64>>> {
    let lists = batch.column_by_name(name).unwrap().as_list::<i32>();
    let list = |row: usize| {
        lists
            .is_valid(row)
            .then(|| lists.value(row).as_primitive::<Float64Type>().values().to_vec())
    };
    (0..lists.len()).map(list).collect()
}

/// Equal to nine digits.
#[track_caller]
fn assert_close(found: &[Option<f64>], expected: &[Option<f64>], about: &dyn std::fmt::Debug) {
    let same = |(found, expected): (&Option<f64>, &Option<f64>)| match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        _ => false,
    };
    assert_eq!(found.len(), expected.len(), "{about:?}");
    assert!(
        found.iter().zip(expected).all(same),
        "found {found:?}\nexpected {expected:?}\n{about:?}"
    );
}

const BEST: Measure = Measure::Amounts(Counting::BestSource);
