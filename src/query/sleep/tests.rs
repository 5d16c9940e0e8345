//! The machines against a model that looks at every second, and against the SQL of each question.

mod model;
mod nights;
mod rules;
mod sql;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, FixedSizeBinaryArray, Float64Array, Int32Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema, TimestampMicrosecondType};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::execution::TaskContext;
use datafusion::physical_plan::ExecutionPlan;
use futures::TryStreamExt as _;

use crate::model::permit::Windows;
use crate::model::registry::{dictionary_text, timestamp};
use crate::model::time::{Instant, TimeRange};
use crate::query::ground::key::key_schema;

use super::StageTable;
use super::sleep_exec::SleepExec;
use super::spec::{CyclesSpec, Question, SourceNames};
use super::stages::StageSet;

pub(super) const SECOND: i64 = 1_000_000;

/// A sample in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct GivenSample {
    pub start: i64,
    pub end: i64,
    pub stage: i64,
    pub source: usize,
    pub id: u128,
}

pub(super) fn given(stage: i64, start: i64, end: i64, id: u128) -> GivenSample {
    GivenSample {
        start,
        end,
        stage,
        source: 0,
        id,
    }
}

pub(super) fn table() -> Arc<StageTable> {
    Arc::new(StageTable::new(&crate::model::sleep::stages().unwrap()))
}

pub(super) fn instant(second: i64) -> Instant {
    Instant::from_micros(second * SECOND)
}

pub(super) fn range(start: i64, end: i64) -> TimeRange {
    TimeRange::new(instant(start), instant(end)).unwrap()
}

pub(super) fn windows(ranges: &[(i64, i64)]) -> Windows {
    Windows::new(ranges.iter().map(|&(start, end)| range(start, end)))
}

/// Cycles of everything in the range, parted by two hours.
pub(super) fn cycles_of(asked: TimeRange) -> CyclesSpec {
    CyclesSpec {
        range: asked,
        clip: true,
        gap: 7200 * SECOND,
        gap_stages: StageSet::default(),
        shown: None,
        nights: None,
    }
}

/// The samples as they are stored: sorted, in batches of `batch` rows.
pub(super) fn stored(samples: &[GivenSample], batch: usize) -> Vec<RecordBatch> {
    let mut sorted = samples.to_vec();
    sorted.sort_by_key(|sample| (sample.start, sample.end, sample.id));
    sorted.chunks(batch).map(rows).collect()
}

fn rows(samples: &[GivenSample]) -> RecordBatch {
    let times = |value: fn(&GivenSample) -> i64| -> ArrayRef {
        Arc::new(
            TimestampMicrosecondArray::from_iter_values(samples.iter().map(|sample| value(sample) * SECOND))
                .with_timezone("UTC"),
        )
    };
    let ids = samples.iter().map(|sample| sample.id.to_be_bytes());
    let keys = Int32Array::from_iter_values(samples.iter().map(|sample| sample.source as i32));
    let names = StringArray::from(vec!["watch", "phone", "app", "ring"]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(FixedSizeBinaryArray::try_from_iter(ids).unwrap()),
        times(|sample| sample.start),
        times(|sample| sample.end),
        Arc::new(Float64Array::from_iter_values(
            samples.iter().map(|sample| sample.stage as f64),
        )),
        Arc::new(DictionaryArray::new(keys, Arc::new(names))),
    ];
    RecordBatch::try_new(storage(), columns).unwrap()
}

fn storage() -> Arc<Schema> {
    let mut fields: Vec<Field> = key_schema()
        .fields()
        .iter()
        .map(|field| field.as_ref().clone())
        .collect();
    fields.push(Field::new("value", DataType::Float64, true));
    fields.push(Field::new("source", dictionary_text(), true));
    assert_eq!(fields[1].data_type(), &timestamp());
    Arc::new(Schema::new(fields))
}

/// The answer of the operator.
pub(super) fn asked(
    samples: &[GivenSample],
    batch: usize,
    question: Question,
    seen: &Windows,
) -> Vec<RecordBatch> {
    let names: SourceNames = ["watch", "phone", "app", "ring"]
        .into_iter()
        .zip(0_u128..)
        .map(|(name, number)| (name.to_owned(), uuid::Uuid::from_u128(number)))
        .collect();
    let input = MemorySourceConfig::try_new_exec(&[stored(samples, batch)], storage(), None).unwrap();
    let plan = SleepExec::new(input, question, seen, table(), Some(Arc::new(names)));
    let rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    futures::executor::block_on(rows.try_collect()).unwrap()
}

/// A column of times in seconds.
pub(super) fn seconds(batches: &[RecordBatch], name: &str) -> Vec<i64> {
    batches
        .iter()
        .flat_map(|batch| seconds_of(batch.column_by_name(name).unwrap()))
        .collect()
}

pub(super) fn seconds_of(column: &ArrayRef) -> Vec<i64> {
    column
        .as_primitive::<TimestampMicrosecondType>()
        .values()
        .iter()
        .map(|micros| micros / SECOND)
        .collect()
}

pub(super) fn integers(batches: &[RecordBatch], name: &str) -> Vec<i64> {
    batches
        .iter()
        .flat_map(|batch| integers_of(batch.column_by_name(name).unwrap()))
        .collect()
}

pub(super) fn integers_of(column: &ArrayRef) -> Vec<i64> {
    column.as_primitive::<Int64Type>().values().to_vec()
}

/// Rows of `Question::Resolved` or of stages: start, end, stage.
pub(super) fn hypnogram(batches: &[RecordBatch]) -> Vec<(i64, i64, i64)> {
    let stage = if batches
        .first()
        .is_some_and(|batch| batch.column_by_name("stage").is_some())
    {
        "stage"
    } else {
        "sleep_stage"
    };
    let times = seconds(batches, "start_time")
        .into_iter()
        .zip(seconds(batches, "end_time"));
    times
        .zip(integers(batches, stage))
        .map(|((start, end), stage)| (start, end, stage))
        .collect()
}

/// The lists of structs in a column, row by row.
pub(super) fn lists(batches: &[RecordBatch], name: &str) -> Vec<Vec<ArrayRef>> {
    let mut lists = Vec::new();
    for batch in batches {
        let column = batch.column_by_name(name).unwrap().as_list::<i32>();
        for row in 0..column.len() {
            lists.push(column.value(row).as_struct().columns().to_vec());
        }
    }
    lists
}
