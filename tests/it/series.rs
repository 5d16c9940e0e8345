//! `/data/v0`: metrics on a regular grid.

mod forms;
mod golden;
mod lasting;
mod refused;
mod resolved;
mod whole_years;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Call, Person, number};

/// `metric_time_series`, answered as rows of JSON unless the call says otherwise.
fn series(person: &Person, metric: &str, start: &str, end: &str) -> Call {
    person
        .get(&format!("/data/v0/{}/metric_time_series", person.id))
        .with("metric", metric)
        .with("start_time", start)
        .with("end_time", end)
}

fn grouped(person: &Person, start: &str, end: &str) -> Call {
    person
        .get("/data/v0/time_series_grouped")
        .with("start_time", start)
        .with("end_time", end)
}

async fn rows(call: Call) -> Vec<Value> {
    call.with("output", "jstable").await.must_be(200).rows()
}

/// A column of numbers and nulls.
fn column(rows: &[Value], name: &str) -> Vec<Option<f64>> {
    let cell = |row: &Value| {
        assert!(row.get(name).is_some(), "no column {name} in {row}");
        (!row[name].is_null()).then(|| number(row, name))
    };
    rows.iter().map(cell).collect()
}

#[track_caller]
fn assert_close(found: &[Option<f64>], expected: &[Option<f64>]) {
    let same = |(found, expected): (&Option<f64>, &Option<f64>)| match (found, expected) {
        (None, None) => true,
        (Some(found), Some(expected)) => (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
        _ => false,
    };
    assert!(
        found.len() == expected.len() && found.iter().zip(expected).all(same),
        "found {found:?}, expected {expected:?}"
    );
}

/// A sample that shows where it comes from: a watch (0), a phone (1) or anything else.
fn sample(record: Uuid, source: u64, start: &str, end: &str, value: f64) -> Value {
    let product = ["Watch6,1", "iPhone15,2", "Scale1,1"]
        .get(source as usize)
        .copied()
        .unwrap_or("Box1,1");
    json!({
        "uuid": record, "start_date": start, "end_date": end, "value": value,
        "source_properties": {
            "name": product, "productType": product, "sourceBundleIdentifier": "com.example.health",
        },
    })
}
