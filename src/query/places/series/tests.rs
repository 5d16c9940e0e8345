//! `queries/location_time_series.sql` says the same as the operator.

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, Int8Array, Int64Array, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{Float64Type, Int64Type};
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::physical_plan::collect;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::FutureExt as _;
use futures::stream::iter;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tokio::runtime::Runtime;

use super::*;

const TWIN: &str = include_str!("../../../../queries/location_time_series.sql");

/// An update as both are given it; the source by its number.
#[derive(Clone, Copy, Debug)]
struct Update {
    time: i64,
    latitude: f64,
    longitude: f64,
    accuracy: Option<f64>,
    source: i8,
}

/// One row of an answer.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    slot: i64,
    latitude: f64,
    longitude: f64,
    time: i64,
    distance: Option<f64>,
    source: String,
}

const ONE: Update = Update {
    time: 0,
    latitude: 1.0,
    longitude: 1.0,
    accuracy: None,
    source: 0,
};

fn floats(told: &[Update], of: fn(&Update) -> Option<f64>) -> ArrayRef {
    Arc::new(told.iter().map(of).collect::<Float64Array>())
}

fn batch(told: &[Update]) -> RecordBatch {
    let times = TimestampMicrosecondArray::from_iter_values(told.iter().map(|told| told.time))
        .with_data_type(timestamp());
    RecordBatch::try_from_iter([
        ("start_time", Arc::new(times) as ArrayRef),
        ("latitude_degrees", floats(told, |told| Some(told.latitude))),
        ("longitude_degrees", floats(told, |told| Some(told.longitude))),
        ("horizontal_accuracy_meters", floats(told, |told| told.accuracy)),
        (
            "location_source",
            Arc::new(Int8Array::from_iter_values(told.iter().map(|told| told.source))),
        ),
    ])
    .unwrap()
}

async fn by_operator(told: &[Update], step: PlaceSeries, batch_rows: usize) -> Vec<Row> {
    let batches: Vec<RecordBatch> = told.chunks(batch_rows).map(batch).collect();
    let schema = batch(&[]).schema();
    let input = MemorySourceConfig::try_new_exec(&[batches], schema, None).unwrap();
    let plan = Arc::new(Operator::over(step, vec![input]));
    let batches = collect(plan, SessionContext::new().task_ctx()).await.unwrap();
    batches.iter().flat_map(rows).collect()
}

async fn by_sql(told: &[Update], step: &PlaceSeries) -> Vec<Row> {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    let whole = |numbers: Vec<i64>| Arc::new(Int64Array::from(numbers)) as ArrayRef;
    let updates = RecordBatch::try_from_iter([
        ("id", whole((0..told.len() as i64).collect())),
        ("time", whole(told.iter().map(|told| told.time).collect())),
        ("latitude", floats(told, |told| Some(told.latitude))),
        ("longitude", floats(told, |told| Some(told.longitude))),
        ("accuracy", floats(told, |told| told.accuracy)),
        (
            "source",
            whole(told.iter().map(|told| i64::from(told.source)).collect()),
        ),
    ]);
    let slots = (step.slots.start..step.slots.end)
        .step_by(step.slots.rate as usize)
        .collect();
    context.register_batch("updates", updates.unwrap()).unwrap();
    context
        .register_batch(
            "slots",
            RecordBatch::try_from_iter([("slot", whole(slots))]).unwrap(),
        )
        .unwrap();
    let parameters = vec![("look_back", ScalarValue::Int64(Some(step.look_back)))];
    let frame = context
        .sql(TWIN)
        .await
        .unwrap()
        .with_param_values(ParamValues::from(parameters))
        .unwrap();
    frame.collect().await.unwrap().iter().flat_map(rows).collect()
}

