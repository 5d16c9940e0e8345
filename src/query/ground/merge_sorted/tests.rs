//! What is merged is what would be sorted, and what nothing lies between is not touched.

use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::Int64Type;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::TaskContext;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use futures::TryStreamExt as _;
use proptest::prelude::*;

use super::*;
use crate::query::ground::key::key_order;
use crate::query::ground::operator::is_sound;

/// A row: when it starts, and its id.
type Row = (i64, u8);

/// A batch of rows, which are sorted; `number` tells each from all others.
fn batch(rows: &[Row], number: i64) -> RecordBatch {
    let starts = || {
        let starts = TimestampMicrosecondArray::from_iter_values(rows.iter().map(|(start, _)| *start));
        Arc::new(starts.with_timezone("UTC")) as ArrayRef
    };
    let ids = rows.iter().map(|(_, id)| [*id; 16]);
    let ids = FixedSizeBinaryArray::try_from_sparse_iter_with_size(ids.map(Some), 16).unwrap();
    let numbers = Int64Array::from_iter_values(number..number + rows.len() as i64);
    RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("start_time", starts()),
        ("end_time", starts()),
        ("number", Arc::new(numbers)),
    ])
    .unwrap()
}

fn input(batches: Vec<RecordBatch>) -> Plan {
    let schema = batch(&[], 0).schema();
    let source = MemorySourceConfig::try_new(&[batches], Arc::clone(&schema), None).unwrap();
    let sorted = vec![key_order(&schema).unwrap()];
    DataSourceExec::from_data_source(source.try_with_sort_information(sorted).unwrap())
}

async fn merged(inputs: Vec<Vec<RecordBatch>>) -> Vec<RecordBatch> {
    let order = key_order(&batch(&[], 0).schema()).unwrap();
    let plan: Plan = Arc::new(MergeSortedExec::new(
        inputs.into_iter().map(input).collect(),
        order,
    ));
    assert!(is_sound(&plan));
    let rows = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    rows.try_collect().await.unwrap()
}

fn numbers(batches: &[RecordBatch]) -> Vec<i64> {
    let rows = concat_batches(&batch(&[], 0).schema(), batches).unwrap();
    rows.column(3).as_primitive::<Int64Type>().values().to_vec()
}

