//! Records to store, written so that a test shows only what it is about.

use serde_json::{Value, json};
use uuid::Uuid;

/// The `n`th id; people keep them apart.
pub(crate) fn id(n: u32) -> Uuid {
    Uuid::from_u128(0x0191_0000_0000_7000_8000_0000_0000_0000 + u128::from(n))
}

/// A moment on the first of May 2024: `10:00` or `10:00:05`.
pub(crate) fn at(time: &str) -> String {
    if time.len() == 5 {
        format!("2024-05-01T{time}:00Z")
    } else {
        format!("2024-05-01T{time}Z")
    }
}

/// The `second`th second from the first of May 2024 on.
pub(crate) fn instant(second: u32) -> String {
    let (day, rest) = (second / 86_400, second % 86_400);
    assert!(day < 31, "a second of May");
    format!(
        "2024-05-{:02}T{:02}:{:02}:{:02}Z",
        day + 1,
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

/// A heart rate at one moment.
pub(crate) fn heart_rate(record: Uuid, moment: &str, value: impl Into<f64>) -> Value {
    let value: f64 = value.into();
    json!({"uuid": record, "start_date": moment, "end_date": moment, "value": value})
}

/// Steps over an interval.
pub(crate) fn steps(record: Uuid, start: &str, end: &str, value: impl Into<f64>) -> Value {
    let value: f64 = value.into();
    json!({"uuid": record, "start_date": start, "end_date": end, "value": value})
}

pub(crate) fn jsonl(records: &[Value]) -> String {
    let mut body = String::new();
    for record in records {
        body.push_str(&record.to_string());
        body.push('\n');
    }
    body
}

/// One text member of each row.
#[track_caller]
pub(crate) fn texts(rows: &[Value], name: &str) -> Vec<String> {
    rows.iter()
        .map(|row| {
            row[name]
                .as_str()
                .unwrap_or_else(|| panic!("no text {name} in {row}"))
                .to_owned()
        })
        .collect()
}

/// A number of one row.
#[track_caller]
pub(crate) fn number(row: &Value, name: &str) -> f64 {
    row[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no number {name} in {row}"))
}
