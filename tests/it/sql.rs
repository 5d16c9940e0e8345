//! `POST /data/v1/sql`: queries of people, over HTTP.

mod distinct_from;
mod functions;
mod fuzzed;
mod joined;
mod kept_above;
mod lists;
mod mistaken;
mod moments;
mod names;
mod not_in;
mod one_row;
mod outward;
mod patterns;
mod plans;
mod refused;
mod row_values;
mod shared;
mod sorted;
mod spans;
mod tables;
mod unknown;
mod windows;
mod zeros;

use serde_json::{Value, json};

use crate::harness::{Call, Person};

pub(crate) const SQL: &str = "/data/v1/sql";

/// A query that is to be sent.
pub(crate) fn query(person: &Person, text: &str) -> Call {
    person.post(SQL, &json!({"query": text}))
}

/// The rows that a query finds.
pub(crate) async fn rows(person: &Person, text: &str) -> Vec<Value> {
    query(person, text).await.must_be(200).rows()
}

/// What is wrong with a query.
pub(crate) async fn wrong(person: &Person, text: &str) -> String {
    let reply = query(person, text).await;
    assert_eq!(reply.faults(), ["body.query"], "{text}");
    reply.json()["detail"][0]["msg"].as_str().unwrap().to_owned()
}

/// Whether two answers hold the same: numbers within a billionth.
pub(crate) fn alike(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            let (one, other) = (one.as_f64().unwrap(), other.as_f64().unwrap());
            (one - other).abs() <= 1e-9 * other.abs().max(1.0)
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| alike(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(name, one)| other.get(name).is_some_and(|other| alike(one, other)))
        }
        (one, other) => one == other,
    }
}