fn rows(batch: &RecordBatch) -> Vec<Row> {
    let column = |name: &str| batch.column_by_name(name).unwrap();
    let whole = |name: &str| {
        cast(column(name), &ArrowType::Int64)
            .unwrap()
            .as_primitive::<Int64Type>()
            .clone()
    };
    let number = |name: &str| column(name).as_primitive::<Float64Type>().clone();
    let source = |row: usize| {
        if let Some(numbers) = batch.column_by_name("source") {
            let number = numbers.as_primitive::<Int64Type>().value(row);
            return LocationSource::ALL[number as usize].name().to_owned();
        }
        let names = cast(column(LOCATION_SOURCE), &ArrowType::Utf8).unwrap();
        names.as_string::<i32>().value(row).to_owned()
    };
    let (slots, times, distances) = (whole("slice_time"), whole("time"), number("distance_change_m"));
    let (latitudes, longitudes) = (number("lat"), number("long"));
    (0..batch.num_rows())
        .map(|row| Row {
            slot: slots.value(row),
            latitude: latitudes.value(row),
            longitude: longitudes.value(row),
            time: times.value(row),
            distance: distances.is_valid(row).then(|| distances.value(row)),
            source: source(row),
        })
        .collect()
}

#[test]
fn rule_4_3_the_query_and_the_operator_agree() {
    let place = (-900_i32..=900, prop_oneof![-1800_i32..1800, Just(0)]);
    let told = (0_i64..300, place, prop::option::of(-1_i8..4), 0_i8..2);
    let strategy = (
        prop::collection::vec(told, 0..40),
        0_i64..200,
        0_i64..300,
        1_i64..50,
        0_i64..90,
        1_usize..9,
    );
    let runtime = Runtime::new().unwrap();
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(200)
    });
    let outcome = runner.run(&strategy, |(told, start, length, rate, look_back, batch_rows)| {
        let mut told: Vec<Update> = told
            .into_iter()
            .map(|(time, (latitude, longitude), accuracy, source)| Update {
                time,
                latitude: f64::from(latitude) / 10.0,
                longitude: f64::from(longitude) / 10.0,
                accuracy: accuracy.map(f64::from),
                source,
            })
            .collect();
        told.sort_by_key(|told| told.time);
        let step = PlaceSeries {
            slots: Slots {
                start,
                end: start + length,
                rate,
            },
            look_back,
            change_meters: None,
        };
        runtime.block_on(async {
            let expected = by_sql(&told, &step).await;
            let found = by_operator(&told, step, batch_rows).await;
            assert_eq!(found.len(), expected.len(), "{told:?}");
            for (found, expected) in found.iter().zip(&expected) {
                let near = match (found.distance, expected.distance) {
                    (Some(one), Some(other)) => (one - other).abs() <= 1e-6 * (1.0 + other),
                    (one, other) => one == other,
                };
                assert!(near, "{found:?} {expected:?}");
                let distance = found.distance;
                assert_eq!(
                    found,
                    &Row {
                        distance,
                        ..expected.clone()
                    },
                    "{told:?}"
                );
            }
        });
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn series_of_many_batches_come_whole() {
    let runtime = Runtime::new().unwrap();
    let end = BATCH_ROWS as i64 * 3 + 17;
    let step = PlaceSeries {
        slots: Slots {
            start: 0,
            end,
            rate: 1,
        },
        look_back: i64::MAX,
        change_meters: None,
    };
    let found = runtime.block_on(by_operator(&[ONE], step, 1));
    assert_eq!(found.len() as i64, end);
    assert!(
        found
            .iter()
            .enumerate()
            .all(|(place, row)| row.slot == place as i64)
    );
}

#[test]
fn slots_without_rows_let_others_go_first() {
    for (end, is_at_once) in [(100, true), (1 << 17, false)] {
        let step = PlaceSeries {
            slots: Slots {
                start: 0,
                end,
                rate: 1,
            },
            look_back: i64::MAX,
            change_meters: Some(1000.0),
        };
        let told = batch(&[ONE]);
        let walk = Walk {
            fixes: Box::pin(RecordBatchStreamAdapter::new(told.schema(), iter([Ok(told)]))),
            visits: None,
            batch: None,
            row: 0,
            as_of: None,
            rows: Rows::new(PlaceSeries::schema(), Changes::new(step.change_meters)),
            turn: Turn::new(),
            step,
        };
        let next = Walk::next(walk).now_or_never();
        assert_eq!(next.is_some(), is_at_once, "{end} slots");
    }
}
