//! `queries/aggregates.sql` says the same as the endpoint, with periods that are found quarter of an hour by
//! quarter of an hour.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray as _, Float64Array, Int64Array, RecordBatch};
use arrow::datatypes::{Float64Type, Int64Type};
use chrono::{DateTime, NaiveDate, TimeZone as _, Utc};
use chrono_tz::Tz;
use datafusion::common::{ParamValues, ScalarValue};
use datafusion::prelude::SessionContext;
use serde_json::Value;

use super::by;
use crate::harness::{heart_rate, id, person};

const QUERY: &str = include_str!("../../../queries/aggregates.sql");
const QUARTER: i64 = 900_000_000;
const FUNCTIONS: [&str; 4] = ["sum", "avg", "min", "max"];

/// The days of a zone: where another one begins, and the end of the last.
fn days(zone: Tz, start: i64, end: i64) -> Vec<(i64, i64)> {
    let date = |micros: i64| zone.timestamp_micros(micros).unwrap().date_naive();
    let quarters = (start / QUARTER..end / QUARTER).map(|quarter| quarter * QUARTER);
    let mut edges: Vec<i64> = quarters
        .filter(|quarter| *quarter == start || date(*quarter) != date(quarter - QUARTER))
        .collect();
    edges.push(end);
    edges.windows(2).map(|edge| (edge[0], edge[1])).collect()
}

fn whole(numbers: impl Iterator<Item = i64>) -> ArrayRef {
    Arc::new(numbers.collect::<Int64Array>())
}

async fn by_sql(samples: &[(i64, f64)], periods: &[(i64, i64)]) -> RecordBatch {
    let context = SessionContext::new();
    let values: Float64Array = samples.iter().map(|(_, value)| Some(*value)).collect();
    let times = whole(samples.iter().map(|(time, _)| *time));
    let samples = [("start_time", times), ("value", Arc::new(values) as ArrayRef)];
    let starts = whole(periods.iter().map(|(start, _)| *start));
    let ends = whole(periods.iter().map(|(_, end)| *end));
    let periods = [("start_time", starts), ("end_time", ends)];
    for (name, columns) in [("samples", samples), ("periods", periods)] {
        let rows = RecordBatch::try_from_iter(columns).unwrap();
        context.register_batch(name, rows).unwrap();
    }
    let step = ParamValues::from(vec![("step", ScalarValue::Int64(Some(QUARTER)))]);
    let frame = context.sql(QUERY).await.unwrap().with_param_values(step).unwrap();
    let schema = Arc::clone(frame.schema().inner());
    arrow::compute::concat_batches(&schema, &frame.collect().await.unwrap()).unwrap()
}

fn micros(row: &Value) -> i64 {
    let time = row["time"].as_str().unwrap();
    DateTime::parse_from_rfc3339(time).unwrap().timestamp_micros()
}

fn text(micros: i64) -> String {
    let moment = Utc.timestamp_micros(micros).unwrap();
    moment.to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

#[tokio::test]
async fn rule_5_2_the_query_of_aggregates_and_the_endpoint_agree() {
    // An hour that comes twice, one that is left out, half of one, a day that was left out, and a zone that
    // is three quarters of an hour beside the others.
    let asked = [
        ("America/New_York", "2024-10-20", "2024-11-20"),
        ("America/New_York", "2024-03-04", "2024-04-01"),
        ("Australia/Lord_Howe", "2024-03-30", "2024-04-20"),
        ("Pacific/Apia", "2011-12-20", "2012-01-10"),
        ("Asia/Kathmandu", "2023-11-01", "2024-02-01"),
    ];
    let mut seed = 7_u64;
    let mut random = |below: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((seed >> 20) % below).cast_signed()
    };
    for (zone, first, end) in asked {
        let tz: Tz = zone.parse().unwrap();
        let midnight = |day: &str| {
            let day: NaiveDate = day.parse().unwrap();
            let midnight = tz.from_local_datetime(&day.and_hms_opt(0, 0, 0).unwrap());
            midnight.unwrap().timestamp_micros()
        };
        let (start, end) = (midnight(first), midnight(end));
        let length = (end - start).unsigned_abs();
        let samples: Vec<(i64, f64)> = (0..300)
            .map(|_| (start + random(length), random(2000) as f64 / 8.0))
            .collect();
        let person = person();
        let records: Vec<Value> = (0..)
            .zip(&samples)
            .map(|(n, (time, value))| heart_rate(id(n), &text(*time), *value))
            .collect();
        person.records("HeartRate", &records).await;
        let range = (text(start), text(end));
        let call = by(&person, "metric", "HeartRate", "day", (&range.0, &range.1));
        let call = FUNCTIONS
            .iter()
            .fold(call, |call, name| call.with("function", name));
        let found = call.with("time_zone", zone).await.must_be(200).rows();
        let expected = by_sql(&samples, &days(tz, start, end)).await;
        assert_eq!(found.len(), expected.num_rows(), "{zone} from {first}");
        let starts = expected["period_start_time"].as_primitive::<Int64Type>().values();
        let told: Vec<i64> = found.iter().map(micros).collect();
        assert_eq!(told, starts.to_vec(), "{zone} from {first}");
        for (row, told) in found.iter().enumerate() {
            for name in FUNCTIONS {
                let (one, other) = (
                    told[name].as_f64().unwrap(),
                    expected[name].as_primitive::<Float64Type>().value(row),
                );
                assert!(
                    (one - other).abs() <= 1e-9 * other.abs().max(1.0),
                    "{zone} {name}: {one} {other}"
                );
            }
        }
    }
}
