//! Sleep: stages, cycles and totals of periods, over HTTP.
//!
//! Times are written as `01 22:30`, the day of May 2024 and the time of day, in UTC.

mod answers;
mod extended;
mod golden;
mod nights;
mod periods;
mod refused;
mod whole;

use serde_json::{Value, json};

use crate::harness::{Call, Person, id};

pub(crate) const IN_BED: i64 = 0;
pub(crate) const AWAKE: i64 = 1;
pub(crate) const UNKNOWN: i64 = 2;
pub(crate) const LIGHT: i64 = 3;
pub(crate) const DEEP: i64 = 4;
pub(crate) const REM: i64 = 5;

/// A stage from a moment to another.
pub(crate) type Span = (i64, &'static str, &'static str);

/// `01 22:30` or `01 22:30:59`, as an answer shows it.
pub(crate) fn may(moment: &str) -> String {
    let (day, time) = moment.split_once(' ').expect("a day and a time");
    let seconds = if time.len() == 5 { ":00" } else { "" };
    format!("2024-05-{day}T{time}{seconds}Z")
}

/// The first of May, from midnight to midnight.
pub(crate) const FIRST_OF_MAY: (&str, &str) = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z");

/// The spans as samples; later ones have greater ids.
pub(crate) fn samples(spans: &[Span]) -> Vec<Value> {
    let sample = |(number, (stage, start, end)): (u32, &Span)| {
        json!({
            "uuid": id(number), "start_date": may(start), "end_date": may(end), "value": stage,
        })
    };
    (0..).zip(spans).map(sample).collect()
}

pub(crate) async fn slept(person: &Person, spans: &[Span]) {
    person.records("SleepStage", &samples(spans)).await;
}

/// A question about a person's sleep on the first of May.
pub(crate) fn ask(person: &Person, route: &str) -> Call {
    ask_about(person, route, FIRST_OF_MAY)
}

pub(crate) fn ask_about(person: &Person, route: &str, (start, end): (&str, &str)) -> Call {
    ask_as(person, route, "jstable")
        .with("start_time", start)
        .with("end_time", end)
}

pub(crate) fn ask_as(person: &Person, route: &str, method: &str) -> Call {
    person
        .get(&format!("/data/v0/{}/{route}", person.id))
        .with("output", method)
}

/// Rows of stages: cycle, stage, start and end.
pub(crate) fn hypnogram(rows: &[Value]) -> Vec<(i64, i64, String, String)> {
    let text = |row: &Value, name: &str| {
        row[name]
            .as_str()
            .unwrap_or_else(|| panic!("{name} in {row}"))
            .to_owned()
    };
    let number = |row: &Value, name: &str| row[name].as_i64().unwrap_or_else(|| panic!("{name} in {row}"));
    rows.iter()
        .map(|row| {
            (
                number(row, "cycle"),
                number(row, "sleep_stage"),
                text(row, "start_time"),
                text(row, "end_time"),
            )
        })
        .collect()
}

/// Expected rows, from a short form.
pub(crate) fn rows(expected: &[(i64, Span)]) -> Vec<(i64, i64, String, String)> {
    expected
        .iter()
        .map(|(cycle, (stage, start, end))| (*cycle, *stage, may(start), may(end)))
        .collect()
}
