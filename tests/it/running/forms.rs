//! Catalogues and listings in every form, and in the interface's own where none is asked for.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Frame, METHODS, Person, at, heart_rate, id, person};

/// Somebody with something in each listing.
async fn somebody() -> Person {
    let person = person();
    person
        .records("HeartRate", &[heart_rate(id(1), &at("10:00"), 60)])
        .await;
    person.define("Event", &json!({"name": "Tea"})).await;
    person
        .post("/user/v1alpha1/tag", &json!({"name": "caffeine"}))
        .await;
    let annotation =
        json!({"annotation_type": "moment", "name": "Coffee", "description": "A cup", "tags": []});
    person.post("/user/v1alpha1/annotation", &annotation).await;
    person
}

fn listings(person: &Person) -> Vec<String> {
    vec![
        "/data/v0/metrics_catalog".to_owned(),
        format!("/data/v0/{}/sleep_stage_metadata", person.id),
        "/data/v1/catalog".to_owned(),
        "/data/v1alpha1/data_types".to_owned(),
        "/data/v1alpha1/data_sources".to_owned(),
        "/user/v1alpha1/annotation".to_owned(),
        "/user/v1alpha1/tag".to_owned(),
    ]
}

#[tokio::test]
async fn a_listing_has_the_same_rows_in_every_form() {
    let person = somebody().await;
    for path in listings(&person) {
        let plain = person.get(&path).await.must_be(200).rows();
        assert!(!plain.is_empty(), "{path}");
        for method in METHODS {
            let reply = person.get(&path).with("output", method).await.must_be(200);
            let frame = Frame::read(method, &reply.body);
            assert_eq!(frame.rows.len(), plain.len(), "{path} as {method}");
            let first = plain[0].as_object().unwrap();
            for name in first.keys() {
                assert!(frame.columns.contains(name), "{name} of {path} as {method}");
            }
            let known = reply.header("etag").expect("a tag").to_owned();
            let again = person.get(&path).with("output", method);
            again.header("if-none-match", &known).await.must_be(304);
        }
        let rows = person
            .get(&path)
            .with("output", "jstable")
            .await
            .must_be(200)
            .rows();
        for (plain, row) in plain.iter().zip(&rows) {
            for (name, value) in plain.as_object().unwrap() {
                assert!(is_alike(&row[name], value), "{name} of {path}: {row} is {plain}");
            }
        }
    }
}

/// A time has one moment and several spellings.
fn is_alike(one: &Value, other: &Value) -> bool {
    let moment = |value: &Value| {
        value
            .as_str()
            .and_then(|text| chrono::DateTime::parse_from_rfc3339(text).ok())
    };
    one == other || (moment(one).is_some() && moment(one) == moment(other))
}

#[tokio::test]
async fn what_is_available_is_keyed_by_type_or_a_row_for_each() {
    let person = somebody().await;
    let ask = || {
        person
            .get("/data/v1alpha1/data_available")
            .with("start_time", "2024-05-01")
            .with("end_time", "2024-05-02")
    };
    let keyed = ask().await.must_be(200).json();
    assert_eq!(keyed[0]["HeartRate"]["count"], 1);
    let rows = ask().with("output", "jstable").await.must_be(200).rows();
    assert_eq!(
        rows,
        [json!({"data_type": "HeartRate", "start_time": at("10:00"), "end_time": at("10:00"), "count": 1})]
    );
    let frame = ask().with("output", "arrow").await.must_be(200);
    assert_eq!(Frame::read("arrow", &frame.body).rows.len(), 1);
}

#[tokio::test]
async fn a_form_that_there_is_not_is_422_in_a_listing_too() {
    let person = person();
    for path in listings(&person) {
        let reply = person.call(Method::GET, &path).with("output", "xlsx").await;
        assert_eq!(reply.faults(), ["query.output"], "{path}");
    }
}