/// Rows in stretches, of which some are long: each begins somewhere, and its rows lie so far from each other.
fn any_rows() -> impl Strategy<Value = Vec<Row>> {
    let count = prop_oneof![4 => 1_i64..6, 1 => Just(STRETCH as i64 + 9)];
    let stretch = (0_i64..9_000, count, 0_i64..3, any::<u8>());
    prop::collection::vec(stretch, 0..5).prop_map(|stretches| {
        let rows = stretches
            .into_iter()
            .flat_map(|(from, count, apart, id)| (0..count).map(move |row| (from + row * apart, id)));
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_unstable();
        rows
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn merged_rows_are_those_of_all_inputs_sorted(
        inputs in prop::collection::vec((any_rows(), 1_usize..5_000), 1..4),
    ) {
        let mut all = Vec::new();
        let mut sides = Vec::new();
        for (side, (rows, length)) in inputs.iter().enumerate() {
            let first = side as i64 * 1_000_000;
            all.extend(rows.iter().zip(first..));
            let batches = rows.chunks(*length).zip((first..).step_by(*length));
            sides.push(batches.map(|(rows, number)| batch(rows, number)).collect());
        }
        // Of rows with the same key that of the input before comes first: a stable sort.
        all.sort_by_key(|(row, _)| **row);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let found = runtime.block_on(merged(sides));
        let sorted: Vec<i64> = all.iter().map(|(_, number)| *number).collect();
        prop_assert_eq!(numbers(&found), sorted);
    }
}

/// The same rows with a text in each.
fn with_text(rows: &RecordBatch, length: usize) -> RecordBatch {
    let texts = StringArray::from_iter_values((0..rows.num_rows()).map(|_| "x".repeat(length)));
    let columns = rows.schema();
    let columns = columns.fields().iter().map(|field| field.name().clone());
    let columns = columns.zip(rows.columns().iter().cloned());
    RecordBatch::try_from_iter(columns.chain([("text".to_owned(), Arc::new(texts) as ArrayRef)])).unwrap()
}

#[tokio::test]
async fn long_rows_are_merged_in_little_memory() {
    let long = |from: i64, apart: i64| -> Vec<RecordBatch> {
        let batches = (0..20).map(|number| {
            let rows: Vec<Row> = (0..10)
                .map(|row| (from + (number * 10 + row) * apart, 1))
                .collect();
            with_text(&batch(&rows, number * 10), 100_000)
        });
        batches.collect()
    };
    // A row between years of others, and two sides of which each row lies between rows of the other.
    let alone = vec![with_text(&batch(&[(995, 2)], 0), 1)];
    for (one, other, rows) in [(long(0, 10), alone, 201), (long(0, 2), long(1, 2), 400)] {
        let order = key_order(&one[0].schema()).unwrap();
        let inputs = [one, other].map(|batches| {
            let schema = batches[0].schema();
            let source = MemorySourceConfig::try_new(&[batches], schema, None).unwrap();
            let source = source.try_with_sort_information(vec![order.clone()]).unwrap();
            DataSourceExec::from_data_source(source) as Plan
        });
        let plan: Plan = Arc::new(MergeSortedExec::new(inputs.into(), order));
        let memory = RuntimeEnvBuilder::new().with_memory_limit(4 << 20, 1.0);
        let context = TaskContext::default().with_runtime(memory.build_arc().unwrap());
        let merged = plan.execute(0, Arc::new(context)).unwrap();
        let merged: Vec<RecordBatch> = merged.try_collect().await.unwrap();
        let starts = merged
            .iter()
            .flat_map(|rows| micros_of(rows, START).unwrap().to_vec());
        let starts: Vec<i64> = starts.collect();
        assert_eq!(starts.len(), rows);
        assert!(starts.is_sorted());
    }
}

#[tokio::test]
async fn inputs_with_more_than_is_mixed_are_put_together_in_few_batches() {
    // Twelve inputs that alternate row by row, with a batch of 5 MB each.
    let sides = 12;
    let side = |place: i64| {
        let rows: Vec<Row> = (0..8_192).map(|row| (row * sides + place, 1)).collect();
        vec![with_text(&batch(&rows, place * 8_192), 600)]
    };
    let order = key_order(&side(0)[0].schema()).unwrap();
    let inputs = (0..sides).map(|place| {
        let batches = side(place);
        let schema = batches[0].schema();
        let source = MemorySourceConfig::try_new(&[batches], schema, None).unwrap();
        let source = source.try_with_sort_information(vec![order.clone()]).unwrap();
        DataSourceExec::from_data_source(source) as Plan
    });
    let plan: Plan = Arc::new(MergeSortedExec::new(inputs.collect(), order.clone()));
    let merged = plan.execute(0, Arc::new(TaskContext::default())).unwrap();
    let merged: Vec<RecordBatch> = merged.try_collect().await.unwrap();
    let rows = merged.iter().map(RecordBatch::num_rows);
    assert_eq!(rows.clone().sum::<usize>(), 12 * 8_192);
    assert!(merged.len() < 30, "{:?}", rows.collect::<Vec<_>>());
}

#[tokio::test]
async fn rows_with_nothing_between_them_are_passed_on_as_they_came() {
    let rows: Vec<Row> = (0..8_192).map(|start| (start * 10, 1)).collect();
    let old: Vec<RecordBatch> = (0..3)
        .map(|place| {
            let rows: Vec<Row> = rows
                .iter()
                .map(|(start, id)| (start + place * 81_920, *id))
                .collect();
            batch(&rows, place * 8_192)
        })
        .collect();
    let found = merged(vec![old.clone(), vec![batch(&[(120_005, 2)], -1)]]).await;
    let lengths: Vec<usize> = found.iter().map(RecordBatch::num_rows).collect();
    assert_eq!(lengths, [8_192, 3_809, 1, 4_383, 8_192]);
    let column = |rows: &RecordBatch| Arc::clone(rows.column(3));
    assert!(Arc::ptr_eq(&column(&found[0]), &column(&old[0])));
    assert!(Arc::ptr_eq(&column(&found[4]), &column(&old[2])));
    let address = |rows: &RecordBatch| rows.column(3).as_primitive::<Int64Type>().values().as_ptr();
    assert_eq!(address(&found[1]), address(&old[1]));
}
