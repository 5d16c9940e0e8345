//! Where somebody was and when they meant to be somewhere: locations, calendars, workouts.

mod names;
mod plans;
mod raw;
mod whereabouts;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Almanac, Call, Person};

/// An update of a device.
fn update(record: Uuid, moment: &str, latitude: f64, longitude: f64, accuracy: f64) -> Value {
    json!({
        "uuid": record, "timestamp": moment, "latitude_degrees": latitude, "longitude_degrees": longitude,
        "horizontal_accuracy_meters": accuracy,
    })
}

fn visit(record: Uuid, arrival: &str, departure: &str, latitude: f64, longitude: f64) -> Value {
    json!({
        "uuid": record, "arrival_date": arrival, "departure_date": departure, "latitude_degrees": latitude,
        "longitude_degrees": longitude, "horizontal_accuracy_meters": 30.0,
    })
}

/// A read of one's own at `/data/v0/{svc_userid}/…`.
fn own(person: &Person, what: &str) -> Call {
    person.get(&format!("/data/v0/{}/{what}", person.id))
}

fn between(call: Call, start: &str, end: &str) -> Call {
    call.with("start_time", start).with("end_time", end)
}

async fn rows(call: Call) -> Vec<Value> {
    call.await.must_be(200).rows()
}

fn keys(row: &Value) -> Vec<&str> {
    row.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Returns when what was accepted stands in objects: what flushing began is finished by the end of the
/// process.
async fn flushed(almanac: &Almanac) {
    almanac.until_objects(1).await;
    almanac.restart();
}
